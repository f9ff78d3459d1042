/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real progress by very many ticks, in a program that allocates, sorts, prints, handles signals, jumps and forks
 * between its calls of MPI: no message gets lost or changed, and nothing hangs. Each two ranks exchange messages.
 *
 *     storm SECONDS [LEAST]     LEAST: so many ticks must have made progress (default: 1000)
 */
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

#define MESSAGES 6
#define MOST (300 * 1024)

static unsigned char *sent[MESSAGES], *got[MESSAGES];
static unsigned seed;
static int rank, peer;

static unsigned chance(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % n;
}

static sigjmp_buf out;

static void on_signal(int signo)
{
	spin(chance(3000));
	if (signo == SIGUSR2)
		siglongjmp(out, 1);
}

static int by_value(const void *a, const void *b)
{
	void *p = malloc(24);

	spin(50);
	free(p);
	return *(const int *)a - *(const int *)b;
}

static void do_something(FILE *sink)
{
	static int numbers[200];
	static char *text;
	pid_t child;

	switch (chance(8)) {
	case 0:
		for (int i = 0; i < 200; i++)
			numbers[i] = (int)chance(1000);
		qsort(numbers, 200, sizeof(int), by_value);
		break;
	case 1:
		for (int i = 0; i < 300; i++) {
			free(text);
			text = malloc(1 + chance(9000));
		}
		break;
	case 2:
		for (int i = 0; i < 100; i++)
			fprintf(sink, "%d %f\n", i, (double)i);
		break;
	case 3:
		raise(SIGUSR1);
		break;
	case 4:
		if (!sigsetjmp(out, 1))
			raise(SIGUSR2);
		break;
	case 5:
		if (chance(20) == 0 && (child = fork()) >= 0) {
			if (child == 0)
				_exit(0);
			waitpid(child, NULL, 0);
		}
		break;
	default:
		spin(chance(1000000));
	}
}

/* What that message of that round has in it. */
static unsigned char content(int from, unsigned round, int i, size_t at)
{
	return (unsigned char)((unsigned)from * 31 + round * 7 + (unsigned)i * 3 + (unsigned)(at >> 8));
}

static unsigned length(int from, unsigned round, int i)
{
	return 1 + (unsigned)(from + 1) * 7919u * (round + 3) * (unsigned)(i + 11) % MOST;
}

int main(int argc, char **argv)
{
	double end = now_s() + (argc > 1 ? atof(argv[1]) : 5);
	int sum = 0, go_on = 1, failures = 0, done, indices[2 * MESSAGES];
	MPI_Request request[2 * MESSAGES], all;
	unsigned long least = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	unsigned round = 0;
	FILE *sink;

	init_mpi(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	peer = rank ^ 1;
	seed = (unsigned)rank + 1;
	sink = fopen("/dev/null", "w");
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	for (int i = 0; i < MESSAGES; i++) {
		sent[i] = malloc(MOST);
		got[i] = malloc(MOST);
	}
	for (; go_on && !failures; round++) {
		int mine = rank != 0 || now_s() < end;

		for (int i = 0; i < MESSAGES; i++)
			MPI_Irecv(got[i], MOST, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[i]);
		do_something(sink);
		for (int i = 0; i < MESSAGES; i++) {
			unsigned n = length(rank, round, i);

			for (unsigned at = 0; at < n; at++)
				sent[i][at] = content(rank, round, i, at);
			MPI_Isend(sent[i], (int)n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[MESSAGES + i]);
			do_something(sink);
		}
		MPI_Iallreduce(&mine, &go_on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &all);
		do_something(sink);
		if (chance(2))
			MPI_Waitall(2 * MESSAGES, request, MPI_STATUSES_IGNORE);
		else
			for (int left = 2 * MESSAGES; left; left -= done) {
				MPI_Testsome(2 * MESSAGES, request, &done, indices, MPI_STATUSES_IGNORE);
				do_something(sink);
			}
		MPI_Wait(&all, MPI_STATUS_IGNORE);
		for (int i = 0; i < MESSAGES; i++)
			for (unsigned at = 0, n = length(peer, round, i); at < n; at++)
				failures += got[i][at] != content(peer, round, i, at);
	}
	MPI_Allreduce(&failures, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d: %u rounds, %d bytes wrong, %lu ticks with progress\n", rank, round, failures,
	       (unsigned long)passed(PASSED_NOT));
	if (passed(PASSED_NOT) < least) {
		printf("rank %d: too few ticks\n", rank);
		sum++;
	}
	MPI_Finalize();
	return sum != 0;
}
