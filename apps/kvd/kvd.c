/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kvd: keys and values over libfabric, with continuations. Requests are received into a pool of buffers. Each buffer
 * has one operation at a time: a receive, whose continuation looks the request up and sends the answer, or that send,
 * whose continuation starts the next receive. Everything runs on the main thread. While it compacts the arena, in a
 * compute region, its handler or a checkpoint runs the continuations. At other times it looks for a while, and then
 * sleeps until the queue's descriptor, or contd_fd() if a daemon of contd's reads the queue too, says that there is
 * something to run.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config.h"
#include "notify.h"
#include "queue.h"
#include "sessions.h"
#include "store.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define REFUSALS 16u        /* sessions only to say no */
#define SLICE_NS (2 * MS)   /* how long it compacts between two looks at signals */
#define FAILURES_MOST 1000u /* receives that fail one after the other */
#define YIELD_NS 20000      /* without a request, after which others get the processor in between */
#define MORE_BYTES 1024

struct server;

struct buffer {
	struct contd_fabric_op op;
	struct server *server;
	enum { RECEIVES, MUST_RECEIVE, SENDS, MUST_SEND } state;
	struct kvd_session *session; /* whom it answers */
	uint64_t token;              /* the session's */
	size_t answer_bytes;
	bool begun;          /* the operation */
	uint64_t since;      /* SENDS, MUST_SEND: since when */
	struct buffer *next; /* among those that must */
	unsigned char *in, *out;
};

struct counts {
	uint64_t hellos, refused, foreign, malformed, strangers, oversized, answered, answered_computing;
	uint64_t sends_put_off, begins_put_off, sends_failed, sessions_lost, sessions_idle, reloads;
};

struct server {
	struct kvd_config config;
	struct kvd_limits limits;
	struct kvd_store store;
	struct kvd_sessions sessions;
	struct kvd_net net;
	struct fid_mr *mr;
	struct kvd_layout layout;
	struct contd_group *group;
	struct buffer *buffer;
	unsigned char *memory;
	struct buffer *first, **last; /* those that must receive or send, and could not yet */
	uint32_t sending;             /* answers that are under way, or must be sent */
	bool computing, draining, closing, broken;
	uint32_t failures; /* of receives, one after the other */
	uint64_t received; /* requests, so far */
	uint64_t drained_from;
	const char *config_path;
	char **set; /* those of --set, */
	int sets;   /* so many */
	const char *provider, *listen;
	int signals, epoll;
	struct counts counts;
};

static void say(const struct server *sv, unsigned level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* To stderr, where the service manager reads; the prefix is its level. */
static void say(const struct server *sv, unsigned level, const char *format, ...)
{
	char text[512];
	va_list args;

	if (level > sv->config.verbosity)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "%skvd: %s\n", getenv("JOURNAL_STREAM") ? (level ? "<6>" : "<3>") : "", text);
}

static void notify(const struct server *sv, const char *text)
{
	int rc = kvd_notify(text);

	if (rc < 0)
		say(sv, 0, "the service manager can't be told: %s", strerror(-rc));
}

/* ----------------------------------------------------------------------------------------------------- sessions --- */

static void end_if_unused(struct server *sv, struct kvd_session *s)
{
	if (s->open || s->answers || sv->closing)
		return;
	fi_av_remove(sv->net.av, (fi_addr_t *)&s->peer, 1, 0);
	kvd_sessions_free(&sv->sessions, s);
}

static void close_session(struct server *sv, struct kvd_session *s)
{
	sv->sessions.open -= s->open;
	s->open = false;
	end_if_unused(sv, s);
}

static struct kvd_session *new_session(struct server *sv, const void *address, uint32_t length)
{
	struct kvd_session *s = kvd_sessions_new(&sv->sessions, address, length);
	fi_addr_t peer;

	if (!s)
		return NULL;
	if (fi_av_insert(sv->net.av, address, 1, &peer, 0, NULL) != 1) {
		kvd_sessions_free(&sv->sessions, s);
		return NULL;
	}
	s->peer = peer;
	return s;
}

/* ---------------------------------------------------------------------------------------- receiving and sending --- */

static void on_received(int status, void *data);
static void on_sent(int status, void *data);

static void must(struct buffer *b, int state)
{
	b->state = state;
	b->next = NULL;
	*b->server->last = b;
	b->server->last = &b->next;
}

/* Begin the buffer's operation, unless it is begun already and libfabric would not take it. false: contd refuses, for
 * lack of memory. A buffer that was given up then would keep its session's place, too. */
static bool begin(struct buffer *b, contd_callback *cb)
{
	struct server *sv = b->server;

	if (!b->begun && contd_fabric_begin_continue(sv->net.queue, &b->op, cb, b, sv->group)) {
		sv->counts.begins_put_off++;
		return false;
	}
	b->begun = true;
	return true;
}

static void receive(struct buffer *b)
{
	struct server *sv = b->server;
	ssize_t rc;

	if (!begin(b, on_received)) {
		must(b, MUST_RECEIVE);
		return;
	}
	b->state = RECEIVES;
	rc = fi_recv(sv->net.endpoint, b->in, KVD_MESSAGE_MAX, NULL, FI_ADDR_UNSPEC, &b->op);
	if (rc == -FI_EAGAIN)
		must(b, MUST_RECEIVE);
	else if (rc) {
		say(sv, 0, "receiving: %s", fi_strerror((int)-rc));
		contd_fabric_withdraw(&b->op, (int)rc);
	}
}

/* May libfabric, or contd, go on refusing the answer? */
static bool may_wait(const struct buffer *b)
{
	return !b->session->lost && kvd_now_ns() - b->since < b->server->config.send_seconds * SECOND;
}

static void send_answer(struct buffer *b)
{
	struct server *sv = b->server;
	bool first = b->state != MUST_SEND;
	ssize_t rc;

	if (first) {
		b->since = kvd_now_ns();
		b->session->answers++;
		sv->sending++;
	}
	if (!begin(b, on_sent)) {
		if (may_wait(b))
			must(b, MUST_SEND);
		else
			on_sent(-FI_EAGAIN, b);
		return;
	}
	b->state = SENDS;
	rc = fi_send(sv->net.endpoint, b->out, b->answer_bytes, NULL, b->session->peer, &b->op);
	if (rc == -FI_EAGAIN && may_wait(b)) {
		sv->counts.sends_put_off += first;
		must(b, MUST_SEND);
	} else if (rc) {
		contd_fabric_withdraw(&b->op, (int)rc);
	}
}

/* Those that could not be started. */
static void try_again(struct server *sv)
{
	struct buffer *b = sv->first, *next;

	sv->first = NULL;
	sv->last = &sv->first;
	for (; b; b = next) {
		next = b->next;
		if (b->state == MUST_SEND)
			send_answer(b);
		else
			receive(b);
	}
}

static void on_sent(int status, void *data)
{
	struct buffer *b = data;
	struct server *sv = b->server;
	struct kvd_session *s = b->session;
	const char *text = b->begun && *b->op.text ? b->op.text : fi_strerror(-status);

	b->begun = false;
	sv->sending--;
	s->answers--;
	if (status && !sv->closing) {
		sv->counts.sends_failed++;
		s->lost = true;
		if (s->open) {
			sv->counts.sessions_lost++;
			say(sv, 2, "a client is lost: %s", text);
			close_session(sv, s);
			s = NULL;
		}
	}
	if (s)
		end_if_unused(sv, s);
	if (!sv->closing)
		receive(b);
}

/* ---------------------------------------------------------------------------------------------------- answering --- */

static const char *figures(const struct server *sv, char *text, size_t size)
{
	const struct counts *c = &sv->counts;

	snprintf(text, size,
		 "sessions %u\nsession_slots %u\nhellos %lu\nrefused %lu\nforeign %lu\nmalformed %lu\n"
		 "strangers %lu\noversized %lu\nanswered %lu\nanswered_computing %lu\nsends_put_off %lu\n"
		 "begins_put_off %lu\nsends_failed %lu\nsessions_lost %lu\nsessions_idle %lu\nreloads %lu\n"
		 "value_max %u\n",
		 sv->sessions.open, sv->sessions.count, c->hellos, c->refused, c->foreign, c->malformed, c->strangers,
		 c->oversized, c->answered, c->answered_computing, c->sends_put_off, c->begins_put_off, c->sends_failed,
		 c->sessions_lost, c->sessions_idle, c->reloads, sv->limits.value_max);
	return text;
}

static uint8_t flags_now(const struct server *sv)
{
	return sv->draining ? KVD_DRAINING : 0;
}

/* The answer's length, or 0: none. */
static size_t hello(struct server *sv, struct buffer *b, const struct kvd_message *m)
{
	struct kvd_message answer = {.operation = KVD_HELLO, .flags = KVD_ANSWER | flags_now(sv), .number = m->number};
	struct kvd_session *s;

	if (!kvd_net_plausible(&sv->net, m->value, m->value_length)) {
		sv->counts.malformed++;
		return 0;
	}
	/* Again from the same address: another client there, or one that has not got the answer. */
	s = kvd_sessions_at(&sv->sessions, m->value, m->value_length);
	if (!s) {
		bool refused = sv->draining || sv->sessions.open >= sv->config.sessions;

		s = new_session(sv, m->value, m->value_length);
		if (!s)
			return 0;
		if (refused) {
			answer.status = sv->draining ? KVD_CLOSING : KVD_NO_SESSION;
			sv->counts.refused++;
		} else {
			s->open = true;
			sv->sessions.open++;
			sv->counts.hellos++;
		}
	}
	b->session = s;
	if (s->open) {
		s->used_ns = kvd_now_ns();
		sv->layout.key_max = sv->limits.key_max;
		sv->layout.value_max = sv->limits.value_max;
		answer.session = s->token;
		answer.value = (const unsigned char *)&sv->layout;
		answer.value_length = KVD_LAYOUT_BYTES;
	}
	return kvd_format(b->out, &answer);
}

static size_t answer_to(struct server *sv, struct buffer *b, size_t bytes)
{
	struct kvd_message m, answer;
	enum kvd_parsed parsed = kvd_parse(b->in, bytes, false, &m);
	char text[MORE_BYTES];

	if (parsed == KVD_FOREIGN) {
		sv->counts.foreign++;
		return 0;
	}
	if (parsed == KVD_PARSED && m.operation == KVD_HELLO)
		return hello(sv, b, &m);
	b->session = kvd_sessions_find(&sv->sessions, m.session);
	if (!b->session || !b->session->open) {
		sv->counts.strangers++;
		return 0;
	}
	b->session->used_ns = kvd_now_ns();
	if (parsed == KVD_PARSED && m.operation != KVD_BYE)
		return kvd_serve(&sv->store, &sv->limits, &m,
				 m.operation == KVD_STAT ? figures(sv, text, sizeof(text)) : NULL, flags_now(sv),
				 b->out);
	answer = (struct kvd_message){.operation = m.operation,
				      .status = parsed == KVD_PARSED ? KVD_OK : KVD_BAD,
				      .flags = KVD_ANSWER | flags_now(sv),
				      .number = m.number,
				      .session = m.session};
	if (parsed == KVD_PARSED) { /* goodbye: the answer is the last */
		b->session->open = false;
		sv->sessions.open--;
	} else {
		sv->counts.malformed++;
		if (!answer.operation || answer.operation >= KVD_OPERATIONS)
			return 0; /* a client could not tell what it is the answer to */
	}
	return kvd_format(b->out, &answer);
}

/* A peer's fault ends one receive. Where one after the other fails the queue does, or the device has gone. */
static bool may_go_on(struct server *sv, const struct buffer *b, int status)
{
	const char *text = *b->op.text ? b->op.text : fi_strerror(-status);

	if (sv->broken)
		return false;
	say(sv, 2, "receiving: %s", text);
	sv->broken = ++sv->failures > FAILURES_MOST;
	if (sv->broken)
		say(sv, 0, "nothing is received any more: %s", text);
	return !sv->broken;
}

static void on_received(int status, void *data)
{
	struct buffer *b = data;
	struct server *sv = b->server;

	b->begun = false;
	if (sv->closing)
		return;
	if (status) {
		sv->counts.oversized += status == -FI_ETRUNC;
		if (status != -FI_ETRUNC && !may_go_on(sv, b, status))
			return;
		receive(b);
		return;
	}
	sv->failures = 0;
	sv->received++;
	b->answer_bytes = answer_to(sv, b, b->op.length);
	if (!b->answer_bytes) {
		receive(b);
		return;
	}
	sv->counts.answered++;
	sv->counts.answered_computing += sv->computing;
	send_answer(b);
}

/* --------------------------------------------------------------------------------------------------- compacting --- */

static void hold(void *data)
{
	(void)data;
	contd_guard_begin();
}

static void release(void *data)
{
	(void)data;
	contd_guard_end();
}

static void compact(struct server *sv)
{
	uint64_t until = kvd_now_ns() + SLICE_NS;
	bool more = true;

	sv->computing = true;
	contd_compute_begin();
	while (more && !sv->first) {
		for (int i = 0; i < 32 && more; i++) {
			more = kvd_store_compact(&sv->store, &sv->limits);
			contd_checkpoint();
		}
		if (kvd_now_ns() > until)
			break;
	}
	contd_compute_end();
	sv->computing = false;
}

/* ------------------------------------------------------------------------------------------------------ signals --- */

/* Defaults, the file, and --set, which goes first, at the start and at each reload. */
static int settings(const struct server *sv, struct kvd_config *config, char *error, size_t size)
{
	int rc;

	kvd_config_defaults(config);
	rc = sv->config_path ? kvd_config_read(config, sv->config_path, error, size) : 0;
	for (int i = 0; i < sv->sets && !rc; i++)
		rc = kvd_config_set(config, sv->set[i], error, size);
	return rc;
}

/* May values be so large? */
static int check_segment(const struct kvd_config *config, char *error, size_t size)
{
	uint64_t least = 16 * kvd_record_bytes(KVD_KEY_MAX, (uint32_t)config->value_max);

	if (config->segment_kb * 1024 >= least)
		return 0;
	snprintf(error, size, "segment_kb must be at least %lu for this value_max", (least + 1023) / 1024);
	return -EINVAL;
}

static void take_limits(struct server *sv)
{
	sv->limits = (struct kvd_limits){.key_max = (uint32_t)sv->config.key_max,
					 .value_max = (uint32_t)sv->config.value_max,
					 .compact_percent = (uint32_t)sv->config.compact_percent};
}

static void reload(struct server *sv)
{
	struct kvd_config fresh, taken = sv->config;
	char text[400], error[300];
	const char *refused = NULL;
	int rc;

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lu", kvd_now_ns() / 1000);
	notify(sv, text);
	if (!sv->config_path) {
		say(sv, 1, "there is no configuration file to read again");
	} else if ((rc = settings(sv, &fresh, error, sizeof(error))) != 0 ||
		   (refused = kvd_config_take(&taken, &fresh), rc = check_segment(&taken, error, sizeof(error))) != 0) {
		say(sv, 0, "the configuration stays as it was: %s", error);
	} else {
		if (refused)
			say(sv, 0, "%s can't be changed while kvd runs", refused);
		sv->config = taken;
		take_limits(sv);
		sv->counts.reloads++;
		say(sv, 1, "configuration read");
	}
	notify(sv, "READY=1");
}

static void look_at_signals(struct server *sv)
{
	struct signalfd_siginfo info;

	while (read(sv->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			reload(sv);
		} else if (!sv->draining) {
			notify(sv, "STOPPING=1");
			say(sv, 1, "ending: what is under way is answered");
			sv->draining = true;
			sv->drained_from = kvd_now_ns();
		}
	}
}

/* Sleep until there is something to run, a signal, or so long has passed. */
static void sleep_for(struct server *sv, uint64_t ns)
{
	struct fid *fid = &sv->net.cq->fid;
	struct epoll_event event[4];
	struct timespec ts;
	int n;

	/* The descriptor need not report completions that have come already. */
	if (ns && sv->net.sleeps && fi_trywait(sv->net.fabric, &fid, 1) != 0)
		ns = 0;
	ts = (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
	n = epoll_pwait2(sv->epoll, event, 4, &ts, NULL); /* contd's own signal ends it, and something is there then */
	if (n < 0 && errno == ENOSYS)                     /* before Linux 5.11 */
		n = epoll_wait(sv->epoll, event, 4, (int)((ns + MS - 1) / MS));
	for (int i = 0; i < n; i++)
		if (event[i].data.fd == sv->signals)
			look_at_signals(sv);
}

/* ----------------------------------------------------------------------------------------------------- the loop --- */

static void sweep(struct server *sv, uint64_t now)
{
	for (uint32_t i = 0; i < sv->sessions.room; i++) {
		struct kvd_session *s = &sv->sessions.session[i];

		if (!s->token || !s->open || now < s->used_ns || now - s->used_ns < sv->config.idle_seconds * SECOND)
			continue;
		sv->counts.sessions_idle++;
		close_session(sv, s);
	}
}

static bool drained(const struct server *sv, uint64_t now, uint64_t quiet_from)
{
	uint64_t last = quiet_from > sv->drained_from ? quiet_from : sv->drained_from;

	if (now - sv->drained_from > sv->config.drain_ms * MS)
		return true;
	return !sv->sending && (!sv->sessions.open || now - last > sv->config.drain_quiet_ms * MS);
}

/*
 * How long to sleep if no descriptor tells of completions: as long as the server has been idle already. So a client
 * waits at most twice as long as it would have anyway.
 */
static uint64_t doze_ns(uint64_t idle)
{
	return idle < 20000 ? 20000 : idle > MS ? MS : idle;
}

static void serve(struct server *sv)
{
	uint64_t active = kvd_now_ns(), swept = active, looked = active, seen = sv->received;

	for (;;) {
		uint64_t now;
		bool compacts;
		uint64_t ns = SECOND;

		contd_poll(0);
		try_again(sv);
		now = kvd_now_ns();
		if (sv->received != seen) {
			seen = sv->received;
			active = now;
		}
		if (sv->broken || (sv->draining && drained(sv, now, active)))
			return;
		if (now - swept > SECOND) {
			sweep(sv, now);
			swept = now;
		}
		compacts = kvd_store_wants_compaction(&sv->store, &sv->limits);
		if (compacts || now - active < sv->config.spin_us * 1000)
			ns = 0;
		else if (sv->first || !sv->net.sleeps) /* until libfabric takes more; the queue has no descriptor */
			ns = doze_ns(now - active);
		else if (sv->draining)
			ns = 10 * MS;
		if (ns || now - looked > MS) {
			sleep_for(sv, ns);
			looked = now;
		} else if (!compacts && now - active > YIELD_NS) {
			sched_yield(); /* a client on the same processor, perhaps: the call costs what a request does */
		}
		if (compacts)
			compact(sv);
	}
}

/* ------------------------------------------------------------------------------------------ starting and ending --- */

#ifdef __SANITIZE_THREAD__
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *at, size_t bytes, const char *why);
#endif

static int share_table(struct server *sv)
{
	int rc;

	kvd_store_layout(&sv->store, &sv->limits, &sv->layout);
	if (getrandom(&sv->layout.instance, sizeof(sv->layout.instance), 0) < 0)
		sv->layout.instance = kvd_now_ns();
	if (!sv->net.one_sided)
		return 0;
	rc = fi_mr_reg(sv->net.domain, sv->store.memory, sv->store.bytes, FI_REMOTE_READ, 0, 1, 0, &sv->mr, NULL);
	if (!rc && sv->net.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		rc = fi_mr_bind(sv->mr, &sv->net.endpoint->fid, 0);
		rc = rc ? rc : fi_mr_enable(sv->mr);
	}
	if (rc)
		return rc;
#ifdef __SANITIZE_THREAD__
	/* The provider reads it while the server writes: that is what sequence numbers and checksums are for. */
	AnnotateBenignRaceSized(__FILE__, __LINE__, sv->store.memory, sv->store.bytes, "one-sided reads");
#endif
	sv->layout.one_sided = 1;
	sv->layout.mr_key = fi_mr_key(sv->mr);
	sv->layout.mr_base =
		sv->net.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)sv->store.memory : 0;
	return 0;
}

/* Before there are other threads: providers start some (sockets), which would get the signals, and inherit what is
 * blocked. */
static int open_signals(struct server *sv)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	sv->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return sv->signals < 0 ? -1 : 0;
}

/* The descriptors that end the thread's sleep. */
static int open_epoll(struct server *sv)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd[3];

	sv->epoll = epoll_create1(EPOLL_CLOEXEC);
	fd[0] = sv->signals;
	fd[1] = contd_fd();
	if (sv->net.sleeps && fi_control(&sv->net.cq->fid, FI_GETWAIT, &fd[2]) != 0)
		return -1;
	for (int i = 0; i < 2 + sv->net.sleeps; i++) {
		event.data.fd = fd[i];
		if (fd[i] < 0 || epoll_ctl(sv->epoll, EPOLL_CTL_ADD, fd[i], &event))
			return -1;
	}
	return 0;
}

static int start(struct server *sv)
{
	struct contd_config contd = {.size = sizeof(contd), .agent = CONTD_AGENT_REGION};
	struct contd_thread_attr thread = {.size = sizeof(thread), .stack_bytes = 128 * 1024};
	struct kvd_store_config store = {.slots = sv->config.slots,
					 .arena_bytes = sv->config.arena_mb << 20,
					 .segment_bytes = sv->config.segment_kb << 10,
					 .hold = hold,
					 .release = release};
	uint32_t n = (uint32_t)sv->config.receives;
	uint64_t random;
	int rc;

	if (getrandom(&random, sizeof(random), 0) < 0 || getrandom(&store.hash_seed, sizeof(store.hash_seed), 0) < 0)
		return say(sv, 0, "no random numbers: %s", strerror(errno)), -1;
	prctl(PR_SET_TIMERSLACK, 1000ul); /* naps are as short as 20 µs: prctl(2) */
	rc = kvd_store_open(&sv->store, &store);
	rc = rc ? rc : kvd_sessions_open(&sv->sessions, (uint32_t)sv->config.sessions + REFUSALS, random);
	if (rc)
		return say(sv, 0, "the table: %s", strerror(-rc)), -1;
	sv->buffer = calloc(n, sizeof(*sv->buffer));
	sv->memory = malloc((size_t)n * 2 * KVD_MESSAGE_MAX);
	if (!sv->buffer || !sv->memory)
		return say(sv, 0, "out of memory"), -1;
	if (open_signals(sv))
		return say(sv, 0, "signals: %s", strerror(errno)), -1;
	if (contd_init(&contd) || contd_thread_attach(&thread) || contd_group_create(NULL, &sv->group))
		return say(sv, 0, "contd: %s", contd_error_text()), -1;
	if (kvd_queue_open(&sv->net, sv->provider, sv->listen, true, 2 * n + 64, NULL))
		return say(sv, 0, "%s on %s: %s", sv->provider, sv->listen, sv->net.error), -1;
	if (open_epoll(sv))
		return say(sv, 0, "the queue's descriptor: %s", strerror(errno)), -1;
	rc = share_table(sv);
	if (rc)
		return say(sv, 0, "the table can't be shared: %s", fi_strerror(-rc)), -1;
	for (uint32_t i = 0; i < n; i++) {
		sv->buffer[i].server = sv;
		sv->buffer[i].in = sv->memory + (size_t)i * 2 * KVD_MESSAGE_MAX;
		sv->buffer[i].out = sv->buffer[i].in + KVD_MESSAGE_MAX;
		receive(&sv->buffer[i]);
	}
	return 0;
}

/* In order: operations under way end, nothing new comes, no thread reads the table. */
static void stop(struct server *sv)
{
	sv->closing = true;
	kvd_queue_close(&sv->net, sv->mr);
	contd_group_wait(sv->group, 5 * (int64_t)SECOND);
	contd_group_destroy(sv->group);
	contd_thread_detach();
	contd_fini();
	close(sv->epoll);
	close(sv->signals);
	kvd_sessions_close(&sv->sessions);
	kvd_store_close(&sv->store);
	free(sv->buffer);
	free(sv->memory);
	free(sv->set);
}

static const char usage[] =
	"usage: kvd [--listen HOST:PORT] [--provider NAME] [--config FILE] [--set NAME=VALUE]...\n"
	"\n"
	"A key-value server on a reliable-datagram endpoint of libfabric's; apps/kvd/README.md tells the rest.\n"
	"\n"
	"  --listen HOST:PORT  where; port 0: any that is free (default " KVD_LISTEN ")\n"
	"  --provider NAME     libfabric's: " KVD_PROVIDER " (default), shm, udp;ofi_rxd, sockets, net\n"
	"  --config FILE       settings, read again at SIGHUP\n"
	"  --set NAME=VALUE    one setting, after those of the file\n"
	"\n"
	"SIGTERM and SIGINT: answer what is under way, and end. With NOTIFY_SOCKET set the service manager is told.\n";

static int options(struct server *sv, int argc, char **argv)
{
	static const struct option known[] = {
		{"listen", required_argument, NULL, 'l'}, {"provider", required_argument, NULL, 'p'},
		{"config", required_argument, NULL, 'c'}, {"set", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},         {0}};
	char error[300] = "";
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 'l')
			sv->listen = optarg;
		else if (option == 'p')
			sv->provider = optarg;
		else if (option == 'c')
			sv->config_path = optarg;
		else if (option == 's')
			sv->set[sv->sets++] = optarg;
		else if (option == 'h')
			return fputs(usage, stdout), 1;
		else
			return fputs(usage, stderr), -1;
	}
	if (optind != argc)
		return fputs(usage, stderr), -1;
	if (settings(sv, &sv->config, error, sizeof(error)) || check_segment(&sv->config, error, sizeof(error)))
		return say(sv, 0, "%s", error), -1;
	return 0;
}

int main(int argc, char **argv)
{
	static struct server server;
	struct server *sv = &server;
	char at[128], text[400];
	int rc;

	sv->set = calloc((size_t)argc, sizeof(*sv->set));
	if (!sv->set)
		return 1;
	sv->provider = KVD_PROVIDER;
	sv->listen = KVD_LISTEN;
	sv->last = &sv->first;
	rc = options(sv, argc, argv);
	if (rc)
		return rc < 0 ? 2 : 0;
	take_limits(sv);
	if (start(sv))
		return 1;
	kvd_net_text(&sv->net, sv->net.address, sv->net.address_length, at, sizeof(at));
	say(sv, 1, "listens on %s with %s%s", at, sv->provider, sv->mr ? ", one-sided reads" : "");
	snprintf(text, sizeof(text), "READY=1\nSTATUS=listens on %s\nX_KVD_LISTEN=%s", at, at);
	notify(sv, text);
	serve(sv);
	stop(sv);
	say(sv, 1, "ended; %lu requests were answered", sv->counts.answered);
	return sv->broken;
}
