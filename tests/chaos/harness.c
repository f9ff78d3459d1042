/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chaos.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/group.h"

#define WATCH_NAP_NS 20000000u
#define AHEAD_NS 200000000u /* so far one rank's count may be ahead of another's */
#define COUNT_ENDED UINT64_MAX

struct chaos_options chaos = {.threads = 4, .operations = 60};
uint32_t chaos_round, chaos_calm, chaos_progress;
__thread struct chaos_thread *chaos_me __attribute__((tls_model("initial-exec")));

static struct chaos_thread *threads[CHAOS_THREADS];
static uint32_t thread_count, broken;
static uint64_t begun_ns;
static const char *program;
static char choice[512]; /* --only and --without of the command that replays */

/* --------------------------------------------------------------------------------------------------- generators --- */

uint64_t chaos_mix(uint64_t a, uint64_t b)
{
	uint64_t z = a + 0x9e3779b97f4a7c15ull * (b + 1);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t next(uint64_t *state)
{
	uint64_t s = contd__load(state) + 0x9e3779b97f4a7c15ull; /* a handler in between draws the same */

	contd__store(state, s);
	return chaos_mix(s, 0);
}

uint64_t chaos_draw(uint64_t n)
{
	uint64_t r = next(&chaos_me->random);

	return n ? (r >> 8) % n : r;
}

uint64_t chaos_draw_at(uint64_t n)
{
	struct chaos_thread *t = chaos_me ? chaos_me : chaos_stranger();
	uint64_t r = t ? next(&t->random_at) : 0;

	return n ? (r >> 8) % n : r;
}

uint64_t chaos_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t patience;

/* Counted by each rank's watching thread. In shared memory, if there are several. */
static uint64_t own_count, *counts = &own_count;
static uint32_t rank, ranks = 1;
static uint64_t base[CHAOS_RANKS]; /* a rank's count when `patience` was 0, or later where it was ahead */

int chaos_share_patience(int fd, uint32_t my_rank, uint32_t of_ranks)
{
	void *page;

	if (of_ranks > CHAOS_RANKS)
		return -1;
	page = mmap(NULL, sizeof(base), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -1;
	counts = page;
	rank = my_rank;
	ranks = of_ranks;
	return 0;
}

uint64_t chaos_patience(void)
{
	return contd__load(&patience);
}

static void watch_nap(void)
{
	uint64_t since = chaos_ns(), passed, slowest = UINT64_MAX;

	chaos_nap(WATCH_NAP_NS);
	passed = chaos_ns() - since;
	contd__store(&counts[rank], counts[rank] + (passed < 2 * WATCH_NAP_NS ? passed : 2 * WATCH_NAP_NS));
	for (uint32_t i = 0; i < ranks; i++) {
		uint64_t n = contd__load(&counts[i]);

		if (n != COUNT_ENDED && n - base[i] < slowest)
			slowest = n - base[i];
	}
	/* A rank that is ahead waits for the slowest: the time in which that one did not run counts for no rank. */
	for (uint32_t i = 0; i < ranks; i++) {
		uint64_t n = contd__load(&counts[i]);

		if (n != COUNT_ENDED && n - base[i] > slowest + AHEAD_NS)
			base[i] = n - slowest - AHEAD_NS;
	}
	if (slowest > patience)
		contd__store(&patience, slowest);
}

static pthread_t watching;
static uint32_t watches;

static void *watch(void *data)
{
	uint32_t before = contd__load(&chaos_progress);
	uint64_t since = chaos_patience();

	while (contd__load_acquire(&watches)) {
		uint32_t now = contd__load(&chaos_progress);

		if (now != before) {
			before = now;
			since = chaos_patience();
		} else if (chaos_patience() - since > chaos_bound_ns(20000)) {
			chaos_wrong("everything hangs: main in %s", threads[0]->doing);
		}
		watch_nap();
	}
	contd__store(&counts[rank], COUNT_ENDED);
	return data;
}

void chaos_watch(void)
{
	watches = 1;
	if (pthread_create(&watching, NULL, watch, NULL))
		abort();
}

void chaos_watch_end(void)
{
	contd__store_release(&watches, 0);
	pthread_join(watching, NULL);
}

void chaos_nap(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&ts, NULL);
}

void chaos_signals_unblocked(void)
{
#ifdef __SANITIZE_THREAD__
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	if (!sigismember(&now, SIGHUP)) /* one that neither contd nor this program blocks by itself */
		return;
	chaos_note("blocked by tsan", 0, 0);
	sigemptyset(&now);
	pthread_sigmask(SIG_SETMASK, &now, NULL);
#endif
}

/* ---------------------------------------------------------------------------------------------- diaries, report --- */

void chaos_note(const char *what, uint64_t a, uint64_t b)
{
	struct chaos_thread *t = chaos_me ? chaos_me : chaos_stranger();
	uint32_t at;

	if (!t)
		return;
	/* Handlers on the same thread write too. */
	at = __atomic_fetch_add(&t->written, 1, __ATOMIC_RELAXED) % CHAOS_DIARY;
	t->diary[at] = (struct chaos_entry){chaos_ns(), what, a, b};
}

static void say(const char *format, ...)
{
	char text[400];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	(void)!write(2, text, (size_t)n);
}

/* Which signals the thread blocks, and which wait for it. */
static void print_signals(int tid)
{
	char path[64], line[256];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	status = fopen(path, "r");
	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "Sig", 3) || !strncmp(line, "State", 5))
			say("  %s", line);
	if (status)
		fclose(status);
}

static void print_diaries(void)
{
	uint64_t now = chaos_ns();

	for (uint32_t i = 0; i < thread_count; i++) {
		struct chaos_thread *t = threads[i];
		uint32_t end = __atomic_load_n(&t->written, __ATOMIC_RELAXED),
			 n = end < CHAOS_DIARY ? end : CHAOS_DIARY;

		if (n > 48)
			n = 48;
		say("thread %u (%d)%s, %u operations, at %s:\n", t->number, t->tid, t->daemon ? ", contd's daemon" : "",
		    t->steps, t->doing);
		print_signals(t->tid);
		for (uint32_t k = end - n; k != end; k++) {
			const struct chaos_entry *e = &t->diary[k % CHAOS_DIARY];

			say("  %10.1f us ago  %-20s %llx %llx\n", (double)(now - e->ns) / 1000, e->what ? e->what : "?",
			    (unsigned long long)e->a, (unsigned long long)e->b);
		}
	}
}

/*
 * Where each thread is. Functions of this program have no names there: addr2line(1) finds them. backtrace(3) is not
 * async-signal-safe, and a thread that hangs in it prints nothing: the program ends anyway. contd's daemon blocks the
 * signal.
 */
#define STACK_SIGNAL SIGPROF
#define STACK_DEPTH 48
static uint32_t stacks_printed;

static void print_stack(int signo)
{
	void *at[STACK_DEPTH];
	int saved = errno;

	(void)signo;
	say("stack of thread %d:\n", chaos_me ? (int)chaos_me->number : -1);
	backtrace_symbols_fd(at, backtrace(at, STACK_DEPTH), 2);
	__atomic_fetch_add(&stacks_printed, 1, __ATOMIC_SEQ_CST);
	errno = saved;
}

static void print_stacks(void)
{
	for (uint32_t i = 0; i < thread_count; i++) {
		uint32_t before = __atomic_load_n(&stacks_printed, __ATOMIC_SEQ_CST);
		uint64_t until = chaos_ns() + 1000000000;

		if (threads[i] == chaos_me || threads[i]->daemon || !threads[i]->tid ||
		    syscall(SYS_tgkill, getpid(), threads[i]->tid, STACK_SIGNAL))
			continue;
		while (__atomic_load_n(&stacks_printed, __ATOMIC_SEQ_CST) == before && chaos_ns() < until)
			chaos_nap(1000000);
	}
}

void chaos_wrong(const char *format, ...)
{
	char text[300];
	va_list args;

	if (__atomic_fetch_add(&broken, 1, __ATOMIC_SEQ_CST))
		for (;;)
			pause(); /* another thread reports */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say("%s: WRONG: %s\n", program, text);
	say("%s: seed %llu, round %u, after %.1f s; by thread %d\n", program, (unsigned long long)chaos.seed,
	    chaos_round, (double)(chaos_ns() - begun_ns) / 1e9, chaos_me ? (int)chaos_me->number : -1);
	say("%s: again: %s --seed %llu --round %u --threads %u --operations %u%s\n", program, program,
	    (unsigned long long)chaos.seed, chaos_round, chaos.threads, chaos.operations, choice);
	chaos_report();
	print_diaries();
	print_stacks();
	say("%s: WRONG: %s\n", program, text);
	if (chaos.stay) {
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	_exit(1);
}

static void crashed(int signo, siginfo_t *info, void *context)
{
	(void)context;
	signal(signo, SIG_DFL);
	chaos_wrong("signal %d (%s), address %p", signo, strsignal(signo), info->si_addr);
}

uint64_t chaos_bound_ns(uint64_t ms)
{
	double load = 0;

	if (getloadavg(&load, 1) != 1 || load < 0)
		load = 0;
	return (uint64_t)((double)ms * 1e6 * CHAOS_SLOW * (1 + (load < 8 ? load : 8) / 4));
}

int chaos_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

uint32_t chaos_slots_used(struct contd_group *group)
{
	struct contd__table *t = &group->table;
	uint32_t used = contd__load_acquire(&t->used), n = 0;

	for (uint32_t at = (uint32_t)contd__load_acquire(&t->free_head); at && n < used; n++)
		at = contd__load(&contd__table_slot(t, at - 1)->link);
	return used - n;
}

uint32_t chaos_pages(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uint32_t n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "/memfd:contd") != NULL;
	if (maps)
		fclose(maps);
	return n;
}

/* -------------------------------------------------------------------------------------------------- test points --- */

static uint64_t hash(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	while (*name)
		h = (h ^ (unsigned char)*name++) * 0x100000001b3ull;
	return h;
}

/* Until others have done so much, or for so long. */
static void hold(uint32_t operations, uint64_t ns)
{
	uint32_t since = __atomic_load_n(&chaos_progress, __ATOMIC_RELAXED);
	uint64_t until = chaos_ns() + ns;
	uint32_t tries = 0;

	while (__atomic_load_n(&chaos_progress, __ATOMIC_RELAXED) - since < operations && chaos_ns() < until)
		if (++tries % 32)
			sched_yield();
		else
			chaos_nap(1000);
}

static void point(const char *name)
{
	int saved = errno;
	struct chaos_thread *t = chaos_me ? chaos_me : chaos_stranger();
	bool hot, calm = __atomic_load_n(&chaos_calm, __ATOMIC_RELAXED);
	uint64_t r;

	if (!t || t->in_point >= 2)
		return;
	hot = !calm && chaos_mix(hash(name), chaos_mix(chaos.seed, chaos_round)) % 8 == 0;
	if (chaos_draw_at(calm ? 256 : hot ? 3 : 48))
		return;
	t->in_point++;
	chaos_note(name, t->in_point, hot);
	r = chaos_draw_at(0);
	switch (t->daemon ? r % 4 : r % 8) {
	case 0:
		sched_yield();
		break;
	case 1:
		for (volatile uint32_t i = (uint32_t)(r >> 8) % 2000; i; i--)
			;
		break;
	case 2:
		chaos_nap(1000 * (1 + (r >> 8) % 50));
		break;
	case 3:
		hold(1 + (uint32_t)(r >> 8) % (hot ? 64 : 8), 1000 * (calm ? 20 : hot ? 1000 : 200));
		break;
	case 4:
	case 5:
		chaos_raise(t, r >> 8 & 1);
		break;
	default:
		chaos_deed(t);
	}
	t->in_point--;
	errno = saved;
}

void chaos_points(bool on)
{
	__atomic_store_n(&contd__testpoint_hook, on ? point : NULL, __ATOMIC_SEQ_CST);
}

/* ---------------------------------------------------------------------------------------------- threads, rounds --- */

struct chaos_thread *chaos_thread_new(const char *doing)
{
	struct chaos_thread *t = calloc(1, sizeof(*t));

	if (!t || thread_count == CHAOS_THREADS)
		abort();
	t->number = thread_count;
	t->doing = doing;
	threads[thread_count++] = t;
	return t;
}

void chaos_become(struct chaos_thread *t)
{
	t->tid = (int32_t)syscall(SYS_gettid);
	chaos_me = t;
}

void chaos_round_begin(void)
{
	for (uint32_t i = 0; i < thread_count; i++) {
		uint64_t s = chaos_mix(chaos_mix(chaos.seed, chaos_round), i);

		contd__store(&threads[i]->random, s);
		contd__store(&threads[i]->random_at, ~s);
	}
}

static _Noreturn void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: %s [--seed N] [--round N] [--seconds S] [--rounds N] [--threads N] [--operations N]\n"
		"       [--only CLASS,...] [--without CLASS,...] [--abort] [--list]\n"
		"  --round N         begin with this round: a failure names its own\n"
		"  --operations N    of each thread, between two moments at which all must have come to an end\n"
		"  --list            the classes of operations\n"
		"Without --seconds and --rounds it runs for CONTD_CHAOS_SECONDS of the environment, or an hour.\n",
		program);
	exit(status);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = text ? strtoull(text, &end, 0) : 0;
	if (!text || *end || end == text || errno)
		usage(2);
	return n;
}

static void choose(char *list, struct chaos_class *classes, size_t n, bool only)
{
	char *save = NULL;

	for (size_t i = 0; only && i < n; i++)
		classes[i].off = true;
	for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		size_t i = 0;

		while (i < n && strcmp(classes[i].name, name) != 0)
			i++;
		if (i == n) {
			fprintf(stderr, "%s: no class %s: see --list\n", program, name);
			exit(2);
		}
		classes[i].off = !only;
	}
}

void chaos_begin(int argc, char **argv, struct chaos_class *classes, size_t n)
{
	struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO},
			 stack = {.sa_handler = print_stack, .sa_flags = SA_RESTART};
	bool seeded = false;
	void *here[1];

	program = argv[0];
	for (int i = 1; i < argc; i++) {
		const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(option, "--list") == 0) {
			for (size_t k = 0; k < n; k++)
				printf("%-12s %s\n", classes[k].name, classes[k].says);
			exit(0);
		} else if (strcmp(option, "--help") == 0) {
			usage(0);
		} else if (strcmp(option, "--abort") == 0) {
			chaos.stay = true;
			continue;
		} else if (strcmp(option, "--seed") == 0) {
			chaos.seed = number(value);
			seeded = true;
		} else if (strcmp(option, "--round") == 0) {
			chaos_round = (uint32_t)number(value);
		} else if (strcmp(option, "--seconds") == 0) {
			chaos.seconds = (uint32_t)number(value);
		} else if (strcmp(option, "--rounds") == 0) {
			chaos.rounds = (uint32_t)number(value);
		} else if (strcmp(option, "--threads") == 0) {
			chaos.threads = (uint32_t)number(value);
		} else if (strcmp(option, "--operations") == 0) {
			chaos.operations = (uint32_t)number(value);
		} else if (value && (strcmp(option, "--only") == 0 || strcmp(option, "--without") == 0)) {
			size_t had = strlen(choice);

			snprintf(choice + had, sizeof(choice) - had, " %s %s", option, value);
			choose(argv[i + 1], classes, n, option[2] == 'o');
		} else {
			usage(2);
		}
		i++;
	}
	if (chaos.threads < 2 || chaos.threads > CHAOS_THREADS - 4 || !chaos.operations)
		usage(2);
	if (!seeded && getrandom(&chaos.seed, sizeof(chaos.seed), 0) != sizeof(chaos.seed))
		abort();
	if (!seeded)
		chaos.seed %= 1000000000;
	if (!chaos.seconds && !chaos.rounds) {
		const char *seconds = getenv("CONTD_CHAOS_SECONDS");

		chaos.seconds = seconds ? (uint32_t)number(seconds) : 3600;
	}
	begun_ns = chaos_ns();
	backtrace(here, 1); /* the first call loads a library */
	sigaction(STACK_SIGNAL, &stack, NULL);
	/* The sanitizers' own reports say more. */
	if (CHAOS_SLOW == 1) {
		sigaction(SIGSEGV, &action, NULL);
		sigaction(SIGBUS, &action, NULL);
		sigaction(SIGABRT, &action, NULL);
	}
	printf("%s: seed %llu, %u threads\n", program, (unsigned long long)chaos.seed, chaos.threads);
	fflush(stdout);
}
