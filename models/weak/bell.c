/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 2 */
/*
 * bell.pml: a sender has put its message, and looks whether the receiver's bell is armed; the receiver arms its bell, and
 * looks for a message. One sees the other. The message is MPI's, of which nothing is known but that it was stored: hence
 * the full barriers. (mpi/ring.h: contd__ring_place; signal/attach.c: the bell is armed with contd__store_seq.)
 */
#include "weak.h"

static uint32_t message, armed;
static int rung, seen;

static void *one(void *arg)
{
	contd__store(&message, 1);
	if (MUTANT != 1)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	rung = contd__load(&armed) != 0;
	return arg;
}

static void *two(void *arg)
{
	contd__store(&armed, 1);
	if (MUTANT != 2)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	seen = contd__load(&message) != 0;
	return arg;
}

int main(void)
{
	run_two();
	assert(rung || seen);
	return 0;
}
