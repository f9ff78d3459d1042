/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "dispatch/word.h"

TestSuite(word, .timeout = WATCHDOG);

static uint64_t w[1000] __attribute__((aligned(8)));
static struct tally t[1000];
static struct contd_group *g;

static void watch(unsigned i, uint64_t mask, uint64_t value, int op, struct contd_handle *h)
{
	struct contd_word word = {&w[i], mask, value, op};

	must(contd_word_continue(&word, tally_cb, &t[i], g, h));
}

Test(word, conditions)
{
	static const struct {
		uint64_t mask, value, before, after;
		int op;
	} c[] = {
		{0, 5, 4, 5, CONTD_WORD_EQ},
		{0xff, 5, 0x104, 0x105, CONTD_WORD_EQ},
		{0, 0, 0, 1, CONTD_WORD_NE},
		{0xf0, 0x10, 0x1f, 0x2f, CONTD_WORD_NE},
		{0, 10, 9, 11, CONTD_WORD_GE},
		{0, 1ull << 63, (1ull << 63) - 1, 1ull << 63, CONTD_WORD_GE},
		{0xff00, 0x500, 0xff0000000004ffull, 0x600, CONTD_WORD_GE},
	};
	enum { N = sizeof(c) / sizeof(c[0]) };

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < N; i++) {
		w[i] = c[i].before;
		watch(i, c[i].mask, c[i].value, c[i].op, NULL);
	}
	cr_assert_eq(contd_poll(0), 0);
	for (unsigned i = 0; i < N; i++) {
		w[i] = c[i].after;
		cr_assert_eq(contd_poll(0), 1, "condition %u", i);
		cr_assert_eq(runs(&t[i]), 1);
		cr_assert_eq(t[i].status, 0);
	}
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(contd__words.pending, 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(word, many_and_their_places_are_used_anew)
{
	unsigned blocks = 0;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned round = 1; round <= 10; round++) {
		for (unsigned i = 0; i < 1000; i++)
			watch(i, 0, round, CONTD_WORD_EQ, NULL);
		cr_assert_eq(contd_poll(0), 0);
		for (unsigned i = 0; i < 1000; i++)
			w[(i * 7 + round) % 1000] = round;
		must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
		for (unsigned i = 0; i < 1000; i++)
			cr_assert_eq(runs(&t[i]), round);
	}
	for (struct contd__word_block *b = contd__words.first; b; b = b->next)
		blocks++;
	cr_assert_leq(blocks, 16);
	cr_assert_eq(contd_fini(), 0);
}

Test(word, cancelled_is_not_read_any_more)
{
	uint64_t *page = aligned_alloc(64, 64);
	struct contd_word word = {page, 0, 1, CONTD_WORD_EQ};
	struct contd_handle h;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	*page = 0;
	must(contd_word_continue(&word, tally_cb, &t[0], g, &h));
	watch(1, 0, 1, CONTD_WORD_EQ, NULL);
	must(contd_cancel(h));
	free(page);
	cr_assert_eq(contd_group_outstanding(g), 1);
	cr_assert_eq(contd_poll(0), 0);
	w[1] = 1;
	cr_assert_eq(contd_poll(0), 1);
	must_fail(contd_cancel(h), EALREADY);
	cr_assert_eq(runs(&t[0]), 0);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(word, wait_times_out_while_it_does_not_hold)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	watch(0, 0, 1, CONTD_WORD_EQ, NULL);
	must_fail(contd_group_wait(g, 1000000), ETIMEDOUT);
	cr_assert_eq(runs(&t[0]), 0);
	cr_assert_eq(contd_fini(), 1);
}

static void set(void *data)
{
	usleep(2000);
	__atomic_store_n((uint64_t *)data, 1, __ATOMIC_RELEASE);
}

Test(word, waiter_wakes_though_nobody_tells_it)
{
	struct helper h;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	watch(0, 0, 1, CONTD_WORD_EQ, NULL);
	helper_create(&h, false);
	helper_start(&h, set, &w[0]);
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&t[0]), 1);
	helper_join(&h);
	cr_assert_eq(contd_fini(), 0);
}

/* A thousand words, a look of a hundred at a time in the handler: each is reached. */
Test(word, handler_reaches_each_in_turn)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .scan_count = 100, .scan_ns = 1000000000};

	must(contd_init(&config));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	for (unsigned i = 0; i < 1000; i++)
		watch(i, 0, 1, CONTD_WORD_EQ, NULL);
	for (unsigned target = 0; target < 1000; target += 37) {
		w[target] = 1;
		for (unsigned i = 0; i < 12 && !runs(&t[target]); i++)
			raise_ours();
		cr_assert_eq(runs(&t[target]), 1, "%u", target);
	}
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 1000 - 28);
}

/* One look's budget counts blocks without any as well: there are as many as were ever in use at a time. */
Test(word, a_look_stays_inside_its_budget_among_empty_blocks)
{
	enum { BLOCKS = 200, N = BLOCKS * 64, MOST = 64 };
	static struct contd_handle h[N];
	unsigned looks;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < N; i++)
		watch(i == N - 1, 0, 1, CONTD_WORD_EQ, &h[i]);
	for (unsigned i = 0; i < N - 1; i++)
		must(contd_cancel(h[i]));
	w[1] = 1;
	contd__words_look_sig(MOST);
	cr_assert_eq(contd__words.pending, 1, "it has looked at %u blocks", BLOCKS);
	for (looks = 1; contd__words.pending; looks++)
		contd__words_look_sig(MOST);
	cr_assert_leq(looks, BLOCKS / MOST + 2);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(contd_fini(), 0);
}
