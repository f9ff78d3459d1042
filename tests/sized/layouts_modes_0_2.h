/* SPDX-License-Identifier: BSD-3-Clause */
/* As layouts_0_2.h, of contd/modes.h. The includer has included mpi.h: the structures have the MPI's handles. */
#include <stddef.h>
#include <stdint.h>

struct contd_executor;

struct LAYOUT(contd_mode_attr) {
	size_t size;
	int mode, priority;
	struct contd_executor *requests, *completions;
	void (*yield)(void *);
	void (*suspend)(void *);
	void (*resume)(void *);
	int flags;
	MPI_Request cont_req;
	LATER
};

/* Without a size. Programs give it as it is here, and contd uses its room and nothing behind it. */
struct LAYOUT(contd_mpi_op) {
	int count;
	MPI_Request *requests;
	MPI_Status *statuses;
	int (*issue)(struct LAYOUT(contd_mpi_op) *);
	void (*done)(struct LAYOUT(contd_mpi_op) *, int);
	void *data, *task;
	uint64_t room[40];
};
