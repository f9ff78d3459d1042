/* SPDX-License-Identifier: BSD-3-Clause */
/* Test, wait, poll and the file descriptor: how ordinary threads run what is ready. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rest.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/group.h"
#include "dispatch/interrupt.h"
#include "dispatch/live.h"
#include "dispatch/run.h"
#include "dispatch/scan.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wait.h"
#include "dispatch/wake.h"
#include "dispatch/ways.h"
#include "dispatch/word.h"

#define NAP_MIN_NS 10000 /* sleeping while a memory word is watched: first and longest nap */
#define NAP_MAX_NS 1000000
#define SPIN_NS 20000 /* looking at sources without giving the processor away, when nothing is found */

/* The classes that a call may run on this thread: a continuation on the daemon may call test, wait and poll, too. */
static uint32_t classes_here(void)
{
	return contd__on_daemon_sig() ? CLASSES_DAEMON : CLASSES_ALL;
}

static enum contd__where where_here(void)
{
	return contd__on_daemon_sig() ? WHERE_DAEMON : WHERE_THREAD;
}

/* Continuations between two passes over the sources, and the number of such passes. */
#define FEW 32u
#define TIMES 8

uint32_t contd__taken_run_driving(struct contd__taking *t, void (*drive)(struct contd__taking *t))
{
	uint32_t ran = contd__taken_run(t, FEW);

	for (int times = TIMES; t->next < t->count && times; times--) {
		t->count -= t->next;
		memmove(t->carried, t->carried + t->next, t->count * sizeof(t->carried[0]));
		t->next = 0;
		drive(t);
		ran += contd__taken_run(t, FEW);
	}
	return ran + contd__taken_run(t, UINT32_MAX);
}

static void take_from_sources(struct contd__taking *t)
{
	struct contd__taking *outer = contd__takes_begin(t);

	contd__sources_drive_sig(where_here(), NULL, false);
	contd__takes_end(outer);
	contd__wake_untold_sig();
}

/* Returns how many ran, of `most`, which is 1 at least. */
static uint32_t drive_sources(uint32_t most)
{
	struct contd__taking taking;

	contd__taking_init(&taking, most);
	take_from_sources(&taking);
	return contd__taken_run_driving(&taking, take_from_sources);
}

uint32_t contd__scan_by_handle(struct contd_group *g, struct contd__budget *budget)
{
	struct contd__outlet *o;
	uint32_t ran;

	CONTD_TESTPOINT("by_handle");
	o = contd__load(&g->flags) & GROUP_PULL ? contd__load(&g->outlet) : NULL;
	CONTD_TESTPOINT("outlet_loaded");
	/* The group may just have got another one, which may go. */
	if (o && !contd__lent_to_sig(o))
		return 0;
	if (o)
		o->ops->begin(o);
	ran = contd__scan_group_sig(g, NULL, budget);
	if (o)
		o->ops->end(o);
	return ran;
}

uint32_t contd__drive(struct contd_group *g, uint32_t most, bool limit, bool sources)
{
	struct contd__budget budget = {.count = most};
	struct contd__testing testing;
	uint32_t ran = 0, kicks;
	bool finite;

	contd__thread_ensure();
	finite = g && contd__limited(g);
	if (finite && limit)
		contd__testing_of(&testing, g);
	else if (finite)
		contd__waiting_of(&testing, g);
	contd__carried_release_sig();
	kicks = contd__words_look_sig(UINT32_MAX);
	if (sources) {
		budget.ran = ran = drive_sources(most);
		budget.count -= ran;
		contd__carried_retry_sig(); /* what they have left without a bit: g may be poll-only */
	}
	if (g && contd__may_scan_sig(g))
		ran += contd__scan_by_handle(g, &budget);
	if (contd__waits_sig(classes_here()))
		ran += contd__scan_sig(classes_here(), &budget);
	if (kicks && contd__marked_sig(CLASSES_ALL))
		contd__kick_sig(kicks);
	contd__pickup(); /* before the test ends: what this runs counts for it */
	if (finite)
		contd__testing_end(testing.outer);
	return ran;
}

void contd__look_beside(const struct contd__source *mine)
{
	contd__carried_release_sig();
	contd__kick_sig(contd__words_look_sig(UINT32_MAX));
	contd__sources_drive_sig(where_here(), mine, false);
}

int contd_group_test(struct contd_group *group, int *completep)
{
	uint32_t ran;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!group || !completep)
		return contd__fail(-EINVAL, !group ? CONTD_NULL("contd_group_test", "group")
						   : CONTD_NULL("contd_group_test", "completep"));
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_test: not in a signal handler");
	contd__group_pin_sig(group); /* a callback may give the handle back */
	ran = contd__drive(group, UINT32_MAX, true, true);
	*completep = contd__group_outstanding_sig(group) == 0 && !contd__inside_sig(group);
	contd__group_unpin_sig(group);
	return ran > INT_MAX ? INT_MAX : (int)ran;
}

/* Is there something pending that only this thread's looks find, now and then at least? */
static bool must_look(void)
{
	uint32_t n = contd__load_acquire(&contd__sources.count), here = where_here();
	bool blocks = contd__load_seq(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK;

	for (uint32_t i = 0; i < n; i++) {
		const struct contd__source *s = contd__sources.source[i];

		/* The daemon finds its completions as soon as a descriptor tells of them, and wakes this thread. */
		if (blocks && s->where & WHERE_DAEMON && s->tells && contd__load(&s->slept_on))
			continue;
		if (s->where & here && s->pending())
			return true;
	}
	return false;
}

/*
 * Sleep until something is ready or complete, for ns at most (< 0: no limit): arm, look again, sleep. naps: sleep
 * whatever is pending, because the thread looks again soon. barred: and whatever is ready. waits: it may wait for work
 * of the executors whose work it is in, or to which it is lent.
 */
static void doze(bool (*still)(const void *), const void *what, int64_t ns, bool naps, bool barred, bool waits)
{
	struct timespec ts = {ns / 1000000000, ns % 1000000000};
	uint32_t seen;

	for (struct contd__at_work *w = contd__self.at_work; waits && w; w = w->outer)
		if (w->outlet)
			contd__add(&w->outlet->waiters, 1);
	seen = contd__sleeper_begin();
	if (still(what) && (barred || !contd__marked_sig(classes_here())) &&
	    (naps ||
	     (!contd__load_seq(&contd__words.pending) && !contd__load_seq(&contd__put_off_carried) && !must_look())))
		contd__sleeper_sleep(seen, ns < 0 ? NULL : &ts);
	contd__sleeper_end();
	for (struct contd__at_work *w = contd__self.at_work; waits && w; w = w->outer)
		if (w->outlet)
			contd__sub(&w->outlet->waiters, 1);
}

void contd__idle_over(struct contd__idling *idling)
{
	idling->since = 0;
	idling->nap = NAP_MIN_NS;
	idling->barred = 0;
}

void contd__idle(struct contd__idling *idling, bool (*still)(const void *), const void *what, int64_t left)
{
	int64_t nap = idling->nap;
	bool looks = must_look(),
	     words = contd__load_seq(&contd__words.pending) || contd__load_seq(&contd__put_off_carried), early = false,
	     barred;

	/* More than once: what the first look left may have become ready after it. */
	idling->barred = contd__marked_sig(classes_here()) ? idling->barred + 1 : 0;
	barred = idling->barred > 1;
	if (looks || idling->lent) {
		if (!idling->since)
			idling->since = contd__ticks();
		early = contd__ticks() - idling->since < (uint64_t)(SPIN_NS * contd__clock.ticks_per_ns);
	}
	/*
	 * A source that no other thread drives cannot wake this one. It spins at first, because a thread that gives the
	 * processor away may come back milliseconds later if other programs want it, too.
	 */
	if (looks && early && !idling->gives_way) {
		CONTD_RELAX();
	} else if (looks || early) {
		contd__rest();
	} else if (words || barred) {
		doze(still, what, left >= 0 && left < nap ? left : nap, true, barred, !idling->lent);
		idling->nap = nap * 2 > NAP_MAX_NS ? NAP_MAX_NS : nap * 2;
	} else {
		doze(still, what, left, false, false, !idling->lent);
	}
}

/* Is the wait for the group not over, with nothing of it that this thread may run? */
static bool waits(const void *group)
{
	const struct contd_group *g = group;

	return contd__group_outstanding_sig(g) != 0 && (!contd__may_scan_sig(g) || !contd__table_any_sig(&g->table));
}

/* The caller holds a pin: a callback may give the handle back. */
static int wait_for(struct contd_group *group, int64_t timeout_ns)
{
	struct contd__idling idling = {0};
	int64_t until = 0, left = -1;

	if (timeout_ns >= 0 && __builtin_add_overflow(contd__now_ns(), timeout_ns, &until))
		timeout_ns = -1; /* some 200 years */
	contd__idle_over(&idling);
	while (contd__group_outstanding_sig(group)) {
		uint32_t ran = contd__drive(group, UINT32_MAX, false, true);

		if (contd__load(&contd__live.forked))
			return contd__check_live_sig(
				"contd_group_wait"); /* a callback has forked, and this is the child */
		if (contd__group_outstanding_sig(group) == 0)
			break;
		if (timeout_ns >= 0 && (left = until - contd__now_ns()) <= 0)
			return contd__fail(
				-ETIMEDOUT,
				"contd_group_wait: continuations are still outstanding after timeout_ns; wait again");
		if (ran)
			contd__idle_over(&idling);
		else
			contd__idle(&idling, waits, group, left);
	}
	return 0;
}

int contd_group_wait(struct contd_group *group, int64_t timeout_ns)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!group || timeout_ns < -1)
		return contd__fail(-EINVAL, !group ? CONTD_NULL("contd_group_wait", "group")
						   : "contd_group_wait: timeout_ns must be at least -1");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_wait: not in a signal handler");
	if (contd__inside_sig(group))
		return contd__fail(-EDEADLK,
				   "contd_group_wait: not in one of group's own continuations: it would never end");
	contd__group_pin_sig(group);
	rc = wait_for(group, timeout_ns);
	contd__group_unpin_sig(group);
	return rc;
}

/* ---------------------------------------------------------------------------------------------- poll and its fd --- */

/* Something waits for a poll, which finds it without looking at a source. */
static bool waits_for_poll(void)
{
	return contd__marked_sig(CLASSES_ALL) || contd__load_seq(&contd__put_off_carried);
}

int contd_poll(uint32_t max)
{
	uint32_t ran;
	int fd, rc = contd__check_live();

	if (rc)
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_poll: not in a signal handler");
	fd = contd__load_acquire(&contd__wake.fd);
	if (fd >= 0)
		contd__fd_clear(fd);
	ran = contd__drive(NULL, max ? max : UINT32_MAX, false, true);
	if (contd__load(&contd__wake.fd) >= 0 && waits_for_poll())
		contd__fd_raise(contd__load(&contd__wake.fd));
	return ran > INT_MAX ? INT_MAX : (int)ran;
}

static pthread_mutex_t fd_lock = PTHREAD_MUTEX_INITIALIZER; /* for making it */

int contd_fd(void)
{
	int fd, rc = contd__check_live();

	if (rc)
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_fd: not in a signal handler");
	pthread_mutex_lock(&fd_lock);
	fd = contd__wake.fd;
	if (fd < 0) {
		fd = contd__fd_make();
		rc = fd < 0 ? fd : 0;
		if (fd >= 0 && waits_for_poll())
			contd__fd_raise(fd);
	}
	pthread_mutex_unlock(&fd_lock);
	return rc ? contd__fail(rc, "contd_fd: cannot make a file descriptor; raise RLIMIT_NOFILE") : fd;
}
