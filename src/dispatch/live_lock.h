/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of threads that start, end or configure contd. */
#ifndef CONTD_DISPATCH_LIVE_LOCK_H
#define CONTD_DISPATCH_LIVE_LOCK_H

#include <stdbool.h>

#include "base/api.h"

/*
 * While it is held contd neither starts nor ends, and its settings stay. It comes before all other locks; not in a
 * handler outside regions. Returns 0; or -EBUSY in a region's handler, on the daemon and on the watchdog, which do not
 * wait for it.
 */
CONTD_INTERNAL_API int contd__live_lock(void);
CONTD_INTERNAL_API void contd__live_unlock(void);
void contd__live_lock_wait(void); /* waits there, too */

/* In the child of a fork: is the lock free? The thread that holds it is not in the child. */
bool contd__live_lock_free(void);

#endif
