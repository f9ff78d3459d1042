/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs for a checker of the C11 memory model (GenMC, scripts/check-weak): two or three threads each, with the
 * accesses of src/base/atomic.h in the orders that the code has. MUTANT, a number from 1 on, takes one order away: then
 * the checker must find an execution in which an assertion fails. A line "mutants: n" says how many there are.
 */
#ifndef MODELS_WEAK_H
#define MODELS_WEAK_H

#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#include "../../src/base/atomic.h"

#ifndef MUTANT
#define MUTANT 0
#endif

/* An access of the code's, or the weaker one of the mutant. */
#define UNLESS(mutant, right, weaker) (MUTANT == (mutant) ? (weaker) : (right))
#define ADD_RELAXED(p, n) __atomic_fetch_add((p), (n), __ATOMIC_RELAXED)
#define OR_RELAXED(p, n) __atomic_fetch_or((p), (n), __ATOMIC_RELAXED)
#define AND_RELAXED(p, n) __atomic_fetch_and((p), (n), __ATOMIC_RELAXED)
#define XCHG_RELAXED(p, n) __atomic_exchange_n((p), (n), __ATOMIC_RELAXED)

static void *one(void *);
static void *two(void *);

static void run_two(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, one, NULL);
	pthread_create(&b, NULL, two, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

#endif
