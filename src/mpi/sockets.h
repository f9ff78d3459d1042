/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_MPI_SOCKETS_H
#define CONTD_MPI_SOCKETS_H

#include <stdint.h>

/*
 * The stream sockets (TCP) of this process, which become readable when MPI over them has something to do: struct
 * contd__source, sleep_on. The daemon thread only.
 */
int contd__mpi_sockets(int *fds, int room, uint64_t *ns);

#endif
