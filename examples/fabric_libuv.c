/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_libuv [provider [messages]]: libfabric operations in a loop of libuv; as fabric_epoll.c. */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include <contd/contd.h>

#include "fabric_echo.h"

static void on_readable(uv_poll_t *poll, int status, int events)
{
	if (status || contd_poll(0) < 0 || echo_over())
		uv_close((uv_handle_t *)poll, NULL); /* the loop ends, because it has nothing else */
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	uv_poll_t poll;
	bool no_provider;

	if (!echo_begin(argc > 1 ? argv[1] : "tcp;ofi_rxm", argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000,
			&no_provider))
		return no_provider ? 77 : 1;
	if (!loop || uv_poll_init(loop, &poll, contd_fd()) || uv_poll_start(&poll, UV_READABLE, on_readable)) {
		fprintf(stderr, "uv_poll_start failed\n");
		return 1;
	}
	contd_poll(0); /* what became ready before the loop was there */
	if (!echo_over())
		uv_run(loop, UV_RUN_DEFAULT);
	return echo_end();
}
