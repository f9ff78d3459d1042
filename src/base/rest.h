/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_BASE_REST_H
#define CONTD_BASE_REST_H

#include "base/api.h"

/*
 * Gives the processor to another thread, in a loop that looks for something. Each 4096th call of a thread naps for some
 * 50 microseconds: some kernels let other programs starve for as long as threads only yield (docs/proof.md). Not in a
 * handler. No cancellation point.
 */
CONTD_INTERNAL_API void contd__rest(void);

#endif
