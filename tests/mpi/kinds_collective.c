/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuations on all nonblocking and all persistent collectives, within a group, between groups and among neighbours,
 * and on communicators being duplicated.
 */
#include "kinds.h"
#include "../mpi4.h"

#ifdef OPEN_MPI
#include <mpi-ext.h> /* persistent collectives under MPIX_ names */
#endif

#ifdef HAS_MPI_4
#define HAVE_PERSISTENT 1
#define INIT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define HAVE_PERSISTENT 1
#define INIT(name) MPIX_##name##_init
#else
#define HAVE_PERSISTENT 0
#endif

#define TAG 41
#define MOST 16 /* ranks */
#define GAP 3   /* between the blocks of the calls with displacements */
#define SMALL 3 /* elements a block */
#define LARGE 5000

enum what {
	BARRIER,
	BCAST,
	GATHER,
	GATHERV,
	SCATTER,
	SCATTERV,
	ALLGATHER,
	ALLGATHERV,
	ALLTOALL,
	ALLTOALLV,
	ALLTOALLW,
	REDUCE,
	ALLREDUCE,
	REDUCE_SCATTER_BLOCK,
	REDUCE_SCATTER,
	SCAN,
	EXSCAN,
	NEIGHBOR_ALLGATHER,
	NEIGHBOR_ALLGATHERV,
	NEIGHBOR_ALLTOALL,
	NEIGHBOR_ALLTOALLV,
	NEIGHBOR_ALLTOALLW,
	WHATS
};

static const char *const what_name[WHATS] = {"barrier",
					     "bcast",
					     "gather",
					     "gatherv",
					     "scatter",
					     "scatterv",
					     "allgather",
					     "allgatherv",
					     "alltoall",
					     "alltoallv",
					     "alltoallw",
					     "reduce",
					     "allreduce",
					     "reduce_scatter_block",
					     "reduce_scatter",
					     "scan",
					     "exscan",
					     "neighbor_allgather",
					     "neighbor_allgatherv",
					     "neighbor_alltoall",
					     "neighbor_alltoallv",
					     "neighbor_alltoallw"};

/* Where the collectives of a run take place. */
static struct {
	MPI_Comm comm;
	bool inter, persistent;
	int me, mine;    /* in the own group */
	int side;        /* which of the two groups */
	int peers;       /* whom data comes from: the group, the other group, or the neighbours */
	int neighbor[2]; /* the sources */
} at;

/* One collective of a run; its arrays must stay while a persistent one lives. */
struct collective {
	char name[64];
	enum what what;
	int n; /* elements a block */
	long *in, *out;
	int in_count[MOST], in_at[MOST], out_count[MOST], out_at[MOST];
	MPI_Aint in_bytes[MOST], out_bytes[MOST];
	MPI_Datatype type[MOST];
};

/* ------------------------------------------------------------------------------------------------- what is sent --- */

static int own_id(void)
{
	return at.side * MOST + at.me;
}

/* Of the rank in the other group, or of the neighbour, from whom block i comes. */
static int peer_id(const struct collective *c, int i)
{
	if (c->what >= NEIGHBOR_ALLGATHER)
		return at.neighbor[i];
	return (at.inter ? 1 - at.side : at.side) * MOST + i;
}

static long value(int from, int to, int round, int k)
{
	return from * 100000000L + to * 1000000L + round * 10000L + k % 10000;
}

/* Elements of the block from one rank to another, where the call has a count for each. */
static int length(const struct collective *c, int from, int to)
{
	return c->n ? c->n + (from + 2 * to) % GAP : 0;
}

static bool rooted(const struct collective *c)
{
	return c->what == BCAST || c->what == GATHER || c->what == GATHERV || c->what == SCATTER ||
	       c->what == SCATTERV || c->what == REDUCE;
}

/* A persistent collective has one root for ever. */
static int root_side(int round)
{
	return at.inter && !at.persistent ? round % 2 : 0;
}

static int root_rank(int round)
{
	if (at.inter)
		return 0;
	return at.persistent ? at.mine - 1 : round % at.mine;
}

static bool am_root(int round)
{
	return at.side == root_side(round) && at.me == root_rank(round);
}

/* Does it take part other than as root? */
static bool with_root(int round)
{
	return !at.inter || at.side != root_side(round);
}

static int root_argument(int round)
{
	if (with_root(round))
		return root_rank(round);
	return am_root(round) ? MPI_ROOT : MPI_PROC_NULL;
}

static bool to_each(enum what what)
{
	return what == SCATTER || what == SCATTERV || what == ALLTOALL || what == ALLTOALLV || what == ALLTOALLW ||
	       what == NEIGHBOR_ALLTOALL || what == NEIGHBOR_ALLTOALLV || what == NEIGHBOR_ALLTOALLW;
}

static bool with_counts(enum what what)
{
	return what == GATHERV || what == SCATTERV || what == ALLGATHERV || what == ALLTOALLV || what == ALLTOALLW ||
	       what == NEIGHBOR_ALLGATHERV || what == NEIGHBOR_ALLTOALLV || what == NEIGHBOR_ALLTOALLW;
}

static size_t elements(const struct collective *c)
{
	return (size_t)(c->n + GAP) * MOST;
}

/* To whom the own block i goes, as a rank of the receiving group. */
static int destination(const struct collective *c, int i)
{
	if (c->what >= NEIGHBOR_ALLGATHER)
		return i ? check_previous() : check_next();
	return i;
}

/* The blocks: their lengths and where they stand in the buffers. */
static void lay_out(struct collective *c)
{
	bool v = with_counts(c->what);
	int total = 0;

	c->in = malloc(elements(c) * sizeof(long));
	c->out = malloc(elements(c) * sizeof(long));
	for (int i = 0; i < at.peers; i++) {
		int from = c->what >= NEIGHBOR_ALLGATHER ? at.neighbor[i] : i;
		bool each = to_each(c->what);

		c->in_at[i] = c->out_at[i] = i * (v ? c->n + GAP : c->n);
		c->in_count[i] = v ? length(c, from, each ? at.me : 0) : c->n;
		c->out_count[i] = v ? length(c, at.me, each ? destination(c, i) : 0) : c->n;
		if (c->what == SCATTERV) {
			c->out_count[i] = length(c, 0, i);
			c->in_count[i] = length(c, 0, at.me);
		}
		c->in_bytes[i] = (MPI_Aint)sizeof(long) * c->in_at[i];
		c->out_bytes[i] = (MPI_Aint)sizeof(long) * c->out_at[i];
		c->type[i] = MPI_LONG;
	}
	for (int i = 0; i < at.mine && c->what == REDUCE_SCATTER; i++) {
		c->out_count[i] = length(c, i, 0);
		c->out_at[i] = total;
		total += c->out_count[i];
	}
	for (int i = 0; i < at.peers && c->what == ALLTOALLW; i++) {
		c->in_at[i] *= (int)sizeof(long); /* this call has bytes, and integers for them */
		c->out_at[i] *= (int)sizeof(long);
	}
}

static void fill(struct collective *c, int round)
{
	for (size_t i = 0; i < elements(c); i++)
		c->in[i] = c->out[i] = -1;
	if (c->what == BCAST && am_root(round))
		for (int k = 0; k < c->n; k++)
			c->in[k] = value(own_id(), 0, round, k);
	if (c->what == REDUCE_SCATTER || c->what == REDUCE_SCATTER_BLOCK) {
		for (size_t k = 0; k < elements(c); k++)
			c->out[k] = value(own_id(), 0, round, (int)k);
	} else if (to_each(c->what)) {
		for (int i = 0; i < at.peers; i++)
			for (int k = 0; k < c->out_count[i]; k++)
				c->out[c->out_bytes[i] / (int)sizeof(long) + k] =
					value(own_id(), destination(c, i), round, k);
	} else {
		for (size_t k = 0; k < elements(c); k++)
			c->out[k] = value(own_id(), 0, round, (int)k);
	}
}

/* ----------------------------------------------------------------------------------------------------- starting --- */

#if HAVE_PERSISTENT
#define START(now, later, ...) (at.persistent ? INIT(later)(__VA_ARGS__, MPI_INFO_NULL, r) : MPI_I##now(__VA_ARGS__, r))
#else
#define START(now, later, ...) MPI_I##now(__VA_ARGS__, r)
#endif

static int start(struct collective *c, int root, MPI_Request *r)
{
	const MPI_Datatype type = MPI_LONG;
	const MPI_Comm comm = at.comm;
	const int n = c->n;

	switch (c->what) {
	case BARRIER:
		return START(barrier, Barrier, comm);
	case BCAST:
		return START(bcast, Bcast, c->in, n, type, root, comm);
	case GATHER:
		return START(gather, Gather, c->out, n, type, c->in, n, type, root, comm);
	case GATHERV:
		return START(gatherv, Gatherv, c->out, length(c, at.me, 0), type, c->in, c->in_count, c->in_at, type,
			     root, comm);
	case SCATTER:
		return START(scatter, Scatter, c->out, n, type, c->in, n, type, root, comm);
	case SCATTERV:
		return START(scatterv, Scatterv, c->out, c->out_count, c->out_at, type, c->in, length(c, 0, at.me),
			     type, root, comm);
	case ALLGATHER:
		return START(allgather, Allgather, c->out, n, type, c->in, n, type, comm);
	case ALLGATHERV:
		return START(allgatherv, Allgatherv, c->out, length(c, at.me, 0), type, c->in, c->in_count, c->in_at,
			     type, comm);
	case ALLTOALL:
		return START(alltoall, Alltoall, c->out, n, type, c->in, n, type, comm);
	case ALLTOALLV:
		return START(alltoallv, Alltoallv, c->out, c->out_count, c->out_at, type, c->in, c->in_count, c->in_at,
			     type, comm);
	case ALLTOALLW:
		return START(alltoallw, Alltoallw, c->out, c->out_count, c->out_at, c->type, c->in, c->in_count,
			     c->in_at, c->type, comm);
	case REDUCE:
		return START(reduce, Reduce, c->out, c->in, n, type, MPI_SUM, root, comm);
	case ALLREDUCE:
		return START(allreduce, Allreduce, c->out, c->in, n, type, MPI_SUM, comm);
	case REDUCE_SCATTER_BLOCK:
		return START(reduce_scatter_block, Reduce_scatter_block, c->out, c->in, n, type, MPI_SUM, comm);
	case REDUCE_SCATTER:
		return START(reduce_scatter, Reduce_scatter, c->out, c->in, c->out_count, type, MPI_SUM, comm);
	case SCAN:
		return START(scan, Scan, c->out, c->in, n, type, MPI_SUM, comm);
	case EXSCAN:
		return START(exscan, Exscan, c->out, c->in, n, type, MPI_SUM, comm);
	case NEIGHBOR_ALLGATHER:
		return START(neighbor_allgather, Neighbor_allgather, c->out, n, type, c->in, n, type, comm);
	case NEIGHBOR_ALLGATHERV:
		return START(neighbor_allgatherv, Neighbor_allgatherv, c->out, length(c, at.me, 0), type, c->in,
			     c->in_count, c->in_at, type, comm);
	case NEIGHBOR_ALLTOALL:
		return START(neighbor_alltoall, Neighbor_alltoall, c->out, n, type, c->in, n, type, comm);
	case NEIGHBOR_ALLTOALLV:
		return START(neighbor_alltoallv, Neighbor_alltoallv, c->out, c->out_count, c->out_at, type, c->in,
			     c->in_count, c->in_at, type, comm);
	default:
		return START(neighbor_alltoallw, Neighbor_alltoallw, c->out, c->out_count, c->out_bytes, c->type, c->in,
			     c->in_count, c->in_bytes, c->type, comm);
	}
}

static struct collective collectives[3 * WHATS];

static struct collective *collective_of(const struct kind *k)
{
	return &collectives[(const struct collective *)k->how - collectives];
}

static void begin(const struct kind *k, int round, MPI_Request r[])
{
	struct collective *c = collective_of(k);

	if (!c->in)
		lay_out(c);
	fill(c, round);
	if (!at.persistent) {
		CHECK_OK(start(c, root_argument(round), r));
		return;
	}
	if (r[0] == MPI_REQUEST_NULL)
		CHECK_OK(start(c, root_argument(round), r));
	if (round % 2)
		CHECK_OK(MPI_Start(&r[0]));
	else
		CHECK_OK(MPI_Startall(1, r));
}

/* ----------------------------------------------------------------------------------------------------- checking --- */

/* In a trial (works) what is wrong is only counted. */
static bool trying;
static int tried_wrong;

static void none_wrong(int wrong)
{
	if (trying)
		tried_wrong += wrong;
	else
		CHECK_EQ(wrong, 0);
}

/* One message for a block rather than one for each element. */
static void block_is(const long *at_k, int n, int from, int to, int round)
{
	int wrong = 0;

	for (int k = 0; k < n; k++)
		wrong += at_k[k] != value(from, to, round, k);
	none_wrong(wrong);
}

static void untouched(const long *at_k, int n)
{
	int wrong = 0;

	for (int k = 0; k < n; k++)
		wrong += at_k[k] != -1;
	none_wrong(wrong);
}

/* The sum over the first ranks of what each has from place `first` on. */
static void block_is_sum(const struct collective *c, int n, int ranks, int first, int round)
{
	int wrong = 0;

	for (int k = 0; k < n; k++) {
		long sum = 0;

		for (int i = 0; i < ranks; i++)
			sum += value(peer_id(c, i), 0, round, first + k);
		wrong += c->in[k] != sum;
	}
	none_wrong(wrong);
	untouched(c->in + n, GAP);
}

static int root_id(int round)
{
	return root_side(round) * MOST + root_rank(round);
}

static void check(const struct kind *k, int round, int i, MPI_Status *status)
{
	const struct collective *c = k->how;

	(void)i, (void)status; /* of a collective's status MPI defines MPI_ERROR only */
	if (rooted(c) && !am_root(round) && !(with_root(round) && (c->what == BCAST || to_each(c->what)))) {
		untouched(c->in, c->n + GAP);
		return;
	}
	switch (c->what) {
	case BARRIER:
		break;
	case BCAST:
		block_is(c->in, c->n, root_id(round), 0, round);
		untouched(c->in + c->n, GAP);
		break;
	case SCATTER:
	case SCATTERV:
		if (with_root(round)) {
			int n = c->what == SCATTER ? c->n : length(c, 0, at.me);

			block_is(c->in, n, root_id(round), at.me, round);
			untouched(c->in + n, 1);
		}
		break;
	case REDUCE:
	case ALLREDUCE:
		block_is_sum(c, c->n, at.peers, 0, round);
		break;
	case REDUCE_SCATTER_BLOCK:
		block_is_sum(c, c->n, at.peers, at.me * c->n, round);
		break;
	case REDUCE_SCATTER:
		block_is_sum(c, c->out_count[at.me], at.peers, c->out_at[at.me], round);
		break;
	case SCAN:
		block_is_sum(c, c->n, at.me + 1, 0, round);
		break;
	case EXSCAN:
		if (at.me > 0)
			block_is_sum(c, c->n, at.me, 0, round);
		break;
	default:
		for (int b = 0; b < at.peers; b++) {
			const long *block = c->in + c->in_bytes[b] / (int)sizeof(long);

			block_is(block, c->in_count[b], peer_id(c, b), to_each(c->what) ? at.me : 0, round);
			if (with_counts(c->what) && b + 1 < at.peers)
				untouched(block + c->in_count[b], c->in_at[0] + c->n + GAP - c->in_count[b]);
		}
	}
}

static void end(const struct kind *k, MPI_Request r[])
{
	struct collective *c = collective_of(k);

	if (at.persistent)
		CHECK_OK(MPI_Request_free(&r[0]));
	free(c->in);
	free(c->out);
	c->in = c->out = NULL;
}

/* ------------------------------------------------------------------------------------------- duplicates, chains --- */

#define COPIES 3

static MPI_Comm copies[2][COPIES]; /* without and with info */

static void idup_begin(const struct kind *k, int round, MPI_Request r[])
{
	(void)round;
	for (int i = 0; i < k->count; i++) {
#ifdef HAS_MPI_4
		if (k->how) {
			CHECK_OK(MPI_Comm_idup_with_info(at.comm, MPI_INFO_NULL, &copies[1][i], &r[i]));
			continue;
		}
#endif
		CHECK_OK(MPI_Comm_idup(at.comm, &copies[k->how != NULL][i], &r[i]));
	}
}

static void idup_check(const struct kind *k, int round, int i, MPI_Status *status)
{
	int result = -1;

	(void)round, (void)status;
	CHECK_OK(MPI_Comm_compare(at.comm, copies[k->how != NULL][i], &result));
	CHECK_EQ(result, MPI_CONGRUENT);
}

static void idup_after(const struct kind *k, int round)
{
	(void)round;
	for (int i = 0; i < k->count; i++) {
		MPI_Barrier(copies[k->how != NULL][i]);
		MPI_Comm_free(&copies[k->how != NULL][i]);
	}
}

static void run_idup(const char *suffix)
{
	/* Of an inter-communicator one at a time: several at once may never end in Open MPI 4.1, with MPI_Waitall
	 * too. */
	const int count = at.inter ? 1 : COPIES;
	const struct kind kinds[] = {
		{"Comm_idup", count, .begin = idup_begin, .check = idup_check, .after = idup_after},
#ifdef HAS_MPI_4
		{"Comm_idup_with_info", count, .how = copies, .begin = idup_begin, .check = idup_check,
		 .after = idup_after},
#endif
	};

	kinds_run(kinds, (int)(sizeof(kinds) / sizeof(kinds[0])), suffix, !at.inter);
}

static MPI_Request cr;

/* Two collectives, a message and a null request in one set. */
static void check_set(void)
{
	long sum = 0, one = 1, message = 0;
	struct seen seen = {0};
	MPI_Status status[5];
	MPI_Request r[5];

	check_begin("collectives and messages in one set");
	for (int round = 0; round < 50; round++) {
		memset(status, POISON, sizeof(status));
		MPI_Iallreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(&message, 1, MPI_LONG, check_previous(), TAG, MPI_COMM_WORLD, &r[1]);
		MPI_Ibarrier(MPI_COMM_WORLD, &r[2]);
		r[3] = MPI_REQUEST_NULL;
		MPI_Isend(&one, 1, MPI_LONG, check_next(), TAG, MPI_COMM_WORLD, &r[4]);
		CHECK_OK(MPI_Continueall(5, r, see, &seen, status, cr));
		for (int i = 0; i < 5; i++)
			CHECK(r[i] == MPI_REQUEST_NULL);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, round + 1);
		CHECK_EQ(sum, check_size);
		CHECK_EQ(status[1].MPI_TAG, TAG);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		sum = message = 0;
	}
}

/* A tree of them: each continuation starts the next collective. */
struct chain {
	int left, runs;
	long value, sum;
};

static void next_collective(MPI_Status *status, void *data)
{
	struct chain *c = data;
	MPI_Request r;

	(void)status;
	c->runs++;
	CHECK_EQ(c->sum, check_size * c->value);
	if (c->left-- == 0)
		return;
	c->value++;
	MPI_Iallreduce(&c->value, &c->sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, next_collective, c, MPI_STATUS_IGNORE, cr));
}

static void check_chain(void)
{
	struct chain c = {.left = 100, .value = 1};
	MPI_Request r;

	check_begin("each continuation starts the next collective");
	MPI_Iallreduce(&c.value, &c.sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, next_collective, &c, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(c.runs, 101);
}

#if HAVE_PERSISTENT
struct again {
	MPI_Request request;
	int left, runs;
	long out, sum;
};

static void start_again(MPI_Status *status, void *data)
{
	struct again *a = data;

	(void)status;
	a->runs++;
	CHECK_EQ(a->sum, check_size * a->out);
	if (--a->left == 0)
		return;
	a->out++;
	CHECK_OK(MPI_Start(&a->request));
	CHECK_OK(MPI_Continue(&a->request, start_again, a, MPI_STATUS_IGNORE, cr));
}

static void check_again(void)
{
	struct again again = {.left = 50, .out = 1};

	check_begin("persistent allreduce restarted in its callback");
	INIT(Allreduce)
	(&again.out, &again.sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &again.request);
	CHECK_OK(MPI_Start(&again.request));
	CHECK_OK(MPI_Continue(&again.request, start_again, &again, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(again.runs, 50);
	CHECK_OK(MPI_Request_free(&again.request));
}

static void check_inactive(void)
{
	struct seen seen = {0};
	MPI_Status status;
	MPI_Request r;

	check_begin("persistent barrier, inactive");
	INIT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	status_poison(&status);
	CHECK_OK(MPI_Continue(&r, see, &seen, &status, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK(r != MPI_REQUEST_NULL);
	CHECK_EQ(seen.runs, 1);
	CHECK(status_is_empty(&status));
	CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
	CHECK_OK(MPI_Request_free(&r));
}
#endif

/* --------------------------------------------------------------------------------------------------------- runs --- */

/* No rank can be done before all have begun. */
static bool all_needed(const struct collective *c)
{
	if (at.inter || c->what >= NEIGHBOR_ALLGATHER)
		return false;
	return c->what == BARRIER || (c->n > 0 && !rooted(c) && c->what != SCAN && c->what != EXSCAN);
}

/*
 * MPICH 4.0 copies the own block of these when they are made, not when they are started, and a second start of a
 * persistent scatter ends in "Invalid communicator"; between groups also reduce_scatter_block goes wrong: with MPI_Wait
 * too.
 */
static bool broken(enum what what)
{
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
	return at.persistent &&
	       (what == GATHER || what == ALLGATHER || what == SCATTER || (at.inter && what == REDUCE_SCATTER_BLOCK));
#else
	(void)what;
	return false;
#endif
}

#if defined(MPICH_NUMVERSION) && HAVE_PERSISTENT
/*
 * Does this MPI do it right by itself? In MPI_Start MPICH 4.2 moves only part of the data, or none, for some persistent
 * collectives. Then this says so, and the kind is left out. On a separate communicator, because messages may be left.
 */
static bool works(struct collective *c)
{
	const struct kind k = {.how = c};
	MPI_Request r = MPI_REQUEST_NULL;
	MPI_Comm comm = at.comm;
	int right;

	MPI_Comm_dup(comm, &at.comm);
	trying = true;
	tried_wrong = 0;
	for (int round = 0; round < 3 && !tried_wrong; round++) {
		double begun = MPI_Wtime();
		int flag = 0;

		begin(&k, round, &r);
		while (!flag && MPI_Wtime() - begun < 2)
			CHECK_OK(PMPI_Test(&r, &flag, MPI_STATUS_IGNORE));
		if (flag)
			check(&k, round, 0, MPI_STATUS_IGNORE);
		tried_wrong += !flag;
		MPI_Allreduce(MPI_IN_PLACE, &tried_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	right = tried_wrong == 0;
	trying = false;
	end(&k, &r);
	MPI_Comm_free(&at.comm);
	at.comm = comm;
	if (!right && check_rank == 0)
		fprintf(stderr, "left out: %s%s, which this MPI alone does wrong\n", c->name,
			at.inter ? ", between groups" : "");
	return right;
}
#else
static bool works(struct collective *c)
{
	(void)c;
	return true;
}
#endif

static bool possible(enum what what, int n)
{
	if (broken(what))
		return false;
	if (what == BARRIER)
		return n == SMALL;
	if (what >= NEIGHBOR_ALLGATHER)
		return false;
	if (at.inter && (what == SCAN || what == EXSCAN))
		return false; /* MPI has none */
	if (at.inter && n == 0)
		return false; /* as within a group, and this takes its time */
	if (at.inter && (what == REDUCE_SCATTER || what == REDUCE_SCATTER_BLOCK))
		return at.mine == at.peers; /* the groups must have as many elements as each other */
	return true;
}

static void run(bool neighbors, const char *suffix)
{
	static const int sizes[] = {SMALL, 0, LARGE};
	static const char *const size_name[] = {"", ", zero count", ", large"};
	static struct kind kinds[3 * WHATS];
	int count = 0;

	memset(collectives, 0, sizeof(collectives));
	for (int what = 0; what < WHATS; what++) {
		for (int size = 0; size < 3; size++) {
			struct collective *c = &collectives[count];
			bool wanted = neighbors ? what >= NEIGHBOR_ALLGATHER : possible((enum what)what, sizes[size]);

			if (!wanted)
				continue;
			snprintf(c->name, sizeof(c->name), at.persistent ? "persistent %s%s" : "I%s%s", what_name[what],
				 size_name[size]);
			c->what = (enum what)what;
			c->n = sizes[size];
			if (at.persistent && !works(c))
				continue;
			kinds[count++] = (struct kind){.name = c->name,
						       .count = 1,
						       .persistent = at.persistent,
						       .all_needed = all_needed(c),
						       .how = c,
						       .begin = begin,
						       .check = check,
						       .end = end};
		}
	}
	kinds_run(kinds, count, suffix, true);
}

static void run_both(bool neighbors, const char *suffix)
{
	at.persistent = false;
	run(neighbors, suffix);
#if HAVE_PERSISTENT
	at.persistent = true;
	run(neighbors, suffix);
	at.persistent = false;
#endif
}

static void run_within(void)
{
	at.comm = MPI_COMM_WORLD;
	at.inter = false;
	at.side = 0;
	at.me = check_rank;
	at.mine = at.peers = check_size;
	run_both(false, "");
	run_idup("");
}

static void run_between_groups(void)
{
	MPI_Comm group;

	if (check_size < 2)
		return;
	at.inter = true;
	at.side = check_rank % 2;
	MPI_Comm_split(MPI_COMM_WORLD, at.side, 0, &group);
	MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - at.side, TAG, &at.comm);
	MPI_Comm_rank(at.comm, &at.me);
	MPI_Comm_size(at.comm, &at.mine);
	MPI_Comm_remote_size(at.comm, &at.peers);
	run_both(false, ", between groups");
	run_idup(", between groups");
	MPI_Comm_free(&at.comm);
	MPI_Comm_free(&group);
}

/* A ring; from three ranks on in both directions (with two, both neighbours would be the same rank). */
static void run_among_neighbors(void)
{
	int to[2], weights[2] = {1, 1}; /* MPI_UNWEIGHTED makes gcc warn of reading it */

	at.inter = false;
	at.side = 0;
	at.me = check_rank;
	at.mine = check_size;
	at.peers = check_size > 2 ? 2 : 1;
	at.neighbor[0] = check_previous();
	at.neighbor[1] = check_next();
	to[0] = check_next();
	to[1] = check_previous();
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, at.peers, at.neighbor, weights, at.peers, to, weights,
				       MPI_INFO_NULL, 0, &at.comm);
	run_both(true, "");
	MPI_Comm_free(&at.comm);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	if (check_size > MOST) {
		fprintf(stderr, "skipped: more than %d ranks\n", MOST);
		MPI_Finalize();
		return CHECK_SKIPPED;
	}
	run_within();
	run_among_neighbors();
	run_between_groups();
	for (int i = 0; i < 2; i++) {
		cr = i ? check_cr("mpi_continue_poll_only", "true", NULL, NULL) : check_plain_cr();
		check_set();
		check_chain();
#if HAVE_PERSISTENT
		check_again();
		check_inactive();
#endif
		CHECK_OK(MPI_Request_free(&cr));
	}
	return check_fini();
}
