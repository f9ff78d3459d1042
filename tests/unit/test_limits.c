/* SPDX-License-Identifier: BSD-3-Clause */
/* Resources other than memory, refused. */
#include <fcntl.h>
#include <sys/resource.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/error.h"
#include "dispatch/thread.h"

TestSuite(limits, .timeout = WATCHDOG);

enum { ATTACHED = 1024 };
static uint32_t attached, leave;
static int attach_rc[ATTACHED];

static void *attach_and_stay(void *data)
{
	unsigned i = (unsigned)(uintptr_t)data;

	attach_rc[i] = contd_thread_attach(NULL);
	contd__add(&attached, 1);
	while (!contd__load_acquire(&leave))
		usleep(20000);
	if (!attach_rc[i])
		must(contd_thread_detach());
	return NULL;
}

Test(limits, one_thread_more_than_can_be_attached)
{
	static pthread_t thread[ATTACHED];
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g;
	struct tally t = {0};
	pthread_attr_t attr;
	unsigned made;

	start(CONTD_AGENT_CALLER);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (made = 0; made < ATTACHED; made++)
		if (pthread_create(&thread[made], &attr, attach_and_stay, (void *)(uintptr_t)made))
			break;
	await(contd__load_acquire(&attached) == made);
	if (made == ATTACHED) {
		for (unsigned i = 0; i < ATTACHED; i++)
			cr_assert_eq(attach_rc[i], 0, "number %u: %d", i, attach_rc[i]);
		must_fail(contd_thread_attach(NULL), ENOMEM);
		must_fail(contd_thread_attach(NULL), ENOMEM);
		must_fail(contd_thread_detach(), EPERM);
		/* One of the others serves. */
		g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		must(contd_event_complete(&e, 0));
		await(runs(&t));
		cr_assert_eq(t.context, CONTEXT_HANDLER);
	}
	contd__store_release(&leave, 1);
	for (unsigned i = 0; i < made; i++)
		pthread_join(thread[i], NULL);
	must(contd_thread_attach(NULL));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	if (made < ATTACHED)
		cr_skip_test("this machine has no %d threads for one process", ATTACHED);
}

Test(limits, no_timer)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct rlimit before, none;
	struct contd_group *g;
	struct tally t = {0};

	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	getrlimit(RLIMIT_SIGPENDING, &before);
	none = (struct rlimit){0, before.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	for (unsigned i = 0; i < 3; i++)
		must_fail(contd_thread_attach(NULL), EAGAIN);
	cr_assert(strstr(contd_error_text(), "RLIMIT_SIGPENDING"));
	must_fail(contd_thread_detach(), EPERM);
	must(contd_event_complete(&e, 0));
	cr_assert_eq(contd_poll(0), 1, "goes on without");
	cr_assert_eq(setrlimit(RLIMIT_SIGPENDING, &before), 0);
	must(contd_thread_attach(NULL));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(limits, no_file_descriptor)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct rlimit before, none;
	struct contd_group *g;
	struct tally t = {0};
	uint64_t count;
	int fd;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){0, before.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	contd__error_text = NULL;
	fd = contd_fd();
	setrlimit(RLIMIT_NOFILE, &before);
	cr_assert_eq(fd, -EMFILE);
	cr_assert(strstr(contd_error_text(), "RLIMIT_NOFILE"));
	must(contd_event_complete(&e, 0));
	fd = contd_fd();
	cr_assert_geq(fd, 0);
	cr_assert_eq(contd_fd(), fd);
	cr_assert_eq(read(fd, &count, sizeof(count)), (ssize_t)sizeof(count), "what is ready before is told");
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(fcntl(fd, F_GETFD), -1, "closed");
}

static void *nothing(void *data)
{
	return data;
}

Test(limits, no_thread_for_the_daemon)
{
	struct contd_config tick = {.size = sizeof(tick), .agent = CONTD_AGENT_TICK};
	struct rlimit before, none;
	struct contd_group *any;
	struct tally t = {0};
	pthread_t thread;
	int rc;

	/* The limit does not hold for root. */
	if (geteuid() == 0 && setresuid(65534, 65534, 65534))
		cr_skip_test("cannot become an ordinary user");
	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY, -1);
	getrlimit(RLIMIT_NPROC, &before);
	none = (struct rlimit){0, before.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NPROC, &none), 0);
	rc = pthread_create(&thread, NULL, nothing, NULL);
	if (rc == 0) {
		pthread_join(thread, NULL);
		cr_skip_test("RLIMIT_NPROC does not hold here");
	}
	must_fail(contd_daemon_start(NULL), EAGAIN);
	cr_assert(strstr(contd_error_text(), "RLIMIT_NPROC"));
	must_fail(contd_daemon_stop(), EPERM);
	must(contd_event_continue(0, NULL, tally_cb, &t, any, NULL));
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(contd_fini(), 0);
	must_fail(contd_init(&tick), EAGAIN);
	must_fail(contd_fini(), EPERM);
	cr_assert_eq(setrlimit(RLIMIT_NPROC, &before), 0);
	must(contd_init(&tick));
	cr_assert_eq(contd_fini(), 0);
}
