/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attached threads: how they are interrupted.
 *
 *  operation              thread  handler  progress
 *  contd__handler           no      yes    bounded by the scan's budget, but for what the callbacks do
 *  contd__arm_sig           yes     yes    wait-free in the number of attached threads
 *  contd__notify_sig        yes     yes    wait-free in the number of attached threads
 *  contd_thread_attach      yes     no     blocking
 *  contd_thread_detach      yes     no     blocking (waits for senders of other threads, which never wait)
 *
 * Records are type-stable: they are reused, never freed, so that whoever sends needs no lock. Who uses `tid` or `timer`
 * counts itself in `senders` first and then looks at `tid`; who takes them away clears `tid` first and then waits for
 * `senders` to be 0 (Dekker).
 */
#ifndef CONTD_SIGNAL_SIGNAL_H
#define CONTD_SIGNAL_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <contd/contd.h>

#include "dispatch/dispatcher.h"
#include "dispatch/purse.h"
#include "signal/bell.h"

#define ATTACHED_MAX 1024u

struct contd__attached {
	int32_t tid;           /* 0: nobody's */
	uint32_t senders;
	uint32_t signalled;    /* a notification is on its way; the handler clears it before it looks */
	uint64_t signalled_at; /* when it was sent, in clock ticks */
	uint32_t armed;        /* the timer runs */
	uint32_t inside;       /* its handler runs */
	uint32_t resting;      /* outside regions, where ticks are no use for sources that need one */
	timer_t timer;
	struct contd_tls *tls; /* of the thread; readable while tid is not 0 */

	/* The thread's own, and its handler's. */
	uint64_t interval_ns __attribute__((aligned(64))); /* in force; read by who arms */
	uint64_t empty_ticks;  /* what an empty tick costs in the handler, a moving average, in clock ticks */
	uint32_t useless;      /* ticks in a row that could serve nothing here */
	uint32_t quiet;        /* ticks in a row that found nothing */
	struct contd__purse purse;
	uint64_t checkpoints_seen; /* the last checkpoint that looked, when a tick saw it */
	uint32_t calibrating;  /* the handler only counts, and leaves a note */
	uint32_t calibration_ticks;
	uint32_t nested;       /* attach calls */
};

struct contd__signals {
	struct contd__attached *record[ATTACHED_MAX];
	uint32_t count;        /* records there are */
	uint32_t turn;         /* whom to notify next */
	int signal_number;
	pid_t pid;
	bool timers;           /* false: agent "caller" */
	uint64_t kernel_ticks; /* what the kernel costs a thread a tick, in clock ticks; 0: not measured */
	uint64_t notice_ticks; /* the same for a signal from another processor */
	uint32_t listens;      /* peers can find this process */
	uint32_t rung;         /* one has rung */
	char notice_mark;      /* its address marks notifications, as that of the whole marks ticks */
	char bell_mark;        /* and that of this one marks the signals of peers */
	struct sigaction before[_NSIG]; /* CONTD_SIGNAL_CHAIN: of each signal that is, or once was, contd's */
};

extern struct contd__signals contd__signals;
extern __thread struct contd__attached *contd__me __attribute__((tls_model("initial-exec")));

void contd__handler(int signo, siginfo_t *info, void *context);

/* Start the timer of every attached thread. */
void contd__arm_sig(void);
void contd__arm_one_sig(struct contd__attached *a);

/* This thread has no use for ticks that only regions could use, until its next region begins. */
void contd__rest_sig(struct contd__attached *me);

/*
 * After a tick on this thread: keep, change or stop the timer. `cost` of the handler in clock ticks; ran: not empty;
 * guarded: it has not looked.
 */
void contd__tick_done_sig(struct contd__attached *me, uint64_t cost, bool ran, bool guarded);

/* budget.c: the interval that the overhead budget allows; the same after so many quiet ticks. */
uint64_t contd__budget_interval_sig(uint64_t empty_ticks);
uint64_t contd__quiet_interval_sig(const struct contd__attached *me);

/* An interruption took so long in the handler, callbacks apart; what the kernel takes comes on top. */
enum contd__interruption { BY_TIMER, BY_NOTICE, BY_BELL };
void contd__pay_sig(struct contd__attached *me, enum contd__interruption kind, uint64_t now, uint64_t handler_ticks);

/* The most that an empty handler is believed to have taken. */
uint64_t contd__plausible_sig(const struct contd__attached *me);

/* Does the attached thread of that number compute in a region? A momentary answer. */
bool contd__signals_computing_sig(int32_t tid);

/* A ring came to a thread that has no use for it: signal one that computes in a region, if there is one. */
void contd__hand_on_sig(const struct contd__attached *me);

/* Interrupt that thread, if it is attached. */
void contd__ring_sig(int32_t tid);

/* Tick once at that time, whatever the agent: a notification was put off. */
void contd__tick_at_sig(struct contd__attached *a, uint64_t at);

/* Send a notification to that thread of this process; false: the kernel refuses, errno says why. */
bool contd__queue_sig(int32_t tid);

/* 1 if an attached thread has been or is being interrupted. */
int contd__notify_sig(void);

/* The same for one that computes in a region. If there is none, whoever begins a region next looks. */
int contd__notify_region_sig(void);

/* For what a scan by interruption left: ticks, or, where there are none, the next signal. */
void contd__again_sig(bool ran);

/* A tick on this thread soon, whatever the agent, as after a notification that was put off. */
void contd__later_sig(void);

/* Measure what a tick and a notification cost this thread; once a process. Ordinary code of an attached thread; about 5 ms. */
void contd__calibrate(struct contd__attached *me);

#endif
