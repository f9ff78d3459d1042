/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack of free slots: contd__slot_alloc_sig, contd__slot_free_sig (src/rcu/table.c); and count_events
 * (src/dispatch/complete.c), which writes
 * in `link` when a slot became ready.
 *
 * check: safety
 * mutant: NO_TAG safety the head has no tag, so a slot that was taken and given back in between looks as before
 * mutant: PUSH_BLIND safety a slot is given back by a store, not a compare-exchange
 * mutant: LINK_LATE safety a slot is on the stack before it names the next
 * mutant: STAMP_EARLY safety a completer writes `link` before it knows that it makes the slot ready
 *
 * Two threads take and give back, one of them two slots at a time; one may be a handler that has stopped the
 * other. The first slot of the
 * other one waits, and two completers meet at it: the one that makes it ready gives it back. A slot that is in use
 * has something
 * else in `link`. No two threads get the same slot, and none is lost.
 */
#define SLOTS 3
#define GARBAGE 7

byte head = 1, tag;               /* index + 1, 0: none; the tag's high half of the word */
byte link[4] = {0, 2, 3, 0};      /* by index + 1 */
bool used[4];
byte waits;                       /* the slot that is PENDING, by index + 1, or 0; in the code its state */
byte ended;

/* contd__slot_alloc_sig; got is 0 where there is none */
inline alloc(got)
{
	do
	:: d_step {
		got = head;
		seen = tag
	   }
		if
		:: got == 0 -> break
		:: got != 0 ->
			next = link[got];
			d_step {
#ifdef MUTANT_NO_TAG
				won = (head == got);
#else
				won = (head == got && tag == seen);
#endif
				if
				:: won ->
					assert(next <= SLOTS && !used[got]);
					used[got] = true;
					head = next;
					tag++
				:: else
				fi;
				next = 0;
				seen = 0
			}
			if
			:: won -> break
			:: else
			fi
		fi
	od;
	won = false;
	if
	:: got != 0 -> link[got] = GARBAGE
	:: else
	fi
}

/* contd__slot_free_sig */
inline free(got)
{
	used[got] = false;
	do
	:: d_step {
		next = head;
		seen = tag
	   }
#ifndef MUTANT_LINK_LATE
		link[got] = next;
#endif
		d_step {
#ifdef MUTANT_PUSH_BLIND
			won = true;
#else
			won = (head == next && tag == seen);
#endif
			if
			:: won ->
				head = got;
				tag++
			:: else
			fi
		}
		if
		:: won -> break
		:: else
		fi
	od;
#ifdef MUTANT_LINK_LATE
	link[got] = next;
#endif
	skip;
	d_step {
		won = false;
		next = 0;
		seen = 0;
		got = 0
	}
}

/* count_events; the continuation runs: contd__slot_finish_sig */
inline count(s)
{
	s = waits;
	if
	:: s == 0
	:: s != 0 ->
#ifdef MUTANT_STAMP_EARLY
		link[s] = GARBAGE;
#endif
		d_step {
			won = (waits == s);
			waits = (won -> 0 : waits)
		}
		if
		:: won ->
			link[s] = GARBAGE;
			won = false;
			free(s)
		:: !won -> s = 0
		fi
	fi
}

active proctype One()
{
	byte mine, next, seen;
	bool won;

	alloc(mine);
	if
	:: mine != 0 ->
		waits = mine;
		count(mine)
	:: else
	fi;
	alloc(mine);
	if
	:: mine != 0 -> free(mine)
	:: else
	fi;
	ended++
}

active proctype Completer()
{
	byte s, next, seen;
	bool won;

	count(s);
	ended++
}

active proctype Two()
{
	byte mine, other, next, seen;
	bool won;

	alloc(mine);
	alloc(other);
	if
	:: mine != 0 -> free(mine)
	:: else
	fi;
	alloc(mine);
	if
	:: other != 0 -> free(other)
	:: else
	fi;
	if
	:: mine != 0 -> free(mine)
	:: else
	fi;
	ended++
}

active proctype End()
{
	byte n, at;

	ended == 3;
	d_step {
		at = head;
		do
		:: at != 0 && n < 5 ->
			n++;
			at = link[at]
		:: else -> break
		od;
		assert(n == SLOTS)
	}
}
