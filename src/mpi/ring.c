/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers by their rank in MPI_COMM_WORLD. One is looked for when something is first sent to it; where nobody listens (no
 * contd there, not yet, or another host) it is looked for again later, after twice the time, up to a second. Which ranks a
 * communicator has is kept with it, as an attribute.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <contd/contd.h>

#include "mpi/ring.h"
#include "rcu/atomic.h"

#define WAIT_FIRST_TICKS (1ull << 21) /* about a millisecond */
#define WAIT_MOST_TICKS (1ull << 31)  /* about a second */
#define LOOKED_FOR_AT_ONCE 64         /* peers that one collective call looks for */

struct place {
	struct contd_bell *bell; /* NULL: not found; once found it stays, for others may be about to ring it */
	uint64_t again;          /* when to look for it again, in clock ticks; 0: at once */
	uint64_t wait;
	uint32_t gone;           /* the process has ended */
};

/* The world ranks of a communicator's members; of an intercommunicator the remote ones. */
struct members {
	int count;
	int first; /* of a search among them: who is next */
	int rank[];
};

static struct {
	pthread_mutex_t lock; /* looking for peers, and the start */
	uint32_t state;       /* 0: not started; 1: ready; 2: it can't be */
	struct place *place;
	int count, self;
	int keyval;
	char job[CONTD_JOB_TEXT];
	uint32_t known_count;
	struct place **known; /* places with a bell, in the order in which they were found */
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------------------------------------------- the job --- */

/* A process's start, for a number that another one may have had before: field 22 of /proc/pid/stat, proc(5). */
static unsigned long long started(int pid)
{
	char path[32], text[1024], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

void contd__mpi_job(char job[CONTD_JOB_TEXT])
{
	/* What launchers tell: Open MPI and PRRTE, Slurm, PALS, Flux, and the user where none does. */
	static const char *const names[][2] = {{"CONTD_JOB", NULL},         {"PMIX_NAMESPACE", NULL},
					       {"SLURM_JOB_ID", "SLURM_STEP_ID"}, {"PALS_APID", NULL},
					       {"FLUX_JOB_ID", NULL}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *first = getenv(names[i][0]), *second = names[i][1] ? getenv(names[i][1]) : "";

		if (!first || !*first || !second)
			continue;
		if (snprintf(job, CONTD_JOB_TEXT, "%s.%s", first, second) < CONTD_JOB_TEXT)
			return;
	}
	snprintf(job, CONTD_JOB_TEXT, "by.%d.%llu", (int)getppid(), started((int)getppid()));
}

/* -------------------------------------------------------------------------------------------------- communicators --- */

static int members_free(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)extra;
	free(value);
	return MPI_SUCCESS;
}

static int start_locked(void)
{
	PMPI_Comm_size(MPI_COMM_WORLD, &ring.count);
	PMPI_Comm_rank(MPI_COMM_WORLD, &ring.self);
	contd__mpi_job(ring.job);
	ring.place = calloc((size_t)ring.count, sizeof(*ring.place));
	ring.known = calloc((size_t)ring.count, sizeof(*ring.known));
	if (!ring.place || !ring.known ||
	    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, members_free, &ring.keyval, NULL))
		return 2;
	return 1;
}

static int ready(void)
{
	/* Acquire: pairs with the release below. */
	uint32_t state = contd__load_acquire(&ring.state);

	if (state)
		return state == 1;
	pthread_mutex_lock(&ring.lock);
	if (!ring.state)
		contd__store_release(&ring.state, (uint32_t)start_locked());
	pthread_mutex_unlock(&ring.lock);
	return ring.state == 1;
}

static struct members *find_members(MPI_Comm comm)
{
	struct members *m = NULL;
	MPI_Group world, group;
	int inter = 0, found, n, *from;
	void *value;

	if (PMPI_Comm_get_attr(comm, ring.keyval, &value, &found) == MPI_SUCCESS && found)
		return value;
	PMPI_Comm_test_inter(comm, &inter);
	if (inter ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group))
		return NULL;
	PMPI_Group_size(group, &n);
	m = malloc(sizeof(*m) + (size_t)n * sizeof(m->rank[0]));
	from = malloc((size_t)n * sizeof(*from));
	if (m && from) {
		for (int i = 0; i < n; i++)
			from[i] = i;
		m->count = n;
		m->first = 0;
		PMPI_Comm_group(MPI_COMM_WORLD, &world);
		PMPI_Group_translate_ranks(group, n, from, world, m->rank);
		PMPI_Group_free(&world);
		PMPI_Comm_set_attr(comm, ring.keyval, m);
	} else {
		free(m);
		m = NULL;
	}
	free(from);
	PMPI_Group_free(&group);
	return m;
}

/* With several threads a communicator's first use may be two at a time. */
static struct members *members_of(MPI_Comm comm)
{
	struct members *m = NULL;
	void *value;
	int found = 0;

	if (PMPI_Comm_get_attr(comm, ring.keyval, &value, &found) == MPI_SUCCESS && found)
		return value;
	pthread_mutex_lock(&ring.lock);
	m = find_members(comm);
	pthread_mutex_unlock(&ring.lock);
	return m;
}

/* --------------------------------------------------------------------------------------------------------- peers --- */

static void look_for(struct place *p, int rank)
{
	struct contd_bell *bell = NULL;
	uint64_t now = contd__ticks();

	if (pthread_mutex_trylock(&ring.lock))
		return; /* somebody is looking */
	if (!p->bell || contd__load(&p->gone)) {
		if (contd_bell_open(ring.job, (uint32_t)rank, &bell) == 0) {
			bool new = !p->bell;

			/* Release: pairs with the acquires of who rings. The bell of a process that has ended is not closed:
			 * another thread may be about to ring it. */
			contd__store_release(&p->bell, bell);
			contd__store(&p->gone, 0);
			p->wait = 0;
			if (new) {
				ring.known[ring.known_count] = p;
				contd__store_release(&ring.known_count, ring.known_count + 1);
			}
		} else {
			p->wait = p->wait * 2 < WAIT_FIRST_TICKS ? WAIT_FIRST_TICKS
				  : p->wait * 2 > WAIT_MOST_TICKS ? WAIT_MOST_TICKS
								  : p->wait * 2;
			contd__store(&p->again, now + p->wait);
		}
	}
	pthread_mutex_unlock(&ring.lock);
}

static int ring_place(struct place *p)
{
	struct contd_bell *bell = contd__load_acquire(&p->bell);
	int rc;

	if (!bell || contd__load(&p->gone))
		return 0;
	rc = contd_bell_ring(bell);
	if (rc == -ESRCH)
		contd__store(&p->gone, 1);
	return rc > 0;
}

static int ring_world(int rank)
{
	struct place *p;

	if (rank < 0 || rank >= ring.count || rank == ring.self)
		return 0;
	p = &ring.place[rank];
	if ((!contd__load_acquire(&p->bell) || contd__load(&p->gone)) && contd__ticks() >= contd__load(&p->again))
		look_for(p, rank);
	return ring_place(p);
}

int contd__ring_rank(int rank, MPI_Comm comm)
{
	struct members *m;

	if (rank < 0 || !ready())
		return 0; /* MPI_PROC_NULL */
	if (comm == MPI_COMM_WORLD)
		return ring_world(rank);
	m = members_of(comm);
	return m && rank < m->count ? ring_world(m->rank[rank]) : 0;
}

int contd__ring_known(void)
{
	int rung = 0;
	uint32_t n;

	if (!ready())
		return 0;
	n = contd__load_acquire(&ring.known_count);
	for (uint32_t i = 0; i < n; i++)
		rung += ring_place(ring.known[i]);
	return rung;
}

int contd__ring_all(MPI_Comm comm)
{
	struct members *m;
	int rung = 0, some;

	if (comm == MPI_COMM_NULL || !ready() || !(m = members_of(comm)))
		return 0;
	/* A few of the members at a time where there are many; those who were found are all rung. */
	some = m->count < LOOKED_FOR_AT_ONCE ? m->count : LOOKED_FOR_AT_ONCE;
	for (int i = 0, at = contd__load(&m->first); i < some; i++, at++)
		rung += ring_world(m->rank[at % m->count]);
	if (some < m->count) {
		contd__store(&m->first, (contd__load(&m->first) + some) % m->count);
		rung += contd__ring_known();
	}
	return rung;
}
