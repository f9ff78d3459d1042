/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "dispatch/stats.h"

struct contd__strays contd__strays;
