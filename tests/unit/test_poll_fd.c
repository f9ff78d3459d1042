/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "unit.h"
#include "base/testpoint.h"

TestSuite(poll_fd, .timeout = WATCHDOG);

static struct contd_event e[100];
static struct tally t[100];
static struct contd_group *g;

static void registering(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, tally_cb, &t[i], g, NULL));
	}
}

static int readable(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	return poll(&p, 1, 0);
}

Test(poll_fd, readable_while_something_waits)
{
	int fd;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	fd = contd_fd();
	cr_assert_geq(fd, 0);
	cr_assert_eq(contd_fd(), fd, "the same one each time");
	cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_assert_eq(readable(fd), 0);
	registering(0, 10);
	cr_assert_eq(readable(fd), 0);
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(readable(fd), 1);
	must(contd_event_complete(&e[1], 0));
	cr_assert_eq(contd_poll(0), 2);
	cr_assert_eq(readable(fd), 0);
	for (unsigned i = 2; i < 10; i++)
		must(contd_event_complete(&e[i], 0));
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_eq(readable(fd), 1, "some are left");
		cr_assert_eq(contd_poll(1), 1);
	}
	contd_poll(0);
	cr_assert_eq(readable(fd), 0);
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(runs(&t[i]), 1);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(fcntl(fd, F_GETFD), -1, "closed at the end");
}

static int polls;

static void poll_there(const char *point)
{
	if (strcmp(point, "fd_disarmed") == 0 && polls++ == 0)
		cr_assert_eq(contd_poll(0), 1);
}

/* The thread that makes it readable is late: another poll has run the continuation by then. It is cleared, and tells of
 * the next. */
Test(poll_fd, made_readable_late)
{
	int fd;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	fd = contd_fd();
	registering(0, 2);
	__atomic_store_n(&contd__testpoint_hook, poll_there, __ATOMIC_RELEASE);
	must(contd_event_complete(&e[0], 0));
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_eq(polls, 1);
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(readable(fd), 1);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(readable(fd), 0);
	must(contd_event_complete(&e[1], 0));
	cr_assert_eq(readable(fd), 1);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(readable(fd), 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(poll_fd, made_when_something_waits_already)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	registering(0, 1);
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(readable(contd_fd()), 1);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(poll_fd, poll_only_does_not_make_it_readable)
{
	int fd;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_POLL_ONLY, -1);
	fd = contd_fd();
	registering(0, 1);
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(readable(fd), 0);
	cr_assert_eq(contd_poll(0), 0);
	must(contd_group_wait(g, -1));
	cr_assert_eq(contd_fini(), 0);
}

Test(poll_fd, no_descriptor_to_be_had)
{
	struct rlimit before, none;
	int fd;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	must_fail(contd_fd(), EMFILE);
	setrlimit(RLIMIT_NOFILE, &before);
	fd = contd_fd();
	cr_assert_geq(fd, 0);
	cr_assert_eq(contd_fini(), 0);
}

/* A loop that sleeps in epoll_wait between completions of another thread: a lost wake-up hangs. */
enum { N = 20000 };
static struct contd_event many[N];
static struct tally many_tally[N];

static void *completer(void *data)
{
	(void)data;
	for (unsigned i = 0; i < N; i++) {
		must(contd_event_complete(&many[i], 0));
		for (volatile unsigned spin = 0; spin < i % 100 * 20; spin++)
			;
	}
	return NULL;
}

Test(poll_fd, epoll_loop)
{
	struct epoll_event want = {.events = EPOLLIN}, got;
	int ep = epoll_create1(0);
	unsigned ran = 0;
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < N; i++) {
		struct contd_event *es[] = {&many[i]};

		must(contd_event_continue(1, es, tally_cb, &many_tally[i], g, NULL));
	}
	cr_assert_eq(epoll_ctl(ep, EPOLL_CTL_ADD, contd_fd(), &want), 0);
	cr_assert_eq(pthread_create(&thread, NULL, completer, NULL), 0);
	while (ran < N) {
		int n = epoll_wait(ep, &got, 1, PATIENCE_SECONDS * 1000);

		cr_assert(n == 1 || errno == EINTR, "%u of %u came", ran, (unsigned)N);
		ran += (unsigned)contd_poll(ran % 3);
	}
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(runs(&many_tally[i]), 1);
	close(ep);
	cr_assert_eq(contd_fini(), 0);
}
