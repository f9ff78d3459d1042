/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reliable-datagram endpoint with everything it needs, for kvd, its clients, and servers that are compared with kvd.
 * Nothing here knows of contd: queue.h has it read the queue.
 */
#ifndef KVD_NET_H
#define KVD_NET_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "proto.h"

struct contd_fabric_queue;

#define KVD_PROVIDER "tcp;ofi_rxm"
#define KVD_LISTEN "127.0.0.1:7171"

struct kvd_net {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *endpoint;
	struct fid_cq *cq;
	struct contd_fabric_queue *queue; /* contd, reading it; NULL: the opener reads */
	bool one_sided;                   /* the provider has FI_RMA */
	bool sleeps;                      /* the queue has a descriptor that one can sleep on */
	unsigned char address[KVD_ADDRESS_MAX];
	size_t address_length;
	char error[256];
};

/*
 * at: host:port, the address to listen on (listen) or the server's; *peer is then the server's place in the address
 * vector. polled: one thread makes all calls and never sleeps on the queue, so there are no locks and no descriptor.
 * operations: at most so many are under way. Returns 0, or a negative error number: then net->error says what failed,
 * and nothing is left open.
 */
int kvd_net_open(struct kvd_net *net, const char *provider, const char *at, bool listen, bool polled,
		 uint32_t operations, fi_addr_t *peer);

/* No other thread may be reading the queue. The memory region, which may be NULL, goes with it. */
void kvd_net_close(struct kvd_net *net, struct fid_mr *mr);

/* Text of an address, for people and for --listen (host:port). */
void kvd_net_text(struct kvd_net *net, const void *address, size_t bytes, char *text, size_t size);

/* May this have come from an endpoint of this provider's? Nothing else is given to libfabric. */
bool kvd_net_plausible(const struct kvd_net *net, const void *address, size_t bytes);

/* Of a clock that only goes forward. */
uint64_t kvd_now_ns(void);

#endif
