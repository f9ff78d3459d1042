/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* environment: MALLOC_PERTURB_=165 */
/*
 * A callback has failed, and its CR is completed together with persistent requests. Of those that were never started,
 * whose request objects are new, the handles stay, and MPI_COMM_SELF's error handler alone is told, once. If one has
 * failed, its status says so.
 */
#include "errors.h"

#define COUNT 8
#define CR 5 /* its place */

enum call { TESTALL, TESTALL_IGNORE, WAITALL, WAITALL_IGNORE, CALLS };
enum kind { SEND, SSEND, RECEIVE, KINDS };

static const char *const name[CALLS] = {"MPI_Testall", "MPI_Testall, no statuses", "MPI_Waitall",
					"MPI_Waitall, no statuses"};

static void make(enum kind kind, int tag, MPI_Request *request)
{
	static int buffer;

	if (kind == SEND)
		MPI_Send_init(&buffer, 1, MPI_INT, check_rank, tag, MPI_COMM_WORLD, request);
	else if (kind == SSEND)
		MPI_Ssend_init(&buffer, 1, MPI_INT, check_rank, tag, MPI_COMM_WORLD, request);
	else
		MPI_Recv_init(&buffer, 1, MPI_INT, check_rank, tag, MPI_COMM_WORLD, request);
}

static int complete(enum call call, MPI_Request *requests, MPI_Status *statuses)
{
	int flag = 1, rc;

	if (call == WAITALL || call == WAITALL_IGNORE)
		rc = MPI_Waitall(COUNT, requests, statuses);
	else
		rc = MPI_Testall(COUNT, requests, &flag, statuses);
	CHECK(flag);
	return rc;
}

static void never_started(enum call call, enum kind kind)
{
	bool ignore = call == TESTALL_IGNORE || call == WAITALL_IGNORE;
	MPI_Request requests[COUNT], made[COUNT], cr = failed_cr();
	MPI_Status statuses[COUNT];

	check_begin(name[call]);
	for (int i = 0; i < COUNT; i++)
		if (i == CR)
			requests[i] = cr;
		else
			make(kind, i, &requests[i]);
	memcpy(made, requests, sizeof(made));
	on_self_count = on_world_count = 0;
	CHECK_EQ(class_of(complete(call, requests, ignore ? MPI_STATUSES_IGNORE : statuses)), MPI_ERR_IN_STATUS);
	CHECK_EQ(on_self_count, 1);
	CHECK_EQ(on_world_count, 0);
	for (int i = 0; i < COUNT; i++) {
		CHECK(requests[i] == made[i]);
		if (!ignore)
			CHECK_EQ(class_of(statuses[i].MPI_ERROR), i == CR ? MPI_ERR_OTHER : MPI_SUCCESS);
	}
	free_failed(cr);
	for (int i = 0; i < COUNT; i++)
		if (i != CR && requests[i] == made[i])
			CHECK_OK(MPI_Request_free(&requests[i]));
}

static void failed(enum call call)
{
	static const int out[4];
	MPI_Request requests[3] = {MPI_REQUEST_NULL, failed_cr(), MPI_REQUEST_NULL}, cr = requests[1], send;
	MPI_Status statuses[3];
	int in, flag = 0, rc = MPI_SUCCESS;

	check_begin("one that has failed");
	MPI_Isend(out, 4, MPI_INT, check_rank, 0, MPI_COMM_WORLD, &send);
	for (int i = 0; i < 10; i++)
		MPI_Iprobe(check_rank, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	MPI_Recv_init(&in, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD, &requests[0]);
	MPI_Start(&requests[0]);
	if (call == WAITALL)
		rc = MPI_Waitall(3, requests, statuses);
	while (call == TESTALL && !flag && rc == MPI_SUCCESS)
		rc = MPI_Testall(3, requests, &flag, statuses);
	CHECK_EQ(class_of(rc), MPI_ERR_IN_STATUS);
	CHECK_EQ(class_of(statuses[0].MPI_ERROR), MPI_ERR_TRUNCATE);
	CHECK_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_OTHER);
	CHECK_EQ(statuses[2].MPI_ERROR, MPI_SUCCESS);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	free_failed(cr);
	if (requests[0] != MPI_REQUEST_NULL)
		CHECK_OK(MPI_Request_free(&requests[0]));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	count_errors();
	for (int call = 0; call < CALLS; call++)
		for (int kind = 0; kind < KINDS; kind++)
			never_started(call, kind);
	failed(TESTALL);
	failed(WAITALL);
	return check_fini();
}
