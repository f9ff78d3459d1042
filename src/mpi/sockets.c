/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI does not say which file descriptors its transport waits for. But those of TCP are sockets of this process like
 * any other, and the kernel tells which descriptors it has (proc(5)). The program's own sockets are among them. A
 * socket that is readable although MPI was looked at, and that is not read, is left out for as long as it has been so,
 * and then MPI is looked at again. (Another thread may have been inside MPI, which keeps others from the sockets.)
 * Shared memory has none: there peers ring (dispatch/page.h), and ticks at their longest find the rest.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "mpi/backend.h"
#include "mpi/sockets.h"

#define SOCKETS_MAX 256
#define AGAIN_NS 2e4      /* until the second look for a socket that is readable, and twice as long until the next */
#define LIST_AGAIN_NS 1e7 /* connections are made when they are first used */

static struct {
	struct pollfd polled[SOCKETS_MAX];
	struct unread {
		uint64_t since;  /* since when it has not been read; clock ticks */
		uint64_t due;    /* the next look for it; 0: it was not readable */
		uint64_t so_far; /* bytes that were read from it */
	} unread[SOCKETS_MAX];
	int count;
	uint64_t so_far; /* bytes that were read from all of them, when the daemon last wanted to sleep */
	uint64_t listed; /* when, in clock ticks; 0: never */
} sockets;

static int is_stream(int fd)
{
	int domain, type;
	socklen_t size = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) || (domain != AF_INET && domain != AF_INET6))
		return 0;
	size = sizeof(int);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static struct unread unread_of(int fd, const struct pollfd *polled, const struct unread *unread, int count)
{
	for (int i = 0; i < count; i++)
		if (polled[i].fd == fd)
			return unread[i];
	return (struct unread){0};
}

static void list_sockets(void)
{
	static struct pollfd before[SOCKETS_MAX];
	static struct unread unread[SOCKETS_MAX];
	int count = sockets.count;
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		return;
	for (int i = 0; i < count; i++) {
		before[i] = sockets.polled[i];
		unread[i] = sockets.unread[i];
	}
	sockets.count = 0;
	while ((entry = readdir(dir)) != NULL && sockets.count < SOCKETS_MAX) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || !is_stream(fd))
			continue;
		sockets.polled[sockets.count] = (struct pollfd){.fd = fd, .events = POLLIN};
		sockets.unread[sockets.count++] = unread_of(fd, before, unread, count);
	}
	closedir(dir);
}

/* Bytes that have been read from it since it was connected; 0 where it is not (a listening one). tcp(7) */
static uint64_t bytes_read(int fd)
{
	struct tcp_info info = {0}; /* a kernel that knows fewer of its fields leaves the others */
	socklen_t size = sizeof(info);
	int unread;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) || ioctl(fd, FIONREAD, &unread))
		return 0;
	return info.tcpi_bytes_received - (uint64_t)unread;
}

static uint64_t ticks_of(double ns)
{
	return (uint64_t)(ns * contd__clock.ticks_per_ns);
}

/*
 * A backend that asks may have looked before MPI took something from a socket, which is not readable for that any more
 * (Open MPI's test calls look, then make progress; so does what a callback calls). Has anything been read since the
 * last time?
 */
static int read_unasked(void)
{
	uint64_t sum = 0, before = sockets.so_far;

	for (int i = 0; i < sockets.count; i++)
		sum += bytes_read(sockets.polled[i].fd);
	sockets.so_far = sum;
	return sum != before;
}

/* It is readable: is MPI to be looked at for it now? */
static int due(struct unread *u, int fd, uint64_t now)
{
	uint64_t so_far = bytes_read(fd), again = ticks_of(AGAIN_NS);

	if (!u->due || so_far != u->so_far)
		*u = (struct unread){.since = now, .due = now, .so_far = so_far};
	if (now < u->due)
		return 0;
	u->due = now + (now - u->since > again ? now - u->since : again);
	return 1;
}

int contd__mpi_sockets(int *fds, int room, uint64_t *ns)
{
	uint64_t now = contd__ticks(), wait;
	int n = 0, again;

	if (!sockets.listed || now - sockets.listed > ticks_of(LIST_AGAIN_NS)) {
		list_sockets();
		sockets.listed = now;
	}
	again = contd__mpi->asks && read_unasked();
	if (sockets.count && poll(sockets.polled, (nfds_t)sockets.count, 0) < 0)
		return 0;
	for (int i = 0; i < sockets.count; i++) {
		struct unread *u = &sockets.unread[i];

		if (sockets.polled[i].revents & POLLNVAL) {
			sockets.listed = 0; /* closed meanwhile */
		} else if (sockets.polled[i].revents == 0) {
			u->due = 0;
			if (n < room)
				fds[n++] = sockets.polled[i].fd;
		} else if (due(u, sockets.polled[i].fd, now)) {
			again = 1;
		} else {
			wait = (uint64_t)((double)(u->due - now) / contd__clock.ticks_per_ns);
			*ns = wait < *ns ? wait : *ns;
		}
	}
	return again ? -EAGAIN : n;
}
