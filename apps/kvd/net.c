/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net.h"

static int failed(struct kvd_net *net, const char *what, int rc)
{
	snprintf(net->error, sizeof(net->error), "%s: %s", what, fi_strerror(-rc));
	kvd_net_close(net, NULL);
	return rc;
}

/* host:port, where the host may be an address of IPv6 in brackets. */
static int split(const char *at, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(at, ':');
	size_t length;

	if (!colon || !colon[1] || colon == at)
		return -EINVAL;
	*port = colon + 1;
	if (*at == '[' && colon[-1] == ']') {
		at++;
		colon--;
	}
	length = (size_t)(colon - at);
	if (!length || length >= size)
		return -EINVAL;
	memcpy(host, at, length);
	host[length] = 0;
	return 0;
}

static int find(struct kvd_net *net, const char *provider, const char *host, const char *port, bool listen, bool polled,
		bool one_sided)
{
	struct fi_info *hints = fi_allocinfo();
	int rc;

	if (!hints)
		return -ENOMEM;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->caps = FI_MSG | (one_sided ? FI_RMA : 0);
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2; /* an operation of contd's begins with room for these */
	hints->domain_attr->threading = polled ? FI_THREAD_DOMAIN : FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	rc = fi_getinfo(FI_VERSION(1, 17), host, port, listen ? FI_SOURCE : 0, hints, &net->info);
	fi_freeinfo(hints);
	net->one_sided = one_sided;
	return rc;
}

/*
 * shm names an endpoint after the process's number, and refuses the name (EBUSY) where one who had the number before
 * was killed and has left it behind.
 */
static int name_endpoint(struct kvd_net *net, bool listen)
{
	char name[64];

	if (listen || net->info->addr_format != FI_ADDR_STR)
		return 0;
	snprintf(name, sizeof(name), "fi_shm://kv.%d.%lx", getpid(), kvd_now_ns());
	return fi_setname(&net->endpoint->fid, name, strlen(name) + 1);
}

static int open_endpoint(struct kvd_net *net, uint32_t operations, bool listen, bool polled)
{
	struct fi_av_attr av = {.type = FI_AV_MAP};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .size = operations, .wait_obj = FI_WAIT_FD};
	int rc, fd;

	rc = fi_fabric(net->info->fabric_attr, &net->fabric, NULL);
	rc = rc ? rc : fi_domain(net->fabric, net->info, &net->domain, NULL);
	rc = rc ? rc : fi_av_open(net->domain, &av, &net->av, NULL);
	if (rc)
		return rc;
	rc = polled ? 0 : fi_cq_open(net->domain, &cq, &net->cq, NULL);
	net->sleeps = !polled && !rc && fi_control(&net->cq->fid, FI_GETWAIT, &fd) == 0;
	if (!net->sleeps) { /* shm has no descriptor; udp;ofi_rxd says so only when it is asked for it */
		if (net->cq)
			fi_close(&net->cq->fid);
		net->cq = NULL;
		cq.wait_obj = FI_WAIT_NONE;
		rc = fi_cq_open(net->domain, &cq, &net->cq, NULL);
	}
	rc = rc ? rc : fi_endpoint(net->domain, net->info, &net->endpoint, NULL);
	rc = rc ? rc : name_endpoint(net, listen);
	rc = rc ? rc : fi_ep_bind(net->endpoint, &net->av->fid, 0);
	rc = rc ? rc : fi_ep_bind(net->endpoint, &net->cq->fid, FI_SEND | FI_RECV);
	rc = rc ? rc : fi_enable(net->endpoint);
	if (rc)
		return rc;
	net->address_length = sizeof(net->address);
	return fi_getname(&net->endpoint->fid, net->address, &net->address_length);
}

int kvd_net_open(struct kvd_net *net, const char *provider, const char *at, bool listen, bool polled,
		 uint32_t operations, fi_addr_t *peer)
{
	char host[256];
	const char *port;
	int rc;

	memset(net, 0, sizeof(*net));
	rc = split(at, host, sizeof(host), &port);
	if (rc)
		return failed(net, "an address is host:port", rc);
	rc = find(net, provider, host, port, listen, polled, true);
	if (rc == -FI_ENODATA)
		rc = find(net, provider, host, port, listen, polled, false);
	if (rc)
		return failed(net, provider, rc);
	rc = open_endpoint(net, operations, listen, polled);
	if (rc)
		return failed(net, "the endpoint can't be opened", rc);
	if (!listen && (!net->info->dest_addr || fi_av_insert(net->av, net->info->dest_addr, 1, peer, 0, NULL) != 1))
		return failed(net, "the server's address is of no use", -FI_EADDRNOTAVAIL);
	return 0;
}

void kvd_net_close(struct kvd_net *net, struct fid_mr *mr)
{
	if (net->endpoint)
		fi_close(&net->endpoint->fid);
	if (mr)
		fi_close(&mr->fid);
	if (net->cq)
		fi_close(&net->cq->fid);
	if (net->av)
		fi_close(&net->av->fid);
	if (net->domain)
		fi_close(&net->domain->fid);
	if (net->fabric)
		fi_close(&net->fabric->fid);
	if (net->info)
		fi_freeinfo(net->info);
	net->endpoint = NULL;
	net->cq = NULL;
	net->av = NULL;
	net->domain = NULL;
	net->fabric = NULL;
	net->info = NULL;
}

void kvd_net_text(struct kvd_net *net, const void *address, size_t bytes, char *text, size_t size)
{
	char full[256];
	size_t length = sizeof(full);
	const char *at;

	(void)bytes;
	if (!fi_av_straddr(net->av, address, full, &length))
		full[0] = 0;
	full[sizeof(full) - 1] = 0;
	at = strstr(full, "://");
	snprintf(text, size, "%s", at ? at + 3 : full);
}

bool kvd_net_plausible(const struct kvd_net *net, const void *address, size_t bytes)
{
	sa_family_t own, family;

	if (net->info->addr_format == FI_ADDR_STR) {
		const char *p = address;

		return bytes >= 10 && p[bytes - 1] == 0 && strlen(p) == bytes - 1 &&
		       (strncmp(p, "fi_shm://", 9) == 0 || strncmp(p, "fi_ns://", 8) == 0) && !strchr(p + 9, '/');
	}
	if (bytes != net->address_length)
		return false;
	memcpy(&own, net->address, sizeof(own));
	memcpy(&family, address, sizeof(family));
	if (own != family)
		return false;
	if (family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, address, sizeof(in) < bytes ? sizeof(in) : bytes);
		return in.sin_port != 0 && in.sin_addr.s_addr != htonl(INADDR_ANY) &&
		       in.sin_addr.s_addr != htonl(INADDR_BROADCAST) && !IN_MULTICAST(ntohl(in.sin_addr.s_addr));
	}
	return true;
}

uint64_t kvd_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
