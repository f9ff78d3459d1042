/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/atomic.h"
#include "dispatch/source.h"
#include "progress/inside.h"
#include "progress/outstanding.h"

struct persistent {
	uintptr_t request; /* the handle; 0: free */
	bool started;
};

static struct persistent *table; /* open addressing; never more than half full */
static uint32_t room;            /* a power of two */
uint32_t contd__persistents;

void contd__more(uint32_t *which)
{
	bool first = !contd__wants_looks();

	contd__store(which, *which + 1);
	if (first)
		contd__pending_sig();
}

void contd__fewer(uint32_t *which, int n)
{
	/* Requests that were not counted, because another thread has made them, may complete here. */
	contd__store(which, (uint32_t)n < *which ? *which - (uint32_t)n : 0);
	if (!contd__progress.requests && !contd__progress.started)
		contd__store(&contd__progress.reducing, 0);
}

static uint32_t place(uintptr_t request)
{
	return (uint32_t)((request * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (room - 1);
}

static struct persistent *find(uintptr_t request)
{
	if (!contd__persistents || !request)
		return NULL;
	for (uint32_t i = place(request); table[i].request; i = (i + 1) & (room - 1))
		if (table[i].request == request)
			return &table[i];
	return NULL;
}

static void put(uintptr_t request, bool started)
{
	uint32_t i = place(request);

	while (table[i].request)
		i = (i + 1) & (room - 1);
	table[i] = (struct persistent){request, started};
}

static bool grow(void)
{
	struct persistent *before = table;
	uint32_t had = room, now = room ? 2 * room : 64;
	struct persistent *larger = calloc(now, sizeof(*larger));

	if (!larger)
		return false;
	table = larger;
	room = now;
	for (uint32_t i = 0; i < had; i++)
		if (before[i].request)
			put(before[i].request, before[i].started);
	free(before);
	return true;
}

void contd__persistent_made(MPI_Request request)
{
	if (request == MPI_REQUEST_NULL || find((uintptr_t)request) || (2 * (contd__persistents + 1) > room && !grow()))
		return; /* out of memory: it is not counted, and ticks do not serve it */
	put((uintptr_t)request, false);
	contd__persistents++;
}

void contd__persistent_started(MPI_Request request)
{
	struct persistent *p = find((uintptr_t)request);

	if (p && !p->started) {
		p->started = true;
		contd__more(&contd__progress.started);
	}
}

void contd__persistent_complete(MPI_Request request)
{
	struct persistent *p = find((uintptr_t)request);

	if (p && p->started) {
		p->started = false;
		contd__fewer(&contd__progress.started, 1);
	}
}

bool contd__persistent_freed(MPI_Request request)
{
	struct persistent *p = find((uintptr_t)request);
	uint32_t hole, i;

	if (!p)
		return false;
	contd__persistent_complete(request);
	contd__persistents--;
	/* Close the gap: whatever could not stand at its place because of this one moves. */
	hole = (uint32_t)(p - table);
	for (i = (hole + 1) & (room - 1); table[i].request; i = (i + 1) & (room - 1))
		if (((i - place(table[i].request)) & (room - 1)) >= ((i - hole) & (room - 1))) {
			table[hole] = table[i];
			hole = i;
		}
	table[hole] = (struct persistent){0, false};
	return true;
}
