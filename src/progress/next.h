/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next function of that name, behind this library's own. All are looked up before main(), because the loader must
 * not be asked in a signal handler of the program's, which may call sleep(3), for example. Constructors of other
 * libraries may call before that, and what a library defines that is loaded later is found later. Looking up twice
 * gives the same.
 *
 * The program sees no error of this library's in dlerror(3), and does not lose one of its own.
 *
 *     operation               thread  handler  progress
 *     NEXT_OF                   yes     yes    wait-free; blocking, if it was not looked up
 *     contd__error_take, _give  yes     yes*   blocking
 *     contd__error_forget       yes     no     blocking
 *     * only where MPI's progress may run
 */
#ifndef CONTD_PROGRESS_NEXT_H
#define CONTD_PROGRESS_NEXT_H

#include "base/atomic.h"

struct contd__next {
	const char *name;
	void *found; /* NULL: not looked up, or not there */
} __attribute__((aligned(16)));

/* Each is in one section, which is an array of them. */
#define CONTD__NEXT_SECTION __attribute__((section("contd_next"), used))

#define NEXT_OF(function) \
	({ \
		static struct contd__next next_function CONTD__NEXT_SECTION = {#function, 0}; \
		if (__builtin_expect(!contd__load(&next_function.found), 0)) \
			contd__next_find(&next_function); \
		(__typeof__(&function))contd__load(&next_function.found); \
	})

void contd__next_find(struct contd__next *next);

/* One of MPI's libraries for Fortran has it, perhaps one that Python, for example, has loaded for itself alone. */
void contd__next_find_fortran(struct contd__next *next);

/* Around calls of the loader: the calling thread's error of dlerror(3), which is of the program's, or NULL. */
char *contd__error_take(void);
void contd__error_give(char *text);

/* The program calls the loader again: the error before that is over. */
void contd__error_forget(void);

#endif
