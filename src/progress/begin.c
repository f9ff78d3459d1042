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
 * Must the libraries be read again, now? `by_mpi`: how many changes MPI's progress has made. To read needs the
 * loader's lock. If several threads call MPI, one that loads a library may hold it for as long as it waits for this
 * tick, in a constructor. Then the next call of MPI reads. contd__opened_note() knows what is MPI's.
 */
static bool has_loaded(uint64_t by_mpi)
{
	uint64_t changes = contd__load(&P.loads) - contd__load(&P.generation);

	return changes && (!P.shared || (!P.by_thread && by_mpi == changes));
}

/* The turn is taken, and the calling thread marked as one in MPI. */
static void look(void)
{
	uint64_t begin = contd__ticks(), now, took, most, worked = 0, loads = contd__inside.loads;
	uint32_t looks = 0;
	bool yields = set_yield && set_yield(false), found;

	contd__floating_use();
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
	contd__worked_sig(worked);
	P.moved += worked != 0;
	if (has_loaded(contd__inside.loads - loads))
		contd__closure_read(true);
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
	sigset_t signals;

	(void)last;
	pthread_sigmask(SIG_BLOCK, &P.but_faults, &signals);
	contd__inside.ticks = true;
	if (P.shared)
		contd__or(&P.turn, TURN_LOOKS);
	else
		contd__store_seq(&P.turn, TURN_TICK);
	/* Another thread ends the program, or forks, or has made something that progress might call. */
	if (!contd__load_seq(&P.ending) && !contd__load_seq(&P.loading) &&
	    (P.allow_user_code || !contd__load_seq(&P.user_code)))
		look();
	if (!P.shared)
		contd__store_seq(&P.turn, 0);
	contd__inside.ticks = false;
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	contd__cancel_as(cancel);
	contd__leave(&contd__inside.mpi, how, &mark);
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

/* By contd's thread: the turn is all that it needs, because it is interrupted in nothing. */
static enum contd__passed take_turn(void)
{
	enum contd__passed passed = PASSED_NOT;

	if (!contd__turn_take_sig(TURN_LOOKS))
		return PASSED_MPI; /* that thread makes progress */
	if (contd__load_seq(&P.ending))
		passed = PASSED_ENDING;
	else if (!P.allow_user_code && (contd__load_seq(&P.user_code) || contd__load(&P.reducing)))
		passed = PASSED_USER;
	else if (contd__load_seq(&P.loading))
		passed = PASSED_LOADER;
	else if (contd__load_seq(&P.locked))
		passed = PASSED_CALLED;
	if (passed != PASSED_NOT)
		contd__and(&P.turn, ~(TURN_TICK | TURN_LOOKS));
	return passed;
}

static void progress_by_thread(bool last)
{
	enum contd__passed passed = take_turn();
	enum contd__entered how;
	struct contd__mark mark;

	(void)last;
	contd__add(&P.passed[passed], 1);
	if (passed != PASSED_NOT)
		return;
	/* Functions that MPI calls here are below another call. Where the stack is not known it counts as on another
	 * stack. */
	if (!contd__inside.high && !find_stack())
		contd__inside.low = contd__inside.high = 1;
	how = contd__enter(&contd__inside.mpi, CONTD__FRAME, &mark);
	contd__inside.ticks = true;
	contd__inside.floating = contd__load(&P.floating);
	contd__inside.floating_x87 = contd__load(&P.floating_x87);
	look();
	contd__inside.ticks = false;
	contd__leave(&contd__inside.mpi, how, &mark);
	contd__and(&P.turn, ~(TURN_TICK | TURN_LOOKS));
}

static struct contd__source source = {
	.name = "progress",
	.pending = contd__wants_looks,
};

static const struct contd__inspector inspector = {contd__allows, contd__allowed};

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
	contd__say("progress: no progress: %s", why);
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

/* In a child of fork nothing is left of it: contd has no timers there. */
static void in_child(void)
{
	contd__store(&P.loading, 0); /* what other threads were doing */
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
	const char *allow = getenv("CONTD_PROGRESS_ALLOW"), *agent = getenv("CONTD_AGENT"), *by, *why;
	int level = MPI_THREAD_MULTIPLE;
	uintptr_t address;

	if (!is_switch("CONTD_PROGRESS"))
		return "CONTD_PROGRESS must be 0 (off) or 1, or not set";
	if (!is_switch("CONTD_PROGRESS_REPORT"))
		return "CONTD_PROGRESS_REPORT must be 0 or 1 (a report), or not set";
	if (allow && strcmp(allow, "user-code") != 0)
		return "CONTD_PROGRESS_ALLOW must be user-code or not set";
	by = getenv("CONTD_PROGRESS_BY");
	if (by && strcmp(by, "auto") != 0 && strcmp(by, "tick") != 0 && strcmp(by, "thread") != 0)
		return "CONTD_PROGRESS_BY must be tick, thread or auto, or not set";
	if (agent && !strcmp(agent, "caller"))
		return "with CONTD_AGENT=caller there are no ticks; set region, or nothing";
	P.allow_user_code = allow != NULL;
	if (!contd__load(&P.main_runs))
		return "MPI_Init was called before main(), or main() has not been seen";
	if (!find_mpi(&address))
		return "MPI's library is not found";
	if (mpi.Query_thread(&level))
		return "MPI does not say its thread level";
	P.shared = level >= MPI_THREAD_SERIALIZED;
	P.multiple = level > MPI_THREAD_SERIALIZED;
	/* Measured (docs/progress.md): where MPI lets it, the thread reacts sooner. */
	P.by_thread = by && strcmp(by, "auto") != 0 ? !strcmp(by, "thread") : P.multiple;
	if (P.by_thread && !P.shared)
		return "CONTD_PROGRESS_BY=thread needs MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE";
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

static void thread_over(void *unused)
{
	(void)unused;
	contd__turn_left();
}

/* In glibc: called when the thread ends, before what pthread_key_create(3) has asked for. */
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);

/* The calling thread, which calls MPI, may end. */
static bool sees_end(void)
{
	return !__cxa_thread_atexit_impl(thread_over, NULL, &contd__progress);
}

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

static void end_contd(void)
{
	if (!P.by_thread)
		contd_thread_detach();
	contd_fini(); /* and its thread */
}

static const char *begin_looks(void)
{
	const char *why = NULL;

	some_ticks = (uint64_t)(5000 * contd__clock.ticks_per_ns);
	source.where = P.by_thread ? WHERE_DAEMON : WHERE_INSPECTED;
	source.progress = P.by_thread ? progress_by_thread : progress;
	if (mpi.Comm_dup(MPI_COMM_SELF, &own))
		return "MPI refuses a communicator";
	if (mpi.Comm_set_errhandler(own, MPI_ERRORS_RETURN) || mpi.Irecv(NULL, 0, MPI_CHAR, 0, 0, own, &never))
		why = "MPI refuses a receive";
	else if (!find_stack())
		why = "the thread's stack is not known";
	else if (P.shared && !sees_end())
		why = "out of memory";
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
	else if (!why && (P.by_thread ? contd_daemon_start(NULL) : contd_thread_attach(NULL))) {
		why = contd_error_text();
		contd_fini();
	}
	if (!why && (why = begin_looks()) != NULL)
		end_contd();
	if (why) {
		say(why);
		P.shared = P.multiple = P.by_thread = false;
		return;
	}
	runs = true;
	get_stats(&at_begin);
#ifdef CONTD_TESTPOINTS
	prepare_test();
#endif
	if (P.shared)
		contd__turn_join();
	P.floating = contd__inside.floating;
	P.floating_x87 = contd__inside.floating_x87;
	contd__store(&P.last, P.shared && !P.multiple ? contd__this_thread() : 0);
	if (!P.by_thread)
		contd__inspect(&inspector);
	else
		contd__pending_sig();
}

/* If it cannot be attached, its calls are still counted, as on an unknown stack. */
void contd__progress_join(void)
{
	contd__inside.low = contd__inside.high = 1;
	if (!sees_end() || (!P.by_thread && contd_thread_attach(NULL)) || !find_stack()) {
		contd__inside.low = contd__inside.high = 1;
		return;
	}
	contd__turn_join();
	if (!P.by_thread)
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
	uint64_t looks = 0;
	char line[1024], cost[100] = "";
	size_t used = 0;
	int rank;

	get_stats(&stats);
	if (!mpi.Comm_rank(MPI_COMM_WORLD, &rank))
		contd__say_rank(rank);
	for (int i = 0; i < PASSED_COUNT; i++) {
		looks += P.passed[i];
		if (names[i] && P.passed[i])
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%" PRIu64 " %s", used ? ", " : "",
						 P.passed[i], names[i]);
	}
	if (!P.by_thread)
		snprintf(cost, sizeof(cost), "; %.1f ms in the handler, %.1f ms lost",
			 (double)(stats.handler_ns - at_begin.handler_ns) / 1e6,
			 (double)(stats.lost_ns - at_begin.lost_ns) / 1e6);
	contd__say("progress: %" PRIu64 " operations, %" PRIu64 " %s, %" PRIu64 " with progress, %" PRIu64
		   " of them moved something; passed over: %s%s",
		   P.begun, P.by_thread ? looks : stats.ticks - at_begin.ticks,
		   P.by_thread ? "looks of contd's thread" : "ticks", P.passed[PASSED_NOT], P.moved,
		   used ? line : "none", cost);
}

void contd__progress_end(void)
{
	if (!runs)
		return;
	runs = false;
	contd__store_seq(&P.ending, 1);
	contd__inspect(NULL);
	if (P.shared)
		contd__turn_end_all();
	if (reports())
		report();
	end_looks();
	end_contd();
}
