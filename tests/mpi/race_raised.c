/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* not on mpich: a CR's errors stand in no request of MPI's there */
/* not on portable: as on mpich */
/*
 * Two threads return an error of one CR each at the same time, and not the same: each returns its own. The first stands
 * between the moment when its error is written and Open MPI's look at it; the second has its own to write.
 */
#include "race.h"
#include "errors.h"

static MPI_Request cr;
static atomic_int second_raises;

/* A wait in a continuation of the CR is refused. */
static int waits(int error, void *data)
{
	MPI_Request own = cr;

	(void)error, (void)data;
	CHECK_EQ(class_of(MPI_Wait(&own, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
	CHECK(own == cr);
	return MPI_SUCCESS;
}

static void second(void)
{
	MPI_Request none = MPI_REQUEST_NULL;

	CHECK_OK(MPIX_Continue(&none, waits, NULL, 0, MPI_STATUS_IGNORE, cr));
}

static void on_point(const char *name)
{
	if (strcmp(name, "cr_raise") == 0 && !pthread_equal(pthread_self(), side_thread))
		return;
	if (strcmp(name, "cr_raise") == 0) {
		atomic_store(&second_raises, 1);
	} else if (strcmp(name, "cr_error_set") == 0 && !pthread_equal(pthread_self(), side_thread)) {
		side_start(second);
		while (!atomic_load(&second_raises))
			usleep(20);
		/* It either has written its error soon, or waits for this thread. */
		for (int i = 0; i < 1000 && atomic_load(&side_job); i++)
			usleep(20);
	}
}

int main(int argc, char **argv)
{
	MPI_Request none = MPI_REQUEST_NULL;
	MPI_Status status;
	int flag = 0;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_begin("two errors");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	side_create();
	cr = check_plain_cr();
	CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
	__atomic_store_n(&contd__testpoint_hook, on_point, __ATOMIC_RELEASE);
	status.MPI_ERROR = MPI_SUCCESS;
	CHECK_EQ(class_of(MPI_Test(&cr, &flag, &status)), MPI_ERR_OTHER);
	CHECK(flag);
	CHECK_EQ(status.MPI_ERROR, MPI_ERR_OTHER);
	side_join();
	CHECK_EQ(atomic_load(&second_raises), 1);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	free_failed(cr);
	return check_fini();
}
