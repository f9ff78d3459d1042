/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping until there is something to do: contd_group_wait and doze (src/dispatch/wait.c), the daemon
 * (src/dispatch/daemon.c); who tells them: contd__announce_rcu (src/dispatch/complete.c), contd__pending_sig
 * (src/dispatch/source_drive.c).
 *
 * check: safety
 * optimise
 * unreached: 8: a sleeper does not tell itself
 * mutant: WORD_SILENT safety a waiter asleep is not told of a memory word
 * mutant: DOZE_NO_LOOK safety a waiter does not look between saying that it sleeps and sleeping
 * mutant: DOZE_LATE safety a waiter reads the futex word after it has looked
 * mutant: DAEMON_NO_LOOK safety the daemon does not look between saying that it sleeps and sleeping
 * mutant: DAEMON_LATE safety the daemon says that it sleeps after it has looked
 * mutant: ANNOUNCE_FIRST safety a completer announces before it marks
 * mutant: IDLE_SILENT safety no thread is told that the group is complete
 * mutant: STOP_SILENT safety the daemon is not woken to end
 *
 * A waiter waits for a group with two continuations: one for an event that a thread completes, one for a memory word
 * that another thread registers and that holds at once. There is a daemon or none; it may run the group's
 * continuations or may not, and where it may, the waiter may leave all to it. The waiter stops it at the end. A nap
 * with a time limit is a short one. tree.pml has the tree of ready bits.
 */
byte outstanding = 2;
byte ready;          /* marked in the root */
byte words;          /* contd__words.pending */
bool sleepers, wake; /* wake: it has changed since the sleeper read it */
bool asleep;         /* in futex(2) */
bool daemon, any;    /* there is one; it may run the group's */
bool alone;          /* and no other thread does */
bool daemon_asleep, daemon_in_futex, stop, daemon_ended = true; /* in futex(2) on daemon_asleep */

/* contd__wake_daemon_sig */
inline wake_daemon()
{
	if
	:: daemon_asleep ->
		daemon_asleep = false; /* an exchange; a second one who gets here wakes once more */
		daemon_in_futex = false
	:: else
	fi
}

inline wake_sleepers()
{
	if
	:: sleepers ->
		wake = true;
		asleep = false
	:: else
	fi
}

/* contd__announce_rcu */
inline announce()
{
	wake_sleepers();
	if
	:: any -> wake_daemon()
	:: else
	fi
}

/* contd__slot_event_done_sig of the last event */
inline complete()
{
#ifdef MUTANT_ANNOUNCE_FIRST
	announce();
	ready++
#else
	ready++;
	announce()
#endif
}

/* contd__words_look_sig: one that holds */
inline words_look(got)
{
	d_step {
		got = (words != 0);
		words = words - got
	}
	if
	:: atomic { got -> got = false }
		complete()
	:: else
	fi
}

/* contd__scan_sig, run, contd__slot_finish_sig, group_idle */
inline scan(got)
{
	d_step {
		got = (ready != 0);
		ready = ready - got
	}
	if
	:: got ->
		outstanding--;
#ifndef MUTANT_IDLE_SILENT
		if
		:: outstanding == 0 -> announce()
		:: else
		fi
#endif
	:: else
	fi
}

proctype Completer()
{
	complete()
}

/* contd_word_continue, contd__pending_sig */
proctype Registrar()
{
	words++;
	wake_daemon();
#ifndef MUTANT_WORD_SILENT
	wake_sleepers()
#endif
}

/* contd_group_wait, contd__drive, doze */
proctype Waiter()
{
	bool got;

	do
	:: outstanding == 0 -> break
	:: outstanding != 0 && !alone ->
		words_look(got);
		scan(got);
		if
		:: atomic { got -> got = false }
		:: else ->
			if
			:: words != 0 /* a nap */
			:: else ->
				sleepers = true;
				wake = false;
				if
#ifndef MUTANT_DOZE_NO_LOOK
				:: outstanding == 0
				:: outstanding != 0 ->
					if
					:: ready != 0
					:: ready == 0 ->
						if
#ifndef MUTANT_WORD_SILENT
						:: words != 0
						:: words == 0 ->
#else
						:: true ->
#endif
#else
				:: true ->
					if
					:: true ->
						if
						:: true ->
#endif
#ifdef MUTANT_DOZE_LATE
							wake = false;
#endif
							asleep = !wake;
							!asleep
						fi
					fi
				fi;
				sleepers = false
			fi
		fi
	od;
	/* contd_daemon_stop: end_locked, rouse */
	stop = true;
#ifndef MUTANT_STOP_SILENT
	wake_daemon();
#endif
	daemon_ended
}

/* something_to_do */
inline something(got)
{
	if
	:: atomic { words != 0 -> got = true }
	:: else -> got = any && ready != 0
	fi
}

/* daemon_main, sleep_on */
proctype Daemon()
{
	bool got;

	do
	:: stop -> break
	:: else ->
		something(got);
		if
		:: atomic { got -> got = false }
			/* look */
			words_look(got);
			if
			:: any ->
				scan(got);
				got = false
			:: else
			fi
		:: else ->
			/* sleep_on */
#ifndef MUTANT_DAEMON_LATE
			daemon_asleep = true;
#endif
#ifndef MUTANT_DAEMON_NO_LOOK
			something(got);
#endif
			if
			:: atomic { got -> got = false }
			:: else ->
				if
				:: stop
				:: else ->
#ifdef MUTANT_DAEMON_LATE
					daemon_asleep = true;
#endif
					daemon_in_futex = daemon_asleep;
					!daemon_in_futex
				fi
			fi;
			daemon_asleep = false
		fi
	od;
	daemon_ended = true
}

init {
	atomic {
		if
		:: daemon = false
		:: daemon = true
		fi;
		if
		:: any = false
		:: daemon -> any = true
		fi;
		if
		:: alone = false
		:: any -> alone = true
		fi;
		run Completer();
		run Registrar();
		run Waiter();
		if
		:: daemon ->
			daemon_ended = false;
			run Daemon()
		:: else
		fi
	}
}
