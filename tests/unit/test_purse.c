/* SPDX-License-Identifier: BSD-3-Clause */
/* The purse's arithmetic (dispatch/purse.h) with made-up times: no clock, no thread. */
#include "unit.h"

#include "base/clock.h"
#include "dispatch/limits.h"
#include "dispatch/purse.h"

TestSuite(purse, .timeout = WATCHDOG);

#define HZ 3000000000ull /* clock ticks a second */

/* As settle() in life.c derives them. */
static void budget(double percent)
{
	contd__clock.second = HZ;
	contd__limits.purse_rate = (uint64_t)(percent / 100 * 0.9 * (1 << 20));
	contd__limits.purse_most = (uint64_t)(percent / 100 * 0.1 * (double)HZ);
}

static const double percents[] = {0.1, 0.5, 2, 10, 50};
#define PERCENTS (sizeof(percents) / sizeof(percents[0]))

/* Pays whenever it may, from time 0 for so long; returns what was paid in the worst window of a second. */
static uint64_t spend_all(struct contd__purse *p, uint64_t start, uint64_t cost, uint64_t seconds, uint64_t *sump)
{
	enum { KEEP = 1 << 20 };
	static uint64_t at[KEEP];
	uint64_t now = start, n = 0, first = 0, worst = 0;

	while (now < start + seconds * HZ) {
		if (now < p->enough_at) {
			now = p->enough_at;
			continue;
		}
		contd__purse_pay_sig(p, now, cost, cost);
		at[n++ % KEEP] = now;
		while (at[first % KEEP] + HZ <= now)
			first++;
		cr_assert_lt(n - first, KEEP);
		if ((n - first) * cost > worst)
			worst = (n - first) * cost;
		now += cost / 3 + 1; /* asked for more often than the purse can pay */
	}
	*sump = n * cost;
	return worst;
}

Test(purse, no_second_costs_more_than_the_budget)
{
	static const uint64_t costs[] = {3000, 30000, 150000};

	for (unsigned i = 0; i < PERCENTS; i++)
		for (unsigned k = 0; k < 3; k++) {
			struct contd__purse p = {0};
			double whole = percents[i] / 100 * (double)HZ;
			uint64_t sum, worst;

			budget(percents[i]);
			contd__purse_open(&p, 1000);
			cr_assert_eq(p.balance, contd__purse_most());
			cr_assert_eq(p.enough_at, 1000);
			worst = spend_all(&p, 1000, costs[k], 4, &sum);
			/* The savings, the inflow, and one that was begun with the last of it. */
			cr_assert_leq((double)worst, whole * 1.0001 + (double)costs[k], "%g %%, %lu each: %lu of %g",
				      percents[i], costs[k], worst, whole);
			/* And it is there to be spent: nine tenths of it at least, over a long time. */
			cr_assert_geq((double)sum, 4 * whole * 0.9 * 0.95 - 2 * (double)costs[k],
				      "%g %%, %lu each: %lu of %g", percents[i], costs[k], sum, 4 * whole);
		}
}

Test(purse, saves_one_tenth_of_a_second_and_no_more)
{
	for (unsigned i = 0; i < PERCENTS; i++) {
		struct contd__purse p = {0};
		uint64_t now = 5, burst = 0, cost = 20000;

		budget(percents[i]);
		contd__purse_open(&p, now);
		/* A year, and a century. */
		for (unsigned k = 0; k < 2; k++) {
			now = k ? INT64_MAX - 10 * HZ : now + 365 * 86400 * HZ;
			for (burst = 0; contd__purse_pay_sig(&p, now, cost, cost); burst++)
				cr_assert_lt(burst, 100000);
			cr_assert_leq(burst * cost, contd__limits.purse_most);
			cr_assert_geq((burst + 2) * cost, contd__limits.purse_most);
			cr_assert_gt(p.enough_at, now);
			cr_assert_leq(p.enough_at, now + (cost << 20) / contd__limits.purse_rate + 1);
		}
	}
}

/* enough_at is not a promise that is broken: asked then, there is enough. */
Test(purse, there_is_enough_when_it_says_so)
{
	for (unsigned i = 0; i < PERCENTS; i++)
		for (uint64_t cost = 1000; cost < 200000; cost = cost * 3 + 7) {
			struct contd__purse p = {0};
			uint64_t now = 77;

			budget(percents[i]);
			if (cost > contd__limits.purse_most)
				continue;
			contd__purse_open(&p, now);
			for (unsigned k = 0; k < 1000; k++) {
				contd__purse_pay_sig(&p, now, cost, cost);
				if (p.enough_at > now)
					now = p.enough_at;
				contd__purse_fill_sig(&p, now);
				cr_assert_geq(p.balance + 1, (int64_t)cost, "%g %%, %lu each, payment %u", percents[i],
					      cost, k);
			}
		}
}

/* Something that costs more than can ever be saved is still paid for, and then for a long time nothing. */
Test(purse, more_than_can_be_saved_is_paid_off)
{
	struct contd__purse p = {0};
	uint64_t now = 1, first = 0, paid = 0, cost;

	budget(0.1);
	cost = 3 * contd__limits.purse_most;
	contd__purse_open(&p, now);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_not(contd__purse_pay_sig(&p, now, cost, cost));
		paid += cost;
		cr_assert_gt(p.enough_at, now);
		cr_assert_leq(p.enough_at - now, 10 * HZ, "it never comes again");
		now = p.enough_at;
		if (i == 0)
			first = now;
	}
	cr_assert_leq((double)(paid - cost), (double)(now - first) * 0.001 + (double)cost);
}

/* Looking at the purse often must not keep it from filling: what flows in between two looks is less than 1. */
Test(purse, fills_however_often_it_is_looked_at)
{
	for (unsigned i = 0; i < PERCENTS; i++)
		for (uint64_t step = 15; step < 3000; step = step * 2 + 1) {
			struct contd__purse p = {0};
			uint64_t now = 1, passed = HZ / 500;
			double want;

			budget(percents[i]);
			contd__purse_open(&p, now);
			p.balance = 0;
			while (now < 1 + passed) {
				now += step;
				contd__purse_half_full_sig(&p, now);
			}
			want = (double)(now - 1) * (double)contd__limits.purse_rate / (1 << 20);
			if (want > (double)contd__limits.purse_most)
				want = (double)contd__limits.purse_most;
			/* A clock tick a look may be lost. */
			cr_assert_geq((double)p.balance, want * (step < 100 ? 0.9 : 0.99) - 2,
				      "%g %% by steps of %lu: %ld of %g", percents[i], step, (long)p.balance, want);
			cr_assert_leq((double)p.balance, want + 2);
		}
}

/* Clocks of two processors may differ by a little, and the thread may move from one to the other. */
Test(purse, a_clock_that_goes_back_gives_nothing)
{
	struct contd__purse p = {0};
	uint64_t now = 100 * HZ;
	int64_t before;

	budget(2);
	contd__purse_open(&p, now);
	contd__purse_pay_sig(&p, now, contd__limits.purse_most + 1000000, 1000);
	before = p.balance;
	for (uint64_t back = 1; back < HZ; back *= 10) {
		cr_assert_not(contd__purse_half_full_sig(&p, now - back), "%lu earlier", back);
		cr_assert_leq(p.balance, before + 1);
	}
	/* ... and takes nothing: the time is counted once. */
	contd__purse_fill_sig(&p, now + HZ / 100);
	cr_assert_leq((double)(p.balance - before), (double)HZ / 100 * 0.018 * 1.01);
	cr_assert_geq((double)(p.balance - before), (double)HZ / 100 * 0.018 * 0.99);
}

/* Settings may change at any time: what is saved is at most what the new budget lets be saved. */
Test(purse, a_smaller_budget_takes_what_is_too_much)
{
	struct contd__purse p = {0};

	budget(50);
	contd__purse_open(&p, 10);
	budget(0.1);
	cr_assert(contd__purse_half_full_sig(&p, 10));
	cr_assert_eq(p.balance, contd__purse_most());
	budget(50);
	cr_assert_not(contd__purse_half_full_sig(&p, 20));
	cr_assert(contd__purse_half_full_sig(&p, 20 + HZ));
	cr_assert_eq(p.balance, contd__purse_most());
}

Test(purse, half_full_is_half)
{
	struct contd__purse p = {0};
	uint64_t half;

	budget(2);
	half = contd__limits.purse_most / 2;
	contd__purse_open(&p, 1);
	contd__purse_pay_sig(&p, 1, contd__limits.purse_most - half, 1);
	cr_assert(contd__purse_half_full_sig(&p, 1));
	contd__purse_pay_sig(&p, 1, 1, 1);
	cr_assert_not(contd__purse_half_full_sig(&p, 1));
}

/* A virtual machine that was moved may find the clock an hour back: the purse fills, and what was put off comes. */
Test(purse, a_clock_that_goes_far_back)
{
	const uint64_t cost = 30000, late = 3600 * HZ * 2, early = 3600 * HZ;
	struct contd__purse p = {0};

	budget(2);
	contd__purse_open(&p, late);
	while (contd__purse_pay_sig(&p, late, cost, cost))
		;
	cr_assert_gt(p.enough_at, late);
	cr_assert_eq(contd__purse_enough_at(&p, late), p.enough_at);
	cr_assert_leq(contd__purse_enough_at(&p, early), early + HZ);
	cr_assert_not(contd__purse_half_full_sig(&p, early), "what has not flowed in is not there");
	cr_assert(contd__purse_half_full_sig(&p, early + HZ / 2));
	contd__purse_pay_sig(&p, early + HZ, cost, cost);
	cr_assert_eq(p.enough_at, early + HZ);
	cr_assert(contd__purse_bears_sig(&p, early + HZ));
}

/* However little looks seemed to cost, it comes to what they cost, within a hundred samples. */
Test(purse, cost_of_looks_recovers)
{
	static const uint64_t costs[] = {100, 1000, 15000, 3000000};

	for (unsigned i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		uint64_t cost = 15000;

		for (unsigned k = 0; k < 1000; k++)
			cost = contd__look_cost(cost, 1000001, 1000000, 16);
		for (unsigned k = 0; k < 100; k++)
			cost = contd__look_cost(cost, 1000000 + 16 * costs[i], 1000000, 16);
		cr_assert_gt(cost, costs[i] * 9 / 10, "%lu", (unsigned long)cost);
		cr_assert_leq(cost, costs[i]);
	}
}

/* Work that slept took longer than the thread has run: that is no sample. */
Test(purse, cost_of_looks_beside_work_that_sleeps)
{
	cr_assert_eq(contd__look_cost(15000, 200000, 900000, 16), 15000);
	cr_assert_eq(contd__look_cost(15000, 200000, 200000, 16), 15000);
}
