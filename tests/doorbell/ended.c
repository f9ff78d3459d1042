/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that is owed rings ends, and its bell was not armed. The waits of rank 0, which go on as loops of tests while
 * the peer is owed rings, then are MPI's waits again. The peer is a child of rank 1, which listens by the name of rank
 * 1, because a launcher ends the job when a rank ends early. The library behind.c stands between the doorbell library
 * and MPI. Before it ends, the peer ends contd alone, and begins again: then a collective operation owes it rings.
 */
#include "../mpi/check.h"
#include "behind.h"

#include <sys/wait.h>

#define TAG_NAME 1
#define TAG_AGAIN 2
#define TAG_LONG 3
#define TAG_BACK 4
#define TAG_WAITS 5
#define TAG_OVER 6
#define TAG_LISTENS 7
#define LONG_INTS 65536 /* in several steps */
#define TRIES 40000     /* of a millisecond */

static int many[LONG_INTS], waits;

/* ---------------------------------------------------------------------------------------------------- the child --- */

static struct {
	pid_t pid;
	int to, from;
} child;

/* Listens by the name that it reads, and says so. Listens no more, and again, as told, until it is killed. */
static void be_child(int from, int to)
{
	struct contd_config config = {.size = sizeof(config), .bell = CONTD_BELL_ON};
	char job[64], command;
	int rc;

	if (read(from, job, sizeof(job)) != sizeof(job))
		_exit(0);
	for (bool listens = false;; listens = !listens) {
		rc = listens ? contd_fini() : contd_init(&config);
		if (!listens && !rc)
			rc = contd_bell_listen(job, 1);
		if (write(to, &rc, sizeof(rc)) != sizeof(rc))
			_exit(1);
		if (read(from, &command, 1) != 1)
			_exit(0);
	}
}

/* Before MPI is there. */
static void make_child(void)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		abort();
	child.pid = fork();
	if (child.pid < 0)
		abort();
	if (child.pid == 0) {
		close(to[1]);
		close(from[0]);
		be_child(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	child.to = to[1];
	child.from = from[0];
}

static void child_has_changed(void)
{
	int rc = -1;

	CHECK(read(child.from, &rc, sizeof(rc)) == sizeof(rc));
	CHECK_EQ(rc, 0);
}

static void change_child(void)
{
	CHECK(write(child.to, "", 1) == 1);
	child_has_changed();
}

static void kill_child(void)
{
	int status;

	kill(child.pid, SIGKILL);
	CHECK_EQ(waitpid(child.pid, &status, 0), child.pid);
}

/* -------------------------------------------------------------------------------------------------------- ranks --- */

static void count(void)
{
	waits++;
}

static void count_and_tell(void)
{
	if (!waits++)
		MPI_Send(NULL, 0, MPI_INT, 1, TAG_WAITS, MPI_COMM_WORLD);
}

/* Does rank 0 come to MPI's wait? */
static bool it_waits(void)
{
	int flag = 0;

	for (int i = 0; i < TRIES && !flag; i++) {
		usleep(1000);
		MPI_Iprobe(0, TAG_WAITS, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	}
	return flag;
}

/* How often MPI's wait was called for that. */
static int wait_for_rank_1(void (*on_wait)(void))
{
	MPI_Request request;

	waits = 0;
	MPI_Irecv(NULL, 0, MPI_INT, 1, TAG_BACK, MPI_COMM_WORLD, &request);
	behind_on_wait = on_wait;
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	behind_on_wait = NULL;
	return waits;
}

static void rank_0(const char *job)
{
	MPI_Request request;
	int again = 1;

	MPI_Send(job, 64, MPI_CHAR, 1, TAG_NAME, MPI_COMM_WORLD);
	check_begin("owed");
	/* Until the child is found, and owed rings: a wait asks then. */
	while (again) {
		MPI_Isend(many, LONG_INTS, MPI_INT, 1, TAG_LONG, MPI_COMM_WORLD, &request);
		CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
		again = wait_for_rank_1(count);
		MPI_Send(&again, 1, MPI_INT, 1, TAG_AGAIN, MPI_COMM_WORLD);
	}
	check_begin("contd has ended in it");
	CHECK_EQ(wait_for_rank_1(count_and_tell), 1);
	MPI_Send(NULL, 0, MPI_INT, 1, TAG_OVER, MPI_COMM_WORLD);
	check_begin("contd has begun again in it");
	MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, TAG_LISTENS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	usleep(1200000); /* after which it is looked for again */
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK_EQ(wait_for_rank_1(count), 0);
	MPI_Send(NULL, 0, MPI_INT, 1, TAG_OVER, MPI_COMM_WORLD);
	check_begin("ended");
	CHECK_EQ(wait_for_rank_1(count_and_tell), 1);
	MPI_Send(NULL, 0, MPI_INT, 1, TAG_OVER, MPI_COMM_WORLD);
}

/* After it has ended, or contd in it. */
static void let_rank_0_wait(void)
{
	bool waited = it_waits();

	CHECK(waited);
	MPI_Send(NULL, 0, MPI_INT, 0, TAG_BACK, MPI_COMM_WORLD);
	if (waited)
		MPI_Recv(NULL, 0, MPI_INT, 0, TAG_WAITS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(NULL, 0, MPI_INT, 0, TAG_OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void rank_1(void)
{
	MPI_Request request;
	char job[64];
	int again = 1;

	MPI_Recv(job, 64, MPI_CHAR, 0, TAG_NAME, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(write(child.to, job, sizeof(job)) == sizeof(job));
	child_has_changed();
	check_begin("owed");
	while (again) {
		MPI_Recv(many, LONG_INTS, MPI_INT, 0, TAG_LONG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		usleep(20000);
		MPI_Send(NULL, 0, MPI_INT, 0, TAG_BACK, MPI_COMM_WORLD);
		MPI_Recv(&again, 1, MPI_INT, 0, TAG_AGAIN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	check_begin("contd has ended in it");
	change_child();
	let_rank_0_wait();
	check_begin("contd has begun again in it");
	change_child();
	MPI_Send(NULL, 0, MPI_INT, 0, TAG_LISTENS, MPI_COMM_WORLD);
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	usleep(20000);
	MPI_Send(NULL, 0, MPI_INT, 0, TAG_BACK, MPI_COMM_WORLD);
	MPI_Recv(NULL, 0, MPI_INT, 0, TAG_OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_begin("ended");
	kill_child();
	let_rank_0_wait();
}

int main(int argc, char **argv)
{
	char job[64] = "";

	snprintf(job, sizeof(job), "ended.%d", getpid());
	setenv("CONTD_JOB", job, 1); /* that of rank 0 counts: it looks for rank 1 */
	make_child();
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("begin");
	if (check_rank == 0) {
		kill_child();
		rank_0(job);
	} else {
		rank_1();
	}
	return check_fini();
}
