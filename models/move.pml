/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A live group that leaves its place, because it is given to an executor, and another group that takes the place:
 * switch_locked, root_enter_locked (src/dispatch/group_set.c), contd__scan_root_sig, contd__scan_group_sig,
 * run_claimed, is_ours, settle_place (src/dispatch/scan.c), contd__slot_ready_again_sig (src/dispatch/complete.c),
 * contd__root_settle_sig (src/rcu/table.c).
 *
 * check: safety
 * unreached: 1: a place without a group has no table that could be marked again
 * mutant: PLACE_NO_LOOK safety a scan that has cleared the bit of a place does not look whether the place is still that group's
 * mutant: LOOK_FIRST safety it looks at the place before it clears the bit
 * mutant: RUNS_ALL safety a scan runs a continuation that it has claimed, though the group has another place by now
 * mutant: PUT_BACK_SILENT safety it puts the continuation back without marking it again
 *
 * Group G has one continuation ready. When that has run, G is given to a pull executor. Only a lent thread scans
 * that executor's root. Then another continuation of G becomes ready, and group H takes G's place with a
 * continuation. Two threads
 * scan the first root, and one of the executor's threads scans the other one. Each continuation runs once, the
 * executor's on its thread. (Groups that die: group.pml. Levels above the root, and sleeping: tree.pml.)
 */
#define G 0
#define H 1
#define NOBODY 2

#define OPEN 0 /* the root that all scan */
#define OWN 1  /* the executor's */

byte place[2] = NOBODY;   /* of each root: its owner */
bool hint[2];             /* the place's bit in each root */
bool marked[2];           /* the groups' tables: something is READY, and its bit is set */
byte root_of[2];          /* table.root */
byte outstanding[2];

/* Not in the code. */
byte ran[2];
byte runs_in;             /* of the one of G that is ready: the root whose scans may run it */

#define all_ran (ran[G] == 2 && ran[H] == 1)

/* contd__table_mark_sig: the leaf, then the root that the table names */
inline mark(a)
{
	marked[a] = true;
	hint[root_of[a]] = true
}

/* run_claimed */
inline run_claimed(r, a)
{
	if
#ifdef MUTANT_RUNS_ALL
	:: true ->
#else
	:: root_of[a] == r -> /* is_ours */
#endif
		d_step {
			assert(a == H || r == runs_in);
			ran[a]++;
			outstanding[a]--
		}
#ifndef MUTANT_RUNS_ALL
	:: root_of[a] != r -> /* contd__slot_ready_again_sig */
#ifdef MUTANT_PUT_BACK_SILENT
		skip
#else
		mark(a)
#endif
#endif
	fi
}

/* settle_place; dead: there was no group */
inline settle_place(r, a, dead)
{
	if
	:: !dead && marked[a]
	:: dead || !marked[a] ->
#ifdef MUTANT_LOOK_FIRST
		now = place[r];
#endif
		/* contd__root_settle_sig */
		hint[r] = false;
		if
		:: !dead && marked[a] -> hint[r] = true
		:: dead || !marked[a]
		fi
	fi;
#ifndef MUTANT_PLACE_NO_LOOK
#ifndef MUTANT_LOOK_FIRST
	now = place[r];
#endif
	if
	:: now != NOBODY && now != a -> hint[r] = true
	:: else
	fi;
#endif
	now = NOBODY
}

/* contd__scan_root_sig with one place; the group is pinned */
inline scan_root(r)
{
	a = place[r];
	if
	:: a == NOBODY -> settle_place(r, a, true)
	:: a != NOBODY ->
		/* contd__scan_group_sig, contd__table_claim_sig */
		d_step {
			got = marked[a];
			marked[a] = false
		}
		if
		:: atomic { got -> got = false }
			run_claimed(r, a)
		:: !got
		fi;
		settle_place(r, a, false)
	fi;
	a = NOBODY
}

proctype Scanner(byte r)
{
	byte a = NOBODY, now = NOBODY;
	bool got;

	do
	:: hint[r] -> scan_root(r)
	:: all_ran -> break
	od
}

inline readyg()
{
	outstanding[G]++;
	mark(G)
}

/* root_enter_locked first */
inline readyh()
{
	root_of[H] = OPEN;
	place[OPEN] = H;
	outstanding[H]++;
	mark(H)
}

/* The program: contd_group_set_executor, contd_group_create, and what is registered with both groups and becomes ready */
proctype Program()
{
	outstanding[G] == 0;
	/* switch_locked */
	place[OPEN] = NOBODY;
	runs_in = OWN;
	root_of[G] = OWN;
	place[OWN] = G;
	if
	:: true -> readyg(); readyh()
	:: true -> readyh(); readyg()
	fi
}

init
{
	atomic {
		place[OPEN] = G;
		root_of[G] = OPEN;
		runs_in = OPEN;
		outstanding[G] = 1;
		marked[G] = true;
		hint[OPEN] = true;
		run Scanner(OPEN);
		run Scanner(OPEN);
		run Scanner(OWN);
		run Program()
	}
}
