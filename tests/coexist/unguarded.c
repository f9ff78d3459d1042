/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why contd is needed: a timer's handler that calls MPI, in a program that exchanges messages all the time.
 *
 * usage: unguarded nothing|test|contd SECONDS
 *   nothing  no timer: the exchange alone
 *   test     a timer signal every 100 us, whose handler calls MPI_Test on a receive that is pending all the time
 *   contd    the same receive has a continuation, and contd ticks as fast as it can: the exchange goes on
 *
 * MPI_THREAD_MULTIPLE: no lock of MPI's helps against the thread that holds it. Prints "begun" and "finished"; a rank
 * that has made no progress for a while says so and ends with 98. The script "negative" looks at what comes of it.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include <contd/contd.h>
#include <contd/mpi.h>

#define INTS 8192
#define PERIOD_NS 100000
#define TAG 1
#define TAG_LAST 2

static atomic_ulong progress, handled;
static atomic_int arrived, hang_seconds, ended;
static int rank, pending_value;
static MPI_Request pending = MPI_REQUEST_NULL;

static void *watch(void *data)
{
	unsigned long seen = 0;
	int idle = 0;

	(void)data;
	while (!atomic_load(&ended)) {
		unsigned long now = atomic_load(&progress);

		idle = now == seen ? idle + 1 : 0;
		seen = now;
		if (idle >= 10 * atomic_load(&hang_seconds)) {
			fprintf(stderr, "rank %d: no progress since exchange %lu, %lu signals were handled\n", rank,
				now, atomic_load(&handled));
			fflush(stderr);
			_exit(98);
		}
		usleep(100000);
	}
	return NULL;
}

/* This must not be done. */
static void on_timer(int signo)
{
	int flag;

	(void)signo;
	MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
	atomic_fetch_add(&handled, 1);
}

static void timer_begin(timer_t *timer)
{
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	struct itimerspec on = {{0, PERIOD_NS}, {0, PERIOD_NS}};
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};

#ifdef sigev_notify_thread_id
	ev.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
#else
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
#endif
	sigaction(SIGRTMIN, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, timer) || timer_settime(*timer, 0, &on, NULL)) {
		perror("timer");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static void on_arrival(MPI_Status *status, void *data)
{
	(void)status;
	(void)data;
	atomic_fetch_add(&arrived, 1);
}

static void never(int status, void *data)
{
	(void)status;
	(void)data;
}

/* Rank 0's clock says when it is over; both find it in the message. */
static bool exchange(unsigned long number, time_t until, bool region)
{
	static int in[INTS], out[INTS];
	int count = number % 16 ? 2 + (int)(number * 37 % 500) : INTS, other = 1 - rank, over;
	MPI_Request r[2];

	over = time(NULL) >= until;
	for (int i = 1; i < count; i++)
		out[i] = (int)number + i;
	out[0] = over;
	MPI_Irecv(in, count, MPI_INT, other, TAG, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(out, count, MPI_INT, other, TAG, MPI_COMM_WORLD, &r[1]);
	if (region) {
		contd_compute_begin();
		for (volatile int i = 0; i < 20000; i++)
			;
		contd_compute_end();
	}
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	for (int i = 1; i < count; i++) {
		if (in[i] != (int)number + i) {
			fprintf(stderr, "rank %d: exchange %lu: wrong data\n", rank, number);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	atomic_fetch_add(&progress, 1);
	return rank == 0 ? over : in[0];
}

int main(int argc, char **argv)
{
	bool test = argc == 3 && strcmp(argv[1], "test") == 0, contd = argc == 3 && strcmp(argv[1], "contd") == 0;
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_group *group = NULL;
	struct contd_stats s = {.size = sizeof(s)};
	MPI_Request cr = MPI_REQUEST_NULL;
	int level, size, last = 5;
	sigset_t all, before;
	pthread_t watcher;
	unsigned long n = 0;
	timer_t timer = 0;
	time_t until;

	if (argc != 3) {
		fprintf(stderr, "usage: %s nothing|test|contd SECONDS\n", argv[0]);
		return 2;
	}
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2 || level < MPI_THREAD_MULTIPLE) {
		MPI_Finalize();
		return 77;
	}
	atomic_store(&hang_seconds, test ? 4 : 40);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&watcher, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);

	MPI_Irecv(&pending_value, 1, MPI_INT, 1 - rank, TAG_LAST, MPI_COMM_WORLD, &pending);
	if (contd) {
		MPI_Info info;

		MPI_Info_create(&info);
		MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
		MPI_Continue_init(info, &cr);
		MPI_Info_free(&info);
		MPI_Continue(&pending, on_arrival, NULL, MPI_STATUS_IGNORE, cr);
		/* It never holds: ticks outside regions as well. */
		if (contd_group_create(NULL, &group) || contd_word_continue(&w, never, NULL, group, NULL))
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("begun\n");
		fflush(stdout);
	}
	if (test)
		timer_begin(&timer);
	until = time(NULL) + atoi(argv[2]);
	while (!exchange(n++, until, contd))
		;
	if (test)
		timer_delete(timer);
	MPI_Send(&last, 1, MPI_INT, 1 - rank, TAG_LAST, MPI_COMM_WORLD);
	if (contd) {
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
		contd_stats_get(&s);
		if (atomic_load(&arrived) != 1 || s.ticks < 1000) {
			fprintf(stderr, "rank %d: %d arrivals, %llu ticks\n", rank, atomic_load(&arrived),
				(unsigned long long)s.ticks);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		word = 1;
		contd_group_wait(group, -1);
		contd_group_destroy(group);
		MPI_Request_free(&cr);
	} else {
		MPI_Wait(&pending, MPI_STATUS_IGNORE);
	}
	if (pending_value != 5)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("finished: %lu exchanges, %lu signals handled, %llu ticks\n", n,
		       (unsigned long)atomic_load(&handled), (unsigned long long)s.ticks);
	atomic_store(&ended, 1);
	pthread_join(watcher, NULL);
	MPI_Finalize();
	return 0;
}
