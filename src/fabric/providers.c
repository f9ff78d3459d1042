/* SPDX-License-Identifier: BSD-3-Clause */
/* Which providers there are, and which of them work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>

#include <contd/fabric.h>

#include "fabric/providers.h"

#define VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

uint32_t contd__fabric_version(void)
{
	return fi_version();
}

/* All that it has, whatever it asks of a program. */
static int offers(const char *name, struct fi_info **infop)
{
	struct fi_info *hints = fi_allocinfo();
	int rc = hints ? 0 : -FI_ENOMEM;

	*infop = NULL;
	if (!rc && name) {
		hints->fabric_attr->prov_name = strdup(name);
		rc = hints->fabric_attr->prov_name ? 0 : -FI_ENOMEM;
	}
	if (!rc) {
		hints->mode = ~0ull;
		hints->domain_attr->mode = ~0ull;
		hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE); /* these two go with no others */
		rc = fi_getinfo(VERSION, NULL, NULL, 0, hints, infop);
	}
	if (hints)
		fi_freeinfo(hints);
	return rc;
}

int contd__fabric_providers(void (*tell)(const char *name, void *data), void *data)
{
	struct fi_info *all;
	int rc = offers(NULL, &all);

	for (struct fi_info *info = all; info; info = info->next) {
		struct fi_info *before = all;

		while (before != info && strcmp(before->fabric_attr->prov_name, info->fabric_attr->prov_name) != 0)
			before = before->next;
		if (before == info)
			tell(info->fabric_attr->prov_name, data);
	}
	if (all)
		fi_freeinfo(all);
	return rc;
}

static int refused(struct contd__fabric_trial *trial, const char *call, int rc)
{
	snprintf(trial->why, sizeof(trial->why), "%s: %s", call, fi_strerror(-rc));
	return rc;
}

static int try_queue(struct fid_fabric *fabric, struct fid_domain *domain, const struct fi_info *info,
		     struct contd__fabric_trial *trial)
{
	struct contd_fabric_attr attr = {
		.size = sizeof(attr), .fabric = fabric, .threading = info->domain_attr->threading};
	struct contd_fabric_queue *queue;
	int rc = contd_fabric_queue_create(domain, NULL, &attr, &queue);

	if (rc)
		return refused(trial, "contd_fabric_queue_create", rc);
	trial->descriptor = contd_fabric_queue_wait_object(queue) == FI_WAIT_FD;
	rc = contd_fabric_queue_destroy(queue);
	return rc ? refused(trial, "contd_fabric_queue_destroy", rc) : 0;
}

static int try_offer(struct fi_info *info, struct contd__fabric_trial *trial)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int rc = fi_fabric(info->fabric_attr, &fabric, NULL);

	if (rc)
		return refused(trial, "fi_fabric", rc);
	rc = fi_domain(fabric, info, &domain, NULL);
	if (rc) {
		refused(trial, "fi_domain", rc);
	} else {
		rc = try_queue(fabric, domain, info, trial);
		fi_close(&domain->fid);
	}
	fi_close(&fabric->fid);
	return rc;
}

void contd__fabric_try(const char *name, struct contd__fabric_trial *trial)
{
	struct fi_info *all;
	int rc;

	*trial = (struct contd__fabric_trial){.works = false};
	rc = offers(name, &all);
	if (rc) {
		refused(trial, "fi_getinfo", rc);
		return;
	}
	for (struct fi_info *info = all; info; info = info->next) {
		if (strcmp(info->fabric_attr->prov_name, name) != 0)
			continue; /* "tcp" finds those, too, that are layered on it */
		trial->rdm = trial->rdm || info->ep_attr->type == FI_EP_RDM;
		trial->msg = trial->msg || info->ep_attr->type == FI_EP_MSG;
		trial->dgram = trial->dgram || info->ep_attr->type == FI_EP_DGRAM;
		if (trial->works)
			continue;
		trial->version = info->fabric_attr->prov_version;
		snprintf(trial->domain, sizeof(trial->domain), "%s", info->domain_attr->name);
		trial->works = try_offer(info, trial) == 0;
	}
	if (trial->works)
		trial->why[0] = '\0';
	else if (!trial->why[0])
		refused(trial, "fi_getinfo", -FI_ENODATA);
	fi_freeinfo(all);
}
