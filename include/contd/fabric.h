/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd-fabric: continuations on libfabric operations. contd reads the completion queue, and an operation that
 * completes completes a contd_event: whatever takes events takes fabric operations, alone or together with others.
 *
 *	struct contd_fabric_op op;
 *
 *	contd_fabric_begin_continue(queue, &op, on_message, data, group);
 *	rc = fi_recv(endpoint, buffer, size, NULL, FI_ADDR_UNSPEC, &op);
 *	if (rc && rc != -FI_EAGAIN)
 *		contd_fabric_withdraw(&op, rc);
 *
 * Programs that use endpoints include <rdma/fi_endpoint.h>, too. Call contd_init() first. Calls return 0 or a
 * negative errno value; contd_error_text() has the text. The outcome of an operation is in its `status`: 0 or a
 * negative FI_E* (fi_errno(3)). Those below 256 are errno values.
 */
#ifndef CONTD_FABRIC_H
#define CONTD_FABRIC_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <contd/contd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------- queues --- */

/* A completion queue that only contd reads; a counter that it looks at. */
struct contd_fabric_queue;
struct contd_fabric_counter;

#define CONTD_FABRIC_TEXT 128 /* bytes of an error's text, the terminating 0 included; longer ones are cut */

/* One completion, fi_cq(3). Fields that the queue's format does not have are 0. */
struct contd_fabric_entry {
	void *context;  /* what the operation was given */
	uint64_t flags; /* FI_SEND, FI_RECV, FI_MULTI_RECV ... */
	size_t length;  /* bytes received */
	void *buffer;   /* of a multi-receive buffer: where the message is */
	uint64_t data;  /* remote completion data */
	uint64_t tag;
	fi_addr_t source; /* with CONTD_FABRIC_SOURCE, else FI_ADDR_NOTAVAIL */
	size_t truncated; /* bytes that did not fit: with -FI_ETRUNC */
	int32_t status;   /* 0 or -FI_E* */
	int32_t provider_error;
	char text[CONTD_FABRIC_TEXT]; /* what fi_strerror(3) and the provider say of the error; "" where status is 0 */
};

/*
 * A completion that is none of contd's operations, from a queue that others use as well; runs where contd reads it: in
 * contd_poll() and its kin, in a compute region's handler, or on the daemon thread. It must not block, and may start
 * operations.
 */
typedef void contd_fabric_foreign(const struct contd_fabric_entry *entry, void *data);

enum contd_fabric_flags {
	CONTD_FABRIC_SOURCE = 1, /* read with fi_cq_readfrom(3): the domain has FI_SOURCE */
	/*
	 * Look even while no operation of contd's is under way: for foreign ones, which it can't count, and for
	 * providers whose peers wait until this side reads its queue. (udp;ofi_rxd acknowledges messages there.)
	 */
	CONTD_FABRIC_ALWAYS = 2,
};

struct contd_fabric_attr {
	size_t size;              /* sizeof(struct contd_fabric_attr) */
	enum fi_cq_format format; /* of the queue; FI_CQ_FORMAT_UNSPEC is not allowed */
	/* Of the queue. FI_WAIT_FD: agent "block" sleeps on its descriptor; anything else: it looks at intervals. */
	enum fi_wait_obj wait;
	struct fid_fabric *fabric; /* for fi_trywait(3); with FI_WAIT_FD it must not be NULL */
	/*
	 * The domain's, fi_domain(3). FI_THREAD_SAFE: any thread reads. With the others, 0 (FI_THREAD_UNSPEC) too,
	 * there are two ways. With mutex NULL only the thread that adopts or creates the queue reads (it polls, or
	 * computes in a region), and no thread after it has ended. Otherwise the program holds the mutex around its own
	 * calls of libfabric, and of contd_fabric_queue_adopt() and _create(), and must not hold it in _stop(), which
	 * comes before _destroy(); contd reads on any thread that gets it without waiting.
	 */
	enum fi_threading threading;
	pthread_mutex_t *mutex;        /* may be NULL */
	uint32_t flags;                /* enum contd_fabric_flags */
	uint32_t operations;           /* under way at a time, 1 to 2^20; 0: 4096 */
	contd_fabric_foreign *foreign; /* NULL: there are none, and one that comes is dropped */
	void *data;                    /* for it */
};

/*
 * Have contd read a queue of the caller's, which must be adopted once only. *attr is copied; its `fabric` and `mutex`
 * stay in place until the end. The caller still owns the queue, and must not read it until contd_fabric_queue_destroy()
 * has returned. Call that before contd_fini(). After contd_fini() contd no longer reads the queue, and
 * contd_fabric_begin() is refused. contd_fabric_queue_destroy() then completes the operations that were under way with
 * -FI_ECANCELED, and their continuations never run. A later contd_init() does not change that.
 * Context: any thread, in a callback; may block.
 * Errors:
 *     -EINVAL, -E2BIG  a pointer is NULL, or attr is wrong
 *     -ENOMEM          no memory
 *     -EAGAIN          there are 256 queues and counters of this kind: that any thread reads, or that one thread reads
 *     -EPERM           contd is not initialized, or in contd's handler
 *     other            with FI_WAIT_FD the errors of FI_GETWAIT, fi_cq(3)
 */
CONTD_API int contd_fabric_queue_adopt(struct fid_cq *cq, const struct contd_fabric_attr *attr,
				       struct contd_fabric_queue **queuep) CONTD_NOEXCEPT;

/*
 * Open a queue for contd: `cq` as for fi_cq_open(3) (NULL: data format, the provider's size, FI_WAIT_UNSPEC), `attr` as
 * above (NULL: FI_THREAD_SAFE), but that format and wait are the queue's. FI_WAIT_UNSPEC in cq->wait_obj: the queue
 * gets a descriptor if attr->fabric is set and the provider can do that, otherwise no wait object;
 * contd_fabric_queue_wait_object() says which, and contd_error_text() why there is none. A zeroed cq asks for none
 * (FI_WAIT_NONE), and for data format.
 * Context: as contd_fabric_queue_adopt(). Errors: as contd_fabric_queue_adopt(), and what fi_cq_open(3) says.
 */
CONTD_API int contd_fabric_queue_create(struct fid_domain *domain, const struct fi_cq_attr *cq,
					const struct contd_fabric_attr *attr,
					struct contd_fabric_queue **queuep) CONTD_NOEXCEPT;

/*
 * How agent "block" waits for this queue. FI_WAIT_FD: on the queue's descriptor. FI_WAIT_NONE: the queue has none, and
 * the agent looks at intervals, as agent "tick" does. Context: any thread.
 */
CONTD_API enum fi_wait_obj contd_fabric_queue_wait_object(const struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/* The queue itself, for fi_ep_bind(3). NULL for NULL. Context: any thread. */
CONTD_API struct fid_cq *contd_fabric_queue_cq(const struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/*
 * Stop reading the queue. If other threads (a daemon) may be reading it, call this before endpoints that are bound to
 * the queue are closed: with some providers (tcp of libfabric 1.17) fi_close(3) of an endpoint crashes beside
 * fi_cq_read(3). Operations under way complete with -FI_ECANCELED: their continuations become ready, as by
 * contd_event_complete(). libfabric does not know of that, so their buffers and *op stay in place until the endpoint is
 * closed. Later calls of contd_fabric_begin() are refused; another thread may be in it during this call. A second call
 * does nothing. It works after contd_fini(), too.
 * Context: any thread, in a callback, but not in that queue's `foreign`; blocks while another thread reads. Errors:
 * -EINVAL (NULL), -EPERM (in contd's handler), -EDEADLK (in `foreign`), -ECHILD (after fork).
 */
CONTD_API int contd_fabric_queue_stop(struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/*
 * contd_fabric_queue_stop(), and the end of the handle. A queue that contd has opened is closed: close the endpoints
 * that are bound to it before. If fi_close(3) fails, the call returns its error, and the handle is gone. Then the
 * fid_cq is the caller's: get it from contd_fabric_queue_cq() before this call.
 * Context: as contd_fabric_queue_stop(). Errors: as contd_fabric_queue_stop(), and what fi_close(3) says.
 */
CONTD_API int contd_fabric_queue_destroy(struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/* How many operations are under way at this moment. Context: any thread, handler. */
CONTD_API uint32_t contd_fabric_queue_pending(const struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------- operations --- */

/*
 * The caller's, in place from contd_fabric_begin() until it is complete and libfabric has done with it. It begins with
 * the context that libfabric may write to, so that the operation itself is the context argument of fi_send(3) and all
 * the others.
 */
struct contd_fabric_op {
	struct fi_context2 context;
	union {
		struct contd_event event;     /* completes with `status` */
		struct contd_carried carried; /* contd's */
	};
	struct contd_fabric_queue *queue;
	/* When it is complete: as in struct contd_fabric_entry. */
	uint64_t flags;
	size_t length;
	void *buffer;
	uint64_t data;
	uint64_t tag;
	fi_addr_t source;
	size_t truncated;
	int32_t status;
	int32_t provider_error;
	const char *text; /* of the error, "" without one, "withdrawn" after contd_fabric_withdraw(); stays valid */
	/* contd's, of a counter */
	struct contd_fabric_counter *counter;
	uint64_t threshold;
	struct contd_fabric_op *next;
};

/*
 * Make *op pending, before the call of libfabric's that starts it. *op need not be initialized. It must not be under
 * way: contd does not notice that. One that never completes (the call failed, FI_INJECT or FI_SELECTIVE_COMPLETION
 * suppress its completion, the endpoint was closed) is given back by contd_fabric_withdraw(). After -FI_EAGAIN it stays
 * begun until the call has succeeded: libfabric makes progress only while something is under way. If the queue has
 * failed (for example by an overrun), *op may complete before libfabric's call has begun: so a continuation must not
 * free *op before that call has returned. contd alone completes op->event. After an error *op is not under way: do not
 * withdraw it.
 * Context: any thread, in a callback. Errors: -EINVAL; -EPERM (contd is not initialized, contd_fabric_queue_stop() was
 * called for the queue, or contd_fini() after it was opened); -ENOSPC (attr.operations are under way already); -ECHILD.
 */
CONTD_API int contd_fabric_begin(struct contd_fabric_queue *queue, struct contd_fabric_op *op) CONTD_NOEXCEPT;

/*
 * contd_fabric_begin() and contd_fabric_continue() in one, for less: the operation itself carries its continuation,
 * which takes no place in the group's table unless it must wait. It has no handle for contd_cancel(), but may be
 * withdrawn. Nothing else may be attached to op->event. Continuations that one look completes may run one after the
 * other on the thread that looked, and no other thread takes them over. So a callback must not wait for another one
 * that may be of the same look except in contd_group_wait(), contd_group_test() or contd_poll(). The group counts such
 * a series as outstanding until its last one has run. An operation is complete when its callback begins, and may be
 * started again there.
 * Context: any thread, in a callback. Errors: as contd_fabric_begin() and contd_event_continue(), but not -EBUSY.
 */
CONTD_API int contd_fabric_begin_continue(struct contd_fabric_queue *queue, struct contd_fabric_op *op,
					  contd_callback *cb, void *data, struct contd_group *group) CONTD_NOEXCEPT;

/*
 * Complete an operation that the queue will not tell of, with this status (0 or negative). It must have been begun.
 * This does not cancel it: fi_cancel(3) does, and then the queue tells. While libfabric may still have it, *op and its
 * buffer stay in place, and it is not begun again. Its continuation becomes ready, as by contd_event_complete(). The
 * same holds for a multi-receive buffer's continuation, and the buffer stays in place until that has run. A completion
 * that libfabric reports later goes to attr.foreign. Not at the same time as contd_fabric_queue_destroy() of its queue.
 * Context: any thread, in a callback. Errors: -EINVAL (NULL; never begun; a positive status), -EALREADY (it is
 * complete), -EPERM (contd is not initialized; a counter's operation in contd's handler), -ECHILD.
 */
CONTD_API int contd_fabric_withdraw(struct contd_fabric_op *op, int status) CONTD_NOEXCEPT;

/* contd_event_continue() on this operation alone, which must have been begun; op must not be NULL. Context and errors:
 * as contd_event_continue(). */
static inline int contd_fabric_continue(struct contd_fabric_op *op, contd_callback *cb, void *data,
					struct contd_group *group)
{
	struct contd_event *event = &op->event;

	int rc = contd_event_continue(1, &event, cb, data, group, NULL);

	return rc ? contd__fails("contd_fabric_continue", rc, NULL) : 0;
}

/* ----------------------------------------------------------------------------------------- many from one buffer --- */

/*
 * A multi-receive buffer (FI_MULTI_RECV, fi_msg(3)): one operation with many completions. The last one has
 * FI_MULTI_RECV in its flags, or an error other than -FI_ETRUNC as its status. Completions wait here, at most
 * `room`; while that is full contd leaves the queue alone. If the queue is stopped or closed or has failed, or the
 * buffer is withdrawn, one more entry with FI_MULTI_RECV and the status of that follows those that are there; it
 * needs no room. Messages that had no room by then are lost. Prepared by contd_fabric_many_begin(); `op` is the
 * context argument. Use only contd_fabric_many_continue() and contd_fabric_many_take() on it, and
 * contd_fabric_withdraw() on `op`: its event and other fields say nothing. libfabric gives the buffer back when
 * less than FI_OPT_MIN_MULTI_RECV bytes of it are free (fi_endpoint(3)). So make it several times as large as
 * that. In place until contd_fabric_many_take() has given the last entry while no continuation is registered, or
 * contd_fabric_queue_destroy() has returned.
 */
struct contd_fabric_many {
	struct contd_fabric_op op;
	struct contd_fabric_entry *entry; /* room of them: the caller's memory */
	uint32_t room;
	uint32_t put, got; /* contd's */
	uint32_t armed;
};

/* Prepare *many and make it pending, as contd_fabric_begin() does with an operation. Context: as contd_fabric_begin().
 * Errors: as contd_fabric_begin(); -EINVAL also if room is 0. */
CONTD_API int contd_fabric_many_begin(struct contd_fabric_queue *queue, struct contd_fabric_many *many,
				      struct contd_fabric_entry *entry, uint32_t room) CONTD_NOEXCEPT;

/*
 * Run cb(0, data) once, as soon as there is something to take. If there is something now, it becomes ready in this
 * call, as by contd_event_complete(). After taking, register again if the last entry has not come.
 * contd_fabric_many_continue() and contd_fabric_many_take() of one buffer: one thread at a time.
 * Context: any thread, in a callback. Errors: as contd_event_continue(), of which -EBUSY means that a continuation is
 * registered and has not run yet; -EALREADY (the last entry has been taken).
 */
CONTD_API int contd_fabric_many_continue(struct contd_fabric_many *many, contd_callback *cb, void *data,
					 struct contd_group *group) CONTD_NOEXCEPT;

/* Take the oldest entry. Returns 1, or 0 if there is none now. One thread at a time for each buffer. Context: any
 * thread, in a callback; works after contd_fini(), too. Errors: -EINVAL (NULL). */
CONTD_API int contd_fabric_many_take(struct contd_fabric_many *many, struct contd_fabric_entry *entry) CONTD_NOEXCEPT;

/* ----------------------------------------------------------------------------------------------------- counters --- */

/*
 * Have contd look at a counter, fi_cntr(3). Of attr `wait`, `fabric`, `threading` and `mutex` matter, and are those of
 * the counter. The counter stays the caller's: the program may read it, and closes it after
 * contd_fabric_counter_destroy(). Context: any thread, in a callback; may block. Errors: as contd_fabric_queue_adopt().
 */
CONTD_API int contd_fabric_counter_adopt(struct fid_cntr *cntr, const struct contd_fabric_attr *attr,
					 struct contd_fabric_counter **counterp) CONTD_NOEXCEPT;

/* Stop looking at a counter. Operations that wait for it complete with -FI_ECANCELED. Context and errors: as
 * contd_fabric_queue_destroy(). */
CONTD_API int contd_fabric_counter_destroy(struct contd_fabric_counter *counter) CONTD_NOEXCEPT;

/*
 * *op completes with 0 when a poll finds that the counter's value is `threshold` or more. If its error value goes up
 * first, after this call, *op completes with -FI_EIO, and op->data is that error value. (If this call cannot read the
 * error value, because the program holds attr.mutex or another thread owns the counter, errors since contd's last look
 * count too.) Only a completion queue tells which operation failed.
 * Context: any thread, in a callback. Errors: -EINVAL; -EPERM (in contd's handler, contd is not initialized, or
 * contd_fini() was called after the counter was adopted); -ECHILD.
 */
CONTD_API int contd_fabric_counter_begin(struct contd_fabric_counter *counter, uint64_t threshold,
					 struct contd_fabric_op *op) CONTD_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
