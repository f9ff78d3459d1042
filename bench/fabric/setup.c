/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

const char *const fabric_providers[] = {"shm", "tcp;ofi_rxm"};
const unsigned fabric_provider_count = sizeof(fabric_providers) / sizeof(fabric_providers[0]);

void fabric_check(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, fi_strerror((int)-rc), contd_error_text());
	exit(1);
}

static struct fi_info *info_of(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int rc;

	if (!hints)
		fabric_check(-FI_ENOMEM, "fi_allocinfo");
	hints->fabric_attr->prov_name = strdup(provider);
	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = 0;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	rc = fi_getinfo(FI_VERSION(1, 17), strcmp(provider, "shm") == 0 ? NULL : "127.0.0.1", NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (rc == -FI_ENODATA)
		return NULL;
	fabric_check(rc, "fi_getinfo");
	return info;
}

bool fabric_open(struct fabric_end *end, const char *provider, bool contd, bool descriptor)
{
	struct fi_av_attr av = {.type = FI_AV_MAP};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = descriptor ? FI_WAIT_UNSPEC : FI_WAIT_NONE};
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};

	memset(end, 0, sizeof(*end));
	end->info = info_of(provider);
	if (!end->info)
		return false;
	fabric_check(fi_fabric(end->info->fabric_attr, &end->fabric, NULL), "fi_fabric");
	fabric_check(fi_domain(end->fabric, end->info, &end->domain, NULL), "fi_domain");
	fabric_check(fi_av_open(end->domain, &av, &end->av, NULL), "fi_av_open");
	if (contd) {
		attr.fabric = end->fabric;
		fabric_check(contd_fabric_queue_create(end->domain, &cq, &attr, &end->queue),
			     "contd_fabric_queue_create");
		end->cq = contd_fabric_queue_cq(end->queue);
	} else {
		fabric_check(fi_cq_open(end->domain, &cq, &end->cq, NULL), "fi_cq_open");
	}
	fabric_check(fi_endpoint(end->domain, end->info, &end->ep, NULL), "fi_endpoint");
	fabric_check(fi_ep_bind(end->ep, &end->cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
	fabric_check(fi_ep_bind(end->ep, &end->av->fid, 0), "fi_ep_bind");
	fabric_check(fi_enable(end->ep), "fi_enable");
	end->name_bytes = sizeof(end->name);
	fabric_check(fi_getname(&end->ep->fid, end->name, &end->name_bytes), "fi_getname");
	return true;
}

fi_addr_t fabric_insert(struct fabric_end *end, const void *name)
{
	fi_addr_t address = FI_ADDR_NOTAVAIL;

	if (fi_av_insert(end->av, name, 1, &address, 0, NULL) != 1)
		fabric_check(-FI_EINVAL, "fi_av_insert");
	return address;
}

void fabric_close(struct fabric_end *end)
{
	fi_close(&end->ep->fid);
	if (end->queue)
		fabric_check(contd_fabric_queue_destroy(end->queue), "contd_fabric_queue_destroy");
	else
		fi_close(&end->cq->fid);
	fi_close(&end->av->fid);
	fi_close(&end->domain->fid);
	fi_close(&end->fabric->fid);
	fi_freeinfo(end->info);
}
