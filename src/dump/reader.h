/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a dump reads memory: of this process, of another one, or of a core file. No address is followed in any other way,
 * so an address that is wrong, because memory changes meanwhile, is a read that fails, and never a fault.
 */
#ifndef CONTD_DUMP_READER_H
#define CONTD_DUMP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a file that is mapped. */
struct contd__dump_map {
	uintptr_t start, end;
	uint64_t offset;
	const char *path; /* valid during the call that has it */
};

struct contd__dump_reader {
	/* false: not all of it can be read. Then `to` has anything. */
	bool (*read)(struct contd__dump_reader *r, uintptr_t address, void *to, size_t size);

	/* Calls `each` with every mapped file's parts, in the order of addresses, until it returns false. */
	void (*maps)(struct contd__dump_reader *r, bool (*each)(void *with, const struct contd__dump_map *map),
		     void *with);

	/* A descriptor of a mapped file, or -1. */
	int (*open)(struct contd__dump_reader *r, const char *path);

	/*
	 * Another group into *groupp, which is 0 at the end. A group that is freed meanwhile is left out. NULL: the
	 * walk follows the list itself, which other threads may change meanwhile.
	 */
	void (*next_group)(struct contd__dump_reader *r, uintptr_t *groupp);

	const char *state; /* of the process, in words; NULL: nothing is said of it */
	uintptr_t self;    /* contd__self of the thread that writes, in a dump of this process; or 0 */
	int pid;
	uint64_t now;     /* in the clock ticks of contd in that process; 0: not known, as in a core file */
	char lines[8192]; /* of /proc/PID/maps: too much for a small stack */
};

/* open(2) for reading, of a regular file only: others may block, or act when they are opened. -1 and errno. */
int contd__dump_open(const char *path);

/* Reads /proc/PID/maps from a descriptor, for `maps`. Closes it. */
void contd__dump_proc_maps(struct contd__dump_reader *r, int fd,
			   bool (*each)(void *with, const struct contd__dump_map *map), void *with);

/* Reads from this place of a file. false: not all of it can be read. Then `to` has anything. */
bool contd__dump_read_at(int fd, void *to, size_t size, uint64_t at);

#endif
