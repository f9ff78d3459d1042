/* SPDX-License-Identifier: BSD-3-Clause */
/* A poll-only group of async-signal-safe continuations is given back: from then on a handler may run them. */
#include "unit.h"
#include "dispatch/thread.h"

TestSuite(races_destroy, .timeout = WATCHDOG);

static struct contd_group *g;

static void job_destroy(void *data)
{
	(void)data;
	must(contd_group_destroy(g));
}

Test(races_destroy, ready_when_it_is_given_back)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct tally t = {0};
	struct helper other;

	start(CONTD_AGENT_REGION);
	helper_create(&other, false);
	g = group_new(CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must(contd_event_complete(&e, 0));
	helper_do(&other, job_destroy, NULL);
	compute_until(runs(&t));
	cr_assert_eq(t.context, CONTEXT_HANDLER);
	must(contd_thread_detach());
	helper_join(&other);
	cr_assert_eq(contd_fini(), 0);
}
