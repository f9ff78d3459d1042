/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <time.h>

#include "base/clock.h"

struct contd__clock contd__clock;

int64_t contd__now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/*
 * Both clocks at one moment: of several tries the one with the least time between its readings. A thread that loses its
 * processor just there would be wrong by milliseconds.
 */
static uint64_t both_clocks(int64_t *nsp)
{
	uint64_t least = UINT64_MAX, ticks = 0;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t before = contd__ticks();
		int64_t ns = contd__now_ns();
		uint64_t passed = contd__ticks() - before;

		if (passed >= least)
			continue;
		least = passed;
		ticks = before + passed / 2;
		*nsp = ns;
	}
	return ticks;
}

/* To about one part in a thousand. */
void contd__clock_start(void)
{
	int64_t begin = 0, end = 0;
	uint64_t ticks = both_clocks(&begin), now;

	do
		now = both_clocks(&end);
	while (end < begin + 500000);
	contd__clock.begun = now;
	contd__clock.ticks_per_ns = (double)(now - ticks) / (double)(end - begin);
	contd__clock.second = (uint64_t)(1e9 * contd__clock.ticks_per_ns);
}

void contd__clock_ages(bool wanted)
{
	contd__clock.ages = wanted;
}
