/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "dispatch/source.h"
#include "progress/inside.h"
#include "progress/outstanding.h"

struct known {
	uintptr_t request; /* the handle; 0: free */
	bool persistent, started, reduces;
	uint32_t times; /* that so many reductions under way have had the handle */
};

static struct known *table; /* open addressing; never more than half full */
static uint32_t room, used; /* a power of two */
uint32_t contd__persistents;

#define P contd__progress

/* Of the table. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_table(void)
{
	if (P.multiple)
		pthread_mutex_lock(&lock);
}

static void unlock_table(void)
{
	if (P.multiple)
		pthread_mutex_unlock(&lock);
}

/* Another thread may count, too: returns the value before. */
static uint32_t add_to(uint32_t *which, uint32_t n)
{
	uint32_t before;

	if (P.multiple)
		return contd__add(which, n);
	before = *which;
	/* The first one: store this, then look whether contd's thread sleeps (contd__pending_sig). Dekker with sleep_on
	 * in dispatch/daemon.c. */
	if (P.shared && !before)
		contd__store_seq(which, n);
	else
		contd__store(which, before + n);
	return before;
}

void contd__more(uint32_t *which)
{
	/* With MPI_THREAD_MULTIPLE the other counts may fall meanwhile: each that rises from zero begins looks. */
	bool first = P.multiple || !contd__wants_looks();

	if (P.by_thread) {
		contd__store(&P.floating, contd__inside.floating);
		contd__store(&P.floating_x87, contd__inside.floating_x87);
	}
	if (which != &P.windows) {
		if (P.multiple)
			__atomic_fetch_add(&P.begun, 1, __ATOMIC_RELAXED);
		else
			P.begun++;
	}
	if (!add_to(which, 1) && first)
		contd__pending_sig();
}

void contd__fewer(uint32_t *which, int n)
{
	uint32_t before = contd__load(which);

	/* Requests that were not counted, because another thread or a callback has made them, may complete here. */
	if (!P.multiple)
		contd__store(which, (uint32_t)n < before ? before - (uint32_t)n : 0);
	else if (n > 0)
		while (!contd__cas(which, &before, (uint32_t)n < before ? before - (uint32_t)n : 0))
			;
}

static void reduces(bool more)
{
	add_to(&P.reducing, more ? 1u : -1u);
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

static void complete_locked(struct known *k)
{
	if (!k || !k->started)
		return;
	k->started = false;
	if (k->reduces)
		reduces(false);
	contd__fewer(&P.started, 1);
}

static void made_locked(MPI_Request request, bool by_users)
{
	struct known *k = find((uintptr_t)request);

	if (k && k->persistent)
		return;
	if (k) { /* it was freed unseen */
		add_to(&P.reducing, -k->times);
		drop(k);
	}
	if (add((struct known){(uintptr_t)request, true, false, by_users, 0}))
		contd__store(&contd__persistents, contd__persistents + 1);
}

static void started_locked(struct known *k)
{
	if (!k || !k->persistent || k->started)
		return;
	k->started = true;
	if (k->reduces)
		reduces(true);
	contd__more(&P.started);
}

static void freed_locked(struct known *k)
{
	complete_locked(k);
	contd__store(&contd__persistents, contd__persistents - 1);
	drop(k);
}

void contd__persistent_made(MPI_Request request, bool by_users)
{
	if (request == MPI_REQUEST_NULL)
		return;
	lock_table();
	made_locked(request, by_users);
	unlock_table();
}

void contd__persistent_started(MPI_Request request)
{
	lock_table();
	started_locked(find((uintptr_t)request));
	unlock_table();
}

void contd__persistent_complete(MPI_Request request)
{
	/* The thread reads its requests without the lock. */
	if (!contd__load(&contd__persistents))
		return;
	lock_table();
	complete_locked(find((uintptr_t)request));
	unlock_table();
}

struct contd__persistent contd__persistent_freed(MPI_Request request)
{
	struct contd__persistent was = {0};
	struct known *k;

	if (!contd__load(&contd__persistents))
		return was;
	lock_table();
	k = find((uintptr_t)request);
	if (k && k->persistent) {
		was = (struct contd__persistent){true, k->started, k->reduces};
		freed_locked(k);
	}
	unlock_table();
	return was;
}

void contd__persistent_kept(MPI_Request request, struct contd__persistent was)
{
	if (!was.is)
		return;
	lock_table();
	made_locked(request, was.reduces);
	if (was.started)
		started_locked(find((uintptr_t)request));
	unlock_table();
}

/* --------------------------------------------------------------------------------------------------- reductions --- */

/*
 * With MPI_THREAD_MULTIPLE a handle may be there already: MPI has given it to another thread's reduction, whose call
 * looks at its requests only after MPI has freed it. So it counts once more. At other levels it was freed unseen.
 */
void contd__reduction_begun(MPI_Request request)
{
	struct known *k;

	if (request == MPI_REQUEST_NULL)
		return;
	lock_table();
	k = find((uintptr_t)request);
	if (k && k->persistent) {
		freed_locked(k); /* unseen */
		k = NULL;
	}
	if (!k && add((struct known){(uintptr_t)request, false, false, true, 1})) {
		reduces(true);
	} else if (k && P.multiple) {
		k->times++;
		reduces(true);
	}
	unlock_table();
}

void contd__look_at(struct contd__looked_at *before, int count, const MPI_Request requests[])
{
	before->all = NULL;
	before->count = count;
	if (!contd__load(&P.reducing) || !requests || count <= 0)
		return;
	/* Out of memory: what completes in this call counts until its handle is seen again. */
	before->all = count == 1 ? &before->one : malloc((size_t)count * sizeof(*before->all));
	for (int i = 0; before->all && i < count; i++)
		before->all[i] = requests[i];
}

static void no_more_locked(struct known *k)
{
	if (!k || k->persistent)
		return;
	reduces(false);
	if (--k->times == 0)
		drop(k);
}

void contd__looked(struct contd__looked_at *before, const MPI_Request requests[])
{
	for (int i = 0; before->all && i < before->count; i++)
		if (requests[i] == MPI_REQUEST_NULL && before->all[i] != MPI_REQUEST_NULL) {
			lock_table();
			no_more_locked(find((uintptr_t)before->all[i]));
			unlock_table();
		}
	if (before->all != &before->one)
		free(before->all);
}
