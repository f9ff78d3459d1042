/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of MPI that was left by a jump, from an error handler, leaves its mark behind. When the stack grows down
 * again, with the old return address still there, the next call must not be taken for one below the first: no other
 * thread makes progress beside it, and the operation that it begins is counted.
 *
 *     jumped LEVEL     serialized, multiple; with CONTD_PROGRESS_ALLOW=user-code
 */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

EXPORTED void contd_test_progress(void);

static uint32_t inside_mpi, computes;
static uint64_t times, together;
static MPI_Comm comm;
static jmp_buf out;
static bool jumps = true;

/* In the place of MPI's progress. */
void contd_test_progress(void)
{
	times++;
	if (__atomic_load_n(&inside_mpi, __ATOMIC_SEQ_CST))
		together++;
	spin(1000);
}

static void on_error(MPI_Comm *where, int *code, ...)
{
	(void)where, (void)code;
	if (jumps)
		longjmp(out, 1);
	__atomic_store_n(&inside_mpi, 1, __ATOMIC_SEQ_CST);
	for (double until = now_s() + 0.2; now_s() < until;)
		spin(1000);
	__atomic_store_n(&inside_mpi, 0, __ATOMIC_SEQ_CST);
}

/* Far below, so that no call in between uses the place of its frame. */
static __attribute__((noinline)) void fails_far_below(void)
{
	char room[200000];

	__asm__ volatile("" : : "r"(room) : "memory");
	MPI_Comm_split(comm, 0, 0, NULL);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static void *calls(void *unused)
{
	if (!setjmp(out))
		fails_far_below();
	jumps = false;
	MPI_Barrier(comm);
	fails_far_below();
	__atomic_store_n(&computes, 0, __ATOMIC_SEQ_CST);
	return unused;
}

int main(int argc, char **argv)
{
	int wanted = argc > 1 && !strcmp(argv[1], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, level;
	MPI_Errhandler errhandler;
	pthread_t thread;

	MPI_Init_thread(&argc, &argv, wanted, &level);
	if (level != wanted) {
		printf("this MPI has no such level\n");
		MPI_Finalize();
		return 77;
	}
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_create_errhandler(on_error, &errhandler);
	MPI_Comm_set_errhandler(comm, errhandler);
	computes = 1;
	pthread_create(&thread, NULL, calls, NULL);
	while (__atomic_load_n(&computes, __ATOMIC_SEQ_CST))
		spin(20000);
	pthread_join(thread, NULL);
	/* It does not count as one in MPI any more. */
	for (double give_up = now_s() + 30; !times && now_s() < give_up;)
		spin(20000);
	printf("%lu times progress, beside a call %lu times\n", (unsigned long)times, (unsigned long)together);
	fflush(stdout);
	_exit(together || !times); /* what the jump has left of MPI is not to be relied on */
}
