/* SPDX-License-Identifier: BSD-3-Clause */
/* Continuations on the point-to-point operations of MPI, all modes, wildcards, sizes; also between two groups. */
#include "kinds.h"
#include "../mpi4.h"

#define TAG 23
#define LARGE (256 << 10)

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY };

/* A message around the ring, between the groups of an inter-communicator, or to and from MPI_PROC_NULL. */
struct message {
	enum mode mode;
	int bytes;
	bool any_source, any_tag;
};

static MPI_Comm comm;
static int from, to;
/* One pair for each kind, since they are all under way together. */
#define KINDS_MOST 24
static unsigned char *in[KINDS_MOST], *out[KINDS_MOST];
static const struct kind *base;

static unsigned char *buffer_of(unsigned char *set[], const struct kind *k)
{
	if (!set[k - base])
		set[k - base] = malloc(LARGE);
	return set[k - base];
}

static int tag_of(const struct kind *k)
{
	return TAG + (int)(k - base);
}

static unsigned seed_of(int rank, int round)
{
	return (unsigned)(rank * 100 + round);
}

/* The status that MPI itself reports of such a receive, before any continuation: MPICH 4.0 gives source 0 and tag 0. */
static MPI_Status nobodys[KINDS_MOST];

static void status_is_of_nobody(const struct kind *k, MPI_Status *s)
{
	int count = -1, cancelled = 1;

	CHECK_EQ(s->MPI_SOURCE, nobodys[k - base].MPI_SOURCE);
	CHECK_EQ(s->MPI_TAG, nobodys[k - base].MPI_TAG);
	MPI_Get_count(s, MPI_BYTE, &count);
	CHECK_EQ(count, 0);
	MPI_Test_cancelled(s, &cancelled);
	CHECK(!cancelled);
}

static void received(const struct kind *k, int round, int bytes, MPI_Status *s)
{
	const unsigned char *buffer = buffer_of(in, k);

	if (from == MPI_PROC_NULL) {
		CHECK_EQ(buffer[0], 0xee);
		if (s)
			status_is_of_nobody(k, s);
		return;
	}
	CHECK(pattern_holds(buffer, (size_t)bytes, seed_of(from, round)));
	if (bytes < LARGE)
		CHECK_EQ(buffer[bytes], 0xee);
	if (s)
		status_is_of(s, from, tag_of(k), (size_t)bytes);
}

static void sent(MPI_Status *s)
{
	int cancelled = 1;

	if (!s)
		return;
	MPI_Test_cancelled(s, &cancelled);
	CHECK(!cancelled);
}

static void fill(const struct kind *k, int round, int bytes)
{
	int rank;

	MPI_Comm_rank(comm, &rank);
	pattern_fill(buffer_of(out, k), (size_t)bytes, seed_of(rank, round));
	memset(buffer_of(in, k), 0xee, LARGE);
}

static void send_begin(const struct kind *k, const struct message *m, MPI_Request *r)
{
	unsigned char *buffer = buffer_of(out, k);

	switch (m->mode) {
	case STANDARD:
		MPI_Isend(buffer, m->bytes, MPI_BYTE, to, tag_of(k), comm, r);
		break;
	case SYNCHRONOUS:
		MPI_Issend(buffer, m->bytes, MPI_BYTE, to, tag_of(k), comm, r);
		break;
	case BUFFERED:
		MPI_Ibsend(buffer, m->bytes, MPI_BYTE, to, tag_of(k), comm, r);
		break;
	default:
		MPI_Irsend(buffer, m->bytes, MPI_BYTE, to, tag_of(k), comm, r);
	}
}

static void begin(const struct kind *k, int round, MPI_Request r[])
{
	const struct message *m = k->how;

	fill(k, round, m->bytes);
	/* The buffer is longer than the message. A wildcard finds its message alone where no other kind is under
	 * way. */
	MPI_Irecv(buffer_of(in, k), LARGE, MPI_BYTE, m->any_source && from >= 0 ? MPI_ANY_SOURCE : from,
		  m->any_tag ? MPI_ANY_TAG : tag_of(k), comm, &r[0]);
	if (m->mode == READY)
		MPI_Barrier(MPI_COMM_WORLD);
	send_begin(k, m, &r[1]);
}

static void check(const struct kind *k, int round, int i, MPI_Status *s)
{
	const struct message *m = k->how;

	if (i == 0)
		received(k, round, m->bytes, s);
	else
		sent(s);
}

/* Found by a probe, received by Imrecv. */
static void matched_begin(const struct kind *k, int round, MPI_Request r[])
{
	const struct message *m = k->how;
	int source = m->any_source && from >= 0 ? MPI_ANY_SOURCE : from;
	MPI_Message message = MPI_MESSAGE_NULL;
	MPI_Status status;

	fill(k, round, m->bytes);
	send_begin(k, m, &r[1]);
	if (round % 2) {
		MPI_Mprobe(source, tag_of(k), comm, &message, &status);
	} else {
		for (int flag = 0; !flag;)
			MPI_Improbe(source, tag_of(k), comm, &flag, &message, &status);
	}
	MPI_Imrecv(buffer_of(in, k), LARGE, MPI_BYTE, &message, &r[0]);
	CHECK(message == MPI_MESSAGE_NULL);
}

#ifdef HAS_MPI_4
static void both_begin(const struct kind *k, int round, MPI_Request r[])
{
	const struct message *m = k->how;

	fill(k, round, m->bytes);
	MPI_Isendrecv(buffer_of(out, k), m->bytes, MPI_BYTE, to, tag_of(k), buffer_of(in, k), LARGE, MPI_BYTE, from,
		      tag_of(k), comm, &r[0]);
}

static void replace_begin(const struct kind *k, int round, MPI_Request r[])
{
	const struct message *m = k->how;
	int rank;

	MPI_Comm_rank(comm, &rank);
	memset(buffer_of(in, k), 0xee, LARGE);
	pattern_fill(buffer_of(in, k), (size_t)m->bytes, seed_of(rank, round));
	MPI_Isendrecv_replace(buffer_of(in, k), m->bytes, MPI_BYTE, to, tag_of(k), from, tag_of(k), comm, &r[0]);
}

/* MPICH 4.0 leaves the status of the receive out, for MPI_Wait too. */
static bool both_have_status(void)
{
	static int known = -1;
	char byte[2] = {0};
	MPI_Status status;
	MPI_Request r;

	if (known < 0) {
		MPI_Isendrecv(&byte[0], 1, MPI_BYTE, 0, TAG - 1, &byte[1], 1, MPI_BYTE, 0, TAG - 1, MPI_COMM_SELF, &r);
		MPI_Wait(&r, &status);
		known = status.MPI_TAG == TAG - 1;
	}
	return known;
}

static void both_check(const struct kind *k, int round, int i, MPI_Status *s)
{
	(void)i;
	received(k, round, ((const struct message *)k->how)->bytes, both_have_status() ? s : NULL);
}
#endif

#define MESSAGE(...) (&(const struct message){__VA_ARGS__})

static const struct kind messages[] = {
	{"Isend, Irecv", 2, .how = MESSAGE(.mode = STANDARD, .bytes = 100), .begin = begin, .check = check},
	{"Isend, Irecv, zero bytes", 2, .how = MESSAGE(.mode = STANDARD, .bytes = 0), .begin = begin, .check = check},
	{"Isend, Irecv, large", 2, .how = MESSAGE(.mode = STANDARD, .bytes = LARGE), .begin = begin, .check = check},
	{"Irecv, MPI_ANY_SOURCE", 2, .how = MESSAGE(.mode = STANDARD, .bytes = 100, .any_source = true), .begin = begin,
	 .check = check},
	{"Irecv, MPI_ANY_SOURCE, large", 2, .how = MESSAGE(.mode = STANDARD, .bytes = LARGE, .any_source = true),
	 .begin = begin, .check = check},
	{"Issend", 2, .how = MESSAGE(.mode = SYNCHRONOUS, .bytes = 100), .begin = begin, .check = check},
	{"Issend, zero bytes", 2, .how = MESSAGE(.mode = SYNCHRONOUS, .bytes = 0), .begin = begin, .check = check},
	{"Issend, large", 2, .how = MESSAGE(.mode = SYNCHRONOUS, .bytes = LARGE), .begin = begin, .check = check},
	{"Ibsend", 2, .how = MESSAGE(.mode = BUFFERED, .bytes = 100), .begin = begin, .check = check},
	{"Ibsend, zero bytes", 2, .how = MESSAGE(.mode = BUFFERED, .bytes = 0), .begin = begin, .check = check},
	{"Ibsend, large", 2, .how = MESSAGE(.mode = BUFFERED, .bytes = LARGE), .begin = begin, .check = check},
	{"Irsend", 2, .waits = true, .how = MESSAGE(.mode = READY, .bytes = 100), .begin = begin, .check = check},
	{"Irsend, zero bytes", 2, .waits = true, .how = MESSAGE(.mode = READY, .bytes = 0), .begin = begin,
	 .check = check},
	{"Irsend, large", 2, .waits = true, .how = MESSAGE(.mode = READY, .bytes = LARGE), .begin = begin,
	 .check = check},
	{"Imrecv", 2, .waits = true, .how = MESSAGE(.mode = STANDARD, .bytes = 100), .begin = matched_begin,
	 .check = check},
	{"Imrecv, MPI_ANY_SOURCE", 2, .waits = true, .how = MESSAGE(.mode = STANDARD, .bytes = 100, .any_source = true),
	 .begin = matched_begin, .check = check},
	{"Imrecv, zero bytes", 2, .waits = true, .how = MESSAGE(.mode = STANDARD, .bytes = 0), .begin = matched_begin,
	 .check = check},
	{"Imrecv, large", 2, .waits = true, .how = MESSAGE(.mode = STANDARD, .bytes = LARGE), .begin = matched_begin,
	 .check = check},
};

#ifdef HAS_MPI_4
/* Not with MPI_PROC_NULL: in MPICH 4.0 that never completes. */
static const struct kind exchanges[] = {
	{"Isendrecv", 1, .how = MESSAGE(.mode = STANDARD, .bytes = 100), .begin = both_begin, .check = both_check},
	{"Isendrecv, large", 1, .how = MESSAGE(.mode = STANDARD, .bytes = LARGE), .begin = both_begin,
	 .check = both_check},
	{"Isendrecv_replace", 1, .how = MESSAGE(.mode = STANDARD, .bytes = 100), .begin = replace_begin,
	 .check = both_check},
};
#endif

/* Alone, since a wildcard for tags would take the messages of other kinds. */
static const struct kind wild[] = {
	{"Irecv, MPI_ANY_TAG", 2, .how = MESSAGE(.mode = STANDARD, .bytes = 100, .any_tag = true), .begin = begin,
	 .check = check},
	{"Irecv, MPI_ANY_SOURCE and MPI_ANY_TAG", 2,
	 .how = MESSAGE(.mode = STANDARD, .bytes = 100, .any_source = true, .any_tag = true), .begin = begin,
	 .check = check},
	{"Irecv, MPI_ANY_SOURCE and MPI_ANY_TAG, large", 2,
	 .how = MESSAGE(.mode = SYNCHRONOUS, .bytes = LARGE, .any_source = true, .any_tag = true), .begin = begin,
	 .check = check},
};

#define LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))

static void run_some(const struct kind kinds[], int n, const char *suffix, bool together)
{
	base = kinds;
	for (int k = 0; k < n; k++) {
		MPI_Request r[KIND_REQUESTS];

		kinds[k].begin(&kinds[k], 0, r);
		MPI_Wait(&r[0], &nobodys[k]);
		for (int i = 1; i < kinds[k].count; i++)
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
	}
	kinds_run(kinds, n, suffix, together);
}

static void run(const char *suffix)
{
	run_some(messages, LENGTH(messages), suffix, true);
	run_some(wild, LENGTH(wild), suffix, false);
}

/* Even ranks and odd ranks. A rank without a partner exchanges with MPI_PROC_NULL. */
static void run_between_groups(void)
{
	MPI_Comm group;
	int rank, remote;

	if (check_size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &group);
	MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - check_rank % 2, TAG, &comm);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_remote_size(comm, &remote);
	from = to = rank < remote ? rank : MPI_PROC_NULL;
	run(", between groups");
	MPI_Comm_free(&comm);
	MPI_Comm_free(&group);
}

int main(int argc, char **argv)
{
	size_t attached = 8 * (LARGE + MPI_BSEND_OVERHEAD);
	void *buffer = malloc(attached), *detached;
	int bytes;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Buffer_attach(buffer, (int)attached);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	from = check_previous();
	to = check_next();
	run("");
#ifdef HAS_MPI_4
	run_some(exchanges, LENGTH(exchanges), "", true);
#endif
	from = to = MPI_PROC_NULL;
	run(", MPI_PROC_NULL");
	MPI_Comm_free(&comm);
	run_between_groups();
	MPI_Buffer_detach(&detached, &bytes);
	free(buffer);
	for (int i = 0; i < KINDS_MOST; i++) {
		free(in[i]);
		free(out[i]);
	}
	return check_fini();
}
