/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "dispatch/outlet.h"

uint32_t contd__outlets_own_mpi;
__thread uint32_t contd__owns_mpi __attribute__((tls_model("initial-exec")));
