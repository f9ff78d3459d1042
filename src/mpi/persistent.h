/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent collective operations, and partitioned ones, which an MPI has from 4.0 on: X(name, parameters, arguments),
 * as in intercept.h.
 */
#ifndef CONTD_MPI_PERSISTENT_H
#define CONTD_MPI_PERSISTENT_H

#include <mpi.h>

/* N: the type of counts; D: of displacements. */
#define P_OUT(N) const void *sendbuf, N sendcount, MPI_Datatype sendtype
#define P_OUT_V(N, D) const void *sendbuf, const N sendcounts[], const D sdispls[], MPI_Datatype sendtype
#define P_OUT_W(N, D) const void *sendbuf, const N sendcounts[], const D sdispls[], const MPI_Datatype sendtypes[]
#define P_IN(N) void *recvbuf, N recvcount, MPI_Datatype recvtype
#define P_IN_V(N, D) void *recvbuf, const N recvcounts[], const D rdispls[], MPI_Datatype recvtype
#define P_IN_W(N, D) void *recvbuf, const N recvcounts[], const D rdispls[], const MPI_Datatype recvtypes[]
#define P_BOTH(N) const void *sendbuf, void *recvbuf, N count, MPI_Datatype type, MPI_Op op
#define P_PARTS(N) const void *sendbuf, void *recvbuf, const N recvcounts[], MPI_Datatype type, MPI_Op op
#define P_ONE(N) void *buf, N count, MPI_Datatype type
#define P_REDUCED(N) P_BOTH(N), int root
#define P_END MPI_Comm comm, MPI_Info info, MPI_Request *request

#define A_OUT sendbuf, sendcount, sendtype
#define A_OUT_V sendbuf, sendcounts, sdispls, sendtype
#define A_OUT_W sendbuf, sendcounts, sdispls, sendtypes
#define A_IN recvbuf, recvcount, recvtype
#define A_IN_V recvbuf, recvcounts, rdispls, recvtype
#define A_IN_W recvbuf, recvcounts, rdispls, recvtypes
#define A_BOTH sendbuf, recvbuf, count, type, op
#define A_PARTS sendbuf, recvbuf, recvcounts, type, op
#define A_END comm, info, request

/* clang-format off */
#define CONTD_MADE_COLLECTIVE(X) \
	X(Allgather_init, (P_OUT(int), P_IN(int), P_END), (A_OUT, A_IN, A_END)) \
	X(Allgatherv_init, (P_OUT(int), P_IN_V(int, int), P_END), (A_OUT, A_IN_V, A_END)) \
	X(Allreduce_init, (P_BOTH(int), P_END), (A_BOTH, A_END)) \
	X(Alltoall_init, (P_OUT(int), P_IN(int), P_END), (A_OUT, A_IN, A_END)) \
	X(Alltoallv_init, (P_OUT_V(int, int), P_IN_V(int, int), P_END), (A_OUT_V, A_IN_V, A_END)) \
	X(Alltoallw_init, (P_OUT_W(int, int), P_IN_W(int, int), P_END), (A_OUT_W, A_IN_W, A_END)) \
	X(Barrier_init, (P_END), (A_END)) \
	X(Bcast_init, (P_ONE(int), int root, P_END), (buf, count, type, root, A_END)) \
	X(Exscan_init, (P_BOTH(int), P_END), (A_BOTH, A_END)) \
	X(Gather_init, (P_OUT(int), P_IN(int), int root, P_END), (A_OUT, A_IN, root, A_END)) \
	X(Gatherv_init, (P_OUT(int), P_IN_V(int, int), int root, P_END), (A_OUT, A_IN_V, root, A_END)) \
	X(Neighbor_allgather_init, (P_OUT(int), P_IN(int), P_END), (A_OUT, A_IN, A_END)) \
	X(Neighbor_allgatherv_init, (P_OUT(int), P_IN_V(int, int), P_END), (A_OUT, A_IN_V, A_END)) \
	X(Neighbor_alltoall_init, (P_OUT(int), P_IN(int), P_END), (A_OUT, A_IN, A_END)) \
	X(Neighbor_alltoallv_init, (P_OUT_V(int, int), P_IN_V(int, int), P_END), (A_OUT_V, A_IN_V, A_END)) \
	X(Neighbor_alltoallw_init, (P_OUT_W(int, MPI_Aint), P_IN_W(int, MPI_Aint), P_END), (A_OUT_W, A_IN_W, A_END)) \
	X(Reduce_init, (P_REDUCED(int), P_END), (A_BOTH, root, A_END)) \
	X(Reduce_scatter_init, (P_PARTS(int), P_END), (A_PARTS, A_END)) \
	X(Reduce_scatter_block_init, (P_BOTH(int), P_END), (A_BOTH, A_END)) \
	X(Scan_init, (P_BOTH(int), P_END), (A_BOTH, A_END)) \
	X(Scatter_init, (P_OUT(int), P_IN(int), int root, P_END), (A_OUT, A_IN, root, A_END)) \
	X(Scatterv_init, (P_OUT_V(int, int), P_IN(int), int root, P_END), (A_OUT_V, A_IN, root, A_END))

#define CONTD_MADE_PARTITIONED(X) \
	X(Psend_init, \
	  (const void *buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag, P_END), \
	  (buf, partitions, count, type, dest, tag, A_END)) \
	X(Precv_init, \
	  (void *buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, P_END), \
	  (buf, partitions, count, type, source, tag, A_END))
/* clang-format on */

#endif
