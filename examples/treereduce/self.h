/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TREEREDUCE_SELF_H
#define TREEREDUCE_SELF_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number that stands behind this key in /proc/self/status: "Threads:", "VmHWM:" (KiB). -1: there is none. */
static inline long proc_self(const char *key)
{
	char line[256];
	long n = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			n = strtol(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

#endif
