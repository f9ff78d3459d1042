/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agent block: the daemon polls a descriptor on behalf of regions, takes the bell away and interrupts the thread that
 * has armed it. src/dispatch/daemon.c, src/signal/bell.c, handler.c, notify.c, timer.c, attach.c.
 *
 * check: safety
 * compile: -DNOREDUCE
 * optimise
 * mutant: NOTICE_SILENT safety a thread that is interrupted outside regions does nothing about the bell
 * mutant: NO_HAND_ON safety it asks its own next region to arm the bell, and tells no other thread
 * mutant: NO_REARM safety a ring that no computing thread is there for does not ask the others' next regions
 * mutant: GUARD_SILENT safety a guard that outlasts its region forgets the interruption that came in both
 * mutant: GUARD_NO_ARM safety a region that begins under a guard does not arm the bell at the end of the guard
 * mutant: NOT_ASKED safety what becomes pending asks no thread that computes
 * mutant: LATE_UNASKED safety a thread looks before it says that it may be asked
 * mutant: DETACH_SILENT safety a thread that detaches takes the bell with it
 *
 * One operation, which a thread without regions begins, and which ends after that. Two attached threads. The first has
 * one region, and then it detaches, or a guard that began in the region ends. The second has two regions, of which the
 * last begins under a guard, and stays in that until the operation has been looked at. There are no ticks, and the
 * purses can pay. Steps are sequentially consistent: `regions` has what a region's begin without a fence takes.
 */
bool pending;           /* the operation is under way */
bool ended;
bool ready;             /* it has ended: the descriptor is readable */
byte armed;             /* 0, or the thread that is interrupted */
bool attached[3], region[3], guard[3], told[3], inside[3];
bool rearm[3];          /* CONTD__TLS_REARM */
bool unasked[3];        /* it has looked in a region, and may be asked */
bool told_of[3];        /* its next region has been told to look */
bool handed[3];         /* a ring that found it outside, since its last region */
bool notice[3];         /* a signal is on its way */

#define COMPUTES(i) (attached[i] && region[i])

/* interrupt_computing (notify.c) */
inline interrupt_computing(other)
{
	notice[other] = notice[other] || COMPUTES(other)
}

/* contd__hand_on_sig (notify.c), on one of two threads */
inline hand_on(other)
{
	if
	:: atomic { COMPUTES(other) -> interrupt_computing(other) }
	:: atomic { !COMPUTES(other) ->
#ifndef MUTANT_NO_REARM
		rearm[other] = true
#endif
	};
		interrupt_computing(other)
	fi
}

/* contd__react_sig in a region: it finds the operation, and runs its continuation */
inline look()
{
	d_step {
		if
		:: ready ->
			ready = false;
			pending = false
		:: else
		fi
	}
}

/* contd__bell_settle_sig, contd__bell_wanted_sig, arm_bell (bell.c). Another thread that computes and has armed the bell
 * can do the same. */
inline settle(i)
{
#ifdef MUTANT_LATE_UNASKED
	got = pending;
	unasked[i] = true;
#else
	unasked[i] = true;
	got = pending;
#endif
	if
	:: atomic { !got || armed == i -> got = false }
	:: atomic { got && armed != i && (armed == 0 || !COMPUTES(armed)) -> got = false; armed = i };
		look()
	:: atomic { else -> got = false }
	fi
}

/* contd__bell_outside_sig (bell.c) */
inline outside(i, other)
{
#ifdef MUTANT_NOTICE_SILENT
	skip
#else
	if
	:: atomic { armed == 0 -> rearm[i] = true }
#ifndef MUTANT_NO_HAND_ON
		if
		:: atomic { !handed[i] && armed == 0 && pending -> handed[i] = true };
			hand_on(other)
		:: else -> handed[i] = true
		fi
#endif
	:: else
	fi
#endif
}

/* contd_compute_begin, which calls contd__region_rearm (timer.c) */
inline begin(i)
{
	region[i] = true;
	if
	:: atomic { rearm[i] -> rearm[i] = false; handed[i] = false };
		settle(i)
	:: else
	fi
}

proctype First() provided (!inside[1])
{
	bool got;

	begin(1);
	if
	:: guard[1] = true;
		region[1] = false;
		/* The end of the guard: looked (attach.c) */
		guard[1] = false;
		if
		:: atomic { told[1] -> told[1] = false };
#ifndef MUTANT_GUARD_SILENT
			outside(1, 2)
#endif
		:: else
		fi
	:: region[1] = false;
		/* contd_thread_detach, record_retire (attach.c), contd__bell_disarm_sig (bell.c) */
		d_step {
			if
			:: armed == 1 -> armed = 0
			:: else
			fi
		}
#ifndef MUTANT_DETACH_SILENT
		if
		:: armed == 0 && pending -> hand_on(2)
		:: else
		fi;
#endif
		attached[1] = false
	fi
}

proctype Second() provided (!inside[2])
{
	bool got;

	begin(2);
	atomic {
		region[2] = false;
		guard[2] = true
	};
	region[2] = true;
	if
	:: atomic { rearm[2] -> rearm[2] = false; handed[2] = false; told[2] = true }
	:: else
	fi;
	guard[2] = false;
	if
	:: atomic { told[2] -> told[2] = false };
		look();
#ifndef MUTANT_GUARD_NO_ARM
		settle(2)
#endif
	:: else
	fi;
	ended && !pending /* it computes until then */
}

/* contd__handler (handler.c), by a notification */
proctype Handler(byte i)
{
	bool got;

end:	do
	:: atomic {
		notice[i] && attached[i] -> notice[i] = false;
		inside[i] = true
	};
		if
		:: region[i] && guard[i] -> told[i] = true
		:: region[i] && !guard[i] ->
			look();
			settle(i)
		:: else -> outside(i, 3 - i)
		fi;
		inside[i] = false
	od
}

/* block, ring_region (daemon.c), contd__ring_sig (notify.c) */
proctype Daemon()
{
	byte thread;

end:	do
	:: atomic { ready && armed != 0 ->
		thread = armed;
		armed = 0
	};
		/* If it has detached since, its end has handed on: the bell was not armed. */
		notice[thread] = attached[thread]
	od
}

/* contd__pending_sig: contd__arm_sig (timer.c), contd__ask_sig (notify.c); and later the operation ends */
proctype Operation()
{
	byte i = 1;

	pending = true;
#ifndef MUTANT_NOT_ASKED
	if
	:: armed == 0 ->
		do
		:: atomic { i < 3 && unasked[i] && COMPUTES(i) ->
			unasked[i] = false;
			rearm[i] = true;
			notice[i] = true
		};
			goto asked
		:: atomic { i < 3 && !(unasked[i] && COMPUTES(i)) -> i++ }
		:: i == 3 -> break
		od;
		i = 1;
		do
		:: atomic { i < 3 && unasked[i] ->
			unasked[i] = false;
			rearm[i] = true;
			told_of[i] = true
		}
		:: atomic { i < 3 && !unasked[i] -> i++ }
		:: i == 3 -> break
		od;
		/* Those that were told, and compute: they may have missed it. */
		do
		:: atomic { i > 1 && told_of[i - 1] -> notice[i - 1] = notice[i - 1] || COMPUTES(i - 1) };
			i--
		:: i > 1 && !told_of[i - 1] -> i--
		:: i == 1 -> break
		od
	:: else
	fi;
#endif
asked:	ready = true;
	ended = true
}

init {
	atomic {
		attached[1] = true;
		attached[2] = true;
		rearm[1] = true;
		rearm[2] = true;
		run First();
		run Second();
		run Handler(1);
		run Handler(2);
		run Daemon();
		run Operation()
	}
}
