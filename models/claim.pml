/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a continuation in its slot: attach, complete, claim and run, cancel, and the slot's next use.
 * src/dispatch/event.c, run.c, group.c; src/rcu/table.h has the word.
 *
 * check: safety
 * compile: -DNOREDUCE
 * optimise
 * unreached: 13: B is not cancelled, and a canceller makes nothing ready
 * mutant: NO_HOLD safety a continuation is published without the hold of the call that registers it
 * mutant: MARK_FIRST safety the ready bit is set before the state is READY
 * mutant: BIT_SPLIT safety the ready bit is claimed by a load and a store
 * mutant: CLAIM_SPLIT safety READY becomes RUNNING by a load and a store
 * mutant: CANCEL_NO_HOLD safety a canceller has no hold of its own while it takes events back
 * mutant: CANCEL_FREES safety a cancelled slot is freed without waiting for completers under way
 * mutant: NO_GENERATION safety a canceller does not compare the generation
 * mutant: FREES_UNMARKED safety a canceller frees a READY slot without having cleared its bit
 * mutant: KEEPS_ANOTHERS_BIT safety a canceller that has cleared the bit of another continuation does not set it again
 * mutant: NO_LOOK safety a completer does not look whether the slot that it marks has been cancelled
 * mutant: COUNT_FIRST safety a completer counts and exchanges the event's word afterwards
 *
 * The application attaches continuation A to event 0, then B to event 1, in the first free slot, which may be A's.
 * Two threads complete the events, before or after. One thread cancels A with the handle that it was given, and tries
 * it again with the stale handle. One thread scans for ever, and a handler once. The handler stops one of the threads
 * (or none) at any step: that one does not move before the handler has ended, the others do. (The registering call
 * and the canceller each hold one event of the slot. More events count in the same way.)
 *
 * A loop of load and compare-exchange is one step here: what it does depends on the word alone.
 */
#define A 0
#define B 1
#define NOBODY 2

mtype = { FREE, PENDING, READY, RUNNING, CANCELLED };

/* The slots; `state` is one word in the code (SLOT_WORD), and changes in one step here too. */
byte generation[2], remaining[2];
mtype state[2] = FREE;
bool on_stack[2] = true; /* contd__slot_alloc_sig can take it: see slots.pml */
bool marked[2];          /* the leaf bits: see tree.pml */
byte outstanding;

/* contd_event's word */
#define EMPTY 0
#define DONE 1
#define ATTACHED(s, g) (2 + (s) * 8 + (g))
#define SLOT_OF(w) (((w) - 2) / 8)
#define GENERATION_OF(w) (((w) - 2) % 8)
byte event[2];

/* The handle that the application got for A. */
bool handle_set;
byte handle_slot, handle_generation;

/* Not in the code: the owner of each slot, and the fate of the continuations. */
byte owner[2] = NOBODY;
byte ran[2];
bool cancelled[2];
byte ended;

#define APPLICATION 1
#define COMPLETER 2
#define CANCELLER 4
#define SCANNER 5
byte stopped; /* the process on whose thread the handler runs; 0: none */

/* contd__slot_finish_sig (src/dispatch/complete.c), contd__slot_free_sig (src/rcu/table.c) */
inline freed(s)
{
	generation[s]++;
	state[s] = FREE;
	owner[s] = NOBODY;
	on_stack[s] = true;
	outstanding--
}

inline finish(s)
{
	d_step {
		freed(s)
	}
}

/*
 * contd__slot_withdrawn_rcu (src/dispatch/complete.c); uses last, which is 0. B is not cancelled: once its bit is
 * set again its
 * state need not be looked at.
 */
inline withdrawn(s)
{
	d_step {
		last = marked[s];
		marked[s] = false
	}
	d_step {
		if
		:: last && state[s] == CANCELLED ->
			freed(s);
			last = 0
		:: else
		fi
	}
	d_step {
#ifndef MUTANT_KEEPS_ANOTHERS_BIT
		marked[s] = marked[s] || last;
#endif
		last = 0
	}
}

/* contd__slot_event_done_rcu, count_events (src/dispatch/complete.c) for continuation c; uses last, which is 0 */
inline count(c, s, g, n)
{
#ifdef MUTANT_MARK_FIRST
	d_step {
		if
		:: remaining[s] == (n) -> marked[s] = true
		:: else
		fi
	}
#endif
	d_step {
		/* What the code passes over silently (stale) must not be: until it is counted the slot is c's. */
		assert(owner[s] == c && generation[s] == g && (state[s] == PENDING || state[s] == CANCELLED));
		assert(remaining[s] >= (n));
		remaining[s] = remaining[s] - (n);
		last = (remaining[s] == 0 -> (state[s] == PENDING -> 1 : 2) : 0);
		if
		:: last == 1 -> state[s] = READY
		:: else
		fi
	}
	if
	:: atomic { last == 1 -> last = 0 }
#ifndef MUTANT_MARK_FIRST
		marked[s] = true;
#endif
#ifdef MUTANT_NO_LOOK
		skip
#else
		/* mark (src/dispatch/complete.c) */
		if
		:: state[s] == CANCELLED -> withdrawn(s)
		:: else
		fi
#endif
	:: atomic { last == 2 -> last = 0; finish(s) }
	:: last == 0
	fi
}

/* contd_event_complete (src/dispatch/event.c) */
inline complete(e, c)
{
#ifdef MUTANT_COUNT_FIRST
	w = event[e];
#else
	d_step {
		w = event[e];
		assert(w != DONE);
		event[e] = DONE
	}
#endif
	if
	:: w > DONE -> count(c, SLOT_OF(w), GENERATION_OF(w), 1)
	:: else
	fi;
#ifdef MUTANT_COUNT_FIRST
	event[e] = DONE;
#endif
	d_step {
		w = 0;
		ended++
	}
}

/* contd__slot_get_sig, contd__slot_publish_sig, contd_event_continue with one event; attach (src/dispatch/event.c) */
inline attach(c, e)
{
	d_step {
		s = (on_stack[0] -> 0 : 1);
		assert(on_stack[s]);
		on_stack[s] = false;
		assert(state[s] == FREE && owner[s] == NOBODY && !marked[s]);
		g = generation[s]
	}
	d_step {
		outstanding++;
		owner[s] = c;
		state[s] = PENDING;
#ifdef MUTANT_NO_HOLD
		done = 0;
		remaining[s] = 1
#else
		done = 1;
		remaining[s] = 2
#endif
	}
	d_step {
		if
		:: event[e] == EMPTY ->
			event[e] = ATTACHED(s, g);
			mine = true
		:: else ->
			assert(event[e] == DONE);
			done++;
			mine = false
		fi
	}
	d_step {
		/* e->next, s->source */
		assert(!mine || (owner[s] == c && generation[s] == g));
		mine = false;
		if
		:: c == A ->
			handle_slot = s;
			handle_generation = g;
			handle_set = true
		:: else
		fi
	}
	if
	:: done != 0 -> count(c, s, g, done)
	:: else
	fi;
	d_step {
		s = 0;
		g = 0;
		done = 0
	}
}

/* Only there to be process 0. */
active proctype Nothing()
{
	skip
}

active proctype Application() provided (stopped != _pid)
{
	byte s, g, done, last;
	bool mine;

	attach(A, 0);
	attach(B, 1);
	ended++
}

active [2] proctype Completer() provided (stopped != _pid)
{
	byte w, last;

	if
	:: _pid == COMPLETER -> complete(0, A)
	:: else -> complete(1, B)
	fi
}

/* contd__slot_withdraw_sig (src/dispatch/slot.c) */
inline withdraw()
{
	d_step {
#ifdef MUTANT_NO_GENERATION
		if
		:: state[handle_slot] == PENDING || state[handle_slot] == READY ->
#else
		if
		:: generation[handle_slot] == handle_generation &&
		   (state[handle_slot] == PENDING || state[handle_slot] == READY) ->
#endif
			assert(owner[handle_slot] == A && !cancelled[A] && ran[A] == 0);
			was = state[handle_slot];
#ifndef MUTANT_CANCEL_NO_HOLD
			remaining[handle_slot] = remaining[handle_slot] + (was == PENDING -> 1 : 0);
#endif
			state[handle_slot] = CANCELLED;
			cancelled[A] = true
		:: else -> was = FREE /* -EALREADY */
		fi
	}
}

/* contd_cancel (src/dispatch/cancel.c), contd__events_detach_sig (src/dispatch/event.c); then once more */
active proctype Canceller() provided (stopped != _pid)
{
	byte taken, last;
	mtype was;

	handle_set;
	withdraw();
	if
	:: was == PENDING ->
		assert(owner[handle_slot] == A); /* the list of events is in the slot */
		d_step {
			if
			:: event[0] == ATTACHED(handle_slot, handle_generation) ->
				event[0] = EMPTY;
				taken++
			:: else
			fi
		}
#if defined(MUTANT_CANCEL_FREES)
		finish(handle_slot)
#elif defined(MUTANT_CANCEL_NO_HOLD)
		if
		:: taken != 0 -> count(A, handle_slot, handle_generation, taken)
		:: else
		fi
#else
		count(A, handle_slot, handle_generation, taken + 1)
#endif
	:: was == READY ->
#ifdef MUTANT_FREES_UNMARKED
		finish(handle_slot)
#else
		withdrawn(handle_slot)
#endif
	:: else
	fi;
	taken = 0;
	withdraw();
	d_step {
		assert(was == FREE);
		ended++
	}
}

/* contd__table_claim_sig (src/rcu/table.c), run_claimed (src/dispatch/scan.c) */
inline claim(s)
{
#ifdef MUTANT_BIT_SPLIT
	/* the load was what chose it */
	marked[s] = false;
#else
	if
	:: d_step {
		marked[s] -> marked[s] = false;
		assert(state[s] != CANCELLED || ended < 5) /* when all have ended no cancelled one is left for a scan */
	}
#endif
#ifdef MUTANT_CLAIM_SPLIT
		go = (state[s] == READY);
		d_step {
			if
			:: go ->
				state[s] = RUNNING;
#else
		d_step {
			if
			:: state[s] == READY ->
				state[s] = RUNNING;
#endif
				ran[owner[s]]++;
				assert(ran[owner[s]] == 1 && !cancelled[owner[s]])
			:: else -> assert(state[s] == CANCELLED)
			fi
		}
		finish(s)
#ifndef MUTANT_BIT_SPLIT
	:: else
	fi
#endif
}

active proctype Scanner() provided (stopped != _pid)
{
#ifdef MUTANT_CLAIM_SPLIT
	bool go;
#endif

	do
	:: marked[0] -> claim(0)
	:: marked[1] -> claim(1)
	:: ended == 5 && !marked[0] && !marked[1] -> break
	od;
	assert(ran[A] + cancelled[A] == 1 && ran[B] == 1);
	assert(outstanding == 0);
	assert(state[0] == FREE && state[1] == FREE && on_stack[0] && on_stack[1])
}

/* contd__handler (src/signal/handler.c), contd__react_sig (src/dispatch/react.c) */
active proctype Handler()
{
#ifdef MUTANT_CLAIM_SPLIT
	bool go;
#endif

	if
	:: marked[0] || marked[1] ->
		if
		:: stopped = 0
		:: stopped = APPLICATION
		:: stopped = COMPLETER
		:: stopped = CANCELLER
		:: stopped = SCANNER
		fi;
		if
		:: marked[0] -> claim(0)
		:: marked[1] -> claim(1)
		:: else
		fi
	:: ended == 4
	fi;
	d_step {
		stopped = 0;
		ended++
	}
}
