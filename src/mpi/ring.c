/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers by their rank among all processes of the job. A peer is looked for when something is first sent to it. If no
 * process listens there (no contd there, not yet, or another host), it is looked for again later, after twice the time,
 * up to a second.
 * Which ranks a communicator has is kept with it, as an attribute; each thread remembers the last one that it has used.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/say.h"
#include "base/warn.h"
#include "base/testpoint.h"
#include "mpi/ring.h"
#include "signal/bell.h"
#include "signal/peers.h"

#define WAIT_FIRST_NS 1000000
#define WAIT_MOST_NS 1000000000
#define LOOKED_FOR_AT_ONCE 64 /* peers that one collective call looks for */

struct contd__ring contd__ring;
bool (*contd__ring_group)(MPI_Group *group);
#define R contd__ring

static struct {
	pthread_mutex_t look; /* looking for peers; MPI is not called under it */
	uint32_t busy;        /* a thread starts this, or makes a communicator's members */
	int keyval;
	char job[CONTD_JOB_TEXT];
	uint32_t generation; /* of communicators: goes up when one with members goes */
} own = {.look = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
	MPI_Comm comm;
	uint32_t generation;
	struct contd__members *members; /* NULL: nothing remembered */
} last __attribute__((tls_model("initial-exec")));

/* ------------------------------------------------------------------------------------------------------ the job --- */

/* The variables that a process was started with, proc(5). Returns the length, 0 where they can't be read. */
static size_t read_environment(int pid, char *text, size_t room)
{
	size_t length = 0;
	char path[48];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && length < room - 1 && (n = read(fd, text + length, room - 1 - length)) > 0)
		length += (size_t)n;
	if (fd >= 0)
		close(fd);
	text[length] = 0;
	return length;
}

/* Was the process started with this variable, so set? */
static bool has_variable(int pid, const char *name, const char *value)
{
	static const size_t room = 1 << 17;
	char *text = malloc(room);
	size_t length = text ? read_environment(pid, text, room) : 0, prefix = strlen(name);
	bool has = false;

	for (size_t at = 0; at < length && !has; at += strlen(text + at) + 1)
		has = strncmp(text + at, name, prefix) == 0 && text[at + prefix] == '=' &&
		      strcmp(text + at + prefix + 1, value) == 0;
	free(text);
	return has;
}

/*
 * The process that has started the ranks of this host: the nearest ancestor that has not been told this rank's number.
 * Processes in between have been told (timeout(1), a script, a debugger).
 */
static int starter(void)
{
	static const char *const names[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_ID", "SLURM_PROCID"};
	const char *rank = NULL;
	int pid = getppid();
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !rank; i++)
		rank = getenv(names[i]);
	while (rank && pid > 1 && has_variable(pid, names[i - 1], rank))
		pid = (int)contd__process_field(pid, PROCESS_PARENT);
	return pid;
}

void contd__mpi_job(char job[CONTD_JOB_TEXT])
{
	/* Names from launchers: Open MPI and PRRTE, Slurm, PALS, Flux; and from the user if none tells. */
	static const char *const names[][2] = {{"CONTD_JOB", NULL},
					       {"PMIX_NAMESPACE", NULL},
					       {"SLURM_JOB_ID", "SLURM_STEP_ID"},
					       {"PALS_APID", NULL},
					       {"FLUX_JOB_ID", NULL}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *first = getenv(names[i][0]), *second = names[i][1] ? getenv(names[i][1]) : "";

		if (!first || !*first || !second)
			continue;
		if (snprintf(job, CONTD_JOB_TEXT, "%s%s%s", first, *second ? "." : "", second) < CONTD_JOB_TEXT)
			return;
		if (i == 0)
			contd__warn_here(
				"CONTD_JOB has more than %d characters, and is left out of account: shorten it",
				CONTD_JOB_TEXT - 1);
	}
	snprintf(job, CONTD_JOB_TEXT, "by.%d.%llu", starter(),
		 (unsigned long long)contd__process_field(starter(), PROCESS_START));
}

/* ------------------------------------------------------------------------------------------------ communicators --- */

void contd__members_unref(struct contd__members *m)
{
	if (contd__sub(&m->references, 1) == 1)
		free(m);
}

static int members_free(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)extra;
	/* A thread that uses another communicator meanwhile has its members, not these. It only has to look them up
	 * again. */
	contd__add(&own.generation, 1);
	contd__members_unref(value);
	return MPI_SUCCESS;
}

static bool group_of_all(MPI_Group *group)
{
	return contd__ring_group ? contd__ring_group(group) : PMPI_Comm_group(MPI_COMM_WORLD, group) == MPI_SUCCESS;
}

static bool start(void)
{
	MPI_Group all;

	if (!group_of_all(&all))
		return false;
	PMPI_Group_size(all, &R.count);
	PMPI_Group_rank(all, &R.self);
	PMPI_Group_free(&all);
	contd__say_rank(R.self); /* the doorbell library knows it from here alone */
	contd__mpi_job(own.job);
	if (!R.place)
		R.place = calloc((size_t)R.count, sizeof(*R.place));
	if (!R.known)
		R.known = calloc((size_t)R.count, sizeof(*R.known));
	return R.place && R.known &&
	       PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, members_free, &own.keyval, NULL) == MPI_SUCCESS;
}

void contd__ring_stop(void)
{
	/* Handles of communicators may be given again. */
	contd__add(&own.generation, 1);
	if (contd__load_acquire(&R.state) == 1)
		PMPI_Comm_free_keyval(&own.keyval);
	contd__store_release(&R.state, 0);
}

bool contd__ring_start(void)
{
	/* Another thread is at it: not this time. */
	if (contd__load_acquire(&R.state) || contd__xchg(&own.busy, 1))
		return contd__load_acquire(&R.state) == 1;
	if (!R.state)
		contd__store_release(&R.state, start() ? 1u : 2u);
	contd__store_release(&own.busy, 0);
	return R.state == 1;
}

struct contd__members *contd__members_make(MPI_Group group)
{
	struct contd__members *m;
	MPI_Group world;
	int n, *from;

	PMPI_Group_size(group, &n);
	m = malloc(sizeof(*m) + (size_t)n * sizeof(m->rank[0]));
	from = malloc((size_t)n * sizeof(*from) + 1);
	if (m && from) {
		for (int i = 0; i < n; i++)
			from[i] = m->rank[i] = i;
		m->references = 1;
		m->count = n;
		m->first = 0;
		if (group_of_all(&world)) {
			/* MPI_COMM_WORLD's own needs none; of another Open MPI 4.1 compares each with each. */
			if (group != world)
				PMPI_Group_translate_ranks(group, n, from, world, m->rank);
			PMPI_Group_free(&world);
		}
	} else {
		free(m);
		m = NULL;
	}
	free(from);
	return m;
}

static struct contd__members *members_of(MPI_Comm comm)
{
	struct contd__members *m = NULL;
	MPI_Group group;
	int inter = 0, found = 0;
	void *value;

	if (PMPI_Comm_get_attr(comm, own.keyval, &value, &found) == MPI_SUCCESS && found)
		return value;
	/* With several threads a communicator's first use may be two at a time. */
	if (contd__xchg(&own.busy, 1))
		return NULL;
	if (PMPI_Comm_get_attr(comm, own.keyval, &value, &found) == MPI_SUCCESS && found) {
		m = value;
	} else {
		PMPI_Comm_test_inter(comm, &inter);
		if ((inter ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) == MPI_SUCCESS) {
			m = contd__members_make(group);
			PMPI_Group_free(&group);
		}
		if (m && PMPI_Comm_set_attr(comm, own.keyval, m)) {
			free(m);
			m = NULL;
		}
	}
	contd__store_release(&own.busy, 0);
	return m;
}

struct contd__members *contd__ring_comm(MPI_Comm comm)
{
	uint32_t generation = contd__load(&own.generation);

	if (last.members && last.comm == comm && last.generation == generation)
		return last.members;
	last.members = NULL;
	if (comm == MPI_COMM_NULL || !contd__ring_ready())
		return NULL;
	last.members = members_of(comm);
	last.comm = comm;
	last.generation = generation;
	return last.members;
}

/* -------------------------------------------------------------------------------------------------------- peers --- */

/* Coarse, and so cheap: a millisecond or a few. */
static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void look_locked(struct contd__place *p, int world, int64_t now)
{
	struct contd_bell *bell = NULL;

	if (contd_bell_open(own.job, (uint32_t)world, &bell)) {
		p->wait = p->wait * 2 < WAIT_FIRST_NS  ? WAIT_FIRST_NS
			  : p->wait * 2 > WAIT_MOST_NS ? WAIT_MOST_NS
						       : p->wait * 2;
		contd__store(&p->again, now + p->wait);
		return;
	}
	if (!p->bell) {
		R.known[R.known_count] = p;
		/* Release: pairs with the acquires of threads that ring. The bell of a process that has ended is not
		 * closed: another thread may be about to ring it. */
		contd__store_release(&p->bell, bell);
		contd__store_release(&R.known_count, R.known_count + 1);
	} else {
		contd__store_release(&p->bell, bell);
	}
	p->wait = 0;
}

void contd__ring_look(int world)
{
	struct contd__place *p = &R.place[world];
	int64_t again = contd__load(&p->again), now = again ? now_ns() : 0;

	if (now < again)
		return;
	/* A peer that is being looked for by another thread is waited for: what was just sent is to be rung for. */
	pthread_mutex_lock(&own.look);
	if ((!p->bell || contd__ring_gone(p)) && contd__load(&p->again) <= now)
		look_locked(p, world, now ? now : now_ns());
	pthread_mutex_unlock(&own.look);
}

int contd__ring_armed(struct contd__place *p)
{
	struct contd_bell *bell = contd__load_acquire(&p->bell);
	int rc;

	if (contd__load(&p->gone) == bell)
		return 0;
	rc = contd__bell_ring(bell);
	if (rc == -ESRCH)
		contd__store(&p->gone, bell);
	return rc > 0;
}

bool contd__ring_ended(struct contd__place *p)
{
	const struct contd_bell *bell = contd__load_acquire(&p->bell);

	if (contd__load(&p->gone) != bell && !contd__bell_there(bell)) {
		CONTD_TESTPOINT("ring_not_there");
		contd__store(&p->gone, bell); /* another thread may have found it again meanwhile: by another bell */
	}
	return contd__ring_gone(p);
}

int contd__ring_rank(int rank, MPI_Comm comm)
{
	struct contd__place *p = contd__ring_find(rank, comm);

	return p ? contd__ring_place(p) : 0;
}

int contd__ring_known(void)
{
	uint32_t n;
	int rung = 0;

	if (contd__load_acquire(&R.state) != 1)
		return 0;
	n = contd__load_acquire(&R.known_count);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* store, then load, as in contd_bell_ring() */
	for (uint32_t i = 0; i < n; i++)
		if (contd__load(contd__load_acquire(&R.known[i]->bell)->armed))
			rung += contd__ring_armed(R.known[i]);
	return rung;
}

int contd__ring_members(struct contd__members *m)
{
	int some = m->count < LOOKED_FOR_AT_ONCE ? m->count : LOOKED_FOR_AT_ONCE, rung = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* store, then load, as in contd_bell_ring() */
	/* A few of the members at a time where there are many; those who were found are all rung. */
	for (int i = 0, at = contd__load(&m->first); i < some; i++, at++) {
		struct contd__place *p = contd__ring_world(m->rank[at % m->count]);

		if (p && contd__load(contd__load_acquire(&p->bell)->armed))
			rung += contd__ring_armed(p);
	}
	if (some < m->count) {
		contd__store(&m->first, (contd__load(&m->first) + some) % m->count);
		rung += contd__ring_known();
	}
	return rung;
}

int contd__ring_all(MPI_Comm comm)
{
	struct contd__members *m = contd__ring_comm(comm);

	/* The members cannot be found just now. The peers that were found are more than enough. */
	return m ? contd__ring_members(m) : comm == MPI_COMM_NULL ? 0 : contd__ring_known();
}
