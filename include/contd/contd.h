/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd: run a callback (a continuation) when an asynchronous operation completes.
 *
 * Words that this header and the others use in one meaning each:
 *     continuation     a callback with its data, registered to run once when the operations that it waits for
 *                      complete
 *     outstanding      a continuation is outstanding from its registration until its callback has returned, or until
 *                      it has been cancelled
 *     ready            a continuation is ready when all its operations are complete and its callback has not started
 *     group            holds continuations; its attributes say which threads may run them, and how many at a time
 *     event            the state of an operation, pending or complete. Those of struct contd_event are completed by the
 *                      program, with contd_event_complete()
 *     source           something that contd must poll to find completions: a memory word, MPI, a libfabric queue or
 *                      counter
 *     attached thread  a thread that has called contd_thread_attach(); contd may send it signals
 *     compute region   code of a thread between contd_compute_begin() and contd_compute_end(); it only computes
 *     guard            code of a thread between contd_guard_begin() and contd_guard_end(); no interruption there
 *     interruption     contd's signal handler runs on an attached thread: it polls the sources that it may poll
 *                      there, and runs ready continuations that may run there
 *     tick             an interruption by a timer
 *     notification     an interruption by a signal that another thread sends because a continuation is ready
 *     doorbell         a word in shared memory; a process that needs an interruption sets it, and a peer process that
 *                      has sent it something then rings: it interrupts the thread or wakes the daemon
 *     daemon           a thread of contd's that polls sources and runs continuations; it exists only on request
 *     overhead budget  the share of a thread's time that interruptions may cost: overhead_percent in struct
 *                      contd_config
 *
 * Each declaration says in which contexts it may be called:
 *     any thread       any thread of the program, outside signal handlers; several threads at once, also on the same
 *                      object, if nothing else is said
 *     attached thread  attached threads only, outside signal handlers
 *     handler          any signal handler, whatever code it interrupted; errno keeps its value
 *     in a callback    inside a continuation that runs on a thread of the program, on the daemon or in a compute
 *                      region. A continuation that contd's handler runs outside compute regions may make only those
 *                      calls that have the tag "handler", contd_event_continue(), and contd_checkpoint(), which has no
 *                      effect there
 *     may block        the call may wait for other threads
 *
 * contd refuses a call in the wrong context only where it can see the context: in a callback, on the daemon, and "in
 * contd's handler". In the lists of errors that means: in an async-signal-safe continuation that an interruption runs
 * outside compute regions, or that runs by the same rules at the end of a guard, at a checkpoint or inside
 * contd_event_complete(). In a signal handler that the program has installed, and in a compute region, contd cannot see
 * the context: there a forbidden call may return 0, hang or destroy data.
 *
 * Functions that return int return 0 or a count on success, and a negative errno value on failure. A call that fails
 * changes nothing and writes no output, unless its comment says otherwise, and contd_error_text() says what to do. Two
 * errors are possible in every such call and are not repeated below: -EPERM if contd is not initialized (call
 * contd_init() first), and -ECHILD in the child of a fork (use contd in the parent, or after exec). Exceptions:
 * contd_event_complete(), contd_bell_open() and contd_bell_ring() work without contd_init(). Functions that return
 * nothing need no contd_init() either. In a child that was forked while contd did not run, before the first
 * contd_init() or after the last contd_fini(), contd works, unless other threads of the parent had used it and not
 * ended.
 *
 * Structures whose first member is `size` may get more members in later versions. Set `size` to the sizeof of the
 * structure. A shorter structure, from an older header, is accepted, and the missing members have their defaults. A
 * longer one, from a newer header, is accepted if the members that this version does not know are zero; else the call
 * fails with -E2BIG. A size that no version has is -EINVAL. (In struct contd_stats, an output, unknown members are
 * set to zero.)
 */
#ifndef CONTD_CONTD_H
#define CONTD_CONTD_H

#include <stddef.h>
#include <stdint.h>

#define CONTD_VERSION_MAJOR 0
#define CONTD_VERSION_MINOR 2
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

/* ----------------------------------------------------------------------------------------------- initialization --- */

/* Which agent makes progress while the program calls neither contd nor MPI. */
enum contd_agent {
	CONTD_AGENT_DEFAULT = 0, /* CONTD_AGENT_REGION */
	CONTD_AGENT_CALLER,      /* none: no ticks, no daemon; contd only sends notifications */
	CONTD_AGENT_REGION,      /* ticks on attached threads */
	CONTD_AGENT_TICK,        /* ticks on attached threads, and a daemon that sleeps between two polls */
	CONTD_AGENT_BLOCK,       /* the same, but the daemon sleeps on file descriptors of sources that have them */
	CONTD_AGENT_SPIN         /* the same, but while something is pending the daemon never sleeps: a whole core */
};

/* How contd_init() proceeds if the signal that contd wants is ignored or has a handler already. */
enum contd_signal_taken {
	CONTD_SIGNAL_REFUSE = 0, /* it fails with -EBUSY */
	/*
	 * It takes the signal, and passes foreign signals to the earlier handler; what that blocks is blocked. Its
	 * SA_RESETHAND, SA_NODEFER and SA_ONSTACK do not hold.
	 */
	CONTD_SIGNAL_CHAIN
};

/* Whether peer processes may ring for this process: contd_bell_listen(). The default is on. */
enum contd_bell_use { CONTD_BELL_DEFAULT = 0, CONTD_BELL_ON, CONTD_BELL_OFF };

/* How much contd says on stderr: each value includes the ones before it. */
enum contd_verbose {
	CONTD_VERBOSE_DEFAULT = 0, /* warnings */
	CONTD_VERBOSE_ERRORS,      /* CONTD_VERBOSE=0: errors, and what the program or the user has asked for */
	CONTD_VERBOSE_WARNINGS,    /* 1: what has no effect, or works more slowly than it could */
	CONTD_VERBOSE_START,       /* 2: one line that says how contd has started */
	CONTD_VERBOSE_SETTINGS     /* 3: each setting and its origin */
};

/* A report of the watchdog: a call took longer than watchdog_ns. */
struct contd_late {
	const char *what;   /* "continuation", "handler" (contd's) or "source" (one poll of it) */
	const char *where;  /* where it ran: "thread", "handler" (outside regions), "region" or "daemon" */
	const void *site;   /* address of the function that took so long */
	const char *symbol; /* name of that function, or NULL if dladdr(3) finds none */
	uint64_t ns;        /* how long it took, in nanoseconds; if `running`, how long it has taken until now */
	int running;        /* 1: it has not returned yet; 0: it has returned */
};

/*
 * Receives a report of the watchdog; one report for each site. Runs on contd's thread "contd-watchdog", where it may
 * call contd. There contd_fini() fails with -EDEADLK; contd_init(), contd_configure() and contd_daemon_start() fail
 * with -EBUSY while another thread is in contd_init(), contd_configure() or contd_fini(). `late` is contd's and valid
 * during the call; `data` is watchdog_data.
 */
typedef void contd_watchdog(const struct contd_late *late, void *data);

/*
 * Settings of the process. Zero or NULL means the default. Each member except `watchdog` and `watchdog_data` also has a
 * variable of the environment, named below. If the variable is set, it overrides the member, and the member is not
 * checked. All of these variables are read in contd_init(), and again in contd_configure(). A malformed or out-of-range
 * value is an error (-EINVAL). contd copies the structure and its texts.
 */
struct contd_config {
	size_t size;             /* sizeof(struct contd_config) */
	int signal_number;       /* CONTD_SIGNAL: SIGRTMIN to SIGRTMAX; default SIGRTMAX - 3 */
	int signal_taken;        /* CONTD_SIGNAL_CHAIN=0|1: enum contd_signal_taken; default: refuse */
	int agent;               /* CONTD_AGENT=caller|region|tick|block|spin: enum contd_agent; default: region */
	double overhead_percent; /* CONTD_OVERHEAD_PERCENT: overhead budget over any second, 0.1 to 50; default 2 */
	/* These two take precedence over overhead_percent. But on an attached thread an interval is at least twice what
	 * a tick costs. */
	uint64_t tick_min_ns; /* CONTD_TICK_MIN_NS: shortest interval between ticks, 1000 to 1e9 ns; default 10 us */
	uint64_t tick_max_ns; /* CONTD_TICK_MAX_NS: longest interval, tick_min_ns to 1e10 ns; default 10 ms */
	uint32_t scan_count;  /* CONTD_SCAN_COUNT: most continuations in one interruption, 1 to 1e6; default 64 */
	/* CONTD_SCAN_NS: after this time an interruption starts no other continuation, 1000 to 1e9 ns; default 50 us */
	uint64_t scan_ns;
	int bell; /* CONTD_BELL=0|1: enum contd_bell_use; default: on */
	/* CONTD_WATCHDOG_NS: report calls that take longer than this, 1000 to 1e12 ns; default: no watchdog */
	uint64_t watchdog_ns;
	contd_watchdog *watchdog; /* receives the reports; default: a function that prints a line on stderr */
	void *watchdog_data;      /* passed to `watchdog`; taken together with it */
	const char *daemon_name;  /* CONTD_DAEMON_NAME: the daemon thread's name, 1 to 15 characters; default "contd" */
	/* CONTD_DAEMON_CPUS: the daemon's processors, as "0,2-3"; default: those of the thread that starts it */
	const char *daemon_cpus;
	/* CONTD_DAEMON_SCHED: other, batch, idle, fifo or rr, and after a colon the priority (fifo, rr: 1 to 99) or
	 * nice value (other, batch: -20 to 19), as "fifo:10". Default: as the thread that starts it. sched(7) */
	const char *daemon_sched;
	/* CONTD_DUMP_SIGNAL: this signal makes a thread of contd's write what contd_dump() writes. HUP, INT, QUIT,
	 * USR1, USR2, TERM, URG, IO, PWR, WINCH, or the number of one, or of a real-time signal. Default: none */
	const char *dump_signal;
	/* CONTD_DUMP_FILE: the file to which these dumps are appended, 1 to 255 characters; %p in it becomes the number
	 * of the process. Default: stderr */
	const char *dump_file;
	int verbose;  /* CONTD_VERBOSE=0|1|2|3: enum contd_verbose; default: warnings */
	int reserved; /* 0: for later versions */
	/* CONTD_STATS=exit[:FILE]: write all counters when contd ends, to stderr, or as a line at the end of FILE, in
	 * whose name %p is the process and %r the rank. Default: write none */
	const char *stats;
};

/*
 * Start contd in this process. If it runs already, add one user: contd stops when each contd_init() has had its
 * contd_fini(). cfg: the settings; NULL: defaults. If contd runs already, cfg must be NULL. In an MPI program the first
 * continuation request starts contd: to give settings in C, call contd_init() before that.
 * Context: any thread, in a callback; may block.
 * Errors:
 *     -EINVAL, -E2BIG  cfg, or a variable of the environment
 *     -EALREADY        contd runs and cfg is not NULL: use contd_configure()
 *     -EBUSY           the signal has a handler: choose another signal or CONTD_SIGNAL_CHAIN; dump_signal has one:
 *                      choose another; or, in a callback in a region's handler or on the daemon, another thread is in
 *                      contd_init(), contd_configure() or contd_fini(): call later
 *     -ENOMEM          no memory
 *     -EAGAIN          no thread for the daemon, the watchdog or dumps: pthread_create(3); or no key left:
 *                      pthread_key_create(3)
 *     -EPERM           in contd's handler
 *     -ENOENT          /proc is not mounted: mount it, or switch `bell` off
 *     other            errors of memfd_create(2) and mmap(2), unless `bell` is off (-EMFILE: raise RLIMIT_NOFILE);
 *                      errors of the daemon's settings, as in contd_configure()
 */
CONTD_API int contd_init(const struct contd_config *cfg) CONTD_NOEXCEPT;

/*
 * Change settings while contd runs: those whose member in *cfg is not zero, and those whose variable of the
 * environment is set. So a member of zero does not bring a default back: give its value. A watchdog once begun stays
 * until the last contd_fini(). If the agent changes, the new one takes over before the call returns. signal_number,
 * signal_taken, bell, dump_signal and dump_file cannot change: leave them zero, or give the value that is in force.
 * Context: any thread, in a callback except on the daemon; may block.
 * Errors:
 *     -EINVAL, -E2BIG  cfg is NULL, or a value is wrong
 *     -EBUSY           signal_number, signal_taken, bell, dump_signal or dump_file would change; or, in a callback in a
 *                      region's handler, another thread is in contd_init(), contd_configure() or contd_fini(): call
 *                      later
 *     -EDEADLK         on the daemon
 *     -EAGAIN          no thread for the daemon or the watchdog
 *     -EMFILE          no descriptor for agent "block"
 *     -EPERM           in contd's handler
 *     other            errors of sched_setaffinity(2), setpriority(2) and sched_setscheduler(2) for the daemon's
 *                      settings (-EPERM, -EACCES: raise RLIMIT_RTPRIO or RLIMIT_NICE)
 */
CONTD_API int contd_configure(const struct contd_config *cfg) CONTD_NOEXCEPT;

/*
 * Remove one user. The last one stops the daemon and all timers, detaches all threads and frees all groups: their
 * handles must not be used any more. Other threads may be attached and compute then, but may be in no call of contd's
 * except contd_init(), contd_configure() and contd_daemon_start(), which wait or fail. The handler of contd's signal
 * stays installed, and bells of contd_bell_open() stay valid. The last call returns the number of continuations
 * that never ran, and names them on stderr, unless `verbose` is CONTD_VERBOSE_ERRORS; the others return 0. An event for
 * which such a continuation waited must not be completed any more; contd_event_init() makes it usable again.
 * Context: any thread, not in a callback, an executor's work, a handler; may block. Errors: -EDEADLK (in a callback,
 * in the work of an executor, or on the watchdog).
 */
CONTD_API int contd_fini(void) CONTD_NOEXCEPT;

/*
 * The meaning and the remedy of the last error that a call of this thread returned, for people to read. It begins with
 * the name of the call: "contd_group_wait: group must not be NULL". Never NULL; "" if there has been none. contd's
 * handler keeps the interrupted thread's text. The text is contd's, and stays valid. Context: any thread.
 */
CONTD_API const char *contd_error_text(void) CONTD_NOEXCEPT;

/* Version of the loaded library: (major << 16) | (minor << 8) | patch. Context: any thread, handler, in a callback. */
CONTD_API uint32_t contd_version(void) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------------- groups --- */

struct contd_group;

/*
 * The callback of a continuation. The argument status is 0 if all its events completed with 0; else it is the status
 * other than 0 that was reported first. Of events that were complete at the registration the first one in the array
 * counts as reported first. The argument data is the pointer from the registration. No lock of contd's is held during
 * the call. A ready continuation runs exactly once, unless it is cancelled first. A callback must return: it must not
 * leave by longjmp(3), pthread_exit(3), an exception, or cancellation. A callback with cancellation points disables
 * cancellation (pthread_setcancelstate(3)) if the program uses pthread_cancel(3). contd's own calls are not
 * cancellation points; a thread with asynchronous cancellation must not make any.
 */
typedef void contd_callback(int status, void *data);

enum contd_group_flags {
	/*
	 * Continuations run only in contd_group_test() and contd_group_wait() of this group, until the group is given
	 * back by contd_group_destroy(). The continuations that are outstanding then follow the other flags.
	 */
	CONTD_POLL_ONLY = 1,
	/* No continuation runs inside the call that registers it. If also CONTD_ASYNC_SIGNAL_SAFE and the registering
	 * thread is attached, a tick runs it soon after the call, with every agent. */
	CONTD_ENQUEUE_COMPLETE = 2,
	/* Continuations may also run on the daemon. */
	CONTD_THREAD_ANY = 4,
	/* Callbacks call only async-signal-safe functions (signal-safety(7)): contd's handler may run them anywhere. */
	CONTD_ASYNC_SIGNAL_SAFE = 8
};

/*
 * contd runs ready continuations of groups with high priority first, then normal, then low. If limits (scan_count,
 * scan_ns, the max of contd_poll()) end several calls or interruptions before lower priorities had their turn, every
 * fourth begins with those: each ready continuation runs eventually.
 */
enum contd_priority { CONTD_PRIORITY_LOW = -1, CONTD_PRIORITY_NORMAL = 0, CONTD_PRIORITY_HIGH = 1 };

/* Attributes of a group. Start with CONTD_GROUP_ATTR_INIT and change what is to be different. */
struct contd_group_attr {
	size_t size;       /* sizeof(struct contd_group_attr) */
	uint32_t flags;    /* enum contd_group_flags */
	int32_t max_poll;  /* most continuations of the group that run at a time: see below; -1: no limit */
	int32_t priority;  /* enum contd_priority */
	uint32_t reserved; /* 0: for later versions */
};

/*
 * max_poll = -1, as in CONTD_GROUP_ATTR_INIT: no limit.
 *
 * max_poll = n > 0: at most n continuations of the group run in each of these:
 *   - one contd_group_test() of the group. Interruptions of its thread during the test count too;
 *   - one interruption: a tick, a notification or a ring. A contd_checkpoint(), the end of a guard, and a
 *     contd_event_complete() on an attached thread count as interruptions;
 *   - one pass over all ready continuations in another call: contd_poll(), a test or wait of another group, an MPI
 *     call. A call may make several passes.
 * The remaining continuations stay ready, and the next call or interruption may run them. After an interruption that
 * the limit ended, a tick comes soon, whatever the agent is. The daemon has no limit. A wait for the group has none
 * either: it runs all of them, also if it is called in a callback that a test of the group runs.
 *
 * max_poll = 0: tests of the group and interruptions run none of its continuations, and CONTD_ASYNC_SIGNAL_SAFE has
 * no effect. Other calls, waits and the daemon run them without a limit. contd_group_create() refuses 0 together with
 * CONTD_POLL_ONLY, because no call could then run them except a wait. A structure filled with zeros has max_poll = 0.
 */

/* clang-format off */
#define CONTD_GROUP_ATTR_INIT {sizeof(struct contd_group_attr), 0, -1, CONTD_PRIORITY_NORMAL, 0}
/* clang-format on */

/*
 * Create a group. attr is copied; NULL: CONTD_GROUP_ATTR_INIT. The group is the caller's until contd_group_destroy(),
 * and ends at the latest in the last contd_fini().
 * Context: any thread, in a callback; may block.
 * Errors:
 *     -EINVAL, -E2BIG  groupp is NULL, or an attribute is wrong
 *     -ENOMEM          no memory
 *     -EAGAIN          there are 4096 groups already with this priority, these CONTD_THREAD_ANY and
 *                      CONTD_ASYNC_SIGNAL_SAFE flags and no CONTD_POLL_ONLY: destroy some, share groups, or use
 *                      CONTD_POLL_ONLY
 *     -EPERM           in contd's handler
 */
CONTD_API int contd_group_create(const struct contd_group_attr *attr, struct contd_group **groupp) CONTD_NOEXCEPT;

/*
 * Give the group back; no call may use the pointer during or after this one. Outstanding continuations still run, and
 * one of them may make this call. If the group was CONTD_POLL_ONLY, its remaining continuations lose that restriction:
 * any call or interruption that runs continuations may run them. contd frees the group after the last one has finished.
 * Context: any thread, in a callback; may block.
 * Errors:
 *     -EINVAL  NULL
 *     -EPERM   in contd's handler
 *     -EAGAIN  the group is CONTD_POLL_ONLY and has outstanding continuations, and there are 4096 groups of the kind
 *              that it would become: call contd_group_wait() first
 */
CONTD_API int contd_group_destroy(struct contd_group *group) CONTD_NOEXCEPT;

/*
 * Poll, without waiting: poll the sources, run ready continuations of the group, at most max_poll, and then ready
 * continuations of other groups that are not CONTD_POLL_ONLY. *completep is 1 if the group has no outstanding
 * continuation, else 0; inside a continuation of this group it is 0. Returns how many continuations of any group ran,
 * or were handed over to a push executor. In a callback on the daemon tests, waits and contd_poll() run only
 * continuations of CONTD_THREAD_ANY groups: a wait there for another group needs another thread.
 * Context: any thread, in a callback. Errors: -EINVAL (group or completep is NULL); -EPERM (in contd's handler).
 */
CONTD_API int contd_group_test(struct contd_group *group, int *completep) CONTD_NOEXCEPT;

/*
 * Do what contd_group_test() does until the group has no outstanding continuation, or until timeout_ns nanoseconds have
 * passed (-1: no limit; 0: one attempt). Returns 0; at once, and without polling, if none is outstanding. Continuations
 * that are registered during the call count too. The thread sleeps while nothing is ready and no source needs polling.
 * max_poll of this group does not limit it.
 * Context: any thread, in a callback; blocks. Errors:
 *     -EINVAL     NULL, timeout_ns below -1
 *     -ETIMEDOUT  some are still outstanding
 *     -EDEADLK    inside a continuation of this group, or a task that one of them has become: it would wait for
 *                 itself
 *     -EPERM      in contd's handler
 */
CONTD_API int contd_group_wait(struct contd_group *group, int64_t timeout_ns) CONTD_NOEXCEPT;

/*
 * How many continuations of the group are outstanding at this moment; other threads may change it at any time. A thread
 * that runs several of a group in a row counts them off together: until then other threads may see too many, but never
 * too few. 0 for NULL.
 * Context: any thread, handler, in a callback.
 */
CONTD_API uint32_t contd_group_outstanding(const struct contd_group *group) CONTD_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------- cancelling --- */

/*
 * Names one registered continuation, for contd_cancel(). A plain value, to be copied at will; it need not be
 * released. It may be used until contd_group_destroy() is called for the group, also after the continuation has run.
 * After contd_group_destroy() it may be used only while the program knows that the continuation is outstanding: contd
 * frees the group and its continuations when the last one has finished. The last contd_fini() ends all handles.
 */
struct contd_handle {
	void *slot;
	uint64_t generation;
};

/*
 * Cancel a continuation whose callback has not started. If the call returns 0, the callback never runs, its events
 * have no continuation any more (pending ones stay pending), and contd no longer reads its memory word. The call does
 * not wait for a callback that runs: after -EALREADY wait for the group before you free what the callback uses.
 * Context: any thread, in a callback; may block. Errors: -EINVAL (the handle is all zeros); -EALREADY (the callback has
 * started or returned, another thread is looking whether it may start it, the continuation has been submitted to an
 * executor or taken by contd_executor_take(), or it was cancelled before); -EPERM (in contd's handler).
 */
CONTD_API int contd_cancel(struct contd_handle handle) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------------- events --- */

/* An operation that the program itself completes. The memory is the caller's; the members are contd's. */
struct contd_event {
	uint64_t word;
	struct contd_event *next;
};

/* A pending event without a continuation. */
/* clang-format off */
#define CONTD_EVENT_INIT {0, NULL}
/* clang-format on */

/* Part of structures that carry their own continuation, such as struct contd_fabric_op; programs do not use it. */
struct contd_carried {
	struct contd_event event;
	struct contd_group *group; /* NULL: it carries none */
	contd_callback *cb;
	void *data;
	int32_t status;
};

/*
 * Make *event pending, for its first or its next use. It must not have a continuation that is still to run. NULL:
 * nothing happens. Context: any thread, handler, in a callback.
 */
CONTD_API void contd_event_init(struct contd_event *event) CONTD_NOEXCEPT;

/*
 * Register a continuation that waits for n events: contd calls cb(status, data) when all are complete. While it is
 * pending, an event takes one continuation; a complete one takes any number, which find it complete.
 *
 * If all events are complete already, or n is 0, cb normally runs inside this call. There are
 * exceptions: the group has CONTD_POLL_ONLY, CONTD_ENQUEUE_COMPLETE, an executor or max_poll = 0, or the caller is in a
 * continuation or in contd's handler. In these cases it is ready when the call returns.
 *
 * events may be NULL if n is 0; an event may stand in the array once. The array is the caller's again on return. Each
 * event must stay in place until the callback has started, or until contd_cancel() has returned 0. The callback may
 * initialize the event and use it again. handlep may be NULL; otherwise the call writes *handlep before cb can run.
 * Context: any thread, in a callback; also in a continuation that contd's handler runs outside regions, while the
 * group has memory in reserve. The reserve is normally enough for 32 continuations outstanding at a time, and each
 * registration on a thread fills it up again. Not in other signal handlers.
 * Errors:
 *     -EINVAL  cb, group or an event is NULL, or n > 2^23 - 3
 *     -EBUSY   an event has a continuation
 *     -ENOMEM  no memory
 *     -ENOSPC  2^24 continuations of the group are outstanding: use more groups
 *     -EAGAIN  in contd's handler: the reserve is used up; register on a thread
 */
CONTD_API int contd_event_continue(size_t n, struct contd_event *const events[], contd_callback *cb, void *data,
				   struct contd_group *group, struct contd_handle *handlep) CONTD_NOEXCEPT;

/*
 * Complete a pending event. status is 0 or an error code of the program's choice; a continuation receives it. If this
 * was the last event for which a continuation waited, the continuation is ready. The first of these rules that fits
 * says where it runs; "interruptible" means that the group is CONTD_ASYNC_SIGNAL_SAFE or the thread in a compute
 * region:
 *   - The group is CONTD_POLL_ONLY: in a test or wait of the group. It has an executor: there.
 *   - CONTD_THREAD_ANY, and the daemon runs: on the daemon. If also CONTD_ASYNC_SIGNAL_SAFE, one of the following
 *     rules may be faster.
 *   - The calling thread is attached and interruptible: inside this call, if the group's limits allow it. In a guard
 *     or in a continuation: at the end of the guard, or of the outermost continuation.
 *   - Another attached thread is interruptible: contd notifies it.
 *   - Else it stays ready until a thread calls contd_poll(), a test, a wait or an MPI completion call, reaches a
 *     checkpoint in a compute region (CONTD_ASYNC_SIGNAL_SAFE: any checkpoint), or is attached and begins a region.
 * docs/signals.md has the whole table.
 *
 * If several threads complete one event, one of them succeeds. The event must exist until its continuation has started;
 * without a continuation, until this call returns.
 * Context: any thread, handler, in a callback. It works without contd_init() and after a fork; in the child of a fork
 * no continuation runs.
 * Errors:
 *     -EINVAL    NULL
 *     -EALREADY  it is complete: contd_event_init() makes it pending again
 *     -EBUSY     the event belongs to a fabric operation that carries its continuation: use contd_fabric_withdraw()
 */
CONTD_API int contd_event_complete(struct contd_event *event, int status) CONTD_NOEXCEPT;

/* 1 if the event is complete, 0 if it is pending or NULL. Context: any thread, handler, in a callback. */
CONTD_API int contd_event_is_complete(const struct contd_event *event) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------- memory words --- */

enum contd_word_op { CONTD_WORD_EQ, CONTD_WORD_NE, CONTD_WORD_GE };

/*
 * A condition on 64 bits of memory that another thread, a process or a device writes: (*address & mask) OP value,
 * compared as unsigned numbers. The address must be a multiple of 8. contd reads the word with acquire order.
 */
struct contd_word {
	const volatile uint64_t *address;
	uint64_t mask; /* 0: all bits */
	uint64_t value;
	int op; /* enum contd_word_op */
};

/*
 * Register a continuation that waits for a memory word: contd calls cb(0, data) after it has read the word and found
 * the condition true. The word is read in interruptions, by the daemon, and in tests, waits, contd_poll(), checkpoints
 * and MPI completion calls; never inside this call. The end of a guard, the beginning of a region and
 * contd_event_complete() count as interruptions if they run something. A condition that is true only between two reads
 * may be missed. *word is copied. The memory at word->address is the caller's, and must stay readable until the
 * callback has started or contd_cancel() has returned 0. handlep as in contd_event_continue().
 * Context: any thread, in a callback; may block. Errors:
 *     -EINVAL  a pointer is NULL, the address is not a multiple of 8, or op is wrong
 *     -ENOMEM  no memory
 *     -ENOSPC  as contd_event_continue()
 *     -EPERM   in contd's handler
 */
CONTD_API int contd_word_continue(const struct contd_word *word, contd_callback *cb, void *data,
				  struct contd_group *group, struct contd_handle *handlep) CONTD_NOEXCEPT;

/*
 * Register a continuation that waits for a group: contd calls cb(0, data) when no continuation of `awaited` is
 * outstanding. If none is now, cb runs inside this call, under the same conditions as in contd_event_continue().
 * `awaited` takes one such continuation at a time, and may be destroyed while this one waits. handlep as in
 * contd_event_continue().
 * Context: any thread, in a callback; may block.
 * Errors:
 *     -EINVAL  awaited, cb or group is NULL
 *     -EBUSY   `awaited` has such a continuation
 *     -ELOOP   the group would wait for itself, directly or through other groups
 *     -ENOMEM  no memory
 *     -ENOSPC  as contd_event_continue()
 *     -EPERM   in contd's handler
 */
CONTD_API int contd_group_continue(struct contd_group *awaited, contd_callback *cb, void *data,
				   struct contd_group *group, struct contd_handle *handlep) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------------ polling --- */

/*
 * Poll the sources and run at most max (0: no limit) ready continuations of groups that are not CONTD_POLL_ONLY. The
 * call does not wait. Returns how many ran or were handed over to a push executor; max limits both. Not limited and not
 * counted are continuations that interruptions run during the call, or callbacks by calling contd.
 * Context: any thread, in a callback; on the daemon see contd_group_test(). Errors: -EPERM (in contd's handler).
 */
CONTD_API int contd_poll(uint32_t max) CONTD_NOEXCEPT;

/*
 * Returns the number of a file descriptor for the program's event loop (epoll(7), poll(2), libuv). It becomes
 * readable when a continuation that contd_poll() may run becomes ready. Then call contd_poll(), which makes it
 * unreadable when no more are ready; it may run none. The descriptor does not poll: completions of sources (MPI,
 * memory words, libfabric) make it readable only after a tick, the daemon or another call has found them. It is
 * an eventfd(2), contd's, valid until the last contd_fini(); each call returns the same one. The program must not read
 * or close it. If something is ready already, it is readable when the call returns.
 * Context: any thread, in a callback. Errors: -EPERM (in contd's handler); errors of eventfd(2) (-EMFILE: raise
 * RLIMIT_NOFILE).
 */
CONTD_API int contd_fd(void) CONTD_NOEXCEPT;

/* ------------------------------------------------------------------------------------------ threads and signals --- */

struct contd_thread_attr {
	size_t size;          /* sizeof(struct contd_thread_attr) */
	uint32_t flags;       /* 0 */
	uint32_t stack_bytes; /* stack that callbacks need in an interruption; default 16384 */
};

/*
 * Attach the calling thread: from now on contd may interrupt it with its signal, and run there CONTD_ASYNC_SIGNAL_SAFE
 * continuations anywhere, and in compute regions all that are not CONTD_POLL_ONLY. The call unblocks the signal. Calls
 * nest; the thread is detached by as many contd_thread_detach(), when it ends, or by the last contd_fini(). A nested
 * call checks attr and the stack again and otherwise only counts; it does not unblock the signal again.
 * Async-signal-safe continuations that are ready already may run before the call returns. attr is copied; NULL:
 * defaults. Its stack_bytes is compared with what is left of the stack; contd reserves none. The first attach of a
 * process takes some milliseconds: it measures what an interruption costs.
 * Context: any thread; in a callback only if it runs neither in a handler (in a region or not) nor on the daemon; may
 * block. Errors:
 *     -EINVAL, -E2BIG  attr
 *     -ENOBUFS         too little stack is left: pthread_attr_setstacksize(3)
 *     -EAGAIN          no timer: timer_create(2), raise RLIMIT_SIGPENDING
 *     -ENOMEM          also if 1024 threads are attached
 *     -EPERM           in contd's handler, in a region's handler, on the daemon
 */
CONTD_API int contd_thread_attach(const struct contd_thread_attr *attr) CONTD_NOEXCEPT;

/*
 * Undo one contd_thread_attach() of this thread. After the last one contd sends this thread no more signals. The signal
 * stays unblocked: a ring of a peer that goes to the process may still interrupt the thread.
 * Context: attached thread, outside compute regions, guards and continuations; may block.
 * Errors: -EPERM (the thread is not attached); -EBUSY (inside a region, a guard or a continuation, also if it is not
 * the last one).
 */
CONTD_API int contd_thread_detach(void) CONTD_NOEXCEPT;

/* The part of a thread's state that the inline functions below use; programs do not use it. */
struct contd_tls {
	uint32_t region;
	uint32_t guard;
	uint32_t flags;        /* CONTD__TLS_* */
	uint32_t checkpoint;   /* calls of contd_checkpoint() until the next poll */
	const uint32_t *watch; /* the doorbell, if checkpoints read it: 0 after a ring; never NULL */
};
#define CONTD__TLS_ATTACHED 1u
#define CONTD__TLS_MISSED 2u
#define CONTD__TLS_REARM 4u
extern CONTD_API __thread struct contd_tls contd__tls __attribute__((tls_model("initial-exec")));
extern CONTD_API uint32_t contd__ready; /* classes of groups that have ready continuations */
CONTD_API void contd__region_rearm(void) CONTD_NOEXCEPT;
CONTD_API void contd__guard_pickup(void) CONTD_NOEXCEPT;
CONTD_API void contd__checkpoint(void) CONTD_NOEXCEPT;
CONTD_API void contd__unbalanced(uint32_t what) CONTD_NOEXCEPT;
CONTD_API void contd__say_text(const char *text) CONTD_NOEXCEPT; /* a line on stderr; not in handlers */
/* contd_error_text() is now the call's name and this text; NULL: the text that it was. Both stay. Returns err. */
CONTD_API int contd__fails(const char *call, int err, const char *text) CONTD_NOEXCEPT;
#define CONTD__END_OF_REGION 1u
#define CONTD__END_OF_GUARD 2u

/*
 * Begin a compute region. Until the matching contd_compute_end() this thread must run only async-signal-safe code:
 * plain computation; no malloc, no stdio, no MPI, and of contd's calls only contd_checkpoint(), nested regions and
 * those with the tag "handler". In return contd may interrupt the thread at any instruction, poll MPI and fabric there,
 * and run any continuation that is not CONTD_POLL_ONLY, as if the thread had called contd_poll(). On an attached thread
 * continuations that are ready now run inside this call, at most scan_count; the rest follows in interruptions. Under a
 * guard they run at the end of the guard. Regions nest. Cost: about a nanosecond; the first begin after something
 * became ready outside regions costs some hundred. On a thread that is not attached there are no interruptions; there
 * the region only lets contd_checkpoint() run more.
 * Context: any thread. In a callback it has no effect, and must be ended there.
 */
static inline void contd_compute_begin(void)
{
	struct contd_tls *tls = &contd__tls;

	__atomic_store_n(&tls->region, tls->region + 1, __ATOMIC_RELAXED); /* others ask which threads compute */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&tls->flags, __ATOMIC_RELAXED) & CONTD__TLS_REARM, 0))
		contd__region_rearm();
}

/*
 * End the innermost compute region of this thread. Without a matching begin it changes nothing, sets
 * contd_error_text(), and the first time in a process prints a line on stderr. Context: any thread, in a callback.
 */
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
 * Begin a guard: until the matching contd_guard_end() no interruption runs a continuation on this thread, and
 * contd_event_complete() runs none inside the call. Use it around data that the thread shares with its interruptions;
 * it does not hold back the daemon or other threads. Registering calls, tests, waits and contd_poll() still run
 * continuations. The outermost contd_guard_end() runs the continuations that interruptions would have run meanwhile.
 * Guards nest. Cost: about a nanosecond, no system call.
 * Context: any thread, handler, in a callback, which must also end it.
 */
static inline void contd_guard_begin(void)
{
	contd__tls.guard++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/*
 * End the innermost guard of this thread. Without a matching begin: as contd_compute_end(). Context: any thread,
 * handler, in a callback.
 */
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
 * Do here what an interruption would do at this point. In a compute region it runs any ready continuation that is not
 * CONTD_POLL_ONLY, elsewhere those that are CONTD_ASYNC_SIGNAL_SAFE. A call costs about a nanosecond. The settings
 * scan_count and scan_ns limit it as they limit an interruption. Memory words, and in a region the other sources, are
 * polled as often as the overhead budget allows, not in each call; after a peer has rung, in the next call. Works on
 * threads that are not attached, too. Under a guard, in a continuation and on the daemon it does nothing.
 * Context: any thread, in a callback.
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
 * A doorbell lets one process shorten another one's reaction: both run on one host for one user. The receiver sets a
 * word in memory that it shares (it arms the doorbell) while a thread of it waits in a compute region or its daemon
 * sleeps. The sender reads that word after it has sent something, which costs nanoseconds, and rings only if the
 * doorbell is armed: by a signal to that thread, or by waking the daemon. Each arming permits one ring. If rings have
 * used up the receiver's overhead budget, it stays unarmed for a while and uses ticks instead. Nothing is lost
 * without rings, for example if a peer does not ring or has died: ticks and the daemon find the message later.
 * contd-mpi listens by itself, and the doorbell library (contd-doorbell) rings after MPI calls. The calls below are for
 * sources other than MPI.
 */
struct contd_bell {
	const uint64_t *armed; /* in the peer's memory; programs do not use it */
};

/*
 * Let peers find this process under the name (job, number). job: a text of 1 to 64 characters that all processes
 * which belong together share; number: different in each of them. A process has one such name: calling again with the
 * same name does nothing. The text is copied.
 * Context: any thread, in a callback; may block.
 * Errors:
 *     -EINVAL      job
 *     -EADDRINUSE  another process has this name
 *     -EALREADY    this process listens under another name
 *     -EOPNOTSUPP  doorbells are off: `bell` in struct contd_config
 *     -EPERM       in contd's handler
 *     other        errors of socket(2), bind(2) and listen(2)
 */
CONTD_API int contd_bell_listen(const char *job, uint32_t number) CONTD_NOEXCEPT;

/*
 * Find the peer that listens under (job, number), so that contd_bell_ring() can ring for it. *bellp is the caller's
 * until contd_bell_close(). contd need not be initialized. The peer may end at any time; contd_bell_ring() reports
 * that.
 * Context: any thread, in a callback; may block shortly.
 * Errors:
 *     -EINVAL  job, bellp
 *     -ENOENT  no process listens under this name: it has no contd, has not started or has ended; try later
 *     -EACCES  another user's process listens
 *     -EPROTO  the peer has another version of contd, or its memory cannot be opened
 *     -ENOMEM  no memory
 *     -EPERM   in contd's handler
 *     other    errors of socket(2) and pidfd_open(2)
 */
CONTD_API int contd_bell_open(const char *job, uint32_t number, struct contd_bell **bellp) CONTD_NOEXCEPT;

/*
 * Release what contd_bell_open() made. No thread may use `bell` during this call or later. NULL: nothing happens.
 * Context: any thread, in a callback.
 */
CONTD_API void contd_bell_close(struct contd_bell *bell) CONTD_NOEXCEPT;

CONTD_API int contd__bell_ring(struct contd_bell *bell) CONTD_NOEXCEPT;

/*
 * Ring for the peer if its doorbell is armed. Call it after the peer can see what was sent (a message, a store).
 * Returns 1 if it rang, 0 if the doorbell was not armed. errno keeps its value.
 * Context: any thread, handler, in a callback. Errors: -ESRCH (the doorbell was armed, and the peer has ended: call
 * contd_bell_close(). Of a peer that ended with its doorbell not armed this call does not know, and returns 0),
 * -EAGAIN (the peer's signal queue is full: RLIMIT_SIGPENDING).
 */
static inline int contd_bell_ring(struct contd_bell *bell)
{
	/* Store, then load: what was sent is visible before this load. Partner: the peer arms, then polls again. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(bell->armed, __ATOMIC_RELAXED) ? contd__bell_ring(bell) : 0;
}

/* ------------------------------------------------------------------------------------------------------- daemon --- */

struct contd_daemon_attr {
	size_t size; /* sizeof(struct contd_daemon_attr) */
	/* Time between two polls, 1000 to 1e10 ns, unless something becomes ready for the daemon; 0: as short as the
	 * overhead budget allows. */
	uint64_t tick_ns;
};

/*
 * Start the daemon, or add one user to a running one. It runs ready continuations of CONTD_THREAD_ANY groups, polls the
 * sources that have something pending, and notifies attached threads of ready continuations that only they may run. It
 * sleeps while there is nothing of these. The setting `agent` decides how it waits between two polls (CONTD_AGENT_TICK,
 * _BLOCK, _SPIN; with the other agents as with _TICK); name, processors and scheduling are settings too. attr is
 * copied; NULL: defaults, or what a running daemon has. An attr for a running daemon must have the same tick_ns; a
 * daemon that the setting `agent` has started has 0.
 * Context: any thread, in a callback except on the daemon; may block. Errors:
 *     -EINVAL, -E2BIG  attr
 *     -EBUSY           it runs with another tick_ns; or, in a callback in a region's handler, another thread is in
 *                      contd_init(), contd_configure() or contd_fini(): call later
 *     -EAGAIN          pthread_create(3): raise RLIMIT_NPROC
 *     -EMFILE          no descriptor for agent "block"
 *     -EPERM           contd does not run; also where contd_fini() ends it on another thread at the same time
 *     -EDEADLK         on the daemon, or in contd's handler
 *     other            errors of the daemon's settings, as in contd_configure()
 */
CONTD_API int contd_daemon_start(const struct contd_daemon_attr *attr) CONTD_NOEXCEPT;

/*
 * Undo one contd_daemon_start(). The last one ends the daemon, unless the setting `agent` wants it; the call then
 * waits for the thread to end. Context: any thread, in a callback except on the daemon; may block.
 * Errors: -EPERM (more stops than starts); -EDEADLK (on the daemon, or in contd's handler).
 */
CONTD_API int contd_daemon_stop(void) CONTD_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------- statistics --- */

#define CONTD_HISTOGRAM_BUCKETS 40

/*
 * Counts since the contd_init() that started contd, summed over all threads. While threads run, the members may be of
 * slightly different moments; when all threads are idle they are exact.
 */
struct contd_stats {
	size_t size;         /* set it before the call: sizeof(struct contd_stats) */
	uint64_t registered; /* continuations registered */
	uint64_t run;        /* callbacks run, in all contexts */
	/* Of these, outside compute regions: in contd's handler, and by the same rules at the end of a guard, at a
	 * checkpoint and inside contd_event_complete(). */
	uint64_t run_handler;
	uint64_t run_region;     /* of these: at the same places inside a compute region */
	uint64_t run_daemon;     /* of these: on the daemon */
	uint64_t run_inline;     /* of these: inside the call that registered them */
	uint64_t cancelled;      /* continuations cancelled */
	uint64_t ticks;          /* ticks on attached threads */
	uint64_t notifications;  /* notifications sent */
	uint64_t notify_failed;  /* notifications that the kernel refused (RLIMIT_SIGPENDING); a tick replaced each */
	uint64_t guarded;        /* signals that arrived under a guard or in a continuation */
	uint64_t overruns;       /* timer expirations that the kernel merged: timer_getoverrun(2) */
	uint64_t handler_ns;     /* time in contd's handler, callbacks included */
	uint64_t lost_ns;        /* handler_ns, and the estimated cost of the kernel's signal delivery */
	uint64_t tick_cost_ns;   /* what the kernel needs for one tick here, measured; 0: not measured yet */
	uint64_t tick_ns;        /* current interval between ticks on the calling thread; 0: no ticks */
	uint64_t scans;          /* passes over ready continuations that found at least one marked */
	uint64_t grown;          /* times that a group got more memory for continuations */
	uint64_t rings;          /* rings of peers that arrived: at a thread, or at the daemon */
	uint64_t rings_sent;     /* rings sent to peers */
	uint64_t put_off;        /* notifications that became a later tick because the overhead budget was used up */
	uint64_t handler_max_ns; /* longest run of the handler */
	/* latency[b]: continuations that waited 2^b to 2^(b+1) - 1 ns from ready to run (b = 0: 0 or 1 ns). Waits are
	 * measured up to 2^37 ticks of the processor's clock (45 s at 3 GHz), and longer ones counted as too short. */
	uint64_t latency[CONTD_HISTOGRAM_BUCKETS];
};

/*
 * Write the statistics to *stats. The memory is the caller's. Context: any thread, in a callback; may block.
 * Errors: -EINVAL (NULL, size); -EPERM (in contd's handler).
 */
CONTD_API int contd_stats_get(struct contd_stats *stats) CONTD_NOEXCEPT;

/*
 * Write the state of contd in this process to the descriptor fd, as text for people who look into a program that hangs
 * or is slow. The text has the settings, the daemon and the sources; each group with its continuations that are
 * pending, ready or running, and the operations for which they wait; each thread that has called contd, and what it
 * does. The command "contd dump" writes the same of another process. Later versions may change the text.
 *
 * The call takes no lock of contd's, of the C library's or of the dynamic linker's, so it works while another thread
 * hangs with one. It maps some 100 KiB of memory while it runs, and up to 16 bytes for each group. Other threads may go
 * on; what they change meanwhile may be missing, or shown as it was. At most 1000 continuations of a group are shown;
 * the text says how many are not.
 * Continuations that an interruption of this thread would run may run at the end of the call.
 * Context: any thread, in a callback; may block in write(2).
 * Errors:
 *     -EBADF   fd is not open for writing
 *     -ENOMEM  no memory
 *     -EPERM   in contd's handler
 *     other    errors of write(2) to fd, and then a part has been written; or the kernel refuses process_vm_readv(2)
 *              and /proc/thread-self/mem (-EACCES, -ENOENT): mount /proc
 */
CONTD_API int contd_dump(int fd) CONTD_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
