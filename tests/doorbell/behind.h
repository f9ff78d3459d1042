/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library between the doorbell library and MPI: its PMPI_Isend refuses, by the class behind_refuse, the next send of
 * more than nothing. Its PMPI_Wait first calls behind_on_wait, if that is set.
 */
#ifndef CONTD_TESTS_BELL_BEHIND_H
#define CONTD_TESTS_BELL_BEHIND_H

extern int behind_refuse;
extern void (*behind_on_wait)(void);

#endif
