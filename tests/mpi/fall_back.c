/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* one host: each host has a rank that says it */
/* not on mpich: it has no native backend to fall back from */
/*
 * Where the native backend does not know the MPI library, contd says that it takes the portable one: one rank says it,
 * and how many ranks there are.
 */
#include "check.h"

/* contd's call comes here, because the program is looked through first. */
int PMPI_Get_library_version(char *version, int *length)
{
	*length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Open MPI v2.0.1, of this test");
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *wanted = getenv("CONTD_MPI_BACKEND");
	bool falls = !wanted || strcmp(wanted, "portable") != 0;
	int mine[2], all[2] = {-1, -1}, saved;
	char said[4096], ranks[64];
	MPI_Request cr;
	FILE *file;

	if (falls)
		unsetenv("CONTD_MPI_BACKEND"); /* tests have "native" there, so as not to fall back */
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("the first call");
	file = tmpfile();
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	cr = check_cr(NULL, NULL, NULL, NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	fputs(said, stderr);
	CHECK(strcmp(contd_mpi_backend(NULL), "portable") == 0);
	snprintf(ranks, sizeof(ranks), "on this host; the job has %d)", check_size);
	mine[0] = strstr(said, "continuations use the portable backend, which is slower") != NULL;
	mine[1] = strstr(said, ranks) != NULL;
	MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK_EQ(all[0], falls);
	CHECK_EQ(all[1], falls && check_size > 1);
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
