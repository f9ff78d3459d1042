/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 4 */
/*
 * sleep.pml: a completer marks, then looks for sleepers; a waiter counts itself as a sleeper, then looks for marks. One
 * of them sees the other. (complete.c, wake.c: contd__or, contd__load_seq(sleepers); wait.c: contd__add(sleepers).)
 */
#include "weak.h"

static uint32_t ready, sleepers;
static int woken, found;

static void *one(void *arg)
{
	(void)UNLESS(1, contd__or(&ready, 1), OR_RELAXED(&ready, 1));
	woken = UNLESS(2, contd__load_seq(&sleepers), contd__load(&sleepers)) != 0;
	return arg;
}

static void *two(void *arg)
{
	(void)UNLESS(3, contd__add(&sleepers, 1), ADD_RELAXED(&sleepers, 1));
	found = UNLESS(4, contd__load_seq(&ready), contd__load(&ready)) != 0;
	return arg;
}

int main(void)
{
	run_two();
	assert(woken || found);
	return 0;
}
