/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: the operations that wait for their values. Each has in op->data the error value that there was when it
 * began. */
#include <errno.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/sized.h"
#include "dispatch/live.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "fabric/counter.h"
#include "fabric/operation.h"
#include "fabric/source.h"

struct contd_fabric_counter {
	struct contd__fabric_object object; /* first */
	struct fid_cntr *cntr;
	pthread_mutex_t lock;          /* the list; no other code is called under it */
	struct contd_fabric_op *first; /* the lowest threshold first */
	uint64_t errors;               /* its error value, when it was last looked at */
};

/* Takes it out of the list; false: it is not there. */
static bool unlink_locked(struct contd_fabric_counter *c, struct contd_fabric_op *op)
{
	struct contd_fabric_op **at = &c->first;

	while (*at && *at != op)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = op->next;
	return true;
}

static void complete(struct contd_fabric_counter *c, struct contd_fabric_op *op, int status, uint64_t data,
		     const char *text)
{
	contd__fabric_fill(op, &(struct contd_fabric_entry){.data = data, .source = FI_ADDR_NOTAVAIL, .status = status},
			   text);
	contd__fabric_ended(&c->object, 1);
	if (contd__fabric_outlived(&c->object))
		contd__fabric_complete_alone(op);
	else
		contd_event_complete(&op->event, status);
}

/* Take the first operation whose value has come, or that was begun before new errors. `errors` 0: do not ask for
 * errors. */
static struct contd_fabric_op *take(struct contd_fabric_counter *c, uint64_t value, uint64_t errors)
{
	struct contd_fabric_op **at = &c->first, *op;

	pthread_mutex_lock(&c->lock);
	while (*at && (*at)->threshold > value && (*at)->data >= errors && errors)
		at = &(*at)->next;
	op = *at && ((*at)->threshold <= value || (*at)->data < errors) ? *at : NULL;
	if (op)
		*at = op->next;
	pthread_mutex_unlock(&c->lock);
	return op;
}

static void look(struct contd__fabric_object *o, bool last)
{
	struct contd_fabric_counter *c = (struct contd_fabric_counter *)o;
	struct contd_fabric_op *op;
	uint64_t value, errors, seen = contd__load(&c->errors);

	(void)last;
	if (contd__fabric_enter(o))
		return;
	value = fi_cntr_read(c->cntr);
	errors = fi_cntr_readerr(c->cntr);
	contd__fabric_leave(o);
	contd__store(&c->errors, errors);
	while ((op = take(c, value, errors == seen ? 0 : errors)) != NULL)
		if (op->threshold <= value)
			complete(c, op, 0, 0, "");
		else
			complete(c, op, -FI_EIO, errors, "the counter's error value has gone up");
}

int contd_fabric_counter_adopt(struct fid_cntr *cntr, const struct contd_fabric_attr *attr,
			       struct contd_fabric_counter **counterp)
{
	struct contd_fabric_attr a = {.size = sizeof(a)};
	struct contd_fabric_counter *c;
	int rc = contd__fabric_here(__func__);

	if (rc)
		return rc;
	if (!cntr || !attr || !counterp)
		return contd__fail(-EINVAL, !cntr   ? CONTD_NULL("contd_fabric_counter_adopt", "cntr")
					    : !attr ? CONTD_NULL("contd_fabric_counter_adopt", "attr")
						    : CONTD_NULL("contd_fabric_counter_adopt", "counterp"));
	rc = contd__sized_take(&a, sizeof(a), attr,
			       CONTD_SIZED_TEXTS("contd_fabric_counter_adopt", "attr", "struct contd_fabric_attr"));
	if (rc)
		return rc;
	c = contd__zalloc(sizeof(*c));
	if (!c)
		return contd__fail(-ENOMEM, "contd_fabric_counter_adopt: out of memory");
	c->object.look = look;
	c->cntr = cntr;
	pthread_mutex_init(&c->lock, NULL);
	c->errors = fi_cntr_readerr(cntr);
	rc = contd__fabric_object_open(&c->object, &cntr->fid, &a, 0);
	if (rc)
		free(c);
	else
		*counterp = c;
	return contd__fail_in(__func__, rc);
}

int contd_fabric_counter_destroy(struct contd_fabric_counter *counter)
{
	struct contd_fabric_op *op;
	int rc;

	if (!counter)
		return contd__fail(-EINVAL, "contd_fabric_counter_destroy: counter must not be NULL");
	rc = contd__fabric_object_close(&counter->object, __func__);
	if (rc)
		return rc;
	while ((op = take(counter, UINT64_MAX, 0)) != NULL)
		complete(counter, op, -FI_ECANCELED, 0, "contd does not look at the counter any more");
	contd__fabric_object_closed(&counter->object);
	pthread_mutex_destroy(&counter->lock);
	free(counter);
	return 0;
}

/* The error value, as far as this thread may ask. */
static uint64_t errors_now(struct contd_fabric_counter *c)
{
	struct contd__fabric_object *o = &c->object;
	uint64_t errors = contd__load(&c->errors);

	if ((o->owner && o->owner != &contd__self) || contd__fabric_enter(o))
		return errors;
	errors = fi_cntr_readerr(c->cntr);
	contd__fabric_leave(o);
	return errors;
}

int contd_fabric_counter_begin(struct contd_fabric_counter *counter, uint64_t threshold, struct contd_fabric_op *op)
{
	struct contd_fabric_op **at;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!counter || !op)
		return contd__fail(-EINVAL, !counter ? CONTD_NULL("contd_fabric_counter_begin", "counter")
						     : CONTD_NULL("contd_fabric_counter_begin", "op"));
	if (contd__in_handler()) /* it takes a lock */
		return contd__fail(-EPERM, "contd_fabric_counter_begin: not in a signal handler");
	if (contd__fabric_outlived(&counter->object))
		return contd__fail(
			-EPERM,
			"contd_fabric_counter_begin: contd_fini() was called after the counter was adopted: close it "
			"and adopt it again");
	op->carried.group = NULL;
	contd_event_init(&op->event);
	op->queue = NULL;
	op->counter = counter;
	op->threshold = threshold;
	op->data = errors_now(counter);
	op->status = 0;
	op->text = "";
	contd__add(counter->object.pending, 1);
	pthread_mutex_lock(&counter->lock);
	/* A look stores the value before it takes operations: what it has passed is not looked for again. */
	if (op->data < contd__load(&counter->errors))
		op->data = contd__load(&counter->errors);
	for (at = &counter->first; *at && (*at)->threshold <= threshold; at = &(*at)->next)
		;
	op->next = *at;
	*at = op;
	pthread_mutex_unlock(&counter->lock);
	contd__pending_sig(); /* after it was put there: it may be complete by now, and then no descriptor tells */
	return 0;
}

int contd__fabric_counter_withdraw(struct contd_fabric_op *op, int status)
{
	struct contd_fabric_counter *c = op->counter;
	bool there;

	if (contd__in_handler())
		return contd__fail(-EPERM,
				   "contd_fabric_withdraw: an operation that waits for a counter is not withdrawn in a "
				   "signal handler");
	pthread_mutex_lock(&c->lock);
	there = unlink_locked(c, op);
	pthread_mutex_unlock(&c->lock);
	if (!there)
		return contd__fail(-EALREADY, "contd_fabric_withdraw: op is complete already: nothing is left to do");
	complete(c, op, status, 0, "withdrawn");
	return 0;
}
