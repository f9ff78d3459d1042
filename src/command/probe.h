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

/* contd .probe: the process itself. argv[0] is ".probe". */
int command_probe(int argc, char **argv);

/* measured.c: parts of it. They need libcontd preloaded. Facts are told by tell(). */
void probed_core(void);
void probed_tick(void);
void probed_ring(void);
void forget_settings(void); /* measures and trials are with contd's defaults */
void tell(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A function of the preloaded library; if there is none, the process ends, with a fact that says so. */
void *needed(const char *name, const char *version);

#endif
