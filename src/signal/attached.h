/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attached threads: how they are interrupted.
 *
 *     operation              thread  handler  progress
 *     contd__handler           no      yes    bounded by the scan's budget, but for what the callbacks do
 *     contd__arm_sig           yes     yes    wait-free in the number of attached threads
 *     contd__notify_sig        yes     yes    wait-free in the number of attached threads
 *     contd_thread_attach      yes     no     blocking
 *     contd_thread_detach      yes     no     blocking (waits for senders of other threads, which never wait)
 *
 * Records are type-stable: they are reused, never freed, so that senders need no lock. A thread that uses `tid` or
 * `timer` first counts itself in `senders`, and then looks at `tid`. A thread that takes them away first clears `tid`,
 * and then waits until `senders` is 0 (Dekker).
 */
#ifndef CONTD_SIGNAL_ATTACHED_H
#define CONTD_SIGNAL_ATTACHED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "dispatch/purse.h"

#define ATTACHED_MAX 1024u

struct contd__inspector;
struct contd__self;

struct contd__attached {
	int32_t tid; /* 0: of no thread */
	uint32_t senders;
	uint32_t signalled;    /* a notification is on its way; the handler clears it before it looks */
	uint64_t signalled_at; /* when it was sent, in clock ticks */
	uint32_t armed;        /* the timer runs */
	uint32_t inside;       /* its handler runs */
	uint32_t resting;      /* outside regions, where ticks are no use for sources that need one */
	const struct contd__inspector *inspector; /* asks whether ticks outside regions may drive sources: inspect.h */
	uint32_t unasked;                         /* enum contd__unasked: contd__bell_ask_sig() */
	uint32_t off_turn; /* the inspector has no use for ticks here, because it is another thread's turn */
	timer_t timer;
	struct contd_tls *tls;          /* of the thread; readable while tid is not 0 */
	const struct contd__self *self; /* the same */

	/* For the thread and its handler. */
	uint64_t interval_ns __attribute__((aligned(64))); /* in force; others read it to arm */
	uint64_t empty_ticks; /* what an empty tick costs in the handler, a moving average, in clock ticks */
	uint32_t useless;     /* ticks in a row that could serve nothing here */
	uint32_t quiet;       /* ticks in a row that found nothing */
	struct contd__purse purse;
	uint64_t left_at,
		took; /* when its last handler ended, and how long that was, callbacks included; clock ticks */
	uint64_t checkpoints_seen; /* the last checkpoint that looked, when a tick saw it */
	uint32_t told;             /* under a guard in a region; the end of the guard arms the bell */
	uint32_t handed_on;        /* a ring that found it outside regions; until its next region has looked */
	uint32_t calibrating;      /* the handler only counts, and leaves a note */
	uint32_t calibration_ticks;
	uint32_t nested; /* attach calls */
};

/* A thread has looked in a region. Now something becomes pending for which no thread is rung: is this thread
 * interrupted, or its next region told to look? */
enum contd__unasked {
	UNASKED_NOT = 0, /* no: it has been since, or a tick comes */
	UNASKED_ANY,     /* yes */
	UNASKED_FOR_ALL, /* what was pending may be driven on other threads only: yes, if each thread may drive it */
	UNASKED_TOLD     /* its next region has been told to look; yes, if it computes: it may have missed that */
};

/* So many interruptions end a calibration. Otherwise, if each takes longer than the time between two (for example
 * because a debugger stops at each signal), the thread would never get on. */
#define CALIBRATION_TICKS_MOST 256u

struct contd__signals {
	struct contd__attached *record[ATTACHED_MAX];
	uint32_t count; /* how many records there are */
	uint32_t turn;  /* which one to notify next */
	int signal_number;
	pid_t pid;
	bool timers;                     /* false: agent "caller" */
	uint64_t kernel_ticks;           /* what the kernel costs a thread a tick, in clock ticks; 0: not measured */
	uint64_t notice_ticks;           /* the same for a signal from another processor */
	uint32_t listens;                /* peers can find this process */
	uint32_t rung;                   /* one has rung */
	uint32_t strays;                 /* handlers of rings, on threads that are not attached */
	char notice_mark;                /* its address marks notifications; that of the whole structure marks ticks */
	char bell_mark;                  /* and that of this one marks the signals of peers */
	struct sigaction before[_NSIG];  /* CONTD_SIGNAL_CHAIN: of each signal that is, or once was, contd's, */
	struct sigaction beneath[_NSIG]; /* and the one before that, which had come between contd's handler and it */
};

/* The state of this folder: its units write these two, each its own fields, and no unit outside the folder does. */
extern struct contd__signals contd__signals;
extern __thread struct contd__attached *contd__me __attribute__((tls_model("initial-exec")));

/*
 * Does it compute in a region? With `senders` counted; a momentary answer. A region in a callback does not count: what
 * interrupts it has no effect there. (In a region's look a callback is interrupted on behalf of the region.) The frame
 * is read first. If that look ends in between, the answer may be no; but then the look's end, which is later, sees what
 * the caller has set before.
 */
bool contd__attached_computes_sig(const struct contd__attached *a);

/* Does the attached thread of that number? */
bool contd__signals_computing_sig(int32_t tid);

/* May it need the bell that it has armed? Without ticks (agent `caller`) also between two regions: no tick would arm it
 * in the next one. */
bool contd__signals_keeps_bell_sig(int32_t tid);

#endif
