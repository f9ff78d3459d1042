/* SPDX-License-Identifier: BSD-3-Clause */
/* contd_dump(): what it says of groups, continuations and threads, and that it waits for no lock. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "dispatch/group.h"
#include "dump/root.h"
#include "unit.h"

TestSuite(dump, .timeout = WATCHDOG);

static char said[1 << 20];

/* The text of a dump now. */
static const char *dumped(void)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	ssize_t n;

	must(contd_dump(fd));
	n = pread(fd, said, sizeof(said) - 1, 0);
	cr_assert_gt(n, 0);
	said[n] = 0;
	close(fd);
	return said;
}

/* The line that has all of these texts; NULL: none has. */
static const char *line(const char *a, const char *b, const char *c)
{
	static char one[2000];

	for (const char *at = said; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t n = strcspn(at, "\n");

		if (n >= sizeof(one))
			continue;
		memcpy(one, at, n);
		one[n] = 0;
		if (strstr(one, a) && strstr(one, b) && strstr(one, c))
			return one;
	}
	return NULL;
}

#define says(a, b, c) cr_assert(line(a, b, c), "no line has \"%s\", \"%s\" and \"%s\":\n%s", a, b, c, said)
#define says_not(a, b, c) cr_assert_not(line(a, b, c), "a line has \"%s\", \"%s\" and \"%s\":\n%s", a, b, c, said)

static void on_event(int status, void *data)
{
	(void)status, (void)data;
}

static void on_word(int status, void *data)
{
	(void)status, (void)data;
}

static const char *in_text(const char *format, const void *pointer)
{
	static char text[4][64];
	static unsigned turn;
	char *to = text[turn++ % 4];

	snprintf(to, sizeof(text[0]), format, pointer);
	return to;
}

Test(dump, tells_what_continuations_wait_for)
{
	struct contd_event e[2] = {CONTD_EVENT_INIT, CONTD_EVENT_INIT}, *both[] = {&e[0], &e[1]};
	static uint64_t memory = 3;
	struct contd_word word = {&memory, 0xff, 5, CONTD_WORD_GE};
	struct contd_group *g, *polled;

	must(contd_init(NULL));
	g = group_new(CONTD_THREAD_ANY, -1);
	polled = group_new(CONTD_POLL_ONLY, 7);
	must(contd_event_continue(2, both, on_event, &memory, g, NULL));
	must(contd_word_continue(&word, on_word, NULL, polled, NULL));
	must(contd_group_continue(polled, on_event, NULL, g, NULL));
	dumped();
	says("group", in_text("address %p", g), "outstanding 2, pending 2, ready 0, running 0, flags thread_any");
	says("group", in_text("address %p", polled), "outstanding 1, pending 1, ready 0, running 0, flags poll_only");
	says("group", in_text("address %p", polled), "max poll 7");
	says("state pending", "(on_event)", "events left 2, waits for event");
	says(in_text("data %p", &memory), "(on_event)", in_text("event %p", &e[1]));
	says("(on_word)", in_text("word %p", &memory), "mask 0xff, condition >=, value 5, value now 3");
	says("(on_event)", "waits for group", in_text("awaited %p", polled));
	says("source", "memory words", "pending 1");
	says("process", "users 1", "contd 0.");
	must(contd_event_complete(&e[0], 0));
	dumped();
	says("(on_event)", "events left 1", "waits for event");
	must(contd_event_complete(&e[1], 0));
	dumped();
	says("(on_event)", "state ready", in_text("data %p", &memory));
	says("(on_event)", "state ready", "ready ");
	says("group", in_text("address %p", g), "pending 1, ready 1");
	memory = 5;
	must(contd_group_wait(polled, -1));
	must(contd_group_wait(g, -1));
	dumped();
	says("group", in_text("address %p", g), "outstanding 0");
	says_not("continuation", "", "");
	must(contd_fini());
}

static void dumps(int status, void *data)
{
	(void)status, (void)data;
	dumped();
}

Test(dump, tells_what_threads_do)
{
	struct contd_config config = {.size = sizeof(config), .watchdog_ns = 1000000000};
	struct contd_event e = CONTD_EVENT_INIT, *one = &e;
	struct contd_group *g;

	must(contd_init(&config));
	g = group_new(0, -1);
	must(contd_thread_attach(NULL));
	contd_guard_begin();
	dumped();
	says("thread", in_text("tid %ld", (void *)(intptr_t)gettid()), "attached, writes this dump, guards 1");
	contd_guard_end();
	contd_compute_begin();
	dumped();
	contd_compute_end();
	says("thread", "does computes in a region", "regions 1");
	says_not("thread", "guards", "");
	must(contd_event_continue(1, &one, dumps, NULL, g, NULL));
	must(contd_event_complete(&e, 0));
	must(contd_group_wait(g, -1));
	says("thread", "does runs a continuation", "");
	says("runs", "(dumps)", in_text("group %p", g));
	says("runs", "since", "s, slot");
	says("state running", "(dumps)", "");
	must(contd_thread_detach());
	must(contd_fini());
}

/* 1000 of a group are shown, and the text says so. */
Test(dump, has_a_limit_that_it_tells)
{
	enum { MANY = 10000 };
	struct contd_event e = CONTD_EVENT_INIT, *one = &e;
	static struct contd_event events[MANY];
	struct contd_group *g;
	unsigned lines = 0;

	must(contd_init(NULL));
	g = group_new(0, -1);
	for (unsigned i = 0; i < MANY; i++) {
		one = &events[i];
		must(contd_event_continue(1, &one, on_event, NULL, g, NULL));
	}
	dumped();
	for (const char *at = said; (at = strstr(at, "\n  continuation:")) != NULL; at++)
		lines++;
	cr_assert_eq(lines, 1000);
	says("group", "outstanding 10000, pending 10000", "not shown 9000, limit 1000");
	cr_assert_eq(contd_fini(), MANY);
}

/* One after another, while a thread that holds the lock does not go on. */
static pthread_mutex_t *held;
static uint32_t holds, let_go;

static void *hold(void *unused)
{
	(void)unused;
	pthread_mutex_lock(held);
	__atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&let_go, __ATOMIC_SEQ_CST))
		usleep(1000);
	pthread_mutex_unlock(held);
	return NULL;
}

Test(dump, waits_for_no_thread_that_holds_the_lock_of_the_groups)
{
	struct contd_group *g;
	pthread_t thread;

	must(contd_init(NULL));
	g = group_new(0, -1);
	held = &contd__groups.lock;
	cr_assert_eq(pthread_create(&thread, NULL, hold, NULL), 0);
	while (!__atomic_load_n(&holds, __ATOMIC_SEQ_CST))
		usleep(1000);
	dumped();
	says("group", in_text("address %p", g), "outstanding 0");
	__atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	must(contd_fini());
}

/* Groups come and go, and so do threads and continuations. No read is a fault, and each dump is whole. */
static uint32_t over;

static void *makes(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
		struct contd_event e[64] = {{0}};
		struct contd_group *g = group_new(0, -1);

		for (unsigned i = 0; i < 64; i++) {
			struct contd_event *one = &e[i];

			must(contd_event_continue(1, &one, on_event, NULL, g, NULL));
		}
		for (unsigned i = 0; i < 64; i++)
			must(contd_event_complete(&e[i], 0));
		must(contd_group_wait(g, -1));
		must(contd_group_destroy(g));
	}
	return NULL;
}

static void *comes(void *unused)
{
	struct contd_group *g = group_new(0, -1);

	must(contd_group_destroy(g));
	return unused;
}

Test(dump, beside_threads_that_change_everything)
{
	pthread_t maker[2], comer;

	must(contd_init(NULL));
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&maker[i], NULL, makes, NULL), 0);
	for (unsigned i = 0; i < 300; i++) {
		cr_assert_eq(pthread_create(&comer, NULL, comes, NULL), 0);
		dumped();
		says("process", "users 1", "");
		says_not("problem", "group", "");
		pthread_join(comer, NULL);
	}
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(maker[i], NULL);
	/* The dumps' references are given back: nothing is left. */
	must(contd_fini());
}

/* A dump that several processes may write to one place has whole lines in each write(2): here each is a packet. */
Test(dump, writes_whole_lines)
{
	enum { MANY = 400 };
	static struct contd_event events[MANY];
	char packet[8192];
	struct contd_group *g;
	unsigned packets = 0;
	ssize_t n;
	int pair[2];

	must(contd_init(NULL));
	g = group_new(0, -1);
	for (unsigned i = 0; i < MANY; i++) {
		struct contd_event *one = &events[i];

		must(contd_event_continue(1, &one, on_event, NULL, g, NULL));
	}
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	must(contd_dump(pair[0]));
	while ((n = read(pair[1], packet, sizeof(packet))) > 0) {
		packets++;
		cr_assert_eq(packet[n - 1], '\n', "packet %u ends with \"%.*s\"", packets, 20, packet + n - 20);
	}
	cr_assert_gt(packets, 5);
	close(pair[0]);
	close(pair[1]);
	cr_assert_eq(contd_fini(), MANY);
}

/* The file when it has a whole dump; NULL: after ten seconds it has none. */
static const char *written(const char *path)
{
	for (unsigned i = 0; i < 1000; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, said, sizeof(said) - 1);

		if (fd >= 0)
			close(fd);
		said[n > 0 ? n : 0] = 0;
		if (strstr(said, "\nthread: ") && said[n - 1] == '\n')
			return said;
		usleep(10000);
	}
	return NULL;
}

static char path[64];

/* Asks for a dump inside a callback that does not return before it is there. */
static void asks(int status, void *data)
{
	(void)status, (void)data;
	kill(getpid(), SIGUSR2);
	cr_assert_not_null(written(path));
}

Test(dump, a_signal_asks_for)
{
	struct contd_config config = {.size = sizeof(config), .dump_signal = "USR2", .dump_file = "/tmp/contd-dump-%p"};
	struct contd_event e = CONTD_EVENT_INIT, *one = &e;
	struct contd_group *g;

	snprintf(path, sizeof(path), "/tmp/contd-dump-%d", (int)getpid());
	unlink(path);
	/* It can be begun again: the handler is contd's own then. */
	for (unsigned i = 0; i < 2; i++) {
		must(contd_init(&config));
		g = group_new(0, -1);
		contd_event_init(&e);
		must(contd_event_continue(1, &one, asks, NULL, g, NULL));
		must(contd_event_complete(&e, 0));
		must(contd_group_wait(g, -1));
		says("state running", "(asks)", "");
		says("thread", "does runs a continuation", "");
		says("settings", "dump signal USR2", "dump file /tmp/contd-dump-%p");
		unlink(path);
		must(contd_fini());
	}
	/* Now that contd has ended, the handler does nothing. */
	kill(getpid(), SIGUSR2);
	usleep(20000);
	cr_assert_eq(access(path, F_OK), -1);
}

/* One that came before contd_fini() is not lost. */
Test(dump, a_signal_just_before_the_end)
{
	struct contd_config config = {.size = sizeof(config), .dump_signal = "USR2", .dump_file = "/tmp/contd-dump-%p"};

	snprintf(path, sizeof(path), "/tmp/contd-dump-%d", (int)getpid());
	for (unsigned i = 0; i < 10; i++) {
		struct stat st;

		unlink(path);
		must(contd_init(&config));
		kill(getpid(), SIGUSR2);
		must(contd_fini());
		cr_assert_eq(stat(path, &st), 0, "no dump at turn %u", i);
		cr_assert_gt(st.st_size, 0);
	}
	unlink(path);
}

/* A FIFO: nobody reads it; or somebody has it open and does not read; or reads slowly. */
static void *reads_slowly(void *fdp)
{
	size_t have = 0;
	ssize_t n;

	/* Before the writer comes it is at the end, too. */
	while ((n = read(*(int *)fdp, said + have, 512)) != 0 || !have) {
		if (n > 0)
			have += (size_t)n;
		said[have] = 0;
		usleep(100);
	}
	return NULL;
}

static void to_fifo(int reader, bool reads)
{
	struct contd_config config = {.size = sizeof(config), .dump_signal = "USR2", .dump_file = path};
	enum { MANY = 200 };
	static struct contd_event events[MANY];
	struct contd_group *g;
	pthread_t thread;

	memset(events, 0, sizeof(events));
	must(contd_init(&config));
	g = group_new(0, -1);
	for (unsigned i = 0; i < MANY; i++) {
		struct contd_event *one = &events[i];

		must(contd_event_continue(1, &one, on_event, NULL, g, NULL));
	}
	if (reader >= 0)
		cr_assert_geq(fcntl(reader, F_SETPIPE_SZ, 4096), 4096);
	if (reads)
		cr_assert_eq(pthread_create(&thread, NULL, reads_slowly, &reader), 0);
	kill(getpid(), SIGUSR2);
	cr_assert_eq(contd_fini(), MANY);
	if (reads) {
		pthread_join(thread, NULL);
		says("thread", "", "");
		says("group", "outstanding 200", "");
	}
}

/* What contd has said on standard error. */
static const char *errors(int fd)
{
	ssize_t n = pread(fd, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = 0;
	return said;
}

Test(dump, to_a_fifo)
{
	int reader, error = memfd_create("errors", MFD_CLOEXEC), waiting = 0;

	cr_assert_eq(dup2(error, 2), 2);

	snprintf(path, sizeof(path), "/tmp/contd-dump-%d", (int)getpid());
	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	to_fifo(-1, false);
	cr_assert(strstr(errors(error), "cannot be written to /tmp/contd-dump-"), "%s", said);
	cr_assert(strstr(said, "No such device or address"), "%s", said);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cr_assert_geq(reader, 0);
	to_fifo(reader, false);
	cr_assert(strstr(errors(error), "Resource temporarily unavailable"), "%s", said);
	cr_assert_eq(ioctl(reader, FIONREAD, &waiting), 0);
	cr_assert_gt(waiting, 0);
	close(reader);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	to_fifo(reader, true);
	close(reader);
	unlink(path);
}

/* The kernel has no memory of a thread that has ended, and the number of the process is that of the first one. */
static void *after_main(void *main_thread)
{
	char stat[64], text[64] = "";
	int fd;

	pthread_join(*(pthread_t *)main_thread, NULL);
	snprintf(stat, sizeof(stat), "/proc/self/task/%d/stat", (int)getpid());
	while (!strstr(text, ") Z")) {
		fd = open(stat, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
			_exit(2);
		close(fd);
	}
	fd = memfd_create("dump", MFD_CLOEXEC);
	if (contd_dump(fd) || pread(fd, said, sizeof(said) - 1, 0) <= 0)
		_exit(3);
	_exit(strstr(said, "(on_event)") ? 0 : 4);
}

Test(dump, when_the_main_thread_has_ended)
{
	static struct contd_event e = CONTD_EVENT_INIT, *one = &e;
	static pthread_t self, thread;
	int status = -1;
	pid_t child;

#ifdef __SANITIZE_THREAD__
	cr_skip_test("ThreadSanitizer allows no thread in a child of Criterion's process");
#endif
	child = fork();
	if (!child) {
		self = pthread_self();
		if (contd_init(NULL) || contd_event_continue(1, &one, on_event, NULL, group_new(0, -1), NULL) ||
		    pthread_create(&thread, NULL, after_main, &self))
			_exit(1);
		pthread_exit(NULL);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%x", status);
}

/* As the system's smallest. */
static void *on_little(void *unused)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)unused;
	must(contd_dump(fd));
	close(fd);
	return NULL;
}

Test(dump, on_a_small_stack)
{
	struct contd_event e = CONTD_EVENT_INIT, *one = &e;
	pthread_attr_t attr;
	pthread_t thread;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
	cr_skip_test("such code needs more stack");
#endif
	must(contd_init(NULL));
	must(contd_event_continue(1, &one, on_event, NULL, group_new(0, -1), NULL));
	pthread_attr_init(&attr);
	cr_assert_eq(pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN), 0);
	cr_assert_eq(pthread_create(&thread, &attr, on_little, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	cr_assert_eq(contd_fini(), 1);
}

static void theirs(int number)
{
	(void)number;
}

Test(dump, its_signal_is_not_taken_from_the_program)
{
	struct contd_config config = {.size = sizeof(config), .dump_signal = "USR2"};

	char own[16];

	snprintf(own, sizeof(own), "%d", SIGRTMAX - 3);
	setenv("CONTD_DUMP_SIGNAL", own, 1);
	must_fail(contd_init(NULL), EINVAL);
	cr_assert(strstr(contd_error_text(), "(CONTD_SIGNAL)"), "%s", contd_error_text());
	unsetenv("CONTD_DUMP_SIGNAL");
	setenv("CONTD_DUMP_FILE", "/dev/null", 1);
	must_fail(contd_init(NULL), EINVAL);
	cr_assert(strstr(contd_error_text(), "CONTD_DUMP_SIGNAL"), "%s", contd_error_text());
	unsetenv("CONTD_DUMP_FILE");
	signal(SIGUSR2, theirs);
	must_fail(contd_init(&config), EBUSY);
	cr_assert(strstr(contd_error_text(), "CONTD_DUMP_SIGNAL"), "%s", contd_error_text());
	signal(SIGUSR2, SIG_IGN);
	must_fail(contd_init(&config), EBUSY);
	signal(SIGUSR2, SIG_DFL);
	must(contd_init(&config));
	config.dump_signal = "USR1";
	must_fail(contd_configure(&config), EBUSY);
	config.dump_signal = "USR2";
	must(contd_configure(&config));
	must(contd_fini());
}

Test(dump, refuses)
{
	must_fail(contd_dump(1), EPERM);
	must(contd_init(NULL));
	must_fail(contd_dump(-1), EBADF);
	contd__alloc_budget = 0;
	must_fail(contd_dump(1), ENOMEM);
	contd__alloc_budget = -1;
	group_new(0, -1);
	contd__alloc_budget = 1; /* not the list of groups */
	must_fail(contd_dump(1), ENOMEM);
	contd__alloc_budget = -1;
	must(contd_fini());
}
