/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/* The main thread communicates for the others, with MPI_THREAD_FUNNELED. */
#include "modes_one_thread.h"

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	check_unbind();
	one_thread(true);
	return check_fini();
}
