/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI does not say which file descriptors its transport waits for. But those of TCP are sockets of this process like any
 * other, and it may be asked what descriptors it has (proc(5)). The program's own sockets are among them: one that is
 * readable right after MPI was looked at, and again the next times, is not read by MPI, and is left out while it stays
 * so. Shared memory has none: there peers ring (dispatch/page.h), and ticks at their longest find the rest.
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
#define STRIKES 3          /* looks in a row after which a descriptor that is still readable is left out */
#define LIST_AGAIN_NS 1e7  /* connections are made when they are first used */

static struct {
	struct pollfd polled[SOCKETS_MAX];
	uint8_t strikes[SOCKETS_MAX];
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

static uint8_t strikes_of(int fd, const struct pollfd *polled, const uint8_t *strikes, int count)
{
	for (int i = 0; i < count; i++)
		if (polled[i].fd == fd)
			return strikes[i];
	return 0;
}

static void list_sockets(void)
{
	static struct pollfd before[SOCKETS_MAX];
	static uint8_t strikes[SOCKETS_MAX];
	int count = sockets.count;
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		return;
	for (int i = 0; i < count; i++) {
		before[i] = sockets.polled[i];
		strikes[i] = sockets.strikes[i];
	}
	sockets.count = 0;
	while ((entry = readdir(dir)) != NULL && sockets.count < SOCKETS_MAX) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || !is_stream(fd))
			continue;
		sockets.polled[sockets.count] = (struct pollfd){.fd = fd, .events = POLLIN};
		sockets.strikes[sockets.count++] = strikes_of(fd, before, strikes, count);
	}
	closedir(dir);
}

int contd__mpi_sockets(int *fds, int room)
{
	uint64_t now = contd__ticks();
	int n = 0, fresh = 0;

	if (!sockets.listed || now - sockets.listed > (uint64_t)(LIST_AGAIN_NS * contd__dispatch.ticks_per_ns)) {
		list_sockets();
		sockets.listed = now;
	}
	if (sockets.count && poll(sockets.polled, (nfds_t)sockets.count, 0) < 0)
		return 0;
	for (int i = 0; i < sockets.count; i++) {
		if (sockets.polled[i].revents & POLLNVAL) {
			sockets.listed = 0; /* closed meanwhile */
		} else if (sockets.polled[i].revents) {
			fresh |= sockets.strikes[i] < STRIKES;
			sockets.strikes[i] += sockets.strikes[i] < STRIKES;
		} else {
			sockets.strikes[i] = 0;
			if (n < room)
				fds[n++] = sockets.polled[i].fd;
		}
	}
	return fresh ? -EAGAIN : n;
}
