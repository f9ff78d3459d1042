/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "queue.h"

int kvd_queue_open(struct kvd_net *net, const char *provider, const char *at, bool listen, uint32_t operations,
		   fi_addr_t *peer)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr),
					 .format = FI_CQ_FORMAT_DATA,
					 .threading = FI_THREAD_SAFE,
					 .operations = operations};
	int rc = kvd_net_open(net, provider, at, listen, false, operations, peer);

	if (rc)
		return rc;
	attr.wait = net->sleeps ? FI_WAIT_FD : FI_WAIT_NONE;
	attr.fabric = net->fabric;
	rc = contd_fabric_queue_adopt(net->cq, &attr, &net->queue);
	if (rc) {
		snprintf(net->error, sizeof(net->error), "contd does not read the queue: %s", contd_error_text());
		kvd_net_close(net, NULL);
	}
	return rc;
}

void kvd_queue_close(struct kvd_net *net, struct fid_mr *mr)
{
	if (net->queue)
		contd_fabric_queue_destroy(net->queue);
	net->queue = NULL;
	kvd_net_close(net, mr);
}
