/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI as a source of events for the core: operations, and what completes or gives back their continuations. */
#ifndef CONTD_MPI_SOURCE_H
#define CONTD_MPI_SOURCE_H

#include "dispatch/source.h"

/* Registered when contd begins. */
extern struct contd__source contd__mpi_source;

/* Before that: on which threads it is driven. */
static inline void contd__mpi_source_where(uint32_t where)
{
	contd__mpi_source.where = where;
}

#endif
