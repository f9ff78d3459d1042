/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/* A separate thread communicates for the others, with MPI_THREAD_SERIALIZED. */
#include "modes_one_thread.h"

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SERIALIZED);
	check_unbind();
	one_thread(false);
	return check_fini();
}
