/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything of kvd's that reads bytes from others: the parser, the server's handler of requests, a client's reading of
 * answers, of a layout, and of slots and records read one-sidedly. Some inputs are requests that are put together from
 * the bytes, so that the store behind the parser gets work, its compaction interrupted by requests. Afterwards the
 * store must be in order.
 *
 * With libFuzzer: -DCONTD_FUZZ=ON with clang, and run kvd_fuzz. Without it, KVD_FUZZ_SEEDED: the same on inputs from a
 * seeded generator; arguments: how many, and the seed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sessions.h"
#include "store.h"

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			abort(); \
		} \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The inputs, a byte or a word at a time; zeros behind their end. */
struct bytes {
	const uint8_t *at, *end;
};

static unsigned byte(struct bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

static unsigned word(struct bytes *b)
{
	unsigned low = byte(b);

	return low | byte(b) << 8;
}

static struct kvd_store store;
static struct kvd_limits limits = {.key_max = 200, .value_max = 3000, .compact_percent = 25};
static struct bytes *left; /* where a request that interrupts compaction takes its bytes from */
static bool inside;
static unsigned char answer[KVD_MESSAGE_MAX] __attribute__((aligned(16)));
static struct {
	uint64_t parsed, malformed, served, seen, full, again;
} counts;

/* ---------------------------------------------------------------------------------------------- what is checked --- */

/* The server's message must be an answer to the client. */
static void serve(const struct kvd_message *m)
{
	struct kvd_message got;
	size_t bytes = kvd_serve(&store, &limits, m, "more 1\n", 0, answer);
	const struct kvd_record *r;

	counts.served++;
	CHECK(bytes >= KVD_HEADER && bytes <= KVD_MESSAGE_MAX);
	CHECK(kvd_parse(answer, bytes, true, &got) == KVD_PARSED);
	CHECK(got.number == m->number && got.session == m->session && got.operation == m->operation);
	counts.full += got.status == KVD_FULL;
	counts.again += got.status == KVD_AGAIN;
	if (m->operation == KVD_PUT && got.status == KVD_OK) {
		r = kvd_store_find(&store, m->key, m->key_length);
		CHECK(r && r->value_length == m->value_length);
		CHECK(!m->value_length ||
		      memcmp((const unsigned char *)(r + 1) + r->key_length, m->value, m->value_length) == 0);
	} else if (m->operation == KVD_DELETE) {
		CHECK(!kvd_store_find(&store, m->key, m->key_length));
	}
}

static void as_message(const void *data, size_t size)
{
	struct kvd_message m = {0};
	enum kvd_parsed parsed = kvd_parse(data, size, false, &m);

	counts.parsed += parsed == KVD_PARSED;
	counts.malformed += parsed == KVD_MALFORMED;
	if (parsed == KVD_PARSED) {
		CHECK(m.key_length <= KVD_KEY_MAX && m.value_length <= KVD_VALUE_MAX);
		CHECK(m.key == (const unsigned char *)data + KVD_HEADER &&
		      m.value + m.value_length == (const unsigned char *)data + size);
		/* There and back again. */
		CHECK(kvd_format(answer, &m) == size && memcmp(answer, data, size) == 0);
		if (m.operation != KVD_HELLO && m.operation != KVD_BYE)
			serve(&m);
	}
	parsed = kvd_parse(data, size, true, &m);
	if (parsed == KVD_PARSED)
		CHECK(m.status < KVD_STATUSES && m.value_length <= KVD_VALUE_MAX && kvd_status_text(m.status));
}

/* As a client reads it: the bytes are copied, because they are aligned there. */
static void as_memory(const void *data, size_t size)
{
	static unsigned char copy[65536] __attribute__((aligned(16)));
	struct kvd_slot window[KVD_WINDOW] = {{0}};
	struct kvd_layout layout;
	struct kvd_message m;
	uint32_t at = 0;

	kvd_layout_parse(data, size, &layout);
	memcpy(window, data, size < sizeof(window) ? size : sizeof(window));
	while (kvd_window_find(window, KVD_WINDOW, window[0].hash, &at) == KVD_SEEN)
		CHECK(at++ < KVD_WINDOW);
	size = size < sizeof(copy) ? size : sizeof(copy);
	memcpy(copy, data, size);
	if (size > 8)
		memcpy(&window[0].sequence, copy, 8);
	if (kvd_record_read(copy, size, &window[0], "k", 1, &m) == KVD_SEEN)
		CHECK(m.value + m.value_length <= copy + size);
}

/* The way of a one-sided read of what is there, with a byte of it changed or not. */
static void read_one_sided(struct bytes *b, const void *key, uint32_t key_length)
{
	static unsigned char copy[4096] __attribute__((aligned(16)));
	uint64_t hash = kvd_hash(store.hash_seed, key, key_length);
	const struct kvd_slot *window = &store.slot[hash & (store.slots - 1)];
	const struct kvd_record *r = kvd_store_find(&store, key, key_length);
	enum kvd_seen seen;
	struct kvd_message m;
	uint32_t at = 0, bytes;
	unsigned change;

	seen = kvd_window_find(window, KVD_WINDOW, hash, &at);
	CHECK(seen != KVD_TORN && (seen == KVD_SEEN || !r));
	if (seen != KVD_SEEN || !r)
		return;
	bytes = (uint32_t)window[at].place;
	CHECK(bytes <= sizeof(copy));
	memcpy(copy, store.arena + (window[at].place >> 32) * KVD_UNIT, bytes);
	CHECK(kvd_record_read(copy, bytes, &window[at], key, key_length, &m) == KVD_SEEN);
	CHECK(m.value_length == r->value_length);
	counts.seen++;
	change = word(b) % bytes;
	copy[change] ^= (unsigned char)(1 << byte(b) % 8);
	seen = kvd_record_read(copy, bytes, &window[at], key, key_length, &m);
	/* Unless it was in the zeros behind the value, which are not read. */
	CHECK(seen == KVD_TORN ||
	      (seen == KVD_SEEN && change >= sizeof(*r) + key_length + r->value_length && change < bytes - 8));
}

/* ------------------------------------------------------------------------------------------ a request at a time --- */

static void request(struct bytes *b)
{
	static unsigned char value[3200], key[256];
	static const unsigned char operations[8] = {KVD_PUT, KVD_PUT, KVD_PUT,    KVD_PUT,
						    KVD_GET, KVD_GET, KVD_DELETE, KVD_STAT};
	struct kvd_message m = {.operation = operations[byte(b) % 8], .number = byte(b), .key = key, .value = value};

	if (m.operation != KVD_STAT) {
		unsigned which = byte(b);

		m.key_length = which % 37 + 1;
		memset(key, (int)(which % 251), m.key_length);
	}
	if (m.operation == KVD_PUT) {
		m.value_length = word(b) % sizeof(value);
		memset(value, (int)byte(b), m.value_length);
	}
	serve(&m);
	if (m.key_length)
		read_one_sided(b, key, m.key_length);
}

/* A request comes just before compaction would have held it off, and right after. */
static void interrupted(void *data)
{
	(void)data;
	if (inside || !left)
		return;
	inside = true;
	if (byte(left) % 4 == 0)
		request(left);
	inside = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kvd_store_config config = {.slots = 64,
					  .arena_bytes = 5 << 16,
					  .segment_bytes = 1 << 16,
					  .hash_seed = 7,
					  .hold = interrupted,
					  .release = interrupted};
	struct bytes b = {data, data + size};
	static unsigned uses;
	const char *wrong;

	/* A new store for each input under libFuzzer, so that a crash can be repeated; else one for a
	 * thousand. */
#ifdef KVD_FUZZ_SEEDED
	if (uses % 1000 == 0) {
		if (uses)
			kvd_store_close(&store);
		CHECK(kvd_store_open(&store, &config) == 0);
	}
#else
	CHECK(kvd_store_open(&store, &config) == 0);
#endif
	uses++;
	as_message(data, size);
	as_memory(data, size);
	left = &b;
	for (unsigned requests = 0; b.at < b.end && requests < 16; requests++) {
		request(&b);
		for (unsigned steps = byte(&b) % 16; steps && kvd_store_compact(&store, &limits); steps--)
			;
	}
	left = NULL;
	wrong = uses % 64 == 0 || size > 4000 ? kvd_store_check(&store) : NULL;
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		abort();
	}
#ifndef KVD_FUZZ_SEEDED
	CHECK(!kvd_store_check(&store));
	kvd_store_close(&store);
#endif
	return 0;
}

/* --------------------------------------------------------------------------------------------- seeded generator --- */

#ifdef KVD_FUZZ_SEEDED
static uint64_t state;

static uint32_t draw(void)
{
	state += 0x9e3779b97f4a7c15ull;
	return (uint32_t)((state ^ state >> 31) * 0xbf58476d1ce4e5b9ull >> 32);
}

/* Noise; a message that is right; one that is almost right; bytes that are requests for the store; a record. */
static size_t generate(uint8_t *data)
{
	unsigned kind = draw() % 8;
	struct kvd_message m = {.operation = (uint8_t)(draw() % 9), .number = draw(), .session = draw() % 3};
	struct kvd_record r = {.sequence = draw() & ~1u, .key_length = 1, .value_length = draw() % 100};
	size_t size;

	if (kind == 0 || kind >= 5) {
		size = draw() % (kind == 0 ? 400 : 120);
		for (size_t i = 0; i < size; i++)
			data[i] = (uint8_t)draw();
		return size;
	}
	if (kind == 4) {
		size = kvd_record_bytes(1, r.value_length);
		r.bytes = (uint32_t)size;
		memset(data, 0, size);
		data[sizeof(r)] = 'k';
		memcpy(data, &r, sizeof(r));
		memcpy(data + size - 8, &r.sequence, 8);
		((struct kvd_record *)(void *)data)->check = kvd_record_check((struct kvd_record *)(void *)data);
		if (draw() % 2)
			data[draw() % size] ^= (uint8_t)(1 << draw() % 8);
		return size;
	}
	m.key_length = draw() % 4 ? draw() % 40 : draw() % (KVD_KEY_MAX + 1);
	m.value_length = draw() % 8 ? draw() % 200 : draw() % KVD_VALUE_MAX;
	if (m.operation != KVD_PUT && draw() % 4)
		m.value_length = 0;
	if ((m.operation == KVD_STAT || m.operation == KVD_BYE) && draw() % 4)
		m.key_length = 0;
	m.key = m.value = data + 32768 * 2;
	memset(data + 32768 * 2, (int)(draw() % 8), KVD_VALUE_MAX);
	if (draw() % 3 == 0) {
		m.flags = KVD_ANSWER;
		m.status = (uint8_t)(draw() % 10);
		m.key_length = 0;
	}
	size = kvd_format(data, &m);
	if (kind == 2)
		data[draw() % (draw() % 2 ? size : KVD_HEADER)] = (uint8_t)draw();
	if (kind == 3)
		size = draw() % 2 ? draw() % size : size + draw() % 3;
	return size;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
	static uint64_t memory[32768 / 8 * 4];
	uint8_t *data = (uint8_t *)memory;

	state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	for (unsigned long i = 0; i < count; i++) {
		size_t size = generate(data);
		/* Of exactly its size, so that the address sanitizer sees each byte that is read behind it. */
		uint8_t *exact = malloc(size ? size : 1);

		CHECK(exact);
		memcpy(exact, data, size);
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	printf("%lu inputs: %lu requests parsed, %lu malformed, %lu served, %lu read one-sidedly; full %lu, again %lu; "
	       "of the last "
	       "store %lu compactions, %lu records moved, %lu in vain\n",
	       count, counts.parsed, counts.malformed, counts.served, counts.seen, counts.full, counts.again,
	       store.counts.compactions, store.counts.moved, store.counts.moved_in_vain);
	/* That it reached what it is for. */
	CHECK(counts.parsed > count / 100 && counts.malformed > count / 100 && counts.served > count &&
	      counts.seen > count / 10);
	CHECK(counts.full && counts.again && store.counts.damaged == 0);
	kvd_store_close(&store);
	return 0;
}
#endif
