/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 3 */
/*
 * The watchdog reads which continuation a thread runs, and since when, without stopping it: site, since, and the site
 * again. The time must be that of the continuation, or of a later one. (dispatch/run.h: contd__frame_leave_sig;
 * thread_list.c: contd__threads_running.)
 */
#include "weak.h"

#define INNER 1u
#define OUTER 2u

static uint32_t site = INNER;
static uint64_t since = 20; /* of INNER; OUTER began at 10 */

static void *one(void *arg)
{
	contd__store(&site, 0);
	if (MUTANT == 1)
		contd__store(&since, 10);
	else
		contd__store_release(&since, 10);
	if (MUTANT == 2)
		contd__store(&site, OUTER);
	else
		contd__store_release(&site, OUTER);
	return arg;
}

static void *two(void *arg)
{
	uint32_t now = contd__load_acquire(&site);
	uint64_t then = MUTANT == 3 ? contd__load(&since) : contd__load_acquire(&since);

	if (now && contd__load(&site) == now) {
		assert(now != INNER || then == 20);
		assert(now != OUTER || then == 10);
	}
	return arg;
}

int main(void)
{
	run_two();
	return 0;
}
