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
 * Call contd_init() first. Calls return 0 or a negative errno value; contd_error_text() has the text. The outcome of an
 * operation is in its `status`: 0 or a negative FI_E* (fi_errno(3)). Those below 256 are errno values.
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
	/* Of the queue; with FI_WAIT_FD and `fabric` agent "block" sleeps, else it looks in turns. */
	enum fi_wait_obj wait;
	struct fid_fabric *fabric; /* for fi_trywait(3); may be NULL */
	/*
	 * The domain's, fi_domain(3). FI_THREAD_SAFE: any thread reads. With the others there are two ways. With
	 * mutex NULL only the thread that calls contd_fabric_queue_adopt() reads (it polls, or computes in a region).
	 * Otherwise the program holds the mutex around its own calls, and contd reads on any thread that gets it
	 * without waiting.
	 */
	enum fi_threading threading;
	pthread_mutex_t *mutex;        /* may be NULL */
	uint32_t flags;                /* enum contd_fabric_flags */
	uint32_t operations;           /* under way at a time, 1 to 2^20; 0: 4096 */
	contd_fabric_foreign *foreign; /* NULL: there are none, and one that comes is dropped */
	void *data;                    /* for it */
};

/*
 * Have contd read a queue of the caller's. The caller still owns the queue, and must not read it until
 * contd_fabric_queue_destroy() has returned. Call that before contd_fini(). After contd_fini() contd no longer reads
 * the queue, and contd_fabric_begin() is refused. contd_fabric_queue_destroy() then completes the operations that were
 * under way with -FI_ECANCELED, and their continuations never run. A later contd_init() does not change that.
 * Context: any thread, not in a handler; may block. Errors: -EINVAL, -ENOMEM, -EAGAIN (256 queues and counters are
 * there), -EPERM (contd is not initialized, or in a handler), -ECHILD; with FI_WAIT_FD what FI_GETWAIT says (fi_cq(3)).
 */
CONTD_API int contd_fabric_queue_adopt(struct fid_cq *cq, const struct contd_fabric_attr *attr,
				       struct contd_fabric_queue **queuep) CONTD_NOEXCEPT;

/*
 * Open a queue for contd: `cq` as for fi_cq_open(3) (NULL: data format, the provider's size, FI_WAIT_UNSPEC), `attr` as
 * above (NULL: FI_THREAD_SAFE), but that format and wait are the queue's. With FI_WAIT_UNSPEC in cq->wait_obj the queue
 * has a descriptor, if attr->fabric is set and the provider can do that, and no wait object else:
 * contd_fabric_queue_wait_object() says which, and contd_error_text() why there is none. A zeroed cq asks for none
 * (FI_WAIT_NONE).
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
 * fi_cq_read(3). Operations under way complete with -FI_ECANCELED; contd_fabric_begin() is refused from here on. A
 * second call does nothing. Context: any thread, not in a handler, not in a callback of that queue's `foreign`; blocks
 * while another thread reads. Errors: -EINVAL, -EPERM, -EDEADLK; -ECHILD (after fork).
 */
CONTD_API int contd_fabric_queue_stop(struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/*
 * contd_fabric_queue_stop(), and the queue's end; one that contd has opened is closed (endpoints that are bound to it
 * before that: fi_close(3); where it refuses, the queue stays open, and the caller's).
 * Context: as contd_fabric_queue_stop(). Errors: as contd_fabric_queue_stop(), and what fi_close(3) says.
 */
CONTD_API int contd_fabric_queue_destroy(struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/* How many operations are under way at this moment. Context: any thread, handler. */
CONTD_API uint32_t contd_fabric_queue_pending(const struct contd_fabric_queue *queue) CONTD_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------- operations --- */

/*
 * The caller's, in place from contd_fabric_begin() until it is complete. It begins with the context that libfabric may
 * write to, so that the operation itself is the context argument of fi_send(3) and all the others.
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
 * Make *op pending: before the call of libfabric's that starts it. One that never completes (the call failed, FI_INJECT
 * or FI_SELECTIVE_COMPLETION suppress its completion, the endpoint was closed) is given back by
 * contd_fabric_withdraw(). After -FI_EAGAIN it stays begun until the call has succeeded: libfabric makes progress only
 * while something is under way. If the queue has failed (for example by an overrun), *op may complete before
 * libfabric's call has begun: so a continuation must not free *op before that call has returned.
 * Context: any thread, in a callback. Errors: -EINVAL; -EPERM (contd is not initialized, contd_fabric_queue_stop() was
 * called for the queue, or contd_fini() after it was opened); -ENOSPC (more than attr.operations are under way);
 * -ECHILD.
 */
CONTD_API int contd_fabric_begin(struct contd_fabric_queue *queue, struct contd_fabric_op *op) CONTD_NOEXCEPT;

/*
 * contd_fabric_begin() and contd_fabric_continue() in one, for less: the operation itself carries its continuation,
 * which takes no place in the group's table unless it must wait. Nothing else may be attached to op->event.
 * Continuations that one look completes may run one after the other on the thread that looked, while others, idle
 * perhaps, can't: a callback waits for another one only in contd_group_wait(), contd_group_test() or contd_poll(), not
 * by other means. All of such a series count as run in the group once the last one has run. An operation is complete
 * when its callback begins, and may be started again there. Context: any thread, in a callback. Errors: as
 * contd_fabric_begin() and contd_event_continue(), but not -EBUSY.
 */
CONTD_API int contd_fabric_begin_continue(struct contd_fabric_queue *queue, struct contd_fabric_op *op,
					  contd_callback *cb, void *data, struct contd_group *group) CONTD_NOEXCEPT;

/*
 * The queue will not tell of it: complete it with this status (0 or negative). If a continuation waits for a
 * multi-receive buffer, it runs, and the buffer stays in place until then. Not at the same time as
 * contd_fabric_queue_destroy() of its queue. Context: any thread, in a callback; an operation that waits for a counter
 * not in a handler outside regions. Errors: -EINVAL, -EALREADY (it is complete), -EPERM (there, or contd is not
 * initialized), -ECHILD.
 */
CONTD_API int contd_fabric_withdraw(struct contd_fabric_op *op, int status) CONTD_NOEXCEPT;

/* contd_event_continue() on this operation alone. Context: as contd_event_continue(). Errors: the same. */
static inline int contd_fabric_continue(struct contd_fabric_op *op, contd_callback *cb, void *data,
					struct contd_group *group)
{
	struct contd_event *event = &op->event;

	return contd_event_continue(1, &event, cb, data, group, NULL);
}

/* ----------------------------------------------------------------------------------------- many from one buffer --- */

/*
 * A multi-receive buffer (FI_MULTI_RECV, fi_msg(3)): one operation with many completions. The last one has
 * FI_MULTI_RECV in its flags, or an error other than -FI_ETRUNC as its status. Completions wait here, at most `room`;
 * while that is full contd leaves the queue alone. If the queue is stopped or closed or has failed, or the buffer is
 * withdrawn, the last entry has FI_MULTI_RECV and the status of that, even if there is no room. Messages that had no
 * room by then are lost. Prepared by contd_fabric_many_begin(); `op` is the context argument. In place, like an
 * operation, until the last has been taken in a continuation of contd_fabric_many_continue(), or
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
 * Run cb(0, data) once, as soon as there is something to take: now, perhaps. Register again after taking. One thread at
 * a time for each buffer. Context: any thread, in a callback. Errors: as contd_event_continue(), of which -EBUSY means
 * that a continuation is registered and has not run yet.
 */
CONTD_API int contd_fabric_many_continue(struct contd_fabric_many *many, contd_callback *cb, void *data,
					 struct contd_group *group) CONTD_NOEXCEPT;

/* Take the oldest entry. Returns 1, or 0 if there is none now. One thread at a time for each buffer. Context: any
 * thread, in a callback. */
CONTD_API int contd_fabric_many_take(struct contd_fabric_many *many, struct contd_fabric_entry *entry) CONTD_NOEXCEPT;

/* ----------------------------------------------------------------------------------------------------- counters --- */

/*
 * Have contd look at a counter, fi_cntr(3). Of attr `wait`, `fabric`, `threading` and `mutex` matter, and are those of
 * the counter. The counter stays the caller's. Context: any thread, not in a handler; may block. Errors: as
 * contd_fabric_queue_adopt().
 */
CONTD_API int contd_fabric_counter_adopt(struct fid_cntr *cntr, const struct contd_fabric_attr *attr,
					 struct contd_fabric_counter **counterp) CONTD_NOEXCEPT;

/* Stop looking at a counter. Operations that wait for it complete with -FI_ECANCELED. Context and errors: as
 * contd_fabric_queue_destroy(). */
CONTD_API int contd_fabric_counter_destroy(struct contd_fabric_counter *counter) CONTD_NOEXCEPT;

/*
 * *op completes when the counter's value is `threshold` or more: with 0. When its error value goes up before that, but
 * after this call, with -FI_EIO, and op->data is that error value. Only a completion queue tells which operation
 * failed.
 * Context: any thread, in a callback, not in a handler outside regions. Errors: -EINVAL; -EPERM (there, contd is not
 * initialized, or contd_fini() was called after the counter was adopted); -ECHILD.
 */
CONTD_API int contd_fabric_counter_begin(struct contd_fabric_counter *counter, uint64_t threshold,
					 struct contd_fabric_op *op) CONTD_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
