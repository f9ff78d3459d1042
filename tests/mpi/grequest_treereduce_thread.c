/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 5 16 */
#define FORM "thread"
#include "grequest_treereduce.c"
