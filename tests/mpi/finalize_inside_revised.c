/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* The same in the revised interface. */
#define REVISED true
#include "finalize_inside.c"
