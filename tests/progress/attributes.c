/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes of Fortran's: MPI calls the program's functions in the middle of its own calls, and no progress is made in
 * them. This program is in C, and calls MPI as Fortran does; a subroutine takes addresses.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include "closure.h"

typedef MPI_Fint integer;
typedef MPI_Aint address;

void mpi_comm_create_keyval_(void *copies, void *deletes, integer *key, address *extra, integer *error);
void mpi_comm_set_attr_(integer *comm, integer *key, address *value, integer *error);
void mpi_comm_delete_attr_(integer *comm, integer *key, integer *error);
void mpi_comm_dup_(integer *comm, integer *copy, integer *error);
void mpi_comm_free_(integer *comm, integer *error);
void mpi_type_create_keyval_(void *copies, void *deletes, integer *key, address *extra, integer *error);
void mpi_type_set_attr_(integer *type, integer *key, address *value, integer *error);
void mpi_type_dup_(integer *type, integer *copy, integer *error);
void mpi_type_free_(integer *type, integer *error);

static unsigned called;

static void compute(void)
{
	uint64_t end = passed(PASSED_MPI) + 200;
	double give_up = now_s() + 30;

	called++;
	while (!wrong && passed(PASSED_MPI) < end && now_s() < give_up)
		forbidden_spin(10000);
}

static void copies(integer *object, integer *key, address *extra, address *in, address *out, integer *flag,
		   integer *error)
{
	(void)object, (void)key, (void)extra;
	compute();
	*flag = 1;
	*out = *in;
	*error = MPI_SUCCESS;
}

static void deletes(integer *object, integer *key, address *value, address *extra, integer *error)
{
	(void)object, (void)key, (void)value, (void)extra;
	compute();
	*error = MPI_SUCCESS;
}

static int failures;

static void check(const char *what, unsigned calls)
{
	printf("%-22s called %u times, %lu times progress in it\n", what, called, (unsigned long)wrong);
	failures += called != calls || wrong;
	called = 0;
	wrong = 0;
}

int main(int argc, char **argv)
{
	void *copy_function = (void *)(uintptr_t)copies, *delete_function = (void *)(uintptr_t)deletes;
	integer key, error, comm, type, copy;
	address value = 7, extra = 0;
	MPI_Datatype two;
	MPI_Comm mine;

	init_mpi(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	MPI_Comm_dup(MPI_COMM_SELF, &mine);
	comm = MPI_Comm_c2f(mine);
	mpi_comm_create_keyval_(copy_function, delete_function, &key, &extra, &error);
	mpi_comm_set_attr_(&comm, &key, &value, &error);
	check("mpi_comm_set_attr", 0);
	mpi_comm_set_attr_(&comm, &key, &value, &error);
	check("mpi_comm_set_attr", 1);
	mpi_comm_dup_(&comm, &copy, &error);
	check("mpi_comm_dup", 1);
	mpi_comm_free_(&copy, &error);
	check("mpi_comm_free", 1);
	mpi_comm_delete_attr_(&comm, &key, &error);
	check("mpi_comm_delete_attr", 1);
	MPI_Type_contiguous(2, MPI_INT, &two);
	type = MPI_Type_c2f(two);
	mpi_type_create_keyval_(copy_function, delete_function, &key, &extra, &error);
	mpi_type_set_attr_(&type, &key, &value, &error);
	mpi_type_set_attr_(&type, &key, &value, &error);
	check("mpi_type_set_attr", 1);
	mpi_type_dup_(&type, &copy, &error);
	check("mpi_type_dup", 1);
	mpi_type_free_(&copy, &error);
	check("mpi_type_free", 1);
	mpi_type_free_(&type, &error);
	check("mpi_type_free", 1);
	MPI_Comm_free(&mine);
	MPI_Finalize();
	return failures != 0;
}
