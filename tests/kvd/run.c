/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kvd and its clients as processes: kvd_run CASE PROVIDER KVD KV, with + for the semicolon in a provider's name.
 * Nothing waits by the clock: the server says by sd_notify when it is ready, and what takes a while is asked for until
 * it is so.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

#define LONG_MS 60000 /* nothing is expected to last so long */
#define ARGS 24

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			exit(1); \
		} \
	} while (0)

static const char *provider, *kvd_path, *kv_path;
static char folder[64], socket_name[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
static int notified = -1;
static int server_net = -1, client_net = -1; /* namespaces, or -1: this one */

static void skip(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	exit(77);
}

static void nap(void)
{
	nanosleep(&(struct timespec){0, 10000000}, NULL);
}

/* ---------------------------------------------------------------------------------------------------- processes --- */

static void clean(void)
{
	char path[128];

	if (!folder[0])
		return;
	snprintf(path, sizeof(path), "%s/notify", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/kvd.conf", folder);
	unlink(path);
	rmdir(folder);
}

static pid_t run(char *const argv[], int net, int out)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (net >= 0 && setns(net, CLONE_NEWNET))
		_exit(126);
	if (out >= 0)
		dup2(out, 1);
	execv(argv[0], argv);
	_exit(127);
}

/* How it ended: the exit status, or minus the signal. */
static int ended(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void open_notify(bool abstract)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd;

	if (notified >= 0)
		close(notified);
	if (abstract)
		snprintf(socket_name, sizeof(socket_name), "@kvd-test-%d", getpid());
	else
		snprintf(socket_name, sizeof(socket_name), "%s/notify", folder);
	strcpy(at.sun_path, socket_name);
	if (abstract)
		at.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 &&
	      bind(fd, (struct sockaddr *)&at,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(socket_name) + !abstract)) == 0);
	notified = fd;
	setenv("NOTIFY_SOCKET", socket_name, 1);
}

/* The next notification, which must begin so. */
static void expect_notification(const char *begins, char *text, size_t size)
{
	struct pollfd fd = {.fd = notified, .events = POLLIN};
	ssize_t n;

	CHECK(poll(&fd, 1, LONG_MS) == 1);
	n = recv(notified, text, size - 1, 0);
	CHECK(n > 0);
	text[n] = 0;
	if (strncmp(text, begins, strlen(begins)) != 0) {
		fprintf(stderr, "notification '%s' instead of '%s'\n", text, begins);
		exit(1);
	}
}

struct server {
	pid_t pid;
	char at[128];
};

/* With these further arguments, up to NULL. */
static struct server start_on(const char *listen, ...)
{
	char *argv[ARGS] = {(char *)kvd_path, (char *)"--provider", (char *)provider, (char *)"--listen",
			    (char *)listen};
	char text[512], *at;
	struct server s;
	va_list args;
	int n = 5;

	va_start(args, listen);
	while ((argv[n] = va_arg(args, char *)))
		CHECK(++n < ARGS);
	va_end(args);
	if (notified < 0)
		open_notify(false);
	s.pid = run(argv, server_net, -1);
	expect_notification("READY=1\n", text, sizeof(text));
	at = strstr(text, "X_KVD_LISTEN=");
	CHECK(at);
	snprintf(s.at, sizeof(s.at), "%s", at + strlen("X_KVD_LISTEN="));
	s.at[strcspn(s.at, "\n")] = 0;
	return s;
}

static const char *anywhere(void)
{
	static char text[64];
	static int count;

	if (strcmp(provider, "shm") != 0)
		return "127.0.0.1:0";
	snprintf(text, sizeof(text), "kvdtest%d:%d", getpid(), ++count);
	return text;
}
#define start(...) start_on(anywhere(), __VA_ARGS__)

static void stop(struct server *s)
{
	char text[512];

	CHECK(kill(s->pid, SIGTERM) == 0);
	expect_notification("STOPPING=1", text, sizeof(text));
	CHECK(ended(s->pid) == 0);
}

/* kv with these arguments, up to NULL; what it prints, in text (NULL: on stdout). */
static pid_t kv_begin(const struct server *s, int out, va_list args)
{
	char *argv[ARGS] = {(char *)kv_path, (char *)"--provider", (char *)provider, (char *)"--server",
			    (char *)s->at,   (char *)"--timeout",  (char *)"60000"};
	int n = 7;

	while ((argv[n] = va_arg(args, char *)))
		CHECK(++n < ARGS);
	return run(argv, client_net, out);
}

static pid_t kv_start_process(const struct server *s, ...)
{
	va_list args;
	pid_t pid;

	va_start(args, s);
	pid = kv_begin(s, -1, args);
	va_end(args);
	return pid;
}

static char printed[65536];

static int kv(const struct server *s, ...)
{
	size_t n = 0;
	ssize_t more;
	va_list args;
	int fd[2];
	pid_t pid;

	CHECK(pipe2(fd, O_CLOEXEC) == 0);
	va_start(args, s);
	pid = kv_begin(s, fd[1], args);
	va_end(args);
	close(fd[1]);
	while ((more = read(fd[0], printed + n, sizeof(printed) - 1 - n)) > 0)
		n += (size_t)more;
	printed[n] = 0;
	close(fd[0]);
	return ended(pid);
}

static unsigned long figure_in(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (; text && *text; text = strchr(text, '\n'), text += text != NULL)
		if (strncmp(text, name, length) == 0 && text[length] == ' ')
			return strtoul(text + length, NULL, 10);
	fprintf(stderr, "no figure %s\n", name);
	exit(1);
}

/* Further figures of the same moment: figure_in(printed, ...). */
static unsigned long stat_of(const struct server *s, const char *name)
{
	CHECK(kv(s, "stat", NULL) == 0);
	return figure_in(printed, name);
}

static bool one_sided(const struct server *s)
{
	int rc = kv(s, "read", "there is no such key", NULL);

	CHECK(rc == 1 || rc == 4);
	return rc == 1;
}

/* ------------------------------------------------------------------------------------- a client in this process --- */

static struct kv client;

static void open_client(const struct server *s, uint32_t depth)
{
	static bool initialized;
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER};

	if (!initialized)
		CHECK(contd_init(&config) == 0);
	initialized = true;
	if (kv_open(&client, provider, s->at, depth, LONG_MS)) {
		fprintf(stderr, "%s\n", client.error);
		exit(1);
	}
}

static struct kv_request *ask(uint32_t i, unsigned operation, const char *key, const void *value, size_t bytes)
{
	struct kv_request *r = &client.request[i];

	r->operation = operation;
	r->key_length = (uint32_t)strlen(key);
	memcpy(r->key, key, r->key_length);
	r->value = value;
	r->value_length = (uint32_t)bytes;
	kv_start(r);
	return r;
}

static unsigned ask_now(unsigned operation, const char *key, const void *value, size_t bytes)
{
	struct kv_request *r = ask(0, operation, key, value, bytes);

	CHECK(kv_wait(&client) == 0);
	return r->status;
}

/* The server's counters, for frequent reading. A new process of kv takes 0.4 s to start, mostly for libfabric's
 * libraries. */
static unsigned long stat_now(const char *name)
{
	struct kv_request *r = &client.request[0];

	CHECK(ask_now(KVD_STAT, "", NULL, 0) == KVD_OK && r->got_length < sizeof(printed));
	memcpy(printed, r->got, r->got_length);
	printed[r->got_length] = 0;
	return figure_in(printed, name);
}

/* Is that what the key has? NULL: there is no such key. */
static bool has(unsigned operation, const char *key, const char *value)
{
	const struct kv_request *r = &client.request[0];
	unsigned status = ask_now(operation, key, NULL, 0);

	if (!value)
		return status == KVD_NOT_FOUND;
	return status == KVD_OK && r->got_length == strlen(value) && memcmp(r->got, value, r->got_length) == 0;
}

/* -------------------------------------------------------------------------------------------------------- cases --- */

static void commands(void)
{
	struct server s = start("--set", "value_max=5000", NULL);
	static char longest[KVD_KEY_MAX + 1], large[5001], larger[5002];
	bool reads = one_sided(&s);

	memset(longest, 'k', KVD_KEY_MAX);
	memset(large, 'v', 5000);
	memset(larger, 'v', 5001);
	CHECK(kv(&s, "get", "a", NULL) == 1 && !*printed);
	CHECK(kv(&s, "put", "a", "one", NULL) == 0);
	CHECK(kv(&s, "get", "a", NULL) == 0 && strcmp(printed, "one") == 0);
	CHECK(kv(&s, "put", "a", "another one", NULL) == 0);
	CHECK(kv(&s, "get", "a", NULL) == 0 && strcmp(printed, "another one") == 0);
	if (reads)
		CHECK(kv(&s, "read", "a", NULL) == 0 && strcmp(printed, "another one") == 0);
	CHECK(kv(&s, "delete", "a", NULL) == 0);
	CHECK(kv(&s, "delete", "a", NULL) == 1);
	CHECK(kv(&s, "get", "a", NULL) == 1);
	if (reads)
		CHECK(kv(&s, "read", "a", NULL) == 1);

	/* The limits of keys and values, and one beyond. */
	CHECK(kv(&s, "put", longest, large, NULL) == 0);
	CHECK(kv(&s, "get", longest, NULL) == 0 && strcmp(printed, large) == 0);
	if (reads)
		CHECK(kv(&s, "read", longest, NULL) == 0 && strcmp(printed, large) == 0);
	CHECK(kv(&s, "put", longest, larger, NULL) == 1);
	CHECK(kv(&s, "put", "b", "", NULL) == 0);
	CHECK(kv(&s, "get", "b", NULL) == 0 && !*printed);
	CHECK(kv(&s, "put", "", "b", NULL) == 2);
	CHECK(stat_of(&s, "keys") == 2);
	CHECK(figure_in(printed, "too_large") == 1);
	CHECK(figure_in(printed, "sessions") == 1);
	stop(&s);
}

/* The same requests as in `commands`, on a provider, by a client in this process instead of the program kv. */
static void requests(void)
{
	struct server s = start("--set", "value_max=5000", NULL);
	static char longest[KVD_KEY_MAX + 1], large[5001], larger[5002];
	bool reads;

	memset(longest, 'k', KVD_KEY_MAX);
	memset(large, 'v', 5000);
	memset(larger, 'v', 5001);
	/* Others come and go, with goodbye. */
	CHECK(kv(&s, "put", "a", "by kv", NULL) == 0);
	CHECK(kv(&s, "get", "a", NULL) == 0 && strcmp(printed, "by kv") == 0);
	reads = one_sided(&s);
	open_client(&s, 1);
	CHECK(client.layout.one_sided == reads);
	CHECK(has(KVD_GET, "a", "by kv"));
	CHECK(ask_now(KVD_DELETE, "a", NULL, 0) == KVD_OK);
	for (int again = 0; again < 2; again++) {
		const char *value = again ? "another one" : "one";

		CHECK(again || has(KVD_GET, "a", NULL));
		CHECK(again || !reads || has(KV_READ, "a", NULL));
		CHECK(ask_now(KVD_PUT, "a", value, strlen(value)) == KVD_OK);
		CHECK(has(KVD_GET, "a", value));
		CHECK(!reads || has(KV_READ, "a", value));
	}
	CHECK(ask_now(KVD_DELETE, "a", NULL, 0) == KVD_OK);
	CHECK(ask_now(KVD_DELETE, "a", NULL, 0) == KVD_NOT_FOUND);
	CHECK(has(KVD_GET, "a", NULL));
	CHECK(!reads || has(KV_READ, "a", NULL));

	/* The limits of keys and values, and one beyond. */
	CHECK(ask_now(KVD_PUT, longest, large, 5000) == KVD_OK);
	CHECK(has(KVD_GET, longest, large));
	CHECK(!reads || has(KV_READ, longest, large));
	CHECK(ask_now(KVD_PUT, longest, larger, 5001) == KVD_TOO_LARGE);
	CHECK(has(KVD_GET, longest, large));
	CHECK(ask_now(KVD_PUT, "b", "", 0) == KVD_OK);
	CHECK(has(KVD_GET, "b", ""));
	CHECK(ask_now(KVD_PUT, "", "b", 1) == KVD_BAD);
	CHECK(stat_now("keys") == 2);
	CHECK(stat_now("too_large") == 1);
	CHECK(stat_now("malformed") == 1);
	CHECK(stat_now("sessions") == 1);
	kv_close(&client);
	stop(&s);
}

static void bench(void)
{
	struct server s = start(NULL);

	CHECK(kv(&s, "bench", "--seconds", "1", "--depth", "4", "--keys", "100", "--size", "300", "--json", NULL) == 0);
	fputs(printed, stdout);
	CHECK(strstr(printed, "\"wrong\": 0, \"missing\": 0, \"refused\": 0"));
	CHECK(!strstr(printed, "\"get\": {\"count\": 0,") && !strstr(printed, "\"put\": {\"count\": 0,"));
	CHECK(!one_sided(&s) || !strstr(printed, "\"read\": {\"count\": 0,"));
	CHECK(kv(&s, "bench", "--seconds", "0.1", "--depth", "1", "--keys", "10", NULL) == 0);
	CHECK(strstr(printed, "p99.9"));
	CHECK(kv(&s, "bench", "--seconds", "0", "--mix", "-50/100/50", NULL) == 2);
	CHECK(stat_of(&s, "keys") == 0);
	CHECK(figure_in(printed, "sessions_lost") == 0);
	stop(&s);
}

/* Several at a time, on the same keys: values are verified by what they say of themselves. */
static void clients(void)
{
	static const char *const sizes[] = {"64", "1000", "3000", "9"};
	struct server s = start(NULL);
	pid_t pid[4];

	for (int i = 0; i < 4; i++)
		pid[i] = kv_start_process(&s, "bench", "--seconds", "1", "--keys", "20", "--prefix", "same/", "--keep",
					  "--size", sizes[i], NULL);
	for (int i = 0; i < 4; i++)
		CHECK(ended(pid[i]) == 0);
	CHECK(stat_of(&s, "keys") == 20);
	CHECK(figure_in(printed, "damaged") == 0);
	CHECK(figure_in(printed, "sessions") == 1);
	stop(&s);
}

/* The arena is small, so that it is compacted all the time, and requests come meanwhile. */
static void compaction(void)
{
	struct server s = start("--set", "arena_mb=1", "--set", "segment_kb=64", "--set", "value_max=3000", NULL);
	unsigned long computing = 0;

	for (int i = 0; i < 20 && !computing; i++) {
		CHECK(kv(&s, "bench", "--seconds", "1", "--depth", "32", "--keys", "250", "--size", "2500", NULL) == 0);
		fputs(printed, stdout);
		computing = stat_of(&s, "answered_computing");
	}
	CHECK(computing);
	CHECK(stat_of(&s, "compactions") > 0);
	CHECK(figure_in(printed, "moved") > 0);
	CHECK(figure_in(printed, "damaged") == 0);
	stop(&s);
}

static void full(void)
{
	static unsigned char value[3000];
	struct server s = start("--set", "arena_mb=1", "--set", "segment_kb=64", "--set", "value_max=3000", NULL);
	char key[32];
	unsigned status = KVD_OK;
	int n = 0, again = 0;

	memset(value, 'x', sizeof(value));
	open_client(&s, 4);
	/* The arena: until it takes no more, and that stays so. */
	while (n < 1000 && status == KVD_OK) {
		snprintf(key, sizeof(key), "%d", n);
		status = ask_now(KVD_PUT, key, value, sizeof(value));
		n += status == KVD_OK;
	}
	printf("%d values of 3000 bytes in 1 MiB\n", n);
	CHECK(status == KVD_FULL && n > 200 && n < 340);
	CHECK(ask_now(KVD_PUT, "one more", value, sizeof(value)) == KVD_FULL);
	CHECK(ask_now(KVD_GET, "0", NULL, 0) == KVD_OK);
	/* Room is made by deleting, as soon as it was compacted. */
	for (int i = 0; i < n; i += 2) {
		snprintf(key, sizeof(key), "%d", i);
		CHECK(ask_now(KVD_DELETE, key, NULL, 0) == KVD_OK);
	}
	for (int i = 0; i < n / 3; i++) {
		snprintf(key, sizeof(key), "new %d", i);
		while ((status = ask_now(KVD_PUT, key, value, sizeof(value))) == KVD_AGAIN && ++again < 100000)
			;
		CHECK(status == KVD_OK);
	}
	for (int i = 1; i < n; i += 2) {
		snprintf(key, sizeof(key), "%d", i);
		CHECK(ask_now(KVD_GET, key, NULL, 0) == KVD_OK && client.request[0].got_length == sizeof(value));
	}
	kv_close(&client);
	CHECK(stat_of(&s, "damaged") == 0);
	stop(&s);

	/* The table: a key has a window of slots. */
	s = start("--set", "slots=8", NULL);
	open_client(&s, 4);
	n = 0;
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "%d", i);
		status = ask_now(KVD_PUT, key, "v", 1);
		CHECK(status == KVD_OK || status == KVD_FULL);
		n += status == KVD_OK;
	}
	CHECK(n >= 8 && n <= 15);
	CHECK(ask_now(KVD_DELETE, "0", NULL, 0) == KVD_OK);
	CHECK(ask_now(KVD_PUT, "0", "w", 1) == KVD_OK);
	kv_close(&client);
	stop(&s);
}

/* Requests that are under way when SIGTERM comes are answered; new clients are refused; the last goodbye ends it. */
static void drain(void)
{
	struct server s = start("--set", "drain_ms=60000", "--set", "drain_quiet_ms=60000", NULL);
	static unsigned char value[4000];
	char key[32], text[256];

	for (int round = 0; round < 2; round++) {
		if (round)
			s = start("--set", "drain_ms=60000", "--set", "drain_quiet_ms=60000", NULL);
		open_client(&s, 64);
		for (uint32_t i = 0; i < 64; i++) {
			snprintf(key, sizeof(key), "%u", i);
			ask(i, i % 2 ? KVD_GET : KVD_PUT, key, value, sizeof(value));
			if (i == 40 * (uint32_t)round)
				CHECK(kill(s.pid, SIGTERM) == 0);
		}
		CHECK(kv_wait(&client) == 0);
		for (uint32_t i = 0; i < 64; i++)
			CHECK(client.request[i].status == (i % 2 ? KVD_NOT_FOUND : KVD_OK));
		expect_notification("STOPPING=1", text, sizeof(text));
		CHECK(kv(&s, "get", "1", NULL) == 3);
		CHECK(ask_now(KVD_GET, "0", NULL, 0) == KVD_OK && client.draining);
		CHECK(kill(s.pid, SIGINT) == 0); /* once more changes nothing */
		CHECK(ask_now(KVD_GET, "0", NULL, 0) == KVD_OK);
		kv_close(&client);
		CHECK(ended(s.pid) == 0);
	}
	/* A client that does not say goodbye does not keep it. */
	s = start("--set", "drain_quiet_ms=50", NULL);
	open_client(&s, 1);
	CHECK(ask_now(KVD_PUT, "0", "v", 1) == KVD_OK);
	CHECK(kill(s.pid, SIGINT) == 0);
	expect_notification("STOPPING=1", text, sizeof(text));
	CHECK(ended(s.pid) == 0);
	client.session = 0;
	kv_close(&client);
}

/* The queue has failed for good: the server says so and ends, so that it can be started again. */
static void broken(void)
{
	struct server s;

	CHECK(getenv("BROKEN_QUEUE"));
	setenv("LD_PRELOAD", getenv("BROKEN_QUEUE"), 1);
	setenv("BREAK_AFTER", "8", 1);
	s = start(NULL);
	unsetenv("LD_PRELOAD");
	for (int i = 0; i < 20 && kv(&s, "--timeout", "200", "put", "a", "b", NULL) == 0; i++)
		;
	CHECK(ended(s.pid) == 1);
}

/* More clients are refused than there are places for refused ones, while contd refuses operations now and then. Each is
 * told, and leaves nothing behind. */
static void refusals(void)
{
	struct server s;
	struct kv other;

	CHECK(getenv("REFUSED_BEGINS"));
	setenv("LD_PRELOAD", getenv("REFUSED_BEGINS"), 1);
	s = start("--set", "sessions=1", "--set", "send_seconds=60", NULL);
	unsetenv("LD_PRELOAD");
	open_client(&s, 1);
	for (int i = 0; i < 24; i++) {
		CHECK(kv_open(&other, provider, s.at, 1, LONG_MS) != 0);
		if (!strstr(other.error, "as many clients")) {
			fprintf(stderr, "after %d refused clients: %s\n", i, other.error);
			exit(1);
		}
	}
	for (int tries = 0; stat_now("session_slots") != 1; tries++) {
		CHECK(tries < 2000);
		nap();
	}
	fputs(printed, stdout);
	CHECK(figure_in(printed, "refused") == 24 && figure_in(printed, "begins_put_off") > 10);
	kv_close(&client);
	for (int i = 0; i < 2; i++)
		CHECK(kv(&s, "put", "a", "b", NULL) == 0);
	stop(&s);
}

static void write_config(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void reload_with(const struct server *s)
{
	char text[256];

	CHECK(kill(s->pid, SIGHUP) == 0);
	expect_notification("RELOADING=1\nMONOTONIC_USEC=", text, sizeof(text));
	CHECK(strtoul(text + strlen("RELOADING=1\nMONOTONIC_USEC="), NULL, 10) > 0);
	expect_notification("READY=1", text, sizeof(text));
}

static void reload(void)
{
	static unsigned char value[400];
	char path[128];
	struct server s;

	snprintf(path, sizeof(path), "%s/kvd.conf", folder);
	write_config(path, "# limits\nvalue_max = 100\n\n  verbosity=0 \n");
	s = start("--config", path, NULL);
	open_client(&s, 1);
	CHECK(client.layout.value_max == 100);
	CHECK(ask_now(KVD_PUT, "a", value, 100) == KVD_OK);
	CHECK(ask_now(KVD_PUT, "a", value, 101) == KVD_TOO_LARGE);
	write_config(path, "value_max = 300\nslots = 77777\n");
	reload_with(&s);
	CHECK(ask_now(KVD_PUT, "a", value, 300) == KVD_OK);
	CHECK(ask_now(KVD_PUT, "a", value, 301) == KVD_TOO_LARGE);
	/* A wrong file changes nothing. */
	write_config(path, "value_max = 400\ncompact_percent = 1000\n");
	reload_with(&s);
	CHECK(ask_now(KVD_PUT, "a", value, 301) == KVD_TOO_LARGE);
	write_config(path, "value_max = many\n");
	reload_with(&s);
	CHECK(unlink(path) == 0);
	reload_with(&s);
	CHECK(ask_now(KVD_PUT, "a", value, 300) == KVD_OK);
	kv_close(&client);
	CHECK(stat_of(&s, "reloads") == 1);
	stop(&s);
	/* --set goes first; what the file does not name any more has its default; what can't be read changes
	 * nothing. */
	write_config(path, "value_max = 300\nkey_max = 10\n");
	s = start("--set", "value_max=200", "--config", path, "--set", "segment_kb=64", NULL);
	open_client(&s, 1);
	CHECK(client.layout.value_max == 200 && client.layout.key_max == 10);
	write_config(path, "value_max = 400\n");
	reload_with(&s);
	CHECK(ask_now(KVD_PUT, "a", value, 200) == KVD_OK);
	CHECK(ask_now(KVD_PUT, "a", value, 201) == KVD_TOO_LARGE);
	CHECK(ask_now(KVD_PUT, "longer than ten", value, 200) == KVD_OK);
	CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
	reload_with(&s);
	CHECK(rmdir(path) == 0);
	kv_close(&client);
	CHECK(stat_of(&s, "reloads") == 1);
	stop(&s);
	/* Values that are too large for the segments there are. */
	write_config(path, "segment_kb = 64\nvalue_max = 300\n");
	s = start("--config", path, NULL);
	open_client(&s, 1);
	write_config(path, "segment_kb = 1024\nvalue_max = 16384\n");
	reload_with(&s);
	kv_close(&client);
	CHECK(stat_of(&s, "reloads") == 0 && stat_of(&s, "value_max") == 300);
	stop(&s);
}

static void notification(void)
{
	char *bad[][8] = {{(char *)kvd_path, (char *)"--set", (char *)"slots=0", NULL},
			  {(char *)kvd_path, (char *)"--set", (char *)"nothing=1", NULL},
			  {(char *)kvd_path, (char *)"--config", (char *)"/nonexistent", NULL},
			  {(char *)kvd_path, (char *)"--listen", (char *)"nowhere", NULL},
			  {(char *)kvd_path, (char *)"--provider", (char *)"none", NULL}};
	struct pollfd fd;
	struct server s;

	open_notify(true);
	s = start(NULL);
	stop(&s);
	open_notify(false);
	s = start(NULL);
	stop(&s);
	/* A server that does not start does not say that it is ready. */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = ended(run(bad[i], -1, -1));

		CHECK(rc == 1 || rc == 2);
	}
	fd = (struct pollfd){.fd = notified, .events = POLLIN};
	CHECK(poll(&fd, 1, 0) == 0);
}

static pid_t start_to_kill(const struct server *s)
{
	return kv_start_process(s, "bench", "--seconds", "100", "--depth", "64", "--keys", "50", "--size", "1000",
				NULL);
}

/* More clients die than there are sessions. */
static void killed(void)
{
	struct server s = start("--set", "sessions=4", "--set", "idle_seconds=1", "--set", "send_seconds=1", "--set",
				"verbosity=2", NULL);
	int tries;

	/* Asks all the time, so that its own session does not end. */
	open_client(&s, 1);
	for (int i = 0; i < 8; i++) {
		unsigned long puts = stat_now("puts");
		pid_t pid = start_to_kill(&s);

		/* In the middle of it: it has stored more than its keys. So there is a free session again some time. */
		for (tries = 0; stat_now("puts") <= puts + 60; tries++) {
			int status;

			CHECK(tries < 6000);
			if (waitpid(pid, &status, WNOHANG) == pid) /* refused: too many sessions */
				pid = start_to_kill(&s);
			nap();
		}
		CHECK(kill(pid, SIGKILL) == 0 && ended(pid) == -SIGKILL);
	}
	for (tries = 0; stat_now("sessions") != 1; tries++) {
		CHECK(tries < 6000);
		nap();
	}
	fputs(printed, stdout);
	CHECK(figure_in(printed, "sessions_lost") + figure_in(printed, "sessions_idle") >= 7);
	kv_close(&client);
	CHECK(kv(&s, "put", "a", "b", NULL) == 0);
	CHECK(kv(&s, "bench", "--seconds", "0.3", NULL) == 0);
	stop(&s);
}

/* A message as it is. 0, what became of it, or -ETIMEDOUT: nothing after so long, and the operation is left under
 * way. */
static int send_raw(struct contd_fabric_op *op, const void *data, size_t bytes, uint64_t ms)
{
	uint64_t until = kvd_now_ns() + ms * 1000000;
	ssize_t sent;

	CHECK(contd_fabric_begin(client.net.queue, op) == 0);
	while ((sent = fi_send(client.net.endpoint, data, bytes, NULL, client.server, op)) == -FI_EAGAIN &&
	       kvd_now_ns() < until)
		contd_poll(0);
	if (sent)
		CHECK(contd_fabric_withdraw(op, (int)sent) == 0);
	while (!contd_event_is_complete(&op->event) && kvd_now_ns() < until)
		contd_poll(0);
	return contd_event_is_complete(&op->event) ? op->status : -ETIMEDOUT;
}

static void garbage(void)
{
	static unsigned char data[KVD_MESSAGE_MAX + 5000];
	static struct contd_fabric_op op, last;
	struct server s = start("--set", "verbosity=2", NULL);
	struct kvd_message m;
	unsigned random = 1;
	size_t bytes;

	open_client(&s, 2);
	CHECK(ask_now(KVD_PUT, "a", "b", 1) == KVD_OK);
	for (int i = 0; i < 2000; i++) {
		bytes = (random = random * 1103515245 + 12345) >> 16 & 0x3ff;
		for (size_t k = 0; k < bytes; k++)
			data[k] = (unsigned char)((random = random * 1103515245 + 12345) >> 16);
		if (i % 2) { /* a seeming request of this client or of none, or a hello from nowhere */
			m = (struct kvd_message){.operation = (uint8_t)(i % 16),
						 .session = i % 3 ? client.session : random,
						 .number = 1ull << 40,
						 .key_length = i % 5 ? 3 : 0,
						 .key = (const unsigned char *)"abc",
						 .value_length = (uint32_t)(i % 3 ? 20 : 0),
						 .value = data + 1000};
			bytes = kvd_format(data, &m);
			bytes -= i % 7 == 0;
		}
		CHECK(send_raw(&op, data, bytes, LONG_MS) == 0);
	}
	/* Larger than any message. shm of libfabric 1.17 goes on for ever copying what does not fit
	 * (process_vm_readv(2)). */
	if (strcmp(provider, "shm") != 0)
		send_raw(&last, data, sizeof(data), 2000);
	CHECK(kv(&s, "get", "a", NULL) <= 1); /* the garbage may have deleted any key */
	CHECK(kv(&s, "put", "c", "d", NULL) == 0);
	CHECK(kv(&s, "get", "c", NULL) == 0 && strcmp(printed, "d") == 0);
	CHECK(stat_of(&s, "foreign") >= 900);
	CHECK(figure_in(printed, "malformed") >= 100);
	CHECK(figure_in(printed, "strangers") >= 100);
	fputs(printed, stdout);
	CHECK(kv(&s, "bench", "--seconds", "0.3", NULL) == 0);
	client.session = 0;
	kv_close(&client);
	stop(&s);
}

/* A stranger who knows the client's address sends it what is no answer, and what is larger than any: the client goes
 * on. */
static void stranger(void)
{
	static unsigned char data[KVD_MESSAGE_MAX + 5000];
	struct server s = start(NULL);
	struct contd_fabric_op op;
	struct kvd_net other;
	fi_addr_t to;
	char at[256];

	open_client(&s, 2);
	CHECK(ask_now(KVD_PUT, "a", "b", 1) == KVD_OK);
	kvd_net_text(&client.net, client.net.address, client.net.address_length, at, sizeof(at));
	CHECK(kvd_queue_open(&other, provider, at, false, 64, &to) == 0);
	for (int i = 0; i < 2; i++) {
		uint64_t until = kvd_now_ns() + LONG_MS * 1000000ull, strange = client.strange;
		ssize_t sent;

		CHECK(contd_fabric_begin(other.queue, &op) == 0);
		while ((sent = fi_send(other.endpoint, data, i ? sizeof(data) : 100, NULL, to, &op)) == -FI_EAGAIN &&
		       kvd_now_ns() < until)
			contd_poll(0);
		CHECK(sent == 0);
		while (client.strange == strange && !client.failed && kvd_now_ns() < until)
			contd_poll(0);
		if (client.failed)
			fprintf(stderr, "%s\n", client.error);
		CHECK(client.strange == strange + 1);
		CHECK(has(KVD_GET, "a", "b"));
	}
	kvd_queue_close(&other, NULL);
	kv_close(&client);
	stop(&s);
}

/* If the answer cannot be printed, kv does not report success, however long the answer is. */
static void unprinted(void)
{
	struct server s = start("--set", "value_max=30000", NULL);
	static char large[30001];
	const char *const keys[] = {"small", "large"};
	int out = open("/dev/full", O_WRONLY | O_CLOEXEC);

	CHECK(out >= 0);
	memset(large, 'v', 30000 - 30000 % 4096);
	CHECK(kv(&s, "put", "small", "v", NULL) == 0);
	CHECK(kv(&s, "put", "large", large, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		char *argv[] = {(char *)kv_path,
				(char *)"--provider",
				(char *)provider,
				(char *)"--server",
				s.at,
				(char *)"get",
				(char *)keys[i],
				NULL};

		CHECK(ended(run(argv, client_net, out)) == 3);
	}
	close(out);
	stop(&s);
}

/* A process that keeps a new network namespace. */
static pid_t keep_namespace(int *fd)
{
	char path[64];
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = unshare(CLONE_NEWNET) == 0;
		CHECK(write(ready[1], &byte, 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	if (!byte)
		skip("no network namespaces (unshare(2))");
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(*fd >= 0);
	return pid;
}

static int ip(int net, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int ip(int net, const char *format, ...)
{
	char command[256];
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", command, NULL};
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return ended(run(argv, net, -1));
}

static void two_hosts(void)
{
	pid_t holder[2];
	struct server s;

	if (geteuid() != 0)
		skip("network namespaces need root");
	if (ip(-1, "command -v ip >/dev/null"))
		skip("there is no ip(8)");
	holder[0] = keep_namespace(&server_net);
	holder[1] = keep_namespace(&client_net);
	if (ip(-1, "ip link add kvd0 netns %d type veth peer name kvd1 netns %d", holder[0], holder[1]))
		skip("no veth devices");
	CHECK(ip(server_net, "ip addr add 10.213.7.1/24 dev kvd0 && ip link set kvd0 up && ip link set lo up") == 0);
	CHECK(ip(client_net, "ip addr add 10.213.7.2/24 dev kvd1 && ip link set kvd1 up && ip link set lo up") == 0);
	s = start_on("10.213.7.1:7171", NULL);
	CHECK(strcmp(s.at, "10.213.7.1:7171") == 0);
	CHECK(kv(&s, "put", "a", "over there", NULL) == 0);
	CHECK(kv(&s, "get", "a", NULL) == 0 && strcmp(printed, "over there") == 0);
	CHECK(kv(&s, "bench", "--seconds", "1", "--size", "2000", NULL) == 0);
	fputs(printed, stdout);
	CHECK(stat_of(&s, "sessions_lost") == 0);
	stop(&s);
	for (int i = 0; i < 2; i++)
		CHECK(kill(holder[i], SIGKILL) == 0 && ended(holder[i]) == -SIGKILL);
}

/* --------------------------------------------------------------------------------------------------------- main --- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"commands", commands}, {"requests", requests},     {"bench", bench},
	{"clients", clients},   {"compaction", compaction}, {"full", full},
	{"drain", drain},       {"reload", reload},         {"notification", notification},
	{"killed", killed},     {"garbage", garbage},       {"two_hosts", two_hosts},
	{"broken", broken},     {"stranger", stranger},     {"unprinted", unprinted},
	{"refusals", refusals},
};

static void need_provider(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	CHECK(hints);
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info))
		skip("libfabric has no such provider here");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	if (strchr(argv[2], '+'))
		*strchr(argv[2], '+') = ';';
	provider = argv[2];
	kvd_path = argv[3];
	kv_path = argv[4];
	need_provider();
	strcpy(folder, "/tmp/kvd-test.XXXXXX");
	CHECK(mkdtemp(folder));
	atexit(clean);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			return 0;
		}
	return 2;
}
