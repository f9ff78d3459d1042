/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of kvd and its clients: messages, and the layout of the table that clients read one-sidedly.
 * README.md describes both. Nothing here knows of libfabric or of contd.
 */
#ifndef KVD_PROTO_H
#define KVD_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the table is little-endian, and is read as it lies in memory");

#define KVD_MAGIC 0x3144564bu /* "KVD1" */
#define KVD_VERSION 1

enum {
	KVD_HEADER = 32,       /* bytes before the key */
	KVD_KEY_MAX = 255,     /* of a key, at least 1 */
	KVD_VALUE_MAX = 32768, /* of a value; a server's limit may be lower */
	KVD_MESSAGE_MAX = KVD_HEADER + KVD_KEY_MAX + KVD_VALUE_MAX,
	KVD_ADDRESS_MAX = 128, /* of an endpoint's address in a hello */
};

enum kvd_operation { KVD_HELLO = 1, KVD_GET, KVD_PUT, KVD_DELETE, KVD_STAT, KVD_BYE, KVD_OPERATIONS };

enum kvd_status {
	KVD_OK,
	KVD_NOT_FOUND,
	KVD_FULL,       /* no place for the key, or no room for the value */
	KVD_AGAIN,      /* no room now, but soon */
	KVD_TOO_LARGE,  /* above the server's limits */
	KVD_BAD,        /* malformed */
	KVD_CLOSING,    /* the server accepts no new clients */
	KVD_NO_SESSION, /* sessions are used up */
	KVD_STATUSES
};

enum kvd_flags {
	KVD_ANSWER = 1,
	KVD_DRAINING = 2, /* in an answer: the server is about to end; say goodbye */
};

/* A message; key and value point into where it was parsed from. */
struct kvd_message {
	uint8_t operation, status, flags;
	uint64_t number, session;
	uint32_t key_length, value_length;
	const unsigned char *key, *value;
};

enum kvd_parsed {
	KVD_PARSED,
	KVD_FOREIGN,   /* not a message of this protocol and version: nothing of it is to be believed */
	KVD_MALFORMED, /* the header is ours (number and session are set), the rest is wrong */
};

enum kvd_parsed kvd_parse(const void *data, size_t bytes, bool answer, struct kvd_message *message);

/* Write it to out, which must be large enough (KVD_MESSAGE_MAX always is); returns the number of bytes. */
size_t kvd_format(void *out, const struct kvd_message *message);

const char *kvd_status_text(unsigned status);

/* ---------------------------------------------------------------------------------------------------- the table --- */

/* The value of the answer to a hello. All numbers are 8 bytes, in this order. */
struct kvd_layout {
	uint64_t instance;  /* another one with each start of the server */
	uint64_t one_sided; /* 1: the table may be read */
	uint64_t key_max, value_max;
	uint64_t mr_key, mr_base;
	uint64_t slots,
		window; /* a key's slot is one of `window` from its hash modulo `slots`; there are slots + window - 1 */
	uint64_t slots_offset, arena_offset, arena_bytes;
	uint64_t hash_seed;
};
#define KVD_LAYOUT_BYTES sizeof(struct kvd_layout)
_Static_assert(sizeof(struct kvd_layout) == 12 * 8, "no padding");

/* false: it contradicts itself. */
bool kvd_layout_parse(const void *data, size_t bytes, struct kvd_layout *layout);

#define KVD_WINDOW 8u
#define KVD_UNIT 16u /* records begin at multiples of it */

/* An empty one has place 0. A sequence number that is odd: it is being changed. */
struct kvd_slot {
	uint64_t sequence;
	uint64_t hash;
	uint64_t place; /* offset in the arena, in units, << 32 | bytes of the record */
	uint64_t sequence_end;
};

/* Followed by key, value, zeros, and the sequence number once more in the last 8 bytes. */
struct kvd_record {
	uint64_t sequence;
	uint64_t check; /* kvd_record_check() */
	uint32_t slot;
	uint32_t key_length;
	uint32_t value_length;
	uint32_t bytes; /* in all; a multiple of KVD_UNIT */
};

static inline uint64_t kvd_record_bytes(uint32_t key_length, uint32_t value_length)
{
	return (sizeof(struct kvd_record) + (uint64_t)key_length + value_length + 8 + KVD_UNIT - 1) &
	       ~(uint64_t)(KVD_UNIT - 1);
}

uint64_t kvd_hash(uint64_t seed, const void *data, size_t bytes);

/* Over lengths, sequence number, key and value of a whole record. */
uint64_t kvd_record_check(const struct kvd_record *record);

enum kvd_seen { KVD_SEEN, KVD_ABSENT, KVD_TORN };

/* Look for a hash in a window of slots, from *at on. *at becomes its index in the window if it is there. */
enum kvd_seen kvd_window_find(const struct kvd_slot *window, uint32_t slots, uint64_t hash, uint32_t *at);

/*
 * Is this the whole record that the slot spoke of? KVD_SEEN: key and value in *message. KVD_ABSENT: whole, but of
 * another key that has the same hash. KVD_TORN: read again, from the slots on.
 */
enum kvd_seen kvd_record_read(const void *data, size_t bytes, const struct kvd_slot *slot, const void *key,
			      uint32_t key_length, struct kvd_message *message);

#endif
