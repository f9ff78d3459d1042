/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A status query of several requests runs continuations, and these change the array: they free a CR, set its entry to
 * MPI_REQUEST_NULL or leave it, put another request there, complete another entry, or start it. The query answers for
 * what the array holds afterwards, and a CR that was freed meanwhile counts as MPI_REQUEST_NULL.
 */
#include "check.h"

#ifndef LEVEL
#define LEVEL MPI_THREAD_SINGLE
#endif

#define TAG 53

enum { FREED = 100, KEPT = 100 }; /* more than dead groups are collected before their memory is given back */
enum change {
	NOTHING,
	FREE,
	FREE_AND_LEAVE,
	REPLACE,
	REPLACE_BY_CR,
	REPLACE_BY_COMPLETE,
	WAIT_FOR_OTHER,
	START_OTHER,
	CHANGES
};
static const char *const name[CHANGES] = {"nothing",
					  "free",
					  "free, and leave the handle",
					  "replace",
					  "replace by a CR",
					  "replace by a complete one",
					  "wait for the other",
					  "start the other"};

static MPI_Request r[2], second, later[KEPT];
static enum change change;
static int in[2], out = 1, runs, others;

static MPI_Request revised(int max_poll)
{
	MPI_Request cr;

	CHECK_OK(MPIX_Continue_init(0, max_poll, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	return cr;
}

static void send_to_self(int tag)
{
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, tag, MPI_COMM_SELF));
}

static MPI_Request receive(int tag)
{
	MPI_Request new;

	CHECK_OK(MPI_Irecv(&in[1], 1, MPI_INT, 0, tag, MPI_COMM_SELF, &new));
	return new;
}

static int count(int rc, void *data)
{
	(void)data;
	CHECK_EQ(rc, MPI_SUCCESS);
	others++;
	return MPI_SUCCESS;
}

static MPI_Request waiting_cr(void)
{
	MPI_Request cr = revised(0), op = receive(TAG + 2);

	CHECK_OK(MPIX_Continue(&op, count, NULL, 0, MPI_STATUS_IGNORE, cr));
	return cr;
}

static int changes(int rc, void *data)
{
	MPI_Request own = r[0];

	(void)data;
	CHECK_EQ(rc, MPI_SUCCESS);
	runs++;
	if (change != NOTHING && change != WAIT_FOR_OTHER && change != START_OTHER) {
		CHECK_OK(MPI_Request_free(&own));
		if (change != FREE_AND_LEAVE)
			r[0] = own;
	}
	switch (change) {
	case REPLACE:
		r[0] = receive(TAG + 1);
		break;
	case REPLACE_BY_CR:
		r[0] = waiting_cr();
		break;
	case REPLACE_BY_COMPLETE:
		r[0] = receive(TAG + 1);
		send_to_self(TAG + 1);
		break;
	case WAIT_FOR_OTHER:
		CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
		break;
	case START_OTHER:
		CHECK_OK(MPI_Start(&r[1]));
		break;
	default:
		break;
	}
	return MPI_SUCCESS;
}

/* The memory of the dead is given back here, and used again. */
static int makes(int rc, void *data)
{
	(void)data;
	CHECK_EQ(rc, MPI_SUCCESS);
	for (int i = 0; i < FREED; i++) {
		MPI_Request dead = revised(0);

		CHECK_OK(MPI_Request_free(&dead));
	}
	for (int i = 0; i < KEPT; i++)
		later[i] = waiting_cr();
	return MPI_SUCCESS;
}

enum query { ALL, ANY, SOME, QUERIES };

/* The answer for both: which of them are active and complete (bits), and whether one is active at all. */
static void ask(enum query query, int *completep, int *activep, MPI_Status statuses[2])
{
	int flag = -1, at = -1, n = -1, indices[2] = {-1, -1};

	*completep = *activep = 0;
	switch (query) {
	case ALL:
		CHECK_OK(MPIX_Request_get_status_all(2, r, &flag, statuses));
		*completep = flag;
		return;
	case ANY:
		CHECK_OK(MPIX_Request_get_status_any(2, r, &at, &flag, statuses));
		CHECK(at == MPI_UNDEFINED || (flag && (at == 0 || at == 1)));
		*completep = at == MPI_UNDEFINED ? 0 : 1 << at;
		*activep = !flag || at != MPI_UNDEFINED;
		return;
	default:
		CHECK_OK(MPIX_Request_get_status_some(2, r, &n, indices, statuses));
		*activep = n != MPI_UNDEFINED;
		for (int i = 0; i < n; i++)
			*completep |= 1 << indices[i];
	}
}

/* limit: the CR's tests may run one. */
static void one(enum query query, bool limit, bool ignore)
{
	MPI_Status statuses[2], *to = ignore ? MPI_STATUSES_IGNORE : statuses;
	/* of the first entry, afterwards: is it complete; is it active */
	bool complete =
		change == NOTHING || change == REPLACE_BY_COMPLETE || change == WAIT_FOR_OTHER || change == START_OTHER;
	bool active = change != FREE && change != FREE_AND_LEAVE;
	bool persistent = change == START_OTHER, other = change == WAIT_FOR_OTHER || persistent;
	int said = 0, any = 0;
	MPI_Request op = receive(TAG);

	runs = others = 0;
	r[0] = revised(limit);
	r[1] = MPI_REQUEST_NULL;
	second = revised(0);
	CHECK_OK(MPIX_Continue(&op, changes, NULL, 0, MPI_STATUS_IGNORE, r[0]));
	op = receive(TAG);
	CHECK_OK(MPIX_Continue(&op, makes, NULL, 0, MPI_STATUS_IGNORE, second));
	if (persistent)
		CHECK_OK(MPI_Recv_init(&in[0], 1, MPI_INT, 0, TAG + 3, MPI_COMM_SELF, &r[1]));
	else if (other)
		CHECK_OK(MPI_Isend(&out, 1, MPI_INT, 0, TAG + 3, MPI_COMM_SELF, &r[1]));
	if (other && !persistent)
		CHECK_OK(MPI_Recv(&in[0], 1, MPI_INT, 0, TAG + 3, MPI_COMM_SELF, MPI_STATUS_IGNORE));
	send_to_self(TAG);
	send_to_self(TAG);
	/* The look that finds the receives complete runs both: the second one after the first one, mostly. */
	while (!runs)
		ask(query, &said, &any, to);
	if (query == ALL)
		CHECK_EQ(said, (complete || !active) && !persistent);
	else
		CHECK_EQ(said, complete && active);
	if (query != ALL)
		CHECK_EQ(any, active || persistent);
	if (change == REPLACE_BY_COMPLETE && !ignore)
		status_is_of(&statuses[0], 0, TAG + 1, sizeof(int));
	if (query == ALL && said && !ignore)
		CHECK(status_is_empty(&statuses[change == REPLACE_BY_COMPLETE]));
	CHECK_EQ(runs, 1);
	/* Let all end. */
	CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&second));
	for (int i = 0; i < KEPT + (change == REPLACE_BY_CR); i++)
		send_to_self(TAG + 2);
	for (int i = 0; i < KEPT; i++) {
		CHECK_OK(MPI_Wait(&later[i], MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Request_free(&later[i]));
	}
	if (change == REPLACE)
		send_to_self(TAG + 1);
	if (persistent)
		send_to_self(TAG + 3);
	if (change != FREE_AND_LEAVE)
		CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	if (change == NOTHING || change == REPLACE_BY_CR || other)
		CHECK_OK(MPI_Request_free(&r[0]));
	if (persistent)
		CHECK_OK(MPI_Request_free(&r[1]));
	CHECK_EQ(others, KEPT + (change == REPLACE_BY_CR));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, LEVEL);
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	for (change = NOTHING; change < CHANGES; change++) {
		check_begin(name[change]);
		for (int query = ALL; query < QUERIES; query++)
			for (int i = 0; i < 4; i++)
				one((enum query)query, i & 1, i & 2);
	}
	return check_fini();
}
