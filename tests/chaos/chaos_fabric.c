/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every public call of contd-fabric, by several threads, in random order, and deeds at test points: see chaos.h for
 * what a seed decides, and chaos_core.c for the core's calls.
 *
 * A run is a row of rounds, each with one provider. A real one's endpoints send to themselves and to each other. The
 * queues and counters of `fake` belong to this program, which decides what they report and when. A round is a row of
 * epochs:
 *
 *   1. operations     each thread makes so many calls
 *   2. quiet          the threads park
 *   3. one entitled   one that may run what is complete (polls, tests, a wait, a region, the daemon)
 *                     does so, alone; a few more operations are completed first; all that it may run must run
 *                     within a bound
 *   4. all            everything is completed, all threads poll, nothing may be left
 *
 * The rules are checked when a callback begins: entitled(), check_outcome(). An operation's record has a use, a number
 * that goes up each time. A continuation's data names the record and the use. So one that runs twice, late, or after it
 * was cancelled is found.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <contd/contd.h>
#include <contd/fabric.h>

#include "chaos.h"
#include "gate.h"
#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

#define RECS 256u
#define GROUPS 256u /* of a round */
#define LIVE_GROUPS 8u
#define PORTS 128u /* of a round */
#define LIVE_PORTS 4u
#define COUNTERS 64u /* of a round */
#define LIVE_COUNTERS 2u
#define MANYS 6u
#define ROOM 4u /* of a multi-receive buffer */
#define RING 1024u
#define NONE UINT32_MAX
#define DEPTH 3u
#define SIZE 64u

enum class {
	C_FAKE,
	C_TCP,
	C_SHM,
	C_UDP,
	C_SOCKETS,
	C_NET,
	C_PORT,
	C_STOP,
	C_BREAK,
	C_ERROR,
	C_FOREIGN,
	C_MANY,
	C_COUNTER,
	C_WITHDRAW,
	C_CANCEL,
	C_TOGETHER,
	C_GROUP,
	C_POLL,
	C_TEST,
	C_REGION,
	C_GUARD,
	C_ATTACH,
	C_DAEMON,
	C_CONFIGURE,
	C_SIGNAL,
	C_ACTIONS,
	C_POINTS,
	C_OWNED,
	C_MUTEX,
	C_ALONE_POLL,
	C_ALONE_WAIT,
	C_ALONE_REGION,
	C_ALONE_DAEMON,
	C_OUTLIVE,
	C_END
};
static struct chaos_class classes[C_END] = {
	[C_FAKE] = {"fake", "rounds with queues and counters of the program's own", 0},
	[C_TCP] = {"tcp", "rounds with tcp;ofi_rxm", 0},
	[C_SHM] = {"shm", "rounds with shm", 0},
	[C_UDP] = {"udp", "rounds with udp;ofi_rxd", 0},
	[C_SOCKETS] = {"sockets", "rounds with sockets", 0},
	[C_NET] = {"net", "rounds with net", 0},
	[C_PORT] = {"port", "open and close queues, with operations under way", 0},
	[C_STOP] = {"stop", "contd_fabric_queue_stop, while others begin", 0},
	[C_BREAK] = {"break", "queues that fail", 0},
	[C_ERROR] = {"error", "operations that fail, fi_cancel, cut messages, interrupted reads", 0},
	[C_FOREIGN] = {"foreign", "completions that are none of contd's", 0},
	[C_MANY] = {"many", "multi-receive buffers", 0},
	[C_COUNTER] = {"counter", "counters", 0},
	[C_WITHDRAW] = {"withdraw", "contd_fabric_withdraw", 0},
	[C_CANCEL] = {"cancel", "contd_cancel of an operation's continuation", 0},
	[C_TOGETHER] = {"together", "continuations on an operation and an event", 0},
	[C_GROUP] = {"group", "give groups back with continuations outstanding, and make others", 0},
	[C_POLL] = {"poll", "contd_poll", 0},
	[C_TEST] = {"test", "contd_group_test, and contd_group_wait for a short while", 0},
	[C_REGION] = {"region", "compute regions", 0},
	[C_GUARD] = {"guard", "guards", 0},
	[C_ATTACH] = {"attach", "attach and detach", 0},
	[C_DAEMON] = {"daemon", "start and stop the daemon", 0},
	[C_CONFIGURE] = {"configure", "switch the agent", 0},
	[C_SIGNAL] = {"signal", "raise contd's signal, or the program's", 0},
	[C_ACTIONS] = {"actions", "callbacks that begin operations, complete others, poll", 0},
	[C_POINTS] = {"points", "deeds at test points", 0},
	[C_OWNED] = {"owned", "queues that only their own thread reads", 0},
	[C_MUTEX] = {"mutex", "queues with a mutex of the program's", 0},
	[C_ALONE_POLL] = {"alone-poll", "polls and tests alone run what they may", 0},
	[C_ALONE_WAIT] = {"alone-wait", "a wait alone runs its group", 0},
	[C_ALONE_REGION] = {"alone-region", "a region alone runs what it may", 0},
	[C_ALONE_DAEMON] = {"alone-daemon", "the daemon alone runs what it may", 0},
	[C_OUTLIVE] = {"outlive", "queues and operations that outlive contd_fini()", 0},
};

static bool on(enum class c)
{
	return !classes[c].off;
}

/* ------------------------------------------------------------------------------------------------------ records --- */

enum state { FREE, MAKING, ARMED, RUNNING, RAN, CANCELLED, BARE, ABANDONED };
enum phase { BEFORE, BEGUN, PUT, WITHDRAWN };
#define WORD(use, s) ((uint32_t)(use) << 4 | (uint32_t)(s))
#define USE(word) ((word) >> 4)
#define STATE(word) ((word)&15u)

enum kind { FAKE_OP, SEND, RECV, COUNT };

/* An operation. Each user holds one of `refs`: the call that makes it, its continuation or the lack of one, passing
 * threads. */
struct rec {
	struct contd_fabric_op op;
	struct contd_event extra;
	struct contd_handle handle;
	uint32_t state, phase; /* each with the use */
	uint32_t refs;
	uint32_t kind, port, group, together, carried, used_together;
	int32_t extra_code, put_status, withdrawn_status;
	uint32_t cancelled; /* fi_cancel was called */
	uint32_t stays;     /* libfabric may still write to it: until the endpoint is closed */
	uint64_t put_data, put_length, tag, errors_before, done_ns;
	char buffer[SIZE];
};

struct grec {
	struct contd_group *group;
	uint32_t flags, users, destroyed;
	int32_t max_poll;
};

struct fake {
	struct fid_cq cq;
	struct fi_ops fid_ops;
	struct fi_ops_cq ops;
	int fd;
	uint32_t lock;
	struct fi_cq_err_entry entry[RING];
	uint64_t put, got;
	uint32_t port;
};

struct prec {
	struct contd_fabric_queue *queue;
	struct fake *fake;
	struct fid_cq *cq; /* adopted */
	struct fid_ep *ep;
	fi_addr_t address;
	pthread_mutex_t mutex;
	uint32_t users, stopping, broken, closed, with_mutex, always, owner, format;
	uint64_t foreign_put, foreign_seen;
};

struct crec {
	struct fid_cntr cntr;
	struct fi_ops_cntr ops;
	struct contd_fabric_counter *counter;
	uint64_t value, errors;
	uint32_t users, closing;
};

struct mrec {
	struct contd_fabric_many many;
	struct contd_fabric_entry room[ROOM];
	uint32_t lock;                                 /* takes, continues, begins, withdraws */
	uint32_t live, port, group, registered, after; /* after contd_fini() */
	uint64_t put, got;
	bool last_put, over; /* over: the last was taken */
};

static struct rec recs[RECS];
static struct grec groups[GROUPS];
static struct prec ports[PORTS];
static struct crec counters[COUNTERS];
static struct mrec manys[MANYS];
static uint32_t group_count, port_count, counter_count;
static uint32_t live_group[LIVE_GROUPS], live_port[LIVE_PORTS], live_counter[LIVE_COUNTERS];

enum order { O_IDLE, O_REGION, O_POLL, O_END };

struct self {
	struct chaos_thread *chaos;
	pthread_t thread;
	uint32_t attached, depth, in_fake, in_user_handler, registering, daemon;
	uint32_t testing; /* a group */
	uint32_t parked, order, obeyed;
};

static struct self selves[CHAOS_THREADS];
static struct self *daemon_self;
static uint32_t worker_count, running, ended_contd, daemons, agent_now, epoch_of_threads;
static uint64_t tags, total_made, total_begun, total_ran, total_cancelled, total_rounds[6], total_epochs, total_entries,
	total_foreign;
static uint32_t total_alone[C_END];

static struct fid_fabric *fabric, fake_fabric;
static struct fi_ops_fabric fake_fabric_ops;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fi_info *info;
static enum class provider;

static struct self *self(void)
{
	struct chaos_thread *t = chaos_me ? chaos_me : chaos_stranger();

	return t ? &selves[t->number] : NULL;
}

struct chaos_thread *chaos_stranger(void)
{
	if (contd__load(&contd__self.context) != CONTEXT_DAEMON || !daemon_self)
		return NULL;
	return daemon_self->chaos;
}

/* One that is live and may be used until leave(); NONE. */
static uint32_t live_enter(const uint32_t *live, uint32_t n, uint64_t r, uint32_t *(*users)(uint32_t))
{
	uint32_t i = contd__load_seq(&live[r % n]);

	return i != NONE && enter(users(i)) ? i : NONE;
}

static uint32_t *group_users(uint32_t i)
{
	return &groups[i].users;
}

static uint32_t *port_users(uint32_t i)
{
	return &ports[i].users;
}

/* One more reference to a record that is in use, of this use. */
static bool rec_get(struct rec *c)
{
	uint32_t n = contd__load_seq(&c->refs);

	while (n && !contd__cas(&c->refs, &n, n + 1))
		;
	return n != 0;
}

static void rec_put(struct rec *c)
{
	uint32_t word = contd__load_seq(&c->state);

	if (contd__sub(&c->refs, 1) != 1)
		return;
	/* The last. */
	if (!c->stays)
		contd__store_seq(&c->state, WORD(USE(word), FREE));
}

static struct rec *rec_new(uint64_t r)
{
	for (uint32_t i = 0; i < RECS; i++) {
		struct rec *c = &recs[(r + i) % RECS];
		uint32_t word = contd__load_seq(&c->state);

		if (STATE(word) == FREE && contd__cas(&c->state, &word, WORD((USE(word) + 1) & 0xffffff, MAKING))) {
			uint32_t use = USE(contd__load(&c->state));

			memset(&c->op, 0x5a, sizeof(c->op));
			memset(c->buffer, 0, sizeof(c->buffer));
			c->kind = c->together = c->carried = c->cancelled = c->stays = c->used_together = 0;
			c->port = c->group = NONE;
			c->extra_code = c->put_status = c->withdrawn_status = 0;
			c->done_ns = 0;
			contd__store_seq(&c->phase, WORD(use, BEFORE));
			contd__add(&total_made, 1); /* before refs: see finish_all() */
			contd__store_seq(&c->refs, 1);
			return c;
		}
	}
	return NULL;
}

static void *data_of(const struct rec *c)
{
	return (void *)((uintptr_t)USE(contd__load(&c->state)) << 16 | (uintptr_t)(c - recs));
}

static bool set_phase(struct rec *c, enum phase from, enum phase to)
{
	uint32_t use = USE(contd__load_seq(&c->state)), word = WORD(use, from);

	return contd__cas(&c->phase, &word, WORD(use, to));
}

/* -------------------------------------------------------------------------------------------- queues of our own --- */

/* Handlers of the thread that holds it stay away: in_fake. */
static void fake_lock(struct fake *f, struct self *me)
{
	me->in_fake++;
	while (!try_lock(&f->lock))
		sched_yield();
}

static void fake_unlock(struct fake *f, struct self *me)
{
	unlock(&f->lock);
	me->in_fake--;
}

static void fake_enter(struct fake *f)
{
	const struct prec *p = &ports[f->port];
	const struct self *me = self();

	if (!me)
		chaos_wrong("queue %u is read by a thread that is neither the program's nor the daemon", f->port);
	if (contd__load(&p->closed))
		chaos_wrong("queue %u is read after it was closed", f->port);
	if (contd__load(&ended_contd))
		chaos_wrong("queue %u is read after contd_fini()", f->port);
	if (p->owner != NONE && p->owner != me->chaos->number)
		chaos_wrong("queue %u, that only thread %u may read, is read by thread %u", f->port, p->owner,
			    me->chaos->number);
	if (contd__load(&contd__self.context) == CONTEXT_HANDLER)
		chaos_wrong("queue %u is read in a handler outside a region", f->port);
}

static ssize_t fake_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct fake *f = (struct fake *)cq;
	const struct prec *p = &ports[f->port];
	struct self *me = self();
	static const size_t bytes[] = {[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
				       [FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
				       [FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
				       [FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry)};
	char *to = buf;
	ssize_t n = 0;

	fake_enter(f);
	if (contd__load_seq(&p->broken))
		return -(ssize_t)contd__load_seq(&p->broken);
	if (on(C_ERROR) && chaos_draw_at(16) == 0)
		return -FI_EINTR;
	fake_lock(f, me);
	for (; n < (ssize_t)count && f->got < f->put && f->entry[f->got % RING].err == 0; n++) {
		const struct fi_cq_err_entry *e = &f->entry[f->got++ % RING];
		struct fi_cq_tagged_entry t = {e->op_context, e->flags, e->len, e->buf, e->data, e->tag};

		memcpy(to, &t, bytes[p->format]);
		to += bytes[p->format];
	}
	if (!n)
		n = f->got < f->put ? -FI_EAVAIL : -FI_EAGAIN;
	fake_unlock(f, me);
	return n;
}

static ssize_t fake_readerr(struct fid_cq *cq, struct fi_cq_err_entry *to, uint64_t flags)
{
	struct fake *f = (struct fake *)cq;
	struct self *me = self();
	ssize_t rc = -FI_EAGAIN;

	(void)flags;
	fake_enter(f);
	fake_lock(f, me);
	if (f->got < f->put && f->entry[f->got % RING].err) {
		*to = f->entry[f->got++ % RING];
		rc = 1;
	}
	fake_unlock(f, me);
	return rc;
}

static const char *fake_strerror(struct fid_cq *cq, int error, const void *data, char *to, size_t room)
{
	(void)data;
	fake_enter((struct fake *)cq);
	snprintf(to, room, "fake error %d", error);
	return to;
}

static int fake_control(struct fid *fid, int command, void *arg)
{
	struct fake *f = (struct fake *)fid;

	if (command != FI_GETWAIT || f->fd < 0)
		return -FI_ENOSYS;
	*(int *)arg = f->fd;
	return 0;
}

static int fake_trywait(struct fid_fabric *of, struct fid **fids, int count)
{
	struct fake *f = (struct fake *)fids[0];
	struct self *me = self();
	uint64_t number;
	int rc;

	(void)of;
	(void)count;
	fake_enter(f);
	fake_lock(f, me);
	(void)!read(f->fd, &number, sizeof(number));
	rc = f->got < f->put ? -FI_EAGAIN : 0;
	fake_unlock(f, me);
	return rc;
}

/* false: no room, or this thread is inside a queue already. In a region a tick reads queues, so the program holds a
 * guard while it has a lock of theirs. */
static bool fake_put(struct prec *p, const struct fi_cq_err_entry *e)
{
	struct self *me = self();
	struct fake *f = p->fake;
	uint64_t one = 1;
	bool good;

	if (!me || contd__load(&me->in_fake))
		return false;
	contd_guard_begin();
	fake_lock(f, me);
	good = f->put - f->got < RING;
	if (good) {
		f->entry[f->put++ % RING] = *e;
		if (f->fd >= 0)
			(void)!write(f->fd, &one, sizeof(one));
	}
	fake_unlock(f, me);
	contd_guard_end();
	return good;
}

static uint64_t fake_cntr_read(struct fid_cntr *cntr)
{
	return contd__load_seq(&((struct crec *)cntr)->value);
}

static uint64_t fake_cntr_readerr(struct fid_cntr *cntr)
{
	return contd__load_seq(&((struct crec *)cntr)->errors);
}

static struct fake *fake_new(uint32_t port, bool fd)
{
	struct fake *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->port = port;
	f->fd = fd ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
	f->fid_ops.size = sizeof(f->fid_ops);
	f->fid_ops.control = fake_control;
	f->ops.size = sizeof(f->ops);
	f->ops.read = fake_read;
	f->ops.readerr = fake_readerr;
	f->ops.strerror = fake_strerror;
	f->cq.fid.fclass = FI_CLASS_CQ;
	f->cq.fid.ops = &f->fid_ops;
	f->cq.ops = &f->ops;
	return f;
}

static void fake_free(struct fake *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

/* -------------------------------------------------------------------------------------------------------- rules --- */

static void entitled(const struct self *me, uint32_t group, const char *what, uint32_t index)
{
	const struct grec *g = &groups[group];
	uint32_t context = contd__load(&contd__self.context);

	if (context == CONTEXT_HANDLER && !(g->flags & CONTD_ASYNC_SIGNAL_SAFE))
		chaos_wrong("%s %u of group %u, flags %#x, runs in a handler outside a region", what, index, group,
			    g->flags);
	if (me == daemon_self && !(g->flags & CONTD_THREAD_ANY))
		chaos_wrong("%s %u of group %u, flags %#x, runs on the daemon", what, index, group, g->flags);
	if (g->flags & CONTD_POLL_ONLY && !contd__load(&g->destroyed) && me->testing != group)
		chaos_wrong("%s %u of the poll-only group %u runs outside its tests and waits", what, index, group);
}

/* Check that op.status is one of the possible outcomes. */
static void check_outcome(const struct rec *c, uint32_t index)
{
	uint32_t phase = STATE(contd__load_seq(&c->phase));
	const struct contd_fabric_op *op = &c->op;
	int status = op->status;

	if (phase == WITHDRAWN ? status && !*op->text : (status == 0) != (*op->text == 0))
		chaos_wrong("operation %u has status %d and the text \"%s\"", index, status, op->text);
	if (phase == WITHDRAWN && status == c->withdrawn_status)
		return;
	if (c->kind == COUNT) {
		const struct crec *k = &counters[c->port];

		if (status == 0         ? contd__load_seq(&k->value) >= op->threshold
		    : status == -FI_EIO ? contd__load_seq(&k->errors) > c->errors_before
					: status == -FI_ECANCELED && contd__load_seq(&k->closing))
			return;
	} else {
		const struct prec *p = &ports[c->port];

		if (status == -FI_ECANCELED && contd__load_seq(&p->stopping))
			return;
		if (contd__load_seq(&p->broken) && status == -(int)contd__load_seq(&p->broken))
			return;
		if (c->kind == FAKE_OP && phase == PUT && status == c->put_status) {
			if (p->format != FI_CQ_FORMAT_CONTEXT && op->length != c->put_length)
				chaos_wrong("operation %u has the length %zu instead of %zu", index, op->length,
					    (size_t)c->put_length);
			if ((p->format == FI_CQ_FORMAT_DATA || p->format == FI_CQ_FORMAT_TAGGED) &&
			    op->data != c->put_data)
				chaos_wrong("operation %u has another's data", index);
			return;
		}
		if (c->kind == SEND && status == 0)
			return;
		if (c->kind == RECV && status == 0) {
			uint64_t tag;

			memcpy(&tag, c->buffer, sizeof(tag));
			if (tag != c->tag || (p->format != FI_CQ_FORMAT_CONTEXT && op->length != c->put_length))
				chaos_wrong("receive %u of the tag %#llx has a message of %#llx, length %zu", index,
					    (unsigned long long)c->tag, (unsigned long long)tag, op->length);
			return;
		}
		if (c->kind == RECV && status == -FI_ECANCELED && contd__load_seq(&c->cancelled))
			return;
	}
	chaos_wrong("operation %u (kind %u, port %u, phase %u) ends with the status %d: %s", index, c->kind, c->port,
		    phase, status, op->text);
}

static void act(struct self *me, uint64_t r);
static bool restart(struct self *me, struct rec *c, uint64_t r);

static void ran(int status, void *data)
{
	uint32_t index = (uintptr_t)data & 0xffff, use = (uint32_t)((uintptr_t)data >> 16), group;
	struct rec *c = &recs[index];
	struct self *me = self();
	uint32_t word = WORD(use, ARMED), registering, testing;
	uint64_t r;

	if (!me)
		chaos_wrong("continuation %u runs on a thread that is neither the program's nor the daemon", index);
	if (contd__load_seq(&ended_contd))
		chaos_wrong("continuation %u runs after contd_fini()", index);
	if (!contd__cas(&c->state, &word, WORD(use, RUNNING)))
		chaos_wrong("continuation %u of use %u runs, but is in state %u of use %u", index, use, STATE(word),
			    USE(word));
	chaos_note("runs", index, (uint64_t)(int64_t)status);
	group = c->group;
	entitled(me, group, "continuation", index);
	/* A tick that interrupts the call may. */
	if (contd__load(&me->registering) == index && contd__load(&contd__self.context) != CONTEXT_HANDLER &&
	    groups[group].flags & CONTD_ENQUEUE_COMPLETE)
		chaos_wrong("continuation %u of group %u (CONTD_ENQUEUE_COMPLETE) runs in the call that registers it",
			    index, group);
	if (!contd_event_is_complete(&c->op.event))
		chaos_wrong("continuation %u runs before its operation is complete", index);
	check_outcome(c, index);
	if (c->together ? status != c->op.status && status != c->extra_code : status != c->op.status)
		chaos_wrong("continuation %u gets the status %d, and the operation has %d", index, status,
			    c->op.status);
	contd__add(&total_ran, 1);
	contd__add(&chaos_progress, 1);
	registering = me->registering;
	testing = me->testing;
	me->registering = me->testing = NONE;
	me->depth++;
	r = chaos_draw_at(0);
	if (on(C_ACTIONS) && me->depth <= DEPTH && contd__load(&running)) {
		if (r % 4 == 0 && c->kind == FAKE_OP && !c->stays && restart(me, c, r >> 8)) {
			c = NULL; /* it is another's */
		} else if (r % 4 == 1) {
			act(me, r >> 8);
		}
	}
	me->depth--;
	me->registering = registering;
	me->testing = testing;
	if (!c)
		return;
	contd__store_seq(&c->state, WORD(use, RAN));
	rec_put(c);
}

/* --------------------------------------------------------------------------------------------------- operations --- */

/* How a record's continuation is registered; the record is armed, so that it may run at once. */
static void refused(struct rec *c, int rc, const char *call)
{
	uint32_t use = USE(contd__load(&c->state)), word = WORD(use, ARMED);

	chaos_note(call, (uint64_t)(c - recs), (uint64_t)(int64_t)rc);
	if (rc != -EPERM && rc != -ENOSPC && !(rc == -EAGAIN && contd__load(&contd__self.context) == CONTEXT_HANDLER))
		chaos_wrong("%s is %d: %s", call, rc, contd_error_text());
	if (rc == -EPERM && !contd__load_seq(&ports[c->port].stopping))
		chaos_wrong("%s is refused: %s", call, contd_error_text());
	if (!contd__cas(&c->state, &word, WORD(use, RAN)))
		chaos_wrong("%s is refused, and continuation %u is in state %u", call, (uint32_t)(c - recs),
			    STATE(word));
}

static int enroll(struct self *me, struct rec *c)
{
	struct contd_event *both[2] = {&c->op.event, &c->extra};
	uint32_t before = me->registering, use = USE(contd__load(&c->state));
	int rc;

	me->registering = (uint32_t)(c - recs);
	contd__store_seq(&c->state, WORD(use, ARMED));
	contd__add(&c->refs, 1);
	if (c->together)
		rc = contd_event_continue(2, both, ran, data_of(c), groups[c->group].group, &c->handle);
	else if (c->used_together)
		rc = contd_event_continue(1, both, ran, data_of(c), groups[c->group].group, &c->handle);
	else
		rc = contd_fabric_continue(&c->op, ran, data_of(c), groups[c->group].group);
	me->registering = before;
	return rc;
}

/* Begun by `begin` with the record's group; returns false if it is refused: then it is in no thread's hands. */
static bool start(struct self *me, struct rec *c, struct contd_fabric_queue *queue, uint64_t r)
{
	uint32_t use = USE(contd__load(&c->state)), before = me->registering;
	int rc;

	c->carried = r & 1;
	if (c->carried) {
		c->handle.slot = NULL;
		me->registering = (uint32_t)(c - recs);
		contd__store_seq(&c->state, WORD(use, ARMED));
		contd__add(&c->refs, 1);
		rc = contd_fabric_begin_continue(queue, &c->op, ran, data_of(c), groups[c->group].group);
		me->registering = before;
		if (rc) {
			refused(c, rc, "contd_fabric_begin_continue");
			rec_put(c);
			return false;
		}
	} else {
		rc = contd_fabric_begin(queue, &c->op);
		if (rc) {
			contd__store_seq(&c->state, WORD(use, ARMED));
			refused(c, rc, "contd_fabric_begin");
			return false;
		}
	}
	contd__add(&total_begun, 1);
	return true;
}

/* After it was begun, and where it is an operation of libfabric's before or after that call. */
static void enroll_it(struct self *me, struct rec *c, uint64_t r)
{
	uint32_t use = USE(contd__load(&c->state));
	int rc;

	if (c->carried)
		return;
	if (r % 8 == 0) { /* no continuation: a thread that passes by finds it complete */
		contd__add(&c->refs, 1);
		contd__store_seq(&c->state, WORD(use, BARE));
		return;
	}
	c->together = on(C_TOGETHER) && r % 4 == 1;
	c->used_together = r % 4 == 2;
	c->handle.slot = NULL;
	if (c->together) {
		contd_event_init(&c->extra);
		c->extra_code = r >> 8 & 1 ? -7 : 0;
	}
	rc = enroll(me, c);
	if (rc) { /* in a handler */
		refused(c, rc, "contd_event_continue");
		contd__store_seq(&c->state, WORD(use, BARE)); /* the continuation's reference is the passer-by's */
	}
}

static void begin_fake(struct self *me, uint32_t port, uint64_t r)
{
	uint32_t group = live_enter(live_group, LIVE_GROUPS, r, group_users);
	struct rec *c;

	if (group == NONE)
		return;
	c = rec_new(r >> 8);
	if (c) {
		c->kind = FAKE_OP;
		c->port = port;
		c->group = group;
		chaos_note("begins", (uint64_t)(c - recs), port);
		if (start(me, c, ports[port].queue, r >> 16)) {
			bool first = r >> 20 & 1;

			if (first)
				set_phase(c, BEFORE,
					  BEGUN); /* it may be complete when its continuation is registered */
			enroll_it(me, c, r >> 24);
			if (!first)
				set_phase(c, BEFORE, BEGUN);
		}
		rec_put(c);
	}
	leave(&groups[group].users);
}

/* In its callback. It must be in its own port, and group, which may have gone: they are used only inside enter(). */
static bool restart(struct self *me, struct rec *c, uint64_t r)
{
	struct prec *p = &ports[c->port];
	struct grec *g = &groups[c->group];
	uint32_t use = USE(contd__load(&c->state)) + 1, before = me->registering;
	bool good = false;
	int rc;

	/* Another thread may still read it. */
	if (contd__load_seq(&c->refs) != 1)
		return false;
	if (!enter(&p->users))
		return false;
	if (enter(&g->users)) {
		use &= 0xffffff;
		c->together = c->used_together = 0;
		c->carried = 1;
		c->put_status = 0;
		c->handle.slot = NULL;
		contd__store_seq(&c->phase, WORD(use, BEGUN - 1));
		contd__store_seq(&c->state, WORD(use, ARMED));
		contd__add(&c->refs, 1);
		me->registering = (uint32_t)(c - recs);
		chaos_note("starts again", (uint64_t)(c - recs), c->port);
		rc = contd_fabric_begin_continue(p->queue, &c->op, ran, data_of(c), g->group);
		me->registering = before;
		if (rc) {
			refused(c, rc, "contd_fabric_begin_continue, again");
			rec_put(c);
			contd__store_seq(&c->state, WORD(use, RAN));
			rec_put(c);
		} else {
			contd__add(&total_begun, 1);
			set_phase(c, BEFORE, BEGUN);
			rec_put(c);
		}
		good = true;
		leave(&g->users);
	}
	leave(&p->users);
	(void)r;
	return good;
}

/* Complete it, if it has begun and is not complete. */
static bool deliver(struct rec *c, uint64_t r)
{
	struct prec *p;
	bool good = false;

	if (!rec_get(c))
		return false;
	if (c->kind != FAKE_OP || STATE(contd__load_seq(&c->phase)) != BEGUN)
		goto out;
	p = &ports[c->port];
	if (!enter(&p->users))
		goto out;
	if (!contd__load(&self()->in_fake) && set_phase(c, BEGUN, BEFORE)) {
		struct fi_cq_err_entry e = {.op_context = &c->op, .flags = FI_RECV};

		e.err = on(C_ERROR) && r % 5 == 0 ? FI_EIO + (int)(r >> 8 & 1) : 0;
		e.len = c->put_length = r >> 16 & 0xffff;
		e.data = c->put_data = r >> 32;
		c->put_status = -e.err;
		set_phase(c, BEFORE, PUT);
		c->done_ns = chaos_ns();
		good = fake_put(p, &e);
		if (!good)
			set_phase(c, PUT, BEGUN);
	}
	leave(&p->users);
out:
	rec_put(c);
	return good;
}

static bool complete_extra(struct rec *c)
{
	bool good = false;
	uint32_t s;

	if (!rec_get(c))
		return false;
	s = STATE(contd__load_seq(&c->state));
	/* A cancelled one waits for its events no more. */
	if (c->together && (s == ARMED || s == RUNNING))
		good = contd_event_complete(&c->extra, c->extra_code) == 0;
	rec_put(c);
	return good;
}

static bool complete_some(uint64_t r)
{
	for (uint32_t i = 0; i < 16; i++) {
		struct rec *c = &recs[(r + i) % RECS];

		if (r >> 16 & 1 ? complete_extra(c) : deliver(c, r >> 20))
			return true;
	}
	return false;
}

static void op_withdraw(uint64_t r)
{
	struct rec *c = &recs[r % RECS];
	uint32_t index = (uint32_t)(c - recs);
	bool counter;
	uint32_t *users;
	int rc;

	if (!rec_get(c))
		return;
	counter = c->kind == COUNT;
	if ((c->kind == FAKE_OP || counter) && STATE(contd__load_seq(&c->phase)) == BEGUN) {
		users = counter ? &counters[c->port].users : &ports[c->port].users;
		if (enter(users)) {
			c->withdrawn_status = r >> 16 & 1 ? -FI_ETIMEDOUT : 0;
			/* Besides this, only a stopped or failed queue, or the counter, completes it. */
			if (set_phase(c, BEGUN, WITHDRAWN)) {
				rc = contd_fabric_withdraw(&c->op, c->withdrawn_status);
				chaos_note("withdrawn", index, (uint64_t)(int64_t)rc);
				if (rc != 0 &&
				    (rc != -EALREADY || (!counter && !contd__load_seq(&ports[c->port].stopping) &&
							 !contd__load_seq(&ports[c->port].broken))))
					chaos_wrong("contd_fabric_withdraw of operation %u is %d: %s", index, rc,
						    contd_error_text());
			}
			leave(users);
		}
	} else if (STATE(contd__load_seq(&c->state)) == RAN && !contd__load_seq(&ended_contd)) {
		/* Its queue may have gone. */
		rc = contd_fabric_withdraw(&c->op, 0);
		if (rc != -EALREADY && STATE(contd__load_seq(&c->state)) == RAN)
			chaos_wrong("contd_fabric_withdraw of operation %u, whose continuation ran, is %d", index, rc);
	}
	rec_put(c);
}

static void op_cancel(uint64_t r)
{
	struct rec *c = &recs[r % RECS];
	uint32_t use;
	int rc;

	if (!rec_get(c))
		return;
	use = USE(contd__load_seq(&c->state));
	if ((c->together || c->used_together) && c->handle.slot && STATE(contd__load_seq(&c->state)) == ARMED &&
	    contd__load_seq(&c->refs) >= 2 && enter(&groups[c->group].users)) {
		rc = contd_cancel(c->handle);
		chaos_note("cancelled", (uint64_t)(c - recs), (uint64_t)(int64_t)rc);
		if (rc == 0) {
			uint32_t word = WORD(use, ARMED);

			if (!contd__cas(&c->state, &word, WORD(use, CANCELLED)))
				chaos_wrong("continuation %u is cancelled, and in state %u", (uint32_t)(c - recs),
					    STATE(word));
			contd__add(&total_cancelled, 1);
		} else if (rc != -EALREADY) {
			chaos_wrong("contd_cancel is %d: %s", rc, contd_error_text());
		}
		leave(&groups[c->group].users);
	}
	rec_put(c);
}

/* Operations without a continuation, and those whose continuation was cancelled, end here. */
static void reap(uint32_t i)
{
	struct rec *c = &recs[i];
	uint32_t word;

	if (!rec_get(c))
		return;
	word = contd__load_seq(&c->state);
	if ((STATE(word) == BARE || STATE(word) == CANCELLED) && contd_event_is_complete(&c->op.event)) {
		check_outcome(c, i);
		if (contd__cas(&c->state, &word, WORD(USE(word), RAN)))
			rec_put(c);
	}
	rec_put(c);
}

/* ----------------------------------------------------------------------------------------------- real endpoints --- */

static void port_lock(struct prec *p)
{
	if (p->with_mutex)
		pthread_mutex_lock(&p->mutex);
}

static void port_unlock(struct prec *p)
{
	if (p->with_mutex)
		pthread_mutex_unlock(&p->mutex);
}

static ssize_t post_once(struct rec *c, struct prec *p, fi_addr_t to)
{
	ssize_t rc;

	port_lock(p);
	if (c->kind == SEND)
		rc = fi_tsend(p->ep, c->buffer, c->put_length, NULL, to, c->tag, &c->op);
	else
		rc = fi_trecv(p->ep, c->buffer, SIZE, NULL, FI_ADDR_UNSPEC, c->tag, 0, &c->op);
	port_unlock(p);
	return rc;
}

/* true: libfabric has it. */
static bool post(struct self *me, struct rec *c, uint64_t r, fi_addr_t to)
{
	struct prec *p = &ports[c->port];
	bool before = r & 1;
	ssize_t rc = -FI_EAGAIN;

	if (!start(me, c, p->queue, r >> 4))
		return false;
	c->stays = 1;
	set_phase(c, BEFORE, BEGUN);
	if (before)
		enroll_it(me, c, r >> 8);
	for (uint32_t i = 0; rc == -FI_EAGAIN && i < 200 && !contd__load_seq(&p->stopping); i++) {
		rc = post_once(c, p, to);
		if (rc == -FI_EAGAIN && !me->depth)
			contd_poll(0);
	}
	if (rc && rc != -FI_EAGAIN)
		chaos_wrong("libfabric refuses an operation: %zd (%s)", rc, fi_strerror((int)-rc));
	if (!before)
		enroll_it(me, c, r >> 8);
	if (rc) {
		int got;

		c->withdrawn_status = -FI_EAGAIN;
		set_phase(c, BEGUN, WITHDRAWN);
		got = contd_fabric_withdraw(&c->op, -FI_EAGAIN);
		if (got && (got != -EALREADY || !contd__load_seq(&p->stopping)))
			chaos_wrong("contd_fabric_withdraw of what was never posted is %d: %s", got,
				    contd_error_text());
		c->stays = 0;
	}
	return rc == 0;
}

static struct rec *real_new(enum kind kind, uint32_t port, uint32_t group, uint64_t tag, uint64_t length, uint64_t r)
{
	struct rec *c = rec_new(r);

	if (!c)
		return NULL;
	c->kind = kind;
	c->port = port;
	c->group = group;
	c->tag = tag;
	c->put_length = length;
	if (kind == SEND)
		memcpy(c->buffer, &tag, sizeof(tag));
	return c;
}

static void exchange(struct self *me, uint64_t r)
{
	uint32_t to = live_enter(live_port, LIVE_PORTS, r, port_users), from, group;
	uint64_t tag = contd__add(&tags, 1) + 1, length = 8 + (r >> 40) % (SIZE - 8);
	struct rec *s, *c;

	if (to == NONE)
		return;
	from = live_enter(live_port, LIVE_PORTS, r >> 4, port_users);
	if (from != NONE) {
		group = live_enter(live_group, LIVE_GROUPS, r >> 8, group_users);
		if (group != NONE) {
			c = real_new(RECV, to, group, tag, length, r >> 12);
			s = real_new(SEND, from, group, tag, length, r >> 20);
			for (uint32_t k = 0; k < 2; k++) {
				struct rec *which = (k ^ (uint32_t)(r >> 30)) & 1 ? s : c;

				if (which && !contd__load_seq(&ports[which->port].stopping)) {
					chaos_note(which == s ? "sends" : "receives", (uint64_t)(which - recs),
						   which->port);
					post(me, which, r >> (32 + k), ports[to].address);
				}
			}
			if (c)
				rec_put(c);
			if (s)
				rec_put(s);
			leave(&groups[group].users);
		}
		leave(&ports[from].users);
	}
	leave(&ports[to].users);
}

static void cancel_receive(uint32_t i)
{
	struct rec *c = &recs[i];
	struct prec *p;

	if (!rec_get(c))
		return;
	if (c->kind == RECV && c->stays && STATE(contd__load_seq(&c->phase)) == BEGUN) {
		p = &ports[c->port];
		if (enter(&p->users)) {
			if (!contd__load_seq(&p->stopping)) {
				contd__store_seq(&c->cancelled, 1);
				port_lock(p);
				fi_cancel(&p->ep->fid, &c->op);
				port_unlock(p);
			}
			leave(&p->users);
		}
	}
	rec_put(c);
}

/* -------------------------------------------------------------------------------------------------------- ports --- */

static void foreign(const struct contd_fabric_entry *entry, void *data)
{
	struct prec *p = data;

	(void)entry;
	if (!self() || contd__load_seq(&ended_contd) || contd__load_seq(&p->closed))
		chaos_wrong("a foreign completion is told of by a stranger, or after the end");
	contd__add(&p->foreign_seen, 1);
	contd__add(&total_foreign, 1);
}

static void port_open(struct self *me, uint32_t at, uint64_t r)
{
	uint32_t i = contd__add(&port_count, 1);
	static const enum fi_cq_format format[] = {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA,
						   FI_CQ_FORMAT_TAGGED};
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct fi_cq_attr cq = {.wait_obj = FI_WAIT_UNSPEC};
	struct prec *p;
	int rc;

	if (i >= PORTS) {
		contd__sub(&port_count, 1);
		return;
	}
	p = &ports[i];
	memset(p, 0, sizeof(*p));
	p->users = CLOSED;
	p->owner = NONE;
	attr.format = cq.format = p->format = format[r & 3];
	attr.operations = r >> 2 & 3 ? 0 : 8;
	pthread_mutex_init(&p->mutex, NULL);
	if (r >> 4 & 1 || provider == C_FAKE) {
		attr.foreign = foreign;
		attr.data = p;
	}
	if (provider == C_FAKE) {
		p->fake = fake_new(i, r >> 5 & 1);
		attr.fabric = &fake_fabric;
		attr.wait = p->fake->fd >= 0 ? FI_WAIT_FD : FI_WAIT_NONE;
		p->always = on(C_FOREIGN) && (r >> 6 & 3) == 0;
		attr.flags = p->always ? CONTD_FABRIC_ALWAYS : 0;
		if (on(C_OWNED) && (r >> 8 & 7) == 0 && me != &selves[0]) {
			attr.threading = r >> 11 & 1 ? FI_THREAD_DOMAIN : FI_THREAD_COMPLETION;
			p->owner = me->chaos->number;
		} else if (on(C_MUTEX) && (r >> 8 & 7) == 1) {
			attr.threading = FI_THREAD_DOMAIN;
			attr.mutex = &p->mutex;
			p->with_mutex = 1;
		}
		p->cq = &p->fake->cq;
		rc = contd_fabric_queue_adopt(p->cq, &attr, &p->queue);
	} else {
		attr.fabric = r >> 5 & 1 ? fabric : NULL;
		if (on(C_MUTEX) && (r >> 8 & 3) == 1) {
			attr.threading = FI_THREAD_DOMAIN;
			attr.mutex = &p->mutex;
			p->with_mutex = 1;
		}
		attr.operations = 0;
		rc = contd_fabric_queue_create(domain, &cq, &attr, &p->queue);
	}
	if (rc)
		chaos_wrong("a queue can't be opened: %d: %s", rc, contd_error_text());
	if (contd_fabric_queue_wait_object(p->queue) == FI_WAIT_FD && !attr.fabric)
		chaos_wrong("a queue has a descriptor without attr.fabric");
	if (provider != C_FAKE) {
		struct fid_cq *made = contd_fabric_queue_cq(p->queue);
		char name[256];
		size_t size = sizeof(name);

		if (fi_endpoint(domain, info, &p->ep, NULL) || fi_ep_bind(p->ep, &av->fid, 0) ||
		    fi_ep_bind(p->ep, &made->fid, FI_SEND | FI_RECV) || fi_enable(p->ep) ||
		    fi_getname(&p->ep->fid, name, &size) || fi_av_insert(av, name, 1, &p->address, 0, NULL) != 1)
			chaos_wrong("an endpoint can't be made");
	}
	chaos_note("opened", i, r & 0xffff);
	contd__store_seq(&p->users, 0);
	contd__store_seq(&live_port[at], i);
}

static void port_closed(uint32_t i)
{
	struct prec *p = &ports[i];
	int rc = 0;

	contd__store_seq(&p->stopping, 1);
	if (p->ep) {
		rc = contd_fabric_queue_stop(p->queue);
		if (!rc && fi_close(&p->ep->fid))
			chaos_wrong("an endpoint can't be closed");
	}
	if (!rc)
		rc = contd_fabric_queue_destroy(p->queue);
	chaos_note("closed", i, (uint64_t)(int64_t)rc);
	if (rc)
		chaos_wrong("contd_fabric_queue_destroy of queue %u is %d: %s", i, rc, contd_error_text());
	contd__store_seq(&p->closed, 1);
	if (p->fake) {
		uint64_t left = 0;

		for (uint64_t k = p->fake->got; k < p->fake->put; k++)
			left += p->fake->entry[k % RING].data == UINT64_MAX;
		if (p->foreign_seen + left != p->foreign_put && !p->broken)
			chaos_wrong("of %llu foreign completions %llu were told of, and %llu are left",
				    (unsigned long long)p->foreign_put, (unsigned long long)p->foreign_seen,
				    (unsigned long long)left);
		fake_free(p->fake);
		p->fake = NULL;
	}
	pthread_mutex_destroy(&p->mutex);
	/* libfabric writes to its operations no more. */
	for (uint32_t k = 0; k < RECS; k++) {
		struct rec *c = &recs[k];

		if (c->stays && c->port == i) {
			c->stays = 0;
			if (!contd__load_seq(&c->refs) && STATE(contd__load_seq(&c->state)) == RAN)
				contd__store_seq(&c->state, WORD(USE(c->state), FREE));
		}
	}
}

static void op_port(struct self *me, uint64_t r)
{
	uint32_t at = (uint32_t)(r % LIVE_PORTS), i = contd__load_seq(&live_port[at]);

	/* Endpoints are closed at the end of the round. */
	if (provider != C_FAKE)
		return;
	if (i == NONE) {
		/* Two may open one: the later one is found, and the earlier one is closed at the end. */
		port_open(me, at, r >> 8);
	} else if ((r >> 40 & 7) == 0 && close_it(&ports[i].users)) {
		contd__cas(&live_port[at], &i, NONE);
		port_closed(i);
	}
}

static void op_stop(uint64_t r)
{
	uint32_t i = live_enter(live_port, LIVE_PORTS, r, port_users);
	int rc;

	if (i == NONE)
		return;
	if ((r >> 8 & (provider == C_FAKE ? 15 : 255)) == 0) {
		contd__store_seq(&ports[i].stopping, 1);
		rc = contd_fabric_queue_stop(ports[i].queue);
		chaos_note("stopped", i, (uint64_t)(int64_t)rc);
		if (rc)
			chaos_wrong("contd_fabric_queue_stop is %d: %s", rc, contd_error_text());
	} else if (ports[i].fake && on(C_BREAK) && (r >> 8 & 31) == 1) {
		uint32_t none = 0;

		contd__cas(&ports[i].broken, &none, r >> 16 & 1 ? FI_EOVERRUN : FI_ENODEV);
		chaos_note("broken", i, 0);
	} else if (ports[i].fake && on(C_FOREIGN)) {
		static char others[8];
		struct fi_cq_err_entry e = {.op_context =
						    r >> 9 & 1 ? NULL : (void *)((uintptr_t)others + (r >> 10 & 7)),
					    .flags = FI_RECV,
					    .data = UINT64_MAX,
					    .err = r >> 14 & 3 ? 0 : FI_EIO};

		contd__add(&ports[i].foreign_put, 1);
		if (!fake_put(&ports[i], &e))
			contd__sub(&ports[i].foreign_put, 1);
	}
	leave(&ports[i].users);
}

/* ---------------------------------------------------------------------------------------- multi-receive buffers --- */

static void many_ran(int status, void *data);

/* With its lock: takes what is there. */
static void many_take(struct mrec *m, uint32_t most)
{
	struct contd_fabric_entry e;
	struct prec *p = &ports[m->port];
	bool over = false;
	int rc;

	for (uint32_t n = 0;
	     m->live && !m->over && !over && n < most && (rc = contd_fabric_many_take(&m->many, &e)) != 0; n++) {
		if (rc != 1)
			chaos_wrong("contd_fabric_many_take is %d", rc);
		contd__add(&total_entries, 1);
		if (e.status && e.status != -FI_ETRUNC) {
			if (!contd__load_seq(&p->stopping) && !contd__load_seq(&p->broken))
				chaos_wrong("a multi-receive buffer ends with %d: %s", e.status, e.text);
			over = true;
		} else {
			if ((p->format == FI_CQ_FORMAT_DATA || p->format == FI_CQ_FORMAT_TAGGED) && e.data != m->got)
				chaos_wrong("entry %llu of a multi-receive buffer comes when %llu is awaited",
					    (unsigned long long)e.data, (unsigned long long)m->got);
			m->got++;
			over = p->format != FI_CQ_FORMAT_CONTEXT && e.flags & FI_MULTI_RECV;
		}
	}
	if (over && m->got > contd__load_seq(&m->put))
		chaos_wrong("a multi-receive buffer gives more than came");
	if (over && m->after) {
		m->over = true;
	} else if (over) {
		rc = contd_fabric_withdraw(&m->many.op, 0);
		if (rc != -EALREADY)
			chaos_wrong("contd_fabric_withdraw of a multi-receive buffer that has ended is %d", rc);
		m->over = true;
	}
	/* A continuation that was told of what has been taken meanwhile has yet to run. */
	if (m->over && !contd__load_seq(&m->registered))
		contd__store_seq(&m->live, 0);
}

/* With its lock. */
static void many_register(struct mrec *m)
{
	uint32_t group = m->group;
	int rc;

	if (m->over || m->registered || !enter(&groups[group].users))
		return;
	m->registered = 1;
	rc = contd_fabric_many_continue(&m->many, many_ran, m, groups[group].group);
	if (rc) {
		m->registered = 0;
		if (rc != -EAGAIN || contd__load(&contd__self.context) != CONTEXT_HANDLER)
			chaos_wrong("contd_fabric_many_continue is %d: %s", rc, contd_error_text());
	}
	leave(&groups[group].users);
}

static void many_ran(int status, void *data)
{
	struct mrec *m = data;
	struct self *me = self();

	if (!me || contd__load_seq(&ended_contd))
		chaos_wrong("a multi-receive buffer's continuation runs on a stranger or after contd_fini()");
	entitled(me, m->group, "multi-receive buffer", (uint32_t)(m - manys));
	if (status)
		chaos_wrong("a multi-receive buffer's continuation gets the status %d", status);
	if (contd__xchg(&m->registered, 2) != 1)
		chaos_wrong("a multi-receive buffer's continuation runs twice");
	contd__add(&chaos_progress, 1);
	/* It takes nothing: the thread that has the lock may be the one that was interrupted. */
	contd__store_seq(&m->registered, 0);
}

/* Nothing of it may be told of by its queue any more, and none of its continuations is left. */
static bool many_gone(const struct mrec *m)
{
	return !contd__load_seq(&m->live);
}

static void op_many(struct self *me, uint64_t r)
{
	struct mrec *m = &manys[r % MANYS];
	uint32_t port;

	if (provider != C_FAKE || me->depth || !try_lock(&m->lock))
		return;
	if (many_gone(m)) {
		port = live_enter(live_port, LIVE_PORTS, r >> 8, port_users);
		if (port != NONE) {
			uint32_t group = live_group[(r >> 12) % LIVE_GROUPS];

			/* A short format can't tell the last message of it. */
			if (ports[port].format != FI_CQ_FORMAT_CONTEXT && group != NONE &&
			    !contd__load(&m->registered)) {
				int rc;

				memset(&m->many, 0x5a, sizeof(m->many));
				m->port = port;
				m->group = group;
				contd__store_seq(&m->put, 0);
				m->got = 0;
				m->last_put = m->over = false;
				rc = contd_fabric_many_begin(ports[port].queue, &m->many, m->room,
							     1 + (uint32_t)(r >> 16) % ROOM);
				chaos_note("begins many", (uint64_t)(m - manys), (uint64_t)(int64_t)rc);
				if (rc == 0)
					contd__store_seq(&m->live, 1);
				else if (rc != -ENOSPC && (rc != -EPERM || !contd__load_seq(&ports[port].stopping)))
					chaos_wrong("contd_fabric_many_begin is %d: %s", rc, contd_error_text());
			}
			leave(&ports[port].users);
		}
	} else if (enter(&ports[m->port].users)) {
		struct prec *p = &ports[m->port];

		if ((r >> 20 & 3) == 0) {
			many_take(m, 1 + (uint32_t)(r >> 24) % 8);
		} else if ((r >> 20 & 3) == 1) {
			many_register(m);
		} else if ((r >> 20 & 31) == 2 && on(C_WITHDRAW) && !m->last_put && !m->over &&
			   m->got == contd__load_seq(&m->put) && !contd__load_seq(&m->registered)) {
			int rc;

			m->last_put = true;
			rc = contd_fabric_withdraw(&m->many.op, -FI_ECANCELED);
			chaos_note("withdraws many", (uint64_t)(m - manys), (uint64_t)(int64_t)rc);
			if (rc && (rc != -EALREADY || (!contd__load_seq(&p->stopping) && !contd__load_seq(&p->broken))))
				chaos_wrong("contd_fabric_withdraw of a multi-receive buffer is %d: %s", rc,
					    contd_error_text());
			contd__store_seq(&m->live, 0);
		} else if (!m->last_put && !m->over && !contd__load_seq(&p->stopping)) {
			struct fi_cq_err_entry e = {.op_context = &m->many.op, .flags = FI_RECV, .data = m->put};

			if ((r >> 24 & 7) == 0)
				e.flags |= FI_MULTI_RECV;
			else if ((r >> 24 & 7) == 1 && on(C_ERROR))
				e.err = FI_ETRUNC;
			contd__add(&m->put, 1);
			if (fake_put(p, &e))
				m->last_put = e.flags & FI_MULTI_RECV;
			else
				contd__sub(&m->put, 1);
		}
		leave(&p->users);
	}
	unlock(&m->lock);
}

/* Main, while the others are parked. */
static void many_end(struct mrec *m)
{
	struct prec *p = &ports[m->port];

	if (!m->live)
		return;
	if (!contd__load_seq(&p->closed) && !contd__load_seq(&p->stopping) && !contd__load_seq(&p->broken) &&
	    !m->last_put && !m->over) {
		struct fi_cq_err_entry e = {
			.op_context = &m->many.op, .flags = FI_RECV | FI_MULTI_RECV, .data = m->put};

		m->put++;
		m->last_put = fake_put(p, &e);
		if (!m->last_put)
			m->put--;
	}
	many_take(m, UINT32_MAX);
	if (!m->live || m->over || m->registered)
		return;
	/* Of a queue that has ended: what there was no room for goes unsaid. */
	if (contd__load_seq(&p->stopping) || contd__load_seq(&p->closed) || m->many.op.status)
		if (contd_fabric_withdraw(&m->many.op, 0) == -EALREADY) {
			many_take(m, UINT32_MAX);
			m->live = 0;
		}
}

/* ----------------------------------------------------------------------------------------------------- counters --- */

static void counter_open(uint32_t at)
{
	uint32_t i = contd__add(&counter_count, 1);
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct crec *k;
	int rc;

	if (i >= COUNTERS) {
		contd__sub(&counter_count, 1);
		return;
	}
	k = &counters[i];
	memset(k, 0, sizeof(*k));
	k->users = CLOSED;
	k->ops.size = sizeof(k->ops);
	k->ops.read = fake_cntr_read;
	k->ops.readerr = fake_cntr_readerr;
	k->cntr.fid.fclass = FI_CLASS_CNTR;
	k->cntr.ops = &k->ops;
	rc = contd_fabric_counter_adopt(&k->cntr, &attr, &k->counter);
	if (rc)
		chaos_wrong("contd_fabric_counter_adopt is %d: %s", rc, contd_error_text());
	contd__store_seq(&k->users, 0);
	contd__store_seq(&live_counter[at], i);
}

static void counter_closed(uint32_t i)
{
	int rc;

	contd__store_seq(&counters[i].closing, 1);
	rc = contd_fabric_counter_destroy(counters[i].counter);
	chaos_note("closed counter", i, (uint64_t)(int64_t)rc);
	if (rc)
		chaos_wrong("contd_fabric_counter_destroy is %d: %s", rc, contd_error_text());
	counters[i].counter = NULL;
}

static void op_counter(struct self *me, uint64_t r)
{
	uint32_t at = (uint32_t)(r % LIVE_COUNTERS), i = contd__load_seq(&live_counter[at]), group;
	struct crec *k;
	struct rec *c;
	int rc;

	if (i == NONE)
		return;
	k = &counters[i];
	if ((r >> 8 & 63) == 0 && !me->depth && close_it(&k->users)) {
		counter_closed(i);
		contd__store_seq(&live_counter[at], NONE);
		counter_open(at);
		return;
	}
	if (!enter(&k->users))
		return;
	if ((r >> 8 & 3) == 1) {
		contd__add(&k->value, 1 + (r >> 16 & 3));
	} else if ((r >> 8 & 31) == 2 && on(C_ERROR)) {
		contd__add(&k->errors, 1);
	} else if (contd__load(&contd__self.context) != CONTEXT_HANDLER &&
		   (group = live_enter(live_group, LIVE_GROUPS, r >> 16, group_users)) != NONE) {
		c = rec_new(r >> 24);
		if (c) {
			c->kind = COUNT;
			c->port = i;
			c->group = group;
			c->errors_before = contd__load_seq(&k->errors);
			rc = contd_fabric_counter_begin(k->counter, contd__load_seq(&k->value) + (r >> 32 & 7), &c->op);
			chaos_note("waits for counter", (uint64_t)(c - recs), (uint64_t)(int64_t)rc);
			if (rc)
				chaos_wrong("contd_fabric_counter_begin is %d: %s", rc, contd_error_text());
			set_phase(c, BEFORE, BEGUN);
			contd__add(&total_begun, 1);
			enroll_it(me, c, r >> 40);
			rec_put(c);
		}
		leave(&groups[group].users);
	}
	leave(&k->users);
}

/* ------------------------------------------------------------------------------------------------------- groups --- */

static void group_open(uint32_t at, uint64_t r)
{
	uint32_t i = contd__add(&group_count, 1);
	struct contd_group_attr attr = {.size = sizeof(attr), .max_poll = -1};
	struct grec *g;
	int rc;

	if (i >= GROUPS) {
		contd__sub(&group_count, 1);
		return;
	}
	g = &groups[i];
	memset(g, 0, sizeof(*g));
	g->users = CLOSED;
	attr.flags = r & 15;
	if (r >> 4 & 3)
		attr.flags &= ~(uint32_t)CONTD_POLL_ONLY;
	attr.max_poll = r >> 6 & 3 || !(r >> 8 & 3) ? -1 : (int32_t)(r >> 8 & 3);
	attr.priority = (int32_t)(r >> 10) % 3 - 1;
	if (attr.priority < -1 || attr.priority > 1)
		attr.priority = 0;
	g->flags = attr.flags;
	g->max_poll = attr.max_poll;
	rc = contd_group_create(&attr, &g->group);
	if (rc)
		chaos_wrong("contd_group_create is %d: %s", rc, contd_error_text());
	contd__store_seq(&g->users, 0);
	contd__store_seq(&live_group[at], i);
}

static void group_close(uint32_t i)
{
	int rc;

	contd__store_seq(&groups[i].destroyed, 1);
	rc = contd_group_destroy(groups[i].group);
	chaos_note("gives group back", i, (uint64_t)(int64_t)rc);
	if (rc)
		chaos_wrong("contd_group_destroy is %d: %s", rc, contd_error_text());
}

static void op_group(uint64_t r)
{
	uint32_t at = (uint32_t)(r % LIVE_GROUPS), i = contd__load_seq(&live_group[at]);

	if (i == NONE || contd__load(&group_count) + 4 >= GROUPS || !close_it(&groups[i].users))
		return;
	contd__store_seq(&live_group[at], NONE);
	group_close(i);
	group_open(at, r >> 8);
}

static int test_group(struct self *me, uint32_t i, int64_t wait)
{
	uint32_t before = me->testing;
	int rc, complete = 0;

	me->testing = i;
	if (wait < 0) {
		rc = contd_group_test(groups[i].group, &complete);
		if (rc < 0)
			chaos_wrong("contd_group_test is %d: %s", rc, contd_error_text());
	} else {
		rc = contd_group_wait(groups[i].group, wait);
		if (rc && rc != -ETIMEDOUT)
			chaos_wrong("contd_group_wait is %d: %s", rc, contd_error_text());
	}
	me->testing = before;
	return rc;
}

/* -------------------------------------------------------------------------------------------------- all of them --- */

static void begin_some(struct self *me, uint64_t r)
{
	uint32_t port;

	if (provider != C_FAKE) {
		if (contd__load(&contd__self.context) != CONTEXT_HANDLER)
			exchange(me, r);
		return;
	}
	port = live_enter(live_port, LIVE_PORTS, r, port_users);
	if (port == NONE)
		return;
	begin_fake(me, port, r >> 4);
	leave(&ports[port].users);
}

/* In a callback. */
static void act(struct self *me, uint64_t r)
{
	switch (r & 3) {
	case 0:
		begin_some(me, r >> 8);
		break;
	case 1:
		complete_some(r >> 8);
		break;
	case 2:
		if (on(C_COUNTER))
			op_counter(me, r >> 8);
		break;
	default:
		if (on(C_POLL) && contd__load(&contd__self.context) != CONTEXT_HANDLER)
			contd_poll(1);
	}
}

void chaos_deed(struct chaos_thread *t)
{
	struct self *me = &selves[t->number];
	uint64_t r = chaos_draw_at(0);
	uint32_t registering = me->registering, testing = me->testing, port;

	if (!contd__load_seq(&running))
		return;
	me->registering = me->testing = NONE;
	if (r & 3) {
		complete_some(r >> 8);
	} else if ((port = live_enter(live_port, LIVE_PORTS, r >> 8, port_users)) != NONE) {
		contd_fabric_queue_pending(ports[port].queue);
		leave(&ports[port].users);
	}
	me->registering = registering;
	me->testing = testing;
}

static void program_signal(int signo)
{
	int saved = errno;
	struct self *me = self();

	(void)signo;
	if (!me)
		return;
	/* It may interrupt a region, and is no plain computation itself: it takes a queue's lock, which the region's
	 * handler needs. */
	if (contd__add(&me->in_user_handler, 1) < 3 && contd__load_seq(&running)) {
		contd_guard_begin();
		chaos_deed(me->chaos);
		contd_guard_end();
	}
	contd__sub(&me->in_user_handler, 1);
	errno = saved;
}

void chaos_raise(struct chaos_thread *t, bool ours)
{
	(void)t;
	if (contd__load_seq(&running) && on(C_SIGNAL))
		pthread_kill(pthread_self(), ours ? contd__signals.signal_number : SIGUSR2);
}

static void compute(uint64_t ns)
{
	uint64_t until = chaos_ns() + ns;

	contd_compute_begin();
	while (chaos_ns() < until)
		for (volatile uint32_t i = 0; i < 200; i++)
			;
	contd_compute_end();
}

static void op_attach(struct self *me)
{
	int rc;

	if (me->attached && me != &selves[1]) {
		rc = contd_thread_detach();
		me->attached = 0;
	} else if (!me->attached) {
		rc = contd_thread_attach(NULL);
		me->attached = 1;
	} else {
		return;
	}
	if (rc)
		chaos_wrong("attach or detach is %d: %s", rc, contd_error_text());
}

static void op_daemon(uint64_t r)
{
	uint32_t n = contd__load_seq(&daemons);
	int rc;

	if (r & 1 && n) {
		if (!contd__cas(&daemons, &n, n - 1))
			return;
		rc = contd_daemon_stop();
	} else if (!(r & 1) && n < 2) {
		rc = contd_daemon_start(NULL);
		if (!rc)
			contd__add(&daemons, 1);
	} else {
		return;
	}
	chaos_note(r & 1 ? "stops daemon" : "starts daemon", (uint64_t)(int64_t)rc, 0);
	if (rc)
		chaos_wrong("contd_daemon_start or _stop is %d: %s", rc, contd_error_text());
}

static void op_configure(uint64_t r)
{
	struct contd_config config = {.size = sizeof(config), .agent = 1 + (int)(r % 5)};
	int rc = contd_configure(&config);

	chaos_note("configured", (uint64_t)(int64_t)rc, (uint64_t)config.agent);
	if (rc)
		chaos_wrong("contd_configure is %d: %s", rc, contd_error_text());
	contd__store_seq(&agent_now, 0);
}

static void operate(struct self *me)
{
	uint64_t r = chaos_draw(0), kind = r % 64;
	uint32_t i;

	r >>= 6;
	me->chaos->steps++;
	me->chaos->doing = "an operation";
	if (kind < 20) {
		begin_some(me, r);
	} else if (kind < 32) {
		complete_some(r);
	} else if (kind < 38) {
		if (on(C_POLL))
			contd_poll((uint32_t)(r & 7));
	} else if (kind < 41) {
		i = live_enter(live_group, LIVE_GROUPS, r, group_users);
		if (i != NONE && on(C_TEST))
			test_group(me, i, r >> 8 & 3 ? -1 : 20000);
		if (i != NONE)
			leave(&groups[i].users);
	} else if (kind < 44) {
		if (on(C_REGION))
			compute(1000 + r % 100000);
	} else if (kind < 48) {
		if (on(C_MANY))
			for (uint32_t n = 0; n < 4; n++)
				op_many(me, chaos_mix(r, n));
	} else if (kind < 52) {
		if (on(C_COUNTER))
			op_counter(me, r);
	} else if (kind < 54) {
		if (on(C_WITHDRAW))
			op_withdraw(r);
	} else if (kind < 56) {
		if (on(C_CANCEL))
			op_cancel(r);
	} else if (kind == 56) {
		if (on(C_PORT))
			op_port(me, r);
	} else if (kind == 57) {
		if (on(C_STOP))
			op_stop(r);
	} else if (kind == 58) {
		if (on(C_GROUP) && (r & 3) == 0)
			op_group(r >> 2);
	} else if (kind == 59) {
		if (on(C_GUARD)) {
			contd_guard_begin();
			complete_some(r);
			contd_guard_end();
		}
		contd_checkpoint();
	} else if (kind == 60) {
		if (on(C_ATTACH))
			op_attach(me);
	} else if (kind == 61) {
		if (on(C_DAEMON) && (r & 3) == 0)
			op_daemon(r >> 2);
	} else if (kind == 62) {
		if (on(C_CONFIGURE) && (r & 7) == 0)
			op_configure(r >> 3);
		else if (on(C_ERROR))
			cancel_receive((uint32_t)(r >> 3) % RECS);
	} else if (on(C_SIGNAL)) {
		pthread_kill(selves[1 + r % worker_count].thread, r >> 8 & 1 ? contd__signals.signal_number : SIGUSR2);
	}
	reap((uint32_t)(r >> 20) % RECS);
	contd__add(&chaos_progress, 1);
}

static void *worker(void *data)
{
	struct self *me = data;
	uint32_t e = 0;

	chaos_become(me->chaos);
	for (;;) {
		enum order o = contd__load_seq(&me->order);

		if (o == O_END)
			return NULL;
		if (contd__load_seq(&epoch_of_threads) != e) {
			e = contd__load_seq(&epoch_of_threads);
			for (uint32_t i = 0; i < chaos.operations; i++)
				operate(me);
			me->chaos->doing = "parked";
			contd__store_seq(&me->parked, e);
		} else if (o == O_REGION) {
			compute(2000000);
		} else if (o == O_POLL) {
			contd_poll(0);
			chaos_nap(20000);
		} else {
			contd__store_seq(&me->obeyed, O_IDLE);
			chaos_nap(50000);
			continue;
		}
		contd__store_seq(&me->obeyed, o);
	}
}

/* -------------------------------------------------------------------------------------------------------- quiet --- */

static void order(struct self *w, enum order o)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(20000);

	contd__store_seq(&w->obeyed, O_END);
	contd__store_seq(&w->order, o);
	while (contd__load_seq(&w->obeyed) != o) {
		chaos_nap(20000);
		if (chaos_patience() > until)
			chaos_wrong("thread %u hangs", w->chaos->number);
	}
}

/* It is complete, or the next poll finds that it is, and its continuation has not run. */
static bool due(const struct rec *c)
{
	uint32_t word = contd__load_seq(&c->state), phase = STATE(contd__load_seq(&c->phase));

	if (STATE(word) != ARMED || (c->together && !contd_event_is_complete(&c->extra)))
		return false;
	if (contd_event_is_complete(&c->op.event) && !c->carried)
		return true;
	if (c->kind == COUNT)
		return phase == BEGUN && contd__load_seq(&counters[c->port].value) >= c->op.threshold;
	return c->kind == FAKE_OP && phase != BEFORE &&
	       (phase == PUT || phase == WITHDRAWN || ports[c->port].stopping || ports[c->port].broken);
}

enum who { BY_POLL, BY_REGION, BY_DAEMON, BY_WAIT };

static bool covers(enum who who, const struct rec *c, uint32_t group)
{
	const struct grec *g = &groups[c->group];
	bool poll_only = g->flags & CONTD_POLL_ONLY && !g->destroyed, ready = contd_event_is_complete(&c->op.event);
	uint32_t owner = c->kind == COUNT ? NONE : ports[c->port].owner;

	switch (who) {
	case BY_POLL:
		return owner == NONE || ready;
	case BY_REGION:
		return !poll_only && (owner == NONE || owner == 1 || ready) && c->done_ns;
	case BY_DAEMON:
		return !poll_only && g->flags & CONTD_THREAD_ANY && (owner == NONE || ready);
	default:
		return c->group == group && (owner == NONE || ready);
	}
}

static void look(struct self *me, enum who who)
{
	if (who == BY_POLL) {
		contd_poll(0);
		for (uint32_t i = 0; i < group_count; i++)
			if (groups[i].flags & CONTD_POLL_ONLY && !groups[i].destroyed)
				test_group(me, i, -1);
	}
	/* A buffer that is full keeps its queue waiting. */
	for (uint32_t i = 0; i < MANYS; i++)
		if (manys[i].live && !ports[manys[i].port].closed)
			many_take(&manys[i], UINT32_MAX);
}

static void expect(struct self *me, enum who who, const char *name)
{
	uint64_t bound = chaos_bound_ns(3000), until = chaos_patience() + bound;
	uint32_t before = NONE;

	me->chaos->doing = name;
	for (;;) {
		uint32_t n = 0, first = NONE;

		for (uint32_t i = 0; i < RECS; i++)
			if (due(&recs[i]) && covers(who, &recs[i], NONE)) {
				n++;
				first = first == NONE ? i : first;
			}
		if (!n)
			break;
		if (n != before)
			until = chaos_patience() + bound;
		before = n;
		if (chaos_patience() > until) {
			const struct rec *c = &recs[first];

			chaos_wrong("%s has not run %u continuations: the first is %u (kind %u, queue %u, group %u, "
				    "flags %#x, "
				    "max_poll %d, carried %u, complete %d)",
				    name, n, first, c->kind, c->port, c->group, groups[c->group].flags,
				    groups[c->group].max_poll, c->carried, contd_event_is_complete(&c->op.event));
		}
		look(me, who);
		chaos_nap(50000);
	}
	contd__add(&chaos_progress, 1);
}

static void complete_few(void)
{
	for (uint32_t i = 0; i < 12; i++)
		complete_some(chaos_draw_at(0) & ~(uint64_t)0x10000);
}

static void alone_poll(struct self *me)
{
	complete_few();
	expect(me, BY_POLL, "a poll");
	total_alone[C_ALONE_POLL]++;
}

static void alone_daemon(struct self *me)
{
	int rc = contd_daemon_start(NULL);

	if (rc)
		chaos_wrong("contd_daemon_start is %d: %s", rc, contd_error_text());
	complete_few();
	expect(me, BY_DAEMON, "the daemon");
	rc = contd_daemon_stop();
	if (rc)
		chaos_wrong("contd_daemon_stop is %d: %s", rc, contd_error_text());
	total_alone[C_ALONE_DAEMON]++;
}

static void alone_region(struct self *me)
{
	if (!selves[1].attached || contd__load(&agent_now) <= CONTD_AGENT_CALLER)
		return;
	for (uint32_t i = 0; i < RECS; i++)
		recs[i].done_ns = 0; /* there need not be a second notification of completed operations */
	order(&selves[1], O_REGION);
	complete_few();
	expect(me, BY_REGION, "a region");
	order(&selves[1], O_IDLE);
	total_alone[C_ALONE_REGION]++;
}

/* For the report: the slots of a group that are not free, and the records that name the group. */
static void say_group(uint32_t g)
{
	struct contd__table *t = &groups[g].group->table;

	fprintf(stderr, "group %u: flags %#x, max_poll %d, life %#llx, used %u, top %#llx\n", g, groups[g].flags,
		groups[g].max_poll, (unsigned long long)groups[g].group->life, t->used, (unsigned long long)t->top);
	for (uint32_t n = 0; n < t->used; n++) {
		const struct contd__slot *s = contd__table_slot(t, contd__table_index(n));
		uint32_t rec = (uintptr_t)s->data & 0xffff;

		if (SLOT_STATE(s->state) != SLOT_FREE)
			fprintf(stderr,
				"  slot %u: state %u, generation %u, remaining %u, source %#llx, record %u of use %u\n",
				n, SLOT_STATE(s->state), SLOT_GENERATION(s->state), SLOT_REMAINING(s->state),
				(unsigned long long)s->source, rec, (uint32_t)((uintptr_t)s->data >> 16));
	}
	for (uint32_t i = 0; i < RECS; i++) {
		const struct rec *c = &recs[i];

		if (c->group == g)
			fprintf(stderr,
				"  record %u, use %u: state %u, phase %u, refs %u, kind %u, port %u, together %u, %u, "
				"carried %u, "
				"slot %p, generation %u, events %#llx %#llx, status %d\n",
				i, USE(c->state), STATE(c->state), STATE(c->phase), c->refs, c->kind, c->port,
				c->together, c->used_together, c->carried, (void *)c->handle.slot,
				(uint32_t)c->handle.generation, (unsigned long long)c->op.event.word,
				(unsigned long long)c->extra.word, c->op.status);
	}
}

/* A group of which everything is complete. It is closed meanwhile: what a callback begins in it would keep the wait. */
static void alone_wait(struct self *me)
{
	bool waited = false;

	complete_few();
	for (uint32_t k = 0; k < LIVE_GROUPS && !waited; k++) {
		uint32_t i = live_group[k], n = 0, others = 0;

		if (i == NONE || !close_it(&groups[i].users))
			continue;
		for (uint32_t j = 0; j < RECS; j++) {
			uint32_t s = STATE(contd__load_seq(&recs[j].state));

			if (recs[j].group != i || (s != ARMED && s != RUNNING))
				continue;
			if (due(&recs[j]) && covers(BY_WAIT, &recs[j], i))
				n++;
			else
				others++;
		}
		for (uint32_t j = 0; j < MANYS; j++)
			others += manys[j].live || manys[j].registered;
		if (n && !others) {
			waited = true;
			me->chaos->doing = "contd_group_wait";
			if (test_group(me, i, (int64_t)chaos_bound_ns(3000))) {
				say_group(i);
				chaos_wrong(
					"contd_group_wait of group %u, flags %#x, in which %u are complete, does not "
					"end",
					i, groups[i].flags, n);
			}
			total_alone[C_ALONE_WAIT]++;
		}
		open_it(&groups[i].users);
	}
}

/* The program reads queues that contd reads no more: udp;ofi_rxd acknowledges a message only where its receiver's queue
 * is read, and the sender's operation waits for that. */
static void read_stopped(void)
{
	struct fi_cq_tagged_entry entries[8];
	struct fi_cq_err_entry error;

	for (uint32_t i = 0; i < port_count; i++) {
		struct prec *p = &ports[i];

		if (!enter(&p->users))
			continue;
		if (p->ep && contd__load_seq(&p->stopping)) {
			struct fid_cq *cq = contd_fabric_queue_cq(p->queue);

			memset(&error, 0, sizeof(error));
			port_lock(p);
			if (fi_cq_read(cq, entries, 8) == -FI_EAVAIL)
				fi_cq_readerr(cq, &error, 0);
			port_unlock(p);
		}
		leave(&p->users);
	}
}

/*
 * The same for queues that contd does not read because nothing is under way there: it reads while a receive is. The
 * acknowledgement of udp;ofi_rxd may have been lost after the last receive was over.
 */
static void read_idle(struct self *me)
{
	for (uint32_t i = 0; i < port_count; i++) {
		struct prec *p = &ports[i];
		uint32_t group;
		struct rec *c;

		if (!enter(&p->users))
			continue;
		if (p->ep && !contd__load_seq(&p->stopping) && !contd_fabric_queue_pending(p->queue)) {
			group = live_enter(live_group, LIVE_GROUPS, i, group_users);
			c = group != NONE ? real_new(RECV, i, group, contd__add(&tags, 1) + 1, 8, 0) : NULL;
			if (c) {
				post(me, c, 0, p->address);
				rec_put(c);
			}
			if (group != NONE)
				leave(&groups[group].users);
		}
		leave(&p->users);
	}
}

/* Complete everything, and poll on all threads, until nothing is left. */
static void finish_all(struct self *me)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(10000), cancels = 0;

	me->chaos->doing = "the end of an epoch";
	for (uint32_t i = 1; i <= worker_count; i++)
		order(&selves[i], O_POLL);
	for (;;) {
		/* A callback may begin another operation, in a record that this pass has seen free. */
		uint64_t made = contd__load_seq(&total_made);
		uint32_t n = 0, sends = 0, first = NONE;

		for (uint32_t i = 0; i < counter_count; i++)
			contd__add(&counters[i].value, 16);
		for (uint32_t i = 0; i < RECS; i++) {
			deliver(&recs[i], 0);
			complete_extra(&recs[i]);
			if (++cancels > 50 * RECS)
				cancel_receive(i);
			reap(i);
			if (contd__load_seq(&recs[i].refs)) {
				n++;
				sends += recs[i].kind == SEND;
				first = first == NONE ? i : first;
			}
		}
		for (uint32_t i = 0; i < MANYS; i++) {
			many_end(&manys[i]);
			n += manys[i].live || contd__load_seq(&manys[i].registered);
		}
		read_stopped();
		if (sends && cancels > 50 * RECS)
			read_idle(me);
		look(me, BY_POLL);
		if (!n && contd__load_seq(&total_made) == made)
			break;
		if (chaos_patience() > until) {
			const struct rec *c = &recs[first == NONE ? 0 : first];

			for (uint32_t i = 0; i < MANYS; i++)
				fprintf(stderr,
					"buffer %u: live %u, registered %u, port %u, put %llu, got %llu, last %d; "
					"contd's put %u, got %u, "
					"armed %#x, threshold %u, event %#llx, status %d; group %u, flags %#x, "
					"max_poll %d, destroyed %u; "
					"stopped %u, broken %u\n",
					i, manys[i].live, manys[i].registered, manys[i].port,
					(unsigned long long)manys[i].put, (unsigned long long)manys[i].got,
					manys[i].last_put, manys[i].many.put, manys[i].many.got, manys[i].many.armed,
					(uint32_t)manys[i].many.op.threshold,
					(unsigned long long)manys[i].many.op.event.word, manys[i].many.op.status,
					manys[i].group, groups[manys[i].group].flags, groups[manys[i].group].max_poll,
					groups[manys[i].group].destroyed, ports[manys[i].port].stopping,
					ports[manys[i].port].broken);
			chaos_wrong("%u operations or buffers do not end: the first is %u (kind %u, port %u, group %u, "
				    "flags %#x, "
				    "state %u, phase %u, complete %d, refs %u)",
				    n, first, c->kind, c->port, c->group, c->group == NONE ? 0 : groups[c->group].flags,
				    STATE(c->state), STATE(c->phase), contd_event_is_complete(&c->op.event), c->refs);
		}
		chaos_nap(50000);
	}
	for (uint32_t i = 1; i <= worker_count; i++)
		order(&selves[i], O_IDLE);
	for (uint32_t i = 0; i < LIVE_GROUPS; i++) {
		uint32_t g = live_group[i];

		while (g != NONE && contd_group_outstanding(groups[g].group)) {
			/* The series that its last carried one belongs to may be at its end on another thread. */
			if (chaos_patience() > until) {
				say_group(g);
				chaos_wrong("group %u has %u outstanding, and nothing is under way", g,
					    contd_group_outstanding(groups[g].group));
			}
			chaos_nap(50000);
		}
	}
	for (uint32_t i = 0; i < port_count; i++) {
		if (ports[i].closed)
			continue;
		if (contd_fabric_queue_pending(ports[i].queue))
			chaos_wrong("queue %u has %u pending, and nothing is under way", i,
				    contd_fabric_queue_pending(ports[i].queue));
	}
}

/* ------------------------------------------------------------------------------------------------------- rounds --- */

static const char *const names[] = {"fake", "tcp;ofi_rxm", "shm", "udp;ofi_rxd", "sockets", "net"};

static bool provider_open(void)
{
	struct fi_av_attr av_attr = {.type = FI_AV_MAP};
	struct fi_info *hints = fi_allocinfo();
	int rc;

	hints->fabric_attr->prov_name = strdup(names[provider]);
	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	rc = fi_getinfo(FI_VERSION(1, 17), provider == C_SHM ? NULL : "127.0.0.1", NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (rc)
		return false;
	if (fi_fabric(info->fabric_attr, &fabric, NULL) || fi_domain(fabric, info, &domain, NULL) ||
	    fi_av_open(domain, &av_attr, &av, NULL))
		chaos_wrong("provider %s can't be opened", names[provider]);
	return true;
}

static void provider_close(void)
{
	if (provider == C_FAKE)
		return;
	if (fi_close(&av->fid) || fi_close(&domain->fid) || fi_close(&fabric->fid))
		chaos_wrong("provider %s can't be closed", names[provider]);
	fi_freeinfo(info);
}

static void tidy_shm(void)
{
	char name[64];

	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "/dev/shm/%d:%d:%d", (int)getpid(), i / 8, i % 8);
		unlink(name);
	}
}

static void round_begin(struct self *me)
{
	static const uint64_t tick_max[] = {0, 1000000, 2000000, 10000000};
	struct contd_config config = {.size = sizeof(config)};
	uint64_t r;
	int rc;

	chaos_round_begin();
	r = chaos_draw(0);
	config.agent = (int)(r % 6);
	config.tick_max_ns = tick_max[r >> 8 & 3];
	config.overhead_percent = r >> 10 & 1 ? 50 : 0;
	do
		provider = (enum class)(chaos_draw(0) % 6);
	while (!on(provider));
	while (provider != C_FAKE && !provider_open()) {
		printf("%s: this machine does not have the provider\n", names[provider]);
		classes[provider].off = true;
		for (provider = C_FAKE; provider <= C_NET && !on(provider); provider++)
			;
		if (provider > C_NET)
			exit(77);
	}
	group_count = port_count = counter_count = daemons = 0;
	memset(live_group, 0xff, sizeof(live_group));
	memset(live_port, 0xff, sizeof(live_port));
	memset(live_counter, 0xff, sizeof(live_counter));
	for (uint32_t i = 0; i < CHAOS_THREADS; i++) {
		selves[i].attached = selves[i].depth = 0;
		selves[i].registering = selves[i].testing = NONE;
	}
	rc = contd_init(&config);
	if (rc)
		chaos_wrong("contd_init is %d: %s", rc, contd_error_text());
	agent_now = config.agent ? (uint32_t)config.agent : CONTD_AGENT_REGION;
	contd__store_seq(&ended_contd, 0);
	for (uint32_t i = 0; i < LIVE_GROUPS; i++)
		group_open(i, chaos_draw(0));
	for (uint32_t i = 0; i < (provider == C_FAKE ? LIVE_PORTS : 2); i++)
		port_open(me, i, chaos_draw(0));
	if (on(C_COUNTER))
		for (uint32_t i = 0; i < LIVE_COUNTERS; i++)
			counter_open(i);
}

/* Some operations, and multi-receive buffers, that contd_fini() finds pending. */
static bool abandon(struct self *me)
{
	if (!on(C_OUTLIVE) || provider != C_FAKE || chaos_draw(2))
		return false;
	for (uint32_t i = 0; i < 8; i++)
		begin_some(me, chaos_draw(0));
	for (uint32_t i = 0; on(C_MANY) && i < 64; i++)
		op_many(me, chaos_draw(0));
	contd_poll(0);
	return true;
}

/* Another life of contd's does not bring back queues of the one before. */
static void live_again(void)
{
	uint32_t i = counter_count;
	int rc = contd_init(NULL);

	if (rc)
		chaos_wrong("contd_init is %d: %s", rc, contd_error_text());
	counter_open(0); /* contd-fabric's sources are there again */
	for (uint32_t n = 0; n < 4; n++)
		contd_poll(0);
	for (uint32_t k = 0; k < port_count; k++)
		if (!ports[k].closed) {
			struct contd_fabric_op none;

			if (contd_fabric_begin(ports[k].queue, &none) != -EPERM)
				chaos_wrong("contd_fabric_begin of a queue that outlived contd_fini() is not refused");
			port_closed(k);
		}
	if (i < counter_count)
		counter_closed(i);
	rc = contd_fini();
	if (rc)
		chaos_wrong("contd_fini is %d", rc);
}

static void round_end(struct self *me)
{
	uint32_t armed = 0;
	bool left, again;
	int rc;

	contd__store_seq(&running, 0);
	for (uint32_t i = 0; i < CHAOS_THREADS; i++)
		while (contd__load_seq(&selves[i].in_user_handler))
			chaos_nap(20000);
	left = abandon(me);
	again = left && chaos_draw(2);
	if (!left || chaos_draw(2)) {
		/* Closed before the end. The operations' continuations run, or contd_fini() counts them. */
		for (uint32_t i = 0; i < counter_count; i++)
			if (counters[i].counter && chaos_draw(2))
				counter_closed(i);
	}
	me->chaos->doing = "contd_fini";
	contd__store_seq(&chaos_calm, 1);
	while (contd__load_seq(&daemons)) {
		daemons--;
		if ((rc = contd_daemon_stop()) != 0)
			chaos_wrong("contd_daemon_stop is %d: %s", rc, contd_error_text());
	}
	rc = contd_fini();
	contd__store_seq(&ended_contd, 1);
	/* Until then threads that are attached may have run some. */
	for (uint32_t i = 0; i < RECS; i++)
		armed += STATE(recs[i].state) == ARMED;
	for (uint32_t i = 0; i < MANYS; i++)
		armed += contd__load_seq(&manys[i].registered) == 1;
	if (rc != (int)armed)
		chaos_wrong("contd_fini tells of %d continuations that never ran, instead of %u", rc, armed);
	for (uint32_t i = 0; i < port_count; i++)
		if (!ports[i].closed) {
			struct contd_fabric_op none;

			if (contd_fabric_begin(ports[i].queue, &none) != -EPERM)
				chaos_wrong("contd_fabric_begin after contd_fini is not refused");
			if (!again)
				port_closed(i);
		}
	if (again)
		live_again();
	/* The entries of a buffer, and its end, may be taken after that. */
	for (uint32_t i = 0; i < MANYS; i++) {
		struct mrec *m = &manys[i];

		contd__store_seq(&m->registered, 0);
		m->after = 1;
		if (m->live)
			many_take(m, UINT32_MAX);
		if (m->live)
			chaos_wrong(
				"the end of a multi-receive buffer whose queue outlived contd_fini() does not come");
		m->after = 0;
	}
	for (uint32_t i = 0; i < counter_count; i++)
		if (counters[i].counter)
			counter_closed(i);
	for (uint32_t i = 0; i < RECS; i++) {
		struct rec *c = &recs[i];
		uint32_t s = STATE(c->state);

		if ((s == ARMED || s == BARE) &&
		    (!contd_event_is_complete(&c->op.event) ||
		     (c->op.status != -FI_ECANCELED && !ports[c->port].broken && STATE(c->phase) != WITHDRAWN)))
			chaos_wrong("operation %u of a queue that outlived contd_fini() has the status %d, and is %s",
				    i, c->op.status,
				    contd_event_is_complete(&c->op.event) ? "complete" : "not complete");
		c->stays = 0;
		contd__store_seq(&c->refs, 0);
		contd__store_seq(&c->state, WORD((USE(c->state) + 1) & 0xffffff, FREE));
	}
	provider_close();
	total_rounds[provider]++;
}

static void epoch(struct self *me)
{
	static void (*const alone[])(struct self *) = {alone_poll, alone_daemon, alone_region, alone_wait};
	static const enum class class_of[] = {C_ALONE_POLL, C_ALONE_DAEMON, C_ALONE_REGION, C_ALONE_WAIT};
	uint64_t until = chaos_patience() + chaos_bound_ns(20000);
	uint32_t e;

	contd__store_seq(&chaos_calm, 0);
	contd__store_seq(&running, 1);
	e = contd__add(&epoch_of_threads, 1) + 1;
	me->chaos->doing = "waits for the others";
	for (uint32_t i = 1; i <= worker_count; i++)
		while (contd__load_seq(&selves[i].parked) != e) {
			chaos_nap(100000);
			if (chaos_patience() > until)
				chaos_wrong("thread %u hangs in %s", i, selves[i].chaos->doing);
		}
	contd__store_seq(&chaos_calm, 1);
	while (contd__load_seq(&daemons)) { /* started again where it is its turn */
		int rc = contd_daemon_stop();

		daemons--;
		if (rc)
			chaos_wrong("contd_daemon_stop is %d: %s", rc, contd_error_text());
	}
	for (uint32_t n = (uint32_t)chaos_draw_at(4), i = (uint32_t)chaos_draw_at(4); n; n--, i = (i + 1) % 4)
		if (on(class_of[i]))
			alone[i](me);
	finish_all(me);
	total_epochs++;
}

void chaos_report(void)
{
	fprintf(stderr, "provider %s, epoch %llu, agent %u, daemons %u\n", names[provider],
		(unsigned long long)total_epochs, agent_now, daemons);
	tidy_shm();
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = program_signal, .sa_flags = SA_RESTART};
	struct self *me = &selves[0];
	int descriptors = -1;
	uint64_t until;

	chaos_begin(argc, argv, classes, C_END);
	if (!on(C_FAKE) && !on(C_TCP) && !on(C_SHM) && !on(C_UDP) && !on(C_SOCKETS) && !on(C_NET)) {
		fprintf(stderr, "%s: no provider is left\n", argv[0]);
		return 2;
	}
	sigaction(SIGUSR2, &action, NULL);
	tidy_shm();
	fake_fabric_ops.size = sizeof(fake_fabric_ops);
	fake_fabric_ops.trywait = fake_trywait;
	fake_fabric.fid.fclass = FI_CLASS_FABRIC;
	fake_fabric.ops = &fake_fabric_ops;
	me->chaos = chaos_thread_new("main");
	me->thread = pthread_self();
	chaos_become(me->chaos);
	worker_count = chaos.threads;
	for (uint32_t i = 1; i <= worker_count; i++)
		selves[i].chaos = chaos_thread_new("begins");
	daemon_self = &selves[worker_count + 1];
	daemon_self->chaos = chaos_thread_new("daemon");
	daemon_self->chaos->daemon = true;
	ended_contd = 1;
	for (uint32_t i = 1; i <= worker_count; i++)
		if (pthread_create(&selves[i].thread, NULL, worker, &selves[i]))
			abort();
	chaos_watch();
	chaos_points(on(C_POINTS));
	until = chaos_ns() + chaos.seconds * 1000000000ull;
	for (uint32_t n = 0; chaos.rounds ? n < chaos.rounds : chaos_ns() < until; n++, chaos_round++) {
		uint32_t epochs;
		int now;

		round_begin(me);
		epochs = 1 + (uint32_t)chaos_draw(6);
		for (uint32_t i = 0; i < epochs; i++)
			epoch(me);
		round_end(me);
		/* Providers keep descriptors open: rounds without a real provider are compared with the one before. */
		now = chaos_descriptors();
		if (provider == C_FAKE && descriptors >= 0 && n > 2 && now > descriptors)
			chaos_wrong("%d descriptors are left over", now - descriptors);
		descriptors = now;
	}
	for (uint32_t i = 1; i <= worker_count; i++) {
		contd__store_seq(&selves[i].order, O_END);
		pthread_join(selves[i].thread, NULL);
	}
	chaos_watch_end();
	tidy_shm();
	printf("rounds:");
	for (uint32_t i = 0; i < 6; i++)
		printf(" %s %llu", classes[i].name, (unsigned long long)total_rounds[i]);
	printf("; %llu epochs: %llu operations begun, %llu continuations ran, %llu cancelled, %llu entries of buffers, "
	       "%llu "
	       "foreign; alone: poll %u, daemon %u, region %u, wait %u\n",
	       (unsigned long long)total_epochs, (unsigned long long)total_begun, (unsigned long long)total_ran,
	       (unsigned long long)total_cancelled, (unsigned long long)total_entries,
	       (unsigned long long)total_foreign, total_alone[C_ALONE_POLL], total_alone[C_ALONE_DAEMON],
	       total_alone[C_ALONE_REGION], total_alone[C_ALONE_WAIT]);
	return 0;
}
