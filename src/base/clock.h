/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time: a fast clock for histograms and budgets, in ticks of the processor's, and CLOCK_MONOTONIC.
 *
 *  operation         thread  handler  progress
 *  contd__ticks        yes     yes    wait-free
 *  contd__now_ns       yes     yes    wait-free
 *  contd__clock_start  yes     no     takes half a millisecond
 */
#ifndef CONTD_BASE_CLOCK_H
#define CONTD_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"

#if defined(__x86_64__)
static inline uint64_t contd__ticks(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t contd__ticks(void)
{
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
}
#else
#include <time.h>
static inline uint64_t contd__ticks(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
#endif

/* The same in units of 32 ticks, in one word, which wraps around: for short times, and where room is scarce. */
static inline uint32_t contd__ticks_short(void)
{
	return (uint32_t)(contd__ticks() >> 5);
}

/* For a loop that looks without pause: leaves the core's other half its share, where there is one. */
#if defined(__x86_64__)
#define CONTD_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define CONTD_RELAX() __asm__ volatile("yield")
#else
#define CONTD_RELAX() ((void)0)
#endif

/* How fast the clock of contd__ticks() is. The functions of this unit write it. */
struct contd__clock {
	double ticks_per_ns;
	uint64_t second; /* in clock ticks */
	uint64_t begun;  /* when it was measured */
	bool ages;       /* registrations are timed, for reports. It costs each one a reading of the clock */
};
CONTD_INTERNAL_API extern struct contd__clock contd__clock;

/*
 * Now, in units of 2^22 ticks, more than a millisecond; it wraps around after months. For the age of a continuation
 * that is registered now: 0, which means that the age is not known, unless ages are wanted.
 */
#define TICKS_COARSE 22
static inline uint32_t contd__ticks_coarse(void)
{
	uint32_t now = (uint32_t)(contd__ticks() >> TICKS_COARSE);

	return now ? now : 1;
}
static inline uint32_t contd__registered_now(void)
{
	return __builtin_expect(contd__clock.ages, 0) ? contd__ticks_coarse() : 0;
}

/* Measures it. contd_init(). */
void contd__clock_start(void);

/* Registrations are timed from now on, or are not. contd_init(). */
void contd__clock_ages(bool wanted);

/* CLOCK_MONOTONIC. */
CONTD_INTERNAL_API int64_t contd__now_ns(void);

#endif
