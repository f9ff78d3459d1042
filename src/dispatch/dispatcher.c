/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the dispatcher, and its settings. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dispatch/group.h"
#include "dispatch/settings.h"
#include "dispatch/stats.h"
#include "dispatch/watch.h"
#include "dispatch/watchdog.h"

#define D contd__dispatch

static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER; /* init, fini and settings; other locks are taken inside */

/* --------------------------------------------------------------------------------------------------------- errors --- */

const char *contd_error_text(void)
{
	return contd__self.error ? contd__self.error : "";
}

uint32_t contd_version(void)
{
	return CONTD_VERSION_MAJOR << 16 | CONTD_VERSION_MINOR << 8 | CONTD_VERSION_PATCH;
}

/* ----------------------------------------------------------------------------------------------------------- life --- */

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Both clocks at one moment: of several tries the one between whose readings the least time has passed, for a thread that
 * loses its processor just there would be wrong by milliseconds.
 */
static uint64_t both_clocks(uint64_t *nsp)
{
	uint64_t least = UINT64_MAX, ticks = 0;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t before = contd__ticks(), ns = clock_ns(), passed = contd__ticks() - before;

		if (passed >= least)
			continue;
		least = passed;
		ticks = before + passed / 2;
		*nsp = ns;
	}
	return ticks;
}

/* The rate of the fast clock, to about one part in a thousand. */
static double measure_ticks_per_ns(void)
{
	uint64_t begin, end = 0, ticks = both_clocks(&begin), now;

	do
		now = both_clocks(&end);
	while (end < begin + 500000);
	return (double)(now - ticks) / (double)(end - begin);
}

static void in_child(void)
{
	const struct contd__signal_ops *ops = D.signal_ops;

	if (!D.live)
		return;
	D.forked = 1;
	D.fd_armed = 0; /* the descriptor is the parent's too */
	contd__daemon_forked();
	if (ops)
		ops->forked();
}

/* Once a process. */
static int watch_forks_locked(void)
{
	static bool watched;
	int err = watched ? 0 : pthread_atfork(NULL, NULL, in_child);

	watched = watched || !err;
	return err ? contd__fail(-err, "contd_init: out of memory (pthread_atfork)") : 0;
}

/* Put the settings in force: what is derived from them, and copies of the texts. */
static void settle(const struct contd_config *c)
{
	static char kept[2][3][CONTD_SETTING_TEXT]; /* two: what is put in force may be what was in force before */
	static unsigned turn;
	const char **texts[] = {&D.config.daemon_name, &D.config.daemon_cpus, &D.config.daemon_sched};

	D.config = *c;
	turn ^= 1;
	for (unsigned i = 0; i < 3; i++) {
		if (!*texts[i])
			continue;
		memmove(kept[turn][i], *texts[i], strlen(*texts[i]) + 1); /* its length was checked: settings.c */
		*texts[i] = kept[turn][i];
	}
	contd__store(&D.scan_ticks, (uint64_t)((double)c->scan_ns * D.ticks_per_ns));
	contd__store(&D.tick_rate, (uint64_t)(c->overhead_percent / 100 * 0.8 * (1 << 20)));
	contd__store(&D.tick_min, c->tick_min_ns);
	contd__store(&D.tick_max, c->tick_max_ns);
	contd__store(&D.scan_count, c->scan_count);
	contd__store(&D.purse_rate, (uint64_t)(c->overhead_percent / 100 * 0.9 * (1 << 20)));
	contd__store(&D.purse_most, (uint64_t)(c->overhead_percent / 100 * 0.1 * (double)D.second));
	contd__watchdog_settle(c);
	contd__store(&D.late_ticks, (uint64_t)((double)c->watchdog_ns * D.ticks_per_ns));
}

/* Nobody uses them any more. */
static void close_descriptors(void)
{
	if (D.fd >= 0)
		close(D.fd);
	if (D.daemon_fd >= 0)
		close(D.daemon_fd);
	D.fd = D.daemon_fd = -1;
	D.fd_armed = 0;
}

static int start_locked(const struct contd_config *cfg)
{
	static const struct contd__ordinary ordinary = {contd__thread_register, contd__table_grow};
	struct contd_config c;
	int rc = contd__settings_make(cfg, NULL, &c);

	if (rc)
		return rc;
	rc = watch_forks_locked();
	if (!rc)
		rc = contd__threads_start();
	if (rc)
		return rc;
	D.ordinary = &ordinary;
	D.ticks_per_ns = measure_ticks_per_ns();
	D.second = (uint64_t)(1e9 * D.ticks_per_ns);
	settle(&c);
	CDS_INIT_LIST_HEAD(&D.groups);
	__cds_lfs_init(&D.dead);
	contd__stats_reset();
	contd__store(&D.lives, D.lives + 1);
	rc = contd__signal_start(&c);
	if (rc)
		return rc;
	contd__store_seq(&D.live, 1);
	if ((rc = contd__watchdog_start()) != 0 || (rc = contd__daemon_configure(NULL)) != 0) {
		contd__daemon_end();
		contd__watchdog_end();
		contd__store_seq(&D.live, 0);
		D.signal_ops->stop();
		D.signal_ops->give_back();
		close_descriptors();
	}
	return rc;
}

/*
 * Its holder may wait for the daemon's thread to end, or for handlers of other threads. So a callback that runs there does not
 * wait for it.
 */
int contd__life_lock(void)
{
	if (contd__self.context == CONTEXT_THREAD)
		pthread_mutex_lock(&life_lock);
	else if (pthread_mutex_trylock(&life_lock))
		return contd__fail(-EBUSY, "another thread is in contd_init, contd_configure or contd_fini; call it later, or not "
					   "in a continuation that a handler or the daemon runs");
	return 0;
}

void contd__life_unlock(void)
{
	pthread_mutex_unlock(&life_lock);
}

int contd_configure(const struct contd_config *cfg)
{
	struct contd_config c, before;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!cfg)
		return contd__fail(-EINVAL, "contd_configure: cfg must not be NULL");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_configure: not in a signal handler");
	if (contd__self.context == CONTEXT_DAEMON)
		return contd__fail(-EDEADLK, "contd_configure: not on the daemon thread");
	rc = contd__life_lock();
	if (rc)
		return rc;
	before = D.config;
	rc = contd__settings_make(cfg, &before, &c);
	if (!rc && (c.signal_number != before.signal_number || c.signal_taken != before.signal_taken || c.bell != before.bell))
		rc = contd__fail(-EBUSY, "contd_configure: signal_number, signal_taken and bell can't be changed while contd runs");
	if (!rc) {
		settle(&c);
		rc = contd__watchdog_start();
		if (!rc)
			rc = contd__daemon_configure(&before);
		if (rc)
			settle(&before);
		D.signal_ops->configured();
		contd__pending_sig(); /* who sleeps in a wait for the daemon to look may have to look now */
	}
	pthread_mutex_unlock(&life_lock);
	return rc;
}

int contd_init(const struct contd_config *cfg)
{
	int rc = 0;

	if (contd__load(&D.forked))
		return contd__check_live();
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_init: not in a signal handler");
	rc = contd__life_lock();
	if (rc)
		return rc;
	if (D.live && cfg)
		rc = contd__fail(-EALREADY, "contd_init: running already; only the first call may bring settings");
	else if (D.live)
		contd__add(&D.live, 1);
	else
		rc = start_locked(cfg);
	pthread_mutex_unlock(&life_lock);
	return rc;
}

int contd_fini(void)
{
	int rc = contd__check_live();
	uint32_t left;

	if (rc)
		return rc;
	if (contd__self.frame)
		return contd__fail(-EDEADLK, "contd_fini: inside a continuation");
	pthread_mutex_lock(&life_lock);
	if (D.live > 1) {
		contd__sub(&D.live, 1);
		pthread_mutex_unlock(&life_lock);
		return 0;
	}
	contd__daemon_end();
	contd__watchdog_end();
	contd__thread_ensure();
	D.signal_ops->stop();
	contd__store_release(&D.source_count, 0);
	left = contd__groups_fini();
	contd__words_fini();
	contd__store(&D.put_off_carried, NULL);
	contd__store(&D.words_pending, 0);
	for (unsigned c = 0; c < CLASSES; c++)
		if (D.root[c].bit)
			memset(&D.root[c], 0, sizeof(D.root[c]));
	contd__store(&contd__ready, 0);
	close_descriptors();
	contd__store(&D.regions, 0);
	contd__store_seq(&D.live, 0);
	pthread_mutex_unlock(&life_lock);
	return left > INT_MAX ? INT_MAX : (int)left;
}

int contd__source_register(struct contd__source *source)
{
	uint32_t n;
	int rc = 0;

	pthread_mutex_lock(&D.lock);
	n = D.source_count;
	if (n == SOURCES_MAX) {
		rc = contd__fail(-EAGAIN, "too many sources");
	} else {
		D.source[n] = source;
		/* Release: pairs with the acquires of who walks the sources. */
		contd__store_release(&D.source_count, n + 1);
	}
	pthread_mutex_unlock(&D.lock);
	return rc;
}
