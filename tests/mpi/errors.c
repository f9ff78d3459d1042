/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Bad input: an error class through the error handler of MPI_COMM_SELF, and nothing has changed. */
#include "check.h"
#include "base/memory.h"
#include "base/testpoint.h"

#define TAG 71

static int on_self_count, on_self_code, on_world_count;
static MPI_Request cr;
static char in[16], out[16];

static void on_self(MPI_Comm *comm, int *error, ...)
{
	int same;

	MPI_Comm_compare(*comm, MPI_COMM_SELF, &same);
	CHECK_EQ(same, MPI_IDENT);
	on_self_count++;
	on_self_code = *error;
}

static void on_world(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	on_world_count++;
}

/* Zero is a handle of nothing. */
static MPI_Request no_handle;
static MPI_Info no_info;

static void never(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	CHECK(!"this continuation was never attached");
}

/* The call gave this class, and told MPI_COMM_SELF's handler of it, once. */
static void refused(int rc, int class, int line)
{
	int got;

	MPI_Error_class(rc, &got);
	check_equal(got, class, "class", __FILE__, line);
	check_equal(on_self_count, 1, "handler called", __FILE__, line);
	check_equal(on_self_code, rc, "handler's code", __FILE__, line);
	check_equal(on_world_count, 0, "other handler called", __FILE__, line);
	on_self_count = on_world_count = on_self_code = 0;
}
#define REFUSED(call, class) refused((call), (class), __LINE__)

/* ----------------------------------------------------------------------------------------------- outside of MPI --- */

/* No handler to be called then, and no abort. */
static void check_outside(const char *when)
{
	MPI_Request r = MPI_REQUEST_NULL, none;

	check_begin(when);
	memset(&none, POISON, sizeof(none));
	CHECK_EQ(MPI_Continue_init(MPI_INFO_NULL, &r), MPI_ERR_OTHER);
	CHECK(r == MPI_REQUEST_NULL);
	CHECK_EQ(MPI_Continue_init(MPI_INFO_NULL, NULL), MPI_ERR_OTHER);
	CHECK_EQ(MPI_Continue(&r, never, NULL, MPI_STATUS_IGNORE, MPI_REQUEST_NULL), MPI_ERR_OTHER);
	CHECK_EQ(MPI_Continueall(1, &r, never, NULL, MPI_STATUSES_IGNORE, none), MPI_ERR_OTHER);
	CHECK_EQ(MPI_Continueall(-1, NULL, NULL, NULL, MPI_STATUSES_IGNORE, MPI_REQUEST_NULL), MPI_ERR_OTHER);
	CHECK(r == MPI_REQUEST_NULL);
}

/* ------------------------------------------------------------------------------------------------------ ladders --- */

/* The first call of all, with less memory than it needs, until it has enough. */
static void check_first_call(void)
{
	long refusals = 0;
	MPI_Request r = MPI_REQUEST_NULL;

	check_begin("out of memory, first call");
	for (long budget = 0;; budget++) {
		MPI_Request made = MPI_REQUEST_NULL;
		int rc;

		contd__alloc_budget = budget;
		rc = MPI_Continue_init(MPI_INFO_NULL, &made);
		contd__alloc_budget = -1;
		if (!rc) {
			cr = made;
			break;
		}
		REFUSED(rc, MPI_ERR_NO_MEM);
		CHECK(made == MPI_REQUEST_NULL);
		if (++refusals > 1000)
			break;
	}
	CHECK(refusals > 0);
	CHECK_OK(MPI_Continue(&r, see, &(struct seen){0}, MPI_STATUS_IGNORE, cr));
}

/* A CR's table, and one continuation after the other until the table has grown several times. */
static void check_ladder(bool set)
{
	enum { N = 3000, EACH = 3 };
	static char bytes[N * EACH];
	MPI_Request made, r[EACH], before[EACH];
	struct seen *seen = calloc(N, sizeof(*seen));
	long refusals = 0;

	check_begin(set ? "out of memory, Continueall" : "out of memory, Continue");
	for (long budget = 0;; budget++) {
		int rc;

		made = MPI_REQUEST_NULL;
		contd__alloc_budget = budget;
		rc = MPI_Continue_init(MPI_INFO_NULL, &made);
		contd__alloc_budget = -1;
		if (!rc)
			break;
		REFUSED(rc, MPI_ERR_NO_MEM);
		CHECK(made == MPI_REQUEST_NULL);
		refusals++;
	}
	CHECK(refusals > 0);
	refusals = 0;
	for (int i = 0; i < N; i++) {
		int count = set ? EACH : 1;

		for (int k = 0; k < count; k++)
			MPI_Irecv(&bytes[i * EACH + k], 1, MPI_BYTE, check_previous(), i * EACH + k, MPI_COMM_WORLD,
				  &r[k]);
		memcpy(before, r, sizeof(r));
		for (long budget = 0;; budget++) {
			int rc;

			contd__alloc_budget = budget;
			if (set)
				rc = MPI_Continueall(count, r, see, &seen[i], MPI_STATUSES_IGNORE, made);
			else
				rc = MPI_Continue(&r[0], see, &seen[i], MPI_STATUS_IGNORE, made);
			contd__alloc_budget = -1;
			if (!rc)
				break;
			REFUSED(rc, MPI_ERR_NO_MEM);
			CHECK(memcmp(before, r, (size_t)count * sizeof(r[0])) == 0);
			CHECK_EQ(seen[i].runs, 0);
			refusals++;
			if (budget > 1000)
				break;
		}
		for (int k = 0; k < count; k++)
			CHECK(r[k] == MPI_REQUEST_NULL);
	}
	CHECK(refusals >= N);
	MPI_Barrier(MPI_COMM_WORLD); /* all attach before anything arrives: complete operations need no memory */
	for (int i = 0; i < N * EACH; i++)
		if (set || i % EACH == 0)
			MPI_Send(out, 1, MPI_BYTE, check_next(), i, MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&made, MPI_STATUS_IGNORE));
	for (int i = 0; i < N; i++)
		CHECK_EQ(seen[i].runs, 1);
	CHECK_OK(MPI_Request_free(&made));
	free(seen);
}

/* Several CRs in one completion call: no success is reported that is none. */
static void check_ladder_waitall(void)
{
	enum { WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, CALLS };
	struct seen seen = {0};
	MPI_Request r[3];

	check_begin("out of memory, several CRs in one call");
	for (int how = 0; how < CALLS; how++) {
		int rc, flag = 0, index = 0, count = 0, indices[3];
		MPI_Request op, two[3];

		r[0] = check_plain_cr();
		r[1] = check_plain_cr();
		r[2] = MPI_REQUEST_NULL;
		memcpy(two, r, sizeof(r));
		for (int i = 0; i < 2; i++) {
			MPI_Irecv(in + i, 1, MPI_BYTE, check_previous(), TAG + i, MPI_COMM_WORLD, &op);
			CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, r[i]));
			MPI_Send(out, 1, MPI_BYTE, check_next(), TAG + i, MPI_COMM_WORLD);
		}
		for (long budget = 0;; budget++) {
			contd__alloc_budget = budget;
			if (how == WAITALL) {
				rc = MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
				flag = 1;
			} else if (how == TESTALL) {
				rc = MPI_Testall(3, r, &flag, MPI_STATUSES_IGNORE);
			} else if (how == WAITANY) {
				rc = MPI_Waitany(3, r, &index, MPI_STATUS_IGNORE);
			} else if (how == TESTANY) {
				rc = MPI_Testany(3, r, &index, &flag, MPI_STATUS_IGNORE);
			} else if (how == WAITSOME) {
				rc = MPI_Waitsome(3, r, &count, indices, MPI_STATUSES_IGNORE);
			} else {
				rc = MPI_Testsome(3, r, &count, indices, MPI_STATUSES_IGNORE);
			}
			contd__alloc_budget = -1;
			CHECK(memcmp(two, r, sizeof(r)) == 0);
			if (rc == MPI_SUCCESS || budget > 1000)
				break;
			CHECK_EQ(on_self_count, 1);
			on_self_count = 0;
		}
		CHECK_EQ(on_self_count, 0);
		if (rc == MPI_SUCCESS && (how == WAITALL || (how == TESTALL && flag)))
			CHECK_EQ(seen.runs, 2 * how + 2);
		CHECK_OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 2 * how + 2);
		CHECK_OK(MPI_Request_free(&r[0]));
		CHECK_OK(MPI_Request_free(&r[1]));
	}
}

/* ---------------------------------------------------------------------------------------------------- arguments --- */

static int init_with(const char *key, const char *value, const char *key2, const char *value2)
{
	MPI_Request made = MPI_REQUEST_NULL;
	MPI_Info info;
	int rc;

	MPI_Info_create(&info);
	MPI_Info_set(info, key, value);
	if (key2)
		MPI_Info_set(info, key2, value2);
	rc = MPI_Continue_init(info, &made);
	MPI_Info_free(&info);
	CHECK((made == MPI_REQUEST_NULL) == (rc != MPI_SUCCESS));
	if (!rc)
		CHECK_OK(MPI_Request_free(&made));
	return rc;
}

static void check_init_arguments(void)
{
	MPI_Request made = MPI_REQUEST_NULL;

	check_begin("MPI_Continue_init");
	REFUSED(MPI_Continue_init(MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	REFUSED(MPI_Continue_init(no_info, &made), MPI_ERR_INFO);
	CHECK(made == MPI_REQUEST_NULL);
	REFUSED(init_with("mpi_continue_poll_only", "maybe", NULL, NULL), MPI_ERR_INFO_VALUE);
	REFUSED(init_with("mpi_continue_max_poll", "many", NULL, NULL), MPI_ERR_INFO_VALUE);
	REFUSED(init_with("mpi_continue_thread", "mine", NULL, NULL), MPI_ERR_INFO_VALUE);
	REFUSED(init_with("mpi_continue_poll_only", "true", "mpi_continue_max_poll", "0"), MPI_ERR_ARG);
	/* The daemon enters MPI, so it needs a level that this program does not have. */
	REFUSED(init_with("contd_agent", "tick", NULL, NULL), MPI_ERR_OTHER);
	REFUSED(init_with("contd_agent", "tick", "mpi_continue_async_signal_safe", "true"), MPI_ERR_OTHER);
	CHECK_OK(init_with("contd_agent", "caller", NULL, NULL));
	CHECK_OK(init_with("contd_agent", "region", NULL, NULL));
}

/* A receive that nothing has been attached to still is one. */
static void still_works(MPI_Request *r, int tag)
{
	struct seen seen = {0};

	CHECK_OK(MPI_Continue(r, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK(*r == MPI_REQUEST_NULL);
	MPI_Send(out, 1, MPI_BYTE, check_next(), tag, MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
}

static void check_attach_arguments(void)
{
	MPI_Request r[3], before[3], pending, persistent, null_handle = no_handle;
	MPI_Status status[3];

	check_begin("arguments of MPI_Continue");
	MPI_Irecv(in, 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(in + 1, 1, MPI_BYTE, check_previous(), TAG + 1, MPI_COMM_WORLD, &r[1]);
	r[2] = MPI_REQUEST_NULL;
	MPI_Irecv(in + 2, 1, MPI_BYTE, check_previous(), TAG + 2, MPI_COMM_WORLD, &pending);
	MPI_Recv_init(in + 3, 1, MPI_BYTE, check_previous(), TAG + 3, MPI_COMM_WORLD, &persistent);
	memcpy(before, r, sizeof(r));
	memset(status, POISON, sizeof(status));

	REFUSED(MPI_Continue(NULL, never, NULL, &status[0], cr), MPI_ERR_ARG);
	REFUSED(MPI_Continue(&r[0], NULL, NULL, &status[0], cr), MPI_ERR_ARG);
	REFUSED(MPI_Continue(&null_handle, never, NULL, &status[0], cr), MPI_ERR_REQUEST);
	REFUSED(MPI_Continue(&r[0], never, NULL, &status[0], no_handle), MPI_ERR_REQUEST);
	REFUSED(MPI_Continue(&r[0], never, NULL, &status[0], MPI_REQUEST_NULL), MPI_ERR_REQUEST);
	REFUSED(MPI_Continue(&r[0], never, NULL, &status[0], pending), MPI_ERR_REQUEST);
	REFUSED(MPI_Continue(&r[0], never, NULL, &status[0], r[0]), MPI_ERR_REQUEST);
	REFUSED(MPI_Continue(&r[0], never, NULL, &status[0], persistent), MPI_ERR_REQUEST);

	REFUSED(MPI_Continueall(-1, r, never, NULL, status, cr), MPI_ERR_COUNT);
	REFUSED(MPI_Continueall(-2147483647 - 1, r, never, NULL, status, cr), MPI_ERR_COUNT);
	REFUSED(MPI_Continueall(3, NULL, never, NULL, status, cr), MPI_ERR_ARG);
	REFUSED(MPI_Continueall(3, r, NULL, NULL, status, cr), MPI_ERR_ARG);
	REFUSED(MPI_Continueall(0, NULL, NULL, NULL, NULL, cr), MPI_ERR_ARG);
	REFUSED(MPI_Continueall(3, r, never, NULL, status, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
	REFUSED(MPI_Continueall(3, r, never, NULL, status, pending), MPI_ERR_REQUEST);
	REFUSED(MPI_Continueall(0, NULL, never, NULL, NULL, pending), MPI_ERR_REQUEST);
	r[2] = no_handle;
	REFUSED(MPI_Continueall(3, r, never, NULL, status, cr), MPI_ERR_REQUEST);
	r[2] = MPI_REQUEST_NULL;
	CHECK(memcmp(before, r, sizeof(r)) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(status_is_poison(&status[i]));

	check_begin("the same request twice");
	r[2] = r[0];
	REFUSED(MPI_Continueall(3, r, never, NULL, status, cr), MPI_ERR_REQUEST);
	CHECK(r[0] == before[0] && r[1] == before[1] && r[2] == before[0]);
	r[2] = MPI_REQUEST_NULL;
	CHECK_OK(MPI_Start(&persistent));
	before[0] = before[1] = before[2] = persistent;
	REFUSED(MPI_Continueall(3, before, never, NULL, status, cr), MPI_ERR_REQUEST);
	CHECK(before[0] == persistent && before[1] == persistent && before[2] == persistent);
	for (int i = 0; i < 3; i++)
		CHECK(status_is_poison(&status[i]));

	check_begin("a second continuation");
	{
		struct seen seen = {0};

		CHECK_OK(MPI_Continue(&persistent, see, &seen, MPI_STATUS_IGNORE, cr));
		REFUSED(MPI_Continue(&persistent, never, NULL, &status[0], cr), MPI_ERR_REQUEST);
		r[2] = persistent;
		memcpy(before, r, sizeof(r));
		REFUSED(MPI_Continueall(3, r, never, NULL, status, cr), MPI_ERR_REQUEST);
		CHECK(memcmp(before, r, sizeof(r)) == 0);
		MPI_Barrier(MPI_COMM_WORLD); /* until here all of them are active */
		MPI_Send(out, 1, MPI_BYTE, check_next(), TAG + 3, MPI_COMM_WORLD);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		CHECK_OK(MPI_Request_free(&persistent));
	}
	check_begin("requests after refusals");
	still_works(&r[0], TAG);
	still_works(&pending, TAG + 2);
	MPI_Send(out, 1, MPI_BYTE, check_next(), TAG + 1, MPI_COMM_WORLD);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	CHECK(r[1] == MPI_REQUEST_NULL);

	/* Complete, but not yet given back: named twice it would be given back twice. */
	check_begin("the same request twice, complete");
	MPI_Irecv(in, 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r[0]);
	MPI_Send(out, 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
	for (int flag = 0; !flag;)
		MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE);
	r[1] = MPI_REQUEST_NULL;
	r[2] = r[0];
	memcpy(before, r, sizeof(r));
	REFUSED(MPI_Continueall(3, r, never, NULL, status, cr), MPI_ERR_REQUEST);
	CHECK(memcmp(before, r, sizeof(r)) == 0);
	still_works(&r[0], TAG); /* its message is there, so this sends one too many: */
	MPI_Recv(in, 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

	/* These may stand there as often as one likes. */
	check_begin("null and inactive requests several times");
	{
		struct seen seen = {0};

		MPI_Recv_init(in + 3, 1, MPI_BYTE, check_previous(), TAG + 3, MPI_COMM_WORLD, &persistent);
		r[0] = r[2] = persistent;
		r[1] = MPI_REQUEST_NULL;
		CHECK_OK(MPI_Continueall(3, r, see, &seen, status, cr));
		MPI_Irecv(in, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(in, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &r[1]);
		r[2] = MPI_REQUEST_NULL;
		CHECK_OK(MPI_Continueall(3, r, see, &seen, status, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 2);
		CHECK_OK(MPI_Request_free(&persistent));
	}
}

/* -------------------------------------------------------------------------------------------- CRs as operations --- */

static MPI_Request hooked_cr;
static int hooked_at, hook_calls;

/* The awaited CR becomes complete while the call that will be refused is under way. */
static void complete_meanwhile(const char *point)
{
	void (*hook)(const char *) = contd__testpoint_hook;

	if (strcmp(point, "chain_waiting") || hook_calls++ != hooked_at)
		return;
	contd__testpoint_hook = NULL;
	MPI_Send(out, 1, MPI_BYTE, check_rank, TAG + 9, MPI_COMM_WORLD);
	MPI_Wait(&hooked_cr, MPI_STATUS_IGNORE);
	contd__testpoint_hook = hook;
}

static void check_crs(void)
{
	MPI_Request first = check_plain_cr(), second = check_plain_cr(), third = check_plain_cr(), op, r[3];
	struct seen seen = {0}, chained = {0};
	int flag;

	check_begin("a second continuation on a CR");
	MPI_Irecv(in, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD, &op);
	CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, first));
	CHECK_OK(MPI_Continue(&first, see, &chained, MPI_STATUS_IGNORE, second));
	REFUSED(MPI_Continue(&first, never, NULL, MPI_STATUS_IGNORE, second), MPI_ERR_REQUEST);
	REFUSED(MPI_Continue(&first, never, NULL, MPI_STATUS_IGNORE, third), MPI_ERR_REQUEST);
	CHECK_OK(MPI_Test(&third, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	REFUSED(MPI_Continue(&second, never, NULL, MPI_STATUS_IGNORE, first), MPI_ERR_REQUEST);
	r[0] = third; /* complete */
	r[1] = first;
	r[2] = first;
	REFUSED(MPI_Continueall(3, r, never, NULL, MPI_STATUSES_IGNORE, third), MPI_ERR_REQUEST);
	MPI_Send(out, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(chained.runs, 1);
	CHECK_OK(MPI_Wait(&third, MPI_STATUS_IGNORE));

	check_begin("a CR twice");
	MPI_Irecv(in, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD, &op);
	CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, first));
	r[0] = r[2] = first;
	r[1] = MPI_REQUEST_NULL;
	REFUSED(MPI_Continueall(3, r, never, NULL, MPI_STATUSES_IGNORE, second), MPI_ERR_REQUEST);
	CHECK_OK(MPI_Test(&second, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	MPI_Send(out, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&first, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));

	/* first completes between its own turn and that of the CR that closes a cycle; before and after refusals alike
	 * the group of `second` counts nothing. */
	check_begin("a refusal while an awaited CR completes");
	for (hooked_at = 0; hooked_at < 2; hooked_at++) {
		MPI_Irecv(in, 1, MPI_BYTE, check_rank, TAG + 9, MPI_COMM_WORLD, &op);
		CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, first));
		MPI_Irecv(in + 1, 1, MPI_BYTE, check_rank, TAG + 10, MPI_COMM_WORLD, &op);
		CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, second));
		CHECK_OK(MPI_Continue(&second, see, &chained, MPI_STATUS_IGNORE, third));
		r[0] = first;
		r[1] = MPI_REQUEST_NULL;
		r[2] = third; /* waits for second */
		hooked_cr = first;
		hook_calls = 0;
		contd__testpoint_hook = complete_meanwhile;
		REFUSED(MPI_Continueall(3, r, never, NULL, MPI_STATUSES_IGNORE, second), MPI_ERR_REQUEST);
		contd__testpoint_hook = NULL;
		MPI_Send(out, 1, MPI_BYTE, check_rank, TAG + 10, MPI_COMM_WORLD);
		CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Wait(&third, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Wait(&first, MPI_STATUS_IGNORE));
		CHECK_EQ(chained.runs, 2 + hooked_at);
	}
	CHECK_OK(MPI_Request_free(&first));
	CHECK_OK(MPI_Request_free(&second));
	CHECK_OK(MPI_Request_free(&third));
}

/* MPI's own functions that make no sense on a CR. */
static void check_foreign_calls(void)
{
	MPI_Request same = cr, op;
	struct seen seen = {0};

	check_begin("MPI_Start and MPI_Cancel on a CR");
	CHECK(MPI_Start(&cr) != MPI_SUCCESS);
	CHECK(cr == same);
	MPI_Irecv(in, 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &op);
	CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK(MPI_Start(&cr) != MPI_SUCCESS);
	CHECK(MPI_Cancel(&cr) != MPI_SUCCESS);
	CHECK(cr == same);
	MPI_Send(out, 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	on_self_count = on_world_count = 0;
}

int main(int argc, char **argv)
{
	MPI_Errhandler self, world;
	int rc;

	check_watchdog();
	check_outside("before MPI_Init");
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_create_errhandler(on_self, &self);
	MPI_Comm_create_errhandler(on_world, &world);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
	check_first_call();
	check_init_arguments();
	check_attach_arguments();
	check_crs();
	check_foreign_calls();
	check_ladder(false);
	check_ladder(true);
	check_ladder_waitall();
	CHECK_EQ(on_world_count, 0);
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&self);
	MPI_Errhandler_free(&world);
	rc = check_fini();
	check_outside("after MPI_Finalize");
	return rc || atomic_load(&check_failures);
}
