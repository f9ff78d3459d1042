/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests for every adapter, in C11 and in C++17: a program of one adapter describes its pool as a struct pool and
 * calls executors_main(). Nothing is measured here but counts, orders and addresses.
 */
#ifndef EXECUTORS_H
#define EXECUTORS_H

#include <contd/executor.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MANY
#define MANY 10000
#endif
#define CHAINS 8
#define LINKS 1000
#define LONG_NS 100000000000ll
#define WATCHDOG_SECONDS 150

#define check(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, "" __VA_ARGS__); \
			fprintf(stderr, "; %s\n", contd_error_text()); \
			_exit(1); \
		} \
	} while (0)
#define must(call) \
	do { \
		int must_ = (call); \
		check(must_ == 0, "%s: %s", #call, strerror(-must_)); \
	} while (0)

/* An adapter's call with a wrong argument: the text has the call's name. */
#define refused(call) \
	do { \
		check((call) == -EINVAL, "not refused"); \
		check(strncmp(contd_error_text(), #call, strcspn(#call, "(")) == 0, "another text"); \
	} while (0)

struct pool {
	const char *name;
	const char *describes; /* what describe's text begins with, for 3 threads */
	struct contd_executor *(*start)(int threads);
	int (*stop)(void);    /* end it; -errno: it is as before */
	int (*is_mine)(void); /* the calling thread is the pool's */
	int queues_all;       /* what is ready goes to the pool's queue at once */
	int fair;             /* so many of 60 may run before others of higher priority, for nothing starves */
};

static const struct pool *pool;
static struct contd_executor *executor;
static __thread int not_a_pool_thread; /* set by threads that complete, and by the main one */

/* ---------------------------------------------------------------------------------------------------- what runs --- */

struct piece {
	struct contd_event event;
	struct contd_task task;
	int runs, status;
};

static struct piece pieces[MANY];
static int total, strangers;

static int in_pool(void)
{
	return !not_a_pool_thread && pool->is_mine();
}

static void run_piece(int status, void *data)
{
	struct piece *piece = (struct piece *)data;

	if (!in_pool())
		__atomic_add_fetch(&strangers, 1, __ATOMIC_RELAXED);
	piece->status = status;
	__atomic_add_fetch(&piece->runs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&total, 1, __ATOMIC_RELEASE);
}

static void all_have_run(int n)
{
	check(__atomic_load_n(&total, __ATOMIC_ACQUIRE) == n, "%d have run", total);
	for (int i = 0; i < n; i++) {
		check(pieces[i].runs == 1, "piece %d has run %d times", i, pieces[i].runs);
		check(pieces[i].status == i % 7, "piece %d has got status %d", i, pieces[i].status);
	}
}

static void begin(int agent, int threads)
{
	struct contd_config config;

	memset(&config, 0, sizeof(config));
	config.size = sizeof(config);
	config.agent = agent;
	must(contd_init(&config));
	memset(pieces, 0, sizeof(pieces));
	total = strangers = 0;
	executor = pool->start(threads);
}

/* A thread of the pool's may just be coming out of the last continuation when its group is complete: so drain. */
static void end(void)
{
	must(contd_executor_drain(executor));
	must(pool->stop());
	check(contd_fini() == 0, "something has never run");
}

static struct contd_group *group_of(struct contd_executor *of, int priority)
{
	struct contd_group_attr attr = CONTD_GROUP_ATTR_INIT;
	struct contd_group *group;

	attr.priority = priority;
	must(contd_group_create(&attr, &group));
	if (of)
		must(contd_group_set_executor(group, of));
	return group;
}

static void put(struct piece *piece, contd_callback *cb, void *data, struct contd_group *group)
{
	struct contd_event *event = &piece->event;

	contd_event_init(event);
	must(contd_event_continue(1, &event, cb, data, group, NULL));
}

/* Of struct piece i: with status i % 7. */
static void complete(int i)
{
	must(contd_event_complete(&pieces[i].event, i % 7));
}

static void wait_and_destroy(struct contd_group *group)
{
	must(contd_group_wait(group, LONG_NS));
	check(contd_group_outstanding(group) == 0, " ");
	must(contd_group_destroy(group));
}

static unsigned in_hand(void)
{
	char text[200];
	const char *comma;

	check(contd_executor_describe(executor, text, sizeof(text)) > 0, " ");
	comma = strrchr(text, ',');
	return comma ? (unsigned)atoi(comma + 1) : 0;
}

/* -------------------------------------------------------------------------------------------------------- cases --- */

static volatile sig_atomic_t signal_next;
static int signal_last;

/* Some at a time; not asserted here, where nothing may be written. */
static void on_signal(int number)
{
	(void)number;
	for (int n = 0; n < 50 && signal_next < signal_last; n++) {
		contd_event_complete(&pieces[signal_next].event, signal_next % 7);
		signal_next = signal_next + 1;
	}
}

static void *complete_some(void *data)
{
	int from = *(int *)data;

	not_a_pool_thread = 1;
	for (int i = from; i < from + MANY / 5; i++)
		complete(i);
	return NULL;
}

/* Events completed by three threads, by the main thread and in a signal handler, for groups of all priorities. */
static void many(int agent)
{
	struct contd_group *groups[3];
	struct sigaction action;
	pthread_t threads[3];
	int from[3];

	begin(agent, 3);
	for (int p = 0; p < 3; p++)
		groups[p] = group_of(executor, p - 1);
	for (int i = 0; i < MANY; i++)
		put(&pieces[i], run_piece, &pieces[i], groups[i % 3]);
	signal_next = 4 * (MANY / 5);
	signal_last = MANY;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	for (int t = 0; t < 3; t++) {
		from[t] = t * (MANY / 5);
		check(pthread_create(&threads[t], NULL, complete_some, &from[t]) == 0, " ");
	}
	for (int i = 3 * (MANY / 5); i < 4 * (MANY / 5); i++) {
		if (i % 20 == 0)
			raise(SIGUSR1);
		complete(i);
	}
	while (signal_next < signal_last)
		raise(SIGUSR1);
	for (int t = 0; t < 3; t++)
		pthread_join(threads[t], NULL);
	if (agent == CONTD_AGENT_TICK) /* only the daemon polls */
		while (__atomic_load_n(&total, __ATOMIC_ACQUIRE) < MANY)
			usleep(1000);
	for (int p = 0; p < 3; p++)
		wait_and_destroy(groups[p]);
	all_have_run(MANY);
	check(strangers == 0, "%d ran on other threads than the pool's", strangers);
	end();
}

static void many_found_by_the_main_thread(void)
{
	many(CONTD_AGENT_CALLER);
}

static void many_found_by_the_daemon(void)
{
	many(CONTD_AGENT_TICK);
}

static sem_t blocked, released;

static void block(int status, void *data)
{
	(void)status, (void)data;
	sem_post(&blocked);
	while (sem_wait(&released) && errno == EINTR)
		;
}

static int order[300], ordered;

static void run_in_order(int status, void *data)
{
	struct piece *piece = (struct piece *)data;

	order[ordered++] = (int)(piece - pieces) % 3; /* of one thread */
	run_piece(status, data);
}

/* The pool's only thread is held up, 20 of each priority are made ready, it is let go: the highest run first. */
static void priorities(void)
{
	struct contd_group *groups[3];
	struct contd_task first;
	int complete_now, early = 0;

	begin(CONTD_AGENT_CALLER, 1);
	ordered = 0;
	contd_task_init(&first, executor, CONTD_PRIORITY_NORMAL, block, NULL);
	must(contd_task_submit(&first, 0));
	sem_wait(&blocked);
	for (int p = 0; p < 3; p++)
		groups[p] = group_of(executor, p - 1);
	for (int i = 0; i < 48; i++) {
		put(&pieces[i], run_in_order, &pieces[i], groups[i % 3]);
		complete(i);
		check(contd_group_test(groups[i % 3], &complete_now) >= 0, " "); /* it is handed over */
	}
	for (int i = 48; i < 60; i++) {
		contd_task_init(&pieces[i].task, executor, i % 3 - 1, run_in_order, &pieces[i]);
		must(contd_task_submit(&pieces[i].task, i % 7));
	}
	while (pool->queues_all && in_hand() < 61)
		usleep(1000);
	sem_post(&released);
	while (__atomic_load_n(&total, __ATOMIC_ACQUIRE) <
	       60) /* contd_executor_drain() would help where the pool has no drain() */
		usleep(1000);
	for (int p = 0; p < 3; p++)
		wait_and_destroy(groups[p]);
	all_have_run(60);
	for (int i = 0; i < 60; i++) {
		int later = i;

		while (later < 60 && order[later] <= order[i])
			later++;
		early += later < 60;
	}
	check(early <= pool->fair, "%d have run before others of higher priority", early);
	check(strangers == 0, "%d ran on other threads than the pool's", strangers);
	end();
}

/* Single continuations, of a group without executor, that name the executor themselves. */
static void single(void)
{
	struct contd_group *group;

	begin(CONTD_AGENT_CALLER, 3);
	group = group_of(NULL, 0);
	for (int i = 0; i < MANY / 5; i++) {
		contd_task_init(&pieces[i].task, executor, i % 3 - 1, run_piece, &pieces[i]);
		put(&pieces[i], contd_task_callback, &pieces[i].task, group);
	}
	for (int i = 0; i < MANY / 5; i++)
		complete(i);
	must(contd_group_wait(group, LONG_NS)); /* for the tasks as well */
	all_have_run(MANY / 5);
	check(strangers == 0, "%d ran on other threads than the pool's", strangers);
	must(contd_group_destroy(group));
	end();
}

static void slow(int status, void *data)
{
	usleep(50);
	run_piece(status, data);
}

static void drain(void)
{
	begin(CONTD_AGENT_CALLER, 3);
	must(contd_executor_drain(executor));
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 100; i++) {
			contd_task_init(&pieces[i].task, executor, i % 3 - 1, slow, &pieces[i]);
			must(contd_task_submit(&pieces[i].task, i % 7));
		}
		must(contd_executor_drain(executor));
		all_have_run(100);
		memset(pieces, 0, sizeof(pieces));
		total = 0;
	}
	end();
}

static void describe(void)
{
	char text[200] = "";

	begin(CONTD_AGENT_CALLER, 3);
	check(contd_executor_describe(executor, text, sizeof(text)) == (int)strlen(text), " ");
	check(strncmp(text, pool->describes, strlen(pool->describes)) == 0, "it says %s", text);
	printf("%s\n", text);
	end();
}

static void busy(void)
{
	struct contd_group *group;
	struct contd_task first;

	begin(CONTD_AGENT_CALLER, 1);
	group = group_of(executor, 0);
	put(&pieces[0], run_piece, &pieces[0], group);
	check(pool->stop() == -EBUSY, "a continuation is pending");
	complete(0);
	wait_and_destroy(group);
	contd_task_init(&first, executor, CONTD_PRIORITY_NORMAL, block, NULL);
	must(contd_task_submit(&first, 0));
	sem_wait(&blocked);
	check(contd_executor_destroy(executor) == -EBUSY, "a task runs");
	contd_task_init(&pieces[1].task, executor, CONTD_PRIORITY_NORMAL, run_piece, &pieces[1]);
	must(contd_task_submit(&pieces[1].task, 1));
	check(contd_executor_destroy(executor) == -EBUSY, "one is queued, and one runs");
	sem_post(&released);
	must(contd_executor_drain(executor));
	all_have_run(2);
	end();
}

struct chain {
	struct contd_event event;
	struct contd_group *group;
	int links;
};

static struct chain chains[CHAINS];
static __thread char *lowest, *highest;
static long deepest;

/* Completes and registers its successor, which runs later: the stack stays where it is. */
static void chain_link(int status, void *data)
{
	struct chain *chain = (struct chain *)data;
	char *here = (char *)__builtin_frame_address(0); /* with asan a local variable is on another stack */

	(void)status;
	if (!lowest || here < lowest)
		lowest = here;
	if (!highest || here > highest)
		highest = here;
	if (highest - lowest > __atomic_load_n(&deepest, __ATOMIC_RELAXED))
		__atomic_store_n(&deepest, (long)(highest - lowest), __ATOMIC_RELAXED);
	if (!in_pool())
		__atomic_add_fetch(&strangers, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&total, 1, __ATOMIC_RELEASE);
	if (++chain->links < LINKS) {
		struct contd_event *event = &chain->event;
		int complete_first = chain->links % 2; /* the chain is the successor's as soon as that is ready */

		contd_event_init(event);
		if (complete_first)
			must(contd_event_complete(event, 0));
		must(contd_event_continue(1, &event, chain_link, chain, chain->group, NULL));
		if (!complete_first)
			must(contd_event_complete(event, 0));
	}
}

static void chained(void)
{
	begin(CONTD_AGENT_CALLER, 3);
	deepest = 0;
	for (int c = 0; c < CHAINS; c++) {
		chains[c].links = 0;
		chains[c].group = group_of(executor, c % 3 - 1);
		must(contd_event_continue(0, NULL, chain_link, &chains[c], chains[c].group, NULL));
	}
	for (int c = 0; c < CHAINS; c++)
		wait_and_destroy(chains[c].group);
	check(total == CHAINS * LINKS, "%d links", total);
	check(strangers == 0, "%d ran on other threads than the pool's", strangers);
	check(deepest < 16384, "the stack has grown by %ld bytes", deepest);
	end();
}

/* --------------------------------------------------------------------------------------------------------- main --- */

static inline void executors_run(const struct pool *which)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"many_found_by_the_main_thread", many_found_by_the_main_thread},
		{"many_found_by_the_daemon", many_found_by_the_daemon},
		{"priorities", priorities},
		{"single", single},
		{"drain", drain},
		{"describe", describe},
		{"busy", busy},
		{"chained", chained},
	};

	pool = which;
	not_a_pool_thread = 1;
	alarm(WATCHDOG_SECONDS);
	sem_init(&blocked, 0, 0);
	sem_init(&released, 0, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		printf("%s: %s\n", pool->name, cases[i].name);
		fflush(stdout);
		cases[i].run();
	}
}

#endif
