/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/atomic.h"
#include "base/verbose.h"

static int in_force; /* 0: contd_init() has not read the settings yet */

void contd__verbose_set(int verbose)
{
	contd__store(&in_force, verbose);
}

bool contd__says(enum contd_verbose what)
{
	int verbose = contd__load(&in_force);
	const char *wanted;

	if (!verbose) {
		wanted = getenv("CONTD_VERBOSE");
		verbose = wanted && *wanted >= '0' && *wanted <= '3' && !wanted[1]
				  ? *wanted - '0' + CONTD_VERBOSE_ERRORS
				  : CONTD_VERBOSE_WARNINGS;
	}
	return verbose >= (int)what;
}
