/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* finalize_inside_arrays.c with another query: MPI has ended, so nothing is active. */
#define QUERY(two) MPIX_Request_get_status_any(2, two, &n, &flag, statuses)
#define QUERIED (flag == 1 && n == MPI_UNDEFINED)
#include "finalize_inside_arrays.c"
