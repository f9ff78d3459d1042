/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "dispatch/limits.h"

struct contd__limits contd__limits;
struct contd_config contd__config;
