/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Fortran bindings: continue.c, template.c and status.c have the entry points, callback.h has what runs when a
 * continuation does. They call the C interface by its PMPI names, so that a tool that wraps C and Fortran calls sees
 * each call once; and mpi/binding.h where a callback needs more than the C interface gives.
 *
 * Names and arguments are gfortran's, which are those of most compilers: an underscore behind the name in small
 * letters, addresses throughout, a null pointer for an optional argument that is absent. A handle of mpi_f08 is a
 * structure of one INTEGER, and its status has the layout of the older array (constants_f08.f90 checks the size), so
 * both bindings share their code.
 */
#ifndef CONTD_FORTRAN_FORTRAN_H
#define CONTD_FORTRAN_FORTRAN_H

#include <stdbool.h>
#include <stdint.h>

#include <contd/mpi.h>

#define ALIAS(name) __attribute__((alias(#name), visibility("default")))
#define WEAK_ALIAS(name) __attribute__((weak, alias(#name), visibility("default")))

/* The head of an entry point, in both bindings. Each has its PMPI name; the MPI name is weak, for tools. */
#define F_CALL(call, ...) \
	CONTD_API void pmpi##call##_(__VA_ARGS__); \
	CONTD_API void mpi##call##_(__VA_ARGS__) WEAK_ALIAS(pmpi##call##_); \
	CONTD_API void pmpi##call##_f08_(__VA_ARGS__) ALIAS(pmpi##call##_); \
	CONTD_API void mpi##call##_f08_(__VA_ARGS__) WEAK_ALIAS(pmpi##call##_); \
	CONTD_API void pmpi##call##_(__VA_ARGS__)

/* To the Fortran of mpi_f08 a call that also takes a status that is no array is another one. */
#define F_SCALAR(call, ...) \
	CONTD_API void pmpi##call##_scalar_f08_(__VA_ARGS__) ALIAS(pmpi##call##_); \
	CONTD_API void mpi##call##_scalar_f08_(__VA_ARGS__) WEAK_ALIAS(pmpi##call##_)

#define FEW 16         /* handles that are converted without allocating */
#define FORTRAN_TRUE 1 /* gfortran's LOGICAL */

/* Asks Fortran for its constants, the first time. */
void contd__f_constants(void);

/* Is it MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE? */
bool contd__f_is_ignored(const void *statuses);

/*
 * MPI is initialized, and not finalized. Before and after that handles must not be converted: MPI ends the program. The
 * C interface says what is wrong.
 */
bool contd__f_mpi_runs(void);

/* A call fails: told as the C interface tells errors, with the text; returns the class. */
int contd__f_refuse(const char *call, int class, const char *text);

static inline void contd__f_report(MPI_Fint *ierror, int rc)
{
	if (ierror)
		*ierror = rc;
}

#endif
