/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of the program's calls: their texts, their classes, and the error handler that is told. */
#ifndef CONTD_MPI_ERROR_H
#define CONTD_MPI_ERROR_H

#include "base/error.h"

/* As contd__model_error (MPI 4.1, 9.3: errors without an object). */
int contd__mpi_error(int class);

/*
 * A call of the program's fails, and what is wrong has been set (contd__fail()): adds the name of the call, and tells
 * the error. If that ends the program, a line on stderr says the text first. Returns the class.
 */
int contd__mpi_refused(const char *call, int class);

/* The same, up to the error handler: the caller has MPI call it. */
void contd__mpi_refusing(const char *call, int class, const char *text);

/* The same from the error handler on: it is told, and the text is as it was. */
int contd__mpi_tell(const char *call, int class);

/* As contd__mpi_refused() with the text of what is wrong. */
int contd__mpi_refuse(const char *call, int class, const char *text);
#define CONTD_NO_MEMORY "out of memory"

/* MPI error class for a core error; of an error code. */
int contd__mpi_class(int err);
int contd__mpi_error_class(int code);

#endif
