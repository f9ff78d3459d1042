/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generalized requests of the program. MPI_Grequest_start is intercepted, and MPI gets functions of contd that go on to
 * the program's. So it is known which handles are generalized requests, and free_fn can be kept back until a
 * continuation has run. And from the start on each has what contd_mpi_grequest_complete() needs where it may not call
 * MPI.
 *
 *     operation                thread  handler  progress
 *     contd__general_find        yes     yes    wait-free: entries are added, and used again for the same bucket,
 *                                               never freed
 *     contd__general_error       yes     yes    wait-free
 *     contd__general_hold        yes     no     lock-free; before MPI can have freed the request
 *     contd__general_release     yes     no     calls the program's free_fn
 *     contd__general_drain       yes     no     calls MPI, and the program's query_fn
 *     contd__general_any         yes     yes    wait-free
 *
 * Not known are those that Fortran starts (their functions are called by other rules), those that MPI itself starts,
 * and all of them if calls do not come to contd (a plugin).
 */
#ifndef CONTD_MPI_GREQUEST_H
#define CONTD_MPI_GREQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <urcu/lfstack.h>

#include <mpi.h>

#include "base/atomic.h"

struct contd__general;

extern uint32_t contd__general_known;                  /* there are so many that MPI has not freed */
extern uint32_t contd__generals;                       /* known ones that have not been completed */
extern uint32_t contd__general_holds;                  /* those whose free_fn is kept back */
extern struct __cds_lfs_stack contd__general_deferred; /* to be completed by a thread that may call MPI */

/* NULL: it is none, or not known. */
struct contd__general *contd__general_find(MPI_Request request);

/* The last result of its query_fn, if MPI has been asked about it. MPI has not freed the request, or it is held. */
int contd__general_error(const struct contd__general *g);

/*
 * Keep free_fn back until the release, which calls it and returns its code. MPI may free the request before that or
 * after it.
 */
void contd__general_hold(struct contd__general *g);
int contd__general_release(struct contd__general *g);

/* Are there any to be completed? Then complete them. */
static inline bool contd__general_any(void)
{
	return contd__load(&contd__general_deferred.head) != NULL;
}
void contd__general_drain(void);

/* The program's calls, intercepted. contd's own generalized requests are not the program's: contd__next_pmpi. */
int contd__on_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
			     MPI_Grequest_cancel_function *cancel_fn, void *extra, MPI_Request *request);
int contd__on_Grequest_complete(MPI_Request request);

#endif
