/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation for templates: an exchange of one int with both neighbours, in pieces if one likes. */
#ifndef CONTD_TESTS_MPI_TEMPLATE_H
#define CONTD_TESTS_MPI_TEMPLATE_H

#include "check.h"

struct exchange {
	MPI_Request request; /* of MPIX_Gr_begin */
	MPI_Request piece[2];
	int tag, in, out;
	int pieces, done; /* one after the other */
	atomic_int marked, completes, cancels, inside;
	atomic_int pushes, overlaps;
	bool null_status, never_ends;
	int (*in_complete)(struct exchange *e);
};

CHECK_HELPER int exchange_post(struct exchange *e)
{
	int rc;

	e->out = e->tag * 1000 + e->done * 10 + check_rank;
	e->in = -1;
	rc = MPI_Irecv(&e->in, 1, MPI_INT, check_previous(), e->tag, MPI_COMM_WORLD, &e->piece[0]);
	return rc ? rc : MPI_Isend(&e->out, 1, MPI_INT, check_next(), e->tag, MPI_COMM_WORLD, &e->piece[1]);
}

CHECK_HELPER int exchange_start(void *extra_state)
{
	struct exchange *e = extra_state;

	return e->pieces ? exchange_post(e) : MPI_SUCCESS;
}

CHECK_HELPER int exchange_push(void *extra_state)
{
	struct exchange *e = extra_state;
	int flag = 0, rc = MPI_SUCCESS;

	if (atomic_fetch_add(&e->inside, 1) || e->completes)
		atomic_fetch_add(&e->overlaps, 1);
	atomic_fetch_add(&e->pushes, 1);
	if (e->done < e->pieces) {
		rc = MPI_Testall(2, e->piece, &flag, MPI_STATUSES_IGNORE);
		if (flag) {
			CHECK_EQ(e->in, e->tag * 1000 + e->done * 10 + check_previous());
			if (++e->done < e->pieces)
				rc = exchange_post(e);
		}
	}
	if (e->done == e->pieces && !e->never_ends && !atomic_exchange(&e->marked, 1))
		CHECK_OK(MPIX_Mark_request_complete(e->request));
	atomic_fetch_sub(&e->inside, 1);
	return rc;
}

CHECK_HELPER int exchange_complete(void *extra_state, MPI_Status *status)
{
	struct exchange *e = extra_state;
	int rc = e->in_complete ? e->in_complete(e) : MPI_SUCCESS;

	if (e->inside)
		atomic_fetch_add(&e->overlaps, 1);
	e->null_status = !status;
	if (status)
		CHECK_OK(MPI_Status_set_elements(status, MPI_INT, e->done));
	atomic_fetch_add(&e->completes, 1);
	return rc;
}

CHECK_HELPER int exchange_cancel(void *extra_state, int complete)
{
	(void)complete;
	atomic_fetch_add(&((struct exchange *)extra_state)->cancels, 1);
	return MPI_SUCCESS;
}

CHECK_HELPER MPIX_Gr exchange_template(void)
{
	MPIX_Gr gr = MPIX_GR_NULL;

	CHECK_OK(MPIX_Gr_init(exchange_start, exchange_push, exchange_complete, exchange_cancel, &gr));
	return gr;
}

CHECK_HELPER void exchange_begin(MPIX_Gr gr, struct exchange *e)
{
	CHECK_OK(MPIX_Gr_begin(gr, e, &e->request));
}

CHECK_HELPER void exchange_over(struct exchange *e)
{
	CHECK_EQ(e->completes, 1);
	CHECK_EQ(e->overlaps, 0);
	CHECK_EQ(e->done, e->pieces);
}

CHECK_HELPER void exchange_wait(struct exchange *e)
{
	MPI_Status status;
	int count = -1;

	CHECK_OK(MPI_Wait(&e->request, &status));
	CHECK(e->request == MPI_REQUEST_NULL);
	CHECK_OK(MPI_Get_count(&status, MPI_INT, &count));
	CHECK_EQ(count, e->done);
	exchange_over(e);
}

#endif
