/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the dispatcher, and its settings. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dispatch/group.h"
#include "dispatch/stats.h"
#include "dispatch/watch.h"

#define D contd__dispatch

static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER; /* init and fini, which take other locks inside */

/* --------------------------------------------------------------------------------------------------------- errors --- */

const char *contd_error_text(void)
{
	return contd__self.error ? contd__self.error : "";
}

uint32_t contd_version(void)
{
	return CONTD_VERSION_MAJOR << 16 | CONTD_VERSION_MINOR << 8 | CONTD_VERSION_PATCH;
}

/* ------------------------------------------------------------------------------------------------------- settings --- */

static const struct contd_config defaults = {
	.size = sizeof(struct contd_config),
	.agent = CONTD_AGENT_REGION,
	.overhead_percent = 2,
	.tick_min_ns = 10000,
	.tick_max_ns = 10000000,
	.scan_count = 64,
	.scan_ns = 50000,
};

/* A whole number in a variable of the environment: 0 where unset, 1 where read, -EINVAL. */
static int env_number(const char *name, uint64_t *valuep)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long v;

	if (!text)
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return -EINVAL;
	*valuep = v;
	return 1;
}

static int env_apply(struct contd_config *c)
{
	static const char *const agents[] = {"", "caller", "region", "tick"};
	const char *text;
	uint64_t v;
	int rc;

	if ((rc = env_number("CONTD_SIGNAL", &v)) != 0) {
		if (rc < 0 || v > 1000)
			return contd__fail(-EINVAL, "CONTD_SIGNAL must be a number from SIGRTMIN to SIGRTMAX");
		c->signal_number = (int)v;
	}
	if ((rc = env_number("CONTD_SIGNAL_CHAIN", &v)) != 0) {
		if (rc < 0 || v > 1)
			return contd__fail(-EINVAL, "CONTD_SIGNAL_CHAIN must be 0 or 1");
		c->signal_taken = v ? CONTD_SIGNAL_CHAIN : CONTD_SIGNAL_REFUSE;
	}
	if ((rc = env_number("CONTD_TICK_MIN_NS", &v)) != 0) {
		if (rc < 0 || v == 0)
			return contd__fail(-EINVAL, "CONTD_TICK_MIN_NS must be a number of nanoseconds");
		c->tick_min_ns = v;
	}
	if ((rc = env_number("CONTD_TICK_MAX_NS", &v)) != 0) {
		if (rc < 0 || v == 0)
			return contd__fail(-EINVAL, "CONTD_TICK_MAX_NS must be a number of nanoseconds");
		c->tick_max_ns = v;
	}
	if ((rc = env_number("CONTD_SCAN_COUNT", &v)) != 0) {
		if (rc < 0 || v == 0 || v > UINT32_MAX)
			return contd__fail(-EINVAL, "CONTD_SCAN_COUNT must be a number from 1 to 1000000");
		c->scan_count = (uint32_t)v;
	}
	if ((rc = env_number("CONTD_SCAN_NS", &v)) != 0) {
		if (rc < 0 || v == 0)
			return contd__fail(-EINVAL, "CONTD_SCAN_NS must be a number of nanoseconds");
		c->scan_ns = v;
	}
	if ((text = getenv("CONTD_OVERHEAD_PERCENT")) != NULL) {
		char *end;

		c->overhead_percent = strtod(text, &end);
		if (end == text || *end || !(c->overhead_percent > 0))
			return contd__fail(-EINVAL, "CONTD_OVERHEAD_PERCENT must be a number from 0.1 to 50");
	}
	if ((text = getenv("CONTD_AGENT")) != NULL) {
		int agent = 0;

		for (int i = CONTD_AGENT_CALLER; i <= CONTD_AGENT_TICK; i++)
			if (strcmp(text, agents[i]) == 0)
				agent = i;
		if (!agent)
			return contd__fail(-EINVAL, "CONTD_AGENT must be caller, region or tick");
		c->agent = agent;
	}
	return 0;
}

static int config_make(const struct contd_config *given, struct contd_config *c)
{
	int rc;

	*c = defaults;
	c->signal_number = SIGRTMAX - 3;
	if (given) {
		if (given->size != sizeof(*given))
			return contd__fail(-EINVAL, "contd_init: set cfg->size to sizeof(struct contd_config)");
		if (given->signal_number)
			c->signal_number = given->signal_number;
		c->signal_taken = given->signal_taken;
		if (given->agent)
			c->agent = given->agent;
		if (given->overhead_percent != 0)
			c->overhead_percent = given->overhead_percent;
		if (given->tick_min_ns)
			c->tick_min_ns = given->tick_min_ns;
		if (given->tick_max_ns)
			c->tick_max_ns = given->tick_max_ns;
		if (given->scan_count)
			c->scan_count = given->scan_count;
		if (given->scan_ns)
			c->scan_ns = given->scan_ns;
	}
	rc = env_apply(c);
	if (rc)
		return rc;
	if (c->signal_number < SIGRTMIN || c->signal_number > SIGRTMAX)
		return contd__fail(-EINVAL, "signal_number must be from SIGRTMIN to SIGRTMAX");
	if (c->signal_taken != CONTD_SIGNAL_REFUSE && c->signal_taken != CONTD_SIGNAL_CHAIN)
		return contd__fail(-EINVAL, "signal_taken must be one of enum contd_signal_taken");
	if (c->agent < CONTD_AGENT_CALLER || c->agent > CONTD_AGENT_TICK)
		return contd__fail(-EINVAL, "agent must be one of enum contd_agent");
	if (!(c->overhead_percent >= 0.1 && c->overhead_percent <= 50))
		return contd__fail(-EINVAL, "overhead_percent must be from 0.1 to 50");
	if (c->tick_min_ns < 1000 || c->tick_min_ns > 1000000000)
		return contd__fail(-EINVAL, "tick_min_ns must be from 1000 to 1000000000");
	if (c->tick_max_ns < c->tick_min_ns || c->tick_max_ns > 10000000000)
		return contd__fail(-EINVAL, "tick_max_ns must be from tick_min_ns to 10000000000");
	if (c->scan_count > 1000000)
		return contd__fail(-EINVAL, "scan_count must be from 1 to 1000000");
	if (c->scan_ns < 1000 || c->scan_ns > 1000000000)
		return contd__fail(-EINVAL, "scan_ns must be from 1000 to 1000000000");
	return 0;
}

/* ----------------------------------------------------------------------------------------------------------- life --- */

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The rate of the fast clock, to about one part in a thousand. */
static double measure_ticks_per_ns(void)
{
	uint64_t ns = clock_ns(), ticks = contd__ticks(), end;

	while ((end = clock_ns()) < ns + 500000)
		;
	return (double)(contd__ticks() - ticks) / (double)(end - ns);
}

static void in_child(void)
{
	const struct contd__signal_ops *ops = D.signal_ops;

	if (!D.live)
		return;
	D.forked = 1;
	D.fd_armed = 0; /* the descriptor is the parent's too */
	if (ops)
		ops->forked();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static int start_locked(const struct contd_config *cfg)
{
	static const struct contd__ordinary ordinary = {contd__thread_register, contd__table_grow};
	static pthread_once_t forks = PTHREAD_ONCE_INIT;
	struct contd_config c;
	int rc = config_make(cfg, &c);

	if (rc)
		return rc;
	pthread_once(&forks, watch_forks);
	D.ordinary = &ordinary;
	D.config = c;
	D.ticks_per_ns = measure_ticks_per_ns();
	D.scan_ticks = (uint64_t)((double)c.scan_ns * D.ticks_per_ns);
	CDS_INIT_LIST_HEAD(&D.groups);
	__cds_lfs_init(&D.dead);
	contd__stats_reset();
	rc = contd__signal_start(&c);
	if (rc)
		return rc;
	contd__store_seq(&D.live, 1);
	if (c.agent == CONTD_AGENT_TICK && (rc = contd_daemon_start(NULL)) != 0) {
		contd__store_seq(&D.live, 0);
		D.signal_ops->stop();
	}
	return rc;
}

int contd_init(const struct contd_config *cfg)
{
	int rc = 0;

	if (contd__load(&D.forked))
		return contd__check_live();
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_init: not in a signal handler");
	pthread_mutex_lock(&life_lock);
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
	contd__thread_ensure();
	D.signal_ops->stop();
	contd__store_release(&D.source_count, 0);
	left = contd__groups_fini();
	contd__words_fini();
	contd__store(&D.words_pending, 0);
	for (unsigned c = 0; c < CLASSES; c++)
		memset(&D.root[c], 0, sizeof(D.root[c]));
	if (D.fd >= 0)
		close(D.fd);
	D.fd = -1;
	D.fd_armed = 0;
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
