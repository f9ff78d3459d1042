/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the tests of contd-fabric: an endpoint that sends to itself, to the next process of a ring (ring.h), or to
 * a child, over the provider that the program's first argument names. A missing provider or capability ends the program
 * with 77, an error with 1.
 *
 *	struct fabric f;
 *
 *	fabric_open(&f, "tcp", FI_MSG | FI_TAGGED);       fabric, domain, address vector
 *	group = fabric_begin_contd();                     contd, and a group of it
 *	queue = fabric_queue(&f, NULL, 0, 0);             a queue, and an endpoint on it; f.peer is whom it sends to
 *	fabric_begin(queue, &op, callback, group);
 *	MEET(&f);                                         where a message may not come sooner, in a ring
 *	POST(fi_send(f.ep, buffer, size, fabric_desc, f.peer, &op));
 *	WAIT(group);
 *	fabric_close_queue(&f, queue);
 *	fabric_end_contd(group);
 *	fabric_close(&f);
 */
#ifndef TESTS_FABRIC_H
#define TESTS_FABRIC_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <contd/contd.h>
#include <contd/fabric.h>

#define FABRIC_SKIPPED 77
#define FABRIC_SECONDS 100 /* after which what is waited for does not come any more */

static const char *fabric_provider_name, *fabric_case_name; /* for messages */

/* Memory that shm leaves when a process ends without closing its endpoints. */
static inline void fabric_tidy(pid_t pid)
{
	char name[64];

	for (int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "/dev/shm/%d:%d:%d", (int)pid, i / 4, i % 4);
		unlink(name);
	}
}

#define CHECK(cond) fabric_check((cond) != 0, #cond, __FILE__, __LINE__)
#define CHECK_RC(call, want) fabric_check_rc((long)(call), (want), #call, __FILE__, __LINE__)
#define OK(call) CHECK_RC(call, 0)

static inline void fabric_check(bool good, const char *what, const char *file, int line)
{
	if (good)
		return;
	fprintf(stderr, "%s:%d: %s %s: CHECK(%s) failed in process %d (errno %d, \"%s\")\n", file, line,
		fabric_case_name ? fabric_case_name : "", fabric_provider_name ? fabric_provider_name : "", what,
		(int)getpid(), errno, contd_error_text());
	fabric_tidy(getpid());
	_exit(1);
}

static inline void fabric_check_rc(long rc, long want, const char *what, const char *file, int line)
{
	if (rc == want)
		return;
	fprintf(stderr, "%s:%d: %s %s: %s gives %ld (%s), not %ld, in process %d (\"%s\")\n", file, line,
		fabric_case_name ? fabric_case_name : "", fabric_provider_name ? fabric_provider_name : "", what, rc,
		rc < 0 ? fi_strerror((int)-rc) : "", want, (int)getpid(), contd_error_text());
	fabric_tidy(getpid());
	_exit(1);
}

#include "../child.h"
#include "ring.h"

static inline void fabric_skip(const char *why)
{
	printf("skipped: %s: %s\n", fabric_provider_name ? fabric_provider_name : "", why);
	fflush(stdout);
	fabric_tidy(getpid());
	_exit(FABRIC_SKIPPED);
}

/* In a case for one process. */
static inline void fabric_alone(const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "in a ring, %s", why);
	if (ring_is())
		fabric_skip(text);
}

static inline double fabric_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Poll until it holds; that it never does is an error. */
#define UNTIL(cond) UNTIL_DOING(cond, contd_poll(0))
#define UNTIL_DOING(cond, doing) \
	do { \
		double until_ = fabric_now() + FABRIC_SECONDS; \
		while (!(cond)) { \
			doing; \
			if (fabric_now() > until_) \
				fabric_check(false, "in time: " #cond, __FILE__, __LINE__); \
		} \
	} while (0)

/* Until nothing of the group is outstanding. */
#define WAIT(group) OK(contd_group_wait(group, FABRIC_SECONDS * 1000000000ll))

/* For what must not happen, or may. */
static inline void fabric_poll(int times)
{
	for (int i = 0; i < times; i++)
		contd_poll(0);
}

/* Start an operation: again (the call is evaluated again) while the provider has no room, which polling makes. */
#define POST(call) \
	do { \
		double until_ = fabric_now() + FABRIC_SECONDS; \
		long rc_; \
		while ((rc_ = (long)(call)) == -FI_EAGAIN && fabric_now() < until_) \
			contd_poll(0); \
		fabric_check_rc(rc_, 0, #call, __FILE__, __LINE__); \
	} while (0)

/* ---------------------------------------------------------------------------------------------------- providers --- */

struct fabric {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer, before; /* it sends to the one, and receives from the other; both are itself without a ring */
	struct fid_cq *tx, *rx;
};

/* Some providers want the memory of local buffers described; none of those here does. */
#define fabric_desc NULL

/* The short names are those of the tests; others are libfabric's own. */
static inline const char *fabric_provider(const char *name)
{
	return strcmp(name, "tcp") == 0 ? "tcp;ofi_rxm" : strcmp(name, "udp") == 0 ? "udp;ofi_rxd" : name;
}

/* The provider's info of this kind with these capabilities, or NULL. `tx_flags`, `threading` may be 0. */
static inline struct fi_info *fabric_info(const char *name, enum fi_ep_type type, uint64_t caps, uint64_t tx_flags,
					  enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	const char *address = ring_address(), *node = address ? address : strcmp(name, "shm") == 0 ? NULL : "127.0.0.1";

	CHECK(hints);
	hints->fabric_attr->prov_name = strdup(fabric_provider(name));
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = type;
	hints->tx_attr->op_flags = tx_flags;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = threading;
	if (fi_getinfo(FI_VERSION(1, 17), node, NULL, address ? FI_SOURCE : 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

/* Fabric, domain, address vector, for an unconnected endpoint. */
static inline void fabric_open_as(struct fabric *f, const char *name, uint64_t caps, uint64_t tx_flags,
				  enum fi_threading threading)
{
	struct fi_av_attr av = {.type = FI_AV_MAP};

	memset(f, 0, sizeof(*f));
	fabric_provider_name = name;
	f->info = fabric_info(name, FI_EP_RDM, caps, tx_flags, threading);
	if (!f->info)
		fabric_skip(fabric_info(name, FI_EP_RDM, 0, 0, 0) ? "the provider does not have these capabilities"
								  : "this machine does not have the provider");
	OK(fi_fabric(f->info->fabric_attr, &f->fabric, NULL));
	OK(fi_domain(f->fabric, f->info, &f->domain, NULL));
	OK(fi_av_open(f->domain, &av, &f->av, NULL));
}

static inline void fabric_open(struct fabric *f, const char *name, uint64_t caps)
{
	fabric_open_as(f, name, caps, 0, FI_THREAD_UNSPEC);
}

/* An endpoint, not enabled yet. `tx`, `rx` may be the same; flags: FI_SELECTIVE_COMPLETION, for both. */
static inline void fabric_endpoint_disabled(struct fabric *f, struct fid_cq *tx, struct fid_cq *rx, uint64_t flags)
{
	OK(fi_endpoint(f->domain, f->info, &f->ep, NULL));
	OK(fi_ep_bind(f->ep, &f->av->fid, 0));
	f->tx = tx;
	f->rx = rx;
	if (tx == rx) {
		OK(fi_ep_bind(f->ep, &tx->fid, FI_SEND | FI_RECV | flags));
	} else {
		OK(fi_ep_bind(f->ep, &tx->fid, FI_SEND | flags));
		OK(fi_ep_bind(f->ep, &rx->fid, FI_RECV | flags));
	}
}

/* Progress, of which the others may need some; takes nothing from the queues. */
static inline void fabric_drive(void *data)
{
	const struct fabric *f = data;

	fi_cq_read(f->tx, NULL, 0);
	if (f->rx != f->tx)
		fi_cq_read(f->rx, NULL, 0);
}

/* In a ring all wait for each other here. Without one it is nothing: a message to oneself comes when one sends it. */
#define MEET(f) ring_meet(__LINE__, fabric_drive, (f))

/* As UNTIL(), if nothing is under way: contd does not poll then, but a peer that writes to this process's memory needs
 * polling here. */
#define UNTIL_DRIVEN(f, cond) UNTIL_DOING(cond, (contd_poll(0), fabric_drive(f)))

/* Does it hold in one of the ring's processes? */
#define ANY(f, cond) ring_any((cond) != 0, fabric_drive, (f))

struct fabric_name {
	size_t size;
	char name[256];
};

static inline struct fabric_name fabric_name(struct fabric *f)
{
	struct fabric_name mine = {.size = sizeof(mine.name)};

	OK(fi_getname(&f->ep->fid, mine.name, &mine.size));
	return mine;
}

static inline fi_addr_t fabric_address(struct fabric *f, const struct fabric_name *of)
{
	fi_addr_t address;

	CHECK_RC(fi_av_insert(f->av, of->name, 1, &address, 0, NULL), 1);
	return address;
}

static inline void fabric_enable(struct fabric *f)
{
	struct fabric_name mine, all[RING_MOST];

	OK(fi_enable(f->ep));
	mine = fabric_name(f);
	ring_gather(&mine, sizeof(mine), all, fabric_drive, f);
	f->peer = f->before = fabric_address(f, &all[ring_next()]);
	if (ring_before() != ring_next())
		f->before = fabric_address(f, &all[ring_before()]);
}

static inline void fabric_endpoint(struct fabric *f, struct fid_cq *tx, struct fid_cq *rx, uint64_t flags)
{
	fabric_endpoint_disabled(f, tx, rx, flags);
	fabric_enable(f);
}

/* When all have done what they do with theirs. */
static inline void fabric_close_endpoint(struct fabric *f)
{
	MEET(f);
	OK(fi_close(&f->ep->fid));
	f->ep = NULL;
}

static inline void fabric_close(struct fabric *f)
{
	OK(fi_close(&f->av->fid));
	OK(fi_close(&f->domain->fid));
	OK(fi_close(&f->fabric->fid));
	fi_freeinfo(f->info);
}

/* --------------------------------------------------------------------------------------------------- with contd --- */

static inline struct contd_group *fabric_begin_contd(void)
{
	struct contd_group *group;

	OK(contd_init(NULL));
	OK(contd_group_create(NULL, &group));
	return group;
}

static inline void fabric_end_contd(struct contd_group *group)
{
	CHECK(contd_group_outstanding(group) == 0);
	OK(contd_group_destroy(group));
	OK(contd_fini());
}

/*
 * A queue of contd's for tagged messages, with the endpoint on it. `attr`: what shall be other than it is by default,
 * or NULL; `room`: of the queue, 0 for the provider's default; `flags`: fabric_endpoint().
 */
static inline struct contd_fabric_queue *fabric_queue(struct fabric *f, const struct contd_fabric_attr *attr,
						      size_t room, uint64_t flags)
{
	struct contd_fabric_attr a = attr ? *attr : (struct contd_fabric_attr){0};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = room};
	struct contd_fabric_queue *queue;

	a.size = sizeof(a);
	a.threading = FI_THREAD_SAFE;
	a.fabric = f->fabric;
	OK(contd_fabric_queue_create(f->domain, &cq, &a, &queue));
	fabric_endpoint(f, contd_fabric_queue_cq(queue), contd_fabric_queue_cq(queue), flags);
	return queue;
}

/* With the endpoint, where it is still there. */
static inline void fabric_close_queue(struct fabric *f, struct contd_fabric_queue *queue)
{
	CHECK(contd_fabric_queue_pending(queue) == 0);
	if (f->ep)
		fabric_close_endpoint(f);
	OK(contd_fabric_queue_destroy(queue));
}

/* With its continuation, in memory in which nothing must be taken for a result that was there before. */
static inline struct contd_fabric_op *fabric_begin(struct contd_fabric_queue *queue, struct contd_fabric_op *op,
						   contd_callback *cb, struct contd_group *group)
{
	memset(op, 0x5a, sizeof(*op));
	OK(contd_fabric_begin(queue, op));
	OK(contd_fabric_continue(op, cb, op, group));
	return op;
}

/* Memory for the one before to read and write; *base and *key are those of the peer's, *base what offsets are added
 * to. */
static inline struct fid_mr *fabric_memory(struct fabric *f, void *memory, size_t size, uint64_t access, uint64_t *base,
					   uint64_t *key)
{
	static uint64_t keys = 0x5100;
	struct {
		uint64_t base, key;
	} mine = {0}, all[RING_MOST];
	struct fid_mr *mr;

	OK(fi_mr_reg(f->domain, memory, size, access, 0, keys++, 0, &mr, NULL));
	if (f->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC))
		mine.base = (uint64_t)(uintptr_t)memory;
	mine.key = fi_mr_key(mr);
	ring_gather(&mine, sizeof(mine), all, fabric_drive, f);
	*base = all[ring_next()].base;
	*key = all[ring_next()].key;
	return mr;
}

/* ------------------------------------------------------------------------------------------------ two processes --- */

/* Does `work`; made before libfabric and contd are used. */
static inline struct child fabric_fork(void (*work)(int fd))
{
	struct child c;

	fabric_alone("it starts two processes");
	c = child_fork();
	if (c.pid == 0) {
		fabric_tidy(getpid());
		work(c.fd);
		fflush(NULL);
		_exit(0);
	}
	return c;
}

/* Both sides at once: the other's address. A side that ends instead was skipped. */
static inline fi_addr_t fabric_exchange(struct fabric *f, int fd)
{
	struct fabric_name mine = fabric_name(f), other;

	child_put(fd, &mine, sizeof(mine));
	if (!child_get(fd, &other, sizeof(other)))
		fabric_skip("the other process has ended");
	return fabric_address(f, &other);
}

/* -------------------------------------------------------------------------------------------------------- cases --- */

struct fabric_case {
	const char *name;
	void (*run)(const char *provider);
};

/* program PROVIDER CASE; without arguments the cases are listed. */
static inline int fabric_main(int argc, char **argv, const struct fabric_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (argc < 3) {
			puts(cases[i].name);
		} else if (strcmp(cases[i].name, argv[2]) == 0) {
			fabric_provider_name = argv[1];
			fabric_case_name = argv[2];
			fabric_tidy(getpid()); /* of an earlier process with this number */
			cases[i].run(argv[1]);
			if (!ring.met)
				fabric_alone("nothing is sent");
			return 0;
		}
	if (argc >= 3)
		fprintf(stderr, "%s: there is no case %s\n", argv[0], argv[2]);
	return argc >= 3;
}

#endif
