/* SPDX-License-Identifier: BSD-3-Clause */
/* A library between the doorbell library and MPI: its PMPI_Isend refuses, by this class, the next send of more than
 * nothing. */
#ifndef CONTD_TESTS_BELL_BEHIND_H
#define CONTD_TESTS_BELL_BEHIND_H

extern int behind_refuse;

#endif
