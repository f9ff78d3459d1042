/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "doorbell/targets.h"
#include "doorbell/transfers.h"

/* ------------------------------------------------------------------------------------------ persistent requests --- */

struct made {
	struct made *next;
	MPI_Request request;
	int world;
	struct contd__members *members; /* a reference */
	int64_t bytes;
};

#define BUCKETS 1024u

static struct {
	pthread_mutex_t lock; /* MPI is not called under it */
	struct made *bucket[BUCKETS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct made **bucket_of(MPI_Request request)
{
	uint64_t h = 0;

	memcpy(&h, &request, sizeof(request) < sizeof(h) ? sizeof(request) : sizeof(h));
	return &table.bucket[(h * 0x9e3779b97f4a7c15ull) >> 54];
}

static struct made **find(MPI_Request request)
{
	struct made **at = bucket_of(request);

	while (*at && (*at)->request != request)
		at = &(*at)->next;
	return at;
}

static void release(struct made *m)
{
	if (m && m->members)
		contd__members_unref(m->members);
	free(m);
}

void contd__made_add(MPI_Request request, int world, struct contd__members *members, int64_t bytes)
{
	struct made *m = malloc(sizeof(*m)), **at, *old;

	if (members)
		contd__add(&members->references, 1);
	pthread_mutex_lock(&table.lock);
	/* One of that name has gone without MPI_Request_free: MPI frees some that have failed. */
	at = find(request);
	old = *at;
	if (old)
		*at = old->next;
	if (m) {
		*m = (struct made){*bucket_of(request), request, world, members, bytes};
		*bucket_of(request) = m;
	}
	pthread_mutex_unlock(&table.lock);
	if (!m && members)
		contd__members_unref(members);
	release(old);
}

void contd__made_remove(MPI_Request request)
{
	struct made **at, *old;

	pthread_mutex_lock(&table.lock);
	at = find(request);
	old = *at;
	if (old)
		*at = old->next;
	pthread_mutex_unlock(&table.lock);
	release(old);
}

void contd__made_start(MPI_Request request)
{
	struct contd__members *members = NULL;
	int world = -1, known;
	int64_t bytes = 0;
	struct made *m;

	pthread_mutex_lock(&table.lock);
	m = *find(request);
	known = m != NULL;
	if (m) {
		world = m->world;
		bytes = m->bytes;
		members = m->members;
		if (members)
			contd__add(&members->references, 1);
	}
	pthread_mutex_unlock(&table.lock);
	if (members) {
		contd__ring_members(members);
		contd__members_unref(members);
	} else if (known) {
		struct contd__place *p = contd__ring_world(world);

		if (p && bytes >= CONTD_LONG_BYTES)
			contd__owe(p, bytes);
		if (p)
			contd__ring_place(p);
	} else {
		contd__ring_known();
	}
}

/* ------------------------------------------------------------------------------------------------------ windows --- */

static struct {
	uint32_t busy;
	uint32_t state; /* of the keyval; 0: none; 1: there; 2: cannot be made */
	int keyval;
	uint32_t generation; /* goes up when a window with members goes */
} own;

static __thread struct {
	MPI_Win win;
	uint32_t generation;
	struct contd__members *members;
} last __attribute__((tls_model("initial-exec")));

static int members_free(MPI_Win win, int keyval, void *value, void *extra)
{
	(void)win, (void)keyval, (void)extra;
	contd__add(&own.generation, 1);
	contd__members_unref(value);
	return MPI_SUCCESS;
}

static struct contd__members *members_of(MPI_Win win)
{
	struct contd__members *m = NULL;
	MPI_Group group;
	void *value;
	int found = 0;

	if (contd__load_acquire(&own.state) == 1 && PMPI_Win_get_attr(win, own.keyval, &value, &found) == MPI_SUCCESS &&
	    found)
		return value;
	if (contd__xchg(&own.busy, 1))
		return NULL;
	if (!own.state)
		contd__store_release(&own.state, PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, members_free, &own.keyval,
									NULL) == MPI_SUCCESS
							 ? 1u
							 : 2u);
	if (own.state == 1 && PMPI_Win_get_attr(win, own.keyval, &value, &found) == MPI_SUCCESS && found) {
		m = value;
	} else if (own.state == 1 && PMPI_Win_get_group(win, &group) == MPI_SUCCESS) {
		m = contd__members_make(group);
		PMPI_Group_free(&group);
		if (m && PMPI_Win_set_attr(win, own.keyval, m)) {
			free(m);
			m = NULL;
		}
	}
	contd__store_release(&own.busy, 0);
	return m;
}

struct contd__members *contd__window(MPI_Win win)
{
	uint32_t generation = contd__load(&own.generation);

	if (last.members && last.win == win && last.generation == generation)
		return last.members;
	last.members = NULL;
	if (win == MPI_WIN_NULL || !contd__ring_ready())
		return NULL;
	last.members = members_of(win);
	last.win = win;
	last.generation = generation;
	return last.members;
}
