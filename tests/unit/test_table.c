/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"
#include "base/testpoint.h"
#include "base/atomic.h"
#include "rcu/table.h"

TestSuite(table, .timeout = WATCHDOG);

static struct contd_group owner;
static struct contd__root root;
static struct contd__table t;

static struct contd__slot *alloc(void)
{
	struct contd__slot *s = contd__slot_alloc_sig(&t);

	if (!s) {
		must(contd__table_grow(&t, t.limit));
		s = contd__slot_alloc_sig(&t);
	}
	cr_assert_not_null(s);
	return s;
}

Test(table, slots_are_distinct_and_found_by_index)
{
	enum { N = 64 + 4096 * 70 }; /* more than one branch */

	must(contd__table_init(&t, &owner));
	cr_assert_eq(t.limit, CHUNK_FIRST);
	for (uint32_t i = 0; i < N; i++) {
		struct contd__slot *s = alloc();

		cr_assert_eq(s->index, contd__table_index(i));
		cr_assert_eq(contd__table_slot(&t, s->index), s);
		cr_assert_eq(s->group, &owner);
		cr_assert_eq(s->state, 0);
		cr_assert_eq((uintptr_t)s % 64, 0);
	}
	cr_assert_eq(t.limit, N);
	cr_assert_null(contd__slot_alloc_sig(&t));
	cr_assert_not_null(t.branch[1]);
	contd__table_fini(&t);
}

Test(table, a_freed_slot_comes_back_with_another_generation)
{
	struct contd__slot *s, *other;
	uint32_t generation;

	must(contd__table_init(&t, &owner));
	s = alloc();
	other = alloc();
	for (generation = 0; generation < 1000; generation++) {
		cr_assert_eq(SLOT_GENERATION(s->state), generation);
		contd__slot_free_sig(&t, s);
		cr_assert_eq(contd__slot_alloc_sig(&t), s);
	}
	cr_assert_eq(SLOT_GENERATION(other->state), 0);
	contd__slot_free_sig(&t, s);
	contd__slot_free_sig(&t, other);
	cr_assert_eq(contd__slot_alloc_sig(&t), other);
	cr_assert_eq(contd__slot_alloc_sig(&t), s);
	cr_assert_eq(t.used, 2);
	contd__table_fini(&t);
}

Test(table, growing_twice_for_the_same_limit_is_once)
{
	must(contd__table_init(&t, &owner));
	must(contd__table_grow(&t, CHUNK_FIRST));
	cr_assert_eq(t.limit, CHUNK_FIRST + CHUNK_SLOTS);
	must(contd__table_grow(&t, CHUNK_FIRST));
	cr_assert_eq(t.limit, CHUNK_FIRST + CHUNK_SLOTS);
	contd__table_fini(&t);
}

/* Marks anywhere, claims in order from anywhere, and the hints are gone when nothing is left. */
Test(table, marked_is_claimed_once_and_in_order)
{
	static const uint32_t n[] = {0,
				     1,
				     62,
				     63,
				     64,
				     65,
				     127,
				     128,
				     4159,
				     4160,
				     100000,
				     64 + 4096 * 64,
				     64 + 4096 * 64 + 1,
				     64 + 4096 * 70 - 1};
	enum { MARKS = sizeof(n) / sizeof(n[0]) };

	must(contd__table_init(&t, &owner));
	t.root = &root;
	t.root_index = 77;
	for (uint32_t i = 0; i < 64 + 4096 * 70; i++)
		alloc();
	for (unsigned from = 0; from <= MARKS; from++) {
		uint32_t pos = from < MARKS ? contd__table_index(n[from]) : 1u << 24;

		for (unsigned i = 0; i < MARKS; i++)
			contd__table_mark_sig(&t, contd__table_index(n[(i * 5 + from) % MARKS]));
		cr_assert(root.word[1] & 1ull << 13);
		cr_assert(root.top & 2);
		for (unsigned i = from; i < MARKS; i++) {
			struct contd__slot *s = contd__table_claim_sig(&t, &pos);

			cr_assert_not_null(s);
			cr_assert_eq(s->index, contd__table_index(n[i]));
			cr_assert_eq(pos, s->index + 1);
		}
		cr_assert_null(contd__table_claim_sig(&t, &pos));
		pos = 0;
		for (unsigned i = 0; i < from; i++) {
			struct contd__slot *s = contd__table_claim_sig(&t, &pos);

			cr_assert_not_null(s);
			cr_assert_eq(s->index, contd__table_index(n[i]));
		}
		cr_assert_null(contd__table_claim_sig(&t, &pos));
		pos = 0;
		cr_assert_null(contd__table_claim_sig(&t, &pos));
		cr_assert_eq(t.top, 0, "no hint is left");
		contd__root_settle_sig(&root, 77, &t);
		cr_assert_eq(root.word[1], 0);
	}
	contd__table_fini(&t);
}

/* Something is marked where a claim that finds nothing has just cleared the n-th hint. It is found, and no hint
 * stays. */
static unsigned until_marked;
static uint32_t marked_there;

static void mark_where_cleared(const char *name)
{
	if (strcmp(name, "settle_cleared") == 0 && until_marked && --until_marked == 0)
		contd__table_mark_sig(&t, marked_there);
}

Test(table, marked_where_a_hint_is_cleared)
{
	static const uint32_t n[] = {64, 64 + 4096, 64 + 4096 * 64};

	must(contd__table_init(&t, &owner));
	for (uint32_t i = 0; i < 64 + 4096 * 70; i++)
		alloc();
	__atomic_store_n(&contd__testpoint_hook, mark_where_cleared, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned level = 1; level <= 3; level++) {
			uint32_t index = contd__table_index(n[i]), pos = 0;

			marked_there = index + 1;
			contd__table_mark_sig(&t, index);
			cr_assert_eq(contd__table_claim_sig(&t, &pos)->index, index);
			until_marked = level;
			cr_assert_null(contd__table_claim_sig(&t, &pos));
			cr_assert_eq(until_marked, 0);
			pos = 0;
			cr_assert_eq(contd__table_claim_sig(&t, &pos)->index, marked_there);
			pos = 0;
			cr_assert_null(contd__table_claim_sig(&t, &pos));
			cr_assert_eq(t.top, 0, "%u, level %u: a hint is left", i, level);
		}
	}
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	contd__table_fini(&t);
}

Test(table, root_finds_each_marked_group_in_order)
{
	static const uint32_t n[] = {0, 5, 63, 64, 1000, 4095};
	uint32_t pos = 0;

	for (unsigned i = 0; i < 6; i++)
		contd__root_mark_sig(&root, n[5 - i]);
	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(contd__root_next_sig(&root, &pos), (int)n[i]);
	cr_assert_eq(contd__root_next_sig(&root, &pos), -1);
	pos = 6;
	cr_assert_eq(contd__root_next_sig(&root, &pos), 63);
	for (unsigned i = 0; i < 6; i++)
		contd__root_settle_sig(&root, n[i], NULL);
	pos = 0;
	cr_assert_eq(contd__root_next_sig(&root, &pos), -1);
	cr_assert_eq(root.top, 0);
}

Test(table, root_keeps_the_bit_of_a_group_that_has_something)
{
	uint32_t pos = 0;

	must(contd__table_init(&t, &owner));
	t.root = &root;
	t.root_index = 9;
	contd__table_mark_sig(&t, alloc()->index);
	contd__root_settle_sig(&root, 9, &t);
	cr_assert_eq(contd__root_next_sig(&root, &pos), 9);
	contd__table_fini(&t);
}

/* Markers and claimers on several threads: what is marked is claimed once, and the free list loses nothing. */
enum { THREADS = 4, EACH = 100000 };
static uint32_t claimed, stopped;
static uint8_t *owned;

static void *marker(void *data)
{
	(void)data;
	for (unsigned i = 0; i < EACH; i++) {
		struct contd__slot *s;
		uint8_t free_before = 0;

		while (!(s = contd__slot_alloc_sig(&t)))
			sched_yield();
		if (!__atomic_compare_exchange_n(&owned[s->index], &free_before, 1, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			abort();
		contd__table_mark_sig(&t, s->index);
	}
	contd__add(&stopped, 1);
	return NULL;
}

static void *claimer(void *data)
{
	uint32_t pos = 0;

	(void)data;
	while (contd__load_seq(&claimed) < THREADS / 2 * EACH) {
		struct contd__slot *s = contd__table_claim_sig(&t, &pos);
		uint8_t taken = 1;

		if (!s) {
			pos = 0;
			continue;
		}
		if (!__atomic_compare_exchange_n(&owned[s->index], &taken, 0, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			abort();
		contd__slot_free_sig(&t, s);
		contd__add(&claimed, 1);
	}
	return NULL;
}

Test(table, marked_and_claimed_by_many_threads)
{
	pthread_t thread[THREADS];
	uint32_t n = 0, pos = 0;

	must(contd__table_init(&t, &owner));
	t.root = &root;
	must(contd__table_grow(&t, t.limit));
	owned = calloc(1, 1 << 14);
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, i % 2 ? marker : claimer, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(claimed, THREADS / 2 * EACH);
	cr_assert_null(contd__table_claim_sig(&t, &pos));
	for (uint32_t i = 0; i < 1 << 14; i++)
		cr_assert_eq(owned[i], 0);
	while (contd__slot_alloc_sig(&t))
		n++;
	cr_assert_eq(n, t.limit, "each slot is in the free list or was never used");
	free(owned);
	contd__table_fini(&t);
}
