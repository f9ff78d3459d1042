/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * Rounds of a CR: from a start, or a first registration, to the report that it is complete. A CR is reported only when
 * all that was registered in the round has run, whichever call asks. And a continuation that waited for the CR leaves
 * the next round alone, if it runs when the program has begun that.
 */
#include "check.h"

#include <pthread.h>

#ifndef LEVEL
#define LEVEL MPI_THREAD_SINGLE
#endif

#define TAG 41

static int in, out = 1, runs, outer_runs;

static int count(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	++*(int *)data;
	return MPI_SUCCESS;
}

static void count_draft(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
}

static void send_to_self(void)
{
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF));
}

/* A continuation of a receive that waits for send_to_self(). */
static void receive(MPI_Request cr, int *counter)
{
	MPI_Request r;

	CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r));
	CHECK_OK(MPIX_Continue(&r, count, counter, 0, MPI_STATUS_IGNORE, cr));
}

/* It waits for nothing, and does not run in this call. */
static void defer(MPI_Request cr, int *counter)
{
	MPI_Request none = MPI_REQUEST_NULL;

	CHECK_OK(MPIX_Continue(&none, count, counter, MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, cr));
}

static MPI_Request revised_cr(int flags, int max_poll, const char *key)
{
	MPI_Request cr;
	MPI_Info info = MPI_INFO_NULL;

	if (key) {
		MPI_Info_create(&info);
		MPI_Info_set(info, key, "true");
	}
	CHECK_OK(MPIX_Continue_init(flags, max_poll, info, &cr));
	if (key)
		MPI_Info_free(&info);
	return cr;
}

/* ----------------------------------------------------------------------------------------------- who reports it --- */

enum call { TEST, TESTALL, TESTANY, TESTSOME, WAIT, WAITALL, WAITANY, WAITSOME, CALLS };
static const char *const name[CALLS] = {"Test", "Testall", "Testany", "Testsome",
					"Wait", "Waitall", "Waitany", "Waitsome"};

/* Does the call report the CR? */
static bool reports(enum call call, MPI_Request *cr)
{
	int flag = 1, at, indices[1];

	switch (call) {
	case TEST:
		CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
		break;
	case TESTALL:
		CHECK_OK(MPI_Testall(1, cr, &flag, MPI_STATUSES_IGNORE));
		break;
	case TESTANY:
		CHECK_OK(MPI_Testany(1, cr, &at, &flag, MPI_STATUS_IGNORE));
		break;
	case TESTSOME:
		CHECK_OK(MPI_Testsome(1, cr, &flag, indices, MPI_STATUSES_IGNORE));
		break;
	case WAIT:
		CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
		break;
	case WAITALL:
		CHECK_OK(MPI_Waitall(1, cr, MPI_STATUSES_IGNORE));
		break;
	case WAITANY:
		CHECK_OK(MPI_Waitany(1, cr, &at, MPI_STATUS_IGNORE));
		break;
	default:
		CHECK_OK(MPI_Waitsome(1, cr, &flag, indices, MPI_STATUSES_IGNORE));
	}
	return flag;
}

/* Is it active? Then it can't be started. */
static bool is_active(MPI_Request *cr)
{
	int rc = MPI_Start(cr);

	CHECK(rc == MPI_SUCCESS || rc == MPI_ERR_REQUEST);
	return rc != MPI_SUCCESS;
}

/* ------------------------------------------------------------------------------------ ready, and not run by all --- */

#define MANY 5

/* Some were registered before the start, some after it, and each test runs one. None is left to the next round. */
static void one_a_test(enum call call, int flags, const char *key, int held)
{
	MPI_Request cr = revised_cr(flags, 1, key);

	for (int round = 0; round < 3; round++) {
		runs = 0;
		for (int i = 0; i < held; i++)
			defer(cr, &runs);
		CHECK(reports(TEST, &cr)); /* it is inactive */
		CHECK_EQ(runs, 0);
		CHECK_OK(MPI_Start(&cr));
		for (int i = held; i < MANY; i++)
			defer(cr, &runs);
		for (int i = runs; i < MANY - 1; i = runs) {
			CHECK(is_active(&cr));
			CHECK(!reports(call, &cr) || runs == MANY);
			CHECK(runs > i);
			CHECK(flags == 0 || runs == i + 1);
		}
		if (runs < MANY)
			CHECK(reports(call, &cr));
		CHECK_EQ(runs, MANY);
		while (is_active(&cr))
			CHECK(reports(call, &cr));
		CHECK(reports(call, &cr)); /* as it has been started again by is_active() */
	}
	CHECK_OK(MPI_Request_free(&cr));
}

/* ----------------------------------------------------------------------------------- running, on another thread --- */

static atomic_int entered, may_leave;

static int stays(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	atomic_store(&entered, 1);
	while (!atomic_load(&may_leave))
		sched_yield();
	++*(int *)data;
	return MPI_SUCCESS;
}

static void *poller(void *cr)
{
	while (!atomic_load(&entered))
		reports(TEST, cr);
	return NULL;
}

/*
 * While a thread is inside its continuation, another one can neither see it complete nor start it. (One that is
 * async-signal-safe could run on the thread that starts it.)
 */
static void runs_beside(int flags, const char *key)
{
	MPI_Request cr = revised_cr(flags, 0, key), none = MPI_REQUEST_NULL;
	pthread_t thread;

	runs = 0;
	atomic_store(&entered, 0);
	atomic_store(&may_leave, 0);
	CHECK_OK(MPIX_Continue(&none, stays, &runs, MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, cr));
	CHECK_EQ(pthread_create(&thread, NULL, poller, &cr), 0);
	CHECK_OK(MPI_Start(&cr));
	while (!atomic_load(&entered))
		sched_yield();
	for (int call = TEST; call <= TESTSOME; call++)
		CHECK(!reports((enum call)call, &cr));
	CHECK(is_active(&cr));
	atomic_store(&may_leave, 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(!is_active(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

/* -------------------------------------------------------------------------- a continuation that waited for a CR --- */

/* The continuation of `outer` runs only in a test of outer. */
static void attach_outer(MPI_Request cr, bool revised, bool beside, MPI_Request outer)
{
	MPI_Request r[2] = {cr, MPI_REQUEST_NULL};

	outer_runs = 0;
	if (beside)
		CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r[1]));
	if (revised)
		CHECK_OK(MPIX_Continueall(2, r, count, &outer_runs, MPIX_CONT_DEFER_COMPLETE, MPI_STATUSES_IGNORE,
					  outer));
	else
		CHECK_OK(MPI_Continueall(2, r, count_draft, &outer_runs, MPI_STATUSES_IGNORE, outer));
	if (beside)
		send_to_self();
}

static void run_outer(MPI_Request outer)
{
	CHECK_EQ(outer_runs, 0);
	CHECK_OK(MPI_Wait(&outer, MPI_STATUS_IGNORE));
	CHECK_EQ(outer_runs, 1);
}

/* It is in its next round, or in none: a round is a whole one. */
static void next_round(MPI_Request *cr)
{
	runs = 0;
	receive(*cr, &runs);
	send_to_self();
	CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	CHECK_OK(MPI_Start(cr));
	CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
}

static MPI_Request outer_cr(bool revised)
{
	MPI_Request outer;

	if (!revised)
		return check_cr("mpi_continue_poll_only", "true", "mpi_continue_enqueue_complete", "true");
	outer = revised_cr(MPIX_CONT_POLL_ONLY, 0, NULL);
	CHECK_OK(MPI_Start(&outer));
	return outer;
}

/* It waited for a receive, or the CR was complete, active or not, when it was attached. */
enum before { WAITED, COMPLETE, INACTIVE, BEFORES };

static void late(enum before before, enum call call, bool revised, bool beside)
{
	MPI_Request cr = revised_cr(0, 0, NULL), outer = outer_cr(revised);

	runs = 0;
	if (before != INACTIVE)
		CHECK_OK(MPI_Start(&cr));
	if (before == WAITED)
		receive(cr, &runs);
	attach_outer(cr, revised, beside, outer);
	if (before == WAITED)
		send_to_self();
	if (before != INACTIVE) {
		while (!reports(call, &cr))
			;
		CHECK_EQ(runs, before == WAITED);
	}
	CHECK_OK(MPI_Start(&cr));
	run_outer(outer);
	next_round(&cr);
	CHECK_OK(MPI_Request_free(&outer));
	CHECK_OK(MPI_Request_free(&cr));
}

/* It waits for a continuation that is held until the start: it ends the round that begins then. */
static void held(bool revised, bool beside)
{
	MPI_Request cr = revised_cr(0, 0, NULL), outer = outer_cr(revised);

	for (int round = 0; round < 2; round++) {
		runs = 0;
		receive(cr, &runs);
		send_to_self();
		attach_outer(cr, revised, beside, outer);
		CHECK_OK(MPI_Start(&cr));
		run_outer(outer);
		CHECK_EQ(runs, 1);
		CHECK(!is_active(&cr)); /* it ended this round */
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		if (revised)
			CHECK_OK(MPI_Start(&outer));
	}
	CHECK_OK(MPI_Request_free(&outer));
	CHECK_OK(MPI_Request_free(&cr));
}

/* A draft CR, in which something has run since: MPI_Waitany has to tell of that. */
static void late_draft(bool waited, bool reported, bool revised, bool beside)
{
	MPI_Request cr = check_plain_cr(), outer = outer_cr(revised);
	int at = 4711;

	runs = 0;
	if (waited)
		receive(cr, &runs);
	attach_outer(cr, revised, beside, outer);
	if (waited)
		send_to_self();
	if (reported)
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	while (waited && !runs)
		CHECK_OK(MPI_Iprobe(0, TAG + 1, MPI_COMM_SELF, &at, MPI_STATUS_IGNORE));
	receive(cr, &runs);
	if (reported) { /* or else it is one round, which ends when nothing is outstanding */
		send_to_self();
		while (runs < waited + 1)
			CHECK_OK(MPI_Iprobe(0, TAG + 1, MPI_COMM_SELF, &at, MPI_STATUS_IGNORE));
	}
	run_outer(outer);
	if (!reported)
		send_to_self();
	CHECK_OK(MPI_Waitany(1, &cr, &at, MPI_STATUS_IGNORE));
	CHECK_EQ(at, 0);
	CHECK_EQ(runs, waited + 1);
	CHECK_OK(MPI_Waitany(1, &cr, &at, MPI_STATUS_IGNORE));
	CHECK_EQ(at, MPI_UNDEFINED);
	CHECK_OK(MPI_Request_free(&outer));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	static const char *const keys[] = {NULL, "mpi_continue_poll_only", "mpi_continue_enqueue_complete",
					   "mpi_continue_async_signal_safe"};
	static const char *const befores[BEFORES] = {"waited", "complete", "inactive"};

	check_init(&argc, &argv, LEVEL);
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	for (int before = 0; before < BEFORES; before++) {
		check_begin(befores[before]);
		for (int i = 0; i < 4; i++)
			for (int call = 0; call < CALLS; call++)
				late((enum before)before, (enum call)call, i & 1, i & 2);
	}
	check_begin("held");
	for (int i = 0; i < 4; i++)
		held(i & 1, i & 2);
	check_begin("draft");
	for (int i = 0; i < 16; i++)
		late_draft(i & 1, i & 2, i & 4, i & 8);
	for (int key = 0; key < 4; key++) {
		check_begin(keys[key] ? keys[key] : "no key");
		for (int call = TEST; call <= TESTSOME; call++)
			for (int flags = 0; flags < 2; flags++)
				for (int held = 0; held <= MANY; held += MANY - 2)
					one_a_test((enum call)call, flags ? MPIX_CONT_POLL_ONLY : 0, keys[key], held);
		for (int flags = 0; flags < 2 && LEVEL == MPI_THREAD_MULTIPLE && key < 3; flags++)
			runs_beside(flags ? MPIX_CONT_POLL_ONLY : 0, keys[key]);
	}
	return check_fini();
}
