/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuations run on threads that call MPI to complete something:
 *
 *     Test*           at the exit of the call, outside progress
 *     Wait*           while it waits (native: in a progress callback), and at its exit
 *
 * Here is also how CRs are tested and waited for, alone and among other requests. In arrays the CRs are looked at here,
 * and MPI gets the array without them, or with MPI_REQUEST_NULL in their places.
 */
#include <sched.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/group.h"
#include "dispatch/run.h"
#include "dispatch/scan.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wait.h"
#include "dispatch/word.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/op_set.h"
#include "mpi/settings.h"
#include "mpi/source.h"
#include "mpi/state.h"
#include "mpi/templates.h"

#define ROUNDS 16u /* of continuations that made others ready, until a waiting call makes progress again */

struct contd__request_functions contd__original;

/* ------------------------------------------------------------------------------------------------------ running --- */

bool contd__may_run(void)
{
	/* While continuations are being taken, none may run: they run afterwards, and a callback that ran before could
	 * wait for one of them. */
	return contd__on_thread_sig() && !contd__in_continuation_sig() && !contd__takes() && !contd__pushing;
}

unsigned contd__run_ready(void)
{
	unsigned ran = 0;

	if (contd__put_off_any())
		contd__put_off_drain();
	if (contd__waits_sig(CLASSES_ALL)) {
		struct contd__budget budget = {.count = UINT32_MAX};
		struct contd__call *call;

		contd__thread_ensure();
		call = contd__call_outside();
		ran = contd__scan_sig(CLASSES_ALL, &budget);
		contd__call_back(call);
		contd__pickup();
	}
	return ran;
}

/* In functions that the program calls it may call MPI: templates are pushed there even on threads where their source
 * (template.c) is silent. */
static void look_beside(void)
{
	contd__look_beside(&contd__mpi_source);
	if (__builtin_expect(contd__load(&contd__instances_pushed) != 0, 0) && !contd__mpi_thread_may_sig())
		contd__instances_look();
}

static void run_if_may(void)
{
	contd__instances_look();
	if (contd__may_run())
		contd__run_ready();
}

/* Between contd__cr_ask() and contd__cr_asked(). */
static unsigned cr_run(struct contd__cr *cr)
{
	struct contd__budget budget = {.count = UINT32_MAX};
	struct contd_group *g = cr->group;
	struct contd__call *call;
	unsigned ran;

	if (!contd__table_any_sig(&g->table) || !contd__may_scan_sig(g))
		return 0;
	call = contd__call_outside();
	ran = contd__scan_by_handle(g, &budget);
	contd__call_back(call);
	if (contd__load(&contd__tls.flags) & CONTD__TLS_MISSED)
		contd__guard_pickup();
	return ran;
}

/*
 * Run a continuation of the CR that is ready and has no slot, if there is nothing else of that kind. Not inside a
 * continuation that the daemon runs: what that thread may run is asked in the scan.
 */
__attribute__((noinline)) static unsigned cr_run_unmarked(struct contd__cr *cr)
{
	struct contd__unmarked *u = NULL;
	struct contd__call *call;

	if (contd__load(&contd__put_off_carried) && contd__on_thread_sig())
		u = contd__unmarked_take_sig(cr->group);
	if (!u)
		return 0;
	call = contd__call_outside();
	contd__set_run(caa_container_of(u, struct contd__set, own), cr, true);
	contd__call_back(call);
	if (contd__load(&contd__tls.flags) & CONTD__TLS_MISSED)
		contd__guard_pickup();
	return 1;
}

/* Would a look at the other sources, words and groups find anything? Continuations without a bit are not asked for. */
static inline bool nothing_beside(void)
{
	return !contd__marked_sig(CLASSES_ALL) && !contd__load(&contd__words.pending) &&
	       contd__load(&contd__sources.count) == 1 && !contd__put_off_any();
}

static void take_from_mpi(struct contd__taking *t, struct contd__call *call, enum contd__progress how)
{
	struct contd__taking *outer = contd__takes_begin(t);

	contd__call_back(call);
	call->taking = t;
	contd__mpi->progress(how);
	call->taking = NULL;
	contd__takes_end(outer);
	contd__wake_untold_sig();
	contd__call_outside();
}

static void take_more(struct contd__taking *t)
{
	struct contd__call call = {.runs_itself = true};

	t->tested = NULL;
	take_from_mpi(t, &call, PROGRESS);
}

/* Run the CR's continuation that its progress has taken. Meanwhile a callback that waits gives slots to the others that
 * were taken. */
static void taken_run_unmarked(struct contd__taking *t, struct contd__cr *cr)
{
	struct contd__unmarked *u = t->unmarked;

	t->unmarked = NULL;
	contd__runs_begin(t);
	contd__set_run(caa_container_of(u, struct contd__set, own), cr, false);
	contd__runs_end(t);
}

/* MPI's progress in a test or wait of one CR. */
static void cr_progress(struct contd__cr *cr, bool waiting)
{
	struct contd__taking taking;
	struct contd__call *call = contd__call;

	contd__taking_init(&taking, UINT32_MAX);
	taking.tested = cr->group;
	take_from_mpi(&taking, call, waiting ? PROGRESS_WAITING : PROGRESS);
	if (taking.unmarked)
		taken_run_unmarked(&taking, cr);
	contd__taken_run_driving(&taking, take_more);
	contd__call_back(call);
	contd__pickup();
}

/* A completion or signal that came meanwhile counts for this test: it is picked up before the test ends. */
static void testing_end(struct contd__testing *outer)
{
	contd__pickup();
	contd__testing_end(outer);
}

static bool limited(MPI_Request request)
{
	struct contd__cr *cr = request && request != MPI_REQUEST_NULL ? contd__mpi->cr_of(request) : NULL;

	return cr && contd__limited(cr->group);
}

int contd__asking_begin(struct contd__asking *asking, size_t count, const MPI_Request *requests)
{
	struct contd__testing *testing = asking->few;
	size_t n = 0;

	asking->outer = contd__self.testing;
	asking->memory = NULL;
	if (!contd__load(&contd__cr_limited))
		return MPI_SUCCESS;
	for (size_t i = 0; i < count; i++)
		n += limited(requests[i]);
	if (n > sizeof(asking->few) / sizeof(asking->few[0])) {
		testing = asking->memory = contd__zalloc(n * sizeof(*testing));
		if (!testing)
			return MPI_ERR_NO_MEM;
	}
	for (size_t i = 0; i < count && n; i++)
		if (limited(requests[i])) {
			contd__testing_of(testing++, contd__mpi->cr_of(requests[i])->group);
			n--;
		}
	return MPI_SUCCESS;
}

void contd__asking_end(struct contd__asking *asking)
{
	testing_end(asking->outer);
	free(asking->memory);
}

/* -------------------------------------------------------------------------------------------------- one request --- */

/* Calls of this thread that have taken their CRs and are in MPI for the other requests, innermost. */
struct mixed;
static __thread struct mixed *taking __attribute__((tls_model("initial-exec")));
static bool taken_here(const struct contd__cr *cr);

static void status_empty(MPI_Status *status)
{
	int error = status->MPI_ERROR; /* single completion leaves it as it was: MPI 4.1, 3.2.5 */

	*status = contd__status_empty;
	status->MPI_ERROR = error;
}

/* A CR is complete, and has failed; `told`: the error handler of an operation has been called. */
static void set_failed(const char *call, int class, bool told)
{
	contd__fail(
		class,
		told ? "an operation of the continuation request has failed; MPIX_Continue_get_failed() tells of which "
		       "continuation"
		     : "a callback of the continuation request has returned an error; MPIX_Continue_get_failed() tells "
		       "of which continuation");
	contd__fail_in(call, class);
}

/* The caller's result of a request that has failed. */
static int cr_failure(const char *call, struct contd__cr *cr, int class, MPI_Status *status)
{
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = class;
	set_failed(call, class, contd__load(&cr->error_told));
	return contd__mpi->cr_raise(cr, class, contd__load(&cr->error_told));
}

/* The CR is complete, and this call reports it, or there is nothing to report: what the caller gets. */
static inline int cr_result(const char *call, struct contd__cr *cr, bool told, MPI_Status *status)
{
	int class = told ? contd__cr_error(cr) : MPI_SUCCESS;

	if (status != MPI_STATUS_IGNORE)
		status_empty(status);
	return __builtin_expect(class, 0) ? cr_failure(call, cr, class, status) : MPI_SUCCESS;
}

static inline int cr_test_report(struct contd__cr *cr, int *completed, MPI_Status *status)
{
	bool told;

	if (!contd__cr_complete(cr) || !contd__cr_report(cr, &told))
		return MPI_SUCCESS;
	*completed = true;
	return cr_result("MPI_Test", cr, told, status);
}

static int cr_test(struct contd__cr *cr, int *completed, MPI_Status *status)
{
	bool others = contd__mpi->pending() != 0; /* they wait for progress, whatever this CR does */
	struct contd__testing testing;
	struct contd__call call;
	int rc;

	*completed = false;
	contd__low_latency_here(cr->group);
	/* The short way, where there is nothing to be run either. */
	if (contd__cr_complete(cr) && !others && !contd__waits_sig(CLASSES_ALL) && !contd__put_off_any())
		return cr_test_report(cr, completed, status);
	contd__thread_ensure();
	contd__cr_ask(cr);
	contd__call_enter(&call, true);
	contd__testing_of(&testing, cr->group);
	cr_run_unmarked(cr);
	look_beside();
	cr_run(cr);
	contd__run_ready();
	if (!contd__cr_complete(cr) || others) {
		cr_progress(cr, false);
		cr_run_unmarked(cr);
		cr_run(cr);
		contd__run_ready();
	}
	testing_end(testing.outer);
	contd__call_leave(&call);
	rc = cr_test_report(cr, completed, status);
	contd__cr_asked(cr);
	return rc;
}

static bool looks_here(void)
{
	return contd__mpi->looks_here && contd__mpi->looks_here();
}

/*
 * Would waiting for the CR here never end? This thread may be in one of the CR's continuations, or in the error handler
 * of an operation that one of them waits for. Or it has taken the CR, is in MPI for the other requests, and has called
 * a query function or an error handler there. Or MPI has called such a function in a look, and no other thread can
 * look.
 */
static inline bool waits_for_itself(const struct contd__cr *cr)
{
	return (contd__inside_sig(cr->group) && !contd__cr_inactive(cr)) || (taking && taken_here(cr)) ||
	       (looks_here() && !contd__cr_complete(cr));
}

#define OWN \
	"the call would wait for itself: it is made by a continuation of this request, or in a look for it; let that " \
	"return first"

/* Run what is ready, and make progress, until it is complete. Not inlined: a wait for one that is complete is short. */
__attribute__((noinline)) static void cr_run_until_complete(struct contd__cr *cr)
{
	struct contd__testing waiting;
	struct contd__call call;

	contd__thread_ensure();
	contd__call_enter(&call, true);
	contd__waiting_of(&waiting, cr->group); /* it may be in a callback that a test of the CR runs */
	for (unsigned round = 0;;) {
		unsigned ran = cr_run_unmarked(cr);

		if (ran && contd__cr_complete(cr) && nothing_beside() && !contd__load(&contd__put_off_carried))
			break;
		look_beside();
		ran += cr_run(cr);
		ran += contd__run_ready();
		if (contd__cr_complete(cr))
			break;
		/* The links of a chain follow each other, with progress now and then. */
		if (ran == 0 || ++round % ROUNDS == 0)
			cr_progress(cr, true);
	}
	contd__testing_end(waiting.outer);
	contd__call_leave(&call);
}

__attribute__((noinline)) static int cr_wait(struct contd__cr *cr, MPI_Status *status)
{
	bool told;
	int rc;

	if (waits_for_itself(cr)) {
		contd__mpi_refusing("MPI_Wait", MPI_ERR_REQUEST, OWN);
		return contd__mpi->cr_raise(cr, MPI_ERR_REQUEST, false);
	}
	contd__cr_ask(cr);
	if (contd__put_off_any())
		contd__put_off_drain();
	do {
		if (!contd__cr_complete(cr))
			cr_run_until_complete(cr);
	} while (!contd__cr_report(cr, &told));
	rc = cr_result("MPI_Wait", cr, told, status);
	contd__cr_asked(cr);
	return rc;
}

static int test(MPI_Request *request, int *completed, MPI_Status *status)
{
	struct contd__call call;
	int rc;

	if (contd__mpi->specials(1, request)) {
		struct contd__cr *cr = contd__mpi->cr_of(*request);

		if (cr)
			return cr_test(cr, completed, status);
		contd__call_enter(&call, true);
		contd__mpi->progress(PROGRESS);
		run_if_may();
		contd__call_leave(&call);
		if (contd__mpi->hooked(*request)) {
			*completed = false;
			return MPI_SUCCESS;
		}
	}
	contd__call_enter(&call, true);
	rc = contd__original.test(request, completed, status);
	run_if_may();
	contd__call_leave(&call);
	return rc;
}

__attribute__((noinline)) static int wait_other(MPI_Request *request, MPI_Status *status)
{
	struct contd__call call;
	int rc;

	contd__call_enter(&call, false);
	if (__builtin_expect(contd__mpi->hooked(*request), 0)) {
		if (looks_here()) {
			contd__call_leave(&call);
			return contd__mpi_refuse("MPI_Wait", MPI_ERR_REQUEST, OWN);
		}
		do {
			contd__mpi->progress(PROGRESS_WAITING);
			run_if_may();
		} while (contd__mpi->hooked(*request));
	}
	rc = contd__original.wait(request, status);
	run_if_may();
	contd__call_leave(&call);
	return rc;
}

static inline bool report(struct contd__cr *cr, bool *toldp)
{
	return contd__cr_by_turns ? contd__cr_report_in_turn(cr, toldp)
				  : contd__cr_complete(cr) && contd__cr_report(cr, toldp);
}

/* There are continuations that are ready without a bit. If there is one, and it is the CR's, run that first. */
static inline int wait_unmarked(struct contd__cr *cr, MPI_Status *status)
{
	bool told;
	int rc;

	contd__cr_ask(cr);
	if (!contd__call && contd__self.registered && nothing_beside())
		cr_run_unmarked(cr);
	rc = report(cr, &told) ? cr_result("MPI_Wait", cr, told, status) : cr_wait(cr, status);
	contd__cr_asked(cr);
	return rc;
}

static int wait_one(MPI_Request *request, MPI_Status *status)
{
	struct contd__cr *cr = contd__load(&contd__cr_live) ? contd__mpi->cr_of(*request) : NULL;
	bool told;

	if (!cr)
		return wait_other(request, status);
	contd__low_latency_here(cr->group);
	/* The short ways, on a thread that is in no continuation and in no look. */
	if (contd__at_something_sig() || taking || contd__put_off_any())
		return cr_wait(cr, status);
	if (contd__load(&contd__put_off_carried))
		return wait_unmarked(cr, status);
	return report(cr, &told) ? cr_result("MPI_Wait", cr, told, status) : cr_wait(cr, status);
}

/* ------------------------------------------------------------------------------------------------------- arrays --- */

/* The array functions differ in their arguments only: one body, with the call to MPI's as an argument. */
struct array_call {
	size_t count;
	MPI_Request *requests;
	int *index; /* outcount for some */
	int *indices;
	int *completed;
	MPI_Status *statuses;
	const char *call; /* its name, for texts of errors */
};

typedef int array_fn(const struct array_call *a);

static int original_test_any(const struct array_call *a)
{
	return contd__original.test_any(a->count, a->requests, a->index, a->completed, a->statuses);
}

/* A continuation has ended MPI, which must not be asked any more: nothing in the array is active. With `statuses` so
 * many of them say so. */
static int nothing_active(const struct array_call *a, size_t statuses)
{
	*a->completed = true;
	if (a->index)
		*a->index = MPI_UNDEFINED;
	for (size_t i = 0; i < statuses && a->statuses != MPI_STATUSES_IGNORE && a->statuses != MPI_STATUS_IGNORE; i++)
		a->statuses[i] = contd__status_empty;
	return MPI_SUCCESS;
}

static int reporting_test_any(const struct array_call *a)
{
	if (contd__mpi_is_gone())
		return nothing_active(a, 1);
	return contd__mpi->test_any(a->count, a->requests, a->index, a->completed, a->statuses);
}

static int original_test_all(const struct array_call *a)
{
	return contd__original.test_all(a->count, a->requests, a->completed, a->statuses);
}

static int reporting_test_all(const struct array_call *a)
{
	if (contd__mpi_is_gone())
		return nothing_active(a, a->count);
	return contd__mpi->test_all(a->count, a->requests, a->completed, a->statuses);
}

static int original_test_some(const struct array_call *a)
{
	int rc = contd__original.test_some(a->count, a->requests, a->index, a->indices, a->statuses);

	*a->completed = *a->index != 0; /* some, or none active */
	return rc;
}

static int reporting_test_some(const struct array_call *a)
{
	return contd__mpi_is_gone() ? nothing_active(a, 0) : original_test_some(a);
}

static int original_wait_any(const struct array_call *a)
{
	return contd__original.wait_any(a->count, a->requests, a->index, a->statuses);
}

static int original_wait_all(const struct array_call *a)
{
	return contd__original.wait_all(a->count, a->requests, a->statuses);
}

static int original_wait_some(const struct array_call *a)
{
	return contd__original.wait_some(a->count, a->requests, a->index, a->indices, a->statuses);
}

/* A CR (cr is NULL: a persistent request whose continuation is outstanding) in an array. */
struct special {
	size_t at;
	struct contd__cr *cr;
	int class;
	bool told; /* it is this call that tells of it */
	bool reported;
	bool plain; /* its continuation has run: it is the program's again, and MPI deals with it */
	MPI_Request hidden;
	struct contd__testing testing;
};

#define FEW 8u

/* A call with CRs among its requests. */
struct mixed {
	struct mixed *outer_taking;
	size_t count, specials;
	struct special *special; /* in the order of their places */
	struct contd__testing *outer;
	bool specials_first;
	struct contd__raised raised;
	void *memory;
	struct special few[FEW];
};

static void mixed_end(struct mixed *m)
{
	testing_end(m->outer);
	for (size_t i = 0; i < m->specials; i++)
		if (m->special[i].cr)
			contd__cr_asked(m->special[i].cr);
	free(m->memory);
}

static int mixed_begin(struct mixed *m, const struct array_call *a, size_t specials)
{
	m->specials = 0;
	m->count = a->count;
	m->raised = (struct contd__raised){.cr = MPI_REQUEST_NULL};
	m->special = m->few;
	m->memory = NULL;
	if (specials > FEW) {
		m->memory = contd__zalloc(specials * sizeof(struct special));
		if (!m->memory)
			return MPI_ERR_NO_MEM;
		m->special = m->memory;
	}
	m->outer = contd__self.testing;
	for (size_t i = 0; i < a->count; i++) {
		struct contd__cr *cr = contd__mpi->cr_of(a->requests[i]);
		struct special *s;

		if (!cr && !contd__mpi->hooked(a->requests[i]))
			continue;
		if (m->specials == specials) { /* another thread has attached to one meanwhile */
			mixed_end(m);
			return mixed_begin(m, a, a->count);
		}
		s = &m->special[m->specials++];
		*s = (struct special){.at = i, .cr = cr};
		if (!cr)
			continue;
		contd__testing_of(&s->testing, cr->group);
		contd__cr_ask(cr);
	}
	return MPI_SUCCESS;
}

static void mixed_run(struct mixed *m)
{
	contd__thread_ensure();
	look_beside();
	for (size_t i = 0; i < m->specials; i++)
		if (m->special[i].cr)
			cr_run(m->special[i].cr);
	contd__run_ready();
}

/* Has it something to report? A CR to which nothing was registered since, and an inactive request, have not. */
static bool special_active(const struct special *s, const struct array_call *a)
{
	return s->cr ? contd__cr_active(s->cr) : !s->plain && contd__mpi->hooked(a->requests[s->at]);
}

static bool special_complete(const struct special *s, const struct array_call *a)
{
	return s->cr ? contd__cr_complete(s->cr) : s->plain || !contd__mpi->hooked(a->requests[s->at]);
}

/* False: something was registered with the CR meanwhile, or another call is at it. */
static bool special_take(struct special *s)
{
	s->told = false;
	return !s->cr || contd__cr_take(s->cr, &s->told);
}

/* The CR that it has taken is inactive now. */
static void special_taken(struct special *s)
{
	if (s->told)
		contd__cr_taken(s->cr);
}

/* Both, if this call reports it. Not if another call has been faster, and there is nothing to report any more. */
static bool special_tell(struct special *s)
{
	if (!special_take(s))
		return false;
	special_taken(s);
	return !s->cr || s->told;
}

/* Report what special_take has taken; returns a CR's error class. */
static int special_report(const struct special *s, MPI_Status *status, bool *untoldp)
{
	int class = s->told ? contd__cr_error(s->cr) : MPI_SUCCESS;

	*untoldp = class && !contd__load(&s->cr->error_told);
	if (status) {
		status_empty(status);
		if (class)
			status->MPI_ERROR = class;
	}
	return class;
}

/*
 * All but the specials: MPI deals with these. It works on the program's array and not on a copy. So functions of the
 * program's that it calls (error handlers, query functions) find there what has become of the other requests. Specials
 * at both ends are left out. Those between other requests are MPI_REQUEST_NULL meanwhile. A persistent request whose
 * continuation has run is no special any more: its callback may have started it again.
 */
static struct array_call hide(struct mixed *m, const struct array_call *a)
{
	struct array_call plain = *a;
	size_t first = 0, end = a->count, n = m->specials;

	for (size_t i = 0; i < n; i++)
		m->special[i].plain |= !m->special[i].cr && !contd__mpi->hooked(a->requests[m->special[i].at]);
	for (size_t i = 0; i < n && !m->special[i].plain && m->special[i].at == first; i++)
		first++;
	for (size_t i = n; i-- > 0 && end > first && !m->special[i].plain && m->special[i].at == end - 1;)
		end--;
	for (size_t i = 0; i < n; i++) {
		struct special *s = &m->special[i];

		s->hidden = MPI_REQUEST_NULL;
		if (s->plain || s->at < first || s->at >= end)
			continue;
		s->hidden = a->requests[s->at];
		a->requests[s->at] = MPI_REQUEST_NULL;
	}
	plain.requests = a->requests + first;
	plain.count = end - first;
	return plain;
}

/* Unless a function of the program's has put another handle there. */
static void show(const struct mixed *m, const struct array_call *a)
{
	for (size_t i = 0; i < m->specials; i++) {
		const struct special *s = &m->special[i];

		if (s->hidden != MPI_REQUEST_NULL && a->requests[s->at] == MPI_REQUEST_NULL)
			a->requests[s->at] = s->hidden;
	}
}

static MPI_Status *status_of(const struct array_call *a, size_t i)
{
	return a->statuses == MPI_STATUSES_IGNORE ? NULL : &a->statuses[i];
}

/* The first `taken` of them are not reported after all. */
static void all_give_back(const struct mixed *m, size_t taken)
{
	for (size_t i = 0; i < taken; i++)
		if (m->special[i].told)
			contd__cr_give_back(m->special[i].cr);
}

/* It has been named twice, and is taken. */
static bool taken_before(const struct mixed *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m->special[i].cr == m->special[n].cr && m->special[i].told)
			return true;
	return false;
}

/*
 * Take all CRs before MPI completes the other requests, because MPI cannot undo that: what is registered with one of
 * them from now on is held. False: something was registered before that.
 */
static bool all_take(struct mixed *m)
{
	for (size_t i = 0; i < m->specials; i++) {
		if (special_take(&m->special[i]) || taken_before(m, i))
			continue;
		all_give_back(m, i);
		return false;
	}
	CONTD_TESTPOINT("all_taken");
	return true;
}

/* cr is NULL: none of theirs. The text is set. */
static int array_raise_set(struct mixed *m, struct contd__cr *cr, int class, bool told)
{
	if (!cr || !contd__mpi->raising)
		return contd__mpi->cr_raise(cr, class, told);
	m->raised.cr = cr->handle;
	m->raised.class = class;
	m->raised.told = told;
	return class;
}

static int array_raise(struct mixed *m, const char *call, struct contd__cr *cr, int class, bool told)
{
	set_failed(call, class, told);
	return array_raise_set(m, cr, class, told);
}

/* No CR has failed, but other requests have. */
static void array_raise_others(struct mixed *m, int rc, const int *places, size_t count)
{
	m->raised.class = rc;
	m->raised.beside = places;
	m->raised.beside_count = count;
}

/* After all else: MPI looks at the array next. */
static void array_raised(const struct mixed *m, const struct array_call *a)
{
	if (m->raised.class && contd__mpi->raising)
		contd__mpi->raising(a->count, a->requests, &m->raised);
}

static bool taken_here(const struct contd__cr *cr)
{
	for (const struct mixed *m = taking; m; m = m->outer_taking)
		for (size_t i = 0; i < m->specials; i++)
			if (m->special[i].cr == cr && m->special[i].told && cr->revised)
				return true;
	return false;
}

/*
 * If one fails, the statuses of all say how it went (MPI 4.1, 3.7.5). MPI may not write the field if none does. But
 * Open MPI's Testall writes it, too, if a persistent request has failed, and returns MPI_SUCCESS. So that comes before
 * it. False: there was no need.
 */
static bool all_went_well(const struct mixed *m, const struct array_call *a)
{
	bool failed = false;

	for (size_t i = 0; i < m->specials; i++)
		failed |= m->special[i].told && contd__cr_error(m->special[i].cr);
	for (size_t i = 0; failed && a->statuses != MPI_STATUSES_IGNORE && i < m->count; i++)
		a->statuses[i].MPI_ERROR = MPI_SUCCESS;
	return failed;
}

static int mixed_all(struct mixed *m, const struct array_call *a)
{
	struct array_call plain;
	const struct special *failed = NULL;
	bool untold = false, written;
	int rc;

	*a->completed = false;
	for (size_t i = 0; i < m->specials; i++) {
		if (special_complete(&m->special[i], a))
			continue;
		contd__mpi->progress(PROGRESS);
		return MPI_SUCCESS;
	}
	if (!all_take(m))
		return MPI_SUCCESS;
	written = all_went_well(m, a);
	plain = hide(m, a);
	plain.statuses = status_of(a, (size_t)(plain.requests - a->requests));
	plain.statuses = plain.statuses ? plain.statuses : MPI_STATUSES_IGNORE;
	m->outer_taking = taking;
	taking = m;
	rc = reporting_test_all(&plain);
	taking = m->outer_taking;
	show(m, a);
	if (!*a->completed && rc != MPI_ERR_IN_STATUS) {
		all_give_back(m, m->specials);
		return rc;
	}
	for (size_t i = 0; i < m->specials; i++) {
		struct special *s = &m->special[i];
		bool mine;

		if (s->plain)
			continue;
		special_taken(s);
		s->class = special_report(s, status_of(a, s->at), &mine);
		if (s->class) {
			failed = s;
			untold |= mine;
		}
	}
	if (!failed && rc == MPI_SUCCESS)
		return rc;
	if (a->statuses != MPI_STATUSES_IGNORE) {
		for (size_t i = 0; i < m->count && rc == MPI_SUCCESS && !written; i++)
			a->statuses[i].MPI_ERROR = MPI_SUCCESS; /* it has failed since */
		for (size_t i = 0; i < m->specials; i++)
			if (!m->special[i].plain)
				a->statuses[m->special[i].at].MPI_ERROR = m->special[i].class;
	}
	if (failed) {
		m->raised.beside_count = rc == MPI_SUCCESS ? 0 : m->count; /* all that have failed are reported */
		array_raise(m, a->call, failed->cr, failed->class, !untold);
	} else {
		array_raise_others(m, rc, NULL, m->count);
	}
	return MPI_ERR_IN_STATUS;
}

/*
 * Reports the first special that can be reported, from `start` on; false if there is none. *activep: one had something
 * to report, now or soon.
 */
static bool any_special(struct mixed *m, const struct array_call *a, size_t start, bool *activep, int *rcp)
{
	*activep = false;
	for (size_t k = 0; k < m->specials; k++) {
		struct special *s = &m->special[(start + k) % m->specials];
		bool untold;
		int class;

		if (!special_active(s, a))
			continue;
		*activep = true;
		if (!special_complete(s, a) || !special_tell(s))
			continue;
		class = special_report(s, a->statuses == MPI_STATUS_IGNORE ? NULL : a->statuses, &untold);
		*a->completed = true;
		*a->index = (int)s->at;
		*rcp = class ? array_raise(m, a->call, s->cr, class, !untold) : MPI_SUCCESS;
		return true;
	}
	return false;
}

static int mixed_any(struct mixed *m, const struct array_call *a)
{
	static uint32_t turn; /* the n-th call begins with another one */
	size_t start = m->specials ? contd__add(&turn, 1) % m->specials : 0;
	struct array_call plain;
	bool active;
	int rc;

	/* The kind that is first in one call is last in the next, so that neither keeps the other from being
	 * reported. */
	m->specials_first = !m->specials_first;
	if (m->specials_first && any_special(m, a, start, &active, &rc))
		return rc;
	plain = hide(m, a);
	*a->index = MPI_UNDEFINED;
	rc = reporting_test_any(&plain);
	show(m, a);
	if (*a->index != MPI_UNDEFINED)
		*a->index += (int)(plain.requests - a->requests);
	if (rc != MPI_SUCCESS)
		array_raise_others(m, rc, a->index, 1);
	if (rc != MPI_SUCCESS || (*a->completed && *a->index != MPI_UNDEFINED))
		return rc;
	if (any_special(m, a, start, &active, &rc))
		return rc;
	if (active) {
		/* MPI may have found nothing active, and not have tried. */
		contd__mpi->progress(PROGRESS);
		*a->completed = false;
	}
	return MPI_SUCCESS;
}

static int mixed_some(struct mixed *m, const struct array_call *a)
{
	struct array_call plain;
	const struct special *failed = NULL;
	bool untold = false, active = false;
	int rc, found;
	size_t before;

	plain = hide(m, a);
	rc = reporting_test_some(&plain);
	show(m, a);
	if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS)
		return rc;
	found = *a->index == MPI_UNDEFINED ? 0 : *a->index;
	for (int i = 0; i < found; i++)
		a->indices[i] += (int)(plain.requests - a->requests);
	before = (size_t)found;
	for (size_t i = 0; i < m->specials; i++) {
		struct special *s = &m->special[i];
		bool mine;

		if (!special_active(s, a))
			continue;
		active = true;
		if (!special_complete(s, a) || !special_tell(s))
			continue;
		s->class = special_report(s, status_of(a, (size_t)found), &mine);
		if (s->class) {
			failed = s;
			untold |= mine;
		}
		s->reported = true;
		a->indices[found++] = (int)s->at;
	}
	if (*a->index == MPI_UNDEFINED && active && found == 0)
		contd__mpi->progress(PROGRESS); /* MPI has not tried */
	if (*a->index != MPI_UNDEFINED || active)
		*a->index = found;
	*a->completed = *a->index != 0;
	if (!failed && rc == MPI_SUCCESS)
		return rc;
	if (a->statuses != MPI_STATUSES_IGNORE) {
		/* All of them say how it went, then: MPI 4.1, 3.7.5. */
		for (size_t i = 0; i < before && rc == MPI_SUCCESS; i++)
			a->statuses[i].MPI_ERROR = MPI_SUCCESS;
		for (size_t i = 0, n = before; i < m->specials; i++)
			if (m->special[i].reported)
				a->statuses[n++].MPI_ERROR = m->special[i].class;
	}
	if (failed) {
		m->raised.beside = a->indices;
		m->raised.beside_count = rc == MPI_SUCCESS ? 0 : before;
		array_raise(m, a->call, failed->cr, failed->class, !untold);
	} else {
		array_raise_others(m, rc, a->indices, before);
	}
	return MPI_ERR_IN_STATUS;
}

typedef int mixed_fn(struct mixed *m, const struct array_call *a);

static int test_array(array_fn *fn, mixed_fn *mixed, const struct array_call *a)
{
	size_t specials = contd__mpi->specials(a->count, a->requests);
	struct contd__call call;
	struct mixed m;
	int rc;

	contd__call_enter(&call, true);
	if (specials == 0) {
		rc = fn(a);
		run_if_may();
		contd__call_leave(&call);
		return rc;
	}
	rc = mixed_begin(&m, a, specials);
	if (rc) {
		contd__call_leave(&call);
		*a->completed = false;
		return contd__mpi_refuse(a->call, rc, CONTD_NO_MEMORY);
	}
	m.specials_first = false;
	mixed_run(&m);
	rc = mixed(&m, a);
	/* That has made progress where it found nothing: run what came of it, and look once more. */
	if (rc == MPI_SUCCESS && !*a->completed) {
		mixed_run(&m);
		rc = mixed(&m, a);
	}
	mixed_end(&m);
	contd__call_leave(&call);
	array_raised(&m, a);
	return rc;
}

static bool is_own(const struct special *s)
{
	return s->cr ? waits_for_itself(s->cr) : looks_here();
}

/* One of them for which waiting would never end, or NULL. */
static const struct special *own_cr(const struct mixed *m)
{
	for (size_t i = 0; i < m->specials; i++)
		if (is_own(&m->special[i]))
			return &m->special[i];
	return NULL;
}

/* In a function that a look has called nothing but requests that contd does not know can complete. */
static bool others_may(const struct mixed *m, const struct array_call *a)
{
	for (size_t i = 0, n = 0; i < m->count; i++) {
		if (n < m->specials && m->special[n].at == i)
			n++;
		else if (a->requests[i] != MPI_REQUEST_NULL)
			return true;
	}
	return false;
}

/* A wait for it is refused: the statuses, and what else the call writes, say so. */
static int own_refuse(const struct array_call *a, mixed_fn *mixed, size_t at)
{
	bool all = mixed == mixed_all;

	if (!all)
		*a->index = mixed == mixed_any ? (int)at : 1;
	if (mixed == mixed_some)
		a->indices[0] = (int)at;
	for (size_t i = 0;
	     i < (all ? a->count : 1) && a->statuses != MPI_STATUSES_IGNORE && a->statuses != MPI_STATUS_IGNORE; i++) {
		a->statuses[i] = contd__status_empty;
		a->statuses[i].MPI_ERROR = all && i != at ? MPI_ERR_PENDING : MPI_ERR_REQUEST;
	}
	return mixed == mixed_any ? MPI_ERR_REQUEST : MPI_ERR_IN_STATUS;
}

/*
 * With a CR among the requests, waiting is testing again and again: poll-only continuations run in this call and in no
 * other, so it must not sleep.
 */
static int wait_array(array_fn *wait_fn, mixed_fn *mixed, struct array_call *a)
{
	size_t specials = contd__mpi->specials(a->count, a->requests);
	struct contd__call call;
	const struct special *own;
	struct mixed m;
	int done = 0, rc;

	if (specials == 0) {
		contd__call_enter(&call, false);
		rc = wait_fn(a);
		run_if_may();
		contd__call_leave(&call);
		return rc;
	}
	while (mixed_begin(&m, a, specials) != MPI_SUCCESS)
		contd__mpi->progress(PROGRESS_WAITING); /* until there is memory */
	for (size_t i = 0; i < m.specials; i++)         /* max_poll is for tests */
		contd__testing_waits(&m.special[i].testing);
	own = own_cr(&m);
	if (own && (mixed == mixed_all || !looks_here() || !others_may(&m, a))) {
		rc = own_refuse(a, mixed, own->at);
		contd__mpi_refusing(a->call, MPI_ERR_REQUEST, OWN);
		array_raise_set(&m, own->cr, MPI_ERR_REQUEST, false);
		mixed_end(&m);
		array_raised(&m, a);
		return rc;
	}
	contd__call_enter(&call, true);
	m.specials_first = false;
	a->completed = &done;
	do {
		mixed_run(&m);
		rc = mixed(&m, a);
	} while (rc == MPI_SUCCESS && !done);
	contd__call_leave(&call);
	mixed_end(&m);
	array_raised(&m, a);
	return rc;
}

static int test_any(size_t count, MPI_Request *requests, int *index, int *completed, MPI_Status *status)
{
	const struct array_call a = {count, requests, index, NULL, completed, status, "MPI_Testany"};

	return test_array(original_test_any, mixed_any, &a);
}

static int test_all(size_t count, MPI_Request *requests, int *completed, MPI_Status *statuses)
{
	const struct array_call a = {count, requests, NULL, NULL, completed, statuses, "MPI_Testall"};

	return test_array(original_test_all, mixed_all, &a);
}

static int test_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
	int some;
	const struct array_call a = {count, requests, outcount, indices, &some, statuses, "MPI_Testsome"};

	*outcount = 0;
	return test_array(original_test_some, mixed_some, &a);
}

static int wait_any(size_t count, MPI_Request *requests, int *index, MPI_Status *status)
{
	struct array_call a = {count, requests, index, NULL, NULL, status, "MPI_Waitany"};

	return wait_array(original_wait_any, mixed_any, &a);
}

static int wait_all(size_t count, MPI_Request *requests, MPI_Status *statuses)
{
	struct array_call a = {count, requests, NULL, NULL, NULL, statuses, "MPI_Waitall"};

	return wait_array(original_wait_all, mixed_all, &a);
}

static int wait_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
	struct array_call a = {count, requests, outcount, indices, NULL, statuses, "MPI_Waitsome"};

	return wait_array(original_wait_some, mixed_some, &a);
}

const struct contd__request_functions contd__calls = {test,     test_any, test_all, test_some,
						      wait_one, wait_any, wait_all, wait_some};
