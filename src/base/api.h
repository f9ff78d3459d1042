/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_BASE_API_H
#define CONTD_BASE_API_H

/* Marks a function that contd-mpi and its kin use; not for programs. */
#define CONTD_INTERNAL_API __attribute__((visibility("default")))

/* `name` under another name, which a tool may define before contd does. */
#define CONTD_WEAK_FOR(name) __attribute__((weak, alias(#name), visibility("default")))

#endif
