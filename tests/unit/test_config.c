/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: each is honoured, or refused with a reason; and the life of the dispatcher. */
#include <float.h>
#include <limits.h>
#include <math.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/limits.h"
#include "dispatch/settings.h"
#include "dispatch/wake.h"
#include "signal/attached.h"
#include "signal/budget.h"
#include "signal/handler.h"

TestSuite(config, .timeout = WATCHDOG);

#define CONFIG contd__config

static struct contd_config fresh(void)
{
	return (struct contd_config){.size = sizeof(struct contd_config)};
}

/* -------------------------------------------------------------------------------------------- accepted, refused --- */

#define accepted(field_, value_) \
	do { \
		struct contd_config c_ = fresh(); \
		c_.field_ = (value_); \
		must(contd_init(&c_)); \
		cr_assert_eq(CONFIG.field_, (value_), "%s", #field_); \
		cr_assert_eq(contd_fini(), 0); \
	} while (0)

#define refused(field_, value_) \
	do { \
		struct contd_config c_ = fresh(); \
		c_.field_ = (value_); \
		must_fail(contd_init(&c_), EINVAL); \
		cr_assert(strstr(contd_error_text(), #field_), "%s", contd_error_text()); \
		must_fail(contd_fini(), EPERM); \
	} while (0)

Test(config, defaults)
{
	struct contd_config zero = fresh();

	for (unsigned i = 0; i < 2; i++) {
		must(contd_init(i ? &zero : NULL));
		cr_assert_eq(CONFIG.signal_number, SIGRTMAX - 3);
		cr_assert_eq(CONFIG.signal_taken, CONTD_SIGNAL_REFUSE);
		cr_assert_eq(CONFIG.agent, CONTD_AGENT_REGION);
		cr_assert_eq(CONFIG.overhead_percent, 2.0);
		cr_assert_eq(CONFIG.tick_min_ns, 10000);
		cr_assert_eq(CONFIG.tick_max_ns, 10000000);
		cr_assert_eq(CONFIG.scan_count, 64);
		cr_assert_eq(CONFIG.scan_ns, 50000);
		cr_assert_eq(CONFIG.bell, CONTD_BELL_ON);
		cr_assert_eq(CONFIG.watchdog_ns, 0);
		cr_assert(CONFIG.watchdog == NULL);
		cr_assert_str_eq(CONFIG.daemon_name, "contd");
		cr_assert_null(CONFIG.daemon_cpus);
		cr_assert_null(CONFIG.daemon_sched);
		cr_assert_null(CONFIG.dump_signal);
		cr_assert_null(CONFIG.dump_file);
		cr_assert_eq(contd_fini(), 0);
	}
}

Test(config, size_of_the_struct)
{
	struct contd_config c = fresh();

	/* Sizes that no structure has; tests/sized has those of other headers. */
	for (size_t size = 0; size < 2 * sizeof(c); size++) {
		c.size = size;
		if (size == 0 || size % 8)
			must_fail(contd_init(&c), EINVAL);
	}
	c.size = SIZE_MAX;
	must_fail(contd_init(&c), EINVAL);
	cr_assert_str_eq(contd_error_text(), "contd_init: set cfg->size to sizeof(struct contd_config)");
	must_fail(contd_fini(), EPERM);
}

Test(config, fields_at_the_ends_of_their_ranges)
{
	accepted(signal_number, SIGRTMIN);
	accepted(signal_number, SIGRTMAX);
	refused(signal_number, SIGRTMIN - 1);
	refused(signal_number, SIGRTMAX + 1);
	refused(signal_number, -1);
	refused(signal_number, INT_MIN);
	refused(signal_number, SIGKILL);
	accepted(signal_taken, CONTD_SIGNAL_REFUSE);
	accepted(signal_taken, CONTD_SIGNAL_CHAIN);
	refused(signal_taken, CONTD_SIGNAL_CHAIN + 1);
	refused(signal_taken, -1);
	accepted(agent, CONTD_AGENT_CALLER);
	accepted(agent, CONTD_AGENT_REGION);
	accepted(agent, CONTD_AGENT_TICK);
	accepted(agent, CONTD_AGENT_BLOCK);
	accepted(agent, CONTD_AGENT_SPIN);
	refused(agent, CONTD_AGENT_SPIN + 1);
	refused(agent, -1);
	accepted(overhead_percent, 0.1);
	accepted(overhead_percent, 50.0);
	refused(overhead_percent, 0.0999);
	refused(overhead_percent, 50.001);
	refused(overhead_percent, -2.0);
	refused(overhead_percent, DBL_MIN);
	refused(overhead_percent, (double)NAN);
	refused(overhead_percent, (double)INFINITY);
	accepted(tick_min_ns, 1000u);
	refused(tick_min_ns, 999u);
	refused(tick_min_ns, 1u);
	refused(tick_min_ns, 1000000001u);
	refused(tick_min_ns, UINT64_MAX);
	accepted(tick_max_ns, 10000u); /* the default shortest tick */
	accepted(tick_max_ns, 10000000000u);
	refused(tick_max_ns, 9999u);
	refused(tick_max_ns, 10000000001u);
	refused(tick_max_ns, UINT64_MAX);
	accepted(scan_count, 1u);
	accepted(scan_count, 1000000u);
	refused(scan_count, 1000001u);
	refused(scan_count, UINT32_MAX);
	accepted(scan_ns, 1000u);
	accepted(scan_ns, 1000000000u);
	refused(scan_ns, 999u);
	refused(scan_ns, 1000000001u);
	accepted(bell, CONTD_BELL_ON);
	accepted(bell, CONTD_BELL_OFF);
	refused(bell, CONTD_BELL_OFF + 1);
	refused(bell, -1);
	accepted(verbose, CONTD_VERBOSE_ERRORS);
	accepted(verbose, CONTD_VERBOSE_SETTINGS);
	refused(verbose, CONTD_VERBOSE_SETTINGS + 1);
	refused(verbose, -1);
	refused(reserved, 1);
	accepted(watchdog_ns, 1000u);
	accepted(watchdog_ns, 1000000000000u);
	refused(watchdog_ns, 999u);
	refused(watchdog_ns, 1u);
	refused(watchdog_ns, 1000000000001u);
	refused(watchdog_ns, UINT64_MAX);
}

#define accepted_text(field_, value_) \
	do { \
		struct contd_config c_ = fresh(); \
		c_.field_ = (value_); \
		must(contd_init(&c_)); \
		cr_assert_str_eq(CONFIG.field_, (value_)); \
		cr_assert_neq(CONFIG.field_, c_.field_, "a copy"); \
		cr_assert_eq(contd_fini(), 0); \
	} while (0)

Test(config, texts)
{
	char text[300];

	accepted_text(daemon_name, "c");
	accepted_text(daemon_name, "fifteen_letters");
	refused(daemon_name, "sixteen__letters");
	refused(daemon_name, "");
	accepted_text(daemon_cpus, "0");
	accepted_text(daemon_cpus, "0-8191");
	accepted_text(daemon_cpus, "5,0-2,7,1");
	refused(daemon_cpus, "");
	refused(daemon_cpus, "0-8192");
	refused(daemon_cpus, "2-1");
	refused(daemon_cpus, "all");
	/* The longest one, and one more. */
	memset(text, '0', sizeof(text));
	text[255] = 0;
	accepted_text(daemon_cpus, text);
	text[255] = '0';
	text[256] = 0;
	refused(daemon_cpus, text);
	accepted_text(daemon_sched, "other");
	accepted_text(daemon_sched, "other:-20");
	accepted_text(daemon_sched, "other:19");
	accepted_text(daemon_sched, "batch");
	accepted_text(daemon_sched, "idle");
	accepted_text(daemon_sched, "fifo:1");
	accepted_text(daemon_sched, "rr:99");
	refused(daemon_sched, "");
	refused(daemon_sched, "other:20");
	refused(daemon_sched, "other:-21");
	refused(daemon_sched, "fifo:0");
	refused(daemon_sched, "rr:100");
	refused(daemon_sched, "none");
	accepted_text(stats, "exit:/dev/null");
	refused(stats, "");
	refused(stats, "exit:");
	refused(stats, "exit:%d");
	refused(stats, "always");
}

Test(config, shortest_and_longest_tick_together)
{
	struct contd_config c = fresh();

	c.tick_min_ns = 1000000000;
	must_fail(contd_init(&c), EINVAL); /* the default longest one is shorter */
	c.tick_max_ns = 999999999;
	must_fail(contd_init(&c), EINVAL);
	c.tick_max_ns = 1000000000;
	must(contd_init(&c));
	cr_assert_eq(CONFIG.tick_min_ns, 1000000000);
	cr_assert_eq(CONFIG.tick_max_ns, 1000000000);
	cr_assert_eq(contd_fini(), 0);
	c.tick_min_ns = 1000;
	c.tick_max_ns = 1000;
	must(contd_init(&c));
	cr_assert_eq(contd_fini(), 0);
}

/* ---------------------------------------------------------------------------------------------- the environment --- */

struct env_case {
	const char *name, *value;
	bool good;
};

static const struct env_case env_cases[] = {
	{"CONTD_SIGNAL_CHAIN", "0", true},
	{"CONTD_SIGNAL_CHAIN", "1", true},
	{"CONTD_SIGNAL_CHAIN", "2", false},
	{"CONTD_SIGNAL_CHAIN", "", false},
	{"CONTD_SIGNAL_CHAIN", "yes", false},
	{"CONTD_SIGNAL_CHAIN", "-1", false},
	{"CONTD_AGENT", "caller", true},
	{"CONTD_AGENT", "region", true},
	{"CONTD_AGENT", "tick", true},
	{"CONTD_AGENT", "", false},
	{"CONTD_AGENT", "Tick", false},
	{"CONTD_AGENT", "tick ", false},
	{"CONTD_AGENT", "2", false},
	{"CONTD_AGENT", "default", false},
	{"CONTD_AGENT", "block", true},
	{"CONTD_AGENT", "spin", true},
	{"CONTD_AGENT", "spin,block", false},
	{"CONTD_AGENT", "spins", false},
	{"CONTD_BELL", "0", true},
	{"CONTD_BELL", "1", true},
	{"CONTD_BELL", "2", false},
	{"CONTD_BELL", "", false},
	{"CONTD_BELL", "on", false},
	{"CONTD_BELL", "-1", false},
	{"CONTD_WATCHDOG_NS", "1000", true},
	{"CONTD_WATCHDOG_NS", "1000000000000", true},
	{"CONTD_WATCHDOG_NS", "999", false},
	{"CONTD_WATCHDOG_NS", "1000000000001", false},
	{"CONTD_WATCHDOG_NS", "0", false},
	{"CONTD_WATCHDOG_NS", "", false},
	{"CONTD_WATCHDOG_NS", "1s", false},
	{"CONTD_WATCHDOG_NS", "99999999999999999999", false},
	{"CONTD_DAEMON_NAME", "d", true},
	{"CONTD_DAEMON_NAME", "fifteen_letters", true},
	{"CONTD_DAEMON_NAME", "", false},
	{"CONTD_DAEMON_NAME", "sixteen__letters", false},
	{"CONTD_DAEMON_CPUS", "0", true},
	{"CONTD_DAEMON_CPUS", "0-3,8191", true},
	{"CONTD_DAEMON_CPUS", "", false},
	{"CONTD_DAEMON_CPUS", "0,", false},
	{"CONTD_DAEMON_CPUS", "8192", false},
	{"CONTD_DAEMON_CPUS", "any", false},
	{"CONTD_DAEMON_SCHED", "other", true},
	{"CONTD_DAEMON_SCHED", "batch:19", true},
	{"CONTD_DAEMON_SCHED", "fifo:99", true},
	{"CONTD_DAEMON_SCHED", "idle", true},
	{"CONTD_DAEMON_SCHED", "", false},
	{"CONTD_DAEMON_SCHED", "fifo:100", false},
	{"CONTD_DAEMON_SCHED", "nice", false},
	{"CONTD_DAEMON_SCHED", "other:", false},
	{"CONTD_DUMP_SIGNAL", "USR2", true},
	{"CONTD_DUMP_SIGNAL", "SIGUSR1", true},
	{"CONTD_DUMP_SIGNAL", "12", true},
	{"CONTD_DUMP_SIGNAL", "64", true},
	{"CONTD_DUMP_SIGNAL", "", false},
	{"CONTD_DUMP_SIGNAL", "KILL", false},
	{"CONTD_DUMP_SIGNAL", "9", false},
	{"CONTD_DUMP_SIGNAL", "11", false},
	{"CONTD_DUMP_SIGNAL", "65", false},
	{"CONTD_DUMP_SIGNAL", "12x", false},
	{"CONTD_DUMP_SIGNAL", "usr2", false},
	{"CONTD_OVERHEAD_PERCENT", "0.1", true},
	{"CONTD_OVERHEAD_PERCENT", "50", true},
	{"CONTD_OVERHEAD_PERCENT", "0.09", false},
	{"CONTD_OVERHEAD_PERCENT", "50.01", false},
	{"CONTD_OVERHEAD_PERCENT", "0", false},
	{"CONTD_OVERHEAD_PERCENT", "-2", false},
	{"CONTD_OVERHEAD_PERCENT", "nan", false},
	{"CONTD_OVERHEAD_PERCENT", "inf", false},
	{"CONTD_OVERHEAD_PERCENT", "2%", false},
	{"CONTD_OVERHEAD_PERCENT", "2.25", true},
	{"CONTD_OVERHEAD_PERCENT", " 2", false},
	{"CONTD_OVERHEAD_PERCENT", "2.", false},
	{"CONTD_OVERHEAD_PERCENT", ".5", false},
	{"CONTD_OVERHEAD_PERCENT", "1e1", false},
	{"CONTD_OVERHEAD_PERCENT", "0x10", false},
	{"CONTD_OVERHEAD_PERCENT", "1,5", false},
	{"CONTD_OVERHEAD_PERCENT", "", false},
	{"CONTD_TICK_MIN_NS", "1000", true},
	{"CONTD_TICK_MIN_NS", "10000000", true},
	{"CONTD_TICK_MIN_NS", "999", false},
	{"CONTD_TICK_MIN_NS", "10000001", false}, /* > the longest */
	{"CONTD_TICK_MIN_NS", "0", false},
	{"CONTD_TICK_MIN_NS", "", false},
	{"CONTD_TICK_MIN_NS", "1e6", false},
	{"CONTD_TICK_MIN_NS", "-1000", false},
	{"CONTD_TICK_MIN_NS", " 1000", false},
	{"CONTD_TICK_MIN_NS", "1000 ", false},
	{"CONTD_TICK_MIN_NS", "+1000", false},
	{"CONTD_TICK_MIN_NS", "0x1000", false},
	{"CONTD_TICK_MIN_NS", "99999999999999999999", false},
	{"CONTD_TICK_MAX_NS", "10000", true},
	{"CONTD_TICK_MAX_NS", "10000000000", true},
	{"CONTD_TICK_MAX_NS", "9999", false},
	{"CONTD_TICK_MAX_NS", "10000000001", false},
	{"CONTD_TICK_MAX_NS", "0", false},
	{"CONTD_TICK_MAX_NS", "10ms", false},
	{"CONTD_SCAN_COUNT", "1", true},
	{"CONTD_SCAN_COUNT", "1000000", true},
	{"CONTD_SCAN_COUNT", "0", false},
	{"CONTD_SCAN_COUNT", "1000001", false},
	{"CONTD_SCAN_COUNT", "4294967297", false}, /* 1, cut to 32 bits */
	{"CONTD_SCAN_COUNT", "-1", false},
	{"CONTD_SCAN_COUNT", "all", false},
	{"CONTD_SCAN_NS", "1000", true},
	{"CONTD_SCAN_NS", "1000000000", true},
	{"CONTD_SCAN_NS", "999", false},
	{"CONTD_SCAN_NS", "1000000001", false},
	{"CONTD_SCAN_NS", "0", false},
	{"CONTD_SCAN_NS", "", false},
	{"CONTD_VERBOSE", "0", true},
	{"CONTD_VERBOSE", "3", true},
	{"CONTD_VERBOSE", "4", false},
	{"CONTD_VERBOSE", "-1", false},
	{"CONTD_VERBOSE", "", false},
	{"CONTD_VERBOSE", "all", false},
	{"CONTD_STATS", "exit", true},
	{"CONTD_STATS", "exit:/dev/null", true},
	{"CONTD_STATS", "exit:/dev/null/%p.%r.%%", true},
	{"CONTD_STATS", "exit:", false},
	{"CONTD_STATS", "exit:%q", false},
	{"CONTD_STATS", "exit:100%", false},
	{"CONTD_STATS", "exits", false},
	{"CONTD_STATS", "file", false},
	{"CONTD_STATS", "", false},
	{"CONTD_SIGNAL", "0", false},
	{"CONTD_SIGNAL", "9", false},
	{"CONTD_SIGNAL", "1000", false},
	{"CONTD_SIGNAL", "4294967356", false}, /* 60, cut to 32 bits */
	{"CONTD_SIGNAL", "SIGRTMIN", false},
	{"CONTD_SIGNAL", "", false},
	{"CONTD_SIGNAL", "-1", false},
};

static bool env_is_in_force(const struct env_case *e)
{
	static const char *const agents[] = {"default", "caller", "region", "tick", "block", "spin"};
	unsigned long long n = strtoull(e->value, NULL, 10);

	if (strcmp(e->name, "CONTD_SIGNAL_CHAIN") == 0)
		return CONFIG.signal_taken == (int)n;
	if (strcmp(e->name, "CONTD_AGENT") == 0)
		return strcmp(agents[CONFIG.agent], e->value) == 0;
	if (strcmp(e->name, "CONTD_OVERHEAD_PERCENT") == 0)
		return CONFIG.overhead_percent == strtod(e->value, NULL);
	if (strcmp(e->name, "CONTD_TICK_MIN_NS") == 0)
		return CONFIG.tick_min_ns == n;
	if (strcmp(e->name, "CONTD_TICK_MAX_NS") == 0)
		return CONFIG.tick_max_ns == n;
	if (strcmp(e->name, "CONTD_SCAN_COUNT") == 0)
		return CONFIG.scan_count == n;
	if (strcmp(e->name, "CONTD_BELL") == 0)
		return CONFIG.bell == (n ? CONTD_BELL_ON : CONTD_BELL_OFF);
	if (strcmp(e->name, "CONTD_WATCHDOG_NS") == 0)
		return CONFIG.watchdog_ns == n;
	if (strcmp(e->name, "CONTD_DAEMON_NAME") == 0)
		return strcmp(CONFIG.daemon_name, e->value) == 0;
	if (strcmp(e->name, "CONTD_DAEMON_CPUS") == 0)
		return strcmp(CONFIG.daemon_cpus, e->value) == 0;
	if (strcmp(e->name, "CONTD_DAEMON_SCHED") == 0)
		return strcmp(CONFIG.daemon_sched, e->value) == 0;
	if (strcmp(e->name, "CONTD_DUMP_SIGNAL") == 0)
		return strcmp(CONFIG.dump_signal, e->value) == 0;
	if (strcmp(e->name, "CONTD_VERBOSE") == 0)
		return CONFIG.verbose == CONTD_VERBOSE_ERRORS + (int)n;
	if (strcmp(e->name, "CONTD_STATS") == 0)
		return strcmp(CONFIG.stats, e->value) == 0;
	return strcmp(e->name, "CONTD_SCAN_NS") == 0 && CONFIG.scan_ns == n;
}

Test(config, environment_at_the_ends_of_its_ranges)
{
	for (size_t i = 0; i < sizeof(env_cases) / sizeof(env_cases[0]); i++) {
		const struct env_case *e = &env_cases[i];
		int rc;

		setenv(e->name, e->value, 1);
		contd__error_text = NULL;
		rc = contd_init(NULL);
		cr_assert_eq(rc, e->good ? 0 : -EINVAL, "%s=%s gives %d", e->name, e->value, rc);
		if (e->good) {
			cr_assert(env_is_in_force(e), "%s=%s is ignored", e->name, e->value);
			cr_assert_eq(contd_fini(), 0);
		} else {
			cr_assert(strncmp(contd_error_text(), "contd_init: ", 12) == 0 &&
					  strstr(contd_error_text(), e->name) && strstr(contd_error_text(), "must be "),
				  "%s=%s: %s", e->name, e->value, contd_error_text());
			must_fail(contd_fini(), EPERM);
		}
		unsetenv(e->name);
	}
	must(contd_init(NULL));
	cr_assert_eq(contd_fini(), 0);
}

static struct contd__setting_info described(const char *variable)
{
	struct contd__setting_info info;

	for (size_t i = 0; contd__setting_describe(i, &info); i++)
		if (strcmp(info.variable, variable) == 0)
			return info;
	cr_assert_fail("%s is not described", variable);
	return info;
}

/* For people: each value as contd_init() takes it, and its text where that refuses it. */
Test(config, described)
{
	struct contd__setting_info info;
	char longest[CONTD_SETTING_TEXT + 100];
	size_t n = 0;

	contd__fail(0, "as it was");
	for (; contd__setting_describe(n, &info); n++) {
		cr_assert(!info.given && !info.wrong && *info.must, "%s", info.variable);
		cr_assert_str_eq(info.value, info.standard, "%s", info.variable);
	}
	cr_assert_str_eq(contd_error_text(), "as it was");
	cr_assert_eq(n, 17);
	for (size_t i = 0; contd__setting_key(i); i++) {
		bool found = false;

		for (size_t k = 0; contd__setting_describe(k, &info); k++)
			found = found || (info.key && strcmp(info.key, contd__setting_key(i)) == 0);
		cr_assert(found, "%s", contd__setting_key(i));
	}
	cr_assert_eq(atoi(described("CONTD_SIGNAL").standard), SIGRTMAX - 3);
	cr_assert_str_eq(described("CONTD_SIGNAL_CHAIN").standard, "0");
	cr_assert_str_eq(described("CONTD_AGENT").standard, "region");
	cr_assert_str_eq(described("CONTD_OVERHEAD_PERCENT").standard, "2");
	cr_assert_str_eq(described("CONTD_TICK_MAX_NS").standard, "10000000");
	cr_assert_str_eq(described("CONTD_BELL").standard, "1");
	cr_assert_str_eq(described("CONTD_VERBOSE").standard, "1");
	cr_assert_str_eq(described("CONTD_WATCHDOG_NS").standard, "");
	cr_assert_str_eq(described("CONTD_DAEMON_NAME").standard, "contd");
	cr_assert_str_eq(described("CONTD_DAEMON_CPUS").standard, "");
	for (size_t i = 0; i < sizeof(env_cases) / sizeof(env_cases[0]); i++) {
		const struct env_case *e = &env_cases[i];

		setenv(e->name, e->value, 1);
		info = described(e->name);
		cr_assert(info.given);
		if (!e->good && !info.wrong) { /* it is right by itself, but not with another setting */
			must_fail(contd_init(NULL), EINVAL);
			cr_assert(strstr(contd_error_text(), "CONTD_TICK_MIN_NS") &&
					  strstr(contd_error_text(), "CONTD_TICK_MAX_NS"),
				  "%s=%s", e->name, e->value);
		}
		cr_assert(!e->good || !info.wrong, "%s=%s", e->name, e->value);
		if (e->good && strcmp(e->name, "CONTD_OVERHEAD_PERCENT") == 0)
			cr_assert_eq(strtod(info.value, NULL), strtod(e->value, NULL), "%s", info.value);
		else
			cr_assert_str_eq(info.value, e->value, "%s=%s is %s", e->name, e->value, info.value);
		unsetenv(e->name);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	setenv("CONTD_DAEMON_CPUS", longest, 1);
	info = described("CONTD_DAEMON_CPUS");
	cr_assert(info.wrong && strlen(info.value) == CONTD_SETTING_TEXT - 1);
	setenv("CONTD_SIGNAL", "5", 1);
	cr_assert_not_null(described("CONTD_SIGNAL").wrong);
}

Test(config, signal_in_the_environment)
{
	const int ends[] = {SIGRTMIN - 1, SIGRTMIN, SIGRTMAX, SIGRTMAX + 1};
	char text[16];

	for (unsigned i = 0; i < 4; i++) {
		struct sigaction now;

		snprintf(text, sizeof(text), "%d", ends[i]);
		setenv("CONTD_SIGNAL", text, 1);
		if (i == 0 || i == 3) {
			must_fail(contd_init(NULL), EINVAL);
			continue;
		}
		must(contd_init(NULL));
		cr_assert_eq(contd__signals.signal_number, ends[i]);
		sigaction(ends[i], NULL, &now);
		cr_assert(now.sa_sigaction == contd__handler);
		cr_assert_eq(contd_fini(), 0);
	}
}

Test(config, environment_has_the_last_word)
{
	struct contd_config c = {.size = sizeof(c),
				 .signal_number = SIGRTMIN,
				 .signal_taken = CONTD_SIGNAL_CHAIN,
				 .agent = CONTD_AGENT_TICK,
				 .overhead_percent = 10,
				 .tick_min_ns = 2000,
				 .tick_max_ns = 3000,
				 .scan_count = 5,
				 .scan_ns = 6000,
				 .bell = CONTD_BELL_ON,
				 .watchdog_ns = 5000,
				 .daemon_name = "program",
				 .daemon_cpus = "0",
				 .daemon_sched = "idle",
				 .dump_signal = "USR1",
				 .dump_file = "none",
				 .verbose = CONTD_VERBOSE_START,
				 .stats = "exit"};
	char text[16];

	snprintf(text, sizeof(text), "%d", SIGRTMAX - 5);
	setenv("CONTD_SIGNAL", text, 1);
	setenv("CONTD_SIGNAL_CHAIN", "0", 1);
	setenv("CONTD_AGENT", "caller", 1);
	setenv("CONTD_OVERHEAD_PERCENT", "0.5", 1);
	setenv("CONTD_TICK_MIN_NS", "20000", 1);
	setenv("CONTD_TICK_MAX_NS", "30000", 1);
	setenv("CONTD_SCAN_COUNT", "7", 1);
	setenv("CONTD_SCAN_NS", "8000", 1);
	setenv("CONTD_BELL", "0", 1);
	setenv("CONTD_WATCHDOG_NS", "7000000000", 1);
	setenv("CONTD_DAEMON_NAME", "environment", 1);
	setenv("CONTD_DAEMON_CPUS", "0-1", 1);
	setenv("CONTD_DAEMON_SCHED", "batch", 1);
	setenv("CONTD_DUMP_SIGNAL", "USR2", 1);
	setenv("CONTD_DUMP_FILE", "/dev/null", 1);
	setenv("CONTD_VERBOSE", "0", 1);
	setenv("CONTD_STATS", "exit:/dev/null", 1);
	must(contd_init(&c));
	cr_assert_eq(CONFIG.signal_number, SIGRTMAX - 5);
	cr_assert_eq(CONFIG.signal_taken, CONTD_SIGNAL_REFUSE);
	cr_assert_eq(CONFIG.agent, CONTD_AGENT_CALLER);
	cr_assert_eq(CONFIG.overhead_percent, 0.5);
	cr_assert_eq(CONFIG.tick_min_ns, 20000);
	cr_assert_eq(CONFIG.tick_max_ns, 30000);
	cr_assert_eq(CONFIG.scan_count, 7);
	cr_assert_eq(CONFIG.scan_ns, 8000);
	cr_assert_eq(CONFIG.bell, CONTD_BELL_OFF);
	cr_assert_eq(CONFIG.watchdog_ns, 7000000000);
	cr_assert_str_eq(CONFIG.daemon_name, "environment");
	cr_assert_str_eq(CONFIG.daemon_cpus, "0-1");
	cr_assert_str_eq(CONFIG.daemon_sched, "batch");
	cr_assert_str_eq(CONFIG.dump_signal, "USR2");
	cr_assert_str_eq(CONFIG.dump_file, "/dev/null");
	cr_assert_eq(CONFIG.verbose, CONTD_VERBOSE_ERRORS);
	cr_assert_str_eq(CONFIG.stats, "exit:/dev/null");
	cr_assert_eq(c.scan_count, 5, "what was given is not written to");
	must_fail(contd_daemon_stop(), EPERM);
	cr_assert_eq(contd_fini(), 0);
	/* A malformed variable is an error also where the program's own setting is good. */
	setenv("CONTD_SCAN_NS", "soon", 1);
	must_fail(contd_init(&c), EINVAL);
	cr_assert(strstr(contd_error_text(), "CONTD_SCAN_NS"));
}

/* --------------------------------------------------------------------------------------------- what settings do --- */

Test(config, agents)
{
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};

	for (int agent = CONTD_AGENT_CALLER; agent <= CONTD_AGENT_SPIN; agent++) {
		struct contd_group *g;
		struct contd_handle h;
		struct tally t = {0};

		start((enum contd_agent)agent);
		g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
		must(contd_thread_attach(NULL));
		must(contd_word_continue(&w, tally_cb, &t, g, &h));
		if (agent == CONTD_AGENT_CALLER)
			cr_assert_eq(stats_now().tick_ns, 0);
		else
			cr_assert_gt(stats_now().tick_ns, 0);
		must(contd_cancel(h));
		must_fail(contd_daemon_stop(), EPERM); /* the agent's own is not the program's */
		cr_assert_eq(contd__wake.daemon_mode, agent >= CONTD_AGENT_TICK ? (uint32_t)agent : 0);
		must(contd_thread_detach());
		cr_assert_eq(contd_fini(), 0);
	}
}

Test(config, tick_interval_in_force)
{
	static const uint64_t intervals[] = {200000, 1000000, 50000000, 1000000000};
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};

	for (unsigned i = 0; i < 4; i++) {
		struct contd_config c = fresh();
		struct contd_group *g;
		struct contd_handle h;
		struct tally t = {0};
		double got, cost;

		c.tick_min_ns = c.tick_max_ns = intervals[i];
		must(contd_init(&c));
		g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
		must(contd_thread_attach(NULL));
		cr_assert_eq(stats_now().tick_ns, 0, "nothing is pending");
		must(contd_word_continue(&w, tally_cb, &t, g, &h));
		got = (double)stats_now().tick_ns;
		/* Under a sanitizer a tick may cost more than half of the shortest interval. Then it is two ticks'
		 * cost, which a change of less than an eighth leaves as it is. */
		cost = (double)(contd__signals.kernel_ticks + contd__me->empty_ticks) / contd__clock.ticks_per_ns;
		cr_assert(got == (double)intervals[i] || (got > (double)intervals[i] && got <= 2 * cost * 9 / 8 + 1),
			  "%g ns instead of %lu; a tick costs %g", got, (unsigned long)intervals[i], cost);
		must(contd_cancel(h));
		must(contd_thread_detach());
		cr_assert_eq(contd_fini(), 0);
	}
}

Test(config, overhead_makes_the_interval)
{
	static const double percents[] = {0.1, 2, 50};

	for (unsigned i = 0; i < 3; i++) {
		struct contd_config c = fresh();
		double cost, want, got;

		c.overhead_percent = percents[i];
		c.tick_min_ns = 1000;
		c.tick_max_ns = 10000000000;
		must(contd_init(&c));
		must(contd_thread_attach(NULL));
		cost = (double)contd__signals.kernel_ticks / contd__clock.ticks_per_ns;
		cr_assert_gt(cost, 0);
		want = cost * 100 / (0.8 * percents[i]); /* the rest is for notifications and rings */
		want = want < 1000 ? 1000 : want > 1e10 ? 1e10 : want;
		got = (double)contd__budget_interval_sig(0);
		cr_assert(fabs(got - want) <= want / 100, "%g%% of a tick of %g ns: %g instead of %g", percents[i],
			  cost, got, want);
		must(contd_thread_detach());
		cr_assert_eq(contd_fini(), 0);
	}
}

/* In which handler's scan each of ten continuations ran. */
enum { TEN = 10 };
static unsigned entered, ran_in[TEN], ran_count;
static uint64_t burn_ticks;

static void count_handlers(const char *name)
{
	if (strcmp(name, "handler_entered") == 0)
		entered++;
}

static void burning_cb(int status, void *data)
{
	uint64_t until = contd__ticks() + burn_ticks;

	(void)status;
	(void)data;
	while (contd__ticks() < until)
		;
	ran_in[contd__load(&ran_count)] = entered;
	contd__add(&ran_count, 1);
}

static void ten_by_signal(const struct contd_config *c, uint64_t burn_ns)
{
	static struct contd_event e[TEN];
	struct contd_group *g;

	memset(e, 0, sizeof(e));
	entered = ran_count = 0;
	must(contd_init(c));
	burn_ticks = (uint64_t)((double)burn_ns * contd__clock.ticks_per_ns);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	for (unsigned i = 0; i < TEN; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, burning_cb, NULL, g, NULL));
		must(complete_quietly(&e[i], 0));
	}
	contd__store(&contd__testpoint_hook, count_handlers);
	raise_ours();
	compute_until(contd__load(&ran_count) == TEN);
	contd__store(&contd__testpoint_hook, NULL);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(config, scan_count_bounds_a_scan)
{
	static const uint32_t counts[] = {1, 3, 9, 10, 1000000};

	for (unsigned i = 0; i < 5; i++) {
		struct contd_config c = fresh();

		c.agent = CONTD_AGENT_CALLER;
		c.scan_count = counts[i];
		c.scan_ns = 1000000000;
		ten_by_signal(&c, 0);
		for (unsigned k = 0; k < TEN; k++)
			cr_assert_eq(ran_in[k], 1 + k / counts[i], "scan_count %u: number %u ran in scan %u", counts[i],
				     k, ran_in[k]);
	}
}

Test(config, scan_time_bounds_a_scan)
{
	struct contd_config c = fresh();

	c.agent = CONTD_AGENT_CALLER;
	c.scan_ns = 1000;
	ten_by_signal(&c, 5000);
	for (unsigned k = 0; k < TEN; k++)
		cr_assert_eq(ran_in[k], 1 + k, "each one takes longer than a scan may");
	c.scan_ns = 1000000000;
	ten_by_signal(&c, 5000);
	for (unsigned k = 0; k < TEN; k++)
		cr_assert_eq(ran_in[k], 1);
}

/* --------------------------------------------------------------------------------------------------------- life --- */

Test(config, only_the_first_brings_settings)
{
	struct contd_config c = fresh();

	must(contd_init(&c));
	must_fail(contd_init(&c), EALREADY);
	c.size = 0;
	must_fail(contd_init(&c), EALREADY);
	must(contd_init(NULL));
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(contd_fini(), 0);
	must_fail(contd_fini(), EPERM); /* the refused ones do not count */
}

Test(config, users_are_counted)
{
	static struct contd_event e;
	struct contd_event *es[] = {&e};
	struct contd_group *g;
	struct tally t = {0};

	for (unsigned round = 0; round < 3; round++) {
		start(round ? CONTD_AGENT_TICK : CONTD_AGENT_CALLER);
		for (unsigned i = 0; i < 100; i++)
			must(contd_init(NULL));
		g = group_new(0, -1);
		for (unsigned i = 0; i < 100; i++)
			cr_assert_eq(contd_fini(), 0);
		contd_event_init(&e);
		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		must(contd_event_complete(&e, 0));
		cr_assert_eq(contd_poll(0), 1, "one user is left");
		contd_event_init(&e);
		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		cr_assert_eq(contd_fini(), 1, "one continuation never ran");
		must_fail(contd_poll(0), EPERM);
	}
	cr_assert_eq(runs(&t), 3);
}

static void *user(void *data)
{
	(void)data;
	for (unsigned i = 0; i < 300; i++) {
		must(contd_init(NULL));
		cr_assert_eq(contd_fini(), 0);
	}
	return NULL;
}

Test(config, users_of_several_threads)
{
	pthread_t thread[4];

	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, user, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	must_fail(contd_fini(), EPERM);
}

Test(config, other_settings_the_next_time)
{
	for (int i = 0; i < 3; i++) {
		struct contd_config c = fresh();
		static struct contd_event e;
		struct contd_event *es[] = {&e};
		struct contd_group *g;
		struct tally t = {0};

		c.signal_number = SIGRTMAX - 3 - i % 2;
		c.agent = CONTD_AGENT_CALLER + i % 3;
		must(contd_init(&c));
		cr_assert_eq(contd__signals.signal_number, SIGRTMAX - 3 - i % 2);
		contd_event_init(&e);
		g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
		must(contd_thread_attach(NULL));
		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		must(complete_quietly(&e, 0));
		raise_ours();
		cr_assert_eq(runs(&t), 1);
		must(contd_thread_detach());
		cr_assert_eq(contd_fini(), 0);
	}
}

/* ------------------------------------------------------------------------------------------ the signal is taken --- */

/* Awaited, since ThreadSanitizer keeps signals back for a while. */
static volatile sig_atomic_t foreign[2];

static void foreign_handler(int signo)
{
	foreign[signo == SIGRTMIN + 1]++;
}

Test(config, signal_taken)
{
	struct contd_config c = fresh();
	struct sigaction now;

	c.signal_number = SIGRTMIN;
	signal(SIGRTMIN, foreign_handler);
	must_fail(contd_init(&c), EBUSY);
	cr_assert(strstr(contd_error_text(), "CONTD_SIGNAL"), "it says what to do");
	must_fail(contd_fini(), EPERM);
	sigaction(SIGRTMIN, NULL, &now);
	cr_assert(now.sa_handler == foreign_handler);
	setenv("CONTD_SIGNAL_CHAIN", "1", 1);
	must(contd_init(&c));
	sigqueue(getpid(), SIGRTMIN, (union sigval){0});
	await(foreign[0] == 1);
	must(contd_thread_attach(NULL));
	sigqueue(getpid(), SIGRTMIN, (union sigval){0});
	await(foreign[0] == 2);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	signal(SIGRTMIN + 1, SIG_IGN);
	c.signal_number = SIGRTMIN + 1;
	setenv("CONTD_SIGNAL_CHAIN", "0", 1);
	must_fail(contd_init(&c), EBUSY); /* ignored on purpose is taken */
}

Test(config, each_chained_signal_has_its_own_handler_behind)
{
	struct contd_config c = fresh();

	c.signal_taken = CONTD_SIGNAL_CHAIN;
	signal(SIGRTMIN, foreign_handler);
	signal(SIGRTMIN + 1, foreign_handler);
	c.signal_number = SIGRTMIN;
	must(contd_init(&c));
	cr_assert_eq(contd_fini(), 0);
	c.signal_number = SIGRTMIN + 1;
	must(contd_init(&c));
	cr_assert_eq(contd_fini(), 0);
	c.signal_number = SIGRTMIN + 2;
	must(contd_init(&c));
	sigqueue(getpid(), SIGRTMIN, (union sigval){0});
	sigqueue(getpid(), SIGRTMIN + 1, (union sigval){0});
	sigqueue(getpid(), SIGRTMIN + 2, (union sigval){0});
	await(foreign[0] == 1);
	await(foreign[1] == 1);
	cr_assert_eq(contd_fini(), 0);
	/* An earlier contd_init() was allowed to chain; one that is not finds the signal taken. */
	c.signal_number = SIGRTMIN;
	c.signal_taken = CONTD_SIGNAL_REFUSE;
	must_fail(contd_init(&c), EBUSY);
	c.signal_number = SIGRTMIN + 2;
	must(contd_init(&c));
	cr_assert_eq(contd_fini(), 0);
}
