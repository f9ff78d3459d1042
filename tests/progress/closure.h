/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that run with a progress library built for tests (contd-progress_tp): in the place of MPI's progress,
 * its ticks call contd_test_progress(), as often as the closure rule allows. It does what MPI's progress might do: it
 * allocates, prints, and asks the loader. While the program is where the rule must not allow progress, it says so.
 */
#ifndef CONTD_TESTS_CLOSURE_H
#define CONTD_TESTS_CLOSURE_H

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "progress/inside.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED uint64_t *contd_test_passed; /* by enum contd__passed; the library sets it */

static volatile uint32_t forbidden; /* progress must not be made now */

static inline uint64_t passed(enum contd__passed why)
{
	return contd_test_passed ? ((volatile uint64_t *)contd_test_passed)[why] : 0;
}

#ifndef CLOSURE_WITH_MPI /* then ticks make MPI's progress */
static volatile uint64_t ran, wrong;
static volatile uint32_t floating; /* MXCSR there */
static FILE *printed;

EXPORTED void contd_test_progress(void);

static int count_objects(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size;
	++*(unsigned *)data;
	return 0;
}

void contd_test_progress(void)
{
	static uint64_t times;
	unsigned objects = 0;
	void *block[8];

#ifdef __x86_64__
	floating = __builtin_ia32_stmxcsr();
#endif
	if (forbidden)
		wrong++;
	ran++;
	times++;
	for (unsigned i = 0; i < 8; i++) {
		block[i] = malloc(16u << (times + i) % 12);
		if (block[i])
			memset(block[i], 0xa5, 16u << (times + i) % 12);
	}
	for (unsigned i = 0; i < 8; i++)
		free(block[i]);
	if (times % 4 == 0 && printed)
		fprintf(printed, "%u\n", (unsigned)times);
	if (times % 64 == 0)
		dl_iterate_phdr(count_objects, &objects);
	if (times % 256 == 0) {
		void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

		if (handle)
			dlclose(handle);
	}
}
#endif

#ifdef MPI_VERSION
/* At the thread level that the environment says: serialized, multiple, or MPI_Init()'s. */
static inline void init_mpi(int *argc, char ***argv)
{
	const char *wanted = getenv("CONTD_TEST_LEVEL");
	int level = 0, asked;

	if (!wanted) {
		MPI_Init(argc, argv);
		return;
	}
	asked = !strcmp(wanted, "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
	MPI_Init_thread(argc, argv, asked, &level);
	if (level != asked) {
		printf("this MPI has no such thread level\n");
		MPI_Finalize();
		exit(77);
	}
}
#endif

static inline double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Computation, without a call. */
static inline void spin(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}

/* Code of the program's that runs where progress is forbidden. */
static inline void forbidden_spin(unsigned n)
{
	forbidden = forbidden + 1;
	spin(n);
	forbidden = forbidden - 1;
}

#endif
