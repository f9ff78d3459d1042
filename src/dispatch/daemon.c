/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon thread: ticks while something is pending that must be looked at, sleeps otherwise. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dispatch/group.h"

#define D contd__dispatch

#define LOOK_NS 1000000
#define KERNEL_ASSUMED_NS 10000 /* what a wake-up costs where no thread has attached, which would have measured it */

static struct {
	pthread_mutex_t lock; /* users, and the life of the thread */
	pthread_t thread;
	unsigned users;
	uint32_t stop;
	uint64_t tick_ns; /* 0: by the budget */
} daemon_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Something that only looking can find, or that the daemon may run itself, or must tell a thread of. */
static bool something_to_do(void)
{
	return contd__load_seq(&D.words_pending) || contd__sources_pending_sig(WHERE_DAEMON) ||
	       contd__marked_sig(CLASSES_DAEMON);
}

static void look(void)
{
	/* Back to the sources after a while, however much there is to run. */
	struct contd__budget budget = {.count = UINT32_MAX, .deadline = contd__ticks() + (uint64_t)(LOOK_NS * D.ticks_per_ns)};
	const struct contd__signal_ops *ops = contd__load_acquire(&D.signal_ops);

	contd__words_look_sig(UINT32_MAX);
	contd__sources_drive_sig(WHERE_DAEMON);
	if (contd__marked_sig(CLASSES_DAEMON))
		contd__scan_through_sig(CLASSES_DAEMON, &budget);
	/* The class that only threads of the application may run: interrupt one of them. */
	if (ops && contd__marked_sig(1u << CLASS_SIGNAL))
		ops->notify();
}

/* What looking costs decides, with the overhead budget, how often it is done. */
static uint64_t interval_ns(uint64_t cost_ticks)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&D.signal_ops);
	uint64_t kernel_ns = ops ? ops->tick_cost_ns() : 0;
	/* Being woken costs whoever runs on that processor about what a timer signal does: the interrupt and two switches,
	 * which this thread's own time does not show. */
	double cost_ns = (double)cost_ticks / D.ticks_per_ns + (double)(kernel_ns ? kernel_ns : KERNEL_ASSUMED_NS);
	double ns = cost_ns * 100 / D.config.overhead_percent;

	if (daemon_state.tick_ns)
		return daemon_state.tick_ns;
	if (ns < (double)D.config.tick_min_ns)
		return D.config.tick_min_ns;
	return ns > (double)D.config.tick_max_ns ? D.config.tick_max_ns : (uint64_t)ns;
}

static void nap(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	/* Until the time is over or the thread is to end. */
	syscall(SYS_futex, &daemon_state.stop, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
}

static void *daemon_main(void *arg)
{
	uint64_t cost = (uint64_t)(5000 * D.ticks_per_ns); /* until it has been measured */
	struct timespec cpu;
	uint64_t cpu_before = 0, looks = 0;

	(void)arg;
	pthread_setname_np(pthread_self(), "contd");
	prctl(PR_SET_TIMERSLACK, 1ul); /* the default of 50 µs would be most of a tick: prctl(2) */
	contd__thread_register();
	contd__self.context = CONTEXT_DAEMON;
	while (!contd__load_acquire(&daemon_state.stop)) {
		uint32_t seen = contd__load_seq(&D.daemon_wake);

		if (!something_to_do()) {
			/* Arm, look again, sleep. */
			contd__store_seq(&D.daemon_asleep, 1);
			if (!something_to_do() && !contd__load_seq(&daemon_state.stop))
				syscall(SYS_futex, &D.daemon_wake, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
			contd__store_seq(&D.daemon_asleep, 0);
			continue;
		}
		look();
		/* This thread's processor time a look, sleeping and waking included. */
		if (++looks % 16 == 0) {
			uint64_t now;

			clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
			now = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
			if (cpu_before) {
				uint64_t sample = (uint64_t)((double)(now - cpu_before) / 16 * D.ticks_per_ns);

				/* One slow look among them (a page fault, a long message) is not what looking costs. */
				cost = (3 * cost + (sample < 2 * cost ? sample : 2 * cost)) / 4;
			}
			cpu_before = now;
		}
		nap(interval_ns(cost));
	}
	return NULL;
}

/* The thread is to be told, whether it sleeps or is about to. */
static void wake(void)
{
	contd__add(&D.daemon_wake, 1);
	syscall(SYS_futex, &D.daemon_wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	syscall(SYS_futex, &daemon_state.stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int start_thread(void)
{
	sigset_t all, before;
	int rc;

	/* No signal of the program's is to be handled on a thread that it does not know of. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	contd__store(&daemon_state.stop, 0);
	rc = pthread_create(&daemon_state.thread, NULL, daemon_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int contd_daemon_start(const struct contd_daemon_attr *attr)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (attr && attr->size != sizeof(*attr))
		return contd__fail(-EINVAL, "contd_daemon_start: set attr->size to sizeof(struct contd_daemon_attr)");
	if (attr && attr->tick_ns && (attr->tick_ns < 1000 || attr->tick_ns > 10000000000))
		return contd__fail(-EINVAL, "contd_daemon_start: tick_ns must be 0, or from 1000 to 10000000000");
	if (contd__self.context != CONTEXT_THREAD)
		return contd__fail(-EDEADLK, "contd_daemon_start: not on the daemon thread, nor in a handler");
	pthread_mutex_lock(&daemon_state.lock);
	if (daemon_state.users == 0) {
		daemon_state.tick_ns = attr ? attr->tick_ns : 0;
		rc = start_thread();
		if (rc)
			rc = contd__fail(-rc, "contd_daemon_start: no thread to be had; raise RLIMIT_NPROC");
	} else if (attr && attr->tick_ns != daemon_state.tick_ns) {
		rc = contd__fail(-EBUSY, "contd_daemon_start: it runs already with another tick_ns");
	}
	if (!rc)
		daemon_state.users++;
	pthread_mutex_unlock(&daemon_state.lock);
	return rc;
}

static void end_locked(void)
{
	contd__store_seq(&daemon_state.stop, 1);
	wake();
	pthread_join(daemon_state.thread, NULL);
	daemon_state.users = 0;
}

int contd_daemon_stop(void)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (contd__self.context != CONTEXT_THREAD)
		return contd__fail(-EDEADLK, "contd_daemon_stop: not on the daemon thread, nor in a handler");
	pthread_mutex_lock(&daemon_state.lock);
	if (daemon_state.users == 0)
		rc = contd__fail(-EPERM, "contd_daemon_stop: it is not running");
	else if (daemon_state.users > 1)
		daemon_state.users--;
	else
		end_locked();
	pthread_mutex_unlock(&daemon_state.lock);
	return rc;
}

void contd__daemon_end(void)
{
	pthread_mutex_lock(&daemon_state.lock);
	if (daemon_state.users)
		end_locked();
	pthread_mutex_unlock(&daemon_state.lock);
}
