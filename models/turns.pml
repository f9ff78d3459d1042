/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose turn it is in MPI: the program's calls, or progress by a tick or by contd's thread; and contd's thread, which
 * sleeps while nothing is outstanding: go_in, go_out, wait_for_tick, contd__turn_wait, contd__turn_over
 * (src/progress/turns.c), contd__turn_take_sig (src/progress/inside.c), take_turn (src/progress/begin.c), contd__more,
 * add_to (src/progress/outstanding.c), sleep_on (src/dispatch/daemon.c).
 *
 * check: safety
 * mutant: NO_BARRIER safety the stores of threads in calls are not made visible, membarrier(2)
 * mutant: LOOK_EARLY safety the calls are looked at before the turn is stored, and not after
 * mutant: CALL_NO_LOOK safety a call does not look whose turn it is
 * mutant: CALL_EARLY safety a call looks whose turn it is before it says that it is inside
 * mutant: LOCKED_EARLY safety `locked` is looked at before the turn is taken
 * mutant: NO_WAIT safety a thread that locks a stream does not wait for progress that is under way
 * mutant: ENDING_NO_WAIT safety a thread that ends the program does not wait
 * mutant: COUNT_WEAK safety the first operation is counted by a plain store, before the look whether contd's thread sleeps
 *
 * Two threads call MPI; one of them begins an operation and waits until progress was made for it. A third one locks a
 * stream and, at last, ends the program. No call waits for a limited time, as at MPI_THREAD_SERIALIZED: what a second
 * of waiting does at MPI_THREAD_MULTIPLE is not in the model. Without membarrier(2) a call adds to `turn` instead,
 * which is not in the model either.
 *
 * Processors of threads in calls have store buffers: Memory takes the stores later, in order. contd__turn_take_sig empties
 * them. A load of a thread's own store is not in the protocol.
 */
#define CALLERS 2
#define TIMES 2

/* what is in a buffer */
#define INSIDE 1
#define OUTSIDE 2
#define REQUEST 3

bool turn; /* TURN_TICK */
bool inside[CALLERS];
bool requests, asleep; /* contd__wake.daemon_asleep */
bool locked, ending, over;
bool progress, moved;
byte in_mpi;
bool has_stream;
chan buffer[CALLERS] = [4] of { byte };

inline takes(me, what)
{
	if
	:: what == INSIDE -> inside[me] = true
	:: what == OUTSIDE -> inside[me] = false
	:: what == REQUEST -> requests = true
	fi
}

active [CALLERS] proctype Memory()
{
	byte what;

end:	do
	:: atomic { buffer[_pid]?what -> takes(_pid, what); what = 0 }
	od
}

/* go_in */
inline enter(me)
{
#ifdef MUTANT_CALL_EARLY
	!turn;
	buffer[me]!INSIDE;
#else
	buffer[me]!INSIDE;
#ifndef MUTANT_CALL_NO_LOOK
	!turn; /* wait_for_tick */
#endif
#endif
	atomic { in_mpi++; assert(!progress) }
}

/* go_out */
inline leave(me)
{
	in_mpi--;
	buffer[me]!OUTSIDE
}

/* contd__more, and contd__wake_daemon_sig */
inline begin(me)
{
#ifdef MUTANT_COUNT_WEAK
	buffer[me]!REQUEST;
#else
	atomic { empty(buffer[me]) -> requests = true }
#endif
	asleep = false
}

active proctype Begins()
{
	enter(0);
	begin(0);
	leave(0);
	moved; /* it computes until its operation has gone on */
	enter(0);
	leave(0)
}

active proctype Calls()
{
	byte times;

	do
	:: times < TIMES ->
		times++;
		enter(1);
		leave(1)
	:: times == TIMES -> break
	od
}

active proctype Ends()
{
	/* flockfile(3), contd__turn_wait */
	locked = true;
#ifndef MUTANT_NO_WAIT
	!turn;
#endif
	atomic { has_stream = true; assert(!progress) }
	has_stream = false;
	locked = false;
	moved;
	/* contd__program_ends, contd__turn_over */
	ending = true;
#ifndef MUTANT_ENDING_NO_WAIT
	!turn;
#endif
	atomic { over = true; assert(!progress) }
}

inline callers_inside(any)
{
	any = inside[0];
	any = any || inside[1]
}

/* contd__turn_take_sig, take_turn */
inline look()
{
	callers_inside(any);
#ifdef MUTANT_LOCKED_EARLY
	passes = locked;
#endif
	if
	:: any
	:: !any ->
		turn = true;
#ifndef MUTANT_NO_BARRIER
		/* membarrier(2): one processor after the other, each at some time in between */
		empty(buffer[0]);
		empty(buffer[1]);
#endif
#ifndef MUTANT_LOOK_EARLY
		callers_inside(any);
#endif
#ifndef MUTANT_LOCKED_EARLY
		passes = locked;
#endif
		if
		:: any || ending || passes
		:: else ->
			atomic {
				progress = true;
				assert(!in_mpi && !has_stream && !over)
			}
			atomic {
				progress = false;
				moved = moved || requests
			}
		fi
		turn = false
	fi;
	any = false;
	passes = false
}

active proctype Thread()
{
	bool any, passes;

end:	do
	:: ending -> break
	:: requests && !ending -> look()
	:: !requests && !ending ->
		/* sleep_on */
		asleep = true;
		if
		:: !requests -> !asleep || ending
		:: requests
		fi
	od
}
