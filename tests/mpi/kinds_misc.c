/* SPDX-License-Identifier: BSD-3-Clause */
/* environment: OMPI_MCA_osc=^rdma */
/* also: pt2pt OMPI_MCA_osc=pt2pt */
/*
 * One continuation on requests of every kind at once, and the same operations with one continuation each in whatever
 * order they complete; requests that are none (null, inactive, empty) and continuation requests among them.
 */
#include "check.h"
#include "../mpi4.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#define TAG 61
#define LARGE (128 << 10)
#define ELEMENTS 1000

enum {
	SEND,
	SYNCHRONOUS_SEND,
	BUFFERED_SEND,
	RECEIVE,
	LARGE_RECEIVE,
	WILD_RECEIVE,
	PERSISTENT_SEND,
	PERSISTENT_RECEIVE,
	INACTIVE,
	NOBODY,
	NOTHING,
	BARRIER,
	ALLREDUCE,
	NEIGHBORS,
	PERSISTENT_COLLECTIVE, /* null where the MPI has none */
	DUPLICATE,
	PUT,
	GET,
	WRITE,
	GENERALIZED,
	CONTINUATIONS,
	ALL
};

static struct {
	MPI_Comm comm, ring, copy;
	MPI_Win win;
	MPI_File file;
	long *memory;
	MPI_Request persistent_send, persistent_receive, inactive, persistent_collective, chained;
	MPI_Request grequest;
	unsigned char large_in[LARGE], large_out[LARGE], written[LARGE];
	long in[8], out, sum, persistent_sum, around, got[ELEMENTS], put[ELEMENTS];
	int queried, freed;
	struct seen inner;
} op;

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	op.queried++;
	MPI_Status_set_elements(status, MPI_BYTE, 5);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = 1;
	status->MPI_TAG = 2;
	return MPI_SUCCESS;
}

static int free_it(void *extra)
{
	(void)extra;
	op.freed++;
	return MPI_SUCCESS;
}

static int cancel_it(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void make(void)
{
	static int one = 1;
	const char *dir = getenv("TMPDIR");
	char name[512];
	int from = check_previous(), to = check_next(), fd;

	MPI_Comm_dup(MPI_COMM_WORLD, &op.comm);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, &one, 1, &to, &one, MPI_INFO_NULL, 0, &op.ring);
	MPI_Win_allocate(sizeof(long) * ELEMENTS * 2, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &op.memory, &op.win);
	MPI_Win_lock_all(0, op.win);
	if (check_rank == 0) {
		snprintf(name, sizeof(name), "%s/contd-kinds-misc-XXXXXX", dir ? dir : "/tmp");
		fd = mkstemp(name);
		CHECK(fd >= 0);
		close(fd);
	}
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &op.file);
	MPI_Send_init(&op.out, 1, MPI_LONG, to, TAG + PERSISTENT_RECEIVE, op.comm, &op.persistent_send);
	MPI_Recv_init(&op.in[4], 1, MPI_LONG, from, TAG + PERSISTENT_RECEIVE, op.comm, &op.persistent_receive);
	MPI_Recv_init(&op.in[5], 1, MPI_LONG, from, TAG + INACTIVE, op.comm, &op.inactive);
	op.persistent_collective = MPI_REQUEST_NULL;
#ifdef HAS_MPI_4
	MPI_Allreduce_init(&op.out, &op.persistent_sum, 1, MPI_LONG, MPI_SUM, op.comm, MPI_INFO_NULL,
			   &op.persistent_collective);
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
	MPIX_Allreduce_init(&op.out, &op.persistent_sum, 1, MPI_LONG, MPI_SUM, op.comm, MPI_INFO_NULL,
			    &op.persistent_collective);
#endif
	op.chained = check_plain_cr();
}

static void unmake(void)
{
	MPI_Request_free(&op.persistent_send);
	MPI_Request_free(&op.persistent_receive);
	MPI_Request_free(&op.inactive);
	if (op.persistent_collective != MPI_REQUEST_NULL)
		MPI_Request_free(&op.persistent_collective);
	CHECK_OK(MPI_Request_free(&op.chained));
	MPI_Win_unlock_all(op.win);
	MPI_Win_free(&op.win);
	MPI_File_close(&op.file);
	MPI_Comm_free(&op.ring);
	MPI_Comm_free(&op.comm);
}

/* The exchange of the ranks in a round. */
static long value(int rank, int round)
{
	return rank * 1000 + round;
}

static void begin(int round, MPI_Request r[])
{
	int from = check_previous(), to = check_next();
	MPI_Request inner;

	op.out = value(check_rank, round);
	memset(op.in, 0, sizeof(op.in));
	memset(op.large_in, 0, LARGE);
	pattern_fill(op.large_out, LARGE, (unsigned)value(check_rank, round));
	memset(op.got, 0, sizeof(op.got));
	op.sum = op.persistent_sum = op.around = op.queried = op.freed = 0;
	for (int i = 0; i < ELEMENTS; i++) {
		op.put[i] = value(check_rank, round) + i;
		op.memory[i] = -1;
		op.memory[ELEMENTS + i] = value(check_rank, round) - i;
	}
	pattern_fill(op.written, LARGE, (unsigned)(100 + value(check_rank, round)));
	MPI_Win_sync(op.win);
	MPI_Barrier(op.comm);

	MPI_Irecv(&op.in[0], 1, MPI_LONG, from, TAG + RECEIVE, op.comm, &r[RECEIVE]);
	MPI_Irecv(op.large_in, LARGE, MPI_BYTE, from, TAG + LARGE_RECEIVE, op.comm, &r[LARGE_RECEIVE]);
	MPI_Irecv(&op.in[1], 1, MPI_LONG, MPI_ANY_SOURCE, TAG + WILD_RECEIVE, op.comm, &r[WILD_RECEIVE]);
	MPI_Isend(op.large_out, LARGE, MPI_BYTE, to, TAG + LARGE_RECEIVE, op.comm, &r[SEND]);
	MPI_Issend(&op.out, 1, MPI_LONG, to, TAG + RECEIVE, op.comm, &r[SYNCHRONOUS_SEND]);
	MPI_Ibsend(&op.out, 1, MPI_LONG, to, TAG + WILD_RECEIVE, op.comm, &r[BUFFERED_SEND]);
	r[PERSISTENT_SEND] = op.persistent_send;
	r[PERSISTENT_RECEIVE] = op.persistent_receive;
	MPI_Start(&r[PERSISTENT_RECEIVE]);
	MPI_Start(&r[PERSISTENT_SEND]);
	r[INACTIVE] = op.inactive;
	MPI_Irecv(&op.in[6], 1, MPI_LONG, MPI_PROC_NULL, TAG, op.comm, &r[NOBODY]);
	r[NOTHING] = MPI_REQUEST_NULL;
	MPI_Ibarrier(op.comm, &r[BARRIER]);
	MPI_Iallreduce(&op.out, &op.sum, 1, MPI_LONG, MPI_SUM, op.comm, &r[ALLREDUCE]);
	MPI_Ineighbor_allgather(&op.out, 1, MPI_LONG, &op.around, 1, MPI_LONG, op.ring, &r[NEIGHBORS]);
	r[PERSISTENT_COLLECTIVE] = op.persistent_collective;
	if (op.persistent_collective != MPI_REQUEST_NULL)
		MPI_Start(&r[PERSISTENT_COLLECTIVE]);
	MPI_Comm_idup(op.comm, &op.copy, &r[DUPLICATE]);
	MPI_Rput(op.put, ELEMENTS, MPI_LONG, to, 0, ELEMENTS, MPI_LONG, op.win, &r[PUT]);
	MPI_Rget(op.got, ELEMENTS, MPI_LONG, to, ELEMENTS, ELEMENTS, MPI_LONG, op.win, &r[GET]);
	MPI_File_iwrite_at(op.file, (MPI_Offset)check_rank * LARGE, op.written, LARGE, MPI_BYTE, &r[WRITE]);
	MPI_Grequest_start(query, free_it, cancel_it, NULL, &r[GENERALIZED]);
	op.grequest = r[GENERALIZED];
	/* A CR with something outstanding. */
	op.inner.runs = 0;
	MPI_Irecv(&op.in[7], 1, MPI_LONG, from, TAG + CONTINUATIONS, op.comm, &inner);
	CHECK_OK(MPI_Continue(&inner, see, &op.inner, MPI_STATUS_IGNORE, op.chained));
	r[CONTINUATIONS] = op.chained;
}

static bool stays(int which)
{
	return which == PERSISTENT_SEND || which == PERSISTENT_RECEIVE || which == INACTIVE || which == CONTINUATIONS ||
	       (which == PERSISTENT_COLLECTIVE && op.persistent_collective != MPI_REQUEST_NULL);
}

static int round_now;

/* The operation is complete: what it did, and its status unless it was ignored. */
static void check_one(int which, MPI_Status *s)
{
	long there = value(check_previous(), round_now);
	int count = -1, result;

	if (s)
		CHECK_EQ(s->MPI_ERROR, MPI_SUCCESS);
	switch (which) {
	case RECEIVE:
		CHECK_EQ(op.in[0], there);
		break;
	case WILD_RECEIVE:
		CHECK_EQ(op.in[1], there);
		break;
	case PERSISTENT_RECEIVE:
		CHECK_EQ(op.in[4], there);
		break;
	case LARGE_RECEIVE:
		CHECK(pattern_holds(op.large_in, LARGE, (unsigned)there));
		break;
	case INACTIVE:
	case NOTHING:
		CHECK(!s || status_is_empty(s));
		break;
	case ALLREDUCE:
		CHECK_EQ(op.sum, 1000L * check_size * (check_size - 1) / 2 + (long)check_size * round_now);
		break;
	case PERSISTENT_COLLECTIVE:
		if (op.persistent_collective != MPI_REQUEST_NULL)
			CHECK_EQ(op.persistent_sum,
				 1000L * check_size * (check_size - 1) / 2 + (long)check_size * round_now);
		break;
	case NEIGHBORS:
		CHECK_EQ(op.around, there);
		break;
	case DUPLICATE:
		MPI_Comm_compare(op.comm, op.copy, &result);
		CHECK_EQ(result, MPI_CONGRUENT);
		break;
	case GET:
		CHECK_EQ(op.got[0], value(check_next(), round_now));
		CHECK_EQ(op.got[ELEMENTS - 1], value(check_next(), round_now) - (ELEMENTS - 1));
		break;
	case GENERALIZED:
		CHECK(op.queried > 0);
		break;
	case CONTINUATIONS:
		CHECK_EQ(op.inner.runs, 1);
		break;
	default:
		break;
	}
	if (!s)
		return;
	switch (which) {
	case RECEIVE:
	case WILD_RECEIVE:
	case PERSISTENT_RECEIVE:
		status_is_of(s, check_previous(), TAG + which, sizeof(long));
		break;
	case LARGE_RECEIVE:
		status_is_of(s, check_previous(), TAG + which, LARGE);
		break;
	case NOBODY:
		MPI_Get_count(s, MPI_BYTE, &count);
		CHECK_EQ(count, 0);
		break;
	case WRITE:
		MPI_Get_count(s, MPI_BYTE, &count);
		CHECK_EQ(count, LARGE);
		break;
	case GENERALIZED:
		status_is_of(s, 1, 2, 5);
		break;
	case CONTINUATIONS:
		CHECK(status_is_empty(s));
		break;
	default:
		break;
	}
}

static void after(void)
{
	unsigned char *back = malloc(LARGE);

	CHECK_EQ(op.freed, 1);
	MPI_Win_flush_all(op.win);
	MPI_Barrier(op.comm);
	MPI_Win_sync(op.win);
	CHECK_EQ(op.memory[0], value(check_previous(), round_now));
	CHECK_EQ(op.memory[ELEMENTS - 1], value(check_previous(), round_now) + ELEMENTS - 1);
	MPI_File_read_at(op.file, (MPI_Offset)check_rank * LARGE, back, LARGE, MPI_BYTE, MPI_STATUS_IGNORE);
	CHECK(pattern_holds(back, LARGE, (unsigned)(100 + value(check_rank, round_now))));
	free(back);
	MPI_Barrier(op.copy);
	MPI_Comm_free(&op.copy);
	MPI_Barrier(op.comm);
}

/* The operation that the CR among the requests waits for, and then the generalized request. */
static void let_go(MPI_Request cr, const atomic_int *runs, int before)
{
	MPI_Request r;
	int flag;

	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	MPI_Isend(&op.out, 1, MPI_LONG, check_next(), TAG + CONTINUATIONS, op.comm, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(*runs, before);
	CHECK_OK(MPI_Grequest_complete(op.grequest));
}

static atomic_int set_runs;

static void set_ran(MPI_Status *statuses, void *data)
{
	bool ignore = *(bool *)data;

	for (int i = 0; i < ALL; i++)
		check_one(i, ignore ? NULL : &statuses[i]);
	set_runs++;
}

static void check_set(MPI_Request cr, int rounds)
{
	MPI_Status status[ALL];
	MPI_Request same[ALL];

	check_begin("every kind in one set");
	for (int i = 0; i < rounds; i++, round_now++) {
		MPI_Request *r = malloc(sizeof(*r) * ALL);
		bool ignore = i % 2;

		set_runs = 0;
		for (int k = 0; k < ALL; k++)
			status_poison(&status[k]);
		begin(round_now, r);
		memcpy(same, r, sizeof(same));
		CHECK_OK(MPI_Continueall(ALL, r, set_ran, &ignore, ignore ? MPI_STATUSES_IGNORE : status, cr));
		for (int k = 0; k < ALL; k++)
			CHECK(r[k] == (stays(k) ? same[k] : MPI_REQUEST_NULL));
		free(r);
		let_go(cr, &set_runs, 0);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(set_runs, 1);
		for (int k = 0; k < ALL && ignore; k++)
			CHECK(status_is_poison(&status[k]));
		after();
	}
}

static struct one {
	int which;
	bool ignore;
	atomic_int runs;
	MPI_Status status;
} one[ALL];

static void one_ran(MPI_Status *status, void *data)
{
	struct one *o = data;

	CHECK(status == (o->ignore ? MPI_STATUS_IGNORE : &o->status));
	check_one(o->which, o->ignore ? NULL : status);
	o->runs++;
}

static void check_each(MPI_Request cr, int rounds)
{
	check_begin("every kind, a continuation each");
	for (int i = 0; i < rounds; i++, round_now++) {
		MPI_Request r[ALL];

		begin(round_now, r);
		for (int n = 0; n < ALL; n++) {
			int k = (n * 8 + i) % ALL; /* 8 and the number of kinds have no divisor in common */

			one[k].which = k;
			one[k].ignore = (k + i) % 2;
			one[k].runs = 0;
			status_poison(&one[k].status);
			CHECK_OK(MPI_Continue(&r[k], one_ran, &one[k],
					      one[k].ignore ? MPI_STATUS_IGNORE : &one[k].status, cr));
			CHECK((r[k] != MPI_REQUEST_NULL) == stays(k));
		}
		let_go(cr, &one[GENERALIZED].runs, 0);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		for (int k = 0; k < ALL; k++) {
			CHECK_EQ(one[k].runs, 1);
			CHECK_EQ(status_is_poison(&one[k].status), one[k].ignore);
		}
		after();
	}
}

int main(int argc, char **argv)
{
	static char buffer[4096];
	void *detached;
	int bytes;

	_Static_assert(ALL % 2 == 1, "see check_each");
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Buffer_attach(buffer, sizeof(buffer));
	for (int i = 0; i < 3; i++) {
		MPI_Request cr = i == 0   ? check_plain_cr()
				 : i == 1 ? check_cr("mpi_continue_poll_only", "true", NULL, NULL)
					  : check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);

		make();
		check_set(cr, 10);
		check_each(cr, 10);
		unmake();
		CHECK_OK(MPI_Request_free(&cr));
	}
	MPI_Buffer_detach(&detached, &bytes);
	return check_fini();
}
