/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog: what takes longer than the bound is reported, once a site. Linked with exported symbols. */
#include <fcntl.h>

#include "source.h"
#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/late.h"
#include "dispatch/limits.h"
#include "dispatch/source.h"
#include "dispatch/wake.h"
#include "signal/handler.h"

TestSuite(watchdog, .timeout = WATCHDOG);

#define BOUND_NS 2000000u
#define LATE_NS 6000000u
#define FAR_NS 1000000000000u /* a bound that nothing here reaches */

/* ------------------------------------------------------------------------------------------------------ reports --- */

enum { REPORTS = 600 };
static struct contd_late report[REPORTS];
static void *report_data[REPORTS];
static uint32_t reports;

static void keep(const struct contd_late *late, void *data)
{
	uint32_t i = contd__load(&reports);

	if (i < REPORTS) {
		report[i] = *late;
		report_data[i] = data;
	}
	contd__store_release(&reports, i + 1);
}

static uint32_t reported(void)
{
	return contd__load_acquire(&reports);
}

static void begin(enum contd_agent agent, uint64_t bound)
{
	struct contd_config config = {.size = sizeof(config), .agent = agent, .scan_ns = 1000000000};

	config.watchdog_ns = bound;
	config.watchdog = bound ? keep : NULL;
	config.watchdog_data = &reports;
	must(contd_init(&config));
}

static void burn(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

static struct tally t1;

/* Exported, so that they have names. */
void late_callback(int status, void *data);
void running_callback(int status, void *data);
void outer_callback(int status, void *data);

void late_callback(int status, void *data)
{
	burn(LATE_NS);
	tally_cb(status, data);
}

static void quick_cb(int status, void *data)
{
	tally_cb(status, data);
}

static void make_ready(contd_callback *cb, uint32_t flags)
{
	struct contd_group *g = group_new(flags | CONTD_ENQUEUE_COMPLETE, -1);
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};

	must(contd_event_continue(1, es, cb, &t1, g, NULL));
	complete_quietly(&e, 0);
}

static void is_report(uint32_t i, const char *what, const char *where, void (*site)(int, void *), const char *symbol)
{
	cr_assert_lt(i, reported());
	cr_assert_str_eq(report[i].what, what);
	cr_assert_str_eq(report[i].where, where);
	if (site)
		cr_assert_eq(report[i].site, (const void *)(uintptr_t)site);
	if (symbol) {
		cr_assert_not_null(report[i].symbol);
		cr_assert_str_eq(report[i].symbol, symbol);
	}
	cr_assert_gt(report[i].ns, BOUND_NS);
	cr_assert_lt(report[i].ns, 100000000000ull);
	cr_assert_eq(report_data[i], &reports);
}

/* --------------------------------------------------------------------------------------------- what is reported --- */

Test(watchdog, continuation_on_a_thread)
{
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	for (unsigned i = 0; i < 5; i++) {
		make_ready(late_callback, 0);
		cr_assert_eq(contd_poll(0), 1);
	}
	await(reported());
	for (unsigned i = 0; i < 3; i++) {
		make_ready(late_callback, 0);
		cr_assert_eq(contd_poll(0), 1);
	}
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 1, "once a site");
	is_report(0, "continuation", "thread", late_callback, "late_callback");
}

Test(watchdog, continuation_inside_the_call)
{
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	must(contd_event_continue(0, NULL, late_callback, &t1, group_new(0, -1), NULL));
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(contd_fini(), 0, "at the end what was noted is reported");
	is_report(0, "continuation", "thread", late_callback, "late_callback");
	cr_assert_eq(reported(), 1);
}

Test(watchdog, continuation_in_the_handler)
{
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	must(contd_thread_attach(NULL));
	make_ready(late_callback, CONTD_ASYNC_SIGNAL_SAFE);
	raise_ours();
	compute_until(runs(&t1));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	is_report(0, "continuation", "handler", late_callback, "late_callback");
	cr_assert_eq(reported(), 1, "a handler is as long as what it runs");
}

Test(watchdog, continuation_in_a_region)
{
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	must(contd_thread_attach(NULL));
	make_ready(late_callback, 0);
	contd_compute_begin();
	raise_ours();
	compute_until(runs(&t1));
	contd_compute_end();
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	is_report(0, "continuation", "region", late_callback, "late_callback");
	cr_assert_eq(reported(), 1);
}

Test(watchdog, continuation_on_the_daemon)
{
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	make_ready(late_callback, CONTD_THREAD_ANY);
	must(contd_daemon_start(NULL));
	await(runs(&t1));
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
	is_report(0, "continuation", "daemon", late_callback, "late_callback");
	cr_assert_eq(reported(), 1);
}

/* The inner one is late, and so is the outer one that waited for it. */
void outer_callback(int status, void *data)
{
	make_ready(late_callback, 0);
	contd_poll(0);
	tally_cb(status, data);
}

Test(watchdog, continuation_inside_another)
{
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	make_ready(outer_callback, 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t1), 2);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 2);
	cr_assert_neq(report[0].site, report[1].site);
	for (unsigned i = 0; i < 2; i++)
		if (report[i].site == (const void *)(uintptr_t)late_callback)
			is_report(i, "continuation", "thread", late_callback, "late_callback");
		else
			is_report(i, "continuation", "thread", outer_callback, "outer_callback");
}

static void source_is_late(enum contd__where where, const char *name)
{
	struct contd_event e;

	begin(CONTD_AGENT_CALLER, BOUND_NS);
	source_register(&source_a, where, false);
	source_a.cost_ticks = (uint64_t)(LATE_NS * contd__clock.ticks_per_ns);
	must(contd_thread_attach(NULL));
	source_continue(&source_a, &e, quick_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY, -1));
	source_finish(&source_a);
	if (where == WHERE_DAEMON) {
		must(contd_daemon_start(NULL));
	} else if (where == WHERE_THREAD) {
		contd_poll(0);
	} else {
		contd_compute_begin();
		raise_ours();
	}
	compute_until(runs(&t1));
	if (where == WHERE_REGION)
		contd_compute_end();
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	cr_assert_geq(reported(), 1);
	is_report(0, "source", name, NULL, NULL);
	cr_assert_eq(report[0].site, (const void *)(uintptr_t)source_a.source.progress);
	cr_assert_eq(report[0].running, 0);
	cr_assert_eq(reported(), 1);
}

Test(watchdog, source_on_a_thread)
{
	source_is_late(WHERE_THREAD, "thread");
}
Test(watchdog, source_in_a_region)
{
	source_is_late(WHERE_REGION, "region");
}
Test(watchdog, source_on_the_daemon)
{
	source_is_late(WHERE_DAEMON, "daemon");
}

/* A handler that runs nothing, and takes long. */
static void burn_there(const char *name)
{
	if (strcmp(name, "handler_entered") == 0)
		burn(LATE_NS);
}

static void handler_is_late(bool region)
{
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	must(contd_thread_attach(NULL));
	__atomic_store_n(&contd__testpoint_hook, burn_there, __ATOMIC_RELEASE);
	if (region)
		contd_compute_begin();
	raise_ours();
	raise_ours();
	compute_until(stats_now().handler_max_ns >= LATE_NS);
	if (region)
		contd_compute_end();
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 1);
	is_report(0, "handler", region ? "region" : "handler", NULL, NULL);
	cr_assert_eq(report[0].site, (const void *)(uintptr_t)contd__handler);
}

Test(watchdog, handler)
{
	handler_is_late(false);
}
Test(watchdog, handler_in_a_region)
{
	handler_is_late(true);
}

/* ------------------------------------------------------------------------------------------------ still running --- */

static uint32_t release;

void running_callback(int status, void *data)
{
	while (!contd__load_acquire(&release))
		usleep(100);
	tally_cb(status, data);
}

static void *poller(void *data)
{
	(void)data;
	contd_poll(0);
	return NULL;
}

Test(watchdog, one_that_does_not_return)
{
	pthread_t thread;

	begin(CONTD_AGENT_CALLER, BOUND_NS);
	make_ready(running_callback, 0);
	cr_assert_eq(pthread_create(&thread, NULL, poller, NULL), 0);
	await(reported());
	cr_assert_eq(runs(&t1), 0);
	is_report(0, "continuation", "thread", running_callback, "running_callback");
	cr_assert_eq(report[0].running, 1);
	usleep(50000);
	cr_assert_eq(reported(), 1);
	contd__store_release(&release, 1);
	pthread_join(thread, NULL);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 1, "and not once more when it has returned");
}

Test(watchdog, one_on_the_daemon_that_does_not_return)
{
	begin(CONTD_AGENT_TICK, BOUND_NS);
	make_ready(running_callback, CONTD_THREAD_ANY);
	contd__wake_daemon_sig(true);
	await(reported());
	is_report(0, "continuation", "daemon", running_callback, "running_callback");
	cr_assert_eq(report[0].running, 1);
	contd__store_release(&release, 1);
	await(runs(&t1));
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 1);
}

/* ---------------------------------------------------------------------------------------------------- no report --- */

static unsigned watchdog_threads(void)
{
	char command[128];
	FILE *f;
	unsigned n = 0;

	snprintf(command, sizeof(command), "cat /proc/%d/task/*/comm | grep -cx contd-watchdog", (int)getpid());
	f = popen(command, "r");
	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%u", &n), 1);
	pclose(f);
	return n;
}

Test(watchdog, none_without_a_bound)
{
	begin(CONTD_AGENT_CALLER, 0);
	make_ready(late_callback, 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(watchdog_threads(), 0);
	for (unsigned i = 0; i < LATE_SITES; i++)
		cr_assert_null(contd__late_sites[i].site, "nothing is measured");
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 0);
}

Test(watchdog, none_below_the_bound)
{
	begin(CONTD_AGENT_CALLER, FAR_NS);
	await(watchdog_threads() == 1);
	must(contd_thread_attach(NULL));
	source_register(&source_a, WHERE_THREAD | WHERE_REGION, false);
	source_begin(&source_a);
	for (unsigned i = 0; i < 20; i++) {
		make_ready(i % 2 ? late_callback : outer_callback, CONTD_ASYNC_SIGNAL_SAFE);
		if (i % 4 == 1)
			raise_ours();
		contd_poll(0);
	}
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 0);
	cr_assert_eq(watchdog_threads(), 0);
}

/* --------------------------------------------------------------------------------------------- changed settings --- */

static uint32_t others;

static void keep_others(const struct contd_late *late, void *data)
{
	keep(late, data);
	contd__add(&others, 1);
}

Test(watchdog, changed_while_it_runs)
{
	struct contd_config c = {.size = sizeof(c)};

	begin(CONTD_AGENT_CALLER, 0);
	make_ready(late_callback, 0);
	cr_assert_eq(contd_poll(0), 1);
	c.watchdog_ns = FAR_NS;
	c.watchdog = keep;
	c.watchdog_data = &reports;
	must(contd_configure(&c));
	make_ready(late_callback, 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(reported(), 0);
	c.watchdog_ns = BOUND_NS;
	must(contd_configure(&c));
	make_ready(late_callback, 0);
	cr_assert_eq(contd_poll(0), 1);
	await(reported());
	c.watchdog_ns = 0;
	c.watchdog = keep_others;
	must(contd_configure(&c));
	make_ready(outer_callback, 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 2);
	cr_assert_eq(others, 1, "the other function, called for the new site");
	is_report(1, "continuation", "thread", outer_callback, "outer_callback");
	/* After the next contd_init() counting starts again. */
	reports = 0;
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	make_ready(late_callback, 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 1);
}

/* Function and data change together, however often. */
static uint32_t wrong_pairs;

static void expects_one(const struct contd_late *late, void *data)
{
	(void)late;
	contd__add(&wrong_pairs, data != (void *)1);
}
static void expects_two(const struct contd_late *late, void *data)
{
	(void)late;
	contd__add(&wrong_pairs, data != (void *)2);
}

static void *noter(void *data)
{
	uintptr_t site = 0;

	while (!contd__load_acquire((uint32_t *)data)) {
		contd__late_note_sig((const void *)(site++ % LATE_SITES * 16 + 16), LATE_CONTINUATION, UINT64_MAX / 4);
		usleep(100);
	}
	return NULL;
}

Test(watchdog, function_and_data_belong_together)
{
	struct contd_config c = {.size = sizeof(c)};
	static uint32_t over;
	pthread_t thread;

	begin(CONTD_AGENT_CALLER, 1000000);
	c.watchdog = expects_one;
	c.watchdog_data = (void *)1;
	must(contd_configure(&c));
	cr_assert_eq(pthread_create(&thread, NULL, noter, &over), 0);
	for (unsigned i = 0; i < 2000; i++) {
		c.watchdog = i % 2 ? expects_one : expects_two;
		c.watchdog_data = (void *)(uintptr_t)(i % 2 ? 1 : 2);
		must(contd_configure(&c));
		usleep(10);
	}
	contd__store_release(&over, 1);
	pthread_join(thread, NULL);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(wrong_pairs, 0);
}

/* --------------------------------------------------------------------------------------------------- many sites --- */

/* More sites than there are places: as many as there are places are reported, each once. */
Test(watchdog, many_sites)
{
	static uint8_t seen[REPORTS];

	begin(CONTD_AGENT_CALLER, BOUND_NS);
	for (unsigned round = 0; round < 3; round++)
		for (uintptr_t i = 1; i <= 400; i++)
			cr_assert(contd__late_note_sig((const void *)(i * 16), LATE_SOURCE,
						       contd__limits.late_ticks + i));
	cr_assert_not(contd__late_note_sig((const void *)16, LATE_SOURCE, contd__limits.late_ticks));
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), LATE_SITES);
	for (unsigned i = 0; i < LATE_SITES; i++) {
		uintptr_t site = (uintptr_t)report[i].site / 16;

		cr_assert(site >= 1 && site <= 400);
		cr_assert_not(seen[site]);
		seen[site] = 1;
		cr_assert_str_eq(report[i].what, "source");
		cr_assert_null(report[i].symbol, "no symbol there");
	}
}

/* Noted shortly before contd_fini(): still reported. */
Test(watchdog, what_was_noted_is_reported_at_the_end)
{
	for (unsigned i = 1; i <= 100; i++) {
		begin(CONTD_AGENT_CALLER, 1000);
		contd__late_note_sig((const void *)16, LATE_CONTINUATION, 1000000000);
		if (i % 2)
			usleep(i * 10);
		cr_assert_eq(contd_fini(), 0);
		cr_assert_eq(reported(), i);
	}
}

/* A handler that ends after the watchdog, while contd_fini() waits for it: contd's next life says nothing of it. */
static uint32_t handler_waits, watchdog_ended;

static void ends_after_the_watchdog(const char *name)
{
	if (strcmp(name, "watchdog_ended") == 0) {
		contd__store_release(&watchdog_ended, 1);
	} else if (strcmp(name, "handler_entered") == 0) {
		contd__store_release(&handler_waits, 1);
		await(contd__load_acquire(&watchdog_ended));
		burn(LATE_NS);
	}
}

static void *in_a_handler(void *data)
{
	(void)data;
	must(contd_thread_attach(NULL));
	raise_ours();
	return NULL;
}

Test(watchdog, nothing_of_contds_last_life)
{
	pthread_t thread;

	begin(CONTD_AGENT_CALLER, BOUND_NS);
	__atomic_store_n(&contd__testpoint_hook, ends_after_the_watchdog, __ATOMIC_RELEASE);
	pthread_create(&thread, NULL, in_a_handler, NULL);
	await(contd__load_acquire(&handler_waits));
	cr_assert_eq(contd_fini(), 0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	begin(CONTD_AGENT_CALLER, BOUND_NS);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 0);
}

/* ------------------------------------------------------------------------------------------- what it calls --- */

/* A report while contd_fini() waits for the watchdog's thread, with the lock of these calls held. */
static uint32_t fini_waits;
static int rc_init, rc_configure, rc_start, rc_fini;

static void fini_waits_there(const char *name)
{
	if (strcmp(name, "watchdog_ends") == 0)
		contd__store_release(&fini_waits, 1);
}

static void calls_contd(const struct contd_late *late, void *data)
{
	struct contd_config c = {.size = sizeof(c)};

	keep(late, data);
	await(contd__load_acquire(&fini_waits));
	if (contd__load(&rc_fini))
		return;
	rc_init = contd_init(NULL);
	rc_configure = contd_configure(&c);
	rc_start = contd_daemon_start(NULL);
	contd__store_release(&rc_fini, contd_fini());
}

Test(watchdog, calls_while_contd_ends)
{
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER};

	config.watchdog_ns = FAR_NS;
	config.watchdog = calls_contd;
	must(contd_init(&config));
	__atomic_store_n(&contd__testpoint_hook, fini_waits_there, __ATOMIC_RELEASE);
	contd__late_note_sig((const void *)16, LATE_CONTINUATION, UINT64_MAX / 4);
	cr_assert_eq(contd_fini(), 0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_eq(reported(), 1);
	cr_assert_eq(rc_init, -EBUSY);
	cr_assert_eq(rc_configure, -EBUSY);
	cr_assert_eq(rc_start, -EBUSY);
	cr_assert_eq(rc_fini, -EDEADLK);
	must_fail(contd_configure(&config), EPERM);
}

/* With no contd_fini() under way they are as on any other thread, but for contd_fini(). */
Test(watchdog, calls_while_contd_goes_on)
{
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .watchdog_ns = 1000};

	config.watchdog = calls_contd;
	fini_waits = 1;
	must(contd_init(&config));
	contd__late_note_sig((const void *)16, LATE_CONTINUATION, UINT64_MAX / 4);
	await(contd__load_acquire(&rc_fini));
	cr_assert_eq(rc_init, 0);
	cr_assert_eq(rc_configure, 0);
	cr_assert_eq(rc_start, 0);
	cr_assert_eq(rc_fini, -EDEADLK);
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(contd_fini(), 0);
}

/* A fault there is the program's handler's to see. */
static void faulty(const struct contd_late *late, void *data)
{
	fault();
	keep(late, data);
}

Test(watchdog, faults_reach_the_programs_handler)
{
	struct contd_config config = {.size = sizeof(config), .watchdog_ns = BOUND_NS, .watchdog = faulty};

	faults_begin();
	must(contd_init(&config));
	contd__late_note_sig((const void *)16, LATE_CONTINUATION, UINT64_MAX / 4);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(reported(), 1);
	cr_assert_eq(faults(), 1);
}

/* -------------------------------------------------------------------------------------------------- on stderr --- */

Test(watchdog, on_stderr_by_default)
{
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_CALLER, .watchdog_ns = BOUND_NS};
	char name[] = "/tmp/contd-test-XXXXXX", text[2000];
	int fd = mkstemp(name), before = dup(2);
	ssize_t n;

	cr_assert_geq(fd, 0);
	unlink(name);
	fflush(stderr);
	dup2(fd, 2);
	must(contd_init(&c));
	make_ready(late_callback, 0);
	contd_poll(0);
	make_ready(late_callback, 0);
	contd_poll(0);
	contd_fini();
	fflush(stderr);
	dup2(before, 2);
	n = pread(fd, text, sizeof(text) - 1, 0);
	cr_assert_gt(n, 0);
	text[n] = 0;
	cr_assert_eq(strchr(text, '\n'), text + n - 1, "one line: %s", text);
	cr_assert(strstr(text, "contd: "), "%s", text);
	cr_assert(strstr(text, "continuation late_callback"), "%s", text);
	cr_assert(strstr(text, "thread"), "%s", text);
	cr_assert(strstr(text, "2.000 ms"), "the bound: %s", text);
}
