/* SPDX-License-Identifier: BSD-3-Clause */
/* What all entry points need: the constants that only Fortran knows, whether MPI runs, and errors. */
#include <pthread.h>
#include <stdbool.h>

#include "fortran/callback.h"
#include "fortran/fortran.h"
#include "mpi/binding.h"

void contd__f_constants_mpif(void);
void contd__f_constants_f08(void);
void contd__f_ignored_(const void *status_ignore, const void *statuses_ignore, const MPI_Fint *status_size);

static pthread_once_t constants_once = PTHREAD_ONCE_INIT;
static const void *ignored[4]; /* MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE of both bindings, which may be the same */
static int ignored_count;

/* Called by the two of constants.f90. */
void contd__f_ignored_(const void *status_ignore, const void *statuses_ignore, const MPI_Fint *status_size)
{
	ignored[ignored_count++] = status_ignore;
	ignored[ignored_count++] = statuses_ignore;
	contd__f_status_size_is(*status_size);
}

static void constants_get(void)
{
	contd__f_constants_mpif();
	contd__f_constants_f08();
}

void contd__f_constants(void)
{
	pthread_once(&constants_once, constants_get);
}

bool contd__f_is_ignored(const void *statuses)
{
	contd__f_constants();
	for (int i = 0; i < ignored_count; i++)
		if (statuses == ignored[i])
			return true;
	return false;
}

bool contd__f_mpi_runs(void)
{
	return contd__binding_mpi_is_open();
}

int contd__f_refuse(const char *call, int class, const char *text)
{
	return contd__binding_refuse(call, class, text);
}
