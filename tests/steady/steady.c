/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A steady mix of everything that continuations are attached to, for as many of them as asked for. Nothing may grow:
 * neither memory (resident and from malloc), nor the handles of MPI's, after the first tenth of the run; and contd's
 * statistics agree with what was registered here.
 *
 * usage: steady [--short | --full] [millions of continuations, of all ranks]
 * Without --full it ends after CONTD_STORM_SECONDS at the latest.
 */
#include <malloc.h>
#include <time.h>

#include "mpi/check.h"

#define TAG 7
#define MANY 64
#define LONG_BYTES (256 << 10)
#define FULL_MILLIONS 100.
#define SHORT_MILLIONS 20.
#define GROWTH_MOST (2 << 20)
#define MALLOC_GROWTH_MOST (256 << 10)

static MPI_Comm world = MPI_COMM_NULL; /* errors return */
static MPI_Request draft, polled, revised;
static uint64_t registered, ran; /* that have failed and wait for get_failed count as run */
static unsigned long round_number;
static int next, previous;
static int in[2 * MANY], out[2 * MANY];
static char *long_in, *long_out;

static void draft_cb(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ran++;
}

static int revised_cb(int rc, void *data)
{
	(void)data;
	ran++;
	CHECK_EQ(rc, MPI_SUCCESS);
	return MPI_SUCCESS;
}

static void attach(MPI_Request *request, MPI_Request cr)
{
	CHECK_OK(MPI_Continue(request, draft_cb, NULL, MPI_STATUS_IGNORE, cr));
	registered++;
}

static void attach_revised(MPI_Request *request, int flags, MPI_Status *status, MPI_Request cr)
{
	CHECK_OK(MPIX_Continue(request, revised_cb, NULL, flags, status, cr));
	registered++;
}

static void irecv(int i, MPI_Request *request)
{
	MPI_Irecv(&in[i], 1, MPI_INT, previous, TAG + i, world, request);
}

static void isend(int i, MPI_Request *request)
{
	out[i] = (int)round_number + i;
	MPI_Isend(&out[i], 1, MPI_INT, next, TAG + i, world, request);
}

static void came(int i)
{
	CHECK_EQ(in[i], (int)round_number + i);
}

static void wait_for(MPI_Request *cr)
{
	CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
}

/* --------------------------------------------------------------------------------------------- the draft's --- */

static void pending(void)
{
	MPI_Request request;

	for (int i = 0; i < MANY; i++) {
		irecv(i, &request);
		attach(&request, draft);
	}
	for (int i = 0; i < MANY; i++) {
		isend(i, &request);
		attach(&request, draft);
	}
	wait_for(&draft);
	for (int i = 0; i < MANY; i++)
		came(i);
}

static void complete_already(void)
{
	MPI_Request request;

	for (int i = 0; i < MANY; i++) {
		request = MPI_REQUEST_NULL;
		attach(&request, draft);
		MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, TAG, world, &request);
		attach(&request, draft);
	}
	for (int i = 0; i < 8; i++)
		isend(i, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < 8; i++) {
		int flag = 0;

		irecv(i, &request);
		while (!flag)
			MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
		attach(&request, draft);
		came(i);
	}
	wait_for(&draft);
}

/* Of 2 to 2 * MANY, with statuses. */
static void sets(void)
{
	MPI_Request requests[2 * MANY];
	MPI_Status statuses[2 * MANY];

	for (int n = 1; n <= MANY; n *= 4) {
		for (int i = 0; i < n; i++) {
			irecv(i, &requests[2 * i]);
			isend(i, &requests[2 * i + 1]);
		}
		CHECK_OK(MPI_Continueall(2 * n, requests, draft_cb, NULL, n & 4 ? MPI_STATUSES_IGNORE : statuses,
					 draft));
		registered++;
		wait_for(&draft);
	}
}

static void poll_only(void)
{
	MPI_Request request;
	int flag = 0;

	for (int i = 0; i < 16; i++) {
		irecv(i, &request);
		attach(&request, polled);
		isend(i, &request);
		attach(&request, polled);
	}
	while (!flag)
		CHECK_OK(MPI_Test(&polled, &flag, MPI_STATUS_IGNORE));
}

#define PERSISTENT 4
#define RESTARTS 16

static struct restarted {
	MPI_Request request;
	int left, value;
} persistent[PERSISTENT];

static void restart_cb(MPI_Status *status, void *data)
{
	struct restarted *p = data;

	(void)status;
	ran++;
	if (--p->left == 0) {
		if (round_number % 8 == 7)
			MPI_Request_free(&p->request);
		return;
	}
	MPI_Start(&p->request);
	CHECK_OK(MPI_Continue(&p->request, restart_cb, p, MPI_STATUS_IGNORE, draft));
	registered++;
}

/* Made again in every eighth round. */
static void restarted(void)
{
	for (int i = 0; i < PERSISTENT; i++) {
		struct restarted *p = &persistent[i];

		if (p->request == MPI_REQUEST_NULL)
			MPI_Recv_init(&p->value, 1, MPI_INT, previous, TAG + i, world, &p->request);
		p->left = RESTARTS;
		MPI_Start(&p->request);
		CHECK_OK(MPI_Continue(&p->request, restart_cb, p, MPI_STATUS_IGNORE, draft));
		registered++;
	}
	for (int n = 0; n < RESTARTS; n++)
		for (int i = 0; i < PERSISTENT; i++)
			MPI_Send(&n, 1, MPI_INT, next, TAG + i, world);
	wait_for(&draft);
}

/* With a new info object and Fortran handle, and freed before its continuations have run. */
static void short_lived(void)
{
	static const char *const keys[] = {"mpi_continue_enqueue_complete", "mpi_continue_thread",
					   "mpi_continue_max_poll"};
	static const char *const values[] = {"true", "any", "3"};
	unsigned k = round_number % 3;
	uint64_t before = ran;
	MPI_Request cr, request;
	MPI_Info info;
	int flag;

	MPI_Info_create(&info);
	MPI_Info_set(info, keys[k], values[k]);
	CHECK_OK(MPI_Continue_init(info, &cr));
	MPI_Info_free(&info);
	CHECK(MPI_Request_f2c(MPI_Request_c2f(cr)) == cr);
	for (int i = 0; i < 4; i++) {
		irecv(i, &request);
		attach(&request, cr);
	}
	CHECK_OK(MPI_Request_free(&cr));
	for (int i = 0; i < 4; i++)
		MPI_Send(&k, 1, MPI_INT, next, TAG + i, world);
	while (ran < before + 4)
		MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* One CR waits for another. */
static void chained(void)
{
	MPI_Request first, second, request[2];

	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &first));
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &second));
	for (int n = 0; n < 4; n++) {
		irecv(0, &request[0]);
		attach(&request[0], first);
		request[0] = first;
		irecv(1, &request[1]);
		CHECK_OK(MPI_Continueall(2, request, draft_cb, NULL, MPI_STATUSES_IGNORE, second));
		registered++;
		request[0] = first;
		isend(0, &request[0]);
		isend(1, &request[1]);
		attach(&request[0], draft);
		attach(&request[1], draft);
		wait_for(&second);
		wait_for(&first);
	}
	CHECK_OK(MPI_Request_free(&first));
	CHECK_OK(MPI_Request_free(&second));
	wait_for(&draft);
}

/* Generalized requests, a rendezvous, a cancelled receive. */
static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = 0;
	return MPI_SUCCESS;
}

static int nothing(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int no_cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void other_kinds(void)
{
	MPI_Request request, grequest;

	MPI_Grequest_start(query, nothing, no_cancel, NULL, &request);
	grequest = request;
	attach(&request, draft);
	MPI_Grequest_complete(grequest);
	MPI_Irecv(in, 1, MPI_INT, previous, TAG + MANY, world, &request);
	MPI_Cancel(&request);
	attach(&request, draft);
	if (round_number % 8 == 0) {
		MPI_Irecv(long_in, LONG_BYTES, MPI_BYTE, previous, TAG, world, &request);
		attach(&request, draft);
		MPI_Isend(long_out, LONG_BYTES, MPI_BYTE, next, TAG, world, &request);
		attach(&request, draft);
	}
	wait_for(&draft);
}

/* On a duplicate of the communicator, freed in the last callback. */
static MPI_Comm duplicate = MPI_COMM_NULL;
static int sum_in, sum_out;

static void reduced_cb(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ran++;
	CHECK_EQ(sum_out, check_size);
	MPI_Comm_free(&duplicate);
}

static void duplicated_cb(MPI_Status *status, void *data)
{
	MPI_Request requests[2];

	(void)status, (void)data;
	ran++;
	sum_in = 1;
	MPI_Iallreduce(&sum_in, &sum_out, 1, MPI_INT, MPI_SUM, duplicate, &requests[0]);
	MPI_Ibarrier(duplicate, &requests[1]);
	CHECK_OK(MPI_Continueall(2, requests, reduced_cb, NULL, MPI_STATUSES_IGNORE, draft));
	registered++;
}

static void collectives(void)
{
	MPI_Request request;

	MPI_Comm_idup(world, &duplicate, &request);
	CHECK_OK(MPI_Continue(&request, duplicated_cb, NULL, MPI_STATUS_IGNORE, draft));
	registered++;
	wait_for(&draft);
	CHECK(duplicate == MPI_COMM_NULL);
}

/* ------------------------------------------------------------------------------------------- the revised one --- */

static void pending_revised(void)
{
	static const int flags[] = {0, MPIX_CONT_REQBUF_VOLATILE, MPIX_CONT_DEFER_COMPLETE, MPIX_CONT_INVOKE_FAILED};
	MPI_Status statuses[MANY];
	MPI_Request request;

	/* Half of them while it is inactive. */
	for (int i = 0; i < MANY; i++) {
		if (i == MANY / 2)
			CHECK_OK(MPI_Start(&revised));
		irecv(i, &request);
		attach_revised(&request, flags[i % 4], i & 4 ? &statuses[i] : MPI_STATUS_IGNORE, revised);
	}
	for (int i = 0; i < MANY; i++) {
		isend(i, &request);
		attach_revised(&request, flags[i % 4], MPI_STATUS_IGNORE, revised);
	}
	wait_for(&revised);
	for (int i = 0; i < MANY; i++)
		came(i);
}

/* No CR at all, pending and complete. */
static void loose(void)
{
	MPI_Request request;
	int flag;

	for (int i = 0; i < 8; i++) {
		irecv(i, &request);
		attach_revised(&request, 0, MPI_STATUS_IGNORE, MPI_REQUEST_NULL);
		isend(i, &request);
		attach_revised(&request, 0, MPI_STATUS_IGNORE, MPI_REQUEST_NULL);
		request = MPI_REQUEST_NULL;
		attach_revised(&request, 0, MPI_STATUS_IGNORE, MPI_REQUEST_NULL);
	}
	while (ran < registered)
		MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static int failing_cb(int rc, void *data)
{
	ran++;
	*(int *)data = rc;
	return rc ? rc : MPI_ERR_OTHER;
}

/* A message that is too long for its receive: failures that run nothing, failures that run, callbacks that fail. */
static void failed(void)
{
	static int seen[4];
	MPI_Request request, requests[2];
	void *data[3];
	int count = 2, taken = 0, class;

	CHECK_OK(MPI_Start(&revised));
	request = MPI_REQUEST_NULL;
	CHECK_OK(MPIX_Continue(&request, failing_cb, &seen[0], 0, MPI_STATUS_IGNORE, revised));
	registered++;
	taken++;
	if (check_size > 1) { /* Open MPI 4.1 does not report a short truncated one to oneself */
		MPI_Irecv(in, 1, MPI_BYTE, previous, TAG, world, &request);
		CHECK_OK(MPIX_Continue(&request, failing_cb, &seen[1], 0, MPI_STATUS_IGNORE, revised));
		MPI_Irecv(in + 1, 1, MPI_BYTE, previous, TAG + 1, world, &requests[0]);
		irecv(2, &requests[1]);
		CHECK_OK(MPIX_Continueall(2, requests, failing_cb, &seen[2], MPIX_CONT_INVOKE_FAILED,
					  MPI_STATUSES_IGNORE, revised));
		registered += 2;
		ran++; /* the first one does not run, but waits to be taken */
		taken += 2;
		MPI_Send(out, 1, MPI_INT, next, TAG, world);
		MPI_Send(out, 1, MPI_INT, next, TAG + 1, world);
		MPI_Send(out, 1, MPI_INT, next, TAG + 2, world);
	}
	MPI_Error_class(MPI_Wait(&revised, MPI_STATUS_IGNORE), &class);
	CHECK(class != MPI_SUCCESS);
	while (count == 2) {
		CHECK_OK(MPIX_Continue_get_failed(revised, &count, data));
		taken -= count;
	}
	CHECK_EQ(taken, 0);
	if (check_size > 1)
		CHECK_EQ(seen[2], MPI_ERR_TRUNCATE);
}

/* ---------------------------------------------------------------------------------------------- what is watched --- */

static long resident(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}

/* Numbers of fresh handles: places in Open MPI's Fortran tables, or in MPICH's pools. */
struct handles {
	unsigned request, comm, info, cr;
};

static unsigned number_of(MPI_Fint fortran)
{
#ifdef OPEN_MPI
	return (unsigned)fortran;
#else
	return (unsigned)fortran & 0x3ffffff; /* its upper bits are the kind */
#endif
}

static struct handles handles(void)
{
	struct handles h = {0};
	MPI_Request request, cr;
	MPI_Info info;
	MPI_Comm comm;

	MPI_Irecv(in, 1, MPI_INT, previous, TAG + MANY, world, &request);
	h.request = number_of(MPI_Request_c2f(request));
	MPI_Cancel(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_dup(world, &comm);
	h.comm = number_of(MPI_Comm_c2f(comm));
	MPI_Comm_free(&comm);
	MPI_Info_create(&info);
	h.info = number_of(MPI_Info_c2f(info));
	MPI_Info_free(&info);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	h.cr = number_of(MPI_Request_c2f(cr));
	MPI_Request_free(&cr);
	return h;
}

struct state {
	long resident, allocated;
	struct handles handles; /* the greatest of some */
};

static void look(struct state *s)
{
	struct mallinfo2 m;

	MPI_Barrier(world);
	memset(&s->handles, 0, sizeof(s->handles));
	for (int i = 0; i < 100; i++) {
		struct handles h = handles();

		s->handles.request = h.request > s->handles.request ? h.request : s->handles.request;
		s->handles.comm = h.comm > s->handles.comm ? h.comm : s->handles.comm;
		s->handles.info = h.info > s->handles.info ? h.info : s->handles.info;
		s->handles.cr = h.cr > s->handles.cr ? h.cr : s->handles.cr;
	}
	m = mallinfo2();
	s->allocated = (long)(m.uordblks + m.hblkhd);
	s->resident = resident();
}

static void compare(const struct state *a, const struct state *b)
{
	fprintf(stderr,
		"rank %d: resident %ld KiB, then %+ld; from malloc %ld KiB, then %+ld bytes\n"
		"rank %d: handles: requests %u, then %u; communicators %u, %u; infos %u, %u; CRs %u, %u\n",
		check_rank, a->resident >> 10, (b->resident - a->resident) >> 10, a->allocated >> 10,
		b->allocated - a->allocated, check_rank, a->handles.request, b->handles.request, a->handles.comm,
		b->handles.comm, a->handles.info, b->handles.info, a->handles.cr, b->handles.cr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (a->allocated) { /* valgrind's malloc holds back freed memory */
		CHECK(b->resident - a->resident <= GROWTH_MOST);
		CHECK(b->allocated - a->allocated <= MALLOC_GROWTH_MOST);
	}
#endif
	/* MPICH's pools are used in any order: what was free before may be seen only in the end. */
	CHECK(b->handles.request <= a->handles.request + 4 * MANY);
	CHECK(b->handles.comm <= a->handles.comm + 8);
	CHECK(b->handles.info <= a->handles.info + 8);
	CHECK(b->handles.cr <= a->handles.cr + 4 * MANY);
}

/* --------------------------------------------------------------------------------------------------------- main --- */

static void one_round(void)
{
	pending();
	complete_already();
	pending_revised();
	sets();
	poll_only();
	loose();
	restarted();
	switch (round_number % 4) {
	case 0:
		short_lived();
		break;
	case 1:
		chained();
		break;
	case 2:
		failed();
		break;
	default:
		other_kinds();
	}
	if (round_number % 32 == 0)
		collectives();
	round_number++;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All ranks end in the same round. */
static bool time_is_over(double end)
{
	int over = now() > end;

	MPI_Bcast(&over, 1, MPI_INT, 0, world);
	return over;
}

int main(int argc, char **argv)
{
	struct contd_stats stats = {.size = sizeof(stats)};
	const char *seconds = getenv("CONTD_STORM_SECONDS");
	double millions = SHORT_MILLIONS, begin, warm, end;
	struct state first, last;
	bool full = false;
	uint64_t quota;
	int rc;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--full") == 0)
			full = true, millions = FULL_MILLIONS;
		else if (strcmp(argv[i], "--short") != 0)
			millions = strtod(argv[i], NULL);
	}
	next = check_next();
	previous = check_previous();
	for (int i = 0; i < PERSISTENT; i++)
		persistent[i].request = MPI_REQUEST_NULL;
	long_in = malloc(LONG_BYTES);
	long_out = calloc(1, LONG_BYTES);
	MPI_Comm_dup(MPI_COMM_WORLD, &world);
	MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	/* which MPICH 4.0 calls for its duplicates as well */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	draft = check_plain_cr();
	polled = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &revised));

	quota = (uint64_t)(millions * 1e6 / check_size);
	begin = now();
	end = begin + (full ? 1e9 : seconds ? atof(seconds) : 3);
	warm = full ? 1e9 : (end - begin) / 10;
	check_begin("the first tenth");
	while (registered < quota / 10 && (round_number % 8 || !time_is_over(begin + warm))) {
		one_round();
		if (round_number % 1024 == 0)
			alarm(CHECK_WATCHDOG_SECONDS);
	}
	look(&first);
	check_begin("the rest");
	while (registered < quota && (round_number % 8 || !time_is_over(end))) {
		one_round();
		if (round_number % 1024 == 0)
			alarm(CHECK_WATCHDOG_SECONDS);
	}
	look(&last);
	end = now();
	compare(&first, &last);
	CHECK_EQ(ran, registered);
	CHECK_EQ(contd_stats_get(&stats), 0);
	CHECK_EQ(stats.registered, registered);
	CHECK_EQ(stats.run, registered);
	CHECK_EQ(stats.cancelled, 0);
	if (check_rank == 0)
		printf("%.2f million continuations a rank in %.1f s: %.0f ns each\n", (double)registered / 1e6,
		       end - begin, (end - begin) / (double)registered * 1e9);

	for (int i = 0; i < PERSISTENT; i++)
		if (persistent[i].request != MPI_REQUEST_NULL)
			MPI_Request_free(&persistent[i].request);
	CHECK_OK(MPI_Request_free(&draft));
	CHECK_OK(MPI_Request_free(&polled));
	CHECK_OK(MPI_Request_free(&revised));
	rc = check_sum();
	MPI_Comm_free(&world);
	check_begin("MPI_Finalize");
	MPI_Finalize();
	free(long_in);
	free(long_out);
	return rc;
}
