/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_MPI_FINALIZE_H
#define CONTD_MPI_FINALIZE_H

/*
 * MPI_Finalize was called, and MPI works as before: drives what is outstanding until all has run, or every process has called
 * MPI_Finalize and nothing completes any more. Collective over MPI_COMM_WORLD: also where contd was never used.
 */
void contd__mpi_drive_to_end(void);

/* contd__mpi_open is 0, and the backend has stopped: what has not run is reported, and never runs. */
void contd__mpi_cancel_rest(int rank);

#endif
