/* SPDX-License-Identifier: BSD-3-Clause */
/* A nonblocking reduction of one int over a binary tree, as a generalized request. */
#ifndef TREEREDUCE_REDUCE_H
#define TREEREDUCE_REDUCE_H

#include <contd/mpi.h>

enum tree_form {
	TREE_THREAD,       /* a thread for each reduction; MPI_THREAD_MULTIPLE */
	TREE_CONTINUATIONS /* no thread; any level */
};

/*
 * *valout on the root is the sum of all ranks' valin when *request is complete, which is waited for like any other
 * request. Reductions that are under way at the same time need different tags. cr is the CR that the continuations are
 * registered with; the form with a thread needs none. MPI error class; then there is no request.
 */
int tree_reduce(enum tree_form form, MPI_Comm comm, int tag, int root, int valin, int *valout, MPI_Request cr,
		MPI_Request *request);

#endif
