/* SPDX-License-Identifier: BSD-3-Clause */
/* How processes that ring each other find each other. Ordinary threads. */
#ifndef CONTD_SIGNAL_PEERS_H
#define CONTD_SIGNAL_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/api.h"

/* Make the page that peers will map, if the settings want bells; at the start. 0 or -errno. */
int contd__page_make(void);

/*
 * A field of /proc/pid/stat, proc(5); 0: there is no such process. With the number, the start, in clock ticks since the
 * boot, names a process.
 */
enum { PROCESS_PARENT = 4, PROCESS_START = 22 };
CONTD_INTERNAL_API uint64_t contd__process_field(pid_t pid, int number);

/* The end of contd: peers do not find this process any more, and no thread of it uses the page after this. */
void contd__peers_end(void);

/* In a child of fork: the page and the name are the parent's. */
void contd__peers_forked(void);

#endif
