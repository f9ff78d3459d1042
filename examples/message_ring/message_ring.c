/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring: the benchmark by which the ways of learning of completion are compared (README.md): messages that travel around
 * a ring of ranks, by each of contd's five modes, or by a loop of MPI_Testsome. Each message is verified on each rank:
 * its contents depend on who has started it and when; that none is lost or doubled is seen from counts and a sum over
 * all.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message_ring.h"

/* ----------------------------------------------------------------------------------------------------- messages --- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
	return x ^ x >> 32;
}

static uint64_t seed_of(const struct header *h)
{
	return mix(h->iteration << 20 ^ h->round) + mix(h->origin + 1);
}

static size_t size_of(const struct options *o, uint64_t seed)
{
	return o->size_least + (o->size_most > o->size_least ? mix(seed) % (o->size_most - o->size_least + 1) : 0);
}

static uint64_t word_at(uint64_t seed, size_t i)
{
	return seed + i * 0x100000001b3;
}

static void start_message(struct slot *s, long number)
{
	const struct ring *r = s->worker->ring;
	struct header h = {.origin = (uint32_t)r->rank,
			   .round = (uint32_t)(number % r->options.rounds),
			   .iteration = (uint64_t)(number / r->options.rounds)};
	uint64_t seed = seed_of(&h), *words = (uint64_t *)(void *)s->buffers[s->at];
	size_t n;

	s->bytes = size_of(&r->options, seed);
	n = s->bytes / 8;
	memcpy(words, &h, sizeof(h));
	for (size_t i = 2; i < n; i++)
		words[i] = word_at(seed, i);
	for (size_t i = n * 8; i < s->bytes; i++)
		s->buffers[s->at][i] = (unsigned char)(seed + i);
}

/* The message in buffers[at] is one that can be, and as it was sent. */
static struct header verify(struct slot *s)
{
	const struct ring *r = s->worker->ring;
	const uint64_t *words = (const uint64_t *)(const void *)s->buffers[s->at];
	struct header h;
	uint64_t seed, wrong = 0;
	size_t n;

	memcpy(&h, words, sizeof(h));
	if (h.origin >= (uint32_t)r->ranks || h.round >= (uint32_t)r->options.rounds ||
	    h.iteration >= (uint64_t)r->iterations)
		ring_die("rank %d: a message of origin %u, iteration %llu, round %u", r->rank, h.origin,
			 (unsigned long long)h.iteration, h.round);
	seed = seed_of(&h);
	s->sum += seed;
	s->bytes = size_of(&r->options, seed);
	n = s->bytes / 8;
	for (size_t i = 2; i < n; i++)
		wrong |= words[i] ^ word_at(seed, i);
	for (size_t i = n * 8; i < s->bytes; i++)
		wrong |= s->buffers[s->at][i] ^ (unsigned char)(seed + i);
	if (wrong)
		ring_die("rank %d: message of origin %u, iteration %llu, round %u is not what was sent", r->rank,
			 h.origin, (unsigned long long)h.iteration, h.round);
	return h;
}

/* A message of this rank's has come home. Where its iteration is complete, another one may start. */
static void came_home(struct ring *r, const struct header *h)
{
	uint32_t *home = &r->home[h->iteration];
	uint32_t before = r->shared ? __atomic_fetch_add(home, 1, __ATOMIC_RELAXED) : (*home)++;

	if (before + 1 == (uint32_t)r->options.rounds)
		ring_add(r, &r->allowed, r->options.rounds);
	else if (before >= (uint32_t)r->options.rounds)
		ring_die("rank %d: iteration %llu has come home more often than it has rounds", r->rank,
			 (unsigned long long)h->iteration);
}

/* -------------------------------------------------------------------------------------------------------- steps --- */

/* The number of a message that may start now, or -1. */
static long take_start(struct ring *r)
{
	long most = r->iterations * r->options.rounds, n = __atomic_load_n(&r->started, __ATOMIC_RELAXED);

	for (;;) {
		long allowed = __atomic_load_n(&r->allowed, __ATOMIC_RELAXED);

		if (n >= allowed || n >= most)
			return -1;
		if (!r->shared) {
			r->started = n + 1;
			return n;
		}
		if (__atomic_compare_exchange_n(&r->started, &n, n + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return n;
	}
}

static bool take_receive(struct ring *r)
{
	if (__atomic_load_n(&r->to_receive, __ATOMIC_RELAXED) <= 0)
		return false;
	return ring_add(r, &r->to_receive, -1) > 0;
}

bool ring_next(struct slot *s)
{
	struct ring *r = s->worker->ring;

	if (r->options.cancel && !s->cancelled) {
		s->random = s->random * 1664525 + 1013904223;
		s->cancels = (int)(s->random >> 8) % 100 < r->options.cancel;
		s->cancelled = true;
		if (s->cancels) {
			s->sends = s->receives = false;
			return true;
		}
	}
	s->cancels = s->cancelled = false;
	s->sends = s->holds;
	if (!s->sends) {
		long number = take_start(r);

		if (number >= 0) {
			start_message(s, number);
			s->sends = true;
		}
	}
	s->receives = (!s->sends || r->options.together) && take_receive(r);
	if (s->sends || s->receives)
		return true;
	/* Release: all that the slot has done. Partner: ring_is_over(). */
	if (r->shared ? __atomic_sub_fetch(&r->ending, 1, __ATOMIC_ACQ_REL) == 0 : --r->ending == 0) {
		__atomic_store_n(&r->over, true, __ATOMIC_RELEASE);
		if (r->ended)
			r->ended(r);
	}
	return false;
}

int ring_count(const struct slot *s)
{
	return s->cancels ? 1 : s->sends + s->receives;
}

int ring_issue(struct slot *s, MPI_Request requests[])
{
	const struct ring *r = s->worker->ring;
	int n = 0, rc = MPI_SUCCESS;

	if (s->cancels) {
		rc = MPI_Irecv(s->buffers[!s->at], 1, MPI_BYTE, 0, TAG_NOBODY, r->comm, requests);
		s->nobody = requests[0];
		return rc;
	}
	if (s->receives)
		rc = MPI_Irecv(s->buffers[s->sends ? !s->at : s->at], (int)r->options.size_most, MPI_BYTE,
			       (r->rank + r->ranks - 1) % r->ranks, TAG_MESSAGE, r->comm, &requests[n++]);
	if (s->sends && rc == MPI_SUCCESS)
		rc = MPI_Isend(s->buffers[s->at], (int)s->bytes, MPI_BYTE, (r->rank + 1) % r->ranks, TAG_MESSAGE,
			       r->comm, &requests[n]);
	return rc;
}

void ring_finished(struct slot *s)
{
	struct ring *r = s->worker->ring;

	if (s->cancels) {
		int cancelled = 0;

		MPI_Test_cancelled(&s->statuses[0], &cancelled);
		if (!cancelled)
			ring_die("rank %d: a receive that was cancelled has not ended so", r->rank);
		return;
	}
	s->holds = false;
	if (s->receives) {
		struct header h;

		if (s->sends)
			s->at = !s->at;
		h = verify(s);
		if (r->statuses) {
			int bytes = -1;

			MPI_Get_count(&s->statuses[0], MPI_BYTE, &bytes);
			if ((size_t)bytes != s->bytes)
				ring_die("rank %d: %d bytes were received, %zu sent", r->rank, bytes, s->bytes);
		}
		if (h.origin == (uint32_t)r->rank)
			came_home(r, &h);
		else
			s->holds = true;
	}
}

/* ------------------------------------------------------------------------------------------------------- a pass --- */

static void *work(void *worker)
{
	struct worker *w = worker;

#ifndef RING_PLAIN
	if (w->ring->options.mode != MODE_TESTSOME) {
		modes_work(w);
		return NULL;
	}
#endif
	testsome_work(w);
	return NULL;
}

/* Returns the seconds that the slowest rank took. */
static double pass(struct ring *r, int mode, long iterations)
{
	const struct options *o = &r->options;
	long all = o->rounds * iterations;
	pthread_t threads[256];
	uint64_t sum = 0, expected = 0;
	double t;
	int own_mode = o->mode;

	r->options.mode = mode;
	r->iterations = iterations;
	r->started = 0;
	r->allowed = o->in_flight * o->rounds;
	r->to_receive = r->ranks * all;
	r->ending = r->slot_count;
	r->over = false;
	memset(r->home, 0, (size_t)iterations * sizeof(*r->home));
	for (long i = 0; i < r->slot_count; i++) {
		r->slots[i].holds = r->slots[i].cancelled = false;
		r->slots[i].sum = 0;
	}
#ifndef RING_PLAIN
	if (mode != MODE_TESTSOME)
		modes_pass(r);
#endif
	MPI_Barrier(r->comm);
	t = MPI_Wtime();
	for (int i = 1; i < o->threads; i++) {
		if (pthread_create(&threads[i], NULL, work, &r->workers[i]))
			ring_die("no thread to be had");
	}
	work(&r->workers[0]);
	for (int i = 1; i < o->threads; i++)
		pthread_join(threads[i], NULL);
	t = MPI_Wtime() - t;
#ifndef RING_PLAIN
	if (mode != MODE_TESTSOME)
		modes_passed(r);
#endif
	MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, r->comm);
	for (long i = 0; i < r->slot_count; i++)
		sum += r->slots[i].sum;
	for (int origin = 0; origin < r->ranks; origin++) {
		for (long i = 0; i < all; i++)
			expected += seed_of(&(struct header){.origin = (uint32_t)origin,
							     .round = (uint32_t)(i % o->rounds),
							     .iteration = (uint64_t)(i / o->rounds)});
	}
	if (!r->over || r->to_receive > 0 || r->started != all || sum != expected)
		ring_die("rank %d: messages are missing, or came twice", r->rank);
	for (long i = 0; i < iterations; i++) {
		if (r->home[i] != (uint32_t)o->rounds)
			ring_die("rank %d: iteration %ld: %u messages came home", r->rank, i, r->home[i]);
	}
	r->options.mode = own_mode;
	return t;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void measure(struct ring *r)
{
	const struct options *o = &r->options;
	double messages = (double)r->ranks * r->ranks * (double)o->rounds * (double)o->iterations;
	double times[99], plain[99], ratios[99], t;
	char size[64];

	if (o->warmup)
		pass(r, o->mode, o->warmup < o->iterations ? o->warmup : o->iterations);
	for (int i = 0; i < o->repeat; i++) {
		if (o->beside)
			plain[i] = pass(r, MODE_TESTSOME, o->iterations);
		times[i] = pass(r, o->mode, o->iterations);
		if (o->beside)
			ratios[i] = plain[i] / times[i];
	}
	if (r->rank)
		return;
	t = median(times, o->repeat);
	snprintf(size, sizeof(size), o->size_most > o->size_least ? "%zu-%zu" : "%zu", o->size_least, o->size_most);
	printf("%s%s%s,%s,%s,%s,%s,%s,%ld,%.0f,%.6f,%.0f,%d,%d", ring_modes[o->mode], o->thread_tasks ? "+threads" : "",
	       o->together ? "+together" : "", o->requests_transfer ? "transfer" : "inline",
	       o->completions_transfer ? "transfer" : "inline", ring_pools[o->pool], o->high ? "high" : "normal", size,
	       o->in_flight, messages, t, messages / t, r->ranks, o->threads);
	if (o->beside)
		printf(",%.0f,%.3f", messages / median(plain, o->repeat), median(ratios, o->repeat));
	putchar('\n');
}

static void measure_one(struct ring *r)
{
#ifndef RING_PLAIN
	if (r->options.mode != MODE_TESTSOME) {
		modes_begin(r);
		measure(r);
		modes_end(r);
		return;
	}
#endif
	measure(r);
}

static void measure_all(struct ring *r)
{
#ifndef RING_PLAIN
	struct options *o = &r->options;

	for (int i = 0; i < 2 * 2 * 2 * 2 * MODE_TESTSOME * (POOL_GLIB + 1); i++) {
		o->requests_transfer = i & 1;
		o->completions_transfer = i & 2;
		o->high = i & 4;
		o->thread_tasks = i & 8;
		o->mode = i / 16 % MODE_TESTSOME;
		o->pool = i / 16 / MODE_TESTSOME;
		if (!modes_exists(o) || (o->thread_tasks && o->mode != MODE_YIELD && o->mode != MODE_SUSPEND))
			continue;
		measure_one(r);
		fflush(stdout);
	}
#else
	(void)r;
#endif
}

static void make_slots(struct ring *r)
{
	const struct options *o = &r->options;
	size_t bytes = (o->size_most + 63) / 64 * 64;
	unsigned char *buffers;

	r->slot_count = r->ranks * o->in_flight * o->rounds;
	if (r->slot_count < o->threads)
		ring_die("more threads than slots: %ld", r->slot_count);
	r->slots = calloc((size_t)r->slot_count, sizeof(*r->slots));
	buffers = aligned_alloc(64, (size_t)r->slot_count * 2 * bytes);
	r->workers = calloc((size_t)o->threads, sizeof(*r->workers));
	r->home = calloc((size_t)o->iterations, sizeof(*r->home));
	if (!r->slots || !buffers || !r->workers || !r->home)
		ring_die("out of memory");
	memset(buffers, 0, (size_t)r->slot_count * 2 * bytes);
	for (int i = 0; i < o->threads; i++) {
		long first = r->slot_count * i / o->threads;

		r->workers[i].ring = r;
		r->workers[i].slots = &r->slots[first];
		r->workers[i].count = r->slot_count * (i + 1) / o->threads - first;
		r->workers[i].cr = MPI_REQUEST_NULL;
		for (long n = first; n < first + r->workers[i].count; n++) {
			r->slots[n].worker = &r->workers[i];
			r->slots[n].buffers[0] = buffers + (size_t)n * 2 * bytes;
			r->slots[n].buffers[1] = r->slots[n].buffers[0] + bytes;
			r->slots[n].random = (uint32_t)n * 7919 + (uint32_t)r->rank;
		}
	}
}

int main(int argc, char **argv)
{
	struct ring ring = {0};
	int wanted, level;

	ring_options(&ring.options, argc, argv);
	wanted = ring.options.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
	ring.shared = ring.options.threads > 1;
#ifndef RING_PLAIN
	if (ring.options.mode != MODE_TESTSOME)
		modes_needs(&ring.options, &wanted, &ring.shared);
#endif
	MPI_Init_thread(&argc, &argv, wanted, &level);
	if (level < wanted)
		ring_die("MPI grants thread level %d, %d is needed", level, wanted);
	MPI_Comm_dup(MPI_COMM_WORLD, &ring.comm);
	MPI_Comm_rank(ring.comm, &ring.rank);
	MPI_Comm_size(ring.comm, &ring.ranks);
	ring.statuses = ring.options.size_most > ring.options.size_least || ring.options.cancel;
	make_slots(&ring);
	if (ring.options.all)
		measure_all(&ring);
	else
		measure_one(&ring);
	MPI_Comm_free(&ring.comm);
	free(ring.slots[0].buffers[0] < ring.slots[0].buffers[1] ? ring.slots[0].buffers[0] : ring.slots[0].buffers[1]);
	free(ring.slots);
	free(ring.workers);
	free(ring.home);
	return MPI_Finalize();
}
