/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's one dispatcher: the roots over the groups, what waits for something to become ready, the sources that
 * have to be looked at, and what the layers above have registered.
 */
#ifndef CONTD_DISPATCH_DISPATCHER_H
#define CONTD_DISPATCH_DISPATCHER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <urcu/lfstack.h>
#include <urcu/list.h>

#include <contd/contd.h>

#include "dispatch/page.h"
#include "rcu/atomic.h"
#include "rcu/table.h"

/*
 * Groups that are not poll-only, by who may run them (bit 0: also the daemon, bit 1: also a handler anywhere) and by
 * priority: four classes of low, normal, high.
 */
#define CLASS_ANY 1u
#define CLASS_SIGNAL 2u
#define CLASS_KINDS 4u
#define PRIORITIES 3u
#define CLASSES (PRIORITIES * CLASS_KINDS)
#define CLASSES_ALL 0xfffu    /* masks of classes */
#define CLASSES_DAEMON 0xaaau /* those with bit 0 */
#define CLASSES_SIGNAL 0xcccu /* those with bit 1 */
#define CLASSES_PLAIN 0x111u  /* neither: threads of the application, in regions too */
#define SCANS 3u              /* kinds of scans: of all, of those with bit 0, of those with bit 1 */
#define CLASSES_THREAD 0x444u /* bit 1 alone: a handler anywhere, but no daemon */

/* Where a source may be looked at. */
enum contd__where { WHERE_THREAD = 1, WHERE_REGION = 2, WHERE_HANDLER = 4, WHERE_DAEMON = 8 };

/*
 * A source that must be driven. Called with one of enum contd__where; the source decides whether the calling thread
 * may (thread levels). Registered once, lives as long as the dispatcher; stays in place.
 */
struct contd__source {
	const char *name;
	uint32_t where; /* mask of enum contd__where; only there is progress called */
	/* last: the caller sleeps, or arms a bell, unless something is found: at everything, not at a part in turns. */
	void (*progress)(enum contd__where where, bool last);
	uint32_t (*pending)(void); /* how many of its operations wait: 0 means there is nothing to look at */
	/* May it be driven on the calling thread, as far as the thread is concerned? Any context. NULL: anywhere. */
	bool (*here)(void);
	/*
	 * The daemon wants to sleep: file descriptors that become readable when there is something to look at, after all has
	 * been looked at once more, and in *ns after how long they do not say enough any more. Returns how many it has put down,
	 * 0 where it has none and must be looked at in turns, -EAGAIN where something is there already. NULL: none. The daemon
	 * thread only.
	 */
	int (*sleep_on)(int *fds, int room, uint64_t *ns);
	bool steady;        /* looks are what it advances by: they come at the pace of the budget while it has something pending */
	bool tells;         /* the descriptors tell of everything: threads that wait may leave it to the daemon */
	uint32_t slept_on;  /* the daemon has got descriptors, the last time that it asked */
};
#define SOURCES_MAX 8u

/* What the signal room gives to this one; NULL while it is not there. */
struct contd__signal_ops {
	void (*arm)(void);        /* something that ticks can serve became pending; any context */
	int (*notify)(void);      /* interrupt one attached thread; any context; 1 if one will look */
	bool (*listens)(void);    /* can peers ring this process */
	void (*drain)(void);      /* of peers that have asked who listens, now and then; any context */
	bool (*computing)(int32_t tid); /* does that thread compute in a region */
	/* The same for one that computes in a region; 1 if there is one. If not, whoever begins a region next looks; any context. */
	int (*notify_region)(void);
	void (*ring)(int32_t tid); /* interrupt that one, on the sources' behalf */
	void (*again)(bool ran);   /* after a scan by interruption that left something; ran: not everything */
	void (*later)(void);       /* interrupt this thread soon, but not now (if it is not attached, another one); any context */
	void (*detach_self)(void); /* the thread ends */
	void (*stop)(void);       /* fini */
	void (*give_back)(void);  /* contd_init() failed after all: the signal is as it was */
	void (*forked)(void);     /* in the child */
	void (*configured)(void); /* settings have changed */
	void (*looked)(uint32_t ran);     /* a guard's end has done what a signal would have */
	uint64_t (*tick_ns)(void); /* interval in force on this thread */
	uint64_t (*tick_cost_ns)(void);
};

/*
 * What code that handlers reach too calls when, and only when, it finds itself on an ordinary thread. Pointers, so that
 * the check of imported symbols (scripts/check-async-signal-safe) holds for that code without exceptions.
 */
struct contd__ordinary {
	void (*thread_register)(void);
	int (*grow)(struct contd__table *t, uint32_t seen_limit);
};

/*
 * Descriptors. Who writes to one of contd's (contd__poke_sig) loads its number first, in any thread or handler, and may be
 * held up before it writes; the number of a descriptor that was closed meanwhile may be that of a file of the program's. So
 * a descriptor that is written to is made once, when it is first needed, and closed by contd_fini() alone, when no handler of
 * contd's runs any more and calls of other threads have returned. Descriptors that others close (MPI's and libfabric's, for
 * agent "block") are asked and polled, never read or written. Those of a bell are its owner's, who closes it when nobody
 * rings any more (contd_bell_close).
 */
struct contd__dispatch {
	/* Read by whoever makes something ready; one line. */
	uint32_t sleepers __attribute__((aligned(64))); /* threads in, or about to enter, contd_group_wait's sleep */
	uint32_t wake;        /* futex word of those threads; goes up at each wake-up */
	uint32_t regions;     /* a thread may compute in a region, or begin one without looking: contd__notify_region_sig() */
	uint32_t fd_armed;    /* the eventfd is to be written when something becomes ready */
	int fd;               /* -1: nobody asked for one */
	uint32_t live;        /* users; 0: not initialized */
	uint32_t lives;       /* how often it has been started: what belongs to an earlier one has gone */
	uint32_t forked;
	const struct contd__signal_ops *signal_ops;
	const struct contd__ordinary *ordinary;

	/* What ticks are needed for. */
	uint32_t words_pending __attribute__((aligned(64)));
	uint32_t source_count;
	struct contd__source *source[SOURCES_MAX];
	struct contd__page *page; /* where this process is rung; never NULL */
	int daemon_fd;        /* eventfd that a daemon in poll(2) is woken by, or -1 */
	uint32_t daemon_asleep; /* futex word: nothing is pending, and it sleeps until something is */
	uint32_t daemon_called; /* since the daemon said that it sleeps a thread of this process has woken it */
	struct contd_event *put_off_carried; /* for which there was no memory; a stack, linked by `next` */
	uint32_t daemon_mode; /* enum contd_agent of a daemon that runs: tick, block or spin; 0: none */

	struct contd_config config;
	double ticks_per_ns;

	/* Settings, and what follows from them, as handlers read them; contd_configure() stores them one by one. */
	uint64_t scan_ticks __attribute__((aligned(64)));
	uint32_t scan_count;
	uint64_t tick_min, tick_max; /* ns */
	uint64_t tick_rate;   /* share of a thread's time that ticks alone may take, times 2^20 */
	uint64_t second;      /* in clock ticks */
	uint64_t purse_rate;  /* what flows into a purse a clock tick, times 2^20 */
	uint64_t purse_most;
	uint64_t late_ticks;  /* the watchdog's bound, 0: none */
	struct __cds_lfs_stack dead; /* groups to be freed; pushed in handlers too, emptied by threads under `lock` */
	uint32_t dead_count;
	uint64_t notifications, notify_failed, put_off, rings_sent; /* by threads that are not in the statistics' list */
	uint64_t handler_max; /* the longest handler, in clock ticks */
	contd_callback *issues; /* of tasks that call MPI to start something: contd_mpi_op_run()'s */
	uint32_t mpi_owners; /* executors with CONTD_EXECUTOR_MPI, */
	uint32_t mpi_owned;  /* to one of which a thread is lent */
	uint32_t drainers;   /* threads in contd_executor_drain() */
	uint32_t strangers;  /* completers on threads that RCU does not know: groups are not freed while there are any */

	struct cds_list_head groups;
	/* Whose turn it is, for each kind of scan (run.c): how many classes of a priority the next one leaves for later, from
	 * the highest; scans in a row that left lower priorities without a turn. */
	uint32_t class_skip[SCANS][PRIORITIES], short_scans[SCANS];
	struct contd__root root[CLASSES];
	pthread_mutex_t lock; /* groups in the roots, users, threads; never taken in a handler */
};

CONTD_INTERNAL_API extern struct contd__dispatch contd__dispatch;

/* 0, or the error (with its text) that every call gives which needs a running dispatcher. */
CONTD_INTERNAL_API int contd__check_live(void);

static inline bool contd__is_live(void)
{
	return __builtin_expect(!contd__load(&contd__dispatch.forked) && contd__load(&contd__dispatch.live) != 0, 1);
}

/* Sets the text that contd_error_text() gives on this thread; returns err. */
CONTD_INTERNAL_API int contd__fail(int err, const char *text);

/* -EAGAIN when all are taken. */
CONTD_INTERNAL_API int contd__source_register(struct contd__source *source);

/* Something that must be looked at became pending: start what looks. Any context. */
CONTD_INTERNAL_API void contd__pending_sig(void);

/* Has a source that may be looked at in one of these places something pending? Any context. */
bool contd__sources_pending_sig(uint32_t where);

/* The same, for sources that may be driven on this thread. */
bool contd__sources_here_sig(uint32_t where);

/* Has one of those that advance by looks? Then there are no quiet looks. Any context. */
bool contd__sources_steady_sig(uint32_t where);

/* Let every such source make progress, `but` one (or NULL); `where` is the place this is. */
void contd__sources_drive_sig(enum contd__where where, const struct contd__source *but, bool last);

/* A thread that drives `mine` itself looks at everything else: words, and other sources. */
CONTD_INTERNAL_API void contd__look_beside(const struct contd__source *mine);

/* Free dead groups, when there are many or when told so. Ordinary threads, outside read-side sections; may block. */
void contd__reap(bool all);

/* Frees what is left of groups; returns how many continuations were outstanding. contd_fini(). */
uint32_t contd__groups_fini(void);

/* Implemented by the signal room above: reserve the signal and set signal_ops. 0, -EBUSY, -ENOMEM. */
int contd__signal_start(const struct contd_config *config);

/*
 * While it is held contd neither starts nor ends, and its settings stay. Before all other locks; not in a handler outside regions.
 * 0; -EBUSY in a region's handler and on the daemon thread, where it is not waited for.
 */
int contd__life_lock(void);
void contd__life_unlock(void);

/* Stops the daemon, whoever started it. */
void contd__daemon_end(void);

/* The agent of the settings takes over: starts, switches or stops the daemon; its other settings take effect. */
int contd__daemon_configure(const struct contd_config *before);

/* Are the daemon's texts well-formed? 0 or -EINVAL. */
int contd__daemon_check(const struct contd_config *config);

/* In a child of fork: no daemon. */
void contd__daemon_forked(void);

/* Wake the daemon: where it sleeps for want of anything pending, and, with `ready`, where it naps. Any context. */
CONTD_INTERNAL_API void contd__daemon_wake_sig(bool ready);

/* Make an eventfd(2) readable. Any context. */
void contd__poke_sig(int fd);

#endif
