/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd info asks each library in another process, because libraries may print, hang or crash, and their names collide.
 * Such a process is this command again, with a library of contd's preloaded as a program has it linked: `contd .probe
 * WHAT` (probed.c). It tells facts, lines "key=value" in a pipe. Its standard output and error go to another pipe.
 */
#ifndef CONTD_COMMAND_PROBE_H
#define CONTD_COMMAND_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct fact {
	char *key, *value;
};

struct findings {
	struct fact *fact; /* as they were told */
	size_t count, room;
	char said[4096]; /* the first that it printed, on standard output and error */
	size_t said_bytes;
	char wrong[1024]; /* one line: why something is missing; "" if nothing is */
};

/* Preloads the library at that path, and waits at most limit_ms. `what`: arguments, NULL behind the last. */
void probe(struct findings *f, const char *library, unsigned limit_ms, const char *const *what);
void probe_end(struct findings *f);

/* The last value of a key; NULL: none. */
const char *found(const struct findings *f, const char *key);

#endif
