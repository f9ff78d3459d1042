/* SPDX-License-Identifier: BSD-3-Clause */
/* What a timer tick costs the thread that it interrupts, on this machine. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/group.h"
#include "signal/signal.h"

#define SAMPLES 31u
#define PERIOD_NS 50000
#define PATIENCE_NS 20000000 /* where no ticks come (signal blocked, machine overloaded) */
#define ASSUMED_NS 10000

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void timer_period(struct contd__attached *me, long ns)
{
	struct itimerspec ts = {{0, ns}, {0, ns}};

	timer_settime(me->timer, 0, &ts, NULL);
}

/*
 * Read the clock as fast as possible. Between the last reading before a tick and the first one after it lies what the
 * tick took: the interrupt, the signal's delivery, the handler and the way back. The median leaves out ticks that
 * another process or the hypervisor lengthened.
 */
void contd__calibrate(struct contd__attached *me)
{
	double ticks_per_ns = contd__dispatch.ticks_per_ns;
	uint64_t gap[SAMPLES], last = contd__ticks(), now;
	uint64_t until = last + (uint64_t)(PATIENCE_NS * ticks_per_ns);
	uint32_t seen = 0, n = 0;

	me->calibration_ticks = 0;
	contd__store(&me->calibrating, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	timer_period(me, PERIOD_NS);
	while (n < SAMPLES && (now = contd__ticks()) < until) {
		uint32_t ticked = contd__load(&me->calibration_ticks);

		if (ticked != seen) {
			now = contd__ticks();
			gap[n++] = now - last;
			seen = ticked;
			now = contd__ticks();
		}
		last = now;
	}
	timer_period(me, 0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&me->calibrating, 0);
	if (n >= 5) {
		qsort(gap, n, sizeof(gap[0]), by_size);
		contd__store(&contd__signals.kernel_ticks, gap[n / 2]);
	} else {
		contd__store(&contd__signals.kernel_ticks, (uint64_t)(ASSUMED_NS * ticks_per_ns));
	}
}
