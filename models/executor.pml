/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pull executor: what is submitted is found by a thread that is lent to it and may be asleep, or by an event
 * loop that is
 * told; and who drains it all may destroy the executor: contd__task_hand_over_sig, tell_threads,
 * contd__executor_done_sig, wake_later, wake_all_untold (src/task/executor_sig.c), run_some, is_idle, lend, sleep_on,
 * contd_executor_drain, contd_executor_stop, contd_executor_destroy (src/task/executor.c).
 *
 * check: safety
 * mutant: NO_SECTION safety a submitting thread is in no read-side section, and the executor may be freed under it
 * mutant: STOP_NO_SECTION safety nor is a stopping thread
 * mutant: LATER_NO_HOLD safety a thread that puts a wake-up off does not hold the executor
 * mutant: DESTROY_NO_WAIT safety destroying does not wait for threads that have begun to hold the executor since it was found idle
 * mutant: NO_HOLD safety a sweep does not say that it has something in hand before it takes it
 * mutant: IDLE_ONE_LOOK safety draining does not look again whether something has been taken in hand since
 * mutant: TELL_FIRST safety it tells before the work can be found
 * mutant: SLEEP_NO_LOOK safety a thread does not look between saying that it sleeps and sleeping
 * mutant: SLEEP_LATE safety a thread reads the futex word after it has looked
 * mutant: STOP_SILENT safety threads that sleep are not woken to end
 * mutant: NOTIFIED_LATE safety the loop says that it has looked after it has looked
 *
 * Two threads submit one task each, and one of them may put the waking off until it has left its read-side section.
 * There are two lent threads, or one loop, which notify() makes ready. Another thread drains when both have been
 * submitted, lets a third one stop the threads, and destroys when they have returned. The list of tasks is a count
 * here: pushing and taking are a step (owner.pml).
 */
byte queue, pushed, ran;
byte in_hand, ever, threads; /* ever: the high half of in_hand */
byte sections;
bool stopped, freed;
byte sleepers;
bool changed[2];   /* the futex word, since this thread has read it */
bool asleep[2];
bool loop;         /* an event loop, and no lent threads */
bool notified, readable;

inline touch()
{
	assert(!freed)
}

inline tell_threads()
{
	d_step {
		touch();
		changed[0] = true;
		changed[1] = true
	}
	if
	:: asleep[0] -> asleep[0] = false
	:: asleep[1] -> asleep[1] = false
	:: !asleep[0] && !asleep[1]
	fi
}

/* tell_threads */
inline tell()
{
	if
	:: loop ->
		if
		:: atomic { !notified -> touch(); notified = true }
			readable = true
		:: notified -> touch()
		fi
	:: !loop && sleepers > 0 -> tell_threads()
	:: !loop && sleepers > 0 && may_put_off ->
#ifndef MUTANT_LATER_NO_HOLD
		d_step { touch(); in_hand++; ever++ }
#endif
		later = true
	:: !loop && sleepers == 0 -> touch()
	fi
}

proctype Submitter(bool may_put_off)
{
	bool later;

#ifndef MUTANT_NO_SECTION
	sections++;
#endif
#ifdef MUTANT_TELL_FIRST
	tell();
	d_step { queue++; pushed++ }
#else
	d_step { queue++; pushed++ };
	tell()
#endif
#ifndef MUTANT_NO_SECTION
	;
	sections--
#endif
	;
	/* wake_later, wake_all_untold */
	if
	:: later ->
		tell_threads();
#ifndef MUTANT_LATER_NO_HOLD
		d_step { touch(); in_hand-- }
#endif
	:: !later
	fi
}

/* contd_executor_stop */
proctype Stopper()
{
#ifndef MUTANT_STOP_NO_SECTION
	sections++;
#endif
	d_step { touch(); stopped = true };
#ifndef MUTANT_STOP_SILENT
	d_step {
		touch();
		changed[0] = true;
		changed[1] = true;
		asleep[0] = false;
		asleep[1] = false
	}
#endif
#ifndef MUTANT_STOP_NO_SECTION
	;
	sections--
#endif
}

/* run_some; got is 1 if there was something */
inline take(got)
{
	got = 0;
	if
	:: d_step { queue == 0 -> touch() }
	:: d_step { queue > 0 -> touch() }
#ifndef MUTANT_NO_HOLD
		d_step { touch(); in_hand++; ever++ }
#endif
		d_step {
			got = (queue > 0);
			queue = queue - got
		}
#ifdef MUTANT_NO_HOLD
		d_step { touch(); in_hand++; ever++ }
#endif
		ran = ran + got;
		d_step { touch(); in_hand-- }
	fi
}

proctype Lent(byte me)
{
	byte got;

	do
	:: take(got);
		if
		:: got
		:: !got && stopped -> break
		:: !got && !stopped ->
			sleepers++;
#ifndef MUTANT_SLEEP_LATE
			changed[me] = false;
#endif
#ifndef MUTANT_SLEEP_NO_LOOK
			if
			:: queue > 0 || stopped
			:: queue == 0 && !stopped ->
#endif
#ifdef MUTANT_SLEEP_LATE
				changed[me] = false;
#endif
				/* futex(2) */
				if
				:: atomic { !changed[me] -> asleep[me] = true }
					!asleep[me]
				:: changed[me]
				fi
#ifndef MUTANT_SLEEP_NO_LOOK
			fi
#endif
			;
			sleepers--
		fi
	od;
	threads--
}

/* It ends when it is told that all has run, which the executor does not know. */
proctype Loop()
{
	byte got;

	do
	:: atomic { readable -> readable = false }
#ifndef MUTANT_NOTIFIED_LATE
		notified = false;
#endif
		do
		:: take(got);
			if
			:: got
			:: !got -> break
			fi
		od;
#ifdef MUTANT_NOTIFIED_LATE
		notified = false
#endif
	:: ran == 2 && !readable -> break
	od;
	threads--
}

init
{
	byte before;

	atomic {
		if
		:: loop = true; threads = 1; run Loop()
		:: threads = 2; run Lent(0); run Lent(1)
		fi;
		run Submitter(false);
		run Submitter(true)
	}
	pushed == 2;
	if
	:: true -> ran == 2 /* it waits for what the tasks do */
	:: true
	fi;
	/* contd_executor_drain, is_idle */
	do
	:: in_hand > 0
	:: atomic { in_hand == 0 -> before = ever }
		if
		:: queue > 0
		:: queue == 0 ->
#ifdef MUTANT_IDLE_ONE_LOOK
			break
#else
			if
			:: ever == before -> break
			:: ever != before
			fi
#endif
		fi
	od;
	assert(ran == 2);
	if
	:: !loop -> run Stopper()
	:: else
	fi;
	threads == 0;
	in_hand == 0; /* else it is refused, and destroyed later */
	sections == 0; /* a grace period */
#ifndef MUTANT_DESTROY_NO_WAIT
	in_hand == 0;
#endif
	freed = true
}
