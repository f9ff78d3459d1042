/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Millions of continuations, completed by threads and handlers, under signals as fast as they come: each runs exactly
 * once, or was cancelled and never runs.
 *
 *   workers    attached; register, cancel, complete, and in between keep the allocator and stdio busy
 *   completers not attached; complete the workers' events
 *   poller     tests the poll-only groups, polls the others
 *   hammer     sends contd's signal to the workers without end, a few ahead of what they have handled: real-time
 *              signals queue up, and the queue is the user's (RLIMIT_SIGPENDING); a watched word makes the timers tick
 *
 * usage: storm [--short] [continuations]
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/testpoint.h"

#define WORKERS 4
#define COMPLETERS 2
#define GROUPS 10
#define RING 4096u /* operations that a worker has under way with the completers */
#define AHEAD 8    /* signals of the hammer's that a worker has not handled */
#define POSTPONED 300u
#define FULL 10000000u
#define SHORT 300000u

#define must(call) \
	do { \
		int must_rc = (call); \
		if (must_rc < 0) { \
			fprintf(stderr, "storm: %s is %d: %s\n", #call, must_rc, contd_error_text()); \
			_exit(2); \
		} \
	} while (0)

/* One continuation: how often it ran, and what became of it. */
struct account {
	uint8_t runs;
	uint8_t cancelled;
	uint8_t registered;
};

/* An operation under way: it has one or two events. Reused when both sides are through with it. */
struct operation {
	struct contd_event event[2];
	struct account *account;
	struct operation *then; /* a second operation: the callback completes its event */
	uint32_t busy; /* completers that have it yet to complete, and the continuation, which has yet to run */
};

/* From a worker to a completer: single producer, single consumer. */
struct ring {
	uint32_t head __attribute__((aligned(64)));
	uint32_t tail __attribute__((aligned(64)));
	struct contd_event *event[RING];
};

struct worker {
	pthread_t thread;
	pid_t tid;
	uint32_t sent, handled;
	unsigned number;
	uint32_t quota;
	struct account *account;
	struct operation *operation;
	struct ring ring[COMPLETERS];
	struct postponed {
		struct contd_handle handle;
		struct operation *operation;
		struct account *account;
	} postponed[POSTPONED];
	uint32_t postpone;
	uint64_t registered, cancelled, too_late, group_rounds;
};

static const uint32_t group_flags[GROUPS] = {
	CONTD_ASYNC_SIGNAL_SAFE,
	CONTD_ASYNC_SIGNAL_SAFE,
	CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY,
	CONTD_ASYNC_SIGNAL_SAFE | CONTD_ENQUEUE_COMPLETE,
	CONTD_THREAD_ANY,
	0,
	CONTD_ENQUEUE_COMPLETE,
	CONTD_POLL_ONLY,
	CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE,
	0,
};
static const int32_t group_max_poll[GROUPS] = {-1, 3, -1, -1, -1, -1, 7, 5, -1, 0};

static struct contd_group *group[GROUPS];
static struct worker worker[WORKERS];
static uint32_t stop_completers, stop_poller, stop_hammer, workers_left = WORKERS;
static uint64_t signals_sent, word_runs, word_registered, chain_runs, chain_registered;
static uint64_t watched __attribute__((aligned(8)));
static int signal_number;
static FILE *null_file;
static time_t began;

/* ------------------------------------------------------------------------ callbacks --- */

/* Async-signal-safe. */
static void run_cb(int status, void *data)
{
	struct operation *o = data;
	struct operation *then = o->then;

	(void)status;
	__atomic_fetch_add(&o->account->runs, 1, __ATOMIC_RELAXED);
	errno = EDOM;
	contd__sub(&o->busy, 1);
	if (then) {
		/* A completion inside a callback, also inside the handler. */
		contd_event_complete(&then->event[0], 0);
		contd__sub(&then->busy, 1);
	}
}

static void chain_cb(int status, void *data)
{
	(void)status;
	(void)data;
	contd__add(&chain_runs, 1);
}

static void word_cb(int status, void *data)
{
	(void)status;
	(void)data;
	contd__add(&word_runs, 1);
}

/* -------------------------------------------------------------------------- workers --- */

static __thread struct worker *this_worker __attribute__((tls_model("initial-exec")));

/* Counts what the handler has seen; called at every test point. */
static void test_point(const char *name)
{
	if (this_worker && name[0] == 'h')
		contd__add(&this_worker->handled, 1);
}

static void attach(struct worker *w)
{
	must(contd_thread_attach(NULL));
	/* Those that came while it was not attached, or measured a tick, were not counted. */
	contd__store(&w->handled, contd__load(&w->sent));
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void hand_over(struct ring *r, struct contd_event *event)
{
	uint32_t head = r->head;

	while (head - contd__load_acquire(&r->tail) == RING)
		sched_yield();
	r->event[head % RING] = event;
	/* Release: pairs with the acquire in completer_main. */
	contd__store_release(&r->head, head + 1);
}

/* Work of the program that an interruption must not harm. */
static void keep_busy(uint64_t seed)
{
	char text[200];
	size_t bytes = 16 + seed % 3000;
	unsigned char *p = malloc(bytes);
	int n, before = (int)(seed % 1000) + 1;

	memset(p, (int)(seed & 0xff), bytes);
	errno = before;
	for (volatile int i = 0; i < 20; i++)
		;
	if (errno != before) {
		fprintf(stderr, "storm: errno was %d and is %d\n", before, errno);
		_exit(3);
	}
	n = snprintf(text, sizeof(text), "%llu %f %zu", (unsigned long long)seed, (double)seed / 3, bytes);
	fprintf(null_file, "%s %d\n", text, n);
	for (size_t i = 0; i < bytes; i++) {
		if (p[i] != (unsigned char)(seed & 0xff)) {
			fprintf(stderr, "storm: memory of the interrupted code was changed\n");
			_exit(3);
		}
	}
	free(p);
}

static struct operation *free_operation(struct worker *w, uint32_t *at)
{
	for (uint32_t tries = 0;; tries++) {
		struct operation *o = &w->operation[(*at)++ % RING];

		if (contd__load_acquire(&o->busy) == 0)
			return o;
		if (tries % RING == RING - 1)
			contd_poll(0);
	}
}

/* A new group, that is destroyed with continuations outstanding, and a chain on it. */
static void group_round(struct worker *w, uint32_t i, uint64_t random, uint32_t *at)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = group_flags[random % 7], .max_poll = -1};
	struct operation *o = free_operation(w, at);
	struct contd_event *es[] = {&o->event[0]};
	struct contd_group *own;

	must(contd_group_create(&attr, &own));
	o->account = &w->account[i];
	o->account->registered = 1;
	o->then = NULL;
	o->busy = 2;
	contd_event_init(&o->event[0]);
	must(contd_event_continue(1, es, run_cb, o, own, NULL));
	contd__add(&chain_registered, 1);
	must(contd_group_continue(own, chain_cb, NULL, group[random >> 32 & 1 ? 0 : 5], NULL));
	hand_over(&w->ring[i % COMPLETERS], &o->event[0]);
	w->registered++;
	w->group_rounds++;
	/* o->busy of the completer: taken at once, since the ring does not know the operation. */
	if (random >> 33 & 1)
		must(contd_group_destroy(own));
	else {
		must(contd_group_wait(own, -1));
		must(contd_group_destroy(own));
	}
}

static void watch_word(uint64_t random)
{
	struct contd_word word = {&watched, 0, __atomic_load_n(&watched, __ATOMIC_RELAXED) + 1 + random % 3,
				  CONTD_WORD_GE};

	contd__add(&word_registered, 1);
	must(contd_word_continue(&word, word_cb, NULL, group[random % GROUPS], NULL));
}

static void cancel(struct worker *w, struct contd_handle handle, struct operation *o, struct account *account)
{
	if (contd_cancel(handle) == 0) {
		account->cancelled = 1;
		w->cancelled++;
		contd__sub(&o->busy, 1);
	} else {
		w->too_late++;
	}
}

/* Some time after it was registered, when it may be ready, running, over, or another one's. */
static void cancel_later(struct worker *w, struct contd_handle handle, struct operation *o)
{
	struct postponed *p = &w->postponed[w->postpone++ % POSTPONED];

	if (p->operation)
		cancel(w, p->handle, p->operation, p->account);
	*p = (struct postponed){handle, o, o->account};
}

static void one(struct worker *w, uint32_t i, uint64_t random, uint32_t *at)
{
	struct operation *o = free_operation(w, at);
	struct contd_event *es[] = {&o->event[0], &o->event[1]};
	unsigned kind = (unsigned)(random % 16);
	size_t n = 1 + (random >> 8 & 1);
	struct contd_group *g = group[(random >> 16) % GROUPS];
	struct contd_handle handle;

	o->account = &w->account[i];
	o->account->registered = 1;
	o->then = NULL;
	o->busy = 1;
	contd_event_init(&o->event[0]);
	contd_event_init(&o->event[1]);
	w->registered++;
	if (kind < 3) { /* complete before it is registered */
		for (size_t e = 0; e < n; e++)
			must(contd_event_complete(&o->event[e], 0));
		must(contd_event_continue(n, es, run_cb, o, g, NULL));
	} else if (kind < 5) { /* by this thread, at once */
		must(contd_event_continue(n, es, run_cb, o, g, NULL));
		for (size_t e = 0; e < n; e++)
			must(contd_event_complete(&o->event[e], 0));
	} else {
		o->busy = 1 + (uint32_t)n;
		must(contd_event_continue(n, es, run_cb, o, g, &handle));
		for (size_t e = 0; e < n; e++)
			hand_over(&w->ring[(i + e) % COMPLETERS], &o->event[e]);
		if (kind < 7)
			cancel(w, handle, o, o->account);
		else if (kind < 9)
			cancel_later(w, handle, o);
	}
}

/* Two in a row: the first one's callback completes the second one's event. */
static void pair(struct worker *w, uint32_t i, uint64_t random, uint32_t *at)
{
	struct operation *first = free_operation(w, at), *second;
	struct contd_event *es1[] = {&first->event[0]}, *es2[1];

	first->busy = 2;
	second = free_operation(w, at);
	second->busy = 2;
	es2[0] = &second->event[0];
	contd_event_init(&first->event[0]);
	contd_event_init(&second->event[0]);
	first->account = &w->account[i];
	second->account = &w->account[i + 1];
	first->account->registered = second->account->registered = 1;
	first->then = second;
	second->then = NULL;
	w->registered += 2;
	must(contd_event_continue(1, es2, run_cb, second, group[random % GROUPS], NULL));
	must(contd_event_continue(1, es1, run_cb, first, group[(random >> 8) % GROUPS], NULL));
	hand_over(&w->ring[i % COMPLETERS], &first->event[0]);
}

static void *worker_main(void *data)
{
	struct worker *w = data;
	uint64_t random = 0x9e3779b97f4a7c15ull * (w->number + 1);
	uint32_t at = 0;

	this_worker = w;
	attach(w);
	contd__store_release(&w->tid, (pid_t)syscall(SYS_gettid));
	for (uint32_t i = 0; i < w->quota;) {
		uint64_t r = next_random(&random);

		if (r % 64 == 0)
			group_round(w, i++, r >> 6, &at);
		else if (r % 8 == 1 && i + 2 <= w->quota)
			pair(w, i, r >> 6, &at), i += 2;
		else
			one(w, i++, r >> 6, &at);
		if (r % 16 == 3)
			keep_busy(r);
		if (r % 1024 == 5)
			watch_word(r >> 10);
		if (r % 256 == 7) {
			volatile double x = 1;

			contd_compute_begin();
			for (unsigned k = 0; k < 3000; k++)
				x = x * 1.0000001 + 1e-9;
			contd_compute_end();
		}
		if (r % 128 == 9) {
			contd_guard_begin();
			for (volatile unsigned k = 0; k < 500; k++)
				;
			contd_guard_end();
		}
		if (r % 32 == 11)
			contd_poll((uint32_t)(r >> 32 & 15));
		/* Attached or not. */
		if (r % 65536 == 13) {
			must(contd_thread_detach());
			attach(w);
		}
	}
	contd__sub(&workers_left, 1);
	/* Everything of this worker's is to be over before its memory is looked at. */
	for (uint32_t i = 0; i < RING; i++)
		while (contd__load_acquire(&w->operation[i].busy))
			contd_poll(0);
	must(contd_thread_detach());
	return NULL;
}

/* --------------------------------------------------------------------------- others --- */

/* busy of an event's operation: found by its address. */
static struct operation *operation_of(struct worker *w, struct contd_event *event)
{
	size_t offset = (size_t)((char *)event - (char *)w->operation);

	return &w->operation[offset / sizeof(struct operation)];
}

static void *completer_main(void *data)
{
	unsigned number = (unsigned)(uintptr_t)data;

	while (!contd__load_acquire(&stop_completers)) {
		bool idle = true;

		for (unsigned i = 0; i < WORKERS; i++) {
			struct ring *r = &worker[i].ring[number];
			uint32_t tail = r->tail;

			/* Acquire: pairs with the release in hand_over. */
			while (tail != contd__load_acquire(&r->head)) {
				struct contd_event *event = r->event[tail % RING];
				struct operation *o = operation_of(&worker[i], event);

				must(contd_event_complete(event, 0));
				contd__sub(&o->busy, 1);
				contd__store_release(&r->tail, ++tail);
				idle = false;
			}
		}
		if (idle)
			sched_yield();
	}
	return NULL;
}

static void *poller_main(void *data)
{
	(void)data;
	while (!contd__load_acquire(&stop_poller)) {
		int complete, ran = 0;

		for (unsigned i = 0; i < GROUPS; i++)
			ran += contd_group_test(group[i], &complete);
		__atomic_fetch_add(&watched, 1, __ATOMIC_RELEASE);
		if (ran == 0)
			usleep(50);
	}
	return NULL;
}

static void *hammer_main(void *data)
{
	(void)data;
	while (!contd__load_acquire(&stop_hammer)) {
		for (unsigned i = 0; i < WORKERS; i++) {
			pid_t tid = contd__load_acquire(&worker[i].tid);

			if (!tid ||
			    (int32_t)(contd__load(&worker[i].sent) - contd__load(&worker[i].handled)) >= AHEAD ||
			    syscall(SYS_tgkill, getpid(), tid, signal_number))
				continue;
			contd__add(&worker[i].sent, 1);
			signals_sent++;
		}
		for (volatile unsigned i = 0; i < 500; i++)
			;
	}
	return NULL;
}

static void watchdog(int signo)
{
	static const char text[] = "storm: hangs\n";

	(void)signo;
	(void)!write(2, text, sizeof(text) - 1);
	abort();
}

/* ---------------------------------------------------------------------------- the end --- */

static int settle(void)
{
	uint64_t wrong = 0, registered = 0, cancelled = 0, too_late = 0, rounds = 0, ran = 0;
	struct contd_stats s = {.size = sizeof(s)};

	must(contd_stats_get(&s));
	for (unsigned i = 0; i < WORKERS; i++) {
		struct worker *w = &worker[i];

		for (uint32_t k = 0; k < w->quota; k++) {
			const struct account *a = &w->account[k];

			ran += a->runs;
			if (!a->registered || a->runs != (a->cancelled ? 0 : 1)) {
				if (wrong++ < 10)
					fprintf(stderr, "storm: worker %u, continuation %u: ran %u times%s%s\n", i, k,
						a->runs, a->cancelled ? ", cancelled" : "",
						a->registered ? "" : ", never registered");
			}
		}
		registered += w->registered;
		cancelled += w->cancelled;
		too_late += w->too_late;
		rounds += w->group_rounds;
	}
	printf("registered %llu, of events %llu, of words %llu, of groups %llu\n", (unsigned long long)s.registered,
	       (unsigned long long)registered, (unsigned long long)word_registered,
	       (unsigned long long)chain_registered);
	printf("run %llu: in handlers %llu, in regions %llu, on the daemon %llu, inline %llu\n",
	       (unsigned long long)s.run, (unsigned long long)s.run_handler, (unsigned long long)s.run_region,
	       (unsigned long long)s.run_daemon, (unsigned long long)s.run_inline);
	printf("cancelled %llu, too late %llu; groups made and destroyed %llu\n", (unsigned long long)cancelled,
	       (unsigned long long)too_late, (unsigned long long)rounds);
	printf("signals: sent by the hammer %llu, notifications %llu (refused %llu), ticks %llu, under a guard %llu\n",
	       (unsigned long long)signals_sent, (unsigned long long)s.notifications,
	       (unsigned long long)s.notify_failed, (unsigned long long)s.ticks, (unsigned long long)s.guarded);
	printf("table chunks %llu, %ld s\n", (unsigned long long)s.grown, (long)(time(NULL) - began));
	if (word_runs != word_registered || chain_runs != chain_registered) {
		fprintf(stderr, "storm: words ran %llu, chains %llu\n", (unsigned long long)word_runs,
			(unsigned long long)chain_runs);
		wrong++;
	}
	if (s.registered != registered + word_registered + chain_registered || s.cancelled != cancelled ||
	    s.run != ran + word_runs + chain_runs) {
		fprintf(stderr, "storm: the statistics say something else\n");
		wrong++;
	}
	if (s.run_handler == 0 || cancelled == 0 || too_late == 0 || s.ticks == 0) {
		fprintf(stderr, "storm: it was no storm\n");
		wrong++;
	}
	return wrong != 0;
}

int main(int argc, char **argv)
{
	struct contd_config config = {.size = sizeof(config), .tick_min_ns = 20000, .tick_max_ns = 100000};
	pthread_t completer[COMPLETERS], poller, hammer;
	uint32_t total = FULL;
	int rc, left;

	for (int i = 1; i < argc; i++)
		total = strcmp(argv[i], "--short") == 0 ? SHORT : (uint32_t)strtoul(argv[i], NULL, 10);
	began = time(NULL);
	signal(SIGALRM, watchdog);
	alarm(total > 1000000 ? 7000 : 280);
	null_file = fopen("/dev/null", "w");
	if (!null_file || total < WORKERS)
		return 2;
	signal_number = SIGRTMAX - 3;
	contd__testpoint_hook = test_point;
	must(contd_init(&config));
	must(contd_daemon_start(NULL));
	for (unsigned i = 0; i < GROUPS; i++) {
		struct contd_group_attr attr = {
			.size = sizeof(attr), .flags = group_flags[i], .max_poll = group_max_poll[i]};

		must(contd_group_create(&attr, &group[i]));
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		worker[i].number = i;
		worker[i].quota = total / WORKERS;
		worker[i].account = calloc(worker[i].quota, sizeof(struct account));
		worker[i].operation = calloc(RING, sizeof(struct operation));
		if (!worker[i].account || !worker[i].operation)
			return 2;
	}
	for (unsigned i = 0; i < COMPLETERS; i++)
		pthread_create(&completer[i], NULL, completer_main, (void *)(uintptr_t)i);
	pthread_create(&poller, NULL, poller_main, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_create(&worker[i].thread, NULL, worker_main, &worker[i]);
	pthread_create(&hammer, NULL, hammer_main, NULL);
	while (contd__load_acquire(&workers_left))
		usleep(1000);
	/* Threads that have ended cannot be signalled. */
	contd__store_release(&stop_hammer, 1);
	pthread_join(hammer, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(worker[i].thread, NULL);
	contd__store_release(&stop_completers, 1);
	for (unsigned i = 0; i < COMPLETERS; i++)
		pthread_join(completer[i], NULL);
	contd__store_release(&stop_poller, 1);
	pthread_join(poller, NULL);
	__atomic_store_n(&watched, UINT64_MAX, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < GROUPS; i++)
		must(contd_group_wait(group[i], -1));
	while (contd__load_acquire(&chain_runs) != chain_registered)
		contd_poll(0);
	must(contd_daemon_stop());
	rc = settle();
	for (unsigned i = 0; i < GROUPS; i++)
		must(contd_group_destroy(group[i]));
	left = contd_fini();
	if (left) {
		fprintf(stderr, "storm: contd_fini says that %d never ran\n", left);
		rc = 1;
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		free(worker[i].account);
		free(worker[i].operation);
	}
	fclose(null_file);
	puts(rc ? "WRONG" : "each exactly once");
	return rc;
}
