/* SPDX-License-Identifier: BSD-3-Clause */
/* What runs when a continuation of a Fortran program does. */
#ifndef CONTD_FORTRAN_CALLBACK_H
#define CONTD_FORTRAN_CALLBACK_H

#include <contd/mpi.h>

#include "base/atomic.h"

/* MPI_Continue_cb_function and MPIX_Continue_cb_function. */
typedef void contd__f_draft(MPI_Fint *array_of_statuses, MPI_Aint *user_data, MPI_Fint *ierror);
typedef void contd__f_revised(const MPI_Fint *rc, MPI_Aint *user_data, MPI_Fint *ierror);

/* The handles of the call that attaches, on its stack. In C those that were taken are MPI_REQUEST_NULL afterwards. */
struct contd__f_handles {
	int count;
	MPI_Fint *fortran; /* the program's */
	MPI_Fint *before;  /* as the program gave them */
	const MPI_Request *c;
};

/* An attached continuation. */
struct contd__f_record {
	struct contd__f_record *next; /* in contd__f_spent */
	union {
		contd__f_draft *draft;
		contd__f_revised *revised;
		void (*any)(void);
	} cb;
	MPI_Aint data;
	MPI_Fint *fortran_statuses;       /* what the callback gets */
	int count;                        /* of statuses to convert; 0 where they are ignored */
	struct contd__f_handles *handles; /* until they are written */
	MPI_Status statuses[];
};

/*
 * Records that are no longer needed. Callbacks may run in a signal handler, where memory cannot be given back, so the
 * next call that attaches does it.
 *
 *     callback.c (put one in)     thread, handler, in a callback    lock-free
 *     continue.c (take all out)   thread, in a callback             wait-free
 */
extern struct contd__f_record *contd__f_spent;

/* All of them. Pairs with spent() in callback.c: none is taken out that another thread is just looking at. */
static inline struct contd__f_record *contd__f_spent_take(void)
{
	return contd__load(&contd__f_spent) ? contd__xchg(&contd__f_spent, NULL) : NULL;
}

/* MPI_STATUS_SIZE; once contd__f_constants() (fortran.h) was called. */
extern MPI_Fint contd__f_status_size;

static inline void contd__f_status_size_is(MPI_Fint size)
{
	contd__f_status_size = size;
}

/*
 * The continuations that the C interface is given, of the draft and of the revised interface; and the function that it
 * calls if one of the revised interface does not run. `data` is the record. Async-signal-safe.
 */
void contd__f_run(MPI_Status *statuses, void *data);
int contd__f_run_revised(int rc, void *data);
void contd__f_discard(void *data);

#endif
