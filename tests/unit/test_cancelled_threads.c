/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that is being cancelled (pthread_cancel(3)) comes through contd's calls, and leaves no lock held. */
#include <fcntl.h>
#include <poll.h>

#include "unit.h"
#include "base/atomic.h"

TestSuite(cancelled_threads, .timeout = WATCHDOG);

static struct contd_event e = CONTD_EVENT_INIT;
static struct contd_event *es[] = {&e};
static struct tally t;
static unsigned passed;
static int nowhere = -1; /* descriptor of /dev/null */

#define done(call) \
	do { \
		call; \
		passed++; \
	} while (0)

/* In the order in which a program calls them. */
static void through_all(void)
{
	struct contd_config all = {.size = sizeof(all), .agent = CONTD_AGENT_BLOCK, .watchdog_ns = 1000000000};
	struct contd_config other = {.size = sizeof(other), .agent = CONTD_AGENT_TICK};
	struct contd_bell *bell;
	struct contd_group *g;
	char job[32];

	snprintf(job, sizeof(job), "cancelled-%d", (int)getpid());
	done(must(contd_init(&all)));
	done(must(contd_thread_attach(NULL)));
	done(cr_assert_geq(contd_fd(), 0));
	done(g = group_new(0, -1));
	done(must(contd_event_continue(1, es, tally_cb, &t, g, NULL)));
	done(must(contd_event_complete(&e, 0)));
	done(cr_assert_eq(contd_poll(0), 1));
	done(must(contd_bell_listen(job, 0)));
	done(must(contd_bell_open(job, 0, &bell)));
	done(contd_bell_close(bell));
	done(must(contd_dump(nowhere)));
	done(must(contd_daemon_start(NULL)));
	done(must(contd_daemon_stop()));
	done(must(contd_configure(&other)));
	done(must_fail(contd_group_wait(NULL, -1), EINVAL));
	done(must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll)));
	done(must(contd_group_destroy(g)));
	done(must(contd_thread_detach()));
	done(cr_assert_eq(contd_fini(), 0));
}
#define CALLS 19

static void *is_cancelled(void *unused)
{
	(void)unused;
	pthread_cancel(pthread_self());
	through_all();
	pthread_testcancel();
	return NULL;
}

static void come_through(void)
{
	pthread_t thread;
	void *ended;

	for (unsigned round = 1; round <= 2; round++) {
		contd_event_init(&e);
		cr_assert_eq(pthread_create(&thread, NULL, is_cancelled, NULL), 0);
		cr_assert_eq(pthread_join(thread, &ended), 0);
		cr_assert_eq(passed, round * CALLS, "cancelled in or after call %u", passed + 1);
		cr_assert_eq(ended, PTHREAD_CANCELED, "cancellation has been left off");
	}
	/* And contd can be used by others. */
	contd_event_init(&e);
	through_all();
	cr_assert_eq(runs(&t), 3);
}

Test(cancelled_threads, come_through_all_calls)
{
	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	come_through();
}

/* contd's descriptors do not get the number of a closed standard descriptor. */
Test(cancelled_threads, come_through_without_standard_input)
{
	int kept = fcntl(0, F_DUPFD_CLOEXEC, 100);

	nowhere = fcntl(open("/dev/null", O_WRONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, 100);
	close(0);
	come_through();
	dup2(kept, 0);
	close(kept);
}

/* The descriptor tells others of what comes later, although the thread that has read it was cancelled. */
static void *polls(void *unused)
{
	(void)unused;
	pthread_cancel(pthread_self());
	contd_poll(0);
	pthread_testcancel();
	return NULL;
}

Test(cancelled_threads, the_descriptor_is_armed_again)
{
	struct pollfd fd = {.events = POLLIN};
	struct contd_group *g;
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	fd.fd = contd_fd();
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must(contd_event_complete(&e, 0));
	cr_assert_eq(poll(&fd, 1, 0), 1);
	cr_assert_eq(pthread_create(&thread, NULL, polls, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(runs(&t), 1);
	contd_event_init(&e);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must(contd_event_complete(&e, 0));
	cr_assert_eq(poll(&fd, 1, 0), 1, "nobody is told");
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 0);
}
