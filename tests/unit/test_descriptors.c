/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that is about to write to a descriptor of contd's never writes to a file of the program's, however late: the
 * number does not become another file's.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "source.h"
#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/source.h"
#include "dispatch/wake.h"
#include "signal/attached.h"
#include "signal/bell.h"

TestSuite(descriptors, .timeout = WATCHDOG);

enum { FILES = 64 };

static int file[FILES];
static uint32_t there, released, ready, over;
static __thread bool stops;

/* This thread has loaded the number, and has not written yet. */
static void stop_there(const char *name)
{
	if (!stops || strcmp(name, "descriptor_loaded") != 0)
		return;
	stops = false;
	contd__store_release(&there, 1);
	while (!contd__load_acquire(&released))
		CONTD_RELAX();
}

/* Files that get whatever numbers are free. */
static void open_files(void)
{
	for (unsigned i = 0; i < FILES; i++)
		cr_assert_geq(file[i] = (int)syscall(SYS_memfd_create, "precious", 0), 0);
}

static void files_are_empty(void)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct stat s;

		cr_assert_eq(fstat(file[i], &s), 0);
		cr_assert_eq(s.st_size, 0, "descriptor %d has %lld bytes", file[i], (long long)s.st_size);
		close(file[i]);
	}
}

/* A daemon that sleeps in poll(2), a millisecond at most. */
static void start_polling(void)
{
	struct contd_config c = {
		.size = sizeof(c), .agent = CONTD_AGENT_BLOCK, .tick_min_ns = 100000, .tick_max_ns = 1000000};

	must(contd_init(&c));
	source_register(&source_a, WHERE_THREAD | WHERE_DAEMON, true);
	source_begin(&source_a);
	__atomic_store_n(&contd__testpoint_hook, stop_there, __ATOMIC_RELEASE);
}

static void *wake_daemon(void *data)
{
	(void)data;
	stops = true;
	while (!contd__load_acquire(&there))
		contd__wake_daemon_sig(true);
	return NULL;
}

Test(descriptors, the_daemon_is_stopped_before_it_is_woken)
{
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_REGION};
	pthread_t thread;

	start_polling();
	cr_assert_eq(pthread_create(&thread, NULL, wake_daemon, NULL), 0);
	await(contd__load_acquire(&there));
	must(contd_configure(&c));
	open_files();
	contd__store_release(&released, 1);
	pthread_join(thread, NULL);
	files_are_empty();
	/* Another one can be woken as the first. */
	contd__store(&there, 0);
	c.agent = CONTD_AGENT_BLOCK;
	must(contd_configure(&c));
	cr_assert_eq(pthread_create(&thread, NULL, wake_daemon, NULL), 0);
	await(contd__load_acquire(&there));
	pthread_join(thread, NULL);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	source_finish(&source_a);
	contd_fini();
}

static void *attached(void *data)
{
	(void)data;
	must(contd_thread_attach(NULL));
	contd_compute_begin();
	stops = true; /* in the handler, and not in contd_compute_begin() */
	contd__store_release(&ready, 1);
	while (!contd__load_acquire(&over))
		CONTD_RELAX();
	contd_compute_end();
	return NULL;
}

static void *end(void *data)
{
	(void)data;
	contd_fini();
	return NULL;
}

/* A ring has come to an attached thread, which wakes the daemon; contd_fini() on another one ends it at that moment. */
Test(descriptors, fini_beside_a_handler)
{
	siginfo_t info = {.si_code = CONTD_SI_CODE};
	pthread_t rung, ending;

	start_polling();
	cr_assert_eq(pthread_create(&rung, NULL, attached, NULL), 0);
	await(contd__load_acquire(&ready));
	info.si_value.sival_ptr = &contd__signals.bell_mark;
	cr_assert_eq(syscall(SYS_rt_tgsigqueueinfo, getpid(), contd__load(&contd__signals.record[0]->tid),
			     contd__signals.signal_number, &info),
		     0);
	await(contd__load_acquire(&there));
	cr_assert_eq(pthread_create(&ending, NULL, end, NULL), 0);
	await(contd__load_acquire(&contd__wake.daemon_mode) == 0);
	usleep(20000);
	open_files();
	contd__store_release(&released, 1);
	pthread_join(ending, NULL);
	files_are_empty();
	contd__store_release(&over, 1);
	pthread_join(rung, NULL);
}
