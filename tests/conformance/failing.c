/* SPDX-License-Identifier: BSD-3-Clause */
#include "failing.h"

#define LONG (1 << 20)

/* Open MPI 4.1 writes a long message to its whole length where it comes by TCP: for each way so much room. */
static char out[LONG], in[truncations][LONG];

static void send_it(struct truncated *t)
{
	CHECK_OK(MPI_Isend(out, t->how & 1 ? LONG : 32, MPI_BYTE, next_rank(), t->tag, world, &t->send));
}

void truncated_begin(struct truncated *t, int how, int tag)
{
	t->how = how;
	t->tag = tag;
	t->send = MPI_REQUEST_NULL;
	if (how & 2) {
		int there = 0;

		send_it(t);
		while (!there) /* the message, or what announces it */
			CHECK_OK(MPI_Iprobe(previous_rank(), tag, world, &there, MPI_STATUS_IGNORE));
	}
	/* Where it came first, MPI may find the error, and tell of it, in this call already. */
	MPI_Irecv(in[how], 8, MPI_BYTE, previous_rank(), tag, world, &t->receive);
}

void truncated_send(struct truncated *t)
{
	if (!(t->how & 2))
		send_it(t);
}

void truncated_end(struct truncated *t)
{
	MPI_Wait(&t->send, MPI_STATUS_IGNORE);
}
