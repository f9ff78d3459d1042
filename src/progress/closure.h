/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which libraries MPI's progress may need the locks and the state of. This is their closure:
 *
 *   1. MPI's library, and what stands beside it in its folder and belongs to it (libmpi*);
 *   2. what was loaded while MPI_Init or another call of MPI ran, or by code of the closure;
 *   3. the C library and the loader, and what was loaded later from the C library's folder (by the C library, as far
 *      as can be told);
 *   4. the libraries that define malloc and other functions which a program may replace; also the program, if it does;
 *   5. this library and contd;
 *   6. what these need, directly or through others (DT_NEEDED).
 *
 * libm has no state and calls nothing, so its code counts as the program's.
 *
 *     operation               thread  handler  progress
 *     contd__closure_before     yes     no     blocking
 *     contd__closure_read       yes*    yes**  blocking
 *     contd__is_of_mpi          yes*    no     wait-free in the number of objects
 *     * the attached thread  ** only where MPI's progress may run
 */
#ifndef CONTD_PROGRESS_CLOSURE_H
#define CONTD_PROGRESS_CLOSURE_H

#include <stdbool.h>
#include <stdint.h>

/* MPI_Init is about to be called: what is loaded from now on is MPI's. */
void contd__closure_before(void);

/* MPI_Init has been called. NULL, or why the rule cannot be applied to this program. */
const char *contd__closure_after(uintptr_t mpi);

/* Libraries may have been loaded or unloaded: look, and publish the table. by_mpi: those that are new are MPI's. */
void contd__closure_read(bool by_mpi);

/* Does a library of the closure have this code, as it was last published? Not the program. The attached thread only. */
bool contd__is_of_mpi(uintptr_t address);

#endif
