/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <string.h>

#include "refused/child.h"

char child_title[200] = "refused";

int child_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* ., .. and the folder's own */
}

int child_timers(void)
{
	char line[200];
	FILE *f = fopen("/proc/self/timers", "r");
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += strncmp(line, "ID:", 3) == 0;
	fclose(f);
	return n;
}
