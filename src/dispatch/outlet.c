/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "dispatch/outlet.h"

uint32_t contd__exclusive_outlets;
__thread uint32_t contd__exclusive_here __attribute__((tls_model("initial-exec")));
