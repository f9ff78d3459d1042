/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An executor on libuv: continuations become work of libuv's threads, or run on the loop's thread. Header only; compile
 * with pkg-config --cflags --libs contd libuv. The tags of contexts are those of contd/contd.h; "loop" means the loop's
 * thread.
 *
 * Only the loop's thread may call uv_queue_work(). Any thread and signal handlers may call uv_async_send(). So this is
 * a pull executor. contd tells the loop that there is work, and the loop queues as many pieces as libuv has threads. A
 * thread that has run a piece goes on for a while with other ready work, highest priority first. Then other users of
 * libuv's threads (files, names) have their turn. So work of higher priority waits only for work that already runs.
 *
 * Work reaches the threads only while the loop runs. contd_group_wait() for a group of this executor never returns on
 * the loop's thread. Let the last continuation tell the loop instead.
 */
#ifndef CONTD_EXECUTOR_LIBUV_H
#define CONTD_EXECUTOR_LIBUV_H

#include <contd/executor.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

enum contd_executor_uv_flags {
	CONTD_EXECUTOR_UV_LOOP =
		1, /* run on the loop's thread, CONTD_EXECUTOR_UV_TURN at a time, instead of libuv's threads */
	CONTD_EXECUTOR_UV_KEEP =
		2 /* the open executor keeps the loop alive; without this flag only work on libuv's threads does */
};

/* So many pieces run in one turn of the loop, or in one uv_work_t. Then other users of libuv have their turn. */
#define CONTD_EXECUTOR_UV_TURN 32

/* Nanoseconds that closing waits for threads that may still be returning from the last continuation's completion. */
#define CONTD_EXECUTOR_UV_PATIENCE 100000000

struct contd_executor_uv;

/* status: 0, or the error of contd_executor_destroy(). After an error the executor is open as before. */
typedef void contd_executor_uv_closed(struct contd_executor_uv *uv, int status);

struct contd__uv_piece {
	uv_work_t request;
	struct contd_executor_uv *uv;
	struct contd_work *work;
	struct contd__uv_piece *next;
};

/* The memory is the program's, from contd_executor_uv_init() until closed() is called with 0. Only the loop's thread
 * changes it. */
struct contd_executor_uv {
	struct contd_executor *executor; /* for contd_group_set_executor() and contd_task_init() */
	void *data;                      /* the program's */
	uv_async_t async;                /* contd's, from here on */
	int flags;
	int threads; /* most pieces that may be queued with libuv */
	int queued;  /* pieces that are queued now */
	uv_thread_t loop_thread;
	struct contd__uv_piece *unused;
	contd_executor_uv_closed *closed; /* not NULL: the executor is closing */
	uint64_t since;
};

static inline void contd__uv_turn(struct contd_executor_uv *uv);

static inline void contd__uv_notify(void *uv)
{
	uv_async_send(&((struct contd_executor_uv *)uv)->async);
}

/* Runs pieces one by one, so that each time the highest priority comes first. Returns 0 if nothing is left. */
static inline int contd__uv_run(struct contd_executor_uv *uv, int most)
{
	while (most && contd_executor_run(uv->executor, 1, 0) == 1)
		most--;
	return most == 0;
}

/* On one of libuv's threads. */
static inline void contd__uv_work(uv_work_t *request)
{
	struct contd__uv_piece *piece = (struct contd__uv_piece *)request->data;

	contd_work_run(piece->work);
	contd__uv_run(piece->uv, CONTD_EXECUTOR_UV_TURN - 1);
}

static inline void contd__uv_after_work(uv_work_t *request, int status)
{
	struct contd__uv_piece *piece = (struct contd__uv_piece *)request->data;
	struct contd_executor_uv *uv = piece->uv;

	(void)status; /* this header never calls uv_cancel() */
	piece->next = uv->unused;
	uv->unused = piece;
	uv->queued--;
	contd__uv_turn(uv);
}

static inline void contd__uv_closed(uv_handle_t *handle)
{
	struct contd_executor_uv *uv = (struct contd_executor_uv *)handle->data;

	uv->closed(uv, 0);
}

/* On the loop's thread, when all pieces have come back: libuv's threads do not touch the executor any more. */
static inline void contd__uv_close(struct contd_executor_uv *uv)
{
	contd_executor_uv_closed *closed = uv->closed;
	struct contd__uv_piece *piece;
	int r = contd_executor_destroy(uv->executor);

	if (r == -EBUSY && uv_hrtime() - uv->since < CONTD_EXECUTOR_UV_PATIENCE) {
		sched_yield();
		uv_async_send(&uv->async); /* try again in the loop's next turn */
		return;
	}
	if (r) {
		uv->closed = NULL;
		if (!(uv->flags & CONTD_EXECUTOR_UV_KEEP))
			uv_unref((uv_handle_t *)&uv->async);
		uv_async_send(&uv->async); /* for work that came in between */
		closed(uv, r);
		return;
	}
	while ((piece = uv->unused)) {
		uv->unused = piece->next;
		free(piece);
	}
	uv_close((uv_handle_t *)&uv->async, contd__uv_closed);
}

static inline void contd__uv_turn(struct contd_executor_uv *uv)
{
	struct contd__uv_piece *piece;
	struct contd_work *work;

	if (uv->closed) {
		if (uv->queued == 0 && !uv_is_closing((uv_handle_t *)&uv->async))
			contd__uv_close(uv);
		return;
	}
	if (uv->flags & CONTD_EXECUTOR_UV_LOOP) {
		if (contd__uv_run(uv, CONTD_EXECUTOR_UV_TURN))
			uv_async_send(&uv->async); /* there may be more */
		return;
	}
	while (uv->queued < uv->threads && (work = contd_executor_take(uv->executor))) {
		piece = uv->unused;
		if (piece)
			uv->unused = piece->next;
		else
			piece = (struct contd__uv_piece *)malloc(sizeof(*piece));
		if (!piece) { /* run it here, late, because there is no memory */
			contd_work_run(work);
			continue;
		}
		piece->request.data = piece;
		piece->uv = uv;
		piece->work = work;
		uv->queued++;
		uv_queue_work(uv->async.loop, &piece->request, contd__uv_work, contd__uv_after_work);
	}
}

static inline void contd__uv_told(uv_async_t *async)
{
	contd__uv_turn((struct contd_executor_uv *)async->data);
}

/* A thread that drains waits while the loop runs. On the loop's thread the loop cannot run, so the ready work runs in
 * this call. */
static inline void contd__uv_drain(void *data)
{
	struct contd_executor_uv *uv = (struct contd_executor_uv *)data;
	uv_thread_t self = uv_thread_self();

	if (uv_thread_equal(&self, &uv->loop_thread))
		contd_executor_run(uv->executor, 0, 0);
	else
		uv_async_send(&uv->async);
}

static inline int contd__uv_describe(void *data, char *text, size_t bytes)
{
	struct contd_executor_uv *uv = (struct contd_executor_uv *)data;

	if (uv->flags & CONTD_EXECUTOR_UV_LOOP)
		return snprintf(text, bytes, "libuv, on the loop's thread");
	return snprintf(text, bytes, "libuv, %d threads", uv->threads);
}

/*
 * Make an executor on the loop. threads: how many of libuv's threads it may use at a time; 0: all (UV_THREADPOOL_SIZE,
 * or 4 if that is not set). flags: enum contd_executor_uv_flags. The memory of *uv is the program's: see struct
 * contd_executor_uv.
 * Context: loop; may block. Errors: -EINVAL (NULL, threads below 0, flags), those of uv_async_init(), and those of
 * contd_executor_create(). After the last kind the loop must turn once more before the memory of *uv may be freed.
 */
static inline int contd_executor_uv_init(struct contd_executor_uv *uv, uv_loop_t *loop, int threads, int flags)
{
	struct contd_executor_ops ops = {sizeof(ops), NULL, contd__uv_notify, contd__uv_drain, contd__uv_describe};
	struct contd_executor_attr attr = {sizeof(attr), 0, &ops, uv};
	const char *size = getenv("UV_THREADPOOL_SIZE");
	int r;

	if (!uv || !loop || threads < 0 || (flags & ~(CONTD_EXECUTOR_UV_LOOP | CONTD_EXECUTOR_UV_KEEP)))
		return contd__fails("contd_executor_uv_init", -EINVAL,
				    !uv           ? "uv must not be NULL"
				    : !loop       ? "loop must not be NULL"
				    : threads < 0 ? "threads must not be negative"
						  : "flags has bits that are no enum contd_executor_uv_flags");
	if (threads == 0)
		threads = size ? atoi(size) : 4;
	uv->threads = threads > 0 ? threads : 1;
	uv->flags = flags;
	uv->queued = 0;
	uv->unused = NULL;
	uv->closed = NULL;
	uv->loop_thread = uv_thread_self();
	uv->async.data = uv;
	r = uv_async_init(loop, &uv->async, contd__uv_told);
	if (r)
		return contd__fails("contd_executor_uv_init", r,
				    "uv_async_init() refuses; uv_strerror() of the result "
				    "says why");
	if (!(flags & CONTD_EXECUTOR_UV_KEEP))
		uv_unref((uv_handle_t *)&uv->async);
	r = contd__fails("contd_executor_uv_init", contd_executor_create(&attr, &uv->executor), NULL);
	if (r)
		uv_close((uv_handle_t *)&uv->async, NULL);
	return r;
}

/*
 * Close the executor. From now on it takes no work. When the pieces that are queued with libuv have come back, the loop
 * destroys the executor, closes the handle and calls closed(), which must not be NULL. The loop stays alive until then.
 * The executor's groups must be complete and destroyed. Otherwise closed() gets -EBUSY after a tenth of a second.
 * Context: loop, in a callback.
 */
static inline void contd_executor_uv_fini(struct contd_executor_uv *uv, contd_executor_uv_closed *closed)
{
	uv->closed = closed;
	uv->since = uv_hrtime();
	uv_ref((uv_handle_t *)&uv->async);
	uv_async_send(&uv->async);
}

#ifdef __cplusplus
}
#endif

#endif
