/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries of contd's that are installed with the command. */
#ifndef CONTD_COMMAND_LIBRARIES_H
#define CONTD_COMMAND_LIBRARIES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The MPIs that contd has libraries for. */
struct mpi {
	const char *name;   /* as options say it */
	const char *suffix; /* of the libraries' names */
	const char *says;
	const char *launched; /* a variable of the environment that its launcher sets, or NULL */
};
#define MPIS 3
extern const struct mpi mpis[MPIS];

/* The path of lib<part><suffix>.so, or .so.0: the first name may be in a package for developers. */
bool library_find(const char *part, const char *suffix, char path[PATH_MAX]);

/* The value of LD_PRELOAD with which that library stands in front; the caller frees it. NULL: none does, and *whyp says
 * why, or there is no memory, and *whyp is NULL. */
char *library_preload(const char *path, const char **whyp);

#endif
