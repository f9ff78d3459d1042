/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set of a continuation of the revised interface: an operation that fails ends the waiting for the others,
 * which finish later:
 * contd__set_attached_sig, contd__op_done_sig, end_sig, less_sig, contd__invoke_revised (src/mpi/op_set.c),
 * contd__attach, set_begin
 * (src/mpi/continue.c), recheck_slot (src/mpi/native.c). A set of one operation (a short one, src/mpi/op_set.h) has no such
 * life: its operation counts at the slot itself.
 *
 * check: safety
 * unreached: 2: who looks at an operation that was missed holds the slot, so it is not the last one there
 * mutant: LATE_COUNTS safety an operation that completes after a failure counts at the slot
 * mutant: END_BLIND safety a failing operation does not look whether the set's event has been counted
 * mutant: LAST_BLIND safety nor does the last operation
 * mutant: NO_REFERENCE safety an operation has no reference to the set
 * mutant: ATTACH_FIRST safety the set does not wait for the attaching call
 * mutant: LOOK_NO_HOLD safety a thread that looks at a slot's operations counts no event there
 *
 * Two operations. Attaching finds the first one pending and hooks it, and the other one pending or complete. Each may
 * fail. Another thread looks at the operations of a pending slot (a callback may have been missed). When the
 * continuation has run, the slot becomes another continuation's, which waits for something that never comes. The
 * first continuation runs once, as soon as its set has ended. No thread touches the set after that, or counts at the
 * other continuation.
 */
#define A 0
#define B 1

byte owner = A;      /* of the slot */
byte remaining;      /* the slot's events */
bool published;
byte waits, references; /* one word in the code, life; and over */
bool over;
bool freed;
bool hooked[2], taken[2], done[2], failed;
byte ran, ended;

inline touch()
{
	assert(!freed)
}

/* contd__slot_event_done_sig; the last one: the continuation runs, contd__invoke_revised, and its slot is used again */
inline count(n)
{
	d_step {
		assert(owner == A && remaining >= (n));
		remaining = remaining - (n);
		last = (remaining == 0)
	}
	if
	:: atomic { last -> last = false }
		d_step {
			touch();
			assert(failed || (done[0] && done[1]));
			ran++;
			assert(ran == 1);
			owner = B;
			remaining = 1
		}
		/* contd__set_unref_sig */
		d_step {
			touch();
			references--;
			freed = (references == 0)
		}
	:: !last
	fi
}

/* contd__op_done_sig */
inline op_done(i)
{
	d_step { touch(); done[i] = true };
	if
	:: true ->
		failed = true;
		/* end_sig */
		d_step {
			touch();
#ifdef MUTANT_END_BLIND
			mine = true;
#else
			mine = !over;
#endif
			over = true
		}
	:: true
	fi;
	/* less_sig */
	d_step {
		touch();
#ifdef MUTANT_LAST_BLIND
		mine = mine || waits == 1;
#else
		mine = mine || (waits == 1 && !over);
#endif
#ifdef MUTANT_LATE_COUNTS
		mine = true;
#endif
		waits--;
#ifndef MUTANT_NO_REFERENCE
		references--;
		freed = (references == 0)
#endif
	}
	if
	:: atomic { mine -> mine = false }
		count(1)
	:: !mine
	fi
}

proctype Operation(byte i)
{
	bool last, mine;

	do
	:: atomic { hooked[i] && !taken[i] -> taken[i] = true }
		op_done(i);
		break
	:: taken[i] -> break
	od;
	ended++
}

/* recheck_slot, op_recheck; SLOT_LOOKED_AT is one event */
proctype Looker()
{
	bool last, mine;

	published;
	if
	:: atomic { owner == A && remaining > 0 ->
#ifndef MUTANT_LOOK_NO_HOLD
		remaining++
#endif
	   }
		touch();
		if
		:: atomic { hooked[0] && !taken[0] -> taken[0] = true }
			op_done(0)
		:: !hooked[0] || taken[0]
		fi;
		touch();
#ifndef MUTANT_LOOK_NO_HOLD
		count(1)
#endif
	:: owner == B
	fi;
	ended++
}

/* contd__attach */
active proctype Attacher()
{
	bool last, mine;
	byte n;

	/* contd__slot_publish_sig: this call, and the set; set_begin: two operations, and attaching */
	d_step {
		remaining = 2;
#ifdef MUTANT_ATTACH_FIRST
		waits = 2;
#else
		waits = 3;
#endif
		references = 1
	}
	published = true;
#ifndef MUTANT_NO_REFERENCE
	d_step { touch(); references++ };
#endif
	hooked[0] = true;
	if
	:: true ->
#ifndef MUTANT_NO_REFERENCE
		d_step { touch(); references++ };
#endif
		hooked[1] = true
	:: true ->
		d_step { done[1] = true; taken[1] = true; n = 1 }
		if
		:: failed = true
		:: true
		fi
	fi;
	/* contd__set_attached_sig */
	if
	:: failed ->
		d_step { touch(); mine = !over; over = true }
	:: !failed
	fi;
#ifdef MUTANT_ATTACH_FIRST
	d_step {
		touch();
		mine = mine || (waits == n && !over);
		waits = waits - n
	}
#else
	d_step {
		touch();
		mine = mine || (waits == n + 1 && !over);
		waits = waits - n - 1
	}
#endif
	count(1 + mine);
	ended++
}

active proctype End()
{
	ended == 4;
	assert(ran == 1 && freed && waits == 0)
}

init
{
	atomic {
		run Operation(0);
		run Operation(1);
		run Looker()
	}
}
