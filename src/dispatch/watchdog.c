/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog's thread. It reports, once per site, what took longer than the bound, and what is still running after
 * it. It exists only while a bound is set. Ordinary code.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own_thread.h"
#include "base/say.h"
#include "base/testpoint.h"
#include "dispatch/late.h"
#include "dispatch/limits.h"
#include "dispatch/thread.h"
#include "dispatch/watchdog.h"

#define PERIOD_MIN_NS 10000000u /* between two looks: as long as the bound, but within these */
#define PERIOD_MAX_NS 1000000000u

static struct {
	pthread_t thread;
	bool runs;
	uint32_t stop; /* futex word */

	/* The function to call, and its data. contd_configure() may change them meanwhile: both together. */
	pthread_mutex_t lock;
	contd_watchdog *tell;
	void *data;
	uint64_t bound_ns;
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread bool here __attribute__((tls_model("initial-exec"))); /* this is its thread */

static void to_stderr(const struct contd_late *late, void *data)
{
	(void)data;
	contd__say("watchdog: %s %s (%p) %s %.3f ms (%s), over the bound of %.3f ms", late->what,
		   late->symbol ? late->symbol : "without a name", late->site,
		   late->running ? "has been running for" : "took", (double)late->ns / 1e6, late->where,
		   (double)contd__load(&watchdog.bound_ns) / 1e6);
}

static void report(const void *site, unsigned what, unsigned where, uint64_t ticks, bool running)
{
	static const char *const whats[] = {"continuation", "handler", "source"};
	static const char *const wheres[] = {"thread", "handler", "region", "daemon"};
	struct contd_late late = {
		.what = whats[what],
		.where = wheres[where],
		.site = site,
		.ns = (uint64_t)((double)ticks / contd__clock.ticks_per_ns),
		.running = running,
	};
	contd_watchdog *tell;
	Dl_info info;
	void *data;

	if (dladdr(site, &info))
		late.symbol = info.dli_sname;
	pthread_mutex_lock(&watchdog.lock);
	tell = watchdog.tell;
	data = watchdog.data;
	pthread_mutex_unlock(&watchdog.lock);
	(tell ? tell : to_stderr)(&late, data);
}

static void look(void)
{
	struct contd__running running[64];
	unsigned n = contd__threads_running(running, 64);

	/* Note continuations that still run as sites first, so that each is reported once. */
	for (unsigned i = 0; i < n; i++) {
		uint64_t now = contd__ticks();
		uint32_t at = (uint32_t)((uintptr_t)running[i].site >> 4) % LATE_SITES;
		struct contd__late_site *s = NULL;

		if (now <= running[i].since ||
		    !contd__late_note_sig(running[i].site, LATE_CONTINUATION, now - running[i].since))
			continue;
		for (unsigned probes = 0; probes < LATE_SITES && !s; probes++, at = (at + 1) % LATE_SITES)
			if (contd__load(&contd__late_sites[at].site) == running[i].site)
				s = &contd__late_sites[at];
		if (s && contd__load_acquire(&s->ticks) && !contd__xchg(&s->reported, 1))
			report(running[i].site, s->what, running[i].context, now - running[i].since, true);
	}
	for (unsigned i = 0; i < LATE_SITES; i++) {
		struct contd__late_site *s = &contd__late_sites[i];

		/* Acquire: pairs with the release in contd__late_note_sig. */
		if (contd__load_acquire(&s->ticks) && !contd__load(&s->reported) && !contd__xchg(&s->reported, 1))
			report(contd__load(&s->site), s->what, s->where, contd__load(&s->ticks), false);
	}
}

bool contd__on_watchdog(void)
{
	return here;
}

static void *watchdog_main(void *arg)
{
	(void)arg;
	here = true;
	while (!contd__load_acquire(&watchdog.stop)) {
		uint64_t ns = contd__load(&watchdog.bound_ns);
		struct timespec ts;

		if (ns < PERIOD_MIN_NS)
			ns = PERIOD_MIN_NS;
		if (ns > PERIOD_MAX_NS)
			ns = PERIOD_MAX_NS;
		ts = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
		syscall(SYS_futex, &watchdog.stop, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
		look();
	}
	look(); /* what was noted since */
	return NULL;
}

void contd__watchdog_settle(const struct contd_config *config)
{
	pthread_mutex_lock(&watchdog.lock);
	watchdog.tell = config->watchdog;
	watchdog.data = config->watchdog_data;
	contd__store(&watchdog.bound_ns, config->watchdog_ns);
	pthread_mutex_unlock(&watchdog.lock);
}

int contd__watchdog_start(void)
{
	int rc;

	if (watchdog.runs || contd__config.watchdog_ns == 0)
		return 0;
	contd__store(&watchdog.stop, 0);
	rc = contd__own_thread_create(&watchdog.thread, watchdog_main, NULL);
	if (rc)
		return contd__fail(-rc, "cannot create the watchdog's thread; raise RLIMIT_NPROC");
	/* Here, so that it has its name when the caller's call returns. */
	pthread_setname_np(watchdog.thread, "contd-watchdog");
	watchdog.runs = true;
	return 0;
}

bool contd__watchdog_runs(void)
{
	return watchdog.runs;
}

void contd__watchdog_stop(void)
{
	if (!watchdog.runs)
		return;
	contd__store_seq(&watchdog.stop, 1);
	syscall(SYS_futex, &watchdog.stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	CONTD_TESTPOINT("watchdog_ends");
	pthread_join(watchdog.thread, NULL);
	watchdog.runs = false;
}

void contd__watchdog_forget(void)
{
	memset(contd__late_sites, 0, sizeof(contd__late_sites));
}
