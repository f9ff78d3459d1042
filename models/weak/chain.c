/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 4 */
/*
 * chain.pml: the thread that brings a group's count to 0 looks for a waiter; the one that registers a waiter looks at
 * the count. One of them takes the waiter. (complete.c: contd__sub(life), contd__load_seq(waiter); chain.c:
 * contd__cas(waiter), contd__load_seq(life).)
 */
#include "weak.h"

static uint32_t life = 1;
static uint64_t waiter;
static int runs;

static void take(void)
{
	uint64_t w = 1;

	if (contd__cas(&waiter, &w, 0))
		__atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
}

static void *one(void *arg)
{
	(void)UNLESS(1, contd__sub(&life, 1), ADD_RELAXED(&life, (uint32_t)-1));
	if (UNLESS(2, contd__load_seq(&waiter), contd__load(&waiter)))
		take();
	return arg;
}

static void *two(void *arg)
{
	uint64_t none = 0;

	if (MUTANT == 3)
		__atomic_compare_exchange_n(&waiter, &none, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	else
		(void)contd__cas(&waiter, &none, 1);
	if (!UNLESS(4, contd__load_seq(&life), contd__load(&life)))
		take();
	return arg;
}

int main(void)
{
	run_two();
	assert(runs == 1);
	return 0;
}
