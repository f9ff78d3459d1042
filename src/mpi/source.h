/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI as a source of events for the core: operations, and what completes or gives back their continuations. */
#ifndef CONTD_MPI_SOURCE_H
#define CONTD_MPI_SOURCE_H

#include "dispatch/source.h"

/* Registered when contd begins, which also says on which threads it is driven. */
extern struct contd__source contd__mpi_source;

#endif
