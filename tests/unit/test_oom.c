/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* Memory runs out at each request in turn; what was there before goes on working. */
#include <contd/executor.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "rcu/table.h"

TestSuite(oom, .timeout = WATCHDOG);

static struct contd_event first, e[200];
static struct contd_event *firsts[] = {&first};
static struct tally first_tally, t[200];
static uint64_t first_word __attribute__((aligned(8))), word[200] __attribute__((aligned(8)));

static void budget(long n)
{
	contd__store(&contd__alloc_budget, n);
}

/* Create, fill, watch, attach: 0, or the error of the first that failed, with all before it undone. */
static int sequence(unsigned *steps)
{
	struct contd_word w = {&word[0], 0, 1, CONTD_WORD_EQ};
	struct contd_group *g;
	struct contd_handle h[200];
	unsigned i;
	int rc;

	*steps = 0;
	rc = contd_group_create(NULL, &g);
	if (rc)
		return rc;
	++*steps;
	for (i = 0; i < 200 && !rc; i++) {
		struct contd_event *es[] = {&e[i]};

		contd_event_init(&e[i]);
		rc = contd_event_continue(1, es, tally_cb, &t[i], g, &h[i]);
	}
	*steps += rc ? i - 1 : i;
	if (!rc) {
		word[0] = 0;
		rc = contd_word_continue(&w, tally_cb, &t[0], g, NULL);
		if (!rc) {
			++*steps;
			rc = contd_thread_attach(NULL);
			if (!rc)
				++*steps;
		}
	} else {
		i--;
	}
	/* A registered continuation works, whatever failed after it. */
	for (unsigned k = 0; k < i; k++) {
		if (k % 2)
			must(contd_event_complete(&e[k], 0));
		else
			must(contd_cancel(h[k]));
	}
	word[0] = 1;
	contd_poll(0);
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	must(contd_group_destroy(g));
	if (!rc)
		must(contd_thread_detach());
	return rc;
}

Test(oom, ladder)
{
	struct contd_word w = {&first_word, 0, 1, CONTD_WORD_EQ};
	struct contd_group *before;
	unsigned steps, most = 0, rungs = 0;
	long n;

	start(CONTD_AGENT_REGION);
	before = group_new(0, -1);
	must(contd_event_continue(1, firsts, tally_cb, &first_tally, before, NULL));
	/* A watched word takes the whole block that there is: the sequence needs another. */
	for (unsigned i = 0; i < 64; i++) {
		must(contd_word_continue(&w, tally_cb, &first_tally, before, NULL));
	}
	for (n = 0;; n++) {
		int rc;

		budget(n);
		contd__error_text = NULL;
		rc = sequence(&steps);
		budget(-1);
		if (rc == 0)
			break;
		rungs++;
		cr_assert_eq(rc, -ENOMEM, "with %ld requests: %d", n, rc);
		cr_assert(strstr(contd_error_text(), "memory"), "with %ld requests: %s", n, contd_error_text());
		cr_assert_geq(steps, most, "more memory, fewer steps");
		most = steps;
		cr_assert_lt(n, 100);
		cr_assert_eq(contd_group_outstanding(before), 65);
	}
	cr_assert_eq(steps, 203);
	cr_assert_geq(rungs, 5, "group, branch, chunk, chunk, words, record");
	must(contd_event_complete(&first, 0));
	first_word = 1;
	must(contd_group_wait(before, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&first_tally), 65);
	cr_assert_eq(contd_fini(), 0);
}

/* No memory to grow: the slots that are there are used up to the last, and freed ones again. */
Test(oom, all_slots_are_used)
{
	struct contd_handle h[200];
	struct contd_group *g;
	struct contd_event *es[1];

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	budget(0);
	for (unsigned i = 0; i < CHUNK_FIRST; i++) {
		es[0] = &e[i];
		must(contd_event_continue(1, es, tally_cb, &t[i], g, &h[i]));
	}
	es[0] = &e[100];
	must_fail(contd_event_continue(1, es, tally_cb, &t[100], g, &h[100]), ENOMEM);
	cr_assert_eq(e[100].word, 0);
	must(contd_cancel(h[5]));
	must(contd_event_continue(1, es, tally_cb, &t[100], g, &h[100]));
	budget(-1);
	es[0] = &e[101];
	must(contd_event_continue(1, es, tally_cb, &t[101], g, NULL));
	for (unsigned i = 0; i < 102; i++)
		if (i < CHUNK_FIRST ? i != 5 : i >= 100)
			must(contd_event_complete(&e[i], 0));
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	for (unsigned i = 0; i < 102; i++)
		cr_assert_eq(runs(&t[i]), i < CHUNK_FIRST ? i != 5 : i >= 100);
	cr_assert_eq(contd_fini(), 0);
}

/* Nothing of an executor is asked for later: what becomes ready needs no memory. */
Test(oom, executor)
{
	static struct contd_task task;
	struct contd_executor *executor;
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	budget(0);
	must_fail(contd_executor_create(NULL, &executor), ENOMEM);
	budget(-1);
	must(contd_executor_create(NULL, &executor));
	must(contd_group_create(NULL, &g));
	budget(0);
	must(contd_group_set_executor(g, executor));
	contd_task_init(&task, executor, 0, tally_cb, &t[0]);
	must(contd_task_submit(&task, 0));
	must(contd_event_continue(0, NULL, tally_cb, &t[1], g, NULL));
	cr_assert_eq(contd_executor_run(executor, 0, 0), 2);
	budget(-1);
	must(contd_group_destroy(g));
	must(contd_executor_destroy(executor));
	cr_assert_eq(contd_fini(), 0);
}
