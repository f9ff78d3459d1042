/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuation requests of the revised interface: contd__cr_hold, contd__cr_start, contd__cr_take, contd__cr_taken,
 * contd__cr_give_back (src/mpi/cr.c), with contd__attach and run_now (src/mpi/continue.c), a thread that starts and tests
 * (src/mpi/calls.c: cr_test), and one that tests, also beside other requests (mixed_all).
 *
 * check: safety
 * check: ltl ends
 * compile: -DNFAIR=3
 * unreached: 4: what a callback registers is never held: its CR is active, and not taken
 * mutant: LOOK_FIRST safety an attaching call looks whether the CR is active, and counts its continuation afterwards
 * mutant: COUNT_FIRST safety a reporting call looks at the count, and makes the CR inactive afterwards
 * mutant: HOLD_BLIND ltl ends an attaching call holds its continuation without comparing the state that it has seen
 * mutant: START_LATE ltl ends MPI_Start takes the held continuations, and makes the CR active afterwards
 * mutant: REPORT_KEEPS ltl ends a report that finds something outstanding leaves the CR inactive
 * mutant: REPORT_FORGETS ltl ends such a report makes the CR active again, and leaves continuations that are held meanwhile
 * mutant: TAKEN_INACTIVE safety a CR that another call has taken looks inactive
 * mutant: NOW_BLIND safety if all operations are complete the continuation runs in the attaching call, active or not
 * mutant: NOW_FIRST safety the attaching call looks whether the CR is active and counts afterwards
 * mutant: TAKE_BLIND safety a call takes a CR that another one has taken
 *
 * (Where no other thread can complete an operation meanwhile (steady, src/mpi/native.c), the attaching call holds no event
 * of its own. It too counts first, and looks then. If it finds the CR inactive it goes on as here.)
 *
 * Below MPI_THREAD_MULTIPLE these calls do not meet, and some do without steps that are here (contd__cr_by_turns,
 * src/mpi/cr.h): that is not modelled.
 *
 * Continuation 0 waits for an operation that another thread completes, 1 for one that is complete. Continuation 0,
 * when it runs, registers 2. Nothing runs while the CR is inactive, each runs once, starting and testing comes to an
 * end, and the CR is inactive for a thread only after a call has told that it is complete.
 */
#define N 3

byte remaining[N];
byte outstanding;
/* cr->state: one word, which changes by exchanges; active, or taken, or neither, and what is held. */
bool active_word, taken_word;
bool held[N];

/* Not in the code. */
bool open;         /* between a start and the report that it is complete */
bool published[N];
byte ran[N];
byte attached;     /* calls that have returned */
bool done;

ltl ends { <> done }

/* contd__slot_event_done_sig or contd__slot_run_inline; the callback; contd__slot_finish_sig */
inline count(c, n)
{
	d_step {
		assert(remaining[c] >= (n));
		remaining[c] = remaining[c] - (n);
		last = (remaining[c] == 0);
		if
		:: last ->
			assert(open);
			ran[c]++;
			assert(ran[c] == 1)
		:: else
		fi
	}
	if
	:: atomic { last && (c != 0 || attached == N) -> last = false; outstanding-- } /* the callback of 0 attaches */
	:: !last
	fi
}

/* contd__attach, contd__cr_hold: counts is 1 where the operation is complete */
inline attach(c, complete)
{
#ifdef MUTANT_LOOK_FIRST
	is = active_word;
#endif
	/* contd__slot_publish_sig: the operation, this call, the start */
	d_step {
		outstanding++;
		remaining[c] = 3;
		published[c] = true;
		counts = 1 + complete
	}
#ifndef MUTANT_LOOK_FIRST
	is = active_word;
#endif
	if
	:: is
	:: !is ->
		/* The exchange, which fails if the CR has become active. (A failure because of another slot that is held
		 * now changes nothing but the link.) */
		d_step {
#ifndef MUTANT_HOLD_BLIND
			is = active_word;
#endif
			held[c] = !is
		}
	fi;
	d_step {
		counts = counts + is;
		is = false;
		attached++
	}
	count(c, counts)
}

/* run_now: the operation is complete, and no slot is needed. If the CR is not active, as above. */
inline run_now(c)
{
#ifdef MUTANT_NOW_FIRST
	is = active_word;
#endif
	outstanding++;
#ifndef MUTANT_NOW_FIRST
	is = active_word;
#endif
#ifdef MUTANT_NOW_BLIND
	is = true;
#endif
	if
	:: is ->
		d_step {
			assert(open);
			ran[c]++;
			attached++;
			is = false
		}
		outstanding--
	:: !is ->
		outstanding--;
		attach(c, 1)
	fi
}

active proctype Attacher0()
{
	byte counts;
	bool is, last;

	attach(0, 0)
}

active proctype Attacher1()
{
	byte counts;
	bool is, last;

	run_now(1)
}

/* Inside the callback of 0, wherever that runs. */
active proctype Callback()
{
	byte counts;
	bool is, last;

	ran[0] == 1 && attached == 2;
	attach(2, 1)
}

active proctype Operation()
{
	bool last;

	published[0];
	count(0, 1)
}

/* The exchange in contd__cr_start: take is what was held. */
inline taken()
{
	take[0] = held[0];
	take[1] = held[1];
	take[2] = held[2];
	held[0] = false;
	held[1] = false;
	held[2] = false
}

/* The list is this thread's. */
inline release_held()
{
	if
	:: take[0] -> count(0, 1)
	:: else
	fi;
	if
	:: take[1] -> count(1, 1)
	:: else
	fi;
	if
	:: take[2] -> count(2, 1)
	:: else
	fi
}

/* contd__cr_start */
inline start()
{
#ifdef MUTANT_START_LATE
	d_step {
		assert(!active_word);
		taken()
	}
	d_step {
		active_word = true;
		open = true
	}
#else
	d_step {
		assert(!active_word);
		taken();
		active_word = true;
		open = true
	}
#endif
	release_held()
}

/* contd__cr_give_back */
inline give_back()
{
	d_step {
#ifndef MUTANT_REPORT_FORGETS
		taken();
#endif
		taken_word = false;
		active_word = true
	}
	release_held()
}

/* contd__cr_taken */
inline tell()
{
	d_step {
		assert(open);
		taken_word = false;
		open = false
	}
}

/* contd__cr_take, after contd__cr_complete */
inline cr_take()
{
#ifdef MUTANT_COUNT_FIRST
	zero = (outstanding == 0);
#endif
	d_step {
#ifdef MUTANT_TAKE_BLIND
		took = true;
#else
		took = active_word;
#endif
		taken_word = taken_word || took;
		active_word = false
	}
#ifndef MUTANT_COUNT_FIRST
	zero = (outstanding == 0);
#endif
	skip
}

active proctype Program()
{
	bool take[N], last, zero, took;

	do
#ifdef MUTANT_TAKEN_INACTIVE
	:: !active_word ->
#else
	:: !active_word && !taken_word ->
#endif
		assert(!open);
		if
		:: attached == N && outstanding == 0 -> break
		:: attached != N || outstanding != 0 -> start()
		fi
	:: active_word ->
		/* contd__cr_complete */
		if
		:: outstanding == 0 ->
			cr_take();
			if
			:: took && zero -> tell()
#ifdef MUTANT_REPORT_KEEPS
			:: took && !zero -> tell()
#else
			:: took && !zero -> give_back()
#endif
			:: !took
			fi
		:: else
		fi
	od;
	skip;
	d_step {
		assert(ran[0] == 1 && ran[1] == 1 && ran[2] == 1);
		assert(!held[0] && !held[1] && !held[2]);
		done = true
	}
}

/* Another thread's test, alone or of several requests. */
active proctype Other()
{
	bool take[N], last, zero, took;

end:
	active_word && outstanding == 0;
	cr_take();
	if
	:: took && zero -> tell()
	:: took && zero -> give_back() /* another request is pending */
	:: took && !zero -> give_back()
	:: !took
	fi
}
