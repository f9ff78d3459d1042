/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything in MPI that sets connections up or takes them down, under ticks: contd starts before MPI_Init and ends
 * after MPI_Finalize. Run with Open MPI over TCP, too, which connects at the first message.
 */
#include "coexist.h"

#include <contd/mpi.h>

static int rank, size;
static char program[4096];

/* Every rank with every other one, small and large: all connections of the communicator are used. */
static void talk(MPI_Comm comm, int bytes)
{
	char *in = malloc((size_t)bytes + 1), *out = malloc((size_t)bytes + 1);
	int me, n;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	for (int distance = 1; distance < n; distance++) {
		MPI_Request r[2];

		memset(out, me + distance, (size_t)bytes);
		memset(in, 0, (size_t)bytes);
		MPI_Irecv(in, bytes, MPI_CHAR, (me + n - distance) % n, 5, comm, &r[0]);
		MPI_Isend(out, bytes, MPI_CHAR, (me + distance) % n, 5, comm, &r[1]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < bytes; i++)
			CHECK_EQ(in[i], (me + n - distance) % n + distance);
	}
	free(in);
	free(out);
}

/* Both sides of an intercommunicator. */
static void talk_across(MPI_Comm inter)
{
	MPI_Comm both = MPI_COMM_NULL;
	int n, all, sum = 0;

	MPI_Comm_remote_size(inter, &n);
	CHECK(n > 0);
	MPI_Intercomm_merge(inter, 0, &both);
	MPI_Comm_size(both, &all);
	CHECK(all > n);
	talk(both, 10);
	talk(both, 100000);
	MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, both);
	CHECK_EQ(sum, all);
	MPI_Comm_free(&both);
}

static void communicators(void)
{
	for (int i = 0; i < 60; i++) {
		MPI_Comm dup, half, pair;
		MPI_Group all, me;

		MPI_Comm_dup(MPI_COMM_WORLD, &dup);
		talk(dup, i % 20 ? 100 : 200000);
		MPI_Comm_split(dup, rank % 2, -rank, &half);
		talk(half, 10);
		MPI_Comm_group(dup, &all);
		MPI_Group_incl(all, 1, (int[]){i % size}, &me);
		MPI_Comm_create(dup, me, &pair);
		CHECK_EQ(pair != MPI_COMM_NULL, rank == i % size);
		if (pair != MPI_COMM_NULL)
			MPI_Comm_free(&pair);
		MPI_Group_free(&me);
		MPI_Group_free(&all);
		MPI_Comm_free(&half);
		MPI_Comm_free(&dup);
	}
}

#ifdef OPEN_MPI
/* MPICH 4.0.2 of Debian 12 can neither spawn nor connect: "not supported with ucx netmod". */
static void spawned(void)
{
	for (int i = 0; i < 2; i++) {
		MPI_Comm children = MPI_COMM_NULL;
		int errors[1] = {-1};
		char child[] = "child", *argv[] = {child, NULL};

		MPI_Comm_spawn(program, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, errors);
		CHECK_EQ(errors[0], MPI_SUCCESS);
		talk_across(children);
		MPI_Comm_disconnect(&children);
	}
}

/* Two processes that find each other by a port's name. */
static void connected(void)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm inter = MPI_COMM_NULL;

	for (int i = 0; i < 5 && rank < 2 && size >= 2; i++) {
		if (rank == 0) {
			MPI_Open_port(MPI_INFO_NULL, port);
			MPI_Send(port, sizeof(port), MPI_CHAR, 1, 6, MPI_COMM_WORLD);
			MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
		} else {
			MPI_Recv(port, sizeof(port), MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
		}
		talk_across(inter);
		MPI_Comm_disconnect(&inter);
		if (rank == 0)
			MPI_Close_port(port);
	}
}

#endif

/*
 * Each MPI has one way only that works undisturbed, without any signal, on Debian 12: with Open MPI's shared memory
 * MPI_Win_create is refused where single-copy reads are, and of MPICH's MPI_Win_allocate the second one of a few bytes
 * goes wrong.
 */
static void windows(void)
{
	for (int i = 0; i < 10; i++) {
		int own = -1, *memory = &own, value = 100 * i + rank;
		MPI_Win win;

#ifdef OPEN_MPI
		MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
#else
		MPI_Win_create(memory, sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
#endif
		MPI_Win_fence(0, win);
		MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
		MPI_Win_fence(0, win);
		CHECK_EQ(*(volatile int *)memory, 100 * i + (rank + size - 1) % size);
		MPI_Win_free(&win);
	}
}

static atomic_int arrived;

static void on_arrival(MPI_Status *status, void *data)
{
	(void)status;
	(void)data;
	atomic_fetch_add(&arrived, 1);
}

/* Messages with continuations meanwhile, in regions. */
static void continued(MPI_Request cr)
{
	for (int i = 0; i < 20; i++) {
		MPI_Request r;
		int in, before = atomic_load(&arrived);

		MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 8, MPI_COMM_WORLD, &r);
		CHECK_EQ(MPI_Continue(&r, on_arrival, NULL, MPI_STATUS_IGNORE, cr), MPI_SUCCESS);
		MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, 8, MPI_COMM_WORLD);
		contd_compute_begin();
		COMPUTE_UNTIL(atomic_load(&arrived) > before);
		contd_compute_end();
		CHECK_EQ(in, i);
		CHECK_EQ(atomic_load(&arrived), before + 1);
		CHECK_EQ(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_SUCCESS);
	}
}

int main(int argc, char **argv)
{
	uint64_t ticks;
	MPI_Request cr;
	MPI_Comm parent;

	CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	ticking_begin();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		talk_across(parent);
		MPI_Comm_disconnect(&parent);
		MPI_Finalize();
		ticking_end();
		return 0;
	}
	ticks = ticks_now();
	CHECK(ticks > ticking_from + 20); /* some of them in MPI_Init */
	talk(MPI_COMM_WORLD, 1000);
	CHECK_EQ(MPI_Continue_init(MPI_INFO_NULL, &cr), MPI_SUCCESS);
	continued(cr);
	communicators();
	windows();
#ifdef OPEN_MPI
	connected();
	spawned();
#endif
	continued(cr);
	CHECK_EQ(MPI_Request_free(&cr), MPI_SUCCESS);
	CHECK(ticks_now() > ticks + 100);
	MPI_Finalize();
	ticking_end();
	return 0;
}
