/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The script "debugger" attaches the debugger to this program: ticks, a feeder, and continuations that wait until
 * standard input ends; then everything must have run once. Prints "ready" when it may be attached to.
 */
#include <poll.h>

#include "coexist.h"

#define WAITING 100

static struct contd_event waiting[WAITING];
static atomic_int runs[WAITING];

static void waiting_cb(int status, void *data)
{
	(void)status;
	atomic_fetch_add((atomic_int *)data, 1);
}

static bool told_to_end(void)
{
	struct pollfd p = {STDIN_FILENO, POLLIN, 0};
	char c;

	return poll(&p, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

static void attached_to(void)
{
	unsigned long long ran;

	ticking_begin();
	for (int i = 0; i < WAITING; i++) {
		struct contd_event *es[] = {&waiting[i]};

		MUST(contd_event_continue(1, es, waiting_cb, &runs[i], ticking_safe, NULL));
	}
	feed_begin(NULL);
	puts("ready");
	do {
		for (volatile int k = 0; k < 100000; k++)
			;
	} while (!told_to_end());
	/* It goes on as before. */
	ran = atomic_load(&feed_ran);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > ran + 200);
	feed_end();
	for (int i = 0; i < WAITING; i++) {
		CHECK_EQ(atomic_load(&runs[i]), 0);
		MUST(contd_event_complete(&waiting[i], 0));
		CHECK_EQ(atomic_load(&runs[i]), 1);
	}
	ticking_end();
	puts("nothing lost");
}

static const struct coexist_case cases[] = {
	{.name = "attached_to", attached_to},
};

COEXIST_CASES(cases)
