/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 3.7: continuations on every kind of request that MPI has. */
#include <fcntl.h>

#include "conformance.h"
#include "../mpi4.h"

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h> /* persistent collectives under names of Open MPI's own */
#endif

#define TAG 71
#define INTS 20000

static MPI_Request cr;
static int in[INTS], out[INTS];

/* Attached alone; then what must hold for any operation that is not persistent. */
static void run_one(MPI_Request *op, MPI_Status *status)
{
	struct seen seen = {0};
	MPI_Status mine;

	status = status ? status : &mine;
	poison(status, sizeof(*status));
	CHECK_OK(attach(op, see, &seen, status, cr));
	CHECK(*op == MPI_REQUEST_NULL);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
}

static void run_persistent(MPI_Request *op, MPI_Status *status)
{
	MPI_Request same = *op;
	struct seen seen = {0};
	MPI_Status mine;

	status = status ? status : &mine;
	poison(status, sizeof(*status));
	CHECK_OK(MPI_Start(op));
	CHECK_OK(attach(op, see, &seen, status, cr));
	CHECK(*op == same);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
}

enum mode { standard, synchronous, buffered, ready, modes };

/* Ready sends need the receive: it is there before the barrier. No rank waits for a send before both have started. */
CONFORMANCE_BOTH(s3_7_point_to_point, 2, single, "Isend, Issend, Ibsend, Irsend, Irecv and Imrecv, short and long")
{
	static const int lengths[] = {0, 1, INTS};
	int bytes = INTS * (int)sizeof(int) + MPI_BSEND_OVERHEAD, size;
	void *buffer = malloc((size_t)bytes), *detached;

	cr = new_cr(NULL);
	CHECK_OK(MPI_Buffer_attach(buffer, bytes));
	for (int mode = 0; mode < modes; mode++)
		for (int i = 0; i < 3; i++) {
			struct seen got = {0}, sent = {0};
			MPI_Status status[2];
			MPI_Request r[2];
			int n = lengths[i];

			poison(status, sizeof(status));
			for (int k = 0; k < n; k++)
				out[k] = my_rank + mode + k;
			CHECK_OK(MPI_Irecv(in, n, MPI_INT, previous_rank(), TAG + mode, world, &r[0]));
			CHECK_OK(attach(&r[0], see, &got, &status[0], cr));
			MPI_Barrier(world);
			if (mode == standard)
				CHECK_OK(MPI_Isend(out, n, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
			else if (mode == synchronous)
				CHECK_OK(MPI_Issend(out, n, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
			else if (mode == buffered)
				CHECK_OK(MPI_Ibsend(out, n, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
			else
				CHECK_OK(MPI_Irsend(out, n, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
			CHECK_OK(attach(&r[1], see, &sent, &status[1], cr));
			CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
			wait_cr(&cr);
			CHECK_EQ(got.runs, 1);
			CHECK_EQ(sent.runs, 1);
			CHECK_EQ(count_of(&status[0]), n * (int)sizeof(int));
			CHECK_EQ(status[0].MPI_SOURCE, previous_rank());
			CHECK_EQ(status[0].MPI_TAG, TAG + mode);
			for (int k = 0; k < 2; k++) {
				CHECK_EQ(status[k].MPI_ERROR, MPI_SUCCESS);
				CHECK(!was_cancelled(&status[k]));
			}
			if (n)
				CHECK_EQ(in[n - 1], previous_rank() + mode + n - 1);
		}
	CHECK_OK(MPI_Buffer_detach(&detached, &size));
	free(buffer);

	step("Imrecv");
	{
		struct seen sent = {0};
		MPI_Message message;
		MPI_Request r[2];
		MPI_Status status;

		CHECK_OK(MPI_Isend(out, 8, MPI_INT, next_rank(), TAG, world, &r[0]));
		CHECK_OK(attach(&r[0], see, &sent, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Mprobe(previous_rank(), TAG, world, &message, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Imrecv(in, 8, MPI_INT, &message, &r[1]));
		run_one(&r[1], &status);
		CHECK_EQ(status.MPI_TAG, TAG);
		CHECK_EQ(sent.runs, 1);
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_7_persistent_point_to_point, 2, single,
		 "Send_init, Ssend_init, Bsend_init, Rsend_init and Recv_init")
{
	int bytes = INTS * (int)sizeof(int) + MPI_BSEND_OVERHEAD, size;
	void *buffer = malloc((size_t)bytes), *detached;

	cr = new_cr(NULL);
	CHECK_OK(MPI_Buffer_attach(buffer, bytes));
	for (int mode = 0; mode < modes; mode++) {
		MPI_Request r[2], same[2];

		CHECK_OK(MPI_Recv_init(in, INTS, MPI_INT, previous_rank(), TAG + mode, world, &r[0]));
		if (mode == standard)
			CHECK_OK(MPI_Send_init(out, INTS, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
		else if (mode == synchronous)
			CHECK_OK(MPI_Ssend_init(out, INTS, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
		else if (mode == buffered)
			CHECK_OK(MPI_Bsend_init(out, INTS, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
		else
			CHECK_OK(MPI_Rsend_init(out, INTS, MPI_INT, next_rank(), TAG + mode, world, &r[1]));
		memcpy(same, r, sizeof(r));
		for (int round = 0; round < 4; round++) {
			struct seen got = {0}, sent = {0};
			MPI_Status status;

			out[INTS - 1] = my_rank + 10 * round;
			CHECK_OK(MPI_Start(&r[0]));
			CHECK_OK(attach(&r[0], see, &got, &status, cr));
			MPI_Barrier(world);
			CHECK_OK(MPI_Start(&r[1]));
			CHECK_OK(attach(&r[1], see, &sent, MPI_STATUS_IGNORE, cr));
			wait_cr(&cr);
			CHECK_EQ(got.runs, 1);
			CHECK_EQ(sent.runs, 1);
			CHECK_EQ(status.MPI_TAG, TAG + mode);
			if (mode != buffered) /* Open MPI 4.1 may send what the buffer held before */
				CHECK_EQ(in[INTS - 1], previous_rank() + 10 * round);
			CHECK(memcmp(r, same, sizeof(r)) == 0);
		}
		CHECK_OK(MPI_Request_free(&r[0]));
		CHECK_OK(MPI_Request_free(&r[1]));
	}
	CHECK_OK(MPI_Buffer_detach(&detached, &size));
	free(buffer);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_7_partitioned, 2, single, "Partitioned sends and receives, where the MPI has them")
{
#ifdef HAS_MPI_4
	enum { PARTS = 4, EACH = 100 };
	MPI_Request r[2], same[2];

	cr = new_cr(NULL);
	CHECK_OK(MPI_Precv_init(in, PARTS, EACH, MPI_INT, previous_rank(), TAG, world, MPI_INFO_NULL, &r[0]));
	CHECK_OK(MPI_Psend_init(out, PARTS, EACH, MPI_INT, next_rank(), TAG, world, MPI_INFO_NULL, &r[1]));
	memcpy(same, r, sizeof(r));
	for (int round = 0; round < 3; round++) {
		struct seen seen = {0};

		for (int i = 0; i < PARTS * EACH; i++)
			out[i] = 1000 * my_rank + round + i;
		CHECK_OK(MPI_Startall(2, r));
		if (round == 1) {
			CHECK_OK(attach(&r[0], see, &seen, MPI_STATUS_IGNORE, cr));
			CHECK_OK(attach(&r[1], see, &seen, MPI_STATUS_IGNORE, cr));
		} else {
			CHECK_OK(attach_all(2, r, see, &seen, MPI_STATUSES_IGNORE, cr));
			atomic_fetch_add(&seen.runs, 1);
		}
		CHECK(!test_cr(&cr));
		MPI_Barrier(world); /* Open MPI 5.0 may complete the send early: then the receive alone is waited for */
		for (int i = PARTS; i-- > 0;)
			CHECK_OK(MPI_Pready(i, r[1]));
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 2);
		CHECK(memcmp(r, same, sizeof(r)) == 0);
		for (int i = 0; i < PARTS * EACH; i++)
			CHECK_EQ(in[i], 1000 * previous_rank() + round + i);
	}
	CHECK_OK(MPI_Request_free(&r[0]));
	CHECK_OK(MPI_Request_free(&r[1]));
	free_cr(&cr);
#else
	skip("this MPI has no partitioned communication (it came with MPI 4.0)");
#endif
}

static struct {
	int left, runs, value, sum;
} collectives;

static void next_collective(MPI_Status *status, void *data)
{
	MPI_Request op;

	(void)status;
	CHECK_EQ(collectives.sum, ranks * collectives.value);
	collectives.runs++;
	if (collectives.left-- == 0)
		return;
	collectives.value++;
	CHECK_OK(MPI_Iallreduce(&collectives.value, &collectives.sum, 1, MPI_INT, MPI_SUM, world, &op));
	CHECK_OK(attach(&op, next_collective, data, MPI_STATUS_IGNORE, cr));
}

CONFORMANCE_BOTH(s3_7_nonblocking_collectives, 2, single, "Nonblocking collectives, also started by continuations")
{
	MPI_Request op;

	cr = new_cr(NULL);
	step("Ibarrier");
	for (int i = 0; i < 10; i++) {
		CHECK_OK(MPI_Ibarrier(world, &op));
		run_one(&op, NULL);
	}
	step("Ibcast");
	for (int i = 0; i < INTS; i++)
		in[i] = my_rank == 0 ? i : -1;
	CHECK_OK(MPI_Ibcast(in, INTS, MPI_INT, 0, world, &op));
	run_one(&op, NULL);
	CHECK_EQ(in[INTS - 1], INTS - 1);
	step("Iallreduce");
	for (int i = 0; i < INTS; i++)
		out[i] = my_rank + i;
	CHECK_OK(MPI_Iallreduce(out, in, INTS, MPI_INT, MPI_SUM, world, &op));
	run_one(&op, NULL);
	CHECK_EQ(in[INTS - 1], ranks * (ranks - 1) / 2 + ranks * (INTS - 1));
	step("Igather");
	out[0] = my_rank + 7;
	CHECK_OK(MPI_Igather(out, 1, MPI_INT, in, 1, MPI_INT, 0, world, &op));
	run_one(&op, NULL);
	for (int i = 0; i < ranks && my_rank == 0; i++)
		CHECK_EQ(in[i], i + 7);
	step("Ialltoall");
	for (int i = 0; i < ranks; i++)
		out[i] = 100 * my_rank + i;
	CHECK_OK(MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, world, &op));
	run_one(&op, NULL);
	for (int i = 0; i < ranks; i++)
		CHECK_EQ(in[i], 100 * i + my_rank);
	step("each continuation starts the next one");
	collectives.left = 50;
	collectives.runs = 0;
	collectives.value = 1;
	CHECK_OK(MPI_Iallreduce(&collectives.value, &collectives.sum, 1, MPI_INT, MPI_SUM, world, &op));
	CHECK_OK(attach(&op, next_collective, NULL, MPI_STATUS_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(collectives.runs, 51);
	free_cr(&cr);
}

#ifdef HAS_MPI_4
#define BARRIER_INIT MPI_Barrier_init
#define BCAST_INIT MPI_Bcast_init
#define ALLREDUCE_INIT MPI_Allreduce_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define BARRIER_INIT MPIX_Barrier_init
#define BCAST_INIT MPIX_Bcast_init
#define ALLREDUCE_INIT MPIX_Allreduce_init
#endif

CONFORMANCE_BOTH(s3_7_persistent_collectives, 2, single, "Persistent collectives, where the MPI has them")
{
#ifdef BARRIER_INIT
	struct seen seen = {0};
	MPI_Status status;
	MPI_Request op;
	int complete = 0;

	cr = new_cr(NULL);
	step("barrier");
	CHECK_OK(BARRIER_INIT(world, MPI_INFO_NULL, &op));
	/* Inactive, and so complete; but MPICH 4.0 itself does not know that of collectives, and waits for ever. */
	CHECK_OK(MPI_Test(&op, &complete, MPI_STATUS_IGNORE));
	if (complete) {
		poison(&status, sizeof(status));
		CHECK_OK(attach(&op, see, &seen, &status, cr));
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 1);
		CHECK(is_empty(&status));
	}
	for (int i = 0; i < 5; i++)
		run_persistent(&op, NULL);
	CHECK_OK(MPI_Request_free(&op));
	step("broadcast");
	CHECK_OK(BCAST_INIT(in, INTS, MPI_INT, 0, world, MPI_INFO_NULL, &op));
	for (int i = 0; i < 5; i++) {
		in[INTS - 1] = my_rank == 0 ? 900 + i : -1;
		run_persistent(&op, NULL);
		CHECK_EQ(in[INTS - 1], 900 + i);
	}
	CHECK_OK(MPI_Request_free(&op));
	step("allreduce");
	CHECK_OK(ALLREDUCE_INIT(out, in, 8, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &op));
	for (int i = 0; i < 5; i++) {
		out[7] = my_rank + i;
		run_persistent(&op, NULL);
		CHECK_EQ(in[7], ranks * (ranks - 1) / 2 + ranks * i);
	}
	CHECK_OK(MPI_Request_free(&op));
	free_cr(&cr);
#else
	skip("this MPI has no persistent collectives");
#endif
}

CONFORMANCE_BOTH(s3_7_comm_idup, 2, single, "MPI_Comm_idup: the communicator is there when the continuation runs")
{
	MPI_Comm copy[3] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
	struct seen seen = {0};
	MPI_Request op[3];
	int result;

	cr = new_cr(NULL);
	CHECK_OK(MPI_Comm_idup(world, &copy[0], &op[0]));
	run_one(&op[0], NULL);
	CHECK_OK(MPI_Comm_compare(world, copy[0], &result));
	CHECK_EQ(result, MPI_CONGRUENT);
	CHECK_OK(MPI_Barrier(copy[0]));
	CHECK_OK(MPI_Comm_free(&copy[0]));
	step("several");
	for (int i = 0; i < 3; i++)
		CHECK_OK(MPI_Comm_idup(world, &copy[i], &op[i]));
	CHECK_OK(attach_all(3, op, see, &seen, MPI_STATUSES_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(MPI_Barrier(copy[i]));
		CHECK_OK(MPI_Comm_free(&copy[i]));
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_7_rma, 2, single, "Rput, Rget, Raccumulate and Rget_accumulate")
{
	enum { CELLS = 2000 };
	struct seen seen = {0};
	int *memory, next, rc;
	MPI_Request op[2];
	MPI_Win win;

	cr = new_cr(NULL);
	next = next_rank();
	rc = MPI_Win_allocate(sizeof(int) * CELLS, sizeof(int), MPI_INFO_NULL, world, &memory, &win);
	CHECK_OK(rc);
	if (rc) /* Open MPI 4.1 over several hosts, by TCP */
		return;
	memset(memory, 0, sizeof(int) * CELLS);
	MPI_Barrier(world);
	CHECK_OK(MPI_Win_lock_all(0, win));
	for (int i = 0; i < CELLS; i++)
		out[i] = 1000 * my_rank + i;
	step("Rput");
	CHECK_OK(MPI_Rput(out, CELLS, MPI_INT, next, 0, CELLS, MPI_INT, win, &op[0]));
	run_one(&op[0], NULL);
	CHECK_OK(MPI_Win_flush_all(win));
	step("Rget");
	memset(in, 0, sizeof(in));
	CHECK_OK(MPI_Rget(in, CELLS, MPI_INT, next, 0, CELLS, MPI_INT, win, &op[0]));
	run_one(&op[0], NULL);
	CHECK_EQ(in[CELLS - 1], 1000 * my_rank + CELLS - 1);
	step("Raccumulate");
	for (int i = 0; i < CELLS; i++)
		out[i] = 1;
	CHECK_OK(MPI_Raccumulate(out, CELLS, MPI_INT, next, 0, CELLS, MPI_INT, MPI_SUM, win, &op[0]));
	run_one(&op[0], NULL);
	CHECK_OK(MPI_Win_flush_all(win));
	step("Rget_accumulate");
	CHECK_OK(MPI_Rget_accumulate(out, CELLS, MPI_INT, in, CELLS, MPI_INT, next, 0, CELLS, MPI_INT, MPI_SUM, win,
				     &op[0]));
	run_one(&op[0], NULL);
	CHECK_EQ(in[CELLS - 1], 1000 * my_rank + CELLS);
	CHECK_OK(MPI_Win_flush_all(win));
	step("two in a set");
	CHECK_OK(MPI_Rget(in, 8, MPI_INT, next, 0, 8, MPI_INT, win, &op[0]));
	CHECK_OK(MPI_Rget(in + 8, 8, MPI_INT, next, 8, 8, MPI_INT, win, &op[1]));
	CHECK_OK(attach_all(2, op, see, &seen, MPI_STATUSES_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(in[15], 1000 * my_rank + 15 + 2);
	CHECK_OK(MPI_Win_unlock_all(win));
	CHECK_OK(MPI_Win_free(&win));
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_7_io, 2, single, "Nonblocking file I/O")
{
	const char *dir = getenv("TMPDIR");
	struct seen seen = {0};
	MPI_Request op[2];
	MPI_Status status;
	char name[512] = "";
	MPI_File file;

	cr = new_cr(NULL);
	if (my_rank == 0) {
		int fd;

		snprintf(name, sizeof(name), "%s/conformance-XXXXXX", dir ? dir : "/tmp");
		fd = mkstemp(name);
		if (CHECK(fd >= 0))
			close(fd);
	}
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, world);
	CHECK_OK(MPI_File_open(world, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
	for (int i = 0; i < INTS; i++)
		out[i] = my_rank + i;
	step("write");
	/* Whether the status says "cancelled" is not looked at: Open MPI 4.1 leaves that unset here. */
	CHECK_OK(MPI_File_iwrite_at(file, (MPI_Offset)my_rank * (MPI_Offset)sizeof(out), out, INTS, MPI_INT, &op[0]));
	run_one(&op[0], &status);
	CHECK_EQ(count_of(&status), (int)sizeof(out));
	step("read");
	memset(in, 0, sizeof(in));
	CHECK_OK(MPI_File_iread_at(file, (MPI_Offset)my_rank * (MPI_Offset)sizeof(out), in, INTS, MPI_INT, &op[0]));
	run_one(&op[0], &status);
	CHECK_EQ(count_of(&status), (int)sizeof(in));
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	step("two in a set");
	memset(in, 0, sizeof(in));
	for (int i = 0; i < 2; i++)
		CHECK_OK(MPI_File_iread_at(
			file, (MPI_Offset)my_rank * (MPI_Offset)sizeof(out) + i * (MPI_Offset)sizeof(out) / 2,
			in + i * INTS / 2, INTS / 2, MPI_INT, &op[i]));
	CHECK_OK(attach_all(2, op, see, &seen, MPI_STATUSES_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	CHECK_OK(MPI_File_close(&file));
	if (my_rank == 0)
		unlink(name);
	free_cr(&cr);
}

static struct {
	int queried, freed, ran, queried_before;
} gr;

static int gr_query(void *extra, MPI_Status *status)
{
	(void)extra;
	gr.queried++;
	MPI_Status_set_elements(status, MPI_BYTE, 77);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = 3;
	status->MPI_TAG = 4;
	return MPI_SUCCESS;
}

static int gr_free(void *extra)
{
	(void)extra;
	gr.freed++;
	return MPI_SUCCESS;
}

static int gr_cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void gr_ran(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	gr.ran++;
	gr.queried_before = gr.queried;
}

CONFORMANCE_BOTH(s3_7_generalized, 1, single, "Generalized requests, complete before and after they are attached")
{
	cr = new_cr(NULL);
	for (int kind = 0; kind < 4; kind++) {
		MPI_Request op, handle, set[2];
		MPI_Status status[2];

		memset(&gr, 0, sizeof(gr));
		poison(status, sizeof(status));
		CHECK_OK(MPI_Grequest_start(gr_query, gr_free, gr_cancel, NULL, &op));
		handle = op;
		if (kind & 1)
			CHECK_OK(MPI_Grequest_complete(handle));
		if (kind & 2) {
			set[0] = op;
			set[1] = pending(TAG);
			CHECK_OK(attach_all(2, set, gr_ran, NULL, status, cr));
			CHECK(set[0] == MPI_REQUEST_NULL && set[1] == MPI_REQUEST_NULL);
			CHECK(!test_cr(&cr));
			complete_pending(TAG);
		} else {
			CHECK_OK(attach(&op, gr_ran, NULL, &status[0], cr));
			CHECK(op == MPI_REQUEST_NULL);
		}
		if (!(kind & 1)) {
			CHECK(!test_cr(&cr));
			CHECK_EQ(gr.ran, 0);
			CHECK_OK(MPI_Grequest_complete(handle));
		}
		wait_cr(&cr);
		CHECK_EQ(gr.ran, 1);
		CHECK(gr.queried_before >= 1);
		CHECK_EQ(gr.freed, 1);
		CHECK_EQ(count_of(&status[0]), 77);
		CHECK_EQ(status[0].MPI_SOURCE, 3);
		CHECK_EQ(status[0].MPI_TAG, 4);
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_7_kinds_in_one_set, 2, single, "Different kinds of requests make one set")
{
	cr = new_cr(NULL);
	for (int round = 0; round < 20; round++) {
		MPI_Request op[6], handle, first = new_cr(NULL), inner;
		struct seen seen = {0}, seen_first = {0};
		int one = 1, sum = 0, message = 0;
		MPI_Status status[6];

		memset(&gr, 0, sizeof(gr));
		poison(status, sizeof(status));
		CHECK_OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world, &op[0]));
		CHECK_OK(MPI_Irecv(&message, 1, MPI_INT, previous_rank(), TAG, world, &op[1]));
		CHECK_OK(MPI_Grequest_start(gr_query, gr_free, gr_cancel, NULL, &op[2]));
		handle = op[2];
		op[3] = MPI_REQUEST_NULL;
		inner = pending(TAG);
		CHECK_OK(attach(&inner, see, &seen_first, MPI_STATUS_IGNORE, first));
		op[4] = first;
		CHECK_OK(MPI_Isend(&one, 1, MPI_INT, next_rank(), TAG, world, &op[5]));
		CHECK_OK(attach_all(6, op, see, &seen, status, cr));
		for (int i = 0; i < 6; i++)
			CHECK(op[i] == (i == 4 ? first : MPI_REQUEST_NULL));
		CHECK(!test_cr(&cr));
		CHECK_OK(MPI_Grequest_complete(handle));
		complete_pending(TAG);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 1);
		CHECK_EQ(seen_first.runs, 1);
		CHECK_EQ(sum, ranks);
		CHECK_EQ(message, 1);
		CHECK_EQ(status[1].MPI_TAG, TAG);
		CHECK_EQ(count_of(&status[2]), 77);
		for (int i = 0; i < 6; i++)
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		free_cr(&first);
	}
	free_cr(&cr);
}
