/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A continuation that waits for a group: contd_group_continue, contd__group_await, contd__group_await_end
 * (src/dispatch/chain.c), group_idle (src/dispatch/complete.c).
 *
 * check: safety
 * mutant: NO_COUNT_LOOK safety the thread that takes the waiter does not look at the count
 * mutant: NO_TAG safety a waiter's word names its slot without a generation
 * mutant: AWAIT_NO_LOOK safety a thread that registers does not look at the count afterwards
 * mutant: AWAIT_SPLIT safety a thread that registers, and finds the group complete, does not take its word back
 *
 * Continuation X of the group is about to finish, on some thread. A second thread registers a waiter, takes it back if
 * it has not fired, registers Y with the group, and a waiter again: in the same slot, if that is free. A third
 * completes Y. A waiter fires once, and not before the group has been complete once since the waiter was registered.
 */
byte outstanding = 1;
byte waiter;            /* the group's word: 0, or the slot and a tag for its generation */
bool y_registered;

/* Not in the code. */
byte registered = 2;    /* the waiter that is registered: 0, 1 */
bool complete_since[2]; /* the group has been complete since */
byte fired[2];
bool cancelled;
byte ended;
bool busy;              /* slot 0 has been taken and not yet counted */
byte name[2];           /* each waiter's word */

inline fire(w)
{
	d_step {
		assert(complete_since[w]);
		fired[w]++;
		assert(fired[w] == 1);
		busy = false
	}
}

/* The meaning of a waiter's word now: which of them is in its slot. */
#define MEANS(word) (registered == 1 && name[1] == (word) -> 1 : 0)

/* contd__slot_finish_sig, group_idle */
inline finish()
{
	d_step {
		outstanding--;
		last = (outstanding == 0);
		complete_since[0] = complete_since[0] || (last && registered != 2);
		complete_since[1] = complete_since[1] || (last && registered == 1)
	}
	if
	:: last ->
		word = waiter;
		if
		:: word != 0 ->
#ifdef MUTANT_NO_COUNT_LOOK
			d_step {
				word = waiter;
				waiter = 0;
				won = (word != 0);
				who = MEANS(word);
				busy = won
			}
#else
			if
			:: outstanding == 0 ->
				d_step {
					won = (waiter == word);
					waiter = (won -> 0 : waiter);
					who = MEANS(word);
					busy = busy || won
				}
			:: else
			fi;
#endif
			if
			:: won -> fire(who)
			:: else
			fi
		:: else
		fi
	:: else
	fi
}

/* contd_group_continue, contd__group_await */
inline await(w)
{
	d_step {
		assert(waiter == 0);
		waiter = name[w];
		registered = w;
		complete_since[w] = (outstanding == 0)
	}
#ifndef MUTANT_AWAIT_NO_LOOK
	if
	:: outstanding == 0 ->
#ifdef MUTANT_AWAIT_SPLIT
		won = (waiter == name[w]);
		if
		:: won -> fire(w)
		:: else
		fi
#else
		d_step {
			won = (waiter == name[w]);
			waiter = (won -> 0 : waiter)
		}
		if
		:: won -> fire(w)
		:: else
		fi
#endif
	:: else
	fi;
#endif
	won = false
}

active proctype X()
{
	byte word, who;
	bool last, won;

	finish();
	ended++
}

active proctype Program()
{
	bool won;

	name[0] = 1;
	await(0);
	/* contd_cancel, contd__group_await_end */
	d_step {
		cancelled = (waiter == name[0]);
		waiter = (cancelled -> 0 : waiter)
	}
	d_step {
		outstanding++;
		y_registered = true
	}
	d_step {
		/* a free slot */
#ifdef MUTANT_NO_TAG
		name[1] = (busy -> 3 : 1)
#else
		name[1] = (busy -> 3 : 2)
#endif
	}
	await(1);
	ended++
}

active proctype Y()
{
	byte word, who;
	bool last, won;

	y_registered;
	finish();
	ended++
}

active proctype End()
{
	ended == 3;
	assert(fired[0] + cancelled == 1 && fired[1] == 1 && waiter == 0)
}
