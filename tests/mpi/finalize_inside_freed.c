/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* As finalize_inside.c: the callback frees its continuation request, and then calls MPI_Finalize. */
#define FREES true
#include "finalize_inside.c"
