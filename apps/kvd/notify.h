/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVD_NOTIFY_H
#define KVD_NOTIFY_H

/*
 * Tell the service manager, sd_notify(3): a datagram to $NOTIFY_SOCKET, a path or, with '@', an abstract name. Returns
 * 1: told; 0: there is no service manager; else a negative errno value.
 */
int kvd_notify(const char *text);

#endif
