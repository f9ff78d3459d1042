/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI's library for Fortran is loaded by a module for itself alone, as Python loads modules: this library stands in
 * front of some of its calls all the same, and must find them.
 *
 *     fortran_local MODULE
 */
#define _GNU_SOURCE
#include <mpi.h>

#include "closure.h"

int main(int argc, char **argv)
{
	int (*makes_errhandler)(void), (*sets_attribute)(void);
	void *module;
	uint64_t before;
	int failures = 0;

	init_mpi(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	if (dlsym(RTLD_DEFAULT, "mpi_send_")) {
		printf("the library for Fortran is loaded for all\n");
		return 1;
	}
	module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!module) {
		printf("no module: %s\n", dlerror());
		return 1;
	}
	makes_errhandler = (int (*)(void))dlsym(module, "makes_errhandler");
	sets_attribute = (int (*)(void))dlsym(module, "sets_attribute");
	if (!sets_attribute()) {
		printf("no attribute is set\n");
		failures++;
	}
	if (!makes_errhandler()) {
		printf("no error handler is made\n");
		failures++;
	}
	/* MPI's progress might call it. */
	before = passed(PASSED_USER);
	for (double give_up = now_s() + 30; passed(PASSED_USER) == before && now_s() < give_up;)
		spin(20000);
	if (passed(PASSED_USER) == before) {
		printf("the error handler was not seen\n");
		failures++;
	}
	MPI_Finalize();
	return failures != 0;
}
