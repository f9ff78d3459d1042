/* SPDX-License-Identifier: BSD-3-Clause */
/* contd .probe: settings, the clock, and what a tick and a ring cost here. libcontd is preloaded, and not linked. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <contd/contd.h>

#include "base/clock.h"
#include "command/measured.h"
#include "command/tell.h"
#include "dispatch/settings.h"
#include "dispatch/source.h"

#define PRIVATE "CONTD_PRIVATE_0.1"
#define MEASURE_NS 100000000 /* a measure takes about so long */

#define PUBLIC_CALLS(X) \
	X(contd_init) \
	X(contd_error_text) \
	X(contd_version) \
	X(contd_thread_attach) \
	X(contd_stats_get) \
	X(contd_group_create) \
	X(contd_event_continue) \
	X(contd_event_complete) \
	X(contd_bell_listen) \
	X(contd_bell_open) \
	X(contd__bell_ring) \
	X(contd__region_rearm)
#define PRIVATE_CALLS(X) \
	X(contd__setting_describe) \
	X(contd__source_register) \
	X(contd__pending_sig)

static struct {
#define FIELD(name) __typeof__(name) *name;
	PUBLIC_CALLS(FIELD)
	PRIVATE_CALLS(FIELD)
#undef FIELD
	struct contd__clock *clock;
	struct contd_tls *tls; /* of this thread */
} C;

static void load(void)
{
#define LOAD_PUBLIC(name) C.name = (__typeof__(name) *)needed(#name, NULL);
#define LOAD_PRIVATE(name) C.name = (__typeof__(name) *)needed(#name, PRIVATE);
	PUBLIC_CALLS(LOAD_PUBLIC)
	PRIVATE_CALLS(LOAD_PRIVATE)
#undef LOAD_PUBLIC
#undef LOAD_PRIVATE
	C.clock = needed("contd__clock", PRIVATE);
	C.tls = needed("contd__tls", NULL);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void tell_number(const char *key, uint64_t value)
{
	tell(key, "%llu", (unsigned long long)value);
}

/* As <prefix>_ns, _least_ns, _most_ns; the median first. Sorts them. */
static void tell_samples(const char *prefix, uint64_t *sample, size_t n)
{
	char key[64];

	qsort(sample, n, sizeof(*sample), by_size);
	snprintf(key, sizeof(key), "%s_ns", prefix);
	tell_number(key, sample[n / 2]);
	snprintf(key, sizeof(key), "%s_least_ns", prefix);
	tell_number(key, sample[0]);
	snprintf(key, sizeof(key), "%s_most_ns", prefix);
	tell_number(key, sample[n - 1]);
}

/* -------------------------------------------------------------------------------------- settings, and the clock --- */

#if defined(__x86_64__)
#define CLOCK_NAME "time-stamp counter (rdtsc)"
#elif defined(__aarch64__)
#define CLOCK_NAME "virtual counter (cntvct_el0)"
#else
#define CLOCK_NAME "clock_gettime (CLOCK_MONOTONIC)"
#endif

static void tell_clock(void)
{
	enum { READINGS = 100000 };
	uint64_t from = contd__ticks();

	for (int i = 0; i < READINGS; i++)
		contd__ticks();
	tell("clock_read_ns", "%.1f", (double)(contd__ticks() - from) / C.clock->ticks_per_ns / READINGS);
	tell("clock_hz", "%.0f", C.clock->ticks_per_ns * 1e9);
}

void probed_core(void)
{
	struct contd__setting_info info;
	uint32_t version;

	load();
	version = C.contd_version();
	tell("version", "%u.%u.%u", version >> 16, version >> 8 & 0xff, version & 0xff);
	tell("clock", CLOCK_NAME);
	for (size_t i = 0; C.contd__setting_describe(i, &info); i++) {
		tell("setting", "%s", info.variable);
		tell("field", "%s", info.field);
		if (info.key)
			tell("key", "%s", info.key);
		tell("must", "%s", info.must);
		if (*info.standard)
			tell("standard", "%s", info.standard);
		if (*info.value || info.given)
			tell("value", "%s", info.value);
		tell("origin", "%s", info.given ? "environment" : "default");
		if (info.wrong)
			tell("wrong", "%s", info.wrong);
	}
	tell("doing", "contd_init");
	if (C.contd_init(NULL)) {
		tell("refused", "%s", C.contd_error_text());
		forget_settings();
		if (C.contd_init(NULL)) {
			tell("error", "%s", C.contd_error_text());
			return;
		}
	}
	tell_clock();
}

/* ------------------------------------------------------------------------------------------------------- a tick --- */

/* contd measures it once a process, when the first thread attaches. So this runs in a new process. Writes it, or 0. */
static void measure_tick(int to)
{
	struct contd_stats stats = {.size = sizeof(stats)};
	uint64_t cost = 0;

	if (!C.contd_init(NULL) && !C.contd_thread_attach(NULL) && !C.contd_stats_get(&stats))
		cost = stats.tick_cost_ns;
	else
		tell("error", "%s", C.contd_error_text());
	_exit(write(to, &cost, sizeof(cost)) != sizeof(cost));
}

static int begin(void)
{
	int child = fork();

	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (child < 0)
		tell("error", "fork: %s", strerror(errno));
	return child;
}

static void end(int child)
{
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

void probed_tick(void)
{
	enum { MOST = 64 };
	uint64_t sample[MOST];
	int64_t until = now_ns() + MEASURE_NS;
	int ends[2], child;
	size_t n = 0;

	load();
	tell("doing", "the measure of a tick");
	if (pipe(ends)) {
		tell("error", "pipe: %s", strerror(errno));
		return;
	}
	do {
		child = begin();
		if (child == 0)
			measure_tick(ends[1]);
		if (child < 0 || read(ends[0], &sample[n], sizeof(sample[n])) != sizeof(sample[n]) || !sample[n])
			return;
		end(child);
		n++;
	} while (n < MOST && now_ns() < until);
	tell_samples("tick", sample, n);
	tell_number("samples", n);
}

/* ------------------------------------------------------------------------------------------------------- a ring --- */

/* Memory that the process that rings shares with the one that is rung. */
static struct shared {
	uint32_t ready;   /* the one that is rung listens; or 2: it cannot */
	uint32_t sent;    /* the number of the last message */
	uint32_t reacted; /* the number of the last one whose continuation has run */
	uint32_t over;
	int64_t reacted_at;
} * shared;

#define LOAD(field) __atomic_load_n(&shared->field, __ATOMIC_SEQ_CST)
#define STORE(field, value) __atomic_store_n(&shared->field, value, __ATOMIC_SEQ_CST)

static struct contd_event arrived;
static uint32_t awaited, waiting;

static void react(int status, void *data)
{
	(void)status, (void)data;
	shared->reacted_at = now_ns();
	STORE(reacted, awaited);
}

/* A source as MPI is one: driven in regions. */
static uint32_t source_pending(void)
{
	return __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);
}

static void source_drive(bool last)
{
	(void)last;
	if (source_pending() && LOAD(sent) == awaited) {
		__atomic_store_n(&waiting, 0, __ATOMIC_SEQ_CST);
		C.contd_event_complete(&arrived, 0);
	}
}

/* As contd_compute_begin(), which needs a program that is linked with contd. */
static void compute_begin(void)
{
	__atomic_store_n(&C.tls->region, C.tls->region + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&C.tls->flags, __ATOMIC_RELAXED) & CONTD__TLS_REARM)
		C.contd__region_rearm();
}

static void compute_end(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&C.tls->region, C.tls->region - 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* A process that computes, and waits for one message after another. Ticks are seconds apart. */
static int receive(const char *job)
{
	struct contd_config config = {
		.size = sizeof(config), .tick_min_ns = 1000000000, .tick_max_ns = 10000000000u, .overhead_percent = 50};
	struct contd__source source = {.name = "contd info",
				       .where = WHERE_REGION | WHERE_THREAD,
				       .pending = source_pending,
				       .progress = source_drive};
	struct contd_group_attr attr = CONTD_GROUP_ATTR_INIT;
	struct contd_event *event = &arrived;
	struct contd_group *group;

	if (C.contd_init(&config) || C.contd__source_register(&source) || C.contd_group_create(&attr, &group) ||
	    C.contd_thread_attach(NULL) || C.contd_bell_listen(job, 1)) {
		tell("error", "%s", C.contd_error_text());
		STORE(ready, 2);
		return 1;
	}
	STORE(ready, 1);
	for (awaited = 1; !LOAD(over); awaited++) {
		arrived = (struct contd_event)CONTD_EVENT_INIT;
		C.contd_event_continue(1, &event, react, NULL, group, NULL);
		__atomic_store_n(&waiting, 1, __ATOMIC_SEQ_CST);
		C.contd__pending_sig();
		compute_begin();
		while (LOAD(reacted) != awaited && !LOAD(over))
			CONTD_RELAX();
		compute_end();
	}
	return 0;
}

static void nap(void)
{
	struct timespec ts = {0, 20000};

	nanosleep(&ts, NULL);
}

/* Until the field has that value, a second at most. */
#define AWAIT(condition) \
	({ \
		int64_t until_ = now_ns() + 1000000000; \
		while (!(condition) && now_ns() < until_) \
			nap(); \
		(condition); \
	})

/* As contd_bell_ring(). */
static int ring(const struct contd_bell *bell)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(bell->armed, __ATOMIC_RELAXED) ? C.contd__bell_ring((struct contd_bell *)(uintptr_t)bell)
							      : 0;
}

static void send_and_ring(struct contd_bell *bell)
{
	enum { MOST = 1000, IDLE = 100000 };
	static uint64_t call[MOST], reaction[MOST];
	int64_t until = now_ns() + MEASURE_NS, sent, rung;
	uint32_t number = 1;
	size_t n = 0;

	for (; n < MOST && (n < 10 || now_ns() < until) && now_ns() < until + 2000000000; number++) {
		if (!AWAIT(__atomic_load_n(bell->armed, __ATOMIC_SEQ_CST)))
			break;
		sent = now_ns();
		STORE(sent, number);
		rung = ring(bell);
		call[n] = (uint64_t)(now_ns() - sent);
		if (rung < 0) {
			tell("error", "contd_bell_ring: %s", strerror((int)-rung));
			return;
		}
		if (!AWAIT(LOAD(reacted) == number))
			break;
		reaction[n] = (uint64_t)(shared->reacted_at - sent);
		n += rung == 1;
	}
	STORE(over, 1);
	if (!n) {
		tell("error", "the peer could not be rung: its doorbell was never armed");
		return;
	}
	tell_samples("call", call, n);
	tell_samples("reaction", reaction, n);
	tell_number("samples", n);
	ring(bell); /* the peer may have armed it once more */
	sent = now_ns();
	for (int i = 0; i < IDLE; i++)
		ring(bell);
	tell("idle_ns", "%.1f", (double)(now_ns() - sent) / IDLE);
}

void probed_ring(void)
{
	struct contd_bell *bell;
	char job[48];
	int child;

	load();
	tell("doing", "the measure of a ring");
	snprintf(job, sizeof(job), "contd-info-%d", (int)getpid());
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		tell("error", "mmap: %s", strerror(errno));
		return;
	}
	child = begin();
	if (child == 0)
		_exit(receive(job));
	if (child < 0)
		return;
	if (!AWAIT(LOAD(ready))) {
		tell("error", "the peer does not begin");
	} else if (LOAD(ready) == 1) {
		if (C.contd_bell_open(job, 1, &bell))
			tell("error", "%s", C.contd_error_text());
		else
			send_and_ring(bell);
	}
	STORE(over, 1);
	kill(child, SIGKILL);
	end(child);
}
