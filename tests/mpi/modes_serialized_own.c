/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/*
 * With MPI_THREAD_SERIALIZED a thread that is not the main thread waits for its operation: it is the one that calls
 * MPI, and no other thread makes progress.
 */
#include <unistd.h>

#include "modes.h"

static void *exchanges(void *data)
{
	struct contd_mode_attr how = {.size = sizeof(how)};
	struct exchange x;
	int tag = 0;

	for (how.mode = CONTD_MODE_YIELD_WHILE; how.mode <= CONTD_MODE_SUSPEND; how.mode++)
		for (int messages = 1; messages <= EACH; messages++, tag += EACH) {
			check_begin(mode_name[how.mode]);
			exchange_prepare(&x, tag, messages, messages == 2);
			if ((messages + check_rank) % 2)
				usleep(20000); /* the other one has issued, and waits */
			CHECK_OK(contd_mpi_op_run(&x.op, &how));
			exchange_check(&x);
		}
	return data;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_init(&argc, &argv, MPI_THREAD_SERIALIZED);
	CHECK_EQ(pthread_create(&thread, NULL, exchanges, NULL), 0);
	pthread_join(thread, NULL);
	return check_fini();
}
