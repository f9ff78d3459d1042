/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of addresses in mapped files: "libfoo.so+0x1139 (on_message)". The number is the address as the file itself has
 * it, as addr2line(1) wants it. dladdr(3) is not used: it takes a lock of the loader's, and knows no static functions.
 * Takes no lock and no memory.
 */
#ifndef CONTD_DUMP_NAMES_H
#define CONTD_DUMP_NAMES_H

#include <stdint.h>

#include "dump/reader.h"

#define DUMP_NAME_TEXT 256u
#define DUMP_NAMES_KNOWN 64u

struct contd__dump_names {
	struct contd__dump_reader *reader;
	unsigned next;
	struct {
		uintptr_t address;
		char text[DUMP_NAME_TEXT];
	} known[DUMP_NAMES_KNOWN];
	union {
		char bytes[16384];
		uint64_t align;
	} part; /* of a file */
};

/* Valid until DUMP_NAMES_KNOWN other addresses have been asked for. */
const char *contd__dump_name(struct contd__dump_names *names, uintptr_t address);

#endif
