/* SPDX-License-Identifier: BSD-3-Clause */
/* agents PROVIDER CASE: an operation completes, and its continuation runs, by each way of polling. */
#include <dirent.h>

#include "agents_fake.h"
#include "dispatch/late.h"

/* Ticks so far apart that what comes at once was not found by one. */
#define RARE_MIN 1000000000ull
#define RARE_MAX 10000000000ull
/* Less than the shortest tick here, and more than a busy machine delays. */
#define LATE_NS 900000000ull

static struct node node;
static struct contd_group *plain, *any;
static uint32_t ran, failed, on_daemon;
static pid_t main_tid;

static void ran_cb(int status, void *data)
{
	if (status)
		ADD(failed, 1);
	if ((pid_t)syscall(SYS_gettid) != main_tid)
		ADD(on_daemon, 1);
	if (data)
		ADD(*(uint32_t *)data, 1);
	ADD(ran, 1);
}

/* -------------------------------------------------------------------------------------------- what is exchanged --- */

struct pair {
	struct contd_fabric_op receive, send;
	char out[64], in[64];
};

static uint32_t posted;

/* A message to itself, or from process to process of a ring; both operations have continuations. */
static void post_pair(struct pair *p, struct contd_group *group, bool idle)
{
	uint64_t tag = ++posted;

	snprintf(p->out, sizeof(p->out), "message %" PRIu64, tag);
	memset(p->in, 0, sizeof(p->in));
	post(&node, false, node.peer, p->in, sizeof(p->in), tag, &p->receive, ran_cb, NULL, group, idle);
	post(&node, true, node.peer, p->out, sizeof(p->out), tag, &p->send, ran_cb, NULL, group, idle);
}

static void check_pair(const struct pair *p)
{
	CHECK_IS(strcmp(p->in, p->out), 0);
	CHECK_IS(p->receive.status, 0);
	CHECK_IS(p->send.status, 0);
	CHECK_IS(p->receive.length, sizeof(p->in));
}

static struct contd_stats stats(void)
{
	struct contd_stats s = {.size = sizeof(s)};

	CHECK_OK(contd_stats_get(&s));
	return s;
}

/* Reads of the real queue are counted. */
static struct fi_ops_cq counting, *counted;
static uint32_t reads;

static ssize_t counting_read(struct fid_cq *cq, void *buf, size_t count)
{
	ADD(reads, 1);
	return counted->read(cq, buf, count);
}

/* Unexpected results of fi_trywait(3): neither "may sleep" nor "read first". */
static struct fi_ops_fabric trying, *tried;
static int tried_error;

static int trying_wait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int rc = tried->trywait(fabric, fids, count);

	if (rc && rc != -FI_EAGAIN)
		STORE(tried_error, rc);
	return rc;
}

static void begin(int agent, uint64_t tick_min, uint64_t tick_max)
{
	struct fid_cq *cq;

	main_tid = (pid_t)syscall(SYS_gettid);
	begin_contd(agent, tick_min, tick_max);
	plain = new_group(0);
	any = new_group(CONTD_THREAD_ANY);
	if (strcmp(provider, "fake") == 0)
		return;
	node_open(&node, provider_named(provider), agent == CONTD_AGENT_BLOCK ? FI_WAIT_FD : FI_WAIT_NONE);
	cq = contd_fabric_queue_cq(node.queue);
	counted = cq->ops;
	counting = *cq->ops;
	counting.read = counting_read;
	cq->ops = &counting;
	tried = node.fabric->ops;
	trying = *tried;
	trying.trywait = trying_wait;
	node.fabric->ops = &trying;
}

static void end(void)
{
	CHECK_IS(failed, 0);
	if (node.queue) {
		CHECK_IS(contd_fabric_queue_pending(node.queue), 0);
		node_close(&node);
	}
	CHECK_OK(contd_group_destroy(plain));
	CHECK_OK(contd_group_destroy(any));
	CHECK_IS(contd_fini(), 0);
}

/* --------------------------------------------------------------------------------------------- the caller looks --- */

enum { ROUNDS = 200 };

static void case_poll(void)
{
	struct pair p;

	begin(CONTD_AGENT_CALLER, 0, 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		post_pair(&p, plain, false);
		AWAIT(LOAD(ran) == 2 * i, CHECK(contd_poll(0) >= 0));
		check_pair(&p);
	}
	CHECK_IS(on_daemon, 0);
	end();
}

static void case_test(void)
{
	struct contd_group *only = NULL;
	int complete = 0;
	struct pair p;

	begin(CONTD_AGENT_CALLER, 0, 0);
	only = new_group(CONTD_POLL_ONLY);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		complete = 0;
		post_pair(&p, i % 2 ? only : plain, false);
		AWAIT(complete, CHECK(contd_group_test(i % 2 ? only : plain, &complete) >= 0));
		CHECK_IS(LOAD(ran), 2 * i);
		check_pair(&p);
	}
	CHECK_OK(contd_group_destroy(only));
	end();
}

static void case_wait(void)
{
	struct contd_fabric_op op;
	struct pair p;
	char buffer[8];

	begin(CONTD_AGENT_CALLER, 0, 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		post_pair(&p, plain, false);
		CHECK_OK(contd_group_wait(plain, (int64_t)PATIENCE_NS));
		CHECK_IS(LOAD(ran), 2 * i);
		check_pair(&p);
	}
	/* Nothing comes: it says so. */
	post(&node, false, node.peer, buffer, sizeof(buffer), 1ull << 40, &op, ran_cb, NULL, plain, false);
	CHECK_IS(contd_group_wait(plain, 20000000), -ETIMEDOUT);
	CHECK_OK(contd_fabric_withdraw(&op, 0));
	CHECK_OK(contd_group_wait(plain, (int64_t)PATIENCE_NS));
	CHECK_OK(fi_cancel(
		&node.ep->fid,
		&op)); /* no operation writes to the buffer any more; the queue's entries for it are foreign */
	end();
}

/* ------------------------------------------------------------------------------------------------- nobody looks --- */

static void case_region(void)
{
	struct pair p;

	begin(CONTD_AGENT_REGION, 0, 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		post_pair(&p, plain, false);
		contd_compute_begin();
		AWAIT(LOAD(ran) == 2 * i, spin_for(100));
		contd_compute_end();
		check_pair(&p);
	}
	CHECK(stats().run_region > 0);
	CHECK_IS(on_daemon, 0);
	end();
}

static void rounds_of_daemon(uint32_t rounds, uint64_t pause_ns)
{
	struct pair p;

	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t before = LOAD(ran);

		post_pair(&p, any, true);
		AWAIT(LOAD(ran) == before + 2, nap_ns(20000));
		check_pair(&p);
		if (pause_ns)
			nap_ns(pause_ns);
	}
}

static void case_nothing(void)
{
	begin(CONTD_AGENT_TICK, 0, 0);
	rounds_of_daemon(ROUNDS, 0);
	CHECK_IS(on_daemon, LOAD(ran));
	end();
}

static void case_spin(void)
{
	begin(CONTD_AGENT_SPIN, 0, 0);
	rounds_of_daemon(ROUNDS, 0);
	CHECK_IS(on_daemon, LOAD(ran));
	end();
}

/* ------------------------------------------------------------------------------------- the daemon's consumption --- */

static pid_t find_daemon(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *d;
	pid_t found = 0;

	while (tasks && (d = readdir(tasks)) != NULL) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && strcmp(name, "contd\n") == 0)
			found = (pid_t)atoi(d->d_name);
		fclose(f);
	}
	closedir(tasks);
	return found;
}

struct usage {
	uint64_t cpu_ns, turns;
	uint32_t reads;
	uint64_t ticks, notifications;
};

static struct usage usage(pid_t tid, struct fake *f)
{
	struct contd_stats s = stats();
	struct usage u = {.reads = LOAD(reads), .ticks = s.ticks, .notifications = s.notifications};
	unsigned long long cpu = 0, waited = 0, turns = 0;
	char path[64];
	FILE *file;

	if (f)
		u.reads += LOAD(f->reads);
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	file = tid ? fopen(path, "r") : NULL;
	if (file) {
		CHECK_IS(fscanf(file, "%llu %llu %llu", &cpu, &waited, &turns), 3);
		fclose(file);
	}
	u.cpu_ns = cpu;
	u.turns = turns;
	return u;
}

/* Sooner or later a while passes in which contd does nothing whatever. */
static void check_quiet(struct fake *f, bool in_region)
{
	pid_t tid = find_daemon();
	bool quiet = false;

	for (int i = 0; i < 100 && !quiet; i++) {
		struct usage before = usage(tid, f), after;
		uint64_t until = now_ns() + 200000000;

		if (in_region) {
			contd_compute_begin();
			while (now_ns() < until)
				;
			contd_compute_end();
		} else {
			nap_ns(200000000);
		}
		after = usage(tid, f);
		quiet = after.cpu_ns == before.cpu_ns && after.turns == before.turns && after.reads == before.reads &&
			after.ticks == before.ticks && after.notifications == before.notifications;
	}
	CHECK(quiet);
}

static void case_idle(void)
{
	static const int agents[] = {CONTD_AGENT_REGION, CONTD_AGENT_TICK, CONTD_AGENT_BLOCK, CONTD_AGENT_SPIN};
	struct contd_config config = {.size = sizeof(config)};
	bool fake = strcmp(provider, "fake") == 0;
	struct fake f;
	struct pair p;

	begin(CONTD_AGENT_BLOCK, 0, 0); /* for the descriptor */
	if (fake)
		fake_open(&f, true, NULL);
	for (unsigned i = 0; i < sizeof(agents) / sizeof(agents[0]); i++) {
		config.agent = agents[i];
		CHECK_OK(contd_configure(&config));
		if (!fake) {
			post_pair(&p, plain, false);
			CHECK_OK(contd_group_wait(plain, (int64_t)PATIENCE_NS));
		}
		check_quiet(fake ? &f : NULL, false);
		check_quiet(fake ? &f : NULL, true);
	}
	if (fake)
		fake_close(&f);
	end();
}

/* -------------------------------------------------------------------------------------------------------- block --- */

/* Each is found by its descriptor: ticks are further apart than all of them together may take. */
static void case_block(void)
{
	struct contd_config rare = {.size = sizeof(rare), .tick_min_ns = RARE_MIN, .tick_max_ns = RARE_MAX};
	struct usage before, after;
	struct contd_fabric_op op;
	char buffer[8];

	begin(CONTD_AGENT_BLOCK, 10000, 1000000);
	if (!node.has_fd) {
		/* It looks in turns then, as often as ticks say. */
		rounds_of_daemon(ROUNDS, 0);
		CHECK_IS(on_daemon, LOAD(ran));
		end();
		printf("%s has no descriptor\n", provider);
		return;
	}
	rounds_of_daemon(
		1, 0); /* connects: meanwhile fi_trywait() may go on saying that it is to look first, and ticks help */
	CHECK_OK(contd_configure(&rare));
	node_meet(&node, __LINE__); /* no process is late because another one is still connecting */
	STORE(reads, 0);
	for (uint32_t i = 0; i < 500; i++) {
		uint64_t begun = now_ns();

		rounds_of_daemon(1, 200000);
		check(now_ns() - begun < LATE_NS, "woken by the descriptor", __FILE__, __LINE__, "a tick has found it");
	}
	check(LOAD(reads) < 502 * 2 * 20, "few looks for each operation", __FILE__, __LINE__, "");
	/* One receive is under way that nothing comes for. */
	post(&node, false, node.peer, buffer, sizeof(buffer), 1ull << 40, &op, ran_cb, NULL, any, true);
	nap_ns(200000000);
	before = usage(find_daemon(), NULL);
	nap_ns(1000000000);
	after = usage(find_daemon(), NULL);
	printf("in 1 s of waiting: %u looks, %" PRIu64 " ns\n", after.reads - before.reads,
	       after.cpu_ns - before.cpu_ns);
	check(after.reads - before.reads <= 20, "hardly a look while it waits", __FILE__, __LINE__, "");
	check(after.cpu_ns - before.cpu_ns < 20000000, "hardly any time while it waits", __FILE__, __LINE__, "");
	CHECK_OK(contd_fabric_withdraw(&op, 0));
	AWAIT(contd_group_outstanding(any) == 0, nap_ns(20000));
	CHECK_OK(fi_cancel(&node.ep->fid, &op));
	end();
}

/* Two processes, and in each only the daemon polls. */
static uint32_t pair_messages = 2000;

static void pair_receive(struct contd_fabric_op *op, uint32_t *value, uint64_t tag, uint32_t *count)
{
	post(&node, false, FI_ADDR_UNSPEC, value, sizeof(*value), tag, op, ran_cb, count, any, true);
}

static void pair_process(int fd, bool first)
{
	struct contd_config rare = {.size = sizeof(rare), .tick_min_ns = RARE_MIN, .tick_max_ns = RARE_MAX};
	/*
	 * With shm (libfabric 1.17) a message is lost that one thread has found no receive for and is about to keep,
	 * while another posts that receive. So there each receive is posted before the other process can send.
	 */
	bool early = strcmp(provider, "shm") == 0 && !first;
	struct contd_fabric_op receive, send;
	uint32_t late = 0, received = 0, sent = 0, value, messages = pair_messages;
	fi_addr_t peer;

	begin(CONTD_AGENT_BLOCK, 10000, 1000000);
	if (early)
		pair_receive(&receive, &value, 0, &received);
	if (!node.has_fd)
		messages = messages < 300 ? messages : 300;
	peer = node_exchange(&node, fd);
	for (uint32_t i = 0; i < messages; i++) {
		uint64_t begun = now_ns();

		/* While they connect fi_trywait() may go on saying that it is to look first: then ticks help. */
		if (i == 10 && node.has_fd) {
			CHECK_OK(contd_configure(&rare));
			STORE(reads, 0);
		}
		if (!early)
			pair_receive(&receive, &value, i, &received);
		if (!first) {
			AWAIT(LOAD(received) == i + 1, nap_ns(20000));
			CHECK_IS(value, i);
			if (early && i + 1 < messages)
				pair_receive(&receive, &value, i + 1, &received);
		}
		post(&node, true, peer, &i, sizeof(i), i, &send, ran_cb, &sent, any, true);
		AWAIT(LOAD(sent) == i + 1, nap_ns(20000));
		if (first) {
			AWAIT(LOAD(received) == i + 1, nap_ns(20000));
			CHECK_IS(value, i);
		}
		late += i > 10 && now_ns() - begun >= LATE_NS;
		nap_ns(100000);
	}
	printf("%u of %u late, %u looks, fi_trywait %d\n", late, messages, LOAD(reads), tried_error);
	if (node.has_fd && messages > 10) {
		CHECK_IS(late, 0);
		CHECK_IS(tried_error, 0);
		check(LOAD(reads) < messages * 2 * 20, "few looks for each operation", __FILE__, __LINE__, "");
	}
	CHECK_IS(LOAD(ran), 2 * messages);
	CHECK_IS(on_daemon, LOAD(ran));
	/*
	 * Neither goes before both have got everything; and one receive more, for contd drives libfabric while
	 * something is under way: the other's last message may need that.
	 */
	post(&node, false, peer, &value, sizeof(value), 1ull << 40, &receive, ran_cb, NULL, any, true);
	tell(fd, 'x');
	alarm(100); /* the other one may have failed */
	CHECK(hear(fd) == 'x');
	CHECK_OK(contd_fabric_withdraw(&receive, 0));
	AWAIT(contd_group_outstanding(any) == 0, nap_ns(20000));
	end();
}

static void case_pair(void)
{
	struct child c;

	alone("it starts two processes");
	c = child_fork();
	pair_process(c.fd, c.pid != 0);
	if (c.pid == 0) {
		fflush(NULL);
		_exit(0);
	}
	CHECK_IS(child_end(&c), 0);
}

/* The first messages, for which they connect. */
static void case_connect(void)
{
	pair_messages = 3;
	case_pair();
}

/* -------------------------------------------------------------------------------------------- changes under way --- */

static uint32_t stop;

static void *switch_agents(void *arg)
{
	static const int agents[] = {CONTD_AGENT_TICK,   CONTD_AGENT_BLOCK, CONTD_AGENT_SPIN,
				     CONTD_AGENT_REGION, CONTD_AGENT_BLOCK, CONTD_AGENT_CALLER};
	struct contd_config config = {.size = sizeof(config)};
	uint64_t seed = 88172645463325252ull;
	uint32_t *switches = arg;

	while (!LOAD(stop)) {
		config.agent = agents[any_number(&seed) % 6];
		CHECK_OK(contd_configure(&config));
		*switches += 1;
		nap_ns(any_number(&seed) % 300000);
	}
	return NULL;
}

static void case_switching(void)
{
	uint32_t switches = 0, i;
	pthread_t thread;

	begin(CONTD_AGENT_BLOCK, 0, 0);
	CHECK_OK(pthread_create(&thread, NULL, switch_agents, &switches));
	for (i = 0; i < 2000; i++)
		rounds_of_daemon(1, 0);
	STORE(stop, 1);
	pthread_join(thread, NULL);
	CHECK_IS(on_daemon, LOAD(ran));
	CHECK(switches > 10);
	printf("%u switches\n", switches);
	end();
}

static void case_daemon(void)
{
	struct pair p;

	begin(CONTD_AGENT_CALLER, 0, 0);
	for (uint32_t i = 1; i <= 50; i++) {
		CHECK_OK(contd_daemon_start(NULL));
		rounds_of_daemon(1, 0);
		CHECK_OK(contd_daemon_stop());
		AWAIT(find_daemon() == 0, nap_ns(100000)); /* a thread that was joined is listed for a moment */
		post_pair(&p, any, false);
		if (i % 10 == 0) {
			uint32_t before = LOAD(ran);

			nap_ns(20000000);
			CHECK_IS(LOAD(ran), before);
		}
		/* With some already complete and others not it starts and finds them. */
		CHECK_OK(contd_daemon_start(NULL));
		AWAIT(LOAD(ran) == 4 * i, nap_ns(20000));
		check_pair(&p);
		CHECK_OK(contd_daemon_stop());
	}
	end();
}

/* -------------------------------------------------------------------------------------------- wake-ups, exactly --- */

static struct fake fake;
static struct contd_fabric_op *wanted;

/* Completes what it is given, after a while that differs. */
static void *complete_later(void *arg)
{
	uint64_t seed = 2463534242ull;

	while (!LOAD(stop)) {
		struct contd_fabric_op *op = __atomic_exchange_n(&wanted, NULL, __ATOMIC_SEQ_CST);

		if (!op) {
			sched_yield();
			continue;
		}
		spin_for(any_number(&seed) % 8192);
		fake_put(&fake, op, FI_RECV, 1);
	}
	return NULL;
}

/* Between contd_fabric_begin() and the daemon's sleep, at any distance: a wake-up that is lost costs ten seconds. */
static void case_wakeups(void)
{
	struct contd_fabric_op op[2];
	uint64_t seed = 362436069ull;
	uint32_t late = 0, i;
	pthread_t thread;

	begin(CONTD_AGENT_BLOCK, RARE_MIN, RARE_MAX);
	fake_open(&fake, true, NULL);
	CHECK_OK(pthread_create(&thread, NULL, complete_later, NULL));
	for (i = 0; i < 4000; i++) {
		uint32_t before = LOAD(ran), more = i % 3 == 0;
		uint64_t begun = now_ns();

		/* In some rounds one more is under way all the time: then nothing but the descriptor tells. */
		if (more) {
			CHECK_OK(contd_fabric_begin(fake.queue, &op[1]));
			CHECK_OK(contd_fabric_continue(&op[1], ran_cb, NULL, any));
			spin_for(any_number(&seed) % 16384);
		}
		CHECK_OK(contd_fabric_begin(fake.queue, &op[0]));
		CHECK_OK(contd_fabric_continue(&op[0], ran_cb, NULL, any));
		spin_for(any_number(&seed) % 4096);
		STORE(wanted, &op[0]);
		AWAIT(LOAD(ran) == before + 1, sched_yield());
		if (more) {
			STORE(wanted, &op[1]);
			AWAIT(LOAD(ran) == before + 2, sched_yield());
		}
		late += now_ns() - begun >= LATE_NS;
		nap_ns(any_number(&seed) % 200000);
	}
	STORE(stop, 1);
	pthread_join(thread, NULL);
	printf("%u of %u late, %u looks\n", late, i, fake.reads);
	CHECK_IS(late, 0);
	check(fake.reads < i * 30, "few looks for each operation", __FILE__, __LINE__, "");
	fake_close(&fake);
	end();
}

static void case_two_queues(void)
{
	struct contd_fabric_op with, without;
	static struct fake blind;
	struct usage before, after;

	begin(CONTD_AGENT_BLOCK, 10000, RARE_MAX);
	fake_open(&fake, true, NULL);
	fake_open(&blind, false, NULL);
	for (uint32_t i = 0; i < 300; i++) {
		struct contd_config often = {.size = sizeof(often), .tick_max_ns = 1000000};

		CHECK_OK(contd_configure(&often));
		/* While one has no descriptor both are looked at in turns. */
		CHECK_OK(contd_fabric_begin(fake.queue, &with));
		CHECK_OK(contd_fabric_continue(&with, ran_cb, NULL, any));
		CHECK_OK(contd_fabric_begin(blind.queue, &without));
		CHECK_OK(contd_fabric_continue(&without, ran_cb, NULL, any));
		fake_put(i % 2 ? &fake : &blind, i % 2 ? &with : &without, FI_RECV, 1);
		AWAIT(LOAD(ran) == 2 * i + 1, nap_ns(20000));
		fake_put(i % 2 ? &blind : &fake, i % 2 ? &without : &with, FI_RECV, 1);
		AWAIT(LOAD(ran) == 2 * i + 2, nap_ns(20000));
	}
	/* When nothing is left of the one without, the other is slept on. */
	CHECK_OK(contd_configure(&(struct contd_config){.size = sizeof(struct contd_config), .tick_max_ns = RARE_MAX}));
	CHECK_OK(contd_fabric_begin(fake.queue, &with));
	CHECK_OK(contd_fabric_continue(&with, ran_cb, NULL, any));
	nap_ns(200000000);
	before = usage(find_daemon(), &fake);
	nap_ns(500000000);
	after = usage(find_daemon(), &fake);
	CHECK_IS(after.reads, before.reads);
	CHECK_IS(after.turns, before.turns);
	fake_put(&fake, &with, FI_RECV, 1);
	AWAIT(contd_group_outstanding(any) == 0, nap_ns(20000));
	fake_close(&fake);
	fake_close(&blind);
	end();
}

static const struct agents_case cases[] = {
	{"poll", case_poll},       {"test", case_test},
	{"wait", case_wait},       {"region", case_region},
	{"nothing", case_nothing}, {"block", case_block},
	{"pair", case_pair},       {"connect", case_connect},
	{"spin", case_spin},       {"switching", case_switching},
	{"daemon", case_daemon},   {"idle", case_idle},
	{"wakeups", case_wakeups}, {"two_queues", case_two_queues},
};

int main(int argc, char **argv)
{
	return agents_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
