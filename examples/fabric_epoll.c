/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_epoll [provider [messages]]: libfabric operations in an event loop of epoll(7), with no thread of the
 * program's that waits for them, and no polling: the loop sleeps without a limit until contd_fd() says that a
 * continuation is ready.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <contd/contd.h>

#include "fabric_echo.h"

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN};
	int loop = epoll_create1(EPOLL_CLOEXEC);
	bool no_provider;

	if (!echo_begin(argc > 1 ? argv[1] : "tcp;ofi_rxm", argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000,
			&no_provider))
		return no_provider ? 77 : 1;
	event.data.fd = contd_fd();
	if (loop < 0 || event.data.fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event)) {
		perror("epoll");
		return 1;
	}
	contd_poll(0); /* what became ready before the loop was there */
	while (!echo_over()) {
		/* Other descriptors of the program's would be here as well. */
		int n = epoll_wait(loop, &event, 1, -1);

		if (n < 0 && errno != EINTR) {
			perror("epoll_wait");
			return 1;
		}
		if (n == 1 && contd_poll(0) < 0) {
			fprintf(stderr, "%s\n", contd_error_text());
			return 1;
		}
	}
	close(loop);
	return echo_end();
}
