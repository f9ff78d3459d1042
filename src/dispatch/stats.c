/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sized.h"
#include "dispatch/interrupt.h"
#include "dispatch/live.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"

void contd__stats_reset(void)
{
	contd__store(&contd__strays.notifications, 0);
	contd__store(&contd__strays.notify_failed, 0);
	contd__store(&contd__strays.put_off, 0);
	contd__store(&contd__strays.rings_sent, 0);
	contd__store(&contd__strays.handler_max, 0);
	contd__threads_zero();
}

static unsigned log2_floor(double ns)
{
	uint64_t v = (uint64_t)ns;

	return v < 2 ? 0 : 63u - (unsigned)__builtin_clzll(v);
}

int contd_stats_get(struct contd_stats *to)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);
	double ns = 1 / contd__clock.ticks_per_ns;
	struct contd__counters sum;
	struct contd_stats stats;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_stats_get: not in a signal handler");
	if (!to)
		return contd__fail(-EINVAL, "contd_stats_get: stats must not be NULL");
	contd__threads_sum(&sum);
	stats = (struct contd_stats){
		.registered = sum.registered,
		.run = sum.run,
		.run_handler = sum.run_handler,
		.run_region = sum.run_region,
		.run_daemon = sum.run_daemon,
		.run_inline = sum.run_inline,
		.cancelled = sum.cancelled,
		.ticks = sum.ticks,
		.notifications = sum.notifications + contd__load(&contd__strays.notifications),
		.notify_failed = sum.notify_failed + contd__load(&contd__strays.notify_failed),
		.rings = sum.rings,
		.rings_sent = sum.rings_sent + contd__load(&contd__strays.rings_sent),
		.put_off = sum.put_off + contd__load(&contd__strays.put_off),
		.handler_max_ns = (uint64_t)((double)contd__load(&contd__strays.handler_max) * ns),
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
		unsigned at = b == 0 ? 0 : log2_floor((double)(1ull << (b - 1)) * 32 * ns);

		stats.latency[at < CONTD_HISTOGRAM_BUCKETS ? at : CONTD_HISTOGRAM_BUCKETS - 1] += sum.latency[b];
	}
	return contd__sized_give(to, &stats, sizeof(stats),
				 CONTD_SIZED_TEXTS("contd_stats_get", "stats", "struct contd_stats"));
}
