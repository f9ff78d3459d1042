/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A note (ELF) of each program and library that contains the core: other code in the process can see that contd is
 * there, also where it was linked statically and has no symbols (src/progress/closure.c).
 */
#ifndef CONTD_BASE_NOTE_H
#define CONTD_BASE_NOTE_H

#include <stdint.h>

#define CONTD_NOTE_NAME "contd"
#define CONTD_NOTE_TYPE 1u

/* The name's length has its 0, and each part fills up words. */
struct contd__note {
	uint32_t name_size, size, type;
	char name[(sizeof(CONTD_NOTE_NAME) + 3) / 4 * 4];
};

#endif
