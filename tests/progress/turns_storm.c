/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads and real progress, very often: each two ranks exchange messages from several threads, which come and
 * go, and allocate, print, load libraries and fork in between. No message gets lost or changed, and nothing hangs. At
 * MPI_THREAD_SERIALIZED they take turns; at MPI_THREAD_MULTIPLE they do not, and at last one is in MPI all the time.
 *
 *     turns_storm SECONDS [multiple]
 */
#include <mpi.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

#define THREADS 3
#define LAST_TAG 100
#define MOST (200 * 1024)

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool multiple;
static int rank, peer, failures;
static FILE *sink;

struct work {
	int number, rounds;
	unsigned seed;
	unsigned char *sent, *got;
};

static unsigned chance(struct work *w, unsigned n)
{
	w->seed = w->seed * 1103515245u + 12345u;
	return (w->seed >> 8) % n;
}

static void do_something(struct work *w)
{
	void *block[8], *handle;
	pid_t child;

	switch (chance(w, 6)) {
	case 0:
		for (int i = 0; i < 8; i++)
			block[i] = malloc(1 + chance(w, 5000));
		for (int i = 0; i < 8; i++)
			free(block[i]);
		break;
	case 1:
		flockfile(sink);
		fprintf(sink, "%d\n", w->number);
		spin(chance(w, 2000));
		funlockfile(sink);
		break;
	case 2:
		if (chance(w, 4) == 0 &&
		    (handle = dlopen(chance(w, 2) ? "libresolv.so.2" : "./none.so", RTLD_NOW)) != NULL)
			dlclose(handle);
		break;
	case 3:
		if (chance(w, 20) == 0 && (child = fork()) >= 0) {
			if (child == 0) {
				free(malloc(100));
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
		break;
	default:
		spin(chance(w, 200000));
	}
}

static int size_of(unsigned number, int round)
{
	return 1 + (int)((number * 7919u + (unsigned)round * 104729u) % MOST);
}

static void my_turn(void)
{
	if (!multiple)
		pthread_mutex_lock(&turn);
}

static void over(void)
{
	if (!multiple)
		pthread_mutex_unlock(&turn);
}

static void exchange(struct work *w, int round)
{
	int size = size_of((unsigned)w->number, round), done = 0;
	unsigned char value = (unsigned char)(rank + w->number * 3 + round), other;
	MPI_Request request[2];

	other = (unsigned char)(peer + w->number * 3 + round);
	memset(w->sent, value, (size_t)size);
	memset(w->got, 0, (size_t)size);
	my_turn();
	MPI_Irecv(w->got, size, MPI_CHAR, peer, w->number, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(w->sent, size, MPI_CHAR, peer, w->number, MPI_COMM_WORLD, &request[1]);
	over();
	while (!done) {
		do_something(w);
		if (multiple && chance(w, 8) == 0) {
			MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
			break;
		}
		my_turn();
		MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE);
		over();
	}
	for (int i = 0; i < size; i++)
		if (w->got[i] != other) {
			printf("rank %d, thread %d, round %d: byte %d is %d\n", rank, w->number, round, i, w->got[i]);
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
			break;
		}
}

static void *work(void *data)
{
	struct work *w = data;

	for (int i = 0; i < 20; i++)
		exchange(w, w->rounds++);
	return NULL;
}

/* For as long as the peer likes: it must make progress for the others. */
static void *receives(void *byte)
{
	MPI_Recv(byte, 1, MPI_CHAR, peer, LAST_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return NULL;
}

static void run(struct work *w, double seconds)
{
	double end = now_s() + seconds;
	pthread_t thread[THREADS];
	int more;

	do {
		for (int i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, work, &w[i]);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		more = now_s() < end;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	} while (more);
}

int main(int argc, char **argv)
{
	struct work w[THREADS];
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	pthread_t thread;
	char byte = 1, got;
	int level, size;

	multiple = argc > 2 && !strcmp(argv[2], "multiple");
	MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if ((level > MPI_THREAD_SERIALIZED) != multiple || size % 2) {
		printf("this MPI has no such level, or the number of ranks is odd\n");
		MPI_Finalize();
		return 77;
	}
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	sink = fopen("/dev/null", "w");
	peer = rank ^ 1;
	for (int i = 0; i < THREADS; i++)
		w[i] = (struct work){i, 0, (unsigned)(rank * 10 + i), malloc(MOST), malloc(MOST)};
	run(w, seconds);
	printf("rank %d: %d rounds, %lu times progress\n", rank, w[0].rounds, (unsigned long)passed(PASSED_NOT));
	if (!passed(PASSED_NOT))
		failures++;
	if (multiple) {
		pthread_create(&thread, NULL, receives, &got);
		run(w, seconds / 4);
		MPI_Send(&byte, 1, MPI_CHAR, peer, LAST_TAG, MPI_COMM_WORLD);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < THREADS; i++) {
		free(w[i].sent);
		free(w[i].got);
	}
	MPI_Finalize();
	return failures != 0;
}
