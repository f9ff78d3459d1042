/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd-mpi and the doorbell library in one process, whichever is searched first: each rank in turn computes and is
 * rung by the other, continuation requests are tested and waited for, and ticks are a second apart.
 */
#include <dirent.h>

#include "../mpi/check.h"

static volatile int arrived;

static void on_message(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	arrived = 1;
}

/* Signals that are blocked on the doorbell library's thread, signal n as bit n - 1; 0: there is no such thread. */
static unsigned long blocked_on_helper(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long blocked = 0;
	struct dirent *task;

	while (tasks && (task = readdir(tasks)) != NULL) {
		char path[300], line[128];
		bool helper = false;
		FILE *status;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
		status = fopen(path, "r");
		while (status && fgets(line, sizeof(line), status)) {
			helper = helper || strcmp(line, "Name:\tcontd-doorbell\n") == 0;
			if (helper && strncmp(line, "SigBlk:", 7) == 0)
				blocked = strtoul(line + 7, NULL, 16);
		}
		if (status)
			fclose(status);
	}
	if (tasks)
		closedir(tasks);
	return blocked;
}

/* Were SIGSEGV blocked, the kernel would end the program without its handler. */
static void helper_takes_its_faults(void)
{
	unsigned long blocked;
	double waited = MPI_Wtime();
	int memory = 0;
	MPI_Win win;

	MPI_Win_create(&memory, sizeof(memory), sizeof(memory), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Win_fence(0, win);
	while ((blocked = blocked_on_helper()) == 0 && MPI_Wtime() - waited < 30) /* it names itself */
		sched_yield();
	CHECK(blocked & 1ul << (SIGTERM - 1));
	CHECK(!(blocked & (1ul << (SIGSEGV - 1) | 1ul << (SIGBUS - 1) | 1ul << (SIGFPE - 1))));
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	struct contd_stats stats = {.size = sizeof(stats)};
	int value = 7, got, flag, other, go;
	MPI_Request cr, request;
	uint64_t rings = 0;

	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	other = 1 - check_rank;
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_EQ(contd_thread_attach(NULL), 0);
	check_begin("in turn");
	for (int i = 0; i < 60; i++) {
		if (i % 2 == check_rank) {
			got = arrived = 0;
			MPI_Irecv(&got, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
			MPI_Continue(&request, on_message, NULL, MPI_STATUS_IGNORE, cr);
			MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
			CHECK(!flag);
			MPI_Send(&value, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
			contd_compute_begin();
			while (!arrived)
				;
			contd_compute_end();
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			CHECK_EQ(got, 7);
		} else {
			MPI_Recv(&go, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			usleep(1000);
			if (i % 4 < 2) {
				MPI_Send(&value, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
			} else {
				/* The sender's completion is waited for by a continuation as well. */
				arrived = 0;
				MPI_Issend(&value, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
				MPI_Continue(&request, on_message, NULL, MPI_STATUS_IGNORE, cr);
				MPI_Wait(&cr, MPI_STATUS_IGNORE);
				CHECK(arrived);
			}
		}
	}
	CHECK_EQ(contd_stats_get(&stats), 0);
	rings = stats.rings;
	CHECK(rings > 0);
	CHECK(stats.ticks < 15);
	MPI_Request_free(&cr);
	check_begin("faults");
	helper_takes_its_faults();
	return check_fini();
}
