/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose the list of tasks is, of a pull executor: its only taker's, without atomic operations, or from some time
 * on everybody's, under a
 * lock: contd__executor_inside_sig (src/task/executor.h), settle, disown, task_take, contd_executor_run
 * (src/task/executor.c),
 * queue_inside (src/task/executor_sig.c).
 *
 * check: safety
 * mutant: LOOK_FIRST safety the owner looks whether the list is shared before it says that it is inside
 * mutant: NO_BARRIER safety a second thread does not make the processors' stores visible, membarrier(2)
 * mutant: NO_WAIT safety a second thread does not wait until the owner is outside
 * mutant: MOVES safety a second thread becomes the owner, though the former one may have looked already
 * mutant: NO_SETTLE safety a thread takes tasks without having settled who owns the list
 *
 * Three threads. Each queues twice a task that it submits itself, or takes tasks: it is lent for a while, and then
 * perhaps not any more (disown). The model does not say what two threads do with the list at the same time, because
 * that is the error.
 *
 * Processors have store buffers here, because the owner's part has no operation that would empty its own. The stores
 * in `inside`, and that of disown, wait in buffer[me], in order, until Memory takes them or their thread's next atomic
 * operation must wait for that.
 */
#define THREADS 3
#define TIMES 2

#define OWNED 0
#define SHARING 1
#define SHARED 2

/* what is in a buffer */
#define INSIDE 1
#define OUTSIDE 2
#define DISOWN 3

byte owner; /* 0: nobody */
byte shared;
bool inside, locked;
bool disowned[THREADS]; /* DISOWN is in its buffer: a thread sees its own stores */
byte users;
chan buffer[THREADS] = [4] of { byte };

#define atomically(me) empty(buffer[me])

inline list()
{
	users++;
	assert(users == 1);
	users--
}

inline lock(me)
{
	atomic { atomically(me) && !locked -> locked = true }
}

/* contd__executor_inside_sig */
inline enter(me, is)
{
	is = false;
	if
	:: owner != me + 1 || disowned[me]
	:: owner == me + 1 && !disowned[me] ->
#ifdef MUTANT_LOOK_FIRST
		is = (shared == OWNED);
		buffer[me]!INSIDE
#else
		buffer[me]!INSIDE;
		is = (shared == OWNED)
#endif
		if
		:: !is -> buffer[me]!OUTSIDE
		:: is
		fi
	fi
}

/* settle; claimed: it has become the owner */
inline settle(me, claimed)
{
	claimed = false;
	if
	:: shared == SHARED
	:: owner == me + 1 && shared == OWNED
	:: !(shared == SHARED || (owner == me + 1 && shared == OWNED)) ->
		if
		:: atomic { atomically(me) && owner == 0 -> owner = me + 1; claimed = true }
		:: owner != 0 ->
			lock(me);
			if
			:: shared == OWNED ->
				shared = SHARING;
#ifndef MUTANT_NO_BARRIER
				empty(buffer[0]);
				empty(buffer[1]);
				empty(buffer[2]);
#endif
#ifndef MUTANT_NO_WAIT
				!inside;
#endif
#ifdef MUTANT_MOVES
				owner = me + 1;
				shared = OWNED
#else
				shared = SHARED
#endif
			:: shared != OWNED
			fi;
			locked = false
		fi
	fi
}

proctype Thread(byte me)
{
	byte times = TIMES;
	bool is, claimed;

	do
	:: times > 0 ->
		times--;
		if
		:: /* queue_inside; else it pushes, which does not concern the list */
			enter(me, is);
			if
			:: is ->
				list();
				buffer[me]!OUTSIDE
			:: !is
			fi
		:: /* contd_executor_run: it is counted as a thread first, atomically */
			atomically(me);
			if
			:: settle(me, claimed)
#ifdef MUTANT_NO_SETTLE
			:: true
#endif
			fi;
			enter(me, is);
			if
			:: is ->
				list();
				buffer[me]!OUTSIDE
			:: !is ->
				lock(me);
				list();
				locked = false
			fi;
			if
			:: d_step { claimed -> disowned[me] = true; buffer[me]!DISOWN }
			:: true
			fi;
			claimed = false
		fi
	:: times == 0 -> break
	od
}

/* The oldest store of some processor's becomes visible. */
active proctype Memory()
{
	byte what, me;

end:	do
	:: atomic {
			if
			:: buffer[0]?what -> me = 0
			:: buffer[1]?what -> me = 1
			:: buffer[2]?what -> me = 2
			fi;
			if
			:: what == INSIDE -> inside = true
			:: what == OUTSIDE -> inside = false
			:: what == DISOWN -> owner = 0; disowned[me] = false
			fi
		}
	od
}

init
{
	atomic {
		run Thread(0);
		run Thread(1);
		run Thread(2)
	}
}
