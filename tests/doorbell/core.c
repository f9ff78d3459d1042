/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells of the core: a process that waits (the parent, or a child) and one that rings. Usage: core CASE; without
 * one it lists them. Processes are made with fork(2) before contd starts in either, and talk over a pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dirent.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "signal/attached.h"

#define SKIPPED 77
#define OUTSIDER 65534 /* a user that is not this one */

static const char *this_case;
static char job[48];

#define CHECK(cond) check((cond) != 0, #cond, __FILE__, __LINE__)
static void check(bool good, const char *what, const char *file, int line)
{
	if (good)
		return;
	fprintf(stderr, "%s:%d: %s: CHECK(%s) failed in process %d (errno %d, \"%s\")\n", file, line, this_case, what,
		(int)getpid(), errno, contd_error_text());
	_exit(1);
}

#include "../child.h"
#include "signal/bell.h"

/* ---------------------------------------------------------------------------------------------------- processes --- */

/* Does `work`, and then says so with its exit status. */
static struct child begin(void (*work)(int fd))
{
	struct child c = child_fork();

	if (c.pid == 0) {
		work(c.fd);
		_exit(0);
	}
	return c;
}

#define ENDS_WELL(c) CHECK(child_end(&(c)) == 0)
/* When it waits for no more than that it may go. */
#define DISMISS(c) \
	do { \
		tell((c).fd, 'x'); \
		ENDS_WELL(c); \
	} while (0)

/* ------------------------------------------------------------------------------------------- somebody who waits --- */

static int ran_so_far;
#define ran __atomic_load_n(&ran_so_far, __ATOMIC_ACQUIRE)
static uint32_t something;        /* what the source has pending */
static volatile uint32_t *shared; /* [0]: the source's operation is complete */

static struct contd_event event = CONTD_EVENT_INIT;
static int again_fd = -1; /* the callback makes the next round, in the region */
static int again_until;
static void pend(void);

static void count(int status, void *data)
{
	(void)status, (void)data;
	__atomic_fetch_add(&ran_so_far, 1, __ATOMIC_SEQ_CST);
	if (again_fd >= 0 && ran < again_until) {
		pend();
		tell(again_fd, 'g');
	}
}

/* A source as MPI is one: driven in regions, on the daemon if it may, and never by itself. */
static uint32_t source_pending(void)
{
	return contd__load_seq(&something);
}

static void source_drive(bool last)
{
	(void)last;
	if (__atomic_load_n(&shared[0], __ATOMIC_SEQ_CST) && contd__xchg(&something, 0))
		contd_event_complete(&event, 0);
}

static struct contd__source source = {
	.name = "test", .where = WHERE_REGION | WHERE_THREAD, .pending = source_pending, .progress = source_drive};

static struct contd_group *group;

static int agent;

/* Ticks are a second apart, or more. */
static void start(uint32_t number)
{
	struct contd_config config = {.size = sizeof(config),
				      .tick_min_ns = 1000000000,
				      .tick_max_ns = 10000000000u,
				      .overhead_percent = 20,
				      .agent = agent};
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_THREAD_ANY, .max_poll = -1};

	CHECK(contd_init(&config) == 0);
	CHECK(contd__source_register(&source) == 0);
	CHECK(contd_group_create(&attr, &group) == 0);
	if (number)
		CHECK(contd_bell_listen(job, number) == 0);
}

static void start_attached(void)
{
	start(1);
	CHECK(contd_thread_attach(NULL) == 0);
}

static void finish(void)
{
	CHECK(contd_group_destroy(group) == 0);
	CHECK(contd_fini() == 0);
}

static void pend(void)
{
	struct contd_event *e = &event;

	__atomic_store_n(&shared[0], 0, __ATOMIC_SEQ_CST);
	contd_event_init(&event);
	CHECK(contd_event_continue(1, &e, count, NULL, group, NULL) == 0);
	contd__store_seq(&something, 1);
	contd__pending_sig();
}

static struct contd_stats stats(void)
{
	struct contd_stats s = {.size = sizeof(s)};

	CHECK(contd_stats_get(&s) == 0);
	return s;
}

/* Computes until `ran` has grown so far; the watchdog comes before a tick every second would have done all of it. */
static void compute_until(int count_wanted)
{
	contd_compute_begin();
	while (ran < count_wanted)
		;
	contd_compute_end();
}

/* Rounds of: armed, told so, rung. */
#define ROUNDS 30

static void compute_rounds(int fd, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		pend();
		tell(fd, 'g');
		compute_until(i + 1);
	}
}

/* Says that there is no other round, and stays until it is dismissed. */
static void last_round(int fd)
{
	tell(fd, 'e');
	hear(fd);
}

static void waits(int fd)
{
	start_attached();
	compute_rounds(fd, ROUNDS);
	CHECK(stats().rings > 0);
	CHECK(stats().ticks < ROUNDS / 2);
	last_round(fd);
	finish();
}

static struct contd_bell *opened(uint32_t number)
{
	struct contd_bell *bell = NULL;
	int rc = contd_bell_open(job, number, &bell);

	CHECK(rc == 0);
	return bell;
}

/* Wait until the bell is armed; false: it is not for a long while. */
static bool armed(const struct contd_bell *bell)
{
	for (int i = 0; i < 20000; i++) {
		if (__atomic_load_n(bell->armed, __ATOMIC_SEQ_CST))
			return true;
		usleep(500);
	}
	return false;
}

/* Complete, and ring for it. Returns whether it rang. */
static int serve(struct contd_bell *bell)
{
	CHECK(armed(bell));
	__atomic_store_n(&shared[0], 1, __ATOMIC_SEQ_CST);
	return contd_bell_ring(bell);
}

static void serve_rounds(int fd)
{
	struct contd_bell *bell = NULL;

	while (hear(fd) == 'g') {
		bell = bell ? bell : opened(1);
		serve(bell);
	}
	contd_bell_close(bell);
}

/* -------------------------------------------------------------------------------------------------------- cases --- */

static void rung(void)
{
	struct child c = begin(waits);
	struct contd_bell *bell = NULL;
	int rang = 0;

	for (char what; (what = hear(c.fd)) == 'g';) {
		if (!bell)
			bell = opened(1);
		rang += serve(bell) == 1;
	}
	CHECK(rang > ROUNDS / 2);
	CHECK(contd_bell_ring(bell) >= 0);
	DISMISS(c);
	CHECK(contd_bell_ring(bell) == 0 || contd_bell_ring(bell) == -ESRCH);
	contd_bell_close(bell);
}

/* It is not attached, but may get the process's signals. */
static void *bystander(void *arg)
{
	while (!__atomic_load_n((int *)arg, __ATOMIC_SEQ_CST))
		usleep(1000);
	return NULL;
}

/* A ring hits a thread that cannot use it, while no thread computes: the next region arms the bell again. */
static void stray(void)
{
	uint32_t *word;
	struct contd_bell *bell;
	sigset_t set, before;
	pthread_t thread;
	int over = 0;

	start(1);
	word = &contd__page->armed.by.thread;
	CHECK(contd_thread_attach(NULL) == 0);
	CHECK(pthread_create(&thread, NULL, bystander, &over) == 0);
	pend();
	contd_compute_begin();
	contd_compute_end();
	CHECK(contd__load_seq(word) == (uint32_t)gettid());
	sigemptyset(&set);
	sigaddset(&set, contd__signals.signal_number);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, &before) == 0);
	bell = opened(1);
	contd__store(&contd__bell_no_thread_fds, 1); /* as before Linux 6.9 */
	CHECK(contd_bell_ring(bell) == 1);
	for (int i = 0; i < 5000 && !(contd__load_seq(&contd__tls.flags) & CONTD__TLS_REARM); i++)
		usleep(1000);
	CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	CHECK(contd__load_seq(word) == 0);
	contd_compute_begin();
	CHECK(contd__load_seq(word) == (uint32_t)gettid());
	__atomic_store_n(&shared[0], 1, __ATOMIC_SEQ_CST);
	CHECK(contd_bell_ring(bell) == 1);
	while (ran < 1)
		;
	contd_compute_end();
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	CHECK(pthread_join(thread, NULL) == 0);
	contd_bell_close(bell);
	finish();
}

/* The page is a file without a name, for its user only. */
static void nameless(void)
{
	char path[64], target[128];
	struct dirent *e;
	struct stat st;
	int found = 0;
	DIR *dir;

	for (int round = 0; round < 2; round++) {
		start(1);
		dir = opendir("/proc/self/fd");
		CHECK(dir != NULL);
		while ((e = readdir(dir)) != NULL) {
			ssize_t n;

			snprintf(path, sizeof(path), "/proc/self/fd/%.20s", e->d_name);
			n = readlink(path, target, sizeof(target) - 1);
			if (n < 0)
				continue;
			target[n] = 0;
			if (strncmp(target, "/memfd:contd", 12) != 0)
				continue;
			found++;
			CHECK(stat(path, &st) == 0);
			CHECK((st.st_mode & 07777) == 0600 && st.st_nlink == 0);
			CHECK(fcntl(atoi(e->d_name), F_GETFD) & FD_CLOEXEC);
			CHECK(ftruncate(atoi(e->d_name), 0) != 0); /* peers would meet SIGBUS */
		}
		closedir(dir);
		for (int i = 0; i < 2; i++) {
			dir = opendir(i ? "/dev/shm" : "/tmp");
			while (dir && (e = readdir(dir)) != NULL)
				CHECK(strstr(e->d_name, "contd-bell") == NULL);
			if (dir)
				closedir(dir);
		}
		finish();
	}
	CHECK(found == 2);
}

static void nobody(void)
{
	struct contd_bell *bell = NULL;
	char long_job[80];

	memset(long_job, 'x', sizeof(long_job));
	long_job[65] = 0;
	CHECK(contd_bell_open(job, 1, &bell) == -ENOENT && !bell);
	CHECK(contd_bell_open(NULL, 1, &bell) == -EINVAL);
	CHECK(contd_bell_open("", 1, &bell) == -EINVAL);
	CHECK(contd_bell_open(long_job, 1, &bell) == -EINVAL);
	CHECK(contd_bell_open(job, 1, NULL) == -EINVAL);
	CHECK(contd_bell_listen(job, 1) == -EPERM);
	contd_bell_close(NULL);
	start(0);
	CHECK(contd_bell_listen("", 1) == -EINVAL);
	CHECK(contd_bell_listen(long_job, 1) == -EINVAL);
	long_job[64] = 0;
	CHECK(contd_bell_listen(long_job, UINT32_MAX) == 0);
	bell = NULL;
	CHECK(contd_bell_open(long_job, UINT32_MAX, &bell) == 0); /* oneself */
	CHECK(contd_bell_ring(bell) == 0);
	contd_bell_close(bell);
	CHECK(contd_bell_open(long_job, UINT32_MAX - 1, &bell) == -ENOENT);
}

/* The name under which a process of that user's would listen with this number. */
static void take_name(unsigned user, unsigned number)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "contd/%u/%s/%u", user, job, number);
	CHECK(bind(s, (struct sockaddr *)&un,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un.sun_path + 1))) == 0);
	CHECK(listen(s, 8) == 0);
}

static void as_other_user(int fd)
{
	struct contd_bell *bell = NULL;

	CHECK(setgid(OUTSIDER) == 0 && setuid(OUTSIDER) == 0);
	/* Another user's names are others. */
	CHECK(contd_bell_open(job, 1, &bell) == -ENOENT);
	/* It takes a name of that user's. */
	take_name(0, 7);
	tell(fd, 'l');
	hear(fd);
}

static void other_user(void)
{
	struct contd_bell *bell = NULL;
	struct child c;

	if (geteuid() != 0) {
		printf("only root can be another user\n");
		exit(SKIPPED);
	}
	start(1);
	c = begin(as_other_user);
	CHECK(hear(c.fd) == 'l');
	CHECK(contd_bell_open(job, 7, &bell) == -EACCES && !bell);
	DISMISS(c);
}

static void listens(int fd)
{
	start(1);
	tell(fd, 'l');
	hear(fd);
}

static void stays_armed(int fd)
{
	start_attached();
	pend();
	contd_compute_begin();
	tell(fd, 'g'); /* a system call, no more */
	for (;;)
		;
}

/* A process that died, before it is found and after: no error but -ENOENT and -ESRCH, and no signal to any process. */
static void died(void)
{
	struct child c = begin(stays_armed);
	struct contd_bell *bell;
	int status;

	CHECK(hear(c.fd) == 'g');
	bell = opened(1);
	CHECK(armed(bell));
	kill(c.pid, SIGKILL);
	status = child_end(&c);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(contd_bell_ring(bell) == -ESRCH);
	CHECK(contd_bell_ring(bell) == 0); /* the arming was taken */
	contd_bell_close(bell);
	bell = NULL;
	CHECK(contd_bell_open(job, 1, &bell) == -ENOENT && !bell);
	/* Another one in its place. */
	c = begin(listens);
	CHECK(hear(c.fd) == 'l');
	bell = opened(1);
	CHECK(contd_bell_ring(bell) == 0);
	DISMISS(c);
	contd_bell_close(bell);
}

/* Dies between taking the arming and the signal. */
static void die_at(const char *name)
{
	if (strcmp(name, "bell_taken") == 0)
		_exit(42);
}

static void rings_and_dies(int fd)
{
	struct contd_bell *bell;

	hear(fd);
	bell = opened(1);
	contd__testpoint_hook = die_at;
	serve(bell);
}

static void ringer_died(void)
{
	struct child c = begin(rings_and_dies);
	struct contd_stats s;
	int status;

	start_attached();
	pend();
	tell(c.fd, 'g');
	compute_until(1); /* the tick */
	status = child_end(&c);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	s = stats();
	CHECK(s.rings == 0 && s.ticks > 0);
}

/* A process without contd that has the number of one that has ended: a ring for the old one would kill it. */
static pid_t with_number(pid_t number, int fd)
{
	pid_t set[1] = {number};
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)set, .set_tid_size = 1};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0) {
		char c;

		while (read(fd, &c, 1) < 0)
			;
		_exit(0);
	}
	return pid;
}

static void recycled(void)
{
	struct child c = begin(stays_armed);
	int pair[2], status, rc;
	struct contd_bell *bell;
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(hear(c.fd) == 'g');
	bell = opened(1);
	CHECK(armed(bell));
	kill(c.pid, SIGKILL);
	child_end(&c);
	pid = with_number(c.pid, pair[1]);
	if (pid != c.pid) {
		printf("cannot make a process with a given number (clone3: %s)\n", strerror(errno));
		exit(SKIPPED);
	}
	CHECK(__atomic_load_n(bell->armed, __ATOMIC_SEQ_CST));
	rc = contd_bell_ring(bell);
	CHECK(rc == -ESRCH);
	tell(pair[0], 'x');
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	contd_bell_close(bell);
}

/* The same process, another program: exec takes the handlers away. */
static void execs(int fd)
{
	char text[16];

	start_attached();
	pend();
	contd_compute_begin();
	contd_compute_end(); /* the bell stays armed */
	CHECK(contd__load_seq(&contd__page->armed.by.thread) != 0);
	CHECK(fcntl(fd, F_SETFD, 0) == 0);
	snprintf(text, sizeof(text), "%d", fd);
	execl("/proc/self/exe", "core", "after_exec", text, (char *)NULL);
	_exit(3);
}

static void other_program(void)
{
	struct child c = begin(execs);
	struct contd_bell *bell = NULL;

	/* Found before the exec, as soon as it listens. */
	for (int i = 0; i < 20000 && !bell; i++)
		if (contd_bell_open(job, 1, &bell))
			usleep(100);
	if (!bell) { /* too late; the name has gone with the exec */
		tell(c.fd, 'x');
		child_end(&c);
		printf("the other process was too quick\n");
		exit(SKIPPED);
	}
	CHECK(hear(c.fd) == 'n'); /* it is the new program */
	CHECK(__atomic_load_n(bell->armed, __ATOMIC_SEQ_CST));
	CHECK(contd_bell_ring(bell) == -ESRCH);
	contd_bell_close(bell);
	DISMISS(c);
}

/* A ring that is kept back until the exec. The new program lets it through: nothing may be left of it. */
static void execs_when_rung(int fd)
{
	char text[16];
	sigset_t ours, pending;

	sigemptyset(&ours);
	sigaddset(&ours, SIGRTMAX - 3);
	start_attached();
	pend();
	contd_compute_begin();
	contd_compute_end(); /* the bell stays armed */
	CHECK(contd__load_seq(&contd__page->armed.by.thread) != 0);
	CHECK(pthread_sigmask(SIG_BLOCK, &ours, NULL) == 0);
	tell(fd, 'a');
	CHECK(hear(fd) == 'r');
	CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGRTMAX - 3) == 1);
	CHECK(fcntl(fd, F_SETFD, 0) == 0);
	snprintf(text, sizeof(text), "%d", fd);
	execl("/proc/self/exe", "core", "after_exec", text, (char *)NULL);
	_exit(3);
}

static void rung_before_exec(void)
{
	struct child c = begin(execs_when_rung);
	struct contd_bell *bell;

	CHECK(hear(c.fd) == 'a');
	CHECK(contd_bell_open(job, 1, &bell) == 0);
	CHECK(contd_bell_ring(bell) == 1);
	tell(c.fd, 'r');
	CHECK(hear(c.fd) == 'n'); /* it is the new program */
	contd_bell_close(bell);
	DISMISS(c);
}

/* A name of this user's, held by a process that has no page: without contd, or of another version. */
static void squats(int fd)
{
	take_name((unsigned)geteuid(), 1);
	tell(fd, 'l');
	hear(fd);
	/* A page of a version to come. */
	{
		int page = memfd_create("contd-bell", MFD_CLOEXEC);
		uint64_t *at;

		CHECK(page >= 0 && ftruncate(page, 4096) == 0);
		at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
		CHECK(at != MAP_FAILED);
		at[8] = CONTD_PAGE_MAGIC + 1;
		((struct contd__page *)at)->pid = getpid();
		((struct contd__page *)at)->armed.any = ~0ull;
	}
	tell(fd, 'v');
	hear(fd);
}

static void versions(void)
{
	struct child c = begin(squats);
	struct contd_bell *bell = NULL;

	CHECK(hear(c.fd) == 'l');
	CHECK(contd_bell_open(job, 1, &bell) == -EPROTO && !bell);
	tell(c.fd, 'x');
	CHECK(hear(c.fd) == 'v');
	CHECK(contd_bell_open(job, 1, &bell) == -EPROTO && !bell);
	/* The name is taken. */
	start(0);
	CHECK(contd_bell_listen(job, 1) == -EADDRINUSE);
	CHECK(contd_bell_listen(job, 2) == 0);
	DISMISS(c);
}

/* A child of a listening process does not listen: not rung, not found, and it does not keep the name. */
static void forks(int fd)
{
	int pair[2];
	pid_t child;

	start_attached();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	child = fork();
	if (child == 0) {
		struct contd_bell *bell = NULL, *own;

		close(pair[0]);
		close(fd);
		CHECK(contd_bell_listen(job, 2) == -ECHILD);
		CHECK(contd_bell_open(job, 1, &bell) == 0); /* the parent's */
		own = bell;
		CHECK(contd_bell_ring(own) >= 0);
		tell(pair[1], 'c');
		hear(pair[1]); /* until the parent's end, in the midst of which it may still be found */
		for (int i = 0, rc = 0; i < 20000 && rc != -ENOENT; i++) {
			bell = NULL;
			rc = contd_bell_open(job, 1, &bell);
			if (rc == 0)
				contd_bell_close(bell);
			usleep(500);
			CHECK(i < 19999);
		}
		bell = own;
		CHECK(contd_bell_ring(bell) <= 0);
		_exit(0);
	}
	close(pair[1]);
	CHECK(hear(pair[0]) == 'c');
	compute_rounds(fd, ROUNDS);
	CHECK(stats().rings > 0);
	last_round(fd);
	/* The child lives a moment longer than this process. */
	CHECK(write(fd, &child, sizeof(child)) == sizeof(child));
	_exit(0);
}

static void forked(void)
{
	struct child c = begin(forks);
	pid_t orphan = 0;

	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	serve_rounds(c.fd);
	tell(c.fd, 'x');
	CHECK(read(c.fd, &orphan, sizeof(orphan)) == sizeof(orphan));
	ENDS_WELL(c);
	if (orphan) {
		int status;

		CHECK(waitpid(orphan, &status, 0) == orphan);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static void names(void)
{
	struct contd_bell *bell = NULL, *old;
	struct child c;

	start(1);
	CHECK(contd_bell_listen(job, 1) == 0); /* again */
	CHECK(contd_bell_listen(job, 2) == -EALREADY);
	CHECK(contd_bell_listen("other", 1) == -EALREADY);
	old = opened(1);
	finish();
	CHECK(contd_bell_open(job, 1, &bell) == -ENOENT);
	CHECK(contd_bell_ring(old) <= 0);
	/* The name is free for another process now. */
	c = begin(listens);
	CHECK(hear(c.fd) == 'l');
	source.where = WHERE_REGION | WHERE_THREAD;
	start(0);
	CHECK(contd_bell_listen(job, 1) == -EADDRINUSE);
	DISMISS(c);
	CHECK(contd_bell_listen(job, 1) == 0);
	bell = opened(1);
	CHECK(contd_bell_ring(bell) == 0 && contd_bell_ring(old) <= 0);
	contd_bell_close(old);
	contd_bell_close(bell);
	finish();
	/* The setting. */
	setenv("CONTD_BELL", "0", 1);
	start(0);
	CHECK(contd_bell_listen(job, 1) == -EOPNOTSUPP);
}

/* A process is found however often it was looked for before. */
static void many_openings(int fd)
{
	start_attached();
	compute_rounds(fd, 100);
	last_round(fd);
}

static void many_opened(void)
{
	struct child c = begin(many_openings);
	unsigned opens = 0;

	while (hear(c.fd) == 'g') {
		struct contd_bell *bell;

		for (int i = 0; i < 100; i++, opens++)
			contd_bell_close(opened(1));
		bell = opened(1);
		serve(bell);
		contd_bell_close(bell);
	}
	CHECK(opens == 10000);
	DISMISS(c);
}

/* So many have looked for it that a handler which took them all out of the queue would be at it for milliseconds. */
static void drained_in_parts(void)
{
	enum { OPENED = 300, PART = 8 }; /* more than fit into a microsecond */
	struct contd_config brief = {.size = sizeof(brief), .scan_ns = 1000};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct pollfd client[OPENED];
	socklen_t bytes;
	int gone = 0, before, calls = 0;

	start_attached();
	CHECK(contd_configure(&brief) == 0);
	CHECK(contd_bell_listen(job, 1) == 0);
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "contd/%u/%s/1", (unsigned)geteuid(), job);
	bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un.sun_path + 1));
	for (int i = 0; i < OPENED; i++) {
		client[i] = (struct pollfd){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
		CHECK(client[i].fd >= 0 && connect(client[i].fd, (struct sockaddr *)&un, bytes) == 0);
		contd__add(&contd__page->opened, 1);
	}
	do {
		before = gone;
		contd__store(&contd__me->inside, 1);
		contd__bell_drain_sig();
		contd__store(&contd__me->inside, 0);
		gone = 0;
		CHECK(poll(client, OPENED, 0) >= 0);
		for (int i = 0; i < OPENED; i++)
			gone += client[i].revents != 0;
		CHECK(gone - before <= PART);
	} while (gone > before && ++calls);
	/* It begins when there are 64. */
	CHECK(gone > OPENED - 64);
	CHECK(calls >= (OPENED - 64) / PART);
	for (int i = 0; i < OPENED; i++)
		close(client[i].fd);
	finish();
}

/* Many who ring for one. */
static void rings_along(int fd)
{
	struct contd_bell *bell;

	hear(fd);
	bell = opened(1);
	tell(fd, 'o');
	while (hear(fd) == 'r')
		contd_bell_ring(bell);
}

static void many_peers(void)
{
	enum { PEERS = 24 };
	struct child c[PEERS];

	for (int i = 0; i < PEERS; i++)
		c[i] = begin(rings_along);
	start_attached();
	for (int i = 0; i < PEERS; i++) {
		tell(c[i].fd, 'g');
		CHECK(hear(c[i].fd) == 'o');
	}
	for (int round = 0; round < ROUNDS; round++) {
		pend();
		__atomic_store_n(&shared[0], 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < PEERS; i++)
			tell(c[i].fd, 'r');
		compute_until(round + 1);
	}
	/* One ring at most for each arming, by all peers together. */
	CHECK(stats().rings <= (uint64_t)ROUNDS * PEERS);
	for (int i = 0; i < PEERS; i++)
		DISMISS(c[i]);
}

/* ------------------------------------------------------------------------------------------------ other threads --- */

static volatile int leave_region;
static uint32_t computing;

static void *computes(void *arg)
{
	(void)arg;
	CHECK(contd_thread_attach(NULL) == 0);
	contd_compute_begin();
	__atomic_store_n(&computing, 1, __ATOMIC_SEQ_CST);
	while (!leave_region && ran < ROUNDS)
		;
	contd_compute_end();
	__atomic_store_n(&computing, 0, __ATOMIC_SEQ_CST);
	if (leave_region)
		pause(); /* with the bell still armed */
	CHECK(contd_thread_detach() == 0);
	return NULL;
}

static void on_a_thread(int fd)
{
	pthread_t thread;

	start(1);
	again_fd = fd;
	again_until = ROUNDS;
	pend();
	CHECK(pthread_create(&thread, NULL, computes, NULL) == 0);
	while (!__atomic_load_n(&computing, __ATOMIC_SEQ_CST))
		usleep(100);
	tell(fd, 'g');
	pthread_join(thread, NULL);
	CHECK(stats().rings > 0 || contd__bell_no_thread_fds);
	CHECK(stats().notifications > 0 || !contd__bell_no_thread_fds);
	CHECK(stats().ticks < ROUNDS);
	last_round(fd);
}

static void ring_on_a_thread(void)
{
	struct child c = begin(on_a_thread);

	serve_rounds(c.fd);
	DISMISS(c);
}

static void thread(void)
{
	ring_on_a_thread();
}

/* As on a kernel that can't signal single threads by a descriptor: the main thread gets the ring, and hands it on. */
static void process(void)
{
	contd__bell_no_thread_fds = 1;
	ring_on_a_thread();
}

/* The thread that armed has left its region; another one computes. */
static void left_region(int fd)
{
	pthread_t thread;

	start(1);
	pend();
	CHECK(pthread_create(&thread, NULL, computes, NULL) == 0);
	while (!__atomic_load_n(&computing, __ATOMIC_SEQ_CST))
		usleep(100);
	CHECK(contd__load_seq(&contd__page->armed.by.thread) != 0);
	leave_region = 1;
	while (__atomic_load_n(&computing, __ATOMIC_SEQ_CST))
		usleep(100);
	CHECK(contd_thread_attach(NULL) == 0);
	contd_compute_begin();
	tell(fd, 'g');
	while (ran < 1)
		;
	contd_compute_end();
	CHECK(stats().rings > 0);
	tell(fd, stats().ticks ? 't' : 'e');
	hear(fd);
	_exit(0);
}

static void handed_on(void)
{
	struct child c = begin(left_region);
	struct contd_bell *bell;

	CHECK(hear(c.fd) == 'g');
	bell = opened(1);
	serve(bell);
	CHECK(hear(c.fd) != 0);
	contd_bell_close(bell);
	DISMISS(c);
}

/* --------------------------------------------------------------------------------------------------- the daemon --- */

static void daemon_waits(int fd)
{
	source.where |= WHERE_DAEMON;
	start(1);
	for (int i = 0; i < ROUNDS; i++) {
		pend();
		tell(fd, 'g');
		while (ran <= i)
			usleep(100);
	}
	CHECK(stats().run_daemon > 0);
	last_round(fd);
}

static void ring_daemon(void)
{
	struct child c = begin(daemon_waits);
	struct contd_bell *bell = NULL;
	int rang = 0;

	while (hear(c.fd) == 'g') {
		bell = bell ? bell : opened(1);
		usleep(1000); /* it may look right now; what it finds then needs no ring */
		__atomic_store_n(&shared[0], 1, __ATOMIC_SEQ_CST);
		rang += contd_bell_ring(bell) == 1;
	}
	CHECK(rang > 0);
	contd_bell_close(bell);
	DISMISS(c);
}

static void daemon_naps(void)
{
	agent = CONTD_AGENT_TICK;
	ring_daemon();
}

static int sleep_on_pipe(int *fds, int room, uint64_t *ns)
{
	static int pipes[2] = {-1, -1};

	(void)ns;
	if (pipes[0] < 0 && pipe2(pipes, O_CLOEXEC))
		return 0;
	if (room < 1)
		return 0;
	fds[0] = pipes[0];
	return 1;
}

static void daemon_polls(void)
{
	agent = CONTD_AGENT_BLOCK;
	source.sleep_on = sleep_on_pipe;
	ring_daemon();
}

/* --------------------------------------------------------------------------------------------------------- main --- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"rung", rung},
	{"stray", stray},
	{"nameless", nameless},
	{"nobody", nobody},
	{"other_user", other_user},
	{"died", died},
	{"ringer_died", ringer_died},
	{"recycled", recycled},
	{"other_program", other_program},
	{"rung_before_exec", rung_before_exec},
	{"versions", versions},
	{"forked", forked},
	{"names", names},
	{"many_opened", many_opened},
	{"drained_in_parts", drained_in_parts},
	{"many_peers", many_peers},
	{"thread", thread},
	{"process", process},
	{"handed_on", handed_on},
	{"daemon_naps", daemon_naps},
	{"daemon_polls", daemon_polls},
};

static void hung(int signo)
{
	(void)signo;
	(void)!write(STDERR_FILENO, "HUNG\n", 5);
	_exit(98);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "after_exec") == 0) {
		sigset_t ours;

		this_case = argv[1];
		sigemptyset(&ours);
		sigaddset(&ours, SIGRTMAX - 3);
		CHECK(pthread_sigmask(SIG_UNBLOCK, &ours, NULL) == 0);
		tell(atoi(argv[2]), 'n');
		return hear(atoi(argv[2])) == 'x' ? 0 : 4;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, hung);
	alarm(80);
	snprintf(job, sizeof(job), "test.%d", (int)getpid());
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2)
			puts(cases[i].name);
		else if (strcmp(argv[1], cases[i].name) == 0) {
			this_case = argv[1];
			cases[i].run();
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
