/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: reading them, and the operations whose completions they tell of. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rest.h"
#include "base/sized.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/event.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/source.h"
#include "fabric/begun.h"
#include "fabric/counter.h"
#include "fabric/operation.h"
#include "fabric/source.h"

#define BATCH 16u
#define BATCHES 4u /* in a look that need not be the last */
#define TEXTS 256u
_Static_assert(BATCH <= EVENTS_TOGETHER, "completed together");

struct contd_fabric_queue {
	struct contd__fabric_object object; /* first */
	struct fid_cq *cq;
	bool own, from;  /* contd opened it; it is read with fi_cq_readfrom */
	uint32_t always; /* 1 with CONTD_FABRIC_ALWAYS: what `pending` has besides */
	uint32_t most;   /* pending */
	uint32_t format_bytes;
	int32_t failed; /* the queue has failed: -FI_E* */
	uint32_t stopped;
	contd_fabric_foreign *foreign;
	void *data;
	struct contd__begun begun;
	/* Entries of multi-receive buffers that had no room, in order. Used by the thread that looks. */
	struct contd_fabric_entry held[BATCH];
	uint32_t held_first, held_count;
};

/* An operation that gives many completions stands among those that are begun with this bit. */
#define MANY 1u

/* Such an operation has one of these in op.threshold, where others have 0. When it has ended, its queue may have gone,
 * and cannot be asked. */
#define UNDER_WAY 1u
#define OVER 2u

/* struct contd_fabric_many, `armed` */
#define WAITS 1u   /* a continuation waits to be told */
#define FULL 2u    /* an entry is kept back */
#define PUTTING 4u /* the taker of the newest entry waits for this to go: until then the buffer is in use here */
#define ENDED 8u   /* after what is there its end is to be taken, which needs no room: op.status */
#define TAKEN 16u  /* the last entry has been taken: nothing will come any more */

/* ------------------------------------------------------------------------------------------------ errors' texts --- */

/* Texts are few, and stay: operations refer to them when their queue has gone. */
static const char *text_of(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char known[TEXTS][CONTD_FABRIC_TEXT];
	static uint32_t count;
	const char *found = "one of too many different errors for their texts to be kept";
	char wanted[CONTD_FABRIC_TEXT];
	uint32_t i;

	snprintf(wanted, sizeof(wanted), "%s", text ? text : "");
	pthread_mutex_lock(&lock);
	for (i = 0; i < count && strcmp(known[i], wanted) != 0; i++)
		;
	if (i < TEXTS) {
		if (i == count)
			memcpy(known[count++], wanted, sizeof(wanted));
		found = known[i];
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* --------------------------------------------------------------------------------------------------- completing --- */

/* The operation has been taken out of those that are begun. */
static void complete(struct contd_fabric_queue *q, struct contd_fabric_op *op)
{
	struct contd_carried *carried = &op->carried;

	contd__fabric_ended(&q->object, 1);
	if (__builtin_expect(contd__fabric_outlived(&q->object), 0)) {
		contd__fabric_complete_alone(op);
	} else if (carried->group) {
		carried->status = op->status;
		contd__carried_done_sig(&carried, 1);
	} else {
		contd_event_complete(&op->event, op->status);
	}
}

/* A message that did not fit does not end the buffer, unless the provider says so. */
static bool is_last(const struct contd_fabric_entry *e)
{
	return e->flags & FI_MULTI_RECV || (e->status && e->status != -FI_ETRUNC);
}

static bool has_room(const struct contd_fabric_many *m)
{
	/* Pairs with the store in contd_fabric_many_take(), after an entry was taken out. */
	return contd__load(&m->put) - contd__load_seq(&m->got) < m->room;
}

/* Tell the continuation that waits, once. From here on nothing is being put in any more. */
static void tell(struct contd_fabric_many *m)
{
	if (contd__and(&m->armed, ~(WAITS | PUTTING)) & WAITS)
		contd_event_complete(&m->op.event, 0);
}

/*
 * There is room, which only this thread fills; PUTTING is set. Dekker: put, then look whether a continuation waits;
 * contd_fabric_many_continue() says that it waits, then looks. That look is the last access, because the thread that
 * takes the entry may free the buffer; but not while a continuation waits for it.
 */
static void put(struct contd_fabric_many *m, const struct contd_fabric_entry *e)
{
	uint32_t at = contd__load(&m->put);

	m->entry[at % m->room] = *e;
	contd__store_seq(&m->put, at + 1);
	CONTD_TESTPOINT("many_put");
	tell(m);
}

/*
 * The queue will not tell of the buffer any more. The end is taken like an entry, after all of them. The caller sets
 * OVER and PUTTING before this call.
 */
static void end_many(struct contd_fabric_queue *q, struct contd_fabric_many *m, int32_t status, const char *text)
{
	m->op.status = status;
	m->op.text = text;
	contd__or(&m->armed, ENDED);
	CONTD_TESTPOINT("many_ended");
	if (contd__fabric_outlived(&q->object)) {
		contd__fabric_complete_alone(&m->op);
		contd__and(&m->armed, ~(WAITS | PUTTING));
	} else {
		tell(m);
	}
}

/* Acquire: pairs with tell(). */
static void await_put(const struct contd_fabric_many *m)
{
	while (contd__load_acquire(&m->armed) & PUTTING)
		contd__rest();
}

/* true: nothing is left of the entry. */
static bool deliver_many(struct contd_fabric_queue *q, const struct contd_fabric_entry *e)
{
	struct contd_fabric_many *m = e->context;

	if (!has_room(m)) {
		/* Dekker: say that it is full, then look again; contd_fabric_many_take() makes room, then looks whether
		 * an entry waits for it. */
		contd__or(&m->armed, FULL);
		if (!has_room(m))
			return false;
	}
	contd__or(&m->armed, PUTTING);
	/* Before the entry can be taken: the thread that has taken it may begin the buffer again. */
	if (is_last(e) && contd__begun_take(&q->begun, (uintptr_t)m | MANY)) {
		contd__store(&m->op.threshold, OVER);
		contd__fabric_ended(&q->object, 1);
	}
	put(m, e);
	return true;
}

static void hold(struct contd_fabric_queue *q, const struct contd_fabric_entry *e)
{
	q->held[q->held_count++] = *e;
}

/* Foreign contexts may be anything: an address with that bit set is no operation's. */
static bool may_be_ours(const void *context)
{
	return context && !((uintptr_t)context & MANY);
}

static void deliver(struct contd_fabric_queue *q, const struct contd_fabric_entry *e, const char *text)
{
	struct contd_fabric_op *op = e->context;
	bool ours = may_be_ours(op);

	if (ours && contd__begun_take(&q->begun, (uintptr_t)op)) {
		contd__fabric_fill(op, e, text);
		complete(q, op);
	} else if (ours && contd__begun_find(&q->begun, (uintptr_t)op | MANY)) {
		CONTD_TESTPOINT("many_found");
		if (q->held_count || !deliver_many(q, e))
			hold(q, e);
	} else if (q->foreign) {
		q->foreign(e, q->data);
	}
}

/* Deliver the entries that were held back; false: some still are. */
static bool deliver_held(struct contd_fabric_queue *q)
{
	while (q->held_count) {
		const struct contd_fabric_entry *e = &q->held[q->held_first];

		if (contd__begun_find(&q->begun, (uintptr_t)e->context | MANY) && !deliver_many(q, e))
			return false;
		q->held_first++;
		q->held_count--;
	}
	q->held_first = 0;
	return true;
}

/* ------------------------------------------------------------------------------------------------------ reading --- */

/* The first fields of struct fi_cq_tagged_entry are those of the shorter ones: fi_cq(3). */
static inline struct fi_cq_tagged_entry whole(const char *raw, uint32_t bytes)
{
	struct fi_cq_tagged_entry t = {0};

	/* Each with a size that the compiler knows. */
	if (bytes == sizeof(t))
		memcpy(&t, raw, sizeof(t));
	else if (bytes == sizeof(struct fi_cq_data_entry))
		memcpy(&t, raw, sizeof(struct fi_cq_data_entry));
	else if (bytes == sizeof(struct fi_cq_msg_entry))
		memcpy(&t, raw, sizeof(struct fi_cq_msg_entry));
	else
		memcpy(&t, raw, sizeof(struct fi_cq_entry));
	return t;
}

static inline void *context_of(const char *raw)
{
	void *context;

	memcpy(&context, raw + offsetof(struct fi_cq_entry, op_context), sizeof(context));
	return context;
}

static inline void fill_raw(struct contd_fabric_op *op, const char *raw, uint32_t bytes, fi_addr_t source)
{
	struct fi_cq_tagged_entry t = whole(raw, bytes);

	op->flags = t.flags;
	op->length = t.len;
	op->buffer = t.buf;
	op->data = t.data;
	op->tag = t.tag;
	op->source = source;
}

static void entry_of(struct contd_fabric_entry *e, const char *raw, uint32_t bytes, fi_addr_t source)
{
	struct fi_cq_tagged_entry t = whole(raw, bytes);

	e->context = t.op_context;
	e->flags = t.flags;
	e->length = t.len;
	e->buffer = t.buf;
	e->data = t.data;
	e->tag = t.tag;
	e->source = source;
	e->truncated = 0;
	e->status = 0;
	e->provider_error = 0;
	e->text[0] = 0;
}

/* Everything that is under way ends, with this status. */
static void fail_all(struct contd_fabric_queue *q, int32_t status, const char *text)
{
	struct contd_fabric_entry e = {.source = FI_ADDR_NOTAVAIL, .status = status};

	for (uint64_t i = 0; i <= q->begun.mask; i++)
		for (unsigned k = 0; k < BEGUN_LINE; k++) {
			uintptr_t key = contd__load_seq(&q->begun.line[i][k]);
			struct contd_fabric_many *m;

			if (!key || !contd__cas(&q->begun.line[i][k], &key, 0))
				continue;
			e.context = (void *)(key & ~(uintptr_t)MANY);
			if (!(key & MANY)) {
				contd__fabric_fill(e.context, &e, text);
				complete(q, e.context);
				continue;
			}
			m = e.context;
			contd__or(&m->armed, PUTTING);
			contd__store(&m->op.threshold, OVER);
			contd__fabric_ended(&q->object, 1);
			end_many(q, m, status, text);
		}
}

/* The queue itself has failed: an overrun, a device that has gone. */
static void fail(struct contd_fabric_queue *q, int32_t status, const char *text)
{
	contd__store(&q->failed, status);
	fail_all(q, status, text);
}

static const char *text_of_error(struct contd_fabric_queue *q, const struct fi_cq_err_entry *error, int err)
{
	char said[CONTD_FABRIC_TEXT] = "", both[2 * CONTD_FABRIC_TEXT];
	const char *provider = fi_cq_strerror(q->cq, error->prov_errno, error->err_data, said, sizeof(said));

	if (!provider || !*provider || strcmp(provider, fi_strerror(err)) == 0)
		return text_of(fi_strerror(err));
	/* The provider may know more, or something else. */
	snprintf(both, sizeof(both), "%s (provider: %s, %d)", fi_strerror(err), provider, error->prov_errno);
	return text_of(both);
}

/* -FI_EAVAIL. The caller is inside libfabric, and leaves. 1; 0: there was none after all; or the queue's error. */
static ssize_t read_error(struct contd_fabric_queue *q, struct contd_fabric_entry *e, const char **text)
{
	struct fi_cq_err_entry error;
	ssize_t rc;
	int err;

	memset(&error, 0, sizeof(error)); /* err_data_size 0: the provider's own buffer, fi_cq(3) */
	rc = fi_cq_readerr(q->cq, &error, 0);
	if (rc < 0)
		return rc == -FI_EAGAIN || rc == -FI_EINTR ? 0 : rc;
	err = error.err > 0 ? error.err : error.err < 0 ? -error.err /* shm: libfabric 1.17 */ : FI_EOTHER;
	*text = text_of_error(q, &error, err);
	*e = (struct contd_fabric_entry){.context = error.op_context,
					 .flags = error.flags,
					 .length = error.len,
					 .buffer = error.buf,
					 .data = error.data,
					 .tag = error.tag,
					 .source = FI_ADDR_NOTAVAIL,
					 .truncated = error.olen,
					 .status = -err,
					 .provider_error = error.prov_errno};
	snprintf(e->text, sizeof(e->text), "%s", *text);
	return 1;
}

/* Operations that are complete without an error, and filled. */
struct finished {
	uint32_t carriers, events;
	struct contd_carried *carried[BATCH];
	struct contd_event *event[BATCH];
};

static void finish(struct contd_fabric_queue *q, struct finished *f)
{
	/* Before the first of them is complete: the thread that is told may begin another one. */
	if (f->carriers + f->events)
		contd__fabric_ended(&q->object, f->carriers + f->events);
	if (f->carriers)
		contd__carried_done_sig(f->carried, f->carriers);
	if (f->events)
		contd__events_complete_sig(f->event, f->events);
	f->carriers = f->events = 0;
}

/* Deliver entries that were read without error. An operation is filled from its entry right away, without a
 * contd_fabric_entry in between. */
static inline __attribute__((always_inline)) void deliver_format(struct contd_fabric_queue *q, const char *raw,
								 uint32_t bytes, const fi_addr_t *from, uint32_t n)
{
	struct finished f;

	f.carriers = f.events = 0;
	for (uint32_t i = 0; i < n; i++, raw += bytes) {
		fi_addr_t source = from ? from[i] : FI_ADDR_NOTAVAIL;
		struct contd_fabric_op *op = context_of(raw);

		if (__builtin_expect(may_be_ours(op) && contd__begun_take(&q->begun, (uintptr_t)op), 1)) {
			fill_raw(op, raw, bytes, source);
			if (op->carried.group)
				f.carried[f.carriers++] = &op->carried;
			else
				f.event[f.events++] = &op->event;
		} else {
			struct contd_fabric_entry e;

			finish(q, &f); /* in the queue's order */
			entry_of(&e, raw, bytes, source);
			deliver(q, &e, "");
		}
	}
	finish(q, &f);
}

/* Each format with a size that the compiler knows. */
static void deliver_batch(struct contd_fabric_queue *q, const char *raw, const fi_addr_t *from, uint32_t n)
{
	switch (q->format_bytes) {
	case sizeof(struct fi_cq_tagged_entry):
		deliver_format(q, raw, sizeof(struct fi_cq_tagged_entry), from, n);
		break;
	case sizeof(struct fi_cq_data_entry):
		deliver_format(q, raw, sizeof(struct fi_cq_data_entry), from, n);
		break;
	case sizeof(struct fi_cq_msg_entry):
		deliver_format(q, raw, sizeof(struct fi_cq_msg_entry), from, n);
		break;
	default:
		deliver_format(q, raw, sizeof(struct fi_cq_entry), from, n);
	}
}

/* Returns how many entries there were, 0 at their end; BATCH if there may be more. */
static ssize_t read_batch(struct contd_fabric_queue *q)
{
	char raw[BATCH * sizeof(struct fi_cq_tagged_entry)] __attribute__((aligned(8)));
	fi_addr_t from[BATCH];
	struct contd_fabric_entry e;
	const char *text = "";
	ssize_t n, error = 0;

	if (contd__fabric_enter(&q->object))
		return 0;
	n = q->from ? fi_cq_readfrom(q->cq, raw, BATCH, from) : fi_cq_read(q->cq, raw, BATCH);
	if (n == -FI_EAVAIL)
		error = read_error(q, &e, &text);
	contd__fabric_leave(&q->object);
	if (n >= 0) {
		deliver_batch(q, raw, q->from ? from : NULL, (uint32_t)n);
		return n;
	}
	if (error > 0 && (e.context || e.status != -FI_EOVERRUN)) {
		deliver(q, &e, text);
		return BATCH;
	}
	if (n == -FI_EAVAIL)
		n = error < 0 ? error : -FI_EAGAIN;
	if (error > 0)
		fail(q, e.status, text);
	else if (n != -FI_EAGAIN && n != -FI_EINTR)
		fail(q, (int32_t)n, text_of(fi_strerror((int)-n)));
	return 0;
}

static void look(struct contd__fabric_object *o, bool last)
{
	struct contd_fabric_queue *q = (struct contd_fabric_queue *)o;

	if (contd__load(&q->failed)) {
		fail_all(q, contd__load(&q->failed), "the completion queue has failed");
		return;
	}
	/* A batch that is not full was the end of the queue. Reading once more makes the provider lengthen the queue
	 * again: that price is paid only if no look follows this one. */
	for (uint32_t i = 0; last || i < BATCHES; i++) {
		if (!deliver_held(q)) {
			CONTD_TESTPOINT("look_full");
			return;
		}
		if (read_batch(q) < (last ? 1 : (ssize_t)BATCH))
			return;
	}
}

/* --------------------------------------------------------------------------------------------- opening, closing --- */

static uint32_t format_bytes(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return 0;
	}
}

static void free_queue(struct contd_fabric_queue *q)
{
	free(q->begun.line);
	free(q);
}

static int adopt(struct fid_cq *cq, const struct contd_fabric_attr *given, struct contd_fabric_queue **queuep)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr)};
	struct contd_fabric_queue *q;
	uint32_t operations;
	int rc;

	rc = contd__sized_take(&attr, sizeof(attr), given,
			       CONTD_SIZED_TEXTS("contd_fabric_queue_adopt", "attr", "struct contd_fabric_attr"));
	if (rc)
		return rc;
	if (!format_bytes(attr.format))
		return contd__fail(-EINVAL, "attr->format must be that of the queue: context, msg, data or tagged");
	if (attr.operations > 1u << 20)
		return contd__fail(-EINVAL, "attr->operations must be at most 2^20");
	if (attr.flags & ~(uint32_t)(CONTD_FABRIC_SOURCE | CONTD_FABRIC_ALWAYS))
		return contd__fail(-EINVAL, "attr->flags has bits that are no enum contd_fabric_flags");
	q = contd__zalloc(sizeof(*q));
	if (!q)
		return contd__fail(-ENOMEM, "out of memory");
	operations = attr.operations ? attr.operations : 4096;
	if (!contd__begun_make(&q->begun, operations)) {
		free(q);
		return contd__fail(-ENOMEM, "out of memory for the operations; attr->operations is how many");
	}
	q->object.look = look;
	q->cq = cq;
	q->from = attr.flags & CONTD_FABRIC_SOURCE;
	q->always = attr.flags & CONTD_FABRIC_ALWAYS ? 1 : 0;
	q->most = operations + q->always;
	q->format_bytes = format_bytes(attr.format);
	q->foreign = attr.foreign;
	q->data = attr.data;
	rc = contd__fabric_object_open(&q->object, &cq->fid, &attr, q->always);
	if (rc)
		free_queue(q);
	else
		*queuep = q;
	return rc;
}

int contd_fabric_queue_adopt(struct fid_cq *cq, const struct contd_fabric_attr *attr,
			     struct contd_fabric_queue **queuep)
{
	int rc = contd__fabric_here(__func__);

	if (rc)
		return rc;
	if (!cq || !attr || !queuep)
		return contd__fail(-EINVAL, !cq     ? CONTD_NULL("contd_fabric_queue_adopt", "cq")
					    : !attr ? CONTD_NULL("contd_fabric_queue_adopt", "attr")
						    : CONTD_NULL("contd_fabric_queue_adopt", "queuep"));
	return contd__fail_in(__func__, adopt(cq, attr, queuep));
}

int contd_fabric_queue_create(struct fid_domain *domain, const struct fi_cq_attr *cq,
			      const struct contd_fabric_attr *attr, struct contd_fabric_queue **queuep)
{
	struct fi_cq_attr wanted =
		cq ? *cq : (struct fi_cq_attr){.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC};
	struct contd_fabric_attr a = {.size = sizeof(a), .threading = FI_THREAD_SAFE};
	bool any = wanted.wait_obj == FI_WAIT_UNSPEC;
	struct fid_cq *made;
	int rc = contd__fabric_here(__func__);

	if (rc)
		return rc;
	if (!domain || !queuep)
		return contd__fail(-EINVAL, !domain ? CONTD_NULL("contd_fabric_queue_create", "domain")
						    : CONTD_NULL("contd_fabric_queue_create", "queuep"));
	if (attr && (rc = contd__sized_take(
			     &a, sizeof(a), attr,
			     CONTD_SIZED_TEXTS("contd_fabric_queue_create", "attr", "struct contd_fabric_attr"))) != 0)
		return rc;
	if (wanted.format == FI_CQ_FORMAT_UNSPEC)
		wanted.format = FI_CQ_FORMAT_DATA;
	if (any)
		wanted.wait_obj = a.fabric ? FI_WAIT_FD : FI_WAIT_NONE;
	if (any && !a.fabric)
		contd__fail(0, "contd_fabric_queue_create: no descriptor, because attr->fabric is not set, which "
			       "fi_trywait(3) needs");
	a.format = wanted.format;
	for (;;) {
		rc = fi_cq_open(domain, &wanted, &made, NULL);
		if (rc) {
			contd__fail(rc, "contd_fabric_queue_create: fi_cq_open refuses (FI_LOG_LEVEL=warn tells more)");
		} else {
			a.wait = wanted.wait_obj == FI_WAIT_FD ? FI_WAIT_FD : FI_WAIT_NONE;
			rc = adopt(made, &a, queuep);
			if (rc)
				fi_close(&made->fid);
		}
		/* udp;ofi_rxd (libfabric 1.17) opens one with a descriptor, and then has none. */
		if (!rc || !any || wanted.wait_obj != FI_WAIT_FD)
			break;
		wanted.wait_obj = FI_WAIT_NONE;
	}
	if (!rc)
		(*queuep)->own = true;
	return contd__fail_in(__func__, rc);
}

enum fi_wait_obj contd_fabric_queue_wait_object(const struct contd_fabric_queue *queue)
{
	return queue && queue->object.fd >= 0 ? FI_WAIT_FD : FI_WAIT_NONE;
}

struct fid_cq *contd_fabric_queue_cq(const struct contd_fabric_queue *queue)
{
	return queue ? queue->cq : NULL;
}

int contd_fabric_queue_stop(struct contd_fabric_queue *queue)
{
	int rc;

	if (!queue)
		return contd__fail(-EINVAL, "contd_fabric_queue_stop: queue must not be NULL");
	if (contd__load(&queue->stopped))
		return 0;
	rc = contd__fabric_object_close(&queue->object, __func__);
	if (rc)
		return rc;
	contd__store_seq(&queue->stopped, 1);
	fail_all(queue, -FI_ECANCELED, "contd does not read the completion queue any more");
	return 0;
}

int contd_fabric_queue_destroy(struct contd_fabric_queue *queue)
{
	int rc;

	if (!queue)
		return contd__fail(-EINVAL, "contd_fabric_queue_destroy: queue must not be NULL");
	rc = contd_fabric_queue_stop(queue);
	if (rc)
		return contd__fail_in(__func__, rc);
	contd__fabric_object_closed(&queue->object);
	if (queue->own && (rc = fi_close(&queue->cq->fid)) != 0)
		rc = contd__fail(rc,
				 "contd_fabric_queue_destroy: fi_close refuses; close endpoints before their queue");
	free_queue(queue);
	return rc;
}

uint32_t contd_fabric_queue_pending(const struct contd_fabric_queue *queue)
{
	return queue ? contd__load(queue->object.pending) - queue->always : 0;
}

/* --------------------------------------------------------------------------------------------------- operations --- */

/* All fields except the event. */
static void prepare(struct contd_fabric_queue *q, struct contd_fabric_op *op)
{
	op->queue = q;
	op->counter = NULL;
	op->threshold = 0;
	op->truncated = 0;
	op->status = 0;
	op->provider_error = 0;
	op->text = "";
}

static void prepare_event(struct contd_fabric_op *op)
{
	op->carried.group = NULL;
	contd_event_init(&op->event);
}

static int refuse_stopped(void)
{
	return contd__fail(
		-EPERM,
		"contd_fabric_begin: contd_fabric_queue_stop() was called for queue, or contd_fini() after it was "
		"opened: close it and open another one");
}

static int refuse_full(void)
{
	return contd__fail(
		-ENOSPC,
		"contd_fabric_begin: too many operations are under way in queue; make it with more attr->operations");
}

/* Before the operation is changed. */
static inline __attribute__((always_inline)) int may_begin(const struct contd_fabric_queue *q)
{
	if (__builtin_expect(contd__load(&q->stopped) || contd__fabric_outlived(&q->object), 0))
		return refuse_stopped();
	return __builtin_expect(contd__load(q->object.pending) < q->most, 1) ? 0 : refuse_full();
}

static inline __attribute__((always_inline)) int begin(struct contd_fabric_queue *q, uintptr_t key)
{
	CONTD_TESTPOINT("begin_checked");
	if (contd__load(q->object.pending) < q->most) {
		/* Count first: the thread that takes it out subtracts. */
		bool first = contd__add(q->object.pending, 1) == 0;

		if (__builtin_expect(contd__begun_add(&q->begun, key), 1)) {
			CONTD_TESTPOINT("begin_added");
			/* Dekker: added, then looked; contd_fabric_queue_stop() says that it has stopped, and then ends
			 * what is there. */
			if (__builtin_expect(contd__load_seq(&q->stopped), 0) && contd__begun_take(&q->begun, key)) {
				contd__fabric_ended(&q->object, 1);
				return refuse_stopped();
			}
			/* No descriptor tells of a queue that has failed. */
			if (__builtin_expect(first || contd__load(&q->failed), 0))
				contd__pending_sig();
			return 0;
		}
		contd__fabric_ended(&q->object, 1);
	}
	return refuse_full();
}

int contd_fabric_begin(struct contd_fabric_queue *queue, struct contd_fabric_op *op)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!queue || !op)
		return contd__fail(-EINVAL, !queue ? CONTD_NULL("contd_fabric_begin", "queue")
						   : CONTD_NULL("contd_fabric_begin", "op"));
	if ((rc = may_begin(queue)) != 0)
		return contd__fail_in(__func__, rc);
	prepare(queue, op);
	prepare_event(op);
	return contd__fail_in(__func__, begin(queue, (uintptr_t)op));
}

int contd_fabric_begin_continue(struct contd_fabric_queue *queue, struct contd_fabric_op *op, contd_callback *cb,
				void *data, struct contd_group *group)
{
	int rc;

	if (!contd__is_live())
		return contd__check_live();
	if (!queue || !op || !cb || !group)
		return contd__fail(-EINVAL, !queue ? CONTD_NULL("contd_fabric_begin_continue", "queue")
					    : !op  ? CONTD_NULL("contd_fabric_begin_continue", "op")
					    : !cb  ? CONTD_NULL("contd_fabric_begin_continue", "cb")
						   : CONTD_NULL("contd_fabric_begin_continue", "group"));
	if ((rc = may_begin(queue)) != 0)
		return contd__fail_in(__func__, rc);
	prepare(queue, op);
	op->carried.status = 0;
	rc = contd__carried_begin(&op->carried, cb, data, group);
	if (rc)
		return contd__fail_in(__func__, rc);
	rc = begin(queue, (uintptr_t)op);
	if (__builtin_expect(rc, 0))
		contd__carried_forget(&op->carried);
	return contd__fail_in(__func__, rc);
}

int contd_fabric_withdraw(struct contd_fabric_op *op, int status)
{
	struct contd_fabric_queue *q;

	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!op || status > 0)
		return contd__fail(-EINVAL, !op ? CONTD_NULL("contd_fabric_withdraw", "op")
						: "contd_fabric_withdraw: status must be 0 or negative");
	if (!op->queue && !op->counter)
		return contd__fail(-EINVAL,
				   "contd_fabric_withdraw: op was never begun; call contd_fabric_begin() first");
	/* Check this before touching the queue or counter, which may have gone. The event of a multi-receive buffer
	 * says nothing. */
	if (op->counter || !contd__load(&op->threshold) ? contd_event_is_complete(&op->event)
							: contd__load(&op->threshold) == OVER) {
		if (!op->counter && contd__load(&op->threshold))
			await_put((struct contd_fabric_many *)op);
		return contd__fail(-EALREADY, "contd_fabric_withdraw: op is complete already: nothing is left to do");
	}
	if (op->counter)
		return contd__fabric_counter_withdraw(op, status);
	q = op->queue;
	if (contd__begun_take(&q->begun, (uintptr_t)op)) {
		contd__fabric_fill(op, &(struct contd_fabric_entry){.source = FI_ADDR_NOTAVAIL, .status = status},
				   "withdrawn");
		complete(q, op);
		return 0;
	}
	if (contd__begun_take(&q->begun, (uintptr_t)op | MANY)) {
		struct contd_fabric_many *m = (struct contd_fabric_many *)op;

		contd__store(&op->threshold, OVER);
		contd__fabric_ended(&q->object, 1);
		/* Another thread may be putting something in: the buffer is the caller's when that look is over. */
		contd__fabric_await_look(&q->object);
		contd__or(&m->armed, PUTTING);
		end_many(q, m, status, "withdrawn");
		return 0;
	}
	return contd__fail(-EALREADY, "contd_fabric_withdraw: op is complete already: nothing is left to do");
}

/* ---------------------------------------------------------------------------------------- multi-receive buffers --- */

int contd_fabric_many_begin(struct contd_fabric_queue *queue, struct contd_fabric_many *many,
			    struct contd_fabric_entry *entry, uint32_t room)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!queue || !many || !entry || !room)
		return contd__fail(-EINVAL, !queue   ? CONTD_NULL("contd_fabric_many_begin", "queue")
					    : !many  ? CONTD_NULL("contd_fabric_many_begin", "many")
					    : !entry ? CONTD_NULL("contd_fabric_many_begin", "entry")
						     : "contd_fabric_many_begin: room must not be 0");
	if ((rc = may_begin(queue)) != 0)
		return contd__fail_in(__func__, rc);
	prepare(queue, &many->op);
	prepare_event(&many->op);
	many->op.threshold = UNDER_WAY;
	many->entry = entry;
	many->room = room;
	many->put = many->got = 0;
	contd__store(&many->armed, 0);
	return contd__fail_in(__func__, begin(queue, (uintptr_t)many | MANY));
}

int contd_fabric_many_continue(struct contd_fabric_many *many, contd_callback *cb, void *data,
			       struct contd_group *group)
{
	int rc;

	if (!many)
		return contd__fail(-EINVAL, "contd_fabric_many_continue: many must not be NULL");
	/* An end may follow the last entry, if the buffer was withdrawn as that came. */
	if ((contd__load(&many->armed) & (TAKEN | ENDED)) == TAKEN)
		return contd__fail(-EALREADY, "contd_fabric_many_continue: the buffer's last entry has been taken; "
					      "contd_fabric_many_begin() begins it again");
	/* One that is registered is refused there: its event is not complete. */
	if (contd_event_is_complete(&many->op.event))
		contd_event_init(&many->op.event);
	rc = contd_fabric_continue(&many->op, cb, data, group);
	if (rc)
		return contd__fail_in(__func__, rc);
	/* Say that it waits, then look. Partner: put(). */
	contd__or(&many->armed, WAITS);
	if ((contd__load_seq(&many->put) != contd__load(&many->got) || contd__load_seq(&many->armed) & ENDED) &&
	    contd__and(&many->armed, ~WAITS) & WAITS)
		contd_event_complete(&many->op.event, 0);
	return 0;
}

/* Its status says what ended it; the flag that it has ended, also with 0. */
static int take_end(struct contd_fabric_many *many, struct contd_fabric_entry *entry)
{
	contd__or(&many->armed, TAKEN);
	contd__and(&many->armed, ~ENDED);
	*entry = (struct contd_fabric_entry){
		.context = many, .flags = FI_MULTI_RECV, .source = FI_ADDR_NOTAVAIL, .status = many->op.status};
	if (entry->status)
		snprintf(entry->text, sizeof(entry->text), "%s", many->op.text);
	await_put(many);
	return 1;
}

int contd_fabric_many_take(struct contd_fabric_many *many, struct contd_fabric_entry *entry)
{
	uint32_t at;

	if (!many || !entry)
		return contd__fail(-EINVAL, !many ? CONTD_NULL("contd_fabric_many_take", "many")
						  : CONTD_NULL("contd_fabric_many_take", "entry"));
	at = contd__load(&many->got);
	/* Acquire: pairs with the store in put(). */
	if (contd__load_acquire(&many->put) == at && !(contd__load_seq(&many->armed) & ENDED))
		return 0;
	/* Once more: what was put before its end comes before it. */
	if (contd__load_acquire(&many->put) == at)
		return take_end(many, entry);
	*entry = many->entry[at % many->room];
	if (is_last(entry))
		contd__or(&many->armed, TAKEN);
	contd__store_seq(&many->got, at + 1);
	/* Now there is room for what was kept back, and no descriptor tells of that. Partner: deliver_many(). */
	if (contd__load_seq(&many->armed) & FULL && contd__and(&many->armed, ~FULL) & FULL)
		contd__pending_sig();
	/* It is empty now. A continuation that is registered next must not be told of what was taken, and after the
	 * last entry the buffer may be freed. */
	if (contd__load_seq(&many->put) == at + 1)
		await_put(many);
	return 1;
}
