/* SPDX-License-Identifier: BSD-3-Clause */
/* Interrupting threads that are busy elsewhere because something is ready or pending. src/signal implements it. */
#ifndef CONTD_DISPATCH_INTERRUPT_H
#define CONTD_DISPATCH_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"

/* The functions that src/signal gives to this floor. */
struct contd__signal_ops {
	void (*arm)(void);               /* something that ticks can serve became pending; any context */
	int (*notify)(void);             /* interrupt one attached thread; any context; 1 if one will look */
	bool (*listens)(void);           /* can peers ring this process */
	void (*drain)(void);             /* take peers' connections out of the queue, if there are many; any context */
	bool (*computing)(int32_t tid);  /* does that thread compute in a region */
	bool (*keeps_bell)(int32_t tid); /* or may it need its bell between two regions, too */
	bool (*ticks)(void);             /* do attached threads tick */
	/* The same for a thread that computes in a region; 1 if there is one. If not, the thread that begins a region
	 * next looks. Any context. */
	int (*notify_region)(void);
	void (*ring)(int32_t tid); /* interrupt that one, on the sources' behalf */
	void (*ask)(void);         /* interrupt a thread that computes, and has had no use for the bell, to arm it */
	void (*hand_on)(void);     /* the same, whoever computes, but not this thread */
	void (*refill)(void);      /* a tick on this thread when it can pay for rings again */
	void (*again)(bool ran);   /* after a scan by interruption that left something; ran: it got somewhere */
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
	const struct contd__signal_ops *ops; /* NULL until src/signal has started */
	/* A thread may compute in a region, or begin one without looking: contd__notify_region_sig(). */
	uint32_t regions;
};
CONTD_INTERNAL_API extern struct contd__interrupt contd__interrupt;

/* src/signal gives its functions; or NULL, in the child of a fork. Ordinary threads. */
static inline void contd__interrupt_by(const struct contd__signal_ops *ops)
{
	contd__store_release(&contd__interrupt.ops, ops);
}

/* May a thread compute in a region, or begin one without looking? Any context. contd__notify_region_sig() has the
 * protocol. */
static inline void contd__interrupt_regions_sig(uint32_t may)
{
	contd__store_seq(&contd__interrupt.regions, may);
}

/*
 * Which threads are interrupted for something ready. For an async-signal-safe group: an attached thread, wherever it
 * is. For others: one that computes in a region; but none if the group has CONTD_THREAD_ANY and there is a daemon,
 * which runs it. None for a poll-only group, or if a pull executor's threads take it themselves.
 */
#define KICK_SIGNAL 1u
#define KICK_REGION 2u

uint32_t contd__whom_sig(uint32_t flags);

/* Interrupt the threads that these bits name. On the calling thread itself continuations may run in this call. Any
 * context. */
void contd__kick_sig(uint32_t kicks);

/* contd_fini(): no thread computes in a region. */
void contd__interrupt_fini(void);

/*
 * These go around the part of a call that registers with a group of these flags. An async-signal-safe continuation that
 * is ready already must not run inside the call if the group has CONTD_ENQUEUE_COMPLETE. So this thread does not pick
 * it up in between: a tick comes soon after the call. Any context.
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
