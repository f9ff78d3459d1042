/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd_checkpoint(): its inline part counts calls, and calls this when the count is used up, when something is ready,
 * or when a peer has rung. Ordinary threads, no handler.
 */
#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/live.h"
#include "dispatch/page.h"
#include "dispatch/react.h"
#include "dispatch/run.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/word.h"

#define CHECKPOINT_IDLE_NS 1000000u /* between two looks of a thread's checkpoints while nothing is pending */
#define CHECKPOINT_CALLS_MAX 65536u
#define CHECKPOINT_RUNG_DOUBLINGS 3u /* how much rarer looks are if peers ring */
#define CHECKPOINT_CALLS_AWAY 64u    /* until it asks again, if it may not look now */

/*
 * Let this thread's checkpoints watch the process's bell, unless another thread needs it. A peer that rings then only
 * clears the word. true: the bell has been armed, and the caller looks again.
 */
static bool watch(struct contd_tls *tls)
{
	uint32_t *word = &contd__page->armed.by.thread, armed = contd__load_seq(word);
	uint32_t mine = contd__self.tid | BELL_WATCHED;
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	if (!ops || !ops->listens()) {
		tls->watch = &contd__never_rung;
		return false;
	}
	if (!contd__self.tid) {
		contd__thread_number_sig();
		mine = contd__self.tid | BELL_WATCHED;
	}
	tls->watch = word;
	if (armed == mine)
		return false;
	if (armed && (armed & ~BELL_WATCHED) != contd__self.tid && ops->keeps_bell((int32_t)(armed & ~BELL_WATCHED))) {
		tls->watch = &contd__never_rung; /* that thread is rung, and does the same, or hands it on */
		return false;
	}
	/* Store, then look. Partner: contd_bell_ring(). */
	contd__store_seq(word, mine);
	/* Its next region may have no checkpoints, and no tick would find that out: that region arms the bell again. */
	if (!ops->ticks())
		contd__or(&tls->flags, CONTD__TLS_REARM);
	CONTD_TESTPOINT("bell_watched");
	/* As when a bell is armed (signal/bell.c): wake a daemon that watches descriptors on behalf of regions. */
	if (contd__load(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK)
		contd__wake_daemon_sig(false);
	return true;
}

static void checkpoint_count(struct contd_tls *tls, struct contd__self *self, uint64_t now, uint64_t calls)
{
	self->checkpoint.at = now;
	self->checkpoint.calls = calls < 1 ? 1 : calls > CHECKPOINT_CALLS_MAX ? CHECKPOINT_CALLS_MAX : (uint32_t)calls;
	tls->checkpoint = self->checkpoint.calls;
}

/* How many calls there will be until a look is due, if they come as often as before. */
static uint64_t checkpoint_calls_left(const struct contd_tls *tls, const struct contd__self *self, uint64_t now)
{
	uint64_t calls = self->checkpoint.calls - tls->checkpoint; /* one has gone below 0 */

	return now < self->checkpoint.due && self->checkpoint.at
		       ? (self->checkpoint.due - now) * calls / (now - self->checkpoint.at + 1)
		       : 0;
}

static bool something_pending(bool region)
{
	return contd__load(&contd__words.pending) || (region && contd__sources_here_sig(WHERE_REGION));
}

/* A clock that has gone back (a virtual machine that was moved) makes it due. */
static bool look_is_due(const struct contd__self *self, uint64_t now)
{
	double most = (double)contd__load(&contd__limits.tick_max) * contd__clock.ticks_per_ns,
	       idle = CHECKPOINT_IDLE_NS * contd__clock.ticks_per_ns;

	return now >= self->checkpoint.due || (double)(self->checkpoint.due - now) > (most > idle ? most : idle);
}

/* Clock ticks until the next look. While something is pending it depends on what ticks alone may cost, as with timers;
 * it is never more than the longest tick. */
static uint64_t checkpoint_wait(const struct contd__self *self, bool region)
{
	double ticks = CHECKPOINT_IDLE_NS * contd__clock.ticks_per_ns,
	       most = (double)contd__load(&contd__limits.tick_max) * contd__clock.ticks_per_ns;

	if (something_pending(region))
		ticks = (double)(self->checkpoint.cost << (self->checkpoint.rung ? CHECKPOINT_RUNG_DOUBLINGS : 0)) *
			(1 << 20) / (double)contd__load(&contd__limits.tick_rate);
	return (uint64_t)(ticks < most ? ticks : most);
}

void contd__checkpoint(void)
{
	struct contd_tls *tls = &contd__tls;
	struct contd__self *self = &contd__self;
	uint32_t mine = tls->region ? CLASSES_ALL : CLASSES_SIGNAL;
	bool dead = contd__load(&contd__live.users) == 0 || contd__load(&contd__live.forked),
	     over = tls->checkpoint > self->checkpoint.calls;
	uint64_t now = contd__ticks(), work = self->work;
	enum contd__looking how = LOOK;
	int saved = errno;

	/* It must not look here. A call for something ready, not for the count, leaves the count as it is. */
	if (dead || tls->guard || contd__in_continuation_sig() || !contd__on_thread_sig()) {
		if (dead || over)
			checkpoint_count(tls, self, now, CHECKPOINT_CALLS_AWAY);
		if (contd__load(&contd__put_off_carried)) /* as contd__complete_or_take_sig() has left it */
			contd__checkpoint_now_sig();
		return;
	}
	if (!contd__waits_sig(mine) && contd__load(tls->watch) && !look_is_due(self, now)) {
		if (over) /* the loop has become faster */
			checkpoint_count(tls, self, now, checkpoint_calls_left(tls, self, now));
		return;
	}
	if (!self->registered)
		contd__ordinary->thread_register();
	if (contd__load(tls->watch) == 0) {
		self->checkpoint.rung = 1;
		how = LOOK_RUNG;
	}
	/* A look that found nothing is overhead; callbacks are work. */
	if (contd__react_under_guard(how) == 0)
		self->checkpoint.cost = contd__ticks() - now - (self->work - work);
	if (!something_pending(tls->region))
		tls->watch = &contd__never_rung; /* or, once it has been rung, each call would look */
	else if (watch(tls))
		contd__react_under_guard(LOOK_LAST); /* arm, look again */
	self->checkpoint.due = now + checkpoint_wait(self, tls->region);
	checkpoint_count(tls, self, now, checkpoint_calls_left(tls, self, now));
	contd__pickup();
	errno = saved;
}
