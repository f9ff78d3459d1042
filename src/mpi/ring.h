/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ringing for the processes of this MPI job on this host (contd_bell_ring), for contd_mpi_ring() and for the
 * doorbell library; each has a copy of this code. On MPI's public functions alone, and without contd being initialized.
 *
 *     operation             thread  handler  progress
 *     contd__ring_find        yes     no     wait-free for a peer that was found, or not found a short time ago;
 *                                    otherwise looks for it
 *     contd__ring_place       yes     yes    wait-free
 *     contd__ring_rank        yes     no     as contd__ring_find
 *     contd__ring_all         yes     no     the same, for each member
 *     contd__ring_ended       yes     no     wait-free, a system call
 *     contd__ring_known       yes     yes    wait-free in the number of peers found
 *
 * No lock is held while MPI is called. Nor is one waited for while the caller may hold a lock of MPI's: a thread that
 * cannot have it at once does without it (an attribute callback may send).
 */
#ifndef CONTD_MPI_RING_H
#define CONTD_MPI_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include <contd/contd.h>

#include "base/atomic.h"

#define CONTD_JOB_TEXT 65 /* of contd_bell_listen(), its end included */

/* A rank of MPI_COMM_WORLD. */
struct contd__place {
	struct contd_bell *bell; /* NULL: not found; once found it stays: other threads may be about to ring it */
	int64_t again;           /* when to look for it again, ns; 0: at once */
	int64_t wait;
	/* The process has ended, or contd has in it, if this is the bell. An older one: it has begun again. */
	const struct contd_bell *gone;
	int32_t owed; /* the doorbell library's (doorbell/transfers.h) */
};

/* Was it found, and has it ended since, as far as is known? */
static inline bool contd__ring_gone(const struct contd__place *p)
{
	const struct contd_bell *bell = contd__load(&p->bell);

	return bell && contd__load(&p->gone) == bell;
}

/* The world ranks of a communicator's or window's members; of an intercommunicator the remote ones. */
struct contd__members {
	uint32_t references;
	int count;
	int first; /* where a search among them begins next time */
	int rank[];
};

struct contd__ring {
	uint32_t state; /* 0: not started; 1: ready; 2: it can't be */
	int count, self;
	struct contd__place *place;
	uint32_t known_count;
	struct contd__place **known; /* places with a bell, in the order in which they were found */
};

extern struct contd__ring contd__ring;

/* The name of this job on this host: the launcher's name for it if it gives one, otherwise the process that started the
 * ranks. */
void contd__mpi_job(char job[CONTD_JOB_TEXT]);

/* MPI is initialized. False: ringing is not possible. */
bool contd__ring_start(void);

/* MPI_Finalize begins: attributes of communicators go. What is known of peers stays, for a program that goes on with
 * sessions. */
void contd__ring_stop(void);

/* Gives the processes of the job, in the order of their ranks, where there is no MPI_COMM_WORLD. NULL: there is. */
extern bool (*contd__ring_group)(MPI_Group *group);

/* Before any thread rings. */
static inline void contd__ring_group_by(bool (*give)(MPI_Group *group))
{
	contd__ring_group = give;
}

static inline bool contd__ring_ready(void)
{
	/* Acquire: pairs with the release in contd__ring_start. */
	uint32_t state = contd__load_acquire(&contd__ring.state);

	return state ? state == 1 : contd__ring_start();
}

/* The members of the communicator; of the group of windows. NULL: they cannot be found now. They stay while the
 * communicator does, or a reference. */
struct contd__members *contd__ring_comm(MPI_Comm comm);
struct contd__members *contd__members_make(MPI_Group group);
void contd__members_unref(struct contd__members *m);

/* Look for a peer that has not been found. */
void contd__ring_look(int world);

/* The rank's place if it is another process that was found, else NULL. */
static inline struct contd__place *contd__ring_world(int world)
{
	struct contd__place *p;

	if (world < 0 || world >= contd__ring.count || world == contd__ring.self)
		return NULL;
	p = &contd__ring.place[world];
	/* Acquire: pairs with the release in contd__ring_look. */
	if (__builtin_expect(!contd__load_acquire(&p->bell) || contd__ring_gone(p), 0)) {
		contd__ring_look(world);
		if (!contd__load_acquire(&p->bell) || contd__ring_gone(p))
			return NULL;
	}
	return p;
}

static inline struct contd__place *contd__ring_find(int rank, MPI_Comm comm)
{
	struct contd__members *m;

	if (rank < 0 || !contd__ring_ready()) /* MPI_PROC_NULL, MPI_ANY_SOURCE, MPI_ROOT */
		return NULL;
	if (comm == MPI_COMM_WORLD)
		return contd__ring_world(rank);
	m = contd__ring_comm(comm);
	return m && rank < m->count ? contd__ring_world(m->rank[rank]) : NULL;
}

/* 1 if it was rung. The caller has made visible whatever the peer is to see. */
int contd__ring_armed(struct contd__place *p);

static inline int contd__ring_place(struct contd__place *p)
{
	/* Store, then load, as in contd_bell_ring(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return contd__load(contd__load(&p->bell)->armed) ? contd__ring_armed(p) : 0;
}

/* Has the peer, which was found once, ended? A ring only tells of it if the peer's bell was armed. */
bool contd__ring_ended(struct contd__place *p);

/* Ring the process of that rank of the communicator (the remote group of an intercommunicator). 1 if it was rung, else
 * 0. */
int contd__ring_rank(int rank, MPI_Comm comm);

/* Ring every member that waits. Returns how many. */
int contd__ring_all(MPI_Comm comm);
int contd__ring_members(struct contd__members *m);

/* Ring every peer that has been found so far and waits, whatever the communicator. Nanoseconds a peer. */
int contd__ring_known(void);

#endif
