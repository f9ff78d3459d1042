/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/libraries.h"

const struct mpi mpis[MPIS] = {
	{"openmpi", "", "Open MPI", "OMPI_COMM_WORLD_RANK"},
	{"mpich", "-mpich", "MPICH", "PMI_RANK"},
	{"abi", "-abi", "MPI 5's standard ABI", NULL},
};

bool library_find(const char *part, const char *suffix, char path[PATH_MAX])
{
	static const char *const endings[] = {"", ".0"}; /* SOVERSION in CMakeLists.txt */

	for (const char *const *folder = command_folders(); *folder; folder++) {
		for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
			int n = snprintf(path, PATH_MAX, "%s/lib%s%s.so%s", *folder, part, suffix, endings[i]);

			if (n > 0 && n < PATH_MAX && access(path, R_OK) == 0) {
				char real[PATH_MAX];

				if (realpath(path, real))
					strcpy(path, real);
				return true;
			}
		}
	}
	return false;
}

char *library_preload(const char *path, const char **whyp)
{
	const char *before = getenv("LD_PRELOAD");
	char *all;

	if (strpbrk(path, ": ")) {
		*whyp = "a blank or a colon is in its path, and LD_PRELOAD takes none";
		return NULL;
	}
	if (asprintf(&all, "%s%s%s", path, before && *before ? ":" : "", before ? before : "") >= 0)
		return all;
	*whyp = NULL;
	return NULL;
}
