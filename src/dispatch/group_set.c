/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups and registered continuations, on ordinary threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rest.h"
#include "base/sized.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/group_set.h"
#include "dispatch/live.h"
#include "dispatch/never.h"
#include "dispatch/outlet.h"
#include "dispatch/thread.h"
#include "rcu/reader.h"
#include "rcu/table.h"

#define REAP_BATCH 32u /* dead groups that are worth a grace period */

/* ------------------------------------------------------------------------------------------------------- groups --- */

static int root_enter_locked(struct contd_group *g)
{
	unsigned priority = (unsigned)(g->priority - CONTD_PRIORITY_LOW);
	unsigned c = (g->flags & CONTD_THREAD_ANY ? CLASS_ANY : 0) |
		     (g->flags & CONTD_ASYNC_SIGNAL_SAFE ? CLASS_SIGNAL : 0) | priority * CLASS_KINDS;
	struct contd__root *root = g->flags & GROUP_PULL ? &g->outlet->root[priority] : &contd__groups.root[c];

	for (uint32_t i = 0; i < ROOT_GROUPS; i++) {
		if (root->group[i])
			continue;
		contd__store(&g->table.root_index, i);
		if (!root->outlet)
			contd__store(&root->bit, 1u << c);
		/* Before its root is marked for the first time; pairs with the look in mark_up (rcu/table.c). */
		contd__store_seq(&g->table.root, root);
		/* Before its first mark; pairs with the second look at the place in settle_place (scan.c). */
		contd__store_seq(&root->group[i], g);
		return 0;
	}
	return -EAGAIN;
}

static int attr_check(const struct contd_group_attr *attr)
{
	const uint32_t known = CONTD_POLL_ONLY | CONTD_ENQUEUE_COMPLETE | CONTD_THREAD_ANY | CONTD_ASYNC_SIGNAL_SAFE;

	if (attr->flags & ~known)
		return contd__fail(-EINVAL,
				   "contd_group_create: attr->flags has bits that are no enum contd_group_flags");
	if (attr->max_poll < -1)
		return contd__fail(-EINVAL, "contd_group_create: attr->max_poll must be at least -1 (no limit)");
	if (attr->priority < CONTD_PRIORITY_LOW || attr->priority > CONTD_PRIORITY_HIGH)
		return contd__fail(-EINVAL, "contd_group_create: attr->priority must be one of enum contd_priority");
	if (attr->reserved)
		return contd__fail(-EINVAL,
				   "contd_group_create: attr->reserved must be 0: begin with CONTD_GROUP_ATTR_INIT");
	if (attr->flags & CONTD_POLL_ONLY && attr->max_poll == 0)
		return contd__fail(-EINVAL,
				   "contd_group_create: nothing of a poll-only group with max_poll 0 would ever "
				   "run; set max_poll to -1 (no limit): CONTD_GROUP_ATTR_INIT does");
	return 0;
}

/*
 * Dumps follow the list of all groups forward, in a read-side section and without the lock (dump/here.c). So a
 * group is whole when it is in the list, and keeps its pointer to the next one until a grace period is over.
 */
static void list_locked(struct contd_group *g)
{
	struct cds_list_head *all = &contd__groups.all, *first = all->next;

	g->node = (struct cds_list_head){.next = first, .prev = all};
	first->prev = &g->node;
	/* Release: pairs with the acquire in take_next() (dump/here.c). */
	contd__store_release(&all->next, &g->node);
}

static void unlist_locked(struct contd_group *g)
{
	g->node.next->prev = g->node.prev;
	contd__store_release(&g->node.prev->next, g->node.next);
}

static int group_list(struct contd_group *g)
{
	int rc = 0;

	pthread_mutex_lock(&contd__groups.lock);
	if (!(g->flags & CONTD_POLL_ONLY))
		rc = root_enter_locked(g);
	if (!rc)
		list_locked(g);
	pthread_mutex_unlock(&contd__groups.lock);
	return rc;
}

int contd_group_create(const struct contd_group_attr *given, struct contd_group **groupp)
{
	struct contd_group_attr attr = CONTD_GROUP_ATTR_INIT;
	struct contd_group *g;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!groupp)
		return contd__fail(-EINVAL, "contd_group_create: groupp must not be NULL");
	if (given &&
	    (rc = contd__sized_take(&attr, sizeof(attr), given,
				    CONTD_SIZED_TEXTS("contd_group_create", "attr", "struct contd_group_attr"))) != 0)
		return rc;
	if ((rc = attr_check(&attr)) != 0)
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_create: not in a signal handler");
	contd__thread_ensure();
	contd__reap(false);
	g = contd__memalign(64, sizeof(*g));
	if (!g)
		return contd__fail(-ENOMEM, "contd_group_create: out of memory");
	*g = (struct contd_group){.life = LIFE_REFERENCE,
				  /* With max_poll 0 no interruption may run any of it, so none is made. */
				  .flags = attr.max_poll == 0 ? attr.flags & ~(uint32_t)CONTD_ASYNC_SIGNAL_SAFE
							      : attr.flags,
				  .priority = attr.priority,
				  .max_poll = attr.max_poll};
	rc = contd__table_init(&g->table, g);
	if (rc) {
		free(g);
		return contd__fail(rc, "contd_group_create: out of memory");
	}
	rc = group_list(g);
	if (rc == -EAGAIN && contd__reap(true))
		rc = group_list(g);
	if (rc) {
		contd__table_fini(&g->table);
		free(g);
		return contd__fail(
			rc,
			"contd_group_create: 4096 groups of this kind exist; destroy some, share, or use poll-only");
	}
	*groupp = g;
	return 0;
}

/*
 * When the handle of a poll-only group has been given back, no thread can test the group any more. So its outstanding
 * continuations run as if the group were not poll-only.
 */
static int poll_only_end(struct contd_group *g)
{
	int rc = 0;

	pthread_mutex_lock(&contd__groups.lock);
	if (!g->table.root)
		rc = root_enter_locked(g);
	if (!rc)
		contd__and(&g->flags, ~(uint32_t)CONTD_POLL_ONLY);
	pthread_mutex_unlock(&contd__groups.lock);
	if (!rc)
		contd__group_shown(g);
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
	if (contd__load(&group->flags) & CONTD_POLL_ONLY && contd__group_outstanding_sig(group)) {
		rc = poll_only_end(group);
		if (rc == -EAGAIN && contd__reap(true))
			rc = poll_only_end(group);
		if (rc)
			return contd__fail(
				rc, "contd_group_destroy: 4096 groups exist that are not poll-only; wait for this one "
				    "first");
	}
	contd__frames_give_back(group);
	contd__store(&group->given_back, 1); /* the pin orders it */
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
	unlist_locked(g);
}

/* Under contd__groups.lock: how many executors there are, and the groups that are kept for them. */
static uint32_t outlets;
static CDS_LIST_HEAD(kept);

/* From now on neither the program nor the executor uses the group. */
static void group_let_go(struct contd_group *g)
{
	if (g->freed)
		g->freed(g->owner);
	if (g->outlet)
		contd__sub(&g->outlet->groups, 1);
}

static void memory_free(struct contd_group *g)
{
	contd__table_fini(&g->table);
	contd__store(&g->table.group, NULL); /* for dumps, which read memory that is freed, too (dump/here.h) */
	free(g);
}

static void group_free(struct contd_group *g)
{
	group_let_go(g);
	memory_free(g);
}

void contd__grace_over(void)
{
	contd__grace_period();
	/* Completers that RCU does not know are few and short: signal handlers of the program, on threads that contd
	 * does not know. */
	while (contd__load_seq(&contd__groups.strangers))
		contd__rest();
}

bool contd__reap(bool all)
{
	struct cds_lfs_head *head;
	struct cds_lfs_node *node, *next;

	if (contd__load(&contd__groups.dead_count) < (all ? 1 : REAP_BATCH))
		return false;
	head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &contd__groups.dead});
	if (!head)
		return false;
	pthread_mutex_lock(&contd__groups.lock);
	for (node = &head->node; node; node = node->next) {
		contd__sub(&contd__groups.dead_count, 1);
		group_unlist_locked(caa_container_of(node, struct contd_group, dead));
	}
	pthread_mutex_unlock(&contd__groups.lock);
	contd__grace_over();
	for (node = &head->node; node; node = next) {
		struct contd_group *g = caa_container_of(node, struct contd_group, dead);

		next = node->next;
		group_free(g);
	}
	return true;
}

void contd__groups_start(void)
{
	CDS_INIT_LIST_HEAD(&contd__groups.all);
	__cds_lfs_init(&contd__groups.dead);
}

/* No class has anything ready. Roots that no group has used, most of them, are not touched. */
static void roots_clear_locked(void)
{
	for (unsigned c = 0; c < CLASSES; c++)
		if (contd__groups.root[c].bit)
			memset(&contd__groups.root[c], 0, sizeof(contd__groups.root[c]));
	contd__ready_fini();
}

uint32_t contd__groups_fini(struct contd__never_report *never)
{
	struct contd_group *g, *next;
	uint32_t outstanding = 0;

	contd__reap(true);
	pthread_mutex_lock(&contd__groups.lock);
	cds_list_for_each_entry_safe (g, next, &contd__groups.all, node) {
		uint32_t left = contd__group_outstanding_sig(g);

		outstanding += left;
		if (left && !g->owner) /* MPI's have been reported by MPI_Finalize */
			contd__never_add_group(never, g);
		group_unlist_locked(g);
		if (left && outlets) {
			group_let_go(g);
			contd__store(&g->kept, 1);
			cds_list_add(&g->node, &kept);
		} else {
			group_free(g);
		}
	}
	roots_clear_locked();
	pthread_mutex_unlock(&contd__groups.lock);
	return outstanding;
}

void contd__groups_outlet_made(void)
{
	pthread_mutex_lock(&contd__groups.lock);
	outlets++;
	pthread_mutex_unlock(&contd__groups.lock);
}

/* An executor that goes has no work left. So when the last one goes, no pool has a continuation of a kept group. */
void contd__groups_outlet_gone(void)
{
	struct contd_group *g, *next;

	pthread_mutex_lock(&contd__groups.lock);
	if (--outlets == 0)
		cds_list_for_each_entry_safe (g, next, &kept, node) {
			cds_list_del(&g->node);
			memory_free(g);
		}
	pthread_mutex_unlock(&contd__groups.lock);
}

/* ---------------------------------------------------------------------------------------------------- executors --- */

/* From now on other threads find the group, in another place. Nothing of it is outstanding. If there is no place for
 * it, nothing changes: -EAGAIN. */
static int switch_locked(struct contd_group *g, struct contd__outlet *outlet)
{
	struct contd__outlet *before = g->outlet;
	uint32_t flags_before = g->flags, own = flags_before & ~(GROUP_EXECUTOR | GROUP_ONLY_PROGRAM);

	if (outlet == before)
		return 0; /* another thread was faster */
	if (flags_before & GROUP_ONLY_PROGRAM)
		own &= ~(uint32_t)CONTD_THREAD_ANY;
	root_leave_locked(g);
	contd__store(&g->outlet, outlet);
	if (outlet && outlet->push)
		own |= GROUP_PUSH | CONTD_THREAD_ANY | (own & CONTD_THREAD_ANY ? 0 : GROUP_ONLY_PROGRAM);
	else if (outlet)
		own |= GROUP_PULL;
	contd__store_seq(&g->flags, own);
	if (root_enter_locked(g)) {
		contd__store(&g->outlet, before);
		contd__store_seq(&g->flags, flags_before);
		root_enter_locked(g); /* back to where it was: there is a place, others enter under the lock, too */
		return -EAGAIN;
	}
	if (outlet)
		contd__add(&outlet->groups, 1);
	if (before) /* completers may be about to tell the old one: destroying it takes a grace period */
		contd__sub(&before->groups, 1);
	return 0;
}

int contd__group_set_outlet(struct contd_group *group, struct contd__outlet *outlet)
{
	int rc;

	pthread_mutex_lock(&contd__groups.lock);
	rc = switch_locked(group, outlet);
	pthread_mutex_unlock(&contd__groups.lock);
	if (rc == -EAGAIN && contd__reap(true)) {
		pthread_mutex_lock(&contd__groups.lock);
		rc = switch_locked(group, outlet);
		pthread_mutex_unlock(&contd__groups.lock);
	}
	return rc;
}

bool contd__groups_name_outlet(const struct contd__outlet *outlet)
{
	const struct contd_group *g;
	bool some = false;

	pthread_mutex_lock(&contd__groups.lock);
	cds_list_for_each_entry (g, &contd__groups.all, node)
		some = some ||
		       (g->outlet == outlet && (!contd__load(&g->given_back) || contd__group_outstanding_sig(g)));
	pthread_mutex_unlock(&contd__groups.lock);
	return some;
}

uint32_t contd_group_outstanding(const struct contd_group *group)
{
	return group ? contd__group_outstanding_sig(group) - contd__carried_returned_sig(group) : 0;
}
