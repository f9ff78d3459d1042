/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing and freeing tables: ordinary threads only. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/testpoint.h"
#include "rcu/table.h"

/* One for all tables: growing is rare, and a mutex in each would make small groups larger. */
static pthread_mutex_t grow_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t chunk_bytes(uint32_t slots)
{
	return sizeof(struct contd__chunk) + slots * sizeof(struct contd__slot);
}

/* Pages of a large chunk are touched when its slots are: fresh pages are zero (mmap(2)). */
static struct contd__chunk *chunk_create(uint32_t first, uint32_t slots)
{
	struct contd__chunk *c;

	if (slots == CHUNK_FIRST) {
		c = contd__memalign(64, (chunk_bytes(slots) + 63) & ~(size_t)63);
		if (c)
			memset(c, 0, chunk_bytes(slots));
	} else {
		c = contd__map(chunk_bytes(slots));
	}
	if (c) {
		c->slots = slots;
		c->first = first;
	}
	return c;
}

static void chunk_destroy(struct contd__chunk *c)
{
	if (c->slots == CHUNK_FIRST)
		free(c);
	else
		munmap(c, chunk_bytes(c->slots));
}

static int grow_locked(struct contd__table *t)
{
	uint32_t limit = t->limit;
	uint32_t index = contd__table_index(limit);
	uint32_t slots = limit ? CHUNK_SLOTS : CHUNK_FIRST;
	struct contd__branch *b = t->branch[index >> 18];
	struct contd__chunk *c;

	if (limit >= TABLE_SLOTS_MAX)
		return -ENOSPC;
	c = chunk_create(index, slots);
	if (!c)
		return -ENOMEM;
	if (!b) {
		b = contd__zalloc(sizeof(*b));
		if (!b) {
			chunk_destroy(c);
			return -ENOMEM;
		}
		/* Release: pairs with the acquires in contd__table_slot. */
		contd__store_release(&t->branch[index >> 18], b);
	}
	CONTD_TESTPOINT("grow_before_chunk");
	contd__store_release(&b->chunk[index >> 12 & 63], c);
	CONTD_TESTPOINT("grow_before_limit");
	/* Release: pairs with the acquire in contd__slot_alloc_sig; last, since it makes the slots usable. */
	contd__store_release(&t->limit, limit + slots);
	return 0;
}

int contd__table_grow(struct contd__table *t, uint32_t seen_limit)
{
	int rc = 0;

	pthread_mutex_lock(&grow_lock);
	if (t->limit == seen_limit)
		rc = grow_locked(t);
	pthread_mutex_unlock(&grow_lock);
	return rc;
}

int contd__table_init(struct contd__table *t, struct contd_group *group)
{
	memset(t, 0, sizeof(*t));
	t->group = group;
	return contd__table_grow(t, 0);
}

void contd__table_fini(struct contd__table *t)
{
	for (unsigned b = 0; b < 64 && t->branch[b]; b++) {
		for (unsigned c = 0; c < 64 && t->branch[b]->chunk[c]; c++)
			chunk_destroy(t->branch[b]->chunk[c]);
		free(t->branch[b]);
	}
}
