/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a group and of its place in the root: struct contd_group's `life` (src/dispatch/group.h), scan_root
 * and contd__group_unpin_sig (src/dispatch/group.c), contd__group_count_down_last_sig
 * (src/dispatch/complete.c), contd_group_destroy, contd__reap (src/dispatch/group_set.c).
 *
 * check: safety
 * optimise
 * unreached: 2: only in the program's test does the callback give the handle back
 * mutant: TEST_NO_PIN safety a test of a group has no reference of its own
 * mutant: NO_GRACE safety dead groups are freed without a grace period
 * mutant: PIN_BLIND safety a scan takes a reference without looking whether the group is dead
 * mutant: PIN_OUTSIDE safety a scan takes its reference outside the read-side section
 * mutant: COMPLETER_OUTSIDE safety a completer marks outside a read-side section
 * mutant: COUNT_NO_PIN safety a thread that runs a continuation without a scan counts the last one down without a reference
 * mutant: PLACE_NO_LOOK safety a scan that finds a dead group does not look at the place again
 *
 * Two groups, one after the other, in the same place of the root, and maybe at the same address: each with one
 * continuation, whose event another thread completes. The program tests the first one by its handle; if its callback
 * runs in that test, the callback gives the handle back, else the program does, as it does for the second. A thread
 * scans, and another scan, by a thread or a handler, comes once. An ordinary thread frees what is dead. No group's
 * memory is touched after it was freed; both are freed; each continuation runs once.
 */
#define NOBODY 2

/* By address, 0 and 1. */
bool alive[2];
byte references[2], outstanding[2]; /* one word in the code, life */
bool marked[2];                     /* the table */
bool dead[2];                       /* the stack of dead groups */
byte which[2];                      /* not in the code: the group that it is, 0 or 1 */

/* The root */
byte place = NOBODY;                /* the address */
bool hint;                          /* the place's bit in the root */

/* The events: where each group is, once its continuation is attached. */
byte address[2] = NOBODY;

bool reading[4];                    /* read-side sections: completers, scanner, the other scan */
byte ran[2];
bool given_back;                    /* the callback of group 0 has done it */
byte ended;

#define TOUCH(a) assert(alive[a])

/* contd__group_unpin_sig */
inline unpin(a)
{
	d_step {
		TOUCH(a);
		assert(references[a] > 0);
		references[a]--;
		dead[a] = dead[a] || (references[a] == 0 && outstanding[a] == 0)
	}
}

/* contd__slot_run_taken, contd_work_run, and carried ones: until it is counted down the continuation keeps the group */
inline slot_run_taken(a, k)
{
	a = address[k];
	d_step {
		TOUCH(a);
		ran[which[a]]++;
		assert(ran[which[a]] == 1)
	}
	/* contd__group_count_down_last_sig */
	d_step {
		TOUCH(a);
		assert(outstanding[a] > 0);
		outstanding[a]--;
#ifndef MUTANT_COUNT_NO_PIN
		references[a]++
#else
		skip
#endif
	}
	/* group_idle */
	TOUCH(a);
#ifndef MUTANT_COUNT_NO_PIN
	unpin(a);
#endif
	a = 0
}

/* contd__slot_event_done_rcu: READY, marked, announced; proctype 0 and 1 by group */
proctype Completer(byte k)
{
	byte a;

	address[k] != NOBODY;
	if
	:: true -> slot_run_taken(a, k); goto end
	:: true
	fi;
#ifndef MUTANT_COMPLETER_OUTSIDE
	reading[k] = true;
#endif
	d_step {
		a = address[k];
		TOUCH(a);
		marked[a] = true
	}
	/* mark_up */
	d_step {
		TOUCH(a);
		hint = true
	}
	/* contd__announce_rcu looks at its flags */
	d_step {
		TOUCH(a);
		a = 0
	}
	reading[k] = false;
end:	ended++
}

/* contd__scan_group_sig: claim, run, contd__slot_finish_sig; test: it is the program's test */
inline scan_group(a, test)
{
	d_step {
		TOUCH(a);
		got = marked[a];
		marked[a] = false
	}
	if
	:: got ->
		d_step {
			TOUCH(a);
			ran[which[a]]++;
			assert(ran[which[a]] == 1)
		}
		/* the callback */
		if
		:: test && which[a] == 0 ->
			given_back = true;
			unpin(a)
		:: else
		fi;
		d_step {
			TOUCH(a);
			assert(outstanding[a] > 0);
			outstanding[a]--;
			got = false
		}
		/* group_idle */
		TOUCH(a)
	:: else
	fi
}

/* scan_root with one place */
inline scan_root(r)
{
	if
	:: !hint
	:: hint ->
#ifndef MUTANT_PIN_OUTSIDE
		reading[r] = true;
#endif
		a = place;
		/* contd__group_try_pin_sig */
		d_step {
			if
			:: a == NOBODY -> got = false
			:: else ->
				TOUCH(a);
#ifdef MUTANT_PIN_BLIND
				got = true;
#else
				got = (references[a] != 0 || outstanding[a] != 0);
#endif
				references[a] = references[a] + got
			fi
		}
		if
		:: !got ->
			hint = false;
#ifndef MUTANT_PLACE_NO_LOOK
			if
			:: place != a -> hint = true
			:: else
			fi;
#endif
			reading[r] = false
		:: atomic { got -> got = false }
			reading[r] = false;
			scan_group(a, false);
			/* contd__root_settle_sig */
			d_step {
				TOUCH(a);
				got = marked[a]
			}
			if
			:: atomic { got -> got = false }
			:: !got ->
				hint = false;
				d_step {
					TOUCH(a);
					hint = hint || marked[a]
				}
			fi;
			unpin(a)
		fi;
		a = 0
	fi
}

/* contd_group_create; contd_event_continue with one event */
inline create(k)
{
	/* any address that is free */
	if
	:: atomic { !alive[0] -> a = 0; alive[0] = true }
	:: atomic { !alive[1] -> a = 1; alive[1] = true }
	fi;
	d_step {
		references[a] = 1;
		outstanding[a] = 0;
		marked[a] = false;
		which[a] = k
	}
	/* root_enter_locked: the first place that is free, which is not there before group_unlist_locked */
	atomic { place == NOBODY -> place = a }
	outstanding[a]++;
	address[k] = a
}

proctype Program()
{
	byte a;
	bool got;

	create(0);
	/* contd_group_test, contd__drive */
#ifndef MUTANT_TEST_NO_PIN
	d_step {
		TOUCH(a);
		references[a]++
	}
#endif
	scan_group(a, true);
	TOUCH(a); /* is it complete? */
#ifndef MUTANT_TEST_NO_PIN
	unpin(a);
#endif
	/* contd_group_destroy */
	if
	:: given_back
	:: !given_back -> unpin(a)
	fi;
	create(1);
	unpin(a);
	ended++
}

proctype Scanner()
{
	byte a;
	bool got;

	do
	:: hint -> scan_root(2)
	:: ended == 3 && ran[0] == 1 && ran[1] == 1 -> break
	od
}

proctype Scan_once()
{
	byte a;
	bool got;

	scan_root(3)
}

/* contd__reap */
proctype Reaper()
{
	byte a, freed;

	do
	:: freed == 2 -> break
	:: freed != 2 ->
		if
		:: atomic { dead[0] -> dead[0] = false; a = 0 }
		:: atomic { dead[1] -> dead[1] = false; a = 1 }
		fi;
		/* group_unlist_locked */
		d_step {
			assert(place == a);
			place = NOBODY
		}
#ifndef MUTANT_NO_GRACE
		!reading[0];
		!reading[1];
		!reading[2];
		!reading[3];
#endif
		/* group_free */
		d_step {
			assert(references[a] == 0 && outstanding[a] == 0);
			alive[a] = false;
			freed++
		}
	od;
	assert(ran[0] == 1 && ran[1] == 1)
}

init {
	atomic {
		run Completer(0);
		run Completer(1);
		run Program();
		run Scanner();
		run Scan_once();
		run Reaper()
	}
}
