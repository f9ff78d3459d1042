/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where an MPI library departs from MPI, or from the others, and contd must know. Each function names the library, and
 * the version with which it was seen if that is known.
 *
 * For these contd does the same with every MPI, in the function that is named:
 *
 *     Open MPI 4.1    Testsome frees pending sends that it does not report, if    take_dropped(), portable.c
 *                     another of its requests has failed
 *     Open MPI 4.1    MPI_Wait frees a persistent request whose failure it tells   started_note(), wrappers.c
 *     Open MPI 4.1    MPI_Start starts another request in place of a buffered      moved_note(), wrappers.c
 *                     one whose message is on its way
 *     Open MPI        Testall writes MPI_ERROR of all statuses if a persistent     contd__portable_test_all(),
 *                     request has failed, and returns MPI_SUCCESS                  portable.c
 *     Open MPI        the status of a cancelled receive is empty                   may_be_empty(), portable.c
 *     MPICH 4.0       Testsome hardly makes progress on persistent collectives     struct lane, portable.c
 *     MPICH 4.0       what query_fn returns becomes MPI_ERR_OTHER                  error_known(), portable.c
 *     MPICH 4.0       a persistent collective that was never started is "not       seen_by_mpi(), portable.c
 *                     complete"
 *     MPICH 4.0       MPI_Mrecv tells MPI_COMM_WORLD that a message is too long    too_long(), wrappers.c
 *     MPICH 4.0       MPI_Finalize stops locking before delete callbacks           on_Finalize(), wrappers.c
 *     MPICH 4.0       MPI_Request_free calls free_fn, complete or not              free_or_keep(), grequest.c
 *     MPICH from 4.2  MPI_Request_get_status tells of a persistent request once    mpich_forgets.h
 */
#ifndef CONTD_MPI_QUIRKS_H
#define CONTD_MPI_QUIRKS_H

#include <stdbool.h>

#include <mpi.h>

/* Which library it is: asked when the portable backend starts. */
struct contd__quirks {
	bool open_mpi, mpich;
};
extern struct contd__quirks contd__quirks;
void contd__quirks_find(void);

/*
 * Open MPI (4.1): MPI_Test frees a persistent request whose operation has failed; MPI_Testall of that request
 * alone does not, and tells no error handler.
 */
static inline bool contd__quirk_test_frees_failed(void)
{
	return contd__quirks.open_mpi;
}

/* Open MPI (4.1): Testany and Testall do not say that a persistent request has failed. */
static inline bool contd__quirk_failure_unsaid(void)
{
	return contd__quirks.open_mpi;
}

/*
 * Open MPI: test calls look first and make progress then, so that only the next one sees what that has
 * found. A thread that arms a bell and looks again would never hear of it.
 */
static inline bool contd__quirk_test_looks_first(void)
{
	return contd__quirks.open_mpi;
}

/* Open MPI (4.1): no error handler is told that a free_fn has failed. contd does as the MPI that it works with. */
static inline bool contd__quirk_free_fn_unheard(void)
{
	return contd__quirks.open_mpi;
}

/* MPICH: Testsome leaves MPI_ERROR of a status as it was, unless one of its requests has failed. */
static inline void contd__quirk_testsome_error(int rc, MPI_Status *status)
{
	if (rc != MPI_ERR_IN_STATUS)
		status->MPI_ERROR = MPI_SUCCESS;
}

/*
 * MPI_Request_get_status: MPICH returns the error code of an operation that failed. Open MPI returns MPI_SUCCESS, also
 * if query_fn has failed: then `kept` is what that has returned.
 */
static inline int contd__quirk_get_status_error(int rc, int kept)
{
	return rc ? rc : kept;
}

/*
 * MPICH and its family: a request that is built in, one for each kind of operation that is complete from the start, so
 * that many handles are the same. The two highest bits of a handle tell its kind, 1: built in (MPICH's mpir_objects.h).
 * In MPICH's ABI a handle is the object's address, and the object begins with that number.
 */
static inline bool contd__quirk_built_in(MPI_Request request)
{
#if defined(MPICH_NUMVERSION)
	return (unsigned)request >> 30 == 1;
#elif defined(MPI_ABI_VERSION)
	return contd__quirks.mpich && *(const unsigned *)(const void *)request >> 30 == 1;
#else
	(void)request;
	return false;
#endif
}

/* MPICH (4.2): MPI_Session_init forgets the error handler, and MPICH aborts when it is called. */
#ifdef MPI_SESSION_NULL
static inline void contd__quirk_session_errhandler(MPI_Session session, MPI_Errhandler errhandler)
{
#if defined(MPICH_VERSION) || defined(MPI_ABI_VERSION)
	PMPI_Session_set_errhandler(session, errhandler);
#else
	(void)session, (void)errhandler;
#endif
}
#endif

#endif
