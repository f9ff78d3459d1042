/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk from the root through all that contd has: the same in the process and from outside. All is read through a
 * reader. Lists have a bound, and numbers are checked. The walk uses the contents of a slot only if the slot's state
 * word is the same afterwards. Where the walk finds something wrong, the dump says so at its end, as a problem.
 */
#ifndef CONTD_DUMP_WALK_H
#define CONTD_DUMP_WALK_H

#include <stdint.h>

#include "dump/names.h"
#include "dump/out.h"
#include "dump/reader.h"
#include "dump/root.h"

#define DUMP_LIMIT 1000u /* continuations of a group, if the caller does not say another */
#define DUMP_TEXTS 64u
#define DUMP_PROBLEMS 16u
#define DUMP_SLOTS 64u

/* Some 60 KiB. Filled with zeros, and then the first three. */
struct contd__dump_walk {
	struct contd__dump_reader *reader;
	struct contd__dump_out *out;
	uint32_t limit; /* continuations of a group that are shown; 0: all */

	struct contd__dump_root root;
	struct contd__dump_names names;
	struct contd__dump_part part[DUMP_PARTS];
	unsigned parts;
	const char *problem[DUMP_PROBLEMS];
	unsigned problems;
	struct contd__slot slot[DUMP_SLOTS];
	union {
		char bytes[DUMP_RECORD_MOST];
		uint64_t align;
	} record;
};

/* The root at that address: NULL, or why it cannot be used. */
const char *contd__dump_take(struct contd__dump_walk *w, uintptr_t root);

/* The dump itself, as one object's members. After contd__dump_take(). */
void contd__dump_walk(struct contd__dump_walk *w);

#endif
