/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The code of docs/fabric.md, unchanged (fabric-md.inc is that), with agent `block`: the queue that it opens has a
 * descriptor if the provider has one, says so, and the daemon is woken by each message. Usage: snippet PROVIDER
 */
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include <contd/fabric.h>

#define ROUNDS 41
#define NAP_NS 500000000 /* the tests set ticks of that length: what takes less than a quarter of it was woken */

static const char *provider;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *endpoint;
static struct fi_info *info;
static struct fid_av *av;
static char buffer[8];
static const size_t size = sizeof(buffer);
static sem_t came;

#define CHECK(condition) check(condition, #condition, __LINE__)
static void check(bool good, const char *what, int line)
{
	if (good)
		return;
	fprintf(stderr, "snippet.c:%d: %s: %s (%s)\n", line, provider, what, contd_error_text());
	exit(1);
}

static void on_message(int status, void *data)
{
	CHECK(status == 0 && data);
	sem_post(&came);
}

static void open_fabric(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr attr = {.type = FI_AV_MAP};
	int rc;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	rc = fi_getinfo(FI_VERSION(1, 11), strcmp(provider, "shm") ? "127.0.0.1" : NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (rc == -FI_ENODATA) {
		printf("skipped: this machine's libfabric has no provider %s\n", provider);
		exit(77);
	}
	CHECK(rc == 0);
	CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
	CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
	CHECK(fi_av_open(domain, &attr, &av, NULL) == 0);
	CHECK(fi_endpoint(domain, info, &endpoint, NULL) == 0);
	CHECK(fi_ep_bind(endpoint, &av->fid, 0) == 0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Only the daemon polls. */
static void await_message(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	while (sem_timedwait(&came, &until))
		CHECK(errno == EINTR);
}

static void round_trips(struct contd_fabric_queue *queue, fi_addr_t self)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_THREAD_ANY, .max_poll = -1};
	struct contd_fabric_op sent, received;
	struct contd_group *group;
	double ns[ROUNDS], begun;
	char out[8] = "message";
	ssize_t rc;

	CHECK(contd_group_create(&attr, &group) == 0);
	CHECK(contd_daemon_start(NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct timespec pause = {0, 2000000};

		memset(buffer, 0, sizeof(buffer));
		CHECK(contd_fabric_begin_continue(queue, &received, on_message, &received, group) == 0);
		CHECK(contd_fabric_begin_continue(queue, &sent, on_message, &sent, group) == 0);
		while ((rc = fi_recv(endpoint, buffer, size, NULL, FI_ADDR_UNSPEC, &received)) == -FI_EAGAIN)
			contd_poll(0);
		CHECK(rc == 0);
		nanosleep(&pause, NULL); /* it sleeps by now */
		begun = now_ns();
		while ((rc = fi_send(endpoint, out, sizeof(out), NULL, self, &sent)) == -FI_EAGAIN)
			contd_poll(0);
		CHECK(rc == 0);
		await_message();
		await_message();
		ns[i] = now_ns() - begun;
		CHECK(strcmp(buffer, out) == 0);
		CHECK(contd_group_wait(group, -1) == 0);
	}
	qsort(ns, ROUNDS, sizeof(ns[0]), compare);
	printf("%s: wait object %s, a round trip in %.0f us (median; a quarter of them in less than %.0f us)\n",
	       provider, contd_fabric_queue_wait_object(queue) == FI_WAIT_FD ? "FI_WAIT_FD" : "FI_WAIT_NONE",
	       ns[ROUNDS / 2] / 1000, ns[ROUNDS / 4] / 1000);
	if (contd_fabric_queue_wait_object(queue) == FI_WAIT_FD)
		CHECK(ns[ROUNDS / 4] < NAP_NS / 4.0);
	CHECK(contd_daemon_stop() == 0);
	CHECK(contd_group_destroy(group) == 0);
}

int main(int argc, char **argv)
{
	char name[256];
	size_t length = sizeof(name);
	fi_addr_t self;
	ssize_t rc;

	if (argc != 2)
		return 2;
	/* A semicolon is a nuisance to CMake. */
	provider = strcmp(argv[1], "rxm") == 0 ? "tcp;ofi_rxm" : argv[1];
	sem_init(&came, 0, 0);
	open_fabric();

#include "fabric-md.inc"

	CHECK(rc == 0);
	/* shm has no descriptor: the caller can see that, and why. */
	CHECK(contd_fabric_queue_wait_object(queue) == (strcmp(provider, "shm") ? FI_WAIT_FD : FI_WAIT_NONE));
	CHECK(contd_fabric_queue_wait_object(NULL) == FI_WAIT_NONE);
	if (contd_fabric_queue_wait_object(queue) == FI_WAIT_NONE)
		CHECK(strstr(contd_error_text(), "contd_fabric"));
	CHECK(fi_getname(&endpoint->fid, name, &length) == 0);
	CHECK(fi_av_insert(av, name, 1, &self, 0, NULL) == 1);
	/* The page's receive gets the first message. */
	while ((rc = fi_inject(endpoint, "message", 8, self)) == -FI_EAGAIN)
		contd_poll(0);
	CHECK(rc == 0);
	CHECK(contd_group_wait(group, 60000000000) == 0);
	await_message();
	CHECK(strcmp(buffer, "message") == 0);
	round_trips(queue, self);
	CHECK(contd_fabric_queue_stop(queue) == 0);
	CHECK(fi_close(&endpoint->fid) == 0);
	CHECK(contd_fabric_queue_destroy(queue) == 0);
	CHECK(contd_group_destroy(group) == 0);
	contd_fini();
	fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	return 0;
}
