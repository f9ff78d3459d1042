/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"
#include "base/testpoint.h"

#ifdef CONTD_TESTPOINTS
void (*contd__testpoint_hook)(const char *name);
long contd__alloc_budget = -1;
#endif
