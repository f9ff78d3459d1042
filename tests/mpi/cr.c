/* SPDX-License-Identifier: BSD-3-Clause */
/* The continuation request in MPI's completion calls, in MPI_Continue itself, and inside its own continuations. */
#include "../abi.h"
#include "check.h"

#define TAG 21

static char in[64], out[64];

/* Something outstanding that only a message from the previous rank ends. */
static void outstanding(MPI_Request cr, struct seen *seen, int tag)
{
	MPI_Request r;

	MPI_Irecv(in, 8, MPI_BYTE, check_previous(), tag, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, see, seen, MPI_STATUS_IGNORE, cr));
}

static void end_it(int tag)
{
	MPI_Send(out, 8, MPI_BYTE, check_next(), tag, MPI_COMM_WORLD);
}

/* ----------------------------------------------------------------------------------------------------- complete --- */

static void check_fresh(MPI_Request cr)
{
	MPI_Request same = cr, r[3] = {MPI_REQUEST_NULL, cr, MPI_REQUEST_NULL};
	int flag, index, count, indices[3];
	MPI_Status status, statuses[3];

	check_begin("fresh");
	for (int round = 0; round < 2; round++) {
		flag = 0;
		status_poison(&status);
		CHECK_OK(MPI_Test(&cr, &flag, &status));
		CHECK(flag);
		CHECK(status_is_empty(&status));
		CHECK(cr == same);
		status_poison(&status);
		CHECK_OK(MPI_Wait(&cr, &status));
		CHECK(status_is_empty(&status));
		CHECK(cr == same);
		flag = 0;
		status_poison(&status);
		CHECK_OK(MPI_Request_get_status(cr, &flag, &status));
		CHECK(flag);
		CHECK(status_is_empty(&status));
		flag = 0;
		memset(statuses, POISON, sizeof(statuses));
		CHECK_OK(MPI_Testall(3, r, &flag, statuses));
		CHECK(flag);
		for (int i = 0; i < 3; i++)
			CHECK(status_is_empty(&statuses[i]));
		CHECK_OK(MPI_Waitall(3, r, statuses));
		CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
		/* Nothing that it could report: as an inactive persistent request, MPI 4.1, 3.7.5. */
		flag = 0;
		index = 5;
		CHECK_OK(MPI_Testany(3, r, &index, &flag, &status));
		CHECK(flag);
		CHECK_EQ(index, MPI_UNDEFINED);
		index = 5;
		CHECK_OK(MPI_Waitany(3, r, &index, &status));
		CHECK_EQ(index, MPI_UNDEFINED);
		count = 5;
		CHECK_OK(MPI_Testsome(3, r, &count, indices, statuses));
		CHECK_EQ(count, MPI_UNDEFINED);
		count = 5;
		CHECK_OK(MPI_Waitsome(3, r, &count, indices, statuses));
		CHECK_EQ(count, MPI_UNDEFINED);
		CHECK(r[1] == same);
	}
}

/* ------------------------------------------------------------------------------------------------ one at a time --- */

/* false while something is outstanding, true afterwards, by each of the calls; PMPI names and Fortran handles too. */
static void check_alone(MPI_Request cr)
{
	enum { TEST, GET_STATUS, TESTALL, TESTANY, TESTSOME, PTEST, FORTRAN, TESTS };
	static const char *const name[TESTS] = {"Test",     "Request_get_status", "Testall",       "Testany",
						"Testsome", "PMPI_Test",          "Fortran handle"};
	MPI_Request same = cr;

	for (int how = 0; how < TESTS; how++) {
		struct seen seen = {0};
		int flag = 1, index = 5, count = 5;
		MPI_Status status;
		MPI_Request f;

		check_begin(name[how]);
		MPI_Barrier(MPI_COMM_WORLD);
		outstanding(cr, &seen, TAG);
		for (int after = 0; after < 2; after++) {
			do {
				if (how == TEST)
					CHECK_OK(MPI_Test(&cr, &flag, &status));
				else if (how == GET_STATUS)
					CHECK_OK(MPI_Request_get_status(cr, &flag, &status));
				else if (how == TESTALL)
					CHECK_OK(MPI_Testall(1, &cr, &flag, &status));
				else if (how == TESTANY)
					CHECK_OK(MPI_Testany(1, &cr, &index, &flag, &status));
				else if (how == PTEST)
					CHECK_OK(PMPI_Test(&cr, &flag, &status));
				if (how == TESTSOME) {
					CHECK_OK(MPI_Testsome(1, &cr, &count, &index, &status));
					flag = count != 0;
				}
				if (how == FORTRAN) {
					f = MPI_Request_f2c(MPI_Request_c2f(cr));
					CHECK(f == cr);
					CHECK_OK(MPI_Test(&f, &flag, &status));
					CHECK(f == cr);
				}
				CHECK(cr == same);
			} while (after && !flag);
			CHECK_EQ(flag, after);
			CHECK_EQ(seen.runs, after);
			if (after)
				CHECK(status_is_empty(&status));
			if (after && how == TESTANY)
				CHECK_EQ(index, 0);
			if (after && how == TESTSOME)
				CHECK(count == 1 && index == 0);
			MPI_Barrier(MPI_COMM_WORLD);
			if (!after)
				end_it(TAG);
		}
		/* Reported (get_status does not report); asking again gives the same. */
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK(cr == same);
	}
}

static void check_wait(MPI_Request cr)
{
	enum { WAIT, WAITALL, WAITANY, WAITSOME, PWAIT, FORTRAN, WAITS };
	static const char *const name[WAITS] = {"Wait",     "Waitall",   "Waitany",
						"Waitsome", "PMPI_Wait", "Fortran handle"};
	MPI_Request same = cr;

	for (int how = 0; how < WAITS; how++) {
		struct seen seen = {0};
		int index = 5, count = 5;
		MPI_Status status;
		MPI_Request f;

		check_begin(name[how]);
		status_poison(&status);
		outstanding(cr, &seen, TAG);
		end_it(TAG);
		if (how == WAIT)
			CHECK_OK(MPI_Wait(&cr, &status));
		else if (how == WAITALL)
			CHECK_OK(MPI_Waitall(1, &cr, &status));
		else if (how == PWAIT)
			CHECK_OK(PMPI_Wait(&cr, &status));
		if (how == WAITANY) {
			CHECK_OK(MPI_Waitany(1, &cr, &index, &status));
			CHECK_EQ(index, 0);
		}
		if (how == WAITSOME) {
			CHECK_OK(MPI_Waitsome(1, &cr, &count, &index, &status));
			CHECK(count == 1 && index == 0);
		}
		if (how == FORTRAN) {
			f = MPI_Request_f2c(MPI_Request_c2f(cr));
			CHECK_OK(MPI_Wait(&f, &status));
		}
		CHECK(cr == same);
		CHECK_EQ(seen.runs, 1);
		CHECK(status_is_empty(&status));
	}
}

/* ------------------------------------------------------------------------------------- beside ordinary requests --- */

static void check_beside(MPI_Request cr, MPI_Request other)
{
	MPI_Request r[4];
	MPI_Status statuses[4];
	struct seen seen = {0}, seen_other = {0};
	int flag, index, count, indices[4], reported;

	check_begin("Testall beside others");
	MPI_Barrier(MPI_COMM_WORLD);
	outstanding(cr, &seen, TAG);
	outstanding(other, &seen_other, TAG + 1);
	MPI_Irecv(in + 8, 8, MPI_BYTE, check_previous(), TAG + 2, MPI_COMM_WORLD, &r[1]);
	r[0] = cr;
	r[2] = MPI_REQUEST_NULL;
	r[3] = other;
	CHECK_OK(MPI_Testall(4, r, &flag, statuses));
	CHECK(!flag);
	MPI_Barrier(MPI_COMM_WORLD);
	end_it(TAG);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPI_Testall(4, r, &flag, statuses));
	CHECK(!flag); /* the receive and the other CR are pending, whatever the first one says */
	CHECK(r[1] != MPI_REQUEST_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	end_it(TAG + 2);
	end_it(TAG + 1);
	memset(statuses, POISON, sizeof(statuses));
	do
		CHECK_OK(MPI_Testall(4, r, &flag, statuses));
	while (!flag);
	CHECK_EQ(seen_other.runs, 1);
	CHECK(r[0] == cr && r[1] == MPI_REQUEST_NULL && r[2] == MPI_REQUEST_NULL && r[3] == other);
	CHECK(status_is_empty(&statuses[0]) && status_is_empty(&statuses[2]) && status_is_empty(&statuses[3]));
	CHECK_EQ(statuses[1].MPI_SOURCE, check_previous());
	CHECK_EQ(statuses[1].MPI_TAG, TAG + 2);

	check_begin("Waitall beside others");
	for (int ignore = 0; ignore < 2; ignore++) {
		outstanding(cr, &seen, TAG);
		outstanding(other, &seen_other, TAG + 1);
		MPI_Irecv(in + 8, 8, MPI_BYTE, check_previous(), TAG + 2, MPI_COMM_WORLD, &r[1]);
		MPI_Isend(out, 8, MPI_BYTE, check_next(), TAG + 2, MPI_COMM_WORLD, &r[2]);
		end_it(TAG + 1);
		end_it(TAG);
		CHECK_OK(MPI_Waitall(4, r, ignore ? MPI_STATUSES_IGNORE : statuses));
		CHECK(r[0] == cr && r[1] == MPI_REQUEST_NULL && r[2] == MPI_REQUEST_NULL && r[3] == other);
		CHECK_EQ(seen.runs, 2 + ignore);
		CHECK_EQ(seen_other.runs, 2 + ignore);
		CHECK(ignore || statuses[1].MPI_TAG == TAG + 2);
	}

	check_begin("Waitany beside others");
	MPI_Barrier(MPI_COMM_WORLD);
	outstanding(cr, &seen, TAG);
	MPI_Irecv(in + 8, 8, MPI_BYTE, check_previous(), TAG + 2, MPI_COMM_WORLD, &r[1]);
	r[0] = cr;
	r[2] = MPI_REQUEST_NULL;
	r[3] = other; /* complete, and reported before */
	CHECK_OK(MPI_Testany(4, r, &index, &flag, &statuses[0]));
	CHECK(!flag);
	MPI_Barrier(MPI_COMM_WORLD);
	end_it(TAG + 2);
	CHECK_OK(MPI_Waitany(4, r, &index, &statuses[0]));
	CHECK_EQ(index, 1);
	CHECK_EQ(statuses[0].MPI_TAG, TAG + 2);
	CHECK(r[1] == MPI_REQUEST_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	end_it(TAG);
	CHECK_OK(MPI_Waitany(4, r, &index, &statuses[0]));
	CHECK_EQ(index, 0);
	CHECK(status_is_empty(&statuses[0]));
	CHECK(r[0] == cr);
	CHECK_OK(MPI_Waitany(4, r, &index, &statuses[0]));
	CHECK_EQ(index, MPI_UNDEFINED);
	CHECK_EQ(seen.runs, 4);

	check_begin("Waitsome beside others");
	for (int wait = 0; wait < 2; wait++) {
		MPI_Barrier(MPI_COMM_WORLD);
		outstanding(cr, &seen, TAG);
		outstanding(other, &seen_other, TAG + 1);
		MPI_Irecv(in + 8, 8, MPI_BYTE, check_previous(), TAG + 2, MPI_COMM_WORLD, &r[1]);
		CHECK_OK(MPI_Testsome(4, r, &count, indices, statuses));
		CHECK_EQ(count, 0);
		MPI_Barrier(MPI_COMM_WORLD);
		end_it(TAG);
		end_it(TAG + 1);
		end_it(TAG + 2);
		for (reported = 0; reported != 0xb;) {
			if (wait)
				CHECK_OK(MPI_Waitsome(4, r, &count, indices, statuses));
			else
				CHECK_OK(MPI_Testsome(4, r, &count, indices, statuses));
			if (wait)
				CHECK(count > 0);
			if (count == MPI_UNDEFINED)
				break;
			for (int i = 0; i < count; i++) {
				CHECK(!(reported & 1 << indices[i]));
				reported |= 1 << indices[i];
				if (indices[i] == 1)
					CHECK_EQ(statuses[i].MPI_TAG, TAG + 2);
				else
					CHECK(status_is_empty(&statuses[i]));
			}
		}
		CHECK_EQ(reported, 0xb);
		CHECK(r[0] == cr && r[1] == MPI_REQUEST_NULL && r[3] == other);
		CHECK_EQ(seen.runs, 5 + wait);
		CHECK_EQ(seen_other.runs, 4 + wait);
	}
}

/* Many of everything in one call. */
static void check_many(void)
{
	enum { CRS = 7, EACH = 9, OTHERS = 40 };
	struct seen seen[CRS] = {{0}};
	MPI_Request r[CRS + OTHERS], cr[CRS];
	char buffer[CRS * EACH + OTHERS];

	check_begin("Waitall on many");
	for (int i = 0; i < CRS; i++) {
		cr[i] = i % 2 ? check_plain_cr() : check_cr("mpi_continue_poll_only", "true", NULL, NULL);
		for (int k = 0; k < EACH; k++) {
			MPI_Irecv(&buffer[i * EACH + k], 1, MPI_BYTE, check_previous(), TAG + 1000 + i * EACH + k,
				  MPI_COMM_WORLD, &r[0]);
			CHECK_OK(MPI_Continue(&r[0], see, &seen[i], MPI_STATUS_IGNORE, cr[i]));
		}
	}
	for (int i = 0, c = 0, o = 0; i < CRS + OTHERS; i++) {
		if (i % 6 == 0 && c < CRS) {
			r[i] = cr[c++];
			continue;
		}
		MPI_Irecv(&buffer[CRS * EACH + o], 1, MPI_BYTE, check_previous(), TAG + 2000 + o, MPI_COMM_WORLD,
			  &r[i]);
		o++;
	}
	for (int i = 0; i < CRS * EACH; i++)
		MPI_Send(out, 1, MPI_BYTE, check_next(), TAG + 1000 + i, MPI_COMM_WORLD);
	for (int i = 0; i < OTHERS; i++)
		MPI_Send(out, 1, MPI_BYTE, check_next(), TAG + 2000 + i, MPI_COMM_WORLD);
	CHECK_OK(MPI_Waitall(CRS + OTHERS, r, MPI_STATUSES_IGNORE));
	for (int i = 0; i < CRS; i++) {
		CHECK_EQ(seen[i].runs, EACH);
		CHECK(r[i * 6] == cr[i]);
		CHECK_OK(MPI_Request_free(&cr[i]));
	}
}

/* ------------------------------------------------------------------------------------------------------ freeing --- */

static void check_free(void)
{
	struct seen seen = {0};
	MPI_Fint index;

	check_begin("Request_free with continuations outstanding");
	for (int round = 0; round < 3; round++) {
		MPI_Request cr = check_plain_cr(), same = cr;

		index = MPI_Request_c2f(cr);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < 5; i++)
			outstanding(cr, &seen, TAG + i);
		CHECK_OK(MPI_Request_free(&cr));
		CHECK(cr == MPI_REQUEST_NULL);
#ifdef OPEN_MPI /* MPICH's Fortran handles are the handles themselves */
		CHECK(MPI_Request_f2c(index) != same);
#else
		(void)same, (void)index;
#endif
		CHECK_EQ(seen.runs, 5 * round);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < 5; i++)
			end_it(TAG + i);
		while (seen.runs < 5 * (round + 1)) {
			int flag;

			MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		}
	}
	check_begin("many CRs made and freed");
	for (int round = 0; round < 5000; round++) {
		MPI_Request cr = check_plain_cr(), none = MPI_REQUEST_NULL;

		CHECK_OK(MPI_Continue(&none, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Request_free(&cr));
	}
	CHECK_EQ(seen.runs, 5015);
}

/* A callback that frees its own CR's handle. */
static void free_own(MPI_Status *status, void *data)
{
	(void)status;
	CHECK_OK(MPI_Request_free(data));
	CHECK(*(MPI_Request *)data == MPI_REQUEST_NULL);
}

static void check_free_inside(void)
{
	check_begin("a continuation frees its CR");
	for (int inside = 0; inside < 2; inside++) {
		MPI_Request cr = check_plain_cr(), r = MPI_REQUEST_NULL;

		MPI_Barrier(MPI_COMM_WORLD);
		if (!inside)
			MPI_Irecv(in, 8, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, free_own, &cr, MPI_STATUS_IGNORE, cr));
		if (!inside)
			end_it(TAG);
		while (cr != MPI_REQUEST_NULL) {
			int flag;

			MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		}
	}
}

/* ------------------------------------------------------------------------------------------------------- chains --- */

static void check_chained(void)
{
	MPI_Request first = check_plain_cr(), second = check_plain_cr(), third = check_plain_cr();
	MPI_Request handle, r[3];
	struct seen on_first = {0}, on_second = {0}, on_third = {0};
	MPI_Status status[3];
	int flag;

	check_begin("a CR given to MPI_Continue");
	MPI_Barrier(MPI_COMM_WORLD);
	outstanding(first, &on_first, TAG);
	outstanding(first, &on_first, TAG + 1);
	handle = first;
	status_poison(&status[0]);
	CHECK_OK(MPI_Continue(&handle, see, &on_second, &status[0], second));
	CHECK(handle == first); /* completion never frees it */
	handle = second;
	CHECK_OK(MPI_Continue(&handle, see, &on_third, MPI_STATUS_IGNORE, third));

	check_begin("a cycle of CRs");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	handle = third;
	CHECK_EQ(MPI_Continue(&handle, see, &on_first, MPI_STATUS_IGNORE, first), MPI_ERR_REQUEST);
	CHECK(handle == third);
	handle = first;
	CHECK_EQ(MPI_Continue(&handle, see, &on_first, MPI_STATUS_IGNORE, first), MPI_ERR_REQUEST);
	CHECK(handle == first);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &handle)); /* one that is complete would wait for itself as well */
	CHECK_EQ(MPI_Continue(&handle, see, &on_first, MPI_STATUS_IGNORE, handle), MPI_ERR_REQUEST);
	CHECK_OK(MPI_Request_free(&handle));
	r[0] = MPI_REQUEST_NULL;
	MPI_Irecv(in + 16, 8, MPI_BYTE, check_previous(), TAG + 2, MPI_COMM_WORLD, &r[1]);
	r[2] = third;
	handle = r[1];
	CHECK_EQ(MPI_Continueall(3, r, see, &on_first, status, first), MPI_ERR_REQUEST);
	CHECK(r[1] == handle && r[2] == third);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);

	check_begin("the chain ends");
	MPI_Barrier(MPI_COMM_WORLD);
	end_it(TAG + 2);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE); /* ordinary as before the refusal */
	end_it(TAG);
	CHECK_OK(MPI_Test(&third, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(on_second.runs, 0);
	CHECK_EQ(on_third.runs, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	end_it(TAG + 1);
	CHECK_OK(MPI_Wait(&third, MPI_STATUS_IGNORE));
	CHECK_EQ(on_first.runs, 2);
	CHECK_EQ(on_second.runs, 1);
	CHECK_EQ(on_third.runs, 1);
	CHECK(on_second.status == &status[0]);
	CHECK(status_is_empty(&status[0]));
	CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);

	check_begin("a CR that is complete, given to MPI_Continue");
	handle = first;
	CHECK_OK(MPI_Continue(&handle, see, &on_second, &status[0], second));
	CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
	CHECK_EQ(on_second.runs, 2);

	check_begin("CRs among others in Continueall");
	for (int order = 0; order < 2; order++) {
		MPI_Barrier(MPI_COMM_WORLD);
		outstanding(first, &on_first, TAG);
		outstanding(second, &on_second, TAG + 1);
		r[0] = first;
		MPI_Irecv(in + 16, 8, MPI_BYTE, check_previous(), TAG + 2, MPI_COMM_WORLD, &r[1]);
		r[2] = second;
		memset(status, POISON, sizeof(status));
		CHECK_OK(MPI_Continueall(3, r, see, &on_third, status, third));
		CHECK(r[0] == first && r[1] == MPI_REQUEST_NULL && r[2] == second);
		MPI_Barrier(MPI_COMM_WORLD);
		end_it(order ? TAG : TAG + 2);
		end_it(TAG + 1);
		CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Test(&third, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
		CHECK_EQ(on_third.runs, 1 + order);
		MPI_Barrier(MPI_COMM_WORLD);
		end_it(order ? TAG + 2 : TAG);
		CHECK_OK(MPI_Wait(&third, MPI_STATUS_IGNORE));
		CHECK_EQ(on_third.runs, 2 + order);
		CHECK(status_is_empty(&status[0]) && status_is_empty(&status[2]));
		CHECK_EQ(status[1].MPI_TAG, TAG + 2);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
	}
	MPI_Request_free(&first);
	MPI_Request_free(&second);
	MPI_Request_free(&third);
}

/* --------------------------------------------------------------------------------- inside its own continuations --- */

static struct {
	MPI_Request cr, other;
	int errors_self, errors_world, last;
	struct seen seen;
	int runs;
} inside;

static void on_self(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	inside.errors_self++;
	inside.last = *error;
}

static void on_world(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	inside.errors_world++;
	inside.last = *error;
}

static void use_own(MPI_Status *status, void *data)
{
	MPI_Request r[2] = {MPI_REQUEST_NULL, inside.cr}, cr = inside.cr;
	int flag = 1, index = 5, count = 5, indices[2], errors = inside.errors_self, rc;

	(void)status, (void)data;
	inside.runs++;
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK(cr == inside.cr);
	flag = 1;
	CHECK_OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
	CHECK(!flag);
	flag = 1;
	CHECK_OK(MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(count, 0);

	rc = MPI_Wait(&cr, MPI_STATUS_IGNORE);
	CHECK_EQ(rc, MPI_ERR_REQUEST);
	CHECK_EQ(inside.errors_self, errors + 1);
	CHECK_EQ(inside.last, MPI_ERR_REQUEST);
	CHECK(cr == inside.cr);
	rc = MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	CHECK_EQ(rc, MPI_ERR_IN_STATUS);
	CHECK_EQ(inside.errors_self, errors + 2);
	CHECK(r[0] == MPI_REQUEST_NULL && r[1] == inside.cr);
	rc = MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
	CHECK(rc != MPI_SUCCESS);
	rc = MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
	CHECK(rc != MPI_SUCCESS);
	CHECK_EQ(inside.errors_self, errors + 4);
	CHECK(r[0] == MPI_REQUEST_NULL && r[1] == inside.cr);
	CHECK_EQ(inside.errors_world, 0);

	/* Another CR can be waited for, also one whose continuations run nowhere else. */
	{
		MPI_Request some = MPI_REQUEST_NULL;
		int before = inside.seen.runs;

		CHECK_OK(MPI_Continue(&some, see, &inside.seen, MPI_STATUS_IGNORE, inside.other));
		CHECK_EQ(inside.seen.runs, before);
		MPI_Isend(out, 8, MPI_BYTE, check_rank, TAG + 50, MPI_COMM_WORLD, &some);
		CHECK_OK(MPI_Continue(&some, see, &inside.seen, MPI_STATUS_IGNORE, inside.other));
		MPI_Irecv(in, 8, MPI_BYTE, check_rank, TAG + 50, MPI_COMM_WORLD, &some);
		CHECK_OK(MPI_Continue(&some, see, &inside.seen, MPI_STATUS_IGNORE, inside.other));
		CHECK_OK(MPI_Wait(&inside.other, MPI_STATUS_IGNORE));
		CHECK_EQ(inside.seen.runs, before + 3);
		some = MPI_REQUEST_NULL;
		CHECK_OK(MPI_Continue(&some, see, &inside.seen, MPI_STATUS_IGNORE, inside.other));
		do
			CHECK_OK(MPI_Test(&inside.other, &flag, MPI_STATUS_IGNORE));
		while (!flag);
		CHECK_EQ(inside.seen.runs, before + 4);
	}
}

static void check_inside(void)
{
	static const char *const keys[3][2] = {
		{NULL, NULL}, {"mpi_continue_poll_only", "true"}, {"mpi_continue_enqueue_complete", "true"}};
	static const char *const other_keys[2][2] = {{"mpi_continue_poll_only", "true"},
						     {"mpi_continue_enqueue_complete", "true"}};
	MPI_Errhandler self, world;

	check_begin("inside its own continuation");
	MPI_Comm_create_errhandler(on_self, &self);
	MPI_Comm_create_errhandler(on_world, &world);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 2; k++) {
			MPI_Request r = MPI_REQUEST_NULL;

			inside.cr = check_cr(keys[i][0], keys[i][1], NULL, NULL);
			inside.other = check_cr(other_keys[k][0], other_keys[k][1], NULL, NULL);
			inside.runs = 0;
			/* Run while attaching, where that may be; and later. */
			CHECK_OK(MPI_Continue(&r, use_own, NULL, MPI_STATUS_IGNORE, inside.cr));
			CHECK_OK(MPI_Wait(&inside.cr, MPI_STATUS_IGNORE));
			CHECK_EQ(inside.runs, 1);
			MPI_Irecv(in, 8, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r);
			CHECK_OK(MPI_Continue(&r, use_own, NULL, MPI_STATUS_IGNORE, inside.cr));
			end_it(TAG);
			CHECK_OK(MPI_Wait(&inside.cr, MPI_STATUS_IGNORE));
			CHECK_EQ(inside.runs, 2);
			CHECK_OK(MPI_Request_free(&inside.cr));
			CHECK_OK(MPI_Request_free(&inside.other));
		}
	}
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&self);
	MPI_Errhandler_free(&world);
}

/* ----------------------------------------------------------------------------- registering more with its own CR --- */

struct more {
	MPI_Request cr;
	int left, runs;
	bool pending; /* what is registered is not complete yet */
	char byte;
};

static void register_more(MPI_Status *status, void *data)
{
	struct more *m = data;
	MPI_Request r = MPI_REQUEST_NULL;

	(void)status;
	m->runs++;
	if (m->left-- == 0)
		return;
	if (m->pending) {
		MPI_Irecv(&m->byte, 1, MPI_BYTE, check_rank, TAG + 60, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, register_more, m, MPI_STATUS_IGNORE, m->cr));
		MPI_Send(out, 1, MPI_BYTE, check_rank, TAG + 60, MPI_COMM_WORLD);
	} else {
		CHECK_OK(MPI_Continue(&r, register_more, m, MPI_STATUS_IGNORE, m->cr));
	}
}

static void check_more(void)
{
	static const char *const keys[3][2] = {
		{NULL, NULL}, {"mpi_continue_poll_only", "true"}, {"mpi_continue_enqueue_complete", "true"}};

	check_begin("a callback registers more while its CR is waited for");
	for (int i = 0; i < 3; i++) {
		for (int pending = 0; pending < 2; pending++) {
			struct more m = {.left = 100, .pending = pending};
			MPI_Request r;

			m.cr = check_cr(keys[i][0], keys[i][1], NULL, NULL);
			MPI_Irecv(in, 8, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r);
			CHECK_OK(MPI_Continue(&r, register_more, &m, MPI_STATUS_IGNORE, m.cr));
			end_it(TAG);
			CHECK_OK(MPI_Wait(&m.cr, MPI_STATUS_IGNORE));
			CHECK_EQ(m.runs, 101);
			m.left = 100;
			m.runs = 0;
			MPI_Irecv(in, 8, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r);
			CHECK_OK(MPI_Continue(&r, register_more, &m, MPI_STATUS_IGNORE, m.cr));
			end_it(TAG);
			{
				MPI_Request two[2] = {m.cr, MPI_REQUEST_NULL};

				MPI_Irecv(in + 8, 8, MPI_BYTE, check_previous(), TAG + 1, MPI_COMM_WORLD, &two[1]);
				end_it(TAG + 1);
				CHECK_OK(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));
			}
			CHECK_EQ(m.runs, 101);
			CHECK_OK(MPI_Request_free(&m.cr));
		}
	}
}

/* What contd_dump() says that this thread is at. */
static void dump_at(MPI_Status *statuses, void *data)
{
	bool *says = data;
	static char text[1 << 16];
	FILE *file = tmpfile();
	size_t n;

	(void)statuses;
	CHECK(file != NULL);
	CHECK_EQ(contd_dump(fileno(file)), 0);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	says[0] = strstr(text, "tests group ") != NULL;
	says[1] = strstr(text, "waits for group ") != NULL;
}

/* In a test of a CR, whatever its max_poll, a dump says so, and not that it is a wait. */
static void check_dump(void)
{
	static const char *const keys[2] = {NULL, "mpi_continue_max_poll"};

	check_begin("what a dump says of a test and of a wait");
	for (int i = 0; i < 2; i++)
		for (int waits = 0; waits < 2; waits++) {
			MPI_Request cr = check_cr("mpi_continue_enqueue_complete", "true", keys[i], "1"),
				    r = MPI_REQUEST_NULL;
			bool says[2] = {false, false};
			int flag = 0;

			CHECK_OK(MPI_Continue(&r, dump_at, says, MPI_STATUS_IGNORE, cr));
			if (waits)
				CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			while (!waits && !flag)
				CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK_EQ(says[0], !waits);
			CHECK_EQ(says[1], waits);
			CHECK_OK(MPI_Request_free(&cr));
		}
}

int main(int argc, char **argv)
{
	MPI_Request cr[3];

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	cr[0] = check_plain_cr();
	cr[1] = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	cr[2] = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	for (int i = 0; i < 3; i++) {
		check_fresh(cr[i]);
		if (i < 2)
			check_alone(cr[i]); /* Request_get_status is no Test: it runs nothing that is poll-only */
		check_wait(cr[i]);
		check_beside(cr[i], cr[(i + 1) % 3]);
		check_fresh(cr[i]);
	}
	check_many();
	check_free();
	check_free_inside();
	check_chained();
	check_inside();
	check_more();
	check_dump();
	for (int i = 0; i < 3; i++)
		CHECK_OK(MPI_Request_free(&cr[i]));
	return check_fini();
}
