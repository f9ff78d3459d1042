/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that others use as well: completions that are none of contd's operations. Usage: foreign PROVIDER CASE. */
#include "fabric.h"

#define SIZE 16u
#define SEEN 256

static struct fabric f;
static struct contd_fabric_queue *queue;
static struct contd_group *group;
static struct contd_fabric_entry seen[SEEN];
static int count;
static int ran;
static char in[8][SIZE], out[SIZE];

static void see(const struct contd_fabric_entry *entry, void *data)
{
	CHECK(data == &count);
	CHECK(count < SEEN);
	seen[count++] = *entry;
}

static void complete(int status, void *data)
{
	(void)data;
	CHECK_RC(status, 0);
	ran++;
}

static void open_all(const char *provider, contd_fabric_foreign *handler, uint32_t flags)
{
	fabric_open(&f, provider, FI_MSG | FI_TAGGED);
	group = fabric_begin_contd();
	queue = fabric_queue(&f, &(struct contd_fabric_attr){.foreign = handler, .data = &count, .flags = flags}, 0, 0);
}

static void close_all(void)
{
	fabric_close_queue(&f, queue);
	fabric_end_contd(group);
	fabric_close(&f);
}

/* How many completions with this context there were. */
static int with(const void *context, uint64_t flags)
{
	int n = 0;

	for (int i = 0; i < count; i++)
		n += seen[i].context == context && (seen[i].flags & flags);
	return n;
}

static struct contd_fabric_op mine, mine_too, likeness;

/* Contexts that must not be touched: NULL, no memory, a likeness of an operation, the middle of one, an odd address. */
static void others(const char *provider, contd_fabric_foreign *handler)
{
	void *contexts[5];
	char *guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(guarded != MAP_FAILED);
	open_all(provider, handler, 0);
	if (f.info->mode & (FI_CONTEXT | FI_CONTEXT2))
		fabric_skip("the provider writes to contexts");
	OK(contd_fabric_begin(queue, &mine));
	OK(contd_fabric_continue(&mine, complete, NULL, group));
	likeness = mine;
	contexts[0] = NULL;
	contexts[1] = guarded + 64;
	contexts[2] = &likeness;
	contexts[3] = &mine.event;
	contexts[4] = (char *)&mine + 1;
	for (int i = 0; i < 5; i++) {
		POST(fi_trecv(f.ep, in[i], SIZE, fabric_desc, FI_ADDR_UNSPEC, 100 + (uint64_t)i, 0, contexts[i]));
		POST(fi_tsend(f.ep, out, SIZE, fabric_desc, f.peer, 100 + (uint64_t)i, contexts[i]));
	}
	OK(contd_fabric_begin(queue, &mine_too));
	OK(contd_fabric_continue(&mine_too, complete, NULL, group));
	POST(fi_trecv(f.ep, in[6], SIZE, fabric_desc, FI_ADDR_UNSPEC, 7, 0, &mine));
	POST(fi_tsend(f.ep, out, SIZE, fabric_desc, f.peer, 7, &mine_too));
	WAIT(group);
	CHECK(ran == 2);
	CHECK(mine.tag == 7 && mine.length == SIZE);
	OK(contd_fabric_begin(queue, &mine)); /* contd looks while something is under way */
	if (handler)
		UNTIL(count == 10);
	fabric_poll(1000);
	CHECK(!contd_event_is_complete(&mine.event));
	OK(contd_fabric_withdraw(&mine, 0));
	CHECK(count == (handler ? 10 : 0));
	for (int i = 0; handler && i < 5; i++) {
		CHECK(with(contexts[i], FI_RECV) == 1);
		CHECK(with(contexts[i], FI_SEND) == 1);
	}
	CHECK(!contd_event_is_complete(&likeness.event));
	close_all();
	munmap(guarded, 4096);
}

static void foreign_contexts(const char *provider)
{
	others(provider, see);
}

static void foreign_dropped(const char *provider)
{
	others(provider, NULL);
}

/* With nothing of contd's under way: it looks with CONTD_FABRIC_ALWAYS only. */
static void foreign_always(const char *provider)
{
	open_all(provider, see, CONTD_FABRIC_ALWAYS);
	for (int i = 0; i < 10; i++) {
		POST(fi_recv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, in[0]));
		POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, in[1]));
		UNTIL(count == 2 * (i + 1));
		CHECK(contd_fabric_queue_pending(queue) == 0);
	}
	CHECK(with(in[0], FI_RECV) == 10 && with(in[1], FI_SEND) == 10);
	/* Its own ones are counted as ever. */
	OK(contd_fabric_begin(queue, &mine));
	CHECK(contd_fabric_queue_pending(queue) == 1);
	OK(contd_fabric_continue(&mine, complete, NULL, group));
	POST(fi_recv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, &mine));
	POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, NULL));
	UNTIL(ran == 1 && count == 21);
	close_all();
}

static void foreign_idle(const char *provider)
{
	int before;

	open_all(provider, see, 0);
	POST(fi_recv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, in[0]));
	if (fi_send(f.ep, out, SIZE, fabric_desc, f.peer, in[1])) {
		/* Progress is needed for it, which contd would make. */
		OK(contd_fabric_begin(queue, &mine));
		POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, in[1]));
		OK(contd_fabric_withdraw(&mine, 0));
	}
	before = count; /* what came while contd did look */
	fabric_poll(1000);
	CHECK(count == before);
	OK(contd_fabric_begin(queue, &mine));
	UNTIL(with(in[0], FI_RECV) == 1);
	OK(contd_fabric_withdraw(&mine, 0));
	close_all();
}

/* The handler begins and starts operations of contd's. */
static int started;
static struct contd_fabric_op chain;

static void start(const struct contd_fabric_entry *entry, void *data)
{
	see(entry, data);
	if (!(entry->flags & FI_RECV) || started++)
		return;
	OK(contd_fabric_begin(queue, &chain));
	OK(contd_fabric_continue(&chain, complete, NULL, group));
	POST(fi_trecv(f.ep, in[5], SIZE, fabric_desc, FI_ADDR_UNSPEC, 5, 0, &chain));
}

static void foreign_starts(const char *provider)
{
	open_all(provider, start, CONTD_FABRIC_ALWAYS);
	POST(fi_trecv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, 1, 0, NULL));
	POST(fi_tsend(f.ep, out, SIZE, fabric_desc, f.peer, 1, NULL));
	UNTIL(started);
	CHECK(contd_fabric_queue_pending(queue) == 1);
	MEET(&f);
	POST(fi_tsend(f.ep, out, SIZE, fabric_desc, f.peer, 5, NULL));
	UNTIL(ran == 1);
	CHECK(chain.tag == 5);
	for (int i = 0; i < 10000 && count < 3; i++)
		contd_poll(0);
	close_all();
}

/* An error of a foreign operation is told with its text. */
static void foreign_error(const char *provider)
{
	open_all(provider, see, CONTD_FABRIC_ALWAYS);
	POST(fi_trecv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, 1, 0, in[0]));
	CHECK(fi_cancel(&f.ep->fid, in[0]) >= 0);
	UNTIL(count == 1);
	CHECK(seen[0].context == in[0]);
	CHECK_RC(seen[0].status, -FI_ECANCELED);
	CHECK(strstr(seen[0].text, fi_strerror(FI_ECANCELED)));
	close_all();
}

/* Closing a queue in its own handler is refused, and what the handler says is not lost. */
static int refused;

static void close_inside(const struct contd_fabric_entry *entry, void *data)
{
	see(entry, data);
	refused = contd_fabric_queue_destroy(queue);
}

static void foreign_close(const char *provider)
{
	open_all(provider, close_inside, CONTD_FABRIC_ALWAYS);
	POST(fi_recv(f.ep, in[0], SIZE, fabric_desc, FI_ADDR_UNSPEC, in[0]));
	POST(fi_send(f.ep, out, SIZE, fabric_desc, f.peer, in[1]));
	UNTIL(count == 2);
	CHECK_RC(refused, -EDEADLK);
	close_all();
}

static const struct fabric_case cases[] = {
	{"foreign_contexts", foreign_contexts}, {"foreign_dropped", foreign_dropped},
	{"foreign_always", foreign_always},     {"foreign_idle", foreign_idle},
	{"foreign_starts", foreign_starts},     {"foreign_error", foreign_error},
	{"foreign_close", foreign_close},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
