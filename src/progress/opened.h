/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which code has opened which library by dlopen(3). A library that the closure opens belongs to it, also if the
 * program had loaded it before.
 *
 * Noted is the address of the call, and the name; each pair once. Notes are never freed: a program has few such pairs.
 *
 *     operation               thread  handler  progress
 *     contd__opened_note        yes     no     lock-free, but for the memory of a new note
 *     contd__opened_each        yes*    yes**  blocking
 *     * one thread at a time  ** only where MPI's progress may run
 */
#ifndef CONTD_PROGRESS_OPENED_H
#define CONTD_PROGRESS_OPENED_H

#include <stdbool.h>
#include <stdint.h>

/* `caller` has opened it, or is about to. 0: MPI, or what MPI has called. */
void contd__opened_note(const char *path, uintptr_t caller);

/* Those that were noted since the last time and are loaded; `dynamic` is the library's dynamic section. If `each` does
 * not know that, it is asked again the next time. */
struct contd__opened {
	bool lost;        /* for want of memory not everything was noted */
	bool unknown;     /* `each` did not know one */
	uint32_t unfound; /* how many are not loaded, or not yet */
};
struct contd__opened contd__opened_each(bool (*each)(uintptr_t caller, const void *dynamic));

#endif
