/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: what finding a peer may meet. (What rings do: tests/doorbell.) */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "unit.h"
#include "signal/bell.h"

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
	must(contd_bell_create(job, 0, &bell));
	cr_assert_eq(contd_bell_ring(bell), 0);
	contd_bell_destroy(bell);
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
		must(contd_bell_create(job, 0, &bell));
		contd_bell_destroy(bell);
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
