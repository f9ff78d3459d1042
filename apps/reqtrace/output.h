/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two files, which rank 0 writes for all at the end; and until then one of each rank, so that a program that dies
 * leaves the timeline as it was a while before.
 */
#ifndef REQTRACE_OUTPUT_H
#define REQTRACE_OUTPUT_H

#include <stdint.h>

/* After MPI_Init, before MPI_Finalize: both are collective, on a communicator of the tool's. */
void output_begin(void);
void output_end(void);

/* now: the time. Writes the rank's own timeline if it is due. Any thread, not in a continuation. */
void output_flush(uint64_t now);
/* ... in any case: this may be the last call. */
void output_last(void);

#endif
