/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: one for each continuation that waits or is ready. rcu/table.h has the word of their state. */
#ifndef CONTD_DISPATCH_SLOT_H
#define CONTD_DISPATCH_SLOT_H

#include <stdint.h>

#include "base/api.h"
#include "dispatch/group.h"
#include "rcu/table.h"

/* A free slot of the group, or -EAGAIN (in a handler), -ENOMEM, -ENOSPC through *errp. */
CONTD_INTERNAL_API struct contd__slot *contd__slot_get_sig(struct contd_group *g, int *errp);

/* Count it as outstanding and make it PENDING on n events; returns its generation. */
CONTD_INTERNAL_API uint32_t contd__slot_publish_sig(struct contd__slot *s, uint32_t n);

/* A slot and its generation's low 20 bits in one word, bits 0 and 1 free: slots are cache lines, addresses have 48
 * bits. */
static inline uint64_t contd__slot_word(const struct contd__slot *s, uint32_t generation)
{
	return (uint64_t)(uintptr_t)s | (uint64_t)(generation & 0xffff) << 48 | (uint64_t)(generation >> 16 & 0xf) << 2;
}

static inline struct contd__slot *contd__word_slot(uint64_t w)
{
	return (struct contd__slot *)(uintptr_t)(w & 0x0000ffffffffffc0ull);
}

static inline uint32_t contd__word_generation(uint64_t w)
{
	return (uint32_t)(w >> 48) | (uint32_t)(w >> 2 & 0xf) << 16;
}

#define GENERATION_MASK 0xfffffu

/*
 * Withdraw: 1 if it was PENDING (then the caller detaches it from its events, and counts those that it has detached,
 * and one more for itself, with contd__slot_event_done_sig), 0 if it was READY (then contd__slot_withdrawn_rcu),
 * -EALREADY.
 */
CONTD_INTERNAL_API int contd__slot_withdraw_sig(struct contd__slot *s, uint32_t generation);

#endif
