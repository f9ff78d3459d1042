/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of f08_stopped.f90 that is in C: memory that must not be written, and the other thread. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include <contd/mpi.h>

#define BYTES 65536
#define BOUND_MS 20000 /* after which the other thread is taken for one that waits */
#define TESTS 100

MPI_Fint *stopped_begin(void);
void stopped_arm(MPI_Fint cr, int count);
int stopped_good(void);
void stopped_end(void);

enum { IDLE, ARMED, STOPPED, TESTED, END };

static atomic_int state, good, messages;
static MPI_Request request;
static void *memory;
static pthread_t other;

static void nap(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	nanosleep(&ms, NULL);
}

/* Who writes there is stopped here. */
static void on_fault(int signo, siginfo_t *info, void *context)
{
	char *at = info->si_addr, *from = memory;

	(void)context;
	if (at < from || at >= from + BYTES) {
		signal(signo, SIG_DFL);
		return;
	}
	if (atomic_load(&state) == ARMED) {
		atomic_store(&state, STOPPED);
		for (int i = 0; i < BOUND_MS && atomic_load(&state) == STOPPED; i++)
			nap();
		atomic_store(&good, atomic_load(&state) == TESTED);
	}
	mprotect(memory, BYTES, PROT_READ | PROT_WRITE);
}

static void *main_of_other(void *data)
{
	while (atomic_load(&state) != END) {
		int flag, i;

		if (atomic_load(&state) != STOPPED) {
			nap();
			continue;
		}
		for (i = 1; i <= atomic_load(&messages); i++)
			MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF);
		for (i = flag = 0; i < TESTS && !flag; i++)
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		atomic_store(&state, TESTED);
	}
	return data;
}

MPI_Fint *stopped_begin(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &action, NULL);
	pthread_create(&other, NULL, main_of_other, NULL);
	return memory;
}

void stopped_arm(MPI_Fint cr, int count)
{
	request = MPI_Request_f2c(cr);
	atomic_store(&messages, count);
	atomic_store(&good, 0);
	mprotect(memory, BYTES, PROT_READ);
	atomic_store(&state, ARMED);
}

int stopped_good(void)
{
	return atomic_load(&good);
}

void stopped_end(void)
{
	atomic_store(&state, END);
	pthread_join(other, NULL);
}
