/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the functions of docs/short-examples.md that use MPI. Two ranks: each sends to the other. */
#include <fcntl.h>
#include <unistd.h>

#include <contd/modes.h>

#include "check.h"

int make_request(MPI_Request *cont);
int sum_of_stream(int messages, int source, int *sum);
int exchange(double *in, const double *out, int n, int peer, MPI_Status statuses[2], int *received, MPI_Request cont);
int when_both(MPI_Request *receive, struct contd_event *came, struct contd_event *asked, contd_callback *cb, void *data,
	      MPI_Request cont);
void send_stop(int rank, MPI_Comm comm);
void send_stop_to_all(int ranks, int self, MPI_Comm comm);
int make_progress_in_background(void);
int many_may_be_pending(void);
int continue_as_task(MPI_Request *request, MPI_Status *status, struct contd_task *task, contd_callback *cb, void *data,
		     struct contd_executor *pool, MPI_Request cont);
int continue_as_task_x(MPI_Request *request, struct contd_task *task, contd_callback *cb, void *data,
		       struct contd_executor *pool, MPI_Request cont);
int sum_of_messages(int messages, int source, int *sum);
int print_failed(MPI_Request cont);
int request_of_event(struct contd_event *event, MPI_Request *request, MPI_Request *copy, struct contd_group *group);
int read_beside_messages(int fd, char *text, int size, MPI_Status *status);
int stop_receiving(MPI_Request *receive);
int all_are_complete(int n, const MPI_Request requests[]);
int one_that_is_complete(int n, const MPI_Request requests[]);
int those_that_are_complete(int n, const MPI_Request requests[], int indices[]);
void print_progress(int n, const MPI_Request requests[], int indices[], MPI_Status statuses[]);

static int rank, peer;

static void send_value(int value, int tag)
{
	EQ(MPI_Send(&value, 1, MPI_INT, peer, tag, MPI_COMM_WORLD), MPI_SUCCESS);
}

static void keep_status(int status, void *at)
{
	*(int *)at = status;
}

static void draft(void)
{
	struct contd_event came, asked = CONTD_EVENT_INIT;
	int received, value = -1, status = -1, sum = 0;
	double in[8], out[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	MPI_Status statuses[2];
	MPI_Request cont, receive, stops[2];

	EQ(make_request(&cont), MPI_SUCCESS);
	EQ(exchange(in, out, 8, peer, statuses, &received, cont), MPI_SUCCESS);
	EQ(MPI_Wait(&cont, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EQ(received, 8);
	CHECK(in[7] == 7);

	for (int i = 1; i <= 3; i++)
		send_value(i, 8);
	EQ(sum_of_stream(3, peer, &sum), MPI_SUCCESS);
	EQ(sum, 6);

	EQ(MPI_Irecv(&value, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &receive), MPI_SUCCESS);
	EQ(when_both(&receive, &came, &asked, keep_status, &status, cont), MPI_SUCCESS);
	send_value(7, 2);
	EQ(contd_event_complete(&asked, 0), 0);
	EQ(MPI_Wait(&cont, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EQ(status, 0);
	EQ(value, 7);

	for (int i = 0; i < 2; i++)
		EQ(MPI_Irecv(NULL, 0, MPI_INT, peer, 3, MPI_COMM_WORLD, &stops[i]), MPI_SUCCESS);
	send_stop(peer, MPI_COMM_WORLD);
	send_stop_to_all(2, rank, MPI_COMM_WORLD);
	EQ(MPI_Waitall(2, stops, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	EQ(MPI_Request_free(&cont), MPI_SUCCESS);
}

static void in_pool(void)
{
	struct contd_executor *pool;
	struct contd_task task;
	int value, status;
	MPI_Request cont, cont_x, receive;
	MPI_Status of_receive;

	EQ(contd_executor_create(NULL, &pool), 0);
	EQ(MPI_Continue_init(MPI_INFO_NULL, &cont), MPI_SUCCESS);
	EQ(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cont_x), MPI_SUCCESS);
	EQ(MPI_Start(&cont_x), MPI_SUCCESS);
	for (int x = 0; x < 2; x++) {
		value = status = -1;
		EQ(MPI_Irecv(&value, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, &receive), MPI_SUCCESS);
		EQ(x ? continue_as_task_x(&receive, &task, keep_status, &status, pool, cont_x)
		     : continue_as_task(&receive, &of_receive, &task, keep_status, &status, pool, cont),
		   MPI_SUCCESS);
		send_value(40 + x, 4);
		while (contd_executor_run(pool, 1, 0) == 0)
			CHECK(contd_poll(0) >= 0);
		EQ(status, 0);
		EQ(value, 40 + x);
		EQ(MPI_Wait(x ? &cont_x : &cont, MPI_STATUS_IGNORE), MPI_SUCCESS);
	}
	EQ(of_receive.MPI_TAG, 4);
	EQ(MPI_Request_free(&cont), MPI_SUCCESS);
	EQ(MPI_Request_free(&cont_x), MPI_SUCCESS);
	EQ(contd_executor_drain(pool), 0);
	EQ(contd_executor_destroy(pool), 0);
}

static int fails(int rc, void *data)
{
	return MPI_ERR_OTHER;
}

static void revised(void)
{
	char name[] = "a continuation that returns an error";
	MPI_Request cont, none = MPI_REQUEST_NULL;
	int sum = 0;

	for (int i = 1; i <= 3; i++)
		send_value(i, 5);
	EQ(sum_of_messages(3, peer, &sum), MPI_SUCCESS);
	EQ(sum, 6);

	EQ(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cont), MPI_SUCCESS);
	EQ(MPI_Start(&cont), MPI_SUCCESS);
	for (int i = 0; i < 9; i++)
		EQ(MPIX_Continue(&none, fails, name, 0, MPI_STATUS_IGNORE, cont), MPI_SUCCESS);
	EQ(print_failed(cont), 9);
	EQ(print_failed(cont), 0);
	EQ(MPI_Wait(&cont, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EQ(MPI_Request_free(&cont), MPI_SUCCESS);
}

static void generalized(void)
{
	struct contd_event event = CONTD_EVENT_INIT;
	struct contd_group *group;
	MPI_Request request, copy;
	MPI_Status status;
	char text[8];
	int fds[2], length, flag;

	EQ(contd_group_create(NULL, &group), 0);
	EQ(request_of_event(&event, &request, &copy, group), MPI_SUCCESS);
	EQ(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EQ(flag, 0);
	EQ(contd_event_complete(&event, 0), 0);
	EQ(contd_group_wait(group, -1), 0);
	EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EQ(contd_group_destroy(group), 0);

	EQ(pipe(fds), 0);
	EQ(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	EQ(write(fds[1], "text", 4), 4);
	EQ(read_beside_messages(fds[0], text, sizeof(text), &status), MPI_SUCCESS);
	EQ(MPI_Get_count(&status, MPI_BYTE, &length), MPI_SUCCESS);
	EQ(length, 4);
	close(fds[0]);
	close(fds[1]);

	EQ(MPI_Irecv(&length, 1, MPI_INT, peer, 99, MPI_COMM_WORLD, &request), MPI_SUCCESS);
	EQ(stop_receiving(&request), 1);
	CHECK(request == MPI_REQUEST_NULL);
	EQ(stop_receiving(&request), 0);
}

static void queries(void)
{
	int value[2], indices[2] = {-1, -1};
	MPI_Request requests[2];
	MPI_Status statuses[2];

	for (int i = 0; i < 2; i++)
		EQ(MPI_Irecv(&value[i], 1, MPI_INT, peer, 6 + i, MPI_COMM_WORLD, &requests[i]), MPI_SUCCESS);
	EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
	EQ(all_are_complete(2, requests), 0);
	EQ(one_that_is_complete(2, requests), MPI_UNDEFINED);
	EQ(those_that_are_complete(2, requests, indices), 0);
	print_progress(2, requests, indices, statuses);
	EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
	send_value(0, 7);
	while (one_that_is_complete(2, requests) != 1)
		;
	EQ(those_that_are_complete(2, requests, indices), 1);
	EQ(indices[0], 1);
	print_progress(2, requests, indices, statuses);
	EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
	send_value(0, 6);
	while (!all_are_complete(2, requests))
		;
	print_progress(2, requests, indices, statuses);
	EQ(MPI_Waitall(2, requests, statuses), MPI_SUCCESS);
	EQ(statuses[1].MPI_TAG, 7);
	EQ(those_that_are_complete(2, requests, indices), 0);
}

int main(int argc, char **argv)
{
	int level, size, background;

	EQ(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level), MPI_SUCCESS);
	EQ(MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_SUCCESS);
	EQ(MPI_Comm_size(MPI_COMM_WORLD, &size), MPI_SUCCESS);
	EQ(size, 2);
	peer = 1 - rank;
	EQ(contd_init(NULL), 0);
	draft();
	in_pool();
	revised();
	generalized();
	queries();
#ifdef OPEN_MPI
	EQ(many_may_be_pending(), 1);
#else
	EQ(many_may_be_pending(), 0);
#endif
	background = make_progress_in_background();
	EQ(background, level == MPI_THREAD_MULTIPLE);
	if (background)
		EQ(contd_daemon_stop(), 0);
	EQ(contd_fini(), 0);
	return MPI_Finalize();
}
