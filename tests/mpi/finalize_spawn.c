/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* environment: OMPI_MCA_btl_tcp_if_include=lo */
/* not on mpich: MPICH 4.0.2 of Debian 12 cannot spawn, "not supported with ucx netmod" */
/* one host: contd counts the launcher's processes on it */
/*
 * Rank 1 starts another program, which still runs when rank 1 calls MPI_Finalize; rank 0 has called it before. Both
 * must come to the same result about the job: the other program is not of it. As in a job of several commands: without
 * OMPI_COMMAND contd looks at the launcher's processes.
 */
#include <limits.h>

#include "check.h"

static void child(const char *file, MPI_Comm parent)
{
	MPI_Comm_disconnect(&parent);
	check_begin("the other program");
	for (int i = 0; i < 1000 && access(file, F_OK) == 0; i++)
		usleep(10000);
	CHECK(access(file, F_OK) != 0);
}

static void spawn(char *program, char *file)
{
	int fd = mkstemp(file), error = -1;
	char *args[] = {file, NULL};
	MPI_Comm children;

	CHECK(fd >= 0);
	close(fd);
	sleep(1); /* rank 0 is in MPI_Finalize, and has looked */
	MPI_Comm_spawn(program, args, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, &error);
	CHECK_EQ(error, MPI_SUCCESS);
	MPI_Comm_disconnect(&children);
}

int main(int argc, char **argv)
{
	const char *folder = getenv("TMPDIR");
	char file[PATH_MAX], program[PATH_MAX] = "";
	MPI_Comm parent;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		child(argv[1], parent);
		return check_fini();
	}
	unsetenv("OMPI_COMMAND");
	check_sum();
	check_begin("MPI_Comm_spawn");
	if (check_rank == 1) {
		CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
		snprintf(file, sizeof(file), "%s/contd-finalize-spawn-XXXXXX", folder ? folder : "/tmp");
		spawn(program, file);
	}
	check_begin("MPI_Finalize");
	CHECK_OK(MPI_Finalize());
	if (check_rank == 1)
		unlink(file);
	return check_failures != 0;
}
