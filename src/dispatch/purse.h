/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The purse: how much a thread may still spend on being interrupted; and the pace of its looks. Nine tenths of the
 * overhead budget flow in continuously; up to one tenth of a second's worth is saved. So over any second no more than
 * the budget is spent, and a burst after a quiet time is still paid for. Everything in clock ticks. A purse belongs to
 * its thread, and to the handler on that thread, which runs with the signal blocked. Others read `enough_at` only.
 */
#ifndef CONTD_DISPATCH_PURSE_H
#define CONTD_DISPATCH_PURSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/limits.h"

struct contd__purse {
	uint64_t at; /* when the balance was computed */
	int64_t balance;
	uint64_t enough_at; /* from then on there is enough for one more; read by any thread */
	bool spent;         /* by events that come as often as others like */
};

/* When it can pay for one more, seen from now: within a second, whatever the clock has done since. */
static inline uint64_t contd__purse_enough_at(const struct contd__purse *p, uint64_t now)
{
	uint64_t at = contd__load(&p->enough_at), second = contd__load(&contd__clock.second);

	return (int64_t)(at - now) > (int64_t)second ? now + second : at;
}

static inline int64_t contd__purse_most(void)
{
	return (int64_t)contd__load(&contd__limits.purse_most);
}

/*
 * If too little time has passed for anything to flow in, it is counted the next time: otherwise a purse that is looked
 * at often would never fill. If the clock has gone back by a little (another processor's), nothing is counted. If it
 * has gone back by more than a second (a virtual machine that was moved or stopped), counting starts from now:
 * otherwise the purse would not fill until the clock has caught up.
 */
static inline void contd__purse_fill_sig(struct contd__purse *p, uint64_t now)
{
	uint64_t passed = now - p->at, second = contd__clock.second, rate = contd__load(&contd__limits.purse_rate),
		 flow;

	if ((int64_t)passed > 0) {
		flow = (passed < second ? passed : second) * rate;
		p->balance += (int64_t)(flow >> 20);
		p->at = now - (flow & ((1u << 20) - 1)) / rate;
	} else if (p->at - now > second) {
		p->at = now;
	}
	if (p->balance > contd__purse_most())
		p->balance = contd__purse_most();
}

/* Full at the beginning. */
static inline void contd__purse_open(struct contd__purse *p, uint64_t now)
{
	p->at = now;
	p->balance = contd__purse_most();
	p->spent = false;
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
		     missing <= 0 ? now : now + ((uint64_t)missing << 20) / contd__load(&contd__limits.purse_rate));
	return missing <= 0;
}

/* At least half of what can be saved is there: a burst can be paid for. */
static inline bool contd__purse_half_full_sig(struct contd__purse *p, uint64_t now)
{
	contd__purse_fill_sig(p, now);
	return p->balance >= contd__purse_most() / 2;
}

/* Clock ticks until then, if no more than `cost` is paid. */
static inline uint64_t contd__purse_half_full_in(struct contd__purse *p, uint64_t now, uint64_t cost)
{
	int64_t missing;

	contd__purse_fill_sig(p, now);
	missing = contd__purse_most() / 2 - p->balance + (int64_t)cost;
	return missing <= 0 ? 0 : ((uint64_t)missing << 20) / contd__load(&contd__limits.purse_rate);
}

/*
 * May the thread wait for something that comes as often as others like (rings, completions)? When such events have used
 * up the purse, only once a burst can be paid for again. Until then ticks find what is due, and cost less in a stream.
 */
static inline bool contd__purse_bears_sig(struct contd__purse *p, uint64_t now)
{
	if ((int64_t)(contd__purse_enough_at(p, now) - now) > 0)
		p->spent = true;
	if (p->spent && !contd__purse_half_full_sig(p, now))
		return false;
	p->spent = false;
	return true;
}

/*
 * The pace of looks: after QUIET_LOOKS in a row that found nothing they come half as often, and after as many more half
 * as often again. `quiet` counts them.
 */
#define QUIET_LOOKS 64u
#define QUIET_DOUBLINGS_MAX 16u

static inline void contd__quiet_count(uint32_t *quiet, bool found)
{
	if (found)
		*quiet = 0;
	else if (*quiet < QUIET_LOOKS * QUIET_DOUBLINGS_MAX)
		++*quiet;
}

static inline uint64_t contd__quiet_interval(uint32_t quiet, uint64_t ns, uint64_t most)
{
	uint64_t longer = ns << quiet / QUIET_LOOKS;

	return longer < most ? longer : most;
}

/*
 * The cost of one look, after more looks: from the thread's processor time for them, and the part of it that was
 * work. One slow look among them (a page fault, a long message) is not what looking costs. Work that slept, or
 * waited for the processor, has taken longer than the thread has spent: that tells nothing. From less than
 * LOOK_COST_LEAST the mean would not grow again.
 */
#define LOOK_COST_LEAST 4u

static inline uint64_t contd__look_cost(uint64_t cost, uint64_t spent, uint64_t work, uint32_t looks)
{
	uint64_t sample = (spent - work) / looks;

	if (work >= spent)
		return cost;
	cost = (3 * cost + (sample < 2 * cost ? sample : 2 * cost)) / 4;
	return cost > LOOK_COST_LEAST ? cost : LOOK_COST_LEAST;
}

/*
 * If peers ring, they report what looks would find. So looks come as rarely as if so many had found nothing. The looks
 * that remain are for peers that do not ring.
 */
#define QUIET_WHERE_RUNG (3u * QUIET_LOOKS)

static inline void contd__quiet_where_rung(uint32_t *quiet)
{
	if (*quiet < QUIET_WHERE_RUNG)
		*quiet = QUIET_WHERE_RUNG;
}

#endif
