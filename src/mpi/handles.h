/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The portable backend's knowledge of handles that the program keeps: which are CRs, and which are persistent (no
 * function of MPI-3.1 tells; but all that were given to MPI_Start are). A hash table under RCU (liburcu's).
 *
 *     operation               thread  handler             in a callback  progress
 *     contd__handle_find        yes     in a region only      yes        wait-free; the thread is registered with RCU
 *     contd__handle_add         yes     no                    yes        blocking (memory)
 *     contd__handle_remove      yes     in a region only      yes        blocking (a mutex)
 *
 * An entry that was found stays while its handle is valid: to free a handle that another thread is using is an error.
 */
#ifndef CONTD_MPI_HANDLES_H
#define CONTD_MPI_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>
#include <urcu/rculfhash.h>

#include <mpi.h>

struct contd__cr;

/* `hooked` of a persistent request. */
enum {
	HANDLE_IDLE,   /* no continuation waits for it */
	HANDLE_HOOKED, /* one does */
	HANDLE_FREED   /* the same, and the program has freed it */
};

struct contd__handle {
	struct cds_lfht_node node;
	MPI_Request request;
	struct contd__cr *cr; /* NULL: a persistent request */
	uint32_t hooked;      /* persistent: is its continuation outstanding? */
	uint32_t unstarted;   /* persistent: made, and not started yet, so it is inactive, whatever MPI says */
	uint32_t told;        /* persistent: what MPI has told of its completion is in `status`: contd__told_keep() */
	MPI_Comm comm;        /* persistent: its communicator, or MPI_COMM_NULL: not known */
	MPI_Status status;
	struct cds_list_head retired;
};

/* How many there are; without any nothing is looked up. */
extern uint32_t contd__handles;

struct contd__handle *contd__handle_find(MPI_Request request);

/* NULL without memory. The handle is not in the table. */
struct contd__handle *contd__handle_add(MPI_Request request, struct contd__cr *cr);
void contd__handle_remove(struct contd__handle *h);

/*
 * Of requests that are not in the table: did this thread start this one not long ago? Then it is not persistent. Mostly
 * a request is given to MPI_Continue right after it was started.
 */
#define STARTED_RECENTLY 16u
extern __thread MPI_Request contd__started[STARTED_RECENTLY] __attribute__((tls_model("initial-exec")));
extern __thread uint32_t contd__started_at __attribute__((tls_model("initial-exec")));

bool contd__recently_started(MPI_Request request);

static inline void contd__started_now(MPI_Request request)
{
	contd__started[contd__started_at++ % STARTED_RECENTLY] = request;
}

/*
 * A persistent request was found complete with this status, MPI_ERROR too, which MPI may have forgotten now: it is kept
 * with the entry. _take: it is copied to *status (may be MPI_STATUS_IGNORE), and not kept any more; false: none was
 * kept. Entries with such a status are counted.
 */
extern uint32_t contd__handles_told;
void contd__told_keep(struct contd__handle *h, const MPI_Status *status);
bool contd__told_take(struct contd__handle *h, MPI_Status *status);

/* Forget all; no other thread is looking. */
void contd__handles_clear(void);

#endif
