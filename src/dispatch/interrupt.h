/* SPDX-License-Identifier: BSD-3-Clause */
/* Interrupting threads that are busy elsewhere, for something ready or pending. The signal room (src/signal) does
 * it. */
#ifndef CONTD_DISPATCH_INTERRUPT_H
#define CONTD_DISPATCH_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"

/* What the signal room gives to this floor. */
struct contd__signal_ops {
	void (*arm)(void);              /* something that ticks can serve became pending; any context */
	int (*notify)(void);            /* interrupt one attached thread; any context; 1 if one will look */
	bool (*listens)(void);          /* can peers ring this process */
	void (*drain)(void);            /* of peers that have asked who listens, now and then; any context */
	bool (*computing)(int32_t tid); /* does that thread compute in a region */
	/* The same for one that computes in a region; 1 if there is one. If not, whoever begins a region next looks;
	 * any context. */
	int (*notify_region)(void);
	void (*ring)(int32_t tid); /* interrupt that one, on the sources' behalf */
	void (*again)(bool ran);   /* after a scan by interruption that left something; ran: not everything */
	/* Interrupt this thread soon, but not now (if it is not attached, another one); any context. */
	void (*later)(void);
	void (*stop)(void);           /* fini */
	void (*give_back)(void);      /* contd_init() failed after all: the signal is as it was */
	void (*forked)(void);         /* in the child */
	void (*configured)(void);     /* settings have changed */
	void (*looked)(uint32_t ran); /* a guard's end has done what a signal would have */
	uint64_t (*tick_ns)(void);    /* interval in force on this thread */
	uint64_t (*tick_cost_ns)(void);
};

struct contd__interrupt {
	const struct contd__signal_ops *ops; /* NULL while the signal room is not there */
	/* A thread may compute in a region, or begin one without looking: contd__notify_region_sig(). */
	uint32_t regions;
};
CONTD_INTERNAL_API extern struct contd__interrupt contd__interrupt;

/*
 * Who is interrupted for something ready. Of async-signal-safe groups: an attached thread, wherever it is. Of others:
 * one that computes in a region; with CONTD_THREAD_ANY the daemon does it where there is one. Nobody for a poll-only
 * group, or one whose executor's threads take it themselves.
 */
#define KICK_SIGNAL 1u
#define KICK_REGION 2u

uint32_t contd__whom_sig(uint32_t flags);

/* Have them look: these bits. On the calling thread itself it may run continuations there and then. Any context. */
void contd__kick_sig(uint32_t kicks);

/*
 * Around what a call does that registers with a group of these flags. An async-signal-safe continuation that is ready
 * already, and must not run inside the call (CONTD_ENQUEUE_COMPLETE), is not picked up by this thread in between: a
 * tick comes soon after it. Any context.
 */
static inline bool contd__defer_begin_sig(uint32_t flags)
{
	if (__builtin_expect((flags & (CONTD_ENQUEUE_COMPLETE | CONTD_ASYNC_SIGNAL_SAFE)) !=
				     (CONTD_ENQUEUE_COMPLETE | CONTD_ASYNC_SIGNAL_SAFE),
			     1))
		return false;
	contd_guard_begin();
	return true;
}

CONTD_INTERNAL_API void contd__deferred_sig(void);
static inline void contd__defer_end_sig(bool deferring)
{
	if (__builtin_expect(deferring, 0))
		contd__deferred_sig();
}

#endif
