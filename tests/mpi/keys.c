/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* Info keys in every combination where no daemon runs: each call runs exactly what the rules allow. */
#include <stdlib.h>

#include "keys.h"

#define READY 10

static MPI_Request plain, other;

/* The calls that ask whether a CR is complete. */
static int ask(int how, MPI_Request *cr)
{
	MPI_Request r[2] = {MPI_REQUEST_NULL, *cr};
	int flag = 0, index, count, indices[2];

	switch (how) {
	case 0:
		CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
		break;
	case 1:
		CHECK_OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
		break;
	case 2:
		CHECK_OK(MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE));
		break;
	case 3:
		CHECK_OK(MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		flag = count != 0;
		break;
	case 4:
		CHECK_OK(MPI_Request_get_status(*cr, &flag, MPI_STATUS_IGNORE));
		break;
	case 5:
		CHECK_OK(MPIX_Request_get_status_all(2, r, &flag, MPI_STATUSES_IGNORE));
		break;
	case 6:
		CHECK_OK(MPIX_Request_get_status_any(2, r, &index, &flag, MPI_STATUS_IGNORE));
		break;
	default:
		CHECK_OK(MPIX_Request_get_status_some(2, r, &count, indices, MPI_STATUSES_IGNORE));
		flag = count != 0 && count != MPI_UNDEFINED;
	}
	return flag;
}
#define TESTS 4
#define ASKS 8

static void rest(const struct keys *k, MPI_Request *cr, int all)
{
	CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
	CHECK_EQ(keys_all, all);
	CHECK_EQ(atomic_load(&keys_elsewhere), 0);
	atomic_store(&keys_here, 0);
	if (k->revised)
		CHECK_OK(MPI_Start(cr));
}

/* Inside the call that attaches run all continuations that may, and no others, whichever thread is interrupted. */
static void check_attach(const struct keys *k, MPI_Request *cr)
{
	for (int i = 1; i <= 3; i++) {
		keys_attach(k, *cr);
		CHECK_EQ(keys_all, keys_inside(k) ? i : 0);
	}
	rest(k, cr, 3);
}

/* The bound holds for each way of asking; what a poll-only CR has runs in tests alone. */
static void check_asks(const struct keys *k, MPI_Request *cr)
{
	for (int how = 0; how < ASKS; how++) {
		int left = READY;

		contd_guard_begin();
		keys_ready(k, *cr, READY, plain);
		CHECK_EQ(keys_all, 0);
		for (int i = 0; i < 3; i++) {
			int flag = left ? ask(how, cr) : 1;

			left -= how >= TESTS && k->poll_only ? 0 : keys_bound(k, left);
			if (how >= TESTS && !k->poll_only) { /* it may run fewer, but some */
				CHECK(READY - keys_all >= left);
				CHECK(READY - keys_all < READY || k->max_poll == 0);
				left = READY - keys_all;
			}
			CHECK_EQ(READY - keys_all, left);
			if (how == TESTS) /* a query may run the last one and tell of it the next time */
				CHECK(left == 0 ? flag || ask(how, cr) : !flag);
			else
				CHECK_EQ(flag, left == 0);
			if (left == 0 && k->revised && how < TESTS && i == 0)
				CHECK_OK(MPI_Start(cr)); /* the test has reported it */
		}
		contd_guard_end();
		rest(k, cr, READY);
	}
}

/* The end of a guard is an interruption. */
static void check_guard(const struct keys *k, MPI_Request *cr)
{
	contd_guard_begin();
	keys_ready(k, *cr, READY, plain);
	CHECK_EQ(keys_all, 0);
	contd_guard_end();
	CHECK_EQ(keys_all, keys_interrupts(k) ? keys_bound(k, READY) : 0);
	rest(k, cr, READY);
}

/* Calls about other things, each look of which is bounded. */
static void check_others(const struct keys *k, MPI_Request *cr)
{
	int bound = k->max_poll > 0 ? keys_bound(k, READY) : READY, flag;

	contd_guard_begin();
	keys_ready(k, *cr, READY, plain);
	contd_poll(0);
	CHECK_EQ(keys_all, k->poll_only ? 0 : bound);
	MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Test(&other, &flag, MPI_STATUS_IGNORE));
	CHECK(k->poll_only ? keys_all == 0 : keys_all >= keys_bound(k, READY));
	contd_guard_end();
	rest(k, cr, READY);
}

/* The program computes, and calls nothing: interruptions do it all, or nothing runs. */
static void check_computing(const struct keys *k, MPI_Request *cr)
{
	double begin;

	keys_ready(k, *cr, READY, plain);
	keys_signals(SIG_UNBLOCK);
	begin = keys_seconds();
	while (keys_seconds() - begin < (keys_interrupts(k) ? 20 : 0.002) && keys_all < READY)
		;
	keys_signals(SIG_BLOCK);
	CHECK_EQ(keys_all, keys_interrupts(k) ? READY : 0);
	rest(k, cr, READY);
}

static void check(const struct keys *k)
{
	MPI_Request cr = keys_cr(k);

	if (cr == MPI_REQUEST_NULL)
		return;
	keys_signals(SIG_BLOCK);
	check_attach(k, &cr);
	check_asks(k, &cr);
	check_guard(k, &cr);
	check_others(k, &cr);
	if (k->flags == 0 || k->flags == MPIX_CONT_DEFER_COMPLETE)
		check_computing(k, &cr);
	keys_signals(SIG_UNBLOCK);
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	/* An interruption ends early when its time is over, which a busy machine may take away: the counts are for one
	 * that has it. */
	setenv("CONTD_SCAN_NS", "1000000000", 1);
	check_init(&argc, &argv, MPI_THREAD_FUNNELED); /* the key for handlers starts no daemon there */
	keys_main = pthread_self();
	plain = check_plain_cr();
	other = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	keys_each(check);
	CHECK_OK(MPI_Request_free(&plain));
	CHECK_OK(MPI_Request_free(&other));
	return check_fini();
}
