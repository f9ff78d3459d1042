/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a backend does: make a continuation request out of a group, and attach a continuation to requests. The rest
 * (arguments, settings, life, error handlers) is the same for all of them and stands in api.c and life.c.
 */
#ifndef CONTD_MPI_BACKEND_H
#define CONTD_MPI_BACKEND_H

#include <stdbool.h>

#include <contd/mpi.h>

#include "dispatch/group.h"

/* One continuation to attach. */
struct contd__mpi_attach {
	int count;
	MPI_Request *requests;
	MPI_Continue_cb_function *cb;
	void *data;
	MPI_Status *statuses; /* what the callback gets */
	bool ignore;          /* statuses is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE */
};

struct contd__mpi_backend {
	const char *name;

	/* Is this the MPI that it was built for? NULL, or why not. */
	const char *(*refuses)(void);
	/* Both return an MPI error class. */
	int (*start)(int thread_level);
	int (*cr_create)(struct contd_group *group, MPI_Request *cr);
	/* The group of a CR; NULL where the handle is none. */
	struct contd_group *(*cr_group)(MPI_Request cr);
	/* MPI error class; on failure nothing has changed. */
	int (*attach)(const struct contd__mpi_attach *a, MPI_Request cr, struct contd_group *group);
	/* MPI_Finalize begins. Returns how many continuations never ran. */
	uint32_t (*stop)(void);
};

extern const struct contd__mpi_backend contd__mpi_native;

/* life.c: the backend, started; NULL and *errp where it can't be. */
const struct contd__mpi_backend *contd__mpi_start(int *errp);

/* The backend if it is started. */
extern const struct contd__mpi_backend *contd__mpi;

/* Through the error handler of MPI_COMM_SELF (MPI 4.1, 9.3: errors without an object); returns the class. */
int contd__mpi_error(int class);

/* MPI error class for a core error. */
int contd__mpi_class(int err);

/* May the calling thread enter MPI of its own accord (not because the program called MPI)? */
bool contd__mpi_thread_may(void);

#endif
