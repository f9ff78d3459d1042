/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 2 */
/* Templates with MPI_THREAD_MULTIPLE: the daemon pushes; and whatever is done to a request while another thread marks
 * it. */
#include <pthread.h>

#include "template.h"

#define ROUNDS 300
#define THREADS 3

static MPIX_Gr gr;
static volatile double sink;

static void check_daemon(void)
{
	CHECK_EQ(contd_daemon_start(NULL), 0);
	for (int round = 0; round < 10; round++) {
		struct exchange e = {.tag = 1 + round, .pieces = 3};
		double x = 1;

		exchange_begin(gr, &e);
		while (!atomic_load(&e.marked)) /* no call, and no region */
			x = x * 1.000001 + 1e-9;
		sink = x;
		CHECK_EQ(e.completes, 0);
		exchange_wait(&e);
	}
	CHECK_EQ(contd_daemon_stop(), 0);
}

/* Two threads, and what the other one is to mark. */
static struct exchange contested[ROUNDS];
static atomic_int given, stop;

static void *marker(void *arg)
{
	int seen = 0;

	while (!atomic_load(&stop)) {
		if (atomic_load(&given) == seen)
			continue;
		CHECK_OK(MPIX_Mark_request_complete(contested[seen].request));
		seen++;
	}
	return arg;
}

static void with_marker(const char *name, void (*round)(struct exchange *e))
{
	pthread_t thread;

	check_begin(name);
	memset(contested, 0, sizeof(contested));
	given = stop = 0;
	pthread_create(&thread, NULL, marker, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		struct exchange *e = &contested[i];

		e->never_ends = true;
		exchange_begin(gr, e);
		atomic_store(&given, i + 1);
		for (int k = i % 64; k > 0; k--)
			sink = sink + 1;
		round(e);
		exchange_over(e);
	}
	stop = 1;
	pthread_join(thread, NULL);
}

static void waits(struct exchange *e)
{
	MPI_Request handle = e->request;

	CHECK_OK(MPI_Wait(&handle, MPI_STATUS_IGNORE));
}

static void tests(struct exchange *e)
{
	MPI_Request handle = e->request;
	int flag = 0;

	while (!flag)
		CHECK_OK(MPI_Test(&handle, &flag, MPI_STATUS_IGNORE));
	CHECK(handle == MPI_REQUEST_NULL);
}

static void frees(struct exchange *e)
{
	MPI_Request handle = e->request;

	CHECK_OK(MPI_Request_free(&handle));
	while (!atomic_load(&e->completes))
		contd_poll(0);
	CHECK(e->null_status);
}

static void cancels(struct exchange *e)
{
	MPI_Request handle = e->request;

	CHECK_OK(MPIX_Cancel(&handle));
	CHECK_OK(MPI_Wait(&handle, MPI_STATUS_IGNORE));
	CHECK_EQ(e->cancels, 1);
}

static MPI_Request cr;

static void before_complete(MPI_Status *status, void *data)
{
	struct exchange *e = data;

	CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
	CHECK_EQ(e->completes, 0);
	atomic_fetch_add(&e->cancels, 1);
}

static void attaches(struct exchange *e)
{
	MPI_Request handle = e->request;
	MPI_Status status;

	CHECK_OK(MPI_Continue(&handle, before_complete, e, &status, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(e->cancels, 1);
}

/* Each thread has its requests, and all of them push all requests, the daemon too. */
static void *exchanges(void *arg)
{
	int thread = *(int *)arg;
	MPI_Request own = check_plain_cr();

	for (int i = 0; i < 30; i++) {
		struct exchange e = {.tag = 1000 * (thread + 1) + i, .pieces = 2};

		exchange_begin(gr, &e);
		if (i % 2) {
			exchange_wait(&e);
		} else {
			MPI_Request handle = e.request;
			MPI_Status status;

			CHECK_OK(MPI_Continue(&handle, before_complete, &e, &status, own));
			CHECK_OK(MPI_Wait(&own, MPI_STATUS_IGNORE));
			exchange_over(&e);
		}
	}
	CHECK_OK(MPI_Request_free(&own));
	return NULL;
}

static void check_threads(void)
{
	pthread_t threads[THREADS];
	int numbers[THREADS];

	CHECK_EQ(contd_daemon_start(NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, exchanges, &numbers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(contd_daemon_stop(), 0);
}

/* Calls that do not block may be made in complete_fn. */
static int calls_mpi(struct exchange *e)
{
	MPI_Request r;
	int flag, size = 0;

	(void)e;
	CHECK_OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	CHECK_EQ(size, check_size);
	CHECK_OK(MPI_Irecv(&flag, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &r));
	CHECK_OK(MPI_Iprobe(0, 9, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Cancel(&r));
	CHECK_OK(MPI_Request_free(&r));
	return MPI_SUCCESS;
}

static void check_calls_in_complete(void)
{
	for (int i = 0; i < 20; i++) {
		struct exchange e = {.tag = 30 + i, .pieces = 1, .in_complete = calls_mpi};
		MPI_Request handle;

		exchange_begin(gr, &e);
		if (i % 2) {
			exchange_wait(&e);
			continue;
		}
		handle = e.request;
		CHECK_OK(MPI_Request_free(&handle));
		while (!atomic_load(&e.completes))
			contd_poll(0);
		exchange_over(&e);
	}
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	gr = exchange_template();
	cr = check_plain_cr();
	check_begin("the daemon");
	check_daemon();
	with_marker("marked, and waited for", waits);
	with_marker("marked, and tested", tests);
	with_marker("marked, and freed", frees);
	with_marker("marked, and cancelled", cancels);
	with_marker("marked, and attached to", attaches);
	check_begin("several threads, and the daemon");
	check_threads();
	check_begin("MPI calls in complete_fn");
	check_calls_in_complete();
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_OK(MPIX_Gr_free(&gr));
	return check_fini();
}
