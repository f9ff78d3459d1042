/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint for the benchmarks of contd-fabric, with a completion queue that either contd or the benchmark reads.
 * Both are opened alike: tagged format, no wait object unless asked for, manual progress, FI_THREAD_SAFE or better.
 */
#ifndef CONTD_BENCH_FABRIC_SETUP_H
#define CONTD_BENCH_FABRIC_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <contd/fabric.h>

#define FABRIC_NAME 256

struct fabric_end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct contd_fabric_queue *queue; /* NULL: contd does not read it */
	char name[FABRIC_NAME];           /* its own address */
	size_t name_bytes;
};

/* The providers that benchmarks go through. */
extern const char *const fabric_providers[];
extern const unsigned fabric_provider_count;

/*
 * descriptor: contd's queue has one where the provider can do that. false: this machine does not have that provider;
 * anything else that fails ends the program.
 */
bool fabric_open(struct fabric_end *end, const char *provider, bool contd, bool descriptor);

fi_addr_t fabric_insert(struct fabric_end *end, const void *name);

void fabric_close(struct fabric_end *end);

/* Exits with a text if rc < 0. */
void fabric_check(long rc, const char *what);

#endif
