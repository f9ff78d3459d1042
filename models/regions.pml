/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A continuation that only a thread in a compute region may be interrupted for: `regions`, CONTD__TLS_REARM, and
 * the region's
 * begin, which has no fence. src/dispatch/interrupt.c (kick_region), react.c (contd__react_sig), src/signal/notify.c
 * (contd__notify_region_sig), timer.c (contd__region_rearm), contd_compute_begin (include/contd/contd.h).
 *
 * check: safety
 * compile: -DNOREDUCE
 * unreached: 1: in its handler outside regions the thread does not see itself compute
 * mutant: NO_BARRIER safety the completer does not call membarrier(2)
 * mutant: NO_REARM safety it does not tell the thread to look when its next region begins
 * mutant: NO_LOOK safety a region that was told does not look
 * mutant: LOOK_FIRST safety a region that was told looks before it stores `regions`
 * mutant: TAKE_BACK_LATE safety `regions` is taken back after the thread was told
 * mutant: NO_RESTORE safety `regions` is not stored again where a thread computes after all
 * mutant: RESTORE_LATE safety it is stored again after the signal
 * mutant: NO_HAND_ON safety a handler that comes after the region has ended forgets its notification
 *
 * Two completers make something ready, each once. One attached thread begins and ends a region, and begins another
 * one in which it
 * stays. Its stores of the region's count stand in a store buffer until the processor, an operation with the bus
 * locked, a
 * signal or membarrier(2) empties it. There are no ticks (CONTD_AGENT=caller), and the thread's purse can pay.
 */
bool ready;               /* marked, of plain groups */
bool regions;             /* contd__interrupt.regions */
bool rearm;               /* CONTD__TLS_REARM of the thread */
bool region;              /* the count in memory */
bool mine;                /* as the thread sees it */
bool signalled, pending, inside;
byte ended;

inline flush()
{
	region = mine
}

inline interrupt()
{
	d_step {
		if
		:: signalled
		:: else ->
			signalled = true;
			pending = true
		fi
	}
}

/* contd__notify_region_sig. own: the thread itself calls it, in its handler, outside regions */
inline notify_region(own)
{
	if
	:: region -> interrupt()
	:: else ->
		if
		:: !regions
		:: else ->
#ifndef MUTANT_TAKE_BACK_LATE
			regions = false;
#endif
#ifndef MUTANT_NO_REARM
			rearm = true;
#endif
#ifdef MUTANT_TAKE_BACK_LATE
			regions = false;
#endif
#ifndef MUTANT_NO_BARRIER
			flush();
#endif
			if
			:: region && !own ->
#ifdef MUTANT_RESTORE_LATE
				interrupt();
				regions = true
#else
#ifndef MUTANT_NO_RESTORE
				regions = true;
#endif
				interrupt()
#endif
			:: else
			fi
		fi
	fi
}

/* The mark, then kick_region. */
proctype Completer()
{
	ready = true;
	if
	:: regions -> notify_region(false)
	:: else
	fi;
	ended++
}

/* contd_compute_begin, contd__region_rearm */
inline begin()
{
	mine = true;
	if
	:: rearm ->
		atomic {
			flush();
			rearm = false
		}
#ifdef MUTANT_LOOK_FIRST
		ready = false;
		regions = true
#else
		regions = true;
#ifndef MUTANT_NO_LOOK
		ready = false
#endif
#endif
	:: else
	fi
}

proctype Thread() provided (!inside)
{
	begin();
	mine = false;
	begin();
	ended++
}

/* The processor empties the buffer when it likes. */
proctype Buffer()
{
end:	do
	:: region != mine -> flush()
	od
}

proctype Handler()
{
end:	do
	:: atomic {
		pending -> pending = false;
		inside = true;
		flush()
	};
		signalled = false;
		if
		:: mine -> ready = false
		:: else ->
#ifndef MUTANT_NO_HAND_ON
			if
			:: ready && regions -> notify_region(true)
			:: else
			fi
#else
			skip
#endif
		fi;
		inside = false
	od
}

/* The thread computes: nothing is ready that it will not be interrupted for. */
proctype End()
{
	ended == 3 && !pending && !inside;
	assert(!ready)
}

init {
	atomic {
		/* Just attached, or has begun regions before and not been told since. */
		if
		:: rearm = true
		:: regions = true
		fi;
		run Completer();
		run Completer();
		run Thread();
		run Buffer();
		run Handler();
		run End()
	}
}
