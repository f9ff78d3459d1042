/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a dump begins: one structure with the addresses of all that contd has in a process. contd_dump() walks it
 * from inside. The command `contd dump` finds it in another process: its name, contd__dump_root, is among the dynamic
 * symbols of the library.
 *
 * The reader must have been built from the same structures as the library. So the root has a magic number, a version,
 * and the place of each member that the walk reads (`place`); a reader refuses a root that differs from its own in one
 * of these.
 *
 * Higher floors describe their own structures by data, because another process cannot call their functions: struct
 * contd__dump_part.
 *
 *     operation             thread  handler  progress
 *     contd__dump_part_add    yes     no     wait-free
 *     contd__dump_root_start  yes     no     wait-free
 */
#ifndef CONTD_DUMP_ROOT_H
#define CONTD_DUMP_ROOT_H

#include <stddef.h>
#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/clock.h"
#include "dispatch/carried.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/word.h"
#include "rcu/table.h"
#include "signal/attached.h"

#define DUMP_MAGIC 0x746f6f72646e6f63ull
#define DUMP_LAYOUT 1u /* goes up when this structure, or a meaning, changes */

/* --------------------------------------------------------------------------------------------- of higher floors --- */

enum contd__dump_how { DUMP_HEX, DUMP_NUMBER, DUMP_SIGNED, DUMP_BOOL, DUMP_NAMED };

struct contd__dump_name {
	uint64_t value;
	const char *text;
};

/* A member of a structure of 1, 2, 4 or 8 bytes. */
struct contd__dump_field {
	const char *key; /* lower-case letters and _ */
	uint32_t offset;
	uint8_t size, how;
	uint16_t names; /* DUMP_NAMED: of `name` */
	const struct contd__dump_name *name;
	uint32_t only_at; /* not 0: where a bool is that must be true, or the field is not shown */
	uint64_t mask;    /* of its bits; 0: all. A field that is 0 then is not shown, except those that are named */
};
#define DUMP_FIELD(type, member, text, way) \
	{ \
		.key = (text), .offset = offsetof(type, member), .size = sizeof(((type *)0)->member), .how = (way) \
	}

struct contd__dump_record {
	const struct contd__dump_field *field;
	uint32_t fields, size; /* how many fields; bytes of the structure, DUMP_RECORD_MOST at most */
};
#define DUMP_FIELDS_MOST 16u
#define DUMP_RECORD_MOST 512u

/* Constant, but for what its pointers point to. */
struct contd__dump_part {
	uint32_t size; /* of this structure */
	uint32_t unused;
	const char *name; /* of the part, for people */

	/* A group whose `freed` is this function belongs to an object of this part: its `owner`. */
	void (*freed)(void *owner);
	const char *object; /* what that is */
	struct contd__dump_record owner;

	/* A slot of KIND_SOURCE with one of these waits for operations of this part. */
	void (*invoke[2])(struct contd__slot *slot);
	/* Of the structure in the slot's `source`: where the number of operations is (32 bits), and the first of
	 * them. */
	uint32_t count_at, first_at;
	struct contd__dump_record operation;
	/* A pointer of the operation's to more of it: where it is; without fields there is none. */
	uint32_t more_at;
	struct contd__dump_record more;

	/* A list of those structures which carry their continuation, or NULL: where its node is, and what its slot
	 * would hold. */
	const struct cds_list_head *carrying;
	uint32_t node_at, as_at;

	/* Counts. */
	struct {
		const char *key;
		const uint32_t *count;
	} counted[4];
};
#define DUMP_PARTS 4u

/* `part` stays where it is, and is never taken away. If there are more than DUMP_PARTS, dumps do not have it. */
CONTD_INTERNAL_API void contd__dump_part_add(const struct contd__dump_part *part);

/* --------------------------------------------------------------------------------------------------------- root --- */

/* X(type, member): all that walk.c reads. */
#define DUMP_READS(X) \
	X(struct contd_group, table) \
	X(struct contd_group, life) \
	X(struct contd_group, flags) \
	X(struct contd_group, max_poll) \
	X(struct contd_group, priority) \
	X(struct contd_group, outlet) \
	X(struct contd_group, waiter) \
	X(struct contd_group, freed) \
	X(struct contd_group, owner) \
	X(struct contd_group, node) \
	X(struct contd_group, given_back) \
	X(struct contd__table, used) \
	X(struct contd__table, limit) \
	X(struct contd__table, group) \
	X(struct contd__table, branch) \
	X(struct contd__branch, chunk) \
	X(struct contd__chunk, slot[0]) \
	X(struct contd__slot, state) \
	X(struct contd__slot, index) \
	X(struct contd__slot, link) \
	X(struct contd__slot, group) \
	X(struct contd__slot, invoke) \
	X(struct contd__slot, cb) \
	X(struct contd__slot, data) \
	X(struct contd__slot, source) \
	X(struct contd__self, tls) \
	X(struct contd__self, tid) \
	X(struct contd__self, context) \
	X(struct contd__self, frame) \
	X(struct contd__self, testing) \
	X(struct contd__self, carried) \
	X(struct contd__self, at_work) \
	X(struct contd__self, watched) \
	X(struct contd__self, counters) \
	X(struct contd__self, node) \
	X(struct contd__carrying, take) \
	X(struct contd__at_work, outlet) \
	X(struct contd__at_work, loan) \
	X(struct contd__at_work, outer) \
	X(struct contd__watched, site) \
	X(struct contd__watched, since) \
	X(struct contd__counters, registered) \
	X(struct contd__counters, run) \
	X(struct contd__counters, ticks) \
	X(struct contd__counters, notifications) \
	X(struct contd__counters, guarded) \
	X(struct contd__counters, scans) \
	X(struct contd__counters, rings) \
	X(struct contd__counters, put_off) \
	X(struct contd__frame, group) \
	X(struct contd__frame, slot) \
	X(struct contd__frame, outer) \
	X(struct contd__testing, group) \
	X(struct contd__testing, left) \
	X(struct contd_tls, region) \
	X(struct contd_tls, guard) \
	X(struct contd_tls, flags) \
	X(struct contd__attached, tid) \
	X(struct contd__attached, signalled) \
	X(struct contd__attached, armed) \
	X(struct contd__attached, inside) \
	X(struct contd__attached, tls) \
	X(struct contd__attached, interval_ns) \
	X(struct contd__attached, left_at) \
	X(struct contd__signals, record) \
	X(struct contd__signals, count) \
	X(struct contd__wake, sleepers) \
	X(struct contd__wake, daemon_asleep) \
	X(struct contd__wake, daemon_mode) \
	X(struct contd__page, armed) \
	X(struct contd__live, users) \
	X(struct contd__live, forked) \
	X(struct contd__clock, ticks_per_ns) \
	X(struct contd__sources, count) \
	X(struct contd__sources, source) \
	X(struct contd__source, name) \
	X(struct contd__source, where) \
	X(struct contd__words, pending) \
	X(struct contd__word_block, live) \
	X(struct contd__word_block, entry) \
	X(struct contd__word_entry, word) \
	X(struct contd__word_entry, slot) \
	X(struct contd__word_entry, generation) \
	X(struct contd_word, address) \
	X(struct contd_word, mask) \
	X(struct contd_word, value) \
	X(struct contd_word, op) \
	X(struct contd_event, word) \
	X(struct contd_event, next) \
	X(struct contd_carried, group) \
	X(struct contd_carried, cb) \
	X(struct contd_carried, data) \
	X(struct contd__unmarked, slot) \
	X(struct contd__unmarked, as) \
	X(struct contd_config, signal_number) \
	X(struct contd_config, signal_taken) \
	X(struct contd_config, agent) \
	X(struct contd_config, overhead_percent) \
	X(struct contd_config, tick_min_ns) \
	X(struct contd_config, tick_max_ns) \
	X(struct contd_config, scan_count) \
	X(struct contd_config, scan_ns) \
	X(struct contd_config, bell) \
	X(struct contd_config, watchdog_ns) \
	X(struct contd_config, daemon_name) \
	X(struct contd_config, daemon_cpus) \
	X(struct contd_config, daemon_sched) \
	X(struct contd_config, dump_signal) \
	X(struct contd_config, dump_file)

/* Offset and size of a member, and the size of the whole. */
#define DUMP_PLACE(type, member) \
	((uint64_t)offsetof(type, member) << 40 | (uint64_t)(sizeof(((type *)0)->member) & 0xfffff) << 20 | \
	 (sizeof(type) & 0xfffff)),
#define DUMP_ONE(type, member) +1
#define DUMP_PLACES (0 DUMP_READS(DUMP_ONE))

struct contd__dump_root {
	uint64_t magic;
	uint32_t size, layout; /* of this structure; DUMP_LAYOUT */
	uint32_t version;      /* as contd_version() */
	uint32_t places;       /* DUMP_PLACES */
	uint64_t begun;        /* when contd_init() started contd, in clock ticks */
	uint32_t part_size;    /* of struct contd__dump_part */
	const struct contd__dump_part *part[DUMP_PARTS];

	const struct contd__live *live;
	const struct contd__clock *clock;
	const struct contd_config *config;
	const struct cds_list_head *groups, *threads;
	const struct contd__signals *signals;
	const struct contd__wake *wake;
	const struct contd__words *words;
	const struct contd__sources *sources;
	struct contd__page *const *page;
	struct contd_event *const *put_off;

	uint64_t place[DUMP_PLACES];
};
CONTD_INTERNAL_API extern struct contd__dump_root contd__dump_root;

/* contd_init(): contd has started now. */
void contd__dump_root_start(void);

#endif
