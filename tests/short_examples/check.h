/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the programs that call the functions of docs/short-examples.md. */
#ifndef TESTS_SHORT_EXAMPLES_CHECK_H
#define TESTS_SHORT_EXAMPLES_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <contd/contd.h>

#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)
#define EQ(call, want) check_equal((long)(call), (want), #call, __FILE__, __LINE__)

static inline void check(bool good, const char *what, const char *file, int line)
{
	if (good)
		return;
	fprintf(stderr, "%s:%d: CHECK(%s) failed (\"%s\")\n", file, line, what, contd_error_text());
	exit(1);
}

static inline void check_equal(long got, long want, const char *what, const char *file, int line)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s gives %ld, not %ld (\"%s\")\n", file, line, what, got, want, contd_error_text());
	exit(1);
}

#endif
