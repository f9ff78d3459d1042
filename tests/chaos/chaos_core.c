/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every public call of the core, by several threads, in random order, and deeds at test points: see chaos.h for what a
 * seed decides.
 *
 * A run is a row of rounds. A round starts contd with settings at random, and ends it; in between there are epochs:
 *
 *   1. operations     each thread makes so many calls, then completes its share of what is pending, but for a few
 *   2. quiet          the threads park. From now on nothing happens but what is said here
 *   3. one entitled   by turns, and in random order, there is one who is entitled to run what is ready (the handler of
 *                     an attached thread, a region, the daemon, the descriptor, a poll, a lent thread, a drain, a test,
 *                     a wait) and no other; a few more continuations are completed meanwhile; and everything that it
 *                     is entitled to run must run within a bound
 *   4. all            all threads run everything; then nothing may be left
 *
 * So what was lost during the operations is found out at once: nothing marks again what should have been marked.
 *
 * The rules are checked when a callback begins (entitled()), when a call returns (op_test(), op_wait(), ...), and when
 * a round is over (round_end()). A continuation's data names its record and which use of it this is, so that one that
 * runs twice, late or after it was cancelled is found when it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <contd/contd.h>
#include <contd/executor.h>

#include "chaos.h"
#include "gate.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/classes.h"
#include "dispatch/event.h"
#include "dispatch/group.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "signal/attached.h"

#define CONTS 1024u
#define EVENTS 4u
#define WORD_BIT EVENTS /* of todo */
#define GROUPS 4096u    /* of a round */
#define LIVE_GROUPS 12u
#define EXECUTORS 64u /* of a round */
#define LIVE_EXECUTORS 4u
#define QUEUE 128u /* of a pool */
#define TASKS 256u
#define NONE UINT32_MAX
#define DEPTH 4u
#define ABANDONED 5u

enum class {
	C_GROUP,
	C_EXECUTOR,
	C_SET_EXECUTOR,
	C_EVENT,
	C_WORD,
	C_CHAIN,
	C_CANCEL,
	C_COMPLETE,
	C_POLL,
	C_TEST,
	C_WAIT,
	C_PUSH,
	C_PULL,
	C_TASK,
	C_DRAIN,
	C_ATTACH,
	C_GUARD,
	C_REGION,
	C_CHECKPOINT,
	C_DAEMON,
	C_CONFIGURE,
	C_FD,
	C_BELL,
	C_STATS,
	C_FILE,
	C_SOURCE,
	C_LONG,
	C_INIT,
	C_SIGNAL,
	C_THREAD,
	C_BURST,
	C_ACTIONS,
	C_POINTS,
	C_ENQUEUE,
	C_MAX_POLL,
	C_INTERRUPTION,
	C_ALONE_SIGNAL,
	C_ALONE_REGION,
	C_ALONE_DAEMON,
	C_ALONE_LENT,
	C_ALONE_POLL,
	C_ALONE_WAIT,
	C_ABANDON,
	C_END
};
static struct chaos_class classes[C_END] = {
	[C_GROUP] = {"group", "make groups, and give them back with continuations outstanding", 0},
	[C_EXECUTOR] = {"executor", "make and destroy executors", 0},
	[C_SET_EXECUTOR] = {"set-executor", "give groups executors, and take them away", 0},
	[C_EVENT] = {"event", "continuations on events", 0},
	[C_WORD] = {"word", "continuations on memory words", 0},
	[C_CHAIN] = {"chain", "continuations on groups", 0},
	[C_CANCEL] = {"cancel", "contd_cancel", 0},
	[C_COMPLETE] = {"complete", "complete events of anybody's", 0},
	[C_POLL] = {"poll", "contd_poll", 0},
	[C_LONG] = {"long-wait", "callbacks that wait until another thread has completed something", 0},
	[C_TEST] = {"test", "contd_group_test", 0},
	[C_WAIT] = {"wait", "contd_group_wait with a short timeout", 0},
	[C_PUSH] = {"push", "run what push executors were given", 0},
	[C_PULL] = {"pull", "lend the thread, take work, stop", 0},
	[C_TASK] = {"task", "tasks, and continuations that become tasks", 0},
	[C_DRAIN] = {"drain", "contd_executor_drain", 0},
	[C_ATTACH] = {"attach", "attach and detach", 0},
	[C_GUARD] = {"guard", "guards", 0},
	[C_REGION] = {"region", "compute regions", 0},
	[C_CHECKPOINT] = {"checkpoint", "checkpoints", 0},
	[C_DAEMON] = {"daemon", "start and stop the daemon", 0},
	[C_CONFIGURE] = {"configure", "contd_configure: agents and all other settings", 0},
	[C_FD] = {"fd", "contd_fd, and poll(2) on it", 0},
	[C_BELL] = {"bell", "listen, open, ring and close a bell of this process", 0},
	[C_STATS] = {"stats", "contd_stats_get, contd_dump, descriptions, versions", 0},
	[C_FILE] = {"file", "files of the program's own, which get the numbers of descriptors that contd has closed",
		    0},
	[C_SOURCE] = {"source", "a source that is driven, and completes what it finds", 0},
	[C_INIT] = {"init", "contd_init and contd_fini of one more user", 0},
	[C_SIGNAL] = {"signal", "raise contd's signal, or the program's, on any thread", 0},
	[C_THREAD] = {"thread", "threads that end while they are attached", 0},
	[C_BURST] = {"burst", "many continuations of one group at a time", 0},
	[C_ACTIONS] = {"actions", "callbacks that call contd", 0},
	[C_POINTS] = {"points", "deeds at test points", 0},
	[C_ENQUEUE] = {"enqueue", "check CONTD_ENQUEUE_COMPLETE", 0},
	[C_MAX_POLL] = {"max-poll", "check max_poll of tests", 0},
	[C_INTERRUPTION] = {"interruption", "check max_poll of one interruption", 0},
	[C_ALONE_SIGNAL] = {"alone-signal", "attached threads alone must run async-signal-safe groups", 0},
	[C_ALONE_REGION] = {"alone-region", "a thread in a region alone must run what is completed meanwhile", 0},
	[C_ALONE_DAEMON] = {"alone-daemon", "the daemon alone must run CONTD_THREAD_ANY groups", 0},
	[C_ALONE_LENT] = {"alone-lent", "lent threads alone must run a pull executor's work", 0},
	[C_ALONE_POLL] = {"alone-poll", "polls, the descriptor, tests and waits alone", 0},
	[C_ALONE_WAIT] = {"alone-wait", "a wait alone must end, once everything of its group is complete", 0},
	[C_ABANDON] = {"abandon", "leave continuations outstanding when contd ends", 0},
};

/* ------------------------------------------------------------------------------------------------------ records --- */

/* The record of one group; each round uses new ones. A thread that uses the handle is counted. A thread that needs the
 * handle alone does not wait for the others: it closes the record when the count is 0. */
struct grec {
	struct contd_group *g;
	uint32_t flags;
	int32_t max_poll;
	uint32_t users, destroyed;
	uint32_t ex;    /* index, or NONE; while nothing is outstanding and closed it changes */
	uint32_t begun; /* registrations */
	uint32_t returned;
	uint32_t ended; /* of them: ran to their end, cancelled, or refused */
	uint32_t cancels_begun, cancels_ended;
};

struct erec {
	struct contd_executor *ex;
	uint32_t push, flags, users, destroyed, notifies;
	uint32_t notified;
	struct contd_work *queue[QUEUE];
};

enum state { FREE, MAKING, ARMED, RUNNING, RAN, CANCELLED, REFUSED };
static const char *const state_name[8] = {"free", "making", "armed", "running", "ran", "cancelled", "refused", "?"};
#define STATE(use, st) ((use) << 3 | (uint32_t)(st))
#define USE(w) ((w) >> 3)

enum kind { ON_EVENTS, ON_WORD, ON_GROUP };

struct cont {
	uint32_t state;     /* STATE() */
	uint32_t busy;      /* users: the continuation, each completer, registering and cancelling threads; 0: free */
	uint32_t todo;      /* events, and the word, that are still to be completed */
	uint32_t handle_of; /* the use that the handle is of */
	uint8_t kind, n, as_task, handled;
	uint32_t group, awaited, ex;
	int32_t code[EVENTS];
	uint32_t payload[EVENTS];
	uint64_t word, wanted;
	uint64_t ready_ns; /* when the last completion so far began */
	uint64_t armed_ns;
	struct contd_handle handle;
	struct contd_task task;
	struct contd_event event[EVENTS];
};

struct trec {
	uint32_t state;
	uint32_t ex;
	int32_t status;
	struct contd_task task;
};

static struct grec groups[GROUPS];
static struct erec executors[EXECUTORS];
static struct cont conts[CONTS];
static struct trec tasks[TASKS];
static uint32_t group_count, executor_count;
static uint32_t live_group[LIVE_GROUPS], live_executor[LIVE_EXECUTORS];

/* ------------------------------------------------------------------------------------------------------ threads --- */

struct testing {
	uint32_t group;
	int32_t left; /* INT32_MAX: no limit */
	struct testing *outer;
};

/* An interruption that is under way: which groups' it has run. */
struct interruption {
	uint32_t n;
	struct {
		uint32_t group;
		int32_t ran;
	} of[16];
};

enum order { O_IDLE, O_SLEEP, O_REGION, O_CHECKPOINT, O_LENT, O_POOL, O_WAIT, O_END };
static const char *const order_name[] = {"idle", "asleep", "in a region", "at checkpoints",
					 "lent", "pool",   "in a wait",   "end"};

/* The state of a thread that entitled() reads. Written by the thread and its handlers. */
struct self {
	struct chaos_thread *chaos;
	pthread_t thread;
	uint32_t attached, in_region, depth, frames; /* frames: continuations, not tasks */
	uint32_t in_handler, in_user_handler, in_deed;
	uint32_t in_executor[EXECUTORS];
	uint32_t refused; /* by this executor, just now */
	uint32_t registering, registering_depth;
	uint32_t waits_long; /* for something that others complete */
	struct testing *testing;
	struct interruption *interruption;
	uint32_t parked, order, order_of, obeyed;
	uint64_t registered, cancelled, ran;
};

static struct self selves[CHAOS_THREADS];
static struct self *daemon_self;
static uint32_t worker_count, running, ended_contd, daemons, users, quiet;
static uint64_t attached_since;
static uint64_t total_registered, total_ran, total_cancelled, total_rounds, total_epochs, total_alone[C_END];
static uint32_t agent_now;

static struct self *self(void)
{
	struct chaos_thread *t = chaos_me ? chaos_me : chaos_stranger();

	return t ? &selves[t->number] : NULL;
}

struct chaos_thread *chaos_stranger(void)
{
	if (contd__load(&contd__self.context) != CONTEXT_DAEMON || !daemon_self)
		return NULL;
	return daemon_self->chaos;
}

static bool on(enum class c)
{
	return !classes[c].off;
}

static uint64_t choose_at(uint64_t n)
{
	return chaos_draw_at(n);
}

/* ----------------------------------------------------------------------------------- using groups and executors --- */

/* A group that may be used until leave(); NONE. */
static uint32_t group_enter(uint64_t r)
{
	for (uint32_t i = 0; i < LIVE_GROUPS; i++) {
		uint32_t k = contd__load_acquire(&live_group[(r + i) % LIVE_GROUPS]);

		if (k != NONE && enter(&groups[k].users))
			return k;
	}
	return NONE;
}

static uint32_t executor_enter(uint64_t r, int push)
{
	for (uint32_t i = 0; i < LIVE_EXECUTORS; i++) {
		uint32_t k = contd__load_acquire(&live_executor[(r + i) % LIVE_EXECUTORS]);

		if (k != NONE && (push < 0 || contd__load(&executors[k].push) == (uint32_t)push) &&
		    enter(&executors[k].users))
			return k;
	}
	return NONE;
}

/* ------------------------------------------------------------------------------------ completing, from anywhere --- */

static void release(struct cont *c)
{
	uint32_t w = contd__load(&c->state);

	if (contd__sub(&c->busy, 1) == 1)
		contd__store_release(&c->state, STATE(USE(w), FREE));
}

static void kept_errno(int before, const char *call)
{
#ifdef __SANITIZE_THREAD__
	return; /* it changes errno itself when it looks whether a report is suppressed */
#endif
	if (errno != before)
		chaos_wrong("%s changes errno from %d to %d", call, before, errno);
}

/* One bit of todo that the caller has taken away. */
static void complete_bit(uint32_t index, uint32_t bit)
{
	struct cont *c = &conts[index];
	struct self *me = self();
	uint32_t before = contd__load(&me->registering);
	int rc;

	contd__store(&me->registering, NONE); /* what runs in here runs in this call */
	contd__store(&c->ready_ns, chaos_ns());
	if (bit == WORD_BIT) {
		chaos_note("set word", index, 0);
		__atomic_store_n(&c->word, c->wanted, __ATOMIC_RELEASE);
	} else {
		c->payload[bit] = USE(contd__load(&c->state));
		chaos_note("complete", index, (uint64_t)bit);
		errno = 1234;
		rc = contd_event_complete(&c->event[bit], c->code[bit]);
		kept_errno(1234, "contd_event_complete");
		if (rc)
			chaos_wrong("contd_event_complete is %d: %s", rc, contd_error_text());
	}
	contd__store(&me->registering, before);
	release(c);
}

static bool complete_of(uint32_t index)
{
	uint32_t todo = contd__load(&conts[index].todo), bit;

	if (!todo)
		return false;
	bit = (uint32_t)__builtin_ctz(todo);
	if (!(contd__and(&conts[index].todo, ~(1u << bit)) & 1u << bit))
		return false;
	complete_bit(index, bit);
	return true;
}

/* Complete some events of any thread, from a random place on. Any context. */
static bool complete_some(uint64_t r)
{
	for (uint32_t i = 0; i < 64; i++)
		if (complete_of((uint32_t)(r + i) % CONTS))
			return true;
	return false;
}

/*
 * A source like MPI: operations are begun, and a thread that polls the source finds them complete. It announces several
 * at a time together.
 */
static uint32_t source_operations;

static uint32_t source_pending(void)
{
	return contd__load(&quiet) ? 0 : contd__load_seq(&source_operations);
}

static void source_progress(bool last)
{
	struct contd_event *list[4];
	uint32_t of[4], n = 0, left = contd__load(&source_operations), before;
	uint64_t r = chaos_draw_at(0);
	struct self *me = self();

	if (!me || !left || (!last && r & 3) || !contd__cas(&source_operations, &left, left - 1))
		return;
	before = contd__load(&me->registering);
	contd__store(&me->registering, NONE);
	for (uint32_t i = 0; i < 64 && n < 1 + (r >> 2 & 3); i++) {
		uint32_t index = (uint32_t)((r >> 8) + i) % CONTS, todo = contd__load(&conts[index].todo), bit;

		if (!todo)
			continue;
		bit = (uint32_t)__builtin_ctz(todo);
		if (!(contd__and(&conts[index].todo, ~(1u << bit)) & 1u << bit))
			continue;
		if (bit == WORD_BIT || conts[index].code[bit]) {
			complete_bit(index, bit);
			continue;
		}
		contd__store(&conts[index].ready_ns, chaos_ns());
		conts[index].payload[bit] = USE(contd__load(&conts[index].state));
		chaos_note("source finds", index, bit);
		list[n] = &conts[index].event[bit];
		of[n++] = index;
	}
	if (n)
		contd__events_complete_sig(list, n);
	contd__store(&me->registering, before);
	for (uint32_t i = 0; i < n; i++)
		release(&conts[of[i]]);
}

static struct contd__source source = {.name = "chaos",
				      .where = WHERE_THREAD | WHERE_REGION | WHERE_DAEMON,
				      .progress = source_progress,
				      .pending = source_pending};

/* ------------------------------------------------------------------------------------------------- the callback --- */

static bool testing_it(const struct self *me, uint32_t group)
{
	for (const struct testing *t = me->testing; t; t = t->outer)
		if (t->group == group)
			return true;
	return false;
}

static void charge(struct self *me, uint32_t group, uint32_t index)
{
	struct interruption *in = me->interruption;
	int32_t most = groups[group].max_poll;
	uint32_t i;

	if (contd__load(&contd__self.context) == CONTEXT_THREAD) {
		for (struct testing *t = me->testing; t; t = t->outer)
			if (t->group == group) {
				if (t->left != INT32_MAX && t->left-- <= 0 && on(C_MAX_POLL))
					chaos_wrong("a test of group %u with max_poll %d runs one more (%u)", group,
						    most, index);
				break;
			}
		return;
	}
	if (!in || most <= 0 || !on(C_INTERRUPTION))
		return;
	for (i = 0; i < in->n && in->of[i].group != group; i++)
		;
	if (i == 16)
		return;
	if (i == in->n) {
		in->of[in->n].group = group;
		in->of[in->n++].ran = 0;
	}
	if (++in->of[i].ran > most)
		chaos_wrong("one interruption runs %d of group %u, whose max_poll is %d", in->of[i].ran, group, most);
}

/* May this thread run it, here? */
static void entitled(struct self *me, const struct cont *c, uint32_t index)
{
	const struct grec *g = &groups[c->group];
	uint32_t context = contd__load(&contd__self.context), ex = c->ex;
	bool daemon = me == daemon_self;

	if (context == CONTEXT_HANDLER && !(g->flags & CONTD_ASYNC_SIGNAL_SAFE))
		chaos_wrong("continuation %u of group %u, flags %#x, runs in a handler outside a region", index,
			    c->group, g->flags);
	if (context == CONTEXT_REGION && !me->in_region)
		chaos_wrong("continuation %u runs as if in a region, outside one", index);
	if (g->flags & CONTD_POLL_ONLY && !contd__load(&g->destroyed) && !testing_it(me, c->group))
		chaos_wrong("continuation %u of the poll-only group %u runs outside its tests and waits", index,
			    c->group);
	if (ex == NONE && daemon && !(g->flags & CONTD_THREAD_ANY))
		chaos_wrong("continuation %u of group %u, flags %#x, runs on the daemon", index, c->group, g->flags);
	if (ex != NONE && !me->in_executor[ex]) {
		const struct erec *e = &executors[ex];

		if (!e->push)
			chaos_wrong("continuation %u of pull executor %u runs on a thread that is not lent", index, ex);
		if (me->refused != ex)
			chaos_wrong("continuation %u of push executor %u runs outside its pool", index, ex);
		if (daemon && !(g->flags & CONTD_THREAD_ANY))
			chaos_wrong("continuation %u, that push executor %u has refused, runs on the daemon", index,
				    ex);
	}
	if (contd__load(&me->registering) == index) {
		if (g->flags & CONTD_ENQUEUE_COMPLETE && on(C_ENQUEUE))
			chaos_wrong("continuation %u of group %u (CONTD_ENQUEUE_COMPLETE, flags %#x) runs in the call "
				    "that registers it",
				    index, c->group, g->flags);
		if (me->registering_depth)
			chaos_wrong("continuation %u runs in the call that registers it, inside another one", index);
	}
	charge(me, c->group, index);
}

static void check_status(const struct cont *c, uint32_t index, int status)
{
	bool found = false;
	uint32_t codes = 0;

	if (c->kind != ON_EVENTS) {
		if (status)
			chaos_wrong("continuation %u gets the status %d, and waits for no event", index, status);
		return;
	}
	for (uint32_t i = 0; i < c->n; i++) {
		codes += c->code[i] != 0;
		found |= c->code[i] == status;
		if (c->payload[i] != USE(contd__load(&c->state)))
			chaos_wrong("continuation %u does not see what was written before its event %u was completed",
				    index, i);
	}
	if (codes ? !found || !status : status)
		chaos_wrong("continuation %u of %u events gets the status %d", index, c->n, status);
}

static void act(struct self *me, const struct cont *c);

#define SCRIBBLE 0xa5a5a5a5a5a5a5a5ull

/* data: index, and the use above it */
static void ran(int status, void *data)
{
	struct interruption *outer;
	uint32_t index = (uint32_t)(uintptr_t)data % CONTS, use = (uint32_t)((uintptr_t)data / CONTS), w;
	struct cont *c = &conts[index];
	struct self *me = self();
	uint32_t registering;

	if (contd__load(&ended_contd))
		chaos_wrong("continuation %u runs after contd_fini()", index);
	if (!me)
		chaos_wrong("continuation %u runs on a thread that chaos has not made", index);
	w = contd__xchg(&c->state, STATE(use, RUNNING));
	if (w != STATE(use, ARMED))
		chaos_wrong("continuation %u.%u runs, and is %u.%s", index, use, USE(w), state_name[w & 7]);
	chaos_note("runs", index, (uint64_t)contd__self.context);
	if (c->handled && !c->handle.slot)
		chaos_wrong("continuation %u runs before its handle is set", index);
	if (contd__load(&c->todo))
		chaos_wrong("continuation %u runs, and has events %#x pending", index, contd__load(&c->todo));
	if (!c->as_task)
		entitled(me, c, index);
	else if (!me->in_executor[c->ex])
		chaos_wrong("the task of continuation %u runs outside its executor %u", index, c->ex);
	check_status(c, index, status);
	/* The events' memory is the program's again. */
	for (uint32_t i = 0; c->kind == ON_EVENTS && i < c->n; i++) {
		c->event[i].word = SCRIBBLE;
		c->event[i].next = (struct contd_event *)(uintptr_t)SCRIBBLE;
	}
	contd__add(&me->ran, 1);
	registering = contd__load(&me->registering);
	contd__store(&me->registering, NONE);
	/* A call in the callback has its own max_poll for the continuations that it runs (contd.h). */
	outer = me->interruption;
	me->interruption = NULL;
	me->depth++;
	me->frames += !c->as_task;
	act(me, c);
	me->frames -= !c->as_task;
	me->depth--;
	me->interruption = outer;
	contd__store(&me->registering, registering);
	errno = 99; /* callbacks may change it; the interrupted code must not see that */
	w = contd__xchg(&c->state, STATE(use, RAN));
	if (w != STATE(use, RUNNING))
		chaos_wrong("continuation %u.%u has run, and is %u.%s", index, use, USE(w), state_name[w & 7]);
	contd__add(&groups[c->group].ended, 1);
	if (c->as_task)
		leave(&executors[c->ex].users);
	release(c);
}

static void task_ran(int status, void *data)
{
	uint32_t index = (uint32_t)(uintptr_t)data % TASKS, use = (uint32_t)((uintptr_t)data / TASKS), w;
	struct trec *t = &tasks[index];
	struct self *me = self();
	uint32_t ex = t->ex, registering;

	if (contd__load(&ended_contd))
		chaos_wrong("task %u runs after contd_fini()", index);
	w = contd__xchg(&t->state, STATE(use, RUNNING));
	if (w != STATE(use, ARMED))
		chaos_wrong("task %u.%u runs, and is %u.%s", index, use, USE(w), state_name[w & 7]);
	if (!me || !me->in_executor[ex])
		chaos_wrong("task %u runs outside its executor %u", index, ex);
	if (status != t->status)
		chaos_wrong("task %u gets the status %d instead of %d", index, status, t->status);
	chaos_note("task runs", index, ex);
	registering = contd__load(&me->registering);
	contd__store(&me->registering, NONE);
	me->depth++;
	act(me, NULL);
	me->depth--;
	contd__store(&me->registering, registering);
	contd__store_release(&t->state, STATE(use, FREE));
}

/* -------------------------------------------------------------------------------------------------- registering --- */

static uint32_t cont_new(uint64_t r)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t index = (uint32_t)(r + i) % CONTS;
		struct cont *c = &conts[index];
		uint32_t w = contd__load(&c->state);

		if ((w & 7) != FREE || !contd__cas(&c->state, &w, STATE(USE(w) % 65535 + 1, MAKING)))
			continue;
		for (uint32_t e = 0; c->kind == ON_EVENTS && e < c->n; e++)
			if ((c->event[e].word == SCRIBBLE) != ((uintptr_t)c->event[e].next == (uintptr_t)SCRIBBLE))
				chaos_wrong(
					"event %u of continuation %u was touched after the continuation had started", e,
					index);
		return index;
	}
	return NONE;
}

/* Its registration has failed: events that no thread has taken for completion stay pending. */
static void drop_todo(struct cont *c)
{
	uint32_t todo = contd__xchg(&c->todo, 0);

	for (; todo; todo &= todo - 1)
		release(c);
}

static void *data_of(uint32_t index)
{
	return (void *)(uintptr_t)(index + (uint64_t)USE(contd__load(&conts[index].state)) * CONTS);
}

/* After the call that registers it. The caller counts as busy. */
static void registered(struct self *me, uint32_t index, uint32_t group, uint32_t use, int rc)
{
	struct cont *c = &conts[index];
	uint32_t armed = STATE(use, ARMED);

	chaos_note("registered", index, (uint64_t)(int64_t)rc);
	if (rc) {
		if (!contd__cas(&c->state, &armed, STATE(use, REFUSED)))
			chaos_wrong("continuation %u.%u was refused with %d, and is %u.%s", index, use, rc, USE(armed),
				    state_name[armed & 7]);
		contd__add(&groups[group].ended, 1);
		drop_todo(c);
		release(c); /* the continuation */
	} else {
		contd__add(&me->registered, 1);
		contd__store_release(&c->handle_of, c->handled ? use : 0);
	}
	contd__add(&groups[group].returned, 1);
	release(c);
}

/* r decides what. group is entered; awaited too (or NONE). Any context that contd_event_continue() is allowed in. */
static void enroll(struct self *me, uint32_t group, uint32_t awaited, enum kind kind, uint64_t r)
{
	uint32_t index = cont_new(r >> 40), use, early = 0, before, before_depth;
	struct contd_event *list[EVENTS];
	struct grec *g = &groups[group];
	contd_callback *cb = ran;
	void *data;
	struct cont *c;
	int rc;

	if (index == NONE)
		return;
	c = &conts[index];
	use = USE(contd__load(&c->state));
	c->kind = (uint8_t)kind;
	c->n = kind == ON_EVENTS ? (r & 3 ? 1 : (uint8_t)(r >> 2 & 7) % (EVENTS + 1)) : 0;
	contd__store(&c->group, group);
	c->awaited = awaited;
	c->ex = g->ex;
	c->handled = r >> 5 & 1;
	c->handle = (struct contd_handle){NULL, 0};
	c->handle_of = 0;
	c->as_task = 0;
	c->ready_ns = c->armed_ns = chaos_ns();
	c->word = 0;
	for (uint32_t e = 0; e < c->n; e++) {
		contd_event_init(&c->event[e]);
		c->code[e] = r >> 6 & 3 ? 0 : (int32_t)(1 + index + e);
		c->payload[e] = 0;
		list[e] = &c->event[e];
		if (!(r >> (8 + 2 * e) & 3))
			early |= 1u << e;
	}
	c->wanted = 1 + (r >> 16 & 0xff);
	contd__store(&c->busy, 2 + (uint32_t)__builtin_popcount((1u << c->n) - 1) -
				       (uint32_t)__builtin_popcount(early) + (kind == ON_WORD));
	contd__store_seq(&c->state, STATE(use, ARMED));
	data = data_of(index);
	/* A single continuation may become a task. */
	if (on(C_TASK) && g->ex == NONE && !(g->flags & CONTD_ASYNC_SIGNAL_SAFE) && (r >> 20 & 15) == 0 &&
	    !me->in_handler && contd__self.context != CONTEXT_HANDLER) {
		uint32_t ex = executor_enter(r >> 24, 0);

		if (ex != NONE) {
			/* The executor stays until it has run: see executor_gone(). */
			c->as_task = 1;
			c->ex = ex;
			contd_task_init(&c->task, executors[ex].ex, (int)(r >> 26 & 1), ran, data);
			cb = contd_task_callback;
			data = &c->task;
		}
	}
	for (uint32_t e = 0; e < c->n; e++)
		if (early & 1u << e) {
			c->payload[e] = use;
			rc = contd_event_complete(&c->event[e], c->code[e]);
			if (rc)
				chaos_wrong("contd_event_complete of a new event is %d", rc);
		}
	contd__store_seq(&c->todo, kind == ON_WORD ? 1u << WORD_BIT : ((1u << c->n) - 1) & ~early);
	contd__add(&g->begun, 1);
	before = me->registering;
	before_depth = me->registering_depth;
	me->registering_depth = me->frames;
	contd__store(&me->registering, index);
	chaos_note(kind == ON_WORD ? "word" : kind == ON_GROUP ? "chain" : "event", index, group);
	if (kind == ON_WORD) {
		struct contd_word word = {&c->word, r >> 28 & 1 ? 0 : 0xffff, c->wanted,
					  (int)(r >> 29 & 1 ? CONTD_WORD_EQ : CONTD_WORD_GE)};

		if (!(r >> 30 & 3))
			word.op = CONTD_WORD_NE, word.value = 0;
		rc = contd_word_continue(&word, cb, data, g->g, c->handled ? &c->handle : NULL);
	} else if (kind == ON_GROUP) {
		rc = contd_group_continue(groups[awaited].g, cb, data, g->g, c->handled ? &c->handle : NULL);
	} else {
		rc = contd_event_continue(c->n, list, cb, data, g->g, c->handled ? &c->handle : NULL);
	}
	contd__store(&me->registering, before);
	me->registering_depth = before_depth;
	if (rc && !(kind == ON_GROUP && (rc == -EBUSY || rc == -ELOOP)) &&
	    !(rc == -EAGAIN && contd__self.context == CONTEXT_HANDLER))
		chaos_wrong("registering is %d: %s", rc, contd_error_text());
	if (rc && c->as_task)
		leave(&executors[c->ex].users);
	registered(me, index, group, use, rc);
}

/* ------------------------------------------------------------------------------- calls that callbacks make, too --- */

static void do_enroll(struct self *me, uint64_t r)
{
	bool handler = contd__self.context == CONTEXT_HANDLER;
	uint32_t group = group_enter(r >> 8), awaited;

	if (group == NONE)
		return;
	if (!handler && on(C_WORD) && r % 8 == 0) {
		enroll(me, group, NONE, ON_WORD, chaos_mix(r, 1));
	} else if (!handler && on(C_CHAIN) && r % 8 == 1) {
		awaited = group_enter(r >> 16);
		if (awaited != NONE) {
			enroll(me, group, awaited, ON_GROUP, chaos_mix(r, 2));
			leave(&groups[awaited].users);
		}
	} else if (on(C_EVENT)) {
		enroll(me, group, NONE, ON_EVENTS, chaos_mix(r, 3));
	}
	leave(&groups[group].users);
}

static void cancel_it(struct self *me, uint32_t index)
{
	struct cont *c = &conts[index];
	uint32_t busy = contd__load(&c->busy), use, group, w;
	int rc;

	/* Hold it, so that it stays the same use. */
	do {
		if (!busy)
			return;
	} while (!contd__cas(&c->busy, &busy, busy + 1));
	w = contd__load_seq(&c->state);
	use = USE(w);
	group = c->group;
	if ((w & 7) < ARMED || contd__load_acquire(&c->handle_of) != use || !enter(&groups[group].users)) {
		release(c);
		return;
	}
	contd__add(&groups[group].cancels_begun, 1);
	rc = contd_cancel(c->handle);
	chaos_note("cancelled", index, (uint64_t)(int64_t)rc);
	if (rc == 0) {
		w = contd__xchg(&c->state, STATE(use, CANCELLED));
		if (w != STATE(use, ARMED))
			chaos_wrong("continuation %u.%u was cancelled, and is %u.%s", index, use, USE(w),
				    state_name[w & 7]);
		contd__add(&me->cancelled, 1);
		contd__add(&groups[group].ended, 1);
		drop_todo(c);
		if (c->as_task)
			leave(&executors[c->ex].users);
		release(c);
	} else if (rc != -EALREADY) {
		chaos_wrong("contd_cancel is %d: %s", rc, contd_error_text());
	}
	contd__add(&groups[group].cancels_ended, 1);
	leave(&groups[group].users);
	release(c);
}

static void do_cancel(struct self *me, uint64_t r)
{
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t index = (uint32_t)(r + i) % CONTS, w = contd__load(&conts[index].state);

		if ((w & 7) == ARMED || (r >> 40 & 7 && (w & 7) > ARMED)) {
			cancel_it(me, index);
			return;
		}
	}
}

static void do_poll(uint64_t r)
{
	int rc = contd_poll(r & 3 ? 0 : 1 + (uint32_t)(r >> 2 & 7));

	if (rc < 0)
		chaos_wrong("contd_poll is %d: %s", rc, contd_error_text());
	chaos_note("polled", (uint64_t)rc, 0);
}

/* The continuations of a group that must have ended when a test or wait that begins now reports completion. */
struct snapshot {
	uint32_t returned, cancels_ended;
};

static struct snapshot snap(const struct grec *g)
{
	return (struct snapshot){contd__load_seq(&g->returned), contd__load_seq(&g->cancels_ended)};
}

static void reported_complete(uint32_t group, const struct snapshot *s, const char *call)
{
	struct grec *g = &groups[group];
	uint32_t ended = contd__load_seq(&g->ended), cancelling = contd__load_seq(&g->cancels_begun) - s->cancels_ended;

	/* If no thread has registered since, only cancelled ones may be left that have not been counted yet. */
	if (contd__load_seq(&g->begun) != s->returned)
		return;
	if (ended + cancelling < s->returned)
		chaos_wrong("%s reports that group %u is complete: of %u registered %u have ended", call, group,
			    s->returned, ended);
}

static void do_test(struct self *me, uint32_t group)
{
	struct grec *g = &groups[group];
	struct testing t = {group, g->max_poll < 0 ? INT32_MAX : g->max_poll, me->testing};
	struct snapshot s = snap(g);
	int complete = -1, rc;

	me->testing = &t;
	rc = contd_group_test(g->g, &complete);
	me->testing = t.outer;
	chaos_note("tested", group, (uint64_t)complete);
	if (rc < 0 || complete < 0)
		chaos_wrong("contd_group_test is %d: %s", rc, contd_error_text());
	if (complete)
		reported_complete(group, &s, "contd_group_test");
}

static int do_wait(struct self *me, uint32_t group, int64_t ns)
{
	struct grec *g = &groups[group];
	struct testing t = {group, INT32_MAX, me->testing};
	struct snapshot s = snap(g);
	int rc;

	me->testing = &t;
	chaos_note("waits", group, (uint64_t)ns);
	rc = contd_group_wait(g->g, ns);
	me->testing = t.outer;
	chaos_note("waited", group, (uint64_t)(int64_t)rc);
	if (rc && rc != -ETIMEDOUT && !(rc == -EDEADLK && me->depth))
		chaos_wrong("contd_group_wait is %d: %s", rc, contd_error_text());
	if (rc == 0)
		reported_complete(group, &s, "contd_group_wait");
	return rc;
}

static void do_group_create(uint64_t r)
{
	uint32_t at = (uint32_t)(r % LIVE_GROUPS), k, none = NONE;
	struct contd_group_attr attr = {.size = sizeof(attr),
					.flags = (uint32_t)(r >> 8) & 15,
					.max_poll = -1,
					.priority = (int32_t)(r >> 12 & 3) - 1};
	struct grec *g;
	int rc;

	if (contd__load(&live_group[at]) != NONE || contd__load(&group_count) >= GROUPS - 64)
		return;
	if (attr.priority > 1)
		attr.priority = 0;
	if (r >> 16 & 1) /* half of them as plain as an executor's must be */
		attr.flags &= CONTD_THREAD_ANY | CONTD_ENQUEUE_COMPLETE;
	else if ((r >> 17 & 3) == 0)
		attr.max_poll = r >> 19 & 1 || attr.flags & CONTD_POLL_ONLY ? 1 + (int32_t)(r >> 20 & 3) : 0;
	k = contd__add(&group_count, 1);
	g = &groups[k];
	memset(g, 0, sizeof(*g));
	g->flags = attr.flags;
	g->max_poll = attr.max_poll;
	g->ex = NONE;
	rc = contd_group_create(attr.flags || attr.max_poll >= 0 || attr.priority ? &attr : NULL, &g->g);
	chaos_note("group", k, attr.flags);
	if (rc)
		chaos_wrong("contd_group_create is %d: %s", rc, contd_error_text());
	if (!contd__cas(&live_group[at], &none, k)) {
		contd__store_seq(&g->destroyed, 1);
		if ((rc = contd_group_destroy(g->g)) != 0)
			chaos_wrong("contd_group_destroy is %d: %s", rc, contd_error_text());
	}
}

static void do_group_destroy(uint32_t at)
{
	uint32_t k = contd__load_acquire(&live_group[at]);
	int rc;

	if (k == NONE || !close_it(&groups[k].users))
		return;
	if (contd__load_acquire(&live_group[at]) != k)
		return; /* another one has given it back; it stays closed */
	chaos_note("gives back", k, contd__load(&groups[k].begun) - contd__load(&groups[k].ended));
	contd__store_seq(&groups[k].destroyed, 1);
	contd__store_seq(&live_group[at], NONE);
	if ((rc = contd_group_destroy(groups[k].g)) != 0)
		chaos_wrong("contd_group_destroy is %d: %s", rc, contd_error_text());
}

static void do_set_executor(uint64_t r)
{
	uint32_t k = contd__load_acquire(&live_group[r % LIVE_GROUPS]), ex = NONE;
	struct grec *g;
	int rc;

	if (k == NONE)
		return;
	g = &groups[k];
	if (g->flags & (CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE) || g->max_poll >= 0 || !close_it(&g->users))
		return;
	if (!contd__load(&g->destroyed)) {
		if (r >> 8 & 3)
			ex = executor_enter(r >> 16, -1);
		rc = contd_group_set_executor(g->g, ex == NONE ? NULL : executors[ex].ex);
		chaos_note("set executor", k, ((uint64_t)ex << 32) | (uint32_t)rc);
		if (rc == 0)
			g->ex = ex;
		else if (rc != -EBUSY)
			chaos_wrong("contd_group_set_executor is %d: %s", rc, contd_error_text());
		if (ex != NONE)
			leave(&executors[ex].users);
	}
	open_it(&g->users);
}

/* ------------------------------------------------------------------------------------------ executors and tasks --- */

static int pool_submit(void *pool, struct contd_work *work, int priority)
{
	struct erec *e = pool;
	struct self *me = self();

	if (contd_work_priority(work) != priority)
		chaos_wrong("submit() gets priority %d of work that has %d", priority, contd_work_priority(work));
	if (choose_at(16) == 0 && me) {
		contd__store(&me->refused, (uint32_t)(e - executors));
		return -EAGAIN;
	}
	for (uint32_t i = 0; i < QUEUE; i++) {
		struct contd_work *none = NULL;

		if (!contd__load(&e->queue[i]) && contd__cas(&e->queue[i], &none, work))
			return 0;
	}
	if (me)
		contd__store(&me->refused, (uint32_t)(e - executors));
	return -EAGAIN;
}

/* Run some of a pool's queue. */
static uint32_t pool_work(struct self *me, uint32_t ex, uint32_t most)
{
	struct erec *e = &executors[ex];
	uint32_t n = 0;

	for (uint32_t i = 0; i < QUEUE && n < most; i++) {
		struct contd_work *work = contd__load(&e->queue[i]) ? contd__xchg(&e->queue[i], NULL) : NULL;

		if (!work)
			continue;
		me->in_executor[ex]++;
		contd_work_run(work);
		me->in_executor[ex]--;
		n++;
	}
	return n;
}

static void pool_drain(void *pool)
{
	struct self *me = self();

	while (pool_work(me, (uint32_t)((struct erec *)pool - executors), UINT32_MAX))
		;
}

static void pool_notify(void *pool)
{
	struct erec *e = pool;

	contd__add(&e->notified, 1);
}

static int pool_describe(void *pool, char *text, size_t bytes)
{
	return snprintf(text, bytes, "chaos %d", (int)((struct erec *)pool - executors));
}

static void do_executor_create(uint64_t r)
{
	uint32_t at = (uint32_t)(r % LIVE_EXECUTORS), k, none = NONE;
	struct contd_executor_ops ops = {.size = sizeof(ops), .describe = pool_describe};
	struct contd_executor_attr attr = {.size = sizeof(attr), .ops = &ops};
	struct erec *e;
	int rc;

	if (contd__load(&live_executor[at]) != NONE || contd__load(&executor_count) >= EXECUTORS - 16)
		return;
	k = contd__add(&executor_count, 1);
	e = &executors[k];
	contd__store_seq(&e->push, (uint32_t)(r >> 8 & 1));
	if (e->push) {
		ops.submit = pool_submit;
		ops.drain = pool_drain;
	} else {
		if (r >> 9 & 1)
			ops.notify = pool_notify, e->notifies = 1;
		attr.flags = r >> 10 & 1 ? CONTD_EXECUTOR_PROGRESS | (r >> 11 & 3 ? 0 : CONTD_EXECUTOR_MPI) : 0;
	}
	attr.pool = e;
	e->flags = attr.flags;
	rc = contd_executor_create(&attr, &e->ex);
	chaos_note("executor", k, e->push);
	if (rc)
		chaos_wrong("contd_executor_create is %d: %s", rc, contd_error_text());
	if (!contd__cas(&live_executor[at], &none, k)) {
		if ((rc = contd_executor_destroy(e->ex)) != 0)
			chaos_wrong("contd_executor_destroy of a new one is %d: %s", rc, contd_error_text());
	}
}

static int do_executor_destroy(uint32_t at)
{
	uint32_t k = contd__load_acquire(&live_executor[at]);
	int rc;

	if (k == NONE || !close_it(&executors[k].users))
		return 0;
	if (contd__load_acquire(&live_executor[at]) != k)
		return 0;
	rc = contd_executor_destroy(executors[k].ex);
	chaos_note("destroys executor", k, (uint64_t)(int64_t)rc);
	if (rc == 0)
		contd__store_seq(&live_executor[at], NONE);
	else
		open_it(&executors[k].users);
	if (rc && rc != -EBUSY && rc != -EAGAIN)
		chaos_wrong("contd_executor_destroy is %d: %s", rc, contd_error_text());
	return rc;
}

/* Any context, but push executors only outside handlers. */
static void do_task(uint64_t r, bool handler)
{
	uint32_t ex = executor_enter(r >> 8, handler ? 0 : -1), index = NONE, use = 0;
	struct trec *t = NULL;
	int rc;

	if (ex == NONE)
		return;
	for (uint32_t i = 0; i < 32 && index == NONE; i++) {
		uint32_t k = (uint32_t)((r >> 16) + i) % TASKS, w = contd__load(&tasks[k].state);

		if ((w & 7) == FREE && contd__cas(&tasks[k].state, &w, STATE(USE(w) % 65535 + 1, MAKING)))
			index = k;
	}
	if (index != NONE) {
		t = &tasks[index];
		use = USE(contd__load(&t->state));
		contd__store(&t->ex, ex);
		t->status = (int32_t)(r >> 32 & 0xff);
		contd_task_init(&t->task, executors[ex].ex, (int)(r >> 48) % 3 - 1, task_ran,
				(void *)(uintptr_t)(index + (uint64_t)use * TASKS));
		contd__store_seq(&t->state, STATE(use, ARMED));
		chaos_note("task", index, ex);
		errno = 4321;
		rc = contd_task_submit(&t->task, t->status);
		if (!rc)
			kept_errno(4321, "contd_task_submit");
		if (rc)
			contd__store_seq(&t->state, STATE(use, FREE));
		if (rc && rc != -EAGAIN)
			chaos_wrong("contd_task_submit is %d: %s", rc, contd_error_text());
	}
	leave(&executors[ex].users);
}

static int lend(struct self *me, uint32_t ex, uint32_t max, int64_t ns)
{
	int rc;

	chaos_note("lent", ex, (uint64_t)ns);
	me->in_executor[ex]++;
	rc = contd_executor_run(executors[ex].ex, max, ns);
	me->in_executor[ex]--;
	chaos_note("was lent", ex, (uint64_t)(int64_t)rc);
	if (rc < 0 && !(rc == -EBUSY && executors[ex].flags & CONTD_EXECUTOR_MPI))
		chaos_wrong("contd_executor_run is %d: %s", rc, contd_error_text());
	return rc;
}

static void do_pull(struct self *me, uint64_t r)
{
	uint32_t ex = executor_enter(r, 0);
	struct contd_work *work;

	if (ex == NONE)
		return;
	if (r >> 8 & 3) {
		lend(me, ex, r >> 10 & 3 ? 0 : 1 + (uint32_t)(r >> 12 & 3),
		     r >> 16 & 1 ? 0 : (int64_t)(r >> 20 & 0x3ffff));
	} else if (r >> 10 & 1) {
		work = contd_executor_take(executors[ex].ex);
		chaos_note("takes", ex, work != NULL);
		if (work) {
			me->in_executor[ex]++;
			contd_work_run(work);
			me->in_executor[ex]--;
		}
	} else if (!me->depth) {
		contd_executor_stop(executors[ex].ex, 1);
		contd_executor_stop(executors[ex].ex, 0);
	}
	leave(&executors[ex].users);
}

static void do_drain(struct self *me, uint32_t ex)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(10000);
	int rc;

	chaos_note("drains", ex, 0);
	me->in_executor[ex]++;
	contd__add(&me->waits_long, 1); /* for what another one's callback runs, which may wait, too */
	/* For a second another executor's thread may be the one that calls MPI: it is lent for a time only. */
	do
		rc = contd_executor_drain(executors[ex].ex);
	while (rc == -EBUSY && chaos_patience() < until);
	contd__sub(&me->waits_long, 1);
	me->in_executor[ex]--;
	chaos_note("drained", ex, (uint64_t)(int64_t)rc);
	if (rc)
		chaos_wrong("contd_executor_drain is %d: %s", rc, contd_error_text());
}

static void do_push(struct self *me, uint64_t r)
{
	uint32_t ex = executor_enter(r, 1);

	if (ex == NONE)
		return;
	pool_work(me, ex, 1 + (uint32_t)(r >> 8 & 15));
	leave(&executors[ex].users);
}

/* ------------------------------------------------------------------------------------ in callbacks and handlers --- */

/* A callback that waits for what another thread completes, as long as that takes. */
static void wait_long(struct self *me, uint64_t r)
{
	uint32_t k = contd__load(&group_count) < GROUPS - 64 ? contd__add(&group_count, 1) : NONE;
	struct contd_group_attr attr = {
		.size = sizeof(attr), .flags = r & 1 ? CONTD_ASYNC_SIGNAL_SAFE : 0, .max_poll = -1};
	struct grec *g = &groups[k];
	int rc;

	if (k == NONE)
		return;
	memset(g, 0, sizeof(*g));
	g->flags = attr.flags;
	g->ex = NONE;
	g->users = 1;
	rc = contd_group_create(&attr, &g->g);
	if (rc)
		chaos_wrong("contd_group_create is %d: %s", rc, contd_error_text());
	enroll(me, k, NONE, ON_EVENTS,
	       chaos_mix(r, 5) | 1u << 20); /* not as a task, which others would have to be lent for */
	contd__add(&me->waits_long, 1);
	do_wait(me, k, (int64_t)chaos_bound_ns(60000));
	contd__sub(&me->waits_long, 1);
	contd__store_seq(&g->destroyed, 1);
	if ((rc = contd_group_destroy(g->g)) != 0)
		chaos_wrong("contd_group_destroy is %d: %s", rc, contd_error_text());
}

/* The body of a callback: it makes the calls that are allowed where it runs. */
static void act(struct self *me, const struct cont *c)
{
	bool handler = contd__self.context == CONTEXT_HANDLER, safe = handler;
	uint64_t r = choose_at(0);
	uint32_t group;

	if (!on(C_ACTIONS) || me->depth > DEPTH || r % 3 == 0 || contd__load(&quiet) > 1)
		return;
	if (c && groups[c->group].flags & CONTD_ASYNC_SIGNAL_SAFE && r >> 8 & 7)
		safe = true;
	r = chaos_mix(r, 7);
	switch (r % (safe ? 6 : me == daemon_self ? 10 : 16)) {
	case 0:
	case 1:
		if (on(C_COMPLETE))
			complete_some(r >> 8);
		return;
	case 2:
		if (contd__load(&quiet))
			return;
		if (on(C_EVENT))
			do_enroll(me, r >> 8);
		return;
	case 3:
		if (on(C_TASK) && !contd__load(&quiet))
			do_task(r >> 8, handler || safe);
		return;
	case 4:
		if (on(C_GUARD)) {
			contd_guard_begin();
			complete_some(r >> 8);
			contd_guard_end();
		}
		return;
	case 5:
		chaos_nap(1000 * (r >> 8 & 15));
		return;
	case 6:
	case 7:
		if (on(C_POLL) && !contd__load(&quiet))
			do_poll(r >> 8);
		return;
	case 8:
		if (on(C_CANCEL))
			do_cancel(me, r >> 8);
		return;
	case 9:
		group = on(C_TEST) && !contd__load(&quiet) ? group_enter(r >> 8) : NONE;
		if (group != NONE) {
			do_test(me, group);
			leave(&groups[group].users);
		}
		return;
	case 10:
		if (on(C_LONG) && me != &selves[0] && me->chaos->number <= worker_count && me->depth == 1 &&
		    !contd__load(&quiet) && r >> 50 < 1024) {
			wait_long(me, chaos_mix(r, 9));
			return;
		}
		group = on(C_WAIT) && !contd__load(&quiet) ? group_enter(r >> 8) : NONE;
		if (group != NONE) {
			do_wait(me, group, (int64_t)(r >> 16 & 0x3ffff));
			leave(&groups[group].users);
		}
		return;
	case 11:
		if (on(C_GROUP) && !contd__load(&quiet)) {
			do_group_destroy((uint32_t)(r >> 8) % LIVE_GROUPS);
			do_group_create(chaos_mix(r, 1));
		}
		return;
	case 12:
		if (on(C_SET_EXECUTOR) && !contd__load(&quiet))
			do_set_executor(r >> 8);
		return;
	case 13:
		if (on(C_PULL) && !contd__load(&quiet))
			do_pull(me, r >> 8);
		return;
	case 14:
		if (on(C_PUSH))
			do_push(me, r >> 8);
		return;
	default:
		if (on(C_EXECUTOR) && !contd__load(&quiet)) {
			do_executor_destroy((uint32_t)(r >> 8) % LIVE_EXECUTORS);
			do_executor_create(chaos_mix(r, 2));
		}
	}
}

void chaos_deed(struct chaos_thread *t)
{
	struct self *me = &selves[t->number];
	uint64_t r = choose_at(0);
	uint32_t before = contd__load(&me->registering);
	struct interruption *outer = me->interruption;

	/* Counted first: round_end() stops deeds, and then waits for those that are under way. */
	contd__add(&me->in_deed, 1);
	if (!contd__load_seq(&running)) {
		contd__sub(&me->in_deed, 1);
		return;
	}
	contd__store(&me->registering, NONE);
	/* In contd's handler, before it polls: a completion on an attached thread counts as a separate interruption. */
	me->interruption = NULL;
	if (r & 3 || !on(C_TASK))
		complete_some(r >> 8);
	else
		do_task(r >> 8, true);
	me->interruption = outer;
	contd__store(&me->registering, before);
	contd__sub(&me->in_deed, 1);
}

static void program_signal(int signo)
{
	int saved = errno;
	struct self *me = self();
	uint64_t r;

	(void)signo;
	if (!me)
		return;
	/* Counted first: round_end() stops these, and then waits for those that are under way. */
	if (contd__add(&me->in_user_handler, 1) < 3 && contd__load_seq(&running)) {
		r = choose_at(0);
		for (uint32_t i = 0; i <= (r >> 60); i += 5)
			chaos_deed(me->chaos);
		if ((r & 15) == 0) {
			contd_guard_begin();
			contd_version();
			contd_guard_end();
		}
	}
	contd__sub(&me->in_user_handler, 1);
	errno = saved;
}

void chaos_raise(struct chaos_thread *t, bool ours)
{
	(void)t;
	if (!contd__load(&running) || !on(C_SIGNAL))
		return;
	pthread_kill(pthread_self(), ours ? contd__signals.signal_number : SIGUSR2);
}

void __real_contd__handler(int signo, siginfo_t *info, void *context);
void __wrap_contd__handler(int signo, siginfo_t *info, void *context);

/* contd's handler: what it interrupts must not notice. */
void __wrap_contd__handler(int signo, siginfo_t *info, void *context)
{
	int saved = errno;
	struct self *me = self();
	struct interruption in = {0}, *outer = NULL;
	uint32_t registering = NONE;

	if (me) {
		registering = contd__load(&me->registering);
		outer = me->interruption;
		contd__store(&me->registering, NONE);
		me->interruption = &in;
		me->in_handler++;
	}
	errno = 777;
	__real_contd__handler(signo, info, context);
	kept_errno(777, "the handler");
	if (me) {
		me->in_handler--;
		me->interruption = outer;
		contd__store(&me->registering, registering);
	}
	errno = saved;
}

/* --------------------------------------------------------------------------------------------------- operations --- */

static bool steady; /* in this round worker 0 stays attached */

static void op_attach(struct self *me, uint64_t r)
{
	struct contd_thread_attr attr = {.size = sizeof(attr), .stack_bytes = 8192 << (r & 1)};
	int rc;

	if (me->attached > 1 || (me->attached && r >> 8 & 1)) {
		if (steady && me == &selves[1] && me->attached == 1)
			return;
		rc = contd_thread_detach();
		chaos_note("detached", (uint64_t)(int64_t)rc, 0);
		if (rc)
			chaos_wrong("contd_thread_detach is %d: %s", rc, contd_error_text());
		me->attached--;
		return;
	}
	chaos_note("attaches", 0, 0);
	rc = contd_thread_attach(r >> 9 & 1 ? &attr : NULL);
	if (rc)
		chaos_wrong("contd_thread_attach is %d: %s", rc, contd_error_text());
	me->attached++;
}

static void op_region(struct self *me, uint64_t r)
{
	uint64_t until = chaos_ns() + 1000 * (5 + (r >> 8 & 0xff));

	me->in_region++;
	contd_compute_begin();
	chaos_note("region", 0, 0);
	while (chaos_ns() < until) {
		for (volatile int i = 0; i < 300; i++)
			;
		if (r & 1)
			complete_some(r = chaos_mix(r, 3));
		if (r & 2 && on(C_CHECKPOINT))
			contd_checkpoint();
	}
	contd_compute_end();
	chaos_note("region ends", 0, 0);
	me->in_region--;
}

static void op_guard(struct self *me, uint64_t r)
{
	contd_guard_begin();
	if (r & 1)
		complete_some(r >> 8);
	if (r & 2)
		contd_guard_begin();
	chaos_nap(1000 * (r >> 4 & 15));
	if (r & 4)
		do_enroll(me, r >> 8);
	if (r & 2)
		contd_guard_end();
	contd_guard_end();
}

static void op_daemon(uint64_t r)
{
	struct contd_daemon_attr attr = {.size = sizeof(attr), .tick_ns = r >> 8 & 1 ? 0 : 50000};
	uint32_t n = contd__load(&daemons);
	int rc;

	if (n && r & 1) {
		while (n && !contd__cas(&daemons, &n, n - 1))
			;
		if (!n)
			return;
		chaos_note("stops daemon", n, 0);
		rc = contd_daemon_stop();
		if (rc)
			chaos_wrong("contd_daemon_stop is %d: %s", rc, contd_error_text());
		return;
	}
	if (n > 2)
		return;
	rc = contd_daemon_start(r >> 9 & 1 ? &attr : NULL);
	chaos_note("starts daemon", (uint64_t)(int64_t)rc, 0);
	if (rc == 0)
		contd__add(&daemons, 1);
	else if (rc != -EBUSY)
		chaos_wrong("contd_daemon_start is %d: %s", rc, contd_error_text());
}

static void late_watchdog(const struct contd_late *late, void *data)
{
	(void)data;
	if (contd__load(&ended_contd))
		chaos_wrong("the watchdog reports %s after contd_fini()", late->what);
}

static struct contd_config some_config(uint64_t r)
{
	static const uint64_t tick_min[] = {0, 10000, 20000, 100000}, tick_max[] = {0, 1000000, 2000000, 10000000};
	static const double percent[] = {0, 1, 10, 50};
	static const uint32_t counts[] = {0, 1, 3, 64};
	static const uint64_t scan[] = {0, 1000, 20000, 1000000};
	static const char *const sched[] = {NULL, "other", "batch", "other:1"};

	return (struct contd_config){.size = sizeof(struct contd_config),
				     .overhead_percent = percent[r & 3],
				     .tick_min_ns = tick_min[r >> 2 & 3],
				     .tick_max_ns = tick_max[r >> 4 & 3],
				     .scan_count = counts[r >> 6 & 3],
				     .scan_ns = scan[r >> 8 & 3],
				     .watchdog_ns = r >> 10 & 3 ? 0 : 1000000,
				     .watchdog = late_watchdog,
				     .daemon_name = r >> 12 & 1 ? "chaos" : NULL,
				     .daemon_cpus = r >> 13 & 3 ? NULL : "0",
				     .daemon_sched = sched[r >> 15 & 3],
				     .verbose = CONTD_VERBOSE_ERRORS + (r >> 17 & 1)};
}

static void op_configure(uint64_t r)
{
	struct contd_config config = some_config(r >> 8);
	int rc;

	config.agent = r & 3 ? 0 : 1 + (int)((r >> 2) % 5);
	config.daemon_sched = NULL;
	rc = contd_configure(&config);
	chaos_note("configured", (uint64_t)(int64_t)rc, (uint64_t)config.agent);
	if (rc)
		chaos_wrong("contd_configure is %d: %s", rc, contd_error_text());
	if (config.agent) /* several threads do it at a time: what is in force is asked for when it matters */
		contd__store(&agent_now, 0);
}

static void op_fd(uint64_t r)
{
	int fd = contd_fd();
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		chaos_wrong("contd_fd is %d: %s", fd, contd_error_text());
	if (poll(&p, 1, (int)(r & 1)) > 0)
		do_poll(r >> 8);
}

static char job[40]; /* its name, for bells */

static void op_bell(uint64_t r)
{
	struct contd_bell *bell = NULL;
	int rc;

	rc = contd_bell_listen(job, 7);
	chaos_note("listens", (uint64_t)(int64_t)rc, 0);
	if (rc && rc != -EOPNOTSUPP)
		chaos_wrong("contd_bell_listen is %d: %s", rc, contd_error_text());
	rc = contd_bell_open(job, 7, &bell);
	if (rc && rc != -ENOENT)
		chaos_wrong("contd_bell_open is %d: %s", rc, contd_error_text());
	if (rc)
		return;
	for (uint32_t i = 0; i < 1 + (r & 3); i++) {
		rc = contd_bell_ring(bell);
		if (rc < 0 && rc != -EAGAIN)
			chaos_wrong("contd_bell_ring is %d", rc);
	}
	contd_bell_close(bell);
}

static void op_stats(struct self *me)
{
	struct contd_stats s = {.size = sizeof(s)};
	uint32_t ex = executor_enter(me->chaos->number, -1), group;
	char text[100];
	int rc = contd_stats_get(&s);

	if (rc)
		chaos_wrong("contd_stats_get is %d: %s", rc, contd_error_text());
	if (ex != NONE) {
		if (contd_executor_describe(executors[ex].ex, text, sizeof(text)) < 4)
			chaos_wrong("contd_executor_describe tells nothing");
		leave(&executors[ex].users);
	}
	group = group_enter(me->chaos->number);
	if (group != NONE) {
		if (contd_group_outstanding(groups[group].g) > CONTS)
			chaos_wrong("contd_group_outstanding is %u", contd_group_outstanding(groups[group].g));
		leave(&groups[group].users);
	}
	if (me->chaos->number % 4 == 1) { /* one thread: a dump is slow, beside the rest */
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		rc = contd_dump(fd);
		if (rc)
			chaos_wrong("contd_dump is %d: %s", rc, contd_error_text());
		close(fd);
	}
	if (contd_version() >> 16 != CONTD_VERSION_MAJOR || !contd_error_text())
		chaos_wrong("contd_version, contd_error_text");
}

/* No other code writes to this file. */
static void op_file(uint64_t r)
{
	int fd = memfd_create("chaos", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	for (uint32_t i = 0; i < (r & 7); i++) {
		complete_some(chaos_mix(r, i));
		chaos_nap(1000 * (r >> 8 & 31));
	}
	if (fstat(fd, &st) || st.st_size)
		chaos_wrong("another thread has written %lld bytes to a file of the program's, descriptor %d",
			    (long long)st.st_size, fd);
	close(fd);
}

static void op_init(uint64_t r)
{
	uint32_t n = contd__load(&users);
	int rc;

	if (n > 1 && r & 1) {
		while (n > 1 && !contd__cas(&users, &n, n - 1))
			;
		if (n <= 1)
			return;
		rc = contd_fini();
		if (rc)
			chaos_wrong("contd_fini of one of several users is %d: %s", rc, contd_error_text());
	} else if (n < 4) {
		rc = contd_init(NULL);
		if (rc)
			chaos_wrong("contd_init of one more user is %d: %s", rc, contd_error_text());
		contd__add(&users, 1);
	}
}

static void op_signal(struct self *me, uint64_t r)
{
	uint32_t other = 1 + (uint32_t)(r >> 8) % worker_count;

	chaos_note("sends signal", other, r & 1);
	(void)me;
	pthread_kill(selves[other].thread, r & 1 ? contd__signals.signal_number : SIGUSR2);
}

static void *visitor(void *data)
{
	int rc = contd_thread_attach(NULL);

	(void)data;
	if (rc)
		chaos_wrong("contd_thread_attach of a thread that ends is %d: %s", rc, contd_error_text());
	return NULL;
}

/* A visitor has no diary: what interrupts it completes nothing, but continuations may run there, so it gets a
 * thread's. */
static struct self *visitor_self;
static uint32_t visiting;

static void *visitor_main(void *data)
{
	chaos_become(visitor_self->chaos);
	visitor(data);
	for (uint32_t i = 0; i < 4; i++)
		complete_some(choose_at(0));
	return NULL;
}

static void op_thread(void)
{
	uint32_t none = 0;
	pthread_t thread;

	if (!contd__cas(&visiting, &none, 1))
		return;
	visitor_self->registering = NONE;
	if (pthread_create(&thread, NULL, visitor_main, NULL) == 0)
		pthread_join(thread, NULL);
	contd__store_release(&visiting, 0);
}

static void op_burst(struct self *me, uint64_t r)
{
	uint32_t group = group_enter(r);

	if (group == NONE)
		return;
	for (uint32_t i = 0; i < 16 + (r >> 8 & 63); i++)
		enroll(me, group, NONE, ON_EVENTS, chaos_mix(r, i) | 3);
	leave(&groups[group].users);
}

struct operation {
	enum class class;
	uint32_t weight;
};
static const struct operation operation[] = {
	{C_EVENT, 30},     {C_COMPLETE, 30}, {C_POLL, 10},     {C_TEST, 8},     {C_WAIT, 3},         {C_CANCEL, 6},
	{C_WORD, 0},       {C_CHAIN, 0},     {C_GROUP, 6},     {C_EXECUTOR, 2}, {C_SET_EXECUTOR, 6}, {C_PUSH, 6},
	{C_PULL, 8},       {C_TASK, 6},      {C_DRAIN, 2},     {C_ATTACH, 3},   {C_GUARD, 3},        {C_REGION, 4},
	{C_CHECKPOINT, 3}, {C_DAEMON, 2},    {C_CONFIGURE, 1}, {C_FD, 3},       {C_BELL, 1},         {C_STATS, 1},
	{C_FILE, 2},       {C_SOURCE, 5},    {C_INIT, 1},      {C_SIGNAL, 4},   {C_THREAD, 1},       {C_BURST, 1},
};

static enum class draw_operation(void) {
	uint32_t sum = 0, at;

	for (size_t i = 0; i < sizeof(operation) / sizeof(operation[0]); i++) sum += operation[i].weight;
	at = (uint32_t)chaos_draw(sum);
	for (size_t i = 0;; i++){if (at < operation[i].weight) return operation[i].class; at -= operation[i].weight;}
}

static void operate(struct self *me)
{
	enum class c = draw_operation();
	uint64_t r = chaos_draw(0);
	uint32_t k;

	if (!on(c))
		return;
	me->chaos->doing = classes[c].name;
	contd__store(&me->chaos->steps, me->chaos->steps + 1);
	switch (c) {
	case C_EVENT:
		do_enroll(me, r);
		break;
	case C_COMPLETE:
		for (uint32_t i = 0; i <= (r & 3); i++)
			complete_some(chaos_mix(r, i));
		break;
	case C_POLL:
		do_poll(r);
		break;
	case C_TEST:
	case C_WAIT:
		k = group_enter(r);
		if (k == NONE)
			break;
		if (c == C_TEST)
			do_test(me, k);
		else
			do_wait(me, k, (int64_t)(r >> 16 & 0x3ffff));
		leave(&groups[k].users);
		break;
	case C_CANCEL:
		do_cancel(me, r);
		break;
	case C_GROUP:
		if (r & 1)
			do_group_destroy((uint32_t)(r >> 8) % LIVE_GROUPS);
		do_group_create(chaos_mix(r, 1));
		break;
	case C_EXECUTOR:
		if (r & 1)
			do_executor_destroy((uint32_t)(r >> 8) % LIVE_EXECUTORS);
		do_executor_create(chaos_mix(r, 1));
		break;
	case C_SET_EXECUTOR:
		do_set_executor(r);
		break;
	case C_PUSH:
		do_push(me, r);
		break;
	case C_PULL:
		do_pull(me, r);
		break;
	case C_TASK:
		do_task(r, false);
		break;
	case C_DRAIN:
		k = executor_enter(r, -1);
		if (k != NONE) {
			do_drain(me, k);
			leave(&executors[k].users);
		}
		break;
	case C_ATTACH:
		op_attach(me, r);
		break;
	case C_GUARD:
		op_guard(me, r);
		break;
	case C_REGION:
		op_region(me, r);
		break;
	case C_CHECKPOINT:
		for (uint32_t i = 0; i < (r & 0xff); i++)
			contd_checkpoint();
		break;
	case C_DAEMON:
		op_daemon(r);
		break;
	case C_CONFIGURE:
		op_configure(r);
		break;
	case C_FD:
		op_fd(r);
		break;
	case C_BELL:
		op_bell(r);
		break;
	case C_STATS:
		op_stats(me);
		break;
	case C_FILE:
		op_file(r);
		break;
	case C_SOURCE:
		contd__add(&source_operations, 1 + (uint32_t)(r & 3));
		contd__pending_sig();
		break;
	case C_INIT:
		op_init(r);
		break;
	case C_SIGNAL:
		op_signal(me, r);
		break;
	case C_THREAD:
		op_thread();
		break;
	default:
		op_burst(me, r);
	}
	contd__add(&chaos_progress, 1);
}

/* ---------------------------------------------------------------------------------------------- workers, orders --- */

static uint32_t epoch_of_threads; /* goes up when operations begin */

static void wait_does_not_end(uint32_t group)
{
	const struct grec *g = &groups[group];

	for (uint32_t i = 0; i < CONTS; i++) {
		const struct cont *c = &conts[i];

		if (contd__load(&c->group) == group && (contd__load(&c->state) & 7) != FREE)
			fprintf(stderr, "continuation %u: %s, busy %u, todo %#x, kind %u, executor %d\n", i,
				state_name[c->state & 7], c->busy, c->todo, c->kind, (int)c->ex);
	}
	chaos_wrong("a wait for group %u does not end: executor %d, flags %#x, max_poll %d, %u outstanding, top %#llx, "
		    "%u registered, %u returned, %u ended, %u and %u cancellations",
		    group, (int)g->ex, g->flags, g->max_poll, contd_group_outstanding(g->g),
		    (unsigned long long)g->g->table.top, g->begun, g->returned, g->ended, g->cancels_begun,
		    g->cancels_ended);
}

static void obey(struct self *me, enum order order)
{
	uint32_t of = contd__load(&me->order_of);

	me->chaos->doing = order_name[order];
	contd__store_seq(&me->obeyed, order);
	switch (order) {
	case O_REGION:
		me->in_region++;
		contd_compute_begin();
		while (contd__load(&me->order) == O_REGION) {
			for (volatile int i = 0; i < 1000; i++)
				;
#ifdef __SANITIZE_THREAD__
			sched_yield(); /* it delays signals until a call that it knows */
#endif
		}
		contd_compute_end();
		me->in_region--;
		break;
	case O_CHECKPOINT:
		while (contd__load(&me->order) == O_CHECKPOINT) {
			contd_checkpoint();
			for (volatile int i = 0; i < 50; i++)
				;
		}
		break;
	case O_LENT:
		lend(me, of, 0, -1);
		while (contd__load(&me->order) == O_LENT)
			chaos_nap(50000);
		break;
	case O_POOL:
		while (contd__load(&me->order) == O_POOL) {
			for (uint32_t i = 0; i < contd__load(&executor_count); i++)
				if (contd__load(&executors[i].push))
					pool_work(me, i, UINT32_MAX);
			chaos_nap(50000);
		}
		break;
	case O_WAIT:
		if (do_wait(me, of, (int64_t)chaos_bound_ns(5000)))
			wait_does_not_end(of);
		while (contd__load(&me->order) == O_WAIT)
			chaos_nap(50000);
		break;
	default:
		chaos_nap(100000);
	}
}

static uint32_t complete_share(const struct self *me, bool all)
{
	uint32_t n = 0;

	for (uint32_t i = me->chaos->number; i < CONTS; i += worker_count + 1)
		while (contd__load(&conts[i].todo) && (all || chaos_draw_at(4)))
			n += complete_of(i);
	return n;
}

static void *worker(void *data)
{
	struct self *me = data;
	uint32_t epoch = 0;

	chaos_become(me->chaos);
	for (;;) {
		enum order order = contd__load_acquire(&me->order);

		chaos_signals_unblocked();
		if (order == O_END)
			return NULL;
		if (contd__load_acquire(&epoch_of_threads) == epoch) {
			obey(me, order);
			continue;
		}
		epoch++;
		if (steady && me == &selves[1] && !me->attached)
			op_attach(me, 0);
		for (uint32_t i = 0; i < chaos.operations; i++) {
			operate(me);
			chaos_signals_unblocked();
		}
		me->chaos->doing = "completes its share";
		if (on(C_COMPLETE))
			complete_share(me, false);
		contd__store_release(&me->parked, epoch);
	}
}

/* ------------------------------------------------------------------------------------- who must run what, alone --- */

static bool is_pull(uint32_t ex)
{
	return ex != NONE && !executors[ex].push;
}

static bool poll_only(const struct grec *g)
{
	return g->flags & CONTD_POLL_ONLY && !contd__load(&g->destroyed);
}

/* Ready, and has not begun to run. */
static bool due(const struct cont *c)
{
	if ((contd__load_acquire(&c->state) & 7) != ARMED || contd__load(&c->todo) || contd__load(&c->busy) != 1)
		return false;
	if (c->kind == ON_GROUP) {
		const struct grec *a = &groups[c->awaited];

		return contd__load_seq(&a->begun) == contd__load_seq(&a->ended);
	}
	return true;
}

struct alone {
	const char *who;
	uint32_t ex, group;
	uint64_t since;
	bool words; /* it polls memory words */
	bool (*covers)(const struct alone *a, const struct cont *c);
	void (*step)(struct self *me, const struct alone *a);
};

static void main_runs_pools(struct self *me)
{
	for (uint32_t i = 0; i < contd__load(&executor_count); i++)
		if (contd__load(&executors[i].push))
			pool_work(me, i, UINT32_MAX);
}

/* Until all that is covered and ready has run, or it has taken too long since the last one did. */
static void expect(struct self *me, const struct alone *a)
{
	uint64_t bound = chaos_bound_ns(3000), until = chaos_patience() + bound;
	uint32_t before = NONE;

	me->chaos->doing = a->who;
	chaos_note(a->who, a->ex, a->group);
	for (;;) {
		uint32_t n = 0, first = NONE;

		for (uint32_t i = 0; i < CONTS; i++) {
			const struct cont *c = &conts[i];

			if (due(c) && !c->as_task && (c->kind != ON_WORD || a->words) && a->covers(a, c)) {
				n++;
				first = first == NONE ? i : first;
			}
		}
		if (!n)
			break;
		if (n != before)
			until = chaos_patience() + bound;
		before = n;
		if (chaos_patience() > until) {
			const struct cont *c = &conts[first];
			const struct grec *g = &groups[c->group];

			chaos_wrong("%s has not run %u ready continuations: the first is %u (%s, group %u, flags %#x, "
				    "max_poll %d, executor %d, marked %#llx and %#llx, ready for %.3f s)",
				    a->who, n, first,
				    c->kind == ON_WORD    ? "a word"
				    : c->kind == ON_GROUP ? "a group"
							  : "events",
				    c->group, g->flags, g->max_poll, (int)c->ex, (unsigned long long)g->g->table.first,
				    (unsigned long long)g->g->table.top, (double)(chaos_ns() - c->ready_ns) / 1e9);
		}
		if (a->step)
			a->step(me, a);
		chaos_nap(50000);
	}
	contd__add(&chaos_progress, 1);
}

static bool covers_signal(const struct alone *a, const struct cont *c)
{
	const struct grec *g = &groups[c->group];

	return c->ex == NONE && g->flags & CONTD_ASYNC_SIGNAL_SAFE && !poll_only(g) && g->max_poll != 0 &&
	       c->ready_ns > a->since;
}

static bool covers_region(const struct alone *a, const struct cont *c)
{
	return groups[c->group].max_poll != 0 && !poll_only(&groups[c->group]) && !is_pull(c->ex) &&
	       c->ready_ns > a->since;
}

static bool covers_daemon(const struct alone *a, const struct cont *c)
{
	const struct grec *g = &groups[c->group];

	(void)a;
	return !poll_only(g) && (c->ex == NONE ? (g->flags & CONTD_THREAD_ANY) != 0 : executors[c->ex].push);
}

static bool covers_lent(const struct alone *a, const struct cont *c)
{
	if (c->ex == a->ex)
		return true;
	return executors[a->ex].flags & CONTD_EXECUTOR_PROGRESS && c->ex == NONE && !poll_only(&groups[c->group]);
}

static bool covers_notified(const struct alone *a, const struct cont *c)
{
	return c->ex == a->ex;
}

static bool covers_poll(const struct alone *a, const struct cont *c)
{
	(void)a;
	return !poll_only(&groups[c->group]) && !is_pull(c->ex);
}

static bool covers_group(const struct alone *a, const struct cont *c)
{
	return c->group == a->group && c->ex == NONE;
}

static void step_pools(struct self *me, const struct alone *a)
{
	(void)a;
	main_runs_pools(me);
}

static void step_poll(struct self *me, const struct alone *a)
{
	(void)a;
	do_poll(choose_at(0));
	main_runs_pools(me);
}

static void step_fd(struct self *me, const struct alone *a)
{
	struct pollfd p = {.fd = contd_fd(), .events = POLLIN};

	(void)a;
	if (poll(&p, 1, 1) > 0)
		do_poll(choose_at(0));
	main_runs_pools(me);
}

static void step_test(struct self *me, const struct alone *a)
{
	do_test(me, a->group);
}

static void step_notified(struct self *me, const struct alone *a)
{
	if (contd__load(&executors[a->ex].notified)) {
		contd__xchg(&executors[a->ex].notified, 0);
		lend(me, a->ex, 0, 0);
	}
}

static void step_drain(struct self *me, const struct alone *a)
{
	do_drain(me, a->ex);
}

static void order(struct self *w, enum order o, uint32_t of)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(10000);

	contd__store_seq(&w->order_of, of);
	contd__store_seq(&w->order, o);
	while (contd__load_seq(&w->obeyed) != o) {
		chaos_nap(20000);
		if (chaos_patience() > until)
			chaos_wrong("thread %u does not come out of being %s", w->chaos->number,
				    order_name[contd__load(&w->obeyed)]);
	}
}

/* A few of those that were left pending. */
static void complete_few(void)
{
	for (uint32_t n = (uint32_t)choose_at(4); n; n--)
		complete_some(choose_at(0));
}

/* drains: what is submitted after the drain has ended is for the next one. */
static void tasks_run(struct self *me, uint32_t ex, const char *who, bool drains)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(3000);

	for (uint32_t i = 0; i < TASKS; i++)
		while (contd__load(&tasks[i].ex) == ex && (contd__load_acquire(&tasks[i].state) & 7) == ARMED) {
			chaos_nap(50000);
			main_runs_pools(me);
			if (drains)
				do_drain(me, ex);
			if (chaos_patience() > until)
				chaos_wrong("%s has not run task %u of executor %u", who, i, ex);
		}
}

static void alone_signal(struct self *me)
{
	enum order o = choose_at(2) ? O_SLEEP : choose_at(2) ? O_CHECKPOINT : O_IDLE;
	struct alone a = {.who = "the handler", .since = attached_since, .covers = covers_signal};

	if (!steady || !selves[1].attached)
		return;
	a.words = contd__load(&agent_now) > CONTD_AGENT_CALLER;
	order(&selves[1], o, 0);
	complete_few();
	expect(me, &a);
	order(&selves[1], O_IDLE, 0);
	total_alone[C_ALONE_SIGNAL]++;
}

static void alone_region(struct self *me)
{
	struct alone a = {.who = "a region", .covers = covers_region, .step = step_pools};

	if (!selves[1].attached)
		return;
	a.words = contd__load(&agent_now) > CONTD_AGENT_CALLER;
	order(&selves[1], O_REGION, 0);
	chaos_nap(10000);
	a.since = chaos_ns();
	complete_few();
	expect(me, &a);
	order(&selves[1], O_IDLE, 0);
	total_alone[C_ALONE_REGION]++;
}

static void alone_daemon(struct self *me)
{
	struct alone a = {.who = "the daemon", .covers = covers_daemon, .step = step_pools, .words = true};
	int rc = contd_daemon_start(NULL);
	bool started = rc == 0;

	if (rc && rc != -EBUSY)
		chaos_wrong("contd_daemon_start is %d: %s", rc, contd_error_text());
	complete_few();
	expect(me, &a);
	if (started && (rc = contd_daemon_stop()) != 0)
		chaos_wrong("contd_daemon_stop is %d: %s", rc, contd_error_text());
	total_alone[C_ALONE_DAEMON]++;
}

static void alone_lent(struct self *me)
{
	uint32_t ex = executor_enter(choose_at(0), 0), who = 1 + (uint32_t)choose_at(worker_count);
	struct alone a = {.who = "a lent thread", .ex = ex, .covers = covers_lent};

	if (ex == NONE)
		return;
	a.words = executors[ex].flags & CONTD_EXECUTOR_PROGRESS;
	if (executors[ex].notifies && choose_at(2)) {
		a.covers = covers_notified;
		a.step = step_notified;
		a.who = "who is notified";
		a.words = false;
		contd__store_seq(&executors[ex].notified, 1);
		complete_few();
		expect(me, &a);
	} else if (choose_at(4) == 0) {
		a.step = step_drain;
		a.covers = covers_notified;
		a.who = "who drains";
		a.words = false;
		do_drain(me, ex);
		expect(me, &a);
		tasks_run(me, ex, a.who, true);
	} else {
		struct alone handler = {
			.who = "the handler of a lent thread", .since = attached_since, .covers = covers_signal};

		order(&selves[who], O_LENT, ex);
		complete_few();
		if (choose_at(2))
			do_task(choose_at(0), true);
		expect(me, &a);
		tasks_run(me, ex, a.who, false);
#ifdef __SANITIZE_THREAD__
		(void)handler; /* it keeps signals back for as long as the thread sleeps in the executor */
#else
		if (steady && who == 1 && selves[1].attached && on(C_ALONE_SIGNAL))
			expect(me, &handler);
#endif
		contd_executor_stop(executors[ex].ex, 1);
		order(&selves[who], O_IDLE, 0);
		contd_executor_stop(executors[ex].ex, 0);
	}
	leave(&executors[ex].users);
	total_alone[C_ALONE_LENT]++;
}

/* Are all armed continuations of the group ready, and need no executor? */
static bool group_due(uint32_t group)
{
	for (uint32_t i = 0; i < CONTS; i++) {
		const struct cont *c = &conts[i];

		if (contd__load(&c->group) == group && (contd__load(&c->state) & 7) == ARMED &&
		    (!due(c) || c->ex != NONE || c->as_task))
			return false;
	}
	return true;
}

static void alone_poll(struct self *me)
{
	struct alone a = {.who = "polls", .covers = covers_poll, .step = step_poll, .words = true};
	uint32_t group;

	switch (choose_at(4)) {
	case 0:
		a.who = "the descriptor";
		a.step = step_fd;
		a.words = false;
		complete_few();
		expect(me, &a);
		break;
	case 1:
		complete_few();
		expect(me, &a);
		break;
	default:
		group = group_enter(choose_at(0));
		if (group == NONE)
			return;
		a.group = group;
		a.covers = covers_group;
		if (groups[group].max_poll != 0 && choose_at(2)) {
			a.who = "tests";
			a.step = step_test;
			expect(me, &a);
		} else if (on(C_ALONE_WAIT) && group_due(group)) {
			uint32_t who = 1 + (uint32_t)choose_at(worker_count);

			a.who = "a wait";
			order(&selves[who], O_WAIT, group);
			expect(me, &a);
			order(&selves[who], O_IDLE, 0);
		}
		leave(&groups[group].users);
	}
	total_alone[C_ALONE_POLL]++;
}

/* Each kind of call polls and runs what it may, once. */
static void sweep(struct self *me)
{
	do_poll(0);
	for (uint32_t k = 0; k < LIVE_GROUPS; k++)
		if (live_group[k] != NONE)
			do_test(me, live_group[k]);
	main_runs_pools(me);
	for (uint32_t k = 0; k < LIVE_EXECUTORS; k++)
		if (live_executor[k] != NONE && !executors[live_executor[k]].push)
			lend(me, live_executor[k], 0, 0);
}

static void nothing_outstanding(struct self *me)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(5000);

	sweep(me);
	for (uint32_t k = 0; k < LIVE_GROUPS; k++)
		while (live_group[k] != NONE && contd_group_outstanding(groups[live_group[k]].g)) {
			sweep(me);
			chaos_nap(20000);
			if (chaos_patience() > until)
				chaos_wrong("group %u has %u outstanding, and all that was registered has ended",
					    live_group[k], contd_group_outstanding(groups[live_group[k]].g));
		}
	/* The slot of a cancelled continuation is free after the next scan. */
	for (uint32_t k = 0; k < LIVE_GROUPS; k++)
		while (live_group[k] != NONE && chaos_slots_used(groups[live_group[k]].g)) {
			sweep(me);
			chaos_nap(20000);
			if (chaos_patience() > until)
				chaos_wrong("%u slots of group %u are left over, and nothing is outstanding",
					    chaos_slots_used(groups[live_group[k]].g), live_group[k]);
		}
}

/* Run everything, by all means. */
static void finish_all(struct self *me)
{
	uint64_t bound = chaos_bound_ns(5000), until = chaos_patience() + bound;
	uint32_t before = NONE;

	me->chaos->doing = "finishes";
	for (;;) {
		uint32_t left = 0, first = NONE, tasks_left = 0;

		for (uint32_t i = 0; i < CONTS; i++) {
			while (complete_of(i))
				;
			if ((contd__load_acquire(&conts[i].state) & 7) != FREE) {
				left++;
				first = i;
			}
		}
		for (uint32_t i = 0; i < TASKS; i++)
			if ((contd__load_acquire(&tasks[i].state) & 7) != FREE)
				tasks_left++;
		if (!left && !tasks_left)
			break;
		if (left + tasks_left != before)
			until = chaos_patience() + bound;
		before = left + tasks_left;
		if (chaos_patience() > until) {
			const struct cont *c = &conts[first == NONE ? 0 : first];
			const struct grec *g = &groups[c->group];

			chaos_wrong("%u continuations and %u tasks never run: continuation %u is %s, busy %u, todo %#x "
				    "(kind %u, task %u, "
				    "group %u, flags %#x, max_poll %d, executor %d)",
				    left, tasks_left, first, state_name[c->state & 7], c->busy, c->todo, c->kind,
				    c->as_task, c->group, g->flags, g->max_poll, (int)c->ex);
		}
		sweep(me);
		chaos_nap(20000);
	}
	nothing_outstanding(me);
}

/* ------------------------------------------------------------------------------------------------------- rounds --- */

static int descriptors_before = -1;

static void leftovers(void)
{
	int n = chaos_descriptors();

	if (contd__groups.dead_count || contd__groups.dead.head || !cds_list_empty(&contd__groups.all))
		chaos_wrong("groups are left over after contd_fini(), %u of them dead", contd__groups.dead_count);
	if (chaos_pages())
		chaos_wrong("%u pages are left over after contd_fini()", chaos_pages());
	if (contd__page->armed.any)
		chaos_wrong("a peer waits to be rung after contd_fini()");
	if (descriptors_before >= 0 && n > descriptors_before)
		chaos_wrong("%d descriptors are left over after contd_fini()", n - descriptors_before);
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	static uint64_t heap_before[16], heap_count, heap_least;
	struct mallinfo2 m = mallinfo2();
	uint64_t bytes = m.uordblks + m.hblkhd, least = UINT64_MAX;

	/* The least of 16 rounds in a row, against the least of the first ones. */
	heap_before[heap_count++ % 16] = bytes;
	for (uint32_t i = 0; i < 16; i++)
		least = heap_before[i] < least ? heap_before[i] : least;
	if (heap_count == 32)
		heap_least = least;
	if (heap_count > 48 && least > heap_least + (256 << 10))
		chaos_wrong("memory grows: %llu bytes are in use after contd_fini(), and were %llu",
			    (unsigned long long)least, (unsigned long long)heap_least);
#endif
}

static void round_begin(struct self *me)
{
	uint64_t r;
	struct contd_config config;
	int rc;

	chaos_round_begin();
	r = chaos_draw(0);
	config = some_config(chaos_draw(0));
	config.agent = (int)(r % 6);
	memset(live_group, 0xff, sizeof(live_group));
	memset(live_executor, 0xff, sizeof(live_executor));
	for (uint32_t i = 0; i < EXECUTORS; i++)
		executors[i].users = executors[i].notifies = executors[i].notified = executors[i].flags = 0;
	group_count = executor_count = daemons = 0;
	steady = r >> 8 & 7 && on(C_ATTACH);
	attached_since = 0;
	for (uint32_t i = 0; i < CHAOS_THREADS; i++) {
		struct self *s = &selves[i];

		s->attached = 0;
		contd__store(&s->refused, NONE);
		contd__store(&s->registering, NONE);
		contd__store(&s->registered, 0);
		contd__store(&s->cancelled, 0);
		contd__store(&s->ran, 0);
	}
	rc = contd_init(&config);
	if (rc)
		chaos_wrong("contd_init is %d: %s", rc, contd_error_text());
	agent_now = config.agent ? (uint32_t)config.agent : CONTD_AGENT_REGION;
	users = 1;
	contd__store_seq(&ended_contd, 0);
	contd__store(&source_operations, 0);
	if (on(C_SOURCE) && r >> 12 & 1 && contd__source_register(&source))
		chaos_wrong("contd__source_register: %s", contd_error_text());
	for (uint32_t i = 0; i < 4; i++) {
		if (on(C_EXECUTOR))
			do_executor_create(chaos_draw(0));
		do_group_create(chaos_draw(0) & ~0xffull);
	}
	for (uint32_t i = 0; i < LIVE_GROUPS; i++)
		do_group_create((chaos_draw(0) << 8 & ~0xffull) | i);
	(void)me;
}

static uint32_t abandon(struct self *me)
{
	uint32_t n = 0, at = group_enter(0);

	if (at == NONE)
		return 0;
	if (on(C_ABANDON) && on(C_EVENT) && choose_at(4) == 0)
		for (; n < 1 + choose_at(ABANDONED); n++) {
			uint32_t index = cont_new(choose_at(0));
			struct cont *c = &conts[index];
			struct contd_event *list[1] = {&c->event[0]};

			c->kind = ON_EVENTS;
			c->n = 1;
			contd_event_init(list[0]);
			if (contd_event_continue(1, list, ran, data_of(index), groups[at].g, NULL))
				chaos_wrong("registering is refused: %s", contd_error_text());
			contd__add(&me->registered, 1);
		}
	leave(&groups[at].users);
	return n;
}

static void check_stats(uint32_t left)
{
	uint64_t n_registered = 0, n_cancelled = 0, n_ran = 0, until = chaos_patience() + chaos_bound_ns(3000);
	struct contd_stats s = {.size = sizeof(s)};

	for (uint32_t i = 0; i < CHAOS_THREADS; i++) {
		n_registered += selves[i].registered;
		n_cancelled += selves[i].cancelled;
		n_ran += selves[i].ran;
	}
	for (;;) {
		int rc = contd_stats_get(&s);

		if (rc)
			chaos_wrong("contd_stats_get is %d", rc);
		if (s.registered == n_registered && s.cancelled == n_cancelled && s.run == n_ran &&
		    n_registered == n_ran + n_cancelled + left)
			break;
		if (chaos_patience() > until)
			chaos_wrong("registered %llu (contd: %llu), cancelled %llu (%llu), ran %llu (%llu), left %u",
				    (unsigned long long)n_registered, (unsigned long long)s.registered,
				    (unsigned long long)n_cancelled, (unsigned long long)s.cancelled,
				    (unsigned long long)n_ran, (unsigned long long)s.run, left);
		chaos_nap(100000);
	}
	total_registered += n_registered;
	total_cancelled += n_cancelled;
	total_ran += n_ran;
}

static void round_end(struct self *me)
{
	uint32_t left;
	int rc;

	contd__store_seq(&quiet, 2);
	contd__store_seq(&running, 0);
	for (uint32_t i = 0; i < CHAOS_THREADS; i++)
		while (contd__load_seq(&selves[i].in_user_handler) || contd__load_seq(&selves[i].in_deed))
			chaos_nap(20000);
	finish_all(me); /* what a late handler has submitted */
	left = abandon(me);
	check_stats(left);
	for (uint32_t k = 0; k < LIVE_GROUPS; k++)
		do_group_destroy(k);
	for (uint32_t k = 0; k < LIVE_EXECUTORS; k++) {
		uint64_t until = chaos_patience() + chaos_bound_ns(3000);

		/* A thread that scans right now may hold it for a moment. */
		while (live_executor[k] != NONE) {
			rc = do_executor_destroy(k);
			if (left || live_executor[k] == NONE)
				break; /* a group of it may have something outstanding */
			if (chaos_patience() > until)
				chaos_wrong("contd_executor_destroy stays %d, %u users: %s", rc,
					    executors[live_executor[k]].users, contd_error_text());
			chaos_nap(100000);
		}
	}
	while (users > 1) {
		users--;
		if ((rc = contd_fini()) != 0)
			chaos_wrong("contd_fini of one of several users is %d", rc);
	}
	me->chaos->doing = "contd_fini";
	rc = contd_fini();
	contd__store_seq(&ended_contd, 1);
	if (rc != (int)left)
		chaos_wrong("contd_fini tells of %d continuations that never ran, instead of %u", rc, left);
	if (contd_poll(0) != -EPERM)
		chaos_wrong("contd_poll after contd_fini is not refused");
	/* An executor that could not be destroyed before is now. */
	for (uint32_t k = 0; k < LIVE_EXECUTORS; k++)
		if (live_executor[k] != NONE && (rc = do_executor_destroy(k)) != 0)
			chaos_wrong("contd_executor_destroy after contd_fini is %d: %s", rc, contd_error_text());
	for (uint32_t i = 0; i < CONTS; i++)
		conts[i].state = STATE(USE(conts[i].state), FREE);
	leftovers();
	total_rounds++;
}

/* Threads that wait in a callback are helped when no other one is left to do it. */
static void help_who_waits(void)
{
	uint32_t e = contd__load(&epoch_of_threads);

	for (uint32_t i = 1; i <= worker_count; i++)
		if (contd__load_acquire(&selves[i].parked) != e && !contd__load(&selves[i].waits_long))
			return;
	complete_some(choose_at(0));
}

static void epoch(struct self *me)
{
	static void (*const alone[])(struct self *) = {alone_signal, alone_region, alone_daemon, alone_lent,
						       alone_poll};
	static const enum class class_of[] = {C_ALONE_SIGNAL, C_ALONE_REGION, C_ALONE_DAEMON, C_ALONE_LENT,
					      C_ALONE_POLL};
	uint64_t until = chaos_patience() + chaos_bound_ns(20000);
	uint32_t e;

	contd__store_seq(&quiet, 0);
	contd__store_seq(&chaos_calm, 0);
	contd__store_seq(&running, 1);
	e = contd__add(&epoch_of_threads, 1) + 1;
	me->chaos->doing = "waits for the others";
	for (uint32_t i = 1; i <= worker_count; i++)
		while (contd__load_acquire(&selves[i].parked) != e) {
			main_runs_pools(me); /* a pool has a thread at least */
			help_who_waits();
			chaos_nap(100000);
			if (chaos_patience() > until)
				chaos_wrong("thread %u hangs in %s", i, selves[i].chaos->doing);
		}
	contd__store_seq(&quiet, 1);
	contd__store_seq(&chaos_calm, 1);
	for (uint32_t n = (uint32_t)choose_at(4), i = (uint32_t)choose_at(5); n; n--, i = (i + 1) % 5)
		if (on(class_of[i]))
			alone[i](me);
	if (on(C_ALONE_SIGNAL))
		alone_signal(me); /* no other thread has polled since */
	finish_all(me);
	total_epochs++;
}

void chaos_report(void)
{
	fprintf(stderr, "epoch %llu, agent %u, daemons %u, worker 1 %s for good\n", (unsigned long long)total_epochs,
		agent_now, daemons, steady ? "attached" : "not attached");
	fprintf(stderr, "ready classes %#x, daemon mode %u, notified at most every %llu ticks, timers %d\n",
		contd__load(&contd__ready), contd__load(&contd__wake.daemon_mode),
		(unsigned long long)contd__load(&contd__signals.notice_ticks), contd__signals.timers);
	for (uint32_t i = 0; i < contd__load_acquire(&contd__signals.count); i++) {
		const struct contd__attached *a = contd__signals.record[i];
		uint64_t now = contd__ticks();

		if (!contd__load(&a->tid))
			continue;
		fprintf(stderr,
			"record of thread %d: signalled %u (%.3f s ago), timer %s, interval %.3f ms, pays in %.3f s, "
			"its last handler ended %.3f s ago, calibrating %u, flags %#x, guard %u\n",
			(int)a->tid, contd__load(&a->signalled),
			(double)(now - contd__load(&a->signalled_at)) / contd__clock.ticks_per_ns / 1e9,
			contd__load(&a->armed) ? "armed" : "off", (double)contd__load(&a->interval_ns) / 1e6,
			(double)(int64_t)(contd__load(&a->purse.enough_at) - now) / contd__clock.ticks_per_ns / 1e9,
			(double)(now - a->left_at) / contd__clock.ticks_per_ns / 1e9, a->calibrating,
			contd__load(&a->tls->flags), a->tls->guard);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = program_signal, .sa_flags = SA_RESTART};
	struct self *me = &selves[0];
	uint64_t until;

	chaos_begin(argc, argv, classes, C_END);
	sigaction(SIGUSR2, &action, NULL);
	snprintf(job, sizeof(job), "chaos-%d", (int)getpid());
	me->chaos = chaos_thread_new("main");
	me->thread = pthread_self();
	chaos_become(me->chaos);
	worker_count = chaos.threads;
	for (uint32_t i = 1; i <= worker_count; i++)
		selves[i].chaos = chaos_thread_new("begins");
	daemon_self = &selves[worker_count + 1];
	daemon_self->chaos = chaos_thread_new("daemon");
	daemon_self->chaos->daemon = true;
	visitor_self = &selves[worker_count + 2];
	visitor_self->chaos = chaos_thread_new("visitor");
	ended_contd = 1;
	for (uint32_t i = 1; i <= worker_count; i++)
		if (pthread_create(&selves[i].thread, NULL, worker, &selves[i]))
			abort();
	chaos_watch();
	chaos_points(on(C_POINTS));
	until = chaos_ns() + chaos.seconds * 1000000000ull;
	for (uint32_t n = 0; chaos.rounds ? n < chaos.rounds : chaos_ns() < until; n++, chaos_round++) {
		uint32_t epochs;

		round_begin(me);
		epochs = 1 + (uint32_t)chaos_draw(12);
		for (uint32_t i = 0; i < epochs; i++)
			epoch(me);
		round_end(me);
		if (total_rounds == 3)
			descriptors_before = chaos_descriptors();
	}
	for (uint32_t i = 1; i <= worker_count; i++) {
		contd__store_seq(&selves[i].order, O_END);
		pthread_join(selves[i].thread, NULL);
	}
	chaos_watch_end();
	printf("%llu rounds, %llu epochs: %llu continuations registered, %llu ran, %llu cancelled; alone: handler "
	       "%llu, region %llu, "
	       "daemon %llu, lent %llu, polls %llu\n",
	       (unsigned long long)total_rounds, (unsigned long long)total_epochs, (unsigned long long)total_registered,
	       (unsigned long long)total_ran, (unsigned long long)total_cancelled,
	       (unsigned long long)total_alone[C_ALONE_SIGNAL], (unsigned long long)total_alone[C_ALONE_REGION],
	       (unsigned long long)total_alone[C_ALONE_DAEMON], (unsigned long long)total_alone[C_ALONE_LENT],
	       (unsigned long long)total_alone[C_ALONE_POLL]);
	return 0;
}
