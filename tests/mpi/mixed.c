/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * MPI operations together with what else contd waits for: as events in one continuation, and in a continuation
 * request's group.
 */
#include "mixed.h"

static void poll_until(int wanted)
{
	while (runs < wanted)
		CHECK(contd_poll(0) >= 0);
}

/* One continuation for two receives, an event and a word of memory (the word through an event of its group). */
static void one_continuation(struct contd_group *group)
{
	struct contd_event event[3], *all[] = {&event[0], &event[1], &event[2]};
	MPI_Request request[2];
	MPI_Status status[2];
	int got[2] = {0, 0};

	check_begin("one continuation");
	runs = 0;
	for (int i = 0; i < 2; i++) {
		CHECK_OK(MPI_Irecv(&got[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request[i]));
		CHECK_OK(contd_mpi_event(&request[i], i ? &status[i] : MPI_STATUS_IGNORE, &event[i]));
		CHECK(request[i] == MPI_REQUEST_NULL);
	}
	contd_event_init(&event[2]);
	CHECK_EQ(contd_event_continue(3, all, on_all, NULL, group, NULL), 0);
	go(1);
	poll_until_complete(&event[0]);
	CHECK_EQ(runs, 0);
	CHECK_EQ(contd_event_complete(&event[2], 0), 0);
	CHECK(contd_poll(0) >= 0);
	CHECK_EQ(runs, 0);
	go(2);
	poll_until(1);
	CHECK_EQ(last_status, 0);
	CHECK_EQ(got[0], 100);
	CHECK_EQ(got[1], 101);
	CHECK_EQ(status[1].MPI_TAG, 1);
	CHECK_EQ(status[1].MPI_SOURCE, 1);
	CHECK_EQ(contd_group_outstanding(group), 0);
}

/* One that is complete when it is given. */
static void complete_already(struct contd_group *group)
{
	struct contd_event event, *one = &event;
	MPI_Request request;
	int got = 0;

	check_begin("complete already");
	runs = 0;
	CHECK_OK(MPI_Isend(&got, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
	CHECK_OK(contd_mpi_event(&request, MPI_STATUS_IGNORE, &event));
	CHECK_EQ(contd_event_continue(1, &one, on_all, NULL, group, NULL), 0);
	poll_until(1);
	request = MPI_REQUEST_NULL;
	CHECK_OK(contd_mpi_event(&request, MPI_STATUS_IGNORE, &event));
	CHECK_EQ(contd_event_continue(1, &one, on_all, NULL, group, NULL), 0);
	poll_until(2);
}

/* An operation that fails: the event has its error class. */
static void fails(struct contd_group *group)
{
	struct contd_event event, *one = &event;
	MPI_Request request;
	MPI_Comm comm;
	char got[2];

	check_begin("fails");
	runs = 0;
	CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	CHECK_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	if (check_rank == 0) {
		CHECK_OK(MPI_Irecv(got, 2, MPI_CHAR, 1, 3, comm, &request));
		CHECK_OK(contd_mpi_event(&request, MPI_STATUS_IGNORE, &event));
		CHECK_EQ(contd_event_continue(1, &one, on_all, NULL, group, NULL), 0);
		go(3);
		poll_until(1);
		CHECK_EQ(last_status, MPI_ERR_TRUNCATE);
	} else {
		CHECK_EQ(told(), 3);
		CHECK_OK(MPI_Send("four", 5, MPI_CHAR, 0, 3, comm));
	}
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
	CHECK_OK(MPI_Comm_free(&comm));
}

/* A CR is complete when what was registered with its group is, whatever it is. */
static void group_of_a_request(void)
{
	struct contd_event event, *one = &event;
	static uint64_t memory __attribute__((aligned(8)));
	struct contd_word word = {.address = &memory, .value = 1, .op = CONTD_WORD_EQ};
	struct contd_group *group;
	MPI_Request cr, request;
	int got = 0, flag = -1;

	check_begin("a request's group");
	runs = 0;
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	group = contd_mpi_group(cr);
	CHECK(group != NULL);
	contd_event_init(&event);
	CHECK_EQ(contd_event_continue(1, &one, on_all, NULL, group, NULL), 0);
	CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(contd_word_continue(&word, on_all, NULL, group, NULL), 0);
	CHECK_OK(MPI_Irecv(&got, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &request));
	CHECK_OK(MPI_Continue(&request, on_one, NULL, MPI_STATUS_IGNORE, cr));
	CHECK_EQ(contd_group_outstanding(group), 3);
	go(4);
	test_until(&cr, 1);
	__atomic_store_n(&memory, 1, __ATOMIC_RELEASE);
	test_until(&cr, 2);
	CHECK_EQ(contd_event_complete(&event, 0), 0);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 3);
	CHECK_EQ(got, 104);
	CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_OK(MPI_Request_free(&cr));
}

static void refused(void)
{
	struct contd_event event = CONTD_EVENT_INIT;
	MPI_Request request = MPI_REQUEST_NULL;

	check_begin("refused");
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	CHECK_EQ(contd_mpi_event(&request, MPI_STATUS_IGNORE, NULL), MPI_ERR_ARG);
	CHECK_EQ(contd_mpi_event(NULL, MPI_STATUS_IGNORE, &event), MPI_ERR_ARG);
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
	CHECK(contd_mpi_group(MPI_REQUEST_NULL) == NULL);
}

int main(int argc, char **argv)
{
	struct contd_group *group;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	if (check_rank == 0) {
		CHECK_EQ(contd_init(NULL), 0);
		CHECK_EQ(contd_group_create(NULL, &group), 0);
		one_continuation(group);
		complete_already(group);
		fails(group);
		group_of_a_request();
		refused();
		CHECK_EQ(contd_group_destroy(group), 0);
		CHECK_EQ(contd_fini(), 0);
	} else {
		send_when_told(1, 0, 100);
		send_when_told(2, 1, 101);
		fails(NULL);
		send_when_told(4, 4, 104);
	}
	return check_fini();
}
