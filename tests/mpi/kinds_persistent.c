/* SPDX-License-Identifier: BSD-3-Clause */
/* Continuations on persistent sends of all modes and receives, and on partitioned communication where the MPI has
 * it. */
#include "kinds.h"
#include "../mpi4.h"

#define TAG 29
#define LARGE (256 << 10)
#define KINDS_MOST 24
#define LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, PARTITIONED };

struct message {
	enum mode mode;
	int bytes;
	bool any_source;
};

static MPI_Comm comm;
static int from, to;
static unsigned char *in[KINDS_MOST], *out[KINDS_MOST];
static MPI_Status nobodys[KINDS_MOST]; /* what MPI itself reports of a receive from MPI_PROC_NULL */
static const struct kind *base;

static unsigned char *buffer_of(unsigned char *set[], const struct kind *k)
{
	if (!set[k - base])
		set[k - base] = malloc(LARGE);
	return set[k - base];
}

static unsigned seed_of(int rank, int round)
{
	return (unsigned)(rank * 100 + round);
}

#define PARTS 5

static void make(const struct kind *k, MPI_Request r[])
{
	const struct message *m = k->how;
	unsigned char *o = buffer_of(out, k), *i = buffer_of(in, k);
	int tag = TAG + (int)(k - base);

#ifdef HAS_MPI_4
	if (m->mode == PARTITIONED) {
		MPI_Precv_init(i, PARTS, m->bytes / PARTS, MPI_BYTE, from, tag, comm, MPI_INFO_NULL, &r[0]);
		MPI_Psend_init(o, PARTS, m->bytes / PARTS, MPI_BYTE, to, tag, comm, MPI_INFO_NULL, &r[1]);
		return;
	}
#endif
	MPI_Recv_init(i, LARGE, MPI_BYTE, m->any_source && from >= 0 ? MPI_ANY_SOURCE : from, tag, comm, &r[0]);
	if (m->mode == STANDARD)
		MPI_Send_init(o, m->bytes, MPI_BYTE, to, tag, comm, &r[1]);
	else if (m->mode == SYNCHRONOUS)
		MPI_Ssend_init(o, m->bytes, MPI_BYTE, to, tag, comm, &r[1]);
	else if (m->mode == BUFFERED)
		MPI_Bsend_init(o, m->bytes, MPI_BYTE, to, tag, comm, &r[1]);
	else
		MPI_Rsend_init(o, m->bytes, MPI_BYTE, to, tag, comm, &r[1]);
}

static void begin(const struct kind *k, int round, MPI_Request r[])
{
	const struct message *m = k->how;
	int rank;

	MPI_Comm_rank(comm, &rank);
	if (r[0] == MPI_REQUEST_NULL)
		make(k, r);
	pattern_fill(buffer_of(out, k), (size_t)m->bytes, seed_of(rank, round));
	memset(buffer_of(in, k), 0xee, LARGE);
	if (m->mode == READY) {
		CHECK_OK(MPI_Start(&r[0]));
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK_OK(MPI_Start(&r[1]));
	} else if (round % 2) {
		CHECK_OK(MPI_Start(&r[0]));
		CHECK_OK(MPI_Start(&r[1]));
	} else {
		CHECK_OK(MPI_Startall(2, r));
	}
#ifdef HAS_MPI_4
	for (int p = 0; m->mode == PARTITIONED && p < PARTS; p++)
		CHECK_OK(MPI_Pready((p + round) % PARTS, r[1]));
#endif
}

/* From a Bsend_init of a large message Open MPI 4.1 may send what was there at an earlier start: with MPI_Wait too. */
static bool stale(const struct message *m)
{
#ifdef OPEN_MPI
	return m->mode == BUFFERED && m->bytes == LARGE;
#else
	(void)m;
	return false;
#endif
}

static void check(const struct kind *k, int round, int i, MPI_Status *s)
{
	const struct message *m = k->how;
	const unsigned char *buffer = buffer_of(in, k);
	int count = -1, cancelled = 1;

	if (s) {
		MPI_Test_cancelled(s, &cancelled);
		CHECK(!cancelled);
	}
	if (i == 1)
		return;
	if (from == MPI_PROC_NULL) {
		CHECK_EQ(buffer[0], 0xee);
		if (s) {
			CHECK_EQ(s->MPI_SOURCE, nobodys[k - base].MPI_SOURCE);
			CHECK_EQ(s->MPI_TAG, nobodys[k - base].MPI_TAG);
			MPI_Get_count(s, MPI_BYTE, &count);
			CHECK_EQ(count, 0);
		}
		return;
	}
	CHECK(stale(m) || pattern_holds(buffer, (size_t)m->bytes, seed_of(from, round)));
	if (m->bytes < LARGE)
		CHECK_EQ(buffer[m->bytes], 0xee);
	if (s)
		status_is_of(s, from, TAG + (int)(k - base), (size_t)m->bytes);
}

#define MESSAGE(...) (&(const struct message){__VA_ARGS__})
#define KIND(kind_name, ...) \
	{ \
		.name = (kind_name), .count = 2, .persistent = true, .begin = begin, .check = check, \
		.how = MESSAGE(__VA_ARGS__) \
	}
#define KIND_WAITS(kind_name, ...) \
	{ \
		.name = (kind_name), .count = 2, .persistent = true, .waits = true, .begin = begin, .check = check, \
		.how = MESSAGE(__VA_ARGS__) \
	}

static const struct kind kinds[] = {
	KIND("Send_init, Recv_init", .mode = STANDARD, .bytes = 100),
	KIND("Send_init, Recv_init, zero bytes", .mode = STANDARD, .bytes = 0),
	KIND("Send_init, Recv_init, large", .mode = STANDARD, .bytes = LARGE),
	KIND("Recv_init, MPI_ANY_SOURCE", .mode = STANDARD, .bytes = 100, .any_source = true),
	KIND("Recv_init, MPI_ANY_SOURCE, large", .mode = STANDARD, .bytes = LARGE, .any_source = true),
	KIND("Ssend_init", .mode = SYNCHRONOUS, .bytes = 100),
	KIND("Ssend_init, zero bytes", .mode = SYNCHRONOUS, .bytes = 0),
	KIND("Ssend_init, large", .mode = SYNCHRONOUS, .bytes = LARGE),
	KIND("Bsend_init", .mode = BUFFERED, .bytes = 100),
	KIND("Bsend_init, zero bytes", .mode = BUFFERED, .bytes = 0),
	KIND("Bsend_init, large", .mode = BUFFERED, .bytes = LARGE),
	KIND_WAITS("Rsend_init", .mode = READY, .bytes = 100),
	KIND_WAITS("Rsend_init, zero bytes", .mode = READY, .bytes = 0),
	KIND_WAITS("Rsend_init, large", .mode = READY, .bytes = LARGE),
};

#ifdef HAS_MPI_4
#define KIND_PARTITIONED(kind_name, ...) \
	{ \
		.name = (kind_name), .count = 2, .persistent = true, .keeps_status = true, .begin = begin, \
		.check = check, .how = MESSAGE(.mode = PARTITIONED, __VA_ARGS__) \
	}

static const struct kind partitioned[] = {
	KIND_PARTITIONED("Psend_init, Precv_init", .bytes = 20 * PARTS),
	KIND_PARTITIONED("Psend_init, Precv_init, zero bytes", .bytes = 0),
	KIND_PARTITIONED("Psend_init, Precv_init, large", .bytes = (LARGE / PARTS) * PARTS),
};

/* Open MPI 5.0 says so of a send that is started again: docs/requests.md, note 10. */
static bool complete_before_ready(void)
{
	unsigned char data[2][PARTS];
	MPI_Request r[2];
	int early = 0;

	MPI_Precv_init(data[0], PARTS, 1, MPI_BYTE, from, TAG, comm, MPI_INFO_NULL, &r[0]);
	MPI_Psend_init(data[1], PARTS, 1, MPI_BYTE, to, TAG, comm, MPI_INFO_NULL, &r[1]);
	for (int round = 0; round < 2; round++) {
		PMPI_Startall(2, r);
		for (int i = 0; i < 100 && !early; i++)
			PMPI_Request_get_status(r[1], &early, MPI_STATUS_IGNORE);
		for (int p = 0; p < PARTS; p++)
			PMPI_Pready(p, r[1]);
		PMPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
	MPI_Allreduce(MPI_IN_PLACE, &early, 1, MPI_INT, MPI_MAX, comm);
	return early;
}

/* Attached before any part is ready: nothing completes before the last one. */
static void check_partition_by_partition(void)
{
	unsigned char data[2][PARTS * 64];
	MPI_Request cr = check_plain_cr(), r[2];
	struct seen seen[2] = {0};
	MPI_Status status[2];
	int flag;

	check_begin("Pready after attaching");
	MPI_Precv_init(data[0], PARTS, 64, MPI_BYTE, from, TAG, comm, MPI_INFO_NULL, &r[0]);
	MPI_Psend_init(data[1], PARTS, 64, MPI_BYTE, to, TAG, comm, MPI_INFO_NULL, &r[1]);
	for (int round = 0; round < 20; round++) {
		pattern_fill(data[1], sizeof(data[1]), seed_of(check_rank, round));
		memset(data[0], 0xee, sizeof(data[0]));
		CHECK_OK(MPI_Startall(2, r));
		CHECK_OK(MPI_Continue(&r[0], see, &seen[0], &status[0], cr));
		CHECK_OK(MPI_Continue(&r[1], see, &seen[1], &status[1], cr));
		for (int p = 0; p < PARTS; p++) {
			CHECK_EQ(seen[1].runs, round);
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_OK(MPI_Pready((p * 2 + round) % PARTS, r[1]));
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen[0].runs, round + 1);
		CHECK_EQ(seen[1].runs, round + 1);
		CHECK(pattern_holds(data[0], sizeof(data[0]), seed_of(from, round)));
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
		CHECK_EQ(status[1].MPI_ERROR, MPI_SUCCESS);
	}
	CHECK_OK(MPI_Request_free(&r[0]));
	CHECK_OK(MPI_Request_free(&r[1]));
	CHECK_OK(MPI_Request_free(&cr));
}
#endif

static void run_some(const struct kind some[], int n, const char *suffix)
{
	base = some;
	for (int k = 0; k < n; k++) {
		MPI_Request r[KIND_REQUESTS] = {MPI_REQUEST_NULL};

		some[k].begin(&some[k], 0, r);
		MPI_Wait(&r[0], &nobodys[k]);
		MPI_Wait(&r[1], MPI_STATUS_IGNORE);
		MPI_Request_free(&r[0]);
		MPI_Request_free(&r[1]);
	}
	kinds_run(some, n, suffix, true);
}

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
	run_some(kinds, LENGTH(kinds), ", between groups");
	MPI_Comm_free(&comm);
	MPI_Comm_free(&group);
}

/* --------------------------------------------------------------------------------------- restarted in callbacks --- */

#define ROUNDS 200

/*
 * A message around the ring with each of the send modes, sent and received again by the continuations. For a ready send
 * the receiver says that it has started: with a message of no bytes, which the sender's continuation waits for.
 */
static struct {
	MPI_Request recv, send, ready_recv, cr;
	bool ready;
	int received, sent;
	int value, next_value;
} ring;

static void again_ready(MPI_Status *status, void *data);

static void again_sent(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ring.sent++;
	if (ring.sent == ROUNDS)
		return;
	ring.next_value++;
	if (ring.ready) {
		CHECK_OK(MPI_Start(&ring.ready_recv));
		CHECK_OK(MPI_Continue(&ring.ready_recv, again_ready, NULL, MPI_STATUS_IGNORE, ring.cr));
	} else {
		CHECK_OK(MPI_Start(&ring.send));
		CHECK_OK(MPI_Continue(&ring.send, again_sent, NULL, MPI_STATUS_IGNORE, ring.cr));
	}
}

static void again_ready(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	CHECK_OK(MPI_Start(&ring.send));
	CHECK_OK(MPI_Continue(&ring.send, again_sent, NULL, MPI_STATUS_IGNORE, ring.cr));
}

static void token_sent(MPI_Status *status, void *data)
{
	(void)status, (void)data;
}

static void receiver_starts(void);

static void again_received(MPI_Status *status, void *data)
{
	(void)data;
	CHECK_EQ(status->MPI_SOURCE, from);
	CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
	CHECK_EQ(ring.value, ring.received);
	if (++ring.received < ROUNDS)
		receiver_starts();
}

static void receiver_starts(void)
{
	static MPI_Status status;

	CHECK_OK(MPI_Start(&ring.recv));
	CHECK_OK(MPI_Continue(&ring.recv, again_received, NULL, &status, ring.cr));
	if (ring.ready) {
		MPI_Request r;

		MPI_Isend(NULL, 0, MPI_BYTE, from, TAG + 1, comm, &r);
		CHECK_OK(MPI_Continue(&r, token_sent, NULL, MPI_STATUS_IGNORE, ring.cr));
	}
}

static void check_restart(enum mode mode, const char *name)
{
	check_begin(name);
	memset(&ring, 0, sizeof(ring));
	ring.ready = mode == READY;
	ring.cr = check_plain_cr();
	MPI_Recv_init(&ring.value, 1, MPI_INT, from, TAG, comm, &ring.recv);
	MPI_Recv_init(NULL, 0, MPI_BYTE, to, TAG + 1, comm, &ring.ready_recv);
	if (mode == STANDARD)
		MPI_Send_init(&ring.next_value, 1, MPI_INT, to, TAG, comm, &ring.send);
	else if (mode == SYNCHRONOUS)
		MPI_Ssend_init(&ring.next_value, 1, MPI_INT, to, TAG, comm, &ring.send);
	else if (mode == BUFFERED)
		MPI_Bsend_init(&ring.next_value, 1, MPI_INT, to, TAG, comm, &ring.send);
	else
		MPI_Rsend_init(&ring.next_value, 1, MPI_INT, to, TAG, comm, &ring.send);
	receiver_starts();
	ring.sent--;
	ring.next_value--;
	again_sent(NULL, NULL);
	CHECK_OK(MPI_Wait(&ring.cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ring.received, ROUNDS);
	CHECK_EQ(ring.sent, ROUNDS);
	CHECK_OK(MPI_Request_free(&ring.recv));
	CHECK_OK(MPI_Request_free(&ring.send));
	CHECK_OK(MPI_Request_free(&ring.ready_recv));
	CHECK_OK(MPI_Request_free(&ring.cr));
	MPI_Barrier(MPI_COMM_WORLD);
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
	run_some(kinds, LENGTH(kinds), "");
	check_restart(STANDARD, "Send_init restarted in its callback");
	check_restart(SYNCHRONOUS, "Ssend_init restarted in its callback");
	check_restart(BUFFERED, "Bsend_init restarted in its callback");
	check_restart(READY, "Rsend_init restarted in its callback");
#ifdef HAS_MPI_4
	run_some(partitioned, LENGTH(partitioned), "");
	if (complete_before_ready())
		printf("left out: \"Pready after attaching\"; this MPI says that a partitioned send is complete before "
		       "that\n");
	else
		check_partition_by_partition();
#endif
	from = to = MPI_PROC_NULL;
	run_some(kinds, LENGTH(kinds), ", MPI_PROC_NULL");
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
