/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* environment: CONTD_STATS=exit */
/* CONTD_STATS: MPI_Finalize writes one line, with this rank and the backend. */
#include "check.h"

static char said[1 << 14];

static void cb(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
}

static void has(const char *text)
{
	if (!CHECK(strstr(said, text) != NULL))
		fprintf(stderr, "no %s in %s\n", text, said);
}

int main(int argc, char **argv)
{
	MPI_Request cr, none = MPI_REQUEST_NULL;
	char text[64];
	int runs = 0, saved, sum;
	FILE *file;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	cr = check_cr(NULL, NULL, NULL, NULL);
	for (int i = 0; i < 3; i++)
		CHECK_OK(MPI_Continue(&none, cb, &runs, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 3);
	CHECK_OK(MPI_Request_free(&cr));
	sum = check_sum();

	check_begin("MPI_Finalize");
	file = tmpfile();
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	MPI_Finalize();
	dup2(saved, STDERR_FILENO);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	CHECK(strncmp(said, "contd: [", 8) == 0 && strchr(said, '\n') == said + strlen(said) - 1);
	snprintf(text, sizeof(text), "] stats {\"contd\":\"");
	has(text);
	snprintf(text, sizeof(text), "\"rank\":%d,", check_rank);
	has(text);
	has(check_native() ? "\"mpi_backend\":\"native\"" : "\"mpi_backend\":\"portable\"");
	has("\"registered\":3,\"run\":3,");
	has("\"never_ran\":0,");
	return sum || atomic_load(&check_failures);
}
