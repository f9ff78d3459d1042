/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion calls (Test*, Wait*) as both backends need them: with CRs among the requests, and running
 * continuations. The native backend puts them in place of Open MPI's own functions, below the PMPI layer; the portable
 * one calls them from its interception.
 */
#ifndef CONTD_MPI_CALLS_H
#define CONTD_MPI_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

#include "dispatch/group.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

/* Open MPI's table of request functions has this form (ompi/request/request.h). */
struct contd__request_functions {
	int (*test)(MPI_Request *request, int *completed, MPI_Status *status);
	int (*test_any)(size_t count, MPI_Request *requests, int *index, int *completed, MPI_Status *status);
	int (*test_all)(size_t count, MPI_Request *requests, int *completed, MPI_Status *statuses);
	int (*test_some)(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses);
	int (*wait)(MPI_Request *request, MPI_Status *status);
	int (*wait_any)(size_t count, MPI_Request *requests, int *index, MPI_Status *status);
	int (*wait_all)(size_t count, MPI_Request *requests, MPI_Status *statuses);
	int (*wait_some)(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses);
};

/* The functions below are about these; set by the backend's start. */
extern struct contd__request_functions contd__original;

/* The backend begins: these are MPI's own. */
static inline void contd__original_are(const struct contd__request_functions *functions)
{
	contd__original = *functions;
}

/* Each as its MPI namesake, errors as the backend's cr_raise gives them. */
extern const struct contd__request_functions contd__calls;

/* This thread tells an error handler of an operation that a continuation of the group waits for. For waits that is as
 * if it ran that continuation (contd__inside_sig). */
static inline void contd__telling_begin(struct contd__at_work *t, const struct contd_group *group)
{
	contd__at_work_begin(t, NULL, group, false);
}

static inline void contd__telling_end(const struct contd__at_work *t)
{
	contd__at_work_end(t);
}

/*
 * May continuations run in a call that is about other things? Not inside another continuation, nor in a push_fn
 * (mpi/templates.h): there only tests and waits of CRs run some.
 */
bool contd__may_run(void);

/*
 * A call that asks about these requests counts as a test of those CRs among them that have a max_poll: each is charged
 * for what runs until the end, which is called where this was successful. MPI error class.
 */
struct contd__asking {
	struct contd__testing *outer;
	void *memory;
	struct contd__testing few[4];
};
int contd__asking_begin(struct contd__asking *asking, size_t count, const MPI_Request *requests);
void contd__asking_end(struct contd__asking *asking);

/* Run what is ready, of all CRs that are not poll-only, on this thread. Returns how many ran. */
unsigned contd__run_ready(void);

#endif
