/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To be preloaded: the completion queues of the first fabric that is opened fail (-FI_EIO), for good, when so many
 * entries as BREAK_AFTER says have been read from them, as those of a device that has gone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

static struct fi_ops_fabric *fabric_ops, own_fabric_ops;
static struct fi_ops_domain *domain_ops, own_domain_ops;
static struct fi_ops_cq *cq_ops, own_cq_ops;
static long left;

static ssize_t counted(ssize_t n)
{
	if (n > 0)
		__atomic_sub_fetch(&left, n, __ATOMIC_RELAXED);
	return n;
}

static ssize_t read_cq(struct fid_cq *cq, void *buffer, size_t count)
{
	return __atomic_load_n(&left, __ATOMIC_RELAXED) <= 0 ? -FI_EIO : counted(cq_ops->read(cq, buffer, count));
}

static ssize_t read_cq_from(struct fid_cq *cq, void *buffer, size_t count, fi_addr_t *source)
{
	return __atomic_load_n(&left, __ATOMIC_RELAXED) <= 0 ? -FI_EIO
							     : counted(cq_ops->readfrom(cq, buffer, count, source));
}

static int open_cq(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context)
{
	int rc = domain_ops->cq_open(domain, attr, cq, context);

	if (rc)
		return rc;
	cq_ops = (*cq)->ops;
	own_cq_ops = *cq_ops;
	own_cq_ops.read = read_cq;
	own_cq_ops.readfrom = read_cq_from;
	(*cq)->ops = &own_cq_ops;
	return 0;
}

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context)
{
	int rc = fabric_ops->domain(fabric, info, domain, context);

	if (rc)
		return rc;
	domain_ops = (*domain)->ops;
	own_domain_ops = *domain_ops;
	own_domain_ops.cq_open = open_cq;
	(*domain)->ops = &own_domain_ops;
	return 0;
}

/* The function of libfabric's. */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	int (*real)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	static int calls;
	int first = !calls++, rc; /* a provider may be made of others, which it opens in this call */

	*(void **)&real = dlsym(RTLD_NEXT, "fi_fabric");
	rc = real ? real(attr, fabric, context) : -FI_ENOSYS;
	if (rc || !first)
		return rc;
	left = atol(getenv("BREAK_AFTER"));
	fabric_ops = (*fabric)->ops;
	own_fabric_ops = *fabric_ops;
	own_fabric_ops.domain = open_domain;
	(*fabric)->ops = &own_fabric_ops;
	return 0;
}
