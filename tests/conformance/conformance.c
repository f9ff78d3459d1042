/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: `conformance --list`; `conformance NAME [draft|revised]` in a job of as many ranks as the test needs. */
#include <execinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include "conformance.h"

#define STATUS_FAILED 1
#define STATUS_USAGE 2
#define STATUS_SKIPPED 77
#define STATUS_HUNG 98
#define WATCHDOG_SECONDS 20

int my_rank, ranks = 1;
MPI_Comm world = MPI_COMM_NULL, self = MPI_COMM_NULL;
enum face face;
void (*after_finalize)(void);

static struct test *tests;
static const struct test *running;
static const char *volatile step_name;
static const char *const face_name[] = {"draft", "revised"};
static atomic_int failed, skipped, last_line;
static const char *volatile last_file = "the start";

void test_register(struct test *test)
{
	struct test **at = &tests;

	while (*at && strverscmp((*at)->name, test->name) < 0)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

/* ------------------------------------------------------------------------------------------------------- checks --- */

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

/* Notes where we are. A failure is one line, written at once, since ranks share the terminal. */
__attribute__((format(printf, 4, 5))) static bool note(bool good, const char *file, int line, const char *format, ...)
{
	char text[600];
	va_list list;
	int length;

	last_file = base_name(file);
	atomic_store_explicit(&last_line, line, memory_order_relaxed);
	if (good || atomic_fetch_add(&failed, 1) >= 30)
		return good;
	length = snprintf(text, sizeof(text), "%s:%d: rank %d: %s%s%s: ", base_name(file), line, my_rank,
			  running->faces ? face_name[face] : running->name, step_name ? ", " : "",
			  step_name ? step_name : "");
	va_start(list, format);
	vsnprintf(text + length, sizeof(text) - (size_t)length, format, list);
	va_end(list);
	fprintf(stderr, "%s\n", text);
	return good;
}

bool check_that(bool good, const char *what, const char *file, int line)
{
	return note(good, file, line, "CHECK(%s) failed", what);
}

bool check_equal(long long a, long long b, const char *what, const char *file, int line)
{
	return note(a == b, file, line, "CHECK_EQ(%s) failed: %lld, %lld", what, a, b);
}

int class_of(int code)
{
	int class = code;

	if (code != MPI_SUCCESS && world != MPI_COMM_NULL) /* outside of MPI there are classes only */
		MPI_Error_class(code, &class);
	return class;
}

bool check_class(int code, int class, const char *what, const char *file, int line)
{
	int got = class_of(code);

	return note(got == class, file, line, "%s gave error class %d, not %d", what, got, class);
}

int failures(void)
{
	return atomic_load(&failed);
}

void say(const char *what)
{
	const char *file = getenv("CONFORMANCE_SAYS");
	FILE *says = file ? fopen(file, "a") : NULL;

	printf("%s\n", what);
	fflush(stdout);
	if (says) { /* not on other hosts: there the launcher's output has to do */
		fprintf(says, "%s\n", what);
		fclose(says);
	}
}

void skip(const char *reason)
{
	if (my_rank == 0)
		printf("skipped: %s%s%s\n", running->faces ? face_name[face] : "", running->faces ? ": " : "", reason);
	atomic_store(&skipped, 1);
}

/* ----------------------------------------------------------------------------------------------------- watchdog --- */

static unsigned watchdog_seconds(void)
{
	const char *given = getenv("CONFORMANCE_SECONDS"); /* for sanitizers and busy machines */

	return given && atoi(given) > 0 ? (unsigned)atoi(given) : WATCHDOG_SECONDS;
}

/* Async-signal-safe except for the backtrace, which has its library loaded before, and snprintf, without floats. */
static void hung(int signo)
{
	char line[300];
	void *frames[40];
	int n, length;

	(void)signo;
	length = snprintf(line, sizeof(line), "HUNG: rank %d in %s, %s%s%s, after %s:%d\n", my_rank, running->name,
			  face_name[face], step_name ? ", " : "", step_name ? step_name : "", last_file,
			  atomic_load(&last_line));
	(void)!write(STDERR_FILENO, line, (size_t)length);
	n = backtrace(frames, (int)(sizeof(frames) / sizeof(frames[0])));
	backtrace_symbols_fd(frames, n, STDERR_FILENO);
	_exit(STATUS_HUNG);
}

static void watchdog_start(void)
{
	void *frames[2];

	backtrace(frames, 2);
	signal(SIGALRM, hung);
	alarm(watchdog_seconds());
}

void step(const char *name)
{
	step_name = name;
	alarm(watchdog_seconds());
	if (name && getenv("CONFORMANCE_VERBOSE"))
		fprintf(stderr, "rank %d: %s: %s\n", my_rank, face_name[face], name);
}

/* ----------------------------------------------------------------------------------------------------- messages --- */

static char sink[4096]; /* receives that are under way at the same time must not share a byte */
static atomic_uint sink_used;

int next_rank(void)
{
	return (my_rank + 1) % ranks;
}

int previous_rank(void)
{
	return (my_rank + ranks - 1) % ranks;
}

MPI_Request receive_byte(int from, int tag, MPI_Comm comm)
{
	MPI_Request op = MPI_REQUEST_NULL;

	CHECK_OK(MPI_Irecv(&sink[atomic_fetch_add(&sink_used, 1) % sizeof(sink)], 1, MPI_BYTE, from, tag, comm, &op));
	return op;
}

void send_byte(int to, int tag, MPI_Comm comm)
{
	static const char out = 0;

	CHECK_OK(MPI_Send(&out, 1, MPI_BYTE, to, tag, comm));
}

MPI_Request pending(int tag)
{
	return receive_byte(0, tag, self);
}

void complete_pending(int tag)
{
	send_byte(0, tag, self);
}

void until_complete(MPI_Request op)
{
	for (int flag = 0; !flag;)
		CHECK_OK(MPI_Request_get_status(op, &flag, MPI_STATUS_IGNORE));
}

/* Receives without a sender, so that completion calls have something to test. */
static MPI_Request unmatched[2];
static bool unmatched_started;

void drive_once(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int flag;

	/* A continuation that runs in one of these calls may come here again: then the probe has to do. */
	if (pthread_mutex_trylock(&lock) == 0) {
		for (int i = 0; i < 2 && !unmatched_started; i++)
			unmatched[i] = receive_byte(0, 32000 + i, self);
		unmatched_started = true;
		MPI_Test(&unmatched[0], &flag, MPI_STATUS_IGNORE);
		MPI_Testall(2, unmatched, &flag, MPI_STATUSES_IGNORE);
		pthread_mutex_unlock(&lock);
	}
	MPI_Iprobe(MPI_ANY_SOURCE, 32002, world, &flag, MPI_STATUS_IGNORE);
}

static void drive_end(void)
{
	for (int i = 0; i < 2 && unmatched_started; i++) {
		MPI_Cancel(&unmatched[i]);
		MPI_Wait(&unmatched[i], MPI_STATUS_IGNORE);
	}
}

bool drive_until(atomic_int *count, int n)
{
	double end = MPI_Wtime() + 10;

	while (atomic_load(count) < n && MPI_Wtime() < end)
		drive_once();
	return atomic_load(count) >= n;
}

static volatile double computed;

void compute_ms(int ms)
{
	struct timespec now, end;
	double x = 1;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += ms % 1000 * 1000000L;
	end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	do {
		for (int i = 0; i < 1000; i++)
			x = x * 1.000001 + 1e-9;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	computed = x;
}

/* ------------------------------------------------------------------------------------------- the two interfaces --- */

#if CONFORMANCE_REVISED
/*
 * The revised interface's callbacks do not get the statuses: what ours needs travels with user_data. It comes back on a
 * stack that is pushed with an exchange and emptied as a whole, since callbacks may run in a signal handler.
 */
struct attached {
	callback *cb;
	void *data;
	MPI_Status *statuses;
	struct attached *next;
};

static _Atomic(struct attached *) given_back;
static struct attached *spare;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static void give_back(struct attached *a)
{
	a->next = atomic_load(&given_back);
	while (!atomic_compare_exchange_weak(&given_back, &a->next, a))
		;
}

static struct attached *get_attached(callback *cb, void *data, MPI_Status *statuses)
{
	struct attached *a;

	pthread_mutex_lock(&spare_lock);
	if (!spare)
		spare = atomic_exchange(&given_back, NULL);
	a = spare;
	if (a)
		spare = a->next;
	pthread_mutex_unlock(&spare_lock);
	if (!a)
		a = malloc(sizeof(*a));
	if (!a)
		abort();
	*a = (struct attached){cb, data, statuses, NULL};
	return a;
}

static int call_attached(int rc, void *data)
{
	struct attached a = *(struct attached *)data;

	give_back(data);
	CHECK_EQ(rc, MPI_SUCCESS);
	a.cb(a.statuses, a.data);
	return MPI_SUCCESS;
}
#endif

int init_cr(MPI_Info info, MPI_Request *cr)
{
#if CONFORMANCE_DRAFT
	if (face == face_draft)
		return MPI_Continue_init(info, cr);
#endif
#if CONFORMANCE_REVISED
	return MPIX_Continue_init(0, MPI_UNDEFINED, info, cr);
#else
	abort();
#endif
}

int attach(MPI_Request *op, callback *cb, void *data, MPI_Status *status, MPI_Request cr)
{
#if CONFORMANCE_DRAFT
	if (face == face_draft)
		return MPI_Continue(op, cb, data, status, cr);
#endif
#if CONFORMANCE_REVISED
	struct attached *a = get_attached(cb, data, status);
	int rc = MPIX_Continue(op, cb ? call_attached : NULL, a, 0, status, cr);

	if (rc != MPI_SUCCESS)
		give_back(a);
	return rc;
#else
	abort();
#endif
}

int attach_all(int count, MPI_Request ops[], callback *cb, void *data, MPI_Status statuses[], MPI_Request cr)
{
#if CONFORMANCE_DRAFT
	if (face == face_draft)
		return MPI_Continueall(count, ops, cb, data, statuses, cr);
#endif
#if CONFORMANCE_REVISED
	struct attached *a = get_attached(cb, data, statuses);
	int rc = MPIX_Continueall(count, ops, cb ? call_attached : NULL, a, 0, statuses, cr);

	if (rc != MPI_SUCCESS)
		give_back(a);
	return rc;
#else
	abort();
#endif
}

static MPI_Info info_of(const char *key, va_list list)
{
	MPI_Info info;

	MPI_Info_create(&info);
	for (; key; key = va_arg(list, const char *))
		CHECK_OK(MPI_Info_set(info, key, va_arg(list, const char *)));
	return info;
}

MPI_Info new_info(const char *key, ...)
{
	MPI_Info info;
	va_list list;

	va_start(list, key);
	info = info_of(key, list);
	va_end(list);
	return info;
}

MPI_Request new_cr(const char *key, ...)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	MPI_Info info = MPI_INFO_NULL;
	va_list list;

	va_start(list, key);
	if (key)
		info = info_of(key, list);
	va_end(list);
	CHECK_OK(init_cr(info, &cr));
	CHECK(cr != MPI_REQUEST_NULL);
	if (info != MPI_INFO_NULL)
		MPI_Info_free(&info);
	again(&cr);
	return cr;
}

void again(MPI_Request *cr)
{
	if (face == face_revised)
		CHECK_OK(MPI_Start(cr));
}

void free_cr(MPI_Request *cr)
{
	CHECK_OK(MPI_Request_free(cr));
	CHECK(*cr == MPI_REQUEST_NULL);
}

void wait_cr(MPI_Request *cr)
{
	MPI_Request same = *cr;

	CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
	CHECK(*cr == same);
	again(cr);
}

bool test_cr(MPI_Request *cr)
{
	MPI_Request same = *cr;
	int flag = 0;

	CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
	CHECK(*cr == same);
	if (flag)
		again(cr);
	return flag;
}

const char *const how_name[hows] = {"Test", "Testall", "Testany", "Testsome", "Wait", "Waitall", "Waitany", "Waitsome"};

bool report_by(enum how how, MPI_Request *cr)
{
	MPI_Request r[3] = {MPI_REQUEST_NULL, *cr, MPI_REQUEST_NULL}, same = *cr;
	int flag = 1, index = 1, count = 1, indices[3] = {1, 1, 1};

	switch (how) {
	case by_test:
		CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
		break;
	case by_testall:
		CHECK_OK(MPI_Testall(3, r, &flag, MPI_STATUSES_IGNORE));
		break;
	case by_testany:
		CHECK_OK(MPI_Testany(3, r, &index, &flag, MPI_STATUS_IGNORE));
		break;
	case by_testsome:
		CHECK_OK(MPI_Testsome(3, r, &count, indices, MPI_STATUSES_IGNORE));
		flag = count != 0;
		break;
	case by_wait:
		CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
		break;
	case by_waitall:
		CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
		break;
	case by_waitany:
		CHECK_OK(MPI_Waitany(3, r, &index, MPI_STATUS_IGNORE));
		break;
	default:
		CHECK_OK(MPI_Waitsome(3, r, &count, indices, MPI_STATUSES_IGNORE));
		break;
	}
	CHECK(*cr == same && r[0] == MPI_REQUEST_NULL && r[1] == same && r[2] == MPI_REQUEST_NULL);
	if (flag && count == 1)
		CHECK_EQ(indices[0], 1);
	if (flag && index != MPI_UNDEFINED)
		CHECK_EQ(index, 1);
	return flag;
}

/* ----------------------------------------------------------------------------------------------------- statuses --- */

void see(MPI_Status *status, void *data)
{
	struct seen *seen = data;

	seen->status = status;
	seen->thread = pthread_self();
	atomic_fetch_add(&seen->runs, 1);
}

void never(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	CHECK(!"this continuation must not run");
}

#define POISON 0x5a

void poison(void *memory, size_t bytes)
{
	memset(memory, POISON, bytes);
}

bool is_poison(const void *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (((const unsigned char *)memory)[i] != POISON)
			return false;
	return true;
}

int count_of(const MPI_Status *status)
{
	int count = -1;

	MPI_Get_count(status, MPI_BYTE, &count);
	return count;
}

bool was_cancelled(const MPI_Status *status)
{
	int cancelled = 0;

	MPI_Test_cancelled(status, &cancelled);
	return cancelled;
}

bool is_empty(const MPI_Status *status)
{
	return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count_of(status) == 0 &&
	       !was_cancelled(status);
}

/* --------------------------------------------------------------------------------------------------------- main --- */

static int mpi_level(enum level level)
{
	switch (level) {
	case level_funneled:
		return MPI_THREAD_FUNNELED;
	case level_serialized:
		return MPI_THREAD_SERIALIZED;
	case level_multiple:
		return MPI_THREAD_MULTIPLE;
	default:
		return MPI_THREAD_SINGLE;
	}
}

/* Once for each face that is there, or as it is for a test that names none. False where all of these were skipped. */
static bool run_body(int only)
{
	static const unsigned there = CONFORMANCE_DRAFT << face_draft | CONFORMANCE_REVISED << face_revised;
	bool done = false;

	for (int f = face_draft; f <= face_revised; f++) {
		if (running->faces && !(running->faces & there & 1u << f))
			continue;
		if (running->faces && only >= 0 && f != only)
			continue;
		face = (enum face)f;
		atomic_store(&skipped, 0);
		running->body();
		step(NULL);
		done = done || !atomic_load(&skipped);
		if (!running->faces)
			break;
	}
	return done;
}

static int run_outside(int only)
{
	bool done = run_body(only);

	return failures() ? STATUS_FAILED : done ? 0 : STATUS_SKIPPED;
}

static int run_inside(int *argc, char ***argv, int only)
{
	int provided, mine[2], sum[2];
	bool done;

	MPI_Init_thread(argc, argv, mpi_level(running->level), &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (ranks != running->ranks) {
		if (my_rank == 0)
			fprintf(stderr, "%s needs %d ranks\n", running->name, running->ranks);
		MPI_Finalize();
		return STATUS_USAGE;
	}
	if (provided < mpi_level(running->level)) {
		skip("MPI does not grant the thread level");
		MPI_Finalize();
		return STATUS_SKIPPED;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &world);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
	done = run_body(only);
	/* All ranks must end alike: each launcher combines exit statuses in a different way. */
	step("the end of the job");
	mine[0] = failures();
	mine[1] = done;
	MPI_Allreduce(mine, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	drive_end();
	step("MPI_Finalize");
	MPI_Finalize();
	world = self = MPI_COMM_NULL;
	if (after_finalize) {
		step("after MPI_Finalize");
		after_finalize();
	}
	return sum[0] || failures() ? STATUS_FAILED : sum[1] ? 0 : STATUS_SKIPPED;
}

int main(int argc, char **argv)
{
	static const char *const level_name[] = {"none", "single", "funneled", "serialized", "multiple"};
	int only = -1;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (const struct test *t = tests; t; t = t->next)
			printf("%s|%d|%s|%s\n", t->name, t->ranks, level_name[t->level], t->rule);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--after-exec") == 0) {
		/* Timers and signals that the program before has left would end this one. */
		compute_ms(200);
		say("survived");
		return 0;
	}
	for (const struct test *t = tests; t && argc >= 2; t = t->next)
		if (strcmp(t->name, argv[1]) == 0)
			running = t;
	for (int f = face_draft; f <= face_revised && argc == 3; f++)
		if (strcmp(argv[2], face_name[f]) == 0)
			only = f;
	if (!running || argc > 3 || (argc == 3 && only < 0)) {
		fprintf(stderr, "usage: conformance --list | conformance NAME [draft|revised]\n");
		return STATUS_USAGE;
	}
	watchdog_start();
	return running->level == level_none ? run_outside(only) : run_inside(&argc, &argv, only);
}
