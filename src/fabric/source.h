/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of libfabric that contd reads: completion queues, and counters. Both are `objects` of one of two sources:
 * those that any thread may read, and those that only their own thread may (threading models below FI_THREAD_SAFE
 * without a mutex).
 */
#ifndef CONTD_FABRIC_SOURCE_H
#define CONTD_FABRIC_SOURCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <contd/fabric.h>

#include "base/atomic.h"
#include "dispatch/live.h"
#include "dispatch/thread.h"

enum { SHARED, OWNED, SOURCES };

struct contd__fabric_object {
	/* Look, at everything with `last`. Called by one thread at a time. */
	void (*look)(struct contd__fabric_object *o, bool last);
	struct fid *fid;
	struct fid_fabric *fabric;
	pthread_mutex_t *mutex;
	const struct contd__self *owner; /* the only thread that may read it; NULL: any thread may */
	int fd;                          /* readable when there is something to look at, after fi_trywait; -1: none */
	int source;                      /* SHARED or OWNED */
	uint32_t place;                  /* among that source's */
	uint32_t *pending;               /* operations under way, and one more where it is to be looked at always */
	uint32_t looking;                /* a thread looks; it holds a pointer to this outside a read-side section */
	uint32_t skipped;                /* another one wanted to, meanwhile */
	uint32_t users;                  /* other threads that hold a pointer */
	const struct contd__self *looker;
	uint32_t looks; /* that are over */
	uint32_t life;  /* contd__live.lives when it was opened */
};

/* Before memory or libfabric is asked for anything: 0, -EPERM (contd is not initialized, or in a handler), -ECHILD. */
int contd__fabric_here(const char *call);

/* Check, fill and register, with so many operations under way. 0 or -errno; then nothing is left of it. */
int contd__fabric_object_open(struct contd__fabric_object *o, struct fid *fid, const struct contd_fabric_attr *attr,
			      uint32_t pending);

/* contd_fini() was called since it was opened: the continuations of its operations have gone, and no thread looks at
 * it. */
static inline bool contd__fabric_outlived(const struct contd__fabric_object *o)
{
	return o->life != contd__load(&contd__live.lives) || !contd__load(&contd__live.users);
}

/* No thread looks at it any more when this returns. 0, -EPERM (in a handler), -ECHILD, -EDEADLK (in its own look),
 * -EAGAIN. */
int contd__fabric_object_close(struct contd__fabric_object *o, const char *call);

/* After that, when the operations under way have ended: its place becomes free. */
void contd__fabric_object_closed(struct contd__fabric_object *o);

/* A look of another thread's that is under way is over when this returns. */
void contd__fabric_await_look(const struct contd__fabric_object *o);

/* n operations less are under way. Any context. */
static inline void contd__fabric_ended(struct contd__fabric_object *o, uint32_t n)
{
	contd__sub(o->pending, n);
}

/* libfabric may be entered: 0, or it is another thread's turn. */
static inline int contd__fabric_enter(struct contd__fabric_object *o)
{
	return o->mutex ? pthread_mutex_trylock(o->mutex) : 0;
}

static inline void contd__fabric_leave(struct contd__fabric_object *o)
{
	if (o->mutex)
		pthread_mutex_unlock(o->mutex);
}

#endif
