/* SPDX-License-Identifier: BSD-3-Clause */
/* Multi-receive buffers: one operation, many completions. Usage: many PROVIDER CASE. */
#include "fabric.h"

#define BUFFER 2048u
#define LEAST 64u /* FI_OPT_MIN_MULTI_RECV: with less room than that a buffer is given back */
#define LONGEST 64u

static struct fabric f;
static struct contd_fabric_queue *tx, *rx; /* not shared: a buffer that is full stops its whole queue */
static struct contd_group *group;
static struct contd_fabric_many many;
static struct contd_fabric_entry room[256];
static char buffer[BUFFER] __attribute__((aligned(64)));
static uint32_t sent, got;
static bool over;

static void open_all(const char *provider)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};
	/* In shm of libfabric 1.17 setting the option before is a crash; later ones take no notice of it after. */
	bool before = strcmp(provider, "shm") != 0 || FI_VERSION_GE(fi_version(), FI_VERSION(1, 18));
	size_t least = LEAST;
	int rc;

	fabric_open(&f, provider, FI_MSG | FI_MULTI_RECV);
	group = fabric_begin_contd();
	attr.fabric = f.fabric;
	OK(contd_fabric_queue_create(f.domain, &cq_attr, &attr, &tx));
	OK(contd_fabric_queue_create(f.domain, &cq_attr, &attr, &rx));
	fabric_endpoint_disabled(&f, contd_fabric_queue_cq(tx), contd_fabric_queue_cq(rx), 0);
	if (!before)
		fabric_enable(&f);
	rc = fi_setopt(&f.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least));
	if (rc)
		fabric_skip("FI_OPT_MIN_MULTI_RECV can't be set");
	if (before)
		fabric_enable(&f);
}

static void close_all(void)
{
	CHECK(contd_fabric_queue_pending(tx) == 0);
	CHECK(contd_fabric_queue_pending(rx) == 0);
	if (f.ep)
		fabric_close_endpoint(&f);
	OK(contd_fabric_queue_destroy(tx));
	OK(contd_fabric_queue_destroy(rx));
	fabric_end_contd(group);
	fabric_close(&f);
}

static void post(struct contd_fabric_many *m, void *memory, size_t size)
{
	struct iovec v = {memory, size};
	struct fi_msg message = {.msg_iov = &v, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &m->op};

	POST(fi_recvmsg(f.ep, &message, FI_MULTI_RECV));
}

static void begin(uint32_t places)
{
	memset(&many, 0x5a, sizeof(many));
	memset(room, 0x5a, sizeof(room));
	OK(contd_fabric_many_begin(rx, &many, room, places));
	CHECK(contd_fabric_queue_pending(rx) == 1);
	post(&many, buffer, sizeof(buffer));
	over = false;
}

static uint32_t length_of(uint32_t number)
{
	return 8 + number * 7 % (LONGEST - 8);
}

/* Message `sent`; complete when this returns. */
static void send_one(void)
{
	char out[LONGEST];
	struct contd_fabric_op s;

	memset(out, 'a' + (int)(sent % 26), sizeof(out));
	memcpy(out, &sent, sizeof(sent));
	MEET(&f);
	OK(contd_fabric_begin(tx, &s));
	POST(fi_send(f.ep, out, length_of(sent), fabric_desc, f.peer, &s));
	UNTIL(contd_event_is_complete(&s.event));
	CHECK_RC(s.status, 0);
	sent++;
}

/* The next in order, and nothing else. */
static void is_next(const struct contd_fabric_entry *e, const char *memory, size_t size)
{
	const char *at = e->buffer;
	uint32_t number;

	CHECK(!over);
	CHECK_RC(e->status, 0);
	CHECK(e->context == &many);
	over = e->flags & FI_MULTI_RECV;
	if (over && !e->length)
		return; /* some tell of the buffer's end by itself */
	CHECK(e->flags & FI_RECV);
	CHECK(e->length == length_of(got));
	CHECK(at >= memory && at + e->length <= memory + size);
	memcpy(&number, at, sizeof(number));
	CHECK(number == got);
	for (uint32_t i = 8; i < e->length; i++)
		CHECK(at[i] == 'a' + (int)(got % 26));
	got++;
}

static bool take(void)
{
	struct contd_fabric_entry e;
	int rc = contd_fabric_many_take(&many, &e);

	CHECK(rc == 0 || rc == 1);
	if (rc)
		is_next(&e, buffer, sizeof(buffer));
	return rc;
}

/* Taken as they come, without a continuation, until the buffer is full; then begun again. */
static void many_taken(const char *provider)
{
	open_all(provider);
	for (int round = 0; round < 5; round++) {
		uint32_t before = got;

		begin(256);
		while (!over) {
			if (sent == got)
				send_one();
			UNTIL_DOING(got == sent || over, (take(), contd_poll(0)));
		}
		CHECK(contd_fabric_queue_pending(rx) == 0);
		CHECK(!take());
		CHECK(got - before >= (BUFFER - LEAST) / LONGEST - 1);
	}
	/* The last message may have come after the end. */
	CHECK(sent - got <= 1);
	close_all();
}

static int calls;

static void drain(int status, void *data)
{
	CHECK_RC(status, 0);
	CHECK(data == &many);
	calls++;
	CHECK(take()); /* it runs for something */
	while (take())
		;
	if (!over)
		OK(contd_fabric_many_continue(&many, drain, &many, group));
}

/* By a continuation that registers itself again, and begins the buffer again when it is over. */
static void many_continued(const char *provider)
{
	open_all(provider);
	for (int round = 0; round < 5; round++) {
		calls = 0;
		begin(4);
		OK(contd_fabric_many_continue(&many, drain, &many, group));
		CHECK(calls == 0);
		while (!over) {
			send_one();
			UNTIL(got == sent || over);
		}
		CHECK(calls > 4);
		WAIT(group);
	}
	close_all();
}

/* Registered when there is something already: it runs, and once only. */
static int ran;

static void count(int status, void *data)
{
	(void)data;
	CHECK_RC(status, 0);
	ran++;
}

static void many_late(const char *provider)
{
	open_all(provider);
	begin(256);
	for (int i = 0; i < 3; i++)
		send_one();
	UNTIL(many.put == 3);
	OK(contd_fabric_many_continue(&many, count, NULL, group));
	WAIT(group);
	CHECK(ran == 1);
	send_one();
	UNTIL(many.put == 4);
	fabric_poll(100);
	CHECK(ran == 1);
	while (take())
		;
	CHECK(got == 4);
	OK(contd_fabric_withdraw(&many.op, 0));
	CHECK_RC(contd_fabric_withdraw(&many.op, 0), -EALREADY);
	fabric_close_endpoint(&f);
	close_all();
}

/* Far more comes than there is room: nothing is lost, and the order is kept; other operations of the queue wait. */
static void full(const char *provider, uint32_t places)
{
	char in[LONGEST];
	struct contd_fabric_op other;
	uint32_t count_sent = 0;

	open_all(provider);
	begin(places);
	/* All that fits into the buffer. */
	for (uint32_t bytes = 0; bytes + length_of(sent) + LEAST <= BUFFER; count_sent++) {
		bytes += length_of(sent);
		send_one();
	}
	CHECK(count_sent > 2 * 16 + places); /* more than one batch is kept back */
	fabric_poll(1000);
	CHECK(many.put - many.got <= places);
	CHECK(contd_fabric_queue_pending(rx) == 1);
	OK(contd_fabric_begin(rx, &other));
	POST(fi_recv(f.ep, in, sizeof(in), fabric_desc, FI_ADDR_UNSPEC, &other));
	while (!over) {
		if (got == sent)
			send_one();
		/* One at a time, with and without polls in between. */
		if (sent % 3)
			contd_poll(0);
		UNTIL_DOING(take(), contd_poll(0));
		if (got == sent && !over)
			fabric_poll(100);
		if (!over && got == sent && sent - count_sent > 20)
			break;
	}
	CHECK(got >= count_sent && sent - got <= 1);
	while (ANY(&f, !contd_event_is_complete(&other.event)) && sent - count_sent < 40) {
		send_one();
		for (int i = 0; i < 1000 && !contd_event_is_complete(&other.event); i++)
			contd_poll(0);
		while (take())
			;
	}
	CHECK(contd_event_is_complete(&other.event));
	CHECK_RC(other.status, 0);
	CHECK(over);
	close_all();
}

static void many_room_1(const char *provider)
{
	full(provider, 1);
}

static void many_room_3(const char *provider)
{
	full(provider, 3);
}

/* A continuation on a buffer that is full. */
static void many_room_continued(const char *provider)
{
	open_all(provider);
	begin(2);
	for (int i = 0; i < 30; i++)
		send_one();
	fabric_poll(100);
	CHECK(got == 0);
	OK(contd_fabric_many_continue(&many, drain, &many, group));
	UNTIL(got == 30);
	CHECK(calls >= 2 && !over);
	while (!over) {
		send_one();
		UNTIL(got == sent || over);
	}
	WAIT(group);
	close_all();
}

/* fi_cancel(3): an entry with an error ends it, after what came before. */
static void many_cancelled(const char *provider)
{
	struct contd_fabric_entry e;
	int rc;

	open_all(provider);
	begin(8);
	for (int i = 0; i < 3; i++)
		send_one();
	UNTIL(many.put == 3);
	rc = fi_cancel(&f.ep->fid, &many.op);
	CHECK(rc == 0 || rc == -FI_ENOENT || rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP);
	for (int i = 0; i < 10000 && contd_fabric_queue_pending(rx); i++)
		contd_poll(0);
	for (int i = 0; i < 3; i++)
		CHECK(take());
	CHECK(got == 3);
	if (contd_fabric_queue_pending(rx)) {
		OK(contd_fabric_withdraw(&many.op, -FI_ECANCELED));
		fabric_close_endpoint(&f);
		close_all();
		fabric_skip("a buffer is not cancelled");
	}
	CHECK_RC(contd_fabric_many_take(&many, &e), 1);
	CHECK(e.status == -FI_ECANCELED || e.flags & FI_MULTI_RECV);
	CHECK((e.status != 0) == (*e.text != 0));
	CHECK_RC(contd_fabric_many_take(&many, &e), 0);
	CHECK_RC(contd_fabric_withdraw(&many.op, 0), -EALREADY);
	close_all();
}

/* The queue is closed: an entry says so, after those that are there, and may be taken afterwards. */
static void many_closed(const char *provider)
{
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct contd_fabric_entry e;

	open_all(provider);
	begin(8);
	for (int i = 0; i < 3; i++)
		send_one();
	UNTIL(many.put == 3);
	fabric_close_endpoint(&f);
	OK(contd_fabric_queue_destroy(rx));
	for (int i = 0; i < 3; i++)
		CHECK(take());
	CHECK_RC(contd_fabric_many_take(&many, &e), 1);
	CHECK_RC(e.status, -FI_ECANCELED);
	CHECK(*e.text && e.context == &many);
	CHECK_RC(contd_fabric_many_take(&many, &e), 0);
	CHECK_RC(contd_fabric_withdraw(&many.op, 0), -EALREADY);
	OK(contd_fabric_queue_create(f.domain, NULL, &attr, &rx));
	close_all();
}

/* Withdrawn while an entry was kept back for it: that entry is dropped, and does not stop the queue. */
static void many_withdrawn(const char *provider)
{
	static struct contd_fabric_many after;
	static char memory[BUFFER];
	struct contd_fabric_entry e;
	uint32_t number, before;

	open_all(provider);
	begin(1);
	for (int i = 0; i < 5; i++)
		send_one();
	fabric_poll(100);
	CHECK(take());
	OK(contd_fabric_withdraw(&many.op, 0));
	CHECK_RC(contd_fabric_withdraw(&many.op, 0), -EALREADY);
	CHECK(contd_fabric_queue_pending(rx) == 0);
	OK(contd_fabric_many_begin(rx, &after, room + 1, 64));
	post(&after, memory, sizeof(memory));
	/* libfabric goes on with the first buffer, until that is full. */
	for (before = sent; sent - before < BUFFER / 8 && ANY(&f, after.put == 0);)
		send_one();
	UNTIL(contd_fabric_many_take(&after, &e));
	CHECK_RC(e.status, 0);
	CHECK(e.context == &after);
	memcpy(&number, e.buffer, sizeof(number));
	CHECK(number > 5 && number < sent && e.length == length_of(number));
	OK(contd_fabric_withdraw(&after.op, 0));
	fabric_close_endpoint(&f);
	close_all();
}

static char second[BUFFER];

/* Two buffers, as usual: when the first is over the second goes on. */
static void many_two(const char *provider)
{
	static struct contd_fabric_many m[2];
	static struct contd_fabric_entry places[2][64];
	static char memory[2][BUFFER / 2];

	int now = 0;

	open_all(provider);
	for (int i = 0; i < 2; i++) {
		OK(contd_fabric_many_begin(rx, &m[i], places[i], 64));
		post(&m[i], memory[i], sizeof(memory[i]));
	}
	CHECK(contd_fabric_queue_pending(rx) == 2);
	for (int rounds = 0; rounds < 8;) {
		struct contd_fabric_entry e;
		uint32_t number;

		if (sent == got)
			send_one();
		contd_poll(0);
		if (!contd_fabric_many_take(&m[now], &e))
			continue;
		CHECK_RC(e.status, 0);
		CHECK(e.context == &m[now]);
		if (e.length) {
			memcpy(&number, e.buffer, sizeof(number));
			CHECK(number == got && e.length == length_of(got));
			got++;
		}
		if (!(e.flags & FI_MULTI_RECV))
			continue;
		rounds++;
		OK(contd_fabric_many_begin(rx, &m[now], places[now], 64));
		post(&m[now], memory[now], sizeof(memory[now]));
		now = !now;
	}

	for (int i = 0; i < 2; i++)
		OK(contd_fabric_withdraw(&m[i].op, 0));
	fabric_close_endpoint(&f);
	close_all();
}

/* A message that is longer than the whole buffer: an error, and nothing is lost after it. */
static void many_truncated(const char *provider)
{
	struct contd_fabric_op s;
	struct contd_fabric_entry e;
	static char in[128];
	struct iovec v = {in, sizeof(in)};
	struct fi_msg message = {.msg_iov = &v, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &many};

	open_all(provider);
	if (strcmp(provider, "udp") == 0)
		fabric_skip("ofi_rxd of libfabric 1.17 does not look whether a message fits into the buffer");
	OK(contd_fabric_many_begin(rx, &many, room, 8));
	POST(fi_recvmsg(f.ep, &message, FI_MULTI_RECV));
	memset(second, 's', sizeof(second));
	OK(contd_fabric_begin(tx, &s));
	POST(fi_send(f.ep, second, 200, fabric_desc, f.peer, &s));
	UNTIL(contd_fabric_many_take(&many, &e));
	CHECK(e.status == -FI_ETRUNC || (e.status == 0 && e.length <= sizeof(in)));
	UNTIL(contd_event_is_complete(&s.event));
	if (contd_fabric_queue_pending(rx))
		OK(contd_fabric_withdraw(&many.op, 0));
	fabric_close_endpoint(&f);
	close_all();
}

static const struct fabric_case cases[] = {
	{"many_taken", many_taken},         {"many_continued", many_continued},
	{"many_late", many_late},           {"many_room_1", many_room_1},
	{"many_room_3", many_room_3},       {"many_room_continued", many_room_continued},
	{"many_cancelled", many_cancelled}, {"many_closed", many_closed},
	{"many_withdrawn", many_withdrawn}, {"many_two", many_two},
	{"many_truncated", many_truncated},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
