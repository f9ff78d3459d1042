/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include <contd/fabric.h>

#include "fabric_echo.h"

#define SERVICE_WINDOW 16 /* receives that the service has posted */
#define CLIENT_WINDOW 8   /* messages of the client's under way; fewer, so that each finds a receive */

/* A message: the place for the answer, as the other side knows it, and the contents. */
struct message {
	fi_addr_t from;
	uint32_t number;
};

/* A message under way: received and sent back by the service, or sent and awaited by the client. */
struct exchange {
	struct contd_fabric_op receive, send;
	struct message in, out;
	unsigned left; /* of the client's: receive and send that are under way */
};

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct contd_fabric_queue *queue;
	struct fid_ep *service, *client;
	fi_addr_t service_address, client_address;
	struct contd_group *group; /* plain: callbacks run in contd_poll() only, so in the loop */
	struct exchange at_service[SERVICE_WINDOW], at_client[CLIENT_WINDOW];
	uint32_t messages, sent, back;
	unsigned char *seen; /* has that one come back */
	bool failed, ending;
} echo;

static bool fail(const char *what, long rc)
{
	fprintf(stderr, "%s: %s %s\n", what, fi_strerror((int)-rc), contd_error_text());
	echo.failed = true;
	return false;
}

/* ------------------------------------------------------------------------------------------------------ posting --- */

/* One operation with its continuation. The provider may want a moment before it takes more: contd_poll() looks after
 * it. */
static void post(struct fid_ep *endpoint, struct contd_fabric_op *op, struct message *message, fi_addr_t to, bool send,
		 contd_callback *done, struct exchange *exchange)
{
	ssize_t rc;

	if (echo.ending)
		return;
	rc = contd_fabric_begin_continue(echo.queue, op, done, exchange, echo.group);
	if (rc) {
		fail("no operation", rc);
		return;
	}
	do {
		rc = send ? fi_send(endpoint, message, sizeof(*message), NULL, to, op)
			  : fi_recv(endpoint, message, sizeof(*message), NULL, to, op);
	} while (rc == -FI_EAGAIN && contd_poll(0) >= 0);
	if (rc) {
		contd_fabric_withdraw(op, (int)rc);
		fail(send ? "fi_send" : "fi_recv", rc);
	}
}

/* At the end the receives that are left are cancelled. */
static bool went_wrong(int status, const struct contd_fabric_op *op)
{
	if (status && !echo.ending)
		fprintf(stderr, "%s\n", op->text);
	echo.failed |= status && !echo.ending;
	return status != 0;
}

/* -------------------------------------------------------------------------------------------------- the service --- */

static void service_received(int status, void *data);

static void service_sent(int status, void *data)
{
	struct exchange *e = data;

	if (!went_wrong(status, &e->send))
		post(echo.service, &e->receive, &e->in, FI_ADDR_UNSPEC, false, service_received, e);
}

static void service_received(int status, void *data)
{
	struct exchange *e = data;

	if (went_wrong(status, &e->receive))
		return;
	e->out = e->in;
	post(echo.service, &e->send, &e->out, e->in.from, true, service_sent, e);
}

/* --------------------------------------------------------------------------------------------------- the client --- */

static void client_received(int status, void *data);
static void client_sent(int status, void *data);

static void client_ask(struct exchange *e)
{
	if (echo.sent == echo.messages)
		return;
	e->left = 2;
	e->out = (struct message){echo.client_address, echo.sent++};
	post(echo.client, &e->receive, &e->in, FI_ADDR_UNSPEC, false, client_received, e);
	post(echo.client, &e->send, &e->out, echo.service_address, true, client_sent, e);
}

static void client_sent(int status, void *data)
{
	struct exchange *e = data;

	if (!went_wrong(status, &e->send) && --e->left == 0)
		client_ask(e);
}

/* Which of the answers it is, is not said: they complete in any order, and so do their continuations run. */
static void client_received(int status, void *data)
{
	struct exchange *e = data;

	if (went_wrong(status, &e->receive))
		return;
	if (e->receive.length != sizeof(e->in) || e->in.number >= echo.messages || echo.seen[e->in.number]++) {
		fail("not what was sent", -FI_EIO);
		return;
	}
	echo.back++;
	if (--e->left == 0)
		client_ask(e);
}

/* -------------------------------------------------------------------------------------------- beginning and end --- */

static struct fid_ep *open_endpoint(fi_addr_t *address)
{
	struct fid_ep *endpoint = NULL;
	char name[256];
	size_t length = sizeof(name);
	int rc = fi_endpoint(echo.domain, echo.info, &endpoint, NULL);

	if (!rc)
		rc = fi_ep_bind(endpoint, &echo.cq->fid, FI_SEND | FI_RECV);
	if (!rc)
		rc = fi_ep_bind(endpoint, &echo.av->fid, 0);
	if (!rc)
		rc = fi_enable(endpoint);
	if (!rc)
		rc = fi_getname(&endpoint->fid, name, &length);
	if (!rc && fi_av_insert(echo.av, name, 1, address, 0, NULL) != 1)
		rc = -FI_EADDRNOTAVAIL;
	if (rc)
		fail("no endpoint", rc);
	return rc ? NULL : endpoint;
}

static int open_fabric(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = {.type = FI_AV_MAP};
	bool memory = strcmp(provider, "shm") == 0;
	int rc;

	if (!hints)
		return -FI_ENOMEM;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2; /* struct contd_fabric_op begins with room for that */
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	rc = fi_getinfo(FI_VERSION(1, 17), memory ? NULL : "127.0.0.1", NULL, 0, hints, &echo.info);
	fi_freeinfo(hints);
	if (!rc)
		rc = fi_fabric(echo.info->fabric_attr, &echo.fabric, NULL);
	if (!rc)
		rc = fi_domain(echo.fabric, echo.info, &echo.domain, NULL);
	if (!rc)
		rc = fi_av_open(echo.domain, &av, &echo.av, NULL);
	return rc;
}

/* With a descriptor, on which contd's daemon can sleep, where the provider has that; else it looks in turns. */
static int open_queue(void)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE, .fabric = echo.fabric};
	int rc;

	attr.format = cq.format;
	for (;;) {
		attr.wait = cq.wait_obj;
		rc = fi_cq_open(echo.domain, &cq, &echo.cq, NULL);
		/* Some providers open such a queue, and then have no descriptor. */
		if (!rc && (rc = contd_fabric_queue_adopt(echo.cq, &attr, &echo.queue)) != 0)
			fi_close(&echo.cq->fid);
		if (!rc || cq.wait_obj == FI_WAIT_NONE)
			return rc;
		cq.wait_obj = FI_WAIT_NONE;
	}
}

bool echo_begin(const char *provider, uint32_t messages, bool *no_provider)
{
	/* While the loop sleeps contd's daemon looks after the queue, and makes contd_fd() readable. */
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_BLOCK};
	int rc = open_fabric(provider);

	*no_provider = rc == -FI_ENODATA;
	if (rc)
		return fail(provider, rc);
	echo.messages = messages;
	echo.seen = calloc(messages, 1);
	rc = echo.seen ? contd_init(&config) : -FI_ENOMEM;
	if (!rc)
		rc = contd_group_create(NULL, &echo.group);
	if (!rc)
		rc = open_queue();
	if (rc)
		return fail("contd", rc);
	echo.service = open_endpoint(&echo.service_address);
	echo.client = open_endpoint(&echo.client_address);
	for (unsigned i = 0; i < SERVICE_WINDOW && !echo.failed; i++)
		post(echo.service, &echo.at_service[i].receive, &echo.at_service[i].in, FI_ADDR_UNSPEC, false,
		     service_received, &echo.at_service[i]);
	for (unsigned i = 0; i < CLIENT_WINDOW && !echo.failed; i++)
		client_ask(&echo.at_client[i]);
	return !echo.failed;
}

bool echo_over(void)
{
	return echo.failed || echo.back == echo.messages;
}

int echo_end(void)
{
	int rc;

	echo.ending = true;
	/* First contd reads the queue no more: not every provider bears that while an endpoint is closed. */
	contd_fabric_queue_destroy(echo.queue);
	fi_close(&echo.service->fid);
	fi_close(&echo.client->fid);
	fi_close(&echo.cq->fid);
	/* The receives that were left have completed with -FI_ECANCELED. */
	rc = contd_group_wait(echo.group, -1);
	contd_group_destroy(echo.group);
	contd_fini();
	fi_close(&echo.av->fid);
	fi_close(&echo.domain->fid);
	fi_close(&echo.fabric->fid);
	fi_freeinfo(echo.info);
	free(echo.seen);
	printf("%u of %u messages came back\n", (unsigned)echo.back, (unsigned)echo.messages);
	return rc || echo.failed || echo.back != echo.messages;
}
