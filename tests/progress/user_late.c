/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread makes a stream by fopencookie(3) while progress is under way elsewhere: its functions, which are code of the
 * program's, are not called in progress, not even in that one.
 *
 *     user_late LEVEL     funneled, serialized, multiple
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

EXPORTED void contd_test_progress(void);

static uint32_t inside_progress, made;
static __thread bool in_progress;
static uint64_t wrong_calls;

/* In the place of MPI's progress: it prints. */
void contd_test_progress(void)
{
	__atomic_store_n(&inside_progress, 1, __ATOMIC_SEQ_CST);
	in_progress = true;
	for (double end = now_s() + 0.02; now_s() < end;)
		spin(1000);
	fflush(NULL);
	in_progress = false;
	__atomic_store_n(&inside_progress, 0, __ATOMIC_SEQ_CST);
}

static ssize_t writes(void *cookie, const char *text, size_t size)
{
	(void)cookie, (void)text;
	if (in_progress)
		__atomic_fetch_add(&wrong_calls, 1, __ATOMIC_RELAXED);
	return (ssize_t)size;
}

static void *makes(void *unused)
{
	FILE *stream;

	while (!__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		;
	stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = writes});
	fputs("text", stream);
	for (double end = now_s() + 0.3; now_s() < end;)
		spin(1000);
	__atomic_store_n(&made, 1, __ATOMIC_SEQ_CST);
	fclose(stream);
	return unused;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int wanted = !strcmp(name, "multiple")     ? MPI_THREAD_MULTIPLE
		     : !strcmp(name, "serialized") ? MPI_THREAD_SERIALIZED
						   : MPI_THREAD_FUNNELED;
	pthread_t thread;
	int level;

	MPI_Init_thread(&argc, &argv, wanted, &level);
	if (level < wanted) {
		printf("this MPI has no such level\n");
		MPI_Finalize();
		return 77;
	}
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	pthread_create(&thread, NULL, makes, NULL);
	while (!__atomic_load_n(&made, __ATOMIC_SEQ_CST))
		spin(10000);
	pthread_join(thread, NULL);
	printf("progress called the program %lu times\n", (unsigned long)wrong_calls);
	MPI_Finalize();
	return wrong_calls != 0;
}
