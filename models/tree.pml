/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of ready bits (src/rcu/table.c) with a thread asleep until something is marked (src/dispatch/wait.c).
 *
 * check: safety
 * optimise
 * unreached: 8: the sleeper does not tell itself
 * mutant: SETTLE_SILENT safety a scan that sets a hint again after settling tells no thread
 * mutant: SETTLE_NO_LOOK safety settling does not look at the word below again
 * mutant: ROOT_NO_LOOK safety settling the root does not look at the table again
 * mutant: ROOT_NOT_FIRST safety settling the root does not look at the first chunk's leaf again
 * mutant: ANNOUNCE_FIRST safety a completer announces before it marks
 * mutant: CLAIM_SPLIT safety a leaf bit is claimed by a load and a store
 * mutant: SLEEP_NO_LOOK safety a waiter does not look between saying that it sleeps and sleeping
 *
 * Two slots, each under one of two leaves. Leaf 0 is the first chunk's: only the root's bit is above it. Above leaf 1
 * is one word, and above that the same bit. The table has two levels more (branch, top) and the root two words: each
 * is one more level of the kind that `summary` is here. A root's first word stands to its top as leaf 0 to summary
 * here. If a hint is 0, either a thread is about to set it, or nothing is below it. But in between another thread may
 * find it 0 and go to sleep. At the start the hints are set without need, as a scan leaves them if its budget ends.
 *
 * One slot is ready, and a completer marks the other (contd__slot_event_done_rcu). One thread scans and sleeps: a
 * thread in contd_group_wait, which looks at its group too, or the daemon, which looks at the root only. Another one,
 * contd_poll(1) or a handler, scans once with a budget of one and does not come again. The handler is a process like
 * the others: that it stops its thread would only forbid executions, since no process waits for another one here.
 */
#define NONE 3
#define ALL 4

byte leaf[2] = {1, 0}; /* a bit per slot */
byte summary = 2;   /* a bit per leaf but the first */
bool root = true;
byte under[2];      /* the leaf of each slot */
byte ran[2];
byte outstanding = 2;

bool sleepers, wake; /* wake: it has changed since the sleeper read it */
bool asleep;

bool daemon;        /* the daemon sleeps */

/* contd__announce_rcu (src/dispatch/complete.c), futex(2) */
inline announce()
{
	if
	:: sleepers ->
		wake = true;
		asleep = false
	:: else
	fi
}

/* mark_up and contd__root_mark_sig (src/rcu/table.c): each level is looked at, whichever thread set the one below */
inline mark_up(l)
{
	if
	:: l == 0
	:: l != 0 && summary & (1 << l)
	:: else -> summary = summary | (1 << l)
	fi;
	if
	:: root
	:: else -> root = true
	fi
}

/* The scanner that took a hint away and gave it back. */
inline tell_again()
{
#ifndef MUTANT_SETTLE_SILENT
	announce()
#else
	skip
#endif
}

/* claim_bit (src/rcu/table.c): a bit of one leaf */
inline claim_leaf(got, l, v)
{
	do
	:: leaf[l] == 0 -> break
	:: atomic {
		leaf[l] != 0 ->
		v = (leaf[l] & 1 -> 0 : 1)
#ifdef MUTANT_CLAIM_SPLIT
		;
		got = v
#endif
	   }
#ifdef MUTANT_CLAIM_SPLIT
		leaf[l] = leaf[l] & ~(1 << v);
		break
#else
		atomic {
			if
			:: leaf[l] & (1 << v) ->
				leaf[l] = leaf[l] & ~(1 << v);
				got = v
			:: else
			fi
		}
		if
		:: got != NONE -> break
		:: else
		fi
#endif
	od
}

/* contd__table_claim_sig, claim_down, claim_chunk, settle (src/rcu/table.c), from the first slot on */
inline claim(got, l, v)
{
	got = NONE;
	claim_leaf(got, l, v);
	if
	:: got == NONE && summary != 0 ->
		l = 1;
		claim_leaf(got, l, v);
		if
		:: got == NONE ->
			if
			:: leaf[1] == 0 ->
				summary = 0;
#ifndef MUTANT_SETTLE_NO_LOOK
				if
				:: leaf[1] != 0 ->
					mark_up(1);
					tell_again()
				:: else
				fi
#endif
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	atomic {
		l = 0;
		v = 0
	}
}

/* run_claimed (src/dispatch/scan.c), contd__slot_finish_sig, group_idle (src/dispatch/complete.c) */
inline run_claimed(s, v)
{
	atomic {
		ran[s]++;
		assert(ran[s] == 1);
		s = 0;
		outstanding--;
		v = (outstanding == 0)
	}
	if
	:: v -> announce()
	:: else
	fi
}

/* contd__scan_group_sig (src/dispatch/scan.c), one revolution that begins at the first slot */
inline scan_group(budget, left, got, l, v)
{
	left = budget;
	do
	:: left == 0 -> break
	:: left != 0 ->
		claim(got, l, v);
		if
		:: got == NONE -> break
		:: else ->
			run_claimed(got, v);
			left--
		fi
	od
}

/* contd__root_settle_sig, contd__table_any_sig (src/rcu/table.c, table.h) */
inline root_settle()
{
	if
	:: leaf[0] != 0
	:: else ->
		if
		:: summary != 0
		:: else ->
			root = false;
#ifndef MUTANT_ROOT_NO_LOOK
#ifdef MUTANT_ROOT_NOT_FIRST
			if
			:: summary != 0 ->
				root = true;
				tell_again()
			:: else
			fi
#else
			if
			:: leaf[0] != 0 ->
				root = true;
				tell_again()
			:: else ->
				if
				:: summary != 0 ->
					root = true;
					tell_again()
				:: else
				fi
			fi
#endif
#endif
		fi
	fi
}

/* contd__scan_root_sig (src/dispatch/scan.c) */
inline scan_root(budget, left, got, l, v)
{
	if
	:: root ->
		scan_group(budget, left, got, l, v);
		root_settle()
	:: else
	fi
}

/* contd__slot_event_done_rcu: contd__table_mark_sig, contd__announce_rcu */
proctype Completer(byte s)
{
#ifdef MUTANT_ANNOUNCE_FIRST
	announce();
#endif
	leaf[under[s]] = leaf[under[s]] | (1 << s);
	mark_up(under[s]);
#ifndef MUTANT_ANNOUNCE_FIRST
	announce();
#endif
	skip
}

/* contd_group_wait, contd__drive, doze (src/dispatch/wait.c); daemon_main (src/dispatch/daemon.c) */
proctype Waiter()
{
	byte left, got, l, v;

	do
	:: outstanding == 0 -> break
	:: else ->
		/* For the waiter the scan of its own group comes first, and that of its class (its second) is left out. */
		if
		:: !daemon || root ->
			scan_group(ALL, left, got, l, v);
			if
			:: root -> root_settle()
			:: else
			fi
		:: else -> left = ALL
		fi;
		if
		:: left != ALL
		:: else ->
			sleepers = true;
			atomic {
				wake = false;
				got = 0;
				l = 0;
				v = 0;
				left = 0
			}
			if
#ifdef MUTANT_SLEEP_NO_LOOK
			:: true ->
#else
			:: outstanding != 0 ->
				if
				:: root -> goto up
				:: else
				fi;
				if
				:: !daemon && leaf[0] != 0 -> goto up
				:: else
				fi;
				if
				:: !daemon && summary != 0 -> goto up
				:: else
				fi;
#endif
				atomic { asleep = !wake }
				!asleep
#ifndef MUTANT_SLEEP_NO_LOOK
			:: else
#endif
			fi;
up:
			sleepers = false
		fi
	od
}

/* contd_poll (src/dispatch/wait.c), or contd__handler, which calls contd__react_sig (src/dispatch/react.c) */
proctype Scanner()
{
	byte left, got, l, v;

	scan_root(1, left, got, l, v)
}

init {
	atomic {
		if
		:: under[1] = 0
		:: under[1] = 1
		:: under[0] = 1; under[1] = 1; leaf[0] = 0; leaf[1] = 1
		fi;
		if
		:: daemon = false
		:: daemon = true
		fi;
		run Completer(1);
		run Waiter();
		run Scanner()
	}
}
