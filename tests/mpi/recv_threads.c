/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * Two threads receive, and one message comes that both might see: one of them takes it, and the other one goes on
 * looking after continuations. And what is wrong with a receive's arguments costs no message.
 */
#include <pthread.h>

#include "check.h"
#include "base/testpoint.h"
#include "mpi/backend.h"

enum { TAG = 61, TAG_OTHER, TAG_CONTINUED, TAG_LAST };
enum { RECV, RECV_ANY, SENDRECV, SENDRECV_REPLACE, WAYS };

static MPI_Comm comm; /* with its own error handler */
static int way;
static atomic_int at_message, received, ran;
static _Thread_local bool receiver;
static pthread_t ran_on;

static void ran_cb(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ran_on = pthread_self();
	atomic_store(&ran, 1);
}

/* The thread that has seen the message waits for the other one to see it as well, but not for long. */
static void meet(const char *name)
{
	if (strcmp(name, "message_found") != 0 || !receiver)
		return;
	atomic_fetch_add(&at_message, 1);
	for (int i = 0; i < 200 && atomic_load(&at_message) < 2; i++)
		usleep(1000);
}

static int receive_by(int how, char *in, int count, MPI_Datatype type, MPI_Status *status)
{
	char out = 0;

	switch (how) {
	case RECV:
		return MPI_Recv(in, count, type, 0, TAG, comm, status);
	case RECV_ANY:
		return MPI_Recv(in, count, type, MPI_ANY_SOURCE, TAG, comm, status);
	case SENDRECV:
		return MPI_Sendrecv(&out, 1, MPI_BYTE, MPI_PROC_NULL, TAG_OTHER, in, count, type, 0, TAG, comm, status);
	default:
		return MPI_Sendrecv_replace(in, count, type, MPI_PROC_NULL, TAG_OTHER, 0, TAG, comm, status);
	}
}

static void *receive_one(void *data)
{
	MPI_Status status;
	char in = 0;

	(void)data;
	receiver = true;
	CHECK_OK(receive_by(way, &in, 1, MPI_BYTE, &status));
	CHECK_EQ(status.MPI_TAG, TAG);
	CHECK_EQ(status.MPI_SOURCE, 0);
	CHECK_EQ(in, 7);
	atomic_fetch_add(&received, 1);
	return NULL;
}

static bool within(atomic_int *what, int value)
{
	for (int i = 0; i < 10000 && atomic_load(what) != value; i++)
		usleep(1000);
	return atomic_load(what) == value;
}

static void check_two_threads(void)
{
	MPI_Request cr = check_plain_cr(), r, sends[4];
	pthread_t thread[2];
	char in, in_last, out = 7;
	struct seen last = {0};

	atomic_store(&at_message, 0);
	atomic_store(&received, 0);
	atomic_store(&ran, 0);
	MPI_Irecv(&in, 1, MPI_BYTE, 0, TAG_CONTINUED, comm, &r);
	CHECK_OK(MPI_Continue(&r, ran_cb, NULL, MPI_STATUS_IGNORE, cr));
	/* So that something is pending as long as they receive: MPICH (4.0) does not wake a thread in MPI_Recv for a
	 * message to oneself that another thread sends. */
	MPI_Irecv(&in_last, 1, MPI_BYTE, 0, TAG_LAST, comm, &r);
	CHECK_OK(MPI_Continue(&r, see, &last, MPI_STATUS_IGNORE, cr));
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, receive_one, NULL);
	usleep(10000);
	/* This thread makes no progress from here on: it starts sends, which are short. */
	MPI_Isend(&out, 1, MPI_BYTE, 0, TAG, comm, &sends[0]);
	CHECK(within(&received, 1));
	MPI_Isend(&out, 1, MPI_BYTE, 0, TAG_CONTINUED, comm, &sends[1]);
	CHECK(within(&ran, 1));
	CHECK(!pthread_equal(ran_on, pthread_self()));
	CHECK_EQ(received, 1);
	MPI_Isend(&out, 1, MPI_BYTE, 0, TAG, comm, &sends[2]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(received, 2);
	MPI_Isend(&out, 1, MPI_BYTE, 0, TAG_LAST, comm, &sends[3]);
	CHECK_OK(MPI_Waitall(4, sends, MPI_STATUSES_IGNORE));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

static int told, told_class;

static void on_error(MPI_Comm *which, int *code, ...)
{
	CHECK(*which == comm); /* (MPI_Comm_compare() fails an assertion of MPICH's in here) */
	MPI_Error_class(*code, &told_class);
	told++;
}

static void told_once(int rc, int class)
{
	int its;

	MPI_Error_class(rc, &its);
	CHECK_EQ(its, class);
	CHECK_EQ(told, 1);
	CHECK_EQ(told_class, class);
	told = 0;
}

/* While a continuation waits for something: each error is told once, by the communicator's handler, and takes no
 * message. */
static void check_errors(void)
{
	MPI_Request cr = check_plain_cr(), r, send;
	char in[4] = {0}, out[2] = {7, 7};
	MPI_Status status;
	int flag;

	MPI_Irecv(in, 1, MPI_BYTE, 0, TAG_CONTINUED, comm, &r);
	CHECK_OK(MPI_Continue(&r, ran_cb, NULL, MPI_STATUS_IGNORE, cr));
	MPI_Isend(out, 2, MPI_BYTE, 0, TAG, comm, &send);
	told_once(receive_by(way, in, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
	told_once(receive_by(way, in, -1, MPI_BYTE, &status), MPI_ERR_COUNT);
	if (way == RECV) {
		told_once(MPI_Recv(in, 2, MPI_BYTE, 4711, TAG, comm, &status), MPI_ERR_RANK);
		told_once(MPI_Recv(in, 2, MPI_BYTE, 0, -4711, comm, &status), MPI_ERR_TAG);
	} else if (way == SENDRECV) {
		told_once(MPI_Sendrecv(out, 1, MPI_BYTE, 0, TAG_OTHER, in, 2, MPI_BYTE, 4711, TAG, comm, &status),
			  MPI_ERR_RANK);
		told_once(MPI_Sendrecv(out, 1, MPI_BYTE, 4711, TAG_OTHER, in, 2, MPI_BYTE, 0, TAG, comm, &status),
			  MPI_ERR_RANK);
		MPI_Iprobe(0, TAG_OTHER, comm, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag); /* nothing was sent where the receive is refused */
	}
	/* It is there all the while, and too long: then it goes. */
	MPI_Iprobe(0, TAG, comm, &flag, MPI_STATUS_IGNORE);
	CHECK(flag);
	told_once(receive_by(way, in, 1, MPI_BYTE, &status), MPI_ERR_TRUNCATE);
	CHECK_EQ(in[1], 0);
	MPI_Iprobe(0, TAG, comm, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
	CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
	MPI_Isend(out, 1, MPI_BYTE, 0, TAG_CONTINUED, comm, &send);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

/* The data that is sent and received in place, of a type with holes. */
static void check_replace(void)
{
	MPI_Request cr = check_plain_cr(), r, send;
	int values[6] = {1, 2, 3, 4, 5, 6};
	MPI_Datatype every_other;
	MPI_Status status;
	char in, out = 7;

	MPI_Type_vector(3, 1, 2, MPI_INT, &every_other);
	MPI_Type_commit(&every_other);
	MPI_Irecv(&in, 1, MPI_BYTE, 0, TAG_CONTINUED, comm, &r);
	CHECK_OK(MPI_Continue(&r, ran_cb, NULL, MPI_STATUS_IGNORE, cr));
	{
		int others[3] = {11, 13, 15}, got[3] = {0};

		MPI_Irecv(got, 3, MPI_INT, 0, TAG_OTHER, comm, &r);
		MPI_Isend(others, 3, MPI_INT, 0, TAG, comm, &send);
		CHECK_OK(MPI_Sendrecv_replace(values, 1, every_other, 0, TAG_OTHER, 0, TAG, comm, &status));
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(values[2 * i], others[i]);
			CHECK_EQ(values[2 * i + 1], 2 * i + 2);
			CHECK_EQ(got[i], 2 * i + 1);
		}
		CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
	}
	MPI_Isend(&out, 1, MPI_BYTE, 0, TAG_CONTINUED, comm, &send);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Type_free(&every_other);
}

int main(int argc, char **argv)
{
	static const char *const name[] = {"MPI_Recv", "MPI_Recv, any source", "MPI_Sendrecv", "MPI_Sendrecv_replace"};
	MPI_Errhandler handler;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	for (way = 0; way < WAYS; way++) {
		check_begin(name[way]);
		check_errors();
		contd__testpoint_hook = meet;
		check_two_threads();
		contd__testpoint_hook = NULL;
	}
	check_begin("in place");
	check_replace();
	MPI_Errhandler_free(&handler);
	MPI_Comm_free(&comm);
	return check_fini();
}
