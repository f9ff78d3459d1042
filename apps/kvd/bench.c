/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kv bench. A value begins with a stamp, the number of its key and a random number, and the rest follows from that: so
 * each value that is read is verified, whoever wrote it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

enum { GET, PUT, READ, KINDS };
static const char *const names[KINDS] = {"get", "put", "read"};
static const unsigned operations[KINDS] = {KVD_GET, KVD_PUT, KV_READ};

/* Latencies in ns: 64 steps for each power of two, so within 1.6 %. */
#define STEPS 64u
struct histogram {
	uint64_t count, most, at[STEPS * 59];
};

struct run {
	struct kv *kv;
	const struct bench *bench;
	struct histogram histogram[KINDS];
	uint64_t random, until, filled, wrong, missing, refused, again, torn, deleted;
	unsigned char *value;
	char prefix[64];
	bool own; /* no other program has these keys */
	enum { FILLING, RUNNING, CLEARING } phase;
};

static void count(struct histogram *h, uint64_t ns)
{
	unsigned power = ns < STEPS ? 0 : 63 - (unsigned)__builtin_clzll(ns) - 5;

	h->at[power * STEPS + ((ns >> (power ? power - 1 : 0)) & (STEPS - 1))]++;
	h->count++;
	h->most = ns > h->most ? ns : h->most;
}

/* The upper end of the step that the quantile is in. */
static double quantile(const struct histogram *h, double q)
{
	uint64_t wanted = (uint64_t)(q * (double)h->count + 0.5), sum = 0;

	for (unsigned i = 0; i < sizeof(h->at) / sizeof(h->at[0]); i++) {
		uint64_t shift = i < STEPS ? 0 : i / STEPS - 1, end;

		sum += h->at[i];
		if (sum < wanted || !h->at[i])
			continue;
		end = i < STEPS ? i : (((uint64_t)STEPS | i % STEPS) + 1) << shift;
		return (double)(end < h->most ? end : h->most);
	}
	return (double)h->most;
}

static uint64_t random_of(struct run *run)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 7;
	run->random ^= run->random << 17;
	return run->random;
}

/* ------------------------------------------------------------------------------------------------------- values --- */

static void make_value(unsigned char *value, uint32_t size, uint32_t key, uint32_t random)
{
	uint64_t stamp = (uint64_t)key << 32 | random, word = stamp;

	for (uint32_t i = 0; i < size; i += 8) {
		memcpy(value + i, &word, size - i < 8 ? size - i : 8);
		word = (word + stamp) * 0x9e3779b97f4a7c15ull;
	}
}

static bool right(const unsigned char *value, uint32_t size, uint32_t key)
{
	unsigned char expected[KVD_VALUE_MAX];
	uint64_t stamp;

	if (size < 8)
		return false;
	memcpy(&stamp, value, 8);
	make_value(expected, size, key, (uint32_t)stamp);
	return memcmp(expected, value, size) == 0;
}

/* ----------------------------------------------------------------------------------------------------- requests --- */

static uint32_t key_of(const struct kv_request *r)
{
	return (uint32_t)(uintptr_t)r->data;
}

static void set_key(struct run *run, struct kv_request *r, uint32_t key)
{
	char text[128];

	r->data = (void *)(uintptr_t)key;
	r->key_length = (uint32_t)snprintf(text, sizeof(text), "%s%u", run->prefix, key);
	memcpy(r->key, text, r->key_length);
}

static struct run *this_run; /* requests have room for one pointer, and there is one run */

static void done(struct kv_request *r);

static void start(struct run *run, struct kv_request *r, unsigned operation, uint32_t key)
{
	r->operation = operation;
	r->done = done;
	set_key(run, r, key);
	if (operation == KVD_PUT) {
		make_value(run->value, run->bench->size, key, (uint32_t)random_of(run));
		r->value = run->value;
		r->value_length = run->bench->size;
	}
	kv_start(r);
}

/* The next one, or none. */
static void next(struct run *run, struct kv_request *r)
{
	unsigned draw = (unsigned)(random_of(run) % 100), kind;

	if (run->kv->failed || run->kv->draining)
		return;
	switch (run->phase) {
	case FILLING:
		if (run->filled < run->bench->keys)
			start(run, r, KVD_PUT, (uint32_t)run->filled++);
		return;
	case CLEARING:
		if (run->deleted < run->bench->keys)
			start(run, r, KVD_DELETE, (uint32_t)run->deleted++);
		return;
	case RUNNING:
		break;
	}
	if (kvd_now_ns() >= run->until)
		return;
	for (kind = GET; draw >= run->bench->share[kind]; kind++)
		draw -= run->bench->share[kind];
	start(run, r, operations[kind], (uint32_t)(random_of(run) % run->bench->keys));
}

static void done(struct kv_request *r)
{
	struct run *run = this_run;

	if (r->status == KVD_AGAIN && !run->kv->draining) {
		run->again++;
		start(run, r, r->operation, key_of(r));
		return;
	}
	if (r->status == KVD_NOT_FOUND)
		run->missing++;
	else if (r->status != KVD_OK)
		run->refused++;
	else if ((r->operation == KVD_GET || r->operation == KV_READ) && !right(r->got, r->got_length, key_of(r)))
		run->wrong++;
	if (run->phase == RUNNING) {
		unsigned kind = r->operation == KVD_GET ? GET : r->operation == KVD_PUT ? PUT : READ;

		count(&run->histogram[kind], kvd_now_ns() - r->started_ns);
		run->torn += r->torn;
	}
	next(run, r);
}

static int phase(struct run *run, int which)
{
	run->phase = which;
	for (uint32_t i = 0; i < run->kv->depth; i++)
		next(run, &run->kv->request[i]);
	return kv_wait(run->kv);
}

/* ------------------------------------------------------------------------------------------------------ results --- */

static void print_table(const struct run *run, double seconds, FILE *out)
{
	uint64_t all = 0;

	fprintf(out, "%-9s %10s %10s %9s %9s %9s %9s\n", "operation", "count", "per sec", "p50 us", "p99 us",
		"p99.9 us", "max us");
	for (unsigned i = 0; i < KINDS; i++) {
		const struct histogram *h = &run->histogram[i];

		all += h->count;
		if (h->count)
			fprintf(out, "%-9s %10lu %10.0f %9.1f %9.1f %9.1f %9.1f\n", names[i], h->count,
				(double)h->count / seconds, quantile(h, 0.5) / 1e3, quantile(h, 0.99) / 1e3,
				quantile(h, 0.999) / 1e3, (double)h->most / 1e3);
	}
	fprintf(out, "%-9s %10lu %10.0f    wrong %lu, missing %lu, refused %lu, put off %lu, read again %lu\n", "all",
		all, (double)all / seconds, run->wrong, run->missing, run->refused, run->again, run->torn);
}

static void print_json(const struct run *run, double seconds, const char *provider, FILE *out)
{
	uint64_t all = 0;

	fprintf(out,
		"{\"provider\": \"%s\", \"depth\": %u, \"size\": %u, \"keys\": %u, \"seconds\": %.3f, \"operations\": "
		"{",
		provider, run->kv->depth, run->bench->size, run->bench->keys, seconds);
	for (unsigned i = 0; i < KINDS; i++) {
		const struct histogram *h = &run->histogram[i];

		fprintf(out,
			"%s\"%s\": {\"count\": %lu, \"per_second\": %.1f, \"p50_us\": %.3f, \"p99_us\": %.3f, "
			"\"p99_9_us\": %.3f, "
			"\"max_us\": %.3f}",
			i ? ", " : "", names[i], h->count, (double)h->count / seconds, quantile(h, 0.5) / 1e3,
			quantile(h, 0.99) / 1e3, quantile(h, 0.999) / 1e3, (double)h->most / 1e3);
		all += h->count;
	}
	fprintf(out,
		"}, \"count\": %lu, \"per_second\": %.1f, \"wrong\": %lu, \"missing\": %lu, \"refused\": %lu, "
		"\"put_off\": %lu, "
		"\"read_again\": %lu, \"draining\": %s}\n",
		all, (double)all / seconds, run->wrong, run->missing, run->refused, run->again, run->torn,
		run->kv->draining ? "true" : "false");
}

int bench_run(struct kv *kv, const struct bench *bench, const char *provider, FILE *out)
{
	struct run *run = calloc(1, sizeof(*run));
	uint64_t from;
	double seconds;
	int rc, bad;

	if (!run)
		return 3;
	this_run = run;
	run->kv = kv;
	run->bench = bench;
	run->own = !bench->prefix;
	run->random = (kvd_now_ns() ^ (uint64_t)getpid() << 32) | 1;
	run->value = malloc(bench->size);
	if (bench->prefix)
		snprintf(run->prefix, sizeof(run->prefix), "%.60s", bench->prefix);
	else
		snprintf(run->prefix, sizeof(run->prefix), "bench.%lx/", run->random);
	rc = run->value ? phase(run, FILLING) : -1;
	from = kvd_now_ns();
	run->until = from + (uint64_t)(bench->seconds * 1e9);
	rc = rc ? rc : phase(run, RUNNING);
	seconds = (double)(kvd_now_ns() - from) / 1e9;
	if (!rc && !bench->keep)
		rc = phase(run, CLEARING);
	if (bench->json)
		print_json(run, seconds, provider, out);
	else
		print_table(run, seconds, out);
	bad = run->wrong || run->refused || (run->own && run->missing && !kv->draining);
	free(run->value);
	free(run);
	return rc ? 3 : bad;
}
