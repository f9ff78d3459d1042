/* SPDX-License-Identifier: BSD-3-Clause */
/* The two files, which rank 0 writes for all. */
#ifndef REQTRACE_OUTPUT_H
#define REQTRACE_OUTPUT_H

/* After MPI_Init, before MPI_Finalize: both are collective, and nobody but the tool sees their messages. */
void output_begin(void);
void output_end(void);

#endif
