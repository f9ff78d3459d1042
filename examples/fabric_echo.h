/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An echo service on a libfabric endpoint and its client, for fabric_epoll.c and fabric_libuv.c. Everything happens in
 * continuations; the owner of the event loop calls contd_poll() when contd_fd() is readable, until echo_over().
 */
#ifndef FABRIC_ECHO_H
#define FABRIC_ECHO_H

#include <stdbool.h>
#include <stdint.h>

/* Start contd, service and client: so many messages are to come back. false: it says why on stderr, with
 * *no_provider. */
bool echo_begin(const char *provider, uint32_t messages, bool *no_provider);

/* All have come back, or something went wrong. */
bool echo_over(void);

/* 0: all have come back as they were sent. */
int echo_end(void);

#endif
