/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that uses continuations, under a tool in front of contd, behind it, or both. Every call by an MPI_ name is
 * counted here too, and the tool next to the program must come to the same numbers: it misses none, it sees nothing of
 * what contd does by itself, and calls by a PMPI_ name are not for it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <contd/mpi.h>

#include "tool.h"

static int made[TOOL_COUNT], failures, rank, size;
static int *front, *behind;

#define CALL(name, ...) (made[TOOL_##name]++, MPI_##name(__VA_ARGS__))

static void check(int good, const char *what, int line)
{
	if (!good && failures++ < 30)
		fprintf(stderr, "layers.c:%d: rank %d: CHECK(%s) failed\n", line, rank, what);
}

#define CHECK(cond) check(!!(cond), #cond, __LINE__)
#define CHECK_OK(call) CHECK((call) == MPI_SUCCESS)

static const char *const names[] = {
#define TOOL_NAME(name, parameters, arguments) "MPI_" #name,
	TOOL_CALLS(TOOL_NAME)
#undef TOOL_NAME
};

static void compare(const char *where, const int *seen)
{
	for (int i = 0; i < TOOL_COUNT; i++) {
		if (seen[i] == made[i])
			continue;
		failures++;
		fprintf(stderr, "rank %d: the tool %s contd saw %d calls of %s, the program made %d\n", rank, where,
			seen[i], names[i], made[i]);
	}
}

static void count(MPI_Status *statuses, void *data)
{
	(void)statuses;
	++*(int *)data;
}

static int next_rank(void)
{
	return (rank + 1) % size;
}

static int previous_rank(void)
{
	return (rank + size - 1) % size;
}

/* A continuation is attached to a receive, and what it waits for is sent by release(). */
static int in[8], ran;

static void hold(MPI_Request cr, int i)
{
	MPI_Request request;

	in[i] = -1;
	CHECK_OK(CALL(Irecv, &in[i], 1, MPI_INT, rank, 100 + i, MPI_COMM_WORLD, &request));
	CHECK_OK(MPI_Continue(&request, count, &ran, MPI_STATUS_IGNORE, cr));
	CHECK(request == MPI_REQUEST_NULL);
}

static void release(int i)
{
	int out = i;

	CHECK_OK(CALL(Send, &out, 1, MPI_INT, rank, 100 + i, MPI_COMM_WORLD));
}

/* Blocking calls, while a continuation is pending. The neighbours do the same at the same time. */
static void blocking(MPI_Request cr)
{
	int out = 7, got = -1;
	MPI_Request request;
	MPI_Message message;
	MPI_Status status;

	ran = 0;
	hold(cr, 0);
	CHECK_OK(CALL(Send, &out, 1, MPI_INT, next_rank(), 1, MPI_COMM_WORLD));
	CHECK_OK(CALL(Recv, &got, 1, MPI_INT, previous_rank(), 1, MPI_COMM_WORLD, &status));
	CHECK(got == 7 && status.MPI_TAG == 1);
	CHECK_OK(CALL(Irecv, &got, 1, MPI_INT, previous_rank(), 2, MPI_COMM_WORLD, &request));
	CHECK_OK(CALL(Ssend, &out, 1, MPI_INT, next_rank(), 2, MPI_COMM_WORLD));
	CHECK_OK(CALL(Wait, &request, &status));
	CHECK(request == MPI_REQUEST_NULL && status.MPI_TAG == 2);
	got = -1;
	CHECK_OK(CALL(Sendrecv, &out, 1, MPI_INT, next_rank(), 3, &got, 1, MPI_INT, previous_rank(), 3, MPI_COMM_WORLD,
		      &status));
	CHECK(got == 7 && status.MPI_TAG == 3);
	CHECK_OK(CALL(Isend, &out, 1, MPI_INT, next_rank(), 4, MPI_COMM_WORLD, &request));
	CHECK_OK(CALL(Probe, previous_rank(), 4, MPI_COMM_WORLD, &status));
	CHECK(status.MPI_TAG == 4);
	CHECK_OK(CALL(Mprobe, previous_rank(), 4, MPI_COMM_WORLD, &message, &status));
	CHECK_OK(PMPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
	CHECK_OK(CALL(Wait, &request, MPI_STATUS_IGNORE));
	/* By PMPI_ names: these are not counted. */
	CHECK_OK(PMPI_Isend(&out, 1, MPI_INT, next_rank(), 5, MPI_COMM_WORLD, &request));
	CHECK_OK(PMPI_Recv(&got, 1, MPI_INT, previous_rank(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_OK(PMPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK(ran == 0);
	release(0);
	CHECK_OK(CALL(Wait, &cr, &status));
	CHECK(ran == 1 && in[0] == 0 && cr != MPI_REQUEST_NULL);
}

/* Every completion call on ordinary requests, while a continuation is pending. */
static void completing(MPI_Request cr)
{
	int out[2] = {1, 2}, got[2], flag = 0, index, n, done = 0, indices[4];
	MPI_Request r[4];

	ran = 0;
	hold(cr, 1);
	for (int how = 0; how < 8; how++) {
		got[0] = got[1] = -1;
		for (int i = 0; i < 2; i++) {
			CHECK_OK(CALL(Irecv, &got[i], 1, MPI_INT, previous_rank(), 10 + i, MPI_COMM_WORLD, &r[i]));
			CHECK_OK(CALL(Isend, &out[i], 1, MPI_INT, next_rank(), 10 + i, MPI_COMM_WORLD, &r[2 + i]));
		}
		switch (how) {
		case 0:
			for (int i = 0; i < 4; i++)
				CHECK_OK(CALL(Wait, &r[i], MPI_STATUS_IGNORE));
			break;
		case 1:
			for (int i = 0; i < 4; i++)
				for (flag = 0; !flag;)
					CHECK_OK(CALL(Test, &r[i], &flag, MPI_STATUS_IGNORE));
			break;
		case 2:
			CHECK_OK(CALL(Waitall, 4, r, MPI_STATUSES_IGNORE));
			break;
		case 3:
			for (flag = 0; !flag;)
				CHECK_OK(CALL(Testall, 4, r, &flag, MPI_STATUSES_IGNORE));
			break;
		case 4:
			for (int i = 0; i < 4; i++)
				CHECK_OK(CALL(Waitany, 4, r, &index, MPI_STATUS_IGNORE));
			break;
		case 5:
			for (n = 0; n < 4; n += flag)
				CHECK_OK(CALL(Testany, 4, r, &index, &flag, MPI_STATUS_IGNORE));
			break;
		case 6:
			for (done = 0; done < 4; done += n)
				CHECK_OK(CALL(Waitsome, 4, r, &n, indices, MPI_STATUSES_IGNORE));
			break;
		default:
			for (done = 0; done < 4; done += n)
				CHECK_OK(CALL(Testsome, 4, r, &n, indices, MPI_STATUSES_IGNORE));
		}
		for (int i = 0; i < 4; i++)
			CHECK(r[i] == MPI_REQUEST_NULL);
		CHECK(got[0] == 1 && got[1] == 2);
	}
	CHECK(ran == 0);
	release(1);
	for (flag = 0; !flag;)
		CHECK_OK(CALL(Test, &cr, &flag, MPI_STATUS_IGNORE));
	CHECK(ran == 1 && in[1] == 1);
}

/* CRs in every completion call, alone and beside an ordinary request. */
static void crs(MPI_Request cr)
{
	int out = 9, got, flag, index, n, indices[2], seen, all;
	MPI_Status statuses[2];
	MPI_Request r[2], send;

	for (int how = 0; how < 7; how++) {
		got = -1;
		ran = 0;
		hold(cr, 2);
		r[0] = cr;
		CHECK_OK(CALL(Irecv, &got, 1, MPI_INT, previous_rank(), 20, MPI_COMM_WORLD, &r[1]));
		CHECK_OK(CALL(Request_get_status, cr, &flag, MPI_STATUS_IGNORE));
		CHECK_OK(CALL(Isend, &out, 1, MPI_INT, next_rank(), 20, MPI_COMM_WORLD, &send));
		release(2);
		switch (how) {
		case 0:
			CHECK_OK(CALL(Waitall, 2, r, statuses));
			CHECK(statuses[1].MPI_TAG == 20);
			break;
		case 1:
			for (flag = 0; !flag;)
				CHECK_OK(CALL(Testall, 2, r, &flag, MPI_STATUSES_IGNORE));
			break;
		case 2: /* a draft CR is reported again and again: so wait until both were there */
		case 3:
			for (seen = 0, all = 0; all != 3; all |= 1 << seen) {
				if (how == 2)
					CHECK_OK(CALL(Waitany, 2, r, &seen, MPI_STATUS_IGNORE));
				else
					for (flag = 0; !flag;)
						CHECK_OK(CALL(Testany, 2, r, &seen, &flag, MPI_STATUS_IGNORE));
				CHECK(seen == 0 || seen == 1);
			}
			break;
		case 4:
		case 5:
			for (all = 0; all != 3;) {
				if (how == 4)
					CHECK_OK(CALL(Waitsome, 2, r, &n, indices, MPI_STATUSES_IGNORE));
				else
					CHECK_OK(CALL(Testsome, 2, r, &n, indices, MPI_STATUSES_IGNORE));
				for (int i = 0; i < n; i++)
					all |= 1 << indices[i];
			}
			break;
		default: /* some clients use these names */
			for (flag = 0; !flag;)
				CHECK_OK(PMPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK_OK(PMPI_Wait(&cr, MPI_STATUS_IGNORE));
			CHECK_OK(PMPI_Waitany(2, r, &index, MPI_STATUS_IGNORE));
			CHECK_OK(PMPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		}
		CHECK(r[0] == cr && r[1] == MPI_REQUEST_NULL);
		CHECK(ran == 1 && in[2] == 2 && got == 9);
		CHECK_OK(CALL(Wait, &send, MPI_STATUS_IGNORE));
	}
}

static int count_revised(int rc, void *data)
{
	CHECK(rc == MPI_SUCCESS);
	++*(int *)data;
	return MPI_SUCCESS;
}

/* A CR that is started, by either name. */
static void revised(void)
{
	MPI_Request cr, request;
	int out = 3, got = -1;

	ran = 0;
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(CALL(Irecv, &got, 1, MPI_INT, rank, 30, MPI_COMM_WORLD, &request));
		CHECK_OK(MPIX_Continue(&request, count_revised, &ran, 0, MPI_STATUS_IGNORE, cr));
		CHECK_OK(CALL(Send, &out, 1, MPI_INT, rank, 30, MPI_COMM_WORLD));
		if (i == 0)
			CHECK_OK(CALL(Start, &cr));
		else
			CHECK_OK(PMPI_Start(&cr));
		CHECK_OK(CALL(Wait, &cr, MPI_STATUS_IGNORE));
		CHECK(ran == i + 1 && got == 3);
	}
	CHECK_OK(CALL(Request_free, &cr));
	CHECK(cr == MPI_REQUEST_NULL);
}

/* Rank 0's receive ends only after a continuation of it has run: some thread must make progress meanwhile. */
static void answer(MPI_Status *status, void *data)
{
	(void)status;
	CHECK_OK(CALL(Send, data, 1, MPI_INT, next_rank(), 41, MPI_COMM_WORLD));
	ran++;
}

static void attended(MPI_Request cr)
{
	static int asked, out = 4;
	MPI_Request request;
	int got = -1;

	ran = 0;
	for (int how = 0; how < 4; how++) {
		CHECK_OK(CALL(Irecv, &asked, 1, MPI_INT, previous_rank(), 40, MPI_COMM_WORLD, &request));
		CHECK_OK(MPI_Continue(&request, answer, &out, MPI_STATUS_IGNORE, cr));
		/* The answer comes only when all ranks are about to block. */
		PMPI_Barrier(MPI_COMM_WORLD);
		CHECK_OK(PMPI_Isend(&out, 1, MPI_INT, next_rank(), 40, MPI_COMM_WORLD, &request));
		got = -1;
		if (how == 0) {
			CHECK_OK(CALL(Recv, &got, 1, MPI_INT, previous_rank(), 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		} else if (how == 1) {
			CHECK_OK(CALL(Probe, previous_rank(), 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			CHECK_OK(CALL(Recv, &got, 1, MPI_INT, previous_rank(), 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		} else {
			MPI_Request answered;

			CHECK_OK(CALL(Irecv, &got, 1, MPI_INT, previous_rank(), 41, MPI_COMM_WORLD, &answered));
			if (how == 2)
				CHECK_OK(CALL(Wait, &answered, MPI_STATUS_IGNORE));
			else
				CHECK_OK(CALL(Waitall, 1, &answered, MPI_STATUSES_IGNORE));
		}
		CHECK(got == 4);
		CHECK_OK(PMPI_Wait(&request, MPI_STATUS_IGNORE));
		CHECK_OK(CALL(Wait, &cr, MPI_STATUS_IGNORE));
		CHECK(ran == how + 1);
	}
}

/* Requests that were made before contd was loaded are persistent, too. */
static MPI_Request early[2];
static int early_in, early_out;

static void early_init(void)
{
	PMPI_Recv_init(&early_in, 1, MPI_INT, rank, 50, MPI_COMM_WORLD, &early[0]);
	PMPI_Send_init(&early_out, 1, MPI_INT, rank, 50, MPI_COMM_WORLD, &early[1]);
	for (int i = 0; i < 2; i++)
		CHECK_OK(CALL(Start, &early[i]));
}

static void early_use(MPI_Request cr)
{
	MPI_Request same = early[0];

	ran = 0;
	CHECK_OK(MPI_Continue(&early[0], count, &ran, MPI_STATUS_IGNORE, cr));
	CHECK(early[0] == same);
	CHECK_OK(CALL(Wait, &cr, MPI_STATUS_IGNORE));
	CHECK(ran == 1);
	CHECK_OK(CALL(Wait, &early[1], MPI_STATUS_IGNORE));
	CHECK_OK(CALL(Request_free, &early[0]));
	CHECK_OK(CALL(Request_free, &early[1]));
}

/* layers: which tools there are must be said: front, behind, both */
int main(int argc, char **argv)
{
	static const int nothing[TOOL_COUNT];
	const char *wanted = argc > 1 ? argv[1] : "";
	MPI_Request cr = MPI_REQUEST_NULL;
	int provided, all = 0;

	alarm(100);
	front = dlsym(RTLD_DEFAULT, "front_counts");
	behind = dlsym(RTLD_DEFAULT, "behind_counts");
	MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(!!front == (strcmp(wanted, "front") == 0 || strcmp(wanted, "both") == 0));
	CHECK(!!behind == (strcmp(wanted, "behind") == 0 || strcmp(wanted, "both") == 0));
	early_init();
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	early_use(cr);
	for (int i = 0; i < 20; i++) {
		blocking(cr);
		completing(cr);
		crs(cr);
		revised();
		attended(cr);
	}
	CHECK_OK(CALL(Request_free, &cr));
	PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CALL(Finalize);
	/* The tool next to the program sees all, and one behind that, which is gone on to by PMPI_ names, nothing. */
	if (front)
		compare("in front of", front);
	if (behind && !front)
		compare("behind", behind);
	if (behind && front) {
		memcpy(made, nothing, sizeof(made));
		compare("behind the other and", behind);
	}
	return all || failures;
}
