/* SPDX-License-Identifier: BSD-3-Clause */
/* From the first call to MPI_Finalize: which backend, the thread level, and the orderly end. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "mpi/backend.h"

const struct contd__mpi_backend *contd__mpi;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static int thread_level;
static __thread int is_main __attribute__((tls_model("initial-exec"))); /* 1: asked, and it is MPI's main thread */

int contd__mpi_error(int class)
{
	PMPI_Comm_call_errhandler(MPI_COMM_SELF, class);
	return class;
}

int contd__mpi_class(int err)
{
	switch (err) {
	case 0:
		return MPI_SUCCESS;
	case -ENOMEM:
	case -ENOSPC:
		return MPI_ERR_NO_MEM;
	case -EINVAL:
		return MPI_ERR_ARG;
	case -EBUSY:
	case -ELOOP:
		return MPI_ERR_REQUEST;
	default:
		return MPI_ERR_OTHER;
	}
}

/*
 * In a compute region, or when a thread polls contd, MPI may be entered where the level that was granted lets this
 * thread do so: any thread with MPI_THREAD_MULTIPLE, else the main thread. (With MPI_THREAD_SERIALIZED contd cannot see
 * whether another thread is inside MPI, so only the main thread's regions drive it: MPI 4.1, 11.6.)
 */
bool contd__mpi_thread_may(void)
{
	return thread_level == MPI_THREAD_MULTIPLE || is_main;
}

/* Called in MPI_Finalize before anything else is taken down: MPI 4.1, 11.10.4. */
static int at_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
	uint32_t left;

	(void)comm, (void)keyval, (void)value, (void)extra;
	if (contd__load(&contd__dispatch.forked))
		return MPI_SUCCESS;
	left = contd__mpi->stop();
	contd__mpi = NULL;
	if (left)
		fprintf(stderr, "contd: MPI_Finalize: %u continuation%s never ran, since what %s waited for did not complete\n",
			left, left == 1 ? "" : "s", left == 1 ? "it" : "they");
	contd_fini();
	return MPI_SUCCESS;
}

static int watch_finalize(void)
{
	int keyval;

	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL) ||
	    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL) || PMPI_Comm_free_keyval(&keyval))
		return MPI_ERR_OTHER;
	return MPI_SUCCESS;
}

static int start_locked(void)
{
	const char *why = contd__mpi_native.refuses();
	int rc, main_thread = 0;

	if (why) {
		fprintf(stderr, "contd: cannot work with this MPI: %s\n", why);
		return MPI_ERR_OTHER;
	}
	PMPI_Query_thread(&thread_level);
	PMPI_Is_thread_main(&main_thread);
	is_main = main_thread;
	rc = contd_init(NULL);
	if (rc) {
		fprintf(stderr, "contd: %s\n", contd_error_text());
		return contd__mpi_class(rc);
	}
	rc = contd__mpi_native.start(thread_level);
	if (!rc)
		rc = watch_finalize();
	if (rc) {
		contd_fini();
		return rc;
	}
	contd__store_release(&contd__mpi, &contd__mpi_native);
	return MPI_SUCCESS;
}

const struct contd__mpi_backend *contd__mpi_start(int *errp)
{
	/* Acquire: pairs with the release in start_locked. */
	const struct contd__mpi_backend *backend = contd__load_acquire(&contd__mpi);
	int initialized = 0, finalized = 0, main_thread = 0;

	PMPI_Initialized(&initialized);
	PMPI_Finalized(&finalized);
	if (!initialized || finalized) {
		fprintf(stderr, "contd: MPI_Continue* was called %s\n", finalized ? "after MPI_Finalize" : "before MPI_Init");
		*errp = MPI_ERR_OTHER;
		return NULL;
	}
	if (contd__load(&contd__dispatch.forked)) {
		*errp = contd__mpi_error(MPI_ERR_OTHER);
		return NULL;
	}
	if (!backend) {
		int rc;

		pthread_mutex_lock(&start_lock);
		rc = contd__mpi ? MPI_SUCCESS : start_locked();
		backend = contd__mpi;
		pthread_mutex_unlock(&start_lock);
		if (rc) {
			*errp = contd__mpi_error(rc);
			return NULL;
		}
	}
	PMPI_Is_thread_main(&main_thread);
	is_main = main_thread;
	return backend;
}
