/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that calls MPI as Fortran does: fortran_local.c. */
#include <mpi.h>

#define EXPORTED __attribute__((visibility("default")))

void mpi_comm_create_errhandler_(void *function, MPI_Fint *handler, MPI_Fint *error);
void mpi_comm_create_keyval_(void *copies, void *deletes, MPI_Fint *key, MPI_Aint *extra, MPI_Fint *error);
void mpi_comm_set_attr_(MPI_Fint *comm, MPI_Fint *key, MPI_Aint *value, MPI_Fint *error);
EXPORTED int makes_errhandler(void);
EXPORTED int sets_attribute(void);

static unsigned deleted;

static void on_error(MPI_Fint *comm, MPI_Fint *code)
{
	(void)comm, (void)code;
}

static void copies(MPI_Fint *object, MPI_Fint *key, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, MPI_Fint *flag,
		   MPI_Fint *error)
{
	(void)object, (void)key, (void)extra, (void)in, (void)out;
	*flag = 0;
	*error = MPI_SUCCESS;
}

static void deletes(MPI_Fint *object, MPI_Fint *key, MPI_Aint *value, MPI_Aint *extra, MPI_Fint *error)
{
	(void)object, (void)key, (void)value, (void)extra;
	deleted++;
	*error = MPI_SUCCESS;
}

int makes_errhandler(void)
{
	MPI_Fint handler = 0, error = -1;

	mpi_comm_create_errhandler_((void *)on_error, &handler, &error);
	return error == MPI_SUCCESS;
}

int sets_attribute(void)
{
	MPI_Fint key = 0, error = -1, comm = MPI_Comm_c2f(MPI_COMM_SELF);
	MPI_Aint extra = 0, value = 7;

	mpi_comm_create_keyval_((void *)copies, (void *)deletes, &key, &extra, &error);
	for (int i = 0; i < 2 && error == MPI_SUCCESS; i++)
		mpi_comm_set_attr_(&comm, &key, &value, &error);
	return error == MPI_SUCCESS && deleted == 1;
}
