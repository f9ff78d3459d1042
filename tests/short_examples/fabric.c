/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the functions of docs/short-examples.md that use libfabric. Usage: fabric, or fabric PROVIDER */
#define _GNU_SOURCE
#include "../fabric/fabric.h"

int receive(struct contd_fabric_queue *queue, struct fid_ep *endpoint, struct contd_fabric_op *op, void *buffer,
	    size_t size, contd_callback *cb, void *data, struct contd_group *group);
int open_inbox(struct contd_fabric_queue *queue, struct fid_ep *endpoint, void *buffer, size_t size, unsigned *messages,
	       struct contd_group *group);
int share_queue(struct fid_cq *cq, enum fi_cq_format format, unsigned *others, struct contd_fabric_queue **queuep);
int watch_counter(struct fid_cntr *cntr, struct contd_fabric_counter **counterp);
int when_counted(struct contd_fabric_counter *counter, uint64_t value, struct contd_fabric_op *op, contd_callback *cb,
		 void *data, struct contd_group *group);
int close_counter(struct contd_fabric_counter *counter, struct fid_cntr *cntr);
int open_queue(struct fid_fabric *fabric, struct fid_domain *domain, struct contd_fabric_queue **queuep);
int close_queue(struct contd_fabric_queue *queue, struct fid_ep *endpoint);

static struct fabric f;

static void keep_status(int status, void *at)
{
	*(int *)at = status;
}

static void send_text(struct contd_fabric_queue *queue)
{
	struct contd_fabric_op op;
	char text[8] = "message";

	OK(contd_fabric_begin(queue, &op));
	POST(fi_send(f.ep, text, sizeof(text), fabric_desc, f.peer, &op));
	UNTIL(contd_event_is_complete(&op.event));
	CHECK_RC(op.status, 0);
}

static void counts(struct contd_group *group)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct contd_fabric_counter *counter;
	struct contd_fabric_op op;
	struct fid_cntr *cntr;
	int status = 1;

	if (fi_cntr_open(f.domain, &attr, &cntr, NULL)) {
		printf("the provider has no counters\n");
		return;
	}
	OK(watch_counter(cntr, &counter));
	OK(when_counted(counter, 2, &op, keep_status, &status, group));
	OK(fi_cntr_add(cntr, 2));
	WAIT(group);
	CHECK_RC(status, 0);
	OK(close_counter(counter, cntr));
}

/* A second endpoint, whose queue the program has opened. */
static void shares(struct contd_group *group)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE};
	struct contd_fabric_queue *queue;
	struct fi_context2 context;
	struct contd_fabric_op op;
	struct fid_cq *cq;
	unsigned others = 0;
	char buffer[8], text[8] = "message";
	int status = 1;

	OK(fi_cq_open(f.domain, &attr, &cq, NULL));
	OK(share_queue(cq, attr.format, &others, &queue));
	fabric_endpoint(&f, cq, cq, 0);
	OK(receive(queue, f.ep, &op, buffer, sizeof(buffer), keep_status, &status, group));
	POST(fi_send(f.ep, text, sizeof(text), fabric_desc, f.peer, &context));
	UNTIL(others == 1);
	WAIT(group);
	CHECK_RC(status, 0);
	fabric_close_endpoint(&f);
	OK(contd_fabric_queue_destroy(queue));
	OK(fi_close(&cq->fid));
}

int main(int argc, char **argv)
{
	static char buffer[8], many[1 << 20]; /* more than what FI_OPT_MIN_MULTI_RECV is by default */
	struct contd_fabric_queue *queue;
	struct contd_fabric_op op;
	struct contd_group *group;
	unsigned messages = 0;
	int status = 1;

	fabric_open(&f, argc > 1 ? argv[1] : "tcp", FI_MSG | FI_MULTI_RECV);
	group = fabric_begin_contd();
	OK(open_queue(f.fabric, f.domain, &queue));
	fabric_endpoint(&f, contd_fabric_queue_cq(queue), contd_fabric_queue_cq(queue), 0);
	OK(receive(queue, f.ep, &op, buffer, sizeof(buffer), keep_status, &status, group));
	send_text(queue);
	WAIT(group);
	CHECK_RC(status, 0);
	CHECK(strcmp(buffer, "message") == 0);
	counts(group);
	OK(open_inbox(queue, f.ep, many, sizeof(many), &messages, group));
	for (unsigned i = 1; i <= 5; i++) {
		send_text(queue);
		UNTIL(messages == i);
	}
	OK(close_queue(queue, f.ep)); /* the buffer is not full: its last entry comes from here */
	f.ep = NULL;
	WAIT(group);
	CHECK_RC(messages, 5);
	shares(group);
	fabric_end_contd(group);
	fabric_close(&f);
	return 0;
}
