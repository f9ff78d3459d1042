/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_MPI_JOB_H
#define CONTD_MPI_JOB_H

#include <stdbool.h>

/*
 * Is contd part of every process of the job, which has so many? True only if that is known: the launcher says that the
 * job is one command, and the command is this program; or all processes are on this host, and the library is in each.
 * Threads.
 */
bool contd__mpi_everywhere(int size);

#endif
