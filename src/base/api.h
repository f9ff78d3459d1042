/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_BASE_API_H
#define CONTD_BASE_API_H

/* Marks a function that contd-mpi and its kin use; not for programs. */
#define CONTD_INTERNAL_API __attribute__((visibility("default")))

#endif
