/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "dispatch/dispatcher.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static CDS_LIST_HEAD(threads);
static struct contd__counters departed; /* of threads that have ended; under list_lock */

#define COUNTERS (sizeof(struct contd__counters) / sizeof(uint64_t))

static void add(struct contd__counters *sum, const struct contd__self *self)
{
	const uint64_t *from = (const uint64_t *)&self->counters;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < COUNTERS; i++)
		to[i] += contd__load(&from[i]);
}

void contd__stats_thread_enter(void)
{
	pthread_mutex_lock(&list_lock);
	contd__self.tls = &contd__tls;
	cds_list_add(&contd__self.node, &threads);
	pthread_mutex_unlock(&list_lock);
}

void contd__stats_thread_leave(void)
{
	pthread_mutex_lock(&list_lock);
	cds_list_del(&contd__self.node);
	add(&departed, &contd__self);
	pthread_mutex_unlock(&list_lock);
}

void contd__stats_reset(void)
{
	struct contd__self *self;

	pthread_mutex_lock(&list_lock);
	memset(&departed, 0, sizeof(departed));
	contd__store(&contd__dispatch.notifications, 0);
	contd__store(&contd__dispatch.notify_failed, 0);
	contd__store(&contd__dispatch.put_off, 0);
	contd__store(&contd__dispatch.rings_sent, 0);
	contd__store(&contd__dispatch.handler_max, 0);
	cds_list_for_each_entry(self, &threads, node) {
		for (size_t i = 0; i < COUNTERS; i++)
			contd__store((uint64_t *)&self->counters + i, 0);
	}
	pthread_mutex_unlock(&list_lock);
}

void contd__stats_unwatch(void)
{
	struct contd__self *self;

	pthread_mutex_lock(&list_lock);
	cds_list_for_each_entry(self, &threads, node)
		contd__store(&self->tls->watch, &contd__never_rung);
	pthread_mutex_unlock(&list_lock);
}

unsigned contd__stats_running(struct contd__running *running, unsigned room)
{
	struct contd__self *self;
	unsigned n = 0;

	pthread_mutex_lock(&list_lock);
	cds_list_for_each_entry(self, &threads, node) {
		const void *site = contd__load_acquire(&self->site);
		/* Acquire: before the look whether it is still the same one's. */
		uint64_t since = contd__load_acquire(&self->since);

		if (n < room && site && contd__load(&self->site) == site)
			running[n++] = (struct contd__running){site, since, contd__load(&self->context)};
	}
	pthread_mutex_unlock(&list_lock);
	return n;
}

static unsigned log2_floor(double ns)
{
	uint64_t v = (uint64_t)ns;

	return v < 2 ? 0 : 63u - (unsigned)__builtin_clzll(v);
}

int contd_stats_get(struct contd_stats *stats)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__dispatch.signal_ops);
	double ns = 1 / contd__dispatch.ticks_per_ns;
	struct contd__counters sum;
	struct contd__self *self;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_stats_get: not in a signal handler");
	if (!stats || stats->size != sizeof(*stats))
		return contd__fail(-EINVAL, "contd_stats_get: set stats->size to sizeof(struct contd_stats)");
	pthread_mutex_lock(&list_lock);
	sum = departed;
	cds_list_for_each_entry(self, &threads, node)
		add(&sum, self);
	pthread_mutex_unlock(&list_lock);
	*stats = (struct contd_stats){
		.size = sizeof(*stats),
		.registered = sum.registered,
		.run = sum.run,
		.run_handler = sum.run_handler,
		.run_region = sum.run_region,
		.run_daemon = sum.run_daemon,
		.run_inline = sum.run_inline,
		.cancelled = sum.cancelled,
		.ticks = sum.ticks,
		.notifications = sum.notifications + contd__load(&contd__dispatch.notifications),
		.notify_failed = sum.notify_failed + contd__load(&contd__dispatch.notify_failed),
		.rings = sum.rings,
		.rings_sent = sum.rings_sent + contd__load(&contd__dispatch.rings_sent),
		.put_off = sum.put_off + contd__load(&contd__dispatch.put_off),
		.handler_max_ns = (uint64_t)((double)contd__load(&contd__dispatch.handler_max) * ns),
		.guarded = sum.guarded,
		.overruns = sum.overruns,
		.handler_ns = (uint64_t)((double)sum.handler_ticks * ns),
		.lost_ns = (uint64_t)((double)(sum.handler_ticks + sum.kernel_ticks) * ns),
		.tick_cost_ns = ops ? ops->tick_cost_ns() : 0,
		.tick_ns = ops ? ops->tick_ns() : 0,
		.scans = sum.scans,
		.grown = sum.grown,
	};
	for (unsigned b = 0; b < 64; b++) {
		/* Bucket b holds waits of 2^(b-1) to 2^b - 1 units of 32 clock ticks. */
		unsigned to = b == 0 ? 0 : log2_floor((double)(1ull << (b - 1)) * 32 * ns);

		stats->latency[to < CONTD_HISTOGRAM_BUCKETS ? to : CONTD_HISTOGRAM_BUCKETS - 1] += sum.latency[b];
	}
	return 0;
}
