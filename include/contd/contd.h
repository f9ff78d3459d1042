/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd: run a callback (a continuation) when an asynchronous operation completes.
 *
 * Words: a *group* holds continuations and carries their rules; an *event* is what completes; a *scan* runs what is
 * ready; an *attached thread* may be interrupted; in a *compute region* it declares that it only computes.
 *
 * Context tags, used by every declaration below:
 *   any thread       any thread of the program, outside signal handlers
 *   attached thread  a thread that called contd_thread_attach()
 *   handler          allowed in a signal handler, whatever it interrupted; keeps errno
 *   in a callback    allowed inside a continuation that runs on an application thread or in a compute region. Inside a
 *                    continuation that runs in a handler elsewhere, only what is tagged "handler" is allowed
 *   may block        may wait for other threads
 *
 * Functions return 0 or a count on success and -errno on failure. On failure nothing has changed, outputs are
 * untouched, and contd_error_text() says what to do.
 *
 * Structures that begin with `size` may grow in later versions. Set it to the sizeof of the structure. A program that
 * was compiled against an older header gives a shorter one: the missing fields have their defaults. Against a newer
 * header: what this contd does not know must be zeros, or the call fails with -E2BIG. -EINVAL: no structure has this
 * size.
 */
#ifndef CONTD_CONTD_H
#define CONTD_CONTD_H

#include <stddef.h>
#include <stdint.h>

#define CONTD_VERSION_MAJOR 0
#define CONTD_VERSION_MINOR 1
#define CONTD_VERSION_PATCH 0

#if defined(__GNUC__)
#define CONTD_API __attribute__((visibility("default")))
#else
#define CONTD_API
#endif

#ifdef __cplusplus
extern "C" {
#define CONTD_NOEXCEPT noexcept
#else
#define CONTD_NOEXCEPT
#endif

/* ----------------------------------------------------------------------------------------------- the dispatcher --- */

/* Who makes progress while the application calls nothing. */
enum contd_agent {
	CONTD_AGENT_DEFAULT = 0, /* CONTD_AGENT_REGION, unless CONTD_AGENT in the environment says otherwise */
	CONTD_AGENT_CALLER,      /* nobody: continuations run in test, wait, poll and at notifications only */
	CONTD_AGENT_REGION,      /* timer signals on attached threads */
	CONTD_AGENT_TICK,        /* timer signals, and a daemon thread that ticks */
	CONTD_AGENT_BLOCK,       /* the same, but the daemon sleeps on file descriptors of sources that have them */
	CONTD_AGENT_SPIN         /* the same, but the daemon never sleeps while something is pending: a whole core */
};

/* What to do when the signal that contd wants has a handler already. */
enum contd_signal_taken {
	CONTD_SIGNAL_REFUSE = 0, /* contd_init() fails with -EBUSY */
	CONTD_SIGNAL_CHAIN       /* signals that are not contd's go on to the handler that was there */
};

/* May peer processes ring for this one: contd_bell_listen(). */
enum contd_bell_use { CONTD_BELL_DEFAULT = 0, CONTD_BELL_ON, CONTD_BELL_OFF };

/* What took longer than watchdog_ns. */
struct contd_late {
	const char *what;   /* "continuation", "handler" or "source" */
	const char *where;  /* "thread", "handler", "region" or "daemon" */
	const void *site;   /* the callback, or the function that was called; dladdr(3) */
	const char *symbol; /* its name, or NULL where it has none that dladdr(3) finds */
	uint64_t ns;        /* how long it took; with `running` so far */
	int running;        /* it has not returned */
};

/* Called by contd's watchdog thread, once a site. */
typedef void contd_watchdog(const struct contd_late *late, void *data);

/*
 * Settings. Zero means the default everywhere; set `size` to sizeof(struct contd_config). A CONTD_* variable of the
 * environment, where set, has the last word; a malformed or out-of-range value is -EINVAL, never ignored.
 */
struct contd_config {
	size_t size;
	int signal_number; /* CONTD_SIGNAL: SIGRTMIN..SIGRTMAX; default SIGRTMAX - 3 */
	int signal_taken;  /* CONTD_SIGNAL_CHAIN=0|1: enum contd_signal_taken */
	int agent;         /* CONTD_AGENT=caller|region|tick|block|spin: enum contd_agent */
	/* CONTD_OVERHEAD_PERCENT: 0.1 to 50, share of a thread's time ticks may cost; default 2 */
	double overhead_percent;
	uint64_t tick_min_ns; /* CONTD_TICK_MIN_NS: shortest tick, 1000 to 1e9 ns; default 10 µs */
	uint64_t tick_max_ns; /* CONTD_TICK_MAX_NS: longest tick, tick_min_ns to 1e10 ns; default 10 ms */
	/* CONTD_SCAN_COUNT: continuations a handler's scan runs at most, 1 to 1e6; default 64 */
	uint32_t scan_count;
	/* CONTD_SCAN_NS: time after which it starts no other one, 1000 to 1e9 ns; default 50 µs */
	uint64_t scan_ns;
	int bell; /* CONTD_BELL=0|1: enum contd_bell_use; default on */
	/* CONTD_WATCHDOG_NS: report callbacks and handlers over this, 1000 to 1e12 ns; default: none */
	uint64_t watchdog_ns;
	contd_watchdog *watchdog; /* who is told; default: a line on stderr */
	void *watchdog_data;
	const char *daemon_name; /* CONTD_DAEMON_NAME: 1 to 15 characters; default "contd" */
	/* CONTD_DAEMON_CPUS: "0,2-3": where it may run; default: as the thread that starts it */
	const char *daemon_cpus;
	/* CONTD_DAEMON_SCHED: other|batch|idle|fifo|rr[:priority]; fifo, rr: 1 to 99; else nice */
	const char *daemon_sched;
};

/*
 * Start the dispatcher (one a process), or count one more user of a running one. cfg may be NULL: all defaults. For a
 * running dispatcher cfg must be NULL, else -EALREADY.
 * Context: any thread, in a callback; may block. Errors: -EINVAL, -EBUSY (signal taken: sigaction(2); or, in a callback
 * that a region's handler or the daemon runs, another thread is in this call, in contd_configure() or in contd_fini()),
 * -ENOMEM, -EAGAIN (no thread for the daemon), -EPERM (in a handler), -ECHILD (after fork).
 */
CONTD_API int contd_init(const struct contd_config *cfg) CONTD_NOEXCEPT;

/*
 * Change settings of the running dispatcher: fields that are not zero, with the last word for the environment again.
 * The agent is switched: another one takes over at once. signal_number, signal_taken and bell can't be changed.
 * Context: any thread, in a callback; may block. Errors: -EINVAL; -EBUSY (one that can't be changed is other than it
 * is; or, in a callback that a region's handler runs, another thread is in this call, in contd_init() or in
 * contd_fini()); for the daemon's settings what sched_setaffinity(2) and sched_setscheduler(2) say (-EPERM: no
 * privilege for fifo, rr); -EAGAIN (no thread for the daemon or the watchdog); -EPERM (not initialized, in a handler),
 * -ECHILD.
 */
CONTD_API int contd_configure(const struct contd_config *cfg) CONTD_NOEXCEPT;

/*
 * Drop one user; the last one stops daemon and timers and frees everything. Attached threads are detached; calls of
 * other threads must have returned. The count of continuations that never ran is returned. An event that one of them
 * waited for must not be completed afterwards; contd_event_init() makes it usable again.
 * Context: any thread, not in a callback; may block. Errors: -EPERM (not initialized), -EDEADLK (in a callback).
 */
CONTD_API int contd_fini(void) CONTD_NOEXCEPT;

/* What the last failed call of this thread means and what to do; never NULL, "" if none failed. Any thread. */
CONTD_API const char *contd_error_text(void) CONTD_NOEXCEPT;

/* (major << 16) | (minor << 8) | patch of the library that is loaded. Any thread, handler. */
CONTD_API uint32_t contd_version(void) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------------- groups --- */

struct contd_group;

/*
 * A continuation. status is 0, or the first status other than 0 with which one of its events was completed.
 * It runs with no lock of contd's held, once.
 */
typedef void contd_callback(int status, void *data);

enum contd_group_flags {
	CONTD_POLL_ONLY = 1, /* run in contd_group_test/wait on this group only */
	/* never run inside the call that registers; if async-signal-safe, by a tick soon after it */
	CONTD_ENQUEUE_COMPLETE = 2,
	CONTD_THREAD_ANY = 4,       /* may also run on contd's daemon thread */
	CONTD_ASYNC_SIGNAL_SAFE = 8 /* callbacks are async-signal-safe (signal-safety(7)): may run in the handler */
};

/*
 * A scan runs what is ready in groups of high priority first, then normal ones, then low ones. When its budget has
 * ended before the lower ones had their turn, every fourth scan begins with them: nothing starves.
 */
enum contd_priority { CONTD_PRIORITY_LOW = -1, CONTD_PRIORITY_NORMAL = 0, CONTD_PRIORITY_HIGH = 1 };

/* Begin with CONTD_GROUP_ATTR_INIT, and set what is to be different. */
struct contd_group_attr {
	size_t size;       /* sizeof(struct contd_group_attr) */
	uint32_t flags;    /* enum contd_group_flags */
	int32_t max_poll;  /* how many of the group's continuations run at once: see below; -1: no limit */
	int32_t priority;  /* enum contd_priority */
	uint32_t reserved; /* 0: for later versions */
};

/*
 * max_poll says how many continuations of the group run in one go. -1, as in CONTD_GROUP_ATTR_INIT, is no limit.
 *
 * n > 0: each of these runs at most n continuations of the group:
 *   - a contd_group_test() of it, with all that happens during the test;
 *   - an interruption: a tick, a notification, a contd_checkpoint(), the end of a guard, a completion on an attached
 *     thread. During a test of the group an interruption of that thread runs none of it;
 *   - each look of another call at all that is ready: contd_poll(), a test or wait of another group, an MPI call.
 * What is left stays ready. The next call may run it. If the group is async-signal-safe, or the thread computes in a
 * region, a tick comes soon, with every agent. The daemon has no such limit, and a wait for the group ends when all
 * have run, also a wait in a callback that a test of the group runs.
 *
 * 0: tests of the group and interruptions run none of it; other calls, waits and the daemon run it without a limit.
 * Refused with CONTD_POLL_ONLY, where nothing would ever run. A structure that was filled with zeros has this.
 */

/* clang-format off */
#define CONTD_GROUP_ATTR_INIT {sizeof(struct contd_group_attr), 0, -1, CONTD_PRIORITY_NORMAL, 0}
/* clang-format on */

/*
 * attr may be NULL: CONTD_GROUP_ATTR_INIT.
 * Context: any thread, in a callback; may block. Errors: -EINVAL, -ENOMEM, -EAGAIN (4096 groups exist with the same
 * CONTD_THREAD_ANY and CONTD_ASYNC_SIGNAL_SAFE flags that are not poll-only), -EPERM (not initialized), -ECHILD.
 */
CONTD_API int contd_group_create(const struct contd_group_attr *attr, struct contd_group **groupp) CONTD_NOEXCEPT;

/*
 * Give the handle back. Continuations that are outstanding still run, those of a poll-only group as if it were not; the
 * group is freed after the last.
 * Context: any thread, in a callback. Errors: -EINVAL (NULL), -EPERM (in a handler), -EAGAIN (poll-only with some
 * outstanding, and all of the 4096 places of other groups are taken: wait for it first).
 */
CONTD_API int contd_group_destroy(struct contd_group *group) CONTD_NOEXCEPT;

/*
 * Run ready continuations of the group, max_poll at most, and then of other groups that are not poll-only; tell in
 * *completep whether nothing registered with the group is outstanding. Inside one of the group's own continuations
 * *completep is 0. Returns how many were run.
 * Context: any thread, in a callback. Errors: -EINVAL.
 */
CONTD_API int contd_group_test(struct contd_group *group, int *completep) CONTD_NOEXCEPT;

/*
 * As test, until the group is complete or timeout_ns has passed (-1: no limit), asleep while nothing is ready.
 * max_poll does not limit it. Context: any thread, in a callback; blocks. Errors: -EINVAL, -ETIMEDOUT, -EDEADLK (inside
 * one of the group's own continuations), -EPERM (in a handler).
 */
CONTD_API int contd_group_wait(struct contd_group *group, int64_t timeout_ns) CONTD_NOEXCEPT;

/* Number of registered continuations that have not finished; a momentary figure. Any thread, handler. */
CONTD_API uint32_t contd_group_outstanding(const struct contd_group *group) CONTD_NOEXCEPT;

/* -------------------------------------------------------------------------------------------- registered
 * continuations */

/* Names one registered continuation; valid while its group exists. A stale one is recognized. */
struct contd_handle {
	void *slot;
	uint64_t generation;
};

/*
 * Withdraw a continuation that nobody has started to run. 0: it will never run. -EALREADY: it runs, ran, or was
 * cancelled. On return its events are free to be reused and its memory word is not read any more.
 * Context: any thread, in a callback; may block. Errors: -EINVAL, -EALREADY, -EPERM (in a handler).
 */
CONTD_API int contd_cancel(struct contd_handle handle) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------------- events --- */

/* An operation that the program completes itself. The memory is the caller's; the fields are contd's. */
struct contd_event {
	uint64_t word;
	struct contd_event *next;
};

/* clang-format off */
#define CONTD_EVENT_INIT {0, NULL}
/* clang-format on */

/* In an operation that carries its continuation (contd_fabric_begin_continue()); not for programs. */
struct contd_carried {
	struct contd_event event;
	struct contd_group *group; /* NULL: it carries none */
	contd_callback *cb;
	void *data;
	int32_t status;
};

/* Make *event pending. It must have no continuation attached. NULL does nothing. Any thread, handler. */
CONTD_API void contd_event_init(struct contd_event *event) CONTD_NOEXCEPT;

/*
 * Register cb(status, data) with group, to run when all n events are complete (n = 0: now). If all are complete
 * already it may run inside this call (see CONTD_ENQUEUE_COMPLETE), never inside another continuation.
 * handlep may be NULL; *handlep is set before cb can run.
 * The events must stay in place until the continuation has started or contd_cancel() has returned; in the continuation
 * they may be initialized and used anew.
 * Context: any thread, in a callback; also in a callback that runs in contd's handler, while the group's reserve of
 * slots (32 at least, where growing could provide them) lasts: then -EAGAIN. Not in other handlers.
 * Errors: -EINVAL (NULL, n > 2^24 - 3), -EBUSY (an event has a continuation), -ENOMEM, -EAGAIN (in a handler), -ENOSPC
 * (2^24 outstanding).
 */
CONTD_API int contd_event_continue(size_t n, struct contd_event *const events[], contd_callback *cb, void *data,
				   struct contd_group *group, struct contd_handle *handlep) CONTD_NOEXCEPT;

/*
 * The operation is complete, with status 0 or a code of the caller's. The continuation is made ready. It runs here and
 * now if the caller is an attached thread outside guards and continuations, and either the group is async-signal-safe
 * or the thread computes in a region. Otherwise an attached thread that may run it is notified by signal: of an
 * async-signal-safe group any, of others one that computes in a region. What nobody may be interrupted for waits for
 * test, wait, poll, or the next region (docs/signals.md has the table).
 * Context: any thread, handler, in a callback. Errors: -EALREADY (complete before), -EINVAL. In the child of a fork the
 * event becomes complete and nothing runs.
 */
CONTD_API int contd_event_complete(struct contd_event *event, int status) CONTD_NOEXCEPT;

/* 1 if complete, else 0, for NULL too. Any thread, handler, in a callback. */
CONTD_API int contd_event_is_complete(const struct contd_event *event) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------- memory words --- */

enum contd_word_op { CONTD_WORD_EQ, CONTD_WORD_NE, CONTD_WORD_GE };

/* Condition: (*address & mask) OP value, unsigned. The word must be aligned and is read with acquire order. */
struct contd_word {
	const volatile uint64_t *address;
	uint64_t mask; /* 0 means all bits */
	uint64_t value;
	int op; /* enum contd_word_op */
};

/*
 * Register cb(0, data), to run when the condition is found to hold: by a tick on an attached thread, the daemon, or
 * any test, wait or poll; a condition that held only in between may be missed. The word must stay readable until the
 * continuation has started or contd_cancel() has returned. *word is copied.
 * Context: any thread, in a callback; may block. Errors: -EINVAL, -ENOMEM, -EPERM (in a handler).
 */
CONTD_API int contd_word_continue(const struct contd_word *word, contd_callback *cb, void *data,
				  struct contd_group *group, struct contd_handle *handlep) CONTD_NOEXCEPT;

/*
 * Register cb(0, data) with group, to run when `awaited` is complete. One continuation a group at a time.
 * Context: any thread, in a callback. Errors: -EINVAL, -EBUSY (awaited has one), -ELOOP (a cycle), -ENOMEM.
 */
CONTD_API int contd_group_continue(struct contd_group *awaited, contd_callback *cb, void *data,
				   struct contd_group *group, struct contd_handle *handlep) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------- running what is ready: poll,
 * fd */

/*
 * Run up to max (0: no limit) ready continuations of groups that are not poll-only. Returns how many ran.
 * Context: any thread, in a callback.
 */
CONTD_API int contd_poll(uint32_t max) CONTD_NOEXCEPT;

/*
 * A file descriptor (eventfd(2), non-blocking) that is readable while continuations wait for contd_poll(); for epoll,
 * poll(2), libuv. contd_poll() clears it; never read or close it. The same one each time.
 * Context: any thread. Errors: -EMFILE and what else eventfd(2) says, -EPERM.
 */
CONTD_API int contd_fd(void) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------ threads and signals --- */

struct contd_thread_attr {
	size_t size;
	uint32_t flags;       /* 0 */
	uint32_t stack_bytes; /* what callbacks need of the thread's stack when interrupted; default 16384 */
};

/*
 * Let this thread be interrupted by contd's signal, to run async-signal-safe continuations and, in compute regions,
 * anything. attr may be NULL. Nested attach calls count. A thread that exits is detached.
 * Context: any thread, in a callback that no handler runs, nor the daemon; may block. Errors: -ENOBUFS (not enough
 * stack left: pthread_attr_setstacksize(3)), -EAGAIN (no timer to be had: timer_create(2), RLIMIT_SIGPENDING), -EPERM
 * (not initialized; in a handler; on the daemon), -EINVAL, -ENOMEM, -ECHILD.
 */
CONTD_API int contd_thread_attach(const struct contd_thread_attr *attr) CONTD_NOEXCEPT;

/* Context: attached thread, outside regions, guards and continuations; may block. Errors: -EPERM, -EBUSY. */
CONTD_API int contd_thread_detach(void) CONTD_NOEXCEPT;

/* The part of the thread-local state that the inline functions use; not for programs. */
struct contd_tls {
	uint32_t region;
	uint32_t guard;
	uint32_t flags;        /* CONTD__TLS_* */
	uint32_t checkpoint;   /* calls of contd_checkpoint() until it looks */
	const uint32_t *watch; /* this process's bell, where checkpoints watch it: 0 once it was rung; never NULL */
};
#define CONTD__TLS_ATTACHED 1u
#define CONTD__TLS_MISSED 2u
#define CONTD__TLS_REARM 4u
extern CONTD_API __thread struct contd_tls contd__tls __attribute__((tls_model("initial-exec")));
extern CONTD_API uint32_t contd__ready; /* classes of groups that have something ready */
CONTD_API void contd__region_rearm(void) CONTD_NOEXCEPT;
CONTD_API void contd__guard_pickup(void) CONTD_NOEXCEPT;
CONTD_API void contd__checkpoint(void) CONTD_NOEXCEPT;
CONTD_API void contd__unbalanced(uint32_t what) CONTD_NOEXCEPT;
#define CONTD__END_OF_REGION 1u
#define CONTD__END_OF_GUARD 2u

/*
 * From here to the matching end this thread runs only async-signal-safe code: plain computation, no malloc, no stdio,
 * no MPI, no contd call but those tagged "handler". contd may interrupt it at any instruction and drive MPI or fabric
 * progress and run any continuation there, as if the thread had called contd_poll(). What is ready already runs inside
 * this call. Nests; about a nanosecond, and some hundred after contd has completed something outside regions.
 * On a thread that is not attached it does nothing.
 * Context: any thread, in a callback (where it has no effect until the callback returns).
 */
static inline void contd_compute_begin(void)
{
	struct contd_tls *tls = &contd__tls;

	__atomic_store_n(&tls->region, tls->region + 1, __ATOMIC_RELAXED); /* others ask which threads compute */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&tls->flags, __ATOMIC_RELAXED) & CONTD__TLS_REARM, 0))
		contd__region_rearm();
}

/* Without a matching begin it changes nothing; contd_error_text() says so, and a line on stderr, once a process. */
static inline void contd_compute_end(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(contd__tls.region == 0, 0))
		contd__unbalanced(CONTD__END_OF_REGION);
	else
		__atomic_store_n(&contd__tls.region, contd__tls.region - 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/*
 * From here to the matching end no continuation runs on this thread by signal: for data that async-signal-safe
 * callbacks share with the thread. What a signal would have run is run at the end. Nests; about a nanosecond, no
 * system call. Context: any thread, in a callback, handler.
 */
static inline void contd_guard_begin(void)
{
	contd__tls.guard++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Without a matching begin: as contd_compute_end(). */
static inline void contd_guard_end(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(contd__tls.guard == 0, 0)) {
		contd__unbalanced(CONTD__END_OF_GUARD);
		return;
	}
	contd__tls.guard--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&contd__tls.flags, __ATOMIC_RELAXED) & CONTD__TLS_MISSED, 0) &&
	    contd__tls.guard == 0)
		contd__guard_pickup();
}

/*
 * What the handler would do if it interrupted the thread here, for loops that can afford about a nanosecond: inside a
 * compute region anything that is ready runs, elsewhere async-signal-safe continuations. Memory words and sources are
 * looked at so often that the looks stay inside the overhead budget; where peers ring, as soon as one has, without a
 * signal. On a thread that is not attached too. Nothing under a guard, nor in a callback.
 * Context: any thread.
 */
static inline void contd_checkpoint(void)
{
	struct contd_tls *tls = &contd__tls;

	if (__builtin_expect(__atomic_load_n(&contd__ready, __ATOMIC_RELAXED) != 0, 0) ||
	    __builtin_expect(__atomic_load_n(tls->watch, __ATOMIC_RELAXED) == 0, 0) ||
	    __builtin_expect(tls->checkpoint-- == 0, 0))
		contd__checkpoint();
}

/* ---------------------------------------------------------------------------------------------------- doorbells --- */

/*
 * Processes of one user on one host ring for each other. A process that waits arms its bell, a word in a page that it
 * shares; a peer that has just sent it something looks at that word, nanoseconds, and only where it is armed rings: a
 * signal to the thread that waits in a compute region, or a wake-up of the daemon. One ring at most for each arming;
 * when rings would cost more than the overhead budget the process ticks instead, for a while. What is missed (a peer
 * that does not ring, or died) the ticks find, which bells make rarer.
 * contd-mpi listens by itself, and its ring library rings after MPI calls; these calls are for other sources.
 */
struct contd_bell {
	const uint64_t *armed; /* in the peer's page; not for programs */
};

/*
 * Let peers find this process by (job, number): job is the same text in all processes that belong together, 1 to 64
 * characters. Once a process: again with the same names does nothing.
 * Context: any thread; may block. Errors: -EINVAL, -EADDRINUSE (another process has that number), -EALREADY (listens by
 * another name), -EOPNOTSUPP (bell is CONTD_BELL_OFF), what memfd_create(2), mmap(2), socket(2) say, -EPERM, -ECHILD.
 */
CONTD_API int contd_bell_listen(const char *job, uint32_t number) CONTD_NOEXCEPT;

/*
 * Find a peer. contd need not be initialized. Context: any thread; may block shortly.
 * Errors: -EINVAL; -ENOENT (nobody listens by that name: a peer without contd, not yet, or not any more); -EACCES
 * (another user's process); -EPROTO (another version of contd); -ENOMEM and what else open(2), mmap(2), pidfd_open(2)
 * say.
 */
CONTD_API int contd_bell_create(const char *job, uint32_t number, struct contd_bell **bellp) CONTD_NOEXCEPT;

/* Context: any thread; no other thread may ring it any more. NULL does nothing. */
CONTD_API void contd_bell_destroy(struct contd_bell *bell) CONTD_NOEXCEPT;

CONTD_API int contd__bell_ring(struct contd_bell *bell) CONTD_NOEXCEPT;

/*
 * After something was made visible to the peer (a message, a store): ring, if it waits. Returns 1 if it rang, 0 if the
 * peer was not waiting, -ESRCH where the peer has ended, -EAGAIN where the kernel refuses (RLIMIT_SIGPENDING).
 * Context: any thread, handler, in a callback.
 */
static inline int contd_bell_ring(struct contd_bell *bell)
{
	/* Store, then load: what was sent must be visible before the look. Partner: who arms, and then looks again. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(bell->armed, __ATOMIC_RELAXED) ? contd__bell_ring(bell) : 0;
}

/* ------------------------------------------------------------------------------------------------------- daemon --- */

struct contd_daemon_attr {
	size_t size;
	uint64_t tick_ns; /* time between two looks; 0: as short as the overhead budget allows, measured */
};

/*
 * Start a thread that looks at memory words and other sources while they have something pending, runs CONTD_THREAD_ANY
 * continuations, and notifies attached threads of async-signal-safe ones. It sleeps while nothing is pending. How it
 * waits in between is the agent's choice (CONTD_AGENT_TICK, _BLOCK, _SPIN; ticks with the others); its name, processors
 * and scheduling are settings. attr may be NULL. Calls count; the last contd_daemon_stop() ends it.
 * Context: any thread, in a callback that the daemon does not run; may block. Errors: -EINVAL, -EAGAIN
 * (pthread_create(3)), -EBUSY (runs with another tick_ns), -EPERM, -EDEADLK (on the daemon; in a handler outside
 * regions), and what the settings' calls say (contd_configure()).
 */
CONTD_API int contd_daemon_start(const struct contd_daemon_attr *attr) CONTD_NOEXCEPT;
CONTD_API int contd_daemon_stop(void) CONTD_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------- statistics --- */

#define CONTD_HISTOGRAM_BUCKETS 40

/* Counts since contd_init(), summed over threads; momentary, each exact once the threads are quiet. */
struct contd_stats {
	size_t size;          /* in: sizeof(struct contd_stats) */
	uint64_t registered;  /* continuations registered */
	uint64_t run;         /* callbacks run, all contexts */
	uint64_t run_handler; /* of these, in the signal handler outside regions */
	uint64_t run_region;  /* of these, in the signal handler inside a region */
	uint64_t run_daemon;  /* of these, on the daemon thread */
	uint64_t run_inline;  /* of these, inside the call that registered them */
	uint64_t cancelled;
	uint64_t ticks;          /* timer signals handled on attached threads */
	uint64_t notifications;  /* notification signals sent */
	uint64_t notify_failed;  /* notifications that the kernel refused (queue full): a tick came instead */
	uint64_t guarded;        /* signals that arrived under a guard */
	uint64_t overruns;       /* timer expirations merged by the kernel: timer_getoverrun(2) */
	uint64_t handler_ns;     /* time spent in the handler */
	uint64_t lost_ns;        /* time lost to ticks, what the kernel costs included (measured at start) */
	uint64_t tick_cost_ns;   /* what one empty tick costs a thread here, 0 until measured */
	uint64_t tick_ns;        /* the interval now in force on the calling thread, 0: not ticking */
	uint64_t scans;          /* scans that found something marked */
	uint64_t grown;          /* table chunks added */
	uint64_t rings;          /* doorbell signals handled, and wake-ups of the daemon by bells */
	uint64_t rings_sent;     /* rings for peers */
	uint64_t put_off;        /* notifications that the overhead budget left to a tick */
	uint64_t handler_max_ns; /* the longest handler */
	/* latency[b]: continuations that waited from ready to run for 2^b to 2^(b+1) - 1 ns (b = 0: 0 and 1 ns) */
	uint64_t latency[CONTD_HISTOGRAM_BUCKETS];
};

/* Context: any thread, in a callback; may block. Errors: -EINVAL, -EPERM. */
CONTD_API int contd_stats_get(struct contd_stats *stats) CONTD_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
