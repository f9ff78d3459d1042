/* SPDX-License-Identifier: BSD-3-Clause */
/* Continuations on collectives, on communicators being duplicated, on RMA, on I/O and on generalized requests. */
#include <fcntl.h>

#include "check.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#define TAG 41

static MPI_Request cr;

/* Attach to one request, wait, and look at what must always hold. */
static void run_one(MPI_Request *r)
{
	struct seen seen = {0};
	MPI_Status status;

	status_poison(&status);
	CHECK_OK(MPI_Continue(r, see, &seen, &status, cr));
	CHECK(*r == MPI_REQUEST_NULL);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK(seen.status == &status);
	CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
}

static void run_persistent(MPI_Request *r)
{
	MPI_Request same = *r;
	struct seen seen = {0};
	MPI_Status status;

	status_poison(&status);
	CHECK_OK(MPI_Start(r));
	CHECK_OK(MPI_Continue(r, see, &seen, &status, cr));
	CHECK(*r == same);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
}

/* -------------------------------------------------------------------------------------------------- collectives --- */

#define LONGS 1000

static void check_nonblocking(void)
{
	long *in = malloc(sizeof(long) * LONGS * (size_t)check_size);
	long *out = malloc(sizeof(long) * LONGS * (size_t)check_size);
	MPI_Request r;

	check_begin("Ibarrier");
	for (int i = 0; i < 20; i++) {
		MPI_Ibarrier(MPI_COMM_WORLD, &r);
		run_one(&r);
	}
	check_begin("Ibcast");
	for (int root = 0; root < check_size; root++) {
		for (int i = 0; i < LONGS; i++)
			in[i] = check_rank == root ? root * 10000 + i : -1;
		MPI_Ibcast(in, LONGS, MPI_LONG, root, MPI_COMM_WORLD, &r);
		run_one(&r);
		CHECK_EQ(in[LONGS - 1], root * 10000 + LONGS - 1);
	}
	check_begin("Iallreduce");
	for (int i = 0; i < LONGS; i++)
		out[i] = check_rank + i;
	MPI_Iallreduce(out, in, LONGS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
	run_one(&r);
	CHECK_EQ(in[LONGS - 1], check_size * (check_size - 1) / 2 + check_size * (LONGS - 1));
	check_begin("Igather");
	out[0] = check_rank + 7;
	MPI_Igather(out, 1, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_WORLD, &r);
	run_one(&r);
	for (int i = 0; i < check_size && check_rank == 0; i++)
		CHECK_EQ(in[i], i + 7);
	check_begin("Iscatter");
	for (int i = 0; i < check_size; i++)
		out[i] = 70 + i;
	MPI_Iscatter(out, 1, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_WORLD, &r);
	run_one(&r);
	CHECK_EQ(in[0], 70 + check_rank);
	check_begin("Ialltoall");
	for (int i = 0; i < check_size; i++)
		out[i] = 100 * check_rank + i;
	MPI_Ialltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD, &r);
	run_one(&r);
	for (int i = 0; i < check_size; i++)
		CHECK_EQ(in[i], 100 * i + check_rank);
	check_begin("Iexscan");
	out[0] = 1;
	MPI_Iexscan(out, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
	run_one(&r);
	CHECK(check_rank == 0 || in[0] == check_rank);
	free(in);
	free(out);
}

/* Two collectives, a message and a null request in one set. */
static void check_set(void)
{
	long sum = 0, one = 1, message = 0;
	struct seen seen = {0};
	MPI_Status status[5];
	MPI_Request r[5];

	check_begin("collectives and messages in one set");
	for (int round = 0; round < 50; round++) {
		memset(status, POISON, sizeof(status));
		MPI_Iallreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(&message, 1, MPI_LONG, check_previous(), TAG, MPI_COMM_WORLD, &r[1]);
		MPI_Ibarrier(MPI_COMM_WORLD, &r[2]);
		r[3] = MPI_REQUEST_NULL;
		MPI_Isend(&one, 1, MPI_LONG, check_next(), TAG, MPI_COMM_WORLD, &r[4]);
		CHECK_OK(MPI_Continueall(5, r, see, &seen, status, cr));
		for (int i = 0; i < 5; i++)
			CHECK(r[i] == MPI_REQUEST_NULL);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, round + 1);
		CHECK_EQ(sum, check_size);
		CHECK_EQ(status[1].MPI_TAG, TAG);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		sum = message = 0;
	}
}

/* A tree of them: each continuation starts the next collective. */
struct chain {
	int left, runs;
	long value, sum;
};

static void next_collective(MPI_Status *status, void *data)
{
	struct chain *c = data;
	MPI_Request r;

	(void)status;
	c->runs++;
	CHECK_EQ(c->sum, check_size * c->value);
	if (c->left-- == 0)
		return;
	c->value++;
	MPI_Iallreduce(&c->value, &c->sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, next_collective, c, MPI_STATUS_IGNORE, cr));
}

static void check_chain(void)
{
	struct chain c = {.left = 100, .value = 1};
	MPI_Request r;

	check_begin("each continuation starts the next collective");
	MPI_Iallreduce(&c.value, &c.sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, next_collective, &c, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(c.runs, 101);
}

static void check_neighbors(void)
{
	int dims[1] = {check_size}, periods[1] = {1};
	long in[2] = {-1, -1}, out[2];
	MPI_Comm ring;
	MPI_Request r;

	check_begin("Ineighbor_allgather");
	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
	out[0] = check_rank;
	MPI_Ineighbor_allgather(out, 1, MPI_LONG, in, 1, MPI_LONG, ring, &r);
	run_one(&r);
	CHECK_EQ(in[0], check_previous());
	CHECK_EQ(in[1], check_next());
	check_begin("Ineighbor_alltoall");
	if (check_size > 2) { /* with less the two neighbours are one, and Open MPI 4.1 may exchange their blocks */
		out[0] = check_rank * 2;
		out[1] = check_rank * 2 + 1;
		MPI_Ineighbor_alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, ring, &r);
		run_one(&r);
		CHECK_EQ(in[0], check_previous() * 2 + 1);
		CHECK_EQ(in[1], check_next() * 2);
	}
	MPI_Comm_free(&ring);
}

static void check_idup(void)
{
	MPI_Comm copy[3];
	MPI_Request r[3];
	struct seen seen = {0};
	int result;

	check_begin("Comm_idup");
	for (int round = 0; round < 5; round++) {
		MPI_Comm_idup(MPI_COMM_WORLD, &copy[0], &r[0]);
		run_one(&r[0]);
		MPI_Comm_compare(MPI_COMM_WORLD, copy[0], &result);
		CHECK_EQ(result, MPI_CONGRUENT);
		MPI_Barrier(copy[0]);
		MPI_Comm_free(&copy[0]);
	}
	check_begin("Comm_idup of several in one set");
	for (int i = 0; i < 3; i++)
		MPI_Comm_idup(MPI_COMM_WORLD, &copy[i], &r[i]);
	CHECK_OK(MPI_Continueall(3, r, see, &seen, MPI_STATUSES_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	for (int i = 0; i < 3; i++) {
		MPI_Barrier(copy[i]);
		MPI_Comm_free(&copy[i]);
	}
}

#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
struct again {
	MPI_Request request;
	int left, runs;
	long out, sum;
};

static void start_again(MPI_Status *status, void *data)
{
	struct again *a = data;

	(void)status;
	a->runs++;
	CHECK_EQ(a->sum, check_size * a->out);
	if (--a->left == 0)
		return;
	a->out++;
	CHECK_OK(MPI_Start(&a->request));
	CHECK_OK(MPI_Continue(&a->request, start_again, a, MPI_STATUS_IGNORE, cr));
}

static void check_persistent(void)
{
	long in[64], out[64];
	struct again again = {.left = 50, .out = 1};
	MPI_Request r;

	check_begin("persistent barrier");
	MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	for (int i = 0; i < 10; i++)
		run_persistent(&r);
	CHECK_OK(MPI_Request_free(&r));
	check_begin("persistent bcast");
	MPIX_Bcast_init(in, 64, MPI_LONG, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	for (int i = 0; i < 10; i++) {
		in[63] = check_rank == 0 ? 900 + i : -1;
		run_persistent(&r);
		CHECK_EQ(in[63], 900 + i);
	}
	CHECK_OK(MPI_Request_free(&r));
	check_begin("persistent allreduce");
	MPIX_Allreduce_init(out, in, 64, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 64; k++)
			out[k] = i + k;
		run_persistent(&r);
		CHECK_EQ(in[63], check_size * (i + 63));
	}
	CHECK_OK(MPI_Request_free(&r));
	check_begin("persistent alltoall");
	MPIX_Alltoall_init(out, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < check_size; k++)
			out[k] = 100 * check_rank + k + i;
		run_persistent(&r);
		for (int k = 0; k < check_size; k++)
			CHECK_EQ(in[k], 100 * k + check_rank + i);
	}
	CHECK_OK(MPI_Request_free(&r));
	check_begin("persistent gather");
	MPIX_Gather_init(out, 1, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	for (int i = 0; i < 10; i++) {
		out[0] = check_rank + i;
		run_persistent(&r);
		for (int k = 0; k < check_size && check_rank == 0; k++)
			CHECK_EQ(in[k], k + i);
	}
	CHECK_OK(MPI_Request_free(&r));
	check_begin("persistent allreduce restarted in its continuation");
	MPIX_Allreduce_init(&again.out, &again.sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
			    &again.request);
	CHECK_OK(MPI_Start(&again.request));
	CHECK_OK(MPI_Continue(&again.request, start_again, &again, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(again.runs, 50);
	CHECK_OK(MPI_Request_free(&again.request));
	check_begin("persistent, inactive");
	MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	{
		struct seen seen = {0};
		MPI_Status status;

		status_poison(&status);
		CHECK_OK(MPI_Continue(&r, see, &seen, &status, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		CHECK(status_is_empty(&status));
	}
	CHECK_OK(MPI_Request_free(&r));
}
#endif

/* ---------------------------------------------------------------------------------------------------------- RMA --- */

static void check_rma(void)
{
	enum { CELLS = 4096 };
	long *memory, *local = malloc(sizeof(long) * CELLS);
	struct seen seen = {0};
	MPI_Status status[3];
	MPI_Request r[3];
	MPI_Win win;

	check_begin("Rput, Rget, Raccumulate");
	MPI_Win_allocate(sizeof(long) * CELLS, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	memset(memory, 0, sizeof(long) * CELLS);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < CELLS; i++)
			local[i] = check_rank * 100000 + i + round;
		MPI_Rput(local, CELLS, MPI_LONG, check_next(), 0, CELLS, MPI_LONG, win, &r[0]);
		run_one(&r[0]);
		MPI_Win_flush_all(win);
		memset(local, 0, sizeof(long) * CELLS);
		MPI_Rget(local, CELLS, MPI_LONG, check_next(), 0, CELLS, MPI_LONG, win, &r[0]);
		run_one(&r[0]);
		CHECK_EQ(local[0], check_rank * 100000 + round);
		CHECK_EQ(local[CELLS - 1], check_rank * 100000 + CELLS - 1 + round);
		for (int i = 0; i < CELLS; i++)
			local[i] = 1;
		MPI_Raccumulate(local, CELLS, MPI_LONG, check_next(), 0, CELLS, MPI_LONG, MPI_SUM, win, &r[0]);
		run_one(&r[0]);
		MPI_Win_flush_all(win);
		MPI_Rget(local, CELLS, MPI_LONG, check_next(), 0, CELLS, MPI_LONG, win, &r[0]);
		run_one(&r[0]);
		CHECK_EQ(local[CELLS - 1], check_rank * 100000 + CELLS + round);
		MPI_Rget(local, 8, MPI_LONG, check_next(), 0, 8, MPI_LONG, win, &r[0]);
		MPI_Rget(local + 8, 8, MPI_LONG, check_next(), 8, 8, MPI_LONG, win, &r[1]);
		MPI_Irecv(local + 16, 1, MPI_LONG, check_previous(), TAG, MPI_COMM_WORLD, &r[2]);
		CHECK_OK(MPI_Continueall(3, r, see, &seen, status, cr));
		MPI_Send(local + 17, 1, MPI_LONG, check_next(), TAG, MPI_COMM_WORLD);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, round + 1);
		CHECK_EQ(local[15], check_rank * 100000 + 15 + round + 1);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	free(local);
}

/* ---------------------------------------------------------------------------------------------------------- I/O --- */

static void check_io(void)
{
	enum { BYTES = 64 << 10 };
	const char *dir = getenv("TMPDIR");
	unsigned char *buffer = malloc(BYTES), *back = malloc(BYTES);
	char name[512] = "";
	MPI_Status status;
	struct seen seen = {0};
	MPI_Request r[2];
	MPI_File file;
	int count;

	check_begin("file I/O");
	if (check_rank == 0) {
		int fd;

		snprintf(name, sizeof(name), "%s/contd-collective-XXXXXX", dir ? dir : "/tmp");
		fd = mkstemp(name);
		CHECK(fd >= 0);
		close(fd);
	}
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
	for (int round = 0; round < 3; round++) {
		pattern_fill(buffer, BYTES, (unsigned)(check_rank + round));
		status_poison(&status);
		MPI_File_iwrite_at(file, (MPI_Offset)check_rank * BYTES, buffer, BYTES, MPI_BYTE, &r[0]);
		CHECK_OK(MPI_Continue(&r[0], see, &seen, &status, cr));
		CHECK(r[0] == MPI_REQUEST_NULL);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 3 * round + 1);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK_EQ(count, BYTES);
		CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
		memset(back, 0, BYTES);
		MPI_File_iread_at(file, (MPI_Offset)check_rank * BYTES, back, BYTES, MPI_BYTE, &r[0]);
		CHECK_OK(MPI_Continue(&r[0], see, &seen, &status, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 3 * round + 2);
		CHECK(pattern_holds(back, BYTES, (unsigned)(check_rank + round)));
		MPI_File_iwrite_at(file, (MPI_Offset)check_rank * BYTES, buffer, BYTES / 2, MPI_BYTE, &r[0]);
		MPI_File_iwrite_at(file, (MPI_Offset)check_rank * BYTES + BYTES / 2, buffer + BYTES / 2,
				   BYTES / 2, MPI_BYTE, &r[1]);
		CHECK_OK(MPI_Continueall(2, r, see, &seen, MPI_STATUSES_IGNORE, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 3 * round + 3);
	}
	MPI_File_close(&file);
	if (check_rank == 0)
		unlink(name);
	free(buffer);
	free(back);
}

/* ----------------------------------------------------------------------------------------- generalized requests --- */

static struct {
	int queried, freed, cancelled, ran;
	int queried_before, freed_before; /* when the callback ran */
} gr;

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	gr.queried++;
	MPI_Status_set_elements(status, MPI_BYTE, 77);
	MPI_Status_set_cancelled(status, gr.cancelled == 1);
	status->MPI_SOURCE = 3;
	status->MPI_TAG = 4;
	return MPI_SUCCESS;
}

static int free_it(void *extra)
{
	(void)extra;
	gr.freed++;
	return MPI_SUCCESS;
}

static int cancel_it(void *extra, int complete)
{
	(void)extra;
	gr.cancelled += complete ? 100 : 1;
	return MPI_SUCCESS;
}

static void gr_callback(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	gr.ran++;
	gr.queried_before = gr.queried;
	gr.freed_before = gr.freed;
}

static void check_generalized(void)
{
	MPI_Request r, handle;
	MPI_Status status;
	int count, flag, cancelled;

	for (int before = 0; before < 2; before++) {
		check_begin(before ? "generalized request, complete before attaching" : "generalized request");
		memset(&gr, 0, sizeof(gr));
		status_poison(&status);
		MPI_Grequest_start(query, free_it, cancel_it, NULL, &r);
		handle = r;
		if (before)
			MPI_Grequest_complete(handle);
		CHECK_OK(MPI_Continue(&r, gr_callback, NULL, &status, cr));
		CHECK(r == MPI_REQUEST_NULL);
		if (!before) {
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_EQ(gr.ran, 0);
			MPI_Grequest_complete(handle);
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(gr.ran, 1);
		CHECK(gr.queried >= 1);
		CHECK(gr.queried_before >= 1);
		CHECK_EQ(gr.freed, 1);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK_EQ(count, 77);
		CHECK_EQ(status.MPI_SOURCE, 3);
		CHECK_EQ(status.MPI_TAG, 4);
		CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
	}

	check_begin("generalized request, cancelled");
	memset(&gr, 0, sizeof(gr));
	MPI_Grequest_start(query, free_it, cancel_it, NULL, &r);
	handle = r;
	MPI_Cancel(&r);
	CHECK_EQ(gr.cancelled, 1);
	CHECK_OK(MPI_Continue(&r, gr_callback, NULL, &status, cr));
	MPI_Grequest_complete(handle);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(gr.ran, 1);
	MPI_Test_cancelled(&status, &cancelled);
	CHECK(cancelled);

	check_begin("generalized request completed in a continuation");
	memset(&gr, 0, sizeof(gr));
	for (int i = 0; i < 100; i++) {
		MPI_Grequest_start(query, free_it, cancel_it, NULL, &r);
		handle = r;
		CHECK_OK(MPI_Continue(&r, gr_callback, NULL, MPI_STATUS_IGNORE, cr));
		MPI_Grequest_complete(handle);
	}
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(gr.ran, 100);
	CHECK_EQ(gr.freed, 100);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	for (int i = 0; i < 2; i++) {
		cr = i ? check_cr("mpi_continue_poll_only", "true", NULL, NULL) : check_plain_cr();
		check_nonblocking();
		check_set();
		check_chain();
		check_neighbors();
		check_idup();
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
		check_persistent();
#endif
		check_generalized();
		check_io();
		check_rma();
		CHECK_OK(MPI_Request_free(&cr));
	}
	return check_fini();
}
