/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "dispatch/page.h"

static struct contd__page private_page; /* until there is a shared one */

struct contd__page *contd__page = &private_page;
