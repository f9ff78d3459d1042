/* SPDX-License-Identifier: BSD-3-Clause */
/* An event's word: see event.c. */
#ifndef CONTD_DISPATCH_EVENT_WORD_H
#define CONTD_DISPATCH_EVENT_WORD_H

#include <stdint.h>

#define EVENT_DONE 1u
#define EVENT_ATTACHED 2u
#define EVENT_CARRIED 4u
#define EVENT_UNMARKED 8u /* struct contd__unmarked (carried.h) */

static inline uint64_t contd__event_done_word(int status)
{
	return (uint64_t)(uint32_t)status << 32 | EVENT_DONE;
}

#endif
