/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines on stderr: how each begins, that nothing is cut, and that a message is one write. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/memory.h"
#include "base/say.h"

TestSuite(say, .timeout = WATCHDOG);

static int ends[2], saved_stderr;

/* Each write to stderr is one message of this socket. */
static void listen_begin(void)
{
	int size = 1 << 20;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	saved_stderr = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
}

static void listen_end(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(ends[1]);
	close(saved_stderr);
}

/* The next write, or "". */
static const char *heard(void)
{
	static char text[1 << 16];
	ssize_t n = recv(ends[0], text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static const char *beginning(pid_t pid, int rank)
{
	static char text[256];
	char host[128] = "";

	gethostname(host, sizeof(host) - 1);
	if (rank < 0)
		snprintf(text, sizeof(text), "contd: [%s:%d] ", host, (int)pid);
	else
		snprintf(text, sizeof(text), "contd: [%s:%d rank %d] ", host, (int)pid, rank);
	return text;
}

static void must_hear(const char *text, pid_t pid, int rank)
{
	const char *got = heard(), *begin = beginning(pid, rank);
	size_t n = strlen(begin);

	cr_assert(strncmp(got, begin, n) == 0 && strcmp(got + n, text) == 0, "\"%s\", and not \"%s%s\"", got, begin,
		  text);
}

Test(say, begins_with_host_process_and_rank)
{
	listen_begin();
	errno = ERANGE;
	contd__say("%d of %s", 3, "four");
	cr_assert_eq(errno, ERANGE);
	contd__say_rank(0);
	contd__say("first");
	contd__say_rank(123456789);
	contd__say_sig("other", 3);
	cr_assert_eq(errno, ERANGE);
	contd__say_text("100 %s");
	listen_end();
	must_hear("3 of four\n", getpid(), -1);
	must_hear("first\n", getpid(), 0);
	must_hear("oth\n", getpid(), 123456789);
	must_hear("100 %s\n", getpid(), 123456789);
	cr_assert_str_eq(heard(), "");
}

Test(say, a_child_has_its_own_number)
{
	pid_t child;

	contd__say_rank(7);
	listen_begin();
	child = fork();
	if (child == 0) {
		contd__say("child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	contd__say("parent");
	listen_end();
	must_hear("child\n", child, 7);
	must_hear("parent\n", getpid(), 7);
}

Test(say, lines_of_a_message_begin_alike_in_one_write)
{
	char expected[1024];

	listen_begin();
	contd__say("one\n  two\n\nfour");
	listen_end();
	snprintf(expected, sizeof(expected), "one\n%s", beginning(getpid(), -1));
	strcat(expected, "  two\n");
	strcat(expected, beginning(getpid(), -1));
	strcat(expected, "\n");
	strcat(expected, beginning(getpid(), -1));
	strcat(expected, "four\n");
	must_hear(expected, getpid(), -1);
	cr_assert_str_eq(heard(), "");
}

Test(say, nothing_is_cut)
{
	static const int lengths[] = {0, 1, 1022, 1023, 1024, 1025, 20000};
	static char text[20002];

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(text, 'x', sizeof(text));
		text[lengths[i]] = '\0';
		listen_begin();
		contd__say("%s", text);
		listen_end();
		text[lengths[i]] = '\n';
		text[lengths[i] + 1] = '\0';
		must_hear(text, getpid(), -1);
	}
}

Test(say, without_memory)
{
	static char text[3000];
	const char *got;

	memset(text, 'x', sizeof(text) - 1);
	listen_begin();
	contd__alloc_budget = 0;
	contd__say("one\ntwo");
	contd__say("%s", text);
	contd__alloc_budget = -1;
	listen_end();
	must_hear("one\n", getpid(), -1);
	must_hear("two\n", getpid(), -1);
	got = heard();
	cr_assert_gt(strspn(strchr(got, ']') + 2, "x"), 500);
	must_hear("(the end of this message is missing: out of memory)\n", getpid(), -1);
}

Test(say, without_a_place_for_it)
{
	int before = dup(STDERR_FILENO);

	close(STDERR_FILENO);
	errno = EDOM;
	contd__say("nobody hears this");
	cr_assert_eq(errno, EDOM);
	dup2(before, STDERR_FILENO);
}

Test(say, texts_of_errors_name_the_call)
{
	static char names[1000][32];
	static const char *texts[1000];
	const char *first;

	contd__fail(-EINVAL, "contd_group_create: out of memory");
	cr_assert_str_eq(contd_error_text(), "contd_group_create: out of memory");
	contd__fail_in("MPI_Continue_init", -EINVAL);
	cr_assert_str_eq(contd_error_text(), "MPI_Continue_init: out of memory");
	first = contd_error_text();
	contd__fail(-EINVAL, "name: not a call");
	cr_assert_eq(contd__fail_in("contd_init", 0), 0);
	cr_assert_str_eq(contd_error_text(), "name: not a call", "no error, no name");
	contd__fail_in("contd_init", -EINVAL);
	cr_assert_str_eq(contd_error_text(), "contd_init: name: not a call");
	cr_assert_str_eq(first, "MPI_Continue_init: out of memory", "it stays");
	/* Many, then without memory: those that were put together before stay, others are without the name. */
	for (int i = 0; i < 1000; i++) {
		snprintf(names[i], sizeof(names[i]), "contd_call_%d", i);
		contd__fail_in(names[i], -EINVAL);
		texts[i] = contd_error_text();
		cr_assert(strncmp(texts[i], names[i], strlen(names[i])) == 0, "%s", texts[i]);
		cr_assert_str_eq(texts[i] + strlen(names[i]), ": name: not a call");
	}
	contd__alloc_budget = 0;
	contd__fail_in("contd_fini", -EINVAL);
	cr_assert_str_eq(contd_error_text(), "name: not a call", "without memory");
	for (int i = 0; i < 1000; i++) {
		contd__fail_in(names[i], -EINVAL);
		cr_assert_eq(contd_error_text(), texts[i]);
	}
	contd__alloc_budget = -1;
	contd__fail_in("contd_fini", -EINVAL);
	cr_assert_str_eq(contd_error_text(), "contd_fini: name: not a call");
}
