/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 5 16 */
/* examples/treereduce, compared with MPI_Reduce and MPI_Ireduce: with continuations, or by threads as its other half
 * says. */
#ifndef FORM
#define FORM "continuations"
#endif

int treereduce_main(int argc, char **argv);

#define main treereduce_main
#include "../../examples/treereduce/reduce.c"
#include "../../examples/treereduce/treereduce.c"
#undef main

int main(void)
{
	static char name[] = "treereduce", form[] = "--form", which[] = FORM, count[] = "--count", n[] = "40";
	static char rounds[] = "--rounds", r[] = "25", check[] = "--check";
	char *argv[] = {name, form, which, count, n, rounds, r, check, NULL};

	return treereduce_main(8, argv);
}
