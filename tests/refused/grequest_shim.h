/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_TESTS_GREQUEST_SHIM_H
#define CONTD_TESTS_GREQUEST_SHIM_H

#include <mpi.h>

/* The error class with which MPI refuses all, or MPI_SUCCESS; how many it has refused. */
extern int shim_refuses, shim_refused;

#endif
