/* SPDX-License-Identifier: BSD-3-Clause */
/* For agents*.c: checks, a storm of signals, and an endpoint of a real provider that may talk to itself. */
#ifndef AGENTS_SETUP_H
#define AGENTS_SETUP_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <contd/fabric.h>

#define SKIPPED 77

#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__, "")
#define CHECK_OK(call) \
	do { \
		long check_rc = (long)(call); \
		char check_text[64]; \
		snprintf(check_text, sizeof(check_text), "%ld %s", check_rc, fi_strerror((int)-check_rc)); \
		check(check_rc == 0, #call, __FILE__, __LINE__, check_text); \
	} while (0)
#define CHECK_IS(value, wanted) \
	do { \
		long check_is = (long)(value), check_wanted = (long)(wanted); \
		char check_text[64]; \
		snprintf(check_text, sizeof(check_text), "is %ld, not %ld", check_is, check_wanted); \
		check(check_is == check_wanted, #value, __FILE__, __LINE__, check_text); \
	} while (0)

static inline void check(bool ok, const char *what, const char *file, int line, const char *more)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, what, more, contd_error_text());
	fflush(NULL);
	_exit(1);
}

__attribute__((noreturn)) static inline void skip(const char *why, const char *of)
{
	printf("skipped: %s %s\n", why, of);
	fflush(NULL);
	_exit(SKIPPED);
}

#include "../child.h"
#include "ring.h"

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
#define ADD(x, v) __atomic_fetch_add(&(x), (v), __ATOMIC_SEQ_CST)

/* A hang ends here with a line that says where, well before ctest's limit. */
#define PATIENCE_NS 100000000000ull

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* To a time, not for one: what is left of a sleep that a signal ends has the timer's slack in it, and under a storm
 * never ends. */
static inline void nap_ns(uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* With `body` in between; ends the program where the condition does not come. */
#define AWAIT(condition, body) \
	do { \
		uint64_t await_until = now_ns() + PATIENCE_NS; \
		while (!(condition)) { \
			check(now_ns() < await_until, #condition, __FILE__, __LINE__, "never came"); \
			body; \
		} \
	} while (0)

/* A different sequence for each seed; xorshift. */
static inline uint32_t any_number(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (uint32_t)(*seed >> 32);
}

static inline void spin_for(uint32_t rounds)
{
	for (volatile uint32_t i = 0; i < rounds; i++)
		;
}

/* The tests set their environment themselves. */
static inline void begin_contd(int agent, uint64_t tick_min, uint64_t tick_max)
{
	struct contd_config config = {.size = sizeof(config),
				      .agent = agent,
				      .tick_min_ns = tick_min,
				      .tick_max_ns = tick_max,
				      .overhead_percent = 50};

	unsetenv("CONTD_AGENT");
	CHECK_OK(contd_init(&config));
	CHECK_OK(contd_thread_attach(NULL));
}

static inline struct contd_group *new_group(uint32_t flags)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = flags, .max_poll = -1};
	struct contd_group *group;

	CHECK_OK(contd_group_create(&attr, &group));
	return group;
}

/* -------------------------------------------------------------------------------------------------------- cases --- */

struct agents_case {
	const char *name;
	void (*run)(void);
};

static const char *provider; /* by its name here */

/* In a case for one process. */
static inline void alone(const char *why)
{
	if (ring_is())
		skip("in a ring,", why);
}

/* program PROVIDER CASE; without arguments the cases are listed. */
static inline int agents_main(int argc, char **argv, const struct agents_case *cases, size_t count)
{
	if (argc != 3 && argc != 1)
		return 2;
	for (size_t i = 0; i < count && argc == 1; i++)
		puts(cases[i].name);
	if (argc == 1)
		return 0;
	provider = argv[1];
	for (size_t i = 0; i < count; i++)
		if (strcmp(argv[2], cases[i].name) == 0) {
			cases[i].run();
			if (!ring.met)
				alone("nothing is sent");
			return 0;
		}
	fprintf(stderr, "%s: there is no case %s\n", argv[0], argv[2]);
	return 2;
}

/* -------------------------------------------------------------------------------------------------------- storm --- */

/*
 * Signals without SA_RESTART on the calling thread, from now on: calls of the kernel's that wait end with EINTR. Not
 * with the thread sanitizer: if one comes just when its runtime (gcc 12) begins to run handlers that it has put off, it
 * restores the wrong mask in the end, and all signals stay blocked.
 */
static uint32_t storm_signals;

static inline void storm_handler(int number)
{
	ADD(storm_signals, 1);
}

static inline void storm_here(void)
{
	struct sigaction action = {.sa_handler = storm_handler};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 2};
	struct itimerspec pace = {{0, 211000}, {0, 211000}};
	timer_t timer;

#ifdef __SANITIZE_THREAD__
	return;
#endif
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	CHECK_OK(sigaction(SIGRTMIN + 2, &action, NULL));
	CHECK_OK(timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_OK(timer_settime(timer, 0, &pace, NULL));
}

/* ---------------------------------------------------------------------------------------------- a real endpoint --- */

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct contd_fabric_queue *queue;
	bool has_fd;
	char name[256];
	size_t name_length;
	fi_addr_t peer; /* itself, or the ring's next process */
};

/* Layered ones have short names here: a semicolon is a nuisance to CMake. */
static inline const char *provider_named(const char *name)
{
	return strcmp(name, "rxm") == 0 ? "tcp;ofi_rxm" : strcmp(name, "rxd") == 0 ? "udp;ofi_rxd" : name;
}

/* Progress, of which the others may need some; takes nothing from the queue. */
static inline void node_drive(void *data)
{
	fi_cq_read(((struct node *)data)->cq, NULL, 0);
}

static inline void node_open(struct node *n, const char *name, enum fi_wait_obj wait)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = {.type = FI_AV_MAP};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait};
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE, .operations = 1u << 14};
	const char *address = ring_address(), *host = address ? address : strcmp(name, "shm") == 0 ? NULL : "127.0.0.1";
	char names[RING_MOST][sizeof(n->name)];
	int rc;

	memset(n, 0, sizeof(*n));
	CHECK(hints != NULL);
	hints->fabric_attr->prov_name = strdup(name);
	hints->caps = FI_TAGGED | FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	rc = fi_getinfo(FI_VERSION(1, 17), host, NULL, address ? FI_SOURCE : 0, hints, &n->info);
	if (rc == -FI_ENODATA)
		skip("this machine's libfabric has no provider", name);
	CHECK_OK(rc);
	fi_freeinfo(hints);
	CHECK_OK(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	CHECK_OK(fi_domain(n->fabric, n->info, &n->domain, NULL));
	CHECK_OK(fi_av_open(n->domain, &av, &n->av, NULL));
	attr.fabric = n->fabric;
	attr.format = cq.format;
	for (;;) {
		rc = fi_cq_open(n->domain, &cq, &n->cq, NULL);
		attr.wait = cq.wait_obj;
		if (!rc && (rc = contd_fabric_queue_adopt(n->cq, &attr, &n->queue)) != 0)
			CHECK_OK(fi_close(&n->cq->fid)); /* rxd opens one with a descriptor, and then has none */
		if (!rc || cq.wait_obj == FI_WAIT_NONE)
			break;
		cq.wait_obj = FI_WAIT_NONE;
	}
	CHECK_OK(rc);
	n->has_fd = cq.wait_obj == FI_WAIT_FD;
	CHECK_OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	CHECK_OK(fi_ep_bind(n->ep, &n->cq->fid, FI_SEND | FI_RECV));
	CHECK_OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	CHECK_OK(fi_enable(n->ep));
	n->name_length = sizeof(n->name);
	CHECK_OK(fi_getname(&n->ep->fid, n->name, &n->name_length));
	ring_gather(n->name, sizeof(n->name), names, node_drive, n);
	CHECK_IS(fi_av_insert(n->av, names[ring_next()], 1, &n->peer, 0, NULL), 1);
}

/* In a ring all wait for each other here. */
static inline void node_meet(struct node *n, int line)
{
	ring_meet(line, node_drive, n);
}

/* Both sides at once: the other process's address, as this one knows it. */
static inline fi_addr_t node_exchange(struct node *n, int fd)
{
	char name[sizeof(n->name)];
	fi_addr_t peer;

	child_put(fd, n->name, sizeof(n->name));
	CHECK(child_get(fd, name, sizeof(name)));
	CHECK_IS(fi_av_insert(n->av, name, 1, &peer, 0, NULL), 1);
	return peer;
}

/*
 * First contd stops reading the queue: rxm (libfabric 1.17) does not bear that while an endpoint is closed; and it
 * frees a queue that it refuses to close. So the queue is the program's, and contd's only in between.
 */
static inline void node_close(struct node *n)
{
	CHECK_OK(contd_fabric_queue_destroy(n->queue));
	node_meet(n, __LINE__);
	CHECK_OK(fi_close(&n->ep->fid));
	CHECK_OK(fi_close(&n->cq->fid));
	CHECK_OK(fi_close(&n->av->fid));
	CHECK_OK(fi_close(&n->domain->fid));
	CHECK_OK(fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

/*
 * Post one, with its continuation. If the provider is not ready yet, either the caller polls or, with `idle`,
 * another thread (the daemon) must poll. EINTR must never be seen.
 */
static inline void post(struct node *n, bool send, fi_addr_t peer, void *buffer, size_t length, uint64_t tag,
			struct contd_fabric_op *op, contd_callback *cb, void *data, struct contd_group *group,
			bool idle)
{
	uint64_t until = now_ns() + PATIENCE_NS;
	ssize_t rc;

	CHECK_OK(contd_fabric_begin(n->queue, op));
	CHECK_OK(contd_fabric_continue(op, cb, data, group));
	for (;;) {
		rc = send ? fi_tsend(n->ep, buffer, length, NULL, peer, tag, op)
			  : fi_trecv(n->ep, buffer, length, NULL, FI_ADDR_UNSPEC, tag, 0, op);
		if (rc != -FI_EAGAIN)
			break;
		if (idle)
			nap_ns(50000);
		else
			CHECK(contd_poll(0) >= 0);
		CHECK(now_ns() < until);
	}
	CHECK_OK(rc);
}

#endif
