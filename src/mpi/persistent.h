/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent collective operations, which an MPI has from 4.0 on: X(name, parameters, arguments), as in portable.h. */
#ifndef CONTD_MPI_PERSISTENT_H
#define CONTD_MPI_PERSISTENT_H

#include <mpi.h>

#define P_OUT const void *sendbuf, int sendcount, MPI_Datatype sendtype
#define P_OUT_V const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype
#define P_OUT_W const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[]
#define P_OUT_AT_W const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[]
#define P_IN void *recvbuf, int recvcount, MPI_Datatype recvtype
#define P_IN_V void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype
#define P_IN_W void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[]
#define P_IN_AT_W void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[]
#define P_BOTH const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op
#define P_END MPI_Comm comm, MPI_Info info, MPI_Request *request

#define A_OUT sendbuf, sendcount, sendtype
#define A_OUT_V sendbuf, sendcounts, sdispls, sendtype
#define A_OUT_W sendbuf, sendcounts, sdispls, sendtypes
#define A_IN recvbuf, recvcount, recvtype
#define A_IN_V recvbuf, recvcounts, rdispls, recvtype
#define A_IN_W recvbuf, recvcounts, rdispls, recvtypes
#define A_BOTH sendbuf, recvbuf, count, type, op
#define A_END comm, info, request

/* clang-format off */
#define CONTD_MADE_COLLECTIVE(X) \
	X(Allgather_init, (P_OUT, P_IN, P_END), (A_OUT, A_IN, A_END)) \
	X(Allgatherv_init, (P_OUT, P_IN_V, P_END), (A_OUT, A_IN_V, A_END)) \
	X(Allreduce_init, (P_BOTH, P_END), (A_BOTH, A_END)) \
	X(Alltoall_init, (P_OUT, P_IN, P_END), (A_OUT, A_IN, A_END)) \
	X(Alltoallv_init, (P_OUT_V, P_IN_V, P_END), (A_OUT_V, A_IN_V, A_END)) \
	X(Alltoallw_init, (P_OUT_W, P_IN_W, P_END), (A_OUT_W, A_IN_W, A_END)) \
	X(Barrier_init, (P_END), (A_END)) \
	X(Bcast_init, (void *buf, int count, MPI_Datatype type, int root, P_END), (buf, count, type, root, A_END)) \
	X(Exscan_init, (P_BOTH, P_END), (A_BOTH, A_END)) \
	X(Gather_init, (P_OUT, P_IN, int root, P_END), (A_OUT, A_IN, root, A_END)) \
	X(Gatherv_init, (P_OUT, P_IN_V, int root, P_END), (A_OUT, A_IN_V, root, A_END)) \
	X(Neighbor_allgather_init, (P_OUT, P_IN, P_END), (A_OUT, A_IN, A_END)) \
	X(Neighbor_allgatherv_init, (P_OUT, P_IN_V, P_END), (A_OUT, A_IN_V, A_END)) \
	X(Neighbor_alltoall_init, (P_OUT, P_IN, P_END), (A_OUT, A_IN, A_END)) \
	X(Neighbor_alltoallv_init, (P_OUT_V, P_IN_V, P_END), (A_OUT_V, A_IN_V, A_END)) \
	X(Neighbor_alltoallw_init, (P_OUT_AT_W, P_IN_AT_W, P_END), (A_OUT_W, A_IN_W, A_END)) \
	X(Reduce_init, \
	  (const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, int root, P_END), \
	  (sendbuf, recvbuf, count, type, op, root, A_END)) \
	X(Reduce_scatter_init, \
	  (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype type, MPI_Op op, P_END), \
	  (sendbuf, recvbuf, recvcounts, type, op, A_END)) \
	X(Reduce_scatter_block_init, (P_BOTH, P_END), (A_BOTH, A_END)) \
	X(Scan_init, (P_BOTH, P_END), (A_BOTH, A_END)) \
	X(Scatter_init, (P_OUT, P_IN, int root, P_END), (A_OUT, A_IN, root, A_END)) \
	X(Scatterv_init, (P_OUT_V, P_IN, int root, P_END), (A_OUT_V, A_IN, root, A_END))
/* clang-format on */

#endif
