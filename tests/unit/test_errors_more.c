/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad input: what is refused is not counted; the longest timeout; calls in a region and on the daemon. */
#include "unit.h"
#include "base/atomic.h"

TestSuite(errors_more, .timeout = WATCHDOG);

static struct contd_event trigger;
static struct contd_event *triggers[] = {&trigger};
static struct tally never;

static void job_complete(void *event)
{
	usleep(1000);
	must(contd_event_complete(event, 0));
}

Test(errors_more, longest_timeout)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g;
	struct helper other;
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	helper_create(&other, false);
	g = group_new(0, -1);
	must(contd_group_wait(g, INT64_MAX));
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must_fail(contd_group_wait(g, 0), ETIMEDOUT);
	must_fail(contd_group_wait(g, -2), EINVAL);
	helper_start(&other, job_complete, &e);
	must(contd_group_wait(g, INT64_MAX));
	cr_assert_eq(runs(&t), 1);
	helper_join(&other);
	cr_assert_eq(contd_fini(), 0);
}

Test(errors_more, refused_registrations_are_not_counted)
{
	struct contd_event a = CONTD_EVENT_INIT, b = CONTD_EVENT_INIT, *both[] = {&a, &b}, *one[] = {&b};
	struct contd_handle h0 = {(void *)0x10, 7}, h1 = h0;
	struct contd_group *g, *h;
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	h = group_new(0, -1);
	must(contd_event_continue(1, one, tally_cb, &t, g, NULL));
	must_fail(contd_event_continue(2, both, tally_cb, &never, g, &h1), EBUSY);
	must_fail(contd_group_continue(g, tally_cb, &never, g, &h1), ELOOP);
	must(contd_group_continue(g, tally_cb, &t, h, NULL));
	must_fail(contd_group_continue(g, tally_cb, &never, h, &h1), EBUSY);
	must_fail(contd_group_continue(h, tally_cb, &never, g, &h1), ELOOP);
	cr_assert(h1.slot == h0.slot && h1.generation == h0.generation);
	cr_assert_eq(stats_now().registered, 2);
	cr_assert_eq(contd_group_outstanding(g), 1);
	cr_assert_eq(contd_group_outstanding(h), 1);
	must(contd_event_complete(&b, 0));
	cr_assert_eq(contd_poll(0), 2);
	cr_assert_eq(runs(&t), 2);
	cr_assert_eq(runs(&never), 0);
	cr_assert_eq(contd_fini(), 0);
}

/* In a region everything is allowed that does not change what the thread is. */
static int region_rc[9];

static void in_region_cb(int status, void *data)
{
	(void)status;
	region_rc[0] = contd_fini();
	region_rc[1] = contd_thread_detach();
	region_rc[2] = contd_thread_attach(NULL);
	region_rc[3] = contd_daemon_start(NULL);
	region_rc[4] = contd_group_wait(data, -1);
	region_rc[5] = contd_poll(0);
	region_rc[6] = contd_daemon_stop();
	region_rc[7] = contd_init(NULL);
	region_rc[8] = contd_configure(&(struct contd_config){.size = sizeof(struct contd_config)});
}

Test(errors_more, in_a_region)
{
	static const int expected[9] = {-EDEADLK, -EBUSY, -EPERM, 0, -EDEADLK, 0, 0, 0, 0};
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, triggers, in_region_cb, g, g, NULL));
	must(contd_event_complete(&trigger, 0));
	contd_compute_begin();
	raise_ours();
	contd_compute_end();
	cr_assert_eq(contd_group_outstanding(g), 0);
	for (unsigned i = 0; i < 9; i++)
		cr_assert_eq(region_rc[i], expected[i], "%u: %d", i, region_rc[i]);
	must(contd_thread_detach());
	must_fail(contd_daemon_stop(), EPERM);
	cr_assert_eq(contd_fini(), 0, "one user of two");
	cr_assert_eq(contd_fini(), 0);
}

static int daemon_rc[12];
static bool daemon_text;
static uint32_t daemon_done;

static void on_daemon_cb(int status, void *data)
{
	struct contd_group *g = NULL;
	int complete;

	(void)status;
	daemon_rc[0] = contd_fini();
	daemon_rc[1] = contd_thread_attach(NULL);
	daemon_rc[2] = contd_thread_detach();
	daemon_rc[3] = contd_daemon_start(NULL);
	daemon_rc[4] = contd_daemon_stop();
	daemon_rc[5] = contd_group_wait(data, -1);
	daemon_text = contd_error_text()[0] != 0;
	daemon_rc[6] = contd_group_create(NULL, &g);
	daemon_rc[7] = contd_group_test(g, &complete);
	daemon_rc[8] = contd_group_wait(g, -1);
	daemon_rc[9] = contd_group_destroy(g);
	daemon_rc[10] = contd_poll(0);
	daemon_rc[11] = contd_event_continue(0, NULL, tally_cb, &never, data, NULL);
	contd__store_release(&daemon_done, 1);
}

Test(errors_more, on_the_daemon)
{
	static const int expected[12] = {-EDEADLK, -EPERM, -EPERM, -EDEADLK, -EDEADLK, -EDEADLK};
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_THREAD_ANY, -1);
	must(contd_daemon_start(NULL));
	must(contd_event_continue(1, triggers, on_daemon_cb, g, g, NULL));
	must(contd_event_complete(&trigger, 0));
	await(contd__load_acquire(&daemon_done));
	for (unsigned i = 0; i < 12; i++)
		cr_assert_eq(daemon_rc[i], expected[i], "%u: %d", i, daemon_rc[i]);
	cr_assert(daemon_text);
	await(runs(&never) == 1);
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}
