/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are made from templates (MPIX_Gr_*), in MPI's calls. Such a request is an instance: a generalized
 * request of MPI that the program's push_fn brings forward. The part "templates" (src/template) makes instances; contd
 * may be built without it, and then there are none. contd's data of an instance lives until MPI has let go of it, and
 * no push, mark or continuation uses it.
 *
 *     operation                thread  handler             in a callback  progress
 *     contd__instances_look      yes     in a region only      yes        blocking (a mutex, briefly; push_fn)
 *     contd__instance_hook       yes     no                    yes        blocking (the same mutex)
 *     contd__instance_finish     yes     in a region only      yes        blocking (complete_fn)
 *     contd__instance_unref      yes     in a region only      yes        blocking (memory)
 */
#ifndef CONTD_MPI_TEMPLATES_H
#define CONTD_MPI_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "base/atomic.h"

struct contd__instance;

/* The functions of the part "templates". */
struct contd__instance_ops {
	/* Call push_fn of a few instances, or of all. In a call of MPI that the program makes on this thread, with no
	 * lock held. */
	void (*push)(bool all);
	bool (*is_one)(MPI_Request request);
	int (*error_of)(MPI_Request request);
	struct contd__instance *(*hook)(MPI_Request request);
	void (*finish)(struct contd__instance *instance);
	int (*error)(const struct contd__instance *instance);
	void (*unref)(struct contd__instance *instance);
	bool (*free)(MPI_Request *request, int *rcp);
};

/* Set before the first template is there, and never changed. NULL: there are no instances. */
extern const struct contd__instance_ops *contd__instance_ops;

/* How many instances are neither marked nor forgotten; how many of them have a push_fn; how many there are at all. */
extern uint32_t contd__instances_waiting, contd__instances_pushed, contd__instances;

/* In push_fn: nothing else runs there. */
extern __thread uint32_t contd__pushing __attribute__((tls_model("initial-exec")));

/* The part "templates" is there: it calls this, and the functions after it, which count. */
static inline void contd__instances_start(const struct contd__instance_ops *ops)
{
	contd__store(&contd__instance_ops, ops);
}

/* One more, which waits; one less. */
static inline void contd__instance_made(void)
{
	contd__add(&contd__instances, 1);
	contd__add(&contd__instances_waiting, 1);
}

static inline void contd__instance_gone(void)
{
	contd__sub(&contd__instances, 1);
}

/* It is marked or forgotten. */
static inline void contd__instance_waits_no_more(void)
{
	contd__sub(&contd__instances_waiting, 1);
}

/* It is to be pushed; it is not to be pushed any more. */
static inline void contd__instance_to_push(void)
{
	contd__add(&contd__instances_pushed, 1);
}

static inline void contd__instance_not_to_push(void)
{
	contd__sub(&contd__instances_pushed, 1);
}

/* These go around calls of push_fn on this thread. */
static inline void contd__pushing_begin(void)
{
	contd__pushing = 1;
}

static inline void contd__pushing_end(void)
{
	contd__pushing = 0;
}

/* The operations, if the count is not 0. The count may be seen before the operations are: then what is looked at is no
 * instance that this thread can know of. */
static inline const struct contd__instance_ops *contd__instances_by(const uint32_t *count)
{
	return __builtin_expect(contd__load(count) != 0, 0) ? contd__load(&contd__instance_ops) : NULL;
}

/* In a call of MPI that the program makes on this thread, with no lock held. */
static inline void contd__instances_look(void)
{
	const struct contd__instance_ops *ops = contd__instances_by(&contd__instances_pushed);

	if (ops && !contd__pushing)
		ops->push(false);
}

/* Is it an instance? Any request, CRs and null handles too. */
static inline bool contd__instance_is(MPI_Request request)
{
	const struct contd__instance_ops *ops = contd__instances_by(&contd__instances);

	return ops && ops->is_one(request);
}

/* The last result of push_fn, if it is an instance; otherwise MPI_SUCCESS. */
static inline int contd__instance_error_of(MPI_Request request)
{
	const struct contd__instance_ops *ops = contd__instances_by(&contd__instances);

	return ops ? ops->error_of(request) : MPI_SUCCESS;
}

/* A continuation is being attached to it, and calls contd__instance_finish after its callback; NULL: it is none. */
static inline struct contd__instance *contd__instance_hook(MPI_Request request)
{
	const struct contd__instance_ops *ops = contd__instances_by(&contd__instances);

	return ops ? ops->hook(request) : NULL;
}

/* complete_fn, if it has not run. */
static inline void contd__instance_finish(struct contd__instance *instance)
{
	contd__instance_ops->finish(instance);
}

/* The last result of push_fn, of an instance that has completed. */
static inline int contd__instance_error(const struct contd__instance *instance)
{
	return contd__instance_ops->error(instance);
}

static inline void contd__instance_unref(struct contd__instance *instance)
{
	contd__instance_ops->unref(instance);
}

/* MPI_Request_free, with the portable backend: true, and it is done, where that is an instance. */
static inline bool contd__instance_free(MPI_Request *request, int *rcp)
{
	const struct contd__instance_ops *ops = contd__instances_by(&contd__instances);

	return ops && *request != MPI_REQUEST_NULL && ops->free(request, rcp);
}

/* MPI_Finalize begins: none is pushed from here on. Returns how many were never marked. */
static inline uint32_t contd__instances_stop(void)
{
	contd__store_seq(&contd__instances_pushed, 0);
	return contd__load_seq(&contd__instances_waiting);
}

#endif
