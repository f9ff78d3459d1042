/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call with every wrong thing: an error, a text, and nothing has changed. */
#include "unit.h"
#include "dispatch/thread.h"
#include "dispatch/word.h"

TestSuite(errors, .timeout = WATCHDOG);

static struct contd_event e;
static struct contd_event *es[] = {&e}, *hole[] = {&e, NULL};
static struct tally t;
static uint64_t word __attribute__((aligned(8)));
static struct contd_group *const untouched = (struct contd_group *)0x10;

/* Every call that needs a running dispatcher. */
static void all_fail(int code, struct contd_group *g)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .max_poll = -1};
	struct contd_stats s = {.size = sizeof(s), .run = 77};
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_handle h = {(void *)0x20, 5}, given = {(void *)0x40, 1};
	struct contd_group *made = untouched;
	int complete = 77;

	must_fail(contd_fini(), code);
	must_fail(contd_group_create(&attr, &made), code);
	must_fail(contd_group_create(NULL, &made), code);
	must_fail(contd_group_test(g, &complete), code);
	must_fail(contd_group_wait(g, 0), code);
	must_fail(contd_group_wait(g, -1), code);
	must_fail(contd_group_destroy(g), code);
	must_fail(contd_cancel(given), code);
	must_fail(contd_event_continue(1, es, tally_cb, &t, g, &h), code);
	must_fail(contd_event_continue(0, NULL, tally_cb, &t, g, &h), code);
	must_fail(contd_word_continue(&w, tally_cb, &t, g, &h), code);
	must_fail(contd_group_continue(g, tally_cb, &t, g, &h), code);
	must_fail(contd_poll(0), code);
	must_fail(contd_fd(), code);
	must_fail(contd_thread_attach(NULL), code);
	must_fail(contd_thread_detach(), code);
	must_fail(contd_daemon_start(NULL), code);
	must_fail(contd_daemon_stop(), code);
	must_fail(contd_stats_get(&s), code);
	must_fail(contd_dump(-1), code);
	cr_assert_eq(made, untouched);
	cr_assert_eq(complete, 77);
	cr_assert(h.slot == (void *)0x20 && h.generation == 5);
	cr_assert_eq(s.run, 77);
	cr_assert_eq(runs(&t), 0);
	cr_assert_eq(e.word, 0);
}

Test(errors, before_init_and_after_fini)
{
	static struct contd_group nobody;

	cr_assert_str_eq(contd_error_text(), "", "nothing has failed");
	all_fail(EPERM, &nobody);
	must(contd_init(NULL));
	cr_assert_eq(contd_fini(), 0);
	all_fail(EPERM, &nobody);
	must_fail(contd_fini(), EPERM);
	/* These need none. */
	contd_event_init(&e);
	cr_assert_eq(contd_event_is_complete(&e), 0);
	cr_assert_eq(contd_version(), CONTD_VERSION_MAJOR << 16 | CONTD_VERSION_MINOR << 8 | CONTD_VERSION_PATCH);
	contd_compute_begin();
	contd_compute_end();
	contd_guard_begin();
	contd_guard_end();
}

Test(errors, null)
{
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ}, nowhere = {NULL, 0, 1, CONTD_WORD_EQ};
	struct contd_handle h = {(void *)0x20, 5};
	struct contd_group *g;
	int complete = 77;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must_fail(contd_group_create(NULL, NULL), EINVAL);
	must_fail(contd_group_destroy(NULL), EINVAL);
	must_fail(contd_group_test(NULL, &complete), EINVAL);
	must_fail(contd_group_test(g, NULL), EINVAL);
	must_fail(contd_group_wait(NULL, 0), EINVAL);
	must_fail(contd_cancel((struct contd_handle){NULL, 0}), EINVAL);
	must_fail(contd_event_continue(1, NULL, tally_cb, &t, g, &h), EINVAL);
	must_fail(contd_event_continue(2, hole, tally_cb, &t, g, &h), EINVAL);
	must_fail(contd_event_continue(1, es, NULL, &t, g, &h), EINVAL);
	must_fail(contd_event_continue(1, es, tally_cb, &t, NULL, &h), EINVAL);
	must_fail(contd_event_complete(NULL, 0), EINVAL);
	must_fail(contd_word_continue(NULL, tally_cb, &t, g, &h), EINVAL);
	must_fail(contd_word_continue(&nowhere, tally_cb, &t, g, &h), EINVAL);
	must_fail(contd_word_continue(&w, NULL, &t, g, &h), EINVAL);
	must_fail(contd_word_continue(&w, tally_cb, &t, NULL, &h), EINVAL);
	must_fail(contd_group_continue(NULL, tally_cb, &t, g, &h), EINVAL);
	must_fail(contd_group_continue(g, NULL, &t, g, &h), EINVAL);
	must_fail(contd_group_continue(g, tally_cb, &t, NULL, &h), EINVAL);
	must_fail(contd_stats_get(NULL), EINVAL);
	cr_assert_eq(contd_group_outstanding(NULL), 0);
	cr_assert_eq(complete, 77);
	cr_assert(h.slot == (void *)0x20 && h.generation == 5);
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(contd__words.pending, 0);
	/* The event of the refused calls is still free. */
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must(contd_event_complete(&e, 0));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(stats_now().registered, 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(errors, sizes_flags_and_ranges)
{
	static const size_t sizes[] = {0, 1, 7, 4096, SIZE_MAX};
	struct contd_group *made = untouched, *g;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_group_attr ga;
	struct contd_thread_attr ta;
	struct contd_daemon_attr da;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < 5; i++) {
		ga = (struct contd_group_attr){.size = sizes[i], .max_poll = -1};
		must_fail(contd_group_create(&ga, &made), EINVAL);
		ta = (struct contd_thread_attr){.size = sizes[i]};
		must_fail(contd_thread_attach(&ta), EINVAL);
		da = (struct contd_daemon_attr){.size = sizes[i]};
		must_fail(contd_daemon_start(&da), EINVAL);
		s.size = sizes[i];
		must_fail(contd_stats_get(&s), EINVAL);
	}
	for (unsigned bit = 4; bit < 32; bit++) {
		ga = (struct contd_group_attr){.size = sizeof(ga), .flags = 1u << bit, .max_poll = -1};
		must_fail(contd_group_create(&ga, &made), EINVAL);
	}
	ga = (struct contd_group_attr){.size = sizeof(ga), .max_poll = -2};
	must_fail(contd_group_create(&ga, &made), EINVAL);
	ga = (struct contd_group_attr){.size = sizeof(ga), .max_poll = INT32_MIN};
	must_fail(contd_group_create(&ga, &made), EINVAL);
	ga = (struct contd_group_attr){.size = sizeof(ga), .flags = CONTD_POLL_ONLY, .max_poll = 0};
	must_fail(contd_group_create(&ga, &made), EINVAL);
	cr_assert(strstr(contd_error_text(), "CONTD_GROUP_ATTR_INIT"), "%s", contd_error_text());
	cr_assert_eq(made, untouched);
	ta = (struct contd_thread_attr){.size = sizeof(ta), .flags = 1};
	must_fail(contd_thread_attach(&ta), EINVAL);
	da = (struct contd_daemon_attr){sizeof(da), 999};
	must_fail(contd_daemon_start(&da), EINVAL);
	da.tick_ns = 10000000001;
	must_fail(contd_daemon_start(&da), EINVAL);
	must_fail(contd_daemon_stop(), EPERM);
	w.op = 3;
	must_fail(contd_word_continue(&w, tally_cb, &t, g, NULL), EINVAL);
	w.op = -1;
	must_fail(contd_word_continue(&w, tally_cb, &t, g, NULL), EINVAL);
	w.op = CONTD_WORD_EQ;
	w.address = (uint64_t *)((char *)&word + 4);
	must_fail(contd_word_continue(&w, tally_cb, &t, g, NULL), EINVAL);
	must_fail(contd_event_continue((1u << 24) - 2, es, tally_cb, &t, g, NULL), EINVAL);
	must_fail(contd_event_continue(SIZE_MAX, es, tally_cb, &t, g, NULL), EINVAL);
	must_fail(contd_group_wait(g, INT64_MIN), EINVAL);
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(contd_fini(), 0);
}

/* --------------------------------------------------------- inside callbacks, handlers --- */

struct answers {
	int init, fini, create, destroy, test, wait, cancel, word, chain, poll, fd, attach, detach, start, stop, stats,
		dump;
	int complete, outstanding, event;
};
static struct answers answers;
static struct contd_group *own, *another;
static struct contd_handle pending;

static void ask(int status, void *data)
{
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_stats s = {.size = sizeof(s)};
	struct contd_group *made = NULL;
	int complete;

	answers.init = contd_init(NULL);
	answers.fini = contd_fini();
	answers.create = contd_group_create(NULL, &made);
	answers.destroy = contd_group_destroy(made ? made : another);
	answers.test = contd_group_test(another, &complete);
	answers.wait = contd_group_wait(another, 0);
	answers.cancel = contd_cancel(pending);
	answers.word = contd_word_continue(&w, tally_cb, &t, another, NULL);
	answers.chain = contd_group_continue(another, tally_cb, &t, own, NULL);
	answers.poll = contd_poll(0);
	answers.fd = contd_fd();
	answers.attach = contd_thread_attach(NULL);
	answers.detach = contd_thread_detach();
	answers.start = contd_daemon_start(NULL);
	answers.stop = contd_daemon_stop();
	answers.stats = contd_stats_get(&s);
	answers.dump = contd_dump(-1);
	answers.complete = contd_event_is_complete(&e);
	answers.outstanding = (int)contd_group_outstanding(own);
	answers.event = contd_event_continue(0, NULL, tally_cb, &t, own, NULL);
	tally_cb(status, data);
}

Test(errors, in_a_handler)
{
	static struct contd_event later;
	struct contd_event *laters[] = {&later};
	struct tally asked = {0}, kept = {0};

	start(CONTD_AGENT_CALLER);
	own = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	another = group_new(CONTD_POLL_ONLY, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, laters, tally_cb, &kept, another, &pending));
	must(contd_event_continue(1, es, ask, &asked, own, NULL));
	complete_quietly(&e, 0);
	raise_ours();
	cr_assert_eq(runs(&asked), 1);
	cr_assert_eq(asked.context, CONTEXT_HANDLER);
	cr_assert_lt(answers.init, 0);
	cr_assert_eq(answers.fini, -EDEADLK);
	cr_assert_eq(answers.create, -EPERM);
	cr_assert_eq(answers.destroy, -EPERM);
	cr_assert_eq(answers.test, -EPERM);
	cr_assert_eq(answers.wait, -EPERM);
	cr_assert_eq(answers.cancel, -EPERM);
	cr_assert_eq(answers.word, -EPERM);
	cr_assert_eq(answers.chain, -EPERM);
	cr_assert_eq(answers.poll, -EPERM);
	cr_assert_eq(answers.fd, -EPERM);
	cr_assert_eq(answers.attach, -EPERM);
	cr_assert_lt(answers.detach, 0);
	cr_assert_eq(answers.start, -EDEADLK);
	cr_assert_eq(answers.stop, -EDEADLK);
	cr_assert_eq(answers.stats, -EPERM);
	cr_assert_eq(answers.dump, -EPERM);
	cr_assert_eq(answers.complete, 1);
	cr_assert_eq(answers.outstanding, 1);
	cr_assert_eq(answers.event, 0);
	cr_assert_eq(runs(&t), 1, "what it registered ran in the same scan");
	must(contd_event_complete(&later, 0));
	must(contd_group_wait(another, -1));
	cr_assert_eq(runs(&kept), 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(errors, in_a_callback_on_a_thread)
{
	static struct contd_event later;
	struct contd_event *laters[] = {&later};
	struct tally asked = {0}, cancelled = {0};

	start(CONTD_AGENT_CALLER);
	own = group_new(0, -1);
	another = group_new(0, -1);
	must(contd_event_continue(1, laters, tally_cb, &cancelled, another, &pending));
	must(contd_event_continue(1, es, ask, &asked, own, NULL));
	must(contd_event_complete(&e, 0));
	cr_assert_eq(contd_poll(0), 1 + 1, "and what it registered, complete already, after it");
	cr_assert_eq(runs(&asked), 1);
	cr_assert_eq(answers.init, 0);
	cr_assert_eq(answers.fini, -EDEADLK);
	cr_assert_eq(answers.create, 0);
	cr_assert_eq(answers.destroy, 0);
	cr_assert_eq(answers.test, 0);
	cr_assert_eq(answers.wait, -ETIMEDOUT);
	cr_assert_eq(answers.cancel, 0);
	cr_assert_eq(answers.word, 0);
	cr_assert_eq(answers.chain, 0);
	cr_assert_eq(answers.poll, 0);
	cr_assert_geq(answers.fd, 0);
	cr_assert_eq(answers.attach, 0);
	cr_assert_eq(answers.detach, -EBUSY);
	cr_assert_eq(answers.start, 0);
	cr_assert_eq(answers.stop, 0);
	cr_assert_eq(answers.stats, 0);
	cr_assert_eq(answers.dump, -EBADF);
	word = 1;
	must(contd_group_wait(own, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&t), 3, "enqueued, word, chain");
	cr_assert_eq(runs(&cancelled), 0);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0, "one user of two");
	cr_assert_eq(contd_fini(), 0);
}

/* The text is the thread's own. */
static void *fail_elsewhere(void *data)
{
	cr_assert_str_eq(contd_error_text(), "");
	contd_group_destroy(NULL);
	*(const char **)data = contd_error_text();
	return NULL;
}

Test(errors, text_of_each_thread)
{
	const char *mine, *theirs = NULL;
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	contd_poll(0);
	must_fail(contd_stats_get(NULL), EINVAL);
	mine = contd_error_text();
	cr_assert_eq(pthread_create(&thread, NULL, fail_elsewhere, &theirs), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(contd_error_text(), mine);
	cr_assert_str_neq(mine, theirs);
	cr_assert_eq(contd_fini(), 0);
}

/* A call that fails in the handler does not change the interrupted thread's text. */
static void failing_cb(int status, void *data)
{
	must_fail(contd_event_complete(NULL, 0), EINVAL);
	tally_cb(status, data);
}

static void text_is_kept(bool region)
{
	struct contd_group *g;
	struct contd_event done = CONTD_EVENT_INIT, *dones[] = {&done};
	static struct tally run;
	const char *mine;

	start(CONTD_AGENT_CALLER);
	g = group_new(region ? 0 : CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, dones, failing_cb, &run, g, NULL));
	if (region)
		contd_compute_begin();
	must(complete_quietly(&done, 0));
	must_fail(contd_group_destroy(NULL), EINVAL);
	mine = contd_error_text();
	raise_ours();
	compute_until(runs(&run));
	cr_assert_eq(contd_error_text(), mine, "%s", contd_error_text());
	if (region)
		contd_compute_end();
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(errors, text_is_kept_by_a_handler)
{
	text_is_kept(false);
}
Test(errors, text_is_kept_by_a_regions_handler)
{
	text_is_kept(true);
}
