/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes toss a message to and fro, as fi_pingpong does: the next receive is posted, then the answer is sent;
 * sends complete too. Driven by continuations (the callback of a receive does both, and attaches itself to the next
 * one, while the main thread polls or waits for the group), against a loop of fi_cq_read(3) that does both.
 *
 * Each way has a separate domain and endpoint, so that neither reads the other's completions.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include <contd/fabric.h>

#include "bench.h"
#include "fabric/setup.h"

#define ROUNDS 50 /* there and back, a batch */
#define SENDS 16u /* under way at a time, at most */
#define TAG 7u
#define BATCH 16
#define SIZE_MOST 4096u

static int number;    /* 0 serves */
static int peer_pipe; /* to the other process */

struct way {
	struct fabric_end end;
	fi_addr_t peer;
	struct contd_fabric_op receive, send[SENDS]; /* the bare way uses their contexts only */
	unsigned long sent, sends_over;
};

static struct way contd_way, bare_way;
static struct contd_group *group;
static unsigned left; /* messages that are to be received in this batch */
static size_t size;
static bool tagged;
static unsigned long count, wrong; /* messages received, and those of them that were not the one expected */
static unsigned char in[SIZE_MOST], out[SIZE_MOST];

static void post_receive(struct way *w)
{
	fabric_check(tagged ? fi_trecv(w->end.ep, in, size, NULL, FI_ADDR_UNSPEC, TAG, 0, &w->receive)
			    : fi_recv(w->end.ep, in, size, NULL, FI_ADDR_UNSPEC, &w->receive),
		     "fi_recv");
}

/* -FI_EAGAIN: progress is to be made. */
static ssize_t post_send(struct way *w, void *context)
{
	return tagged ? fi_tsend(w->end.ep, out, size, NULL, w->peer, TAG, context)
		      : fi_send(w->end.ep, out, size, NULL, w->peer, context);
}

static void check_message(void)
{
	wrong += in[0] != (unsigned char)count || in[size - 1] != (unsigned char)count;
	count++;
	left--;
}

static void prepare_message(void)
{
	/* The server's n-th and its answer have the same number. */
	out[0] = out[size - 1] = (unsigned char)(count - (number == 1));
}

/* Is the message that has just come to be answered? */
static bool answers(void)
{
	return number == 1 || left;
}

/* --------------------------------------------------------------------------------------------------- with contd --- */

static void on_message(int status, void *data);

static void contd_receive(void)
{
	struct way *w = &contd_way;

	fabric_check(contd_fabric_begin_continue(w->end.queue, &w->receive, on_message, NULL, group),
		     "contd_fabric_begin_continue");
	post_receive(w);
}

static void contd_send(void)
{
	struct way *w = &contd_way;
	struct contd_fabric_op *op = &w->send[w->sent++ % SENDS];
	ssize_t rc;

	while (w->sent > SENDS && !contd_event_is_complete(&op->event))
		contd_poll(0);
	fabric_check(contd_fabric_begin(w->end.queue, op), "contd_fabric_begin");
	prepare_message();
	while ((rc = post_send(w, op)) == -FI_EAGAIN)
		contd_poll(0);
	fabric_check(rc, "fi_send");
}

static void on_message(int status, void *data)
{
	(void)data;
	fabric_check(status, "a receive");
	check_message();
	if (left)
		contd_receive();
	if (answers())
		contd_send();
}

static void contd_begin(void)
{
	contd_receive();
	if (number == 0)
		contd_send();
}

/* Sends as well; their events are not waited for. */
static void contd_end(void)
{
	while (contd_fabric_queue_pending(contd_way.end.queue))
		contd_poll(0);
}

static void by_poll(void)
{
	contd_begin();
	while (left)
		contd_poll(0);
	contd_end();
}

static void by_wait(void)
{
	contd_begin();
	fabric_check(contd_group_wait(group, -1), "contd_group_wait");
	contd_end();
}

/* --------------------------------------------------------------------------------------------------------- bare --- */

static void bare_read(void);

static void bare_send(void)
{
	struct way *w = &bare_way;
	ssize_t rc;

	while (w->sent - w->sends_over >= SENDS)
		bare_read();
	prepare_message();
	while ((rc = post_send(w, &w->send[w->sent % SENDS])) == -FI_EAGAIN)
		bare_read();
	fabric_check(rc, "fi_send");
	w->sent++;
}

static void bare_message(void)
{
	check_message();
	if (left)
		post_receive(&bare_way);
	if (answers())
		bare_send();
}

static void bare_read(void)
{
	struct fi_cq_tagged_entry entry[BATCH];
	ssize_t n = fi_cq_read(bare_way.end.cq, entry, BATCH);

	if (n < 0 && n != -FI_EAGAIN)
		fabric_check(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++)
		if (entry[i].op_context == &bare_way.receive)
			bare_message();
		else
			bare_way.sends_over++;
}

static void bare(void)
{
	post_receive(&bare_way);
	if (number == 0)
		bare_send();
	while (left || bare_way.sent != bare_way.sends_over)
		bare_read();
}

/* ---------------------------------------------------------------------------------------------------- measuring --- */

/* ns for one way */
static double batch(void (*way)(void))
{
	uint64_t begin = bench_now();

	left = ROUNDS;
	count = 0;
	way();
	return (double)(bench_now() - begin) / (2 * ROUNDS);
}

static void print(const char *how, const char *provider, const struct bench_pairs *p)
{
	char name[80];

	if (number)
		return;
	snprintf(name, sizeof(name), "%s, %s, %s, %zu", how, provider, tagged ? "tagged" : "msg", size);
	bench_print(&(struct bench_line){.bench = "bench_fabric_pingpong",
					 .name = name,
					 .figure = bench_pairs_ratio(p),
					 .unit = "ratio",
					 .has_target = true,
					 .target = 1.05,
					 .direction = "max"},
		    "\"contd_ns\":%.1f,\"bare_ns\":%.1f", bench_pairs_a(p), bench_pairs_b(p));
}

static void measure(const char *provider, unsigned pairs)
{
	struct bench_pairs poll, wait;

	bench_pairs_init(&poll, pairs);
	bench_pairs_init(&wait, pairs);
	for (unsigned i = 0; i < pairs + 10; i++) {
		double a = batch(by_poll), b = batch(bare), c = batch(by_wait);

		if (i >= 10) { /* the first ones connect, and warm up */
			bench_pairs_add(&poll, a, b);
			bench_pairs_add(&wait, c, b);
		}
	}
	print("poll", provider, &poll);
	print("wait", provider, &wait);
	bench_pairs_fini(&poll);
	bench_pairs_fini(&wait);
}

static void exchange(struct way *w)
{
	char name[FABRIC_NAME];

	if (write(peer_pipe, w->end.name, sizeof(name)) != (ssize_t)sizeof(name) ||
	    recv(peer_pipe, name, sizeof(name), MSG_WAITALL) != (ssize_t)sizeof(name))
		exit(1); /* the other one has said why */
	w->peer = fabric_insert(&w->end, name);
}

static bool open_both(const char *provider)
{
	char there;

	memset(&contd_way, 0, sizeof(contd_way));
	memset(&bare_way, 0, sizeof(bare_way));
	if (!fabric_open(&contd_way.end, provider, true, false) ||
	    !fabric_open(&bare_way.end, provider, false, false)) {
		if (number == 0)
			fprintf(stderr, "bench_fabric_pingpong: no provider %s here\n", provider);
		return false;
	}
	exchange(&contd_way);
	exchange(&bare_way);
	/* No side sends before the other one has put the address into its table. */
	return write(peer_pipe, "", 1) == 1 && read(peer_pipe, &there, 1) == 1;
}

static void run(bool quick)
{
	static const size_t sizes[] = {1, 64, SIZE_MOST};
	unsigned pairs = quick ? 20 : 400;

	for (unsigned i = 0; i < fabric_provider_count; i++) {
		if (!open_both(fabric_providers[i]))
			continue;
		for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (int t = 0; t < 2; t++) {
				size = sizes[s];
				tagged = t;
				measure(fabric_providers[i], pairs);
			}
		fabric_close(&contd_way.end);
		fabric_close(&bare_way.end);
	}
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER};
	struct contd_group_attr attr = {.size = sizeof(attr), .max_poll = -1};
	int pair[2], status = 0;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
		perror("socketpair");
		return 1;
	}
	child = fork();
	if (child < 0) {
		perror("fork");
		return 1;
	}
	number = child == 0;
	peer_pipe = pair[number];
	close(pair[1 - number]);
	if (number)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_check(contd_init(&config), "contd_init");
	bench_check(contd_group_create(&attr, &group), "contd_group_create");
	run(o.quick);
	bench_check(contd_group_destroy(group), "contd_group_destroy");
	bench_check(contd_fini(), "contd_fini");
	if (child)
		waitpid(child, &status, 0);
	if (wrong)
		fprintf(stderr, "bench_fabric_pingpong: %lu messages were wrong\n", wrong);
	return wrong || status ? 1 : 0;
}
