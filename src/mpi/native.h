/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native backend, on Open MPI's own requests.
 *
 *  native.c        continuation requests (CRs) as real requests; attaching; what happens when an operation completes
 *  native_calls.c  the completion calls (Test*, Wait*) and progress: where continuations run
 */
#ifndef CONTD_MPI_NATIVE_H
#define CONTD_MPI_NATIVE_H

#include "mpi/backend.h"

#include "ompi_config.h"
#include "ompi/request/request.h"

/*
 * A CR. To Open MPI it is a request that is not persistent, whose req_free does nothing when a completion call has
 * reported it (so the handle stays) and gives it back in MPI_Request_free. Its state follows its group's count:
 *   nothing registered since it was last reported   INACTIVE, complete
 *   something outstanding                           ACTIVE, pending
 *   all finished, not reported yet                  ACTIVE, complete
 * Whoever moves the count to or from 0 then calls cr_sync, which looks at the count under `lock` and sets the state. In a
 * handler the lock is only tried; who holds it looks again when it lets go.
 */
struct contd__cr {
	ompi_request_t super;
	struct contd_group *group;
	uint32_t lock;
	uint32_t again;
	uint32_t recheck; /* where the next look for missed callbacks begins */
	struct cds_list_head node; /* all CRs, freed ones with something outstanding too; under cr_lock */
};

extern uint32_t contd__cr_live; /* CRs that the program has not freed */
extern uint32_t contd__ops_hooked; /* operations that wait for their callback */
extern uint32_t contd__native_stopped;

int contd__cr_free(ompi_request_t **request);

static inline struct contd__cr *contd__cr_of(ompi_request_t *request)
{
	return request->req_free == contd__cr_free ? (struct contd__cr *)request : NULL;
}

/* Make the request's state follow the count. */
void contd__cr_sync(struct contd__cr *cr);

/* A completion call has reported it: inactive, if nothing was registered meanwhile. */
void contd__cr_reported(struct contd__cr *cr);

/* What handlers put off: requests to be freed. Ordinary threads that may call MPI. */
void contd__put_off_drain(void);
bool contd__put_off_any(void);

/* With threads: look for operations whose callback was missed (native.c, op_hook). */
void contd__recheck(void);

/* A completion call that is under way on this thread. */
struct contd__call {
	bool runs_itself;  /* it runs continuations itself; progress inside it need not */
	bool completing;   /* inside Open MPI's own function: req_free means "reported" */
	struct contd__call *outer;
};
extern __thread struct contd__call *contd__call __attribute__((tls_model("initial-exec")));

/* native_calls.c */
int contd__calls_start(void);
void contd__calls_stop(void);

#endif
