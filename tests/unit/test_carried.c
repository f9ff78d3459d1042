/* SPDX-License-Identifier: BSD-3-Clause */
/* Continuations that operations carry: a source of the test's own completes them, as contd-fabric does. */
#include <poll.h>
#include <sys/wait.h>

#include "unit.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "dispatch/carried.h"
#include "dispatch/event.h"
#include "dispatch/event_word.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

TestSuite(carried, .timeout = WATCHDOG);

#define MOST (TAKEN_MOST + 100)

static struct contd_carried carried[MOST];
static struct tally tally[MOST];
static struct contd_group *g;
static unsigned first;    /* that has not been completed */
static unsigned finished; /* to be completed at the next look */
static unsigned waiting;  /* that are under way */
static struct contd_group *inner;
static unsigned chain_length, depth;
static struct contd_carried *at_once[MOST]; /* to be completed at the next look, */
static unsigned finished_at_once;           /* so many of them that are not NULL */
static unsigned looks;
static unsigned sequence[MOST], ran_in_all; /* of what has run: which */

static void complete_some(unsigned n)
{
	struct contd_carried *c[MOST];

	for (unsigned i = 0; i < n; i++)
		c[i] = &carried[first + i];
	first += n;
	contd__sub(&waiting, n);
	contd__carried_done_sig(c, n);
}

static void progress(bool last)
{
	unsigned n = contd__xchg(&finished, 0);

	(void)last;
	looks++;
	for (unsigned i = 0; finished_at_once; i++) {
		if (!at_once[i])
			continue;
		contd__sub(&waiting, 1);
		contd__carried_done_sig(&at_once[i], 1);
		finished_at_once--;
	}
	for (unsigned some; n; n -= some)
		complete_some(some = n < 16 ? n : 16);
}

static uint32_t pending(void)
{
	return contd__load(&waiting) != 0;
}

static struct contd__source source = {.name = "carried",
				      .where = WHERE_THREAD | WHERE_REGION | WHERE_DAEMON,
				      .progress = progress,
				      .pending = pending};

static void cb(int status, void *data)
{
	struct tally *t = data;

	tally_cb(status, t);
	cr_assert(contd_event_is_complete(&carried[t - tally].event));
	sequence[ran_in_all++] = (unsigned)(t - tally);
}

static void carry(unsigned i, contd_callback *callback, struct contd_group *group)
{
	carried[i].status = 0;
	must(contd__carried_begin(&carried[i], callback, &tally[i], group));
	contd__add(&waiting, 1);
}

static void begin(uint32_t flags, int32_t max_poll, unsigned n)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(flags, max_poll);
	must(contd__source_register(&source));
	for (unsigned i = 0; i < n; i++)
		carry(i, cb, g);
}

static void end(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(runs(&tally[i]), 1, "%u ran %u times", i, runs(&tally[i]));
		cr_assert(contd_event_is_complete(&carried[i].event));
	}
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(stats_now().run, n);
	cr_assert_eq(stats_now().registered, n);
	cr_assert_eq(contd__self.carried.take, NULL);
	cr_assert_eq(contd__self.carried.running, NULL);
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

/* ---------------------------------------------------------------------------------------------- what is counted --- */

static unsigned left[3];

static void counts_the_others(int status, void *data)
{
	cb(status, data);
	left[(struct tally *)data - tally] = contd_group_outstanding(g);
}

/* Those that have returned are not outstanding, also while others of the same look are still to run. */
Test(carried, only_those_that_have_not_returned_are_outstanding)
{
	begin(0, -1, 0);
	for (unsigned i = 0; i < 3; i++)
		carry(i, counts_the_others, g);
	finished = 3;
	cr_assert_eq(contd_poll(0), 3);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(left[i], 3 - i, "callback %u: %u", i, left[i]);
	end(3);
}

static uint32_t slots_used(const struct contd_group *group)
{
	return group->table.used;
}

Test(carried, run_in_order_without_slots)
{
	begin(0, -1, 40);
	cr_assert_eq(contd_group_outstanding(g), 40);
	cr_assert_not(contd_event_is_complete(&carried[0].event));
	finished = 40;
	cr_assert_eq(contd_poll(0), 40);
	for (unsigned i = 0; i < 40; i++)
		cr_assert_eq(sequence[i], i);
	cr_assert_eq(slots_used(g), 0);
	end(40);
}

Test(carried, more_than_are_taken_at_a_time)
{
	begin(0, -1, MOST);
	finished = MOST;
	cr_assert_eq(contd_poll(0), MOST);
	cr_assert_eq(slots_used(g), MOST - TAKEN_MOST);
	for (unsigned i = 0; i < TAKEN_MOST; i++)
		cr_assert_eq(sequence[i], i);
	end(MOST);
}

Test(carried, their_status)
{
	begin(0, -1, 2);
	carried[0].status = -EIO;
	finished = 1;
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(tally[0].status, -EIO);
	carried[1].status = -7;
	complete_some(1); /* with a slot */
	cr_assert_eq(slots_used(g), 1);
	cr_assert(contd_event_is_complete(&carried[1].event));
	cr_assert_eq(runs(&tally[1]), 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(tally[1].status, -7);
	end(2);
}

Test(carried, behind_what_is_ready)
{
	struct contd_event event = CONTD_EVENT_INIT, *e = &event;

	begin(0, -1, 3);
	must(contd_event_continue(1, &e, cb, &tally[3], g, NULL));
	must(contd_event_complete(&event, 0));
	carried[3].event.word = contd__event_done_word(0); /* cb looks */
	finished = 3;
	cr_assert_eq(contd_poll(0), 4);
	cr_assert_eq(slots_used(g), 4);
	end(4);
}

Test(carried, a_poll_s_limit_holds)
{
	begin(0, -1, 10);
	finished = 10;
	cr_assert_eq(contd_poll(3), 3);
	cr_assert_eq(contd_group_outstanding(g), 7);
	cr_assert_eq(contd_poll(1), 1);
	cr_assert_eq(contd_poll(0), 6);
	end(10);
}

#define SLOTS 8u /* of events, that each look finds one of; and others that a callback makes ready */
static struct contd_event slot_event[2 * SLOTS];
static unsigned slots_found;

static void progress_of_both(bool last)
{
	struct contd_event *e = &slot_event[slots_found];

	if (slots_found < SLOTS) {
		slots_found++;
		contd__events_complete_sig(&e, 1);
	}
	progress(last);
}

static void cb_and_others_ready(int status, void *data)
{
	cb(status, data);
	for (unsigned i = SLOTS; i < 2 * SLOTS; i++)
		must(contd_event_complete(&slot_event[i], 0));
}

static void slot_cb(int status, void *data)
{
	(void)status;
	++*(unsigned *)data;
}

/* One of those with a slot may be taken at each look, between a few of those without. */
Test(carried, a_poll_s_limit_holds_with_slots_between)
{
	unsigned of_slots = 0;

	begin(0, -1, 38);
	source.progress = progress_of_both;
	carry(38, cb_and_others_ready, g);
	for (unsigned i = 0; i < 2 * SLOTS; i++) {
		struct contd_event *e = &slot_event[i];

		contd_event_init(e);
		must(contd_event_continue(1, &e, slot_cb, &of_slots, g, NULL));
	}
	finished = 39;
	contd__add(&waiting, 1); /* so that it is looked at further on */
	cr_assert_eq(contd_poll(40), 40);
	cr_assert_eq(of_slots + ran_in_all, 40);
	cr_assert_eq(contd_group_outstanding(g), 39 + 2 * SLOTS - 40);
	while (slots_found < SLOTS)
		contd_poll(0);
	contd__sub(&waiting, 1);
	contd_poll(0);
	cr_assert_eq(of_slots, 2 * SLOTS);
	cr_assert_eq(ran_in_all, 39);
	cr_assert_eq(contd_group_outstanding(g), 0);
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

Test(carried, a_test_s_limit_holds)
{
	int complete;

	begin(0, 2, 5);
	finished = 5;
	cr_assert_eq(contd_group_test(g, &complete), 2);
	cr_assert_eq(complete, 0);
	cr_assert_eq(contd_group_test(g, &complete), 2);
	cr_assert_eq(contd_group_test(g, &complete), 1);
	cr_assert_eq(complete, 1);
	end(5);
}

Test(carried, poll_only)
{
	begin(CONTD_POLL_ONLY, -1, 20);
	finished = 20;
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(contd_group_outstanding(g), 20);
	must(contd_group_wait(g, 0));
	end(20);
}

Test(carried, of_different_groups)
{
	struct contd_group *other;

	begin(0, -1, 3);
	other = group_new(0, -1);
	carry(3, cb, other);
	carry(4, cb, g);
	finished = 5;
	cr_assert_eq(contd_poll(0), 5);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(sequence[i], i);
	cr_assert_eq(slots_used(g) + slots_used(other), 0);
	cr_assert_eq(contd_group_outstanding(other), 0);
	must(contd_group_destroy(other));
	end(5);
}

Test(carried, nothing_is_attached_to_them_besides)
{
	struct contd_event *e = &carried[0].event;

	begin(0, -1, 1);
	must_fail(contd_event_continue(1, &e, cb, NULL, g, NULL), EBUSY);
	must_fail(contd_event_complete(e, 0), EBUSY);
	contd__events_complete_sig(&e, 1);
	cr_assert_not(contd_event_is_complete(e));
	finished = 1;
	cr_assert_eq(contd_poll(0), 1);
	must_fail(contd_event_complete(e, 0), EALREADY);
	end(1);
}

Test(carried, forgotten)
{
	begin(0, -1, 2);
	contd__carried_forget(&carried[1]);
	waiting--;
	cr_assert_eq(contd_group_outstanding(g), 1);
	must(contd_event_complete(&carried[1].event, 0)); /* an event like any other */
	finished = 1;
	must(contd_group_wait(g, -1));
	end(1);
}

/* --------------------------------------------------------------------------------------------- inside callbacks --- */

static void start_next(int status, void *data)
{
	cb(status, data);
	if (ran_in_all < 30) {
		carry(ran_in_all, start_next, g);
		finished = 1;
	}
}

Test(carried, start_the_next)
{
	begin(0, -1, 0);
	carry(0, start_next, g);
	finished = 1;
	must(contd_group_wait(g, -1));
	cr_assert_eq(slots_used(g), 0);
	end(30);
}

/* The group counts those of one frame down together, behind the last one. contd_group_outstanding() leaves out those
 * that have returned, and counts what their callbacks have begun. */
static void begin_another(int status, void *data)
{
	struct tally *t = data;
	unsigned i = (unsigned)(t - tally);

	cb(status, t);
	cr_assert_eq(contd_group_outstanding(g), 20);
	must(contd__carried_begin(&carried[i + 50], cb, &tally[i + 50], g));
	contd__add(&waiting, 1);
	cr_assert_eq(contd_group_outstanding(g), 21); /* itself too */
}

Test(carried, each_begins_another)
{
	begin(0, -1, 0);
	for (unsigned i = 0; i < 20; i++)
		carry(i, begin_another, g);
	finished = 20;
	cr_assert_eq(contd_poll(0), 20);
	cr_assert_eq(contd_group_outstanding(g), 20);
	first = 50;
	finished = 20;
	must(contd_group_wait(g, -1));
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(stats_now().registered, 40);
	cr_assert_eq(stats_now().run, 40);
	must(contd_group_destroy(g));
}

/* Complete when it is begun: it runs right behind who begins it, and not inside. */
static void chain(int status, void *data)
{
	struct tally *t = data;
	unsigned i = (unsigned)(t - tally) + 1;

	cb(status, t);
	if (i % chain_length == 0)
		return;
	depth++;
	cr_assert_eq(depth, 1);
	carried[i].status = 0;
	must(contd__carried_begin(&carried[i], chain, &tally[i], g));
	contd__carried_at_once(&carried[i]);
	depth--;
}

Test(carried, complete_at_once)
{
	begin(0, -1, 0);
	chain_length = 5;
	carry(0, chain, g);
	first = 0;
	contd__carried_at_once(&carried[0]); /* runs here, all five */
	cr_assert_eq(ran_in_all, 5);
	cr_assert_eq(contd_group_outstanding(g), 0);
	waiting = 0;
	for (unsigned i = 10; i < 30; i += chain_length)
		carry(i, chain, g);
	for (unsigned i = 10; i < 30; i += chain_length) {
		struct contd_carried *c = &carried[i];

		at_once[i / chain_length] = c;
	}
	finished_at_once = 4;
	cr_assert_eq(contd_poll(0), 20);
	for (unsigned i = 5; i < 25; i++)
		cr_assert_eq(sequence[i], i + 5); /* one chain after the other */
	cr_assert_eq(slots_used(g), 0);
	cr_assert_eq(contd_group_outstanding(g), 0);
	must(contd_group_destroy(g));
}

/* However long a chain is, others have their turn. */
Test(carried, a_chain_is_cut)
{
	begin(0, -1, 0);
	chain_length = MOST;
	carry(0, chain, g);
	waiting = 0;
	contd__carried_at_once(&carried[0]);
	cr_assert_eq(ran_in_all, TAKEN_MOST + 1);
	cr_assert_gt(slots_used(g), 0);
	must(contd_group_wait(g, -1));
	end(MOST);
}

static void finish_more(int status, void *data)
{
	cb(status, data);
	if (ran_in_all == 1)
		finished = 10;
}

/* Sources are looked at again before all of a long sweep has run. */
Test(carried, looked_at_in_between)
{
	begin(0, -1, 0);
	for (unsigned i = 0; i < 110; i++)
		carry(i, finish_more, g);
	finished = 100;
	cr_assert_eq(contd_poll(0), 110); /* what was finished meanwhile, too */
	for (unsigned i = 0; i < 110; i++)
		cr_assert_eq(sequence[i], i);
	cr_assert_eq(looks, 2);
	end(110);
}

static void wait_inside(int status, void *data)
{
	cb(status, data);
	must(contd_group_wait(inner, -1));
	cr_assert_eq(ran_in_all, 5);
}

/* The operation that a callback waits for was found at the same look, and is next. */
Test(carried, one_waits_for_another)
{
	begin(0, -1, 1);
	inner = group_new(0, -1);
	carry(1, wait_inside, g);
	for (unsigned i = 2; i < 5; i++)
		carry(i, cb, inner);
	finished = 5;
	/* The wait counts the continuations that ran in it. */
	cr_assert_eq(contd_poll(0), 2);
	must(contd_group_destroy(inner));
	end(5);
}

static void poll_inside(int status, void *data)
{
	cb(status, data);
	cr_assert_eq(contd_poll(1), 1);
	cr_assert_eq(contd_poll(0), 2);
}

Test(carried, one_polls)
{
	begin(0, -1, 0);
	carry(0, poll_inside, g);
	for (unsigned i = 1; i < 4; i++)
		carry(i, cb, g);
	finished = 4;
	cr_assert_eq(contd_poll(0), 1);
	end(4);
}

static void poll_inside_and_find(int status, void *data)
{
	cb(status, data);
	finished = 3; /* while two that were found before wait for this callback */
	cr_assert_eq(contd_poll(0), 5);
}

Test(carried, one_polls_and_finds_more)
{
	begin(0, -1, 0);
	carry(0, poll_inside_and_find, g);
	for (unsigned i = 1; i < 6; i++)
		carry(i, cb, g);
	finished = 3;
	cr_assert_eq(contd_poll(0), 1);
	end(6);
}

static void destroy_group(int status, void *data)
{
	cb(status, data);
	must(contd_group_destroy(inner));
}

Test(carried, group_destroyed_in_a_callback)
{
	begin(0, -1, 0);
	inner = group_new(0, -1);
	carry(0, destroy_group, inner);
	carry(1, cb, inner);
	carry(2, cb, g);
	finished = 3;
	cr_assert_eq(contd_poll(0), 3);
	end(3);
}

Test(carried, a_group_waits_for_the_group)
{
	begin(0, -1, 3);
	inner = group_new(0, -1);
	carried[3].event.word = contd__event_done_word(0); /* cb looks */
	must(contd_group_continue(g, cb, &tally[3], inner, NULL));
	finished = 2;
	cr_assert_eq(contd_poll(0), 2);
	cr_assert_eq(runs(&tally[3]), 0);
	finished = 1;
	must(contd_group_wait(inner, -1));
	cr_assert_eq(sequence[3], 3);
	must(contd_group_destroy(inner));
	end(4);
}

static void inside_its_group(int status, void *data)
{
	int complete = 1;

	cb(status, data);
	must_fail(contd_group_wait(g, -1), EDEADLK);
	cr_assert_geq(contd_group_test(g, &complete), 0);
	cr_assert_eq(complete, 0);
}

Test(carried, inside_its_group)
{
	begin(0, -1, 0);
	carry(0, inside_its_group, g);
	carry(1, inside_its_group, g);
	finished = 2;
	must(contd_group_wait(g, -1));
	end(2);
}

/* ------------------------------------------------------------------------------ a source that calls the program --- */

/* While a source is driven it calls a function of the program's (foreign, push_fn, query_fn), and that calls contd. */
static void (*in_source)(void);

static void progress_and_call(bool last)
{
	void (*call)(void) = in_source;

	progress(last);
	in_source = NULL;
	if (call)
		call();
}

static void wait_in_source(void)
{
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(ran_in_all, 3);
}

static void callable(unsigned n, void (*call)(void))
{
	begin(0, -1, n);
	source.progress = progress_and_call;
	in_source = call;
	finished = n;
}

Test(carried, a_source_waits_for_what_it_has_found)
{
	callable(3, wait_in_source);
	cr_assert_eq(contd_poll(0), 0); /* the wait has run them */
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(sequence[i], i);
	end(3);
}

static void find_a_slot_and_wait(void)
{
	struct contd_event *e = &slot_event[0];

	contd__events_complete_sig(&e, 1);
	cr_assert_neq(contd__self.carried.take->slot, NULL);
	must(contd_group_wait(inner, PATIENCE_SECONDS * 1000000000ll));
}

Test(carried, a_source_waits_for_the_slot_it_has_found)
{
	struct contd_event *e = &slot_event[0];
	unsigned of_slots = 0;

	callable(1, find_a_slot_and_wait);
	inner = group_new(0, -1);
	must(contd_event_continue(1, &e, slot_cb, &of_slots, inner, NULL));
	finished = 0;
	contd_poll(0);
	cr_assert_eq(of_slots, 1);
	must(contd_group_destroy(inner));
	finished = 1;
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(contd_fini(), 0);
}

static pid_t child;

static void fork_in_source(void)
{
	child = fork();
	cr_assert_geq(child, 0);
	complete_some(1); /* the source goes on */
}

Test(carried, what_a_source_that_forks_has_found_runs_in_the_parent)
{
	int status;

	callable(3, fork_in_source);
	finished = 2;
	contd_poll(0);
	if (child == 0)
		_exit((int)ran_in_all);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	end(3);
}

/* ------------------------------------------------------------------------------------------------ other threads --- */

Test(carried, in_a_region)
{
	begin(0, -1, 40);
	must(contd_thread_attach(NULL));
	finished = 40;
	contd_compute_begin();
	raise_ours();
	contd_compute_end();
	cr_assert_eq(tally[0].context, CONTEXT_REGION);
	cr_assert_eq(slots_used(g), 40);
	must(contd_thread_detach());
	end(40);
}

Test(carried, by_signal)
{
	begin(CONTD_ASYNC_SIGNAL_SAFE, -1, 2);
	must(contd_thread_attach(NULL));
	complete_some(2); /* by an attached thread: here and now */
	cr_assert_eq(runs(&tally[0]), 1);
	cr_assert_eq(runs(&tally[1]), 1);
	must(contd_thread_detach());
	end(2);
}

Test(carried, by_the_daemon)
{
	start(CONTD_AGENT_TICK);
	g = group_new(CONTD_THREAD_ANY, -1);
	must(contd__source_register(&source));
	for (unsigned i = 0; i < 40; i++)
		carry(i, cb, g);
	contd__store_release(&finished, 40);
	contd__pending_sig();
	await(runs(&tally[39]));
	await(contd_group_outstanding(g) == 0);
	cr_assert_eq(tally[0].context, CONTEXT_DAEMON);
	end(40);
}

static struct helper other;
static struct contd_carried *to_complete[1];

static void complete_there(void *data)
{
	(void)data;
	contd__carried_done_sig(to_complete, 1);
}

Test(carried, a_sleeper_is_woken)
{
	begin(0, -1, 1);
	waiting = 0; /* nobody looks */
	helper_create(&other, false);
	to_complete[0] = &carried[0];
	helper_start(&other, complete_there, NULL);
	must(contd_group_wait(g, -1));
	helper_finish(&other);
	helper_join(&other);
	cr_assert_eq(slots_used(g), 1);
	end(1);
}

/* ------------------------------------------------------------------------------------------------- short memory --- */

Test(carried, room_is_made_when_they_begin)
{
	begin(0, -1, 0);
	for (unsigned i = 0; i < MOST; i++)
		carry(i, cb, g);
	cr_assert_geq(g->table.limit, MOST + TABLE_RESERVE);
	cr_assert_gt(stats_now().grown, 0);
	complete_some(MOST);
	contd__alloc_budget = 0;
	cr_assert_eq(contd_poll(0), MOST);
	contd__alloc_budget = -1;
	end(MOST);
}

Test(carried, no_memory_to_begin)
{
	int rc = 0;

	begin(0, -1, 0);
	contd__alloc_budget = 0;
	for (unsigned i = 0; i < MOST && !rc; i++) {
		rc = contd__carried_begin(&carried[i], cb, &tally[i], g);
		waiting += rc == 0;
	}
	contd__alloc_budget = -1;
	cr_assert_eq(rc, -ENOMEM);
	cr_assert_gt(strlen(contd_error_text()), 10);
	cr_assert_eq(waiting, CHUNK_FIRST - TABLE_RESERVE);
	cr_assert_eq(contd_group_outstanding(g), waiting);
	finished = waiting;
	must(contd_group_wait(g, -1));
	end(CHUNK_FIRST - TABLE_RESERVE);
}

/* Take all slots without registering anything. */
static void use_up(void)
{
	while (contd__slot_alloc_sig(&g->table))
		;
	contd__alloc_budget = 0;
}

Test(carried, none_is_lost_without_memory)
{
	begin(0, -1, 3);
	use_up();
	complete_some(2);
	cr_assert_not(contd_event_is_complete(&carried[0].event));
	cr_assert_eq(contd_poll(0), 0);
	must_fail(contd_group_wait(g, 1000000), ETIMEDOUT);
	cr_assert_eq(contd_group_outstanding(g), 3);
	contd__alloc_budget = -1;
	cr_assert_eq(contd_poll(0), 2);
	finished = 1;
	must(contd_group_wait(g, -1));
	end(3);
}

/* A descriptor that is made when something waits for memory tells of it, as one does that was there. */
static int readable(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	return poll(&p, 1, 0);
}

Test(carried, descriptor_tells_of_what_waits_for_memory)
{
	int fd;

	begin(0, -1, 1);
	use_up();
	complete_some(1);
	fd = contd_fd();
	cr_assert_eq(readable(fd), 1);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(readable(fd), 1);
	contd__alloc_budget = -1;
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(readable(fd), 0);
	end(1);
}

Test(carried, none_is_lost_without_memory_at_the_end)
{
	begin(0, -1, 1);
	use_up();
	complete_some(1);
	cr_assert_eq(contd_fini(), 1);
	contd__alloc_budget = -1;
	start(CONTD_AGENT_CALLER);
	cr_assert_eq(contd_poll(0), 0); /* of the life before nothing is left */
	cr_assert_eq(runs(&tally[0]), 0);
	cr_assert_eq(contd_fini(), 0);
}
