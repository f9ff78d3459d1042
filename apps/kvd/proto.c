/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages, little-endian whatever the machine:
 *
 *	 0  u32  magic "KVD1"
 *	 4  u8   version
 *	 5  u8   operation
 *	 6  u8   status
 *	 7  u8   flags
 *	 8  u64  number
 *	16  u64  session
 *	24  u32  bytes of the key
 *	28  u32  bytes of the value
 *	32       key, value, and nothing behind them
 */
#include "proto.h"

static uint32_t get32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const unsigned char *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static void put32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static void put64(unsigned char *p, uint64_t v)
{
	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

/* ----------------------------------------------------------------------------------------------------- messages --- */

/* The lengths of key and value that each operation may have. */
static bool request_fits(const struct kvd_message *m)
{
	if (m->status || m->flags)
		return false;
	switch (m->operation) {
	case KVD_HELLO:
		return !m->key_length && m->value_length && m->value_length <= KVD_ADDRESS_MAX && !m->session;
	case KVD_GET:
	case KVD_DELETE:
		return m->key_length && !m->value_length;
	case KVD_PUT:
		return m->key_length != 0;
	default:
		return !m->key_length && !m->value_length;
	}
}

static bool answer_fits(const struct kvd_message *m)
{
	if (!(m->flags & KVD_ANSWER) || m->flags & ~(KVD_ANSWER | KVD_DRAINING) || m->status >= KVD_STATUSES ||
	    m->key_length)
		return false;
	if (m->operation == KVD_HELLO)
		return m->value_length == (m->status == KVD_OK ? KVD_LAYOUT_BYTES : 0);
	if (m->operation == KVD_GET || m->operation == KVD_STAT)
		return m->status == KVD_OK || !m->value_length;
	return !m->value_length;
}

enum kvd_parsed kvd_parse(const void *data, size_t bytes, bool answer, struct kvd_message *m)
{
	const unsigned char *p = data;

	if (bytes < KVD_HEADER || get32(p) != KVD_MAGIC || p[4] != KVD_VERSION)
		return KVD_FOREIGN;
	*m = (struct kvd_message){.operation = p[5],
				  .status = p[6],
				  .flags = p[7],
				  .number = get64(p + 8),
				  .session = get64(p + 16),
				  .key_length = get32(p + 24),
				  .value_length = get32(p + 28)};
	if (!m->operation || m->operation >= KVD_OPERATIONS || m->key_length > KVD_KEY_MAX ||
	    m->value_length > KVD_VALUE_MAX || bytes - KVD_HEADER != (size_t)m->key_length + m->value_length ||
	    !(answer ? answer_fits(m) : request_fits(m))) {
		m->key_length = m->value_length = 0;
		return KVD_MALFORMED;
	}
	m->key = p + KVD_HEADER;
	m->value = m->key + m->key_length;
	return KVD_PARSED;
}

size_t kvd_format(void *out, const struct kvd_message *m)
{
	unsigned char *p = out;

	put32(p, KVD_MAGIC);
	p[4] = KVD_VERSION;
	p[5] = m->operation;
	p[6] = m->status;
	p[7] = m->flags;
	put64(p + 8, m->number);
	put64(p + 16, m->session);
	put32(p + 24, m->key_length);
	put32(p + 28, m->value_length);
	if (m->key_length)
		memcpy(p + KVD_HEADER, m->key, m->key_length);
	if (m->value_length) /* moved: an answer's value may be there already */
		memmove(p + KVD_HEADER + m->key_length, m->value, m->value_length);
	return KVD_HEADER + (size_t)m->key_length + m->value_length;
}

const char *kvd_status_text(unsigned status)
{
	static const char *const text[KVD_STATUSES] = {
		[KVD_OK] = "done",
		[KVD_NOT_FOUND] = "there is no such key",
		[KVD_FULL] = "the server's table is full",
		[KVD_AGAIN] = "the server has no room now; try again",
		[KVD_TOO_LARGE] = "key or value is larger than the server allows",
		[KVD_BAD] = "the server could not make sense of the request",
		[KVD_CLOSING] = "the server is ending",
		[KVD_NO_SESSION] = "the server has as many clients as it takes",
	};

	return status < KVD_STATUSES ? text[status] : "a status that this version does not know";
}

/* ---------------------------------------------------------------------------------------------------- the table --- */

bool kvd_layout_parse(const void *data, size_t bytes, struct kvd_layout *l)
{
	uint64_t end;

	if (bytes != KVD_LAYOUT_BYTES)
		return false;
	memcpy(l, data, sizeof(*l));
	if (!l->key_max || l->key_max > KVD_KEY_MAX || l->value_max > KVD_VALUE_MAX || l->one_sided > 1)
		return false;
	if (l->window != KVD_WINDOW || !l->slots || l->slots & (l->slots - 1) || l->slots > 1u << 28)
		return false;
	end = (l->slots + l->window - 1) * sizeof(struct kvd_slot);
	return l->slots_offset <= 1u << 20 && l->arena_offset >= l->slots_offset + end &&
	       l->arena_offset < 1ull << 40 && l->arena_bytes && l->arena_bytes <= (uint64_t)KVD_UNIT << 32;
}

/* Eight bytes at a time, each mixed in by a multiplication that is folded; the length is part of it. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t kvd_hash(uint64_t seed, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t h = seed ^ bytes * 0x9e3779b97f4a7c15ull, word;

	for (; bytes >= 8; p += 8, bytes -= 8) {
		memcpy(&word, p, 8);
		h = fold(h ^ word ^ 0x2545f4914f6cdd1dull, 0xd1342543de82ef95ull) + 0x632be59bd9b4e019ull;
	}
	word = 0;
	for (size_t i = 0; i < bytes; i++)
		word |= (uint64_t)p[i] << (8 * i);
	h = fold(h ^ word ^ 0x2545f4914f6cdd1dull, 0xd1342543de82ef95ull);
	return fold(h ^ 0x8b1a3c5d7e9f0a2bull, 0xaef17502108ef2d9ull);
}

uint64_t kvd_record_check(const struct kvd_record *r)
{
	uint64_t seed = r->sequence ^ (uint64_t)r->key_length << 40 ^ (uint64_t)r->slot << 8;

	return kvd_hash(seed, r + 1, (size_t)r->key_length + r->value_length);
}

enum kvd_seen kvd_window_find(const struct kvd_slot *window, uint32_t slots, uint64_t hash, uint32_t *at)
{
	bool torn = false;

	for (; *at < slots; ++*at) {
		const struct kvd_slot *s = &window[*at];

		if (s->sequence != s->sequence_end || s->sequence & 1)
			torn = true; /* its owner is unknown */
		else if (s->place && s->hash == hash)
			return KVD_SEEN;
	}
	return torn ? KVD_TORN : KVD_ABSENT;
}

enum kvd_seen kvd_record_read(const void *data, size_t bytes, const struct kvd_slot *slot, const void *key,
			      uint32_t key_length, struct kvd_message *message)
{
	const unsigned char *p = data;
	const struct kvd_record *r = data;
	uint64_t end;

	if (bytes < kvd_record_bytes(1, 0) || bytes % KVD_UNIT)
		return KVD_TORN;
	memcpy(&end, p + bytes - 8, 8);
	if (r->sequence != slot->sequence || end != r->sequence || r->bytes != bytes || r->key_length > KVD_KEY_MAX ||
	    r->value_length > KVD_VALUE_MAX || kvd_record_bytes(r->key_length, r->value_length) != bytes ||
	    kvd_record_check(r) != r->check)
		return KVD_TORN;
	if (r->key_length != key_length || memcmp(r + 1, key, key_length) != 0)
		return KVD_ABSENT;
	message->key = p + sizeof(*r);
	message->key_length = key_length;
	message->value = message->key + key_length;
	message->value_length = r->value_length;
	return KVD_SEEN;
}
