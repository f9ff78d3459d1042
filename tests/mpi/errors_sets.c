/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Continuations of one to three receives of which some fail, in each order: at attach or later, in both interfaces,
 * with a CR, one that is freed, or none, with statuses or without, under a handler of MPI's and one of the program's.
 * Each runs once or not at all, with the right code and the right statuses. Rank 1 sends what rank 0 asks for. (Open
 * MPI does not notice that a message of the process's own is too long for a receive that waits.)
 */
#include "errors.h"

#ifndef LEVEL
#define LEVEL MPI_THREAD_SINGLE
#endif

#define TAG 61
#define MOST 3

enum cr { DRAFT, REVISED, INACTIVE, FREED, NO_CR, CRS };
static const char *const cr_name[CRS] = {"draft", "revised", "revised, started later", "revised, freed", "no CR"};

struct variant {
	enum cr cr;
	int n;        /* receives */
	int failing;  /* bits */
	int order;    /* in which messages are sent */
	int attached; /* how many are sent before the continuation is attached */
	int flags;
	bool ignore;
	const char *key;
};

static MPI_Comm comm;
static int in[MOST][4], runs, got, tells;
static MPI_Status statuses[MOST];
static const MPI_Status *given;

static void on_error(MPI_Comm *its, int *error, ...)
{
	(void)its;
	tells++;
	/* MPICH (4.0): MPI_Testsome's own code */
	CHECK(class_of(*error) == MPI_ERR_TRUNCATE || (!check_native() && class_of(*error) == MPI_ERR_IN_STATUS));
}

static int revised_callback(int rc, void *data)
{
	(void)data;
	runs++;
	got = rc;
	return MPI_SUCCESS;
}

static void draft_callback(MPI_Status *its, void *data)
{
	(void)data;
	runs++;
	given = its;
}

/* It has come when this returns. */
static void send(int i, bool fails)
{
	int what[2] = {i, fails};

	CHECK_OK(MPI_Send(what, 2, MPI_INT, 1, TAG, MPI_COMM_WORLD));
	CHECK_OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + MOST, comm, MPI_STATUS_IGNORE));
}

static void serve(void)
{
	static const int out[4] = {1, 2, 3, 4};
	int what[2] = {0, 0};

	for (;;) {
		CHECK_OK(MPI_Recv(what, 2, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		if (what[0] < 0)
			return;
		alarm(CHECK_WATCHDOG_SECONDS);
		CHECK_OK(MPI_Send(out, what[1] ? 4 : 1, MPI_INT, 0, TAG + what[0], comm));
		CHECK_OK(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + MOST, comm));
	}
}

/* The order's k-th. */
static int place(const struct variant *v, int k)
{
	return v->order ? v->n - 1 - k : k;
}

static MPI_Request make_cr(const struct variant *v)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	MPI_Info info = MPI_INFO_NULL;

	if (v->cr == NO_CR)
		return cr;
	if (v->key) {
		MPI_Info_create(&info);
		MPI_Info_set(info, v->key, "true");
	}
	if (v->cr == DRAFT) {
		CHECK_OK(MPI_Continue_init(info, &cr));
	} else {
		CHECK_OK(MPIX_Continue_init(0, 0, info, &cr));
		if (v->cr != INACTIVE)
			CHECK_OK(MPI_Start(&cr));
	}
	if (info != MPI_INFO_NULL)
		MPI_Info_free(&info);
	return cr;
}

static void make_some_progress(void)
{
	for (int i = 0; i < 50; i++) {
		MPI_Request none = MPI_REQUEST_NULL;
		int flag;

		CHECK_OK(MPI_Iprobe(1, TAG + MOST + 1, comm, &flag, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Test(&none, &flag, MPI_STATUS_IGNORE));
	}
}

/* How many are sent when the revised interface knows that the continuation has failed; more than all: it has not. */
static int first_failure(const struct variant *v)
{
	for (int k = 0; k < v->n; k++)
		if (v->failing & 1 << place(v, k))
			return k + 1;
	return MOST + 1;
}

static void check_statuses(const struct variant *v, int sent)
{
	for (int i = 0; i < v->n && !v->ignore; i++) {
		bool fails = v->failing & 1 << i, done = false;

		for (int k = 0; k < sent; k++)
			done |= place(v, k) == i;
		if (!done)
			CHECK_EQ(statuses[i].MPI_ERROR, MPI_ERR_PENDING);
		else if (fails)
			CHECK_EQ(class_of(statuses[i].MPI_ERROR), MPI_ERR_TRUNCATE);
		else if (sent == v->n ||
			 statuses[i].MPI_ERROR != MPI_ERR_PENDING) /* or a look found the failure first */
			status_is_of(&statuses[i], 1, TAG + i, sizeof(int));
	}
}

/* It is complete, and, if the continuation has failed and did not run, tells of that. */
static void check_report(const struct variant *v, MPI_Request *cr, bool failed, void *data)
{
	int n = 2, flag;
	void *which[2] = {NULL, NULL};

	CHECK_EQ(class_of(MPI_Wait(cr, MPI_STATUS_IGNORE)), failed ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	CHECK(*cr != MPI_REQUEST_NULL);
	CHECK_OK(MPIX_Continue_get_failed(*cr, &n, which));
	CHECK_EQ(n, failed);
	CHECK(which[0] == (failed ? data : NULL));
	CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	if (v->cr != DRAFT) {
		CHECK_OK(MPI_Start(cr));
		CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
	}
	CHECK_OK(MPI_Request_free(cr));
}

static void one(const struct variant *v)
{
	bool draft = v->cr == DRAFT, freed = v->cr == FREED, invoked = draft || !v->failing || v->flags;
	MPI_Request r[MOST], cr = make_cr(v);
	int data, sent = 0, first = first_failure(v);
	MPI_Status *to = v->ignore ? v->n == 1 ? MPI_STATUS_IGNORE : MPI_STATUSES_IGNORE : statuses;

	runs = tells = 0;
	got = -1;
	memset(statuses, 0x5a, sizeof(statuses));
	for (int i = 0; i < v->n; i++)
		CHECK_OK(MPI_Irecv(in[i], 1, MPI_INT, 1, TAG + i, comm, &r[i]));
	for (; sent < v->attached; sent++)
		send(place(v, sent), v->failing & 1 << place(v, sent));
	if (v->attached)
		make_progress(comm);
	if (draft)
		CHECK_OK(v->n == 1 ? MPI_Continue(r, draft_callback, &data, to, cr)
				   : MPI_Continueall(v->n, r, draft_callback, &data, to, cr));
	else
		CHECK_OK(v->n == 1 ? MPIX_Continue(r, revised_callback, &data, v->flags, to, cr)
				   : MPIX_Continueall(v->n, r, revised_callback, &data, v->flags, to, cr));
	for (int i = 0; i < v->n; i++)
		CHECK(r[i] == MPI_REQUEST_NULL);
	if (freed)
		CHECK_OK(MPI_Request_free(&cr));
	while (sent < v->n) {
		send(place(v, sent), v->failing & 1 << place(v, sent));
		sent++;
		/* A failure is not waited for by the revised interface; here it is found before the next one comes. */
		if (!draft && sent == first && v->cr == REVISED) {
			check_report(v, &cr, !invoked, &data);
			CHECK_EQ(runs, invoked);
			check_statuses(v, sent);
			memset(statuses, 0xa5, sizeof(statuses));
		} else {
			make_some_progress();
		}
	}
	if (v->cr == INACTIVE) {
		make_some_progress();
		CHECK_EQ(runs, 0);
		CHECK_OK(MPI_Start(&cr));
	}
	if (cr != MPI_REQUEST_NULL)
		check_report(v, &cr, !invoked, &data);
	else
		make_some_progress();
	CHECK_EQ(runs, invoked);
	if (draft)
		CHECK(!invoked || given == to);
	else if (invoked)
		CHECK_EQ(got, v->failing ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	if (draft || v->cr == INACTIVE)
		check_statuses(v, v->n);
	for (int i = 0; i < v->n; i++)
		CHECK(v->failing & 1 << i || in[i][0] == 1);
	if (cr == MPI_REQUEST_NULL && !draft && statuses[0].MPI_TAG == (int)0xa5a5a5a5)
		for (int i = 0; i < v->n; i++) /* what finished later has not touched them */
			CHECK_EQ(statuses[i].MPI_TAG, (int)0xa5a5a5a5);
}

/* None of n, one of them, or all. */
static int which_fail(int n, int i)
{
	return i == 0 ? 0 : i <= n ? 1 << (i - 1) : (1 << n) - 1;
}

/* Handlers, statuses and keys take turns from variant to variant. */
static void all(enum cr cr, bool own)
{
	static const char *const keys[] = {NULL, "mpi_continue_poll_only", "mpi_continue_enqueue_complete",
					   "mpi_continue_async_signal_safe"};
	int turn = 0;

	check_begin(cr_name[cr]);
	for (int n = 1; n <= MOST; n += MOST - 1)
		for (int i = n == 1; i < n + 2; i++)
			for (int attached = 0; attached <= n; attached++)
				for (int k = 0; k < 4; k++, turn++) {
					struct variant v = {cr,
							    n,
							    which_fail(n, i),
							    k & 1,
							    attached,
							    k & 2 ? MPIX_CONT_INVOKE_FAILED : 0,
							    turn / 4 % 2,
							    keys[turn / 3 % 4]};

					if ((n > 1 || v.order == 0) && (cr != DRAFT || v.flags == 0) &&
					    (turn + turn / 4) % 2 == own)
						one(&v);
				}
}

static void all_of_them(void)
{
	for (int own = 0; own < 2; own++) {
		for (int i = 0; i < 3; i++) {
			MPI_Comm of[3] = {comm, MPI_COMM_SELF, MPI_COMM_WORLD};

			CHECK_OK(MPI_Comm_set_errhandler(of[i], MPI_ERRORS_RETURN));
		}
		if (own)
			tell_all(comm, on_error);
		for (int cr = 0; cr < CRS; cr++)
			all((enum cr)cr, own);
	}
}

int main(int argc, char **argv)
{
	int end[2] = {-1, 0};

	check_init(&argc, &argv, LEVEL);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (check_rank == 0) {
		all_of_them();
		CHECK_OK(MPI_Send(end, 2, MPI_INT, 1, TAG, MPI_COMM_WORLD));
	} else {
		serve();
	}
	MPI_Comm_free(&comm);
	return check_fini();
}
