/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of each format, adopted and opened, and what an operation's result says. Usage: formats PROVIDER CASE. */
#include "fabric.h"

#define SIZE 48u
#define TAG 0x7001ull
#define DATA 0x1234ull

static int ran;

static void count(int status, void *data)
{
	struct contd_fabric_op *op = data;

	CHECK(status == op->status);
	ran++;
}

static bool has(enum fi_cq_format format, enum fi_cq_format at_least)
{
	return format >= at_least;
}

static void check_good(const struct contd_fabric_op *op)
{
	CHECK_RC(op->status, 0);
	CHECK(op->provider_error == 0 && op->truncated == 0);
	CHECK(op->text && !*op->text);
	CHECK(contd_event_is_complete(&op->event));
}

enum how { OPEN, ADOPT };

/* Tagged messages, with and without remote data, and an untagged one. */
static void one(const char *provider, enum fi_cq_format format, enum how how, bool from)
{
	static char in[2][SIZE * 2], out[SIZE];
	struct contd_fabric_attr attr = {.size = sizeof(attr), .format = format, .threading = FI_THREAD_SAFE};
	struct fi_cq_attr cq_attr = {.format = format, .wait_obj = FI_WAIT_NONE};
	struct contd_fabric_op recv[2], send[2];
	struct contd_fabric_queue *queue;
	struct contd_group *group;
	struct fid_cq *cq;
	struct fabric f;

	fabric_open(&f, provider, FI_MSG | FI_TAGGED | (from ? FI_SOURCE : 0));
	group = fabric_begin_contd();
	attr.flags = from ? CONTD_FABRIC_SOURCE : 0;
	if (how == OPEN) {
		attr.format = FI_CQ_FORMAT_UNSPEC; /* the queue's counts */
		OK(contd_fabric_queue_create(f.domain, &cq_attr, &attr, &queue));
		cq = contd_fabric_queue_cq(queue);
	} else {
		OK(fi_cq_open(f.domain, &cq_attr, &cq, NULL));
		OK(contd_fabric_queue_adopt(cq, &attr, &queue));
		CHECK(contd_fabric_queue_cq(queue) == cq);
	}
	fabric_endpoint(&f, cq, cq, 0);
	CHECK(contd_fabric_queue_pending(queue) == 0);

	memset(out, 'x', sizeof(out));
	fabric_begin(queue, &recv[0], count, group);
	POST(fi_trecv(f.ep, in[0], sizeof(in[0]), fabric_desc, FI_ADDR_UNSPEC, TAG, 0, &recv[0]));
	fabric_begin(queue, &recv[1], count, group);
	POST(fi_recv(f.ep, in[1], sizeof(in[1]), fabric_desc, FI_ADDR_UNSPEC, &recv[1]));
	CHECK(contd_fabric_queue_pending(queue) == 2);
	MEET(&f);
	fabric_begin(queue, &send[0], count, group);
	POST(fi_tsend(f.ep, out, sizeof(out), fabric_desc, f.peer, TAG, &send[0]));
	fabric_begin(queue, &send[1], count, group);
	POST(fi_senddata(f.ep, out, sizeof(out) / 2, fabric_desc, DATA, f.peer, &send[1]));
	WAIT(group);
	CHECK(ran == 4);
	CHECK(contd_fabric_queue_pending(queue) == 0);
	for (int i = 0; i < 2; i++) {
		check_good(&recv[i]);
		check_good(&send[i]);
		CHECK(memcmp(in[i], out, i ? SIZE / 2 : SIZE) == 0);
		CHECK(recv[i].source == (from ? f.before : FI_ADDR_NOTAVAIL));
		if (!has(format, FI_CQ_FORMAT_MSG)) {
			CHECK(!recv[i].flags && !send[i].flags && !recv[i].length && !send[i].length);
			continue;
		}
		CHECK((recv[i].flags & (FI_RECV | FI_SEND)) == FI_RECV);
		CHECK((send[i].flags & (FI_RECV | FI_SEND)) == FI_SEND);
		CHECK(((recv[i].flags & FI_TAGGED) != 0) == !i);
		CHECK(((send[i].flags & FI_TAGGED) != 0) == !i);
		CHECK(recv[i].length == (i ? SIZE / 2 : SIZE));
		CHECK(!has(format, FI_CQ_FORMAT_DATA) == !(recv[1].data == DATA));
		CHECK(((recv[i].flags & FI_REMOTE_CQ_DATA) != 0) == i);
		CHECK(recv[0].tag == (has(format, FI_CQ_FORMAT_TAGGED) ? TAG : 0));
	}
	fabric_close_endpoint(&f);
	OK(contd_fabric_queue_destroy(queue));
	if (how == ADOPT) {
		struct fi_cq_tagged_entry none;

		CHECK_RC(fi_cq_read(cq, &none, 1), -FI_EAGAIN); /* the caller's again */
		OK(fi_close(&cq->fid));
	}
	fabric_end_contd(group);
	fabric_close(&f);
}

static void format_context(const char *provider)
{
	one(provider, FI_CQ_FORMAT_CONTEXT, OPEN, false);
}

static void format_msg(const char *provider)
{
	one(provider, FI_CQ_FORMAT_MSG, OPEN, false);
}

static void format_data(const char *provider)
{
	one(provider, FI_CQ_FORMAT_DATA, OPEN, false);
}

static void format_tagged(const char *provider)
{
	one(provider, FI_CQ_FORMAT_TAGGED, OPEN, false);
}

static void adopted_context(const char *provider)
{
	one(provider, FI_CQ_FORMAT_CONTEXT, ADOPT, false);
}

static void adopted_msg(const char *provider)
{
	one(provider, FI_CQ_FORMAT_MSG, ADOPT, false);
}

static void adopted_data(const char *provider)
{
	one(provider, FI_CQ_FORMAT_DATA, ADOPT, false);
}

static void adopted_tagged(const char *provider)
{
	one(provider, FI_CQ_FORMAT_TAGGED, ADOPT, false);
}

static void source(const char *provider)
{
	one(provider, FI_CQ_FORMAT_TAGGED, OPEN, true);
}

static void source_adopted(const char *provider)
{
	one(provider, FI_CQ_FORMAT_CONTEXT, ADOPT, true);
}

static const struct fabric_case cases[] = {
	{"format_context", format_context}, {"format_msg", format_msg},           {"format_data", format_data},
	{"format_tagged", format_tagged},   {"adopted_context", adopted_context}, {"adopted_msg", adopted_msg},
	{"adopted_data", adopted_data},     {"adopted_tagged", adopted_tagged},   {"source", source},
	{"source_adopted", source_adopted},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
