/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything at once, at random, for as long as wanted: hours when asked, seconds among the normal tests.
 *
 *   workers     draw one operation after the other: groups of all flags made, shared, given back with continuations
 *               outstanding; continuations on events, memory words and groups, completed by themselves, by completers,
 *               by callbacks, at test points and in handlers; cancelled at once or later; callbacks that register,
 *               complete, test, poll, make and give back groups; tables grown over several chunks; regions, guards,
 *               attaching and detaching, waits with and without end, daemon and dispatcher counted up and down, calls
 *               that must fail
 *   completers  one that RCU does not know, one that attaches and detaches
 *   poller      tests, polls, and sleeps on the descriptor
 *   hammer      sends contd's signal to workers
 *   readers     two, as in reclaim.c
 *
 * At test points, now and then (often at those that are rare), the thread does something: yields, spins, raises contd's
 * signal on itself, completes an event, polls and cancels where that is allowed.
 *
 * A run is a row of rounds. Each has its settings, and ends in contd_fini() when everything is over but a few
 * continuations that are left on purpose. Then the books must balance: see settle().
 *
 * Exactly once: a continuation's data names its operation and which use of it this is (incarnation). The callback, and
 * a cancelling thread, exchange the operation's state for RAN or CANCELLED and must find ARMED with their incarnation.
 * So a continuation that runs twice, or after it was cancelled, is found when it does; one that does not run keeps its
 * operation busy, and the round does not end.
 *
 * Every choice comes from the seed, which is printed first. Each worker has two generators. Only its
 * operations draw from the first, so that the same seed and number give the same choices (the line "choices"). Test
 * points draw from the second; timing decides how often they are reached.
 *
 * usage: torture [--seed N] [--seconds S | --continuations N]
 * Without either CONTD_TORTURE_SECONDS says how long; without that it is 100 million continuations.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <urcu/urcu-memb.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/classes.h"
#include "dispatch/event.h"
#include "dispatch/group.h"
#include "dispatch/thread.h"
#include "rcu/table.h"
#include "signal/attached.h"
#include "torture.h"

#define WORKERS 4u
#define COMPLETERS 2u
#define POOL 4096u /* operations of a worker */
#define RING 2048u /* events that a worker has handed to a completer */
#define STOCK 128u /* events that test points and handlers complete */
#define POSTPONED 256u
#define BULK 9000u /* continuations in one group: three chunks and the short one */
#define EVENTS 4u
#define SHARED 16u
#define LASTING 6u /* of them these stay for a whole round */
#define ABANDONED 3u
#define HANG_SECONDS 120
#define DEFAULT_CONTINUATIONS 100000000ull

/* --------------------------------------------------------------------------------------------------- operations --- */

enum op_state { OP_IDLE, OP_ARMED, OP_RAN, OP_CANCELLED, OP_REFUSED };
#define STATE(incarnation, st) ((incarnation) << 3 | (uint32_t)(st))
#define INCARNATION(state) ((state) >> 3)

/* The deed of its callback. */
enum action {
	ACT_NOTHING,
	ACT_COMPLETE, /* the event of `other`, which is registered */
	ACT_REGISTER, /* `other`, which is not */
	ACT_AGAIN,    /* registers itself again, with the same event */
	ACT_TEST,
	ACT_POLL,
	ACT_CANCEL,  /* `other`, which is registered, and completes its event */
	ACT_CREATE,  /* a group for `other` */
	ACT_DESTROY, /* `own` */
	ACT_WORD,    /* `other`, on a word */
	ACT_GUARD,
	ACTIONS
};
static const char *const action_name[ACTIONS] = {"nothing", "complete", "register", "again", "test", "poll",
						 "cancel",  "create",   "destroy",  "word",  "guard"};

enum waits_for { FOR_EVENTS, FOR_WORD, FOR_GROUP, FORS };
static const char *const for_name[FORS] = {"events", "words", "groups"};

struct op {
	uint32_t state; /* STATE() */
	/* Users: each completer of an event, and the continuation. At 0 the operation is free. */
	uint32_t busy;
	uint8_t n, waits_for, action, flags; /* flags of its group */
	uint8_t lasting;                     /* 1 + the number of its group, where that stays for the round */
	uint8_t slot, again;                 /* for the action */
	int32_t expected;                    /* the status that the callback must get */
	int32_t code[EVENTS];
	uint32_t payload[EVENTS]; /* written before the event is completed, and read by the callback */
	uint32_t other;
	uint32_t group_name;
	uint64_t word, wanted;
	struct contd_handle handle;
	struct contd_group *own;
	struct contd_event event[EVENTS];
};

/* Names an event of an operation; the number EVENTS is its word. */
#define EVENT_OF(index, e) ((index) << 3 | (uint32_t)(e))

static struct op *ops; /* WORKERS * POOL */

/* From a worker to a completer. */
struct ring {
	uint32_t head __attribute__((aligned(64)));
	uint32_t tail __attribute__((aligned(64)));
	uint32_t event[RING];
};

/* A group that all threads use. Its users are counted; it is given back when the count is 0. */
struct shared {
	uint32_t users __attribute__((aligned(64)));
	uint32_t incarnation;
	uint32_t flags;
	struct contd_group *group;
};
#define CLOSED 0x80000000u

static struct shared shared[SHARED];
static const uint32_t lasting_flags[LASTING] = {CONTD_ASYNC_SIGNAL_SAFE,
						CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY,
						CONTD_POLL_ONLY,
						CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE,
						CONTD_THREAD_ANY | CONTD_ENQUEUE_COMPLETE,
						0};
static const int32_t lasting_max_poll[LASTING] = {-1, 3, 5, -1, -1, 0};

/* ------------------------------------------------------------------------------------------------------ threads --- */

enum counted {
	DID_EVENTS_1,
	DID_EVENTS_MORE,
	DID_EVENTS_0,
	DID_WORD,
	DID_CHAIN,
	DID_GROUP,
	DID_BULK,
	DID_WIDE,
	DID_REPLACE,
	DID_BUSY,
	DID_LOOP,
	DID_REGION,
	DID_GUARD,
	DID_TEST,
	DID_POLL,
	DID_WAIT,
	DID_ATTACH,
	DID_DAEMON,
	DID_USERS,
	DID_STATS,
	DID_OTHER_WORK,
	DIDS
};
static const char *const did_name[DIDS] = {
	"one event", "more events", "no event", "words",  "chains",  "groups", "grown groups",
	"wide",      "replaced",    "refused",  "cycles", "regions", "guards", "tests",
	"polls",     "waits",       "attached", "daemon", "users",   "stats",  "malloc, stdio"};

enum at_point { AT_NOTHING, AT_YIELD, AT_SPIN, AT_RAISE, AT_COMPLETE, AT_POLL, AT_CANCEL, ATS };
static const char *const at_name[ATS] = {"nothing", "yield", "spin", "raise", "complete", "poll", "cancel"};

enum role { WORKER, COMPLETER, STRANGER, POLLER, HAMMER, READER, STRANGE_READER, MAIN, DAEMON };

/* Counted by the thread and by the handlers that interrupt it, so with atomic additions. */
struct books {
	uint64_t registered, cancelled, too_late, refused, run_inline;
	uint64_t ran[4]; /* enum contd__context */
	uint64_t ran_for[FORS];
	uint64_t acted[ACTIONS], not_acted;
	uint64_t did[DIDS];
	uint64_t at[ATS], passed;
};

struct self {
	enum role role;
	uint32_t number;
	pthread_t thread;
	int32_t tid;
	uint64_t random;       /* operations */
	uint64_t random_point; /* test points, and whatever timing decides */
	struct books books;

	/* Test points: how many passes are left to the next deed, by a hash of the name. */
	int32_t left[64];
	uint32_t passes[64];
	uint32_t in_point;

	/* The state of this thread, which callbacks check. Set and cleared where it cannot be wrong. */
	uint32_t in_guard, in_region, depth, completing;
	uint8_t completing_context;
	uint64_t registering;
	uint32_t testing[SHARED];

	/* Workers. */
	uint32_t at; /* where the search for a free operation goes on */
	uint32_t attached;
	uint64_t quota; /* of this round */
	uint64_t armed;
	uint32_t steps; /* goes up while it is alive */
	const char *doing;
	struct ring ring[COMPLETERS];
	uint32_t stock[STOCK];
	uint32_t stock_in, stock_out;
	struct postponed {
		uint32_t index, incarnation, slot, slot_incarnation;
		struct contd_handle handle;
	} postponed[POSTPONED];
	uint32_t postponed_at;
	struct bulk {
		uint8_t runs;
		uint8_t cancelled;
		struct contd_event event;
		struct contd_handle handle;
	} bulk[BULK];
	uint32_t bulk_ran;
};

static struct self workers[WORKERS], helpers[16], main_self, daemon_self;
static uint32_t helper_count;
static __thread struct self *me __attribute__((tls_model("initial-exec")));

static uint32_t paused, paused_count, ended, round_number, workers_done, hurry;
static uint64_t seed, wrongs, checks;
static FILE *null_file;

#define COUNT(m, field) ((void)__atomic_fetch_add(&(m)->books.field, 1, __ATOMIC_RELAXED))

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void wrong(const char *format, ...)
{
	char text[300];
	int n, saved = errno;
	va_list args;

	if (contd__add(&wrongs, 1) < 20) {
		va_start(args, format);
		n = snprintf(text, sizeof(text), "torture: seed %llu, round %u: ", (unsigned long long)seed,
			     round_number);
		n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
		va_end(args);
		n = n < (int)sizeof(text) - 1 ? n : (int)sizeof(text) - 2;
		text[n++] = '\n';
		(void)!write(2, text, (size_t)n);
	}
	errno = saved;
}

static void must_be(int rc, int expected, const char *what)
{
	if (rc != expected)
		wrong("%s is %d instead of %d: %s", what, rc, expected, contd_error_text());
}
#define must(call) must_be((call), 0, #call)
#define must_fail(call, code) must_be((call), -(code), #call)

/* Of contd's daemon, too. */
static struct self *self_here(void)
{
	if (!me && contd__self.context == CONTEXT_DAEMON)
		me = &daemon_self;
	return me;
}

/* ------------------------------------------------------------------------------------------------ shared groups --- */

static struct contd_group *shared_enter(uint32_t k)
{
	if (!(contd__add(&shared[k].users, 1) & CLOSED))
		return shared[k].group;
	contd__sub(&shared[k].users, 1);
	return NULL;
}

static void shared_leave(uint32_t k)
{
	contd__sub(&shared[k].users, 1);
}

static void group_give_back(struct contd_group *group)
{
	reclaim_given_back(group);
	must(contd_group_destroy(group));
}

static uint32_t some_flags(uint64_t r)
{
	return (uint32_t)r & (CONTD_POLL_ONLY | CONTD_ENQUEUE_COMPLETE | CONTD_THREAD_ANY | CONTD_ASYNC_SIGNAL_SAFE);
}

static int32_t some_max_poll(uint64_t r, uint32_t flags)
{
	if (r % 4)
		return -1;
	return flags & CONTD_POLL_ONLY || r & 4 ? 1 + (int32_t)(r >> 4 & 7) : 0;
}

static struct contd_group *group_make(uint32_t flags, int32_t max_poll)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = flags, .max_poll = max_poll};
	struct contd_group *group = NULL;

#ifdef TORTURE_PRIORITIES
	/* From what was chosen: as many of each. */
	attr.priority = (int32_t)((flags * 7 + (uint32_t)max_poll) % 3) - 1;
#endif
	must(contd_group_create(&attr, &group));
	if (!group)
		abort();
	return group;
}

/* ---------------------------------------------------------------------------------- arming, completing, running --- */

static void run_cb(int status, void *data);

static uint64_t data_of(uint32_t index)
{
	return (uint64_t)INCARNATION(contd__load(&ops[index].state)) << 32 | index;
}

static void become(uint32_t index, uint32_t incarnation, enum op_state from, enum op_state to)
{
	uint32_t was = contd__xchg(&ops[index].state, STATE(incarnation, to));

	if (was != STATE(incarnation, from))
		wrong("operation %u.%u becomes %u, and was %u.%u", index, incarnation, to, INCARNATION(was), was & 7);
}

static void release(struct op *o)
{
	contd__sub(&o->busy, 1);
}

/* Complete an event, or set the word: any context. */
static void finish_event(uint32_t event)
{
	struct self *m = self_here();
	struct op *o = &ops[event >> 3];
	uint32_t e = event & 7, before = m->completing;
	uint8_t context = m->completing_context;
	int rc;

	if (e == EVENTS) {
		__atomic_store_n(&o->word, o->wanted, __ATOMIC_RELEASE);
		release(o);
		return;
	}
	o->payload[e] = INCARNATION(contd__load(&o->state));
	m->completing_context = contd__self.context;
	m->completing = o->group_name;
	rc = contd_event_complete(&o->event[e], o->code[e]);
	m->completing = before;
	m->completing_context = context;
	if (rc)
		wrong("contd_event_complete is %d", rc);
	release(o);
}

/* Where test points and handlers of this thread, and it itself, find something to complete. */
static bool finish_from_stock(struct self *m)
{
	uint32_t out = contd__load(&m->stock_out), event;

	do {
		if (out == contd__load(&m->stock_in))
			return false;
		event = m->stock[out % STOCK];
	} while (!contd__cas(&m->stock_out, &out, out + 1));
	finish_event(event);
	return true;
}

/* The state is ARMED on return, unless the call failed. Any context that contd_event_continue() is allowed in. */
static int enroll_events(struct self *m, uint32_t index, struct contd_group *group, struct contd_handle *handle)
{
	struct op *o = &ops[index];
	struct contd_event *es[EVENTS] = {&o->event[0], &o->event[1], &o->event[2], &o->event[3]};
	uint32_t incarnation = INCARNATION(contd__load(&o->state));
	uint64_t before = m->registering, data = data_of(index);
	int rc;

	o->waits_for = FOR_EVENTS;
	o->group_name = reclaim_name(group);
	contd__store_seq(&o->state, STATE(incarnation, OP_ARMED));
	m->registering = data;
	rc = contd_event_continue(o->n, es, run_cb, (void *)(uintptr_t)data, group, handle);
	m->registering = before;
	if (rc == 0) {
		COUNT(m, registered);
	} else {
		become(index, incarnation, OP_ARMED, OP_REFUSED);
		COUNT(m, refused);
	}
	return rc;
}

static int enroll_word(struct self *m, uint32_t index, struct contd_group *group, struct contd_handle *handle)
{
	struct op *o = &ops[index];
	struct contd_word word = {&o->word, 0, o->wanted, (int)(o->wanted % 3)};
	uint32_t incarnation = INCARNATION(contd__load(&o->state));
	int rc;

	if (word.op == CONTD_WORD_NE)
		word.value = 0;
	if (o->wanted & 8)
		word.mask = 0xff;
	o->waits_for = FOR_WORD;
	o->group_name = reclaim_name(group);
	contd__store_seq(&o->state, STATE(incarnation, OP_ARMED));
	rc = contd_word_continue(&word, run_cb, (void *)(uintptr_t)data_of(index), group, handle);
	must_be(rc, 0, "contd_word_continue");
	if (rc == 0)
		COUNT(m, registered);
	return rc;
}

static int enroll_chain(struct self *m, uint32_t index, struct contd_group *awaited, struct contd_group *group,
			struct contd_handle *handle)
{
	struct op *o = &ops[index];
	uint32_t incarnation = INCARNATION(contd__load(&o->state));
	uint64_t before = m->registering, data = data_of(index);
	int rc;

	o->waits_for = FOR_GROUP;
	o->group_name = reclaim_name(group);
	contd__store_seq(&o->state, STATE(incarnation, OP_ARMED));
	m->registering = data;
	rc = contd_group_continue(awaited, run_cb, (void *)(uintptr_t)data, group, handle);
	m->registering = before;
	if (rc == 0) {
		COUNT(m, registered);
	} else {
		become(index, incarnation, OP_ARMED, OP_REFUSED);
		COUNT(m, refused);
	}
	return rc;
}

/* Do what others wait for in place of a callback that will never run. On a thread, not in a handler. */
static void act_instead(struct op *o)
{
	struct op *other = &ops[o->other];

	switch ((enum action)o->action) {
	case ACT_COMPLETE:
	case ACT_CANCEL:
		finish_event(EVENT_OF(o->other, 0));
		release(other);
		break;
	case ACT_REGISTER:
	case ACT_CREATE:
	case ACT_WORD:
		release(other);
		break;
	case ACT_DESTROY:
		group_give_back(o->own);
		break;
	default:
		break;
	}
}

static void cancel(struct self *m, uint32_t index, uint32_t incarnation, struct contd_handle handle)
{
	int rc = contd_cancel(handle);

	if (rc == 0) {
		become(index, incarnation, OP_ARMED, OP_CANCELLED);
		COUNT(m, cancelled);
		act_instead(&ops[index]);
		release(&ops[index]);
	} else if (rc == -EALREADY) {
		COUNT(m, too_late);
	} else {
		wrong("contd_cancel is %d: %s", rc, contd_error_text());
	}
}

static void act_register(struct self *m, struct op *o)
{
	struct contd_group *group = shared_enter(o->slot);
	struct op *other = &ops[o->other];
	uint32_t n = other->n; /* without an event it may have run, and be in use again, before this returns */
	int rc;

	if (!group) {
		release(other);
		return;
	}
	other->flags = (uint8_t)shared[o->slot].flags;
	other->lasting = o->slot < LASTING ? (uint8_t)(o->slot + 1) : 0;
	/* Its event may come before or after. In a handler it may be refused: the reserve of slots. */
	contd__add(&other->busy, n);
	if (n && o->again & 1)
		finish_event(EVENT_OF(o->other, 0));
	rc = enroll_events(m, o->other, group, NULL);
	if (rc && !(rc == -EAGAIN && contd__self.context == CONTEXT_HANDLER))
		wrong("contd_event_continue in a callback is %d", rc);
	if (n && !(o->again & 1))
		finish_event(EVENT_OF(o->other, 0));
	if (rc)
		release(other);
	shared_leave(o->slot);
}

static void act_again(struct self *m, struct op *o, uint32_t index)
{
	uint32_t incarnation = INCARNATION(contd__load(&o->state)) + 1;
	struct contd_group *group;

	if (o->again == 0)
		return;
	group = shared_enter(o->slot);
	if (!group)
		return;
	o->again--;
	contd__add(&o->busy, 2);
	o->n = 1;
	o->expected = o->code[0];
	o->flags = (uint8_t)shared[o->slot].flags;
	o->lasting = o->slot < LASTING ? (uint8_t)(o->slot + 1) : 0;
	contd_event_init(&o->event[0]);
	contd__store_seq(&o->state, STATE(incarnation, OP_IDLE));
	if (enroll_events(m, index, group, NULL))
		release(o);
	finish_event(EVENT_OF(index, 0));
	shared_leave(o->slot);
}

static void act_create(struct self *m, struct op *o)
{
	struct contd_group *group = group_make(o->again & ~(uint32_t)CONTD_POLL_ONLY & 15, -1);
	struct op *other = &ops[o->other];

	other->flags = (uint8_t)group->flags;
	other->lasting = 0;
	other->n = 0;
	other->expected = 0;
	if (enroll_events(m, o->other, group, NULL)) {
		wrong("contd_event_continue with a new group fails");
		release(other);
	}
	group_give_back(group);
}

static void act_word(struct self *m, struct op *o)
{
	struct contd_group *group = shared_enter(o->slot);
	struct op *other = &ops[o->other];

	if (!group) {
		release(other);
		return;
	}
	other->flags = (uint8_t)shared[o->slot].flags;
	other->lasting = o->slot < LASTING ? (uint8_t)(o->slot + 1) : 0;
	contd__add(&other->busy, 1);
	if (enroll_word(m, o->other, group, NULL))
		release(other);
	finish_event(EVENT_OF(o->other, EVENTS));
	shared_leave(o->slot);
}

static void test_shared(struct self *m, uint32_t k)
{
	struct contd_group *group = shared_enter(k);
	int complete = -1, rc;

	if (!group)
		return;
	m->testing[k]++;
	rc = contd_group_test(group, &complete);
	m->testing[k]--;
	if (rc < 0 || complete < 0)
		wrong("contd_group_test is %d", rc);
	shared_leave(k);
}

static void act(struct self *m, struct op *o, uint32_t index)
{
	bool handler = contd__self.context == CONTEXT_HANDLER;
	struct op *other = &ops[o->other];
	enum action action = (enum action)o->action;

	/* In a handler some of it is not allowed; but others may wait for it. */
	if (handler && (action == ACT_TEST || action == ACT_POLL || action == ACT_CREATE || action == ACT_WORD)) {
		if (action == ACT_CREATE || action == ACT_WORD)
			release(other);
		COUNT(m, not_acted);
		return;
	}
	if (handler && action == ACT_CANCEL)
		action = ACT_COMPLETE;
	COUNT(m, acted[action]);
	switch (action) {
	case ACT_COMPLETE:
		finish_event(EVENT_OF(o->other, 0));
		release(other);
		break;
	case ACT_REGISTER:
		act_register(m, o);
		break;
	case ACT_AGAIN:
		act_again(m, o, index);
		break;
	case ACT_TEST:
		if (m->depth < 3)
			test_shared(m, o->slot);
		break;
	case ACT_POLL:
		if (m->depth < 3 && contd_poll(o->again) < 0)
			wrong("contd_poll in a callback fails");
		break;
	case ACT_CANCEL:
		cancel(m, o->other, INCARNATION(contd__load(&other->state)), other->handle);
		finish_event(EVENT_OF(o->other, 0));
		release(other);
		break;
	case ACT_CREATE:
		act_create(m, o);
		break;
	case ACT_DESTROY:
		group_give_back(o->own);
		break;
	case ACT_WORD:
		act_word(m, o);
		break;
	case ACT_GUARD:
		contd_guard_begin();
		contd_guard_end();
		break;
	default:
		break;
	}
}

static void check_context(struct self *m, const struct op *o, uint64_t data)
{
	uint8_t context = contd__self.context;

	if (context == CONTEXT_HANDLER && !(o->flags & CONTD_ASYNC_SIGNAL_SAFE))
		wrong("a handler ran what is not async-signal-safe");
	if (context == CONTEXT_DAEMON && !(o->flags & CONTD_THREAD_ANY))
		wrong("the daemon ran what is for threads of the application");
	if (context == CONTEXT_REGION && !m->in_region)
		wrong("a region's continuation ran outside");
	if ((context == CONTEXT_HANDLER || context == CONTEXT_REGION) && m->in_guard)
		wrong("a handler ran a continuation under a guard");
	if (o->lasting && o->flags & CONTD_POLL_ONLY && !m->testing[o->lasting - 1])
		wrong("a poll-only group's continuation ran outside its tests");
	if (context == CONTEXT_THREAD && m->registering == data) {
		COUNT(m, run_inline);
		if (o->flags & CONTD_ENQUEUE_COMPLETE || o->flags & CONTD_POLL_ONLY)
			wrong("it ran inside the call that registers it");
		if (contd__self.frame->outer)
			wrong("it ran inside another continuation, in the call that registers it");
	}
}

/* Async-signal-safe where its group is. */
static void run_cb(int status, void *data)
{
	uint32_t index = (uint32_t)(uintptr_t)data, incarnation = (uint32_t)((uint64_t)(uintptr_t)data >> 32);
	struct self *m = self_here();
	struct op *o = &ops[index];

	become(index, incarnation, OP_ARMED, OP_RAN);
	if (status != o->expected)
		wrong("the status is %d instead of %d", status, o->expected);
	if (o->waits_for == FOR_EVENTS) {
		for (uint32_t e = 0; e < o->n; e++)
			if (o->payload[e] != incarnation || !contd_event_is_complete(&o->event[e]))
				wrong("event %u of %u is not complete, or what was written before it is not visible", e,
				      o->n);
	} else if (o->waits_for == FOR_WORD && __atomic_load_n(&o->word, __ATOMIC_RELAXED) != o->wanted) {
		wrong("the word does not hold");
	}
	check_context(m, o, (uint64_t)(uintptr_t)data);
	COUNT(m, ran[contd__self.context]);
	COUNT(m, ran_for[o->waits_for]);
	errno = EDOM;
	if (o->action != ACT_NOTHING) {
		m->depth++;
		act(m, o, index);
		m->depth--;
	}
	release(o);
}

/* -------------------------------------------------------------------------------------------------- test points --- */

/* The latest continuations of lasting groups: a thread at a test point may cancel one that is just being registered. */
#define RECENT 16u
static struct recent {
	uint32_t taken, incarnation, index;
	struct contd_handle handle;
} recent[RECENT];

static void recent_put(uint32_t index, uint32_t incarnation, struct contd_handle handle)
{
	struct recent *p = &recent[index % RECENT];

	if (contd__xchg(&p->taken, 1))
		return;
	p->index = index;
	p->incarnation = incarnation;
	p->handle = handle;
	contd__store_release(&p->taken, 0);
}

static void recent_cancel(struct self *m, uint32_t which)
{
	struct recent *p = &recent[which % RECENT];
	uint32_t index, incarnation;
	struct contd_handle handle;

	if (contd__xchg(&p->taken, 1))
		return;
	index = p->index;
	incarnation = p->incarnation;
	handle = p->handle;
	p->handle.slot = NULL;
	contd__store_release(&p->taken, 0);
	if (handle.slot)
		cancel(m, index, incarnation, handle);
}

/* Ordinary code could call contd_poll() and contd_cancel() there: no lock of contd's is held, and no read-side section
 * is under way. */
static bool may_poll_at(const char *name)
{
	static const char *const allowed[] = {"publish_pending",      "event_attached",  "event_attached_alone",
					      "event_before_release", "claim_running",   "chain_waiting",
					      "scan_pinned",          "word_before_live"};

	for (unsigned i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (strcmp(name, allowed[i]) == 0)
			return true;
	return false;
}

static void raise_ours(const struct self *m)
{
	if (m->tid)
		syscall(SYS_tgkill, getpid(), m->tid, contd__signals.signal_number);
}

static void at_point(struct self *m, const char *name)
{
	uint64_t r = draw(&m->random_point);
	enum at_point what = (enum at_point)(r % ATS);

	if ((what == AT_POLL || what == AT_CANCEL) &&
	    (m->role == STRANGER || m->role == DAEMON || contd__self.context != CONTEXT_THREAD || m->depth > 2 ||
	     !may_poll_at(name)))
		what = AT_NOTHING;
	/* Its callbacks may wait for a grace period, and for this thread then. */
	if ((what == AT_POLL || what == AT_CANCEL) && urcu_memb_read_ongoing())
		wrong("%s is inside a read-side section, where nothing may wait", name);
	if (what == AT_YIELD && contd__self.context == CONTEXT_HANDLER && r >> 8 & 3)
		what = AT_SPIN;
	switch (what) {
	case AT_YIELD:
		/* Now and then for so long that others get through a grace period. */
		if (contd__self.context == CONTEXT_THREAD && (r >> 12 & 31) == 0)
			usleep((unsigned)(r >> 32 & 2047));
		else
			sched_yield();
		break;
	case AT_SPIN:
		for (volatile uint32_t i = 0; i < (r >> 32 & 2047); i++)
			;
		break;
	case AT_RAISE:
		raise_ours(m);
		break;
	case AT_COMPLETE:
		finish_from_stock(m);
		break;
	case AT_POLL:
		if (contd_poll((uint32_t)(r >> 32 & 7)) < 0)
			wrong("contd_poll at %s fails", name);
		break;
	case AT_CANCEL:
		recent_cancel(m, (uint32_t)(r >> 32));
		break;
	default:
		break;
	}
	COUNT(m, at[what]);
}

/* Inside contd_event_complete(), of an event that was attached: between entering and leaving the read-side section. */
static void completer_holds(struct self *m, const char *name)
{
	if (m->completing && m->completing_context == contd__self.context && memcmp(name, "complete_", 9) == 0) {
		reclaim_note(HOLDER_COMPLETER, m->completing, false);
		if (name[9] == 'm')
			m->completing = 0; /* what follows is outside */
	}
}

static void hook(const char *name)
{
	struct self *m = self_here();
	uint32_t b = (uint32_t)((uintptr_t)name * 0x9e3779b97f4a7c15ull >> 58);

	if (!m)
		return;
	m->passes[b]++;
	if (--m->left[b] <= 0) {
		/* The more often it is passed the more seldom: rare points get as much as those on the way of each. */
		uint32_t rare = m->passes[b] / 16 < 1000 ? m->passes[b] / 16 + 2 : 1000;

		m->left[b] = 1 + (int32_t)below(draw(&m->random_point), 2 * rare);
		if (!m->in_point) {
			int saved = errno;

			m->in_point++;
			at_point(m, name);
			m->in_point--;
			errno = saved;
		}
	}
	if (name[0] == 'c')
		completer_holds(m, name);
}

/* ------------------------------------------------------------------------------------------------------ handler --- */

static uint64_t worst_handler_ns, handled[3], handler_log2[40];

void __real_contd__handler(int signo, siginfo_t *info, void *context);
void __wrap_contd__handler(int signo, siginfo_t *info, void *context);

/* In its place: counts, measures, and sees that errno is kept. */
void __wrap_contd__handler(int signo, siginfo_t *info, void *context)
{
	int before = errno;
	uint64_t begin = now_ns(), took, worst = contd__load(&worst_handler_ns);

	__real_contd__handler(signo, info, context);
	if (errno != before)
		wrong("errno was %d before the handler and is %d", before, errno);
	took = now_ns() - begin;
	while (took > worst && !contd__cas(&worst_handler_ns, &worst, took))
		;
	contd__add(&handled[info->si_code != SI_TIMER ? 2 : info->si_value.sival_ptr == &contd__signals.notice_mark],
		   1);
	contd__add(&handler_log2[took ? 63 - __builtin_clzll(took) : 0], 1);
	errno = before;
}

/* ------------------------------------------------------------------------------------------------------ workers --- */

/* A queue's end: other threads, or this one, go on with what is ready. Draws nothing from the operations' generator. */
static void relieve(struct self *m)
{
	while (finish_from_stock(m))
		;
	test_shared(m, below(draw(&m->random_point), SHARED));
	if (contd_poll(0) < 0)
		wrong("contd_poll fails");
	contd__store(&m->steps, m->steps + 1);
	sched_yield();
}

/* A free operation, with a new incarnation, busy for one: the continuation. */
static uint32_t arm(struct self *m, uint64_t r)
{
	for (uint32_t tries = 1;; tries++) {
		uint32_t index = m->number * POOL + m->at++ % POOL;
		struct op *o = &ops[index];

		if (contd__load_acquire(&o->busy) == 0) {
			if ((contd__load(&o->state) & 7) == OP_ARMED)
				wrong("operation %u is over and still armed", index);
			contd__store(&o->state, STATE(INCARNATION(contd__load(&o->state)) + 1, OP_IDLE));
			o->n = 1;
			o->action = ACT_NOTHING;
			o->again = (uint8_t)(r & 3);
			o->expected = 0;
			o->word = 0;
			o->wanted = 1 + (r >> 8 & 127);
			o->own = NULL;
			for (uint32_t e = 0; e < EVENTS; e++) {
				contd_event_init(&o->event[e]);
				o->code[e] = 0;
			}
			contd__store_seq(&o->busy, 1);
			m->armed++;
			return index;
		}
		if (tries % POOL == 0)
			relieve(m);
	}
}

static void hand_over(struct self *m, uint32_t event)
{
	struct ring *r = &m->ring[(event >> 3 ^ event) % COMPLETERS];
	uint32_t head = r->head;

	while (head - contd__load_acquire(&r->tail) == RING)
		relieve(m);
	r->event[head % RING] = event;
	/* Release: pairs with the acquire in completer_look. */
	contd__store_release(&r->head, head + 1);
}

static void to_stock(struct self *m, uint32_t event)
{
	while (m->stock_in - contd__load(&m->stock_out) == STOCK)
		finish_from_stock(m);
	m->stock[m->stock_in % STOCK] = event;
	/* A handler of this thread may look at once. */
	contd__store_seq(&m->stock_in, m->stock_in + 1);
}

/* How the events of an operation come to be complete: 2 bits each. */
enum way { WAY_BEFORE, WAY_AFTER, WAY_HANDED, WAY_STOCK };

static void go_way(struct self *m, uint32_t event, enum way way)
{
	if (way == WAY_HANDED)
		hand_over(m, event);
	else if (way == WAY_STOCK)
		to_stock(m, event);
	else
		finish_event(event);
}

static void set_codes(struct op *o, uint64_t r)
{
	/* One code at most: of several the first is not known. */
	if (o->n && r % 8 == 0) {
		o->code[r >> 3 & 3] = 1 + (int32_t)(r >> 8 & 0xffff);
		o->expected = (r >> 3 & 3) < o->n ? o->code[r >> 3 & 3] : 0;
	}
}

/* Register one with events and let these come, as r says. `waited`: not by test points, which may never come. */
static void events_on(struct self *m, uint32_t index, struct contd_group *group, uint64_t r, bool waited)
{
	struct op *o = &ops[index];
	uint32_t n = o->n; /* its callback may change that */

	contd__add(&o->busy, n);
	set_codes(o, r >> 16);
	o->group_name = 0;
	for (uint32_t e = 0; e < n; e++)
		if ((r >> 2 * e & 3) == WAY_BEFORE)
			finish_event(EVENT_OF(index, e));
	if (enroll_events(m, index, group, &o->handle)) {
		wrong("contd_event_continue fails: %s", contd_error_text());
		release(o);
	}
	for (uint32_t e = 0; e < n; e++) {
		enum way way = (enum way)(r >> 2 * e & 3);

		if (way != WAY_BEFORE)
			go_way(m, EVENT_OF(index, e), waited && way == WAY_STOCK ? WAY_HANDED : way);
	}
}

static uint32_t some_shared(uint32_t k)
{
	/* Closed: the next one. Some are never closed. */
	while (!shared_enter(k))
		k = (k + 1) % SHARED;
	return k;
}

static void note_group(struct op *o, uint32_t k)
{
	o->flags = (uint8_t)shared[k].flags;
	o->lasting = k < LASTING ? (uint8_t)(k + 1) : 0;
}

static void cancel_later(struct self *m, uint32_t index, uint32_t incarnation, uint32_t k, struct contd_handle handle)
{
	struct postponed *p = &m->postponed[m->postponed_at++ % POSTPONED];

	/* A handle is good while its group exists. */
	if (p->handle.slot && shared_enter(p->slot)) {
		if (shared[p->slot].incarnation == p->slot_incarnation)
			cancel(m, p->index, p->incarnation, p->handle);
		shared_leave(p->slot);
	}
	*p = (struct postponed){index, incarnation, k, shared[k].incarnation, handle};
}

/* An action that needs a second operation: that is made ready for it, and has its event, for which `action` answers. */
static void prepare_other(struct self *m, struct op *o, uint64_t r)
{
	uint32_t k, index = arm(m, r);
	struct op *other = &ops[index];

	o->other = index;
	switch ((enum action)o->action) {
	case ACT_COMPLETE:
	case ACT_CANCEL:
		contd__add(&other->busy, 2); /* its event, and the acting thread */
		k = some_shared(below(r, SHARED));
		note_group(other, k);
		set_codes(other, r >> 8);
		if (enroll_events(m, index, shared[k].group, &other->handle)) {
			wrong("contd_event_continue fails: %s", contd_error_text());
			release(other);
		}
		/* Its handle must not outlive its group. */
		if (o->action == ACT_CANCEL && k >= LASTING)
			o->action = ACT_COMPLETE;
		shared_leave(k);
		break;
	case ACT_REGISTER:
		other->n = r >> 12 & 1;
		set_codes(other, r >> 16);
		break;
	default:
		break;
	}
}

static void step_events(struct self *m, uint64_t r)
{
	uint64_t r2 = draw(&m->random);
	uint32_t index = arm(m, r2), incarnation = INCARNATION(contd__load(&ops[index].state)), k;
	struct op *o = &ops[index];
	struct contd_handle handle;
	unsigned n = r2 >> 8 & 15;

	o->n = n < 10 ? 1 : n < 12 ? 2 : n < 13 ? 3 : n < 15 ? 4 : 0;
	COUNT(m, did[o->n == 1 ? DID_EVENTS_1 : o->n ? DID_EVENTS_MORE : DID_EVENTS_0]);
	o->slot = (uint8_t)below(r2 << 16, SHARED);
	if ((r2 >> 12 & 3) == 0) {
		o->action = (uint8_t)((r2 >> 14 & 255) % ACTIONS);
		if (o->action == ACT_DESTROY || (o->action == ACT_WORD && r2 >> 22 & 7))
			o->action = ACT_NOTHING;
		if (o->action == ACT_COMPLETE || o->action == ACT_CANCEL || o->action == ACT_REGISTER ||
		    o->action == ACT_CREATE || o->action == ACT_WORD)
			prepare_other(m, o, draw(&m->random));
	}
	k = some_shared(below(r, SHARED));
	note_group(o, k);
	/* Held a little longer: a cancelling thread needs the group. */
	contd__add(&o->busy, 1);
	events_on(m, index, shared[k].group, r2 >> 24, false);
	handle = o->handle;
	if ((r2 >> 60 & 7) == 0)
		cancel(m, index, incarnation, handle);
	else if ((r2 >> 60 & 7) == 1)
		cancel_later(m, index, incarnation, k, handle);
	else if (k < LASTING)
		recent_put(index, incarnation, handle);
	shared_leave(k);
	release(o);
}

static void step_word(struct self *m, uint64_t r)
{
	uint32_t index = arm(m, r), incarnation = INCARNATION(contd__load(&ops[index].state));
	uint32_t k = some_shared(below(r, SHARED));
	struct op *o = &ops[index];

	COUNT(m, did[DID_WORD]);
	contd__add(&o->busy, 2);
	note_group(o, k);
	if (enroll_word(m, index, shared[k].group, &o->handle) == 0 && r >> 20 & 1)
		cancel(m, index, incarnation, o->handle);
	go_way(m, EVENT_OF(index, EVENTS), (enum way)(r >> 21 & 3));
	shared_leave(k);
	release(o);
}

/* Waits for a group that is the caller's: also with an end, and by tests. */
static void wait_for(struct self *m, struct contd_group *group, uint64_t r)
{
	int complete = 0, rc;

	COUNT(m, did[DID_WAIT]);
	while (finish_from_stock(m))
		;
	switch (r & 3) {
	case 0:
		do
			rc = contd_group_wait(group, (int64_t)(r >> 8 & 0xffff));
		while (rc == -ETIMEDOUT);
		must_be(rc, 0, "contd_group_wait");
		break;
	case 1:
		while (!complete) {
			rc = contd_group_test(group, &complete);
			if (rc < 0)
				wrong("contd_group_test is %d", rc);
			/* Of some groups a test runs none. */
			if (!complete && rc == 0 && (contd_poll(0), r >> 4 & 1))
				sched_yield();
		}
		break;
	default:
		must(contd_group_wait(group, -1));
		break;
	}
	if (contd_group_outstanding(group))
		wrong("a group that was waited for has %u outstanding", contd_group_outstanding(group));
}

/* A group of the worker's own: a few continuations, perhaps one that waits for it, and given back in all sorts of
 * ways. */
static void step_group(struct self *m, uint64_t r)
{
	uint64_t r2 = draw(&m->random);
	uint32_t flags = some_flags(r), n = 1 + (uint32_t)(r >> 4 & 3), k, how = (uint32_t)(r >> 8 & 7);
	struct contd_group *group = group_make(flags, some_max_poll(r2, flags));
	uint32_t mine[4], incarnation[4];
	struct contd_handle handle[4];

	COUNT(m, did[DID_GROUP]);
	if (how == 7 && flags & (CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE))
		how = 0; /* its last callback could not give it back, or would never come */
	for (uint32_t i = 0; i < n; i++) {
		mine[i] = arm(m, r2 >> i);
		incarnation[i] = INCARNATION(contd__load(&ops[mine[i]].state));
		ops[mine[i]].flags = (uint8_t)flags;
		ops[mine[i]].lasting = 0;
		contd__add(&ops[mine[i]].busy, 1);
		if (how == 7 && i == n - 1) {
			ops[mine[i]].action = ACT_DESTROY;
			ops[mine[i]].own = group;
		}
		/* The one that gives it back comes last, and then the group is not ours any more. */
		if (how == 7 && i == n - 1)
			break;
		events_on(m, mine[i], group, r2 >> (8 + 8 * i), true);
		handle[i] = ops[mine[i]].handle;
	}
	if (r >> 12 & 1) {
		uint32_t index = arm(m, r), chain_incarnation = INCARNATION(contd__load(&ops[index].state));
		struct op *o = &ops[index];

		COUNT(m, did[DID_CHAIN]);
		k = some_shared(below(r, SHARED));
		note_group(o, k);
		contd__add(&o->busy, 1);
		must_be(enroll_chain(m, index, group, shared[k].group, &o->handle), 0, "contd_group_continue");
		if (r >> 13 & 1)
			cancel(m, index, chain_incarnation, o->handle);
		else if (k < LASTING)
			/* its group lasts; what it waits for does not */
			recent_put(index, chain_incarnation, o->handle);
		else
			cancel_later(m, index, chain_incarnation, k, o->handle);
		shared_leave(k);
		release(o);
	}
	if (r >> 14 & 1)
		for (uint32_t i = 0; i + (how == 7) < n; i++)
			if (r >> (15 + i) & 1)
				cancel(m, mine[i], incarnation[i], handle[i]);
	if (how == 7) {
		events_on(m, mine[n - 1], group, r2 >> 40, true);
	} else {
		if (how & 1)
			wait_for(m, group, r2 >> 4);
		group_give_back(group);
	}
	for (uint32_t i = 0; i < n; i++)
		release(&ops[mine[i]]);
}

static void bulk_cb(int status, void *data)
{
	struct self *m = self_here();
	struct bulk *b = data;

	(void)status;
	COUNT(m, ran[contd__self.context]);
	COUNT(m, ran_for[FOR_EVENTS]);
	if (contd__self.context == CONTEXT_THREAD && m->registering == (uintptr_t)b)
		COUNT(m, run_inline);
	/* Last: then the worker may use it again. Release: pairs with the acquires in step_bulk and step_wide. */
	if (__atomic_fetch_add(&b->runs, 1, __ATOMIC_ACQ_REL))
		wrong("one of many ran again");
}

/* So many in one group at once that its table grows, completed in an order that jumps about; some cancelled. */
static void step_bulk(struct self *m, uint64_t r)
{
	uint32_t n = 100 + (r & 3 ? below(r, 400) : below(r, BULK - 100)), stride = 2 * below(r << 8, n) + 1;
	uint32_t flags = some_flags(r >> 20), cancelled = 0;
	struct contd_group *group = group_make(flags, -1);
	bool given_back = r >> 30 & 1, done;
	/* One by one, or so many at a time. */
	struct contd_event *held[EVENTS_TOGETHER];
	uint32_t together = r >> 32 & 1 ? 1 + below(r >> 33, EVENTS_TOGETHER) : 0, holds = 0;

	COUNT(m, did[DID_BULK]);
	while (n % stride == 0 || stride % 3 == 0 || stride % 5 == 0 || stride % 7 == 0)
		stride += 2;
	for (uint32_t i = 0; i < n; i++) {
		struct bulk *b = &m->bulk[i];
		struct contd_event *es[] = {&b->event};

		*b = (struct bulk){0};
		m->registering = (uintptr_t)b;
		must(contd_event_continue(1, es, bulk_cb, b, group, &b->handle));
		m->registering = 0;
		COUNT(m, registered);
		m->armed++;
		contd__store(&m->steps, m->steps + 1);
	}
	for (uint32_t i = 0; i < n; i += 1 + (i * stride) % 37) {
		struct bulk *b = &m->bulk[i];

		if (r >> 31 & 1 && contd_cancel(b->handle) == 0) {
			b->cancelled = 1;
			cancelled++;
			COUNT(m, cancelled);
		}
	}
	/* If stride and n have a common divisor, the loop below does the rest. */
	for (uint32_t i = 0, at = 0; i < n; i++, at = (at + stride) % n) {
		if (together)
			held[holds++] = &m->bulk[at].event; /* complete already, perhaps, or twice there */
		else if (!contd_event_is_complete(&m->bulk[at].event))
			must(contd_event_complete(&m->bulk[at].event, 0));
		if (holds && holds == together) {
			contd__events_complete_sig(held, holds);
			holds = 0;
		}
		if (i == n / 2 && given_back)
			group_give_back(group);
		if (i % 512 == 3)
			contd_poll(100);
	}
	for (uint32_t i = 0; i < n; i++)
		if (!contd_event_is_complete(&m->bulk[i].event))
			must(contd_event_complete(&m->bulk[i].event, 0));
	if (!given_back) {
		must(contd_group_wait(group, -1));
		group_give_back(group);
	}
	do {
		done = true;
		for (uint32_t i = 0; i < n && done; i++)
			done = m->bulk[i].cancelled || __atomic_load_n(&m->bulk[i].runs, __ATOMIC_ACQUIRE);
		if (!done)
			relieve(m);
	} while (!done);
	for (uint32_t i = 0; i < n; i++)
		if (m->bulk[i].runs + m->bulk[i].cancelled != 1)
			wrong("one of many ran %u times, cancelled: %u", m->bulk[i].runs, m->bulk[i].cancelled);
}

/* One continuation with very many events. */
static void step_wide(struct self *m, uint64_t r)
{
	static const uint32_t most = 1000;
	uint32_t n = 1 + below(r, most), k = some_shared(below(r << 7, SHARED));
	struct contd_event **es = malloc(n * sizeof(es[0]));
	struct bulk *b = &m->bulk[BULK - 1];
	uint64_t group_runs;

	COUNT(m, did[DID_WIDE]);
	*b = (struct bulk){0};
	for (uint32_t i = 0; i < n; i++) {
		es[i] = &m->bulk[i].event;
		contd_event_init(es[i]);
		if ((r >> (i & 31) & 1) == 0)
			must(contd_event_complete(es[i], 0));
	}
	m->registering = (uintptr_t)b;
	must(contd_event_continue(n, es, bulk_cb, b, shared[k].group, NULL));
	m->registering = 0;
	COUNT(m, registered);
	m->armed++;
	for (uint32_t i = 0; i < n; i++) {
		if (!contd_event_is_complete(es[i]) && __atomic_load_n(&b->runs, __ATOMIC_RELAXED))
			wrong("a continuation ran with events missing");
		if (!contd_event_is_complete(es[i]))
			must(contd_event_complete(es[i], 0));
	}
	group_runs = 0;
	while (!__atomic_load_n(&b->runs, __ATOMIC_ACQUIRE)) {
		m->testing[k]++;
		contd_group_test(shared[k].group, &(int){0});
		m->testing[k]--;
		if (++group_runs > 10)
			relieve(m);
	}
	shared_leave(k);
	free(es);
}

/* A shared group is given back, whatever is outstanding, and another one takes its place. */
static void step_replace(struct self *m, uint64_t r)
{
	uint32_t k = LASTING + below(r, SHARED - LASTING), none = 0, flags = some_flags(r);

	if (!contd__cas(&shared[k].users, &none, CLOSED))
		return;
	COUNT(m, did[DID_REPLACE]);
	group_give_back(shared[k].group);
	shared[k].group = group_make(flags, some_max_poll(r >> 4, flags));
	shared[k].flags = flags;
	shared[k].incarnation++;
	contd__and(&shared[k].users, ~CLOSED);
}

/* Calls that must fail, and change nothing: an event that has a continuation, a group that waits for itself. */
static void step_refused(struct self *m, uint64_t r)
{
	uint32_t k = some_shared(below(r, SHARED)), first = arm(m, r), second;
	struct contd_group *group = shared[k].group;
	struct op *a = &ops[first], *b;
	struct contd_event *es[2];

	COUNT(m, did[DID_BUSY]);
	note_group(a, k);
	contd__add(&a->busy, 2);
	enroll_events(m, first, group, &a->handle);
	second = arm(m, r);
	b = &ops[second];
	note_group(b, k);
	contd__add(&b->busy, 1);
	es[0] = &b->event[0];
	es[1] = &a->event[0];
	b->n = 0;
	b->group_name = 0;
	if (r >> 8 & 1) /* while the second is registered and backs out the completer may come */
		hand_over(m, EVENT_OF(second, 0));
	must_fail(contd_event_continue(2, es, bulk_cb, NULL, group, NULL), EBUSY);
	if (!(r >> 8 & 1))
		finish_event(EVENT_OF(second, 0));
	COUNT(m, did[DID_LOOP]);
	must_fail(contd_group_continue(group, bulk_cb, NULL, group, NULL), ELOOP);
	finish_event(EVENT_OF(first, 0));
	shared_leave(k);
	release(b);
	release(a);
}

/* Work of the program that an interruption must not harm. */
static void step_other_work(struct self *m, uint64_t r)
{
	size_t bytes = 16 + r % 3000;
	unsigned char *p = malloc(bytes);
	int before = (int)(r % 1000) + 1;

	COUNT(m, did[DID_OTHER_WORK]);
	memset(p, (int)(r & 0xff), bytes);
	errno = before;
	for (volatile int i = 0; i < 30; i++)
		;
	if (errno != before)
		wrong("errno was %d and is %d", before, errno);
	fprintf(null_file, "%llu %f %zu\n", (unsigned long long)r, (double)r / 3, bytes);
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != (unsigned char)(r & 0xff))
			wrong("memory of the interrupted code was changed");
	free(p);
}

static void step_region(struct self *m, uint64_t r)
{
	volatile double x = 1;

	COUNT(m, did[DID_REGION]);
	contd__store(&m->in_region, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd_compute_begin();
	for (unsigned i = 0; i < (r & 4095); i++)
		x = x * 1.0000001 + 1e-9;
	if (r >> 12 & 1)
		raise_ours(m);
	if (r >> 13 & 1)
		finish_from_stock(m);
	for (unsigned i = 0; i < (r >> 16 & 4095); i++)
		x = x * 1.0000001 + 1e-9;
	contd_compute_end();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&m->in_region, 0);
}

static void step_guard(struct self *m, uint64_t r)
{
	COUNT(m, did[DID_GUARD]);
	contd_guard_begin();
	contd__store(&m->in_guard, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (r & 1)
		raise_ours(m);
	if (r & 2)
		finish_from_stock(m);
	for (volatile unsigned i = 0; i < (r >> 2 & 511); i++)
		;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&m->in_guard, 0);
	contd_guard_end();
}

static void step_attach(struct self *m, uint64_t r)
{
	COUNT(m, did[DID_ATTACH]);
	if (m->attached && r & 1) {
		must(contd_thread_detach());
		m->attached--;
	} else if (m->attached < 2) {
		must(contd_thread_attach(NULL));
		m->attached++;
	}
}

static void step_rare(struct self *m, uint64_t r)
{
	struct contd_stats s = {.size = sizeof(s)};
	int rc;

	switch (r & 3) {
	case 0:
		COUNT(m, did[DID_DAEMON]);
		must(contd_daemon_start(NULL));
		if (r & 4)
			relieve(m);
		must(contd_daemon_stop());
		break;
	case 1:
		COUNT(m, did[DID_USERS]);
		must(contd_init(NULL));
		if (r & 4)
			relieve(m);
		must(contd_fini());
		break;
	case 2:
		COUNT(m, did[DID_STATS]);
		must(contd_stats_get(&s));
		break;
	default:
		rc = contd_fd();
		if (rc < 0)
			wrong("contd_fd is %d", rc);
		break;
	}
}

static void step(struct self *m)
{
	uint64_t r = draw(&m->random);
	uint32_t what = below(r, 65536);

	r *= 0xd6e8feb86659fd93ull; /* the choice is in the high bits; the rest must not follow from it */
	r ^= r >> 32;
	contd__store(&m->steps, m->steps + 1);
	if (what < 48000)
		m->doing = "events", step_events(m, r);
	else if (what < 51000)
		m->doing = "group", step_group(m, r);
	else if (what < 53500)
		m->doing = "poll", COUNT(m, did[DID_POLL]), contd_poll((uint32_t)(r & 15));
	else if (what < 55000)
		m->doing = "test", COUNT(m, did[DID_TEST]), test_shared(m, below(r, SHARED));
	else if (what < 55700)
		m->doing = "guard", step_guard(m, r);
	else if (what < 56000)
		m->doing = "region", step_region(m, r);
	else if (what < 56100)
		m->doing = "word", step_word(m, r);
	else if (what < 56200)
		m->doing = "replace", step_replace(m, r);
	else if (what < 56300)
		m->doing = "refused", step_refused(m, r);
	else if (what < 57000)
		m->doing = "malloc, stdio", step_other_work(m, r);
	else if (what < 57020)
		m->doing = "attach", step_attach(m, r);
	else if (what < 57030)
		m->doing = "wide", step_wide(m, r);
	else if (what < 57035)
		m->doing = "many", step_bulk(m, r);
	else if (what < 57037)
		m->doing = "rare", step_rare(m, r);
	else
		m->doing = "events", step_events(m, r);
}

/* All of this worker's operations are over. */
static void drain(struct self *m)
{
	m->doing = "drain";
	for (uint32_t i = 0; i < POOL; i++)
		while (contd__load_acquire(&ops[m->number * POOL + i].busy))
			relieve(m);
	memset(m->postponed, 0, sizeof(m->postponed));
}

static void *worker_main(void *arg)
{
	struct self *m = arg;
	uint32_t round = 0;

	me = m;
	contd__store_release(&m->tid, (int32_t)syscall(SYS_gettid));
	for (;;) {
		while (contd__load_acquire(&round_number) == round && !contd__load_acquire(&ended))
			usleep(100);
		if (contd__load_acquire(&ended))
			return NULL;
		round = contd__load_acquire(&round_number);
		m->attached = 0; /* contd_fini() detached it */
		if (m->number < 2) {
			must(contd_thread_attach(NULL));
			m->attached++;
		}
		for (uint64_t end = m->armed + m->quota; m->armed < end && !contd__load(&hurry);)
			step(m);
		drain(m);
		/* Others stay attached into contd_fini(). */
		while (m->attached && m->number % 2) {
			must(contd_thread_detach());
			m->attached--;
		}
		m->doing = "nothing";
		contd__add(&workers_done, 1);
	}
}

/* ------------------------------------------------------------------------------------------------ other threads --- */

/* Outside contd's calls: true if the thread is to end. */
static bool pause_point(uint32_t *pauses)
{
	if (contd__load_acquire(&paused)) {
		contd__add(&paused_count, 1);
		while (contd__load_acquire(&paused) && !contd__load_acquire(&ended))
			usleep(100);
		contd__sub(&paused_count, 1);
		++*pauses;
	}
	return contd__load_acquire(&ended) != 0;
}

/* Arrived operations are completed a few at a time, in any order. */
#define BAG 32u

static bool completer_look(struct self *m)
{
	uint32_t bag[BAG], n = 0;

	for (unsigned i = 0; i < WORKERS; i++) {
		struct ring *r = &workers[i].ring[m->number];
		uint32_t tail = r->tail;

		/* Acquire: pairs with the release in hand_over. */
		while (n < BAG && tail != contd__load_acquire(&r->head)) {
			bag[n++] = r->event[tail % RING];
			contd__store_release(&r->tail, ++tail);
		}
	}
	for (uint32_t left = n; left; left--) {
		uint32_t pick = below(draw(&m->random_point), left);

		finish_event(bag[pick]);
		bag[pick] = bag[left - 1];
	}
	return n != 0;
}

static void *completer_main(void *arg)
{
	struct self *m = arg;
	bool attached = false;
	uint32_t pauses;

	me = m;
	contd__store_release(&m->tid, (int32_t)syscall(SYS_gettid));
	for (;;) {
		uint64_t r = draw(&m->random_point);

		pauses = 0;
		if (pause_point(&pauses))
			return NULL;
		if (pauses)
			attached = false; /* contd_fini() detached it */
		if (m->role == COMPLETER && r % 4096 == 0) {
			must(attached ? contd_thread_detach() : contd_thread_attach(NULL));
			attached = !attached;
		}
		if (!completer_look(m))
			sched_yield();
	}
}

static void *poller_main(void *arg)
{
	struct self *m = arg;
	uint32_t pauses = 0;

	me = m;
	while (!pause_point(&pauses)) {
		uint64_t r = draw(&m->random_point);
		struct pollfd p = {.events = POLLIN};
		int ran;

		for (uint32_t k = 0; k < SHARED; k++)
			test_shared(m, k);
		ran = contd_poll((uint32_t)(r & 31));
		if (ran < 0)
			wrong("contd_poll is %d", ran);
		if (ran == 0 && r >> 8 & 1) {
			p.fd = contd_fd();
			poll(&p, 1, 1);
		} else if (ran == 0) {
			usleep((unsigned)(r >> 16 & 255));
		}
	}
	return NULL;
}

static void *hammer_main(void *arg)
{
	struct self *m = arg;
	uint32_t seen[WORKERS] = {0}, pauses = 0;

	me = m;
	while (!pause_point(&pauses)) {
		uint64_t r = draw(&m->random_point);
		struct self *w = &workers[below(r, WORKERS)];
		uint32_t steps = contd__load(&w->steps);

		/* One that does not get on is left alone, mostly: signals queue up. */
		if (steps != seen[w->number] || r % 64 == 0)
			syscall(SYS_tgkill, getpid(), contd__load_acquire(&w->tid), contd__signals.signal_number);
		seen[w->number] = steps;
		usleep((unsigned)(r >> 8 & 127));
	}
	return NULL;
}

static void *reader_main(void *arg)
{
	struct self *m = arg;
	enum holder holder = m->role == READER ? HOLDER_READER : HOLDER_STRANGER;
	uint32_t pauses = 0;

	me = m;
	if (m->role == READER)
		contd__thread_ensure();
	while (!pause_point(&pauses)) {
		for (unsigned i = 0; i < 64; i++) {
			uint64_t r = draw(&m->random_point);
			struct contd__root *root = &contd__groups.root[r % CLASSES];
			uint32_t at = below(r, 24), name;
			struct contd_group *g;
			bool reader = contd__enter_sig();

			if (reader != (m->role == READER))
				wrong("contd__enter_sig takes this thread for another sort");
			g = contd__load_acquire(&root->group[at]);
			if (g) {
				name = reclaim_name(g);
				/* As a scan would. */
				(void)contd__load(&g->life);
				(void)contd__load_seq(&g->table.top);
				if (r >> 8 & 1)
					for (volatile uint32_t n = 0; n < (r >> 16 & 4095); n++)
						;
				if ((r >> 9 & 63) == 0)
					sched_yield();
				(void)contd__load(&g->life);
				reclaim_note(holder, name, contd__load_seq(&root->group[at]) == g);
			}
			contd__leave_sig(reader);
		}
		usleep((unsigned)(draw(&m->random_point) & 511));
	}
	return NULL;
}

static void helper_start(enum role role, uint32_t number, void *(*run)(void *))
{
	struct self *m = &helpers[helper_count++];

	m->role = role;
	m->number = number;
	m->random_point = draw(&main_self.random) | 1;
	if (pthread_create(&m->thread, NULL, run, m))
		abort();
}

/* ---------------------------------------------------------------------------------------------------- the books --- */

static void add_books(struct books *sum, const struct self *m)
{
	const uint64_t *from = (const uint64_t *)&m->books;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += contd__load(&from[i]);
}

static struct books all_books(void)
{
	struct books sum;

	memset(&sum, 0, sizeof(sum));
	for (unsigned i = 0; i < WORKERS; i++)
		add_books(&sum, &workers[i]);
	for (unsigned i = 0; i < helper_count; i++)
		add_books(&sum, &helpers[i]);
	add_books(&sum, &main_self);
	add_books(&sum, &daemon_self);
	return sum;
}

static uint64_t ran_in_all(const struct books *b)
{
	return b->ran[0] + b->ran[1] + b->ran[2] + b->ran[3];
}

/* The run's sums of what contd counts; each round it begins at 0. */
static struct contd_stats sum_stats;

static bool balanced(const struct books *now, const struct books *before, const struct contd_stats *s,
		     uint64_t abandoned)
{
	uint64_t registered = now->registered - before->registered, cancelled = now->cancelled - before->cancelled;
	uint64_t ran = ran_in_all(now) - ran_in_all(before);

	return s->registered == registered && s->cancelled == cancelled && s->run == ran &&
	       registered == ran + cancelled + abandoned &&
	       s->run_handler == now->ran[CONTEXT_HANDLER] - before->ran[CONTEXT_HANDLER] &&
	       s->run_region == now->ran[CONTEXT_REGION] - before->ran[CONTEXT_REGION] &&
	       s->run_daemon == now->ran[CONTEXT_DAEMON] - before->ran[CONTEXT_DAEMON] &&
	       s->run_inline == now->run_inline - before->run_inline;
}

/* All is over but what was abandoned: contd's counts and ours are the same, in sum and by context. */
static void settle(const struct books *before, uint64_t abandoned)
{
	struct contd_stats s = {.size = sizeof(s)};
	struct books now;
	uint64_t until = now_ns() + 20000000000ull;

	/* A callback's end comes before contd has counted it. */
	do {
		must(contd_stats_get(&s));
		now = all_books();
		if (balanced(&now, before, &s, abandoned))
			break;
		usleep(1000);
	} while (now_ns() < until);
	checks += 8;
	if (!balanced(&now, before, &s, abandoned)) {
		wrong("registered %llu (contd: %llu), cancelled %llu (%llu), run %llu (%llu), abandoned %llu",
		      (unsigned long long)(now.registered - before->registered), (unsigned long long)s.registered,
		      (unsigned long long)(now.cancelled - before->cancelled), (unsigned long long)s.cancelled,
		      (unsigned long long)(ran_in_all(&now) - ran_in_all(before)), (unsigned long long)s.run,
		      (unsigned long long)abandoned);
		wrong("in handlers %llu (%llu), regions %llu (%llu), daemon %llu (%llu), inline %llu (%llu)",
		      (unsigned long long)(now.ran[CONTEXT_HANDLER] - before->ran[CONTEXT_HANDLER]),
		      (unsigned long long)s.run_handler,
		      (unsigned long long)(now.ran[CONTEXT_REGION] - before->ran[CONTEXT_REGION]),
		      (unsigned long long)s.run_region,
		      (unsigned long long)(now.ran[CONTEXT_DAEMON] - before->ran[CONTEXT_DAEMON]),
		      (unsigned long long)s.run_daemon, (unsigned long long)(now.run_inline - before->run_inline),
		      (unsigned long long)s.run_inline);
	}
	for (size_t i = 1; i < sizeof(s) / sizeof(uint64_t); i++)
		((uint64_t *)&sum_stats)[i] += ((uint64_t *)&s)[i];
}

/* ------------------------------------------------------------------------------------------------------- rounds --- */

static struct contd_event abandoned_event[ABANDONED];

/* Never run: contd_fini() must say so. */
static uint64_t abandon(struct self *m, uint64_t r)
{
	uint64_t n = r % (ABANDONED + 1);

	for (uint64_t i = 0; i < n; i++) {
		struct contd_event *es[] = {&abandoned_event[i]};

		contd_event_init(es[0]);
		must(contd_event_continue(1, es, bulk_cb, NULL, shared[(r >> 8) % LASTING].group, NULL));
		COUNT(m, registered);
	}
	return n;
}

static uint32_t rounds_with_timers, rounds_with_daemon;

static void round_begin(struct self *m)
{
	uint64_t r = draw(&m->random);
	static const uint32_t counts[] = {1, 3, 64, 1000};
	struct contd_config config = {
		.size = sizeof(config),
		.agent = CONTD_AGENT_CALLER + (int)(r % 3),
		.overhead_percent = r >> 4 & 1 ? 2 : 10,
		.tick_min_ns = 20000 + (r >> 8 & 0xffff),
		.tick_max_ns = 200000 + (r >> 8 & 0xfffff),
		.scan_count = counts[r >> 30 & 3],
		.scan_ns = r >> 32 & 1 ? 1000 : 50000,
		.signal_number = SIGRTMAX - 3 - (int)(r >> 34 & 1),
	};

	memset(recent, 0, sizeof(recent));
	rounds_with_timers += config.agent != CONTD_AGENT_CALLER;
	rounds_with_daemon += config.agent == CONTD_AGENT_TICK || r >> 33 & 1;
	must(contd_init(&config));
#ifdef __SANITIZE_THREAD__
	/* contd_poll() reads the descriptor without an order; a sanitizer sees that where it is made at the same
	 * time. */
	contd_fd();
#endif
	if (r >> 33 & 1)
		must(contd_daemon_start(NULL));
	for (uint32_t k = 0; k < SHARED; k++) {
		uint64_t r2 = draw(&m->random);

		shared[k].users = 0;
		shared[k].incarnation++;
		shared[k].flags = k < LASTING ? lasting_flags[k] : some_flags(r2);
		shared[k].group = group_make(shared[k].flags, k < LASTING ? lasting_max_poll[k]
									  : some_max_poll(r2 >> 8, shared[k].flags));
	}
}

static void round_end(struct self *m, const struct books *before)
{
	uint64_t r = draw(&m->random), abandoned;
	int left;

	contd__store_release(&paused, 1);
	while (contd__load_acquire(&paused_count) != helper_count)
		usleep(100);
	abandoned = abandon(m, r);
	settle(before, abandoned);
	for (uint32_t k = 0; k < SHARED; k++) {
		checks++;
		if (contd_group_outstanding(shared[k].group) && k >= LASTING)
			wrong("group %u has %u outstanding", k, contd_group_outstanding(shared[k].group));
		if (r >> (16 + k) & 1)
			group_give_back(shared[k].group); /* the others are left to contd_fini() */
	}
	reclaim_fini(true);
	left = contd_fini();
	reclaim_fini(false);
	checks += 2;
	if (left != (int)abandoned)
		wrong("contd_fini is %d, and %llu were abandoned: %s", left, (unsigned long long)abandoned,
		      contd_error_text());
	reclaim_check_empty();
}

static uint64_t all_armed(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		sum += contd__load(&workers[i].armed);
	return sum;
}

static void all_wait(uint64_t until_ns)
{
	uint64_t progress = 0;

	while (contd__load_acquire(&workers_done) != WORKERS) {
		struct books b = all_books();

		if (ran_in_all(&b) + b.cancelled != progress) {
			progress = ran_in_all(&b) + b.cancelled;
			alarm(HANG_SECONDS);
		}
		if (until_ns && now_ns() >= until_ns)
			contd__store_release(&hurry, 1);
		usleep(5000);
	}
}

/* ---------------------------------------------------------------------------------------------- what goes wrong --- */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	char text[400];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)!write(2, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void hangs(int signo)
{
	(void)signo;
	say("torture: hangs; seed %llu, round %u, done %u, paused %u of %u\n", (unsigned long long)seed, round_number,
	    workers_done, paused_count, helper_count);
	for (unsigned i = 0; i < WORKERS; i++) {
		const struct self *m = &workers[i];
		unsigned shown = 0;

		say("  worker %u (thread %d): %s, steps %u, armed %llu, attached %u, stock %u, rings %u %u\n", i,
		    m->tid, m->doing ? m->doing : "", m->steps, (unsigned long long)m->armed, m->attached,
		    m->stock_in - m->stock_out, m->ring[0].head - m->ring[0].tail, m->ring[1].head - m->ring[1].tail);
		for (uint32_t k = 0; k < POOL && shown < 8; k++) {
			const struct op *o = &ops[i * POOL + k];

			if (o->busy && shown++ < 8)
				say("    operation %u.%u: state %u, busy %u, waits for %s (%u), action %s, flags %x, "
				    "lasting %u\n",
				    i * POOL + k, INCARNATION(o->state), o->state & 7, o->busy, for_name[o->waits_for],
				    o->n, action_name[o->action], o->flags, o->lasting);
		}
	}
	abort();
}

static void crashed(int signo, siginfo_t *info, void *context)
{
	unsigned age = 0;
	const char *what = reclaim_describe(info->si_addr, &age);

	(void)context;
	say("torture: signal %d, address %p, seed %llu, round %u, role %d\n", signo, info->si_addr,
	    (unsigned long long)seed, round_number, me ? (int)me->role : -1);
	if (what)
		say("torture: that is a %s of age %u%s\n", what, age, age > 1 ? ": it was reclaimed" : "");
	signal(signo, SIG_DFL);
	raise(signo);
}

/* ------------------------------------------------------------------------------------------------------- report --- */

static void line(const char *title, const char *const *name, const uint64_t *count, unsigned n)
{
	printf("%s:", title);
	for (unsigned i = 0; i < n; i++)
		printf("%s %s %llu", i ? "," : "", name[i], (unsigned long long)count[i]);
	printf("\n");
}

static void report(uint64_t choices, double seconds)
{
	static const char *const contexts[] = {"threads", "handlers", "regions", "the daemon"};
	static const char *const signals[] = {"timers", "notifications", "hammer and test points"};
	struct books b = all_books();

	printf("choices: %016llx of %llu operations\n", (unsigned long long)choices, (unsigned long long)all_armed());
	printf("rounds %u, %.1f s, %.0f continuations a second\n", round_number, seconds,
	       (double)(ran_in_all(&b) + b.cancelled) / seconds);
	printf("continuations: registered %llu, run %llu, cancelled %llu, refused %llu, cancelled too late %llu\n",
	       (unsigned long long)b.registered, (unsigned long long)ran_in_all(&b), (unsigned long long)b.cancelled,
	       (unsigned long long)b.refused, (unsigned long long)b.too_late);
	line("run in", contexts, b.ran, 4);
	line("run for", for_name, b.ran_for, FORS);
	printf("inside the call that registered them: %llu\n", (unsigned long long)b.run_inline);
	line("callbacks that", action_name, b.acted, ACTIONS);
	line("operations", did_name, b.did, DIDS);
	line("at test points", at_name, b.at, ATS);
	line("signals handled", signals, handled, 3);
	printf("contd counts: ticks %llu, notifications %llu (refused %llu), under a guard %llu, scans %llu, chunks "
	       "%llu\n",
	       (unsigned long long)sum_stats.ticks, (unsigned long long)sum_stats.notifications,
	       (unsigned long long)sum_stats.notify_failed, (unsigned long long)sum_stats.guarded,
	       (unsigned long long)sum_stats.scans, (unsigned long long)sum_stats.grown);
	printf("handler: worst %.1f us; up to 2^n ns:", (double)worst_handler_ns / 1000);
	for (unsigned i = 0; i < 40; i++)
		if (handler_log2[i])
			printf(" %u: %llu", i + 1, (unsigned long long)handler_log2[i]);
	printf("\n");
	reclaim_report();
}

/* Did it do what it is for? Of a run that was too short for it nothing is said. */
static void check_it_was_torture(void)
{
	struct books b = all_books();

	if (ran_in_all(&b) < 1000000)
		return;
	checks += 7;
	if (!reclaim_watches())
		wrong("contd's memory is not what reclaim.c takes it for");
	/* Without a round that has the daemon there are moments of it, which may be too short. */
	if (!b.ran[CONTEXT_HANDLER] || !b.ran[CONTEXT_REGION] || !b.run_inline ||
	    (rounds_with_daemon && !b.ran[CONTEXT_DAEMON]))
		wrong("it was no torture: a context is missing");
	if (!b.cancelled || !b.too_late || (rounds_with_timers && !sum_stats.ticks) || !sum_stats.notifications ||
	    !sum_stats.guarded)
		wrong("it was no torture: nothing cancelled, or no signals");
	if (reclaim_groups() > 20000 &&
	    (!reclaim_met(HOLDER_READER) || !reclaim_met(HOLDER_STRANGER) || !reclaim_met(HOLDER_COMPLETER)))
		wrong("it was no torture: readers never met what is reclaimed");
}

static uint64_t number_of(const char *text)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end) {
		fprintf(stderr, "torture: not a number: %s\n", text);
		exit(2);
	}
	return v;
}

static void arguments(int argc, char **argv, uint64_t *seconds, uint64_t *continuations)
{
	const char *text = getenv("CONTD_TORTURE_SECONDS");

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = now_ns();
	seed &= 0xffffffff; /* easier to type */
	*seconds = *continuations = 0;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			seed = number_of(argv[i + 1]);
		else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
			*seconds = number_of(argv[i + 1]);
		else if (i + 1 < argc && strcmp(argv[i], "--continuations") == 0)
			*continuations = number_of(argv[i + 1]);
		else {
			fprintf(stderr, "usage: torture [--seed N] [--seconds S | --continuations N]\n");
			exit(2);
		}
	}
	if (!*seconds && !*continuations && text)
		*seconds = number_of(text);
	if (!*seconds && !*continuations)
		*continuations = DEFAULT_CONTINUATIONS;
}

static uint64_t seeded(uint64_t number)
{
	uint64_t s = (seed + 1) * 0x9e3779b97f4a7c15ull + number * 0xbf58476d1ce4e5b9ull;

	s ^= s >> 31;
	return s ? s : 1;
}

static void start_threads(void)
{
	main_self.role = MAIN;
	daemon_self.role = DAEMON;
	main_self.random = seeded(1000);
	main_self.random_point = seeded(1001);
	daemon_self.random_point = seeded(1002);
	for (uint32_t i = 0; i < WORKERS; i++) {
		workers[i].role = WORKER;
		workers[i].number = i;
		workers[i].random = seeded(2 * i + 1);
		workers[i].random_point = seeded(2 * i + 2);
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			abort();
	}
	helper_start(STRANGER, 0, completer_main);
	helper_start(COMPLETER, 1, completer_main);
	helper_start(POLLER, 0, poller_main);
	helper_start(HAMMER, 0, hammer_main);
	helper_start(READER, 0, reader_main);
	helper_start(STRANGE_READER, 0, reader_main);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO};
	uint64_t seconds, continuations, begin, until, choices = 0;
	struct books before;

	arguments(argc, argv, &seconds, &continuations);
	printf("torture: seed %llu, %s %llu\n", (unsigned long long)seed, seconds ? "seconds" : "continuations",
	       (unsigned long long)(seconds ? seconds : continuations));
	fflush(stdout);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	signal(SIGALRM, hangs);
	alarm(HANG_SECONDS);
	null_file = fopen("/dev/null", "w");
	ops = calloc(WORKERS * POOL, sizeof(*ops));
	if (!null_file || !ops)
		return 2;
	reclaim_init();
	me = &main_self;
	begin = now_ns();
	until = seconds ? begin + seconds * 1000000000 : 0;
	paused = 1;
	start_threads();
	contd__testpoint_hook = hook;
	do {
		uint64_t r = draw(&main_self.random), most = 20000ull << below(r, 8);

		if (continuations && most > continuations - all_armed())
			most = continuations - all_armed();
		before = all_books();
		round_begin(&main_self);
		for (unsigned i = 0; i < WORKERS; i++)
			workers[i].quota = most / WORKERS + (i < most % WORKERS);
		contd__store(&workers_done, 0);
		contd__store_release(&paused, 0);
		while (contd__load_acquire(&paused_count))
			usleep(50);
		contd__add(&round_number, 1);
		all_wait(until);
		round_end(&main_self, &before);
	} while (!wrongs && (seconds ? now_ns() < until : all_armed() < continuations));
	contd__store_release(&ended, 1);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < helper_count; i++)
		pthread_join(helpers[i].thread, NULL);
	reclaim_end();
	for (unsigned i = 0; i < WORKERS; i++)
		choices ^= workers[i].random;
	check_it_was_torture();
	report(choices, (double)(now_ns() - begin) / 1e9);
	free(ops);
	fclose(null_file);
	printf(wrongs ? "WRONG: %llu\n" : "each exactly once; %llu equalities held\n",
	       (unsigned long long)(wrongs ? wrongs : checks));
	return wrongs != 0;
}
