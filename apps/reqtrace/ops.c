/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const kind_names[] = {
#define NAME(name, ...) #name,
	SENDS(NAME) "Irecv", "Imrecv", SEND_INITS(NAME) "Recv_init",
	STARTED(NAME) STARTED_COUNTED(NAME) MADE(NAME) MADE_COUNTED(NAME)
#undef NAME
};

static const char *const outcome_names[] = {"never completed", "completed", "cancelled", "failed", "freed"};

/* Times by their size: 32 steps an octave, so that a median is right to 3 %, whatever their number. */
#define STEPS 32u
#define BINS (60u * STEPS)

struct kind_sum {
	uint64_t outcomes[OUTCOMES], started, longest;
	uint64_t bins[BINS];
};

struct entry {
	struct entry *next;
	MPI_Request handle;
	struct op *op, *last; /* active ones, the oldest first */
	long long bytes;
	int peer, tag;
	enum kind kind;
	bool persistent, cr, unseen;
};

/* An entry of a thread's timeline: a call that waited or reported an end, a continuation that ran. */
struct slice {
	struct slice *next;
	const char *name, *in; /* in: of a continuation; NULL: in no call that the tool stands before */
	uint64_t start, end;
	int thread, count; /* count: of a continuation, its operations; 0: a call */
};

/* All of this under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry **buckets;
static size_t bucket_count, entry_count;
static struct kind_sum *sums[KINDS];
static struct op *first, **last = &first; /* the timeline's, as they were started */
static uint64_t kept, kept_most = UINT64_MAX, untimed;
static struct slice *first_slice, **last_slice = &first_slice;
static uint64_t slices;
static uint64_t unknown, cancel_calls, lost; /* ended without a start; calls of MPI_Cancel; no memory */
static struct attached *attached_all;        /* their callbacks have not run, as far as is known */

static uint32_t unseen; /* entries with that mark; read without the lock */

/*
 * The thread's number, from 1 on in the order in which they came here, and the call that it is in. Of the initial
 * image, as a handler may not wait for memory.
 */
static __thread int thread_own __attribute__((tls_model("initial-exec")));
static __thread struct call *call_now __attribute__((tls_model("initial-exec")));
static int threads;

/* attached_done puts them here; the next thread that takes the lock handles them. */
static struct attached *finished;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -------------------------------------------------------------------------------------------------- the handles --- */

static size_t bucket_of(MPI_Request handle, size_t count)
{
	uint64_t key = (uint64_t)(uintptr_t)handle;

	return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (count - 1);
}

static struct entry **find(MPI_Request handle)
{
	struct entry **at;

	if (!bucket_count)
		return NULL;
	for (at = &buckets[bucket_of(handle, bucket_count)]; *at; at = &(*at)->next)
		if ((*at)->handle == handle)
			return at;
	return NULL;
}

static void insert(struct entry *e)
{
	struct entry **at = &buckets[bucket_of(e->handle, bucket_count)];

	e->next = *at;
	*at = e;
}

static bool grow(void)
{
	size_t count = bucket_count, more = count ? 2 * count : 256;
	struct entry **old = buckets, **wider = calloc(more, sizeof(struct entry *)), *e, *next;

	if (!wider)
		return count;
	buckets = wider;
	bucket_count = more;
	for (size_t i = 0; i < count; i++)
		for (e = old[i]; e; e = next) {
			next = e->next;
			insert(e);
		}
	free(old);
	return true;
}

static struct entry *enter(MPI_Request handle)
{
	struct entry *e = NULL;

	if (entry_count < bucket_count || grow())
		e = calloc(1, sizeof(*e));
	if (!e) {
		lost++;
		return NULL;
	}
	e->handle = handle;
	insert(e);
	entry_count++;
	return e;
}

static void leave(struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	entry_count--;
	if (e->unseen)
		__atomic_fetch_sub(&unseen, 1, __ATOMIC_RELAXED);
	free(e);
}

/* Relaxed: a thread that has the handle got it after it was counted. */
static void mark_unseen(struct entry *e)
{
	if (!e->unseen)
		__atomic_fetch_add(&unseen, 1, __ATOMIC_RELAXED);
	e->unseen = true;
}

/* The handle's, made if there is none. */
static struct entry *entry_of(MPI_Request handle)
{
	struct entry **at = find(handle);

	return at ? *at : enter(handle);
}

static void append(struct entry *e, struct op *op)
{
	if (!op)
		return;
	op->behind = NULL;
	if (e->op)
		e->last->behind = op;
	else
		e->op = op;
	e->last = op;
}

/* ----------------------------------------------------------------------------------------------- the operations --- */

static struct kind_sum *sum_of(enum kind kind)
{
	if (!sums[kind])
		sums[kind] = calloc(1, sizeof(**sums));
	return sums[kind];
}

static uint64_t most(void)
{
	if (kept_most == UINT64_MAX) {
		const char *value = getenv("REQTRACE_EVENTS");

		kept_most = value ? strtoull(value, NULL, 10) : 200000;
	}
	return kept_most;
}

static struct op *begin(enum kind kind, int peer, int tag, long long bytes, uint64_t start)
{
	struct op *op = calloc(1, sizeof(*op));
	struct kind_sum *sum = sum_of(kind);

	if (!op || !sum) {
		free(op);
		lost++;
		return NULL;
	}
	op->start = start;
	op->bytes = bytes;
	op->peer = peer;
	op->tag = tag;
	op->kind = (unsigned char)kind;
	sum->started++;
	if (kept < most()) {
		kept++;
		op->kept = true;
		*last = op;
		last = &op->next;
	} else {
		untimed++;
	}
	return op;
}

static unsigned bin_of(uint64_t ns)
{
	unsigned octave = 0;
	uint64_t n = ns;

	while (n >= 2 * STEPS) {
		n >>= 1;
		octave++;
	}
	return octave * STEPS + (unsigned)n < BINS ? octave * STEPS + (unsigned)n : BINS - 1;
}

static uint64_t bin_middle(unsigned bin)
{
	unsigned octave = bin < 2 * STEPS ? 0 : bin / STEPS - 1;
	uint64_t low = (uint64_t)(bin - octave * STEPS) << octave;

	return low + (((uint64_t)1 << octave) >> 1);
}

static void end(struct op *op, enum outcome outcome, uint64_t when, const char *by)
{
	op->outcome = (unsigned char)outcome;
	op->by = by;
	/* Release: a thread that writes the timeline sees the stores above. */
	__atomic_store_n(&op->end, when, __ATOMIC_RELEASE);
}

/* Into the sums; op is gone unless it is the timeline's. */
static void account(struct op *op)
{
	struct kind_sum *sum = sums[op->kind];
	uint64_t ns = op->end - op->start;

	sum->outcomes[op->outcome]++;
	if (op->outcome == COMPLETED) {
		sum->bins[bin_of(ns)]++;
		sum->longest = ns > sum->longest ? ns : sum->longest;
	}
	if (!op->kept)
		free(op);
}

/* Of others the status does not say: Open MPI leaves that of files' operations as it happens to be. */
static bool may_be_cancelled(enum kind kind)
{
	return kind <= KIND_Recv_init || kind == KIND_Grequest_start;
}

static enum outcome outcome_of(enum kind kind, const MPI_Status *status)
{
	int cancelled = 0;

	if (!status)
		return COMPLETED;
	if (status->MPI_ERROR != MPI_SUCCESS)
		return FAILED;
	if (may_be_cancelled(kind))
		PMPI_Test_cancelled(status, &cancelled);
	return cancelled ? CANCELLED : COMPLETED;
}

/* ... and the source of a receive with MPI_ANY_SOURCE. */
static void end_with(struct op *op, const MPI_Status *status, uint64_t when, const char *by)
{
	enum outcome outcome = outcome_of(op->kind, status);

	if ((op->kind == KIND_Irecv || op->kind == KIND_Imrecv || op->kind == KIND_Recv_init) && status &&
	    outcome == COMPLETED && status->MPI_SOURCE >= 0) {
		op->peer = status->MPI_SOURCE;
		op->tag = status->MPI_TAG;
	}
	end(op, outcome, when, by);
}

static void attached_release(struct attached *a)
{
	for (struct attached **at = &attached_all; *at; at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			break;
		}
	if (a->own != a->given)
		free(a->own);
	free(a->handles);
	free(a->ops);
	free(a);
}

static void slice(const char *name, const char *in, uint64_t start, uint64_t when, int thread, int count)
{
	struct slice *s = slices < most() ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return;
	*s = (struct slice){NULL, name, in, start, when, thread, count};
	*last_slice = s;
	last_slice = &s->next;
	slices++;
}

/* Handle the entries that attached_done has left. */
static void drain(void)
{
	/* Acquire: the operations' ends were written before the release in attached_done. */
	struct attached *a = __atomic_exchange_n(&finished, NULL, __ATOMIC_ACQUIRE), *next;

	for (; a; a = next) {
		next = a->next_finished;
		for (int i = 0; i < a->count; i++)
			if (a->ops[i])
				account(a->ops[i]);
		slice("continuation", a->in, a->ran, a->returned, a->thread, a->count ? a->count : 1);
		a->count = 0;
		if (!a->owed)
			attached_release(a);
	}
}

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
	drain();
}

static void release_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static int thread_number(void)
{
	if (!thread_own)
		thread_own = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return thread_own;
}

void call_begin(struct call *c, const char *name)
{
	*c = (struct call){name, call_now, now_ns(), false};
	call_now = c;
}

uint64_t call_end(struct call *c, bool waits, bool noted)
{
	uint64_t when;

	call_now = c->outer;
	if (!noted || (!waits && !c->tells))
		return c->start;
	when = now_ns();
	take_lock();
	slice(c->name, NULL, c->start, when, thread_number(), 0);
	release_lock();
	return when;
}

static void call_tells(void)
{
	if (call_now)
		call_now->tells = true;
}

/* MPICH's query never says of files' operations that they are complete. */
static bool query_works(enum kind kind)
{
#ifdef MPICH_VERSION
#define FILE_CASE(name, ...) case KIND_##name:
	switch (kind) {
		FILES_COUNTED(FILE_CASE)
		return false;
	default:
		return true;
	}
#else
	return true;
#endif
}

void op_started(enum kind kind, MPI_Request handle, int peer, int tag, long long bytes, uint64_t start)
{
	struct entry *e;

	take_lock();
	e = entry_of(handle);
	if (e) {
		e->persistent = false; /* it was freed behind our back */
		if (!query_works(kind))
			mark_unseen(e);
		append(e, begin(kind, peer, tag, bytes, start));
	}
	release_lock();
}

void op_made(enum kind kind, MPI_Request handle, int peer, int tag, long long bytes)
{
	struct entry *e;

	take_lock();
	e = entry_of(handle);
	if (e) {
		e->kind = kind;
		e->peer = peer;
		e->tag = tag;
		e->bytes = bytes;
		e->persistent = true;
	}
	release_lock();
}

void op_restarted(MPI_Request handle, uint64_t start)
{
	struct entry **at;

	take_lock();
	at = find(handle);
	if (at && (*at)->persistent)
		append(*at, begin((*at)->kind, (*at)->peer, (*at)->tag, (*at)->bytes, start));
	release_lock();
}

void op_cancel(MPI_Request handle)
{
	take_lock();
	cancel_calls++;
	release_lock();
}

/* The oldest one that the handle stands for. */
static struct op *take(MPI_Request handle)
{
	struct entry **at = find(handle);
	struct op *op = at ? (*at)->op : NULL;

	if (!at) {
		unknown++;
		return NULL;
	}
	if (op)
		(*at)->op = op->behind;
	if (!(*at)->op && !(*at)->persistent && !(*at)->cr)
		leave(at);
	return op;
}

struct op *op_take(MPI_Request handle)
{
	struct op *op;

	if (handle == MPI_REQUEST_NULL)
		return NULL;
	take_lock();
	op = take(handle);
	release_lock();
	return op;
}

void op_free(MPI_Request handle)
{
	struct entry **at;
	struct op *op;

	take_lock();
	at = find(handle);
	if (at && (*at)->cr) {
		leave(at);
	} else if (at) {
		(*at)->persistent = false;
		op = take(handle);
		if (op) {
			end(op, FREED, now_ns(), "Request_free");
			account(op);
		}
	}
	release_lock();
}

void op_done(struct op *op, const MPI_Status *status, const char *by)
{
	if (!op)
		return;
	end_with(op, status, now_ns(), by);
	call_tells();
}

void op_close(struct op *op, int rc)
{
	if (!op)
		return;
	if (rc != MPI_SUCCESS)
		op->outcome = FAILED;
	take_lock();
	account(op);
	release_lock();
}

static void back(struct op *op, MPI_Request handle)
{
	struct entry *e = entry_of(handle);

	op->outcome = ACTIVE;
	op->end = 0;
	if (e)
		append(e, op);
}

void op_back(struct op *op, MPI_Request handle)
{
	if (!op)
		return;
	take_lock();
	back(op, handle);
	release_lock();
}

/* ------------------------------------------------------------------------------------------------ continuations --- */

void cr_made(MPI_Request cr)
{
	struct entry *e;

	take_lock();
	e = entry_of(cr);
	if (e) {
		e->cr = true;
		mark_unseen(e);
	}
	release_lock();
}

bool cr_is(MPI_Request handle)
{
	struct entry **at;
	bool is;

	if (!__atomic_load_n(&unseen, __ATOMIC_RELAXED) || handle == MPI_REQUEST_NULL)
		return false;
	take_lock();
	at = find(handle);
	is = at && (*at)->cr;
	release_lock();
	return is;
}

bool unseen_among(int count, const MPI_Request *requests)
{
	bool found = false;

	if (!__atomic_load_n(&unseen, __ATOMIC_RELAXED))
		return false;
	take_lock();
	for (int i = 0; i < count && !found; i++) {
		struct entry **at = requests[i] == MPI_REQUEST_NULL ? NULL : find(requests[i]);

		found = at && (*at)->unseen;
	}
	release_lock();
	return found;
}

struct attached *attached_make(int count, const MPI_Request *handles, MPI_Status *statuses)
{
	struct attached *a = calloc(1, sizeof(*a));
	size_t n = count > 0 ? (size_t)count : 1;
	bool ignored = statuses == MPI_STATUS_IGNORE || statuses == MPI_STATUSES_IGNORE;

	if (!a)
		return NULL;
	a->count = count > 0 ? count : 0;
	a->given = statuses;
	a->own = ignored ? calloc(n, sizeof(MPI_Status)) : statuses;
	a->handles = calloc(n, sizeof(MPI_Request));
	a->ops = calloc(n, sizeof(struct op *));
	take_lock();
	if (!a->own || !a->handles || !a->ops) {
		attached_release(a);
		lost++;
		a = NULL;
	} else {
		for (int i = 0; i < a->count; i++) {
			a->handles[i] = handles[i];
			if (handles[i] != MPI_REQUEST_NULL && find(handles[i]))
				a->ops[i] = take(handles[i]);
		}
		a->next = attached_all;
		attached_all = a;
	}
	release_lock();
	return a;
}

void attached_undo(struct attached *a)
{
	take_lock();
	for (int i = 0; i < a->count; i++)
		if (a->ops[i])
			back(a->ops[i], a->handles[i]);
	attached_release(a);
	release_lock();
}

static void attached_ends(struct attached *a, uint64_t when)
{
	for (int i = 0; i < a->count; i++)
		if (a->ops[i])
			end_with(a->ops[i], &a->own[i], when, "continuation");
}

/*
 * These two take no lock, and make no calls but clock_gettime(2) and MPI_Test_cancelled, which only reads the status:
 * they may run in a handler of contd's. The statuses are read before the callback runs: later they are the program's.
 */
void attached_runs(struct attached *a)
{
	a->ran = now_ns();
	a->in = call_now ? call_now->name : NULL;
	a->thread = thread_number();
	attached_ends(a, a->ran);
	call_tells();
}

void attached_done(struct attached *a, int rc)
{
	struct attached *head = __atomic_load_n(&finished, __ATOMIC_RELAXED);

	a->returned = now_ns();
	a->owed = rc != MPI_SUCCESS;
	do
		a->next_finished = head;
	/* Release: the operations' ends, for drain. */
	while (!__atomic_compare_exchange_n(&finished, &head, a, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void *attached_failed(void *data)
{
	void *own = data;

	take_lock();
	for (struct attached *a = attached_all; a; a = a->next)
		if (a == data) {
			own = a->data;
			attached_ends(a, now_ns());
			for (int i = 0; i < a->count; i++)
				if (a->ops[i])
					account(a->ops[i]);
			attached_release(a);
			break;
		}
	release_lock();
	return own;
}

/* ------------------------------------------------------------------------------------------------------ the end --- */

void ops_end(void)
{
	uint64_t when = now_ns();
	struct op *op;

	take_lock();
	for (struct attached *a = attached_all; a; a = a->next)
		for (int i = 0; i < a->count; i++)
			if (a->ops[i]) {
				end(a->ops[i], ACTIVE, when, "");
				account(a->ops[i]);
				a->ops[i] = NULL;
			}
	for (size_t i = 0; i < bucket_count; i++)
		for (struct entry *e = buckets[i]; e; e = e->next)
			while ((op = e->op)) {
				e->op = op->behind;
				end(op, ACTIVE, when, "");
				account(op);
			}
	release_lock();
}

static double median_us(const struct kind_sum *sum)
{
	uint64_t half = (sum->outcomes[COMPLETED] + 1) / 2, seen = 0;

	for (unsigned i = 0; i < BINS; i++) {
		seen += sum->bins[i];
		if (seen >= half)
			return (double)(bin_middle(i) < sum->longest ? bin_middle(i) : sum->longest) / 1000;
	}
	return 0;
}

void ops_summary(FILE *out, int rank)
{
	uint64_t all = 0, outcomes[OUTCOMES] = {0};

	for (int k = 0; k < KINDS; k++)
		if (sums[k]) {
			all += sums[k]->started;
			for (int o = 0; o < OUTCOMES; o++)
				outcomes[o] += sums[k]->outcomes[o];
		}
	fprintf(out, "rank %d: %" PRIu64 " operations", rank, all);
	for (int o = 1; o <= OUTCOMES; o++)
		if (outcomes[o % OUTCOMES])
			fprintf(out, ", %" PRIu64 " %s", outcomes[o % OUTCOMES], outcome_names[o % OUTCOMES]);
	fprintf(out, "\n");
	if (all)
		fprintf(out, "  %-20s %9s %9s %9s %9s %9s %9s %12s %12s\n", "kind", "started", "completed", "cancelled",
			"failed", "freed", "never", "median us", "longest us");
	for (int k = 0; k < KINDS; k++) {
		const struct kind_sum *s = sums[k];

		if (!s || !s->started)
			continue;
		fprintf(out, "  %-20s %9" PRIu64, kind_names[k], s->started);
		for (int o = 1; o <= OUTCOMES; o++)
			fprintf(out, " %9" PRIu64, s->outcomes[o % OUTCOMES]);
		if (s->outcomes[COMPLETED])
			fprintf(out, " %12.1f %12.1f\n", median_us(s), (double)s->longest / 1000);
		else
			fprintf(out, " %12s %12s\n", "-", "-");
	}
	if (cancel_calls)
		fprintf(out, "  calls of MPI_Cancel: %" PRIu64 "\n", cancel_calls);
	if (unknown)
		fprintf(out, "  completed, but not seen when they were started: %" PRIu64 "\n", unknown);
	if (untimed)
		fprintf(out, "  operations that are not in the timeline (REQTRACE_EVENTS): %" PRIu64 "\n", untimed);
	if (lost)
		fprintf(out, "  lost for want of memory: %" PRIu64 "\n", lost);
}

/* Lanes: events of one must not overlap. A heap by the time when each is free again. */
struct lane {
	uint64_t free_at;
	unsigned number;
};

static void sift(struct lane *lanes, size_t count, size_t i)
{
	for (;;) {
		size_t least = i, left = 2 * i + 1;

		for (size_t k = left; k < left + 2 && k < count; k++)
			if (lanes[k].free_at < lanes[least].free_at)
				least = k;
		if (least == i)
			return;
		struct lane swap = lanes[i];

		lanes[i] = lanes[least];
		lanes[least] = swap;
		i = least;
	}
}

static unsigned lane_for(struct lane *lanes, size_t *count, uint64_t start, uint64_t end)
{
	size_t i = 0;

	if (!*count || lanes[0].free_at > start) {
		for (i = (*count)++; i && lanes[(i - 1) / 2].free_at > end; i = (i - 1) / 2)
			lanes[i] = lanes[(i - 1) / 2];
		lanes[i] = (struct lane){end, (unsigned)*count};
		return (unsigned)*count;
	}
	i = lanes[0].number;
	lanes[0].free_at = end;
	sift(lanes, *count, 0);
	return (unsigned)i;
}

/* An operation, and when it ended: until now, if it has not. */
struct span {
	const struct op *op;
	uint64_t end;
	bool open;
};

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->op->start > y->op->start) - (x->op->start < y->op->start);
}

#define LANES 1000 /* tid of the first lane; below it those of threads */

/* An event's beginning, in microseconds with three digits. */
static void event(FILE *out, const char *name, const char *cat, int rank, unsigned tid, uint64_t start, uint64_t end)
{
	fprintf(out,
		",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,"
		"\"pid\":%d,\"tid\":%u,\"args\":{",
		name, cat, start / 1000, (unsigned)(start % 1000), (end - start) / 1000,
		(unsigned)((end - start) % 1000), rank, tid);
}

static void name_row(FILE *out, int rank, unsigned tid, const char *name, unsigned number)
{
	fprintf(out,
		",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":\"%s %u\"}}"
		",\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{\"sort_index\":%u}}",
		rank, tid, name, number, rank, tid, tid);
}

static void operations(FILE *out, int rank, uint64_t zero, struct span *spans, struct lane *lanes)
{
	size_t count = 0, lane_count = 0;
	uint64_t now = now_ns();

	for (const struct op *op = first; op; op = op->next) {
		/* Acquire: what end() wrote before. It may be a handler that writes. */
		uint64_t end = __atomic_load_n(&op->end, __ATOMIC_ACQUIRE);

		spans[count++] = (struct span){op, end ? end : now > op->start ? now : op->start, !end};
	}
	qsort(spans, count, sizeof(*spans), by_start);
	for (size_t i = 0; i < count; i++) {
		const struct op *op = spans[i].op;
		enum outcome outcome = spans[i].open ? ACTIVE : (enum outcome)op->outcome;
		unsigned lane = lane_for(lanes, &lane_count, op->start, spans[i].end);

		event(out, kind_names[op->kind], outcome_names[outcome], rank, LANES + lane, op->start - zero,
		      spans[i].end - zero);
		fprintf(out, "\"ended\":\"%s\",\"by\":\"%s\"", outcome_names[outcome], spans[i].open ? "" : op->by);
		if (op->peer != MPI_UNDEFINED)
			fprintf(out, ",\"peer\":%d,\"tag\":%d", op->peer, op->tag);
		if (op->bytes >= 0)
			fprintf(out, ",\"bytes\":%lld", op->bytes);
		fprintf(out, "}}");
	}
	for (unsigned lane = 1; lane <= lane_count; lane++)
		name_row(out, rank, LANES + lane, "operations", lane);
}

void ops_timeline(FILE *out, int rank, uint64_t zero, const char *host)
{
	struct span *spans;
	struct lane *lanes;

	take_lock();
	spans = calloc((size_t)kept + 1, sizeof(*spans));
	lanes = calloc((size_t)kept + 1, sizeof(*lanes));
	fprintf(out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d on %s\"}}", rank,
		rank, host);
	for (unsigned t = 1; t <= (unsigned)__atomic_load_n(&threads, __ATOMIC_RELAXED) && t < LANES; t++)
		name_row(out, rank, t, "thread", t);
	for (const struct slice *s = first_slice; s; s = s->next) {
		event(out, s->name, s->count ? "continuation" : "call", rank, (unsigned)s->thread, s->start - zero,
		      s->end - zero);
		if (s->count)
			fprintf(out, "\"in\":\"%s\",\"operations\":%d", s->in ? s->in : "", s->count);
		fprintf(out, "}}");
	}
	if (spans && lanes)
		operations(out, rank, zero, spans, lanes);
	free(lanes);
	free(spans);
	release_lock();
}
