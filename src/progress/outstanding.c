/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/atomic.h"
#include "dispatch/source.h"
#include "progress/inside.h"
#include "progress/outstanding.h"

struct known {
	uintptr_t request; /* the handle; 0: free */
	bool persistent, started, reduces;
};

static struct known *table; /* open addressing; never more than half full */
static uint32_t room, used; /* a power of two */
uint32_t contd__persistents;

void contd__more(uint32_t *which)
{
	bool first = !contd__wants_looks();

	contd__store(which, *which + 1);
	contd__progress.begun += which != &contd__progress.windows;
	if (first)
		contd__pending_sig();
}

void contd__fewer(uint32_t *which, int n)
{
	/* Requests that were not counted, because another thread or a callback has made them, may complete here. */
	contd__store(which, (uint32_t)n < *which ? *which - (uint32_t)n : 0);
}

static void reduces(bool more)
{
	contd__store(&contd__progress.reducing, contd__progress.reducing + (more ? 1u : -1u));
}

static uint32_t place(uintptr_t request)
{
	return (uint32_t)((request * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (room - 1);
}

static struct known *find(uintptr_t request)
{
	if (!used || !request)
		return NULL;
	for (uint32_t i = place(request); table[i].request; i = (i + 1) & (room - 1))
		if (table[i].request == request)
			return &table[i];
	return NULL;
}

static void put(struct known known)
{
	uint32_t i = place(known.request);

	while (table[i].request)
		i = (i + 1) & (room - 1);
	table[i] = known;
}

static bool grow(void)
{
	struct known *before = table;
	uint32_t had = room, now = room ? 2 * room : 64;
	struct known *larger = calloc(now, sizeof(*larger));

	if (!larger)
		return false;
	table = larger;
	room = now;
	for (uint32_t i = 0; i < had; i++)
		if (before[i].request)
			put(before[i]);
	free(before);
	return true;
}

/* Out of memory: it is not counted, and ticks do not serve it. If it reduces, it counts for good. */
static bool add(struct known known)
{
	if (2 * (used + 1) > room && !grow()) {
		if (known.reduces)
			reduces(true);
		return false;
	}
	put(known);
	used++;
	return true;
}

static void drop(const struct known *k)
{
	uint32_t hole = (uint32_t)(k - table), i;

	used--;
	/* Close the gap: whatever could not stand at its place because of this one moves. */
	for (i = (hole + 1) & (room - 1); table[i].request; i = (i + 1) & (room - 1))
		if (((i - place(table[i].request)) & (room - 1)) >= ((i - hole) & (room - 1))) {
			table[hole] = table[i];
			hole = i;
		}
	table[hole] = (struct known){0};
}

/* ------------------------------------------------------------------------------------------ persistent requests --- */

void contd__persistent_made(MPI_Request request, bool by_users)
{
	struct known *k = find((uintptr_t)request);

	if (request == MPI_REQUEST_NULL || (k && k->persistent))
		return;
	if (k) { /* it was freed unseen */
		reduces(false);
		drop(k);
	}
	if (add((struct known){(uintptr_t)request, true, false, by_users}))
		contd__persistents++;
}

void contd__persistent_started(MPI_Request request)
{
	struct known *k = find((uintptr_t)request);

	if (k && k->persistent && !k->started) {
		k->started = true;
		if (k->reduces)
			reduces(true);
		contd__more(&contd__progress.started);
	}
}

void contd__persistent_complete(MPI_Request request)
{
	struct known *k = find((uintptr_t)request);

	if (k && k->started) {
		k->started = false;
		if (k->reduces)
			reduces(false);
		contd__fewer(&contd__progress.started, 1);
	}
}

bool contd__persistent_freed(MPI_Request request)
{
	struct known *k = find((uintptr_t)request);

	if (!k || !k->persistent)
		return false;
	contd__persistent_complete(request);
	contd__persistents--;
	drop(k);
	return true;
}

/* --------------------------------------------------------------------------------------------------- reductions --- */

void contd__reduction_begun(MPI_Request request)
{
	struct known *k = find((uintptr_t)request);

	if (request == MPI_REQUEST_NULL || (k && !k->persistent))
		return;
	if (k) /* it was freed unseen */
		contd__persistent_freed(request);
	if (add((struct known){(uintptr_t)request, false, false, true}))
		reduces(true);
}

void contd__look_at(struct contd__looked_at *before, int count, const MPI_Request requests[])
{
	before->all = NULL;
	before->count = count;
	if (!contd__progress.reducing || !requests || count <= 0)
		return;
	/* Out of memory: what completes in this call counts until its handle is seen again. */
	before->all = count == 1 ? &before->one : malloc((size_t)count * sizeof(*before->all));
	for (int i = 0; before->all && i < count; i++)
		before->all[i] = requests[i];
}

void contd__looked(struct contd__looked_at *before, const MPI_Request requests[])
{
	struct known *k;

	for (int i = 0; before->all && i < before->count; i++) {
		k = requests[i] == MPI_REQUEST_NULL ? find((uintptr_t)before->all[i]) : NULL;
		if (k && !k->persistent) {
			reduces(false);
			drop(k);
		}
	}
	if (before->all != &before->one)
		free(before->all);
}
