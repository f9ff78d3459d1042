/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/*
 * With MPI_THREAD_SERIALIZED, another thread than the main one is the first that calls contd; and then only the main
 * one calls: it makes progress, by contd_poll() and where it sleeps.
 */
#include "modes.h"

#define INTS 100000

static void *first(void *data)
{
	MPI_Request cr;

	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Request_free(&cr));
	return data;
}

int main(int argc, char **argv)
{
	static int out[INTS], in[INTS];
	pthread_t thread;

	check_init(&argc, &argv, MPI_THREAD_SERIALIZED);
	check_unbind();
	check_begin("another thread was first");
	pthread_create(&thread, NULL, first, NULL);
	pthread_join(thread, NULL);
	for (int mode = 0; mode < MODES; mode++) {
		struct contd_mode_attr how = {.size = sizeof(how),
					      .mode = mode,
					      .flags = mode == CONTD_MODE_MPIX ? MPIX_CONT_INVOKE_FAILED : 0};
		MPI_Request send, receive;
		struct exchange x;

		if (mode == CONTD_MODE_NEW_TASK)
			continue;
		check_begin(mode_name[mode]);
		exchange_prepare(&x, 0, 0, true);
		for (int i = 0; i < INTS; i++)
			out[i] = mode + i, in[i] = -1;
		MPI_Isend(out, INTS, MPI_INT, check_next(), 0, MPI_COMM_WORLD, &send);
		MPI_Irecv(in, INTS, MPI_INT, check_next(), 0, MPI_COMM_WORLD, &receive);
		x.op.count = 1;
		x.op.requests = &receive;
		x.op.issue = NULL;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		exchange_await(&x);
		CHECK_EQ(atomic_load(&x.done), 1);
		CHECK(memcmp(in, out, sizeof(in)) == 0);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
	return check_fini();
}
