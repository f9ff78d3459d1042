/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A generalized request that a fabric operation completes: the operation's continuation calls
 * contd_mpi_grequest_complete(), wherever it is run, and who has a continuation on the request, or waits for it, sees
 * what its query_fn tells of the operation. Each rank has an endpoint that sends to itself. Usage: with_mpi_grequest
 * funneled|multiple.
 */
#include "fabric.h"
#undef CHECK /* fabric.h's end the process; those of MPI programs are counted */
#include "../mpi/mixed.h"

#include <pthread.h>

#define ROUNDS 12 /* of each pair; the last message of each kind is withdrawn */

/* The thread that reads the queue and runs the operation's continuation. */
enum reader { POLL, OTHER_THREAD, REGION, OUTSIDE, DAEMON, READERS };
static const char *const reader_name[READERS] = {"contd_poll", "contd_poll on another thread",
						 "the handler in a region", "the handler outside regions",
						 "the daemon"};

/* How the generalized request is looked at. */
enum looker { CONTINUE, CONTINUE_REVISED, EVENT, WAIT_FOR_IT, TEST_IT, LOOKERS };
static const char *const looker_name[LOOKERS] = {"MPI_Continue", "MPIX_Continue", "contd_mpi_event", "MPI_Wait",
						 "MPI_Testall"};

static struct fabric f;
static struct contd_fabric_queue *queue;
static struct contd_group *group[READERS], *plain;
static MPI_Request cr, revised;
static pthread_t main_thread;
static int level;
static struct contd_stats before = {.size = sizeof(before)};

/* One message, and the request that stands for it. */
static struct message {
	struct contd_fabric_op op;
	MPI_Request request;
	MPI_Status status;
	char in[64];
	atomic_int on_main, completed, refused; /* the operation's continuation; what the call returned */
	atomic_int queries, queries_before, frees, frees_before, runs;
	atomic_int event_status;
} m;

static int query(void *extra, MPI_Status *status)
{
	struct message *msg = extra;

	CHECK_EQ(msg->completed, 1);
	CHECK_EQ(msg->frees, 0);
	MPI_Status_set_elements(status, MPI_BYTE, msg->op.status ? 0 : (int)msg->op.length);
	MPI_Status_set_cancelled(status, msg->op.status == -FI_ECANCELED);
	status->MPI_SOURCE = check_rank;
	status->MPI_TAG = (int)msg->op.tag;
	msg->queries++;
	return MPI_SUCCESS;
}

static int free_it(void *extra)
{
	((struct message *)extra)->frees++;
	return MPI_SUCCESS;
}

static int cancel_it(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

/* The operation's continuation. Async-signal-safe. */
static void on_message(int status, void *data)
{
	struct message *msg = data;

	(void)status;
	msg->on_main = pthread_self() == main_thread;
	msg->completed++; /* before: a thread that waits for the request may look at once */
	if (contd_mpi_grequest_complete(msg->request) != MPI_SUCCESS)
		msg->refused++;
}

static void ran(void)
{
	m.queries_before = (int)m.queries;
	m.frees_before = (int)m.frees;
	m.runs++;
}

static void on_general(MPI_Status *status, void *data)
{
	CHECK(status == data);
	ran();
}

static int on_general_revised(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	CHECK(data == &m.status);
	ran();
	return MPI_SUCCESS;
}

static void on_event(int status, void *data)
{
	(void)data;
	m.event_status = status;
	ran();
}

/* ------------------------------------------------------------------------------------------------------ readers --- */

static atomic_int other_polls, end;

static void *polls(void *arg)
{
	while (!atomic_load(&end)) {
		if (atomic_load(&other_polls))
			CHECK(contd_poll(0) >= 0);
		else
			usleep(100);
	}
	return arg;
}

/* This reader alone makes the operation's continuation run. */
static void read_by(enum reader reader)
{
	static volatile double sink;

	switch (reader) {
	case POLL:
		while (!m.completed)
			CHECK(contd_poll(0) >= 0);
		break;
	case REGION:
		contd_compute_begin();
		while (!m.completed)
			sink = sink + 1;
		contd_compute_end();
		break;
	case OTHER_THREAD:
		atomic_store(&other_polls, 1);
		while (!m.completed)
			sink = sink + 1;
		atomic_store(&other_polls, 0);
		break;
	default:
		while (!m.completed)
			sink = sink + 1;
	}
}

static void reader_begin(enum reader reader)
{
	CHECK_EQ(contd_stats_get(&before), 0);
	if (reader == REGION || reader == OUTSIDE)
		CHECK_EQ(contd_thread_attach(NULL), 0);
	if (reader == OUTSIDE || reader == DAEMON)
		CHECK_EQ(contd_daemon_start(NULL), 0);
}

static void reader_end(enum reader reader, int rounds)
{
	struct contd_stats after = {.size = sizeof(after)};

	if (reader == OUTSIDE || reader == DAEMON)
		CHECK_EQ(contd_daemon_stop(), 0);
	if (reader == REGION || reader == OUTSIDE)
		CHECK_EQ(contd_thread_detach(), 0);
	CHECK_EQ(contd_stats_get(&after), 0);
	if (reader == OUTSIDE)
		CHECK(after.run_handler - before.run_handler >= (uint64_t)rounds);
	if (reader == REGION)
		CHECK(after.run_region - before.run_region >= (uint64_t)rounds);
	if (reader == DAEMON)
		CHECK(after.run_daemon - before.run_daemon >= (uint64_t)rounds);
}

/* ------------------------------------------------------------------------------------------------------ a round --- */

static void look(enum looker how, struct contd_event *event, struct contd_event *const events[])
{
	MPI_Request handle = m.request;

	switch (how) {
	case CONTINUE:
		CHECK_OK(MPI_Continue(&handle, on_general, &m.status, &m.status, cr));
		break;
	case CONTINUE_REVISED:
		CHECK_OK(MPI_Start(&revised));
		CHECK_OK(MPIX_Continue(&handle, on_general_revised, &m.status, 0, &m.status, revised));
		break;
	case EVENT:
		CHECK_OK(contd_mpi_event(&handle, &m.status, event));
		CHECK_EQ(contd_event_continue(1, events, on_event, NULL, plain, NULL), 0);
		break;
	default:
		return; /* when it is complete */
	}
	CHECK(handle == MPI_REQUEST_NULL);
}

static void finish(enum looker how)
{
	MPI_Request both[2] = {MPI_REQUEST_NULL, m.request};
	MPI_Status statuses[2] = {m.status, m.status};
	int flag = 0;

	switch (how) {
	case CONTINUE:
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		break;
	case CONTINUE_REVISED:
		CHECK_OK(MPI_Wait(&revised, MPI_STATUS_IGNORE));
		break;
	case EVENT:
		CHECK_EQ(contd_group_wait(plain, 60000000000), 0);
		break;
	case WAIT_FOR_IT:
		CHECK_OK(MPI_Wait(&both[1], &m.status));
		ran();
		break;
	default:
		while (!flag)
			CHECK_OK(MPI_Testall(2, both, &flag, statuses));
		m.status = statuses[1];
		ran();
	}
	if (how >= WAIT_FOR_IT)
		CHECK(both[1] == MPI_REQUEST_NULL);
}

static void one(enum reader reader, enum looker how, int tag, bool withdrawn)
{
	struct contd_event event, *const events[] = {&event};
	char out[64] = "of the fabric";
	size_t length = 1 + (size_t)tag % sizeof(out);
	int count = -1, cancelled = -1;

	memset(&m, 0, sizeof(m));
	memset(&m.op, POISON, sizeof(m.op));
	status_poison(&m.status);
	m.status.MPI_ERROR = MPI_SUCCESS; /* Wait and Testall may leave it as it was */
	CHECK_OK(MPI_Grequest_start(query, free_it, cancel_it, &m, &m.request));
	look(how, &event, events);
	CHECK_EQ(contd_fabric_begin_continue(queue, &m.op, on_message, &m, group[reader]), 0);
	if (withdrawn) {
		CHECK_EQ(contd_fabric_withdraw(&m.op, -FI_ECANCELED), 0);
	} else {
		POST(fi_trecv(f.ep, m.in, sizeof(m.in), fabric_desc, FI_ADDR_UNSPEC, (uint64_t)tag, 0, &m.op));
		CHECK_EQ(m.completed + m.queries + m.frees + m.runs, 0);
		POST(fi_tinject(f.ep, out, length, f.peer, (uint64_t)tag));
	}
	read_by(reader);
	finish(how);
	CHECK_EQ(m.completed, 1);
	CHECK_EQ(m.refused, 0);
	CHECK_EQ(m.runs, 1);
	CHECK(m.queries_before >= 1);
	CHECK_EQ(m.event_status, 0);
	if (reader <= OTHER_THREAD || reader == DAEMON)
		CHECK_EQ(m.on_main, reader == POLL);
	if (how == CONTINUE || how == CONTINUE_REVISED) /* an event's continuations are not the request's */
		CHECK_EQ(m.frees_before, 0);
	for (int i = 0; i < 1000000 && !m.frees;
	     i++) /* the callback ran in a handler, maybe: the next MPI call frees */
		MPI_Test(&cr, &cancelled, MPI_STATUS_IGNORE);
	CHECK_EQ(m.frees, 1);
	CHECK_EQ(m.status.MPI_ERROR, MPI_SUCCESS);
	CHECK_OK(MPI_Test_cancelled(&m.status, &cancelled));
	CHECK_EQ(cancelled, withdrawn);
	CHECK_OK(MPI_Get_count(&m.status, MPI_BYTE, &count));
	if (withdrawn) {
		CHECK_EQ(count, 0);
		return;
	}
	CHECK_EQ(m.status.MPI_SOURCE, check_rank);
	CHECK_EQ(m.status.MPI_TAG, tag);
	CHECK_EQ(count, length);
	CHECK(memcmp(m.in, out, length) == 0);
}

static void rounds_of(enum reader reader)
{
	char name[100];
	int tag = 100 * (int)reader;

	reader_begin(reader);
	for (enum looker how = CONTINUE; how < LOOKERS; how++) {
		snprintf(name, sizeof(name), "%s; %s", reader_name[reader], looker_name[how]);
		check_begin(name);
		for (int i = 0; i < ROUNDS; i++)
			one(reader, how, tag++, i == ROUNDS - 1);
	}
	check_begin(reader_name[reader]);
	reader_end(reader, LOOKERS * (ROUNDS - 1));
}

/* Many under way at a time, one continuation for all requests; the fabric's completions come in any order. */
static void check_many(void)
{
	enum { MANY = 100 };
	static struct message many[MANY];
	MPI_Request r[MANY];
	MPI_Status statuses[MANY];
	struct seen seen = {0};
	char out = 7;

	check_begin("many");
	for (int i = 0; i < MANY; i++) {
		memset(&many[i], 0, sizeof(many[i]));
		CHECK_OK(MPI_Grequest_start(query, free_it, cancel_it, &many[i], &many[i].request));
		r[i] = many[i].request;
		CHECK_EQ(contd_fabric_begin_continue(queue, &many[i].op, on_message, &many[i], group[POLL]), 0);
		POST(fi_trecv(f.ep, many[i].in, 1, fabric_desc, FI_ADDR_UNSPEC, 1000 + (uint64_t)i, 0, &many[i].op));
	}
	CHECK_OK(MPI_Continueall(MANY, r, see, &seen, statuses, cr));
	for (int i = MANY; i-- > 0;)
		POST(fi_tinject(f.ep, &out, 1, f.peer, 1000 + (uint64_t)(i * 37 % MANY)));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE)); /* drives the fabric too */
	CHECK_EQ(seen.runs, 1);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(statuses[i].MPI_TAG, 1000 + i);
		CHECK_EQ(many[i].completed, 1);
		CHECK_EQ(many[i].frees, 1);
	}
}

int main(int argc, char **argv)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .max_poll = -1};
	struct fi_info *info = fabric_info("tcp", FI_EP_RDM, FI_TAGGED, 0, 0);
	pthread_t thread;
	int there = info != NULL;

	fi_freeinfo(info);
	level = argc > 1 && strcmp(argv[1], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
	check_init(&argc, &argv, level);
	check_unbind();
	CHECK_OK(MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
	if (!there) {
		if (check_rank == 0)
			fprintf(stderr, "skipped: libfabric has no provider tcp;ofi_rxm here\n");
		MPI_Finalize();
		return CHECK_SKIPPED;
	}
	main_thread = pthread_self();
	fabric_open(&f, "tcp", FI_TAGGED);
	plain = fabric_begin_contd();
	for (enum reader reader = POLL; reader < READERS; reader++) {
		attr.flags = reader == OUTSIDE ? CONTD_ASYNC_SIGNAL_SAFE : reader == DAEMON ? CONTD_THREAD_ANY : 0;
		CHECK_EQ(contd_group_create(&attr, &group[reader]), 0);
	}
	queue = fabric_queue(&f, NULL, 0, 0);
	cr = check_plain_cr();
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &revised));
	pthread_create(&thread, NULL, polls, NULL);
	for (enum reader reader = POLL; reader < READERS; reader++)
		rounds_of(reader);
	check_many();
	atomic_store(&end, 1);
	pthread_join(thread, NULL);
	CHECK_OK(MPI_Request_free(&revised));
	CHECK_OK(MPI_Request_free(&cr));
	fabric_close_queue(&f, queue);
	for (enum reader reader = POLL; reader < READERS; reader++)
		CHECK_EQ(contd_group_destroy(group[reader]), 0);
	fabric_end_contd(plain);
	fabric_close(&f);
	return check_fini();
}
