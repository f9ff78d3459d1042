/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread may still spend on being interrupted. The overhead budget flows in, nine tenths of it continuously, up to
 * one tenth of a second's worth saved; so over any second no more than the budget is spent, while a burst after a quiet
 * time is paid for. Everything in clock ticks. A purse is its thread's own, and of the handler that interrupts it
 * with the signal blocked; others read `enough_at` only.
 */
#ifndef CONTD_DISPATCH_PURSE_H
#define CONTD_DISPATCH_PURSE_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/dispatcher.h"

struct contd__purse {
	uint64_t at; /* when the balance was right */
	int64_t balance;
	uint64_t enough_at; /* from then on there is enough for one more; read by any thread */
};

static inline int64_t contd__purse_most(void)
{
	return (int64_t)contd__load(&contd__dispatch.purse_most);
}

/*
 * Time that was too short for anything to flow in is counted the next time: or a purse that is looked at often would
 * never fill. A clock that has gone back (another processor's, by a little) counts nothing.
 */
static inline void contd__purse_fill_sig(struct contd__purse *p, uint64_t now)
{
	uint64_t passed = now - p->at, second = contd__dispatch.second, rate = contd__load(&contd__dispatch.purse_rate),
		 flow;

	if ((int64_t)passed > 0) {
		flow = (passed < second ? passed : second) * rate;
		p->balance += (int64_t)(flow >> 20);
		p->at = now - (flow & ((1u << 20) - 1)) / rate;
	}
	if (p->balance > contd__purse_most())
		p->balance = contd__purse_most();
}

/* Full at the beginning. */
static inline void contd__purse_open(struct contd__purse *p, uint64_t now)
{
	p->at = now;
	p->balance = contd__purse_most();
	contd__store(&p->enough_at, now);
}

/* Spent `cost`; is what is left enough for `next`? Otherwise enough_at tells when it will be. */
static inline bool contd__purse_pay_sig(struct contd__purse *p, uint64_t now, uint64_t cost, uint64_t next)
{
	int64_t missing;

	contd__purse_fill_sig(p, now);
	p->balance -= (int64_t)cost;
	missing = (int64_t)next - p->balance;
	contd__store(&p->enough_at,
		     missing <= 0 ? now : now + ((uint64_t)missing << 20) / contd__load(&contd__dispatch.purse_rate));
	return missing <= 0;
}

/* At least half of what can be saved is there: a burst can be paid for. */
static inline bool contd__purse_half_full_sig(struct contd__purse *p, uint64_t now)
{
	contd__purse_fill_sig(p, now);
	return p->balance >= contd__purse_most() / 2;
}

#endif
