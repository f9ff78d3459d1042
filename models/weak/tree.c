/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 4 */
/*
 * tree.pml: a completer sets a bit of the word below, and marks the hint above if it is not set; a scan clears the hint,
 * and looks at the word below once more. A bit that stays has its hint. (rcu/table.c: contd__or and contd__load_seq
 * against contd__and and contd__load_seq.)
 */
#include "weak.h"

static uint64_t below, hint = 1;

static void *one(void *arg)
{
	(void)UNLESS(1, contd__or(&below, 1), OR_RELAXED(&below, 1));
	if (!UNLESS(2, contd__load_seq(&hint), contd__load(&hint)))
		(void)contd__or(&hint, 1);
	return arg;
}

static void *two(void *arg)
{
	(void)UNLESS(3, contd__and(&hint, ~(uint64_t)1), AND_RELAXED(&hint, ~(uint64_t)1));
	if (UNLESS(4, contd__load_seq(&below), contd__load(&below)))
		(void)contd__or(&hint, 1);
	return arg;
}

int main(void)
{
	run_two();
	assert(!contd__load(&below) || contd__load(&hint));
	return 0;
}
