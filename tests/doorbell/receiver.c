/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0: a program with contd that reacts while it computes. Its ticks are a second apart or more (the test sets
 * that), so that what makes it react at once is a ring. Usage: receiver MODE:
 *
 *  kinds, messages, one_sided, synchronizing   kinds.h
 *  explicit    the sender has no doorbell library, and calls contd_mpi_ring()
 *  many        a thousand operations pending
 *  burst       many messages: rings stay within the budget, everything runs, and rings come back
 *  off         CONTD_BELL=0: never a ring
 *  idle        in no region: no signal at all
 *  daemon      MPI_THREAD_MULTIPLE and the info key: the daemon is woken
 */
#include <pthread.h>

#include "../mpi/check.h"
#include "kinds.h"

static MPI_Request cr;
static int arrived;
static volatile int in_region;
static int value;

static void on_message(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	in_region += contd__tls.region != 0;
	__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
}

static struct contd_stats stats(void)
{
	struct contd_stats s = {.size = sizeof(s)};

	CHECK_EQ(contd_stats_get(&s), 0);
	return s;
}

static void go(const struct stage *s, int more)
{
	for (int i = 1; i < s->size; i++)
		MPI_Send(&more, 1, MPI_INT, i, TAG_GO, MPI_COMM_WORLD);
}

static void compute_until(int count)
{
	contd_compute_begin();
	while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < count)
		;
	contd_compute_end();
}

/* ----------------------------------------------------------------------------------------------------- its part --- */

static void answer(const struct stage *s, int k, int c)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int got = 0, one = 1;

	switch (k) {
	case KIND_Sendrecv:
	case KIND_Sendrecv_replace:
	case KIND_Isendrecv:
		MPI_Isend(&one, 1, MPI_INT, s->sender[c], TAG_KIND, s->comm[c], &request);
		break;
#if HAS_MPI4
	case KIND_Pready:
		MPI_Precv_init(&got, 1, 1, MPI_INT, s->sender[c], TAG_KIND, s->comm[c], MPI_INFO_NULL, &request);
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Request_free(&request);
		CHECK_EQ(got, 7);
		return;
#endif
	default:
		break;
	}
	CHECK_OK(MPI_Recv(&got, 1, MPI_INT, s->sender[c], TAG_KIND, s->comm[c], MPI_STATUS_IGNORE));
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK_EQ(got, 7);
}

struct partner {
	struct stage *s;
	int k;
};

/* Takes part while the main thread computes; that ends when rank 1 is through, and has rung. */
static void *partner(void *arg)
{
	struct partner *p = arg;
	int got;

	take_part(p->s, p->k, NULL, NULL);
	MPI_Recv(&got, 1, MPI_INT, 1, TAG_SILENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void round_of(struct stage *s, int k, int c, MPI_Win win)
{
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Comm copy = MPI_COMM_NULL;
	MPI_Group world, group;
	int one = 1, *b = s->buffer + LONG_INTS;
	pthread_t thread;

	arrived = 0;
	b[0] = 0;
	if (k >= END_COLLECTIVE && k < END_SYNCHRONIZING) /* what is sent after all: the bell is armed for it */
		MPI_Irecv(&value, 1, MPI_INT, 1, TAG_KIND, MPI_COMM_WORLD, &request);
	else if (k == KIND_Send_vector)
		MPI_Irecv(b, 1, s->vector, 1, TAG_SILENT, MPI_COMM_WORLD, &request);
	else if (k >= END_SYNCHRONIZING && k < END_MESSAGES)
		MPI_Irecv(b, LONG_INTS, MPI_INT, 1, TAG_SILENT, MPI_COMM_WORLD, &request);
	else
		MPI_Irecv(b, 1, MPI_INT, 1, TAG_SILENT, MPI_COMM_WORLD, &request);
	MPI_Continue(&request, on_message, NULL, MPI_STATUS_IGNORE, cr);
	if (k == KIND_Post_start) {
		MPI_Comm_group(MPI_COMM_WORLD, &world);
		MPI_Group_incl(world, 1, &one, &group);
		MPI_Win_post(group, 0, win);
	}
	go(s, 1);
	if (k >= END_COLLECTIVE && k < END_SYNCHRONIZING) {
		struct partner p = {s, k};

		CHECK_EQ(pthread_create(&thread, NULL, partner, &p), 0);
		compute_until(1);
		pthread_join(thread, NULL);
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
		return;
	}
	compute_until(1);
	CHECK(b[0] == 42);
	if (k < END_P2P) {
		answer(s, k, c);
	} else if (k < END_COLLECTIVE) {
		request = MPI_REQUEST_NULL;
		take_part(s, k, &request, &copy);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (request != MPI_REQUEST_NULL)
			MPI_Request_free(&request);
		if (copy != MPI_COMM_NULL)
			MPI_Comm_free(&copy);
	} else if (k == KIND_Sendrecv_1M) {
		MPI_Send(&one, 1, MPI_INT, 1, TAG_KIND, MPI_COMM_WORLD);
	} else if (k == KIND_Put_fence) {
		MPI_Win_fence(0, win);
		CHECK_EQ(s->buffer[0], 42);
	} else if (k == KIND_Post_start) {
		MPI_Win_wait(win);
		CHECK_EQ(s->buffer[0], 42);
		MPI_Group_free(&group);
		MPI_Group_free(&world);
	} else if (k == KIND_Put_unlock || k == KIND_Rput) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		CHECK_EQ(s->buffer[0], 42);
		MPI_Win_unlock(0, win);
	}
}

static void kinds(struct stage *s, int from, int to)
{
	MPI_Win win = MPI_WIN_NULL;

	if (to > END_MESSAGES)
		CHECK_OK(MPI_Win_create(s->buffer, 64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	for (int k = from; k < to; k++) {
		for (int c = 0; c < (k < END_P2P ? 3 : 1) && kind_is_there(k); c++) {
			struct contd_stats before = stats(), now = before;
			int rounds = 0;
			bool synchronizing = k >= END_COLLECTIVE && k < END_SYNCHRONIZING;

			check_begin(kind_name[k]);
			in_region = 0;
			/* A message that came before the region began needs no ring: another round. */
			while (rounds < ROUNDS_MOST &&
			       (now.rings == before.rings ||
				(!synchronizing && (uint64_t)in_region <= now.ticks - before.ticks))) {
				s->buffer[0] = 0;
				if (k == KIND_Put_fence)
					MPI_Win_fence(0, win);
				round_of(s, k, c, win);
				now = stats();
				rounds++;
			}
			if (k == KIND_Put_fence)
				MPI_Win_fence(0, win);
			go(s, 0);
			if (k == KIND_Put_fence)
				MPI_Win_fence(0, win);
			CHECK(now.rings > before.rings);
			if (!synchronizing)
				CHECK((uint64_t)in_region > now.ticks - before.ticks);
			if (getenv("CHECK_VERBOSE"))
				fprintf(stderr, "%s on %d: %d rounds, %d in the region, %llu rings, %llu ticks\n",
					kind_name[k], c, rounds, in_region,
					(unsigned long long)(now.rings - before.rings),
					(unsigned long long)(now.ticks - before.ticks));
		}
	}
	if (win != MPI_WIN_NULL)
		MPI_Win_free(&win);
}

/* ------------------------------------------------------------------------------------------------------ streams --- */

static int left;

/* In the region: the next one. */
static void next_message(MPI_Status *status, void *data)
{
	MPI_Request request;

	(void)status, (void)data;
	arrived++;
	if (--left > 0) {
		MPI_Irecv(&value, 1, MPI_INT, 1, TAG_KIND, MPI_COMM_WORLD, &request);
		MPI_Continue(&request, next_message, NULL, MPI_STATUS_IGNORE, cr);
	}
}

static uint64_t stream(struct stage *s, int n)
{
	struct contd_stats before = stats();
	MPI_Request request;

	arrived = 0;
	left = n;
	MPI_Irecv(&value, 1, MPI_INT, 1, TAG_KIND, MPI_COMM_WORLD, &request);
	MPI_Continue(&request, next_message, NULL, MPI_STATUS_IGNORE, cr);
	go(s, n);
	compute_until(n);
	return stats().rings - before.rings;
}

/* One message, so long after the last that the budget has recovered. */
static uint64_t trickle(struct stage *s, int n)
{
	uint64_t rings = 0;

	for (int i = 0; i < n && !rings; i++) {
		usleep(300000);
		rings += stream(s, 1);
	}
	return rings;
}

static void burst(struct stage *s)
{
	struct contd_stats before, now;
	struct timespec from, to;
	uint64_t ns;

	check_begin("rings come");
	CHECK(trickle(s, ROUNDS_MOST) > 0);
	check_begin("burst");
	before = stats();
	clock_gettime(CLOCK_MONOTONIC, &from);
	CHECK(stream(s, 3000) < 3000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	now = stats();
	ns = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
	/* Each costs a tick at least: what the whole may cost is the budget, and what was saved up. */
	CHECK((now.rings - before.rings) * now.tick_cost_ns / 2 < ns / 50 + 2000000 + 20 * now.tick_cost_ns);
	if (getenv("CHECK_VERBOSE"))
		fprintf(stderr, "burst: %llu rings, %llu ticks in %llu ns, a tick costs %llu ns\n",
			(unsigned long long)(now.rings - before.rings), (unsigned long long)(now.ticks - before.ticks),
			(unsigned long long)ns, (unsigned long long)now.tick_cost_ns);
	check_begin("they come back");
	CHECK(trickle(s, ROUNDS_MOST) > 0);
	go(s, 0);
}

/* Reactions to single messages, of which ticks explain some. */
static void explicit_rings(struct stage *s)
{
	struct contd_stats before = stats(), now;

	check_begin("explicit");
	for (int i = 0; i < 40; i++)
		stream(s, 1 + i % 2);
	now = stats();
	CHECK(now.rings - before.rings > 0);
	CHECK(now.ticks - before.ticks < 40);
	go(s, 0);
}

/* One of many that are pending. */
static void many(struct stage *s)
{
	static MPI_Request request[1000];
	static int got[1000];
	struct contd_stats before, now;
	const int last = 1000;

	check_begin("many");
	for (int i = 0; i < last; i++) {
		MPI_Irecv(&got[i], 1, MPI_INT, 1, 1000 + i, MPI_COMM_WORLD, &request[i]);
		MPI_Continue(&request[i], on_message, NULL, MPI_STATUS_IGNORE, cr);
	}
	before = stats();
	for (int i = 0; i < 30; i++)
		stream(s, 1);
	now = stats();
	if (getenv("CHECK_VERBOSE"))
		fprintf(stderr, "many: %llu rings, %llu ticks\n", (unsigned long long)(now.rings - before.rings),
			(unsigned long long)(now.ticks - before.ticks));
	CHECK(now.rings - before.rings > 0);
	CHECK(now.ticks - before.ticks < 15);
	go(s, -last);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	go(s, 0);
}

static void off(struct stage *s)
{
	check_begin("off");
	CHECK_EQ(stream(s, 1000), 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(stream(s, 1), 0);
	CHECK_EQ(stats().rings, 0);
	go(s, 0);
}

static void idle(struct stage *s)
{
	struct contd_stats before, now;
	MPI_Request request;

	check_begin("idle");
	stream(s,
	       /* it has been in a region, and has been found by the sender: its bell may still be armed, for one
	        * ring */
	       1);
	before = stats();
	for (int i = 0; i < 1000; i++) {
		arrived = 0;
		left = 1;
		MPI_Irecv(&value, 1, MPI_INT, 1, TAG_KIND, MPI_COMM_WORLD, &request);
		MPI_Continue(&request, next_message, NULL, MPI_STATUS_IGNORE, cr);
		go(s, 1);
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
		CHECK_EQ(arrived, 1);
	}
	now = stats();
	CHECK(now.rings - before.rings <= 1);
	CHECK_EQ(now.notifications - before.notifications, 0);
	go(s, 0);
}

static void woken(struct stage *s)
{
	struct contd_stats before, now;
	MPI_Request request;
	uint64_t alone = 0;
	MPI_Info info;

	check_begin("daemon");
	MPI_Request_free(&cr);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
	CHECK_OK(MPI_Continue_init(info, &cr));
	MPI_Info_free(&info);
	before = stats();
	for (int i = 0; i < 200; i++) {
		arrived = 0;
		MPI_Irecv(&value, 1, MPI_INT, 1, TAG_KIND, MPI_COMM_WORLD, &request);
		MPI_Continue(&request, on_message, NULL, MPI_STATUS_IGNORE, cr);
		go(s, 1);
		while (!__atomic_load_n(&arrived, __ATOMIC_ACQUIRE)) /* no call of MPI's */
			usleep(100);
		alone++;
	}
	now = stats();
	/* Looks by itself are a second apart, or more: the watchdog would have come. */
	CHECK_EQ(alone, 200);
	if (getenv("CHECK_VERBOSE"))
		fprintf(stderr, "daemon: %llu rings, %llu ticks, %llu run by it, %llu in handlers\n",
			(unsigned long long)(now.rings - before.rings), (unsigned long long)(now.ticks - before.ticks),
			(unsigned long long)(now.run_daemon - before.run_daemon),
			(unsigned long long)(now.run_handler - before.run_handler));
	go(s, 0);
}

int main(int argc, char **argv)
{
	struct stage s;
	const char *mode = argc > 1 ? argv[1] : "";
	bool threads = strcmp(mode, "synchronizing") == 0 || strcmp(mode, "daemon") == 0;

	check_init(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED);
	stage_open(&s);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_EQ(contd_thread_attach(NULL), 0);
	if (strcmp(mode, "kinds") == 0)
		kinds(&s, 0, END_COLLECTIVE);
	else if (strcmp(mode, "synchronizing") == 0)
		kinds(&s, END_COLLECTIVE, END_SYNCHRONIZING);
	else if (strcmp(mode, "messages") == 0)
		kinds(&s, END_SYNCHRONIZING, END_MESSAGES);
	else if (strcmp(mode, "one_sided") == 0)
		kinds(&s, END_MESSAGES, END_ONE_SIDED);
	else if (strcmp(mode, "explicit") == 0)
		explicit_rings(&s);
	else if (strcmp(mode, "many") == 0)
		many(&s);
	else if (strcmp(mode, "burst") == 0)
		burst(&s);
	else if (strcmp(mode, "off") == 0)
		off(&s);
	else if (strcmp(mode, "idle") == 0)
		idle(&s);
	else if (strcmp(mode, "daemon") == 0)
		woken(&s);
	else
		CHECK(!"a mode");
	MPI_Request_free(&cr);
	stage_close(&s);
	check_begin("MPI_Finalize");
	MPI_Finalize();
	printf("%s: %d checks, %d failed\n", mode, atomic_load(&check_count), atomic_load(&check_failures));
	return atomic_load(&check_failures) != 0;
}
