/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "store.h"

#define PAGE 4096u

/* --------------------------------------------------------------------------------------------- opening, closing --- */

static uint64_t up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

int kvd_store_open(struct kvd_store *s, const struct kvd_store_config *c)
{
	uint64_t slots = 1, segment = up(c->segment_bytes, PAGE), count;

	memset(s, 0, sizeof(*s));
	while (slots < c->slots)
		slots *= 2;
	if (!c->slots || slots > 1u << 28 || segment < 16 * kvd_record_bytes(KVD_KEY_MAX, 0))
		return -EINVAL;
	count = up(c->arena_bytes, segment) / segment;
	count = count < 4 ? 4 : count;
	if (count * segment > (uint64_t)KVD_UNIT << 32)
		return -EINVAL;
	s->slots = slots;
	s->hash_seed = c->hash_seed;
	s->slots_offset = 0;
	s->arena_offset = up((slots + KVD_WINDOW - 1) * sizeof(struct kvd_slot), PAGE);
	s->segments = (uint32_t)count;
	s->segment_bytes = segment;
	s->arena_bytes = count * segment;
	s->bytes = s->arena_offset + s->arena_bytes;
	s->segment = calloc(count, sizeof(*s->segment));
	if (!s->segment)
		return -ENOMEM;
	s->memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->memory == MAP_FAILED) {
		free(s->segment);
		return -errno;
	}
	s->slot = (struct kvd_slot *)(s->memory + s->slots_offset);
	s->arena = s->memory + s->arena_offset;
	for (uint32_t i = 0; i < s->segments; i++)
		s->segment[i].free = true;
	s->unused = s->segments;
	s->head = s->victim = s->target = -1;
	s->hold = c->hold;
	s->release = c->release;
	s->data = c->data;
	return 0;
}

void kvd_store_close(struct kvd_store *s)
{
	munmap(s->memory, s->bytes);
	free(s->segment);
}

void kvd_store_layout(const struct kvd_store *s, const struct kvd_limits *limits, struct kvd_layout *l)
{
	*l = (struct kvd_layout){.key_max = limits->key_max,
				 .value_max = limits->value_max,
				 .slots = s->slots,
				 .window = KVD_WINDOW,
				 .slots_offset = s->slots_offset,
				 .arena_offset = s->arena_offset,
				 .arena_bytes = s->arena_bytes,
				 .hash_seed = s->hash_seed};
}

/* ------------------------------------------------------------------------------------------------------- places --- */

static uint64_t place_of(uint64_t offset, uint64_t bytes)
{
	return (offset / KVD_UNIT) << 32 | bytes;
}

static uint64_t offset_of(uint64_t place)
{
	return (place >> 32) * KVD_UNIT;
}

static struct kvd_record *record_at(const struct kvd_store *s, uint64_t place)
{
	return (struct kvd_record *)(void *)(s->arena + offset_of(place));
}

static struct kvd_segment *segment_of(struct kvd_store *s, uint64_t place)
{
	return &s->segment[offset_of(place) / s->segment_bytes];
}

/* A free segment, or -1; the last one is for compaction. */
static int64_t take_segment(struct kvd_store *s, bool last_too)
{
	if (s->unused < (last_too ? 1 : 2))
		return -1;
	for (uint32_t i = 0; i < s->segments; i++)
		if (s->segment[i].free) {
			s->segment[i] = (struct kvd_segment){0};
			s->unused--;
			return i;
		}
	return -1;
}

/* Room for a record at the end of *current, which is replaced when it is full; UINT64_MAX: there is none. */
static uint64_t room(struct kvd_store *s, int64_t *current, uint64_t bytes, bool last_too)
{
	if (*current < 0 || s->segment[*current].used + bytes > s->segment_bytes) {
		int64_t next = take_segment(s, last_too);

		if (next < 0)
			return UINT64_MAX;
		*current = next;
	}
	return (uint64_t)*current * s->segment_bytes + s->segment[*current].used;
}

/* -------------------------------------------------------------------------------------------------------- slots --- */

/* Clients read while this is written, in any order: a slot counts only if both numbers are the same, and even. */
static void publish(struct kvd_slot *slot, uint64_t sequence, uint64_t hash, uint64_t place)
{
	__atomic_store_n(&slot->sequence, sequence | 1, __ATOMIC_RELAXED);
	/* Release fence: a reader that sees the following stores sees the odd number, or a later one. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&slot->hash, hash, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->place, place, __ATOMIC_RELEASE); /* after the record */
	__atomic_store_n(&slot->sequence_end, sequence, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->sequence, sequence, __ATOMIC_RELEASE);
}

/* The key's slot; NULL: it has none, and *empty is where it could be, or NULL. */
static struct kvd_slot *slot_of(const struct kvd_store *s, const void *key, uint32_t key_length, uint64_t hash,
				struct kvd_slot **empty)
{
	struct kvd_slot *window = &s->slot[hash & (s->slots - 1)];

	*empty = NULL;
	for (uint32_t i = 0; i < KVD_WINDOW; i++) {
		const struct kvd_record *r;

		if (!window[i].place) {
			if (!*empty)
				*empty = &window[i];
			continue;
		}
		if (window[i].hash != hash)
			continue;
		r = record_at(s, window[i].place);
		if (r->key_length == key_length && memcmp(r + 1, key, key_length) == 0)
			return &window[i];
	}
	return NULL;
}

const struct kvd_record *kvd_store_find(const struct kvd_store *s, const void *key, uint32_t key_length)
{
	struct kvd_slot *empty, *slot = slot_of(s, key, key_length, kvd_hash(s->hash_seed, key, key_length), &empty);

	return slot ? record_at(s, slot->place) : NULL;
}

static void forget_record(struct kvd_store *s, uint64_t place)
{
	if (place)
		segment_of(s, place)->live -= (uint32_t)place;
}

static uint64_t garbage(const struct kvd_store *s, uint32_t i)
{
	return s->segment[i].free || i == s->head || i == s->target ? 0 : s->segment_bytes - s->segment[i].live;
}

/* The segment most worth compacting, if it has at least so many bytes of garbage. */
static int64_t worst(const struct kvd_store *s, uint64_t least)
{
	int64_t found = -1;

	for (uint32_t i = 0; i < s->segments; i++)
		if (garbage(s, i) >= least) {
			found = i;
			least = garbage(s, i) + 1;
		}
	return found;
}

/* Where so much is garbage, compaction gains room for certain: at most a sixteenth is lost at the end of a segment. */
static uint64_t worthwhile(const struct kvd_store *s)
{
	return s->segment_bytes / 8;
}

enum kvd_status kvd_store_put(struct kvd_store *s, const struct kvd_limits *limits, const struct kvd_message *m)
{
	uint64_t bytes = kvd_record_bytes(m->key_length, m->value_length), at, before;
	uint64_t hash = kvd_hash(s->hash_seed, m->key, m->key_length);
	struct kvd_slot *empty, *slot;
	struct kvd_record *r;

	if (m->key_length > limits->key_max || m->value_length > limits->value_max || bytes * 16 > s->segment_bytes) {
		s->counts.too_large++;
		return KVD_TOO_LARGE;
	}
	slot = slot_of(s, m->key, m->key_length, hash, &empty);
	if (!slot && !empty) {
		s->counts.full++;
		return KVD_FULL;
	}
	at = room(s, &s->head, bytes, false);
	if (at == UINT64_MAX) {
		s->short_of_room = s->victim >= 0 || worst(s, worthwhile(s)) >= 0;
		if (s->short_of_room)
			s->counts.again++;
		else
			s->counts.full++;
		return s->short_of_room ? KVD_AGAIN : KVD_FULL;
	}
	s->sequence += 2;
	r = (struct kvd_record *)(void *)(s->arena + at);
	memset((unsigned char *)r + bytes - KVD_UNIT - 8, 0, KVD_UNIT); /* what the value does not fill */
	*r = (struct kvd_record){.sequence = s->sequence,
				 .slot = (uint32_t)((slot ? slot : empty) - s->slot),
				 .key_length = m->key_length,
				 .value_length = m->value_length,
				 .bytes = (uint32_t)bytes};
	memcpy(r + 1, m->key, m->key_length);
	if (m->value_length)
		memcpy((unsigned char *)(r + 1) + m->key_length, m->value, m->value_length);
	memcpy((unsigned char *)r + bytes - 8, &r->sequence, 8);
	r->check = kvd_record_check(r);
	s->segment[s->head].used += bytes;
	s->segment[s->head].live += bytes;
	s->counts.puts++;
	s->counts.keys += !slot;
	before = slot ? slot->place : 0;
	publish(slot ? slot : empty, s->sequence, hash, place_of(at, bytes));
	forget_record(s, before);
	return KVD_OK;
}

enum kvd_status kvd_store_delete(struct kvd_store *s, const struct kvd_message *m)
{
	uint64_t hash = kvd_hash(s->hash_seed, m->key, m->key_length), before;
	struct kvd_slot *empty, *slot = slot_of(s, m->key, m->key_length, hash, &empty);

	if (!slot)
		return KVD_NOT_FOUND;
	s->sequence += 2;
	before = slot->place;
	publish(slot, s->sequence, 0, 0);
	forget_record(s, before);
	s->counts.deletes++;
	s->counts.keys--;
	return KVD_OK;
}

/* ---------------------------------------------------------------------------------------------------- answering --- */

static size_t statistics(const struct kvd_store *s, const char *more, char *out, size_t size)
{
	const struct kvd_counts *c = &s->counts;
	uint64_t live = 0;

	for (uint32_t i = 0; i < s->segments; i++)
		live += s->segment[i].live;
	return (size_t)snprintf(
		out, size,
		"keys %lu\ngets %lu\nfound %lu\nputs %lu\ndeletes %lu\nfull %lu\nagain %lu\ntoo_large %lu\n"
		"compactions %lu\nmoved %lu\nmoved_in_vain %lu\ndamaged %lu\nsegments %u\nsegments_unused %u\n"
		"bytes_live %lu\nslots %lu\n%.2048s",
		c->keys, c->gets, c->found, c->puts, c->deletes, c->full, c->again, c->too_large, c->compactions,
		c->moved, c->moved_in_vain, c->damaged, s->segments, s->unused, live, s->slots, more ? more : "");
}

size_t kvd_serve(struct kvd_store *s, const struct kvd_limits *limits, const struct kvd_message *m, const char *more,
		 uint8_t flags, void *out)
{
	struct kvd_message answer = {
		.operation = m->operation, .flags = KVD_ANSWER | flags, .number = m->number, .session = m->session};
	const struct kvd_record *r;
	char text[4096];

	switch (m->operation) {
	case KVD_GET:
		s->counts.gets++;
		r = kvd_store_find(s, m->key, m->key_length);
		answer.status = r ? KVD_OK : KVD_NOT_FOUND;
		if (r) {
			s->counts.found++;
			answer.value = (const unsigned char *)(r + 1) + r->key_length;
			answer.value_length = r->value_length;
		}
		break;
	case KVD_PUT:
		answer.status = (uint8_t)kvd_store_put(s, limits, m);
		break;
	case KVD_DELETE:
		answer.status = (uint8_t)kvd_store_delete(s, m);
		break;
	case KVD_STAT:
		answer.value = (const unsigned char *)text;
		answer.value_length = (uint32_t)statistics(s, more, text, sizeof(text));
		break;
	default:
		answer.status = KVD_BAD;
	}
	return kvd_format(out, &answer);
}

/* --------------------------------------------------------------------------------------------------- compacting --- */

static int64_t next_victim(const struct kvd_store *s, const struct kvd_limits *limits)
{
	uint64_t least = s->segment_bytes / 100 * limits->compact_percent;

	if (s->short_of_room && s->unused < 2 && least > worthwhile(s))
		least = worthwhile(s);
	return worst(s, least ? least : 1);
}

bool kvd_store_wants_compaction(const struct kvd_store *s, const struct kvd_limits *limits)
{
	return s->victim >= 0 || next_victim(s, limits) >= 0;
}

static void hold(struct kvd_store *s)
{
	if (s->hold)
		s->hold(s->data);
}

static void release(struct kvd_store *s)
{
	if (s->release)
		s->release(s->data);
}

static bool choose(struct kvd_store *s, const struct kvd_limits *limits)
{
	hold(s);
	if (s->unused >= 2)
		s->short_of_room = false;
	s->victim = next_victim(s, limits);
	s->victim_at = 0;
	release(s);
	return s->victim >= 0;
}

/* Nothing in it is live any more: what was has been moved, overwritten or deleted. */
static void give_back(struct kvd_store *s)
{
	hold(s);
	s->segment[s->victim] = (struct kvd_segment){.free = true};
	s->unused++;
	s->victim = -1;
	s->counts.compactions++;
	release(s);
}

bool kvd_store_compact(struct kvd_store *s, const struct kvd_limits *limits)
{
	uint64_t from, to, old;
	struct kvd_record *r, *copy;
	struct kvd_slot *slot;

	if (s->victim < 0 && !choose(s, limits))
		return false;
	/* No thread writes to a victim, and a segment with puts under way is none: the data read here stays. */
	if (s->victim_at >= s->segment[s->victim].used || s->segment[s->victim].live == 0) {
		give_back(s);
		return true;
	}
	from = (uint64_t)s->victim * s->segment_bytes + s->victim_at;
	r = (struct kvd_record *)(void *)(s->arena + from);
	old = place_of(from, r->bytes);
	slot = &s->slot[r->slot];
	s->victim_at += r->bytes;
	if (__atomic_load_n(&slot->place, __ATOMIC_RELAXED) != old)
		return true;

	hold(s);
	to = room(s, &s->target, r->bytes, true);
	release(s);
	if (to == UINT64_MAX) { /* can't be: a victim is chosen while a segment is free, or the target has room */
		s->victim = -1;
		return false;
	}
	/* Here requests are answered: this takes its time. */
	copy = (struct kvd_record *)(void *)(s->arena + to);
	memcpy(copy, r, r->bytes);
	if (kvd_record_check(copy) != copy->check)
		s->counts.damaged++;

	hold(s);
	if (slot->place == old) { /* neither overwritten nor deleted meanwhile */
		/* Release: after the copy. The sequence number stays: it is the same record. */
		__atomic_store_n(&slot->place, place_of(to, r->bytes), __ATOMIC_RELEASE);
		s->segment[s->victim].live -= r->bytes;
		s->segment[s->target].live += r->bytes;
		s->segment[s->target].used += r->bytes;
		s->counts.moved++;
	} else {
		s->counts.moved_in_vain++;
	}
	release(s);
	return true;
}

/* ----------------------------------------------------------------------------------------------------- checking --- */

const char *kvd_store_check(const struct kvd_store *s)
{
	uint64_t keys = 0, live = 0, counted = 0;
	uint32_t unused = 0;

	for (uint64_t i = 0; i < s->slots + KVD_WINDOW - 1; i++) {
		const struct kvd_slot *slot = &s->slot[i];
		struct kvd_message m;
		const struct kvd_record *r;

		if (slot->sequence != slot->sequence_end || slot->sequence & 1)
			return "a slot's sequence numbers differ, or are odd";
		if (!slot->place)
			continue;
		if (offset_of(slot->place) + (uint32_t)slot->place > s->arena_bytes)
			return "a slot points out of the arena";
		r = record_at(s, slot->place);
		if (r->slot != i)
			return "a record belongs to another slot";
		if (kvd_record_read(r, (uint32_t)slot->place, slot, r + 1, r->key_length, &m) != KVD_SEEN)
			return "a record is damaged";
		if (kvd_hash(s->hash_seed, m.key, m.key_length) != slot->hash)
			return "a slot has the hash of another key";
		if (i - (slot->hash & (s->slots - 1)) >= KVD_WINDOW)
			return "a key is outside its window";
		if (s->segment[offset_of(slot->place) / s->segment_bytes].free)
			return "a record is in a free segment";
		keys++;
		live += (uint32_t)slot->place;
	}
	for (uint32_t i = 0; i < s->segments; i++) {
		counted += s->segment[i].live;
		unused += s->segment[i].free;
		if (s->segment[i].live > s->segment[i].used || s->segment[i].used > s->segment_bytes)
			return "a segment's figures contradict each other";
	}
	if (keys != s->counts.keys || live != counted || unused != s->unused)
		return "the counts are wrong";
	return NULL;
}
