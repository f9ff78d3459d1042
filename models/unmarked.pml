/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuations that are ready without a bit: contd__complete_or_take_sig, contd__unmarked_take_sig, give_slots
 * (src/dispatch/carried.c). Other threads look in contd__drive, by contd__carried_retry_sig, and in doze
 * (src/dispatch/wait.c).
 *
 * check: safety
 * unreached: 3: the first thread does not run two at once, the other one does not wake itself
 * mutant: NO_SECOND_LOOK safety the thread does not ask again, after the push, whether others look
 * mutant: LOOK_LEAVES safety a look, and a thread before it sleeps, see only what has a bit
 * mutant: TAKE_LOADS safety a test reads the stack and empties it afterwards
 * mutant: REST_SILENT safety a test that finds several gives them bits, and tells nobody
 *
 * One thread completes two continuations, and may test their group after each. Another thread begins to use contd at
 * any moment, and waits until both have run. The first one never looks again, so what it leaves is the other's.
 */
#define NONE 0
byte threads = 1;    /* contd__threads_count */
byte stack;          /* contd__put_off_carried: a bit for each continuation */
byte marked;         /* those that have a ready bit */
byte outstanding = 2;
bool ran[2];
bool sleepers, wake; /* wake: it has changed since the sleeper read it */
bool asleep;

inline wake_sleepers()
{
	if
	:: sleepers ->
		wake = true;
		asleep = false
	:: else
	fi
}

inline unmarked_run(bits)
{
	d_step {
		if
		:: bits & 1 -> assert(!ran[0]); ran[0] = true
		:: else
		fi;
		if
		:: bits & 2 -> assert(!ran[1]); ran[1] = true
		:: else
		fi
	}
	if
	:: bits == 3 -> outstanding = outstanding - 2
	:: bits == 1 || bits == 2 -> outstanding--
	:: else
	fi;
	if
	:: bits && outstanding == 0 -> wake_sleepers() /* group_idle */
	:: else
	fi
}

/* give_slots */
inline mark(bits)
{
	marked = marked | bits;
	wake_sleepers()
}

proctype Owner()
{
	byte i = 1, mine;

	do
	:: i <= 2 ->
		/* contd__complete_or_take_sig */
		if
		:: threads != 1 || sleepers -> mark(i)
		:: else ->
			stack = stack | i;
#ifndef MUTANT_NO_SECOND_LOOK
			if
			:: threads != 1 || sleepers ->
				d_step {
					mine = stack;
					stack = NONE
				}
				mark(mine)
			:: else
			fi
#endif
		fi;
		/* contd__unmarked_take_sig */
		if
		:: true
		:: true ->
#ifdef MUTANT_TAKE_LOADS
			mine = stack;
			stack = NONE;
#else
			d_step {
				mine = stack;
				stack = NONE
			}
#endif
			if
			:: mine == 3 ->
#ifdef MUTANT_REST_SILENT
				marked = marked | mine
#else
				mark(mine)
#endif
			:: else -> unmarked_run(mine)
			fi
		fi;
		mine = NONE;
		i = i + 1
	:: else -> break
	od
}

/* contd__drive: what is on the stack gets bits, and what has one is run. */
inline look(found)
{
#ifndef MUTANT_LOOK_LEAVES
	d_step {
		found = stack;
		stack = NONE
	}
	marked = marked | found;
#endif
	d_step {
		found = marked;
		marked = NONE
	}
	unmarked_run(found)
}

proctype Other()
{
	byte found;

	threads++; /* contd__thread_ensure */
	do
	:: outstanding == 0 -> break
	:: else ->
		look(found);
		if
		:: found || outstanding == 0
		:: else ->
			/* doze */
			sleepers = true;
			wake = false; /* reads the futex word */
			if
#ifdef MUTANT_LOOK_LEAVES
			:: outstanding == 0 || marked
			:: outstanding != 0 && !marked ->
#else
			:: outstanding == 0 || marked || stack
			:: outstanding != 0 && !marked && !stack ->
#endif
				atomic {
					if
					:: wake
					:: else -> asleep = true
					fi
				}
				!asleep
			fi;
			sleepers = false
		fi;
		found = NONE
	od
}

init {
	atomic {
		run Owner();
		run Other()
	}
}
