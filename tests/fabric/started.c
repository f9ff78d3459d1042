/* SPDX-License-Identifier: BSD-3-Clause */
/* contd_fabric_begin_continue(): operations that carry their continuations. Usage: started PROVIDER CASE. */
#include "fabric.h"

#define OPS 64u
#define SIZE 16u

static struct fabric f;
static struct contd_fabric_queue *queue;
static struct contd_group *group;
static char in[OPS][SIZE], out[OPS][SIZE];

static struct op {
	struct contd_fabric_op op; /* first */
	unsigned ran;
	int status;
} r[OPS], s[OPS];
static unsigned ran;

static void count(int status, void *data)
{
	struct op *o = data;

	CHECK(contd_event_is_complete(&o->op.event));
	CHECK_RC(status, o->op.status);
	o->status = status;
	o->ran++;
	__atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

static unsigned so_far(void)
{
	return __atomic_load_n(&ran, __ATOMIC_ACQUIRE);
}

static void open_all(const char *provider, enum contd_agent agent, uint32_t flags, uint32_t operations)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE, .operations = operations};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct contd_config config = {.size = sizeof(config), .agent = agent};
	struct contd_group_attr group_attr = {.size = sizeof(group_attr), .flags = flags, .max_poll = -1};

	fabric_open(&f, provider, FI_MSG);
	OK(contd_init(&config));
	OK(contd_group_create(&group_attr, &group));
	attr.fabric = f.fabric;
	OK(contd_fabric_queue_create(f.domain, &cq_attr, &attr, &queue));
	fabric_endpoint(&f, contd_fabric_queue_cq(queue), contd_fabric_queue_cq(queue), 0);
}

static void close_all(void)
{
	CHECK(contd_fabric_queue_pending(queue) == 0);
	CHECK_RC(contd_group_outstanding(group), 0);
	OK(contd_fabric_queue_stop(queue)); /* a daemon may be looking */
	fabric_close_endpoint(&f);
	OK(contd_fabric_queue_destroy(queue));
	OK(contd_group_destroy(group));
	CHECK_RC(contd_fini(), 0);
	fabric_close(&f);
}

static void post_receive(unsigned i)
{
	memset(in[i], 0, SIZE);
	memset(&r[i].op, 0x5a, sizeof(r[i].op));
	OK(contd_fabric_begin_continue(queue, &r[i].op, count, &r[i], group));
	POST(fi_recv(f.ep, in[i], SIZE, fabric_desc, FI_ADDR_UNSPEC, &r[i]));
}

static void post_send(unsigned i)
{
	memset(out[i], (int)(i + 1), SIZE);
	memset(&s[i].op, 0x5a, sizeof(s[i].op));
	OK(contd_fabric_begin_continue(queue, &s[i].op, count, &s[i], group));
	POST(fi_send(f.ep, out[i], SIZE, fabric_desc, f.peer, &s[i]));
}

static void post_all(void)
{
	for (unsigned i = 0; i < OPS; i++)
		post_receive(i);
	for (unsigned i = 0; i < OPS; i++)
		post_send(i);
}

/* Messages of one sender come in order. */
static void all_arrived(unsigned times)
{
	for (unsigned i = 0; i < OPS; i++) {
		CHECK_RC(r[i].ran, times);
		CHECK_RC(s[i].ran, times);
		CHECK_RC(r[i].op.length, SIZE);
		CHECK(r[i].op.flags & FI_RECV && s[i].op.flags & FI_SEND);
		CHECK(r[i].op.provider_error == 0 && r[i].op.truncated == 0 && !*r[i].op.text);
		CHECK(memcmp(in[i], out[i], SIZE) == 0);
	}
}

static void wait_all(void)
{
	OK(contd_group_wait(group, FABRIC_SECONDS * 1000000000ll));
}

static void started_by_caller(const char *provider)
{
	struct contd_stats stats = {.size = sizeof(stats)};

	open_all(provider, CONTD_AGENT_CALLER, 0, 0);
	for (unsigned times = 1; times <= 20; times++) {
		post_all();
		wait_all();
		all_arrived(times);
	}
	OK(contd_stats_get(&stats));
	CHECK_RC(stats.run, 20 * 2 * OPS);
	CHECK_RC(stats.registered, 20 * 2 * OPS);
	close_all();
}

static void started_poll_only(const char *provider)
{
	int complete = 0;

	open_all(provider, CONTD_AGENT_CALLER, CONTD_POLL_ONLY, 0);
	post_all();
	for (unsigned i = 0; i < 1000; i++)
		contd_poll(0);
	CHECK_RC(so_far(), 0);
	UNTIL_DOING(complete, contd_group_test(group, &complete));
	all_arrived(1);
	close_all();
}

/* Only the daemon polls. */
static void started_daemon(const char *provider, enum contd_agent agent)
{
	open_all(provider, agent, CONTD_THREAD_ANY, 0);
	post_all();
	UNTIL_DOING(so_far() == 2 * OPS, usleep(100));
	UNTIL_DOING(contd_group_outstanding(group) == 0, usleep(100));
	all_arrived(1);
	close_all();
}

static void started_tick(const char *provider)
{
	started_daemon(provider, CONTD_AGENT_TICK);
}

static void started_block(const char *provider)
{
	started_daemon(provider, CONTD_AGENT_BLOCK);
}

static void started_spin(const char *provider)
{
	started_daemon(provider, CONTD_AGENT_SPIN);
}

/* Only the handler of a computing thread polls. */
static void started_region(const char *provider)
{
	open_all(provider, CONTD_AGENT_REGION, 0, 0);
	OK(contd_thread_attach(NULL));
	post_all();
	contd_compute_begin();
	UNTIL_DOING(so_far() == 2 * OPS, (void)0);
	contd_compute_end();
	OK(contd_thread_detach());
	all_arrived(1);
	close_all();
}

/* ------------------------------------------------------------------------------------------------------- chains --- */

static unsigned left, sends;

/* Received messages are sent on, each in the callback of a receive, while sends complete in between. Each ends where it
 * began. */
static void bounce(int status, void *data)
{
	count(status, data);
	CHECK_RC(status, 0);
	if (--left) {
		OK(contd_fabric_begin_continue(queue, &r[0].op, bounce, &r[0], group));
		POST(fi_recv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, &r[0]));
	} else if (ring.rank == 0) {
		return;
	}
	UNTIL(s[1].ran == sends);
	post_send(1);
	sends++;
}

static void started_chains(const char *provider)
{
	open_all(provider, CONTD_AGENT_CALLER, 0, 0);
	left = 2000;
	OK(contd_fabric_begin_continue(queue, &r[0].op, bounce, &r[0], group));
	POST(fi_recv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, &r[0]));
	if (ring.rank == 0) {
		post_send(1);
		sends++;
	}
	wait_all();
	CHECK_RC(r[0].ran, 2000);
	close_all();
}

/* ----------------------------------------------------------------------------------------------------- failures --- */

static void started_withdrawn(const char *provider)
{
	open_all(provider, CONTD_AGENT_CALLER, 0, 0);
	OK(contd_fabric_begin_continue(queue, &r[0].op, count, &r[0], group));
	CHECK_RC(contd_group_outstanding(group), 1);
	OK(contd_fabric_withdraw(&r[0].op, -FI_ECANCELED));
	wait_all();
	CHECK_RC(r[0].ran, 1);
	CHECK_RC(r[0].status, -FI_ECANCELED);
	CHECK(strcmp(r[0].op.text, "withdrawn") == 0);
	CHECK_RC(contd_fabric_withdraw(&r[0].op, 0), -EALREADY);
	post_all();
	wait_all();
	CHECK_RC(so_far(), 1 + 2 * OPS);
	close_all();
}

static void started_stopped(const char *provider)
{
	open_all(provider, CONTD_AGENT_CALLER, 0, 0);
	for (unsigned i = 0; i < OPS; i++)
		post_receive(i);
	OK(contd_fabric_queue_stop(queue));
	wait_all();
	for (unsigned i = 0; i < OPS; i++) {
		CHECK_RC(r[i].ran, 1);
		CHECK_RC(r[i].status, -FI_ECANCELED);
	}
	CHECK_RC(contd_fabric_begin_continue(queue, &s[0].op, count, &s[0], group), -EPERM);
	CHECK_RC(contd_group_outstanding(group), 0);
	close_all();
}

static void started_too_many(const char *provider)
{
	open_all(provider, CONTD_AGENT_CALLER, 0, 3);
	for (unsigned i = 0; i < 3; i++)
		OK(contd_fabric_begin_continue(queue, &r[i].op, count, &r[i], group));
	CHECK_RC(contd_fabric_begin_continue(queue, &r[3].op, count, &r[3], group), -ENOSPC);
	CHECK_RC(contd_group_outstanding(group), 3);
	for (unsigned i = 0; i < 3; i++)
		OK(contd_fabric_withdraw(&r[i].op, 0));
	wait_all();
	CHECK_RC(so_far(), 3);
	CHECK_RC(r[3].ran, 0);
	OK(contd_fabric_begin_continue(queue, &r[3].op, count, &r[3], group));
	OK(contd_fabric_withdraw(&r[3].op, 0));
	wait_all();
	CHECK_RC(r[3].ran, 1);
	close_all();
}

static void started_refusals(const char *provider)
{
	CHECK_RC(contd_fabric_begin_continue(NULL, &r[0].op, count, NULL, group), -EPERM);
	open_all(provider, CONTD_AGENT_CALLER, 0, 0);
	CHECK_RC(contd_fabric_begin_continue(NULL, &r[0].op, count, NULL, group), -EINVAL);
	CHECK_RC(contd_fabric_begin_continue(queue, NULL, count, NULL, group), -EINVAL);
	CHECK_RC(contd_fabric_begin_continue(queue, &r[0].op, NULL, NULL, group), -EINVAL);
	CHECK_RC(contd_fabric_begin_continue(queue, &r[0].op, count, NULL, NULL), -EINVAL);
	CHECK(strlen(contd_error_text()) > 20);
	OK(contd_fabric_begin_continue(queue, &r[0].op, count, &r[0], group));
	CHECK_RC(contd_fabric_continue(&r[0].op, count, &r[0], group), -EBUSY);
	CHECK_RC(contd_event_complete(&r[0].op.event, 0), -EBUSY);
	OK(contd_fabric_withdraw(&r[0].op, 0));
	wait_all();
	CHECK_RC(r[0].ran, 1);
	close_all();
}

/* A message that does not fit: an error's entry. */
static void started_truncated(const char *provider)
{
	open_all(provider, CONTD_AGENT_CALLER, 0, 0);
	OK(contd_fabric_begin_continue(queue, &r[0].op, count, &r[0], group));
	POST(fi_recv(f.ep, in[0], SIZE / 2, fabric_desc, FI_ADDR_UNSPEC, &r[0]));
	post_send(1);
	UNTIL(r[0].ran == 1);
	if (r[0].status == 0)
		fabric_skip("the provider cuts messages and says nothing");
	CHECK_RC(r[0].status, -FI_ETRUNC);
	CHECK(strlen(r[0].op.text) > 3);
	UNTIL(s[1].ran == 1);
	close_all();
}

static const struct fabric_case cases[] = {
	{"started_by_caller", started_by_caller}, {"started_poll_only", started_poll_only},
	{"started_tick", started_tick},           {"started_block", started_block},
	{"started_spin", started_spin},           {"started_region", started_region},
	{"started_chains", started_chains},       {"started_withdrawn", started_withdrawn},
	{"started_stopped", started_stopped},     {"started_too_many", started_too_many},
	{"started_refusals", started_refusals},   {"started_truncated", started_truncated},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
