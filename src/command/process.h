/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads another process, without its help: it may be stopped, or hang. Or what a core file has of one. */
#ifndef CONTD_COMMAND_PROCESS_H
#define CONTD_COMMAND_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/reader.h"

#define WHY 512

struct process {
	struct contd__dump_reader reader; /* first */
	int task;                         /* of the process: a thread that has not ended */
	int error;                        /* errno of the last read that failed */
	char root[64];                    /* /proc/PID/root */
	struct core *core;                /* or NULL: it is a process */
};

/* 0, or it cannot be read: `why` says it, and what to do. */
int process_open(struct process *p, int pid, char why[WHY]);
void process_close(struct process *p);

/* A core file (core(5)). Parts that it lacks, such as code, come from the files that were mapped: process_core.c. */
int core_open(struct process *p, const char *path, char why[WHY]);
void core_close(struct core *core);

/* The address of a variable of that name, which an object of the process has among its dynamic symbols; 0: none, and
 * *objectsp is how many objects could be looked at. */
uintptr_t process_symbol(struct process *p, const char *name, unsigned *objectsp);

#endif
