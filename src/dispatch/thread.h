/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dispatcher's data of each thread. It is thread-local (initial-exec, so that access in a handler never allocates).
 * When the thread first calls contd outside a handler, it is entered in a list, for statistics.
 */
#ifndef CONTD_DISPATCH_THREAD_H
#define CONTD_DISPATCH_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"
#include "rcu/table.h"

/*
 * Counters of one thread. Each is written by its thread only, but also by handlers that interrupt it: counting is one
 * instruction there (CONTD_COUNT), which a signal cannot split.
 */
struct contd__counters {
	uint64_t registered, run, run_inline, cancelled, ticks, notifications, notify_failed, guarded, overruns;
	uint64_t handler_ticks, kernel_ticks, scans, grown;
	uint64_t run_handler, run_region, run_daemon;
	uint64_t rings, rings_sent, put_off;
	uint64_t latency[64]; /* b: waits of 2^(b-1) to 2^b - 1 units of 32 clock ticks */
};

/*
 * Where this thread is. A look sets it, and sets it back (react.c; signal/inspect.c, for a thread that is inspected). A
 * continuation that a look runs has it from there.
 */
enum contd__context {
	CONTEXT_THREAD,  /* in the program, or in a call of contd's or MPI's that the program has made */
	CONTEXT_HANDLER, /* in a look outside regions: only async-signal-safe things */
	CONTEXT_REGION,  /* in a look in a region */
	CONTEXT_DAEMON   /* contd's own thread: always */
};

/* A continuation that runs on this thread; on the thread's stack. */
struct contd__slot;
struct contd__frame {
	const struct contd_group *group;
	const struct contd_group *given_back; /* `group`, if the continuation has destroyed it: then that is NULL */
	const struct contd__slot *slot;       /* or NULL: it has none */
	struct contd__frame *outer;
	const void *site; /* if the watchdog is on: the outer one's, and when that began */
	uint64_t since;
	uint32_t guard; /* how many guards were around it */
};

/*
 * A test of a group that is under way on this thread, and what is left of its max_poll. Or a wait for the group, which
 * has no limit: a test of it around the wait does not count meanwhile.
 */
struct contd__testing {
	const struct contd_group *group;
	uint32_t left; /* or one of these */
	struct contd__testing *outer;
};
#define CONTD__WAITED UINT32_MAX          /* a wait */
#define CONTD__UNLIMITED (UINT32_MAX - 1) /* a test of a group without a max_poll, which MPI notes, too */

struct contd__taking;
struct contd__slot;
struct contd__table;
struct contd__outlet;
struct contd__outlet_ops;

/* Counting calls until the next look (checkpoint.c); times in clock ticks. */
struct contd__checkpoint {
	uint8_t rung;   /* peers ring */
	uint32_t calls; /* until it asks whether a look is due, */
	uint64_t at;    /* when they were counted off, */
	uint64_t due;   /* when the next look is due, */
	uint64_t cost;  /* and what one that found nothing cost */
};

/* Continuations without a slot (carried.h). */
struct contd__carrying {
	struct contd__taking *take;    /* completed by sources that this thread drives; run afterwards */
	struct contd__taking *running; /* those that it runs now */
	/* Tasks whose operations it finds complete in MPI_Test. They are woken at its end. */
	struct contd__taking *waking;
};

/* An executor's work that this thread runs, or a loan of the thread to an executor. On that thread's stack. */
struct contd__at_work {
	struct contd__outlet *outlet;    /* or NULL: only the group counts (mpi/calls.h) */
	const struct contd_group *group; /* of the continuation that has become this task, or NULL */
	bool loan;
	struct contd__at_work *outer;
};

/* The continuation that runs, if the watchdog is on (late.h). */
struct contd__watched {
	const void *site; /* NULL: none */
	uint64_t since;   /* when it began, in clock ticks */
};

/*
 * The fields that say what a thread is doing. Only the thread writes them. Handlers that interrupt it read them; the
 * watchdog reads `context`, contd__threads_other_in_callback() reads `frame`, and contd__attached_computes_sig() reads
 * both. All but `looking` nest: each has the innermost of its kind.
 *
 *     field            says                                   its functions
 *     context          where the thread is                    contd__context_enter_sig(), _leave_sig()
 *     looking          it looks, but not in a handler         react.h
 *     frame            it runs a continuation                 run.h, contd__in_continuation_sig(), contd__frames_*
 *     testing          it tests, or waits for, a group        scan.h
 *     carried.take     it drives sources, and takes           carried.h
 *     carried.running  it runs what it has taken              carried.h
 *     carried.waking   it is in a test that wakes tasks       carried.h
 *     at_work          it works for executors, or is lent     contd__at_work_begin(), _end()
 *     watched          what it runs, for the watchdog         run.h: with `frame`
 *     checkpoint       when its next look is due              checkpoint.c, contd__checkpoint_now_sig()
 *
 * Each field is written by the functions in its row, which stand in the named file of this folder; with carried.h goes
 * carried.c. The fields without a row are written by the functions of this unit.
 *
 * What excludes what. `looking` begins on CONTEXT_THREAD, outside continuations. Only on CONTEXT_THREAD is anything
 * taken. What is in `take` does not run while sources are driven: if a source calls a function of the program that
 * looks for continuations, it gets a slot first. What could go to `take` or to `waking` goes to `take`.
 */
struct contd__self {
	uint8_t registered; /* RCU reader, listed */
	uint8_t context;    /* enum contd__context */
	uint8_t looking;
	struct contd_tls *tls; /* of the thread, for contd_fini() */
	uint32_t tid;          /* of the thread, once it is registered */
	struct contd__frame *frame;
	struct contd__testing *testing;
	struct contd__carrying carried;
	struct contd__at_work *at_work;
	struct contd__outlet *untold; /* an executor whose threads are to be woken later, or NULL (executor_sig.c) */
	const struct contd__outlet_ops *untold_ops; /* the functions of such an executor, which outlive it; or NULL */
	struct contd__watched watched;
	struct contd__checkpoint checkpoint;
	uint64_t work; /* what looks on this thread have spent on work, and not on looking; in clock ticks */
	struct contd__counters counters;
	struct cds_list_head node; /* all threads (thread_list.c) */
};

extern const uint32_t contd__never_rung; /* what checkpoints watch if there is no bell */

CONTD_INTERNAL_API extern __thread struct contd__self contd__self __attribute__((tls_model("initial-exec")));

/* The next checkpoint of this thread asks. Those that were counted off stay counted: the rate is right. */
static inline void contd__checkpoint_now_sig(void)
{
	if (contd__self.checkpoint.calls >= contd__tls.checkpoint)
		contd__self.checkpoint.calls -= contd__tls.checkpoint;
	contd__tls.checkpoint = 0;
}

/* Is this thread lent to the executor? Loans nest. */
static inline bool contd__lent_to_sig(const struct contd__outlet *o)
{
	const struct contd__at_work *w = contd__self.at_work;

	while (w && !(w->loan && w->outlet == o))
		w = w->outer;
	return w != NULL;
}

/* These go around an executor's work, and around a loan. */
static inline void contd__at_work_begin(struct contd__at_work *w, struct contd__outlet *outlet,
					const struct contd_group *group, bool loan)
{
	*w = (struct contd__at_work){outlet, group, loan, contd__self.at_work};
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* a region's handler walks along them */
	contd__self.at_work = w;
}

static inline void contd__at_work_end(const struct contd__at_work *w)
{
	contd__self.at_work = w->outer;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline bool contd__in_continuation_sig(void)
{
	return contd__self.frame != NULL;
}

/* Continuations of g that are on this thread's stack, those that have given g back too. */
static inline uint32_t contd__frames_of_sig(const struct contd_group *g)
{
	uint32_t n = 0;

	for (const struct contd__frame *f = contd__self.frame; f; f = f->outer)
		n += f->group == g || f->given_back == g;
	return n;
}

/* Is the continuation of this slot on this thread's stack? */
static inline bool contd__frames_have_sig(const struct contd__slot *s)
{
	const struct contd__frame *f = contd__self.frame;

	while (f && f->slot != s)
		f = f->outer;
	return f != NULL;
}

/* g is given back: its memory may become another group's. So frames on this thread's stack no longer name it. */
static inline void contd__frames_give_back(const struct contd_group *g)
{
	for (struct contd__frame *f = contd__self.frame; f; f = f->outer)
		if (f->group == g) {
			f->given_back = g;
			f->group = NULL;
		}
}

/* Does this thread run one continuation only, with none around it? Of a thread that runs one. */
static inline bool contd__frame_is_outermost_sig(void)
{
	return !contd__self.frame->outer;
}

/* Is one of g's continuations on this thread's stack, or a task that one of them has become? */
static inline bool contd__inside_sig(const struct contd_group *g)
{
	for (const struct contd__frame *f = contd__self.frame; f; f = f->outer)
		if (f->group == g)
			return true;
	for (const struct contd__at_work *w = contd__self.at_work; w; w = w->outer)
		if (w->group == g)
			return true;
	return false;
}

/* A look on this thread has spent so much on work; in clock ticks. */
static inline void contd__worked_sig(uint64_t ticks)
{
	contd__self.work += ticks;
}

/* Does this thread run a continuation, or an executor's work? */
static inline bool contd__at_something_sig(void)
{
	return contd__self.frame || contd__self.at_work;
}

/*
 * Functions for ordinary threads that are called by code that handlers reach, too, when it finds itself on an ordinary
 * thread. They are pointers, so that the check of imported symbols (scripts/check-async-signal-safe) holds for that
 * code without exceptions.
 */
struct contd__ordinary {
	void (*thread_register)(void);
	int (*grow)(struct contd__table *t, uint32_t seen_limit);
};

CONTD_INTERNAL_API extern const struct contd__ordinary *contd__ordinary;

#if defined(__x86_64__)
#define CONTD_COUNT(field, n) \
	__asm__ volatile("addq %1, %0" : "+m"(contd__self.counters.field) : "er"((uint64_t)(n)) : "cc")
#else
#define CONTD_COUNT(field, n) ((void)__atomic_fetch_add(&contd__self.counters.field, (n), __ATOMIC_RELAXED))
#endif

/* In contd's handler, outside a region: only async-signal-safe things. */
static inline bool contd__in_handler(void)
{
	return contd__self.context == CONTEXT_HANDLER;
}

static inline bool contd__on_thread_sig(void)
{
	return contd__self.context == CONTEXT_THREAD;
}

static inline bool contd__in_region_look_sig(void)
{
	return contd__self.context == CONTEXT_REGION;
}

static inline bool contd__on_daemon_sig(void)
{
	return contd__self.context == CONTEXT_DAEMON;
}

/* These go around a look. */
static inline enum contd__context contd__context_enter_sig(enum contd__context to)
{
	enum contd__context before = (enum contd__context)contd__self.context;

	contd__store(&contd__self.context, (uint8_t)to); /* the watchdog reads it */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return before;
}

static inline void contd__context_leave_sig(enum contd__context before)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&contd__self.context, (uint8_t)before);
}

/* contd_init(): make what threads need once per process. 0, -EAGAIN. */
int contd__threads_start(void);

/* In the child of a fork, whose only thread this is: it has another number than in the parent. */
static inline void contd__threads_forked(void)
{
	contd__self.tid = 0;
}

/* The calling thread's number becomes known. It may be known already. */
void contd__thread_number_sig(void);

/* Registers the calling thread, which is not registered yet; ordinary threads only. */
CONTD_INTERNAL_API void contd__thread_register(void);

static inline void contd__thread_ensure(void)
{
	if (__builtin_expect(!contd__self.registered, 0))
		contd__thread_register();
}

/* Threads that are registered. */
extern uint32_t contd__threads_count;

/* All of them, of struct contd__self. Changed under a lock; a dump reads it without. */
extern struct cds_list_head contd__threads;

/* Called when a thread ends, for src/signal; or NULL. */
extern void (*contd__thread_end)(void);

static inline void contd__thread_end_calls(void (*end)(void))
{
	contd__store_release(&contd__thread_end, end);
}

/* The calling thread's counters join the sum; at its end they are kept in it. Ordinary threads; may block. */
void contd__threads_enter(void);
void contd__threads_leave(void);

/* Continuations that run now, if the watchdog is on; at most `room`. Returns how many. Ordinary threads; may block. */
struct contd__running {
	const void *site;
	uint64_t since; /* in clock ticks */
	uint8_t context;
};
unsigned contd__threads_running(struct contd__running *running, unsigned room);

/* Does any other thread run a callback now? It may begin or end one at any moment. Ordinary threads; may block. */
CONTD_INTERNAL_API bool contd__threads_other_in_callback(void);

/* No thread's checkpoints watch the bell any more: its page is about to go. Ordinary threads; may block. */
void contd__threads_unwatch(void);

/* The counters of all threads, those that have ended too; all of them to zero. Ordinary threads; may block. */
void contd__threads_sum(struct contd__counters *sum);
void contd__threads_zero(void);

/*
 * For executors. The first: this thread wakes o's threads later. The second: it has woken them, or is about to.
 * contd__lent (task/executor.h) says how handlers are kept out.
 */
static inline void contd__untold_put_sig(struct contd__outlet *o, const struct contd__outlet_ops *ops)
{
	contd__self.untold_ops = ops;
	contd__self.untold = o;
}

static inline void contd__untold_none_sig(void)
{
	contd__self.untold = NULL;
}

/*
 * Wake the threads that were to be woken later. Also before a callback that runs in the call that registers it.
 *
 * A signal handler of the program sees in `take`, or in contd__lent.tells_later, that a thread wakes others later, and
 * then leaves that to it. So the caller first sets that back, and only then this looks: a handler that comes after this
 * look wakes them itself.
 */
CONTD_INTERNAL_API void contd__wake_all_untold_sig(void);
static inline void contd__wake_untold_sig(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(contd__self.untold != NULL, 0))
		contd__wake_all_untold_sig();
}

#endif
