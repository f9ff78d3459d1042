/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of an interruption, as far as it is allowed where it found a thread; and the end of a guard. */
#ifndef CONTD_DISPATCH_REACT_H
#define CONTD_DISPATCH_REACT_H

#include <stdbool.h>
#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "dispatch/thread.h"

enum contd__looking {
	LOOK,
	LOOK_RUNG, /* a peer has rung, so that something is there: sources are driven until something becomes ready, */
		   /* or RUNG_DRIVES times (each may bring one fragment of a long message) */
	LOOK_LAST  /* the bell is armed: the next look comes only if it rings */
};

/*
 * Do the work of an interruption, as far as it is allowed where it found this thread: look at memory words, drive
 * sources, scan, within the handler's budget. Returns how many continuations ran.
 */
uint32_t contd__react_sig(enum contd__looking how);

/* Do what an interruption here would do. The guard keeps out signals that come meanwhile. Ordinary threads. */
uint32_t contd__react_under_guard(enum contd__looking how);

/* Is this thread in contd__react_under_guard()? A handler asks that has interrupted it. */
static inline bool contd__looks_under_guard_sig(void)
{
	return contd__self.looking;
}

#endif
