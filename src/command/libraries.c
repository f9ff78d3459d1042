/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/libraries.h"

const struct mpi mpis[MPIS] = {
	{"openmpi", "", "Open MPI", "OMPI_COMM_WORLD_RANK"},
	{"mpich", "-mpich", "MPICH", "PMI_RANK"},
	{"abi", "-abi", "MPI 5's standard ABI", NULL},
};

/* Where contd's libraries may lie, in order; NULL at the end. Beside the command first, so that an installation may be
 * moved. */
static const char *const *library_folders(void)
{
	/* Installed; in the build folder; where they were to be installed. */
	static char beside[2][PATH_MAX + 64];
	static const char *folders[] = {beside[0], beside[1], CONTD_LIBRARY_FOLDER, NULL};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return folders + 2;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(beside[0], sizeof(beside[0]), "%s/" CONTD_LIBRARY_FOLDER_FROM_COMMAND, self);
	snprintf(beside[1], sizeof(beside[1]), "%s/..", self);
	return folders;
}

bool library_find(const char *part, const char *suffix, char path[PATH_MAX])
{
	static const char *const endings[] = {"", ".0"}; /* SOVERSION in CMakeLists.txt */

	for (const char *const *folder = library_folders(); *folder; folder++) {
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
