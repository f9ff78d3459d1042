/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timer of an attached thread: the thread that makes something pending arms it, and the tick that finds
 * nothing stops it.
 * src/signal/timer.c, src/signal/handler.c; contd_compute_begin (include/contd/contd.h).
 *
 * check: safety
 * check: ltl served
 * check: ltl idle
 * compile: -DNOREDUCE -DNFAIR=3
 * optimise
 * mutant: STOP_NO_LOOK safety the thread that stops the timer does not look again
 * mutant: STOP_LATE safety the timer is said to be free and stopped afterwards
 * mutant: ARM_FIRST safety a thread looks at the timer before it makes something pending
 * mutant: REARM_LATE safety a region looks for something pending and says afterwards that it can use ticks
 * mutant: REST_SILENT safety a thread that ticks leave alone is not told to ask for them in its next region
 * mutant: NEVER_STOPS ltl idle a tick that finds nothing lets the timer run
 *
 * One attached thread with regions, and its handler, during which it does not move. Two other threads make pending:
 * one a source that only regions serve, one a memory word that any tick serves. One tick outside regions is enough
 * here for the thread to be left alone (USELESS_TICKS). The timer may expire at any time, also while the handler
 * runs: that signal comes after it, even if the timer is stopped meanwhile.
 */
bool region_pending, word_pending;
bool timer, expired;        /* it runs; its signal waits */
bool armed, resting = true; /* struct contd__attached; contd_thread_attach ends with these */
bool rearm = true, region;  /* contd__tls */
bool inside;                /* the handler runs */
byte late;                  /* how many looks find the operation not complete yet */
byte ended;
bool done;

ltl served { <> done }
ltl idle { <> [] !timer }

/* useful: three loads */
inline useful(u)
{
	if
	:: atomic { word_pending -> u = true }
	:: else ->
		if
		:: resting
		:: else -> u = region_pending
		fi
	fi
}

/* arm_one */
inline arm_one(u)
{
	if
	:: atomic { armed -> u = false }
	:: else ->
		d_step {
			u = !armed;
			armed = true
		}
		if
		:: atomic { u -> u = false }
			timer = true
		:: else
		fi
	fi
}

/* contd__pending_sig, contd__arm_sig */
inline arm(u)
{
	if
	:: armed
	:: else ->
		useful(u);
		if
		:: u -> arm_one(u)
		:: else
		fi
	fi
}

active proctype Region_source()
{
	bool u;

#ifdef MUTANT_ARM_FIRST
	arm(u);
	region_pending = true;
#else
	region_pending = true;
	arm(u);
#endif
	ended++
}

active proctype Word()
{
	bool u;

#ifdef MUTANT_ARM_FIRST
	arm(u);
	word_pending = true;
#else
	word_pending = true;
	arm(u);
#endif
	ended++
}

/* contd_compute_begin, contd__region_rearm */
inline begin(u)
{
	region = true;
	if
	:: rearm ->
		rearm = false;
#ifdef MUTANT_REARM_LATE
		u = word_pending || region_pending;
		resting = false;
#else
		resting = false;
		useful(u);
#endif
		if
		:: u -> arm_one(u)
		:: else
		fi
	:: else
	fi
}

/* It computes, does something else, and then either computes until all is served, or does not compute any more. */
active proctype Thread() provided (!inside)
{
	bool u;

	begin(u);
	region = false;
	if
	:: begin(u);
		ended == 2 && !word_pending && !region_pending;
		region = false
	:: ended == 2 && !word_pending
	fi;
	done = true
}

/* timer_settime(2): it expires again and again. */
active proctype Clock()
{
end:	do
	:: timer && !expired -> expired = true
	od
}

/* contd__handler, contd__react_sig, contd__tick_done_sig */
active proctype Handler()
{
	bool u;

	if
	:: late = 0
	:: late = 1
	fi;
end:	do
	:: atomic { expired -> inside = true; expired = false }
		if
		:: atomic { late != 0 -> late-- }
		:: else ->
			word_pending = false;
			if
			:: region -> region_pending = false
			:: else
			fi
		fi;
		if
		:: region
		:: else ->
			/* contd__rest_sig */
			resting = true;
#ifndef MUTANT_REST_SILENT
			rearm = true
#endif
		fi;
		useful(u);
		if
		:: atomic { u -> u = false }
		:: else ->
#ifndef MUTANT_NEVER_STOPS
			/* stop */
#ifdef MUTANT_STOP_LATE
			armed = false;
			timer = false;
#else
			timer = false;
			armed = false;
#endif
#ifndef MUTANT_STOP_NO_LOOK
			useful(u);
			if
			:: u -> arm_one(u)
			:: else
			fi
#endif
#else
			skip
#endif
		fi;
		inside = false
	od
}
