/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* Info keys in every combination beside a daemon: which thread runs what while the main thread computes. */
#include "keys.h"

#define READY 4

static MPI_Request plain;

static void check(const struct keys *k)
{
	bool daemon = k->any && !k->poll_only;
	MPI_Request cr = keys_cr(k);
	double begin;

	if (cr == MPI_REQUEST_NULL)
		return;
	/* Nothing interrupts the main thread in the calls. */
	keys_signals(SIG_BLOCK);
	keys_attach(k, cr);
	CHECK(atomic_load(&keys_here) <= keys_inside(k));
	if (!daemon)
		CHECK_EQ(keys_all, keys_inside(k));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(keys_all, 1);
	if (!daemon)
		CHECK_EQ(atomic_load(&keys_elsewhere), 0);
	atomic_store(&keys_here, 0);
	atomic_store(&keys_elsewhere, 0);
	if (k->revised)
		CHECK_OK(MPI_Start(&cr));
	/* The daemon, interruptions, or no thread until the wait. */
	keys_ready(k, cr, READY, plain);
	keys_signals(SIG_UNBLOCK);
	begin = keys_seconds();
	while (keys_seconds() - begin < (daemon || keys_interrupts(k) ? 20 : 0.002) && keys_all < READY)
		sched_yield();
	keys_signals(SIG_BLOCK);
	CHECK_EQ(keys_all, daemon || keys_interrupts(k) ? READY : 0);
	if (!daemon)
		CHECK_EQ(atomic_load(&keys_elsewhere), 0);
	if (!keys_interrupts(k))
		CHECK_EQ(atomic_load(&keys_here), 0);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(keys_all, READY);
	keys_signals(SIG_UNBLOCK);
	CHECK_OK(MPI_Request_free(&cr));
	atomic_store(&keys_here, 0);
	atomic_store(&keys_elsewhere, 0);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	keys_main = pthread_self();
	plain = check_cr("contd_agent", "tick", NULL, NULL);
	keys_each(check);
	CHECK_OK(MPI_Request_free(&plain));
	return check_fini();
}
