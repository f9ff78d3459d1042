/* SPDX-License-Identifier: BSD-3-Clause */
/* Continuations that have failed, in the queues of their CRs, each with a reference of its set. */
#include "base/atomic.h"
#include "dispatch/group.h"
#include "mpi/cr.h"
#include "mpi/op_set.h"

static void failure_over_sig(struct contd__failure *f)
{
	if (f->set)
		contd__set_unref_sig(f->set);
}

/* No call will ask about a CR that was freed. */
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

void contd__cr_let_go(struct contd__cr *cr)
{
	if (contd__cr_by_turns)
		cr->asked = 0; /* CR_KEPT */
	contd__group_unpin_sig(cr->group);
}

void contd__cr_close(struct contd__cr *cr)
{
	struct contd__failure *f;

	contd__cr_ends();
	contd__cr_uncounted_ends();
	if (cr->asked) {
		cr->asked |= CR_KEPT;
		contd__group_pin_sig(cr->group);
	}
	/* First said, then looked: what fails later drops itself. */
	contd__store_seq(&cr->closed, 1);
	failed_drop_sig(cr);
	pthread_mutex_lock(&cr->lock);
	while ((f = failed_take_locked(cr)) != NULL)
		failure_over_sig(f);
	pthread_mutex_unlock(&cr->lock);
}
