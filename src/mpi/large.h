/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations with large counts, which an MPI has from 4.0 on: X(name, parameters, arguments), as in intercept.h. */
#ifndef CONTD_MPI_LARGE_H
#define CONTD_MPI_LARGE_H

#include <mpi.h>

#include "mpi/persistent.h"

#define P_L(of) of(MPI_Count)
#define P_LV(of) of(MPI_Count, MPI_Aint)
#define P_SENT const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm
#define P_RECEIVED void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm
#define A_SENT buf, count, type, dest, tag, comm
#define A_RECEIVED buf, count, type, source, tag, comm

/* clang-format off */
#define CONTD_STARTED_LARGE(X) \
	X(Isend_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Ibsend_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Issend_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Irsend_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Irecv_c, (P_RECEIVED, MPI_Request *request), (A_RECEIVED, request)) \
	X(Imrecv_c, (void *buf, MPI_Count count, MPI_Datatype type, MPI_Message *message, MPI_Request *request), \
	  (buf, count, type, message, request))

#define CONTD_CALLED_LARGE(X) \
	X(Recv_c, (P_RECEIVED, MPI_Status *status), (A_RECEIVED, status)) \
	X(Send_c, (P_SENT), (A_SENT)) \
	X(Ssend_c, (P_SENT), (A_SENT)) \
	X(Sendrecv_c, \
	  (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, \
	   MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status), \
	  (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status)) \
	X(Sendrecv_replace_c, \
	  (void *buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, \
	   MPI_Comm comm, MPI_Status *status), \
	  (buf, count, type, dest, sendtag, source, recvtag, comm, status))

#define CONTD_MADE_LARGE(X) \
	X(Send_init_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Bsend_init_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Ssend_init_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Rsend_init_c, (P_SENT, MPI_Request *request), (A_SENT, request)) \
	X(Recv_init_c, (P_RECEIVED, MPI_Request *request), (A_RECEIVED, request)) \
	X(Allgather_init_c, (P_L(P_OUT), P_L(P_IN), P_END), (A_OUT, A_IN, A_END)) \
	X(Allgatherv_init_c, (P_L(P_OUT), P_LV(P_IN_V), P_END), (A_OUT, A_IN_V, A_END)) \
	X(Allreduce_init_c, (P_L(P_BOTH), P_END), (A_BOTH, A_END)) \
	X(Alltoall_init_c, (P_L(P_OUT), P_L(P_IN), P_END), (A_OUT, A_IN, A_END)) \
	X(Alltoallv_init_c, (P_LV(P_OUT_V), P_LV(P_IN_V), P_END), (A_OUT_V, A_IN_V, A_END)) \
	X(Alltoallw_init_c, (P_LV(P_OUT_W), P_LV(P_IN_W), P_END), (A_OUT_W, A_IN_W, A_END)) \
	X(Bcast_init_c, (P_L(P_ONE), int root, P_END), (buf, count, type, root, A_END)) \
	X(Exscan_init_c, (P_L(P_BOTH), P_END), (A_BOTH, A_END)) \
	X(Gather_init_c, (P_L(P_OUT), P_L(P_IN), int root, P_END), (A_OUT, A_IN, root, A_END)) \
	X(Gatherv_init_c, (P_L(P_OUT), P_LV(P_IN_V), int root, P_END), (A_OUT, A_IN_V, root, A_END)) \
	X(Neighbor_allgather_init_c, (P_L(P_OUT), P_L(P_IN), P_END), (A_OUT, A_IN, A_END)) \
	X(Neighbor_allgatherv_init_c, (P_L(P_OUT), P_LV(P_IN_V), P_END), (A_OUT, A_IN_V, A_END)) \
	X(Neighbor_alltoall_init_c, (P_L(P_OUT), P_L(P_IN), P_END), (A_OUT, A_IN, A_END)) \
	X(Neighbor_alltoallv_init_c, (P_LV(P_OUT_V), P_LV(P_IN_V), P_END), (A_OUT_V, A_IN_V, A_END)) \
	X(Neighbor_alltoallw_init_c, (P_LV(P_OUT_W), P_LV(P_IN_W), P_END), (A_OUT_W, A_IN_W, A_END)) \
	X(Reduce_init_c, (P_L(P_REDUCED), P_END), (A_BOTH, root, A_END)) \
	X(Reduce_scatter_init_c, (P_L(P_PARTS), P_END), (A_PARTS, A_END)) \
	X(Reduce_scatter_block_init_c, (P_L(P_BOTH), P_END), (A_BOTH, A_END)) \
	X(Scan_init_c, (P_L(P_BOTH), P_END), (A_BOTH, A_END)) \
	X(Scatter_init_c, (P_L(P_OUT), P_L(P_IN), int root, P_END), (A_OUT, A_IN, root, A_END)) \
	X(Scatterv_init_c, (P_LV(P_OUT_V), P_L(P_IN), int root, P_END), (A_OUT_V, A_IN, root, A_END))
/* clang-format on */

#endif
