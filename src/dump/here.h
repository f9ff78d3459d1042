/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the memory of this process. The kernel copies it, so an address that is wrong is no fault. The groups are found
 * in read-side sections, and before anything is written: a reference keeps each until the next one is found. From then
 * on a dump holds none: other threads may free them, and what is read of them shows it (`table.group` is NULL then). So
 * no lock is taken, and no thread waits for a dump that is slow to write.
 */
#ifndef CONTD_DUMP_HERE_H
#define CONTD_DUMP_HERE_H

#include "dump/reader.h"

struct contd__dump_here {
	struct contd__dump_reader reader; /* first */
	int task;         /* this thread's number: the kernel has no memory of the first thread if that has ended */
	uintptr_t *group; /* all that there were when the dump began, mapped: */
	size_t room, groups, next;
	int memory; /* descriptor of /proc/thread-self/mem, if the kernel refuses process_vm_readv(2); or -1 */
};

/* 0 or -errno: no memory, or the kernel refuses all ways to read this memory. */
int contd__dump_here_begin(struct contd__dump_here *h);
void contd__dump_here_end(struct contd__dump_here *h);

#endif
