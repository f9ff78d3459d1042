/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 2 */
/*
 * slots.pml: a thread that attaches fills a slot and publishes its state. The completer takes the slot by its state,
 * and reads the contents. (slot.c: contd__slot_publish_sig; the acquires are in count_events, complete.c, and
 * run_claimed, scan.c.)
 */
#include "weak.h"

static uint64_t state;
static void *callback;
static int data, sum;

static void *one(void *arg)
{
	callback = &data; /* plain: the slot is this thread's until it is published */
	if (MUTANT == 1)
		contd__store(&state, 1);
	else
		contd__store_release(&state, 1);
	return arg;
}

static void *two(void *arg)
{
	uint64_t seen = MUTANT == 2 ? contd__load(&state) : contd__load_acquire(&state);

	if (seen == 1) {
		assert(callback == &data);
		sum++;
	}
	return arg;
}

int main(void)
{
	run_two();
	return 0;
}
