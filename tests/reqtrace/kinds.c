/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every other call that starts an operation or makes a persistent one, each completed by another call: matched
 * receives, collectives, neighbourhood ones and persistent ones of both, RMA, files, MPI_Comm_idup, generalized
 * requests; of MPI 4 exchanges, partitioned ones and large counts. Prints what account.c prints, and a sum of all that
 * was received. 2 ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(name) MPIX_##name
#endif

#define WORLD MPI_COMM_WORLD
#define N 4 /* of each peer */
#define KINDS 128

static int rank, ways, in[64], out[64], late[8]; /* late: what comes while other calls are completed */
static int no_testall;                           /* MPICH's releases operations on files twice */
static unsigned sum;
static struct kind {
	const char *name;
	int started, cancelled, freed;
} kinds[KINDS];

static struct kind *kind(const char *name)
{
	int i = 0;

	while (kinds[i].name && strcmp(kinds[i].name, name))
		i++;
	if (i == KINDS - 1)
		MPI_Abort(WORLD, 1);
	kinds[i].name = name;
	return &kinds[i];
}

/* One request, by each call in turn. */
static void finish(MPI_Request *r)
{
	int flag = 0, index, n = 0;

	if (ways % 8 == 3 && no_testall)
		ways++;
	switch (ways++ % 8) {
	case 0:
		MPI_Wait(r, MPI_STATUS_IGNORE);
		break;
	case 1:
		while (!flag)
			MPI_Test(r, &flag, MPI_STATUS_IGNORE);
		break;
	case 2:
		MPI_Waitall(1, r, MPI_STATUSES_IGNORE);
		break;
	case 3:
		while (!flag)
			MPI_Testall(1, r, &flag, MPI_STATUSES_IGNORE);
		break;
	case 4:
		MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE);
		break;
	case 5:
		while (!flag)
			MPI_Testany(1, r, &index, &flag, MPI_STATUS_IGNORE);
		break;
	case 6:
		MPI_Waitsome(1, r, &n, &index, MPI_STATUSES_IGNORE);
		break;
	default:
		while (!n)
			MPI_Testsome(1, r, &n, &index, MPI_STATUSES_IGNORE);
	}
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		sum = sum * 31 + (unsigned)in[i];
	memset(in, 0, sizeof(in));
}

/* STARTED(name, arguments without the request) */
#define STARTED(name, ...) STARTED_AS(#name, MPI_##name, __VA_ARGS__)
#define STARTED_AS(text, function, ...) \
	do { \
		MPI_Request r_; \
\
		function(__VA_ARGS__, &r_); \
		kind(text)->started++; \
		finish(&r_); \
	} while (0)
#define MADE(name, ...) MADE_AS(#name, PERSISTENT(name), __VA_ARGS__, MPI_INFO_NULL)
#define MADE_AS(text, function, ...) \
	do { \
		MPI_Request r_; \
\
		function(__VA_ARGS__, &r_); \
		MPI_Start(&r_); \
		kind(text)->started++; \
		finish(&r_); \
		MPI_Request_free(&r_); \
	} while (0)

static void messages(void)
{
	MPI_Message message;
	MPI_Request r, sends[6];

	for (int i = 0; i < 3; i++)
		MPI_Isend(out, i, MPI_INT, !rank, i, WORLD, &sends[i]);
	for (int i = 0; i < 3; i++) {
		MPI_Mprobe(i == 2 ? MPI_ANY_SOURCE : !rank, i, WORLD, &message, MPI_STATUS_IGNORE);
		STARTED(Imrecv, in, i, MPI_INT, &message);
	}
	MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
	kind("Isend")->started += 3;

	/* The modes, started once and persistent. */
	for (int i = 0; i < 6; i++)
		MPI_Irecv(late + i, 1, MPI_INT, !rank, i, WORLD, &sends[i]);
	kind("Irecv")->started += 6;
	MPI_Barrier(WORLD);
	STARTED(Issend, out, 1, MPI_INT, !rank, 0, WORLD);
	STARTED(Irsend, out + 1, 1, MPI_INT, !rank, 1, WORLD);
	STARTED(Ibsend, out + 2, 1, MPI_INT, !rank, 2, WORLD);
	MADE_AS("Ssend_init", MPI_Ssend_init, out + 3, 1, MPI_INT, !rank, 3, WORLD);
	MADE_AS("Rsend_init", MPI_Rsend_init, out + 4, 1, MPI_INT, !rank, 4, WORLD);
	MADE_AS("Bsend_init", MPI_Bsend_init, out + 5, 1, MPI_INT, !rank, 5, WORLD);
	MPI_Waitall(6, sends, MPI_STATUSES_IGNORE);
	memcpy(in, late, sizeof(late));

	/* With no peer; and persistent, freed when it is active: its end is not seen. */
	STARTED(Irecv, in, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
	STARTED(Isend, out, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
	MPI_Send_init(out, 1, MPI_INT, !rank, 9, WORLD, &r);
	MPI_Start(&r);
	MPI_Request_free(&r);
	kind("Send_init")->started++;
	kind("Send_init")->freed++;
	MPI_Recv(in, 1, MPI_INT, !rank, 9, WORLD, MPI_STATUS_IGNORE);
}

static void collectives(MPI_Comm ring)
{
	static const int counts[2] = {N, N}, places[2] = {0, N};
	MPI_Datatype types[2] = {MPI_INT, MPI_INT};
	int bytes[2] = {0, N * (int)sizeof(int)};
	MPI_Aint far[2] = {0, N * sizeof(int)};

/* Nonblocking, and persistent. */
#ifdef PERSISTENT
#define BOTH(name, init, ...) \
	do { \
		STARTED(name, __VA_ARGS__); \
		MADE(init, __VA_ARGS__); \
	} while (0)
#else
#define BOTH(name, init, ...) STARTED(name, __VA_ARGS__)
#endif
	BOTH(Ibarrier, Barrier_init, WORLD);
	memcpy(in, out, sizeof(int) * N);
	BOTH(Ibcast, Bcast_init, in, N, MPI_INT, 1, WORLD);
	BOTH(Igather, Gather_init, out, N, MPI_INT, in, N, MPI_INT, 0, WORLD);
	BOTH(Igatherv, Gatherv_init, out, N, MPI_INT, in, counts, places, MPI_INT, 0, WORLD);
	BOTH(Iscatter, Scatter_init, out, N, MPI_INT, in, N, MPI_INT, 0, WORLD);
	BOTH(Iscatterv, Scatterv_init, out, counts, places, MPI_INT, in, N, MPI_INT, 0, WORLD);
	BOTH(Iallgather, Allgather_init, out, N, MPI_INT, in, N, MPI_INT, WORLD);
	BOTH(Iallgatherv, Allgatherv_init, out, N, MPI_INT, in, counts, places, MPI_INT, WORLD);
	BOTH(Ialltoall, Alltoall_init, out, N, MPI_INT, in, N, MPI_INT, WORLD);
	BOTH(Ialltoallv, Alltoallv_init, out, counts, places, MPI_INT, in, counts, places, MPI_INT, WORLD);
	BOTH(Ialltoallw, Alltoallw_init, out, counts, bytes, types, in, counts, bytes, types, WORLD);
	BOTH(Ireduce, Reduce_init, out, in, N, MPI_INT, MPI_SUM, 0, WORLD);
	BOTH(Iallreduce, Allreduce_init, out, in, N, MPI_INT, MPI_SUM, WORLD);
	BOTH(Ireduce_scatter, Reduce_scatter_init, out, in, counts, MPI_INT, MPI_SUM, WORLD);
	BOTH(Ireduce_scatter_block, Reduce_scatter_block_init, out, in, N, MPI_INT, MPI_SUM, WORLD);
	BOTH(Iscan, Scan_init, out, in, N, MPI_INT, MPI_SUM, WORLD);
	BOTH(Iexscan, Exscan_init, out, in, N, MPI_INT, MPI_SUM, WORLD);
	BOTH(Ineighbor_allgather, Neighbor_allgather_init, out, N, MPI_INT, in, N, MPI_INT, ring);
	BOTH(Ineighbor_allgatherv, Neighbor_allgatherv_init, out, N, MPI_INT, in, counts, places, MPI_INT, ring);
	BOTH(Ineighbor_alltoall, Neighbor_alltoall_init, out, N, MPI_INT, in, N, MPI_INT, ring);
	BOTH(Ineighbor_alltoallv, Neighbor_alltoallv_init, out, counts, places, MPI_INT, in, counts, places, MPI_INT,
	     ring);
	BOTH(Ineighbor_alltoallw, Neighbor_alltoallw_init, out, counts, far, types, in, counts, far, types, ring);
}

static void communicators(void)
{
	MPI_Comm copy;

	STARTED(Comm_idup, WORLD, &copy);
	MPI_Comm_free(&copy);
#if MPI_VERSION >= 4
	STARTED(Comm_idup_with_info, WORLD, MPI_INFO_NULL, &copy);
	MPI_Comm_free(&copy);
#endif
}

static void windows(void)
{
	int *memory;
	MPI_Win win;

	MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &memory, &win);
	memset(memory, 0, 64 * sizeof(int));
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	MPI_Barrier(WORLD);
	STARTED(Rput, out, N, MPI_INT, !rank, 0, N, MPI_INT, win);
	MPI_Win_flush(!rank, win);
	STARTED(Rget, in, N, MPI_INT, !rank, 0, N, MPI_INT, win);
	STARTED(Raccumulate, out, N, MPI_INT, !rank, N, N, MPI_INT, MPI_SUM, win);
	MPI_Win_flush(!rank, win);
	STARTED(Rget_accumulate, out, N, MPI_INT, in, N, MPI_INT, !rank, N, N, MPI_INT, MPI_SUM, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(WORLD);
	MPI_Win_free(&win);
}

static void files(void)
{
	MPI_Offset at = (MPI_Offset)sizeof(int) * N * rank;
	MPI_Request two[3];
	MPI_File file;

	MPI_File_open(WORLD, "kinds.file", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
		      &file);
#ifdef MPICH_VERSION
	no_testall = 1;
#endif
	MPI_File_seek(file, at, MPI_SEEK_SET);
	STARTED(File_iwrite, file, out, N, MPI_INT);
	MPI_File_seek(file, at, MPI_SEEK_SET);
	STARTED(File_iread, file, in, N, MPI_INT);
	STARTED(File_iwrite_at, file, at, out, N, MPI_INT);
	STARTED(File_iread_at, file, at, in, N, MPI_INT);
	STARTED(File_iwrite_at_all, file, at, out, N, MPI_INT);
	STARTED(File_iread_at_all, file, at, in, N, MPI_INT);
	MPI_File_seek(file, at, MPI_SEEK_SET);
	STARTED(File_iwrite_all, file, out, N, MPI_INT);
	MPI_File_seek(file, at, MPI_SEEK_SET);
	STARTED(File_iread_all, file, in, N, MPI_INT);
	/* The order of the ranks decides what a shared pointer reads, so all of them write the same. */
	memset(out, 5, sizeof(out));
	MPI_File_sync(file);
	MPI_Barrier(WORLD);
	STARTED(File_iwrite_shared, file, out, N, MPI_INT);
	MPI_File_sync(file);
	MPI_Barrier(WORLD);
	MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
	STARTED(File_iread_shared, file, in, N, MPI_INT);

	/* Among others. */
	for (int i = 0; i < 8; i++) {
		int index, n, flag, done = 0, indices[3];

		MPI_File_iwrite_at(file, at, out, N, MPI_INT, &two[0]);
		MPI_Irecv(in, 1, MPI_INT, !rank, 3, WORLD, &two[1]);
		MPI_Isend(out, 1, MPI_INT, !rank, 3, WORLD, &two[2]);
		kind("File_iwrite_at")->started++;
		kind("Irecv")->started++;
		kind("Isend")->started++;
		switch (i) {
		case 0:
			MPI_Waitall(3, two, MPI_STATUSES_IGNORE);
			break;
		case 1:
			for (flag = 0; !flag && !no_testall;)
				MPI_Testall(3, two, &flag, MPI_STATUSES_IGNORE);
			break;
		case 2:
			while (done < 3) {
				MPI_Waitsome(3, two, &n, indices, MPI_STATUSES_IGNORE);
				done += n;
			}
			break;
		case 3:
			while (done < 3) {
				MPI_Testsome(3, two, &n, indices, MPI_STATUSES_IGNORE);
				done += n;
			}
			break;
		case 4:
			for (; done < 3; done++)
				MPI_Waitany(3, two, &index, MPI_STATUS_IGNORE);
			break;
		case 5:
			for (; done < 3; done += flag)
				MPI_Testany(3, two, &index, &flag, MPI_STATUS_IGNORE);
			break;
		default:
			for (; done < 3; done++)
				MPI_Wait(&two[(done + i) % 3], MPI_STATUS_IGNORE);
		}
		if (i == 1 && no_testall)
			MPI_Waitall(3, two, MPI_STATUSES_IGNORE);
	}
	MPI_Barrier(WORLD);
	MPI_File_close(&file);
}

static int query(void *state, MPI_Status *status)
{
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, *(int *)state);
	return MPI_SUCCESS;
}

static int release(void *state)
{
	return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
	*(int *)state = 1;
	return MPI_SUCCESS;
}

static void generalized(void)
{
	for (int i = 0; i < 9; i++) {
		int cancelled = 0;
		MPI_Request r;

		MPI_Grequest_start(query, release, cancel, &cancelled, &r);
		kind("Grequest_start")->started++;
		if (i == 8) {
			MPI_Cancel(&r);
			kind("Grequest_start")->cancelled++;
		}
		MPI_Grequest_complete(r);
		finish(&r);
	}
}

#if MPI_VERSION >= 4
static void exchanges(void)
{
	STARTED(Isendrecv, out, N, MPI_INT, !rank, 1, in, N, MPI_INT, !rank, 1, WORLD);
	memcpy(in, out, sizeof(int) * N);
	STARTED(Isendrecv_replace, in, N, MPI_INT, !rank, 2, !rank, 2, WORLD);
}

static void partitioned(void)
{
	MPI_Request r[2];
	int flag;

	MPI_Psend_init(out, 2, N, MPI_INT, !rank, 4, WORLD, MPI_INFO_NULL, &r[0]);
	MPI_Precv_init(in, 2, N, MPI_INT, !rank, 4, WORLD, MPI_INFO_NULL, &r[1]);
	for (int i = 0; i < 3; i++) {
		MPI_Startall(2, r);
		MPI_Pready(1, r[0]);
		MPI_Pready(0, r[0]);
		/* MPICH's Testall and its kin return "in status" without an error in it. */
		MPI_Wait(&r[1], MPI_STATUS_IGNORE);
		for (flag = 0; !flag;)
			MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
	kind("Psend_init")->started += 3;
	kind("Precv_init")->started += 3;
}

static void large(void)
{
	MPI_Count counts[2] = {N, N};
	MPI_Aint places[2] = {0, N};
	MPI_Request r;

	MPI_Irecv_c(late, N, MPI_INT, !rank, 6, WORLD, &r);
	kind("Irecv")->started++;
	STARTED_AS("Isend", MPI_Isend_c, out, N, MPI_INT, !rank, 6, WORLD);
	finish(&r);
	STARTED_AS("Iallreduce", MPI_Iallreduce_c, out, in, N, MPI_INT, MPI_SUM, WORLD);
	STARTED_AS("Ialltoallv", MPI_Ialltoallv_c, out, counts, places, MPI_INT, in, counts, places, MPI_INT, WORLD);
	MADE_AS("Bcast_init", MPI_Bcast_init_c, in, N, MPI_INT, 0, WORLD, MPI_INFO_NULL);
	STARTED_AS("Isendrecv", MPI_Isendrecv_c, out, N, MPI_INT, !rank, 7, in, N, MPI_INT, !rank, 7, WORLD);
}
#endif

int main(int argc, char **argv)
{
	static char attached[4096];
	int two = 2, periodic = 1;
	MPI_Comm ring;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Buffer_attach(attached, sizeof(attached));
	MPI_Cart_create(WORLD, 1, &two, &periodic, 0, &ring);
	for (int i = 0; i < 64; i++)
		out[i] = 1000 * rank + i;
	messages();
	for (int i = 0; i < 3; i++)
		collectives(ring);
	communicators();
	for (int i = 0; i < 3; i++)
		windows();
	generalized();
#if MPI_VERSION >= 4
	exchanges();
	partitioned();
	large();
#endif
	files();
	for (int i = 0; kinds[i].name; i++) {
		const struct kind *k = &kinds[i];

		printf("expect %d %s %d %d %d 0 %d 0\n", rank, k->name, k->started,
		       k->started - k->cancelled - k->freed, k->cancelled, k->freed);
	}
	printf("rank %d: %08x\n", rank, sum);
	MPI_Comm_free(&ring);
	MPI_Finalize();
	return 0;
}
