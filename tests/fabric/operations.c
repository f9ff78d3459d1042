/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call of libfabric's that gives a completion, and those that give none. Usage: operations PROVIDER CASE. */
#include "fabric.h"

#define SIZE 32u
#define DATA 0xabcdull

static struct fabric f;
static struct contd_fabric_queue *queue;
static struct contd_group *group;
static struct fabric_seen {
	struct contd_fabric_entry entry;
	int count;
} foreign;
static int ran;

static void count(int status, void *data)
{
	struct contd_fabric_op *op = data;

	CHECK_RC(status, op->status);
	CHECK_RC(op->status, 0);
	ran++;
}

static void see(const struct contd_fabric_entry *entry, void *data)
{
	struct fabric_seen *seen = data;

	seen->entry = *entry;
	seen->count++;
}

static void open_all(const char *provider, uint64_t caps, uint64_t endpoint_flags)
{
	fabric_open(&f, provider, caps);
	group = fabric_begin_contd();
	queue = fabric_queue(&f, &(struct contd_fabric_attr){.foreign = see, .data = &foreign}, 0, endpoint_flags);
}

static void close_all(void)
{
	fabric_close_queue(&f, queue);
	fabric_end_contd(group);
	fabric_close(&f);
}

static struct contd_fabric_op *begin(struct contd_fabric_op *op)
{
	return fabric_begin(queue, op, count, group);
}

static void wait_all(int want)
{
	WAIT(group);
	CHECK_RC(ran, want);
	ran = 0;
	CHECK(contd_fabric_queue_pending(queue) == 0);
}

static char in[SIZE], out[SIZE];
static struct iovec in_v[2] = {{in, SIZE / 2}, {in + SIZE / 2, SIZE / 2}};
static struct iovec out_v[2] = {{out, SIZE / 2}, {out + SIZE / 2, SIZE / 2}};
static struct contd_fabric_op r, s;

static void fresh(char with)
{
	memset(out, with, sizeof(out));
	memset(in, 0, sizeof(in));
}

static void arrived(bool tagged, uint64_t tag, uint64_t data)
{
	CHECK(memcmp(in, out, SIZE) == 0);
	CHECK_RC(r.length, SIZE);
	CHECK((r.flags & (FI_RECV | FI_SEND | FI_TAGGED)) == (FI_RECV | (tagged ? FI_TAGGED : 0)));
	CHECK(((r.flags & FI_REMOTE_CQ_DATA) != 0) == (data != 0));
	CHECK(!data || r.data == data); /* without the flag it says nothing */
	CHECK(!tagged || r.tag == tag);
}

/* ----------------------------------------------------------------------------------------------------- messages --- */

static void vectors_or_skip(void)
{
	if (f.info->tx_attr->iov_limit < 2 || f.info->rx_attr->iov_limit < 2)
		fabric_skip("buffers of one piece only");
}

static void messages(const char *provider)
{
	struct fi_msg in_m = {.msg_iov = in_v, .iov_count = 2, .addr = FI_ADDR_UNSPEC};
	struct fi_msg out_m = {.msg_iov = out_v, .iov_count = 2};

	open_all(provider, FI_MSG, 0);
	fresh('a');
	begin(&r);
	POST(fi_recv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, &r));
	begin(&s);
	POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, &s));
	wait_all(2);
	arrived(false, 0, 0);
	fresh('b');
	begin(&r);
	POST(fi_recv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, &r));
	begin(&s);
	POST(fi_senddata(f.ep, out, SIZE, fabric_desc, DATA, f.peer, &s));
	wait_all(2);
	arrived(false, 0, DATA);
	vectors_or_skip();
	fresh('c');
	begin(&r);
	POST(fi_recvv(f.ep, in_v, NULL, 2, FI_ADDR_UNSPEC, &r));
	begin(&s);
	POST(fi_sendv(f.ep, out_v, NULL, 2, f.peer, &s));
	wait_all(2);
	arrived(false, 0, 0);
	fresh('d');
	in_m.context = begin(&r);
	POST(fi_recvmsg(f.ep, &in_m, FI_COMPLETION));
	out_m.context = begin(&s);
	out_m.addr = f.peer;
	out_m.data = DATA;
	POST(fi_sendmsg(f.ep, &out_m, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	wait_all(2);
	arrived(false, 0, DATA);
	CHECK(foreign.count == 0);
	close_all();
}

static void tagged(const char *provider)
{
	struct fi_msg_tagged in_m = {.msg_iov = in_v, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .tag = 40, .ignore = 7};
	struct fi_msg_tagged out_m = {.msg_iov = out_v, .iov_count = 2, .tag = 43};

	open_all(provider, FI_TAGGED, 0);
	fresh('a');
	begin(&r);
	POST(fi_trecv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, 1, 0, &r));
	begin(&s);
	POST(fi_tsend(f.ep, out, SIZE, fabric_desc, f.peer, 1, &s));
	wait_all(2);
	arrived(true, 1, 0);
	fresh('b');
	begin(&r);
	POST(fi_trecv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, 0, ~0ull, &r));
	begin(&s);
	POST(fi_tsenddata(f.ep, out, SIZE, fabric_desc, DATA, f.peer, 1ull << 40, &s));
	wait_all(2);
	arrived(true, 1ull << 40, DATA);
	vectors_or_skip();
	fresh('c');
	begin(&r);
	POST(fi_trecvv(f.ep, in_v, NULL, 2, FI_ADDR_UNSPEC, 3, 0, &r));
	begin(&s);
	POST(fi_tsendv(f.ep, out_v, NULL, 2, f.peer, 3, &s));
	wait_all(2);
	arrived(true, 3, 0);
	fresh('d');
	in_m.context = begin(&r);
	POST(fi_trecvmsg(f.ep, &in_m, FI_COMPLETION));
	out_m.context = begin(&s);
	out_m.addr = f.peer;
	out_m.data = DATA;
	POST(fi_tsendmsg(f.ep, &out_m, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	wait_all(2);
	arrived(true, 43, DATA);
	CHECK(foreign.count == 0);
	close_all();
}

/* Long enough for a rendezvous, and several at a time, in an order that is not that of the tags. */
static void long_messages(const char *provider)
{
	enum { COUNT = 8, LENGTH = 1 << 20 };
	static struct contd_fabric_op recv[COUNT], send[COUNT];
	static char *to[COUNT], *from[COUNT];

	open_all(provider, FI_TAGGED, 0);
	for (int i = 0; i < COUNT; i++) {
		to[i] = calloc(1, LENGTH);
		from[i] = malloc(LENGTH);
		CHECK(to[i] && from[i]);
		memset(from[i], 'a' + i, LENGTH);
		begin(&recv[i]);
		POST(fi_trecv(f.ep, to[i], LENGTH, fabric_desc, FI_ADDR_UNSPEC, (uint64_t)i, 0, &recv[i]));
	}
	for (int i = COUNT - 1; i >= 0; i--) {
		begin(&send[i]);
		POST(fi_tsend(f.ep, from[i], LENGTH, fabric_desc, f.peer, (uint64_t)i, &send[i]));
	}
	wait_all(2 * COUNT);
	for (int i = 0; i < COUNT; i++) {
		CHECK(recv[i].length == LENGTH && recv[i].tag == (uint64_t)i);
		CHECK(memcmp(to[i], from[i], LENGTH) == 0);
		free(to[i]);
		free(from[i]);
	}
	close_all();
}

/* A message that came before its receive. */
static void unexpected(const char *provider)
{
	open_all(provider, FI_TAGGED, 0);
	fresh('u');
	begin(&s);
	POST(fi_tsend(f.ep, out, SIZE, fabric_desc, f.peer, 9, &s));
	fabric_poll(1000);
	begin(&r);
	POST(fi_trecv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, 9, 0, &r));
	wait_all(2);
	arrived(true, 9, 0);
	close_all();
}

/* ----------------------------------------------------------------------------------------------- no completion --- */

static void inject(const char *provider)
{
	open_all(provider, FI_MSG | FI_TAGGED, 0);
	if (f.info->tx_attr->inject_size < SIZE)
		fabric_skip("injects nothing");
	/* Nothing begun. */
	fresh('a');
	begin(&r);
	POST(fi_recv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, &r));
	POST(fi_inject(f.ep, out, SIZE, f.peer));
	wait_all(1);
	arrived(false, 0, 0);
	/* Begun, for code that has an operation for everything, and withdrawn: it is complete, and well. */
	fresh('b');
	begin(&r);
	POST(fi_recv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, &r));
	begin(&s);
	POST(fi_injectdata(f.ep, out, SIZE, DATA, f.peer));
	CHECK(contd_fabric_queue_pending(queue) >= 1);
	OK(contd_fabric_withdraw(&s, 0));
	CHECK(s.length == 0 && s.flags == 0 && s.source == FI_ADDR_NOTAVAIL && strcmp(s.text, "withdrawn") == 0);
	wait_all(2);
	CHECK_RC(contd_fabric_withdraw(&s, 0), -EALREADY);
	arrived(false, 0, DATA);
	fresh('c');
	begin(&r);
	POST(fi_trecv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, 7, 0, &r));
	POST(fi_tinject(f.ep, out, SIZE, f.peer, 7));
	wait_all(1);
	arrived(true, 7, 0);
	fresh('d');
	begin(&r);
	POST(fi_trecv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, 8, 0, &r));
	POST(fi_tinjectdata(f.ep, out, SIZE, DATA, f.peer, 8));
	wait_all(1);
	arrived(true, 8, DATA);
	CHECK(foreign.count == 0);
	close_all();
}

/* FI_SELECTIVE_COMPLETION: only what asks for it gives a completion; FI_INJECT with one. */
static void selective(const char *provider)
{
	struct iovec in_1 = {in, SIZE}, out_1 = {out, SIZE};
	struct fi_msg in_m = {.msg_iov = &in_1, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
	struct fi_msg out_m = {.msg_iov = &out_1, .iov_count = 1};

	open_all(provider, FI_MSG, FI_SELECTIVE_COMPLETION);
	out_m.addr = f.peer;
	/* Both ask. */
	fresh('a');
	in_m.context = begin(&r);
	POST(fi_recvmsg(f.ep, &in_m, FI_COMPLETION));
	out_m.context = begin(&s);
	POST(fi_sendmsg(f.ep, &out_m, FI_COMPLETION));
	wait_all(2);
	arrived(false, 0, 0);
	/* The send does not: withdrawn. */
	fresh('b');
	in_m.context = begin(&r);
	POST(fi_recvmsg(f.ep, &in_m, FI_COMPLETION));
	out_m.context = begin(&s);
	POST(fi_sendmsg(f.ep, &out_m, 0));
	UNTIL(contd_event_is_complete(&r.event));
	fabric_poll(1000);
	if (contd_event_is_complete(&s.event))
		fabric_skip("the provider reports completions that were not asked for (the rest is good)");
	CHECK(contd_fabric_queue_pending(queue) == 1);
	OK(contd_fabric_withdraw(&s, 0));
	wait_all(2);
	arrived(false, 0, 0);
	/* fi_send(3) and fi_recv(3) do not ask either; the memory shows the message. */
	fresh('c');
	begin(&r);
	POST(fi_recv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, &r));
	begin(&s);
	POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, &s));
	UNTIL(*(volatile char *)&in[SIZE - 1] == 'c');
	fabric_poll(1000);
	CHECK(contd_fabric_queue_pending(queue) == 2);
	OK(contd_fabric_withdraw(&s, 0));
	OK(contd_fabric_withdraw(&r, 0));
	wait_all(2);
	CHECK(foreign.count == 0);
	/* FI_INJECT that asks is told of; not by ofi_rxd, where it is withdrawn. */
	if (f.info->tx_attr->inject_size >= SIZE) {
		fresh('d');
		in_m.context = begin(&r);
		POST(fi_recvmsg(f.ep, &in_m, FI_COMPLETION));
		out_m.context = begin(&s);
		POST(fi_sendmsg(f.ep, &out_m, FI_COMPLETION | FI_INJECT));
		UNTIL(contd_event_is_complete(&r.event));
		if (strcmp(provider, "udp") == 0)
			contd_fabric_withdraw(&s, 0);
		wait_all(2);
		arrived(false, 0, 0);
	}
	close_all();
}

/* ---------------------------------------------------------------------------------------------------- one-sided --- */

static void one_sided(const char *provider)
{
	static char there[SIZE];
	struct fi_rma_iov target = {.len = SIZE};
	struct fi_msg_rma m = {.rma_iov = &target, .rma_iov_count = 1, .iov_count = 1};
	struct iovec local = {out, SIZE};
	uint64_t base, key;
	struct fid_mr *mr;

	open_all(provider, FI_RMA | FI_MSG, 0);
	mr = fabric_memory(&f, there, sizeof(there), FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, &base,
			   &key);
	fresh('a');
	begin(&s);
	POST(fi_write(f.ep, out, SIZE, fabric_desc, f.peer, base, key, &s));
	wait_all(1);
	CHECK((s.flags & (FI_RMA | FI_WRITE)) == (FI_RMA | FI_WRITE));
	UNTIL_DRIVEN(&f, memcmp(there, out, SIZE) == 0); /* its completion does not say that it has arrived */
	begin(&r);
	POST(fi_read(f.ep, in, SIZE, fabric_desc, f.peer, base, key, &r));
	wait_all(1);
	CHECK(memcmp(in, out, SIZE) == 0);
	CHECK((r.flags & (FI_RMA | FI_READ)) == (FI_RMA | FI_READ));
	/* The target's completion has no operation of the target's: foreign. */
	MEET(&f);
	fresh('b');
	CHECK(foreign.count == 0);
	begin(&s);
	POST(fi_writedata(f.ep, out, SIZE, fabric_desc, DATA, f.peer, base, key, &s));
	begin(&r); /* contd looks while something is under way */
	UNTIL(foreign.count == 1 && contd_event_is_complete(&s.event));
	OK(contd_fabric_withdraw(&r, 0));
	wait_all(2);
	CHECK(memcmp(there, out, SIZE) == 0);
	CHECK(foreign.entry.data == DATA && foreign.entry.status == 0);
	CHECK(foreign.entry.flags & FI_REMOTE_CQ_DATA);
	/* Messages' forms of the calls. */
	MEET(&f);
	fresh('c');
	target.addr = base;
	target.key = key;
	m.msg_iov = &local;
	m.addr = f.peer;
	m.context = begin(&s);
	POST(fi_writemsg(f.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	wait_all(1);
	MEET(&f);
	CHECK(memcmp(there, out, SIZE) == 0); /* this one does */
	local.iov_base = in;
	m.context = begin(&r);
	POST(fi_readmsg(f.ep, &m, FI_COMPLETION));
	wait_all(1);
	CHECK(memcmp(in, out, SIZE) == 0);
	MEET(&f);
	if (f.info->tx_attr->inject_size >= SIZE) {
		fresh('d');
		begin(&r);
		POST(fi_inject_write(f.ep, out, SIZE, f.peer, base, key));
		UNTIL(memcmp(there, out, SIZE) == 0);
		OK(contd_fabric_withdraw(&r, 0));
		wait_all(1);
	}
	CHECK(foreign.count == 1);
	MEET(&f);
	OK(fi_close(&mr->fid));
	close_all();
}

static void atomics(const char *provider)
{
	static uint64_t there = 40, here = 2, old, expected = 42;
	uint64_t base, key;
	struct fid_mr *mr;
	size_t n;

	open_all(provider, FI_ATOMIC | FI_MSG, 0);
	if (fi_atomicvalid(f.ep, FI_UINT64, FI_SUM, &n) || fi_fetch_atomicvalid(f.ep, FI_UINT64, FI_SUM, &n) ||
	    fi_compare_atomicvalid(f.ep, FI_UINT64, FI_CSWAP, &n))
		fabric_skip("no sum, or no compare and swap, of 64 bits");
	mr = fabric_memory(&f, &there, sizeof(there), FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, &base,
			   &key);
	begin(&s);
	POST(fi_atomic(f.ep, &here, 1, fabric_desc, f.peer, base, key, FI_UINT64, FI_SUM, &s));
	wait_all(1);
	UNTIL_DRIVEN(&f, __atomic_load_n(&there, __ATOMIC_RELAXED) == 42);
	CHECK(s.flags & FI_ATOMIC);
	MEET(&f);
	here = 7;
	begin(&s);
	POST(fi_fetch_atomic(f.ep, &here, 1, fabric_desc, &old, NULL, f.peer, base, key, FI_UINT64, FI_SUM, &s));
	wait_all(1);
	CHECK(old == 42);
	UNTIL_DRIVEN(&f, __atomic_load_n(&there, __ATOMIC_RELAXED) == 49);
	MEET(&f);
	expected = 49;
	here = 1000;
	begin(&s);
	POST(fi_compare_atomic(f.ep, &here, 1, fabric_desc, &expected, NULL, &old, NULL, f.peer, base, key, FI_UINT64,
			       FI_CSWAP, &s));
	wait_all(1);
	CHECK(old == 49);
	UNTIL_DRIVEN(&f, __atomic_load_n(&there, __ATOMIC_RELAXED) == 1000);
	CHECK(foreign.count == 0);
	MEET(&f);
	OK(fi_close(&mr->fid));
	close_all();
}

/* A continuation starts the next operation with the operation that has completed: a chain of each kind. */
static int left[2];

static void next(int status, void *data)
{
	struct contd_fabric_op *op = data;

	CHECK_RC(status, 0);
	ran++;
	if (--left[op == &s] == 0)
		return;
	OK(contd_fabric_begin(queue, op));
	OK(contd_fabric_continue(op, next, op, group));
	if (op == &r) {
		POST(fi_recv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, op));
		return;
	}
	POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, op));
}

static void chained(const char *provider)
{
	const int rounds = 2000;

	open_all(provider, FI_MSG, 0);
	left[0] = left[1] = rounds;
	OK(contd_fabric_begin(queue, &r));
	OK(contd_fabric_continue(&r, next, &r, group));
	POST(fi_recv(f.ep, in, SIZE, fabric_desc, FI_ADDR_UNSPEC, &r));
	OK(contd_fabric_begin(queue, &s));
	OK(contd_fabric_continue(&s, next, &s, group));
	POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, &s));
	wait_all(2 * rounds);
	CHECK(foreign.count == 0);
	close_all();
}

static const struct fabric_case cases[] = {
	{"messages", messages},     {"tagged", tagged},   {"long_messages", long_messages},
	{"unexpected", unexpected}, {"inject", inject},   {"selective", selective},
	{"one_sided", one_sided},   {"atomics", atomics}, {"chained", chained},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
