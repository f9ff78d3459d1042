/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint whose queue contd reads. */
#ifndef KVD_QUEUE_H
#define KVD_QUEUE_H

#include <contd/fabric.h>

#include "net.h"

/* As kvd_net_open(); contd must have been initialized. */
int kvd_queue_open(struct kvd_net *net, const char *provider, const char *at, bool listen, uint32_t operations,
		   fi_addr_t *peer);

/*
 * Operations that are under way complete with -FI_ECANCELED. contd reads the queue no more before the endpoint is
 * closed: providers (tcp;ofi_rxm of libfabric 1.17) do not bear that another thread is reading it then.
 */
void kvd_queue_close(struct kvd_net *net, struct fid_mr *mr);

#endif
