/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: what finding a peer may meet. (tests/doorbell tests the rings themselves.) */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
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
