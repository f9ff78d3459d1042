/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agents_load PROVIDER THREADS: very many operations through one queue, each counted once; with four threads that post
 * and complete. CONTD_FABRIC_LOAD: how many operations (100000).
 */
#include "agents_fake.h"

enum { WINDOW = 64, THREADS_MAX = 4 };

struct slot {
	struct contd_fabric_op receive, send;
	uint32_t receives, sends, left; /* ran so often; how many of the two are under way */
	uint64_t in, out;
};

struct worker {
	struct slot slot[WINDOW];
	uint64_t pairs; /* that it is to make */
	unsigned number;
};

static struct worker worker[THREADS_MAX];
static struct node node;
static struct fake fake;
static bool faked;
static struct contd_group *group;
static uint64_t receives, sends, failed;

static void receive_cb(int status, void *data)
{
	struct slot *s = data;

	ADD(failed, status != 0);
	ADD(s->receives, 1);
	ADD(receives, 1);
	__atomic_fetch_sub(&s->left, 1, __ATOMIC_SEQ_CST);
}

static void send_cb(int status, void *data)
{
	struct slot *s = data;

	ADD(failed, status != 0);
	ADD(s->sends, 1);
	ADD(sends, 1);
	__atomic_fetch_sub(&s->left, 1, __ATOMIC_SEQ_CST);
}

static void post_fake(struct slot *s)
{
	CHECK_OK(contd_fabric_begin(fake.queue, &s->receive));
	CHECK_OK(contd_fabric_continue(&s->receive, receive_cb, s, group));
	CHECK_OK(contd_fabric_begin(fake.queue, &s->send));
	CHECK_OK(contd_fabric_continue(&s->send, send_cb, s, group));
	s->in = s->out;
	fake_put(&fake, &s->send, FI_SEND, 0);
	fake_put(&fake, &s->receive, FI_RECV, sizeof(s->in));
}

static void *work(void *arg)
{
	struct worker *w = arg;

	CHECK_OK(contd_thread_attach(NULL));
	for (uint64_t i = 0; i < w->pairs; i++) {
		struct slot *s = &w->slot[i % WINDOW];
		uint64_t tag = (uint64_t)w->number << 32 | i % WINDOW;

		AWAIT(LOAD(s->left) == 0, CHECK(contd_poll(0) >= 0));
		if (i >= WINDOW)
			CHECK(s->in == s->out);
		STORE(s->left, 2);
		s->out = i << 8 | w->number;
		if (faked) {
			post_fake(s);
			continue;
		}
		post(&node, false, node.peer, &s->in, sizeof(s->in), tag, &s->receive, receive_cb, s, group, false);
		post(&node, true, node.peer, &s->out, sizeof(s->out), tag, &s->send, send_cb, s, group, false);
	}
	for (unsigned k = 0; k < WINDOW; k++)
		AWAIT(LOAD(w->slot[k].left) == 0, CHECK(contd_poll(0) >= 0));
	CHECK_OK(contd_thread_detach());
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t wanted = 100000, pairs = 0, begun;
	pthread_t thread[THREADS_MAX];
	unsigned threads;

	if (argc != 3)
		return 2;
	threads = (unsigned)atoi(argv[2]);
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	if (getenv("CONTD_FABRIC_LOAD"))
		wanted = strtoull(getenv("CONTD_FABRIC_LOAD"), NULL, 10);
	faked = strcmp(argv[1], "fake") == 0;
	begin_contd(threads > 1 ? CONTD_AGENT_BLOCK : CONTD_AGENT_REGION, 0, 0);
	group = new_group(CONTD_THREAD_ANY);
	if (faked)
		fake_open(&fake, true, NULL);
	else
		node_open(&node, provider_named(argv[1]), FI_WAIT_FD);
	begun = now_ns();
	for (unsigned i = 0; i < threads; i++) {
		worker[i].number = i;
		worker[i].pairs = wanted / 2 / threads;
		pairs += worker[i].pairs;
		CHECK_OK(pthread_create(&thread[i], NULL, work, &worker[i]));
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("%s, %u threads: %" PRIu64 " operations, %.0f ns each\n", argv[1], threads, 2 * pairs,
	       (double)(now_ns() - begun) / (double)(2 * pairs));
	CHECK_OK(contd_group_wait(group, (int64_t)PATIENCE_NS));
	CHECK_IS(failed, 0);
	CHECK_IS(receives, pairs);
	CHECK_IS(sends, pairs);
	for (unsigned i = 0; i < threads; i++)
		for (unsigned k = 0; k < WINDOW; k++) {
			uint64_t own = worker[i].pairs / WINDOW + (k < worker[i].pairs % WINDOW);

			CHECK_IS(worker[i].slot[k].receives, own);
			CHECK_IS(worker[i].slot[k].sends, own);
		}
	if (faked)
		fake_close(&fake);
	else
		node_close(&node);
	CHECK_OK(contd_group_destroy(group));
	CHECK_IS(contd_fini(), 0);
	return 0;
}
