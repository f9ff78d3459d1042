/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: what finding a peer may meet. (tests/doorbell tests the rings themselves.) */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "signal/attached.h"
#include "signal/bell.h"
#include "source.h"

TestSuite(bell, .timeout = WATCHDOG);

static char job[32];

static void listens(void)
{
	start(CONTD_AGENT_CALLER);
	snprintf(job, sizeof(job), "bell-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
}

/* Another library has a file of the same name: an empty one, and one that it may shorten. */
Test(bell, a_file_of_the_same_name)
{
	int empty = memfd_create(CONTD_PAGE_NAME, MFD_CLOEXEC), long_one = memfd_create(CONTD_PAGE_NAME, MFD_CLOEXEC);
	struct contd_bell *bell;

	cr_assert(empty >= 0 && long_one >= 0);
	cr_assert_eq(ftruncate(long_one, 4096), 0);
	listens();
	must(contd_bell_open(job, 0, &bell));
	cr_assert_eq(contd_bell_ring(bell), 0);
	contd_bell_close(bell);
	cr_assert_eq(contd_fini(), 0);
}

static bool queue_is_empty(void)
{
	int fd = accept(contd__bell_socket, NULL, NULL);

	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EAGAIN;
}

/* Peers leave themselves in a queue that is emptied now and then. The program had no descriptor left when it was. */
Test(bell, the_queue_is_emptied_later)
{
	struct rlimit most, none;
	struct contd_bell *bell;

	listens();
	for (unsigned i = 0; i < 100; i++) {
		must(contd_bell_open(job, 0, &bell));
		contd_bell_close(bell);
	}
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &most), 0);
	none = most;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	contd__bell_drain_sig();
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &most), 0);
	contd__bell_drain_sig();
	cr_assert(queue_is_empty());
	cr_assert_eq(contd_fini(), 0);
}

static uint32_t computes, computed;

static void compute(void *data)
{
	(void)data;
	contd_compute_begin();
	contd__store_release(&computes, 1);
	compute_until(contd__load_acquire(&computed));
	contd_compute_end();
}

/* The thread that was to be rung has left its region, and has a guard. Another one computes. */
Test(bell, a_ring_under_a_guard_is_handed_on)
{
	static struct contd_event e;
	static struct tally t;
	struct contd_bell *bell;
	struct contd_group *g;
	struct helper h;

	listens();
	must(contd_bell_open(job, 0, &bell));
	source_register(&source_a, WHERE_REGION, false);
	g = group_new(0, -1);
	must(contd_thread_attach(NULL));
	helper_create(&h, true);
	helper_start(&h, compute, NULL);
	await(contd__load_acquire(&computes));
	source_continue(&source_a, &e, tally_cb, &t, g);
	source_finish(&source_a);
	contd_guard_begin();
	contd__store_seq(&contd__page->armed.by.thread, (uint32_t)gettid());
	cr_assert_eq(contd_bell_ring(bell), 1);
	await(runs(&t) == 1);
	contd_guard_end();
	cr_assert(pthread_equal(t.thread, h.thread));
	contd__store_release(&computed, 1);
	helper_join(&h);
	contd_bell_close(bell);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* A peer sets a word in shared memory, and rings. Nothing else is pending. */
Test(bell, a_word_is_rung_for)
{
	static uint64_t value;
	struct contd_word word = {.address = &value, .value = 1};
	static struct tally t;
	struct contd_bell *bell;
	struct helper h;

	listens();
	must(contd_bell_open(job, 0, &bell));
	must(contd_word_continue(&word, tally_cb, &t, group_new(0, -1), NULL));
	helper_create(&h, true);
	helper_start(&h, compute, NULL);
	await(contd__load_acquire(&computes));
	await(contd__load_seq(&contd__page->armed.by.thread) != 0);
	contd__store_seq(&value, 1);
	cr_assert_eq(contd_bell_ring(bell), 1);
	await(runs(&t) == 1);
	cr_assert(pthread_equal(t.thread, h.thread));
	contd__store_release(&computed, 1);
	helper_join(&h);
	contd_bell_close(bell);
	cr_assert_eq(contd_fini(), 0);
}

/* A ring has come to a thread that is not attached: its handler may look at the page. */
static uint32_t in_stray, ended;
static bool ended_meanwhile;

static void stay(const char *name)
{
	uint64_t until = now_ns() + 50000000;

	if (strcmp(name, "bell_stray") || contd__xchg(&in_stray, 1))
		return;
	while (now_ns() < until && !contd__load_acquire(&ended))
		;
	ended_meanwhile = contd__load_acquire(&ended);
}

static void *end_elsewhere(void *unused)
{
	(void)unused;
	await(contd__load_acquire(&in_stray));
	cr_assert_eq(contd_fini(), 0);
	contd__store_release(&ended, 1);
	return NULL;
}

Test(bell, the_page_stays_while_a_handler_may_look_at_it)
{
	struct contd_bell *bell;
	pthread_t thread;

	listens();
	must(contd_bell_open(job, 0, &bell));
	contd__store_release(&contd__testpoint_hook, stay);
	cr_assert_eq(pthread_create(&thread, NULL, end_elsewhere, NULL), 0);
	contd__store_seq(&contd__page->armed.by.thread, (uint32_t)gettid());
	cr_assert_eq(contd_bell_ring(bell), 1);
	compute_until(contd__load_acquire(&in_stray));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_not(ended_meanwhile);
	contd_bell_close(bell);
}

/* A thread ends, and contd with it: the thread is about to take its number off the page. */
static uint32_t disarms, cleared;
static __thread bool ends;

static void end_of_a_thread(const char *name)
{
	if (strcmp(name, "detach_cleared") == 0)
		contd__store_release(&cleared, 1);
	if (strcmp(name, "bell_disarms") != 0 || !ends)
		return;
	contd__store_release(&disarms, 1);
	await(contd__load_acquire(&cleared));
	for (uint64_t until = now_ns() + 500000000; now_ns() < until && !contd__load_acquire(&ended);)
		usleep(1000); /* it does not end before this has */
}

static void *attach_and_end(void *unused)
{
	(void)unused;
	must(contd_thread_attach(NULL));
	ends = true;
	return NULL;
}

Test(bell, the_page_stays_while_a_thread_ends)
{
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	__atomic_store_n(&contd__testpoint_hook, end_of_a_thread, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_create(&thread, NULL, attach_and_end, NULL), 0);
	await(contd__load_acquire(&disarms));
	cr_assert_eq(contd_fini(), 0);
	contd__store_release(&ended, 1);
	pthread_join(thread, NULL);
}

/* --------------------------------------------------------------------- no ring is lost where there are no ticks --- */

static struct contd_event e1;
static struct tally t1, t2;
static struct contd_bell *own_bell;
static struct contd_group *plain;

static void begin_rings(void)
{
	listens();
	must(contd_bell_open(job, 0, &own_bell));
	source_register(&source_a, WHERE_REGION, false);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
}

static void end_rings(void)
{
	contd_bell_close(own_bell);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static void peer_sends(void *data)
{
	(void)data;
	source_finish(&source_a);
	contd_bell_ring(own_bell);
}

static __thread bool is_first;
static uint32_t leave, left, again;

/* The first thread hands its ring on, and the other one leaves its region before the signal comes. */
static void leaves_meanwhile(const char *name)
{
	if (!is_first || strcmp(name, "notify_before_send") != 0)
		return;
	contd__store_seq(&leave, 1);
	await(contd__load_seq(&left));
}

static void computes_twice(void *data)
{
	(void)data;
	contd_compute_begin();
	contd_compute_end();
	contd_compute_begin();
	contd__store_seq(&computes, 1);
	compute_until(contd__load_seq(&leave));
	contd_compute_end();
	contd__store_seq(&left, 1);
	await(contd__load_seq(&again));
	contd_compute_begin();
	compute_until(runs(&t1));
	contd_compute_end();
}

Test(bell, a_ring_that_was_handed_on_too_late)
{
	struct helper h;

	begin_rings();
	is_first = true;
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	helper_create(&h, true);
	helper_start(&h, computes_twice, NULL);
	await(contd__load_seq(&computes));
	contd__store_seq(&contd__page->armed.by.thread, (uint32_t)gettid());
	contd__store_release(&contd__testpoint_hook, leaves_meanwhile);
	peer_sends(NULL);
	await(contd__load_seq(&left) && stats_now().notifications == 1);
	contd__store_seq(&again, 1);
	await(runs(&t1));
	helper_join(&h);
	end_rings();
}

/* Its purse is empty when a ring has come, so the bell stays unarmed; then the purse fills. */
Test(bell, the_purse_is_empty_and_fills)
{
	struct helper h;

	begin_rings();
	helper_create(&h, false);
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_guard_begin();
	contd__me->purse.balance = -4 * contd__purse_most();
	contd__store(&contd__me->purse.enough_at, contd__ticks() + contd__clock.second / 2);
	contd_guard_end();
	contd_compute_begin();
	cr_assert_eq(contd__load_seq(&contd__page->armed.by.thread), 0);
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

/* The same; it has left its region when the purse has filled, and begins another one. */
Test(bell, the_purse_fills_between_two_regions)
{
	struct helper h;

	begin_rings();
	helper_create(&h, false);
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_guard_begin();
	contd__me->purse.balance = -4 * contd__purse_most();
	contd__store(&contd__me->purse.enough_at, contd__ticks() + contd__clock.second / 2);
	contd_guard_end();
	contd_compute_begin();
	contd_compute_end();
	cr_assert_eq(contd__load_seq(&contd__page->armed.by.thread), 0);
	compute_until(contd__load(&contd__me->armed) == 0); /* the one tick has come */
	contd_compute_begin();
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

static void continues(void *data)
{
	(void)data;
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
}

/* Another thread begins what this one's region may look at, when it computes already. */
Test(bell, a_thread_that_computes_already_is_rung)
{
	struct helper h;

	begin_rings();
	helper_create(&h, false);
	contd_compute_begin();
	contd_compute_end();
	contd_compute_begin();
	helper_do(&h, continues, NULL);
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

static void listens_now(void *data)
{
	must(contd_bell_listen(job, 0));
	must(contd_bell_open(job, 0, &own_bell));
	(void)data;
}

/* The process listens when a thread computes already. */
Test(bell, a_process_that_listens_later_is_rung)
{
	struct helper h;

	start(CONTD_AGENT_CALLER);
	snprintf(job, sizeof(job), "bell-%d", (int)getpid());
	source_register(&source_a, WHERE_REGION, false);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
	helper_create(&h, false);
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_compute_begin();
	helper_do(&h, listens_now, NULL);
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

static void checkpoints_once(void *data)
{
	continues(data);
	contd_compute_begin();
	for (unsigned i = 0; i < 10000000 && !(contd__load_seq(&contd__page->armed.by.thread) & BELL_WATCHED); i++)
		contd_checkpoint();
	contd_compute_end();
}

/* Checkpoints of another thread have watched the bell, which is in no region any more. */
Test(bell, the_bell_that_another_thread_has_watched)
{
	struct helper h;

	begin_rings();
	contd_compute_begin();
	contd_compute_end();
	helper_create(&h, true);
	helper_do(&h, checkpoints_once, NULL);
	cr_assert(contd__load_seq(&contd__page->armed.by.thread) & BELL_WATCHED);
	source_begin(&source_a);
	contd_compute_begin();
	helper_start(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

/* The settings change while a thread computes whose bell only a tick would have armed. */
static void calls_only(void *data)
{
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_CALLER};

	(void)data;
	must(contd_configure(&c));
}

Test(bell, a_thread_that_computes_is_rung_after_ticks_have_ended)
{
	struct contd_config c = {
		.size = sizeof(c), .agent = CONTD_AGENT_REGION, .tick_min_ns = 1000000000, .tick_max_ns = 10000000000};
	struct helper h;

	must(contd_init(&c));
	snprintf(job, sizeof(job), "bell-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
	must(contd_bell_open(job, 0, &own_bell));
	source_register(&source_a, WHERE_REGION, false);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
	helper_create(&h, false);
	contd_compute_begin();
	contd_compute_end();
	contd_compute_begin();
	helper_do(&h, continues, NULL);
	helper_do(&h, calls_only, NULL);
	compute_until(contd__load(&contd__me->armed) == 0); /* the last tick has come */
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

/* A program that has closed its standard input finds a peer, and then opens /dev/null in that place. */
Test(bell, a_peer_is_rung_after_standard_input_was_replaced)
{
	int kept = fcntl(0, F_DUPFD_CLOEXEC, 100), null = open("/dev/null", O_RDONLY | O_CLOEXEC), rc;

	listens();
	close(0);
	must(contd_bell_open(job, 0, &own_bell));
	dup2(null, 0);
	contd__store_seq(&contd__page->armed.by.thread, (uint32_t)gettid());
	rc = contd_bell_ring(own_bell);
	dup2(kept, 0);
	close(kept);
	cr_assert_eq(rc, 1);
	contd_bell_close(own_bell);
	cr_assert_eq(contd_fini(), 0);
}

/* ---------------------------------------------------------------------------------- what one look leaves behind --- */

/* A ring empties its purse, so the bell stays unarmed. How many ticks until it is armed again? */
static uint64_t ticks_until_it_can_pay(void)
{
	uint64_t ticks = stats_now().ticks;

	contd__me->purse.balance = 0;
	contd__store(&contd__me->purse.enough_at, contd__ticks() + contd__clock.second / 20);
	contd_bell_ring(own_bell); /* nothing has come */
	compute_until(contd__load_seq(&contd__page->armed.by.thread) != 0);
	return stats_now().ticks - ticks;
}

/*
 * One tick comes when the purse has filled: the cost of the ring itself, which is paid last, does not make that one
 * come too soon, and so on with the next. A tick that the kernel stops in the middle costs so much that another one
 * has to come; but not each time.
 */
Test(bell, one_tick_comes_when_the_purse_has_filled)
{
	unsigned tries = 0;
	struct helper h;

	begin_rings();
	helper_create(&h, false);
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	/* Interruptions are dear: a tick that comes too soon is too soon by much. */
	contd__store(&contd__signals.kernel_ticks, contd__clock.second / 2000);
	contd__store(&contd__signals.notice_ticks, contd__clock.second / 2000);
	contd_compute_begin();
	cr_assert_neq(contd__load_seq(&contd__page->armed.by.thread), 0);
	while (ticks_until_it_can_pay() != 1)
		cr_assert_lt(++tries, 20, "ticks come too soon");
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

static void watches_until_left(void *data)
{
	continues(data);
	contd_compute_begin();
	for (unsigned i = 0; i < 10000000 && !(contd__load_seq(&contd__page->armed.by.thread) & BELL_WATCHED); i++)
		contd_checkpoint();
	contd__store_seq(&computes, 1);
	await(contd__load_seq(&leave));
	contd_compute_end();
}

/* Checkpoints of another thread watch the bell while this one begins its region; then that thread's region ends. */
Test(bell, the_region_ends_whose_checkpoints_watch)
{
	struct helper h;

	begin_rings();
	contd_compute_begin();
	contd_compute_end();
	helper_create(&h, true);
	helper_start(&h, watches_until_left, NULL);
	await(contd__load_seq(&computes));
	cr_assert(contd__load_seq(&contd__page->armed.by.thread) & BELL_WATCHED);
	contd_compute_begin();
	contd__store_seq(&leave, 1);
	helper_finish(&h);
	helper_start(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

/* Its first region has checkpoints, which watch the bell; the next one has none. */
Test(bell, a_region_without_checkpoints_after_one_with)
{
	struct helper h;

	begin_rings();
	helper_create(&h, false);
	checkpoints_once(NULL);
	cr_assert(contd__load_seq(&contd__page->armed.by.thread) & BELL_WATCHED);
	contd_compute_begin();
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	end_rings();
}

/* A source is pending that only other threads may drive. Then an operation of another source begins. */
Test(bell, only_other_threads_could_drive_what_was_pending)
{
	struct helper h;

	begin_rings();
	source_a.source.here = NULL;
	source_register(&source_b, WHERE_REGION, false);
	helper_create(&h, false);
	contd__store(&source_b.elsewhere, true);
	source_begin(&source_b);
	contd_compute_begin();
	cr_assert_eq(contd__load_seq(&contd__page->armed.by.thread), 0);
	helper_do(&h, continues, NULL);
	helper_do(&h, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&h);
	contd__store(&source_b.operations, 0);
	end_rings();
}

static void computes_once(void *data)
{
	source_begin(&source_a);
	contd_compute_begin();
	contd_compute_end();
	contd__sub(&source_a.operations, 1);
	(void)data;
}

static void computes_until_left(void *data)
{
	(void)data;
	contd_compute_begin();
	contd__store_seq(&computes, 1);
	compute_until(contd__load_seq(&leave));
	contd_compute_end();
}

/* Nothing is pending that one of them may drive: with ticks no other one is interrupted for that. */
Test(bell, a_thread_with_ticks_is_not_asked)
{
	struct contd_config c = {
		.size = sizeof(c), .agent = CONTD_AGENT_REGION, .tick_min_ns = 1000000000, .tick_max_ns = 10000000000};
	struct helper h;

	must(contd_init(&c));
	snprintf(job, sizeof(job), "bell-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
	source_register(&source_a, WHERE_REGION, false);
	must(contd_thread_attach(NULL));
	helper_create(&h, true);
	helper_start(&h, computes_until_left, NULL);
	await(contd__load_seq(&computes));
	contd__store(&source_a.elsewhere, true);
	contd__add(&source_a.operations, 1);
	contd_compute_begin();
	raise_ours();
	contd_compute_end();
	cr_assert_eq(stats_now().notifications, 0);
	contd__store_seq(&leave, 1);
	contd__sub(&source_a.operations, 1);
	helper_join(&h);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* It had armed the bell; another thread has taken it over, and has gone. */
Test(bell, the_bell_that_was_taken_over)
{
	struct helper h, other;

	begin_rings();
	helper_create(&other, false);
	source_begin(&source_a);
	contd_compute_begin();
	contd_compute_end();
	cr_assert_eq(contd__load_seq(&contd__page->armed.by.thread), (uint32_t)gettid());
	helper_create(&h, true);
	helper_do(&h, computes_once, NULL);
	cr_assert_neq(contd__load_seq(&contd__page->armed.by.thread), (uint32_t)gettid());
	contd__sub(&source_a.operations, 1);
	helper_join(&h);
	cr_assert_eq(contd__load_seq(&contd__page->armed.by.thread), 0);
	contd_compute_begin();
	helper_do(&other, continues, NULL);
	helper_do(&other, peer_sends, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	helper_join(&other);
	end_rings();
}

/* ------------------------------------------------------------------- who is asked, of several that may be asked --- */

static uint32_t computing_tid;

static void begins_and_computes(void *data)
{
	(void)data;
	contd__store_seq(&computing_tid, (uint32_t)gettid());
	contd_compute_begin();
	contd__store_seq(&computes, 1);
	compute_until(contd__load_seq(&leave));
	contd_compute_end();
}

static void empty_purse(void)
{
	contd_guard_begin();
	contd__me->purse.balance = -100 * contd__purse_most(); /* for seconds */
	contd__store(&contd__me->purse.enough_at, contd__ticks() + contd__clock.second);
	contd_guard_end();
}

/* Two threads compute, and the first one cannot pay. */
static void two_compute(struct helper *h, struct helper *other)
{
	begin_rings();
	helper_create(h, true);
	helper_create(other, false);
	helper_start(h, begins_and_computes, NULL);
	await(contd__load_seq(&computes));
}

static void other_is_rung(struct helper *h, struct helper *other)
{
	compute_until(contd__load_seq(&contd__page->armed.by.thread) == contd__load_seq(&computing_tid));
	helper_do(other, peer_sends, NULL);
	compute_until(runs(&t1));
	contd__store_seq(&leave, 1);
	contd_compute_end();
	helper_join(h);
	helper_join(other);
	end_rings();
}

Test(bell, the_thread_that_can_pay_is_asked)
{
	struct helper h, other;

	two_compute(&h, &other);
	contd_compute_begin();
	empty_purse();
	helper_do(&other, continues, NULL);
	cr_assert_eq(stats_now().put_off, 0, "it waits until the purse has filled");
	other_is_rung(&h, &other);
}

/* The first one is rung and cannot pay for the next ring. */
Test(bell, the_thread_that_can_pay_takes_over)
{
	struct helper h, other;

	two_compute(&h, &other);
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	await(contd__load_seq(&contd__page->armed.by.thread) == contd__load_seq(&computing_tid));
	contd__store_seq(&contd__page->armed.by.thread, 0);
	contd_guard_begin();
	contd_compute_begin();
	empty_purse();
	contd_guard_end();
	other_is_rung(&h, &other);
}

/* A source that is driven on one thread only. */
static __thread bool drives;
static bool drives_here(void)
{
	return drives;
}

/* This thread begins its region so early that it has missed the flag, and is seen to compute late. */
static uint32_t may_begin, has_begun;
static const char *begins_at;

static void region_begins_meanwhile(const char *name)
{
	if (strcmp(name, begins_at) != 0 || contd__xchg(&may_begin, 1))
		return;
	await(contd__load_seq(&has_begun));
}

static void begin_unseen(void)
{
	compute_until(contd__load_seq(&may_begin));
	contd__store_seq(&contd__tls.region, 1);
	contd__store_seq(&has_begun, 1);
}

static void this_one_is_rung(struct helper *h, struct helper *other)
{
	compute_until(contd__load_seq(&contd__page->armed.by.thread) == (uint32_t)gettid());
	helper_finish(other);
	helper_do(other, peer_sends, NULL);
	compute_until(runs(&t1));
	contd__store_seq(&leave, 1);
	contd_compute_end();
	helper_join(h);
	helper_join(other);
	end_rings();
}

/* Another one computes, is asked, and may not drive it. */
Test(bell, a_region_that_begins_while_another_is_asked)
{
	struct helper h, other;

	two_compute(&h, &other);
	source_a.source.here = drives_here;
	drives = true;
	contd_compute_begin();
	contd_compute_end();
	begins_at = "notify_before_send";
	contd__store_release(&contd__testpoint_hook, region_begins_meanwhile);
	helper_start(&other, continues, NULL);
	begin_unseen();
	this_one_is_rung(&h, &other);
}

static uint32_t looked;

static void computes_and_begins_unseen(void *data)
{
	drives = true;
	contd__store_seq(&computing_tid, (uint32_t)gettid());
	contd_compute_begin();
	contd_compute_end();
	contd__store_seq(&looked, 1);
	begin_unseen();
	compute_until(contd__load_seq(&leave));
	contd_compute_end();
	(void)data;
}

/* All are told that their next regions look. One computes that is not asked: it could not drive what was pending. */
Test(bell, a_region_that_begins_while_it_is_told)
{
	struct helper h, other;

	begin_rings();
	source_register(&source_b, WHERE_REGION, false);
	source_a.source.here = drives_here;
	contd__store(&source_b.elsewhere, true);
	contd__store(&source_b.operations, 1);
	contd_compute_begin();
	contd__store(&source_b.operations, 0);
	helper_create(&h, true);
	helper_create(&other, false);
	helper_start(&h, computes_and_begins_unseen, NULL);
	compute_until(contd__load_seq(&looked));
	begins_at = "regions_asked";
	contd__store_release(&contd__testpoint_hook, region_begins_meanwhile);
	helper_do(&other, continues, NULL);
	other_is_rung(&h, &other);
}

/* ------------------------------------------------------------------------------- a region in a callback is none --- */

static struct contd_event e2;
static struct helper begins;

static void has_a_region(int status, void *data)
{
	contd_compute_begin();
	helper_do(&begins, continues, NULL);
	contd_compute_end();
	tally_cb(status, data);
}

/* A thread has handed a ring on, and then has a region in a callback. The other one computes, and is asked. */
Test(bell, a_region_in_a_callback_of_a_thread_that_has_handed_on)
{
	struct contd_event *es2[] = {&e2};
	struct contd_group *polled;
	int complete;
	struct helper h;

	begin_rings();
	polled = group_new(CONTD_POLL_ONLY, -1);
	contd_compute_begin();
	contd_compute_end();
	helper_create(&h, true);
	helper_create(&begins, false);
	helper_start(&h, begins_and_computes, NULL);
	await(contd__load_seq(&computes));
	contd__store_seq(&contd__page->armed.by.thread, (uint32_t)gettid());
	contd_bell_ring(own_bell); /* outside regions: it is handed on to the other one, which finds nothing pending */
	await(stats_now().notifications == 1);
	await(!contd__load_seq(&contd__signals.record[1]->signalled) &&
	      !contd__load_seq(&contd__signals.record[1]->inside));
	must(contd_event_continue(1, es2, has_a_region, &t2, polled, NULL));
	must(contd_event_complete(&e2, 0));
	cr_assert_eq(contd_group_test(polled, &complete), 1);
	cr_assert_eq(runs(&t2), 1);
	helper_do(&begins, peer_sends, NULL);
	await(runs(&t1));
	contd__store_seq(&leave, 1);
	helper_join(&h);
	helper_join(&begins);
	end_rings();
}
