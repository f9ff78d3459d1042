/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi_part.h"

#include <stdlib.h>
#include <string.h>

long part_sum(MPI_Comm comm, long mine)
{
	long sum = -1;

	PMPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
	return sum;
}

/* The sum goes round, by blocking calls. */
long part_ring(MPI_Comm comm, long mine)
{
	long sum = 0;
	int me, n;

	PMPI_Comm_rank(comm, &me);
	PMPI_Comm_size(comm, &n);
	if (me > 0)
		PMPI_Recv(&sum, 1, MPI_LONG, me - 1, 1, comm, MPI_STATUS_IGNORE);
	sum += mine;
	PMPI_Send(&sum, 1, MPI_LONG, (me + 1) % n, 1, comm);
	if (me == 0)
		PMPI_Recv(&sum, 1, MPI_LONG, n - 1, 1, comm, MPI_STATUS_IGNORE);
	PMPI_Bcast(&sum, 1, MPI_LONG, 0, comm);
	return sum;
}

long part_nonblocking(MPI_Comm comm, long mine, int bytes)
{
	int me, n, done = 0, got = 0;
	char *in = malloc((size_t)bytes), *out = malloc((size_t)bytes);
	MPI_Request r[2];
	MPI_Status status;
	long good = 1;

	PMPI_Comm_rank(comm, &me);
	PMPI_Comm_size(comm, &n);
	memset(out, (int)(mine % 100), (size_t)bytes);
	memset(in, 101, (size_t)bytes);
	PMPI_Irecv(in, bytes, MPI_CHAR, (me + n - 1) % n, 2, comm, &r[0]);
	PMPI_Isend(out, bytes, MPI_CHAR, (me + 1) % n, 2, comm, &r[1]);
	while (!done)
		PMPI_Test(&r[0], &done, &status);
	PMPI_Get_count(&status, MPI_CHAR, &got);
	PMPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	for (int i = 1; i < bytes; i++)
		good = good && in[i] == in[0];
	good = good && got == bytes && status.MPI_SOURCE == (me + n - 1) % n && status.MPI_TAG == 2;
	good = good ? in[0] : -1;
	free(in);
	free(out);
	return good;
}
