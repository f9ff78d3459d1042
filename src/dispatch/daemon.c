/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon thread. It looks while something is pending that must be looked at, and sleeps otherwise. Between two
 * looks it naps for as long as the overhead budget requires (agent tick), sleeps in poll(2) on descriptors of sources
 * (block), or goes on at once (spin). A peer's bell ends a nap, and so does anything that becomes ready for the daemon.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own_thread.h"
#include "base/rest.h"
#include "base/sized.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/daemon.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/live.h"
#include "dispatch/live_lock.h"
#include "dispatch/page.h"
#include "dispatch/purse.h"
#include "dispatch/scan.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/word.h"

#define LOOK_NS 1000000
#define KERNEL_ASSUMED_NS 10000 /* what a wake-up costs, until an attached thread has measured it */
#define FDS_MAX 256
#define MEASURED 16u /* looks, at a time */

static struct {
	pthread_mutex_t lock; /* users, and the life of the thread */
	pthread_t thread;
	unsigned users;
	bool runs; /* for users, or because the settings' agent wants it */
	bool by_settings;
	int32_t tid;
	uint32_t stop;
	uint32_t changes; /* futex word: goes up when the thread is to look at its settings, or to stop */
	uint64_t tick_ns; /* as its users want it; 0: by the budget */

	/* Only the daemon thread uses these. */
	uint32_t seen; /* changes that it knows of: it does not sleep while there are more */
	uint64_t cost; /* of a look, in clock ticks, sleeping and waking included */
	uint64_t cpu_before, work_before, looks;
	uint32_t quiet; /* looks in a row that found nothing */
	uint32_t rung;  /* a bell has ended a nap: peers ring */
	struct contd__purse purse;
} daemon_state = {.lock = PTHREAD_MUTEX_INITIALIZER};
#define S daemon_state

/* ------------------------------------------------------------------------------------------------------ looking --- */

/* Is there something that only a look can find, that waits for memory, or that the daemon may run itself? */
static bool something_to_do(void)
{
	return contd__load_seq(&contd__words.pending) || contd__load_seq(&contd__put_off_carried) ||
	       contd__sources_pending_sig(WHERE_DAEMON) || contd__marked_sig(CLASSES_DAEMON);
}

/* Must the daemon ring a thread in a compute region when a descriptor says that there is something to look at? */
static bool watches_for_regions(void)
{
	return contd__load(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK &&
	       contd__load_seq(&contd__page->armed.by.thread) && contd__sources_pending_sig(WHERE_REGION);
}

/* Returns whether there was anything. last: if not, the daemon sleeps. */
static bool look(bool last)
{
	/* Back to the sources after a while, however much there is to run. */
	struct contd__budget budget = {.count = UINT32_MAX,
				       .deadline = contd__ticks() + (uint64_t)(LOOK_NS * contd__clock.ticks_per_ns),
				       .by = SCAN_DAEMON};
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);
	uint64_t work = contd__self.work;
	bool found;

	contd__words_look_sig(UINT32_MAX);
	contd__carried_retry_sig();
	contd__sources_drive_sig(WHERE_DAEMON, NULL, last);
	found = contd__self.work != work; /* a source that has moved something */
	if (contd__marked_sig(CLASSES_DAEMON)) {
		uint64_t begin = contd__ticks();

		found |= contd__scan_sig(CLASSES_DAEMON, &budget) != 0;
		contd__worked_sig(contd__ticks() - begin);
	}
	/* The classes that only threads of the application may run: interrupt one of them. */
	if (ops && contd__marked_sig(CLASSES_THREAD))
		found |= ops->notify() != 0;
	/* The classes that neither daemon nor handler may run: interrupt a thread that computes in a region. */
	if (ops && contd__marked_sig(CLASSES_PLAIN))
		found |= ops->notify_region() != 0;
	return found;
}

/* ----------------------------------------------------------------------------------------------------- sleeping --- */

static uint64_t kernel_ticks(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);
	uint64_t ns = ops ? ops->tick_cost_ns() : 0;

	/* A wake-up costs the thread that runs on that processor about what a timer signal does: the interrupt and two
	 * switches. The daemon's own processor time does not include that. */
	return (uint64_t)((double)(ns ? ns : KERNEL_ASSUMED_NS) * contd__clock.ticks_per_ns);
}

/* The interval follows from the overhead budget and from what a look costs. */
static uint64_t interval_ns(void)
{
	double ns = (double)(S.cost + kernel_ticks()) * (1 << 20) / (double)contd__load(&contd__limits.tick_rate) /
		    contd__clock.ticks_per_ns;
	uint64_t least = contd__load(&contd__limits.tick_min), most = contd__load(&contd__limits.tick_max),
		 tick = contd__load(&S.tick_ns), base;

	if (tick)
		return tick;
	base = ns < (double)least ? least : ns > (double)most ? most : (uint64_t)ns;
	return contd__quiet_interval(contd__sources_steady_sig(WHERE_DAEMON) ? 0 : S.quiet, base, most);
}

/* The thread's processor time per look, sleeping and waking included. Callbacks are work, not looking. */
static void measure(void)
{
	struct timespec cpu;
	uint64_t now;

	if (++S.looks % MEASURED)
		return;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	now = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
	if (S.cpu_before) {
		uint64_t spent = (uint64_t)((double)(now - S.cpu_before) * contd__clock.ticks_per_ns);

		S.cost = contd__look_cost(S.cost, spent, contd__self.work - S.work_before, MEASURED);
	}
	S.cpu_before = now;
	S.work_before = contd__self.work;
}

/* The daemon is about to sleep in this way, and may be woken. */
static void arm(uint32_t how)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	if (ops)
		ops->drain();
	contd__daemon_arm(how);
}

/* The daemon does not sleep any more. Returns whether a thread has woken it. */
static bool disarm(void)
{
	enum contd__woken woken = contd__daemon_disarm();

	if (woken == WOKEN_BY_PEER) {
		S.rung = 1;
		CONTD_COUNT(rings, 1);
	}
	return woken != WOKEN_NOT;
}

/* May peers and completions end the next nap, or have they cost enough for now? */
static bool may_be_woken(void)
{
	uint64_t now = contd__ticks(), once = S.cost + kernel_ticks();

	contd__purse_pay_sig(&S.purse, now, once, once);
	if (!contd__purse_bears_sig(&S.purse, now)) {
		if (S.rung)
			S.quiet = 0;
		return false;
	}
	if (S.rung)
		contd__quiet_where_rung(&S.quiet);
	return true;
}

static bool changed(void)
{
	return contd__load_seq(&S.changes) != S.seen;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

/* Sleep for one interval, but no longer than until bells and descriptors may wake the daemon again. Only a change of
 * the settings ends this early. */
static void rest(void)
{
	uint64_t ns = interval_ns(), most = UINT64_MAX;
	struct timespec ts;

	if (S.purse.spent)
		most = (uint64_t)((double)contd__purse_half_full_in(&S.purse, contd__ticks(), 0) /
				  contd__clock.ticks_per_ns) +
		       1000;
	ts = timespec_of(ns < most ? ns : most);

	CONTD_TESTPOINT("daemon_rests");
	syscall(SYS_futex, &S.changes, FUTEX_WAIT_PRIVATE, S.seen, &ts, NULL, 0);
}

static void nap(void)
{
	struct timespec ts;

	if (!may_be_woken()) {
		rest();
		return;
	}
	ts = timespec_of(interval_ns());
	/* Arm, look again, sleep. */
	arm(DAEMON_NAPS);
	CONTD_TESTPOINT("daemon_naps");
	if (!look(true) && !changed())
		contd__daemon_nap(&ts);
	disarm();
}

/* Nothing is pending: sleep until something is. */
static void sleep_on(void)
{
	/* Arm, look again, sleep. */
	contd__daemon_sleep_begin();
	CONTD_TESTPOINT("daemon_sleeps");
	if (!something_to_do() && !watches_for_regions() && !changed())
		contd__daemon_sleep();
	contd__daemon_sleep_end();
}

/* ------------------------------------------------------------------------------------------------ agent "block" --- */

/*
 * Descriptors of the sources that have something pending, if the daemon, or a thread that is armed in a region, may
 * look at them, and which of them are regions'; in *ns how long to wait for them. Returns their number, or
 *
 *     -1       a source has none, and must be looked at in turns; or memory words are watched
 *     -EAGAIN  look first
 *     -EBUSY   the thread in a region must look first
 *     0        nothing is pending any more
 */
static int descriptors(int *fds, bool *regions, uint64_t *ns)
{
	uint32_t n = contd__load_acquire(&contd__sources.count);
	uint32_t where = WHERE_DAEMON | (contd__load_seq(&contd__page->armed.by.thread) ? WHERE_REGION : 0);
	int count = 0;

	if (contd__load_seq(&contd__words.pending))
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		struct contd__source *source = contd__sources.source[i];
		uint64_t most = *ns;
		int more;

		if (!(source->where & where) || !source->pending())
			continue;
		more = source->sleep_on ? source->sleep_on(fds + count, FDS_MAX - count, &most) : 0;
		contd__store(&source->slept_on, more > 0);
		if (more == -EAGAIN)
			return source->where & WHERE_DAEMON ? -EAGAIN : -EBUSY;
		if (more <= 0)
			return -1;
		for (int end = count + more; count < end; count++)
			regions[count] = source->where & WHERE_REGION;
		*ns = most < *ns ? most : *ns;
	}
	return count;
}

/* Interrupt the thread that is armed: what it waits for has come. */
static void ring_region(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);
	uint32_t tid = contd__load_seq(&contd__page->armed.by.thread);

	if (!ops || !tid || !(tid = contd__xchg(&contd__page->armed.by.thread, 0)))
		return;
	CONTD_TESTPOINT("region_bell_taken");
	/* Its checkpoints see that. But outside its region there may be none. */
	if (tid & BELL_WATCHED && ops->computing((int32_t)(tid & ~BELL_WATCHED)))
		return;
	ops->ring((int32_t)(tid & ~BELL_WATCHED));
}

/*
 * Sleep until a descriptor is readable, a peer or a thread of this process rings, or the longest tick is over (for
 * events that no descriptor reports). false: the daemon cannot sleep this way.
 */
static bool block(bool looks)
{
	struct pollfd polled[FDS_MAX + 1];
	int fds[FDS_MAX], n, ready = 0;
	bool regions[FDS_MAX], rings = false;
	uint64_t ns = contd__load(&contd__limits.tick_max);
	struct timespec ts;

	/* Arm before asking for descriptors: what becomes pending, or is armed, after that ends the sleep. */
	arm(DAEMON_POLLS);
	n = descriptors(fds, regions, &ns);
	if (n <= 0) {
		disarm();
		if (n == -EBUSY)
			ring_region();
		return n != -1;
	}
	polled[0] = (struct pollfd){.fd = contd__wake.daemon_fd, .events = POLLIN};
	for (int i = 0; i < n; i++)
		polled[i + 1] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	CONTD_TESTPOINT("daemon_polls");
	if (!(looks && look(true)) && !changed()) {
		ts = timespec_of(ns);
		ready = ppoll(polled, (nfds_t)n + 1, &ts, NULL);
	}
	if (disarm() || polled[0].revents) {
		uint64_t count;

		(void)!read(contd__wake.daemon_fd, &count, sizeof(count));
	}
	for (int i = 0; i < n && ready > 0; i++)
		rings |= regions[i] && polled[i + 1].revents;
	if (rings)
		ring_region();
	return true;
}

/* --------------------------------------------------------------------------------------------------- the thread --- */

/* Between two looks. */
static void pause_between(bool found, bool looks)
{
	uint32_t mode = contd__load(&contd__wake.daemon_mode);

	if (mode == CONTD_AGENT_SPIN && looks) {
		if (!found)
			CONTD_RELAX();
		return;
	}
	measure();
	if (mode == CONTD_AGENT_BLOCK && block(looks)) {
		/* In a busy stream one sleep per event is not worth it, and would cost more than the budget. */
		if (!may_be_woken())
			rest();
		return;
	}
	nap();
}

static void *daemon_main(void *arg)
{
	(void)arg;
	contd__store_release(&S.tid, (int32_t)syscall(SYS_gettid));
	prctl(PR_SET_TIMERSLACK, 1ul); /* the default of 50 µs would be most of a tick: prctl(2) */
	contd__thread_register();
	contd__context_enter_sig(CONTEXT_DAEMON);              /* for ever */
	S.cost = (uint64_t)(5000 * contd__clock.ticks_per_ns); /* until it has been measured */
	S.cpu_before = S.looks = 0;
	S.quiet = S.rung = 0;
	contd__purse_open(&S.purse, contd__ticks());
	/* First `changes`, then the values that change (stop, mode). A thread that changes one goes the other way
	 * round. */
	while ((S.seen = contd__load_seq(&S.changes)), !contd__load_seq(&S.stop)) {
		bool found, looks = something_to_do();

		if (!looks && !watches_for_regions()) {
			sleep_on();
			continue;
		}
		found = looks && look(false);
		contd__quiet_count(&S.quiet, found);
		if (looks && !something_to_do() && !watches_for_regions())
			continue; /* no nap: nothing is left to look at */
		pause_between(found, looks);
	}
	return NULL;
}

/* ------------------------------------------------------------------------------------------------- its settings --- */

/* Enough for any Linux: the kernel does not write to a set that has no room for all of its processors. */
struct cpus {
	cpu_set_t set[8];
};
#define CPUS_MOST (8 * CPU_SETSIZE)

/* Reads a list such as "0,2-3"; -EINVAL if it is none. */
static int read_cpus(const char *text, struct cpus *cpus)
{
	CPU_ZERO_S(sizeof(*cpus), cpus->set);
	for (;;) {
		char *end;
		unsigned long from = strtoul(text, &end, 10), to;

		if (*text < '0' || *text > '9')
			return -EINVAL;
		to = from;
		if (*end == '-') {
			text = end + 1;
			to = strtoul(text, &end, 10);
			if (*text < '0' || *text > '9')
				return -EINVAL;
		}
		if (to < from || to >= CPUS_MOST)
			return -EINVAL;
		for (; from <= to; from++)
			CPU_SET_S(from, sizeof(*cpus), cpus->set);
		if (!*end)
			return 0;
		if (*end != ',')
			return -EINVAL;
		text = end + 1;
	}
}

static int read_sched(const char *text, int *policyp, int *levelp)
{
	static const struct {
		const char *name;
		int policy, min, max;
	} known[] = {{"other", SCHED_OTHER, -20, 19},
		     {"batch", SCHED_BATCH, -20, 19},
		     {"idle", SCHED_IDLE, 0, 0},
		     {"fifo", SCHED_FIFO, 1, 99},
		     {"rr", SCHED_RR, 1, 99}};
	size_t length = strcspn(text, ":");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		long level = known[i].min > 0 ? 1 : 0;
		char *end;

		if (strlen(known[i].name) != length || strncmp(known[i].name, text, length) != 0)
			continue;
		if (text[length]) {
			const char *number = text + length + 1, *digits = number + (*number == '-');

			level = strtol(number, &end, 10);
			if (*digits < '0' || *digits > '9' || *end || level < known[i].min || level > known[i].max)
				return -EINVAL;
		}
		*policyp = known[i].policy;
		*levelp = (int)level;
		return 0;
	}
	return -EINVAL;
}

int contd__daemon_check(const struct contd_config *c)
{
	struct cpus cpus;
	int policy, level;

	if (c->daemon_cpus && read_cpus(c->daemon_cpus, &cpus))
		return contd__fail(-EINVAL, "cfg->daemon_cpus must be a list of processors, as in 0,2-3");
	if (c->daemon_sched && read_sched(c->daemon_sched, &policy, &level))
		return contd__fail(
			-EINVAL,
			"cfg->daemon_sched must be other, batch, idle, fifo or rr, with :priority behind it where "
			"wanted (1 to 99 for fifo and rr, a nice value for other and batch)");
	return 0;
}

/*
 * All of it or nothing. The kernel never refuses a higher nice value, but takes it back only with privilege. So raising
 * the value comes last, and lowering it comes first.
 */
static int apply_sched_locked(const char *text)
{
	struct sched_param param = {0};
	id_t tid = (id_t)contd__load(&S.tid);
	int policy, level, before, rc;

	read_sched(text, &policy, &level);
	if (policy == SCHED_FIFO || policy == SCHED_RR) {
		param.sched_priority = level;
		return pthread_setschedparam(S.thread, policy, &param);
	}
	before = getpriority(PRIO_PROCESS, tid);
	if (level <= before && setpriority(PRIO_PROCESS, tid, level))
		return errno;
	rc = pthread_setschedparam(S.thread, policy, &param);
	if (rc)
		level = before;
	return !setpriority(PRIO_PROCESS, tid, level) || rc ? rc : errno;
}

/*
 * Give the thread its name, processors and scheduling from the settings. Scheduling comes last: it may be refused for
 * lack of privilege, and then the rest can be put back.
 */
static int apply_locked(void)
{
	const struct contd_config *c = &contd__config;
	struct cpus cpus, cpus_before;
	char name_before[16];
	int rc = 0;

	pthread_getaffinity_np(S.thread, sizeof(cpus_before), cpus_before.set);
	pthread_getname_np(S.thread, name_before, sizeof(name_before));
	if (c->daemon_cpus) {
		read_cpus(c->daemon_cpus, &cpus);
		rc = pthread_setaffinity_np(S.thread, sizeof(cpus), cpus.set);
		if (rc)
			return contd__fail(
				-rc, "daemon_cpus names no processor that this process may use (sched_setaffinity(2)); "
				     "name some of those that 'taskset -p' shows");
	}
	pthread_setname_np(S.thread, c->daemon_name);
	if (c->daemon_sched && (rc = apply_sched_locked(c->daemon_sched)) != 0) {
		pthread_setname_np(S.thread, name_before);
		pthread_setaffinity_np(S.thread, sizeof(cpus_before), cpus_before.set);
		return contd__fail(-rc,
				   "daemon_sched: the kernel refuses it (sched_setscheduler(2), setpriority(2)); raise "
				   "RLIMIT_RTPRIO or RLIMIT_NICE");
	}
	return 0;
}

/* ----------------------------------------------------------------------------------------------------- its life --- */

/* Make the thread look at what has changed, whatever it is doing. */
static void rouse(void)
{
	contd__add(&S.changes, 1);
	contd__wake_daemon_sig(true);
	syscall(SYS_futex, &S.changes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Its descriptor stays: wake.h says until when. */
static void end_locked(void)
{
	int cancel;

	if (!S.runs)
		return;
	contd__store_seq(&S.stop, 1);
	CONTD_TESTPOINT("daemon_ends");
	rouse();
	cancel = contd__cancel_off();
	pthread_join(S.thread, NULL);
	contd__cancel_as(cancel);
	S.runs = false;
	contd__daemon_says(0);
	contd__store(&S.tid, 0);
}

void (*contd__daemon_changed)(void);

/*
 * Dekker: the mode was stored, then these are loaded. Partners: contd__whom_sig(), and callers of
 * contd__daemon_on_change(), who load the mode next.
 */
void contd__daemon_hand_over(void)
{
	/* The caller's error; continuations that run here may set another. */
	const char *text = contd__error_text, *call = contd__error_call;
	void (*tell)(void);

	if (!contd__load_seq(&contd__wake.daemon_mode)) {
		if ((tell = contd__load_seq(&contd__daemon_changed)) != NULL)
			tell();
		if (contd__waits_sig(CLASSES_DAEMON))
			contd__kick_sig(KICK_REGION);
	}
	contd__error_back_sig(text, call);
}

/* How the daemon waits: by the settings' agent, or by ticks if that agent has no daemon. */
static uint32_t mode(void)
{
	return contd__config.agent >= CONTD_AGENT_TICK ? (uint32_t)contd__config.agent : CONTD_AGENT_TICK;
}

/* Sets the mode. Agent "block" needs a descriptor, too. */
static int set_mode_locked(void)
{
	int rc = mode() == CONTD_AGENT_BLOCK ? contd__daemon_fd_make() : 0;

	if (rc)
		return contd__fail(rc, "cannot make a file descriptor for the daemon; raise RLIMIT_NOFILE");
	contd__daemon_says(mode());
	return 0;
}

static int start_locked(void)
{
	int rc = set_mode_locked();

	if (rc)
		return rc;
	contd__store(&S.stop, 0);
	rc = contd__own_thread_create(&S.thread, daemon_main, NULL);
	if (rc) {
		contd__daemon_says(0);
		return contd__fail(-rc, "cannot create the daemon's thread; raise RLIMIT_NPROC");
	}
	S.runs = true;
	while (!contd__load_acquire(&S.tid))
		contd__rest();
	rc = apply_locked();
	if (rc)
		end_locked();
	return rc;
}

int contd__daemon_configure(const struct contd_config *before)
{
	bool wanted = contd__config.agent >= CONTD_AGENT_TICK;
	int rc = 0;

	pthread_mutex_lock(&S.lock);
	if (!S.runs && wanted) {
		contd__store(&S.tick_ns, 0);
		rc = start_locked();
	} else if (S.runs && !wanted && S.users == 0) {
		end_locked();
	} else if (S.runs) {
		rc = set_mode_locked();
		if (!rc)
			rc = apply_locked();
		/* Put back what was in force: the caller restores the settings themselves. */
		if (rc && before)
			contd__daemon_says(
				(uint32_t)(before->agent >= CONTD_AGENT_TICK ? before->agent : CONTD_AGENT_TICK));
		rouse();
	}
	if (!rc)
		S.by_settings = wanted;
	pthread_mutex_unlock(&S.lock);
	return rc;
}

int contd_daemon_start(const struct contd_daemon_attr *given)
{
	struct contd_daemon_attr attr = {.size = sizeof(attr)};
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (given &&
	    (rc = contd__sized_take(&attr, sizeof(attr), given,
				    CONTD_SIZED_TEXTS("contd_daemon_start", "attr", "struct contd_daemon_attr"))) != 0)
		return rc;
	if (attr.tick_ns && (attr.tick_ns < 1000 || attr.tick_ns > 10000000000))
		return contd__fail(-EINVAL, "contd_daemon_start: attr->tick_ns must be 0, or from 1000 to 10000000000");
	if (contd__in_handler() || contd__on_daemon_sig())
		return contd__fail(-EDEADLK,
				   "contd_daemon_start: not on the daemon thread, nor in a handler outside regions");
	CONTD_TESTPOINT("live_checked");
	/* contd_configure() must not change the settings under it. */
	if ((rc = contd__live_lock()) != 0)
		return contd__fail_in(__func__, rc);
	if ((rc = contd__check_live()) != 0) { /* another thread's contd_fini() may have had the lock */
		contd__live_unlock();
		return rc;
	}
	pthread_mutex_lock(&S.lock);
	if (!S.runs) {
		contd__store(&S.tick_ns, attr.tick_ns);
		rc = start_locked();
	} else if (given && attr.tick_ns != S.tick_ns) {
		rc = contd__fail(-EBUSY,
				 "contd_daemon_start: it runs already with another attr->tick_ns; attr may be NULL");
	}
	if (!rc)
		S.users++;
	pthread_mutex_unlock(&S.lock);
	contd__live_unlock();
	contd__fail_in(__func__, rc);
	if (rc)
		contd__daemon_hand_over();
	return rc;
}

int contd_daemon_stop(void)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (contd__in_handler() || contd__on_daemon_sig())
		return contd__fail(-EDEADLK,
				   "contd_daemon_stop: not on the daemon thread, nor in a handler outside regions");
	contd__carried_release_sig(); /* the daemon may be in a callback that waits for those */
	pthread_mutex_lock(&S.lock);
	if (S.users == 0) {
		rc = contd__fail(-EPERM, "contd_daemon_stop: it is not running by contd_daemon_start(); call it once "
					 "for each of those calls");
	} else if (--S.users == 0 && !S.by_settings) {
		end_locked();
	} else if (S.users == 0 && contd__load(&S.tick_ns)) {
		contd__store(&S.tick_ns, 0);
		rouse();
	}
	pthread_mutex_unlock(&S.lock);
	if (!rc) {
		contd__pending_sig(); /* threads that sleep because the daemon looks for them may have to look now */
		contd__daemon_hand_over();
	}
	return rc;
}

void contd__daemon_end(void)
{
	pthread_mutex_lock(&S.lock);
	end_locked();
	S.users = 0;
	S.by_settings = false;
	contd__store(&S.tick_ns, 0);
	pthread_mutex_unlock(&S.lock);
}

void contd__daemon_forked(void)
{
	S.runs = S.by_settings = false;
	S.users = 0;
}
