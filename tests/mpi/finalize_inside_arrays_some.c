/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* finalize_inside_arrays.c with another query, of CRs that their callbacks free. */
#define QUERY(two) MPIX_Request_get_status_some(2, two, &n, indices, statuses)
#define QUERIED (n == MPI_UNDEFINED)
#define FREES
#include "finalize_inside_arrays.c"
