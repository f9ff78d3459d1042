/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A continuation that has waited for a revised continuation request makes it inactive: contd__cr_awaited, beside a call
 * that reports the CR or gives it back: contd__cr_take, contd__cr_taken, contd__cr_give_back with active_again
 * (src/mpi/cr.c). `cr` has the rest of a CR's life.
 *
 * check: safety
 * check: ltl ends
 * mutant: GIVES_UP safety a continuation has waited for a CR that another call has taken, and does not say so
 * mutant: FORGOTTEN safety that call does not look whether one has
 * mutant: TAKE_BLIND safety a continuation takes a CR that another call has taken
 * mutant: KEEPS safety a continuation that finds something outstanding leaves the CR taken
 *
 * While the CR is active, one more operation may be attached, which completes by itself. (Continuations that are
 * attached while the CR is taken are held: see `cr`.) The CR is reported once, with nothing outstanding. When all
 * calls have returned, a CR that
 * a continuation has waited for, with nothing outstanding since, is inactive.
 */
byte outstanding = 1;
bool active_word = true, taken_word, awaited_word; /* cr->state, which changes by exchanges */

/* Not in the code. */
bool open = true; /* between the start and the report */
bool due;         /* a continuation has waited for it when nothing was outstanding, and nothing was attached since */
byte over;

ltl ends { <> (over == 4) }

/* The first operation completes; a second one is attached, and completes. */
active proctype Operations()
{
	outstanding--;
	if
	:: d_step { active_word -> outstanding++; due = false };
		outstanding--
	:: true
	fi;
	over++
}

/* contd__cr_taken */
inline tell()
{
	d_step {
		assert(open && outstanding == 0);
		taken_word = false;
		awaited_word = false;
		open = false;
		due = false
	}
}

inline active_again()
{
	d_step {
		again = awaited_word;
		awaited_word = false;
		taken_word = false;
		active_word = true
	}
}

/* contd__cr_awaited, while `again` */
inline awaited()
{
	do
	:: !again -> break
	:: else ->
		if
		:: d_step { active_word -> active_word = false; taken_word = true };
			zero = (outstanding == 0);
			if
			:: zero -> again = false; tell()
			:: !zero ->
				due = false;
#ifdef MUTANT_KEEPS
				again = false
#else
				active_again()
#endif
			fi
#ifdef MUTANT_TAKE_BLIND
		:: taken_word ->
			zero = (outstanding == 0);
			again = false;
			if
			:: zero -> tell()
			:: else
			fi
#else
		:: d_step { taken_word ->
			again = false;
#ifndef MUTANT_GIVES_UP
			awaited_word = true;
#endif
			due = due || (open && outstanding == 0)
			}
#endif
		:: d_step { !active_word && !taken_word -> again = false }
		fi
	od
}

/* Testall: takes the CR if it is complete, and tells, or finds another request pending and gives it back. */
active [2] proctype Testall()
{
	bool again, zero, took;

	if
	:: outstanding == 0 ->
		d_step {
			took = active_word;
			taken_word = taken_word || took;
			active_word = active_word && !took
		}
		zero = (outstanding == 0);
		if
		:: took && zero -> tell()
		:: took ->
			active_again();
#ifdef MUTANT_FORGOTTEN
			again = false;
#endif
			awaited()
		:: !took
		fi
	:: true
	fi;
	over++
}

active proctype Awaiting()
{
	bool again = true, zero;

	if
	:: outstanding == 0 -> awaited()
	:: true
	fi;
	over++
}

active proctype End()
{
	over == 4;
	assert(!taken_word && !awaited_word && active_word == open);
	assert(!(due && open && outstanding == 0))
}
