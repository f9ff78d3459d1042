/* SPDX-License-Identifier: BSD-3-Clause */
/* A core file (core(5)), for process.h. Parts that it lacks, such as code, come from the files that were mapped. */
#ifndef CONTD_COMMAND_CORE_H
#define CONTD_COMMAND_CORE_H

struct core;
void core_close(struct core *core);

#endif
