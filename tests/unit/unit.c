/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>

#include "unit.h"
#include "base/atomic.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

void tally_cb(int status, void *data)
{
	struct tally *t = data;
	char here;

	/* Atomic: several continuations may share a tally and run at once. */
	contd__store(&t->status, status);
	contd__store(&t->context, contd__self.context);
	contd__store(&t->thread, pthread_self());
	contd__store(&t->stack, (uintptr_t)&here);
	__atomic_fetch_add(&t->runs, 1, __ATOMIC_ACQ_REL);
}

void start(enum contd_agent agent)
{
	/* On a loaded machine a handler may lose its processor: the time bound is not to end its scan, for tests
	 * count. */
	struct contd_config config = {.size = sizeof(config), .agent = agent, .scan_ns = 1000000000};

	must(contd_init(&config));
}

struct contd_group *group_new(uint32_t flags, int32_t max_poll)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = flags, .max_poll = max_poll};
	struct contd_group *g = NULL;

	must(contd_group_create(&attr, &g));
	cr_assert_not_null(g);
	return g;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void raise_ours(void)
{
	pthread_kill(pthread_self(), contd__signals.signal_number);
}

int complete_quietly(struct contd_event *event, int status)
{
	struct contd__frame frame = {.outer = contd__self.frame};
	uint8_t context = contd__self.context;
	uint32_t flags = contd__load(&contd__tls.flags);
	int rc;

	/* As in a callback that a region's handler runs: the scan goes on, and finds it. */
	contd__or(&contd__tls.flags, CONTD__TLS_ATTACHED);
	contd__self.frame = &frame;
	contd__store(&contd__self.context, CONTEXT_REGION); /* the watchdog reads it */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	rc = contd_event_complete(event, status);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&contd__self.context, context);
	contd__self.frame = frame.outer;
	if (!(flags & CONTD__TLS_ATTACHED))
		contd__and(&contd__tls.flags, ~CONTD__TLS_ATTACHED);
	return rc;
}

static volatile char *faulty_page;
static unsigned fault_count;

static void on_fault(int signo)
{
	(void)signo;
	contd__add(&fault_count, 1);
	mprotect((void *)faulty_page, 4096, PROT_READ | PROT_WRITE);
}

void faults_begin(void)
{
	struct sigaction action = {.sa_handler = on_fault};

	faulty_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)faulty_page, MAP_FAILED);
	cr_assert_eq(sigaction(SIGSEGV, &action, NULL), 0);
}

void fault(void)
{
	*faulty_page = 1;
}

unsigned faults(void)
{
	return contd__load(&fault_count);
}

struct contd_stats stats_now(void)
{
	struct contd_stats s = {.size = sizeof(s)};

	must(contd_stats_get(&s));
	return s;
}

enum { HELPER_IDLE, HELPER_JOB, HELPER_END };

static void *helper_main(void *data)
{
	struct helper *h = data;
	uint32_t state;

	if (h->attach)
		must(contd_thread_attach(NULL));
	contd__store_release(&h->state, HELPER_IDLE);
	while ((state = contd__load_acquire(&h->state)) != HELPER_END) {
		if (state == HELPER_JOB) {
			h->job(h->data);
			contd__store_release(&h->state, HELPER_IDLE);
		}
		usleep(20);
	}
	if (h->attach)
		contd_thread_detach();
	return NULL;
}

void helper_create(struct helper *h, bool attach)
{
	h->attach = attach;
	h->state = HELPER_JOB + 10;
	cr_assert_eq(pthread_create(&h->thread, NULL, helper_main, h), 0);
	await(contd__load_acquire(&h->state) == HELPER_IDLE);
}

void helper_start(struct helper *h, void (*job)(void *data), void *data)
{
	h->job = job;
	h->data = data;
	contd__store_release(&h->state, HELPER_JOB);
}

void helper_finish(struct helper *h)
{
	struct timespec ts = {0, 20000};

	while (contd__load_acquire(&h->state) == HELPER_JOB)
		nanosleep(&ts, NULL);
}

void helper_do(struct helper *h, void (*job)(void *data), void *data)
{
	helper_start(h, job, data);
	helper_finish(h);
}

void helper_join(struct helper *h)
{
	helper_finish(h);
	contd__store_release(&h->state, HELPER_END);
	cr_assert_eq(pthread_join(h->thread, NULL), 0);
}
