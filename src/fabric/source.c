/* SPDX-License-Identifier: BSD-3-Clause */
/* The two sources, and the objects that they look at. Handlers outside compute regions never come here. */
#include <errno.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/rest.h"
#include "dispatch/live.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "fabric/source.h"
#include "rcu/reader.h"

#define OBJECTS_MAX 256u

struct set {
	struct contd__fabric_object *object[OBJECTS_MAX];
	/* Of the object there, or of none: handlers, and threads that RCU does not know, ask these without touching
	 * it. */
	uint32_t pending[OBJECTS_MAX];
	const struct contd__self *owner[OBJECTS_MAX];
	uint32_t count; /* places used at any time */
};

static struct set sets[SOURCES];
static uint32_t nothing;                                                 /* what is under way with the following */
static struct contd__fabric_object closing[1] = {{.pending = &nothing}}; /* its place is not free yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;                 /* places; never waited for in a look */

/* The object, if there is something to look at; with `looking` it is kept for this thread's look, else in `users`. */
static struct contd__fabric_object *object_get(struct set *set, uint32_t i, bool looking)
{
	struct contd__fabric_object *o;

	if (!contd__load_seq(&set->pending[i]))
		return NULL;
	contd__read_lock_sig();
	/* Acquire: pairs with the release in contd__fabric_object_open. */
	o = contd__load_acquire(&set->object[i]);
	if (!o || !contd__load_seq(o->pending) || (o->owner && o->owner != &contd__self) || contd__fabric_outlived(o)) {
		o = NULL;
	} else if (!looking) {
		contd__add(&o->users, 1);
	} else if (contd__xchg(&o->looking, 1)) {
		contd__store_seq(&o->skipped, 1);
		o = NULL;
	}
	contd__read_unlock_sig();
	return o;
}

static void look_at_all(struct set *set, bool last)
{
	uint32_t n = contd__load_acquire(&set->count);

	contd__thread_ensure();
	for (uint32_t i = 0; i < n; i++) {
		struct contd__fabric_object *o = object_get(set, i, true);

		if (!o)
			continue;
		contd__store(&o->looker, &contd__self);
		o->look(o, last);
		contd__store(&o->looker, NULL);
		contd__store_release(&o->looks, o->looks + 1);
		/* Release: pairs with the exchange. The last access: it may be closed now. */
		contd__store_release(&o->looking, 0);
	}
}

/* Handlers ask as well. */
static uint32_t pending_of(const struct set *set)
{
	uint32_t n = contd__load_acquire(&set->count), sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += contd__load_seq(&set->pending[i]);
	return sum;
}

static void shared_look(bool last)
{
	look_at_all(&sets[SHARED], last);
}

static uint32_t shared_pending(void)
{
	return pending_of(&sets[SHARED]);
}

static void owned_look(bool last)
{
	look_at_all(&sets[OWNED], last);
}

static uint32_t owned_pending(void)
{
	return pending_of(&sets[OWNED]);
}

/* Has this thread any that has something pending? */
static bool owned_here(void)
{
	const struct set *set = &sets[OWNED];
	uint32_t n = contd__load_acquire(&set->count);
	bool here = false;

	for (uint32_t i = 0; i < n && !here; i++)
		here = contd__load(&set->owner[i]) == &contd__self && contd__load_seq(&set->pending[i]);
	return here;
}

/* fi_trywait(3). 0: its descriptor will tell; -EAGAIN: look first; otherwise it cannot be slept on. */
static int try_wait(struct contd__fabric_object *o)
{
	int rc;

	if (o->fd < 0)
		return -ENOSYS;
	/* This thread did not get its look: another thread's look, under way then, may have passed what was to be
	 * found. */
	if (contd__load_seq(&o->skipped) && contd__xchg(&o->skipped, 0))
		return -EAGAIN;
	if (contd__fabric_enter(o))
		return -EAGAIN; /* the thread inside may be taking something out */
	rc = fi_trywait(o->fabric, &o->fid, 1);
	contd__fabric_leave(o);
	return rc == -FI_EAGAIN ? -EAGAIN : rc;
}

static int shared_sleep(int *fds, int room, uint64_t *ns)
{
	struct set *set = &sets[SHARED];
	uint32_t n = contd__load_acquire(&set->count);
	int count = 0, rc = 0;

	(void)ns;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct contd__fabric_object *o = object_get(set, i, false);

		if (!o)
			continue;
		rc = count < room ? try_wait(o) : -ENOSYS;
		if (!rc)
			fds[count++] = o->fd;
		contd__sub(&o->users, 1);
	}
	return rc == 0 ? count : rc == -EAGAIN ? -EAGAIN : 0;
}

static struct contd__source sources[SOURCES] = {
	[SHARED] = {.name = "fabric",
		    .where = WHERE_THREAD | WHERE_REGION | WHERE_DAEMON,
		    .progress = shared_look,
		    .pending = shared_pending,
		    .sleep_on = shared_sleep,
		    .tells = true},
	[OWNED] = {.name = "fabric, of one thread",
		   .where = WHERE_THREAD | WHERE_REGION,
		   .progress = owned_look,
		   .pending = owned_pending,
		   .here = owned_here},
};

/* The dispatcher forgets its sources when it ends. */
static int register_locked(int which)
{
	return contd__source_is_registered(&sources[which]) ? 0 : contd__source_register(&sources[which]);
}

int contd__fabric_here(const char *call)
{
	int rc = contd__check_live_sig(call);

	if (!rc && contd__in_handler())
		rc = contd__fail(-EPERM, "not in a signal handler");
	return contd__fail_in(call, rc);
}

static int check(const struct contd_fabric_attr *attr)
{
	if (attr->wait == FI_WAIT_FD && !attr->fabric)
		return contd__fail(-EINVAL, "attr->fabric must be set if the queue or counter has a descriptor "
					    "(FI_WAIT_FD): fi_trywait(3) needs it");
	return 0;
}

static int place_locked(struct contd__fabric_object *o, uint32_t pending)
{
	struct set *set = &sets[o->source];
	int rc = register_locked(o->source);
	uint32_t i = 0;

	if (rc)
		return rc;
	while (i < set->count && set->object[i])
		i++;
	if (i == OBJECTS_MAX)
		return contd__fail(-EAGAIN, "256 queues and counters are there already; close some");
	o->place = i;
	o->pending = &set->pending[i];
	contd__store(o->pending, pending);
	contd__store(&set->owner[i], o->owner);
	contd__store_release(&set->object[i], o);
	if (i == set->count)
		contd__store_release(&set->count, i + 1);
	return 0;
}

int contd__fabric_object_open(struct contd__fabric_object *o, struct fid *fid, const struct contd_fabric_attr *attr,
			      uint32_t pending)
{
	int rc = check(attr);

	if (rc)
		return rc;
	contd__thread_ensure();
	o->fid = fid;
	o->life = contd__load(&contd__live.lives);
	o->fabric = attr->fabric;
	o->mutex = attr->threading == FI_THREAD_SAFE ? NULL : attr->mutex;
	o->owner = attr->threading == FI_THREAD_SAFE || attr->mutex ? NULL : &contd__self;
	o->source = o->owner ? OWNED : SHARED;
	o->fd = -1;
	if (attr->wait == FI_WAIT_FD) {
		rc = fi_control(fid, FI_GETWAIT, &o->fd);
		if (rc)
			return contd__fail(rc, "cannot get a descriptor (FI_GETWAIT, fi_cq(3)), which attr->wait asks "
					       "for: open it with "
					       "FI_WAIT_FD, or set attr->wait to FI_WAIT_NONE");
	}
	pthread_mutex_lock(&lock);
	rc = place_locked(o, pending);
	pthread_mutex_unlock(&lock);
	if (!rc && pending)
		contd__pending_sig();
	return rc;
}

int contd__fabric_object_close(struct contd__fabric_object *o, const char *call)
{
	struct set *set = &sets[o->source];

	/* Threads that look in the parent are not here to end their looks. */
	if (contd__load(&contd__live.forked))
		return contd__check_live_sig(call);
	if (contd__in_handler())
		return contd__fail_in(call, contd__fail(-EPERM, "not in a signal handler"));
	if (contd__load(&o->looker) == &contd__self)
		return contd__fail_in(
			call, contd__fail(-EDEADLK, "not in a callback that runs while this queue or counter is read"));
	contd__thread_ensure();
	contd__store_seq(&set->object[o->place], closing);
	contd__grace_period();
	while (contd__load_seq(&o->users) || contd__load_seq(&o->looking))
		contd__rest();
	return 0;
}

void contd__fabric_await_look(const struct contd__fabric_object *o)
{
	/* Acquire: pairs with the releases in look_at_all(). */
	uint32_t looks = contd__load_acquire(&o->looks);

	while (contd__load_seq(&o->looking) && contd__load_acquire(&o->looks) == looks &&
	       contd__load(&o->looker) != &contd__self)
		contd__rest();
}

void contd__fabric_object_closed(struct contd__fabric_object *o)
{
	struct set *set = &sets[o->source];

	pthread_mutex_lock(&lock);
	contd__store(&set->owner[o->place], NULL);
	contd__store(&set->pending[o->place], 0);
	contd__store_seq(&set->object[o->place], NULL);
	pthread_mutex_unlock(&lock);
}
