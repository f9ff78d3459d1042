/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* one host: the ranks have memory in common */
/*
 * Compute regions do for continuations that are not async-signal-safe, at every thread level, what one info key does
 * for those that are: no thread calls anything while it computes, and yet callbacks that allocate and print run. At
 * levels below MPI_THREAD_MULTIPLE it is the main thread's region in which MPI makes progress; there, callbacks call
 * MPI, too.
 */
#ifdef _OPENMP
#include <omp.h>
#endif

#include "one_key_common.h"

#ifndef LEVEL
#define LEVEL MPI_THREAD_MULTIPLE
#endif

#define ROUNDS 4
#define ANSWER 100

static pthread_t main_thread;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static MPI_Request continuation_request[THREADS_MAX];
static atomic_int answers;

/* No handler may do this outside regions. */
static void arrived(MPI_Status *status, void *data)
{
	struct mine *m = data;
	char *text = NULL, answer = 1;
	size_t length = 0;
	FILE *f = open_memstream(&text, &length);

	fprintf(f, "message %d", status->MPI_TAG);
	fclose(f);
	if (length != 9 || text[8] != '0' + (int)(m - mine))
		atomic_store(&m->bad, 1);
	free(text);
	/* Each rank's thread may, where MPI allows it to. */
	if (LEVEL == MPI_THREAD_MULTIPLE || pthread_equal(pthread_self(), main_thread)) {
		MPI_Send(&answer, 1, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD);
		atomic_fetch_add(&answers, 1);
	}
	note_run(m, status);
	atomic_fetch_add(&total, 1);
}

static void post(int i)
{
	struct mine *m = &mine[i];
	MPI_Request r;

	continuation_request[i] = check_plain_cr();
	MPI_Irecv(m->buffer, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, arrived, m, &m->status, continuation_request[i]));
}

static void finish(int i)
{
	CHECK_OK(MPI_Wait(&continuation_request[i], MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&continuation_request[i]));
}

/* Below MPI_THREAD_SERIALIZED the main thread has posted for all, and finishes for all. */
static void receiver(int i)
{
	bool done;

	mine[i].thread = pthread_self();
	if (LEVEL == MPI_THREAD_MULTIPLE) {
		post(i);
	} else if (LEVEL == MPI_THREAD_SERIALIZED) {
		pthread_mutex_lock(&turn);
		post(i);
		pthread_mutex_unlock(&turn);
		/* No thread is in MPI when the main one's region begins, in which MPI is driven. */
		atomic_fetch_add(&shared->posted, 1);
		while (atomic_load(&shared->posted) < threads * round_number)
			sched_yield();
	}
	CHECK_EQ(contd_thread_attach(NULL), 0); /* contd runs since the first MPI_Continue_init */
	contd_compute_begin();
	done = compute(i);
	contd_compute_end();
	CHECK(done);
	CHECK_EQ(contd_thread_detach(), 0);
	if (LEVEL == MPI_THREAD_MULTIPLE)
		finish(i);
}

static void receive(void)
{
	bool each_its_own = LEVEL == MPI_THREAD_MULTIPLE || LEVEL == MPI_THREAD_SERIALIZED;

	for (int i = 0; i < threads && !each_its_own; i++)
		post(i);
	run_threads(receiver);
	for (int i = 0; i < threads && LEVEL != MPI_THREAD_MULTIPLE; i++)
		finish(i);
	round_check();
}

int main(int argc, char **argv)
{
	static const int sizes[] = {0, 8, 64 << 10, LARGE};
	struct contd_stats s = {.size = sizeof(s)};

	one_key_begin(&argc, &argv, LEVEL, LEVEL == MPI_THREAD_SINGLE ? 1 : THREADS_MAX);
	main_thread = pthread_self();
	for (int i = 0; i < ROUNDS; i++) {
		int sent = 0;

		check_begin("all threads compute in regions");
		round_begin(i + 1, sizes[i % 4]);
		atomic_store(&answers, 0);
		if (check_rank == 0)
			send_when_all_compute();
		else
			receive();
		sent = atomic_load(&answers);
		MPI_Bcast(&sent, 1, MPI_INT, 1, MPI_COMM_WORLD);
		for (int k = 0; check_rank == 0 && k < sent; k++) {
			char answer = 0;

			MPI_Recv(&answer, 1, MPI_BYTE, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_EQ(answer, 1);
		}
		CHECK(sent <= threads && (sent == threads || LEVEL != MPI_THREAD_MULTIPLE));
	}
	if (check_rank == 1) {
		CHECK_EQ(contd_stats_get(&s), 0);
		CHECK_EQ(s.run_region, ROUNDS * threads);
		CHECK_EQ(s.run, s.run_region);
	}
	return check_fini();
}
