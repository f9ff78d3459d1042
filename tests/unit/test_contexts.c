/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/*
 * The table in docs/contexts.md of what may be called where, cell by cell: a call marked "yes" succeeds there, a call
 * marked "no" is refused. (Left out: calls that return nothing, and the program's own handlers, which contd cannot
 * know.)
 */
#include <fcntl.h>

#include <contd/executor.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "signal/attached.h"

TestSuite(contexts, .timeout = WATCHDOG);

static struct contd_group *own, *another;
static struct contd_executor *executor;
static struct contd_handle pending;
static struct contd_event trigger, later;
static struct contd_task task;
static struct contd_bell *bell;
static struct tally tally;
static uint64_t word __attribute__((aligned(8)));

#define CALL(name, ...) \
	static int name(void) \
	{ \
		return __VA_ARGS__; \
	}
CALL(event_continue, contd_event_continue(0, NULL, tally_cb, &tally, own, NULL))
CALL(event_is_complete, contd_event_is_complete(&later))
CALL(group_outstanding, (int)contd_group_outstanding(own))
CALL(group_wait, contd_group_wait(another, 0))
CALL(group_continue, contd_group_continue(another, tally_cb, &tally, own, NULL))
CALL(cancel, contd_cancel(pending))
CALL(poll_all, contd_poll(0))
CALL(thread_attach, contd_thread_attach(NULL))
CALL(thread_detach, contd_thread_detach())
CALL(init, contd_init(NULL))
CALL(fini, contd_fini())
CALL(daemon_start, contd_daemon_start(NULL))
CALL(daemon_stop, contd_daemon_stop())
CALL(configure, contd_configure(&(struct contd_config){.size = sizeof(struct contd_config)}))
CALL(bell_listen, contd_bell_listen("contexts", (uint32_t)getpid()))
CALL(bell_open, contd_bell_open("contexts", (uint32_t)getpid(), &bell))
CALL(task_submit, (contd_task_init(&task, executor, 0, tally_cb, &tally), contd_task_submit(&task, 0)))
CALL(executor_run, contd_executor_run(executor, 1, 0))

static int event_complete(void)
{
	static struct contd_event e;

	contd_event_init(&e);
	return contd_event_complete(&e, 0);
}

static int group_test(void)
{
	int complete;

	return contd_group_test(another, &complete);
}

static int group_create(void)
{
	struct contd_group *g;
	int rc = contd_group_create(NULL, &g);

	return rc ? rc : contd_group_destroy(g);
}

static int group_destroy(void)
{
	struct contd_group *g = another;
	int rc = contd_group_destroy(g);

	return rc ? rc : contd_group_create(NULL, &another);
}

static int word_continue(void)
{
	struct contd_word w = {&word, 0, 0, CONTD_WORD_EQ};

	return contd_word_continue(&w, tally_cb, &tally, own, NULL);
}

static int stats_get(void)
{
	struct contd_stats s = {.size = sizeof(s)};

	return contd_stats_get(&s);
}

static int dump(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), rc = contd_dump(fd);

	close(fd);
	return rc;
}

static int executor_create(void)
{
	struct contd_executor *made;
	int rc = contd_executor_create(NULL, &made);

	return rc ? rc : contd_executor_destroy(made);
}

static int set_executor(void)
{
	return contd_group_set_executor(another, NULL);
}

/* In an order that leaves things as the next ones need them. */
static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {
	{"contd_event_continue", event_continue},
	{"contd_event_complete", event_complete},
	{"contd_event_is_complete", event_is_complete},
	{"contd_group_outstanding", group_outstanding},
	{"contd_group_create", group_create},
	{"contd_group_destroy", group_destroy},
	{"contd_group_test", group_test},
	{"contd_group_wait", group_wait},
	{"contd_group_continue", group_continue},
	{"contd_word_continue", word_continue},
	{"contd_cancel", cancel},
	{"contd_poll", poll_all},
	{"contd_fd", contd_fd},
	{"contd_stats_get", stats_get},
	{"contd_dump", dump},
	{"contd_thread_attach", thread_attach},
	{"contd_thread_detach", thread_detach},
	{"contd_init", init},
	{"contd_daemon_start", daemon_start},
	{"contd_daemon_stop", daemon_stop},
	{"contd_configure", configure},
	{"contd_bell_listen", bell_listen},
	{"contd_bell_open", bell_open},
	{"contd_task_submit", task_submit},
	{"contd_executor_run", executor_run},
	{"contd_executor_*", executor_create},
	{"contd_group_set_executor", set_executor},
	{"contd_fini", fini}, /* of the user that contd_init() has added, or in vain */
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static int got[CALLS];

static void ask(int status, void *data)
{
	(void)status, (void)data;
	for (unsigned i = 0; i < CALLS; i++)
		contd__store_release(&got[i], calls[i].call()); /* the thread that awaits the last one reads them all */
}

/* The names of a row's first cell: of "`contd_group_create`, `_test`" contd_group_test is one. */
static bool row_names(char *cell, const char *name)
{
	char stem[64] = "", full[128];

	for (char *at = strtok(cell, "` ,|"); at; at = strtok(NULL, "` ,|")) {
		if (*at != '_') {
			snprintf(stem, sizeof(stem), "%s", at);
			if (strrchr(stem, '_'))
				*strrchr(stem, '_') = 0;
			snprintf(full, sizeof(full), "%s", at);
		} else {
			snprintf(full, sizeof(full), "%s%s", stem, at);
		}
		if (strcmp(full, name) == 0)
			return true;
	}
	return false;
}

/* The table's entry for a call in that column, from 1 on. */
static const char *table_says(const char *name, unsigned column)
{
	static char line[1024], cell[1024];
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%.*s../../docs/contexts.md", (int)(strrchr(__FILE__, '/') + 1 - __FILE__),
		 __FILE__);
	f = fopen(path, "r");
	if (!f)
		cr_skip_test("docs/contexts.md is not here");
	while (fgets(line, sizeof(line), f)) {
		char *end = line[0] == '|' ? strchr(line + 1, '|') : NULL, *at = end;

		if (!end)
			continue;
		snprintf(cell, sizeof(cell), "%.*s", (int)(end - line), line);
		if (!row_names(cell, name))
			continue;
		for (unsigned i = 1; i < column; i++)
			cr_assert_not_null(at = strchr(at + 1, '|'));
		fclose(f);
		return at + 2;
	}
	fclose(f);
	cr_assert_fail("docs/contexts.md has no row for %s", name);
	return NULL;
}

static bool accepted(int rc)
{
	return rc >= 0 || rc == -ETIMEDOUT;
}

/* `except` is a "yes, not ..." that is meant here. */
static void as_the_table_says(unsigned column, const char *except)
{
	for (unsigned i = 0; i < CALLS; i++) {
		const char *says = table_says(calls[i].name, column);
		bool yes = strncmp(says, "yes", 3) == 0,
		     no = strncmp(says, "no ", 3) == 0 || strncmp(says, "no|", 3) == 0;

		if (except && strstr(says, except) && strstr(says, except) < strchr(says, '|'))
			yes = false, no = true;
		cr_assert(yes || no, "%s: '%.10s'", calls[i].name, says);
		cr_assert_eq(accepted(got[i]), yes, "%s returns %d in column %u, and docs/contexts.md says %.20s",
			     calls[i].name, got[i], column, says);
	}
}

static void begin(uint32_t flags)
{
	struct contd_event *es[] = {&later};

	start(CONTD_AGENT_CALLER);
	own = group_new(flags, -1);
	another = group_new(0, -1);
	must(contd_executor_create(NULL, &executor));
	must(contd_event_continue(1, es, tally_cb, &tally, group_new(0, -1), &pending));
}

static void trigger_with(contd_callback *cb)
{
	struct contd_event *es[] = {&trigger};

	must(contd_event_continue(1, es, cb, NULL, own, NULL));
	complete_quietly(&trigger, 0);
}

Test(contexts, on_a_thread)
{
	begin(0);
	ask(0, NULL);
	as_the_table_says(1, NULL);
}

Test(contexts, in_a_continuation)
{
	begin(0);
	trigger_with(ask);
	cr_assert_geq(contd_poll(0), 1);
	as_the_table_says(2, NULL);
}

Test(contexts, in_a_continuation_in_a_region)
{
	begin(0);
	must(contd_thread_attach(NULL));
	contd_compute_begin();
	trigger_with(ask);
	raise_ours();
	contd_compute_end();
	as_the_table_says(2, "a handler");
}

Test(contexts, in_a_continuation_on_the_daemon)
{
	begin(CONTD_THREAD_ANY);
	must(contd_daemon_start(NULL));
	trigger_with(ask);
	await(contd_group_outstanding(own) == 0 || contd__load_acquire(&got[CALLS - 1]));
	as_the_table_says(2, "the daemon");
}

Test(contexts, in_a_handler)
{
	begin(CONTD_ASYNC_SIGNAL_SAFE);
	must(contd_thread_attach(NULL));
	trigger_with(ask);
	raise_ours();
	as_the_table_says(3, NULL);
}

/* ----------------------------------------------------------------------------------------- beside contd_fini() --- */

static struct contd__attached *computes;
static uint32_t in_callback, fini_is_over;
static int late_rc[4];

static void late(int status, void *data)
{
	(void)status, (void)data;
	contd__store_release(&in_callback, 1);
	while (contd__load_seq(&computes->tid)) /* contd_fini() takes it away, then waits for the end of this */
		CONTD_RELAX();
	late_rc[0] = contd_configure(&(struct contd_config){.size = sizeof(struct contd_config)});
	late_rc[1] = contd_init(NULL);
	late_rc[2] = contd_daemon_start(NULL);
	late_rc[3] = contd_daemon_stop();
}

static void *compute(void *data)
{
	(void)data;
	must(contd_thread_attach(NULL));
	computes = contd__me;
	/* Made ready in the region: what is ready before it runs in contd_compute_begin(), a call that contd_fini()
	 * does not wait for. */
	contd_compute_begin();
	trigger_with(late);
	raise_ours();
	while (!contd__load_acquire(&fini_is_over))
		CONTD_RELAX();
	contd_compute_end();
	return NULL;
}

/* A callback in a region's handler does not wait for contd_fini(), which waits for it, and starts nothing that outlives
 * it. */
Test(contexts, while_fini_waits_for_a_handler)
{
	static const int expected[4] = {-EBUSY, -EBUSY, -EBUSY, -EPERM};
	pthread_t thread;

	begin(0);
	cr_assert_eq(pthread_create(&thread, NULL, compute, NULL), 0);
	await(contd__load_acquire(&in_callback));
	cr_assert_geq(contd_fini(), 0);
	contd__store_release(&fini_is_over, 1);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(late_rc[i], expected[i], "%u: %d", i, late_rc[i]);
}
