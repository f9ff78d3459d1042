/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dump as text: a line for each object, its key or kind first, and objects that it holds in lines below, indented.
 * Flags that are false are left out, and control characters in texts are shown as \x1b. Each write(2) has whole lines,
 * if they are shorter than the buffer. Takes no lock and no memory.
 */
#ifndef CONTD_DUMP_TEXT_H
#define CONTD_DUMP_TEXT_H

#include <stddef.h>

#include "base/say.h"
#include "dump/out.h"

#define DUMP_DEPTH 8u

struct contd__dump_text {
	struct contd__dump_out out; /* first */
	int fd;
	bool (*wait)(int fd);
	int error; /* errno of the first write(2) that failed; nothing is written after it */
	unsigned depth, objects;
	const char *kind[DUMP_DEPTH];  /* of lists; NULL: an object */
	unsigned fields;               /* of the line so far */
	char beginning[SAY_BEGINNING]; /* of each line */
	size_t used;
	char bytes[4096];
};

/*
 * beginnings: each line begins as contd's lines on standard error. wait: called if the descriptor does not block and
 * takes nothing now (EAGAIN); true: try again. It keeps errno if it returns false. NULL: EAGAIN is an error.
 */
void contd__dump_text_begin(struct contd__dump_text *t, int fd, bool beginnings, bool (*wait)(int fd));

/* Write what is left: 0 or -errno. */
int contd__dump_text_end(struct contd__dump_text *t);

#endif
