/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The public calls of the MPI interface, by several threads of 1 or 2 ranks, in random order, and deeds at test points:
 * see chaos.h for what a seed decides. All ranks get the same arguments.
 *
 * usage: chaos_mpi [--level funneled|serialized|multiple] and the options of chaos.h
 *
 * A run is a row of rounds, which end with no CR left. A round is a row of epochs:
 *
 *   1. operations    each thread makes so many calls. Both ranks draw alike which messages there are (message_of()), so
 *                    every receive has its send. What becomes of the requests, and what else is called, each thread
 *                    draws for itself. Before its thread has posted all of its messages a call waits for a message to
 *                    the thread itself only
 *   2. quiet         the threads park, on all ranks. All operations are posted
 *   3. one entitled  one way of progress (tests, polls, other MPI calls, a region, the daemon) alone must run, within a
 *                    bound, all that it is entitled to run
 *   4. all           CRs that are inactive are started, all are waited for. Nothing may be left, and all messages are
 *                    right
 *
 * At the end some continuations are left to MPI_Finalize, which must run them, and nothing may run after it.
 *
 * Below MPI_THREAD_MULTIPLE one thread at a time calls MPI: the main thread, or by turns another one; the others
 * call contd.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <contd/contd.h>
#include <contd/modes.h>
#include <contd/mpi.h>

#include "chaos.h"
#include "gate.h"
#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

#define CRS 4096u /* of a round */
#define LIVE 8u
#define OPS 4096u /* of an epoch */
#define CONTS 4096u
#define MOST 4u  /* operations of a continuation */
#define HELD 12u /* requests that a thread has */
#define DEPTH 3u
#define NONE UINT32_MAX
#define QUEUE 4096u
#define LARGE 90000
#define BUFFERED_MOST 1000

enum class {
	C_DRAFT,
	C_REVISED,
	C_KEYS,
	C_CR_FREE,
	C_PERSISTENT,
	C_FREE,
	C_PLAIN,
	C_CONTINUEALL,
	C_TEST,
	C_ARRAYS,
	C_STATUS,
	C_WAIT,
	C_BLOCKING,
	C_BUFFERED,
	C_READY,
	C_PROBE,
	C_TASK,
	C_POOL,
	C_MODES,
	C_GENERAL,
	C_TEMPLATE,
	C_FAIL,
	C_CANCEL,
	C_CHAIN,
	C_PARTITIONED,
	C_MIXED,
	C_EVENT,
	C_RING,
	C_BACKEND,
	C_POLL,
	C_REGION,
	C_GUARD,
	C_CHECKPOINT,
	C_ATTACH,
	C_DAEMON,
	C_ACTIONS,
	C_SIGNAL,
	C_POINTS,
	C_ALONE,
	C_FINALIZE,
	C_END
};
static struct chaos_class classes[C_END] = {
	[C_DRAFT] = {"draft", "CRs and continuations of the draft's interface", 0},
	[C_REVISED] = {"revised", "CRs and continuations of the revised interface", 0},
	[C_KEYS] = {"keys", "info keys of CRs, and flags", 0},
	[C_CR_FREE] = {"cr-free", "MPI_Request_free of CRs with continuations outstanding", 0},
	[C_PERSISTENT] = {"persistent", "persistent requests", 0},
	[C_FREE] = {"free", "MPI_Request_free of persistent requests with continuations outstanding", 0},
	[C_PLAIN] = {"plain", "requests without continuations, tested beside CRs", 0},
	[C_CONTINUEALL] = {"continueall", "several operations to a continuation", 0},
	[C_TEST] = {"test", "MPI_Test of CRs", 0},
	[C_ARRAYS] = {"arrays", "tests and waits for arrays", 0},
	[C_STATUS] = {"status", "status queries", 0},
	[C_WAIT] = {"wait", "threads wait for CRs at their end", 0},
	[C_BLOCKING] = {"blocking", "blocking sends and receives", 0},
	[C_BUFFERED] = {"buffered", "buffered sends", 0},
	[C_READY] = {"ready", "ready sends", 0},
	[C_PROBE] = {"probe", "probes, and receives of what they have found", 0},
	[C_TASK] = {"task", "continuations that become tasks of an executor", 0},
	[C_POOL] = {"pool", "CRs whose continuations an executor runs, and threads that are lent", 0},
	[C_MODES] = {"modes", "contd_mpi_op_run in all modes", 0},
	[C_TEMPLATE] = {"template", "templates of generalized requests", 0},
	[C_FAIL] = {"fail", "operations and callbacks that fail", 0},
	[C_CANCEL] = {"cancel", "MPI_Cancel of receives", 0},
	[C_CHAIN] = {"chain", "continuations on CRs", 0},
	[C_PARTITIONED] = {"partitioned", "partitioned messages, where the MPI has them", 0},
	[C_MIXED] = {"mixed", "contd_mpi_event", 0},
	[C_GENERAL] = {"general", "generalized requests", 0},
	[C_EVENT] = {"event", "events of the program's with the group of a CR", 0},
	[C_RING] = {"ring", "contd_mpi_ring and contd_mpi_ring_all", 0},
	[C_BACKEND] = {"backend", "contd_mpi_backend", 0},
	[C_POLL] = {"poll", "contd_poll", 0},
	[C_REGION] = {"region", "compute regions", 0},
	[C_GUARD] = {"guard", "guards", 0},
	[C_CHECKPOINT] = {"checkpoint", "checkpoints", 0},
	[C_ATTACH] = {"attach", "attach and detach", 0},
	[C_DAEMON] = {"daemon", "start and stop the daemon", 0},
	[C_ACTIONS] = {"actions", "callbacks that call MPI and contd", 0},
	[C_SIGNAL] = {"signal", "raise contd's signal, or the program's", 0},
	[C_POINTS] = {"points", "deeds at test points", 0},
	[C_ALONE] = {"alone", "the only entitled thread must run ready continuations", 0},
	[C_FINALIZE] = {"finalize", "continuations that are left to MPI_Finalize", 0},
};

/* ----------------------------------------------------------------------------------------------- records --- */

/* A CR; each round makes new ones. Threads that use its handle are counted; it is freed when the count is 0. */
struct crec {
	MPI_Request cr;
	struct contd_group *group;
	bool revised, poll_only, enqueue, any, safe;
	bool fails;   /* its operations may, and its callbacks */
	bool pooled;  /* it has an executor */
	int max_poll; /* -1: no limit; 0: none in tests */
	uint32_t users, freed;
	uint32_t lock;                   /* of a revised one: tests and starts by turns */
	uint32_t turn;                   /* of a revised one: odd while it is active, or may be */
	uint32_t begun, returned, ended; /* registrations; ended: their callbacks have */
};

enum kind { SEND, RECV, GENERAL, TEMPLATE, CHAIN, EVENT };

struct op {
	enum kind kind;
	bool persistent, freed, cancel, attached;
	int bytes, source, tag, error;
	uint32_t pushes; /* of a template's: that are left */
	uint32_t inner;  /* of a chain: the CR */
	unsigned char *data;
	uint32_t pattern;
	MPI_Request request; /* a copy: of persistent and of generalized ones */
	uint32_t todo;       /* still to be completed */
	uint32_t queried, done, was_cancelled;
	uint64_t delivered; /* how many bytes of the status are valid: see retire() */
	MPI_Status status;
	struct contd_event event;
};

/* READY, BLOCKING, BLOCKING_SYNC: only where the receive is posted. */
enum sends { STANDARD, SYNC, BUFFERED, READY, BLOCKING, BLOCKING_SYNC };

struct message {
	int from, to, bytes, tag;
	enum sends send;
	bool partitioned, persistent_send, persistent_receive;
	uint32_t pattern;
};

enum state { FREE, ARMED, RUNNING, RAN };

struct cont {
	uint32_t state;
	uint32_t n, cr, of[MOST], turn;
	bool revised, ignore, defers, event;
	bool fails, queues,
		refuses; /* queues: does not run, and is told of by get_failed; refuses: it says that it failed */
	uint32_t told;
	MPI_Status status[MOST];
	struct contd_event mixed;
	/* One that becomes a task, and one of contd_mpi_op_run(). */
	bool tasked, moded, transferred;
	int mode;
	bool late; /* the send comes when the operation has been issued */
	uint32_t suspended, resumed, issued;
	struct self *by;
	struct message in, out;
	struct contd_task work;
	struct contd_mpi_op op;
	struct contd_mode_attr how;
	MPI_Request requests[2];
};

static struct crec crs[CRS];
static struct op ops[OPS];
static struct cont conts[CONTS];
static uint32_t cr_count, op_count, cont_count, live[LIVE];
static uint64_t epoch_number; /* of the program */

/* The calls that a thread is in. Written by the thread and its handlers. */
struct testing {
	uint32_t n, cr[HELD];
	int left[HELD];   /* INT32_MAX: no limit */
	uint32_t context; /* enum contd__context, in which it was begun */
	struct testing *outer;
};

struct self {
	struct chaos_thread *chaos;
	pthread_t thread;
	bool mpi; /* it may call MPI */
	uint32_t in_region, depth, attached, registering, registering_depth;
	struct testing *testing;
	uint32_t parked;
	uint32_t number;  /* among those that call MPI */
	uint32_t in_pool; /* runs work of executors */
	uint32_t held_count, held_op[HELD];
	MPI_Request held[HELD];
};

static struct self selves[CHAOS_THREADS], *daemon_self, *pool_self;
static uint32_t worker_count, running, ended, epoch_of_threads, leaving;
static uint32_t communicating; /* below MPI_THREAD_MULTIPLE: the thread that calls MPI is not through */
static int level = MPI_THREAD_MULTIPLE, rank, ranks;
static MPI_Comm world, control;
static uint64_t total_ran, total_registered, total_rounds, total_epochs, total_alone, total_at_end;

static bool on(enum class c)
{
	return !classes[c].off;
}

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

static void good(int rc, const char *what)
{
	if (rc != MPI_SUCCESS)
		chaos_wrong("%s is %d", what, rc);
}
#define OK(call) good((call), #call)

/* ---------------------------------------------------------------------------------------------- messages --- */

/* The same on all ranks. */
static struct message message_of(uint32_t thread, uint32_t k)
{
	uint64_t r = chaos_mix(chaos_mix(chaos.seed, chaos_round), chaos_mix(epoch_number, thread << 16 | k));
	static const int sizes[] = {0, 1, 4, 8, 100, 1000, 5000, LARGE};
	struct message m = {.pattern = (uint32_t)(r >> 40), .bytes = sizes[r % 8], .tag = (int)(thread << 12 | k)};

	m.from = m.to = -1;
	if (r >> 3 & 1) {
		m.from = (int)(r >> 4 & 1) % ranks;
		m.to = (int)(r >> 5 & 1) % ranks;
	}
	m.send = r >> 6 & 1 ? SYNC : STANDARD;
	if (on(C_BUFFERED) && m.bytes <= BUFFERED_MOST && (r >> 14 & 3) == 0)
		m.send = BUFFERED;
	m.persistent_send = (r >> 7 & 3) == 0 && on(C_PERSISTENT);
	m.persistent_receive = (r >> 9 & 3) == 0 && on(C_PERSISTENT);
#if MPI_VERSION >= 4
	m.partitioned = (r >> 11 & 7) == 0 && on(C_PARTITIONED) && m.bytes % 2 == 0;
	m.persistent_send |= m.partitioned;
	m.persistent_receive |= m.partitioned;
#endif
	return m;
}

static unsigned char pattern_at(uint32_t pattern, int i)
{
	return (unsigned char)(pattern + (uint32_t)i * 7 + (uint32_t)(i >> 8));
}

/* ---------------------------------------------------------------------------------------------- operations --- */

static uint32_t op_new(enum kind kind)
{
	uint32_t i = contd__add(&op_count, 1);
	struct op *o = &ops[i < OPS ? i : 0];

	if (i >= OPS)
		chaos_wrong("too many operations: use less with --operations");
	memset(o, 0, sizeof(*o));
	o->kind = kind;
	o->request = MPI_REQUEST_NULL;
	return i;
}

static void hold(struct self *me, MPI_Request request, uint32_t op)
{
	me->held[me->held_count] = request;
	me->held_op[me->held_count++] = op;
}

static unsigned char *message_data(const struct message *m)
{
	unsigned char *data = malloc((size_t)m->bytes + 1);

	for (int k = 0; k < m->bytes; k++)
		data[k] = pattern_at(m->pattern, k);
	return data;
}

/* A call that returns when the message is through. Its receive is posted. */
static void send_blocking(const struct message *m)
{
	unsigned char *data = message_data(m);

	chaos_note("blocking send", (uint64_t)m->send, (uint64_t)m->tag);
	if (m->send == BLOCKING)
		OK(MPI_Send(data, m->bytes, MPI_BYTE, m->to, m->tag, world));
	else
		OK(MPI_Ssend(data, m->bytes, MPI_BYTE, m->to, m->tag, world));
	free(data);
}

static void post_send(struct self *me, const struct message *m)
{
	static int (*const init[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
				   MPI_Request *) = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
	static int (*const immediate[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
					MPI_Request *) = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
	uint32_t i = op_new(SEND);
	struct op *o = &ops[i];
	MPI_Request r;

	o->bytes = m->bytes;
	o->data = message_data(m);
	o->persistent = m->persistent_send;
	chaos_note("send", i, (uint64_t)m->tag);
#if MPI_VERSION >= 4
	if (m->partitioned) {
		OK(MPI_Psend_init(o->data, 2, m->bytes / 2, MPI_BYTE, m->to, m->tag, world, MPI_INFO_NULL, &r));
		OK(MPI_Start(&r));
		OK(MPI_Pready(1, r));
		OK(MPI_Pready(0, r));
		o->request = r;
	} else
#endif
		if (m->persistent_send) {
		OK(init[m->send](o->data, m->bytes, MPI_BYTE, m->to, m->tag, world, &r));
		OK(MPI_Start(&r));
		o->request = r;
	} else {
		OK(immediate[m->send](o->data, m->bytes, MPI_BYTE, m->to, m->tag, world, &r));
	}
	hold(me, r, i);
}

static uint32_t receive_new(const struct message *m)
{
	uint32_t i = op_new(RECV);
	struct op *o = &ops[i];

	o->bytes = m->bytes;
	o->data = malloc((size_t)m->bytes + 1);
	o->source = m->from;
	o->tag = m->tag;
	o->pattern = m->pattern;
	memset(o->data, 0x5a, (size_t)m->bytes + 1);
	chaos_note("receive", i, (uint64_t)m->tag);
	return i;
}

static void check_data(const unsigned char *data, const struct message *m, const char *by)
{
	for (int k = 0; k < m->bytes; k++)
		if (data[k] != pattern_at(m->pattern, k))
			chaos_wrong("%s with tag %x has another message", by, (unsigned)m->tag);
}

static void post_receive(struct self *me, const struct message *m)
{
	uint32_t i = receive_new(m);
	struct op *o = &ops[i];
	MPI_Request r;

	o->persistent = m->persistent_receive;
#if MPI_VERSION >= 4
	if (m->partitioned) {
		OK(MPI_Precv_init(o->data, 2, m->bytes / 2, MPI_BYTE, m->from, m->tag, world, MPI_INFO_NULL, &r));
		OK(MPI_Start(&r));
		o->request = r;
	} else
#endif
		if (m->persistent_receive) {
		OK(MPI_Recv_init(o->data, m->bytes, MPI_BYTE, chaos_draw(2) ? m->from : MPI_ANY_SOURCE, m->tag, world,
				 &r));
		if (chaos_draw(2))
			OK(MPI_Start(&r));
		else
			OK(MPI_Startall(1, &r));
		o->request = r;
	} else {
		OK(MPI_Irecv(o->data, m->bytes, MPI_BYTE, chaos_draw(2) ? m->from : MPI_ANY_SOURCE, m->tag, world, &r));
	}
	hold(me, r, i);
}

/* A message that is under way, found by a probe, and then received by that or by its tag. */
static void probe_and_receive(struct self *me, const struct message *m, uint64_t r)
{
	int source = r & 1 ? m->from : MPI_ANY_SOURCE, count = -1, flag = 0;
	unsigned char *data;
	MPI_Message found;
	MPI_Request request;
	MPI_Status s;
	uint32_t i;

	chaos_note("probe", r >> 1 & 3, (uint64_t)m->tag);
	switch (r >> 1 & 3) {
	case 0:
		OK(MPI_Probe(source, m->tag, world, &s));
		break;
	case 1:
		while (!flag)
			OK(MPI_Iprobe(source, m->tag, world, &flag, &s));
		break;
	case 2:
		OK(MPI_Mprobe(source, m->tag, world, &found, &s));
		break;
	default:
		while (!flag)
			OK(MPI_Improbe(source, m->tag, world, &flag, &found, &s));
	}
	MPI_Get_count(&s, MPI_BYTE, &count);
	if (s.MPI_SOURCE != m->from || s.MPI_TAG != m->tag || count != m->bytes)
		chaos_wrong("a probe for tag %x from %d, %d bytes, finds tag %x from %d, %d bytes", (unsigned)m->tag,
			    m->from, m->bytes, (unsigned)s.MPI_TAG, s.MPI_SOURCE, count);
	if (!(r >> 2 & 1) && r >> 3 & 1) {
		data = malloc((size_t)m->bytes + 1);
		OK(MPI_Recv(data, m->bytes, MPI_BYTE, source, m->tag, world, &s));
		check_data(data, m, "MPI_Recv");
		free(data);
		return;
	}
	i = receive_new(m);
	if (r >> 2 & 1)
		OK(MPI_Imrecv(ops[i].data, m->bytes, MPI_BYTE, &found, &request));
	else
		OK(MPI_Irecv(ops[i].data, m->bytes, MPI_BYTE, source, m->tag, world, &request));
	hold(me, request, i);
}

static int query(void *state, MPI_Status *status)
{
	struct op *o = state;

	contd__add(&o->queried, 1);
	MPI_Status_set_elements(status, MPI_BYTE, o->bytes);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = o->source;
	status->MPI_TAG = o->tag;
	return o->error;
}

static int freed(void *state)
{
	struct op *o = state;

	if (contd__xchg(&o->freed, true))
		chaos_wrong("free_fn of generalized request %u is called twice", (uint32_t)(o - ops));
	return MPI_SUCCESS;
}

static int cancelled(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;
}

static void post_general(struct self *me, int error)
{
	uint32_t i = op_new(GENERAL);
	struct op *o = &ops[i];
	MPI_Request r;

	o->source = (int)chaos_draw(100);
	o->tag = (int)chaos_draw(100);
	o->bytes = (int)chaos_draw(100);
	o->error = error;
	chaos_note("general", i, (uint64_t)error);
	OK(MPI_Grequest_start(query, freed, cancelled, o, &r));
	o->request = r;
	hold(me, r, i);
	contd__store_seq(&o->todo, 1);
}

/* A persistent one may have its continuation by then. */
static void cancel(struct op *o, MPI_Request *request)
{
	if (!o->cancel || o->was_cancelled)
		return;
	o->was_cancelled = 1;
	OK(chaos_draw(2) ? MPI_Cancel(request) : MPIX_Cancel(request));
}

/* A receive that has no send. */
static void post_cancelled(struct self *me, bool persistent)
{
	uint32_t i = op_new(RECV);
	struct op *o = &ops[i];
	MPI_Request r;

	o->cancel = true;
	o->data = malloc(8);
	o->persistent = persistent;
	chaos_note("to be cancelled", i, persistent);
	if (persistent) {
		OK(MPI_Recv_init(o->data, 8, MPI_BYTE, rank, 0x100000, world, &r));
		OK(MPI_Start(&r));
		o->request = r;
	} else {
		OK(MPI_Irecv(o->data, 8, MPI_BYTE, rank, 0x100000, world, &r));
		cancel(o, &r);
	}
	hold(me, r, i);
}

static void attach(struct self *me, uint32_t at, uint32_t m, uint32_t i, uint64_t r);
static uint32_t cr_enter(uint64_t r);

static int template_start(void *state)
{
	struct op *o = state;
	struct self *me = self();
	uint64_t r = chaos_draw_at(0);
	uint32_t i;

	if (o->error || r & 1) {
		i = cr_enter(r >> 1);
		if (i != NONE && !(o->error && crs[i].revised && !crs[i].fails)) {
			o->attached = true;
			hold(me, o->request, (uint32_t)(o - ops));
			attach(me, me->held_count - 1, 1, i, r >> 8);
		}
		if (i != NONE)
			leave(&crs[i].users);
	}
	return o->error;
}

static int template_push(void *state)
{
	struct op *o = state;

	if (o->pushes-- == 0) {
		contd__store_seq(&o->todo, 0);
		OK(MPIX_Mark_request_complete(o->request));
	}
	return MPI_SUCCESS;
}

static int template_complete(void *state, MPI_Status *status)
{
	struct op *o = state;

	(void)status;
	if (contd__xchg(&o->freed, true))
		chaos_wrong("complete_fn of operation %u is called twice", (uint32_t)(o - ops));
	if (o->error)
		chaos_wrong("complete_fn of operation %u is called, and its start_fn has failed", (uint32_t)(o - ops));
	return MPI_SUCCESS;
}

static MPIX_Gr template = MPIX_GR_NULL;

static void post_template(struct self *me, uint64_t r)
{
	uint32_t i = op_new(TEMPLATE);
	struct op *o = &ops[i];
	int rc;

	o->pushes = (uint32_t)(r & 7);
	o->error = on(C_FAIL) && (r >> 3 & 3) == 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
	contd__store_seq(&o->todo, 1);
	chaos_note("template", i, (uint64_t)o->error);
	rc = MPIX_Gr_begin(template, o, &o->request);
	if (rc != o->error)
		chaos_wrong("MPIX_Gr_begin is %d instead of %d", rc, o->error);
	if (rc) {
		contd__store_seq(&o->todo, 0);
		o->freed = true;
		if (!o->attached)
			o->done = 1;
	} else if (!o->attached) {
		hold(me, o->request, i);
	}
}

/*
 * Some event or generalized request that is pending. In signal handlers events only; a continuation may use what contd
 * has for it.
 */
static bool complete_some(uint64_t r, bool mpi, bool any_context)
{
	uint32_t n = contd__load_acquire(&op_count);

	for (uint32_t i = 0; n && i < n; i++) {
		struct op *o = &ops[(r + i) % n];

		if (!contd__load(&o->todo) || o->kind == TEMPLATE || (o->kind == GENERAL && !mpi && !any_context) ||
		    !contd__xchg(&o->todo, 0))
			continue;
		chaos_note("complete", (uint64_t)(o - ops), o->kind);
		if (o->kind == EVENT) {
			if (contd_event_complete(&o->event, 0))
				chaos_wrong("contd_event_complete: %s", contd_error_text());
		} else if (mpi && r >> 32 & 1) {
			OK(MPI_Grequest_complete(o->request));
		} else {
			OK(contd_mpi_grequest_complete(o->request));
		}
		return true;
	}
	return false;
}

/* ----------------------------------------------------------------------------------------- what callbacks see --- */

static void *data_of(uint32_t index)
{
	return (void *)(uintptr_t)(epoch_number << 16 | index);
}

/* Any context. ignore: there is no status. */
static void op_over(uint32_t index, const MPI_Status *s, const char *by)
{
	struct op *o = &ops[index];

	if (contd__xchg(&o->done, 1))
		chaos_wrong("operation %u is over twice, by %s", index, by);
	if (contd__load(&o->todo) && !o->error)
		chaos_wrong("operation %u has not completed, and is over by %s", index, by);
	if (o->kind == CHAIN && contd__load_seq(&crs[o->inner].ended) != contd__load_seq(&crs[o->inner].begun))
		chaos_wrong("a continuation on CR %u runs, and of %u continuations of it %u have run", o->inner,
			    crs[o->inner].begun, crs[o->inner].ended);
	if (o->kind == RECV && !o->cancel)
		for (int k = 0; k < o->bytes; k++)
			if (o->data[k] != pattern_at(o->pattern, k))
				chaos_wrong("receive %u has another message, by %s", index, by);
	if (!s || o->kind == EVENT || o->kind == CHAIN)
		return;
	if (((o->kind == RECV && !o->cancel) || o->kind == GENERAL) &&
	    (s->MPI_SOURCE != o->source || s->MPI_TAG != o->tag))
		chaos_wrong("operation %u, kind %d: source %d instead of %d, tag %d instead of %d, by %s", index,
			    o->kind, s->MPI_SOURCE, o->source, s->MPI_TAG, o->tag, by);
	o->status = *s;
	o->delivered = 1;
}

static bool testing_it(struct self *me, uint32_t cr)
{
	for (struct testing *t = me->testing; t; t = t->outer)
		for (uint32_t i = 0; i < t->n; i++)
			if (t->cr[i] == cr)
				return true;
	return false;
}

/*
 * An interruption has a separate bound: a signal that comes before the call begins to count, or after it has finished
 * counting, and one that was put off until the end of a guard there. (chaos_core looks at what an
 * interruption runs.)
 */
static void charge(struct self *me, uint32_t cr)
{
	for (struct testing *t = me->testing; t; t = t->outer)
		for (uint32_t i = 0; i < t->n; i++)
			if (t->cr[i] == cr) {
				if (t->left[i] == INT32_MAX || t->context != contd__load(&contd__self.context))
					return;
				if (t->left[i]-- <= 0)
					chaos_wrong(
						"a test of CR %u with max_poll %d runs one more (revised %d, safe %d, "
						"any %d, freed %d)",
						cr, crs[cr].max_poll, crs[cr].revised, crs[cr].safe, crs[cr].any,
						crs[cr].freed);
				return;
			}
}

static void entitled(struct self *me, const struct cont *c, uint32_t index)
{
	uint32_t context = contd__load(&contd__self.context);
	const struct crec *k = c->cr == NONE ? NULL : &crs[c->cr];

	if (c->tasked || (k && k->pooled)) {
		if (!me->in_pool)
			chaos_wrong("continuation %u of CR %d (pooled %d, a task %d) runs outside its executor", index,
				    (int)c->cr, k && k->pooled, c->tasked);
		return;
	}
	if (c->moded && c->mode <= CONTD_MODE_SUSPEND) {
		if (me != c->by || context == CONTEXT_HANDLER)
			chaos_wrong("done() of operation %u, mode %d, is not called by the caller, context %u", index,
				    c->mode, context);
		return;
	}
	if (context == CONTEXT_HANDLER && !(k && k->safe))
		chaos_wrong("continuation %u of CR %d runs in a handler outside a region", index, (int)c->cr);
	if (context == CONTEXT_REGION && !me->in_region)
		chaos_wrong("continuation %u runs as if in a region, outside one", index);
	if (me == daemon_self && !(k && (k->any || k->safe)))
		chaos_wrong("continuation %u of CR %d runs on the daemon", index, (int)c->cr);
	if (k && k->poll_only && !contd__load(&k->freed) && !testing_it(me, c->cr))
		chaos_wrong("continuation %u of the poll-only CR %u runs outside its tests and waits", index, c->cr);
	if (k && k->revised && !(c->turn & 1) && contd__load_seq(&k->turn) == c->turn)
		chaos_wrong("continuation %u of CR %u runs before the CR was started", index, c->cr);
	if (contd__load(&me->registering) == index) {
		if (c->defers)
			chaos_wrong("continuation %u of CR %d runs inside the call that registers it, context %u",
				    index, (int)c->cr, context);
		if (me->registering_depth)
			chaos_wrong("continuation %u runs inside the call that registers it in a continuation", index);
	}
	if (k)
		charge(me, c->cr);
}

static void act(struct self *me, uint32_t cr);

/* statuses: what the callback was given, or the continuation's own in the revised interface. */
static void ran(void *data, MPI_Status *statuses, bool revised)
{
	struct self *me = self();
	uint64_t d = (uint64_t)(uintptr_t)data;
	uint32_t index = (uint32_t)(d & 0xffff), expected = ARMED;
	struct cont *c = &conts[index % CONTS];
	const MPI_Status *s;

	if (!me)
		chaos_wrong("continuation %u runs on a thread that is not known", index);
	if (contd__load(&ended))
		chaos_wrong("continuation %u runs after MPI_Finalize", index);
	if (d >> 16 != epoch_number)
		chaos_wrong("continuation %u of epoch %llu runs in epoch %llu", index, (unsigned long long)(d >> 16),
			    (unsigned long long)epoch_number);
	if (!contd__cas(&c->state, &expected, RUNNING))
		chaos_wrong("continuation %u runs and its state is %u", index, expected);
	me->depth++;
	chaos_note("run", index, c->cr);
	entitled(me, c, index);
	if (!revised && !c->event &&
	    statuses != (c->ignore ? c->n == 1 ? MPI_STATUS_IGNORE : MPI_STATUSES_IGNORE : c->status) &&
	    !(c->ignore && (statuses == MPI_STATUS_IGNORE || statuses == MPI_STATUSES_IGNORE)))
		chaos_wrong("continuation %u is given the statuses %p, not its own", index, (void *)statuses);
	if (c->queues)
		chaos_wrong("continuation %u runs, and its operation has failed", index);
	s = c->ignore ? NULL : c->status;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct op *o = &ops[c->of[i]];

		if (s && !c->event && (s[i].MPI_ERROR != MPI_SUCCESS) != (o->error != MPI_SUCCESS) &&
		    !(c->revised && c->fails && s[i].MPI_ERROR == MPI_ERR_PENDING))
			chaos_wrong("status %u of continuation %u says %d; operation %u, kind %d, %d bytes, persistent "
				    "%d, source %d, tag %x, of %u",
				    i, index, s[i].MPI_ERROR, c->of[i], (int)o->kind, o->bytes, o->persistent,
				    o->source, (unsigned)o->tag, c->n);
		/* The others of a failed one are over some time. */
		if (!(c->revised && c->fails))
			op_over(c->of[i], s ? &s[i] : NULL, "a continuation");
	}
	if (contd__load(&running) && on(C_ACTIONS))
		act(me, c->cr);
	me->depth--;
	contd__add(&total_ran, 1);
	if (c->cr != NONE)
		contd__add(&crs[c->cr].ended, 1);
	contd__store_seq(&c->state, RAN);
}

static void draft_ran(MPI_Status *statuses, void *data)
{
	ran(data, statuses, false);
}

static int revised_ran(int rc, void *data)
{
	const struct cont *c = &conts[(uintptr_t)data % CONTS];
	bool refuses = c->refuses;

	if ((rc != MPI_SUCCESS) != c->fails)
		chaos_wrong("continuation %llx gets rc %d", (unsigned long long)(uintptr_t)data, rc);
	ran(data, NULL, true);
	return refuses ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void task_ran(int status, void *data)
{
	struct cont *c = &conts[(uintptr_t)data % CONTS];

	if ((status != 0) != (c->revised && c->fails))
		chaos_wrong("task %llx gets status %d", (unsigned long long)(uintptr_t)data, status);
	memset(&c->work, 0xa5, sizeof(c->work)); /* it is free again */
	ran(data, NULL, true);
}

static void event_ran(int status, void *data)
{
	if (status && !conts[(uintptr_t)data % CONTS].fails)
		chaos_wrong("continuation %llx of an event gets status %d", (unsigned long long)(uintptr_t)data,
			    status);
	ran(data, NULL, false);
}

/* ------------------------------------------------------------------------------------------------- executors --- */

/* Of a round: one whose threads are lent, and one with a queue. */
static struct contd_executor *pull, *push;
static struct contd_work *queue[QUEUE];
static uint32_t pool_on, pool_parked;

static int submit(void *pool, struct contd_work *work, int priority)
{
	(void)pool, (void)priority;
	for (uint32_t i = 0; i < QUEUE; i++) {
		struct contd_work *none = NULL;

		if (!contd__load(&queue[i]) && contd__cas(&queue[i], &none, work))
			return 0;
	}
	return -EAGAIN;
}

static void pool_run(struct self *me, uint32_t most, int64_t timeout_ns)
{
	int n;

	contd__add(&me->in_pool, 1);
	n = contd_executor_run(pull, most, timeout_ns);
	if (n < 0)
		chaos_wrong("contd_executor_run is %d: %s", n, contd_error_text());
	for (uint32_t i = 0; i < QUEUE; i++) {
		struct contd_work *work = contd__load(&queue[i]) ? contd__xchg(&queue[i], NULL) : NULL;

		if (work)
			contd_work_run(work);
	}
	contd__sub(&me->in_pool, 1);
}

static void *pool_thread(void *arg)
{
	struct self *me = arg;

	chaos_become(me->chaos);
	me->registering = NONE;
	while (!contd__load(&leaving)) {
		if (contd__load_acquire(&pool_on)) {
			uint64_t r = chaos_draw_at(0);

			pool_run(me, r & 3, (int64_t[]){0, 20000, 200000, 1000000}[r >> 2 & 3]);
			continue;
		}
		contd__store_seq(&pool_parked, 1);
		chaos_nap(50000);
	}
	return NULL;
}

static void pool_begin(void)
{
	struct contd_executor_ops with_queue = {.size = sizeof(with_queue), .submit = submit};
	struct contd_executor_attr queued = {.size = sizeof(queued), .ops = &with_queue},
				   lent = {.size = sizeof(lent),
					   .flags = chaos_mix(chaos.seed, ~(uint64_t)chaos_round) & 1
							    ? CONTD_EXECUTOR_PROGRESS
							    : 0};

	if (contd_executor_create(&lent, &pull) || contd_executor_create(&queued, &push))
		chaos_wrong("contd_executor_create: %s", contd_error_text());
	contd__store_seq(&pool_parked, 0);
	contd__store_seq(&pool_on, 1);
}

/* All of it has run, or is to be run just now. */
static void pool_end(void)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(5000);

	contd__store_seq(&pool_on, 0);
	contd__store_seq(&pool_parked, 0);
	if (contd_executor_stop(pull, 1))
		chaos_wrong("contd_executor_stop: %s", contd_error_text());
	while (!contd__load_acquire(&pool_parked)) {
		if (chaos_patience() > until)
			chaos_wrong("a thread that is lent to an executor that is stopped does not return");
		chaos_nap(50000);
	}
	if (contd_executor_drain(pull) || contd_executor_drain(push))
		chaos_wrong("contd_executor_drain: %s", contd_error_text());
	/* A group may be gone a little later. */
	while (pull || push) {
		if (pull && contd_executor_destroy(pull) == 0)
			pull = NULL;
		if (push && contd_executor_destroy(push) == 0)
			push = NULL;
		if (chaos_patience() > until)
			chaos_wrong("contd_executor_destroy of a %s executor: %s", pull ? "pull" : "push",
				    contd_error_text());
		contd_poll(0);
	}
}

/* ------------------------------------------------------------------------------------------------------- CRs --- */

/* A CR that may be used until leave(); NONE. */
static uint32_t cr_enter(uint64_t r)
{
	for (uint32_t i = 0; i < LIVE; i++) {
		uint32_t k = contd__load_acquire(&live[(r + i) % LIVE]);

		if (k != NONE && enter(&crs[k].users))
			return k;
	}
	return NONE;
}

static void cr_new(uint64_t r)
{
	uint32_t i = contd__add(&cr_count, 1), none = NONE;
	struct crec *k = &crs[i];
	char limit[16];
	MPI_Info info = MPI_INFO_NULL;
	static const int limits[] = {-1, -1, -1, 0, 1, 2, 3, 7};
	static const char *const priorities[] = {"low", "normal", "high"};

	if (i >= CRS) {
		contd__sub(&cr_count, 1);
		return;
	}
	memset(k, 0, sizeof(*k));
	k->revised = on(C_REVISED) && (!on(C_DRAFT) || (r & 3) == 0);
	k->fails = k->revised && on(C_FAIL) && r >> 20 & 1;
	k->max_poll = -1;
	if (on(C_KEYS) && r >> 2 & 3) {
		k->poll_only = (r >> 4 & 3) == 0;
		k->enqueue = (r >> 6 & 3) == 0;
		k->any = r >> 8 & 1;
		k->safe = (r >> 9 & 3) == 0;
		k->max_poll = limits[r >> 11 & 7];
		if (k->poll_only && k->max_poll == 0)
			k->max_poll = 1;
		MPI_Info_create(&info);
		if (!k->revised || r >> 14 & 1)
			MPI_Info_set(info, "mpi_continue_poll_only", k->poll_only ? "true" : "false");
		if (!k->revised || r >> 14 & 1)
			MPI_Info_set(info, "mpi_continue_enqueue_complete", k->enqueue ? "true" : "false");
		snprintf(limit, sizeof(limit), "%d", k->max_poll);
		if (!k->revised || r >> 14 & 1 || k->max_poll == 0)
			MPI_Info_set(info, "mpi_continue_max_poll", limit);
		MPI_Info_set(info, "mpi_continue_thread", !k->any ? "application" : r >> 15 & 1 ? "any" : "all");
		MPI_Info_set(info, "mpi_continue_async_signal_safe", k->safe ? "true" : "false");
		MPI_Info_set(info, "contd_priority", priorities[(r >> 16) % 3]);
	}
	chaos_note("cr", i, (uint64_t)k->revised | k->poll_only << 1 | k->enqueue << 2 | k->any << 3 | k->safe << 4);
	if (k->revised)
		OK(MPIX_Continue_init((k->poll_only ? MPIX_CONT_POLL_ONLY : 0) |
					      (k->enqueue ? MPIX_CONT_DEFER_COMPLETE : 0),
				      k->max_poll > 0 ? k->max_poll : MPI_UNDEFINED, info, &k->cr));
	else
		OK(MPI_Continue_init(info, &k->cr));
	if (info != MPI_INFO_NULL)
		MPI_Info_free(&info);
	k->group = contd_mpi_group(k->cr);
	if (!k->group)
		chaos_wrong("contd_mpi_group: NULL for CR %u", i);
	k->pooled = on(C_POOL) && pull && !k->poll_only && !k->safe && k->max_poll < 0 && (r >> 32 & 3) == 0;
	if (k->pooled && contd_group_set_executor(k->group, r >> 34 & 1 ? pull : push))
		chaos_wrong("contd_group_set_executor: %s", contd_error_text());
	for (uint32_t at = 0; at < LIVE; at++, none = NONE)
		if (contd__load(&live[at]) == NONE && contd__cas(&live[at], &none, i))
			return;
	contd__store_seq(&k->freed, 1);
	OK(MPI_Request_free(&k->cr));
}

/* Unless a thread uses it. */
static bool cr_free(uint32_t at)
{
	uint32_t i = contd__load_acquire(&live[at]);
	struct crec *k = i == NONE ? NULL : &crs[i];
	int rc;

	if (!k || !close_it(&k->users))
		return false;
	if (contd__load(&live[at]) != i) {
		open_it(&k->users);
		return false;
	}
	contd__store_seq(&live[at], NONE);
	if (k->revised) {
		/* The continuations that it holds would never run. */
		if (!(k->turn & 1)) {
			contd__add(&k->turn, 1);
			OK(MPI_Start(&k->cr));
		}
	}
	chaos_note("cr free", i, k->begun - k->ended);
	contd__store_seq(&k->freed, 1);
	rc = MPI_Request_free(&k->cr);
	good(rc, "MPI_Request_free of a CR");
	if (k->cr != MPI_REQUEST_NULL)
		chaos_wrong("CR %u is freed and its handle is not MPI_REQUEST_NULL", i);
	return true;
}

static void cr_start(uint32_t i)
{
	struct crec *k = &crs[i];

	if (!k->revised || !try_lock(&k->lock))
		return;
	if (!(k->turn & 1)) {
		contd__add(&k->turn, 1);
		chaos_note("cr start", i, 0);
		good(MPI_Start(&k->cr), "MPI_Start of an inactive CR");
	} else if (MPI_Start(&k->cr) != MPI_ERR_REQUEST) {
		chaos_wrong("MPI_Start of CR %u, which is active, does not say MPI_ERR_REQUEST", i);
	}
	unlock(&k->lock);
}

/* One that is complete, by a call that has begun when so many were registered. */
static void cr_complete(uint32_t i, uint32_t before, bool inactivates)
{
	struct crec *k = &crs[i];

	if (k->revised && !(k->turn & 1))
		return;
	if (k->fails)
		before = 0; /* what has failed is over when the library knows it */
	if ((int32_t)(contd__load_seq(&k->ended) - before) < 0)
		chaos_wrong("CR %u is complete, and of %u continuations registered before the call %u have run", i,
			    before, k->ended);
	if (k->revised && inactivates)
		contd__add(&k->turn, 1);
}

/* ----------------------------------------------------------------------------------------------- attaching --- */

/* m requests of those that are held, from place `at`, to a continuation of CR i (entered), or of none. */
static void attach(struct self *me, uint32_t at, uint32_t m, uint32_t i, uint64_t r)
{
	uint32_t index = contd__add(&cont_count, 1), before = me->registering, before_depth = me->registering_depth;
	struct cont *c = &conts[index % CONTS];
	MPI_Request list[MOST], cr = i == NONE ? MPI_REQUEST_NULL : crs[i].cr;
	MPIX_Continue_cb_function *revised_cb = revised_ran;
	MPI_Continue_cb_function *draft_cb = draft_ran;
	void *data = data_of(index);
	int flags = 0, rc;

	if (index >= CONTS)
		chaos_wrong("too many continuations: use less with --operations");
	memset(c, 0, sizeof(*c));
	memset(c->status, 0x5a, sizeof(c->status));
	c->n = m;
	c->cr = i;
	c->ignore = (r & 7) == 0;
	c->revised = i == NONE || !on(C_DRAFT) || (on(C_REVISED) && r >> 3 & 1);
	if (c->revised && on(C_KEYS))
		flags = (int)(r >> 4) & (MPIX_CONT_REQBUF_VOLATILE | MPIX_CONT_REQUESTS_FREE |
					 MPIX_CONT_DEFER_COMPLETE | MPIX_CONT_INVOKE_FAILED | MPIX_CONT_IMMEDIATE);
	for (uint32_t k = 0; k < m; k++)
		c->fails |= ops[me->held_op[at + k]].error != MPI_SUCCESS;
	if (c->fails && c->revised && (i == NONE || !crs[i].fails || crs[i].freed))
		flags |= MPIX_CONT_INVOKE_FAILED;
	c->tasked = on(C_TASK) && pull && (r >> 27 & 7) == 0;
	if (c->tasked && c->revised && c->fails)
		flags |= MPIX_CONT_INVOKE_FAILED;
	c->queues = c->fails && c->revised && !(flags & (MPIX_CONT_INVOKE_FAILED | MPIX_CONT_REQBUF_VOLATILE));
	c->refuses = i != NONE && crs[i].fails && c->revised && (r >> 24 & 7) == 0 && !c->tasked;
	c->defers = (i != NONE && (crs[i].enqueue || crs[i].poll_only)) || flags & MPIX_CONT_DEFER_COMPLETE;
	for (uint32_t k = 0; k < m; k++) {
		list[k] = me->held[at + k];
		c->of[k] = me->held_op[at + k];
	}
	me->held_count -= m;
	for (uint32_t k = at; k < me->held_count; k++) {
		me->held[k] = me->held[k + m];
		me->held_op[k] = me->held_op[k + m];
	}
	if (i != NONE) {
		c->turn = contd__load_seq(&crs[i].turn);
		contd__add(&crs[i].begun, 1);
	}
	if (c->tasked) {
		/* A push executor takes nothing in handlers. */
		contd_task_init(&c->work, r >> 30 & 1 && i != NONE && !crs[i].safe ? push : pull, (int)(r >> 31) % 2,
				task_ran, data_of(index));
		revised_cb = contd_mpi_task_callback_x;
		draft_cb = contd_mpi_task_callback;
		data = &c->work;
	}
	contd__add(&total_registered, 1);
	chaos_note(c->tasked ? "attach a task" : "attach", index, i);
	contd__store(&me->registering_depth, me->depth);
	contd__store(&me->registering, index);
	contd__store_seq(&c->state, ARMED);
	if (m == 1 && r >> 12 & 1)
		rc = c->revised ? MPIX_Continue(&list[0], revised_cb, data, flags,
						c->ignore ? MPI_STATUS_IGNORE : c->status, cr)
				: MPI_Continue(&list[0], draft_cb, data, c->ignore ? MPI_STATUS_IGNORE : c->status, cr);
	else
		rc = c->revised ? MPIX_Continueall((int)m, list, revised_cb, data, flags,
						   c->ignore ? MPI_STATUSES_IGNORE : c->status, cr)
				: MPI_Continueall((int)m, list, draft_cb, data,
						  c->ignore ? MPI_STATUSES_IGNORE : c->status, cr);
	good(rc, "attaching");
	contd__store(&me->registering, before);
	contd__store(&me->registering_depth, before_depth);
	if (i != NONE)
		contd__add(&crs[i].returned, 1);
	for (uint32_t k = 0; k < m; k++) {
		struct op *o = &ops[c->of[k]];

		if ((list[k] != MPI_REQUEST_NULL) != (o->persistent || o->kind == CHAIN))
			chaos_wrong("continuation %u is attached to operation %u, and the handle is wrong then", index,
				    c->of[k]);
		cancel(o, &list[k]);
		if (o->persistent && on(C_FREE) && r >> (16 + k) & 1) {
			o->freed = true;
			chaos_note("free", c->of[k], index);
			OK(MPI_Request_free(&list[k]));
		}
	}
}

static void attach_some(struct self *me, uint64_t r)
{
	uint32_t most = me->held_count < MOST ? me->held_count : MOST, i;

	if (!most)
		return;
	if (!on(C_CONTINUEALL))
		most = 1;
	i = on(C_REVISED) && (r & 15) == 0 ? NONE : cr_enter(r >> 4);
	if (i == NONE && !on(C_REVISED))
		return;
	most = 1 + (uint32_t)(r >> 8) % most;
	attach(me, (uint32_t)(r >> 12) % (me->held_count - most + 1), most, i, chaos_draw_at(0));
	if (i != NONE)
		leave(&crs[i].users);
}

/* Generalized requests, of which one fails. */
static void attach_failing(struct self *me, uint64_t r)
{
	uint32_t i = cr_enter(r), n = 1 + (uint32_t)(r >> 4) % 3;

	if (i == NONE)
		return;
	if ((crs[i].fails || !crs[i].revised) && me->held_count + n <= HELD) {
		for (uint32_t k = 0; k < n; k++)
			post_general(me, k == (r >> 8) % n ? MPI_ERR_OTHER : MPI_SUCCESS);
		/* A CR that must not fail is the draft's: nothing is queued there. */
		attach(me, me->held_count - n, n, i, r >> 12 & ~(crs[i].fails ? 0ull : 8ull));
	}
	leave(&crs[i].users);
}

static void told_failed(uint32_t i)
{
	struct crec *k = &crs[i];
	void *data[2];
	int count;

	do {
		count = 2;
		OK(MPIX_Continue_get_failed(k->cr, &count, data));
		for (int n = 0; n < count; n++) {
			uint32_t index = (uint32_t)((uintptr_t)data[n] & 0xffff), expected = ARMED;
			struct cont *c = &conts[index % CONTS];

			chaos_note("failed", index, i);
			if (contd__add(&c->told, 1) || c->cr != i || (uintptr_t)data[n] >> 16 != epoch_number)
				chaos_wrong("get_failed of CR %u tells of continuation %u of CR %u", i, index, c->cr);
			if (c->queues) {
				if (!contd__cas(&c->state, &expected, RAN))
					chaos_wrong("get_failed tells of continuation %u, which has run", index);
				contd__add(&total_ran, 1);
				contd__add(&k->ended, 1);
			} else if (!c->refuses) {
				chaos_wrong("get_failed tells of continuation %u, which has not failed", index);
			}
		}
	} while (count == 2);
}

/* A new CR for held operations, and a continuation on that CR. */
static void attach_chain(struct self *me, uint64_t r)
{
	uint32_t i, inner, op;
	struct crec *k;

	if (!me->held_count || me->held_count == HELD || cr_count + 1 >= CRS || (i = cr_enter(r)) == NONE)
		return;
	inner = contd__add(&cr_count, 1);
	k = &crs[inner];
	memset(k, 0, sizeof(*k));
	k->max_poll = -1;
	OK(MPI_Continue_init(MPI_INFO_NULL, &k->cr));
	attach(me, (uint32_t)(r >> 8) % me->held_count, 1, inner, r >> 16 & ~8ull);
	op = op_new(CHAIN);
	ops[op].inner = inner;
	chaos_note("chain", inner, i);
	hold(me, k->cr, op);
	attach(me, me->held_count - 1, 1, i, r >> 40);
	leave(&crs[i].users);
	contd__store_seq(&k->freed, 1);
	OK(MPI_Request_free(&k->cr));
}

static void attach_mixed(struct self *me, uint64_t r)
{
	uint32_t i, index;
	struct contd_event *list[1];
	struct cont *c;
	struct op *o;

	if (!me->held_count || (i = cr_enter(r)) == NONE)
		return;
	index = contd__add(&cont_count, 1);
	if (index >= CONTS)
		chaos_wrong("too many continuations: use less with --operations");
	c = &conts[index];
	memset(c, 0, sizeof(*c));
	c->n = 1;
	c->of[0] = me->held_op[--me->held_count];
	o = &ops[c->of[0]];
	cancel(o, &me->held[me->held_count]);
	c->event = true;
	c->cr = i;
	c->turn = 1;
	c->fails = o->error != MPI_SUCCESS;
	list[0] = &c->mixed;
	contd__add(&crs[i].begun, 1);
	contd__add(&total_registered, 1);
	contd__store_seq(&c->state, ARMED);
	chaos_note("mixed", index, i);
	OK(contd_mpi_event(&me->held[me->held_count], c->status, list[0]));
	if ((me->held[me->held_count] != MPI_REQUEST_NULL) != o->persistent)
		chaos_wrong("contd_mpi_event leaves the handle of operation %u wrong", c->of[0]);
	if (contd_event_continue(1, list, event_ran, data_of(index), crs[i].group, NULL))
		chaos_wrong("contd_event_continue: %s", contd_error_text());
	contd__add(&crs[i].returned, 1);
	leave(&crs[i].users);
}

static void attach_event(struct self *me, uint64_t r)
{
	uint32_t i = cr_enter(r), op, index;
	struct contd_event *list[1];
	struct cont *c;

	if (i == NONE)
		return;
	op = op_new(EVENT);
	contd_event_init(&ops[op].event);
	index = contd__add(&cont_count, 1);
	if (index >= CONTS)
		chaos_wrong("too many continuations: use less with --operations");
	c = &conts[index];
	memset(c, 0, sizeof(*c));
	c->n = 1;
	c->of[0] = op;
	c->event = c->ignore = true;
	c->cr = i;
	c->turn = 1; /* an event is not held by an inactive CR */
	list[0] = &ops[op].event;
	contd__add(&crs[i].begun, 1);
	contd__add(&total_registered, 1);
	contd__store_seq(&c->state, ARMED);
	chaos_note("event", index, i);
	if (contd_event_continue(1, list, event_ran, data_of(index), crs[i].group, NULL))
		chaos_wrong("contd_event_continue: %s", contd_error_text());
	contd__add(&crs[i].returned, 1);
	contd__store_seq(&ops[op].todo, 1);
	leave(&crs[i].users);
	(void)me;
}

static int issue(struct contd_mpi_op *op)
{
	struct cont *c = op->data;

	if (contd__add(&c->issued, 1))
		chaos_wrong("an operation is issued twice");
	OK(MPI_Irecv(ops[c->of[0]].data, c->in.bytes, MPI_BYTE, c->in.from, c->in.tag, world, &op->requests[0]));
	if (op->count == 2)
		OK(MPI_Isend(ops[c->of[1]].data, c->out.bytes, MPI_BYTE, c->out.to, c->out.tag, world,
			     &op->requests[1]));
	else if (!c->late)
		send_blocking(&c->out);
	return MPI_SUCCESS;
}

static void done(struct contd_mpi_op *op, int status)
{
	struct cont *c = op->data;
	uint32_t index = (uint32_t)(c - conts);

	if (status != MPI_SUCCESS)
		chaos_wrong("operation %u, mode %d, ends with %d", index, c->mode, status);
	for (int k = 0; k < op->count; k++)
		if (c->requests[k] != MPI_REQUEST_NULL)
			chaos_wrong("operation %u, mode %d, has ended, and its handle %d is there", index, c->mode, k);
	memset(&c->op, 0xa5, sizeof(c->op)); /* it is free again */
	ran(data_of(index), NULL, true);
	if (c->transferred && c->cr != NONE) {
		contd__add(&crs[c->cr].returned, 1);
		leave(&crs[c->cr].users);
	}
}

static void yield_task(void *task)
{
	(void)task;
	contd_poll(0); /* other threads need not make progress */
	sched_yield();
}

static void suspend_task(void *task)
{
	struct cont *c = task;

	contd__store_seq(&c->suspended, 1);
	while (!contd__load_acquire(&c->resumed)) {
		int flag;

		/* Below MPI_THREAD_MULTIPLE contd does not drive MPI on each thread that may call it. */
		OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, control, &flag, MPI_STATUS_IGNORE));
		contd_poll(0);
		chaos_nap(1000);
	}
}

static void resume_task(void *task)
{
	struct cont *c = task;

	if (contd__add(&c->resumed, 1))
		chaos_wrong("operation %u is resumed twice", (uint32_t)(c - conts));
}

/* The receive of a message, and a message that is sent, by contd_mpi_op_run(); alone: between the thread and itself. */
static void run_mode(struct self *me, const struct message *in, const struct message *out, bool alone)
{
	uint64_t r = chaos_draw(0);
	uint32_t index = contd__add(&cont_count, 1), i = NONE;
	struct cont *c = &conts[index % CONTS];
	int rc;

	if (index >= CONTS)
		chaos_wrong("too many continuations: use less with --operations");
	memset(c, 0, sizeof(*c));
	memset(c->status, 0x5a, sizeof(c->status));
	c->moded = c->revised = true;
	c->mode = (int)(r % 5);
	c->by = me;
	c->in = *in;
	c->out = *out;
	c->ignore = (r >> 3 & 3) == 0;
	c->how = (struct contd_mode_attr){.size = sizeof(c->how), .mode = c->mode, .priority = (int)(r >> 5 & 1)};
	c->tasked = pull && (c->mode == CONTD_MODE_NEW_TASK || r >> 6 & 1);
	c->transferred = pull && level == MPI_THREAD_MULTIPLE && r >> 7 & 1;
	if (c->mode == CONTD_MODE_NEW_TASK && !c->tasked)
		c->how.mode = c->mode = CONTD_MODE_CONTINUATION;
	if (c->mode > CONTD_MODE_SUSPEND && r >> 8 & 3)
		i = cr_enter(r >> 16);
	if (c->tasked)
		c->how.completions = r >> 10 & 1 && (i == NONE || !crs[i].safe) ? push : pull;
	if (c->transferred)
		c->how.requests = r >> 11 & 1 ? push : pull;
	if (c->mode == CONTD_MODE_YIELD_WHILE && r >> 12 & 1)
		c->how.yield = yield_task;
	if (c->mode == CONTD_MODE_SUSPEND && r >> 12 & 1) {
		c->how.suspend = suspend_task;
		c->how.resume = resume_task;
	}
	if (c->mode == CONTD_MODE_MPIX && on(C_KEYS))
		c->how.flags =
			(int)(r >> 24) & (MPIX_CONT_REQBUF_VOLATILE | MPIX_CONT_REQUESTS_FREE |
					  MPIX_CONT_DEFER_COMPLETE | MPIX_CONT_INVOKE_FAILED | MPIX_CONT_IMMEDIATE);
	c->n = alone && r >> 13 & 1 ? 1 : 2;
	c->late = c->n == 1 && c->mode > CONTD_MODE_SUSPEND && r >> 14 & 1;
	c->out.send = r >> 15 & 1 ? BLOCKING : BLOCKING_SYNC;
	c->of[0] = receive_new(in);
	if (c->n == 2) {
		c->of[1] = op_new(SEND);
		ops[c->of[1]].bytes = out->bytes;
		ops[c->of[1]].data = message_data(out);
	}
	c->op = (struct contd_mpi_op){.count = (int)c->n,
				      .requests = c->requests,
				      .statuses = c->ignore ? MPI_STATUSES_IGNORE : c->status,
				      .issue = issue,
				      .done = done,
				      .data = c,
				      .task = c};
	c->cr = i;
	c->turn = 1;
	c->defers = (i != NONE && (crs[i].enqueue || crs[i].poll_only)) || c->how.flags & MPIX_CONT_DEFER_COMPLETE;
	if (i != NONE) {
		c->how.cont_req = crs[i].cr;
		if (!c->transferred)
			c->turn = contd__load_seq(&crs[i].turn);
		contd__add(&crs[i].begun, 1);
	}
	contd__add(&total_registered, 1);
	chaos_note("mode", index, (uint64_t)c->mode | (uint64_t)c->tasked << 4 | (uint64_t)c->transferred << 8);
	contd__store_seq(&c->state, ARMED);
	if (!c->transferred && c->mode > CONTD_MODE_SUSPEND)
		contd__store(&me->registering, index);
	me->chaos->doing = "contd_mpi_op_run";
	rc = contd_mpi_op_run(&c->op, &c->how);
	me->chaos->doing = "operations";
	contd__store(&me->registering, NONE);
	if (rc != MPI_SUCCESS)
		chaos_wrong("contd_mpi_op_run of operation %u, mode %d, is %d: %s", index, c->mode, rc,
			    contd_error_text());
	if (c->mode <= CONTD_MODE_SUSPEND && !c->tasked && contd__load(&c->state) != RAN)
		chaos_wrong("contd_mpi_op_run, mode %d, returns, and operation %u is not done", c->mode, index);
	if (c->suspended && contd__load(&c->resumed) != 1)
		chaos_wrong("operation %u was suspended, and not resumed", index);
	if (i != NONE && !c->transferred) {
		contd__add(&crs[i].returned, 1);
		leave(&crs[i].users);
	}
	if (c->late)
		post_send(me, out);
}

/*
 * By thread `number` of each rank, which comes to it on all ranks: a message to the next rank, and one of the rank
 * before. All messages else are posted.
 */
static void exchange(struct self *me, uint32_t k)
{
	struct message out = message_of(me->number, 0xf00 + k), in;
	uint64_t r = chaos_mix(out.pattern, k);
	unsigned char *sent, *got;
	MPI_Status s;

	out.partitioned = false;
	in = out;
	out.from = in.to = rank;
	out.to = (rank + 1) % ranks;
	in.from = (rank + ranks - 1) % ranks;
	in.persistent_receive = r >> 8 & 1 && on(C_PERSISTENT);
	if (on(C_MODES) && (r >> 16 & 1)) {
		run_mode(me, &in, &out, false);
		return;
	}
	chaos_note("exchange", r % 6, (uint64_t)out.tag);
	switch (r % 6) {
	case 0:
	case 1:
		sent = message_data(&out);
		got = malloc((size_t)in.bytes + 1);
		if (r % 6 == 0)
			OK(MPI_Sendrecv(sent, out.bytes, MPI_BYTE, out.to, out.tag, got, in.bytes, MPI_BYTE, in.from,
					in.tag, world, &s));
		else
			OK(MPI_Sendrecv_replace(sent, out.bytes, MPI_BYTE, out.to, out.tag, in.from, in.tag, world,
						&s));
		check_data(r % 6 == 0 ? got : sent, &in, "Sendrecv");
		if (s.MPI_SOURCE != in.from || s.MPI_TAG != in.tag)
			chaos_wrong("a Sendrecv has a message with tag %x from %d", (unsigned)s.MPI_TAG, s.MPI_SOURCE);
		free(sent);
		free(got);
		break;
	case 2:
	case 3:
		post_receive(me, &in);
		out.send = r % 6 == 2 ? BLOCKING : BLOCKING_SYNC;
		send_blocking(&out);
		break;
	case 4:
		post_send(me, &out);
		if (on(C_PROBE))
			probe_and_receive(me, &in, chaos_draw(0));
		else
			post_receive(me, &in);
		break;
	default:
		post_receive(me, &in);
		/* Each says so to the rank before: then a ready send to the next one is right. */
		OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, in.from, out.tag | 0x80, NULL, 0, MPI_BYTE, out.to, out.tag | 0x80,
				world, MPI_STATUS_IGNORE));
		if (on(C_READY))
			out.send = READY;
		post_send(me, &out);
	}
}

/* -------------------------------------------------------------------------------------------------- tests --- */

/* Several CRs and requests that are held, in one call. */
struct asked {
	uint32_t n, m; /* m of n are CRs, first */
	uint32_t cr[HELD], before[HELD], op[HELD];
	MPI_Request list[HELD], was[HELD];
	MPI_Status status[HELD];
	struct testing testing;
};

static void ask_begin(struct self *me, struct asked *a, uint32_t m, uint64_t r, bool limited)
{
	memset(a, 0, sizeof(*a));
	for (uint32_t k = 0; k < m; k++) {
		uint32_t i = cr_enter(r >> (8 * k));

		for (uint32_t j = 0; i != NONE && j < a->n; j++)
			if (a->cr[j] == i) {
				leave(&crs[i].users);
				i = NONE;
			}
		if (i == NONE)
			continue;
		/* A CR that has failed is told of by the return value. */
		if ((crs[i].fails && m > 1) || (crs[i].revised && !try_lock(&crs[i].lock))) {
			leave(&crs[i].users);
			continue;
		}
		a->cr[a->n] = a->testing.cr[a->n] = i;
		a->testing.left[a->n] = !limited || crs[i].max_poll < 0 ? INT32_MAX : crs[i].max_poll;
		a->before[a->n] = contd__load_seq(&crs[i].returned);
		a->list[a->n++] = crs[i].cr;
	}
	a->m = a->testing.n = a->n;
	memcpy(a->was, a->list, sizeof(a->was));
	a->testing.context = contd__load(&contd__self.context);
	a->testing.outer = me->testing;
	me->testing = &a->testing;
}

/* And n of those that are held, which are then not held any more until ask_end(). */
static void ask_plain(struct self *me, struct asked *a, uint32_t n)
{
	for (uint32_t k = 0; k < n && me->held_count && a->n < HELD; k++) {
		me->held_count--;
		a->op[a->n] = me->held_op[me->held_count];
		a->list[a->n++] = me->held[me->held_count];
	}
	memcpy(a->was, a->list, sizeof(a->was));
}

static void ask_end(struct self *me, struct asked *a)
{
	me->testing = a->testing.outer;
	for (uint32_t k = 0; k < a->n; k++) {
		if (k >= a->m) {
			if (!ops[a->op[k]].done)
				hold(me, a->list[k], a->op[k]);
			continue;
		}
		if (a->list[k] != a->was[k])
			chaos_wrong("a test changes the handle of CR %u", a->cr[k]);
		if (crs[a->cr[k]].revised)
			unlock(&crs[a->cr[k]].lock);
		leave(&crs[a->cr[k]].users);
	}
}

/* The call has said that entry k is complete. */
static void answered(struct asked *a, uint32_t k, const MPI_Status *s, const char *by)
{
	if (k >= a->n)
		chaos_wrong("%s answers with index %u of %u", by, k, a->n);
	if (k < a->m) {
		cr_complete(a->cr[k], a->before[k], true);
		return;
	}
	if ((a->list[k] == MPI_REQUEST_NULL) == ops[a->op[k]].persistent)
		chaos_wrong("%s completes operation %u, and the handle is wrong then", by, a->op[k]);
	op_over(a->op[k], s, by);
}

/* The return value of a test or wait of a CR. */
static void cr_good(int rc, uint32_t i)
{
	int class;

	if (rc == MPI_SUCCESS)
		return;
	MPI_Error_class(rc, &class);
	if (!crs[i].fails || class != MPI_ERR_OTHER)
		chaos_wrong("a test of CR %u, which %s fail, is %d", i, crs[i].fails ? "may" : "must not", rc);
}

static void test_one(struct self *me, uint64_t r)
{
	struct asked a;
	int flag = -1;

	ask_begin(me, &a, 1, r, true);
	if (a.n) {
		chaos_note("test", a.cr[0], 0);
		cr_good(MPI_Test(&a.list[0], &flag, r >> 40 & 1 ? &a.status[0] : MPI_STATUS_IGNORE), a.cr[0]);
		if (flag)
			cr_complete(a.cr[0], a.before[0], true);
	}
	ask_end(me, &a);
}

/* The return value of a call for an array. */
static void array_good(int rc, const struct asked *a, const char *by)
{
	for (uint32_t k = 0; rc != MPI_SUCCESS && k < a->n; k++)
		chaos_note(k < a->m ? "entry: a CR" : "entry: a request", k < a->m ? a->cr[k] : a->op[k],
			   (uint64_t)a->status[k].MPI_ERROR);
	good(rc, by);
}

static void test_array(struct self *me, uint64_t r, bool waits)
{
	struct asked a;
	int flag = -1, index = -1, count = -1, indices[HELD];

	ask_begin(me, &a, 2 + (uint32_t)(r >> 32) % 3, r, !waits);
	if (!me->depth)
		ask_plain(me, &a, (uint32_t)(r >> 36) % 4);
	chaos_note("array", a.n, r >> 40 & 3);
	switch (r >> 40 & 3) {
	case 0:
		if (waits)
			array_good(MPI_Waitall((int)a.n, a.list, a.status), &a, "MPI_Waitall"), flag = 1;
		else
			array_good(MPI_Testall((int)a.n, a.list, &flag, a.status), &a, "MPI_Testall");
		for (uint32_t k = 0; flag && k < a.n; k++)
			answered(&a, k, &a.status[k], "Testall");
		break;
	case 1:
		if (waits)
			array_good(MPI_Waitany((int)a.n, a.list, &index, a.status), &a, "MPI_Waitany"), flag = 1;
		else
			array_good(MPI_Testany((int)a.n, a.list, &index, &flag, a.status), &a, "MPI_Testany");
		if (flag && index != MPI_UNDEFINED)
			answered(&a, (uint32_t)index, a.status, "Testany");
		break;
	default:
		if (waits)
			array_good(MPI_Waitsome((int)a.n, a.list, &count, indices, a.status), &a, "MPI_Waitsome");
		else
			array_good(MPI_Testsome((int)a.n, a.list, &count, indices, a.status), &a, "MPI_Testsome");
		for (int k = 0; count != MPI_UNDEFINED && k < count; k++)
			answered(&a, (uint32_t)indices[k], &a.status[k], "Testsome");
	}
	ask_end(me, &a);
}

static void status_query(struct self *me, uint64_t r)
{
	struct asked a;
	int flag = 0, index, count = -1, indices[HELD];

	ask_begin(me, &a, (r >> 40 & 3) == 0 ? 1 : 2 + (uint32_t)(r >> 32) % 3, r, true);
	if (!me->depth && r >> 40 & 3)
		ask_plain(me, &a, (uint32_t)(r >> 36) % 4);
	chaos_note("query", a.n, r >> 40 & 3);
	switch (r >> 40 & 3) {
	case 0:
		if (a.n)
			OK(MPI_Request_get_status(a.list[0], &flag, a.status));
		if (flag)
			cr_complete(a.cr[0], a.before[0], false);
		break;
	case 1:
		OK(MPIX_Request_get_status_all((int)a.n, a.list, &flag, a.status));
		for (uint32_t k = 0; flag && k < a.m; k++)
			cr_complete(a.cr[k], a.before[k], false);
		break;
	case 2:
		OK(MPIX_Request_get_status_any((int)a.n, a.list, &index, &flag, a.status));
		if (flag && index != MPI_UNDEFINED && (uint32_t)index < a.m)
			cr_complete(a.cr[index], a.before[index], false);
		break;
	default:
		OK(MPIX_Request_get_status_some((int)a.n, a.list, &count, indices, a.status));
		for (int k = 0; count != MPI_UNDEFINED && k < count; k++)
			if ((uint32_t)indices[k] < a.m)
				cr_complete(a.cr[indices[k]], a.before[indices[k]], false);
	}
	if (memcmp(a.list, a.was, sizeof(a.list)) != 0)
		chaos_wrong("a status query changes handles");
	ask_end(me, &a);
}

/* --------------------------------------------------------------------------------------- what threads do --- */

static void compute(struct self *me, uint64_t ns)
{
	uint64_t until = chaos_ns() + ns;

	contd__add(&me->in_region, 1);
	contd_compute_begin();
	while (chaos_ns() < until)
		contd__add(&chaos_progress, 0);
	contd_compute_end();
	contd__sub(&me->in_region, 1);
}

/* Calls of contd's that any thread may make. */
static void contd_step(struct self *me, uint64_t r)
{
	enum class c =
		(enum class[]){C_POLL, C_REGION, C_GUARD, C_CHECKPOINT, C_ATTACH, C_EVENT, C_POOL, C_DAEMON}[r & 7];

	r >>= 3;
	if (!on(c))
		return;
	switch (c) {
	case C_POLL:
		chaos_note("poll", 0, 0);
		if (contd_poll((uint32_t)(r & 7)) < 0)
			chaos_wrong("contd_poll: %s", contd_error_text());
		break;
	case C_REGION:
		chaos_note("region", 0, 0);
		compute(me, 1000 * (r % 300));
		break;
	case C_GUARD:
		contd_guard_begin();
		complete_some(r, false, false);
		contd_guard_end();
		break;
	case C_CHECKPOINT:
		contd_checkpoint();
		break;
	case C_ATTACH:
		if (!contd__load(&me->attached)) {
			if (contd_thread_attach(NULL))
				chaos_wrong("contd_thread_attach: %s", contd_error_text());
			me->attached++;
		} else {
			if (contd_thread_detach())
				chaos_wrong("contd_thread_detach: %s", contd_error_text());
			me->attached--;
		}
		break;
	case C_POOL:
		chaos_note("lent", 0, 0);
		pool_run(me, 1 + (uint32_t)(r & 3), 0);
		break;
	case C_DAEMON:
		if (r & 7)
			break;
		/* It may be running, and another thread may be stopping it. */
		if (r & 8)
			contd_daemon_start(NULL);
		else
			contd_daemon_stop();
		break;
	default:
		complete_some(r, false, false);
	}
}

static void mpi_step(struct self *me, uint64_t r)
{
	uint64_t what = r % 20;

	r >>= 5;
	switch (what) {
	case 0:
	case 1:
	case 2:
		if (on(C_TEST))
			test_one(me, r);
		break;
	case 3:
	case 4:
		if (on(C_ARRAYS))
			test_array(me, r, false);
		break;
	case 5:
		if (on(C_STATUS))
			status_query(me, r);
		break;
	case 6:
	case 7:
		if (on(C_GENERAL) && me->held_count < HELD && (r & 3 || !on(C_FAIL)))
			post_general(me, MPI_SUCCESS);
		else if (on(C_GENERAL) && on(C_FAIL))
			attach_failing(me, r >> 2);
		break;
	case 8:
	case 9:
		if (on(C_EVENT))
			attach_event(me, r);
		break;
	case 10:
		complete_some(r, true, true);
		break;
	case 11:
		if (on(C_CR_FREE) && (r & 3) == 0)
			cr_free((uint32_t)(r >> 2) % LIVE);
		cr_new(r >> 8);
		break;
	case 12: {
		uint32_t i = cr_enter(r);

		if (i != NONE) {
			cr_start(i);
			if (crs[i].fails)
				told_failed(i);
			leave(&crs[i].users);
		}
		break;
	}
	case 13:
		if (on(C_TEMPLATE) && me->held_count < HELD)
			post_template(me, r);
		break;
	case 14:
		if (on(C_CHAIN) && r & 1)
			attach_chain(me, r >> 1);
		else if (on(C_MIXED))
			attach_mixed(me, r >> 1);
		break;
	case 15:
		if (on(C_CANCEL) && me->held_count < HELD)
			post_cancelled(me, on(C_PERSISTENT) && r & 1);
		break;
	case 16:
		if (on(C_RING)) {
			int rung = r & 1 ? contd_mpi_ring((int)((r >> 1) % (uint64_t)ranks), world)
					 : contd_mpi_ring_all(world);

			if (rung < 0 || rung > (r & 1 ? 1 : ranks))
				chaos_wrong("a ring for %d ranks is %d", ranks, rung);
		}
		if (on(C_BACKEND)) {
			const char *steps = NULL, *name = contd_mpi_backend(&steps);

			if (!name || !steps || !*steps ||
			    (strcmp(name, "native") != 0 && strcmp(name, "portable") != 0))
				chaos_wrong("contd_mpi_backend: %s, %s", name ? name : contd_error_text(),
					    steps ? steps : "no steps");
		}
		break;
	default:
		contd_step(me, r);
	}
}

/* In a callback. */
static void act(struct self *me, uint32_t cr)
{
	uint32_t context = contd__load(&contd__self.context);
	uint64_t r = chaos_draw_at(0);

	(void)cr;
	if (me->depth > DEPTH || r & 3)
		return;
	r >>= 2;
	if (context == CONTEXT_HANDLER || me == daemon_self || me == pool_self || !me->mpi) {
		complete_some(r, false, true);
		return;
	}
	switch (r % 6) {
	case 0:
		if (on(C_TEST))
			test_one(me, r >> 3);
		break;
	case 1:
		if (on(C_ARRAYS))
			test_array(me, r >> 3, false);
		break;
	case 2:
		if (on(C_STATUS))
			status_query(me, r >> 3);
		break;
	case 3:
		if (on(C_EVENT))
			attach_event(me, r >> 3);
		break;
	case 4:
		contd_poll(1 + (uint32_t)(r >> 3) % 3);
		break;
	default:
		complete_some(r >> 3, true, true);
	}
}

static void to_itself(struct self *me, struct message *m)
{
	uint64_t r = chaos_draw(0);

	if (on(C_MODES) && !m->partitioned && (r >> 16 & 7) == 0) {
		run_mode(me, m, m, true);
		return;
	}
	if (r & 1) {
		post_receive(me, m);
		if (on(C_READY) && !m->partitioned && (r >> 1 & 3) == 0)
			m->send = READY;
		if (on(C_BLOCKING) && !m->persistent_send && (r >> 3 & 3) == 0) {
			m->send = r >> 5 & 1 ? BLOCKING : BLOCKING_SYNC;
			send_blocking(m);
		} else {
			post_send(me, m);
		}
		return;
	}
	post_send(me, m);
	if (on(C_PROBE) && !m->partitioned && (r >> 1 & 3) == 0)
		probe_and_receive(me, m, r >> 3);
	else
		post_receive(me, m);
}

/* All operations of one thread that calls MPI, in an epoch. */
static void communicate(struct self *me)
{
	for (uint32_t k = 0; k < chaos.operations; k++) {
		struct message m = message_of(me->number, k);
		uint32_t posted;

		me->chaos->steps++;
		contd__add(&chaos_progress, 1);
		while (me->held_count > HELD - 4)
			attach_some(me, chaos_draw(0) | 1);
		posted = me->held_count;
		if (m.from == rank && m.to == rank) {
			to_itself(me, &m);
		} else {
			if (m.from == rank)
				post_send(me, &m);
			if (m.to == rank)
				post_receive(me, &m);
		}
		posted = me->held_count - posted;
		/* MPICH (4.0) answers MPI_ERR_IN_STATUS to an MPI_Testall of a partitioned send. */
		for (uint32_t n = m.partitioned ? posted : 0; n; n--) {
			uint32_t i = cr_enter(chaos_draw(0));

			attach(me, me->held_count - 1, 1, i, chaos_draw(0));
			if (i != NONE)
				leave(&crs[i].users);
		}
		if (chaos_draw(2))
			attach_some(me, chaos_draw(0));
		mpi_step(me, chaos_draw(0));
	}
	/* Nothing that others may wait for is missing any more when this thread waits. */
	while (complete_some(chaos_draw_at(0), true, true))
		;
	for (uint32_t k = 0; on(C_BLOCKING) && k < 4; k++) {
		while (me->held_count > HELD - 4)
			attach_some(me, chaos_draw(0) | 1);
		exchange(me, k);
		mpi_step(me, chaos_draw(0));
	}
	/* The sends first: a thread that waits for another thread's message gets one. */
	if (on(C_BLOCKING))
		for (int k = 0, value = 4711; k < 2; k++) {
			int got = 0;
			MPI_Request r;

			OK(MPI_Isend(&value, 1, MPI_INT, rank, 0x100001, world, &r));
			OK(MPI_Recv(&got, 1, MPI_INT, rank, 0x100001, world, MPI_STATUS_IGNORE));
			OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
			if (got != 4711)
				chaos_wrong("a blocking receive has another message");
		}
	for (uint32_t k = 0; k < me->held_count; k++)
		cancel(&ops[me->held_op[k]], &me->held[k]);
	while (me->held_count && (!on(C_PLAIN) || chaos_draw(4)))
		attach_some(me, chaos_draw(0) | 1);
	while (complete_some(chaos_draw_at(0), true, true))
		;
	me->chaos->doing = "waits for plain requests";
	for (uint64_t until = chaos_patience() + chaos_bound_ns(20000); me->held_count;) {
		uint64_t r = chaos_draw_at(0);
		struct asked a;
		int flag;

		if (on(C_ARRAYS) && r & 1) {
			test_array(me, r >> 1, false);
			continue;
		}
		ask_begin(me, &a, 0, 0, false);
		ask_plain(me, &a, 1);
		OK(MPI_Test(&a.list[0], &flag, &a.status[0]));
		if (flag)
			answered(&a, 0, &a.status[0], "Test");
		ask_end(me, &a);
		chaos_nap(1000);
		if (chaos_patience() > until)
			chaos_wrong("operation %u of kind %d without a continuation does not complete", me->held_op[0],
				    ops[me->held_op[0]].kind);
	}
	while (complete_some(chaos_draw_at(0), true, true))
		;
	if (on(C_WAIT) && chaos_draw(2)) {
		me->chaos->doing = "waits for CRs";
		test_array(me, chaos_draw(0), true);
	}
	me->chaos->doing = "operations";
}

static void one_epoch(struct self *me)
{
	me->chaos->doing = "operations";
	if (me->mpi) {
		communicate(me);
		contd__store_seq(&communicating, 0);
	} else {
		for (uint32_t k = 0; k < chaos.operations; k++) {
			me->chaos->steps++;
			contd__add(&chaos_progress, 1);
			contd_step(me, chaos_draw(0));
		}
		/* A callback may make new ones while a thread waits. */
		while (contd__load(&communicating)) {
			complete_some(chaos_draw_at(0), false, false);
			chaos_nap(50000);
		}
	}
	me->chaos->doing = "is parked";
}

static void *worker(void *arg)
{
	struct self *me = arg;
	uint32_t seen = 0, e;

	chaos_become(me->chaos);
	me->registering = NONE;
	for (;;) {
		while ((e = contd__load_acquire(&epoch_of_threads)) == seen && !contd__load(&leaving))
			chaos_nap(50000);
		if (e == seen)
			break;
		seen = e;
		one_epoch(me);
		contd__store_seq(&me->parked, e);
	}
	return NULL;
}

/* -------------------------------------------------------------------------------------------------------- deeds --- */

void chaos_deed(struct chaos_thread *t)
{
	struct self *me = &selves[t->number];
	uint32_t before = contd__load(&me->registering);

	if (!contd__load(&running) || !on(C_EVENT))
		return;
	contd__store(&me->registering, NONE);
	complete_some(chaos_draw_at(0), false, false);
	contd__store(&me->registering, before);
}

static void program_signal(int signo)
{
	struct self *me = self();

	(void)signo;
	if (me)
		chaos_deed(me->chaos);
}

void chaos_raise(struct chaos_thread *t, bool ours)
{
	(void)t;
	if (contd__load(&running) && on(C_SIGNAL))
		pthread_kill(pthread_self(), ours ? contd__signals.signal_number : SIGUSR2);
}

void __real_contd__handler(int signo, siginfo_t *info, void *context);
void __wrap_contd__handler(int signo, siginfo_t *info, void *context);

/* contd's handler: it may come when the attaching call is through, but has not returned. */
void __wrap_contd__handler(int signo, siginfo_t *info, void *context)
{
	struct self *me = self();
	uint32_t registering = NONE;

	if (me) {
		registering = contd__load(&me->registering);
		contd__store(&me->registering, NONE);
	}
	__real_contd__handler(signo, info, context);
	if (me)
		contd__store(&me->registering, registering);
}

/* ------------------------------------------------------------------------------------------------ epochs --- */

enum way { W_TESTS, W_POLL, W_PROBE, W_REGION, W_DAEMON, W_END };
static const char *const way_name[] = {"tests", "polls", "probes", "a region", "the daemon"};

/* Must it run by this way alone? */
static bool covered(const struct cont *c, enum way way)
{
	const struct crec *k = c->cr == NONE ? NULL : &crs[c->cr];
	bool poll_only = k && k->poll_only && !k->freed;

	if ((k && k->revised && !(k->turn & 1)) || c->queues)
		return false;
	switch (way) {
	case W_TESTS:
		return k && !k->freed && k->max_poll != 0;
	case W_POLL:
	case W_PROBE:
		return !poll_only;
	case W_REGION:
		return !poll_only && !(k && k->max_poll == 0);
	default:
		return !poll_only && k && k->any && (c->n == 0 || ops[c->of[0]].kind != CHAIN);
	}
}

static uint32_t uncovered(enum way way)
{
	for (uint32_t i = 0; i < cont_count; i++)
		if (contd__load_acquire(&conts[i].state) != RAN && covered(&conts[i], way))
			return i;
	return NONE;
}

static void alone(struct self *me, enum way way)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(5000);
	bool attached = false, started = false;
	uint32_t i;
	int flag;

	chaos_note("alone", way, 0);
	if (way == W_REGION) {
		if (contd_thread_attach(NULL))
			chaos_wrong("contd_thread_attach: %s", contd_error_text());
		attached = true;
	}
	if (way == W_DAEMON)
		started = contd_daemon_start(NULL) == 0;
	while ((i = uncovered(way)) != NONE) {
		switch (way) {
		case W_TESTS:
			for (uint32_t k = 0; k < LIVE; k++)
				test_one(me, k | (uint64_t)1 << 40);
			break;
		case W_POLL:
			contd_poll(0);
			break;
		case W_PROBE:
			OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, control, &flag, MPI_STATUS_IGNORE));
			break;
		case W_REGION:
			compute(me, 2000000);
			break;
		default:
			chaos_nap(100000);
		}
		if (chaos_patience() > until) {
			const struct cont *c = &conts[i];
			const struct crec *k = c->cr == NONE ? NULL : &crs[c->cr];

			chaos_wrong("%s alone: continuation %u (of %u operations, the first of kind %d) of CR %d "
				    "(freed %d, "
				    "revised %d, turn %u, enqueue %d, any %d, safe %d, max_poll %d) has not run",
				    way_name[way], i, c->n, c->n ? (int)ops[c->of[0]].kind : -1, (int)c->cr,
				    k ? (int)k->freed : 0, k && k->revised, k ? k->turn : 0, k && k->enqueue,
				    k && k->any, k && k->safe, k ? k->max_poll : 0);
		}
	}
	if (attached && contd_thread_detach())
		chaos_wrong("contd_thread_detach: %s", contd_error_text());
	if (started)
		contd_daemon_stop();
	total_alone++;
}

/* Everything must have run now, and be right. */
static void retire(void)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(5000);
	int flag;

	for (uint32_t i = 0; i < cont_count; i++) {
		if (contd__load_acquire(&conts[i].state) != RAN)
			chaos_wrong("continuation %u of CR %d has not run, and everything was waited for", i,
				    (int)conts[i].cr);
		if (conts[i].refuses && !conts[i].told && !crs[conts[i].cr].freed)
			chaos_wrong("get_failed has not told of continuation %u of CR %u", i, conts[i].cr);
		for (uint32_t k = 0; conts[i].fails && conts[i].revised && k < conts[i].n; k++)
			ops[conts[i].of[k]].done = 1;
	}
	for (uint32_t i = 0; i < op_count; i++) {
		struct op *o = &ops[i];
		int count = -1, is_cancelled = -1;

		if (!o->done)
			chaos_wrong("operation %u of kind %d is not over", i, o->kind);
		/* After its continuation, by whatever makes progress. */
		while ((o->kind == GENERAL || o->kind == TEMPLATE) && !contd__load(&o->freed)) {
			OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, control, &flag, MPI_STATUS_IGNORE));
			contd_poll(0);
			if (chaos_patience() > until)
				chaos_wrong("free_fn of generalized request %u is not called", i);
		}
		if (o->delivered && (o->kind == RECV || o->kind == GENERAL)) {
			MPI_Get_count(&o->status, MPI_BYTE, &count);
			MPI_Test_cancelled(&o->status, &is_cancelled);
			if ((!o->cancel && count != o->bytes) || is_cancelled != o->cancel)
				chaos_wrong("operation %u of kind %d: count %d instead of %d, cancelled %d", i, o->kind,
					    count, o->bytes, is_cancelled);
		}
		if (o->persistent && !o->freed)
			OK(MPI_Request_free(&o->request));
		free(o->data);
	}
	contd__store_seq(&op_count, 0);
	contd__store_seq(&cont_count, 0);
}

static void finish_all(struct self *me)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(10000);
	int flag;

	for (uint32_t i = 0; i < LIVE; i++)
		if (live[i] != NONE && crs[live[i]].revised && !(crs[live[i]].turn & 1))
			cr_start(live[i]);
	for (uint32_t i = 0; i < LIVE; i++) {
		struct asked a;

		if (live[i] == NONE)
			continue;
		ask_begin(me, &a, 1, i, false);
		me->chaos->doing = "waits for a CR";
		cr_good(MPI_Wait(&a.list[0], MPI_STATUS_IGNORE), a.cr[0]);
		cr_complete(a.cr[0], a.before[0], true);
		if (crs[a.cr[0]].fails)
			told_failed(a.cr[0]);
		ask_end(me, &a);
	}
	/* Freed CRs, and continuations without one. */
	for (uint32_t i = 0; i < cont_count; i++)
		while (contd__load_acquire(&conts[i].state) != RAN) {
			uint32_t armed = ARMED;

			/* A failed continuation of a freed CR is reported to no call. */
			if (conts[i].queues && crs[conts[i].cr].freed && contd__cas(&conts[i].state, &armed, RAN))
				contd__add(&total_ran, 1);
			/* It has been issued after its CR was complete. */
			for (uint32_t k = 0; conts[i].transferred && k < LIVE; k++) {
				if (live[k] == conts[i].cr && !(crs[live[k]].turn & 1))
					cr_start(live[k]);
				if (live[k] == conts[i].cr)
					test_one(me, k | (uint64_t)1 << 40);
			}
			OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, control, &flag, MPI_STATUS_IGNORE));
			contd_poll(0);
			if (chaos_patience() > until)
				chaos_wrong("continuation %u of CR %d never runs", i, (int)conts[i].cr);
		}
}

static void epoch(struct self *me)
{
	uint64_t r = chaos_mix(chaos_mix(chaos.seed, chaos_round), ~epoch_number), until;
	uint32_t e, by = level == MPI_THREAD_SERIALIZED ? (uint32_t)(r >> 32) % (worker_count + 1) : 0;

	if (level != MPI_THREAD_MULTIPLE)
		for (uint32_t i = 0; i <= worker_count; i++)
			selves[i].mpi = i == by;
	contd__store_seq(&chaos_calm, 0);
	contd__store_seq(&running, 1);
	contd__store_seq(&communicating, level != MPI_THREAD_MULTIPLE);
	e = contd__add(&epoch_of_threads, 1) + 1;
	if (me->mpi)
		one_epoch(me);
	me->chaos->doing = "waits for the others";
	until = chaos_patience() + chaos_bound_ns(25000);
	for (uint32_t i = 1; i <= worker_count; i++)
		while (contd__load_acquire(&selves[i].parked) != e) {
			complete_some(chaos_draw_at(0), level == MPI_THREAD_MULTIPLE, false);
			chaos_nap(50000);
			if (chaos_patience() > until)
				chaos_wrong("thread %u hangs in %s", i, selves[i].chaos->doing);
		}
	me->mpi = true;
	contd__store_seq(&running, 0);
	contd__store_seq(&chaos_calm, 1);
	while (complete_some(0, true, true))
		;
	me->chaos->doing = "barrier";
	OK(MPI_Barrier(control));
	if (on(C_ALONE))
		for (uint32_t n = r & 1; n < 2; n++) {
			enum way way = (r >> (8 + 8 * n)) % W_END;

			if (way == W_DAEMON && level != MPI_THREAD_MULTIPLE)
				continue;
			me->chaos->doing = way_name[way];
			alone(me, way);
		}
	finish_all(me);
	me->chaos->doing = "barrier";
	OK(MPI_Barrier(control));
	retire();
	contd__add(&chaos_progress, 1);
	epoch_number++;
	total_epochs++;
}

static void round_begin(void)
{
	chaos_round_begin();
	for (uint32_t i = 0; i < CHAOS_THREADS; i++)
		if (selves[i].chaos) {
			selves[i].chaos->random = chaos_mix(selves[i].chaos->random, (uint64_t)rank + 1);
			selves[i].chaos->random_at = chaos_mix(selves[i].chaos->random_at, (uint64_t)rank + 1);
		}
	epoch_number = (uint64_t)chaos_round << 8;
	cr_count = 0;
	for (uint32_t i = 0; i < LIVE; i++)
		live[i] = NONE;
	for (uint32_t i = 0; i < LIVE; i++)
		cr_new(chaos_draw(0));
}

static int descriptors_before = -1;

static void round_end(void)
{
	uint64_t until = chaos_patience() + chaos_bound_ns(5000);
	int n;

	for (uint32_t i = 0; i < LIVE; i++)
		while (live[i] != NONE && chaos_slots_used(crs[live[i]].group)) {
			OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, control, &n, MPI_STATUS_IGNORE));
			contd_poll(0);
			if (chaos_patience() > until)
				chaos_wrong("%u slots of CR %u are left over", chaos_slots_used(crs[live[i]].group),
					    live[i]);
		}
	for (uint32_t i = 0; i < LIVE; i++)
		if (live[i] != NONE && !cr_free(i))
			chaos_wrong("somebody uses a CR, and nobody is there");
	if (pull)
		pool_end();
	if (contd__load(&total_ran) != contd__load(&total_registered))
		chaos_wrong("%llu continuations registered, %llu ran", (unsigned long long)total_registered,
			    (unsigned long long)total_ran);
	total_rounds++;
	n = chaos_descriptors();
	if (total_rounds == 3)
		descriptors_before = n;
	if (total_rounds > 3 && n > descriptors_before + 2)
		chaos_wrong("%d descriptors are left over", n - descriptors_before);
}

/* Continuations that are left to MPI_Finalize, some of freed CRs. */
static void leave_some(struct self *me)
{
	round_begin();
	for (uint32_t k = 0; k < 8; k++) {
		struct message m = message_of(0, k);

		m.from = rank;
		m.to = (rank + 1) % ranks;
		post_send(me, &m);
		m.from = (rank + ranks - 1) % ranks;
		post_receive(me, &m);
		while (me->held_count) {
			uint32_t i = cr_enter(chaos_draw(0));

			if (i != NONE && (crs[i].poll_only || crs[i].revised)) {
				leave(&crs[i].users);
				i = NONE;
			}
			if (i == NONE && !on(C_REVISED))
				break;
			attach(me, 0, 1, i, chaos_draw(0) & ~(uint64_t)0xf0000);
			if (i != NONE)
				leave(&crs[i].users);
		}
	}
	for (uint32_t i = 0; i < LIVE; i++)
		if (chaos_draw(2))
			cr_free(i);
}

static void check_left(void)
{
	for (uint32_t i = 0; i < cont_count; i++, total_at_end++)
		if (contd__load_acquire(&conts[i].state) != RAN)
			chaos_wrong("continuation %u of CR %d is left to MPI_Finalize and has not run", i,
				    (int)conts[i].cr);
}

/* All ranks run on this host. */
static void share_patience(void)
{
	int64_t at[2] = {getpid(), -1};
	char name[64];
	int fd, failed;

	if (rank == 0) {
		at[1] = memfd_create("chaos", MFD_CLOEXEC);
		if (at[1] >= 0 && ftruncate((int)at[1], CHAOS_SHARED))
			abort();
	}
	MPI_Bcast(at, 2, MPI_INT64_T, 0, control);
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)at[0], (int)at[1]);
	fd = open(name, O_RDWR | O_CLOEXEC);
	failed = fd < 0 || chaos_share_patience(fd, (uint32_t)rank, (uint32_t)ranks);
	if (failed)
		fprintf(stderr, "rank %d: no memory is shared: a bound may pass while another rank does not run\n",
			rank);
	MPI_Barrier(control); /* rank 0's descriptor has been opened by all */
	if (fd >= 0)
		close(fd);
	if (rank == 0 && at[1] >= 0)
		close((int)at[1]);
}

static const char *const level_name[] = {"single", "funneled", "serialized", "multiple"};

static uint32_t level_index(void)
{
	return level == MPI_THREAD_FUNNELED ? 1 : level == MPI_THREAD_SERIALIZED ? 2 : 3;
}

void chaos_report(void)
{
	fprintf(stderr, "rank %d of %d, --level %s, epoch %llu\n", rank, ranks, level_name[level_index()],
		(unsigned long long)epoch_number);
}

/* Takes --level out of the arguments. */
static void read_level(int *argc, char **argv)
{
	int n = 1;

	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--level") != 0 || i + 1 == *argc) {
			argv[n++] = argv[i];
			continue;
		}
		i++;
		if (strcmp(argv[i], "funneled") == 0) {
			level = MPI_THREAD_FUNNELED;
		} else if (strcmp(argv[i], "serialized") == 0) {
			level = MPI_THREAD_SERIALIZED;
		} else if (strcmp(argv[i], "multiple") != 0) {
			fprintf(stderr, "%s: --level funneled, serialized or multiple\n", argv[0]);
			exit(2);
		}
	}
	argv[n] = NULL;
	*argc = n;
}

/*
 * If an operation fails, Open MPI's (4.1) Testsome forgets pending sends of the same array whose request objects have
 * never completed: it takes what is in their memory for an error (docs/requests.md, mpi.errors_beside). So each object
 * that the rounds need completes once before they begin.
 */
static void use_send_requests(void)
{
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
	int n = (int)(worker_count + 1) * (int)(chaos.operations + 8) * 4;
	MPI_Request *requests = calloc((size_t)n * 2, sizeof(*requests));

	for (int i = 0; i < n; i++)
		OK(MPI_Issend(NULL, 0, MPI_BYTE, rank, 0, control, &requests[i]));
	for (int i = 0; i < n; i++)
		OK(MPI_Irecv(NULL, 0, MPI_BYTE, rank, 0, control, &requests[n + i]));
	OK(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
	free(requests);
#endif
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = program_signal, .sa_flags = SA_RESTART};
	struct self *me = &selves[0];
	cpu_set_t all;
	uint64_t until;
	size_t buffered;
	int provided;

	chaos.threads = 3;
	chaos.operations = 40;
	read_level(&argc, argv);
	chaos_begin(argc, argv, classes, C_END);
	CPU_ZERO(&all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	sched_setaffinity(0, sizeof(all), &all);
	sigaction(SIGUSR2, &action, NULL);
	me->chaos = chaos_thread_new("main");
	me->thread = pthread_self();
	me->registering = NONE;
	chaos_become(me->chaos);
	worker_count = chaos.threads;
	for (uint32_t i = 1; i <= worker_count; i++) {
		selves[i].chaos = chaos_thread_new("begins");
		selves[i].mpi = level == MPI_THREAD_MULTIPLE;
		selves[i].number = i - 1;
	}
	daemon_self = &selves[worker_count + 1];
	daemon_self->chaos = chaos_thread_new("daemon");
	daemon_self->chaos->daemon = true;
	daemon_self->registering = NONE;
	pool_self = &selves[worker_count + 2];
	pool_self->chaos = chaos_thread_new("pool");

	MPI_Init_thread(&argc, &argv, level, &provided);
	if (provided < level) {
		fprintf(stderr, "skipped: MPI grants thread level %d\n", provided);
		MPI_Finalize();
		return 77;
	}
	level = level == MPI_THREAD_MULTIPLE ? level : provided < MPI_THREAD_MULTIPLE ? provided : level;
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD,
				MPI_ERRORS_RETURN); /* for what belongs to none, of Open MPI and MPICH */
	MPI_Comm_dup(MPI_COMM_WORLD, &world);
	MPI_Comm_dup(MPI_COMM_WORLD, &control);
	MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &ranks);
	MPI_Bcast(&chaos.seed, 8, MPI_BYTE, 0, control);
	if (rank == 0)
		printf("seed %llu on %d ranks, --level %s\n", (unsigned long long)chaos.seed, ranks,
		       level_name[level_index()]);
	fflush(stdout);
	use_send_requests();
	share_patience();
	for (uint32_t i = 1; i <= worker_count; i++)
		if (pthread_create(&selves[i].thread, NULL, worker, &selves[i]))
			abort();
	buffered = (worker_count + 1) * (chaos.operations + 8) * 2 * (BUFFERED_MOST + MPI_BSEND_OVERHEAD);
	OK(MPI_Buffer_attach(malloc(buffered), (int)buffered));
	if (pthread_create(&pool_self->thread, NULL, pool_thread, pool_self))
		abort();
	OK(MPIX_Gr_init(template_start, template_push, template_complete, NULL, &template));
	chaos_watch();
	chaos_points(on(C_POINTS));
	until = chaos_ns() + chaos.seconds * 1000000000ull;
	for (uint32_t n = 0;; n++, chaos_round++) {
		int more = chaos.rounds ? n < chaos.rounds : chaos_ns() < until;

		me->mpi = level != MPI_THREAD_MULTIPLE;
		MPI_Bcast(&more, 1, MPI_INT, 0, control);
		if (!more)
			break;
		if (on(C_TASK) || on(C_POOL) || on(C_MODES))
			pool_begin();
		round_begin();
		for (uint32_t i = 0; i < 1 + chaos_mix(chaos.seed, chaos_round) % 6; i++) {
			me->mpi = level != MPI_THREAD_MULTIPLE;
			epoch(me);
		}
		round_end();
	}
	contd__store_seq(&leaving, 1);
	for (uint32_t i = 1; i <= worker_count; i++)
		pthread_join(selves[i].thread, NULL);
	pthread_join(pool_self->thread, NULL);
	me->mpi = true;
	OK(MPIX_Gr_free(&template));
	if (on(C_FINALIZE))
		leave_some(me);
	me->chaos->doing = "MPI_Finalize";
	MPI_Finalize();
	contd__store_seq(&ended, 1);
	check_left();
	contd_poll(0);
	chaos_nap(20000000);
	chaos_watch_end();
	printf("rank %d: %llu rounds, %llu epochs: %llu continuations ran, %llu of them in MPI_Finalize; alone %llu "
	       "times\n",
	       rank, (unsigned long long)total_rounds, (unsigned long long)total_epochs, (unsigned long long)total_ran,
	       (unsigned long long)total_at_end, (unsigned long long)total_alone);
	return 0;
}
