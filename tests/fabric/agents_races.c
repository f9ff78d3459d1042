/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agents_races fake CASE: which threads may read a queue, and calls that meet each other. All queues are fakes, so
 * that sanitizers see everything. CONTD_FABRIC_ROUNDS: how often.
 */
#include <sys/mman.h>

#include "agents_fake.h"
#include "base/testpoint.h"

static struct fake fake;
static struct contd_group *any, *plain;
static uint32_t ran, cancelled, foreign_count, stop;
static uint32_t rounds = 20000;

static void ran_cb(int status, void *data)
{
	if (status == -FI_ECANCELED)
		ADD(cancelled, 1);
	if (data)
		ADD(*(uint32_t *)data, 1);
	ADD(ran, 1);
}

static void foreign_cb(const struct contd_fabric_entry *entry, void *data)
{
	ADD(foreign_count, 1);
}

static void begin_with(int agent, uint64_t tick_max)
{
	begin_contd(agent, 0, tick_max);
	any = new_group(CONTD_THREAD_ANY);
	plain = new_group(0);
}

static void begin(int agent)
{
	begin_with(agent, 0);
}

static void end(void)
{
	CHECK_OK(contd_group_destroy(any));
	CHECK_OK(contd_group_destroy(plain));
	CHECK_IS(contd_fini(), 0);
}

/* Threads that do nothing but look, each as another kind of caller. */
static void *look_on(void *arg)
{
	uintptr_t kind = (uintptr_t)arg;

	CHECK_OK(contd_thread_attach(NULL));
	while (!LOAD(stop)) {
		if (kind % 2) {
			uint64_t until = now_ns() + 1000000;

			contd_compute_begin();
			while (now_ns() < until)
				;
			contd_compute_end();
		}
		CHECK(contd_poll(0) >= 0);
		if (kind % 2 == 0)
			sched_yield();
	}
	CHECK_OK(contd_thread_detach());
	return NULL;
}

static pthread_t looker[4];

static void start_lookers(unsigned count)
{
	STORE(stop, 0);
	for (uintptr_t i = 0; i < count; i++)
		CHECK_OK(pthread_create(&looker[i], NULL, look_on, (void *)i));
}

static void stop_lookers(unsigned count)
{
	STORE(stop, 1);
	for (unsigned i = 0; i < count; i++)
		pthread_join(looker[i], NULL);
}

/* ------------------------------------------------------------------------------------------------- who reads it --- */

static const int agents[] = {CONTD_AGENT_REGION, CONTD_AGENT_TICK, CONTD_AGENT_BLOCK, CONTD_AGENT_SPIN};

/* Only the thread that adopted the queue reads it, in polls and in regions, while other threads poll too. */
static void case_owned(void)
{
	enum { OPERATIONS = 32 };
	static struct contd_fabric_op op[OPERATIONS];
	static const enum fi_threading threading[] = {FI_THREAD_DOMAIN, FI_THREAD_COMPLETION};

	for (unsigned a = 0; a < 8; a++) {
		begin(agents[a % 4]);
		fake_open(&fake, a % 2, &(struct contd_fabric_attr){.threading = threading[a / 4]});
		start_lookers(2);
		for (uint32_t round = 1; round <= 60; round++) {
			uint32_t before = LOAD(ran), reads;

			for (unsigned i = 0; i < OPERATIONS; i++) {
				CHECK_OK(contd_fabric_begin(fake.queue, &op[i]));
				CHECK_OK(contd_fabric_continue(&op[i], ran_cb, NULL, round % 2 ? any : plain));
				fake_put(&fake, &op[i], FI_RECV, i);
			}
			reads = LOAD(fake.reads);
			if (round % 20 == 0) {
				/* All other threads poll for a while; none reads this queue. (Ticks outside regions
				 * never do.) */
				nap_ns(10000000);
				CHECK_IS(LOAD(fake.reads), reads);
				CHECK_IS(fake_waiting(&fake), OPERATIONS);
			}
			if (round % 3) {
				contd_compute_begin();
				AWAIT(LOAD(ran) == before + OPERATIONS, spin_for(100));
				contd_compute_end();
			} else {
				AWAIT(LOAD(ran) == before + OPERATIONS, contd_poll(0));
			}
			fake_check(&fake);
		}
		stop_lookers(2);
		fake_close(&fake);
		end();
	}
}

/* With a mutex any thread reads, but never without holding it; the program holds it around its own calls. */
static void case_mutex(void)
{
	enum { OPERATIONS = 32 };
	static struct contd_fabric_op op[OPERATIONS];
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	uint32_t on_others = 0;

	for (unsigned a = 0; a < 4; a++) {
		begin(agents[a]);
		fake_open(&fake, true, &(struct contd_fabric_attr){.threading = FI_THREAD_DOMAIN, .mutex = &mutex});
		start_lookers(2);
		for (uint32_t round = 1; round <= 60; round++) {
			uint32_t before = LOAD(ran), reads;

			for (unsigned i = 0; i < OPERATIONS; i++) {
				CHECK_OK(contd_fabric_begin(fake.queue, &op[i]));
				CHECK_OK(contd_fabric_continue(&op[i], ran_cb, NULL, any));
				pthread_mutex_lock(&mutex);
				CHECK_IS(LOAD(fake.inside), 0);
				fake_put(&fake, &op[i], FI_RECV, i);
				spin_for(500);
				CHECK_IS(LOAD(fake.inside), 0);
				pthread_mutex_unlock(&mutex);
			}
			AWAIT(LOAD(ran) == before + OPERATIONS, nap_ns(20000));
			on_others++;
			/* While the program holds the mutex no thread reads or waits: polling returns. */
			CHECK_OK(contd_fabric_begin(fake.queue, &op[0]));
			CHECK_OK(contd_fabric_continue(&op[0], ran_cb, NULL, any));
			pthread_mutex_lock(&mutex);
			reads = LOAD(fake.reads);
			fake_put(&fake, &op[0], FI_RECV, 0);
			CHECK(contd_poll(0) >= 0);
			CHECK_IS(LOAD(fake.reads), reads);
			pthread_mutex_unlock(&mutex);
			AWAIT(LOAD(ran) == before + OPERATIONS + 1, nap_ns(20000));
		}
		stop_lookers(2);
		fake_close(&fake);
		end();
	}
	CHECK(on_others > 0);
}

/* ---------------------------------------------------------------------------------------------- calls that meet --- */

static struct contd_fabric_op *ops;
static uint32_t *ran_of, turn, withdrawn;

static void *complete_all(void *arg)
{
	for (uint32_t i = 0; i < rounds; i++) {
		AWAIT(LOAD(turn) > i, sched_yield());
		fake_put(&fake, &ops[i], FI_RECV, 1);
	}
	return NULL;
}

static void *withdraw_all(void *arg)
{
	uint64_t seed = 521288629ull;

	for (uint32_t i = 0; i < rounds; i++) {
		AWAIT(LOAD(turn) > i, sched_yield());
		spin_for(any_number(&seed) % 2048);
		if (contd_fabric_withdraw(&ops[i], -FI_ECANCELED) == 0)
			ADD(withdrawn, 1);
	}
	return NULL;
}

/* Each operation is withdrawn or completed by the queue: one of the two, once. The completion of a withdrawn one is
 * dropped. */
static void case_withdraw(void)
{
	pthread_t completer, withdrawer;

	begin(CONTD_AGENT_TICK);
	fake_open(&fake, true, &(struct contd_fabric_attr){.threading = FI_THREAD_SAFE, .foreign = foreign_cb});
	ops = calloc(rounds, sizeof(*ops));
	ran_of = calloc(rounds, sizeof(*ran_of));
	CHECK(ops && ran_of);
	start_lookers(2);
	CHECK_OK(pthread_create(&completer, NULL, complete_all, NULL));
	CHECK_OK(pthread_create(&withdrawer, NULL, withdraw_all, NULL));
	for (uint32_t i = 0; i < rounds; i++) {
		AWAIT(i - LOAD(ran) < 16, sched_yield());
		CHECK_OK(contd_fabric_begin(fake.queue, &ops[i]));
		CHECK_OK(contd_fabric_continue(&ops[i], ran_cb, &ran_of[i], any));
		/* Withdrawn ones run unread: where readers get no processor the queue would be full. This one makes
		 * them read. */
		AWAIT(i - fake_got(&fake) < FAKE_ROOM / 2, sched_yield());
		STORE(turn, i + 1);
	}
	pthread_join(completer, NULL);
	pthread_join(withdrawer, NULL);
	AWAIT(LOAD(ran) == rounds, sched_yield());
	/* Leftovers are read when something is under way again. */
	memset(&ops[0], 0, sizeof(ops[0]));
	CHECK_OK(contd_fabric_begin(fake.queue, &ops[0]));
	AWAIT(LOAD(foreign_count) == LOAD(withdrawn), sched_yield());
	CHECK_OK(contd_fabric_withdraw(&ops[0], 0));
	stop_lookers(2);
	for (uint32_t i = 0; i < rounds; i++)
		CHECK_IS(ran_of[i], 1);
	CHECK_IS(cancelled, withdrawn);
	CHECK_IS(contd_fabric_queue_pending(fake.queue), 0);
	printf("%u of %u withdrawn\n", withdrawn, rounds);
	CHECK(withdrawn > 0 && withdrawn < rounds);
	fake_close(&fake);
	free(ops);
	free(ran_of);
	end();
}

/* A queue is closed while all threads poll: pending operations end once, and no thread reads it afterwards. */
static void case_close(void)
{
	enum { OPERATIONS = 16 };
	static struct contd_fabric_op op[OPERATIONS];
	uint32_t number[OPERATIONS];
	uint64_t seed = 88675123ull;

	begin(CONTD_AGENT_SPIN);
	start_lookers(2);
	for (uint32_t round = 0; round < rounds / 40; round++) {
		fake_open(&fake, round % 2, NULL);
		for (unsigned i = 0; i < OPERATIONS; i++) {
			STORE(number[i], 0);
			CHECK_OK(contd_fabric_begin(fake.queue, &op[i]));
			CHECK_OK(contd_fabric_continue(&op[i], ran_cb, &number[i], any));
		}
		for (unsigned i = 0; i < any_number(&seed) % OPERATIONS; i++)
			fake_put(&fake, &op[i], FI_RECV, 1);
		spin_for(any_number(&seed) % 8192);
		fake_close(&fake);
		fake.cq.ops = NULL; /* reading it now crashes */
		AWAIT(contd_group_outstanding(any) == 0, sched_yield());
		for (unsigned i = 0; i < OPERATIONS; i++)
			CHECK_IS(LOAD(number[i]), 1);
	}
	stop_lookers(2);
	CHECK(cancelled > 0 && cancelled < LOAD(ran));
	printf("%u of %u cancelled\n", cancelled, ran);
	end();
}

extern void (*contd__testpoint_hook)(const char *name);

static const char *stops_at;

static void stop_there(const char *name)
{
	if (!stops_at || strcmp(name, stops_at))
		return;
	stops_at = NULL;
	CHECK_OK(contd_fabric_queue_stop(fake.queue));
}

/* It is stopped while an operation begins. That is refused, or ends at once: no later read would find it. */
static void case_begun_late(void)
{
	static const char *const places[] = {"begin_checked", "begin_added"};

	STORE(contd__testpoint_hook, stop_there);
	begin(CONTD_AGENT_CALLER);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t number = 0;
		struct contd_fabric_op op;
		int rc;

		fake_open(&fake, i % 2, NULL);
		stops_at = places[i % 2];
		rc = i < 2 ? contd_fabric_begin(fake.queue, &op)
			   : contd_fabric_begin_continue(fake.queue, &op, ran_cb, &number, plain);
		CHECK(!stops_at);
		if (rc == 0 && i < 2)
			CHECK_OK(contd_fabric_continue(&op, ran_cb, &number, plain));
		if (rc)
			CHECK_IS(rc, -EPERM);
		CHECK_IS(contd_fabric_queue_pending(fake.queue), 0);
		CHECK_OK(contd_group_wait(plain, (int64_t)PATIENCE_NS));
		CHECK_IS(number, rc == 0);
		CHECK(rc || op.status == -FI_ECANCELED);
		fake_close(&fake);
	}
	STORE(contd__testpoint_hook, NULL);
	end();
}

static struct contd_event closing_event, other_event;
static int stopped_in_region = 1;

static void interrupt_there(const char *name)
{
	if (!stops_at || strcmp(name, stops_at))
		return;
	stops_at = NULL;
	pthread_kill(pthread_self(), SIGRTMAX - 3);
}

static void stop_in_region(int status, void *data)
{
	(void)status;
	(void)data;
	stopped_in_region = contd_fabric_queue_stop(fake.queue);
}

/* In a region, also after a signal that came in the midst of contd, at a place that a queue's end waits for. */
static void case_region_stop(void)
{
	struct contd_event *closes = &closing_event, *another = &other_event;
	uint32_t number;

	begin(CONTD_AGENT_CALLER);
	STORE(contd__testpoint_hook, interrupt_there);
	for (unsigned i = 0; i < 2; i++) {
		fake_open(&fake, false, NULL);
		number = 0;
		contd_event_init(closes);
		contd_event_init(another);
		CHECK_OK(contd_event_continue(1, &closes, stop_in_region, NULL, plain, NULL));
		CHECK_OK(contd_event_continue(1, &another, ran_cb, &number, plain, NULL));
		CHECK_OK(contd_event_complete(closes, 0));
		contd_compute_begin();
		if (i == 0) {
			stops_at = "event_exchanged";
			CHECK_OK(contd_event_complete(another, 0));
		} else {
			pthread_kill(pthread_self(), SIGRTMAX - 3);
		}
		contd_compute_end();
		if (i == 1)
			CHECK_OK(contd_event_complete(another, 0));
		CHECK_OK(contd_group_wait(plain, (int64_t)PATIENCE_NS));
		CHECK_IS(stopped_in_region, 0);
		CHECK_IS(number, 1);
		fake_close(&fake);
	}
	STORE(contd__testpoint_hook, NULL);
	end();
}

/* ---------------------------------------------------------------------------------------- multi-receive buffers --- */

struct many {
	struct contd_fabric_many many;
	struct contd_fabric_entry entry[4];
};

static uint32_t told;

static void told_cb(int status, void *data)
{
	ADD(told, 1);
}

static struct many *many_new(void)
{
	struct many *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(m != MAP_FAILED);
	return m;
}

/*
 * Messages are put while they are taken, with room for four. The thread that has taken the last gives the buffer's
 * memory back to the kernel at once: touching it after that crashes.
 */
static void case_many(void)
{
	struct contd_fabric_entry e;

	begin(CONTD_AGENT_SPIN);
	start_lookers(1);
	for (uint32_t round = 0; round < rounds / 20; round++) {
		uint32_t messages = round % 11 + 1, next = 0, registered = 0;
		struct many *m = many_new();

		if (round % 100 == 0) {
			if (round)
				fake_close(&fake);
			fake_open(&fake, round % 1000 == 0,
				  &(struct contd_fabric_attr){.threading = FI_THREAD_SAFE, .foreign = foreign_cb});
		}
		CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 4));
		STORE(told, 0);
		for (uint32_t i = 0; i < messages; i++)
			fake_put(&fake, m, i + 1 == messages ? FI_RECV | FI_MULTI_RECV : FI_RECV, i);
		while (next < messages) {
			if (round % 3) {
				/* Told each time that there is something. */
				CHECK_OK(contd_fabric_many_continue(&m->many, told_cb, NULL, any));
				registered++;
				AWAIT(LOAD(told) == registered, sched_yield());
				CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
			} else {
				AWAIT(contd_fabric_many_take(&m->many, &e) == 1, spin_for(10));
			}
			do {
				CHECK(e.context == m);
				CHECK_IS(e.length, next);
				next++;
				CHECK_IS((e.flags & FI_MULTI_RECV) != 0, next == messages);
			} while (next < messages && contd_fabric_many_take(&m->many, &e));
		}
		CHECK_OK(munmap(m, sizeof(*m)));
	}
	fake_close(&fake);
	stop_lookers(1);
	CHECK_IS(foreign_count, 0);
	end();
}

/* The same memory is begun again at once: nothing of the buffer before is seen in the next. */
static void case_many_again(void)
{
	struct contd_fabric_entry e;
	struct many *m = many_new();

	begin(CONTD_AGENT_SPIN);
	start_lookers(1);
	fake_open(&fake, true, &(struct contd_fabric_attr){.threading = FI_THREAD_SAFE, .foreign = foreign_cb});
	for (uint32_t round = 0; round < rounds / 4; round++) {
		STORE(told, 0);
		CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 4));
		CHECK_OK(contd_fabric_many_continue(&m->many, told_cb, NULL, any));
		CHECK_IS(LOAD(told), 0);
		spin_for(round % 200);
		CHECK_IS(LOAD(told), 0);
		fake_put(&fake, m, FI_RECV | FI_MULTI_RECV, round);
		AWAIT(LOAD(told), spin_for(10));
		CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
		CHECK_IS(e.length, round);
		CHECK_IS(contd_group_wait(any, (int64_t)PATIENCE_NS), 0);
	}
	AWAIT(contd_fabric_queue_pending(fake.queue) == 0, sched_yield());
	fake_close(&fake);
	stop_lookers(1);
	CHECK_IS(foreign_count, 0);
	munmap(m, sizeof(*m));
	end();
}

/* The polling thread stops for a while at each place where the other side may be quicker. */
static void linger(const char *name)
{
	if (strncmp(name, "many_", 5) == 0)
		nap_ns(500000);
}

static void slowly(void (*run)(void))
{
	STORE(contd__testpoint_hook, linger);
	rounds = rounds / 10 + 1;
	run();
}

static void case_many_slow(void)
{
	slowly(case_many);
}

static void case_many_again_slow(void)
{
	slowly(case_many_again);
}

#define LONG_TICK_NS UINT64_C(10000000000) /* as long as it may be */

static uint32_t in_look, go_on;
static __thread bool stays;

static void stay(const char *name)
{
	if (!stays || strcmp(name, "look_full"))
		return;
	STORE(in_look, 1);
	AWAIT(LOAD(go_on), sched_yield());
}

static void *look_and_stay(void *data)
{
	(void)data;
	stays = true;
	CHECK(contd_poll(0) >= 0);
	return NULL;
}

/*
 * A thread looks, and has seen that the buffer is full. It is emptied: the daemon, which is told of that, does not get
 * its look, and would sleep on the descriptor, which tells of nothing any more, until its longest tick is over.
 */
static void case_skipped_look(void)
{
	struct contd_fabric_entry e;
	struct many *m = many_new();
	pthread_t thread;
	uint64_t since;

	begin_with(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	fake_open(&fake, true, NULL);
	CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 1));
	fake_put(&fake, m, FI_RECV, 1);
	fake_put(&fake, m, FI_RECV | FI_MULTI_RECV, 2);
	AWAIT(fake_got(&fake) == 2 && LOAD(m->many.put) == 1, sched_yield());
	nap_ns(50000000); /* the daemon sleeps */
	STORE(contd__testpoint_hook, stay);
	CHECK_OK(pthread_create(&thread, NULL, look_and_stay, NULL));
	AWAIT(LOAD(in_look), sched_yield());
	STORE(told, 0);
	CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
	CHECK_OK(contd_fabric_many_continue(&m->many, told_cb, NULL, any));
	nap_ns(100000000); /* the daemon comes too late for the look, and may sleep */
	since = now_ns();
	STORE(go_on, 1);
	pthread_join(thread, NULL);
	AWAIT(LOAD(told), nap_ns(1000000));
	CHECK(now_ns() - since < LONG_TICK_NS / 2);
	CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
	CHECK_IS(e.length, 2);
	STORE(contd__testpoint_hook, NULL);
	fake_close(&fake);
	munmap(m, sizeof(*m));
	end();
}

/* Withdrawn while messages come in; the memory goes at once. */
static void case_many_withdraw(void)
{
	uint64_t seed = 5783321ull;

	begin(CONTD_AGENT_SPIN);
	start_lookers(1);
	for (uint32_t round = 0; round < rounds / 10; round++) {
		struct many *m = many_new();

		fake_open(&fake, true, &(struct contd_fabric_attr){.threading = FI_THREAD_SAFE, .foreign = foreign_cb});
		CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 4));
		for (uint32_t i = 0; i < 3; i++)
			fake_put(&fake, m, FI_RECV, i);
		spin_for(any_number(&seed) % 2048);
		CHECK_OK(contd_fabric_withdraw(&m->many.op, 0));
		CHECK_OK(munmap(m, sizeof(*m)));
		fake_close(&fake);
	}
	stop_lookers(1);
	end();
}

static void case_many_withdraw_slow(void)
{
	slowly(case_many_withdraw);
}

/* The queue's end is the buffer's: it says so, can be taken after the queue has gone, and is complete. */
static void case_many_close(void)
{
	struct contd_fabric_entry e;
	struct many *m = many_new();

	begin(CONTD_AGENT_CALLER);
	fake_open(&fake, false, NULL);
	CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 4));
	CHECK_OK(contd_fabric_many_continue(&m->many, told_cb, NULL, plain));
	fake_close(&fake);
	CHECK_OK(contd_group_wait(plain, (int64_t)PATIENCE_NS));
	CHECK_IS(told, 1);
	CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
	CHECK_IS(e.status, -FI_ECANCELED);
	CHECK_IS(contd_fabric_many_take(&m->many, &e), 0);
	CHECK_IS(contd_fabric_withdraw(&m->many.op, 0), -EALREADY);
	munmap(m, sizeof(*m));
	end();
}

/* The end comes as the last entry if there was no room for it when the queue ended. A continuation that is registered
 * later gets it too. */
static void case_many_end(void)
{
	struct contd_fabric_entry e;
	struct many *m = many_new();

	begin(CONTD_AGENT_CALLER);
	for (unsigned stopped = 0; stopped < 2; stopped++) {
		STORE(told, 0);
		fake_open(&fake, false, NULL);
		CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 1));
		fake_put(&fake, m, FI_RECV, 1);
		AWAIT(m->many.put == 1, contd_poll(0));
		if (stopped) {
			CHECK_OK(contd_fabric_queue_stop(fake.queue));
		} else {
			STORE(fake.broken, -FI_ENODEV);
			AWAIT(m->many.op.status, contd_poll(0));
		}
		CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
		CHECK_IS(e.status, 0);
		CHECK_OK(contd_fabric_many_continue(&m->many, told_cb, NULL, plain));
		CHECK_OK(contd_group_wait(plain, 5000000000ll));
		CHECK_IS(told, 1);
		CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
		CHECK_IS(e.status, stopped ? -FI_ECANCELED : -FI_ENODEV);
		CHECK(*e.text && e.context == m);
		CHECK_IS(contd_fabric_many_take(&m->many, &e), 0);
		CHECK_IS(contd_fabric_withdraw(&m->many.op, 0), -EALREADY);
		fake_close(&fake);
	}
	munmap(m, sizeof(*m));
	end();
}

/* Withdrawn while a continuation waits: that runs, and finds the end. */
static void case_many_withdraw_told(void)
{
	struct contd_fabric_entry e;
	struct many *m = many_new();

	begin(CONTD_AGENT_CALLER);
	for (int status = 0; status >= -FI_ETIMEDOUT; status -= FI_ETIMEDOUT) {
		STORE(told, 0);
		fake_open(&fake, false, NULL);
		CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 4));
		CHECK_OK(contd_fabric_many_continue(&m->many, told_cb, NULL, plain));
		CHECK_OK(contd_fabric_withdraw(&m->many.op, status));
		CHECK_OK(contd_group_wait(plain, 5000000000ll));
		CHECK_IS(told, 1);
		CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
		CHECK_IS(e.status, status);
		CHECK(e.flags & FI_MULTI_RECV);
		CHECK_IS(contd_fabric_many_take(&m->many, &e), 0);
		fake_close(&fake);
	}
	munmap(m, sizeof(*m));
	end();
}

static void took_too_long(int number)
{
	check(false, "a multi-receive buffer whose queue outlived contd_fini() is taken from", __FILE__, __LINE__,
	      "does not end");
}

/* Its queue outlives contd_fini(): what is there, and its end, can be taken after that. */
static void case_many_outlives(void)
{
	struct contd_fabric_entry e;
	struct many *m = many_new();

	signal(SIGALRM, took_too_long);
	begin(CONTD_AGENT_CALLER);
	fake_open(&fake, false, NULL);
	CHECK_OK(contd_fabric_many_begin(fake.queue, &m->many, m->entry, 4));
	fake_put(&fake, m, FI_RECV, 1);
	AWAIT(m->many.put == 1, contd_poll(0));
	end();
	fake_close(&fake);
	alarm(10);
	CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
	CHECK_IS(e.status, 0);
	CHECK_IS(contd_fabric_many_take(&m->many, &e), 1);
	CHECK_IS(e.status, -FI_ECANCELED);
	CHECK_IS(contd_fabric_many_take(&m->many, &e), 0);
	munmap(m, sizeof(*m));
}

/* ----------------------------------------------------------------------------------------------------- counters --- */

static struct fid_cntr cntr;
static uint64_t counter_value, counter_errors;

static uint64_t counter_read(struct fid_cntr *c)
{
	return LOAD(counter_value);
}

static uint64_t counter_readerr(struct fid_cntr *c)
{
	return LOAD(counter_errors);
}

static struct contd_fabric_counter *counter;

static void *count_on(void *arg)
{
	struct contd_fabric_op op;
	uint32_t number, once = 0;
	uint64_t seed = 77 + (uintptr_t)arg;

	for (uint32_t i = 0; i < rounds / 4; i++) {
		uint64_t threshold = LOAD(counter_value) + any_number(&seed) % 4;
		bool withdraw = any_number(&seed) % 8 == 0;

		STORE(number, 0);
		CHECK_OK(contd_fabric_counter_begin(counter, threshold, &op));
		CHECK_OK(contd_fabric_continue(&op, ran_cb, &number, any));
		for (unsigned k = any_number(&seed) % 4; k > 0; k--)
			ADD(counter_value, 1);
		if (withdraw && contd_fabric_withdraw(&op, -FI_ECANCELED) == 0) {
			ADD(withdrawn, 1);
			once = 1;
		} else {
			AWAIT(LOAD(number), (ADD(counter_value, 1), sched_yield()));
			CHECK_IS(op.status, 0);
			CHECK(LOAD(counter_value) >= threshold);
		}
		AWAIT(LOAD(number) == 1, sched_yield());
	}
	(void)once;
	return NULL;
}

/* Four threads wait for values that go up meanwhile. */
static void case_counter(void)
{
	static struct fi_ops fid_ops = {.size = sizeof(fid_ops)};
	static struct fi_ops_cntr cntr_ops = {
		.size = sizeof(cntr_ops), .read = counter_read, .readerr = counter_readerr};
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	pthread_t thread[4];

	begin(CONTD_AGENT_TICK);
	cntr.fid.fclass = FI_CLASS_CNTR;
	cntr.fid.ops = &fid_ops;
	cntr.ops = &cntr_ops;
	CHECK_OK(contd_fabric_counter_adopt(&cntr, &attr, &counter));
	start_lookers(1);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&thread[i], NULL, count_on, (void *)i));
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	stop_lookers(1);
	CHECK_IS(ran, rounds / 4 * 4);
	CHECK_IS(cancelled, withdrawn);
	CHECK_OK(contd_fabric_counter_destroy(counter));
	end();
}

static const struct agents_case cases[] = {
	{"owned", case_owned},
	{"mutex", case_mutex},
	{"withdraw", case_withdraw},
	{"close", case_close},
	{"begun_late", case_begun_late},
	{"region_stop", case_region_stop},
	{"many", case_many},
	{"many_again", case_many_again},
	{"many_withdraw", case_many_withdraw},
	{"many_slow", case_many_slow},
	{"many_again_slow", case_many_again_slow},
	{"many_withdraw_slow", case_many_withdraw_slow},
	{"many_close", case_many_close},
	{"many_end", case_many_end},
	{"many_withdraw_told", case_many_withdraw_told},
	{"many_outlives", case_many_outlives},
	{"skipped_look", case_skipped_look},
	{"counter", case_counter},
};

int main(int argc, char **argv)
{
	if (getenv("CONTD_FABRIC_ROUNDS"))
		rounds = (uint32_t)strtoul(getenv("CONTD_FABRIC_ROUNDS"), NULL, 10);
	return agents_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
