/* SPDX-License-Identifier: BSD-3-Clause */
/* As layouts_0_2.h, of contd/modes.h. The includer has included mpi.h: the structure has one of the MPI's handles. */
#include <stddef.h>

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
