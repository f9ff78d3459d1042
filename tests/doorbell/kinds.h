/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules for the receiver (rank 0, a program with contd) and the senders (all others, programs that know nothing of
 * contd, with the doorbell library preloaded). A round of a kind:
 *
 *  receiver  posts a receive for a silent message, attaches a continuation, says go, and computes in a region
 *  rank 1    sends the silent message by a way that no doorbell library sees, and does what the kind is about
 *  receiver  is rung for that, finds the silent message, runs the continuation, leaves the region, and does its part
 *
 * So each call is shown to ring by itself, also one that has no message for the receiver yet. Of long messages and of
 * one-sided operations the completion itself is what the receiver waits for, and there is no silent message.
 */
#ifndef CONTD_TESTS_BELL_KINDS_H
#define CONTD_TESTS_BELL_KINDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define TAG_GO 1
#define TAG_SILENT 2
#define TAG_KIND 3
#define ROUNDS_MOST 60

#if MPI_VERSION >= 4
#define HAS_MPI4 1
#else
#define HAS_MPI4 0
#endif

/* Between processes, on each communicator. */
/* clang-format off */
#define POINT_TO_POINT(X) \
	X(Send) X(Bsend) X(Ssend) X(Isend) X(Ibsend) X(Issend) X(Start) X(Startall) X(Sendrecv) X(Sendrecv_replace) \
	X(Isendrecv) X(Pready)
/* clang-format on */
/* They don't wait for the receiver. */
#define COLLECTIVE(X) \
	X(Ibcast) X(Ibarrier) X(Iallreduce) X(Ialltoallv) X(Iscan) X(Ineighbor_allgather) X(Comm_idup) X(Allreduce_init)
/* All ranks may wait for each other: the receiver has a second thread that takes part. */
#define SYNCHRONIZING(X) \
	X(Bcast) X(Reduce) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Barrier) X(Allreduce) X(Alltoall) X(Allgather)
/* Long ones; the continuation waits for the message itself. */
#define MESSAGES(X) \
	X(Send_1M) X(Send_8M) X(Isend_1M) X(Isend_8M) X(Start_1M) X(Sendrecv_1M) X(Send_vector) X(Isend_test)
/* The receiver is the target, and waits for a last message. */
#define ONE_SIDED(X) \
	X(Put_fence) X(Put_unlock) X(Accumulate_flush) X(Get_flush_all) X(Fetch_and_op) X(Rput) X(Post_start)

#define ENUM(name) KIND_##name,
enum kind { POINT_TO_POINT(ENUM) COLLECTIVE(ENUM) SYNCHRONIZING(ENUM) MESSAGES(ENUM) ONE_SIDED(ENUM) KINDS };
#undef ENUM
#define NAME(name) #name,
static const char *const kind_name[] = {POINT_TO_POINT(NAME) COLLECTIVE(NAME) SYNCHRONIZING(NAME) MESSAGES(NAME)
						ONE_SIDED(NAME)};
#undef NAME

#define COUNT(name) +1
enum {
	END_P2P = 0 POINT_TO_POINT(COUNT),
	END_COLLECTIVE = END_P2P COLLECTIVE(COUNT),
	END_SYNCHRONIZING = END_COLLECTIVE SYNCHRONIZING(COUNT),
	END_MESSAGES = END_SYNCHRONIZING MESSAGES(COUNT),
	END_ONE_SIDED = END_MESSAGES ONE_SIDED(COUNT)
};
#undef COUNT

static inline int kind_is_there(int k)
{
	return HAS_MPI4 || (k != KIND_Isendrecv && k != KIND_Pready && k != KIND_Allreduce_init);
}

#define LONG_INTS (8 << 18) /* 8 MiB */

struct stage {
	int rank, size;
	/* the world; the world the other way round; the receiver on one side, the rest on the other */
	MPI_Comm comm[3];
	int receiver[3];     /* rank 0's rank there */
	int sender[3];       /* rank 1's rank there, as the receiver sees it */
	MPI_Comm graph;      /* all are neighbours */
	int *buffer;         /* LONG_INTS and some */
	MPI_Datatype vector; /* 2^18 ints, every other one */
};

static inline void stage_open(struct stage *s)
{
	MPI_Comm side;
	int *all;

	MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &s->size);
	s->buffer = calloc(2 * LONG_INTS + 64, sizeof(int));
	all = calloc((size_t)s->size, sizeof(int));
	for (int i = 0; i < s->size; i++)
		all[i] = i;
	s->comm[0] = MPI_COMM_WORLD;
	MPI_Comm_split(MPI_COMM_WORLD, 0, s->size - s->rank, &s->comm[1]);
	MPI_Comm_split(MPI_COMM_WORLD, s->rank == 0, s->rank, &side);
	MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, s->rank == 0 ? 1 : 0, 9, &s->comm[2]);
	MPI_Comm_free(&side);
	s->receiver[0] = s->receiver[2] = 0;
	s->receiver[1] = s->size - 1;
	s->sender[0] = 1;
	s->sender[1] = s->size - 2;
	s->sender[2] = 0;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, s->size, all, MPI_UNWEIGHTED, s->size, all, MPI_UNWEIGHTED,
				       MPI_INFO_NULL, 0, &s->graph);
	MPI_Type_vector(1 << 18, 1, 2, MPI_INT, &s->vector);
	MPI_Type_commit(&s->vector);
	free(all);
}

static inline void stage_close(struct stage *s)
{
	MPI_Type_free(&s->vector);
	MPI_Comm_free(&s->comm[1]);
	MPI_Comm_free(&s->comm[2]);
	MPI_Comm_free(&s->graph);
	free(s->buffer);
}

/* Kinds in which all take part: what a rank does. Requests are left for MPI_Wait. Root is rank 1 where data goes
 * out. */
static inline void take_part(struct stage *s, int k, MPI_Request *request, MPI_Comm *copy)
{
	static int in[16], out[16], counts[16], displs[16];
	MPI_Comm comm = MPI_COMM_WORLD;

	for (int i = 0; i < 16; i++) {
		counts[i] = 1;
		displs[i] = i;
	}
	switch (k) {
	case KIND_Bcast:
		MPI_Bcast(in, 1, MPI_INT, 1, comm);
		break;
	case KIND_Reduce:
		MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, 0, comm);
		break;
	case KIND_Gather:
		MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
		break;
	case KIND_Gatherv:
		MPI_Gatherv(in, 1, MPI_INT, out, counts, displs, MPI_INT, 0, comm);
		break;
	case KIND_Scatter:
		MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, 1, comm);
		break;
	case KIND_Scatterv:
		MPI_Scatterv(in, counts, displs, MPI_INT, out, 1, MPI_INT, 1, comm);
		break;
	case KIND_Ibcast:
		MPI_Ibcast(in, 1, MPI_INT, 1, comm, request);
		break;
	case KIND_Ibarrier:
		MPI_Ibarrier(comm, request);
		break;
	case KIND_Iallreduce:
		MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, comm, request);
		break;
	case KIND_Ialltoallv:
		MPI_Ialltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm, request);
		break;
	case KIND_Iscan:
		MPI_Iscan(in, out, 1, MPI_INT, MPI_SUM, comm, request);
		break;
	case KIND_Ineighbor_allgather:
		MPI_Ineighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, s->graph, request);
		break;
	case KIND_Comm_idup:
		MPI_Comm_idup(s->comm[1], copy, request);
		break;
#if HAS_MPI4
	case KIND_Allreduce_init:
		MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, s->comm[1], MPI_INFO_NULL, request);
		MPI_Start(request);
		break;
#endif
	case KIND_Barrier:
		MPI_Barrier(comm);
		break;
	case KIND_Allreduce:
		MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, comm);
		break;
	case KIND_Alltoall:
		MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, comm);
		break;
	case KIND_Allgather:
		MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
		break;
	default:
		fprintf(stderr, "%s?\n", kind_name[k]), abort();
	}
}

#endif
