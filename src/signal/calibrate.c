/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures what a timer tick, and a notification, cost the thread that they interrupt, on this machine. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "signal/attached.h"
#include "signal/calibrate.h"
#include "signal/notify.h"

#define SAMPLES 31u
#define ENOUGH 5u
#define PERIOD_NS 50000
#define PATIENCE_NS 10000000 /* if no ticks come (signal blocked, machine overloaded) */
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
 * Read the clock as fast as possible. From the last reading before an interruption to the first one after it is the
 * time that it took: the interrupt, the signal's delivery, the handler and the way back. The median leaves out those
 * that another process or the hypervisor lengthened; 0: too few came.
 */
static uint64_t median_gap(struct contd__attached *me)
{
	uint64_t gap[SAMPLES], last = contd__ticks(), now;
	uint64_t until = last + (uint64_t)(PATIENCE_NS * contd__clock.ticks_per_ns);
	uint32_t seen = contd__load(&me->calibration_ticks), n = 0;

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
	if (n < ENOUGH)
		return 0;
	qsort(gap, n, sizeof(gap[0]), by_size);
	return gap[n / 2];
}

/* The thread that sends notifications. */
struct sender {
	struct contd__attached *to;
	uint32_t stop;
};

static void *send_some(void *data)
{
	struct sender *s = data;
	struct timespec ts = {0, PERIOD_NS};

	for (uint32_t i = 0; i < CALIBRATION_TICKS_MOST && !contd__load(&s->stop); i++) {
		contd__queue_sig(contd__load(&s->to->tid));
		nanosleep(&ts, NULL);
	}
	return NULL;
}

static uint64_t measure_notice(struct contd__attached *me)
{
	struct sender s = {me, 0};
	sigset_t all, before;
	pthread_t thread;
	uint64_t gap;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, send_some, &s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return 0;
	gap = median_gap(me);
	contd__store(&s.stop, 1);
	pthread_join(thread, NULL);
	return gap;
}

void contd__calibrate(struct contd__attached *me)
{
	uint64_t tick, notice;

	me->calibration_ticks = 0;
	contd__store(&me->calibrating, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	timer_period(me, PERIOD_NS);
	tick = median_gap(me);
	timer_period(me, 0);
	CONTD_TESTPOINT("calibrating");
	notice = measure_notice(me);
	CONTD_TESTPOINT("calibrated");
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&me->calibrating, 0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/*
	 * A notification that came meanwhile was only counted, and one that was put off has lost its timer. As in the
	 * handler: clear this first, so that a thread that makes something ready after it sends another one; then look.
	 */
	contd__xchg(&me->signalled, 0);
	contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
	contd__guard_pickup();
	if (!tick)
		tick = (uint64_t)(ASSUMED_NS * contd__clock.ticks_per_ns);
	/* If both threads share a processor, the sender's turn is in it: a notification costs no more than a timer. */
	contd__store(&contd__signals.notice_ticks, notice && notice < tick ? notice : tick);
	contd__store(&contd__signals.kernel_ticks, tick);
}
