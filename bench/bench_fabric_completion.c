/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a completion with contd beside a loop of fi_cq_read(3) that does the same: operations are posted, entries
 * are read 16 at a time, the operation is found by the entry's context, and a function is called. An endpoint sends
 * `depth` messages a round to itself; and a provider that costs nothing (a completion queue of this file's) shows
 * contd's own part.
 *
 * Time is measured in turns, a round against a round. Instructions are counted by bench/fabric/instructions, which runs
 *
 *   --mode contd|bare,PROVIDER,DEPTH   rounds in counted_rounds() alone, after some that are not counted
 *
 * under callgrind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include <contd/fabric.h>

#include "bench.h"
#include "fabric/setup.h"

#define DEPTH_MOST 64u
#define BATCH 16
#define COUNTED 12800u /* completions: ROUNDS of any depth */

/* -------------------------------------------------------------------------------- a provider that costs nothing --- */

/* Posted operations are complete at once. */
struct stub {
	struct fid_cq cq; /* first */
	void *context[2 * DEPTH_MOST];
	uint32_t put, got;
};

static void stub_post(struct stub *s, void *context)
{
	s->context[s->put++ % (2 * DEPTH_MOST)] = context;
}

static ssize_t stub_read(struct fid_cq *cq, void *buffer, size_t count)
{
	struct stub *s = (struct stub *)cq;
	struct fi_cq_tagged_entry *e = buffer;
	size_t n = 0;

	for (; n < count && s->got != s->put; n++)
		e[n] = (struct fi_cq_tagged_entry){.op_context = s->context[s->got++ % (2 * DEPTH_MOST)],
						   .flags = FI_SEND};
	return n ? (ssize_t)n : -FI_EAGAIN;
}

static struct fi_ops_cq stub_ops = {.size = sizeof(stub_ops), .read = stub_read};

/* ------------------------------------------------------------------------------------------------- the two ways --- */

struct operation {
	struct contd_fabric_op op; /* begins with what libfabric may write to */
	void (*function)(const struct fi_cq_tagged_entry *entry, void *data); /* the bare way's */
	void *data;
	char buffer[8];
};

struct side {
	struct fabric_end end;
	fi_addr_t self;
	struct stub stub;
	bool stubbed, contd;
	struct contd_fabric_queue *queue;
	struct fid_cq *cq;
	struct operation op[2 * DEPTH_MOST];
	size_t done;
};

static struct side contd_side, bare_side;
static struct contd_group *group;

/* In bare rounds too. */
static void progress(struct side *s);

static void post(struct side *s, struct operation *o, bool send)
{
	ssize_t rc;

	if (s->stubbed) {
		stub_post(&s->stub, o);
		return;
	}
	do {
		rc = send ? fi_send(s->end.ep, o->buffer, sizeof(o->buffer), NULL, s->self, o)
			  : fi_recv(s->end.ep, o->buffer, sizeof(o->buffer), NULL, FI_ADDR_UNSPEC, o);
		if (rc == -FI_EAGAIN)
			progress(s);
	} while (rc == -FI_EAGAIN);
	fabric_check(rc, send ? "fi_send" : "fi_recv");
}

static void by_contd(int status, void *data)
{
	(void)status;
	++*(size_t *)data;
}

static void contd_post(struct side *s, struct operation *o, bool send)
{
	fabric_check(contd_fabric_begin_continue(s->queue, &o->op, by_contd, &s->done, group),
		     "contd_fabric_begin_continue");
	post(s, o, send);
}

static void by_hand(const struct fi_cq_tagged_entry *entry, void *data)
{
	(void)entry;
	++*(size_t *)data;
}

static void bare_post(struct side *s, struct operation *o, bool send)
{
	o->function = by_hand;
	o->data = &s->done;
	post(s, o, send);
}

static void bare_progress(struct side *s)
{
	struct fi_cq_tagged_entry entry[BATCH];
	ssize_t n = fi_cq_read(s->cq, entry, BATCH);

	if (n < 0 && n != -FI_EAGAIN)
		fabric_check(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++) {
		struct operation *o = entry[i].op_context;

		o->function(&entry[i], o->data);
	}
}

static void progress(struct side *s)
{
	if (s->contd)
		contd_poll(0);
	else
		bare_progress(s);
}

static void contd_round(unsigned depth)
{
	struct side *s = &contd_side;

	s->done = 0;
	for (unsigned i = 0; i < 2 * depth; i++)
		contd_post(s, &s->op[i], i >= depth);
	while (s->done < 2 * (size_t)depth)
		contd_poll(0);
}

static void bare_round(unsigned depth)
{
	struct side *s = &bare_side;

	s->done = 0;
	for (unsigned i = 0; i < 2 * depth; i++)
		bare_post(s, &s->op[i], i >= depth);
	while (s->done < 2 * (size_t)depth)
		bare_progress(s);
}

/* --------------------------------------------------------------------------------------------- opening, closing --- */

static bool side_open(struct side *s, const char *provider, bool contd)
{
	memset(s, 0, sizeof(*s));
	s->contd = contd;
	s->stubbed = strcmp(provider, "stub") == 0;
	if (s->stubbed) {
		struct contd_fabric_attr attr = {
			.size = sizeof(attr), .format = FI_CQ_FORMAT_TAGGED, .threading = FI_THREAD_SAFE};

		s->stub.cq.ops = &stub_ops;
		s->cq = &s->stub.cq;
		if (contd)
			fabric_check(contd_fabric_queue_adopt(s->cq, &attr, &s->queue), "contd_fabric_queue_adopt");
		return true;
	}
	if (!fabric_open(&s->end, provider, contd, false))
		return false;
	s->cq = s->end.cq;
	s->queue = s->end.queue;
	s->self = fabric_insert(&s->end, s->end.name);
	return true;
}

static void side_close(struct side *s)
{
	if (!s->stubbed)
		fabric_close(&s->end);
	else if (s->queue)
		fabric_check(contd_fabric_queue_destroy(s->queue), "contd_fabric_queue_destroy");
}

/* ---------------------------------------------------------------------------------------------------- measuring --- */

/* Its instructions are counted; not inlined, nor a clone with another name. */
__attribute__((noinline, noclone)) void counted_rounds(void (*round)(unsigned), unsigned depth);

void counted_rounds(void (*round)(unsigned), unsigned depth)
{
	for (unsigned i = 0; i < COUNTED / (2 * depth); i++)
		round(depth);
}

static int count(const char *mode)
{
	char way[8], provider[32];
	unsigned depth;
	bool contd;
	struct side *s;

	if (sscanf(mode, "%7[^,],%31[^,],%u", way, provider, &depth) != 3 || depth < 1 || depth > DEPTH_MOST) {
		fputs("bench_fabric_completion: --mode contd|bare,PROVIDER,DEPTH\n", stderr);
		return 2;
	}
	contd = strcmp(way, "contd") == 0;
	s = contd ? &contd_side : &bare_side;
	if (!side_open(s, provider, contd))
		return 77;
	for (unsigned i = 0; i < 20; i++)
		(contd ? contd_round : bare_round)(depth);
	counted_rounds(contd ? contd_round : bare_round, depth);
	printf("%u\n", COUNTED / (2 * depth) * 2 * depth);
	side_close(s);
	return 0;
}

/* ns for one completion */
static double batch(void (*round)(unsigned), unsigned depth)
{
	unsigned rounds = 128 / depth;
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < rounds; i++)
		round(depth);
	return (double)(bench_now() - begin) / (2 * rounds * depth);
}

static void measure(const char *provider, unsigned depth, unsigned pairs)
{
	struct bench_pairs p;
	char name[48];

	bench_pairs_init(&p, pairs);
	for (unsigned i = 0; i < pairs + 10; i++) {
		double a = batch(contd_round, depth), b = batch(bare_round, depth);

		if (i >= 10) /* the first ones warm up */
			bench_pairs_add(&p, a, b);
	}
	snprintf(name, sizeof(name), "%s, depth %u", provider, depth);
	bench_print(&(struct bench_line){.bench = "bench_fabric_completion",
					 .name = name,
					 .figure = bench_pairs_ratio(&p),
					 .unit = "ratio",
					 .has_target = strcmp(provider, "stub") != 0,
					 .target = 1.1,
					 .direction = "max"},
		    "\"contd_ns\":%.1f,\"bare_ns\":%.1f", bench_pairs_a(&p), bench_pairs_b(&p));
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--mode contd|bare,PROVIDER,DEPTH]");
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER};
	struct contd_group_attr attr = {.size = sizeof(attr), .max_poll = -1};
	static const unsigned depths[] = {1, 16, 64};
	int rc = 0;

	bench_check(contd_init(&config), "contd_init");
	bench_check(contd_group_create(&attr, &group), "contd_group_create");
	if (o.mode)
		rc = count(o.mode);
	for (unsigned i = 0; !o.mode && i <= fabric_provider_count; i++) {
		const char *provider = i ? fabric_providers[i - 1] : "stub";

		if (!side_open(&contd_side, provider, true) || !side_open(&bare_side, provider, false)) {
			fprintf(stderr, "bench_fabric_completion: no provider %s here\n", provider);
			continue;
		}
		for (unsigned d = 0; d < sizeof(depths) / sizeof(depths[0]); d++)
			measure(provider, depths[d], o.quick ? 50 : 2000);
		side_close(&contd_side);
		side_close(&bare_side);
	}
	bench_check(contd_group_destroy(group), "contd_group_destroy");
	bench_check(contd_fini(), "contd_fini");
	return rc;
}
