/* SPDX-License-Identifier: BSD-3-Clause */
/* agents_faults PROVIDER CASE: queues that say what they should not, peers that die; each with signals coming in. */
#include "agents_fake.h"

static struct fake fake;
static struct contd_group *any;
static uint32_t ran, foreign_count;
static int32_t foreign_status;

enum { OPERATIONS = 64 };
static struct contd_fabric_op op[OPERATIONS];
static uint32_t ran_of[OPERATIONS];

static void ran_cb(int status, void *data)
{
	ADD(*(uint32_t *)data, 1);
	ADD(ran, 1);
}

static void foreign_cb(const struct contd_fabric_entry *entry, void *data)
{
	STORE(foreign_status, entry->status);
	ADD(foreign_count, 1);
}

static void begin(int agent)
{
	begin_contd(agent, 0, 0);
	storm_here();
	any = new_group(CONTD_THREAD_ANY);
}

static void end(void)
{
	CHECK_OK(contd_group_destroy(any));
	CHECK_IS(contd_fini(), 0);
}

static void begin_some(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		STORE(ran_of[i], 0);
		CHECK_OK(contd_fabric_begin(fake.queue, &op[i]));
		CHECK_OK(contd_fabric_continue(&op[i], ran_cb, &ran_of[i], any));
	}
}

/* Each agent polls if no other thread looks, and idles if one does. */
static void await_all(int agent)
{
	if (agent == CONTD_AGENT_CALLER) {
		CHECK_OK(contd_group_wait(any, (int64_t)PATIENCE_NS));
	} else if (agent == CONTD_AGENT_REGION) {
		contd_compute_begin();
		AWAIT(contd_group_outstanding(any) == 0, spin_for(100));
		contd_compute_end();
	} else {
		AWAIT(contd_group_outstanding(any) == 0, nap_ns(50000));
	}
}

static void check_all(uint32_t count, int32_t status)
{
	for (uint32_t i = 0; i < count; i++) {
		CHECK_IS(ran_of[i], 1);
		CHECK_IS(op[i].status, status);
		CHECK((*op[i].text != 0) == (status != 0));
	}
	CHECK_IS(contd_fabric_queue_pending(fake.queue), 0);
}

static void for_each_agent(void (*run)(int agent))
{
	for (int agent = CONTD_AGENT_CALLER; agent <= CONTD_AGENT_SPIN; agent++) {
		printf("agent %d\n", agent);
		fflush(stdout);
		begin(agent);
		run(agent);
		fake_close(&fake);
		end();
	}
}

/* ------------------------------------------------------------------------------------------ what the queue says --- */

static void run_interrupted(int agent)
{
	fake_open(&fake, true, NULL);
	STORE(fake.interrupted, 2);
	for (uint32_t round = 0; round < 20; round++) {
		begin_some(OPERATIONS);
		for (uint32_t i = 0; i < OPERATIONS; i++)
			fake_put(&fake, &op[i], FI_RECV, i);
		await_all(agent);
		check_all(OPERATIONS, 0);
	}
}

/* An error of one operation is that operation's; one of no operation is nothing to contd. */
static void run_errors(int agent)
{
	fake_open(&fake, true, &(struct contd_fabric_attr){.threading = FI_THREAD_SAFE, .foreign = foreign_cb});
	begin_some(OPERATIONS);
	STORE(foreign_count, 0);
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		if (i % 2)
			fake_put(&fake, &op[i], FI_RECV, i);
		else
			fake_put_error(&fake, &op[i], i % 4 ? FI_EIO : FI_ETRUNC);
		if (i == 30)
			fake_put_error(&fake, NULL, FI_EIO);
	}
	await_all(agent);
	CHECK_IS(foreign_count, 1);
	CHECK_IS(foreign_status, -FI_EIO);
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		CHECK_IS(ran_of[i], 1);
		CHECK_IS(op[i].status, i % 2 ? 0 : i % 4 ? -FI_EIO : -FI_ETRUNC);
		CHECK(i % 2 || strstr(op[i].text, "fake error") != NULL);
	}
}

static void check_failed(int agent, int32_t status)
{
	await_all(agent);
	check_all(OPERATIONS, status);
	/* And so does what comes later. */
	for (uint32_t round = 0; round < 20; round++) {
		begin_some(3);
		await_all(agent);
		check_all(3, status);
	}
}

static void run_overrun(int agent)
{
	fake_open(&fake, true, NULL);
	begin_some(OPERATIONS);
	fake_put_error(&fake, NULL, FI_EOVERRUN);
	check_failed(agent, -FI_EOVERRUN);
}

static void run_broken(int agent)
{
	fake_open(&fake, true, NULL);
	begin_some(OPERATIONS);
	STORE(fake.broken, -FI_EIO);
	fake_signal(&fake);
	check_failed(agent, -FI_EIO);
}

/* There is an error, and reading it fails for good. */
static void run_broken_error(int agent)
{
	fake_open(&fake, true, NULL);
	STORE(fake.broken_error, -FI_EIO);
	begin_some(OPERATIONS);
	fake_put_error(&fake, &op[0], FI_EIO);
	check_failed(agent, -FI_EIO);
}

static void case_interrupted(void)
{
	for_each_agent(run_interrupted);
}

static void case_errors(void)
{
	for_each_agent(run_errors);
}

static void case_overrun(void)
{
	for_each_agent(run_overrun);
}

static void case_broken(void)
{
	for_each_agent(run_broken);
}

static void case_broken_error(void)
{
	for_each_agent(run_broken_error);
}

/*
 * A broken queue that is looked at always: its descriptor says nothing any more, and the count of what is under way
 * does not begin at 0; yet what is begun later must not wait for a tick.
 */
static void case_broken_always(void)
{
	uint32_t late = 0;

	begin_contd(CONTD_AGENT_BLOCK, 1000000000, 10000000000);
	any = new_group(CONTD_THREAD_ANY);
	fake_open(&fake, true,
		  &(struct contd_fabric_attr){
			  .threading = FI_THREAD_SAFE, .foreign = foreign_cb, .flags = CONTD_FABRIC_ALWAYS});
	STORE(fake.broken, -FI_EIO);
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t begun = now_ns();

		begin_some(3);
		if (i == 0)
			fake_signal(&fake);
		await_all(CONTD_AGENT_BLOCK);
		late += i > 0 && now_ns() - begun > 900000000;
		check_all(3, -FI_EIO);
		nap_ns(100000000);
	}
	CHECK_IS(late, 0);
	fake_close(&fake);
	CHECK_OK(contd_group_destroy(any));
	CHECK_IS(contd_fini(), 0);
}

/* After its queue has gone an operation is complete, and says so. */
static void case_withdraw_late(void)
{
	begin(CONTD_AGENT_CALLER);
	fake_open(&fake, false, NULL);
	begin_some(3);
	fake_put(&fake, &op[0], FI_RECV, 1);
	AWAIT(LOAD(ran) == 1, contd_poll(0));
	CHECK_IS(contd_fabric_withdraw(&op[0], 0), -EALREADY);
	fake_close(&fake);
	CHECK_OK(contd_group_wait(any, (int64_t)PATIENCE_NS));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_IS(op[i].status, i ? -FI_ECANCELED : 0);
		CHECK_IS(contd_fabric_withdraw(&op[i], 0), -EALREADY);
	}
	end();
}

/* ----------------------------------------------------------------------------------------------- real endpoints --- */

struct slot {
	struct contd_fabric_op op;
	char buffer[2048];
	uint32_t ran;
};

static void slot_cb(int status, void *data)
{
	struct slot *s = data;

	ADD(s->ran, 1);
	ADD(ran, 1);
}

/* To itself, with EINTR wherever the kernel can say so. */
static void case_storm(void)
{
	static struct slot in[8], out[8];
	static struct node node;

	for (int agent = CONTD_AGENT_CALLER; agent <= CONTD_AGENT_SPIN; agent++) {
		bool idle = agent > CONTD_AGENT_REGION;

		begin(agent);
		node_open(&node, provider_named(provider), FI_WAIT_FD);
		for (uint32_t round = 0; round < 100; round++) {
			for (uint32_t i = 0; i < 8; i++) {
				in[i].ran = out[i].ran = 0;
				memset(out[i].buffer, (int)(round + i), sizeof(out[i].buffer));
				post(&node, false, node.peer, in[i].buffer, sizeof(in[i].buffer), i, &in[i].op, slot_cb,
				     &in[i], any, idle);
				post(&node, true, node.peer, out[i].buffer, sizeof(out[i].buffer), i, &out[i].op,
				     slot_cb, &out[i], any, idle);
			}
			await_all(agent);
			for (uint32_t i = 0; i < 8; i++) {
				CHECK_IS(in[i].ran + out[i].ran, 2);
				CHECK_IS(in[i].op.status, 0);
				CHECK_IS(out[i].op.status, 0);
				CHECK_IS(memcmp(in[i].buffer, out[i].buffer, sizeof(in[i].buffer)), 0);
			}
		}
		node_close(&node);
		end();
	}
}

/* A peer is killed in the middle of a stream both ways: every operation completes, at the latest with the queue's
 * end. */
static void killed(int agent)
{
	static struct slot in[16], out[16];
	static struct node node;
	uint32_t sent = 0, count = 0;
	struct child child;
	fi_addr_t peer;
	int status;

	memset(in, 0, sizeof(in));
	memset(out, 0, sizeof(out));
	child = child_fork();
	begin(child.pid ? agent : CONTD_AGENT_CALLER);
	node_open(&node, provider_named(provider), FI_WAIT_FD);
	peer = node_exchange(&node, child.fd);
	STORE(ran, 0);
	for (uint64_t until = now_ns() + PATIENCE_NS; now_ns() < until; sent++) {
		struct slot *s[2] = {&in[sent % 16], &out[sent % 16]};
		bool over = false;

		for (int k = 0; k < 2; k++) {
			ssize_t rc = -FI_EAGAIN;

			if (sent >= 16)
				for (uint64_t give_up = now_ns() + 2000000000; !LOAD(s[k]->ran) && now_ns() < give_up;)
					contd_poll(0);
			if (sent >= 16 && !LOAD(s[k]->ran)) {
				over = true;
				break;
			}
			s[k]->ran = 0;
			CHECK_OK(contd_fabric_begin(node.queue, &s[k]->op));
			CHECK_OK(contd_fabric_continue(&s[k]->op, slot_cb, s[k], any));
			count++;
			for (uint64_t give_up = now_ns() + 2000000000; rc == -FI_EAGAIN && now_ns() < give_up;) {
				rc = k ? fi_tsend(node.ep, s[k]->buffer, sizeof(s[k]->buffer), NULL, peer, 1, &s[k]->op)
				       : fi_trecv(node.ep, s[k]->buffer, sizeof(s[k]->buffer), NULL, FI_ADDR_UNSPEC, 1,
						  0, &s[k]->op);
				CHECK(rc != -FI_EINTR);
				if (rc == -FI_EAGAIN)
					contd_poll(0);
			}
			if (rc) {
				CHECK_OK(contd_fabric_withdraw(&s[k]->op, (int)rc));
				over = true;
			}
		}
		if (over)
			break;
		if (child.pid && sent == 200)
			CHECK_OK(kill(child.pid, SIGKILL));
	}
	check(sent >= 200, "the stream was under way", __FILE__, __LINE__, "");
	node_close(&node);
	CHECK_OK(contd_group_wait(any, (int64_t)PATIENCE_NS));
	CHECK_IS(LOAD(ran), count);
	status = child_end(&child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	printf("agent %d: %u rounds, the last status %d %s\n", agent, sent, out[sent % 16].op.status,
	       out[sent % 16].op.text);
	end();
}

static void case_killed(void)
{
	static const int agents[] = {CONTD_AGENT_CALLER, CONTD_AGENT_TICK, CONTD_AGENT_BLOCK};

	for (unsigned i = 0; i < 3; i++)
		killed(agents[i]);
}

/* A queue that is to have a descriptor if it can, and a provider that promises one and has none. */
static void case_open(void)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct contd_fabric_queue *queue;
	struct node node;

	begin(CONTD_AGENT_BLOCK);
	node_open(&node, provider_named(provider), FI_WAIT_FD);
	attr.fabric = node.fabric;
	CHECK_OK(contd_fabric_queue_create(node.domain, &cq, &attr, &queue));
	CHECK_OK(contd_fabric_queue_destroy(queue));
	node_close(&node);
	end();
}

static const struct agents_case cases[] = {
	{"interrupted", case_interrupted},
	{"errors", case_errors},
	{"overrun", case_overrun},
	{"broken", case_broken},
	{"broken_error", case_broken_error},
	{"broken_always", case_broken_always},
	{"withdraw_late", case_withdraw_late},
	{"storm", case_storm},
	{"killed", case_killed},
	{"open", case_open},
};

int main(int argc, char **argv)
{
	return agents_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
