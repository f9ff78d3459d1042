/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reached from the signal handler: async-signal-safe code only. Events that the program completes itself.
 *
 * An event's word:
 *
 *     0                                        pending, no continuation
 *     slot | 2 | 20 bits of its generation     pending, a continuation attached
 *     4                                        pending, of an operation that carries its continuation (carried.c)
 *     status << 32 | 1                         complete
 *
 * Completing is one exchange on that word. After it the event is not touched again: the continuation may reuse it.
 * Until the completer has counted the event at the slot, the slot stays this continuation's, cancelled or not.
 */
#include <errno.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/complete.h"
#include "dispatch/event.h"
#include "dispatch/event_word.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/run.h"
#include "dispatch/slot.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

static uint64_t attached_word(const struct contd__slot *s, uint32_t generation)
{
	return contd__slot_word(s, generation) | EVENT_ATTACHED;
}

void contd_event_init(struct contd_event *event)
{
	if (!event)
		return;
	event->next = NULL;
	/* Release: pairs with the acquire in end_event(). The completer sees all that happened before. */
	contd__store_release(&event->word, 0);
}

int contd_event_is_complete(const struct contd_event *event)
{
	/* Acquire: pairs with the exchange in contd_event_complete. */
	return event && (contd__load_acquire(&event->word) & EVENT_DONE) != 0;
}

static void keep_status(struct contd__slot *s, int32_t status)
{
	int32_t none = 0;

	if (status)
		contd__cas(&s->out.status, &none, status);
}

/* In a slot's source: the slot waits for this event alone, and the event's `next` means nothing. */
#define SOURCE_ALONE ((uintptr_t)4)
_Static_assert(_Alignof(struct contd_event) >= 8, "an event's address has 3 bits free");

uint32_t contd__events_detach_sig(struct contd__slot *s, uint32_t generation)
{
	struct contd_event *e = (struct contd_event *)(s->source & ~(uintptr_t)7);
	struct contd_event *next;
	uint32_t taken = 0;

	for (; e; e = next) {
		uint64_t w = attached_word(s, generation);

		next = s->source & SOURCE_ALONE ? NULL : e->next;
		taken += contd__cas(&e->word, &w, 0);
	}
	return taken;
}

/* Attach to one event: 1 if it was complete already, 0, or -EBUSY. */
static int attach(struct contd_event *e, struct contd__slot *s, uint32_t generation)
{
	uint64_t w = 0;

	if (contd__cas(&e->word, &w, attached_word(s, generation))) {
		CONTD_TESTPOINT("event_attached");
		e->next = (struct contd_event *)(s->source & ~(uintptr_t)3);
		s->source = (uintptr_t)e | KIND_EVENT;
		return 0;
	}
	if (!(w & EVENT_DONE))
		return -EBUSY;
	keep_status(s, (int32_t)(w >> 32));
	return 1;
}

/* Only completers know of the slot yet. `never`: how many of its n events and holds were not attached to anything. */
static int back_out(struct contd__slot *s, uint32_t generation, uint32_t never)
{
	CONTD_COUNT(registered, -1);
	contd__slot_withdraw_sig(s, generation);
	contd__slot_event_done_sig(s, generation, never + contd__events_detach_sig(s, generation) + 1);
	return contd__fail(-EBUSY,
			   "contd_event_continue: one of events has a continuation already; an event may have one at a "
			   "time");
}

/*
 * Attach to the only event, without a handle to give. This call needs no hold: there is nothing else to attach. Returns
 * 0 if it is attached (then the slot is no longer this call's), 1 if it was complete already, or -EBUSY.
 */
static int attach_alone(struct contd_event *e, struct contd__slot *s, uint32_t *generationp)
{
	uint64_t w = 0;

	s->source = (uintptr_t)e | KIND_EVENT | SOURCE_ALONE;
	*generationp = contd__slot_publish_sig(s, 1);
	if (contd__cas(&e->word, &w, attached_word(s, *generationp))) {
		CONTD_TESTPOINT("event_attached_alone");
		return 0;
	}
	if (!(w & EVENT_DONE))
		return back_out(s, *generationp, 1);
	keep_status(s, (int32_t)(w >> 32));
	return 1;
}

/* Attach to all of them. This call has a hold, too, so that the continuation becomes ready at its end at the earliest.
 * Returns how many to count then, the hold and the events that were complete already; or -EBUSY. */
static int attach_all(size_t n, struct contd_event *const events[], struct contd__slot *s, uint32_t *generationp)
{
	uint32_t done = 1;

	s->source = KIND_EVENT;
	*generationp = contd__slot_publish_sig(s, (uint32_t)n + 1);
	for (size_t i = 0; i < n; i++) {
		int rc = attach(events[i], s, *generationp);

		if (rc < 0)
			return back_out(s, *generationp, done + (uint32_t)(n - i));
		done += (uint32_t)rc;
	}
	return (int)done;
}

int contd_event_continue(size_t n, struct contd_event *const events[], contd_callback *cb, void *data,
			 struct contd_group *group, struct contd_handle *handlep)
{
	struct contd__slot *s;
	uint32_t generation;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!cb || !group || (n && !events))
		return contd__fail(-EINVAL, !cb      ? CONTD_NULL("contd_event_continue", "cb")
					    : !group ? CONTD_NULL("contd_event_continue", "group")
						     : CONTD_NULL("contd_event_continue", "events"));
	if (n > SLOT_REMAINING_MAX - 2) /* this call's hold and a canceller's */
		return contd__fail(-EINVAL, "contd_event_continue: n must be at most 2^23 - 3");
	for (size_t i = 0; i < n; i++)
		if (!events[i])
			return contd__fail(-EINVAL, "contd_event_continue: events has an entry that is NULL");
	s = contd__slot_get_sig(group, &rc);
	if (!s)
		return contd__fail_in(__func__, rc);
	contd__slot_holds_user(s, cb, data, 0);
	rc = n == 1 && !handlep ? attach_alone(events[0], s, &generation) : attach_all(n, events, s, &generation);
	if (rc <= 0)
		return rc;
	if (handlep) {
		handlep->slot = s;
		handlep->generation = generation;
	}
	CONTD_TESTPOINT("event_before_release");
	contd__slot_registered_with(group, s, generation, (uint32_t)rc);
	return 0;
}

/* Complete the event. Returns 1 if a continuation waited: *wp is its word, and the caller counts the event there. Or 0,
 * -EALREADY, -EBUSY. Between enter and leave. */
static int end_event(struct contd_event *event, int status, uint64_t *wp)
{
	uint64_t w = contd__load_acquire(&event->word);

	do {
		if (w & EVENT_DONE)
			return -EALREADY;
		if (w == EVENT_CARRIED)
			return -EBUSY;
		CONTD_TESTPOINT("event_before_exchange");
	} while (!contd__cas(&event->word, &w, contd__event_done_word(status)));
	CONTD_TESTPOINT("event_exchanged");
	*wp = w;
	return w != 0;
}

int contd_event_complete(struct contd_event *event, int status)
{
	bool reader;
	uint64_t w;
	int rc;

	if (!event)
		return contd__fail(-EINVAL, "contd_event_complete: event must not be NULL");
	reader = contd__enter_sig();
	rc = end_event(event, status, &w);
	if (rc > 0) {
		struct contd__slot *s = contd__word_slot(w);

		keep_status(s, status);
		contd__slot_event_done_rcu(s, contd__word_generation(w), 1);
	}
	contd__leave_sig(reader);
	if (rc < 0)
		return contd__fail(
			rc,
			rc == -EBUSY
				? "contd_event_complete: event is of a fabric operation: call contd_fabric_withdraw()"
				: "contd_event_complete: event is complete already; contd_event_init() makes it "
				  "pending again");
	return 0;
}

void contd__events_complete_sig(struct contd_event *const event[], uint32_t n)
{
	uint32_t waiting = 0;
	uint64_t w, word[EVENTS_TOGETHER];
	bool reader = contd__enter_sig();

	for (uint32_t i = 0; i < n; i++)
		if (end_event(event[i], 0, &w) > 0)
			word[waiting++] = w;
	if (waiting && (waiting > 1 || !contd__word_take_rcu(word[0])))
		contd__words_done_rcu(word, waiting);
	contd__leave_sig(reader);
}
