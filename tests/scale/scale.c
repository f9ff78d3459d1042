/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many ranks on one machine, and what grows with what. Without an argument it is the test: every rank makes two CRs,
 * attaches continuations to receives, sends and an all-reduce, some in compute regions, some with a daemon; all run,
 * once. Rank 0 prints what contd added to a rank, for scale/run to compare with other numbers of ranks.
 *
 * usage: scale [job [figures]]   the test; with times
 *        scale pending N         1 rank: N events pending, then N receives
 *        scale threads N         1 rank: N attached threads
 *        scale crs N             1 rank: N CRs
 *        scale ring              peers: looking for them, and ringing those that were found
 *
 * Compiled with SCALE_PLAIN and without contd it is the bare program that memory and times are compared with.
 */
#ifndef SCALE_PLAIN
#include "mpi/check.h"
#else
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

static int check_rank, check_size;
static int check_failures;
#define CHECK_EQ(a, b) (check_failures += (a) != (b))
#define CHECK_OK(call) CHECK_EQ((call), MPI_SUCCESS)
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define NEIGHBOURS 4
#define MESSAGES 64 /* of each neighbour */
#define RECEIVES (NEIGHBOURS * MESSAGES)
#define TAG 7
#define REGION_NS 20000000 /* in which a rank computes; two processors are shared by all */

static const int distance[NEIGHBOURS] = {-2, -1, 1, 2};
static int in[RECEIVES], out[RECEIVES], sum_in, sum_out;
static MPI_Request receive[RECEIVES], send[RECEIVES], sum;

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------------- memory --- */

enum { PRIVATE, HEAP, RSS, PSS, DESCRIPTORS, WHATS };

struct use {
	long v[WHATS]; /* bytes, but for the number of descriptors */
};

static struct use use_now(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	struct mallinfo2 heap = mallinfo2();
	struct use u = {{0}};
	char line[256];
	DIR *dir;
	long kib;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Private_Clean: %ld", &kib) == 1 || sscanf(line, "Private_Dirty: %ld", &kib) == 1)
			u.v[PRIVATE] += kib << 10;
		else if (sscanf(line, "Rss: %ld", &kib) == 1)
			u.v[RSS] = kib << 10;
		else if (sscanf(line, "Pss: %ld", &kib) == 1)
			u.v[PSS] = kib << 10;
	}
	if (f)
		fclose(f);
	u.v[HEAP] = (long)(heap.uordblks + heap.hblkhd);
	dir = opendir("/proc/self/fd");
	while (dir && readdir(dir))
		u.v[DESCRIPTORS]++;
	if (dir)
		closedir(dir);
	return u;
}

/* --------------------------------------------------------------------------------------------- medians of ranks --- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return v[n / 2];
}

/* "name median/most", of all ranks. */
static void tell(const char *name, double mine, double unit)
{
	double *all = malloc((size_t)check_size * sizeof(*all));

	MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (check_rank == 0) {
		double middle = median(all, (size_t)check_size);

		printf("  %s %.6g/%.6g", name, middle / unit, all[check_size - 1] / unit);
	}
	free(all);
}

static void tell_use(const char *name, const struct use *u)
{
	if (check_rank == 0)
		printf("\n%s:", name);
	tell("private KiB", (double)u->v[PRIVATE], 1024);
	tell("heap KiB", (double)u->v[HEAP], 1024);
	tell("RSS KiB", (double)u->v[RSS], 1024);
	tell("PSS KiB", (double)u->v[PSS], 1024);
	tell("descriptors", (double)u->v[DESCRIPTORS], 1);
}

/* ------------------------------------------------------------------------------------------------- the exchange --- */

static int peer(int n)
{
	return ((check_rank + distance[n]) % check_size + check_size) % check_size;
}

/* A barrier that sleeps: all share two processors, and a spinning thread keeps the others from coming. */
static void together(void)
{
	MPI_Request all;
	int flag = 0;

	MPI_Ibarrier(MPI_COMM_WORLD, &all);
	for (;;) {
		MPI_Test(&all, &flag, MPI_STATUS_IGNORE);
		if (flag)
			return;
		usleep(500);
	}
}

/* Messages of the peer at distance[n] have the tag of the opposite distance: in small jobs a rank is at several. */
static void receives_begin(void)
{
	for (int i = 0; i < RECEIVES; i++) {
		int n = i % NEIGHBOURS;

		in[i] = -1;
		MPI_Irecv(&in[i], 1, MPI_INT, peer(n), TAG + i / NEIGHBOURS * NEIGHBOURS + NEIGHBOURS - 1 - n,
			  MPI_COMM_WORLD, &receive[i]);
	}
}

static void send_begin(int i)
{
	out[i] = check_rank * RECEIVES + i;
	MPI_Isend(&out[i], 1, MPI_INT, peer(i % NEIGHBOURS), TAG + i, MPI_COMM_WORLD, &send[i]);
}

static void sum_begin(void)
{
	sum_out = check_rank + 1;
	sum_in = -1;
	MPI_Iallreduce(&sum_out, &sum_in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &sum);
}

static void exchange_check(void)
{
	for (int i = 0; i < RECEIVES; i++) {
		int n = i % NEIGHBOURS;

		CHECK_EQ(in[i], peer(n) * RECEIVES + i / NEIGHBOURS * NEIGHBOURS + NEIGHBOURS - 1 - n);
	}
	CHECK_EQ(sum_in, check_size * (check_size + 1) / 2);
}

/* So that whatever MPI makes when it is first used is there before anything is measured. */
static void exchange_plainly(void)
{
	receives_begin();
	together();
	for (int i = 0; i < RECEIVES; i++)
		send_begin(i);
	sum_begin();
	MPI_Waitall(RECEIVES, receive, MPI_STATUSES_IGNORE);
	MPI_Waitall(RECEIVES, send, MPI_STATUSES_IGNORE);
	MPI_Wait(&sum, MPI_STATUS_IGNORE);
	exchange_check();
}

/* ---------------------------------------------------------------------------------------- the end of every rank --- */

/* Ranks that have left MPI tell how long that took through a file, which has no name any more. */
static double *ends_map(void)
{
	char name[64] = "";
	double *ends = MAP_FAILED;
	int fd = -1;

	if (check_rank == 0) {
		strcpy(name, "/dev/shm/contd-scale-XXXXXX");
		fd = mkstemp(name);
		if (fd < 0 || ftruncate(fd, (off_t)((size_t)check_size * sizeof(*ends))))
			name[0] = 0;
	}
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	if (check_rank != 0 && name[0])
		fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		ends = mmap(NULL, (size_t)check_size * sizeof(*ends), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	together();
	if (check_rank == 0 && name[0])
		unlink(name);
	return ends == MAP_FAILED ? NULL : ends;
}

static void finalize_timed(void)
{
	double *ends = ends_map(), begin;
	volatile double *mine = ends ? &ends[check_rank] : NULL;

	together();
	begin = now_ns();
	MPI_Finalize();
	if (!mine)
		return;
	*mine = now_ns() - begin;
	if (check_rank != 0)
		return;
	for (int i = 0; i < check_size; i++)
		for (int patience = 0; ((volatile double *)ends)[i] == 0 && patience < 2000; patience++)
			usleep(1000);
	printf("  finalize ms %.6g", median(ends, (size_t)check_size) / 1e6);
	printf("/%.6g\n", ends[check_size - 1] / 1e6);
}

#ifdef SCALE_PLAIN

int main(int argc, char **argv)
{
	bool figures = argc > 2 && strcmp(argv[2], "figures") == 0;
	double begin = now_ns(), init;
	struct use at_begin, at_end;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	init = now_ns() - begin;
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
	exchange_plainly();
	at_begin = use_now();
	exchange_plainly();
	at_end = use_now();
	if (figures) {
		if (check_rank == 0)
			printf("plain, %d ranks:", check_size);
		tell("MPI_Init ms", init, 1e6);
		tell_use("all, before", &at_begin);
		tell_use("all, at the end", &at_end);
		finalize_timed();
	} else {
		MPI_Finalize();
	}
	return check_failures != 0;
}

#else /* with contd */

/* Sixty-four ranks on two processors that others use as well take a minute to start, now and then. */
#define PATIENCE_SECONDS 200

static void section(const char *name)
{
	check_begin(name);
	alarm(PATIENCE_SECONDS);
}

static void start_mpi(int *argc, char ***argv)
{
	int level;

	check_watchdog();
	section("MPI_Init");
	MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
	if (level < MPI_THREAD_MULTIPLE) {
		fprintf(stderr, "skipped: MPI does not grant MPI_THREAD_MULTIPLE\n");
		MPI_Finalize();
		exit(CHECK_SKIPPED);
	}
}

static int end_mpi(void)
{
	int rc = check_sum();

	section("MPI_Finalize");
	MPI_Finalize();
	return rc || atomic_load(&check_failures);
}

/* ------------------------------------------------------------------------------------------------------ the job --- */

static struct use use_since(const struct use *before)
{
	struct use u = use_now();

	for (int i = 0; i < WHATS; i++)
		u.v[i] -= before->v[i];
	return u;
}

static atomic_int ran[2 * RECEIVES + 1];
static atomic_int runs;

static void callback(MPI_Status *status, void *data)
{
	(void)status;
	atomic_fetch_add((atomic_int *)data, 1);
	atomic_fetch_add(&runs, 1);
}

static void attach(MPI_Request *request, int i, MPI_Request cr)
{
	CHECK_OK(MPI_Continue(request, callback, &ran[i], MPI_STATUS_IGNORE, cr));
}

/* Computes for a while, or until everything has run. */
static void compute(void)
{
	double end = now_ns() + REGION_NS;

	contd_compute_begin();
	while (atomic_load(&runs) < 2 * RECEIVES + 1 && now_ns() < end)
		;
	contd_compute_end();
}

/*
 * The maximum over all ranks; for the heap the median, because MPI sometimes makes room for 32 more fragments on one
 * rank (53 KB). Memory that grows with the number of ranks would grow on all.
 */
static const struct use *worst(const struct use *mine)
{
	double *all = malloc((size_t)check_size * sizeof(*all)), heap = (double)mine->v[HEAP];
	static struct use most;

	MPI_Reduce(mine->v, most.v, WHATS, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Gather(&heap, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (check_rank == 0)
		most.v[HEAP] = (long)median(all, (size_t)check_size);
	free(all);
	return &most;
}

static int job(bool figures, double init)
{
	struct contd_stats stats = {.size = sizeof(stats)};
	struct use at_begin, started, attached, pending, at_end;
	bool daemon = check_rank % 4 == 1, region = check_rank % 4 == 0, blocks = check_rank % 8 == 3;
	double start, attaching = 0, t;
	MPI_Request cr[2];
	const struct use *most;

	if (figures)
		daemon = region = blocks = false;
	if (blocks)
		setenv("CONTD_AGENT", "block", 1);
	section("plain exchange");
	exchange_plainly();
	together();
	at_begin = use_now();

	section("start");
	t = now_ns();
	cr[0] = check_plain_cr();
	start = now_ns() - t;
	cr[1] = check_cr("mpi_continue_thread", "any", NULL, NULL);
	started = use_since(&at_begin);
	together();
	t = now_ns();
	if (region || figures)
		CHECK_EQ(contd_thread_attach(NULL), 0);
	attaching = now_ns() - t;
	if (daemon)
		CHECK_EQ(contd_daemon_start(NULL), 0);
	attached = use_since(&at_begin);

	section("attach");
	receives_begin();
	for (int i = 0; i < RECEIVES; i++)
		attach(&receive[i], i, cr[i & 1]);
	together();
	CHECK_EQ(atomic_load(&runs), 0); /* no rank has sent */
	pending = use_since(&at_begin);
	together();
	for (int i = 0; i < RECEIVES; i++) {
		send_begin(i);
		attach(&send[i], RECEIVES + i, cr[i & 1]);
		if (i % MESSAGES == 0)
			contd_mpi_ring(peer(i / MESSAGES), MPI_COMM_WORLD);
	}
	sum_begin();
	attach(&sum, 2 * RECEIVES, cr[0]);
	if (region)
		compute();

	section("wait");
	CHECK_OK(MPI_Wait(&cr[0], MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&cr[1], MPI_STATUS_IGNORE));
	for (int i = 0; i < 2 * RECEIVES + 1; i++)
		CHECK_EQ(atomic_load(&ran[i]), 1);
	exchange_check();
	CHECK_EQ(contd_stats_get(&stats), 0);
	CHECK_EQ(stats.registered, 2 * RECEIVES + 1);
	CHECK_EQ(stats.run, 2 * RECEIVES + 1);
	at_end = use_since(&at_begin);
	CHECK_OK(MPI_Request_free(&cr[0]));
	CHECK_OK(MPI_Request_free(&cr[1]));

	section("figures");
	pending.v[DESCRIPTORS] = at_end.v[DESCRIPTORS]; /* with those of the peers that were rung */
	most = worst(&pending);
	if (check_rank == 0 && !figures)
		printf("added: ranks %d private %ld heap %ld descriptors %ld\n", check_size, most->v[PRIVATE],
		       most->v[HEAP], most->v[DESCRIPTORS]);
	if (figures) {
		struct use all = use_now();

		if (check_rank == 0)
			printf("contd, %d ranks:", check_size);
		tell("MPI_Init ms", init, 1e6);
		tell("start ms", start, 1e6);
		tell("attach ms", attaching, 1e6);
		tell_use("all, before", &at_begin);
		tell_use("started", &started);
		tell_use("thread attached", &attached);
		tell_use("256 pending", &pending);
		tell_use("at the end", &at_end);
		tell_use("all, at the end", &all);
		finalize_timed();
		return atomic_load(&check_failures) != 0;
	}
	return end_mpi();
}

/* ----------------------------------------------------------------------------------------- what grows with what --- */

static atomic_int arrived;

static void count_event(int status, void *data)
{
	(void)status, (void)data;
}

static void arrive(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	atomic_fetch_add(&arrived, 1);
}

#define LOOKS 2000
#define TICKED_NS 5e8

static double look_event(void *data)
{
	double begin = now_ns();

	(void)data;
	contd_poll(0);
	return now_ns() - begin;
}

static double look_mpi(void *data)
{
	double begin = now_ns();
	int flag;

	MPI_Test(data, &flag, MPI_STATUS_IGNORE);
	return now_ns() - begin;
}

/* Until a message to oneself has run its continuation, on any thread. */
static double message(void *data)
{
	static int value;
	MPI_Request *cr = data, r;
	int before = atomic_load(&arrived), flag;
	double begin;

	MPI_Irecv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r);
	MPI_Continue(&r, arrive, NULL, MPI_STATUS_IGNORE, *cr);
	begin = now_ns();
	MPI_Send(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
	while (atomic_load(&arrived) == before)
		MPI_Test(cr, &flag, MPI_STATUS_IGNORE);
	return now_ns() - begin;
}

static double typical(double (*what)(void *data), void *data, int times)
{
	double *v = malloc((size_t)times * sizeof(*v)), m;

	for (int i = 0; i < times; i++)
		v[i] = what(data);
	m = median(v, (size_t)times);
	free(v);
	return m;
}

static void pending_events(long n)
{
	struct contd_event *event = calloc((size_t)n, sizeof(*event)), *one;
	struct contd_group *group;
	struct use before, use;
	double begin, each;

	memset(event, 0xff, (size_t)n * sizeof(*event));
	CHECK_EQ(contd_init(NULL), 0);
	CHECK_EQ(contd_group_create(NULL, &group), 0);
	before = use_now();
	begin = now_ns();
	for (long i = 0; i < n; i++) {
		one = &event[i];
		contd_event_init(one);
		contd_event_continue(1, &one, count_event, NULL, group, NULL);
	}
	each = (now_ns() - begin) / (double)n;
	use = use_since(&before);
	printf("events: pending %ld: private %.1f heap %.1f bytes each, attach %.0f ns each, contd_poll %.0f ns\n", n,
	       (double)use.v[PRIVATE] / (double)n, (double)use.v[HEAP] / (double)n, each,
	       typical(look_event, NULL, LOOKS));
	for (long i = 0; i < n; i++)
		contd_event_complete(&event[i], 0);
	CHECK_EQ(contd_group_wait(group, -1), 0);
	contd_group_destroy(group);
	CHECK_EQ(contd_fini(), 0);
	free(event);
}

/* A thread that computes in a region while they are pending: what each interruption takes, and the longest. */
static void tick(void)
{
	struct contd_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
	double end;

	CHECK_EQ(contd_thread_attach(NULL), 0);
	contd_stats_get(&before);
	end = now_ns() + TICKED_NS;
	contd_compute_begin();
	while (now_ns() < end)
		;
	contd_compute_end();
	contd_stats_get(&after);
	printf(", %ld ticks in 0.5 s, %.0f ns each, the longest %ld ns", (long)(after.ticks - before.ticks),
	       after.ticks > before.ticks
		       ? (double)(after.handler_ns - before.handler_ns) / (double)(after.ticks - before.ticks)
		       : 0,
	       (long)after.handler_max_ns);
	CHECK_EQ(contd_thread_detach(), 0);
}

/* The receives are another communicator's, so that MPI finds the receive of a message without passing them all. */
static void pending_receives(long n)
{
	MPI_Request *r = malloc((size_t)n * sizeof(*r)), cr = check_plain_cr();
	struct use before, mpi, use;
	double begin, each;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	memset(r, 0xff, (size_t)n * sizeof(*r));
	message(&cr);
	before = use_now();
	for (long i = 0; i < n; i++)
		MPI_Irecv(NULL, 0, MPI_BYTE, 0, TAG, comm, &r[i]);
	mpi = use_since(&before);
	before = use_now();
	begin = now_ns();
	for (long i = 0; i < n; i++)
		CHECK_OK(MPI_Continue(&r[i], arrive, NULL, MPI_STATUS_IGNORE, cr));
	each = (now_ns() - begin) / (double)n;
	use = use_since(&before);
	printf("receives: pending %ld: MPI's own %.1f, contd's private %.1f heap %.1f bytes each, attach %.0f ns each",
	       n, (double)mpi.v[PRIVATE] / (double)n, (double)use.v[PRIVATE] / (double)n,
	       (double)use.v[HEAP] / (double)n, each);
	printf(", MPI_Test %.0f ns", typical(look_mpi, &cr, LOOKS));
	printf(", message %.0f ns", typical(message, &cr, 101));
	tick();
	printf("\n");
	arrived = 0;
	for (long i = 0; i < n; i++)
		MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, comm);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	CHECK_EQ(atomic_load(&arrived), n);
	MPI_Request_free(&cr);
	MPI_Comm_free(&comm);
	free(r);
}

static pthread_barrier_t turn;
static bool attaches;

static void *thread(void *arg)
{
	pthread_barrier_wait(&turn);
	if (attaches)
		CHECK_EQ(contd_thread_attach(NULL), 0);
	pthread_barrier_wait(&turn); /* is measured */
	pthread_barrier_wait(&turn);
	return arg;
}

/* Signals that the user's processes have queued, or, as timers do, reserved: RLIMIT_SIGPENDING bounds them. */
static long signals_queued(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long n = 0;

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "SigQ: %ld", &n) != 1)
		;
	if (f)
		fclose(f);
	return n;
}

/* Threads that attach and threads that do not; first once for nothing, for stacks are kept and used again. */
static void threads(int n)
{
	pthread_t *t = malloc((size_t)n * sizeof(*t));
	struct use use[3];
	double each[3];
	long queued[3];
	MPI_Request cr = check_plain_cr();
	pthread_attr_t attr;

	CHECK_EQ(contd_thread_attach(NULL), 0); /* measures what a tick costs, once a process */
	CHECK_EQ(contd_thread_detach(), 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_barrier_init(&turn, NULL, (unsigned)n + 1);
	for (int round = 0; round < 3; round++) {
		attaches = round == 2;
		for (int i = 0; i < n; i++)
			pthread_create(&t[i], &attr, thread, NULL);
		pthread_barrier_wait(&turn);
		each[round] = now_ns();
		pthread_barrier_wait(&turn);
		each[round] = (now_ns() - each[round]) / n;
		use[round] = use_now();
		queued[round] = signals_queued();
		pthread_barrier_wait(&turn);
		for (int i = 0; i < n; i++)
			pthread_join(t[i], NULL);
	}
	printf("threads: %d: attached, each: private %.0f heap %.0f bytes, %.2f queued signals, %.0f ns\n", n,
	       (double)(use[2].v[PRIVATE] - use[1].v[PRIVATE]) / n, (double)(use[2].v[HEAP] - use[1].v[HEAP]) / n,
	       (double)(queued[2] - queued[1]) / n, each[2] - each[1]);
	MPI_Request_free(&cr);
	free(t);
}

static void crs(int n)
{
	MPI_Request first = check_plain_cr(), *cr = malloc((size_t)n * sizeof(*cr));
	double make, look, away;
	struct use before, use;

	memset(cr, 0xff, (size_t)n * sizeof(*cr));
	before = use_now();
	make = now_ns();
	for (int i = 0; i < n; i++)
		cr[i] = check_plain_cr();
	make = now_ns() - make;
	use = use_since(&before);
	look = typical(look_mpi, &first, LOOKS);
	away = now_ns();
	for (int i = 0; i < n; i++)
		MPI_Request_free(&cr[i]);
	away = now_ns() - away;
	printf("CRs: %d: private %.0f heap %.0f bytes each, make %.0f ns, free %.0f ns, MPI_Test of another %.0f ns\n",
	       n, (double)use.v[PRIVATE] / n, (double)use.v[HEAP] / n, make / n, away / n, look);
	MPI_Request_free(&first);
	free(cr);
}

static double ring_all(void *data)
{
	double begin = now_ns();

	(void)data;
	contd_mpi_ring_all(MPI_COMM_WORLD);
	return now_ns() - begin;
}

static double look_for_nobody(void *data)
{
	struct contd_bell *bell;
	double begin = now_ns();

	CHECK_EQ(contd_bell_open("no process listens by this name", (*(uint32_t *)data)++, &bell), -ENOENT);
	return now_ns() - begin;
}

/* MPI's translation of a communicator's ranks into ranks of the world: at the first ring. */
static double translate(void *data)
{
	int *rank = data;
	MPI_Group world;
	double begin;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	for (int i = 0; i < check_size; i++)
		rank[i] = i;
	begin = now_ns();
	MPI_Group_translate_ranks(world, check_size, rank, world, rank + check_size);
	begin = now_ns() - begin;
	CHECK_EQ(rank[2 * check_size - 1], check_size - 1);
	MPI_Group_free(&world);
	return begin;
}

/* One rank looks for all others, which sleep. */
static void ring(void)
{
	MPI_Request cr = check_plain_cr();
	double first = 0, then = 0, nobody = 0, translated = 0;
	int *rank = malloc(2 * sizeof(*rank) * (size_t)check_size);
	uint32_t number = 0;
	struct use before, use = {{0}};

	together();
	if (check_rank == 0) {
		before = use_now();
		first = ring_all(NULL);
		use = use_since(&before);
		then = typical(ring_all, NULL, LOOKS);
		translated = typical(translate, rank, LOOKS);
		nobody = typical(look_for_nobody, &number, LOOKS);
	}
	together();
	if (check_rank == 0)
		printf("ring, %d ranks:", check_size);
	if (check_rank == 0)
		printf(" first %.6g us, then %.6g us, looking for one that is not there %.6g us, "
		       "MPI_Group_translate_ranks %.6g us; "
		       "added: private %ld heap %ld bytes, descriptors %ld\n",
		       first / 1e3, then / 1e3, nobody / 1e3, translated / 1e3, use.v[PRIVATE], use.v[HEAP],
		       use.v[DESCRIPTORS]);
	free(rank);
	MPI_Request_free(&cr);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "job";
	bool figures = argc > 2 && strcmp(argv[2], "figures") == 0;
	long n = argc > 2 && !figures ? atol(argv[2]) : 0;
	double begin = now_ns();

	start_mpi(&argc, &argv);
	if (strcmp(what, "job") == 0)
		return job(figures, now_ns() - begin);
	if (strcmp(what, "ring") == 0) {
		ring();
	} else if (n < 1) {
		fprintf(stderr, "usage: scale [job [figures] | pending N | threads N | crs N | ring]\n");
		check_failures++;
	} else if (strcmp(what, "pending") == 0) {
		alarm(0); /* a million take their time */
		pending_events(n);
		pending_receives(n);
	} else if (strcmp(what, "threads") == 0) {
		threads((int)n);
	} else if (strcmp(what, "crs") == 0) {
		crs((int)n);
	}
	return end_mpi();
}

#endif
