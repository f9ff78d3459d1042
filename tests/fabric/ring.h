/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One program as several processes, each on another host, in a ring: what a test sends to itself it sends to the next
 * one then, and it receives from the one before. All do the same, so what a test expects of itself it may expect of
 * them, where they keep step: ring_gather() waits for all.
 *
 * CONTD_TEST_RING=RANK:ADDRESS,ADDRESS,...:PORT, set by tests/lab/fabric; without it the ring is one process. The first
 * process listens at PORT of its address, the others connect to it; nothing of libfabric's goes that way.
 *
 * The file that includes this has CHECK(condition), which ends the process. A process that finds that another one has
 * ended, for a reason that that one told, ends with RING_LEFT.
 */
#ifndef CONTD_TESTS_RING_H
#define CONTD_TESTS_RING_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RING_MOST 8
#define RING_LEFT 78
#define RING_SECONDS 50       /* a case's limit, once all are there */
#define RING_WAIT_SECONDS 110 /* for the others, which may hang in an earlier case */

static struct {
	bool begun, met;                          /* has something been waited for together? */
	int rank, size;                           /* 0 of 1 without a ring */
	char address[RING_MOST][INET_ADDRSTRLEN]; /* of each one's host */
	int fd[RING_MOST];                        /* of the first: to each; of the others: [0] */
} ring;

static inline void ring_nodelay(int fd)
{
	CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
}

static inline void ring_sleep(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* To the first process, when it listens. */
static inline int ring_connect(const struct sockaddr_in *to)
{
	for (int i = 0; i < RING_WAIT_SECONDS * 200; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		CHECK(fd >= 0);
		if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0)
			return fd;
		close(fd);
		ring_sleep();
	}
	fprintf(stderr, "the ring's first process does not listen\n");
	_exit(RING_LEFT);
}

/* All the others'. */
static inline void ring_accept(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), waits = RING_WAIT_SECONDS * 200;

	CHECK(fd >= 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0);
	CHECK(bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0);
	CHECK(listen(fd, RING_MOST) == 0);
	for (int left = ring.size - 1; left;) {
		int32_t rank = 0;
		int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (one < 0) {
			CHECK(errno == EAGAIN);
			if (!waits--) {
				fprintf(stderr, "%d of the ring's processes have not come\n", left);
				_exit(RING_LEFT);
			}
			ring_sleep();
			continue;
		}
		CHECK(recv(one, &rank, sizeof(rank), MSG_WAITALL) == sizeof(rank));
		CHECK(rank > 0 && rank < ring.size && !ring.fd[rank]);
		ring.fd[rank] = one;
		left--;
	}
	close(fd);
}

static inline void ring_begin(void)
{
	const char *told = getenv("CONTD_TEST_RING");
	struct sockaddr_in first = {.sin_family = AF_INET};
	sigset_t all, before;
	char addresses[RING_MOST * INET_ADDRSTRLEN], *next;
	unsigned port;

	if (ring.begun)
		return;
	ring.begun = true;
	ring.size = 1;
	if (!told)
		return;
	CHECK(sscanf(told, "%d:%127[0-9.,]:%u", &ring.rank, addresses, &port) == 3 && port < 65536);
	ring.size = 0;
	for (char *at = strtok_r(addresses, ",", &next); at; at = strtok_r(NULL, ",", &next)) {
		CHECK(ring.size < RING_MOST && strlen(at) < INET_ADDRSTRLEN);
		strcpy(ring.address[ring.size++], at);
	}
	CHECK(ring.rank >= 0 && ring.rank < ring.size);
	CHECK(inet_pton(AF_INET, ring.address[0], &first.sin_addr) == 1);
	first.sin_port = htons((uint16_t)port);
	sigfillset(&all);
	CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0); /* a storm of them may be what is tested */
	if (ring.rank == 0) {
		ring_accept(&first);
	} else {
		ring.fd[0] = ring_connect(&first);
		CHECK(send(ring.fd[0], &(int32_t){ring.rank}, sizeof(int32_t), MSG_NOSIGNAL) == sizeof(int32_t));
	}
	for (int i = 0; i < ring.size; i++)
		if (ring.fd[i])
			ring_nodelay(ring.fd[i]);
	CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	alarm(RING_SECONDS); /* whom another one has left waits for ever */
}

/* Is there another process? */
static inline bool ring_is(void)
{
	ring_begin();
	return ring.size > 1;
}

/* This process's host, or NULL without a ring. */
static inline const char *ring_address(void)
{
	return ring_is() ? ring.address[ring.rank] : NULL;
}

static inline int ring_next(void)
{
	return (ring.rank + 1) % ring.size;
}

static inline int ring_before(void)
{
	return (ring.rank + ring.size - 1) % ring.size;
}

__attribute__((noreturn)) static inline void ring_left(void)
{
	fprintf(stderr, "process %d of the ring: another one has ended\n", ring.rank);
	_exit(RING_LEFT);
}

static inline void ring_put(int fd, const void *what, size_t size)
{
	ssize_t n;

	do
		n = send(fd, what, size, MSG_NOSIGNAL); /* a few bytes: it does not wait */
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)size)
		ring_left();
}

/* Calls drive(data), which may be NULL, all the time. */
static inline void ring_get(int fd, void *what, size_t size, void (*drive)(void *data), void *data)
{
	char *at = what;

	while (size) {
		ssize_t n = recv(fd, at, size, MSG_DONTWAIT);

		if (n > 0) {
			at += n;
			size -= (size_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			ring_left();
		if (drive)
			drive(data);
		sched_yield();
	}
}

/* Gather every process's `mine` in all[0] to all[ring.size - 1]; returns when all have called it. */
static inline void ring_gather(const void *mine, size_t size, void *all, void (*drive)(void *data), void *data)
{
	char *of = all;

	ring_begin();
	ring.met = true;
	memcpy(of + (size_t)ring.rank * size, mine, size);
	if (ring.size == 1)
		return;
	if (ring.rank) {
		ring_put(ring.fd[0], mine, size);
		ring_get(ring.fd[0], all, size * (size_t)ring.size, drive, data);
		return;
	}
	for (int i = 1; i < ring.size; i++)
		ring_get(ring.fd[i], of + (size_t)i * size, size, drive, data);
	for (int i = 1; i < ring.size; i++)
		ring_put(ring.fd[i], all, size * (size_t)ring.size);
}

/* Does it hold for any of them? All ask the same. */
static inline bool ring_any(bool here, void (*drive)(void *data), void *data)
{
	bool all[RING_MOST], any = false;

	ring_gather(&here, sizeof(here), all, drive, data);
	for (int i = 0; i < ring.size; i++)
		any |= all[i];
	return any;
}

/* All are here, at the same line. */
static inline void ring_meet(int line, void (*drive)(void *data), void *data)
{
	int lines[RING_MOST];

	ring_gather(&line, sizeof(line), lines, drive, data);
	for (int i = 0; i < ring.size; i++)
		if (lines[i] != line) {
			fprintf(stderr, "process %d of the ring is at line %d, %d at line %d\n", ring.rank, line, i,
				lines[i]);
			_exit(1);
		}
}

#endif
