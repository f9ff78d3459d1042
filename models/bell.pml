/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell: a process that sends rings the receiver. The receiver's thread computes, or its daemon sleeps.
 * src/dispatch/page.h, src/signal/bell.c, src/signal/timer.c, src/signal/handler.c, src/dispatch/daemon.c.
 *
 * check: safety
 * check: ltl handled
 * compile: -DNOREDUCE -DNFAIR=3
 * optimise
 * mutant: ARM_NO_LOOK safety the thread that arms the bell does not look again
 * mutant: LOOK_FIRST safety a region looks and arms the bell afterwards
 * mutant: SEND_LATE safety a sender looks at the bell before its message is visible
 * mutant: NO_EXCHANGE safety a sender loads and clears the bell in two steps
 * mutant: OUTSIDE_SILENT safety a ring outside a region does not ask the next region to arm
 * mutant: TICK_ARM_NO_LOOK safety the tick that hands over to the bell does not look again
 * mutant: TICK_OUTSIDE safety a tick outside a region stops the timer and does not ask the next region to arm
 * mutant: DOZE_NO_LOOK safety the daemon does not look between saying that it sleeps and sleeping
 * mutant: NO_SAFETY safety a sender may die, and there is no safety tick
 * mutant: SAFETY_NO_ARM ltl handled the safety tick looks, and does not arm the bell
 *
 * Two senders, the first with two messages. A sender makes its message visible (queue), has a full barrier, looks at
 * `armed` in the receiver's page and exchanges it with 0. The sender that gets the armed word sends one signal, or
 * wakes the futex. One of them may die between the exchange and the signal. A slow safety tick, which runs while
 * something is pending, finds the message then, and nothing else is lost.
 *
 * The thread computes in two regions. In the second it goes on until everything has been handled. In the handler the
 * budget allows the bell, or does not: then ticks take over, until it does. The thread does not move while its
 * handler runs, and signals wait meanwhile. The daemon has no regions and no budget.
 */
#define SENDERS 2

byte queue;
bool armed;             /* 0, or whom to interrupt */
byte rings;             /* signals that wait; they are queued, not merged */
bool asleep;            /* the daemon, in futex(2) on `armed` */

bool region, rearm = true, inside;
bool timer;
bool thread;            /* else it is the daemon */
bool mortal, died;      /* one may die; it has died */
bool ticked;            /* the safety tick has come, once: that must be enough */

/* Not in the code. */
byte armings, rung, sent;
bool done;

ltl handled { <> done }

#define MESSAGES 3

/* The signal or the wake-up: send (src/signal/bell.c) */
inline ring()
{
	if
	:: mortal && !died -> died = true
	:: true ->
		if
		:: thread -> rings++
		:: else -> asleep = false
		fi
	fi
}

/* A message, and contd_bell_ring: contd__bell_ring (src/signal/bell.c) */
inline send()
{
#ifndef MUTANT_SEND_LATE
	queue++;
#endif
	got = armed;
	if
	:: got ->
#ifdef MUTANT_NO_EXCHANGE
		armed = false;
#else
		d_step {
			got = armed;
			armed = false
		}
#endif
	:: else
	fi;
#ifdef MUTANT_SEND_LATE
	queue++;
#endif
	if
	:: atomic { got -> got = false; rung++; assert(rung <= armings) }
		ring()
	:: else
	fi;
	sent++
}

proctype Sender(byte n)
{
	bool got;

	do
	:: atomic { n != 0 -> n-- }
		send()
	:: else -> break
	od
}

/* arm_bell (src/signal/bell.c) */
inline arm()
{
	d_step {
		armings = armings + (armed -> 0 : 1);
		armed = true
	}
}

/* Take what is in the queue, run callbacks: contd__react_sig (src/dispatch/react.c) */
#define LOOK() queue = 0

/* contd_compute_begin, which calls contd__region_rearm (src/signal/timer.c) */
inline begin()
{
	region = true;
	if
	:: rearm ->
#ifdef MUTANT_LOOK_FIRST
		rearm = false;
		LOOK();
		arm()
#else
		rearm = false;
		arm();
		LOOK()
#endif
	:: else
	fi
}

proctype Thread() provided (!inside)
{
	begin();
	region = false;
	begin();
	sent == MESSAGES && queue == 0;
	done = true
}

/*
 * contd__handler, contd__bell_settle_sig, contd__tick_done_sig: of rings, of ticks, and of the safety tick. (In
 * the code
 * a tick outside regions says REARM only with the last useless one, contd__rest_sig, and goes on until then.)
 */
proctype Handler()
{
end:	do
	:: atomic { rings != 0 -> inside = true; rings-- }
		if
		:: !region ->
#ifndef MUTANT_OUTSIDE_SILENT
			rearm = true
#endif
		:: else ->
			LOOK();
			if
			:: true ->
				arm();
#ifndef MUTANT_ARM_NO_LOOK
				LOOK()
#endif
			:: true -> timer = true /* the budget does not allow it */
			fi
		fi;
		inside = false
	:: atomic { timer -> inside = true }
		if
		:: !region ->
			timer = false;
#ifndef MUTANT_TICK_OUTSIDE
			rearm = true
#endif
		:: else ->
			LOOK();
			if
			:: true ->
				timer = false;
				arm();
#ifndef MUTANT_TICK_ARM_NO_LOOK
				LOOK()
#endif
			:: true
			fi
		fi;
		inside = false
#ifndef MUTANT_NO_SAFETY
	:: atomic { died && !ticked && region && queue != 0 -> inside = true; ticked = true }
		LOOK();
#ifndef MUTANT_SAFETY_NO_ARM
		arm();
		LOOK();
#endif
		inside = false
#endif
	od
}

/* daemon_main: its page has a futex word (DAEMON_NAPS): it says that it sleeps, looks again, sleeps. */
proctype Daemon()
{
	do
	:: queue != 0 -> LOOK()
	:: queue == 0 ->
		if
		:: sent == MESSAGES -> break
		:: else
		fi;
		arm();
#ifndef MUTANT_DOZE_NO_LOOK
		if
		:: queue != 0
		:: else ->
#else
		if
		:: true ->
#endif
			asleep = armed;
			if
			:: !asleep
			:: sent == MESSAGES && queue == 0 -> break /* the end of this model, not of a sleep */
#ifndef MUTANT_NO_SAFETY
			:: atomic { died && !ticked && queue != 0 -> ticked = true } /* its safety tick: the futex's time limit */
#endif
			fi
		fi;
		asleep = false
	od;
	done = true
}

init {
	atomic {
		if
		:: mortal = false
		:: mortal = true
		fi;
		run Sender(2);
		run Sender(1);
		if
		:: thread = true;
			run Thread();
			run Handler()
		:: thread = false;
			run Daemon()
		fi
	}
}
