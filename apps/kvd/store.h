/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table: slots, and an arena of records that is written like a log, in one piece of memory that clients may read.
 * Nothing here knows of libfabric. One thread uses a store, but requests may interrupt kvd_store_compact() on it
 * wherever that is not between hold() and release().
 */
#ifndef KVD_STORE_H
#define KVD_STORE_H

#include "proto.h"

struct kvd_store_config {
	uint64_t slots;         /* rounded up to a power of two */
	uint64_t arena_bytes;   /* rounded up to segments, at least four */
	uint64_t segment_bytes; /* at least 16 records of the largest size */
	uint64_t hash_seed;
	void (*hold)(void *), (*release)(void *); /* around what requests must not see half done; NULL: nothing */
	void *data;
};

struct kvd_limits {
	uint32_t key_max, value_max;
	uint32_t compact_percent; /* of a segment that is garbage, before it is compacted while there is room */
};

struct kvd_segment {
	uint64_t used, live; /* bytes */
	bool free;
};

struct kvd_counts {
	uint64_t keys, gets, found, puts, deletes, full, again, too_large;
	uint64_t compactions, moved, moved_in_vain, damaged;
};

struct kvd_store {
	unsigned char *memory;
	uint64_t bytes;
	uint64_t slots, hash_seed;
	uint64_t slots_offset, arena_offset, arena_bytes, segment_bytes;
	uint64_t sequence;
	struct kvd_slot *slot;
	unsigned char *arena;
	struct kvd_segment *segment;
	uint32_t segments, unused; /* unused: free ones */
	int64_t head;              /* where puts go; -1: nowhere yet */
	/* Compaction: from where, how far, and to where. */
	int64_t victim, target;
	uint64_t victim_at;
	bool short_of_room;
	void (*hold)(void *), (*release)(void *);
	void *data;
	struct kvd_counts counts;
};

/* 0 or -errno. */
int kvd_store_open(struct kvd_store *store, const struct kvd_store_config *config);
void kvd_store_close(struct kvd_store *store);

/* The answer to a hello, without the parts that the fabric fills in. */
void kvd_store_layout(const struct kvd_store *store, const struct kvd_limits *limits, struct kvd_layout *layout);

/* key and value of the record, or NULL */
const struct kvd_record *kvd_store_find(const struct kvd_store *store, const void *key, uint32_t key_length);
enum kvd_status kvd_store_put(struct kvd_store *store, const struct kvd_limits *limits, const struct kvd_message *m);
enum kvd_status kvd_store_delete(struct kvd_store *store, const struct kvd_message *m);

/*
 * Answer a request for data, KVD_GET to KVD_STAT, into out, KVD_MESSAGE_MAX bytes; returns the answer's length.
 * `more`, text of at most 2048 bytes, is put behind the store's own figures in the answer to KVD_STAT.
 */
size_t kvd_serve(struct kvd_store *store, const struct kvd_limits *limits, const struct kvd_message *m,
		 const char *more, uint8_t flags, void *out);

/* Is there anything to compact? */
bool kvd_store_wants_compaction(const struct kvd_store *store, const struct kvd_limits *limits);

/* A step of it, one record at most; false: there is no more to do. Plain computation, but for hold() and release(). */
bool kvd_store_compact(struct kvd_store *store, const struct kvd_limits *limits);

/* For tests: NULL, or what is wrong with the store. */
const char *kvd_store_check(const struct kvd_store *store);

#endif
