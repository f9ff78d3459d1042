/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Finalize: what is outstanding is driven for as long as MPI works on it; what remains is named, and never runs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/rest.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/never.h"
#include "dispatch/thread.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/cr.h"
#include "mpi/finalize.h"
#include "mpi/grequest.h"
#include "mpi/intercept.h"
#include "mpi/job.h"
#include "mpi/op_set.h"
#include "mpi/process_model.h"
#include "mpi/state.h"
#include "mpi/templates.h"
#include "rcu/table.h"

#define SECOND 1000000000ull
#define QUIET_TOGETHER (SECOND / 4) /* every process is in MPI_Finalize, and so long nothing has completed here */
#define QUIET_ALONE SECOND          /* the same, if the others are not waited for */
#define LOOK_MOST (SECOND / 1000)   /* a look counts for at most so much of that time */
#define HINT (10 * SECOND)          /* after that it is said what is waited for */
#define NAP 50000                   /* nanoseconds between looks, with nothing outstanding */

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------------ driving --- */

/*
 * MPI works on pending operations until every process has called MPI_Finalize, and so does contd: nonblocking
 * reductions tell. Every process takes part, even if it has never used contd, because MPI_Finalize would wait as long.
 * A reduction that one process does not know of never ends. So there are some only if contd is known to be part of
 * every process. CONTD_FINALIZE says so (together), or says that it is not (alone).
 *
 * The first one ends when all have called MPI_Finalize. If nothing is outstanding by then, that is all. Otherwise each
 * process begins the next one when nothing has completed for some time, and contributes whether something has since the
 * one before. Meanwhile all of them make progress, because one process's operation needs another's progress. That may
 * be late, because a callback takes long, or other programs have the processor. The processes stop after two reductions
 * in which no process was active: between them there was an instant at which no process had anything under way.
 */
static bool wants_others(int size)
{
	const char *wanted = getenv("CONTD_FINALIZE");

	if (wanted && strcmp(wanted, "together") == 0)
		return true;
	if (wanted && strcmp(wanted, "alone") == 0)
		return false;
	if (wanted && *wanted)
		contd__mpi_warn_here("CONTD_FINALIZE=%s: must be together or alone; contd finds out which is possible",
				     wanted);
	return contd__mpi_everywhere(size);
}

enum { OUTSTANDING, ACTIVE, VALUES };

/* The others, if they are waited for. */
struct others {
	MPI_Request request; /* the reduction under way; or MPI_REQUEST_NULL */
	int mine[VALUES], sum[VALUES];
	unsigned rounds, still; /* reductions begun; the last ones in which no process was active */
	bool asked, over;
};

/* If it fails, the others are not waited for, and that is all. No continuation runs meanwhile, because its errors would
 * be told to no handler of the program. */
static void round_begin(struct others *o, bool outstanding, bool active)
{
	struct contd__call call;
	MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

	o->mine[OUTSTANDING] = outstanding;
	o->mine[ACTIVE] = active;
	o->rounds++;
	contd__call_enter(&call, true);
	PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
	PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	o->over = PMPI_Iallreduce(o->mine, o->sum, VALUES, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &o->request) != 0;
	PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	PMPI_Errhandler_free(&handler);
	contd__call_leave(&call);
	if (o->over)
		o->request = MPI_REQUEST_NULL;
}

static void others_begin(struct others *o, bool outstanding)
{
	int size = 1;

	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	o->asked = size > 1 && wants_others(size);
	o->over = !o->asked;
	if (o->asked)
		round_begin(o, outstanding, true);
}

/* Has a reduction ended? This may run continuations: their errors go to the program's own handlers. */
static bool round_ended(struct others *o)
{
	int flag = 0;

	if (o->request == MPI_REQUEST_NULL)
		return false;
	if (contd__next_pmpi.Test(&o->request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
		o->request = MPI_REQUEST_NULL;
		o->over = true;
		return true;
	}
	if (!flag)
		return false;
	o->still = o->sum[ACTIVE] ? 0 : o->still + 1;
	o->over = o->sum[OUTSTANDING] == 0 || o->still == 2;
	return true;
}

/* May something still run, for MPI's sake? */
static bool may_complete(void)
{
	return contd__crs_outstanding() && (contd__mpi->pending() || contd__general_any() ||
					    contd__load_seq(&contd__sets_owing) || contd__waits_sig(CLASSES_ALL));
}

/* Sets that carry a continuation, which waits for its operation: of all CRs. */
static struct contd__set *carrying(struct contd__set *set)
{
	return contd__mpi->carrying ? contd__mpi->carrying(set) : NULL;
}

/*
 * Counts the group's continuations with slots that wait for an event, and those that are ready and wait for a scan.
 * All others that are outstanding and have no set that carries them were taken by another thread or an executor. They
 * run, or will run soon.
 */
static uint32_t waiting(struct contd_group *g)
{
	uint32_t used = contd__load_acquire(&g->table.used), n = 0;

	for (uint32_t i = 0; i < used; i++) {
		uint32_t index = contd__table_index(i);
		enum contd__slot_state state = SLOT_STATE(contd__load_seq(&contd__table_slot(&g->table, index)->state));

		n += state == SLOT_PENDING || state == SLOT_CANCELLED ||
		     (state == SLOT_READY && contd__table_marked(&g->table, index));
	}
	return n;
}

uint32_t contd__tasks_queued, contd__tasks_running;
__thread uint32_t contd__tasks_here __attribute__((tls_model("initial-exec")));

static bool tasks_run_elsewhere(void)
{
	return contd__load_seq(&contd__tasks_running) > contd__tasks_here;
}

static bool some_taken(void)
{
	uint32_t taken = 0, carried = 0;
	struct contd__cr *cr;

	if (contd__load_seq(&contd__tasks_queued) != 0 || tasks_run_elsewhere())
		return true;
	pthread_mutex_lock(&contd__crs_lock);
	cds_list_for_each_entry (cr, &contd__crs, node) {
		uint32_t outstanding = contd__group_outstanding_sig(cr->group), n;

		/* The lock keeps the group, which may be only waiting to be freed (contd__cr_fini). */
		n = outstanding ? waiting(cr->group) : 0;
		taken += outstanding > n ? outstanding - n : 0;
	}
	pthread_mutex_unlock(&contd__crs_lock);
	for (struct contd__set *set = carrying(NULL); set; set = carrying(set))
		carried++;
	return taken > carried;
}

/* Returns whether anything has happened. */
static bool drive(void)
{
	uint32_t before = contd__mpi->pending();
	unsigned ran = contd__run_ready();

	contd__mpi->progress(PROGRESS_WAITING);
	contd__instances_look();
	ran += contd__run_ready();
	return ran || contd__mpi->pending() != before;
}

/* May this thread run continuations? Not if one of them has called MPI_Finalize. */
static bool may_run(void)
{
	return contd__load_seq(&contd__mpi_open) && !contd__in_continuation_sig();
}

/* Progress that another process may need. */
static bool drive_for_others(void)
{
	int flag;

	if (may_run())
		return drive();
	contd__next_pmpi.Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE); /* of MPI_Finalize */
	return false;
}

static void nap(void)
{
	struct timespec ts = {.tv_nsec = NAP};

	nanosleep(&ts, NULL);
}

static void hint(bool running)
{
	if (running)
		contd__mpi_warn("%s: waits for the end of a callback that another thread runs", contd__model.end);
	else
		contd__mpi_warn(
			"MPI_Finalize: %u continuations are outstanding, and wait for the other processes to call "
			"MPI_Finalize. If some never do, set CONTD_FINALIZE=alone",
			contd__crs_outstanding());
}

/*
 * The time since something has happened, as long as this thread has looked: on a machine that has other things to do,
 * seconds may pass with two or three looks.
 */
struct quiet {
	uint64_t last, looked;
};

static void quiet_begin(struct quiet *q)
{
	*q = (struct quiet){.last = now()};
}

static bool quiet_for(struct quiet *q, uint64_t ns)
{
	uint64_t t = now(), passed = t - q->last;

	q->last = t;
	q->looked += passed < LOOK_MOST ? passed : LOOK_MOST;
	return q->looked > ns;
}

static void drive_with(struct others *o)
{
	uint64_t enough = o->asked ? QUIET_TOGETHER : QUIET_ALONE, begun = now();
	bool active = false, told = false, quiet;
	struct quiet since;

	quiet_begin(&since);
	for (;;) {
		bool busy = may_run() && may_complete(),
		     elsewhere = contd__threads_other_in_callback() || tasks_run_elsewhere();
		bool taken = may_run() && (elsewhere || !busy) && some_taken();
		bool running = taken && elsewhere;

		if (round_ended(o) && !(o->over && o->still))
			quiet_begin(&since);
		if (busy ? drive() : o->rounds > 1 && !o->over && drive_for_others()) {
			quiet_begin(&since);
			active = true;
		} else if (!busy && (o->rounds <= 1 || o->over)) {
			nap();
		}
		/* The callback may call MPI, so it must end first. A continuation that was only handed to an executor
		 * may never begin, and is not waited for. */
		if (running) {
			quiet_begin(&since);
			active = true;
		}
		quiet = quiet_for(&since, enough);
		if (o->over && (!(busy || taken) || quiet))
			return;
		if (!o->over && quiet && o->request == MPI_REQUEST_NULL) {
			round_begin(o, busy || taken, active);
			active = false;
		}
		if ((running || (o->rounds == 1 && !o->over && busy)) && !told && now() - begun > HINT) {
			told = true;
			hint(running);
		}
	}
}

static bool may_drive(void)
{
	return contd__model_is_open() && !contd__load(&contd__live.forked);
}

void contd__mpi_drive_to_end(bool together)
{
	struct others others = {.request = MPI_REQUEST_NULL, .over = true};
	static bool driven;

	if ((driven && !contd__model.sessions) || !may_drive())
		return;
	contd__cr_uncounted_ends();
	contd__carried_release_sig(); /* in a callback: others may wait for those that were taken with it */
	driven = driven || !contd__model.sessions;
	if (together)
		others_begin(&others, may_run() && (may_complete() || some_taken()));
	drive_with(&others);
}

/* --------------------------------------------------------------------------------------------------- the report --- */

#define RUN_BY "of contd_mpi_op_run()"

/* An operation of the set that has not completed; or any, if that is not known. */
static const char *operation(struct contd__set *set)
{
	struct contd__op *op = &set->op[0];

	for (uint32_t i = 0; i < set->count; i++) {
		if (contd__load(&set->op[i].state) != OP_WAITS)
			continue;
		op = &set->op[i];
		break;
	}
	return contd__mpi->op_kind(op);
}

/* The event that a slot which is not ready waits for. `held`: it also waits for the start of its CR. NULL: it waits for
 * nothing else. */
static const char *awaited(struct contd__slot *s, uint64_t w, bool held)
{
	struct contd__set *set = contd__set_of(s);

	if (SLOT_REMAINING(w) <= (uint32_t)held)
		return NULL;
	return contd__never_awaited(s, set && set->count ? operation(set) : "a continuation request");
}

static struct contd__never describe(struct contd__cr *cr, struct contd__slot *s, uint64_t w)
{
	bool held = contd__cr_inactive(cr);
	struct contd__never l = {.cb = s->cb.any, .count = 1};

	if (SLOT_STATE(w) == SLOT_PENDING) {
		l.what = awaited(s, w, held);
		l.why = !held                        ? "did not complete"
			: !contd__load(&cr->started) ? "MPI_Start was never called for its continuation request"
						     : "MPI_Start was not called again for its continuation request";
		if (l.what && held)
			l.why = "did not complete, nor was its continuation request started";
	} else if (SLOT_STATE(w) == SLOT_RUNNING) {
		l.why = "it was handed to an executor, or still runs";
	} else if (cr->group->flags & CONTD_POLL_ONLY) {
		l.why = "it is ready, but its continuation request is poll-only and was not tested";
	} else {
		l.why = "it is ready, and no thread that may run it has looked";
	}
	l.age = l.oldest = held ? -1 : contd__never_age(s, w);
	return l;
}

/* ------------------------------------------------------------------------------------------ what never will run --- */

/* Wait for one that another thread has begun. One that an executor has not begun does nothing (contd__mpi_over). */
static void wait_for_running(struct contd__slot *s, uint32_t generation, uint64_t until)
{
	for (;;) {
		uint64_t w = contd__load_seq(&s->state);

		if (SLOT_GENERATION(w) != generation || SLOT_STATE(w) != SLOT_RUNNING || now() > until)
			return;
		contd__rest();
	}
}

/* Returns how many have run meanwhile. */
static uint32_t slot_end(struct contd__cr *cr, struct contd__slot *s, struct contd__never_report *r, uint64_t until)
{
	uint64_t w = contd__load_seq(&s->state);
	uint32_t generation = SLOT_GENERATION(w);
	struct contd__never lost;

	if (SLOT_STATE(w) != SLOT_PENDING && SLOT_STATE(w) != SLOT_READY && SLOT_STATE(w) != SLOT_RUNNING)
		return 0;
	if (SLOT_STATE(w) != SLOT_RUNNING) {
		lost = describe(cr, s, w);
		if (contd_cancel((struct contd_handle){s, generation}) == 0) {
			contd__never_add(r, &lost);
			return 0;
		}
	}
	if (contd__frames_have_sig(s))
		return 0;
	wait_for_running(s, generation, until);
	w = contd__load_seq(&s->state);
	if (SLOT_GENERATION(w) != generation || SLOT_STATE(w) != SLOT_RUNNING)
		return 1;
	lost = describe(cr, s, w);
	contd__never_add(r, &lost);
	return 0;
}

/*
 * contd__mpi_open is 0: nothing is registered any more, and continuations that are claimed from now on do not run
 * (contd__mpi_over). The others are cancelled, because contd may go on without MPI if the program has called
 * contd_init.
 */
void contd__mpi_cancel_rest(void)
{
	uint64_t until = now() + SECOND;
	struct contd__never_report report = {0};
	uint32_t outstanding = 0;
	struct contd__cr *cr;

	contd__carried_retry_sig(); /* what is complete has slots from here on */
	/* These stay outstanding, as cancelled slots do whose operations never complete: contd_fini() counts them. */
	for (struct contd__set *set = carrying(NULL); set; set = carrying(set)) {
		double age = contd__never_since(contd__load(&set->own.as.link));

		contd__never_add(&report, &(struct contd__never){.cb = set->own.as.cb.any,
								 .what = operation(set),
								 .why = "did not complete",
								 .age = age,
								 .oldest = age,
								 .count = 1});
		CONTD_COUNT(cancelled, 1);
	}
	pthread_mutex_lock(&contd__crs_lock);
	cds_list_for_each_entry (cr, &contd__crs, node) {
		struct contd_group *g = cr->group;
		uint32_t used, n, here = contd__frames_of_sig(g), ran = here;

		if (!contd__group_try_pin_sig(g))
			continue;
		n = contd__group_outstanding_sig(g);
		used = n > here ? contd__load_acquire(&g->table.used) : 0;
		for (uint32_t i = 0; i < used; i++)
			ran += slot_end(cr, contd__table_slot(&g->table, contd__table_index(i)), &report, until);
		outstanding += n > ran ? n - ran : 0;
		contd__mpi->cr_end(cr);
		contd__group_unpin_sig(g);
	}
	pthread_mutex_unlock(&contd__crs_lock);
	/* Those that have neither slot nor set: operations of contd_mpi_op_run() carry them. */
	if (outstanding > report.total)
		contd__never_add(&report, &(struct contd__never){.no_callback = RUN_BY,
								 .age = -1,
								 .oldest = -1,
								 .what = "a point-to-point operation",
								 .why = "did not complete",
								 .count = outstanding - report.total});
	if (contd__load_seq(&contd__tasks_queued))
		contd__never_add(&report, &(struct contd__never){.no_callback = RUN_BY,
								 .age = -1,
								 .oldest = -1,
								 .why = "an executor has not run its task",
								 .count = contd__load_seq(&contd__tasks_queued)});
	if (report.total)
		contd__model_say_rank();
	contd__never_say(&report, contd__model.end);
}
