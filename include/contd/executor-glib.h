/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An executor on a GThreadPool: continuations become tasks of GLib's threads, sorted by priority. Header only; compile
 * with pkg-config --cflags --libs contd glib-2.0. The tags of contexts are those of contd/contd.h.
 *
 * A GThreadPool has one function for all that is pushed, so this pool is contd's. The program's own work goes to it by
 * contd_task_submit(). Threads of pools that are not exclusive are shared with GLib's other such pools.
 *
 * GLib inserts into a sorted queue from its end: work of the lowest priority that is queued costs nothing more for
 * being sorted, work of higher priority is walked past all of lower priority that waits.
 *
 * GLib 2.70 or newer.
 */
#ifndef CONTD_EXECUTOR_GLIB_H
#define CONTD_EXECUTOR_GLIB_H

#include <contd/executor.h>
#include <errno.h>
#include <glib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The memory is the program's, from contd_executor_glib_init() until contd_executor_glib_fini() has returned 0. */
struct contd_executor_glib {
	struct contd_executor *executor; /* for contd_group_set_executor() and contd_task_init() */
	GThreadPool *pool; /* to change its size and such; nothing may be pushed into it, and it may not be freed */
	gint stuck;        /* not to be touched: something is queued, and there is no thread */
};

/* What is pushed. Pusher and pool hold a reference each, for the pusher looks at it again where no thread could be
 * made. */
struct contd__glib_item {
	struct contd_work *work; /* NULL: taken. Atomic: whoever takes it has it */
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

/* What is smaller runs earlier. Equal ones stay in the order in which they came. */
static inline gint contd__glib_compare(gconstpointer a, gconstpointer b, gpointer user_data)
{
	(void)user_data;
	return ((const struct contd__glib_item *)b)->priority - ((const struct contd__glib_item *)a)->priority;
}

static inline int contd__glib_submit(void *data, struct contd_work *work, int priority)
{
	struct contd_executor_glib *glib = (struct contd_executor_glib *)data;
	GThreadPool *pool = glib->pool;
	struct contd__glib_item *item;
	int r = 0;

	/* Tries to make a thread for what is queued. Pushing more instead would leave an empty item for each try. */
	if (g_atomic_int_get(&glib->stuck)) {
		if (!g_thread_pool_set_max_threads(pool, g_thread_pool_get_max_threads(pool), NULL) &&
		    g_thread_pool_get_num_threads(pool) == 0)
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
	 * FALSE means that a thread was wanted and could not be made; the item is queued nevertheless. Unless there are
	 * other threads, the work is taken back out of it.
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
 * Make a pool as g_thread_pool_new() does: max_threads at most (-1: no limit, not with exclusive); exclusive: they are
 * made here, and the pool's own.
 * Context: any thread; may block. Errors: -EINVAL (NULL, max_threads), -EAGAIN (exclusive: a thread could not be made),
 * and contd_executor_create()'s.
 */
static inline int contd_executor_glib_init(struct contd_executor_glib *glib, gint max_threads, gboolean exclusive)
{
	struct contd_executor_ops ops = {sizeof(ops), contd__glib_submit, NULL, NULL, contd__glib_describe};
	struct contd_executor_attr attr = {sizeof(attr), 0, &ops, glib};
	GError *error = NULL;
	int r;

	if (!glib || max_threads < -1 || max_threads == 0 || (exclusive && max_threads == -1))
		return -EINVAL;
	glib->stuck = 0;
	glib->pool =
		g_thread_pool_new_full(contd__glib_run, glib, contd__glib_item_unref, max_threads, exclusive, &error);
	if (error) { /* GLib leaves a pool with fewer threads */
		g_error_free(error);
		r = -EAGAIN;
	} else {
		g_thread_pool_set_sort_function(glib->pool, contd__glib_compare, NULL);
		r = contd_executor_create(&attr, &glib->executor);
	}
	if (r)
		g_thread_pool_free(glib->pool, TRUE, FALSE);
	return r;
}

/*
 * End the executor, and then the pool: what was submitted has run, and its threads have been told to end, or to go back
 * to GLib. Context: as contd_executor_destroy(), and not on a thread of the pool. Errors: -EINVAL (NULL), and
 * contd_executor_destroy()'s: then all is as before.
 */
static inline int contd_executor_glib_fini(struct contd_executor_glib *glib)
{
	int r = glib ? contd_executor_destroy(glib->executor) : -EINVAL;

	if (!r)
		g_thread_pool_free(glib->pool, TRUE, TRUE); /* at once: what may still be queued is empty */
	return r;
}

#ifdef __cplusplus
}
#endif

#endif
