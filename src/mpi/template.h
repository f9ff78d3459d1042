/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Templates of generalized requests (MPIX_Gr_*). An instance is a generalized request of MPI's; what contd keeps of it
 * lives until MPI has let go of it, and no push, mark or continuation has it in hands.
 *
 * Who calls what when: begin, push and mark are each other's witnesses through `busy`. A request that is marked while
 * start_fn or push_fn runs is completed when that returns, so complete_fn never overlaps with them. complete_fn runs in
 * MPI's query function where a completion call asks (contd__call tells), after the callback where there is a
 * continuation (mpi/set.c), and where the request was freed when it has been marked.
 *
 *  operation                     thread  handler             in a callback  progress
 *  contd__instances_push           yes     in a region only      yes        blocking (a mutex, briefly; push_fn)
 *  contd__instance_hook            yes     no                    yes        blocking (the same mutex)
 *  contd__instance_finish          yes     in a region only      yes        blocking (complete_fn)
 *  contd__instance_unref           yes     in a region only      yes        blocking (memory)
 */
#ifndef CONTD_MPI_TEMPLATE_H
#define CONTD_MPI_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "base/atomic.h"

struct contd__instance;

/* How many instances are neither marked nor forgotten; how many of them have a push_fn; how many there are at all. */
extern uint32_t contd__instances_waiting, contd__instances_pushed, contd__instances;

/* In push_fn: nothing else runs there. */
extern __thread uint32_t contd__pushing __attribute__((tls_model("initial-exec")));

void contd__instances_push(bool all);

/* In a call of MPI's that the program makes on this thread, and in which nobody's locks are held. */
static inline void contd__instances_look(void)
{
	if (__builtin_expect(contd__load(&contd__instances_pushed) != 0, 0) && !contd__pushing)
		contd__instances_push(false);
}

bool contd__instances_is_one(MPI_Request request);
int contd__instances_error(MPI_Request request);

/* Is it an instance? Any request, CRs and null handles too. */
static inline bool contd__instance_is(MPI_Request request)
{
	return __builtin_expect(contd__load(&contd__instances) != 0, 0) && contd__instances_is_one(request);
}

/* What push_fn has returned at last, where it is an instance; else MPI_SUCCESS. */
static inline int contd__instance_error_of(MPI_Request request)
{
	return __builtin_expect(contd__load(&contd__instances) != 0, 0) ? contd__instances_error(request) : MPI_SUCCESS;
}

struct contd__instance *contd__instances_hook(MPI_Request request);

/* A continuation is being attached to it, and calls contd__instance_finish after its callback; NULL: it is none. */
static inline struct contd__instance *contd__instance_hook(MPI_Request request)
{
	return __builtin_expect(contd__load(&contd__instances) != 0, 0) ? contd__instances_hook(request) : NULL;
}

/* complete_fn, if it has not run. */
void contd__instance_finish(struct contd__instance *instance);
/* What push_fn has returned at last, of one that has completed. */
int contd__instance_error(const struct contd__instance *instance);
void contd__instance_unref(struct contd__instance *instance);

/* MPI_Request_free, with the portable backend: true, and it is done, where that is an instance. */
bool contd__instance_free(MPI_Request *request, int *rcp);

/* MPI_Finalize begins. Returns how many were never marked. */
uint32_t contd__instances_stop(void);

#endif
