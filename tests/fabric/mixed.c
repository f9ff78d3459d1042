/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabric operations together with events, memory words, groups, and other providers. Usage: mixed PROVIDER CASE. */
#include "fabric.h"

#define SIZE 24u
#define ROUNDS 50

struct side {
	struct fabric f;
	struct contd_fabric_queue *queue;
	char in[4][SIZE], out[SIZE];
	struct contd_fabric_op recv[4], send;
};

static struct side a, b;
static struct contd_group *group;
static int ran, ran_other;

static void side_open(struct side *s, const char *provider)
{
	const char *name = fabric_provider_name;

	fabric_open(&s->f, provider, FI_MSG | FI_TAGGED);
	fabric_provider_name = name;
	s->queue = fabric_queue(&s->f, NULL, 0, 0);
	memset(s->out, 'm', sizeof(s->out));
}

static void side_close(struct side *s)
{
	fabric_close_queue(&s->f, s->queue);
	fabric_close(&s->f);
}

static struct contd_fabric_op *receive(struct side *s, int i, uint64_t tag)
{
	OK(contd_fabric_begin(s->queue, &s->recv[i]));
	POST(fi_trecv(s->f.ep, s->in[i], SIZE, fabric_desc, FI_ADDR_UNSPEC, tag, 0, &s->recv[i]));
	return &s->recv[i];
}

/* Complete when this returns. */
static void send_now(struct side *s, uint64_t tag)
{
	MEET(&s->f);
	OK(contd_fabric_begin(s->queue, &s->send));
	POST(fi_tsend(s->f.ep, s->out, SIZE, fabric_desc, s->f.peer, tag, &s->send));
	UNTIL(contd_event_is_complete(&s->send.event));
	CHECK_RC(s->send.status, 0);
}

static void begin_all(const char *provider)
{
	group = fabric_begin_contd();
	side_open(&a, provider);
}

static void end_all(void)
{
	side_close(&a);
	fabric_end_contd(group);
}

static void count(int status, void *data)
{
	CHECK_RC(status, 0);
	++*(int *)data;
}

static int last_status;

static void keep(int status, void *data)
{
	last_status = status;
	++*(int *)data;
}

/* One group with operations, events, and memory words. */
static void mixed_group(const char *provider)
{
	static uint64_t memory;
	struct contd_word word = {.address = &memory, .op = CONTD_WORD_GE};
	struct contd_event event, *events[] = {&event};

	begin_all(provider);
	for (int round = 1; round <= ROUNDS; round++) {
		int words = 0, happened = 0, messages = 0, complete;

		word.value = (uint64_t)round;
		OK(contd_word_continue(&word, count, &words, group, NULL));
		contd_event_init(&event);
		OK(contd_event_continue(1, events, count, &happened, group, NULL));
		OK(contd_fabric_continue(receive(&a, 0, 1), count, &messages, group));
		fabric_poll(1000);
		CHECK(!words && !happened && !messages && contd_group_outstanding(group) == 3);
		/* In turns, each first. */
		for (int i = 0; i < 3; i++)
			switch ((round + i) % 3) {
			case 0:
				__atomic_store_n(&memory, (uint64_t)round, __ATOMIC_RELEASE);
				UNTIL(words);
				break;
			case 1:
				OK(contd_event_complete(&event, 0));
				UNTIL(happened);
				break;
			default:
				send_now(&a, 1);
				UNTIL(messages);
				break;
			}
		CHECK(contd_group_test(group, &complete) >= 0 && complete);
		CHECK(words == 1 && happened == 1 && messages == 1);
	}
	end_all();
}

/* One continuation on three operations and an event, whichever is the last. */
static void mixed_one(const char *provider)
{
	begin_all(provider);
	for (int round = 0; round < 8; round++) {
		struct contd_event event = CONTD_EVENT_INIT;
		struct contd_event *events[4];

		ran = 0;
		for (int i = 0; i < 3; i++)
			events[i] = &receive(&a, i, 10 + (uint64_t)i)->event;
		events[3] = &event;
		contd_event_init(&event);
		OK(contd_event_continue(4, events, count, &ran, group, NULL));
		for (int i = 0; i < 4; i++) {
			int now = (i + round) % 4;

			fabric_poll(1000);
			CHECK(ran == 0);
			if (now == 3)
				OK(contd_event_complete(&event, 0));
			else
				send_now(&a, 10 + (uint64_t)now);
		}
		WAIT(group);
		CHECK(ran == 1);
		for (int i = 0; i < 3; i++)
			CHECK(a.recv[i].tag == 10 + (uint64_t)i && memcmp(a.in[i], a.out, SIZE) == 0);
	}
	end_all();
}

/* Its status is the first that is not 0. */
static void mixed_status(const char *provider)
{
	struct contd_event *events[3];

	begin_all(provider);
	for (int i = 0; i < 3; i++)
		events[i] = &receive(&a, i, 20 + (uint64_t)i)->event;
	OK(contd_event_continue(3, events, keep, &ran, group, NULL));
	send_now(&a, 20);
	UNTIL(contd_event_is_complete(&a.recv[0].event));
	CHECK(fi_cancel(&a.f.ep->fid, &a.recv[1]) >= 0);
	UNTIL(contd_event_is_complete(&a.recv[1].event));
	CHECK(ran == 0);
	send_now(&a, 22);
	WAIT(group);
	CHECK(ran == 1);
	CHECK_RC(last_status, -FI_ECANCELED);
	CHECK(a.recv[0].status == 0 && a.recv[1].status == -FI_ECANCELED && a.recv[2].status == 0);
	end_all();
}

/* contd_cancel(): the operation goes on without its continuation, and can be given another. */
static void mixed_cancel(const char *provider)
{
	struct contd_event *events[1];
	struct contd_handle handle;

	begin_all(provider);
	events[0] = &receive(&a, 0, 30)->event;
	OK(contd_event_continue(1, events, count, &ran, group, &handle));
	OK(contd_cancel(handle));
	CHECK(contd_group_outstanding(group) == 0 && contd_fabric_queue_pending(a.queue) == 1);
	OK(contd_event_continue(1, events, count, &ran_other, group, NULL));
	send_now(&a, 30);
	WAIT(group);
	CHECK(ran == 0 && ran_other == 1 && a.recv[0].length == SIZE);
	/* Complete with no continuation there at all: registered later it runs. */
	receive(&a, 1, 31);
	send_now(&a, 31);
	UNTIL(contd_event_is_complete(&a.recv[1].event));
	OK(contd_fabric_continue(&a.recv[1], count, &ran, group));
	WAIT(group);
	CHECK(ran == 1);
	end_all();
}

/* One continuation on operations of two providers. */
static void mixed_providers(const char *provider)
{
	const char *other = strcmp(provider, "sockets") == 0 ? "tcp" : "sockets";

	if (!fabric_info(other, FI_EP_RDM, FI_MSG | FI_TAGGED, 0, 0))
		fabric_skip("there is no other provider");
	begin_all(provider);
	side_open(&b, other);
	for (int round = 0; round < ROUNDS; round++) {
		struct contd_event *events[] = {&receive(&a, 0, 1)->event, &receive(&b, 0, 1)->event};

		ran = 0;
		OK(contd_event_continue(2, events, count, &ran, group, NULL));
		send_now(round % 2 ? &a : &b, 1);
		UNTIL(contd_event_is_complete(events[!(round % 2)]));
		fabric_poll(1000);
		CHECK(ran == 0);
		send_now(round % 2 ? &b : &a, 1);
		WAIT(group);
		CHECK(ran == 1);
	}
	side_close(&b);
	end_all();
}

/* A group that waits for another one's fabric operations. */
static void mixed_groups(const char *provider)
{
	struct contd_group *awaited;

	begin_all(provider);
	OK(contd_group_create(&(struct contd_group_attr){.size = sizeof(struct contd_group_attr),
							 .flags = CONTD_POLL_ONLY,
							 .max_poll = -1},
			      &awaited));
	OK(contd_fabric_continue(receive(&a, 0, 1), count, &ran, awaited));
	OK(contd_fabric_continue(receive(&a, 1, 2), count, &ran, awaited));
	OK(contd_group_continue(awaited, count, &ran_other, group, NULL));
	send_now(&a, 1);
	send_now(&a, 2);
	UNTIL(contd_event_is_complete(&a.recv[0].event) && contd_event_is_complete(&a.recv[1].event));
	CHECK(ran == 0 && ran_other == 0);
	WAIT(awaited);
	WAIT(group);
	CHECK(ran == 2 && ran_other == 1);
	OK(contd_group_destroy(awaited));
	end_all();
}

static const struct fabric_case cases[] = {
	{"mixed_group", mixed_group},         {"mixed_one", mixed_one},
	{"mixed_status", mixed_status},       {"mixed_cancel", mixed_cancel},
	{"mixed_providers", mixed_providers}, {"mixed_groups", mixed_groups},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
