/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An executor on a GThreadPool: continuations become tasks of GLib's threads, sorted by priority. Header only; compile
 * with pkg-config --cflags --libs contd glib-2.0. The tags of contexts are those of contd/contd.h.
 *
 * A GThreadPool has one function for all its items, so this pool is for contd only. The program gives it work by
 * contd_task_submit(). If the pool is not exclusive, it shares its threads with GLib's other such pools.
 *
 * GLib inserts into a sorted queue from its end. So queued work of the lowest priority costs nothing more than without
 * sorting, and work of higher priority is compared with all work of lower priority that waits.
 *
 * GLib 2.70 or newer.
 */
#ifndef CONTD_EXECUTOR_GLIB_H
#define CONTD_EXECUTOR_GLIB_H

#include <contd/executor.h>
#include <errno.h>
#include <glib.h>
#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The memory is the program's, from contd_executor_glib_init() until contd_executor_glib_fini() has returned 0. */
struct contd_executor_glib {
	struct contd_executor *executor; /* for contd_group_set_executor() and contd_task_init() */
	GThreadPool *pool; /* the program may change its size; it must not push into the pool, nor free it */
	gint stuck;        /* contd's: a thread could not be created, and there was no other */
};

/* An item of the pool. The pushing thread and the pool hold a reference each, because the pushing thread reads the item
 * again if no thread could be created. */
struct contd__glib_item {
	struct contd_work *work; /* NULL: taken. Exchanged atomically, so that one thread takes it */
	gint priority;
	gint references;
};

static inline void contd__glib_item_unref(gpointer data)
{
	struct contd__glib_item *item = (struct contd__glib_item *)data;

	if (g_atomic_int_dec_and_test(&item->references))
		g_free(item);
}

static inline struct contd_work *contd__glib_item_take(struct contd__glib_item *item)
{
	/* Acquires what was written before the push; partner: contd__glib_submit(). */
	return __atomic_exchange_n(&item->work, (struct contd_work *)NULL, __ATOMIC_ACQ_REL);
}

static inline void contd__glib_run(gpointer data, gpointer user_data)
{
	struct contd__glib_item *item = (struct contd__glib_item *)data;
	struct contd_work *work = contd__glib_item_take(item);

	(void)user_data;
	contd__glib_item_unref(item);
	if (work)
		contd_work_run(work);
}

/* Smaller items run earlier. Equal ones keep the order in which they came. */
static inline gint contd__glib_compare(gconstpointer a, gconstpointer b, gpointer user_data)
{
	(void)user_data;
	return ((const struct contd__glib_item *)b)->priority - ((const struct contd__glib_item *)a)->priority;
}

static inline gpointer contd__glib_nothing(gpointer data)
{
	return data;
}

/*
 * No thread could be created for the last item. Can GLib find one now? Each push that fails leaves an empty item in the
 * queue. So try with a thread that ends at once. (GLib also creates threads if the pool's size is set to the old size.
 * But between reading and setting the size the program may set another one, which would be lost.)
 */
static inline gboolean contd__glib_may_push(void)
{
	GThread *thread;
	int cancel;

	if (g_thread_pool_get_num_unused_threads() > 0)
		return TRUE;
	thread = g_thread_try_new("contd-try", contd__glib_nothing, NULL, NULL);
	if (!thread)
		return FALSE;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the caller still has the work */
	g_thread_join(thread);
	pthread_setcancelstate(cancel, NULL);
	return TRUE;
}

static inline int contd__glib_submit(void *data, struct contd_work *work, int priority)
{
	struct contd_executor_glib *glib = (struct contd_executor_glib *)data;
	GThreadPool *pool = glib->pool;
	struct contd__glib_item *item;
	int r = 0;

	if (g_atomic_int_get(&glib->stuck)) {
		if (g_thread_pool_get_num_threads(pool) == 0 && !contd__glib_may_push())
			return -EAGAIN;
		g_atomic_int_set(&glib->stuck, 0);
	}
	item = g_try_new(struct contd__glib_item, 1);
	if (!item)
		return -ENOMEM;
	item->priority = priority;
	item->references = 2;
	__atomic_store_n(&item->work, work, __ATOMIC_RELEASE);
	/*
	 * FALSE means that GLib could not create a thread; it has queued the item nevertheless. If the pool has no
	 * other thread, take the work back out of the item.
	 */
	if (!g_thread_pool_push(pool, item, NULL) && g_thread_pool_get_num_threads(pool) == 0) {
		g_atomic_int_set(&glib->stuck, 1);
		if (contd__glib_item_take(item))
			r = -EAGAIN;
	}
	contd__glib_item_unref(item);
	return r;
}

static inline int contd__glib_describe(void *data, char *text, size_t bytes)
{
	GThreadPool *pool = ((struct contd_executor_glib *)data)->pool;

	return g_snprintf(text, (gulong)bytes, "GThreadPool%s, %u of %d threads", pool->exclusive ? ", exclusive" : "",
			  g_thread_pool_get_num_threads(pool), g_thread_pool_get_max_threads(pool));
}

/*
 * Make a pool of at most max_threads threads, as g_thread_pool_new() does, and its executor. max_threads: -1 means no
 * limit, which is not allowed with exclusive. exclusive: this call creates the threads, and no other pool shares them.
 * The memory of *glib is the program's: see struct contd_executor_glib.
 * Context: any thread; may block. Errors: -EINVAL (NULL, max_threads), -EAGAIN (exclusive: a thread could not be
 * created), and those of contd_executor_create().
 */
static inline int contd_executor_glib_init(struct contd_executor_glib *glib, gint max_threads, gboolean exclusive)
{
	struct contd_executor_ops ops = {sizeof(ops), contd__glib_submit, NULL, NULL, contd__glib_describe};
	struct contd_executor_attr attr = {sizeof(attr), 0, &ops, glib};
	GError *error = NULL;
	int r;

	if (!glib || max_threads < -1 || max_threads == 0 || (exclusive && max_threads == -1))
		return contd__fails("contd_executor_glib_init", -EINVAL,
				    !glib ? "glib must not be NULL"
					  : "max_threads must be positive, or -1 (no limit) if exclusive is FALSE");
	glib->stuck = 0;
	glib->pool =
		g_thread_pool_new_full(contd__glib_run, glib, contd__glib_item_unref, max_threads, exclusive, &error);
	if (error) { /* GLib leaves a pool with fewer threads */
		g_error_free(error);
		r = contd__fails("contd_executor_glib_init", -EAGAIN,
				 "GLib cannot create the pool's threads; raise RLIMIT_NPROC, or lower max_threads");
	} else {
		g_thread_pool_set_sort_function(glib->pool, contd__glib_compare, NULL);
		r = contd__fails("contd_executor_glib_init", contd_executor_create(&attr, &glib->executor), NULL);
	}
	if (r)
		g_thread_pool_free(glib->pool, TRUE, FALSE);
	return r;
}

/*
 * Destroy the executor, and then the pool. All submitted work has run before. The pool's threads are told to end, or to
 * go back to GLib. Context: as contd_executor_destroy(), and not on a thread of the pool. Errors: -EINVAL (NULL), and
 * those of contd_executor_destroy(). After an error nothing has changed.
 */
static inline int contd_executor_glib_fini(struct contd_executor_glib *glib)
{
	int r = glib ? contd_executor_destroy(glib->executor) : -EINVAL;

	contd__fails("contd_executor_glib_fini", r, glib ? NULL : "glib must not be NULL");
	if (!r)
		g_thread_pool_free(glib->pool, TRUE, TRUE); /* at once: items that are still queued are empty */
	return r;
}

#ifdef __cplusplus
}
#endif

#endif
