/* SPDX-License-Identifier: BSD-3-Clause */
/* A foreign library, which knows nothing of contd and calls MPI by its PMPI_ names. */
#ifndef CONTD_TESTS_COEXIST_PMPI_PART_H
#define CONTD_TESTS_COEXIST_PMPI_PART_H

#include <mpi.h>

/* Each returns what all ranks of comm must get, or -1 where a message was wrong. */
long part_sum(MPI_Comm comm, long mine);
long part_ring(MPI_Comm comm, long mine);
long part_nonblocking(MPI_Comm comm, long mine, int bytes);

#endif
