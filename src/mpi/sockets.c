/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI does not say which file descriptors its transport waits for. But those of TCP are sockets of this process like any
 * other, and it may be asked what descriptors it has (proc(5)). The program's own sockets are among them: while one
 * stays readable although MPI was looked at, the daemon looks in turns, as often as its budget allows, and after a second
 * such a socket is taken for the program's and left out until it changes. Shared memory has none: there peers ring
 * (dispatch/page.h), and ticks at their longest find the rest.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "dispatch/dispatcher.h"
#include "mpi/sockets.h"

#define SOCKETS_MAX 256
#define LOOKS 3            /* that are made at once for a descriptor that is readable; then in turns */
#define STUCK_NS 1e9       /* after which one that is still readable is left out */
#define LIST_AGAIN_NS 1e7  /* connections are made when they are first used */

static struct {
	struct pollfd polled[SOCKETS_MAX];
	struct stuck {
		uint8_t looks;
		uint64_t since; /* clock ticks */
	} stuck[SOCKETS_MAX];
	int count;
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

static struct stuck stuck_of(int fd, const struct pollfd *polled, const struct stuck *stuck, int count)
{
	for (int i = 0; i < count; i++)
		if (polled[i].fd == fd)
			return stuck[i];
	return (struct stuck){0};
}

static void list_sockets(void)
{
	static struct pollfd before[SOCKETS_MAX];
	static struct stuck stuck[SOCKETS_MAX];
	int count = sockets.count;
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		return;
	for (int i = 0; i < count; i++) {
		before[i] = sockets.polled[i];
		stuck[i] = sockets.stuck[i];
	}
	sockets.count = 0;
	while ((entry = readdir(dir)) != NULL && sockets.count < SOCKETS_MAX) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || !is_stream(fd))
			continue;
		sockets.polled[sockets.count] = (struct pollfd){.fd = fd, .events = POLLIN};
		sockets.stuck[sockets.count++] = stuck_of(fd, before, stuck, count);
	}
	closedir(dir);
}

int contd__mpi_sockets(int *fds, int room)
{
	uint64_t now = contd__ticks();
	int n = 0, again = 0, turns = 0;

	if (!sockets.listed || now - sockets.listed > (uint64_t)(LIST_AGAIN_NS * contd__dispatch.ticks_per_ns)) {
		list_sockets();
		sockets.listed = now;
	}
	if (sockets.count && poll(sockets.polled, (nfds_t)sockets.count, 0) < 0)
		return 0;
	for (int i = 0; i < sockets.count; i++) {
		struct stuck *stuck = &sockets.stuck[i];

		if (sockets.polled[i].revents & POLLNVAL) {
			sockets.listed = 0; /* closed meanwhile */
		} else if (sockets.polled[i].revents == 0) {
			stuck->looks = 0;
			if (n < room)
				fds[n++] = sockets.polled[i].fd;
		} else if (stuck->looks < LOOKS) {
			stuck->since = stuck->looks++ ? stuck->since : now;
			again = 1;
		} else if (now - stuck->since < (uint64_t)(STUCK_NS * contd__dispatch.ticks_per_ns)) {
			turns = 1;
		}
	}
	return again ? -EAGAIN : turns ? 0 : n;
}
