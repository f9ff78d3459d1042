/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups and registered continuations, on ordinary threads. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "dispatch/executor.h"
#include "dispatch/watch.h"
#include "rcu/memory.h"
#include "rcu/reader.h"

#define D contd__dispatch

#define REAP_BATCH 32u /* dead groups that are worth a grace period */

static pthread_mutex_t chain_lock = PTHREAD_MUTEX_INITIALIZER; /* group-waits-for-group edges, against cycles */

/* --------------------------------------------------------------------------------------------------------- groups --- */

static int root_enter_locked(struct contd_group *g)
{
	unsigned priority = (unsigned)(g->priority - CONTD_PRIORITY_LOW);
	unsigned c = (g->flags & CONTD_THREAD_ANY ? CLASS_ANY : 0) | (g->flags & CONTD_ASYNC_SIGNAL_SAFE ? CLASS_SIGNAL : 0) |
		     priority * CLASS_KINDS;
	struct contd__root *root = g->flags & GROUP_PULL ? &g->executor->root[priority] : &D.root[c];

	for (uint32_t i = 0; i < ROOT_GROUPS; i++) {
		if (root->group[i])
			continue;
		contd__store(&g->table.root_index, i);
		if (!root->executor)
			contd__store(&root->bit, 1u << c);
		/* Before its root is marked for the first time; pairs with the look in mark_up (rcu/table.c). */
		contd__store_seq(&g->table.root, root);
		/* Before its first mark; pairs with the second look at the place in settle_place (run.c). */
		contd__store_seq(&root->group[i], g);
		return 0;
	}
	return -EAGAIN;
}

static int attr_check(const struct contd_group_attr *attr)
{
	const uint32_t known = CONTD_POLL_ONLY | CONTD_ENQUEUE_COMPLETE | CONTD_THREAD_ANY | CONTD_ASYNC_SIGNAL_SAFE;

	if (attr->size != sizeof(*attr))
		return contd__fail(-EINVAL, "contd_group_create: set attr->size to sizeof(struct contd_group_attr)");
	if (attr->flags & ~known)
		return contd__fail(-EINVAL, "contd_group_create: attr->flags has bits that are no enum contd_group_flags");
	if (attr->max_poll < CONTD_MAX_POLL_NONE)
		return contd__fail(-EINVAL, "contd_group_create: attr->max_poll must be at least CONTD_MAX_POLL_NONE (-1)");
	if (attr->priority < CONTD_PRIORITY_LOW || attr->priority > CONTD_PRIORITY_HIGH)
		return contd__fail(-EINVAL, "contd_group_create: attr->priority must be one of enum contd_priority");
	if (attr->flags & CONTD_POLL_ONLY && attr->max_poll == CONTD_MAX_POLL_NONE)
		return contd__fail(-EINVAL, "contd_group_create: poll-only with CONTD_MAX_POLL_NONE would never run anything");
	return 0;
}

static int group_list(struct contd_group *g)
{
	int rc = 0;

	pthread_mutex_lock(&D.lock);
	if (!(g->flags & CONTD_POLL_ONLY))
		rc = root_enter_locked(g);
	if (!rc)
		cds_list_add(&g->node, &D.groups);
	pthread_mutex_unlock(&D.lock);
	return rc;
}

int contd_group_create(const struct contd_group_attr *attr, struct contd_group **groupp)
{
	struct contd_group *g;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!groupp)
		return contd__fail(-EINVAL, "contd_group_create: groupp must not be NULL");
	if (attr && (rc = attr_check(attr)) != 0)
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_create: not in a signal handler");
	contd__thread_ensure();
	contd__reap(false);
	g = contd__memalign(64, sizeof(*g));
	if (!g)
		return contd__fail(-ENOMEM, "contd_group_create: out of memory");
	*g = (struct contd_group){.life = LIFE_REFERENCE,
				  /* No interruption may run any of it then, and none is made. */
				  .flags = !attr ? 0
					   : attr->max_poll == CONTD_MAX_POLL_NONE
						   ? attr->flags & ~(uint32_t)CONTD_ASYNC_SIGNAL_SAFE
						   : attr->flags,
				  .priority = attr ? attr->priority : 0,
				  .max_poll = !attr || attr->max_poll == 0     ? -1
					      : attr->max_poll == CONTD_MAX_POLL_NONE ? 0
										      : attr->max_poll};
	rc = contd__table_init(&g->table, g);
	if (rc) {
		free(g);
		return contd__fail(rc, "contd_group_create: out of memory");
	}
	rc = group_list(g);
	if (rc == -EAGAIN) {
		contd__reap(true); /* dead groups keep their places until a batch of them is freed */
		rc = group_list(g);
	}
	if (rc) {
		contd__table_fini(&g->table);
		free(g);
		return contd__fail(rc, "contd_group_create: 4096 groups of this kind exist; destroy some, share, or use poll-only");
	}
	*groupp = g;
	return 0;
}

/*
 * Nobody can test a poll-only group whose handle has been given back: what is outstanding runs as if it were not. Marks
 * made before the root was set are made up for here: Dekker with mark_up.
 */
static int poll_only_end(struct contd_group *g)
{
	int rc = 0;

	pthread_mutex_lock(&D.lock);
	contd__and(&g->flags, ~(uint32_t)CONTD_POLL_ONLY);
	if (!g->table.root)
		rc = root_enter_locked(g);
	if (rc)
		contd__or(&g->flags, CONTD_POLL_ONLY);
	else if (contd__load_seq(&g->table.top))
		contd__root_mark_sig(g->table.root, g->table.root_index);
	pthread_mutex_unlock(&D.lock);
	if (!rc)
		contd__announce_rcu(g); /* what is poll-only has no executor */
	return rc;
}

int contd_group_destroy(struct contd_group *group)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!group)
		return contd__fail(-EINVAL, "contd_group_destroy: group must not be NULL");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_destroy: not in a signal handler");
	if (contd__load(&group->flags) & CONTD_POLL_ONLY && contd__group_outstanding_sig(group) && (rc = poll_only_end(group)))
		return contd__fail(rc, "contd_group_destroy: 4096 groups exist that are not poll-only; wait for this one first");
	/* Continuations of it that have called this no longer stand for it: its memory may become another group's. */
	for (struct contd__frame *f = contd__self.frame; f; f = f->outer)
		if (f->group == group)
			f->group = NULL;
	contd__group_unpin_sig(group);
	contd__reap(false);
	return 0;
}

static void root_leave_locked(struct contd_group *g)
{
	if (g->table.root)
		contd__store_release(&g->table.root->group[g->table.root_index], NULL);
}

static void group_unlist_locked(struct contd_group *g)
{
	root_leave_locked(g);
	cds_list_del(&g->node);
}

static void group_free(struct contd_group *g)
{
	if (g->freed)
		g->freed(g->owner);
	if (g->executor)
		contd__sub(&g->executor->groups, 1);
	contd__table_fini(&g->table);
	free(g);
}

void contd__grace_over(void)
{
	contd__grace_period();
	/* Completers that RCU does not know are few and short (signal handlers of the program's, on strange threads). */
	while (contd__load_seq(&D.strangers))
		sched_yield();
}

void contd__reap(bool all)
{
	struct cds_lfs_head *head;
	struct cds_lfs_node *node, *next;

	if (contd__load(&D.dead_count) < (all ? 1 : REAP_BATCH))
		return;
	head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &D.dead});
	if (!head)
		return;
	pthread_mutex_lock(&D.lock);
	for (node = &head->node; node; node = node->next) {
		contd__sub(&D.dead_count, 1);
		group_unlist_locked(caa_container_of(node, struct contd_group, dead));
	}
	pthread_mutex_unlock(&D.lock);
	contd__grace_over();
	for (node = &head->node; node; node = next) {
		struct contd_group *g = caa_container_of(node, struct contd_group, dead);

		next = node->next;
		group_free(g);
	}
}

uint32_t contd__groups_fini(void)
{
	struct contd_group *g, *next;
	uint32_t outstanding = 0;

	contd__reap(true);
	pthread_mutex_lock(&D.lock);
	cds_list_for_each_entry_safe(g, next, &D.groups, node) {
		outstanding += contd__group_outstanding_sig(g);
		group_unlist_locked(g);
		group_free(g);
	}
	pthread_mutex_unlock(&D.lock);
	return outstanding;
}

/* ------------------------------------------------------------------------------------------------------- executors --- */

/* Where it is found, and by whom, is another matter from now on; nothing of it is outstanding. What was in force stays where there is no
 * place for it: -EAGAIN. */
static int switch_locked(struct contd_group *g, struct contd_executor *ex)
{
	struct contd_executor *before = g->executor;
	uint32_t flags_before = g->flags, own = flags_before & ~(GROUP_EXECUTOR | GROUP_ONLY_PROGRAM);

	if (flags_before & GROUP_ONLY_PROGRAM)
		own &= ~(uint32_t)CONTD_THREAD_ANY;
	root_leave_locked(g);
	contd__store(&g->executor, ex);
	if (ex && ex->ops.submit)
		own |= GROUP_PUSH | CONTD_THREAD_ANY | (own & CONTD_THREAD_ANY ? 0 : GROUP_ONLY_PROGRAM);
	else if (ex)
		own |= GROUP_PULL;
	contd__store_seq(&g->flags, own);
	if (root_enter_locked(g)) {
		contd__store(&g->executor, before);
		contd__store_seq(&g->flags, flags_before);
		root_enter_locked(g); /* where it was: there is a place, and others enter under the lock too */
		return -EAGAIN;
	}
	if (ex)
		contd__add(&ex->groups, 1);
	return 0;
}

int contd_group_set_executor(struct contd_group *group, struct contd_executor *executor)
{
	struct contd_executor *before;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!group)
		return contd__fail(-EINVAL, "contd_group_set_executor: group must not be NULL");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_set_executor: not in a signal handler");
	if (group->flags & (CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE) || group->max_poll >= 0)
		return contd__fail(-EINVAL, "contd_group_set_executor: a group that is poll-only, async-signal-safe or has a "
					    "max_poll says itself who runs its continuations");
	contd__thread_ensure();
	if (contd__group_outstanding_sig(group))
		return contd__fail(-EBUSY, "contd_group_set_executor: something is outstanding; do it before the first registration");
	before = group->executor;
	if (before == executor)
		return 0;
	pthread_mutex_lock(&D.lock);
	rc = switch_locked(group, executor);
	pthread_mutex_unlock(&D.lock);
	if (rc)
		return contd__fail(rc, "contd_group_set_executor: 4096 groups of this kind exist; destroy some, or share");
	if (before) /* completers may be about to tell it: destroying it takes a grace period */
		contd__sub(&before->groups, 1);
	return 0;
}

uint32_t contd_group_outstanding(const struct contd_group *group)
{
	return group ? contd__group_outstanding_sig(group) : 0;
}

/* ----------------------------------------------------------------------------------------------- registering, cancelling */

int contd_cancel(struct contd_handle handle)
{
	struct contd__slot *s = handle.slot;
	enum contd__slot_kind kind;
	uint32_t taken = 0;
	bool reader;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!s)
		return contd__fail(-EINVAL, "contd_cancel: the handle names nothing");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_cancel: not in a signal handler");
	contd__thread_ensure();
	/* A group that it waits for is outstanding until the withdrawal; after it, it may complete and be given back, and must
	 * still be there to be asked. */
	reader = contd__enter_sig();
	rc = contd__slot_withdraw_sig(s, (uint32_t)handle.generation);
	if (rc < 0) {
		contd__leave_sig(reader);
		return contd__fail(rc, "contd_cancel: it runs, ran, or was cancelled before");
	}
	CONTD_COUNT(cancelled, 1);
	CONTD_TESTPOINT("cancel_withdrawn");
	if (rc == 0) {
		contd__slot_withdrawn_rcu(s->group, s);
		contd__leave_sig(reader);
		return 0;
	}
	kind = (enum contd__slot_kind)(s->source & 3);
	if (kind == KIND_GROUP)
		taken = contd__group_await_end((struct contd_group *)(s->source & ~(uintptr_t)3), s);
	contd__leave_sig(reader);
	/* The others are the program's own, or wait for somebody who looks, and who may wait for a grace period. */
	if (kind == KIND_EVENT)
		taken = contd__events_detach_sig(s, (uint32_t)handle.generation);
	else if (kind == KIND_WORD)
		taken = contd__word_remove(s);
	contd__slot_event_done_sig(s, (uint32_t)handle.generation, taken + 1);
	return 0;
}

/* ------------------------------------------------------------------------------------------------------- chaining --- */

/* Would g, waiting for `awaited`, close a cycle? Follow who waits for g. */
static bool closes_cycle_locked(const struct contd_group *awaited, const struct contd_group *g)
{
	bool cycle = false;
	bool reader = contd__enter_sig(); /* keeps the groups of slots that fire meanwhile */

	while (g && !(cycle = g == awaited)) {
		const struct contd__slot *s = contd__word_slot(contd__load_acquire(&g->waiter));

		g = s ? s->group : NULL;
	}
	contd__leave_sig(reader);
	return cycle;
}

int contd__group_await(struct contd_group *awaited, struct contd__slot *s)
{
	uint64_t none = 0, me = contd__slot_word(s, SLOT_GENERATION(contd__load(&s->state)));
	int rc = 0;

	pthread_mutex_lock(&chain_lock);
	if (closes_cycle_locked(awaited, s->group))
		rc = contd__fail(-ELOOP, "the group would wait for itself");
	else if (!contd__cas(&awaited->waiter, &none, me))
		rc = contd__fail(-EBUSY, "the group has a continuation already: one at a time");
	pthread_mutex_unlock(&chain_lock);
	CONTD_TESTPOINT("chain_waiting");
	/* Complete already, or since: then nobody else may come to fire it. */
	if (!rc && contd__group_outstanding_sig(awaited) == 0 && contd__cas(&awaited->waiter, &me, 0))
		rc = 1;
	return rc;
}

uint32_t contd__group_await_end(struct contd_group *awaited, struct contd__slot *s)
{
	uint64_t me = contd__slot_word(s, SLOT_GENERATION(contd__load(&s->state)));

	return contd__cas(&awaited->waiter, &me, 0);
}

int contd_group_continue(struct contd_group *awaited, contd_callback *cb, void *data, struct contd_group *group,
			 struct contd_handle *handlep)
{
	struct contd__slot *s;
	uint32_t generation;
	bool deferring;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!awaited || !cb || !group)
		return contd__fail(-EINVAL, "contd_group_continue: groups and callback must not be NULL");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_continue: not in a signal handler");
	s = contd__slot_get(group, &rc);
	if (!s)
		return rc;
	s->invoke = contd__invoke_user_sig;
	s->cb.user = cb;
	s->data = data;
	contd__store(&s->out.status, 0);
	s->source = (uintptr_t)awaited | KIND_GROUP;
	generation = contd__slot_publish_sig(s, 2); /* one for the group, one for this call */
	rc = contd__group_await(awaited, s);
	if (rc < 0) {
		CONTD_COUNT(registered, -1);
		/* Its group and this call, and one for withdrawing, where nobody has cancelled it meanwhile. */
		contd__slot_event_done_sig(s, generation, 2 + (contd__slot_withdraw_sig(s, generation) > 0));
		return rc;
	}
	if (handlep)
		*handlep = (struct contd_handle){s, generation};
	deferring = contd__defer_begin_sig(group->flags);
	if (contd__may_run_inline(group))
		contd__slot_run_inline(s, generation, 1 + (uint32_t)rc);
	else
		contd__slot_event_done_sig(s, generation, 1 + (uint32_t)rc);
	contd__defer_end_sig(deferring);
	return 0;
}
