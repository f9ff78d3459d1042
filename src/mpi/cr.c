/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "mpi/backend.h"
#include "mpi/cr.h"
#include "mpi/set.h"
#include "rcu/table.h"

pthread_mutex_t contd__crs_lock = PTHREAD_MUTEX_INITIALIZER;
CDS_LIST_HEAD(contd__crs);

uint32_t contd__crs_outstanding(void)
{
	struct contd__cr *cr;
	uint32_t n = 0;

	pthread_mutex_lock(&contd__crs_lock);
	cds_list_for_each_entry (cr, &contd__crs, node)
		n += contd__group_outstanding_sig(cr->group);
	pthread_mutex_unlock(&contd__crs_lock);
	return n;
}

int contd__cr_init(struct contd__cr *cr, struct contd_group *group, bool revised)
{
	*cr = (struct contd__cr){.group = group, .handle = MPI_REQUEST_NULL, .revised = revised};
	if (pthread_mutex_init(&cr->lock, NULL))
		return MPI_ERR_NO_MEM;
	__cds_lfs_init(&cr->failed);
	group->owner = cr;
	pthread_mutex_lock(&contd__crs_lock);
	cds_list_add(&cr->node, &contd__crs);
	pthread_mutex_unlock(&contd__crs_lock);
	return MPI_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- start and inactive --- */

int contd__cr_hold(struct contd__cr *cr, struct contd__slot *slot)
{
	int active;

	/* The count went up before: who makes it inactive after this look sees that. */
	if (contd__load_seq(&cr->active))
		return 1;
	CONTD_TESTPOINT("hold_inactive");
	pthread_mutex_lock(&cr->lock);
	active = contd__load_seq(&cr->active) != 0;
	if (!active) {
		/* Only this list uses `link` of a slot that waits for events. */
		contd__store(&slot->link, 0);
		if (cr->held)
			contd__store(&contd__table_slot(&cr->group->table, cr->held_last - 1)->link, slot->index + 1);
		else
			cr->held = slot->index + 1;
		cr->held_last = slot->index + 1;
	}
	pthread_mutex_unlock(&cr->lock);
	return active;
}

/* In the order in which they were registered. */
static void release_held(struct contd__cr *cr, uint32_t held)
{
	while (held) {
		struct contd__slot *s = contd__table_slot(&cr->group->table, held - 1);
		uint32_t generation = SLOT_GENERATION(contd__load(&s->state));

		/* Its set is none of ours: until the start is counted an operation may fail, and afterwards the set may
		 * be gone. */
		held = contd__load(&s->link);
		CONTD_TESTPOINT("start_releases");
		contd__slot_event_done_sig(s, generation, 1);
	}
}

int contd__cr_start(struct contd__cr *cr)
{
	uint32_t held;

	if (!cr->revised)
		return MPI_ERR_REQUEST;
	pthread_mutex_lock(&cr->lock);
	if (contd__load(&cr->active)) {
		pthread_mutex_unlock(&cr->lock);
		return MPI_ERR_REQUEST;
	}
	held = cr->held;
	cr->held = 0;
	cr->started = true;
	contd__store_seq(&cr->active, 1);
	pthread_mutex_unlock(&cr->lock);
	if (contd__mpi->cr_changed)
		contd__mpi->cr_changed(cr);
	contd__group_pin_sig(cr->group); /* the callbacks of what is released may free it */
	release_held(cr, held);
	contd__group_unpin_sig(cr->group);
	return MPI_SUCCESS;
}

bool contd__cr_report(struct contd__cr *cr)
{
	bool complete = true;

	if (!cr->revised) {
		/* What is registered meanwhile is outstanding, or was run, and then the next report tells of it or
		 * not. */
		if (contd__load(&cr->unreported))
			contd__store(&cr->unreported, 0);
		return true;
	}
	if (!contd__load_seq(&cr->active))
		return true;
	pthread_mutex_lock(&cr->lock);
	if (contd__load(&cr->active)) {
		CONTD_TESTPOINT("report_before_inactive");
		contd__store_seq(&cr->active, 0);
		CONTD_TESTPOINT("report_inactive");
		complete = contd__group_outstanding_sig(cr->group) == 0;
		if (!complete)
			contd__store_seq(&cr->active, 1);
	}
	pthread_mutex_unlock(&cr->lock);
	if (contd__mpi->cr_changed)
		contd__mpi->cr_changed(cr);
	return complete;
}

void contd__cr_report_not(struct contd__cr *cr)
{
	if (cr->revised)
		contd__cr_start(cr); /* which what was registered meanwhile waits for */
	else
		contd__cr_registered(cr);
}

/* ----------------------------------------------------------------------------------------------------- failures --- */

static void failure_over_sig(struct contd__failure *f)
{
	if (f->set)
		contd__set_unref_sig(f->set);
}

/* Of a CR that was freed nobody will ask. */
static void failed_drop_sig(struct contd__cr *cr)
{
	struct cds_lfs_head *head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &cr->failed});

	for (struct cds_lfs_node *node = head ? &head->node : NULL, *next; node; node = next) {
		next = node->next;
		failure_over_sig(caa_container_of(node, struct contd__failure, node));
	}
}

void contd__cr_fail_sig(struct contd__cr *cr, struct contd__failure *f, bool told)
{
	int none = 0;

	if (contd__cas(&cr->error, &none, f->class))
		contd__store(&cr->error_told, told);
	contd__group_pin_sig(cr->group); /* the set's own reference may go at once */
	cds_lfs_push((cds_lfs_stack_ptr_t){._s = &cr->failed}, &f->node);
	if (contd__load_seq(&cr->closed))
		failed_drop_sig(cr);
	contd__group_unpin_sig(cr->group);
}

static void failed_sort_locked(struct contd__cr *cr)
{
	struct cds_lfs_head *head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &cr->failed});
	struct contd__failure *first = NULL, *last = NULL;

	for (struct cds_lfs_node *node = head ? &head->node : NULL, *next; node; node = next) {
		struct contd__failure *f = caa_container_of(node, struct contd__failure, node);

		next = node->next;
		f->next = first;
		first = f;
		last = last ? last : f;
	}
	if (!first)
		return;
	if (cr->failed_last)
		cr->failed_last->next = first;
	else
		cr->failed_first = first;
	cr->failed_last = last;
}

static struct contd__failure *failed_take_locked(struct contd__cr *cr)
{
	struct contd__failure *f = cr->failed_first;

	if (!f)
		return NULL;
	cr->failed_first = f->next;
	if (!cr->failed_first)
		cr->failed_last = NULL;
	return f;
}

int contd__cr_get_failed(struct contd__cr *cr, int *count, void **data)
{
	struct contd__failure *f, *taken = NULL;
	int n = 0;

	pthread_mutex_lock(&cr->lock);
	failed_sort_locked(cr);
	while (n < *count && (f = failed_take_locked(cr)) != NULL) {
		data[n++] = f->data;
		f->next = taken;
		taken = f;
	}
	if (!cr->failed_first) {
		contd__store_seq(&cr->error, 0);
		/* One that failed meanwhile says so before it is counted as finished; look for it after the store. */
		failed_sort_locked(cr);
		if (cr->failed_first)
			contd__store_seq(&cr->error, cr->failed_first->class);
	}
	pthread_mutex_unlock(&cr->lock);
	*count = n;
	while (taken) {
		f = taken;
		taken = f->next;
		failure_over_sig(f);
	}
	return MPI_SUCCESS;
}

void contd__cr_close(struct contd__cr *cr)
{
	struct contd__failure *f;

	/* First said, then looked: what fails later drops itself. */
	contd__store_seq(&cr->closed, 1);
	failed_drop_sig(cr);
	pthread_mutex_lock(&cr->lock);
	while ((f = failed_take_locked(cr)) != NULL)
		failure_over_sig(f);
	pthread_mutex_unlock(&cr->lock);
}

void contd__cr_fini(struct contd__cr *cr)
{
	pthread_mutex_lock(&contd__crs_lock);
	cds_list_del(&cr->node);
	pthread_mutex_unlock(&contd__crs_lock);
	pthread_mutex_destroy(&cr->lock);
}
