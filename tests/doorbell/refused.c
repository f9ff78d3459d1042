/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to a peer that is rung, and that MPI refuses in part. The doorbell library makes several calls of
 * one, and asks MPI about
 * arguments that MPI has not checked yet. Still rank 0's call must return, the error handler that MPI would call is
 * called once and no other one, nothing has been sent, and nothing received. The library behind.c stands between the
 * doorbell library and MPI, and refuses a send whose arguments are right.
 */
#include "../mpi/check.h"
#include "behind.h"

#define TAG_OVER 1
#define TAG_BACK 2
#define TAG_SENT 3
#define TAG_FOUND 4
#define TAG_WRONG (-5)
#define RANK_WRONG 99
#define LONG_INTS 4096 /* so many that a blocking send is taken apart */

enum wrong { NOTHING, SENDTAG, RECVTAG, SENDCOUNT, RECVCOUNT, SENDTYPE, RECVTYPE, SOURCE, GIANT, BEHIND };

static int of_comm, of_world, of_win, told;
static int there[LONG_INTS], back[LONG_INTS];

static void on_comm(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	of_comm++;
	told = *code;
}

static void on_world(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	of_world++;
}

static void on_win(MPI_Win *win, int *code, ...)
{
	(void)win;
	of_win++;
	told = *code;
}

/* ---------------------------------------------------------------------------------------------------- the calls --- */

struct arguments {
	MPI_Comm comm;
	int other;
	int sendcount, recvcount;
	MPI_Datatype sendtype, recvtype;
	int sendtag, recvtag, source;
	MPI_Status *status;
};

static int call_Sendrecv(const struct arguments *a)
{
	return MPI_Sendrecv(there, a->sendcount, a->sendtype, a->other, a->sendtag, back, a->recvcount, a->recvtype,
			    a->source, a->recvtag, a->comm, a->status);
}

/* One buffer, count and type. */
static int call_Sendrecv_replace(const struct arguments *a)
{
	return MPI_Sendrecv_replace(back, a->sendcount, a->sendtype, a->other, a->sendtag, a->source, a->recvtag,
				    a->comm, a->status);
}

#define CALL_SEND(name) \
	static int call_##name(const struct arguments *a) \
	{ \
		return MPI_##name(there, a->sendcount, a->sendtype, a->other, a->sendtag, a->comm); \
	}
CALL_SEND(Send)
CALL_SEND(Ssend)
CALL_SEND(Rsend)

static int call_Issend(const struct arguments *a)
{
	MPI_Request request;

	return MPI_Issend(there, a->sendcount, a->sendtype, a->other, a->sendtag, a->comm, &request);
}

static int call_Recv(const struct arguments *a)
{
	return MPI_Recv(back, a->recvcount, a->recvtype, a->source, a->recvtag, a->comm, a->status);
}

static int call_Irecv(const struct arguments *a)
{
	MPI_Request request;

	return MPI_Irecv(back, a->recvcount, a->recvtype, a->source, a->recvtag, a->comm, &request);
}

#define SENDS 1u << SENDTAG | 1u << SENDCOUNT | 1u << SENDTYPE
#define RECEIVES 1u << RECVTAG | 1u << RECVCOUNT | 1u << RECVTYPE | 1u << SOURCE
static const struct {
	const char *name;
	int (*call)(const struct arguments *);
	unsigned wrong; /* what can be wrong of it */
} calls[] = {
	{"Sendrecv", call_Sendrecv, SENDS | RECEIVES | 1u << BEHIND},
	{"Sendrecv_replace", call_Sendrecv_replace, SENDS | 1u << RECVTAG | 1u << SOURCE | 1u << GIANT | 1u << BEHIND},
	{"Send", call_Send, SENDS | 1u << BEHIND},
	{"Ssend", call_Ssend, SENDS},
	{"Rsend", call_Rsend, SENDS},
	{"Issend", call_Issend, SENDS},
	{"Recv", call_Recv, RECEIVES},
	{"Irecv", call_Irecv, RECEIVES},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static const int class_of[] = {
	[SENDTAG] = MPI_ERR_TAG,     [RECVTAG] = MPI_ERR_TAG,   [SENDCOUNT] = MPI_ERR_COUNT,
	[RECVCOUNT] = MPI_ERR_COUNT, [SENDTYPE] = MPI_ERR_TYPE, [RECVTYPE] = MPI_ERR_TYPE,
	[SOURCE] = MPI_ERR_RANK,     [GIANT] = MPI_ERR_RANK,    [BEHIND] = MPI_ERR_NO_SPACE,
};
#define KINDS (sizeof(class_of) / sizeof(class_of[0]))

/* ------------------------------------------------------------------------------------------------------ a round --- */

static void set(struct arguments *a, enum wrong wrong, MPI_Datatype giant)
{
	switch (wrong) {
	case SENDTAG:
		a->sendtag = TAG_WRONG;
		break;
	case RECVTAG:
		a->recvtag = TAG_WRONG;
		break;
	case SENDCOUNT:
		a->sendcount = -1;
		break;
	case RECVCOUNT:
		a->recvcount = -1;
		break;
	case SENDTYPE:
		a->sendtype = MPI_DATATYPE_NULL;
		break;
	case RECVTYPE:
		a->recvtype = MPI_DATATYPE_NULL;
		break;
	case GIANT: /* 8 GiB, which must not be copied; refused for another reason */
		a->sendcount = 2;
		a->sendtype = giant;
		a->source = RANK_WRONG;
		break;
	case SOURCE:
		a->source = RANK_WRONG;
		break;
	case BEHIND:
		behind_refuse = MPI_ERR_NO_SPACE;
		break;
	default:
		break;
	}
}

static void expect(int rc, enum wrong wrong, const int *handler)
{
	int class = -1;

	CHECK(rc != MPI_SUCCESS);
	MPI_Error_class(rc, &class);
	/* MPICH tells of a type that is none by another class in some calls. */
	if (wrong != SENDTYPE && wrong != RECVTYPE)
		CHECK_EQ(class, class_of[wrong]);
	CHECK_EQ(*handler, 1);
	CHECK_EQ(of_comm + of_win, 1);
	CHECK_EQ(of_world, 0);
	MPI_Error_class(told, &class);
	if (wrong != SENDTYPE && wrong != RECVTYPE)
		CHECK_EQ(class, class_of[wrong]);
}

/* Rank 0. Early: a message for the receive is there already. */
static void refused(MPI_Comm comm, int other, size_t k, enum wrong wrong, bool early, MPI_Datatype giant)
{
	MPI_Status status = {.MPI_SOURCE = 77, .MPI_TAG = 78}, got;
	struct arguments a = {comm, other, LONG_INTS, LONG_INTS, MPI_INT, MPI_INT, TAG_SENT, TAG_BACK, other, &status};
	int rc;

	if (early)
		MPI_Probe(other, TAG_BACK, comm, &got);
	for (int i = 0; i < LONG_INTS; i++)
		back[i] = -1;
	set(&a, wrong, giant);
	of_comm = of_world = of_win = told = 0;
	rc = calls[k].call(&a);
	behind_refuse = 0;
	expect(rc, wrong, &of_comm);
	CHECK(status.MPI_SOURCE == 77 && status.MPI_TAG == 78);
	/* A refusal by a library behind is known too late for a message that had come before. */
	if (wrong != BEHIND || !early || calls[k].call == call_Send) {
		CHECK(back[0] == -1 && back[LONG_INTS - 1] == -1);
		MPI_Send(NULL, 0, MPI_INT, other, TAG_OVER, comm);
		MPI_Recv(back, LONG_INTS, MPI_INT, other, TAG_BACK, comm, &got);
	} else {
		MPI_Send(NULL, 0, MPI_INT, other, TAG_OVER, comm);
	}
	CHECK(back[0] == 42 && back[LONG_INTS - 1] == 42);
}

/* Rank 1: of all that rank 0 tried, nothing has come before the word that it is over. */
static void attend(MPI_Comm comm, int other, bool early)
{
	MPI_Request request;
	int flag = 1;

	for (int i = 0; i < LONG_INTS; i++)
		there[i] = 42;
	if (early)
		MPI_Isend(there, LONG_INTS, MPI_INT, other, TAG_BACK, comm, &request);
	MPI_Recv(NULL, 0, MPI_INT, other, TAG_OVER, comm, MPI_STATUS_IGNORE);
	MPI_Iprobe(other, TAG_SENT, comm, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
	if (!early)
		MPI_Isend(there, LONG_INTS, MPI_INT, other, TAG_BACK, comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The same calls with nothing wrong, after all that was refused. */
static void accepted(MPI_Comm comm, int other)
{
	MPI_Status status;

	for (int replace = 0; replace < 2; replace++) {
		for (int i = 0; i < LONG_INTS; i++) {
			there[i] = check_rank;
			back[i] = replace ? check_rank : -1;
		}
		CHECK_OK(replace ? MPI_Sendrecv_replace(back, LONG_INTS, MPI_INT, other, TAG_SENT, other, TAG_SENT,
							comm, &status)
				 : MPI_Sendrecv(there, LONG_INTS, MPI_INT, other, TAG_SENT, back, LONG_INTS, MPI_INT,
						other, TAG_SENT, comm, &status));
		CHECK_EQ(back[LONG_INTS - 1], 1 - check_rank);
		CHECK(status.MPI_SOURCE == other && status.MPI_TAG == TAG_SENT);
	}
}

static void one_sided(void)
{
	MPI_Errhandler handler;
	MPI_Request request;
	MPI_Win win;

	CHECK_OK(MPI_Win_create(there, sizeof(there), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MPI_Win_create_errhandler(on_win, &handler);
	MPI_Win_set_errhandler(win, handler);
	MPI_Win_fence(0, win);
	for (int i = 0; check_rank == 0 && i < 2; i++) {
		of_comm = of_world = of_win = told = 0;
		expect(i ? MPI_Rput(back, 1, MPI_INT, 1, 0, 1, MPI_DATATYPE_NULL, win, &request)
			 : MPI_Put(back, 1, MPI_INT, 1, 0, 1, MPI_DATATYPE_NULL, win),
		       RECVTYPE, &of_win);
	}
	MPI_Win_fence(0, win);
	MPI_Errhandler_free(&handler);
	MPI_Win_free(&win);
}

/* -------------------------------------------------------------------------------------------------------- begin --- */

static volatile int arrived;

static void on_message(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	arrived = 1;
}

/* Rank 1 computes until it is rung: rank 0 has found its bell, and takes the calls apart. */
static void find(void)
{
	struct contd_stats stats = {.size = sizeof(stats)};
	MPI_Request request, cr;
	int go = 1, got;

	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_EQ(contd_thread_attach(NULL), 0);
	while (go) {
		if (check_rank == 0) {
			usleep(2000);
			MPI_Send(&go, 1, MPI_INT, 1, TAG_FOUND, MPI_COMM_WORLD);
			MPI_Recv(&go, 1, MPI_INT, 1, TAG_FOUND, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			continue;
		}
		arrived = 0;
		MPI_Irecv(&got, 1, MPI_INT, 0, TAG_FOUND, MPI_COMM_WORLD, &request);
		MPI_Continue(&request, on_message, NULL, MPI_STATUS_IGNORE, cr);
		contd_compute_begin();
		while (!arrived)
			;
		contd_compute_end();
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
		CHECK_EQ(contd_stats_get(&stats), 0);
		go = stats.rings == 0;
		MPI_Send(&go, 1, MPI_INT, 0, TAG_FOUND, MPI_COMM_WORLD);
	}
	MPI_Request_free(&cr);
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler, for_world;
	MPI_Comm comm[2], half;
	MPI_Datatype giant;
	char section[64];

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("rung");
	find();
	MPI_Comm_split(MPI_COMM_WORLD, check_rank, 0, &half);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - check_rank, 9, &comm[1]);
	MPI_Comm_free(&half);
	MPI_Type_contiguous(1 << 30, MPI_INT, &giant);
	MPI_Type_commit(&giant);
	MPI_Comm_create_errhandler(on_comm, &handler);
	MPI_Comm_create_errhandler(on_world, &for_world);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, for_world);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, for_world);
	for (int c = 0; c < 2; c++) {
		int other = c ? 0 : 1 - check_rank;

		MPI_Comm_set_errhandler(comm[c], handler);
		for (size_t k = 0; k < CALLS; k++) {
			for (enum wrong wrong = SENDTAG; wrong < KINDS; wrong++) {
				for (int early = 0; early < 2 && calls[k].wrong & 1u << wrong; early++) {
					snprintf(section, sizeof(section), "%s, wrong %d, comm %d%s", calls[k].name,
						 (int)wrong, c, early ? ", early" : "");
					check_begin(section);
					if (check_rank == 0)
						refused(comm[c], other, k, wrong, early, giant);
					else
						attend(comm[c], other, early);
				}
			}
		}
		check_begin("accepted");
		MPI_Barrier(MPI_COMM_WORLD); /* rank 1 may still look for what must not have come */
		accepted(comm[c], other);
	}
	check_begin("one-sided");
	one_sided();
	MPI_Errhandler_free(&handler);
	MPI_Errhandler_free(&for_world);
	MPI_Type_free(&giant);
	MPI_Comm_free(&comm[0]);
	MPI_Comm_free(&comm[1]);
	return check_fini();
}
