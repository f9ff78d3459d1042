/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/say.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "progress/begin.h"
#include "progress/callers.h"
#include "progress/closure.h"
#include "progress/inside.h"
#include "progress/turns.h"
#include "signal/inspect.h"

#define P contd__progress
#define MOST_LOOKS 8u /* in one tick, while each finds something to do */

/* Of MPI itself, whichever libraries stand between. */
static struct {
	__typeof__(&PMPI_Request_get_status) Request_get_status;
	__typeof__(&PMPI_Irecv) Irecv;
	__typeof__(&PMPI_Cancel) Cancel;
	__typeof__(&PMPI_Wait) Wait;
	__typeof__(&PMPI_Comm_dup) Comm_dup;
	__typeof__(&PMPI_Comm_free) Comm_free;
	__typeof__(&PMPI_Comm_rank) Comm_rank;
	__typeof__(&PMPI_Comm_set_errhandler) Comm_set_errhandler;
	__typeof__(&PMPI_Query_thread) Query_thread;
} mpi;

static bool runs;

/*
 * To make progress, ask about a receive that no message is for. On this communicator none is sent. (MPI_Iprobe would
 * need no receive, but MPICH 4.0 makes no progress in it if the communicator has one process only.)
 */
static MPI_Comm own = MPI_COMM_NULL;
static MPI_Request never = MPI_REQUEST_NULL;

static uint64_t look_ticks; /* what a look takes, a moving average, in clock ticks; work apart */
static uint64_t some_ticks; /* what takes so much longer than a look has moved something: 5 us */
static struct contd_stats at_begin;

/* Open MPI may give its processor away when it finds nothing to do: in calls that wait, and in no others. */
static bool (*set_yield)(bool);

/* For tests, built with CONTD_TESTPOINTS: what to do in the place of MPI's progress. */
static void (*instead)(void);

/* ----------------------------------------------------------------------------------------------------- progress --- */

static void ask_mpi(void)
{
	int flag = 0;

	if (instead)
		instead();
	else if (mpi.Request_get_status(never, &flag, MPI_STATUS_IGNORE))
		contd__store(&P.ending, 1);
}

/*
 * In the handler, where contd__allows() has found that nothing is interrupted which MPI needs. The program's signals
 * wait meanwhile: their handlers may leave by siglongjmp(3), and here that would leave MPI's progress in its middle.
 */
static void progress(bool last)
{
	struct contd__mark mark;
	enum contd__entered how = contd__enter(&contd__inside.mpi, CONTD__FRAME, &mark);
	int cancel = contd__cancel_off();
	uint64_t begin = contd__ticks(), now, took, most, worked = 0;
	sigset_t signals;
	uint32_t looks = 0;
	bool yields, found;

	(void)last;
	contd__floating_use();
	pthread_sigmask(SIG_BLOCK, &P.but_faults, &signals);
	contd__inside.ticks = true;
	if (!P.shared)
		contd__store_seq(&P.turn, TURN_TICK);
	if (contd__load_seq(&P.ending))
		goto over;
	yields = set_yield && set_yield(false);
	do {
		ask_mpi();
		now = contd__ticks();
		took = now - begin;
		begin = now;
		most = 2 * look_ticks + some_ticks;
		found = took > most;
		if (found)
			worked += took - look_ticks;
		look_ticks = (15 * look_ticks + (found ? most : took)) / 16;
	} while (found && ++looks < MOST_LOOKS);
	if (yields)
		set_yield(true);
	/* Moving data is work, which costs the budget nothing, and a reason to come again soon. */
	contd__self.work += worked;
	P.moved += worked != 0;
	if (P.places && contd__load(&P.loads) != P.places->generation)
		contd__progress_read_again(true);
over:
	if (!P.shared)
		contd__store_seq(&P.turn, 0);
	contd__inside.ticks = false;
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	contd__cancel_as(cancel);
	contd__leave(&contd__inside.mpi, how, &mark);
}

static struct contd__source source = {
	.name = "progress",
	.where = WHERE_INSPECTED,
	.progress = progress,
	.pending = contd__wants_looks,
};

static const struct contd__inspector inspector = {contd__allows, contd__allowed};

void contd__progress_read_again(bool by_mpi)
{
	contd__closure_read(by_mpi);
}

/* -------------------------------------------------------------------------------------------------------- begin --- */

static bool reports(void)
{
	const char *text = getenv("CONTD_PROGRESS_REPORT");

	return text && !strcmp(text, "1");
}

/* Once in a job, if the ranks are known already; with a report, each rank. */
static void say(const char *why)
{
	int rank = 0;
	bool known = mpi.Comm_rank && !mpi.Comm_rank(MPI_COMM_WORLD, &rank);

	if (known && rank && !reports())
		return;
	if (known)
		contd__say_rank(rank);
	contd__say("progress: no progress by ticks: %s", why);
}

void contd__progress_stop(const char *why)
{
	if (!contd__xchg(&P.ending, 1))
		say(why);
}

static bool find_mpi(uintptr_t *address)
{
	void *of = dlsym(RTLD_NEXT, "PMPI_Get_library_version");
	void *library;
	Dl_info info;

	*address = (uintptr_t)of;
	library = of && dladdr(of, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (!library)
		return false;
	set_yield = (bool (*)(bool))dlsym(library, "opal_progress_set_yield_when_idle");
#define FIND(name) ((mpi.name = (__typeof__(mpi.name))dlsym(library, "PMPI_" #name)) != NULL)
	return FIND(Request_get_status) && FIND(Irecv) && FIND(Cancel) && FIND(Wait) && FIND(Comm_dup) &&
	       FIND(Comm_free) && FIND(Comm_rank) && FIND(Comm_set_errhandler) && FIND(Query_thread);
#undef FIND
}

static bool find_stack(void)
{
	pthread_attr_t attr;
	stack_t alternate;
	void *base = NULL;
	size_t size = 0;

	if (pthread_getattr_np(pthread_self(), &attr))
		return false;
	pthread_attr_getstack(&attr, &base, &size);
	pthread_attr_destroy(&attr);
	contd__floating_keep();
	contd__inside.low = (uintptr_t)base;
	contd__inside.high = (uintptr_t)base + size;
	if (contd__on_own_stack(CONTD__FRAME)) {
		if (!sigaltstack(NULL, &alternate))
			contd__inner_stack(&alternate);
		return true;
	}
	contd__inside.low = contd__inside.high = 0;
	return false;
}

/* In a child of fork nothing is left of it: contd has no timers there. */
static void in_child(void)
{
	if (!runs)
		return;
	contd__store(&P.ending, 1);
	contd__store(&P.turn, 0);
	contd__inside.in_call = false;
	runs = false;
}

static bool sees_children;

/* Early: handlers of the program's that are called before it would wait for a tick that is none in the child. */
__attribute__((constructor)) static void see_children(void)
{
	sees_children = !pthread_atfork(NULL, NULL, in_child);
}

static bool switched_off(void)
{
	const char *text = getenv("CONTD_PROGRESS");

	return text && !strcmp(text, "0");
}

void contd__progress_before_init(void)
{
	if (switched_off())
		return;
	contd__closure_before();
	contd__store(&P.initializing, 1);
}

static bool is_switch(const char *variable)
{
	const char *text = getenv(variable);

	return !text || !strcmp(text, "0") || !strcmp(text, "1");
}

static const char *prepare(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	const char *allow = getenv("CONTD_PROGRESS_ALLOW"), *agent = getenv("CONTD_AGENT"), *why;
	int level = MPI_THREAD_MULTIPLE;
	uintptr_t address;

	if (!is_switch("CONTD_PROGRESS"))
		return "CONTD_PROGRESS must be 0 (off) or 1, or not set";
	if (!is_switch("CONTD_PROGRESS_REPORT"))
		return "CONTD_PROGRESS_REPORT must be 0 or 1 (a report), or not set";
	if (allow && strcmp(allow, "user-code") != 0)
		return "CONTD_PROGRESS_ALLOW must be user-code or not set";
	if (agent && !strcmp(agent, "caller"))
		return "with CONTD_AGENT=caller there are no ticks; set region, or nothing";
	P.allow_user_code = allow != NULL;
	if (!contd__main_runs)
		return "MPI_Init was called before main(), or main() has not been seen";
	if (!find_mpi(&address))
		return "MPI's library is not found";
	if (mpi.Query_thread(&level) || level > MPI_THREAD_SERIALIZED)
		return "MPI_THREAD_MULTIPLE is not supported, ask MPI for SERIALIZED or FUNNELED";
	P.shared = level == MPI_THREAD_SERIALIZED;
	if ((why = contd__closure_after(address)) != NULL)
		return why;
	sigfillset(&P.but_faults);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&P.but_faults, faults[i]);
	if (!sees_children)
		return "out of memory";
	return NULL;
}

static void get_stats(struct contd_stats *stats)
{
	*stats = (struct contd_stats){.size = sizeof(*stats)};
	contd_stats_get(stats);
}

#ifdef CONTD_TESTPOINTS
/* tests/progress/refused.c: instead of MPI's */
static void replace_by_tests(void)
{
	void *irecv = dlsym(RTLD_DEFAULT, "contd_test_irecv"), *comm_free = dlsym(RTLD_DEFAULT, "contd_test_comm_free");

	if (irecv && comm_free) {
		mpi.Irecv = (__typeof__(mpi.Irecv))irecv;
		mpi.Comm_free = (__typeof__(mpi.Comm_free))comm_free;
	}
}

/* tests/progress/closure.h */
static void prepare_test(void)
{
	uint64_t **passed = dlsym(RTLD_DEFAULT, "contd_test_passed");

	if (passed)
		*passed = P.passed;
	instead = (void (*)(void))dlsym(RTLD_DEFAULT, "contd_test_progress");
	if (instead)
		contd__store(&P.windows, 1);
}
#endif

/* Gives back what begin_looks() has made. */
static void end_looks(void)
{
	contd__inside.high = contd__inside.low = contd__inside.inner_high = contd__inside.inner_low = 0;
	if (never != MPI_REQUEST_NULL) {
		mpi.Cancel(&never);
		mpi.Wait(&never, MPI_STATUS_IGNORE);
	}
	if (own != MPI_COMM_NULL)
		mpi.Comm_free(&own);
}

static const char *begin_looks(void)
{
	const char *why = NULL;

	if (mpi.Comm_dup(MPI_COMM_SELF, &own))
		return "MPI refuses a communicator";
	if (mpi.Comm_set_errhandler(own, MPI_ERRORS_RETURN) || mpi.Irecv(NULL, 0, MPI_CHAR, 0, 0, own, &never))
		why = "MPI refuses a receive";
	else if (!find_stack())
		why = "the thread's stack is not known";
	else if (contd__source_register(&source))
		why = "contd has no room for a source";
	if (why)
		end_looks();
	return why;
}

void contd__progress_begin(void)
{
	const char *why;

	contd__store(&P.initializing, 0);
	if (runs || switched_off())
		return;
	why = prepare();
#ifdef CONTD_TESTPOINTS
	replace_by_tests();
#endif
	if (!why && contd_init(NULL))
		why = contd_error_text();
	else if (!why && contd_thread_attach(NULL)) {
		why = contd_error_text();
		contd_fini();
	}
	if (why) {
		say(why);
		return;
	}
	why = begin_looks();
	if (why) {
		say(why);
		contd_thread_detach();
		contd_fini();
		return;
	}
	some_ticks = (uint64_t)(5000 * contd__clock.ticks_per_ns);
	runs = true;
	get_stats(&at_begin);
#ifdef CONTD_TESTPOINTS
	prepare_test();
#endif
	contd__store(&P.last, P.shared ? contd__this_thread() : 0);
	contd__inspect(&inspector);
}

static void thread_over(void *unused)
{
	(void)unused;
	contd__turn_leave();
}

/* In glibc: called when the thread ends, before what pthread_key_create(3) has asked for. */
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);

/* If it cannot be attached, its calls are counted all the same, as on an unknown stack. */
void contd__progress_join(void)
{
	contd__inside.low = contd__inside.high = 1;
	if (contd_thread_attach(NULL) || __cxa_thread_atexit_impl(thread_over, NULL, &contd__progress) ||
	    !find_stack()) {
		contd__inside.low = contd__inside.high = 1;
		return;
	}
	contd__inspect(&inspector);
}

/* ---------------------------------------------------------------------------------------------------------- end --- */

static void report(void)
{
	static const char *const names[PASSED_COUNT] = {
		[PASSED_MPI] = "in calls of MPI",
		[PASSED_TURN] = "another thread called last",
		[PASSED_CLOSURE] = "in libraries that MPI needs",
		[PASSED_UNKNOWN] = "in unknown code",
		[PASSED_CALLED] = "below functions that call back, or in signal handlers",
		[PASSED_STACK] = "stack",
		[PASSED_LOADER] = "libraries loaded or unloaded",
		[PASSED_USER] = "user code might run",
		[PASSED_ENDING] = "ending",
	};
	struct contd_stats stats;
	char line[1024];
	size_t used = 0;
	int rank;

	get_stats(&stats);
	if (!mpi.Comm_rank(MPI_COMM_WORLD, &rank))
		contd__say_rank(rank);
	for (int i = 0; i < PASSED_COUNT; i++)
		if (names[i] && P.passed[i])
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%" PRIu64 " %s", used ? ", " : "",
						 P.passed[i], names[i]);
	contd__say("progress: %" PRIu64 " operations, %" PRIu64 " ticks, %" PRIu64 " with progress, %" PRIu64
		   " of them moved something; passed over: %s; %.1f ms in the handler, %.1f ms lost",
		   P.begun, stats.ticks - at_begin.ticks, P.passed[PASSED_NOT], P.moved, used ? line : "none",
		   (double)(stats.handler_ns - at_begin.handler_ns) / 1e6,
		   (double)(stats.lost_ns - at_begin.lost_ns) / 1e6);
}

void contd__progress_end(void)
{
	if (!runs)
		return;
	runs = false;
	contd__store_seq(&P.ending, 1);
	contd__inspect(NULL);
	if (P.shared) {
		contd__add(&P.turn, 1);
		contd__turn_wait();
	}
	if (reports())
		report();
	contd_thread_detach();
	end_looks();
	contd_fini();
}
