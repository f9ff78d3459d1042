/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from signal handlers: async-signal-safe code only. From the C interface's callback to the program's. */
#include "base/atomic.h"
#include "fortran/callback.h"

struct contd__f_record *contd__f_spent;
MPI_Fint contd__f_status_size;

static void spent(struct contd__f_record *r)
{
	struct contd__f_record *head = contd__load(&contd__f_spent);

	do
		r->next = head;
	while (!contd__cas(&contd__f_spent, &head, r));
}

/* An operation that has not finished when another one has failed: of the program's status MPI_ERROR changes only. */
static void convert_pending(MPI_Fint *status)
{
	MPI_Status c;

	PMPI_Status_f2c(status, &c);
	c.MPI_ERROR = MPI_ERR_PENDING;
	PMPI_Status_c2f(&c, status);
}

/* The program's statuses are its own again. */
static void give(const struct contd__f_record *r)
{
	for (int i = 0; i < r->count; i++) {
		MPI_Fint *status = &r->fortran_statuses[(size_t)i * (size_t)contd__f_status_size];

		if (r->statuses[i].MPI_ERROR == MPI_ERR_PENDING)
			convert_pending(status);
		else
			PMPI_Status_c2f(&r->statuses[i], status);
	}
}

void contd__f_run(MPI_Status *statuses, void *data)
{
	struct contd__f_record *r = data;
	MPI_Aint user_data = r->data;
	MPI_Fint ierror = MPI_SUCCESS; /* not looked at: in C, too, a continuation has no caller to report to */

	(void)statuses;
	give(r);
	r->cb.draft(r->fortran_statuses, &user_data, &ierror);
	spent(r);
}

int contd__f_run_revised(int rc, void *data)
{
	struct contd__f_record *r = data;
	MPI_Aint user_data = r->data;
	MPI_Fint fortran_rc = rc, ierror = MPI_SUCCESS;

	give(r);
	r->cb.revised(&fortran_rc, &user_data, &ierror);
	spent(r);
	return (int)ierror;
}

void contd__f_discard(void *data)
{
	struct contd__f_record *r = data;

	give(r);
	spent(r);
}
