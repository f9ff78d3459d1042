/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The comparison for kvd: the same protocol and the same store, by hand. One thread reads the queue in a loop and
 * calls a function for each completion; where nothing has completed it does a slice of compaction, some records, and
 * looks again. It never sleeps, and has none of a daemon's features: no drain, no settings that change, no sessions
 * that end by themselves, no one-sided reads. Nothing of contd is in it.
 *
 *	kvd_bare PROVIDER LISTEN ARENA_MB SEGMENT_KB COMPACT_PERCENT SLICE
 *
 * SLICE: records compacted between two looks at the queue. It says where it listens as kvd does.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "net.h"
#include "sessions.h"
#include "store.h"

#define RECEIVES 128u /* as kvd's default */
#define SESSIONS 256u
#define BATCH 16

struct buffer {
	struct fi_context2 context; /* first: libfabric hands this back */
	enum { RECEIVES_IT, SENDS_IT } state;
	struct kvd_session *session;
	size_t answer_bytes;
	struct buffer *next; /* among those that libfabric would not take */
	unsigned char *in, *out;
};

static struct kvd_net net;
static struct kvd_store store;
static struct kvd_sessions sessions;
static struct kvd_limits limits = {.key_max = KVD_KEY_MAX, .value_max = 16384};
static struct kvd_layout layout;
static struct buffer buffer[RECEIVES], *first, **last = &first;
static uint64_t answered, answered_between; /* the latter while a segment was half compacted */
static volatile sig_atomic_t over;

static void on_signal(int number)
{
	(void)number;
	over = 1;
}

static void fail(const char *what, int rc)
{
	fprintf(stderr, "kvd_bare: %s: %s\n", what, fi_strerror(-rc));
	exit(1);
}

/* A receive or an answer, again where libfabric would not take it. */
static void post(struct buffer *b)
{
	ssize_t rc;

	if (b->state == RECEIVES_IT)
		rc = fi_recv(net.endpoint, b->in, KVD_MESSAGE_MAX, NULL, FI_ADDR_UNSPEC, &b->context);
	else
		rc = fi_send(net.endpoint, b->out, b->answer_bytes, NULL, b->session->peer, &b->context);
	if (rc == -FI_EAGAIN) {
		b->next = NULL;
		*last = b;
		last = &b->next;
	} else if (rc && b->state == SENDS_IT) { /* the client has gone */
		b->state = RECEIVES_IT;
		post(b);
	} else if (rc) {
		fail("receiving", (int)rc);
	}
}

static void receive(struct buffer *b)
{
	b->state = RECEIVES_IT;
	post(b);
}

static size_t hello(struct buffer *b, const struct kvd_message *m)
{
	struct kvd_message answer = {.operation = KVD_HELLO, .flags = KVD_ANSWER, .number = m->number};
	struct kvd_session *s;
	fi_addr_t peer;

	if (!kvd_net_plausible(&net, m->value, m->value_length))
		return 0;
	s = kvd_sessions_at(&sessions, m->value, m->value_length);
	if (!s) {
		s = kvd_sessions_new(&sessions, m->value, m->value_length);
		if (!s)
			return 0;
		if (fi_av_insert(net.av, m->value, 1, &peer, 0, NULL) != 1) {
			kvd_sessions_free(&sessions, s);
			return 0;
		}
		s->peer = peer;
		s->open = true;
	}
	b->session = s;
	answer.session = s->token;
	answer.value = (const unsigned char *)&layout;
	answer.value_length = KVD_LAYOUT_BYTES;
	return kvd_format(b->out, &answer);
}

static size_t answer_to(struct buffer *b, size_t bytes)
{
	struct kvd_message m, answer;
	enum kvd_parsed parsed = kvd_parse(b->in, bytes, false, &m);
	char text[128];

	if (parsed == KVD_FOREIGN)
		return 0;
	if (parsed == KVD_PARSED && m.operation == KVD_HELLO)
		return hello(b, &m);
	b->session = kvd_sessions_find(&sessions, m.session);
	if (!b->session || !b->session->open)
		return 0;
	if (parsed == KVD_PARSED && m.operation != KVD_BYE) {
		if (m.operation == KVD_STAT)
			snprintf(text, sizeof(text), "answered %lu\nanswered_computing %lu\n", answered,
				 answered_between);
		return kvd_serve(&store, &limits, &m, m.operation == KVD_STAT ? text : NULL, 0, b->out);
	}
	if (parsed != KVD_PARSED && (!m.operation || m.operation >= KVD_OPERATIONS))
		return 0;
	answer = (struct kvd_message){.operation = m.operation,
				      .status = parsed == KVD_PARSED ? KVD_OK : KVD_BAD,
				      .flags = KVD_ANSWER,
				      .number = m.number,
				      .session = m.session};
	return kvd_format(b->out, &answer);
}

static void on_received(struct buffer *b, size_t bytes)
{
	b->answer_bytes = answer_to(b, bytes);
	if (!b->answer_bytes) {
		receive(b);
		return;
	}
	answered++;
	answered_between += store.victim >= 0;
	b->state = SENDS_IT;
	post(b);
}

static void on_sent(struct buffer *b)
{
	receive(b);
}

static void on_error(void)
{
	struct fi_cq_err_entry error = {0};

	if (fi_cq_readerr(net.cq, &error, 0) == 1 && error.op_context)
		receive(error.op_context); /* a message that is too large, or an answer that its client does not take */
}

/* Returns how many completions there were, or 0. */
static ssize_t look(void)
{
	struct fi_cq_data_entry entry[BATCH];
	ssize_t n = fi_cq_read(net.cq, entry, BATCH);

	if (n == -FI_EAVAIL)
		on_error();
	else if (n < 0 && n != -FI_EAGAIN)
		fail("fi_cq_read", (int)n);
	for (ssize_t i = 0; i < n; i++) {
		struct buffer *b = entry[i].op_context;

		if (b->state == RECEIVES_IT)
			on_received(b, entry[i].len);
		else
			on_sent(b);
	}
	return n < 0 ? 0 : n;
}

static void post_again(void)
{
	struct buffer *b = first, *next;

	first = NULL;
	last = &first;
	for (; b; b = next) {
		next = b->next;
		post(b);
	}
}

static void serve(unsigned long slice)
{
	while (!over) {
		ssize_t n = look();

		if (first)
			post_again();
		if (kvd_store_wants_compaction(&store, &limits)) {
			for (unsigned long i = 0; i < slice && kvd_store_compact(&store, &limits); i++)
				;
		} else if (!n) {
			sched_yield(); /* as kvd does while it looks */
		}
	}
}

int main(int argc, char **argv)
{
	struct kvd_store_config config = {.slots = 1 << 18};
	unsigned char *memory;
	uint64_t random;
	char at[128];
	int rc;

	if (argc != 7) {
		fprintf(stderr, "usage: kvd_bare PROVIDER LISTEN ARENA_MB SEGMENT_KB COMPACT_PERCENT SLICE\n");
		return 2;
	}
	config.arena_bytes = strtoull(argv[3], NULL, 10) << 20;
	config.segment_bytes = strtoull(argv[4], NULL, 10) << 10;
	limits.compact_percent = (uint32_t)strtoul(argv[5], NULL, 10);
	signal(SIGTERM, on_signal);
	signal(SIGPIPE, SIG_IGN);
	memory = malloc((size_t)RECEIVES * 2 * KVD_MESSAGE_MAX);
	if (!memory || getrandom(&random, sizeof(random), 0) < 0 ||
	    getrandom(&config.hash_seed, sizeof(config.hash_seed), 0) < 0)
		fail("memory, random numbers", -FI_ENOMEM);
	rc = kvd_store_open(&store, &config);
	rc = rc ? rc : kvd_sessions_open(&sessions, SESSIONS, random);
	if (rc)
		fail("the table", rc);
	kvd_store_layout(&store, &limits, &layout);
	if (kvd_net_open(&net, argv[1], argv[2], true, true, 2 * RECEIVES + 64, NULL)) {
		fprintf(stderr, "kvd_bare: %s\n", net.error);
		return 1;
	}
	for (uint32_t i = 0; i < RECEIVES; i++) {
		buffer[i].in = memory + (size_t)i * 2 * KVD_MESSAGE_MAX;
		buffer[i].out = buffer[i].in + KVD_MESSAGE_MAX;
		receive(&buffer[i]);
	}
	kvd_net_text(&net, net.address, net.address_length, at, sizeof(at));
	fprintf(stderr, "kvd_bare: listens on %s with %s\n", at, argv[1]);
	serve(strtoul(argv[6], NULL, 10));
	kvd_net_close(&net, NULL);
	kvd_sessions_close(&sessions);
	kvd_store_close(&store);
	free(memory);
	return 0;
}
