/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: continuations at values that they reach. Usage: counters PROVIDER CASE. */
#include "fabric.h"

#define MANY 100

static struct fabric f;
static struct fid_cntr *cntr;
static struct contd_fabric_counter *counter;
static struct contd_group *group;
static struct contd_fabric_op op[MANY];
static int order[MANY], ran;

static void record(int status, void *data)
{
	struct contd_fabric_op *o = data;

	CHECK_RC(status, o->status);
	order[ran++] = (int)(o - op);
}

static void open_all(const char *provider)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};

	fabric_open(&f, provider, FI_MSG);
	if (fi_cntr_open(f.domain, &cntr_attr, &cntr, NULL))
		fabric_skip("the provider has no counters");
	group = fabric_begin_contd();
	OK(contd_fabric_counter_adopt(cntr, &attr, &counter));
}

static void close_all(void)
{
	if (counter)
		OK(contd_fabric_counter_destroy(counter));
	OK(fi_close(&cntr->fid));
	fabric_end_contd(group);
	fabric_close(&f);
}

static void begin(int i, uint64_t threshold)
{
	memset(&op[i], 0x5a, sizeof(op[i]));
	OK(contd_fabric_counter_begin(counter, threshold, &op[i]));
	OK(contd_fabric_continue(&op[i], record, &op[i], group));
}

/* Some providers' counters change later than the call that adds to them returns. */
static void add(uint64_t n)
{
	uint64_t before = fi_cntr_read(cntr);

	OK(fi_cntr_add(cntr, n));
	UNTIL(fi_cntr_read(cntr) == before + n);
	fabric_poll(100);
}

static void add_error(uint64_t n)
{
	uint64_t before = fi_cntr_readerr(cntr);

	if (fi_cntr_adderr(cntr, n))
		fabric_skip("errors can't be added");
	UNTIL(fi_cntr_readerr(cntr) == before + n);
	fabric_poll(100);
}

/* Thresholds in no order: each at its time, the lowest first. */
static void counter_thresholds(const char *provider)
{
	static const uint64_t threshold[] = {5, 3, 4, 3, 1, 10, 8};
	static const int want[] = {4, 1, 3, 2, 0, 6, 5};
	const int n = sizeof(threshold) / sizeof(*threshold);
	uint64_t value = 0;

	open_all(provider);
	for (int i = 0; i < n; i++)
		begin(i, threshold[i]);
	fabric_poll(100);
	CHECK(ran == 0);
	while (value < 10) {
		int due = 0;

		value += value == 5 ? 3 : 1;
		add(value - fi_cntr_read(cntr));
		for (int i = 0; i < n; i++)
			due += threshold[i] <= value;
		CHECK_RC(ran, due);
	}
	CHECK(ran == n);
	for (int i = 0; i < n; i++) {
		CHECK(order[i] == want[i]);
		CHECK(op[i].status == 0 && op[i].text && !*op[i].text);
		CHECK(op[i].flags == 0 && op[i].length == 0 && op[i].data == 0 && op[i].tag == 0 && !op[i].buffer);
		CHECK(op[i].truncated == 0 && op[i].provider_error == 0 && op[i].source == FI_ADDR_NOTAVAIL);
	}
	close_all();
}

static void counter_reached(const char *provider)
{
	open_all(provider);
	add(7);
	begin(0, 7);
	begin(1, 0);
	begin(2, 8);
	OK(contd_fabric_withdraw(&op[2], 0));
	WAIT(group);
	CHECK(ran == 3);
	CHECK(op[0].status == 0 && op[1].status == 0);
	/* Without a continuation. */
	OK(contd_fabric_counter_begin(counter, 1, &op[3]));
	UNTIL(contd_event_is_complete(&op[3].event));
	close_all();
}

/* Many at one value, in the order in which they were begun; the continuation uses the operation again. */
static void again(int status, void *data)
{
	struct contd_fabric_op *o = data;

	record(status, data);
	if (o->threshold == 1)
		begin((int)(o - op), 2);
}

static void counter_same(const char *provider)
{
	open_all(provider);
	for (int i = 0; i < MANY / 2; i++) {
		OK(contd_fabric_counter_begin(counter, 1, &op[i]));
		OK(contd_fabric_continue(&op[i], again, &op[i], group));
	}
	add(1);
	CHECK(ran == MANY / 2);
	for (int i = 0; i < MANY / 2; i++)
		CHECK(order[i] == i);
	CHECK(contd_group_outstanding(group) == MANY / 2);
	add(1);
	CHECK(ran == MANY);
	close_all();
}

static void counter_error(const char *provider)
{
	open_all(provider);
	for (int i = 0; i < 4; i++)
		begin(i, (uint64_t)i + 1);
	add(1);
	CHECK(ran == 1 && op[0].status == 0);
	add_error(1);
	CHECK(ran == 4);
	for (int i = 1; i < 4; i++) {
		CHECK_RC(op[i].status, -FI_EIO);
		CHECK(op[i].data == 1 && *op[i].text);
	}
	/* Later operations are not concerned, until another error comes. */
	begin(4, 2);
	begin(5, 5);
	fabric_poll(100);
	CHECK(ran == 4);
	add(1);
	CHECK(ran == 5 && op[4].status == 0);
	add_error(2);
	CHECK(ran == 6);
	CHECK_RC(op[5].status, -FI_EIO);
	CHECK(op[5].data == 3);
	/* Nor with an error that came while no operation waited. */
	add_error(1);
	begin(6, 3);
	fabric_poll(100);
	CHECK(ran == 6);
	begin(7, 4);
	add_error(1);
	CHECK(ran == 8);
	CHECK_RC(op[6].status, -FI_EIO);
	CHECK_RC(op[7].status, -FI_EIO);
	CHECK(op[6].data == 5);
	close_all();
}

static void counter_withdraw(const char *provider)
{
	open_all(provider);
	for (int i = 0; i < 5; i++)
		begin(i, 3);
	OK(contd_fabric_withdraw(&op[2], -FI_ETIMEDOUT));
	OK(contd_fabric_withdraw(&op[0], 0));
	OK(contd_fabric_withdraw(&op[4], -ECANCELED));
	CHECK_RC(contd_fabric_withdraw(&op[2], 0), -EALREADY);
	CHECK_RC(contd_fabric_withdraw(&op[1], 1), -EINVAL);
	fabric_poll(100);
	CHECK(ran == 3);
	CHECK(op[2].status == -FI_ETIMEDOUT && op[0].status == 0 && op[4].status == -ECANCELED);
	add(3);
	CHECK(ran == 5);
	CHECK_RC(contd_fabric_withdraw(&op[1], 0), -EALREADY);
	close_all();
}

static void counter_close(const char *provider)
{
	open_all(provider);
	for (int i = 0; i < 5; i++)
		begin(i, 3);
	OK(contd_fabric_counter_destroy(counter));
	counter = NULL;
	for (int i = 0; i < 5; i++) {
		CHECK(contd_event_is_complete(&op[i].event));
		CHECK_RC(op[i].status, -FI_ECANCELED);
		CHECK_RC(contd_fabric_withdraw(&op[i], 0), -EALREADY);
	}
	WAIT(group);
	CHECK(ran == 5);
	add(1); /* the caller's again */
	close_all();
}

/* A counter of an endpoint: so many messages have come, with no completion of any. */
static void counter_messages(const char *provider)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	static char in[MANY][8], out[8] = "counted";
	struct contd_fabric_queue *queue;
	struct contd_fabric_op send[MANY];

	open_all(provider);
	OK(contd_fabric_queue_create(f.domain, NULL, &attr, &queue));
	fabric_endpoint_disabled(&f, contd_fabric_queue_cq(queue), contd_fabric_queue_cq(queue),
				 FI_SELECTIVE_COMPLETION);
	if (fi_ep_bind(f.ep, &cntr->fid, FI_RECV))
		fabric_skip("no counter of receives");
	fabric_enable(&f);
	for (int i = 0; i < MANY / 2; i++)
		POST(fi_recv(f.ep, in[i], sizeof(in[i]), fabric_desc, FI_ADDR_UNSPEC, NULL));
	begin(0, 1);
	begin(1, MANY / 4);
	begin(2, MANY / 2);
	begin(3, MANY);
	MEET(&f);
	for (int i = 0; i < MANY / 2; i++) {
		struct iovec v = {out, sizeof(out)};
		struct fi_msg m = {.msg_iov = &v, .iov_count = 1, .addr = f.peer, .context = &send[i]};

		OK(contd_fabric_begin(queue, &send[i]));
		POST(fi_sendmsg(f.ep, &m, FI_COMPLETION));
		UNTIL(contd_event_is_complete(&send[i].event));
	}
	UNTIL(ran == 3);
	CHECK(order[0] == 0 && order[1] == 1 && order[2] == 2);
	CHECK(memcmp(in[MANY / 2 - 1], out, sizeof(out)) == 0);
	CHECK(fi_cntr_read(cntr) == MANY / 2);
	OK(contd_fabric_withdraw(&op[3], 0));
	WAIT(group);
	fabric_close_endpoint(&f);
	OK(contd_fabric_queue_destroy(queue));
	close_all();
}

/* Refused calls. */
static void counter_refusals(const char *provider)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct contd_fabric_counter *none = NULL;

	open_all(provider);
	CHECK_RC(contd_fabric_counter_adopt(NULL, &attr, &none), -EINVAL);
	CHECK_RC(contd_fabric_counter_adopt(cntr, NULL, &none), -EINVAL);
	CHECK_RC(contd_fabric_counter_adopt(cntr, &attr, NULL), -EINVAL);
	attr.size--;
	CHECK_RC(contd_fabric_counter_adopt(cntr, &attr, &none), -EINVAL);
	CHECK(*contd_error_text());
	attr.size++;
	attr.wait = FI_WAIT_FD;
	CHECK_RC(contd_fabric_counter_adopt(cntr, &attr, &none), -EINVAL); /* attr.fabric */
	CHECK(!none);
	CHECK_RC(contd_fabric_counter_begin(NULL, 1, &op[0]), -EINVAL);
	CHECK_RC(contd_fabric_counter_begin(counter, 1, NULL), -EINVAL);
	CHECK_RC(contd_fabric_counter_destroy(NULL), -EINVAL);
	close_all();
	counter = NULL;
	attr.wait = FI_WAIT_NONE;
	CHECK_RC(contd_fabric_counter_adopt(cntr, &attr, &none), -EPERM);
}

static const struct fabric_case cases[] = {
	{"counter_thresholds", counter_thresholds},
	{"counter_reached", counter_reached},
	{"counter_same", counter_same},
	{"counter_error", counter_error},
	{"counter_withdraw", counter_withdraw},
	{"counter_close", counter_close},
	{"counter_messages", counter_messages},
	{"counter_refusals", counter_refusals},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
