/* SPDX-License-Identifier: BSD-3-Clause */
/* One end too many, of a region or of a guard: it changes nothing, and is told of, once on stderr. */
#include "unit.h"
#include "base/error.h"

TestSuite(unbalanced, .timeout = WATCHDOG);

static struct contd_event e1, e2;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2};
static struct tally t1, t2;
static struct helper other;
static int told[2], before;

static void complete(void *event)
{
	must(contd_event_complete(event, 0));
}

static void stderr_kept(void)
{
	cr_assert_eq(pipe(told), 0);
	before = dup(STDERR_FILENO);
	cr_assert_geq(dup2(told[1], STDERR_FILENO), 0);
}

/* How many lines were written that name the call. */
static unsigned lines_with(const char *call)
{
	char text[2048];
	unsigned lines = 0;
	ssize_t n;

	dup2(before, STDERR_FILENO);
	close(told[1]);
	n = read(told[0], text, sizeof(text) - 1);
	close(told[0]);
	text[n > 0 ? n : 0] = '\0';
	for (const char *p = text; (p = strstr(p, call)) != NULL; p += strlen(call))
		lines++;
	return lines;
}

Test(unbalanced, end_of_a_region)
{
	struct contd_group *plain;

	start(CONTD_AGENT_CALLER);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
	helper_create(&other, false);
	contd_compute_begin();
	contd_compute_end();
	contd__error_text = NULL;
	stderr_kept();
	errno = 12345;
	contd_compute_end();
	contd_compute_end();
	cr_assert_eq(errno, 12345);
	cr_assert_eq(lines_with("contd_compute_end()"), 1);
	cr_assert_not_null(strstr(contd_error_text(), "contd_compute_begin()"));
	/* Not in a region: nothing that is not async-signal-safe runs here. */
	must(contd_event_continue(1, es1, tally_cb, &t1, plain, NULL));
	helper_do(&other, complete, &e1);
	raise_ours();
	cr_assert_eq(runs(&t1), 0);
	must(contd_thread_detach());
	must(contd_thread_attach(NULL));
	/* ... and the next region is one. */
	contd_compute_begin();
	cr_assert_eq(runs(&t1), 1);
	contd_compute_end();
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(unbalanced, end_of_a_guard)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	helper_create(&other, false);
	contd__error_text = NULL;
	stderr_kept();
	contd_guard_end();
	contd_guard_end();
	cr_assert_eq(lines_with("contd_guard_end()"), 1);
	cr_assert_not_null(strstr(contd_error_text(), "contd_guard_begin()"));
	/* The thread is not under a guard. */
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	helper_start(&other, complete, &e1);
	compute_until(runs(&t1));
	/* ... and the next guard is one. */
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	contd_guard_begin();
	must(contd_event_complete(&e2, 0));
	cr_assert_eq(runs(&t2), 0);
	contd_guard_end();
	cr_assert_eq(runs(&t2), 1);
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static void ends_too_much(int status, void *data)
{
	contd_guard_begin();
	contd_guard_end();
	contd_guard_end(); /* the guard that is around each callback */
	complete_quietly(&e2, 0);
	raise_ours();
	cr_assert_eq(runs(&t2), 0, "inside another continuation");
	contd_guard_end();
	tally_cb(status, data);
}

Test(unbalanced, in_a_callback)
{
	struct contd_group *g, *plain;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, ends_too_much, &t1, plain, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	must(contd_event_complete(&e1, 0));
	contd__error_text = NULL;
	cr_assert_geq(contd_poll(0), 1);
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(runs(&t2), 1);
	cr_assert_eq(contd__tls.guard, 0);
	cr_assert_not_null(strstr(contd_error_text(), "contd_guard_begin()"));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}
