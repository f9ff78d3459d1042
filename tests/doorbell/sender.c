/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain MPI program; the other side is receiver.c, and kinds.h says what they do. Usage: sender MODE, as
 * receiver.c */
#include <dlfcn.h>
#include <unistd.h>

#include "kinds.h"

#ifdef EXPLICIT
#include <contd/mpi.h>
#define SEND(value) \
	do { \
		silent.send(value, 1, MPI_INT, 0, TAG_KIND, MPI_COMM_WORLD); \
		if (i % 2 ? contd_mpi_ring(0, s->comm[2]) > 1 : contd_mpi_ring_all(s->comm[1]) > 1) \
			abort(); \
	} while (0)
#else
#define SEND(value) MPI_Send(value, 1, MPI_INT, 0, TAG_KIND, MPI_COMM_WORLD)
#endif

/* for the receiver to get into its region; where that is not enough there is another round */
#define REGION_BEGINS_US 2000

/* MPI's own functions, whatever was preloaded. */
static struct {
	int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
	int (*recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
	int (*wait)(MPI_Request *, MPI_Status *);
	int (*free)(MPI_Request *);
} silent;

static void find_silent(void)
{
	Dl_info info;
	void *mpi;

	if (!dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"), &info) ||
	    !(mpi = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
		abort();
	*(void **)&silent.send = dlsym(mpi, "PMPI_Send");
	*(void **)&silent.recv = dlsym(mpi, "PMPI_Recv");
	*(void **)&silent.wait = dlsym(mpi, "PMPI_Wait");
	*(void **)&silent.free = dlsym(mpi, "PMPI_Request_free");
	if (!silent.send || !silent.recv || !silent.wait || !silent.free)
		abort();
}

/* Every sender hears it. 0: no more. */
static int go(void)
{
	int more;

	silent.recv(&more, 1, MPI_INT, 0, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (more)
		usleep(REGION_BEGINS_US);
	return more;
}

static void say_by(int rank, int tag)
{
	int value = 42;

	if (rank == 1)
		silent.send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
}

static void say(int rank)
{
	say_by(rank, TAG_SILENT);
}

static void to_receiver(int k, int dest, MPI_Comm comm)
{
	static int value = 7, back;
	MPI_Request request = MPI_REQUEST_NULL;

	switch (k) {
	case KIND_Send:
		MPI_Send(&value, 1, MPI_INT, dest, TAG_KIND, comm);
		break;
	case KIND_Bsend:
		MPI_Bsend(&value, 1, MPI_INT, dest, TAG_KIND, comm);
		break;
	case KIND_Ssend:
		MPI_Ssend(&value, 1, MPI_INT, dest, TAG_KIND, comm);
		break;
	case KIND_Isend:
		MPI_Isend(&value, 1, MPI_INT, dest, TAG_KIND, comm, &request);
		break;
	case KIND_Ibsend:
		MPI_Ibsend(&value, 1, MPI_INT, dest, TAG_KIND, comm, &request);
		break;
	case KIND_Issend:
		MPI_Issend(&value, 1, MPI_INT, dest, TAG_KIND, comm, &request);
		break;
	case KIND_Start:
		MPI_Send_init(&value, 1, MPI_INT, dest, TAG_KIND, comm, &request);
		MPI_Start(&request);
		break;
	case KIND_Startall:
		MPI_Ssend_init(&value, 1, MPI_INT, dest, TAG_KIND, comm, &request);
		MPI_Startall(1, &request);
		break;
	case KIND_Sendrecv:
		MPI_Sendrecv(&value, 1, MPI_INT, dest, TAG_KIND, &back, 1, MPI_INT, dest, TAG_KIND, comm,
			     MPI_STATUS_IGNORE);
		break;
	case KIND_Sendrecv_replace:
		back = value;
		MPI_Sendrecv_replace(&back, 1, MPI_INT, dest, TAG_KIND, dest, TAG_KIND, comm, MPI_STATUS_IGNORE);
		break;
#if HAS_MPI4
	case KIND_Isendrecv:
		MPI_Isendrecv(&value, 1, MPI_INT, dest, TAG_KIND, &back, 1, MPI_INT, dest, TAG_KIND, comm, &request);
		break;
	case KIND_Pready:
		MPI_Psend_init(&value, 1, 1, MPI_INT, dest, TAG_KIND, comm, MPI_INFO_NULL, &request);
		MPI_Start(&request);
		MPI_Pready(0, request);
		break;
#endif
	default:
		abort();
	}
	if (request != MPI_REQUEST_NULL)
		silent.wait(&request, MPI_STATUS_IGNORE);
	if (request != MPI_REQUEST_NULL)
		silent.free(&request);
}

static void message(struct stage *s, int k)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int flag = 0, *b = s->buffer, back;

	b[0] = 42;
	switch (k) {
	case KIND_Send_1M:
		MPI_Send(b, 1 << 18, MPI_INT, 0, TAG_SILENT, MPI_COMM_WORLD);
		break;
	case KIND_Send_8M:
		MPI_Send(b, LONG_INTS, MPI_INT, 0, TAG_SILENT, MPI_COMM_WORLD);
		break;
	case KIND_Send_vector:
		MPI_Send(b, 1, s->vector, 0, TAG_SILENT, MPI_COMM_WORLD);
		break;
	case KIND_Isend_1M:
		MPI_Isend(b, 1 << 18, MPI_INT, 0, TAG_SILENT, MPI_COMM_WORLD, &request);
		break;
	case KIND_Isend_test:
	case KIND_Isend_8M:
		MPI_Isend(b, LONG_INTS, MPI_INT, 0, TAG_SILENT, MPI_COMM_WORLD, &request);
		break;
	case KIND_Start_1M:
		MPI_Send_init(b, 1 << 18, MPI_INT, 0, TAG_SILENT, MPI_COMM_WORLD, &request);
		MPI_Start(&request);
		break;
	case KIND_Sendrecv_1M:
		MPI_Sendrecv(b, 1 << 18, MPI_INT, 0, TAG_SILENT, &back, 1, MPI_INT, 0, TAG_KIND, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		break;
	default:
		abort();
	}
	if (k == KIND_Isend_test)
		while (!flag)
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	else if (request != MPI_REQUEST_NULL)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (request != MPI_REQUEST_NULL)
		MPI_Request_free(&request);
}

static void one_sided(struct stage *s, int k, MPI_Win win)
{
	static int value = 42, result;
	MPI_Request request;
	MPI_Group world, group;
	int zero = 0;

	switch (k) {
	case KIND_Put_fence:
		if (s->rank == 1)
			MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
		say(s->rank);
		MPI_Win_fence(0, win);
		return;
	case KIND_Post_start:
		if (s->rank != 1)
			return;
		MPI_Comm_group(MPI_COMM_WORLD, &world);
		MPI_Group_incl(world, 1, &zero, &group);
		MPI_Win_start(group, 0, win);
		MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
		say(s->rank);
		MPI_Win_complete(win);
		MPI_Group_free(&group);
		MPI_Group_free(&world);
		return;
	default:
		break;
	}
	if (s->rank != 1)
		return;
	/* Locked for all or not: rounds of operations that need the target each time. */
	for (int i = 0; i < 20; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		switch (k) {
		case KIND_Put_unlock:
			MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
			break;
		case KIND_Accumulate_flush:
			MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
			MPI_Win_flush(0, win);
			break;
		case KIND_Get_flush_all:
			MPI_Get(&result, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
			MPI_Win_flush_all(win);
			break;
		case KIND_Fetch_and_op:
			MPI_Fetch_and_op(&value, &result, MPI_INT, 0, 0, MPI_REPLACE, win);
			MPI_Win_flush_local(0, win);
			break;
		case KIND_Rput:
			MPI_Rput(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			break;
		default:
			abort();
		}
		MPI_Win_unlock(0, win);
	}
	say(s->rank);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Win_sync(win);
	MPI_Win_unlock(0, win);
}

static void kinds(struct stage *s, int from, int to)
{
	static char attached[1 << 16];
	MPI_Win win = MPI_WIN_NULL;
	int more;

	MPI_Buffer_attach(attached, sizeof(attached));
	if (to > END_MESSAGES)
		MPI_Win_create(s->buffer, 64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int k = from; k < to; k++) {
		for (int c = 0; c < (k < END_P2P ? 3 : 1) && kind_is_there(k); c++) {
			do {
				MPI_Request request = MPI_REQUEST_NULL;
				MPI_Comm copy = MPI_COMM_NULL;

				if (k == KIND_Put_fence)
					MPI_Win_fence(0, win);
				more = go();
				if (!more && k == KIND_Put_fence)
					MPI_Win_fence(0, win);
				if (!more)
					break;
				if (k < END_P2P && s->rank == 1) {
					say(1);
					to_receiver(k, s->receiver[c], s->comm[c]);
				} else if (k >= END_P2P && k < END_SYNCHRONIZING) {
					if (k < END_COLLECTIVE)
						say(s->rank);
					take_part(s, k, &request, &copy);
					if (k >= END_COLLECTIVE) {
						say(s->rank);
						say_by(s->rank, TAG_KIND);
					}
					if (request != MPI_REQUEST_NULL)
						silent.wait(&request, MPI_STATUS_IGNORE);
					if (request != MPI_REQUEST_NULL)
						silent.free(&request);
					if (copy != MPI_COMM_NULL)
						MPI_Comm_free(&copy);
				} else if (k >= END_SYNCHRONIZING && k < END_MESSAGES && s->rank == 1) {
					message(s, k);
				} else if (k >= END_MESSAGES) {
					one_sided(s, k, win);
				}
			} while (more);
		}
	}
	if (win != MPI_WIN_NULL)
		MPI_Win_free(&win);
	MPI_Buffer_detach(&(void *){NULL}, &(int){0});
}

/* So many messages at once. With an MPI of contd's the ringing is the program's own, and only that. */
static void stream(struct stage *s)
{
	int n, value = 42;

	for (;;) {
		silent.recv(&n, 1, MPI_INT, 0, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (!n)
			return;
		for (int i = 0; i < -n && s->rank == 1; i++)
			silent.send(&value, 1, MPI_INT, 0, 1000 + i, MPI_COMM_WORLD);
		for (int i = 0; i < n && s->rank == 1; i++)
			SEND(&value);
	}
}

int main(int argc, char **argv)
{
	struct stage s;
	int level;
	const char *mode = argc > 1 ? argv[1] : "";

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level);
	find_silent();
	stage_open(&s);
	if (strcmp(mode, "kinds") == 0)
		kinds(&s, 0, END_COLLECTIVE);
	else if (strcmp(mode, "synchronizing") == 0)
		kinds(&s, END_COLLECTIVE, END_SYNCHRONIZING);
	else if (strcmp(mode, "messages") == 0)
		kinds(&s, END_SYNCHRONIZING, END_MESSAGES);
	else if (strcmp(mode, "one_sided") == 0)
		kinds(&s, END_MESSAGES, END_ONE_SIDED);
	else
		stream(&s);
	stage_close(&s);
	MPI_Finalize();
	return 0;
}
