/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DUMP_DUMP_H
#define CONTD_DUMP_DUMP_H

#include <stdbool.h>

/* The work of contd_dump(), whether contd runs or not: 0 or -errno, without a text. beginnings, wait: dump/text.h.
 * Ordinary threads. */
int contd__dump_to(int fd, bool beginnings, bool (*wait)(int fd));

#endif
