/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One signal to one attached thread: `signalled` and its handler, guards, read-side sections, the first attach's
 * calibration,
 * and threads that come and go.
 * src/signal/notify.c, handler.c, attach.c, calibrate.c; contd_guard_end (include/contd/contd.h),
 * contd__guard_pickup (src/dispatch/react.c), contd__read_unlock_sig (src/rcu/reader.h).
 *
 * check: safety
 * compile: -DNOREDUCE
 * optimise
 * unreached: 24: who has just attached is the first that it finds in record 0; only thread 2 has a guard, or calibrates; the
 *     end of a guard inside a section does not look
 * mutant: CLAIM_OUTSIDE safety a sender claims `signalled` before it is counted among the senders
 * mutant: EXIT_SILENT safety a thread that ends does not hand its notification on
 * mutant: CLEAR_LATE safety the handler clears `signalled` after it has looked
 * mutant: NOTIFY_FIRST safety a completer notifies before it marks
 * mutant: GUARD_FIRST safety a guard looks for missed notifications before it ends
 * mutant: NO_PICKUP safety a thread that has run continuations does not look for missed notifications afterwards
 * mutant: SECTION_SILENT safety the end of a read-side section does not look for notifications that were missed in it
 * mutant: SECTION_DROPS safety the end of a guard inside a read-side section takes the note away
 * mutant: CALIBRATION_SILENT safety the end of the calibration does not look
 * mutant: CALIBRATION_KEEPS safety the end of the calibration leaves `signalled` set
 * mutant: CALIBRATION_LATE safety the end of the calibration clears `signalled` after it has looked
 * mutant: REFUSED_SILENT safety a signal that the kernel refuses is not sent by the timer instead
 * mutant: DETACH_NO_WAIT safety a thread that is detached does not wait for its senders
 *
 * Two completers make something ready, each once, and notify one attached thread. Either there is one, which goes
 * through a guard, or through a read-side section and a guard inside it, or is calibrated, and does not move while its
 * handler runs. Or there is one that is detached, or ends, and its
 * record becomes another thread's, and there may be one more that is attached all the time; that handlers stop those
 * meanwhile forbids executions and adds none. The kernel may refuse a signal (RLIMIT_SIGPENDING): a timer sends it
 * then. There are no other ticks (CONTD_AGENT=caller).
 */
byte ready;               /* marked, of async-signal-safe groups */

/* struct contd__attached; tid: the thread that the record is of now, 0: none */
byte tid[2] = {0, 2};
byte senders[2];
bool signalled[2];

/* Threads 1 and 3 use record 0 one after the other, thread 2 record 1. */
bool pending[4];          /* the signal is queued */
bool inside[4];           /* the handler runs */
bool guard, missed;       /* of thread 2 */
bool section, calibrating; /* as well */
byte ended;

/* contd__notify_sig for one of the records: r; done: a thread will look */
inline interrupt(r)
{
	if
	:: done || tid[r] == 0
	:: else ->
		if
		:: atomic { signalled[r] -> done = true }
		:: else ->
#ifdef MUTANT_CLAIM_OUTSIDE
			d_step {
				mine = !signalled[r];
				signalled[r] = true
			}
			if
			:: !mine -> done = true
			:: mine ->
				/* send_signal */
				senders[r]++;
				to = tid[r];
				if
				:: to != 0 ->
					pending[to] = true;
					done = true
				:: else
				fi;
				senders[r]--;
				if
				:: done
				:: else -> signalled[r] = false
				fi
			fi;
#else
			senders[r]++;
			to = tid[r];
			if
			:: to != 0 ->
				d_step {
					mine = !signalled[r];
					signalled[r] = true
				}
				if
				:: mine -> pending[to] = true
				:: mine ->
					/* The kernel refuses it: the timer sends its own. */
#ifndef MUTANT_REFUSED_SILENT
					pending[to] = true
#else
					skip
#endif
				:: else
				fi;
				done = true
			:: else
			fi;
			senders[r]--;
#endif
			d_step {
				mine = false;
				to = 0
			}
		fi
	fi
}

inline notify()
{
	/* Either may be the one whose turn it is. */
	if
	:: true ->
		interrupt(0);
		interrupt(1)
	:: true ->
		interrupt(1);
		interrupt(0)
	fi;
	done = false
}

/* contd_event_complete, contd__kick_sig on a thread that is not attached */
proctype Completer()
{
	byte to;
	bool done, mine;

#ifdef MUTANT_NOTIFY_FIRST
	notify();
	ready++;
#else
	ready++;
	notify();
#endif
	ended++
}

/* contd__react_sig: all that it finds */
inline react()
{
	ready = 0
}

/*
 * Of record 0: contd_thread_detach, or thread_exit and detach_self; record_retire. Then another thread's
 * contd_thread_attach: record_take, publish, look.
 */
proctype Record()
{
	byte to;
	bool done, mine;

	tid[0] = 0;
#ifndef MUTANT_DETACH_NO_WAIT
	senders[0] == 0;
#endif
	/* signals that come from here on find the thread not attached, or gone */
#ifndef MUTANT_EXIT_SILENT
	if
	:: ready != 0 ->
		interrupt(1); /* of record 0 it sees that no thread has it */
		done = false
	:: else
	fi;
#endif
	if
	:: signalled[0] = false;
		tid[0] = 3;
		if
		:: ready != 0 -> notify()
		:: else
		fi
	:: true /* nobody comes */
	fi;
	ended++
}

/* contd_guard_begin, contd_guard_end, contd__guard_pickup; or contd__frame_enter_sig, contd__frame_leave_sig, contd__pickup */
proctype Guarded() provided (!inside[2])
{
	guard = true;
#ifdef MUTANT_GUARD_FIRST
	if
	:: missed -> goto pickup
	:: else -> guard = false
	fi;
	goto out;
pickup:
#endif
	guard = false;
#ifndef MUTANT_NO_PICKUP
	do
	:: missed ->
		missed = false;
		guard = true;
		react();
		guard = false
	:: else -> break
	od;
#endif
#ifdef MUTANT_GUARD_FIRST
out:
#endif
	ended++
}

/* contd__guard_pickup */
inline pickup()
{
	do
	:: !section && missed ->
		missed = false;
		guard = true;
		react();
		guard = false
#ifdef MUTANT_SECTION_DROPS
	:: section && missed -> missed = false
	:: !missed -> break
#else
	:: section || !missed -> break
#endif
	od
}

/* contd__read_lock_sig, contd_guard_begin, contd_guard_end, contd__read_unlock_sig */
proctype Reading() provided (!inside[2])
{
	section = true;
	guard = true;
	guard = false;
	pickup();
	section = false;
#ifndef MUTANT_SECTION_SILENT
	pickup();
#endif
	ended++
}

/* contd__calibrate */
proctype Calibrated() provided (!inside[2])
{
	calibrating = true;
	calibrating = false;
#ifdef MUTANT_CALIBRATION_LATE
	missed = true;
	pickup();
	signalled[1] = false;
#else
#ifndef MUTANT_CALIBRATION_KEEPS
	signalled[1] = false;
#endif
#ifdef MUTANT_CALIBRATION_SILENT
	missed = false;
#else
	missed = true;
	pickup();
#endif
#endif
	ended++
}

/* contd__handler of a notification, on thread t with record r */
inline handle(t, r)
{
	atomic {
		pending[t] -> pending[t] = false;
		inside[t] = true
	}
	/* enter */
	if
	:: t == 2 && calibrating -> missed = true
	:: tid[r] == t && !(t == 2 && calibrating) ->
#ifndef MUTANT_CLEAR_LATE
		signalled[r] = false;
#endif
		if
		:: t == 2 && (guard || section) -> missed = true
		:: else -> react()
		fi;
#ifdef MUTANT_CLEAR_LATE
		signalled[r] = false
#endif
	:: else
	fi;
	inside[t] = false
}

proctype Handlers()
{
end:	do
	:: handle(1, 0)
	:: handle(2, 1)
	:: handle(3, 0)
	od
}

/* At the end each ready continuation has a thread that looks for it, if there is a thread. */
proctype End()
{
	ended == 3 && !pending[1] && !pending[2] && !pending[3] && !inside[1] && !inside[2] && !inside[3];
	assert((ready == 0 && !missed) || (tid[0] == 0 && tid[1] == 0))
}

init {
	atomic {
		run Completer();
		run Completer();
		if
		:: tid[0] = 0;
			if
			:: run Guarded()
			:: run Reading()
			:: run Calibrated()
			fi
		:: tid[0] = 1;
			run Record();
			if
			:: tid[1] = 0
			:: true
			fi
		fi;
		run Handlers();
		run End()
	}
}
