/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* A revised continuation that runs in the attaching call and fails, again and again: memory does not grow. */
#include "check.h"

#define WARM_UP 5000
#define ROUNDS 20000
#define MOST_KIB 512

static int ran;

static int fails(int error, void *data)
{
	(void)error, (void)data;
	ran++;
	return MPI_ERR_OTHER;
}

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void round_of(MPI_Request cr)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int failed = 2, class;
	void *data[2];

	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
	MPI_Error_class(MPI_Wait(&cr, MPI_STATUS_IGNORE), &class);
	CHECK_EQ(class, MPI_ERR_OTHER);
	CHECK_OK(MPIX_Continue_get_failed(cr, &failed, data));
	CHECK_EQ(failed, 1);
}

int main(int argc, char **argv)
{
	MPI_Request cr;
	long before, after;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("continuations that fail at attach");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	for (int i = 0; i < WARM_UP; i++)
		round_of(cr);
	before = resident_kib();
	for (int i = 0; i < ROUNDS; i++)
		round_of(cr);
	after = resident_kib();
	CHECK_EQ(ran, WARM_UP + ROUNDS);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* these keep what is freed for a while */
	if (!CHECK(after - before < MOST_KIB))
		fprintf(stderr, "resident: %ld KiB, then %ld KiB\n", before, after);
#else
	(void)before, (void)after;
#endif
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
