/* SPDX-License-Identifier: BSD-3-Clause */
/* The first call chooses a backend; then: which threads may enter MPI, and the orderly end. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/rest.h"
#include "base/say.h"
#include "base/verbose.h"
#include "base/warn.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/settings.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dump/root.h"
#include "life/ending.h"
#include "mpi/backend.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/finalize.h"
#include "mpi/grequest.h"
#include "mpi/handles.h"
#include "mpi/life.h"
#include "mpi/native.h"
#include "mpi/op_set.h"
#include "mpi/portable.h"
#include "mpi/process_model.h"
#include "mpi/ring.h"
#include "mpi/settings.h"
#include "mpi/source.h"
#include "mpi/state.h"
#include "mpi/templates.h"

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct contd_group *loose[LOOSE_GROUPS];
static MPI_Request loose_cr[LOOSE_GROUPS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL,
					     MPI_REQUEST_NULL}; /* of those groups; no caller gets them */
static uint32_t asks_only;                                      /* see contd__mpi_start_asking */
static uint32_t resting;                                        /* contd__mpi_rest */
static pthread_mutex_t rest_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Peers of the job can ring from now on, if they have a mind to. Nothing depends on it: where it can't be, ticks find
 * what bells would have told, and CONTD_BELL=0 is the program's wish.
 */
static void listen(void)
{
	char job[CONTD_JOB_TEXT];

	contd__mpi_job(job);
	contd_bell_listen(job, (uint32_t)contd__model.rank);
}

/* ------------------------------------------------------------------------------------------------------ the end --- */

static void loose_free(void)
{
	for (int i = 0; i < LOOSE_GROUPS; i++) {
		if (loose[i])
			PMPI_Request_free(&loose_cr[i]);
		contd__store(&loose[i], NULL);
	}
}

void contd__mpi_end(void)
{
	uint32_t left;

	if (contd__load(&contd__live.forked) || !contd__load_seq(&contd__mpi_open))
		return;
	contd__cr_uncounted_ends();
	contd__put_off_drain();
	loose_free();
	contd__mpi_ends();
	while (contd__mpi_driven())
		contd__rest();
	left = contd__instances_stop();
	if (left)
		contd__mpi_say("%s: %u request%s of MPIX_Gr_begin %s never marked complete", contd__model.end, left,
			       left == 1 ? "" : "s", left == 1 ? "was" : "were");
	contd__mpi->stop();
	contd__mpi_cancel_rest();
	contd_fini();
	contd__model_end();
}

/* Called in MPI_Finalize before anything else is taken down: MPI 4.1, 11.10.4. */
static int at_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)value, (void)extra;
	contd__mpi_drive_to_end(false); /* if the call has not come to contd (a plug-in) */
	contd__mpi_end();
	return MPI_SUCCESS;
}

static int watch_finalize(void)
{
	int keyval;

	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL) ||
	    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL) || PMPI_Comm_free_keyval(&keyval))
		return MPI_ERR_OTHER;
	return MPI_SUCCESS;
}

/* -------------------------------------------------------------------------------------------- between sessions --- */

#define PATIENCE 20000 /* naps of 50 us */

static void nap(void)
{
	struct timespec ts = {.tv_nsec = 50000};

	nanosleep(&ts, NULL);
}

static bool nobody_drives(void)
{
	for (int i = 0; i < PATIENCE && contd__mpi_driven(); i++)
		nap();
	return !contd__mpi_driven();
}

/* Can contd__mpi_end() come to its end: contd is open, and no thread makes progress? Waits up to a second for that. */
static bool may_end(void)
{
	return contd__load_seq(&contd__mpi_open) && !contd__mpi_inside() && nobody_drives();
}

static bool nothing_outstanding(void)
{
	return contd__crs_outstanding() == 0 && contd__mpi->pending() == 0 && !contd__general_any() &&
	       !contd__put_off_any() && contd__load_seq(&contd__sets_owing) == 0 &&
	       contd__load_seq(&contd__tasks_queued) == 0 && contd__load_seq(&contd__tasks_running) == 0 &&
	       contd__load_seq(&contd__instances_waiting) == 0;
}

/* contd is closed. Handles of requests may be those of others when MPI has begun again, so no CR may be left. */
static bool can_rest(void)
{
	if (!nobody_drives() || !contd__model_is_left() || !nothing_outstanding())
		return false;
	contd__mpi->progress(PROGRESS_ALL); /* gives back what other threads have left */
	contd__put_off_drain();
	loose_free();
	if (!nothing_outstanding())
		return false;
	if (contd__load_seq(&contd__cr_live) || (contd__mpi->rest && !contd__mpi->rest()))
		return false;
	contd__handles_clear();
	return true;
}

void contd__mpi_rest(void)
{
	if (contd__in_continuation_sig() || contd__mpi_inside() || contd__load(&contd__live.forked))
		return;
	contd__put_off_drain();
	/* Another thread may just be about to give something back. */
	for (int i = 0; i < PATIENCE / 100 && contd__model_is_left() && !nothing_outstanding(); i++)
		nap();
	pthread_mutex_lock(&rest_lock);
	if (contd__load_seq(&contd__mpi_open) && contd__model_is_left() && nothing_outstanding()) {
		contd__store_seq(&resting, 1);
		contd__mpi_closes();
		if (can_rest()) {
			contd__ring_stop();
			contd__model_rest();
		} else {
			contd__mpi_opens();
			contd__store_seq(&resting, 0);
		}
	}
	pthread_mutex_unlock(&rest_lock);
}

void contd__mpi_wake(void)
{
	if (!contd__load_seq(&resting) || contd__load(&contd__live.forked))
		return;
	pthread_mutex_lock(&rest_lock);
	if (contd__load_seq(&resting)) {
		if (!contd__model_wake()) {
			contd__mpi_say("MPI gives contd no session, and it cannot go on");
		} else if (contd__mpi->wake && contd__mpi->wake() != MPI_SUCCESS) {
			contd__mpi_say("it cannot go on in this session: MPI's requests are not as before");
			contd__model_rest();
		} else {
			contd__mpi_opens();
			contd__store_seq(&resting, 0);
		}
	}
	pthread_mutex_unlock(&rest_lock);
}

/* ---------------------------------------------------------------------------------------------------- the start --- */

static bool said_why; /* a line has said why contd cannot begin; under start_lock */
#define say_why(...) (said_why = true, contd__mpi_say(__VA_ARGS__))

/*
 * CONTD_MPI_BACKEND, for tests and for sites that want to be sure: native, portable, or auto. NULL: it can't be; with
 * `asking` asks_only may be set then.
 */
static const struct contd__mpi_backend *choose(bool asking)
{
	const char *wanted = getenv("CONTD_MPI_BACKEND"), *why = NULL;

	if (wanted && *wanted && strcmp(wanted, "auto") != 0 && strcmp(wanted, "native") != 0 &&
	    strcmp(wanted, "portable") != 0) {
		say_why("CONTD_MPI_BACKEND=%s: must be native, portable or auto", wanted);
		contd__fail(MPI_ERR_OTHER, "contd cannot begin: CONTD_MPI_BACKEND must be native, portable or auto");
		return NULL;
	}
	if (wanted && *wanted)
		contd__backend_step("the variable CONTD_MPI_BACKEND is %s", wanted);
	if (!wanted || strcmp(wanted, "portable") != 0) {
#if CONTD_MPI_NATIVE
		why = contd__mpi_native.refuses();
		if (!why)
			return &contd__mpi_native;
#else
		why = "this build is for an MPI without a native backend";
#endif
		contd__backend_step("no native backend: %s", why);
		if (wanted && strcmp(wanted, "native") == 0) {
			say_why("CONTD_MPI_BACKEND=native: %s", why);
			contd__fail(MPI_ERR_OTHER, "contd cannot begin with CONTD_MPI_BACKEND=native, because this MPI "
						   "library has no native backend; set auto or portable");
			return NULL;
		}
	}
#if CONTD_MPI_NATIVE
	if (why)
		contd__mpi_warn_here("%s; continuations use the portable backend, which is slower", why);
#endif
	why = contd__mpi_portable.refuses();
	if (!why) {
		contd__backend_step("the program's calls of MPI come to contd, as the portable backend needs");
		return &contd__mpi_portable;
	}
	if (asking && contd__portable_asks()) {
		/* Release: pairs with the acquire in started. */
		contd__store_release(&asks_only, 1);
		return NULL;
	}
	say_why("%s", why);
	contd__fail(MPI_ERR_OTHER, why);
	return NULL;
}

static void in_child(void)
{
	contd__mpi_state_forked();
}

static const char *level_name(int level)
{
	return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
	       : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
	       : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
						: "MPI_THREAD_MULTIPLE";
}

static void say_start(void)
{
	char text[2 * BACKEND_STEPS + 128];
	size_t n;

	if (!contd__says(CONTD_VERBOSE_START))
		return;
	n = (size_t)snprintf(text, sizeof(text), "MPI: %s backend, %s; ", contd__mpi->name,
			     level_name(contd__model.level));
	for (const char *from = contd__backend_steps(); *from; from++) {
		if (*from == '\n')
			text[n++] = ';';
		text[n++] = *from == '\n' ? ' ' : *from;
	}
	text[n] = '\0';
	contd__model_say_rank();
	contd__tell_here(CONTD_VERBOSE_START, NULL, text);
}

/* The process ends, and has ended its sessions; if not, MPI is not ended either. contd's session may be left, where
 * something was outstanding at the end of the program's last one: that is reported now. */
static void at_exit(void)
{
	if (contd__model.sessions && !contd__load(&contd__live.forked) && !contd__in_continuation_sig() &&
	    !contd__model_is_open() && may_end())
		contd__mpi_end();
}

/* The model has begun. */
static int start_in_model(bool asking)
{
	const struct contd__mpi_backend *backend;
	int rc;

	contd__mpi_state_start();
	contd__backend_choosing(true);
	backend = choose(asking && !contd__model.sessions);
	contd__backend_choosing(false);
	if (!backend)
		return asking && contd__load(&asks_only) ? MPI_SUCCESS : MPI_ERR_OTHER;
	contd__mpi_ask_main();
	rc = contd_init(NULL);
	if (rc) {
		say_why("%s", contd_error_text());
		return rc == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
	}
	contd__put_off_start();
	contd__backend_use(backend);
	/* Of other sessions there may be several threads in MPI. */
	rc = backend->start(contd__model.sessions ? MPI_THREAD_MULTIPLE : contd__model.level);
	contd__crs_start();
	contd__mpi_source_where(WHERE_THREAD | WHERE_REGION |
				(contd__model.level == MPI_THREAD_MULTIPLE ? WHERE_DAEMON : 0u));
	if (rc)
		contd__fail(rc, "contd cannot begin: MPI refuses what its backend needs, or there is no memory");
	if (!rc && contd__source_register(&contd__mpi_source))
		rc = MPI_ERR_OTHER;
	if (!rc && !contd__model.sessions && (rc = watch_finalize()) != MPI_SUCCESS)
		contd__fail(rc, "contd cannot begin: MPI refuses an attribute of MPI_COMM_SELF");
	if (!rc && pthread_atfork(NULL, NULL, in_child))
		rc = contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	if (rc) {
		backend->stop();
		contd_fini();
		return rc;
	}
	listen();
	contd__dump_part_add(backend->dump);
	contd__ending_backend(contd__mpi->name);
	say_start();
	contd__store(&asks_only, 0);
	contd__mpi_opens();
	return MPI_SUCCESS;
}

static int start_locked(bool asking)
{
	const char *why = NULL;
	int rc;

	if (contd__load_seq(&resting)) {
		contd__mpi_wake();
		if (contd__load_acquire(&contd__mpi_open))
			return MPI_SUCCESS;
		return contd__fail(MPI_ERR_OTHER, "MPI gives contd no session, or its requests are not as before");
	}
	/* It has just come back from resting: contd__mpi_open is stored before `resting`. Acquire: as in started. */
	if (contd__load_acquire(&contd__mpi_open))
		return MPI_SUCCESS;
	why = contd__load_seq(&contd__mpi_ended)
		      ? "MPI_Finalize has ended contd. If the program goes on with a session, it must "
			"have one before its first call of contd's"
		      : contd__model_begin(at_exit);

	if (why) {
		say_why("it cannot begin: %s", why);
		return contd__fail(MPI_ERR_OTHER, why);
	}
	contd__ring_group_by(contd__model.sessions ? contd__model_group : NULL);
	rc = start_in_model(asking);
	if (rc)
		contd__model_end();
	return rc;
}

/* Done, as far as it must be? Acquire: pairs with the releases in start_locked and choose. */
static bool started(bool asking)
{
	return contd__load_acquire(&contd__mpi_open) || (asking && contd__load_acquire(&asks_only));
}

static int fail_outside_mpi(const char *call)
{
	int finalized = 0;

	PMPI_Finalized(&finalized);
	contd__fail(MPI_ERR_OTHER, finalized ? "called after MPI_Finalize; call it before"
					     : "called before MPI_Init, and without a session of the program's that "
					       "contd knows of; call MPI_Init first");
	return contd__fail_in(call, MPI_ERR_OTHER);
}

/* MPI must not be called, so no error handler is either. */
static int outside_mpi(const char *call)
{
	fail_outside_mpi(call);
	contd__say("%s", contd__error_said());
	return MPI_ERR_OTHER;
}

#define IN_CHILD "this is the child of a fork: call it in the process that called MPI_Init"

static int start_once(bool asking)
{
	int rc;

	if (started(asking))
		return MPI_SUCCESS;
	pthread_mutex_lock(&start_lock);
	said_why = false;
	rc = started(asking) ? MPI_SUCCESS : start_locked(asking);
	if (rc && !said_why)
		contd__mpi_say("it cannot begin: %s", contd_error_text());
	pthread_mutex_unlock(&start_lock);
	return rc;
}

static const struct contd__mpi_backend *start(const char *call, bool asking, int *errp)
{
	int rc;

	if (!contd__model_is_open()) {
		*errp = outside_mpi(call);
		return NULL;
	}
	if (contd__load(&contd__live.forked)) {
		*errp = contd__mpi_refuse(call, MPI_ERR_OTHER, IN_CHILD);
		return NULL;
	}
	rc = start_once(asking);
	if (rc) {
		*errp = contd__mpi_tell(call, rc);
		return NULL;
	}
	contd__mpi_ask_main();
	return asking && contd__load(&asks_only) ? &contd__mpi_portable : contd__mpi;
}

const struct contd__mpi_backend *contd__mpi_start(const char *call, int *errp)
{
	return start(call, false, errp);
}

const struct contd__mpi_backend *contd__mpi_start_asking(const char *call, int *errp)
{
	return start(call, true, errp);
}

const char *contd_mpi_backend(const char **stepsp)
{
	int rc;

	if (!contd__model_is_open())
		rc = fail_outside_mpi(__func__);
	else if (contd__load(&contd__live.forked))
		rc = contd__fail(MPI_ERR_OTHER, IN_CHILD);
	else
		rc = start_once(false);
	if (rc) {
		contd__fail_in(__func__, rc);
		return NULL;
	}
	if (stepsp)
		*stepsp = contd__backend_steps();
	return contd__mpi->name;
}

__attribute__((noinline)) static struct contd_group *make_loose(enum contd__loose which)
{
	struct contd__settings s = {.attr = CONTD_GROUP_ATTR_INIT};

	/* Completing an event is async-signal-safe, and any thread may do it. */
	if (which == LOOSE_EVENTS)
		s.attr.flags = CONTD_THREAD_ANY | CONTD_ASYNC_SIGNAL_SAFE;
	else if (which == LOOSE_ANY)
		s.attr.flags = CONTD_THREAD_ANY;
	pthread_mutex_lock(&start_lock);
	if (!loose[which] && contd__cr_make(&s, false, &loose_cr[which]) == MPI_SUCCESS)
		contd__store_release(&loose[which], contd__mpi->cr_of(loose_cr[which])->group);
	pthread_mutex_unlock(&start_lock);
	return loose[which];
}

struct contd_group *contd__mpi_loose(enum contd__loose which)
{
	struct contd_group *group = contd__load_acquire(&loose[which]);

	return group ? group : make_loose(which);
}

int contd_mpi_thread_level(void)
{
	/* Acquire: the model is written before contd opens. */
	return contd__load(&contd__live.forked) ? -1 : contd__model_level(contd__load_acquire(&contd__mpi_open));
}

/* ------------------------------------------------------------------------------------------------------ ringing --- */

/* With sessions alone it is contd's session that knows the peers. */
static bool may_ring(void)
{
	int rc;

	return contd__model_is_open() && !contd__load(&contd__live.forked) &&
	       ((contd__model_has_world() && !contd__model.sessions) || contd__load_acquire(&contd__mpi_open) ||
		(!contd__load_seq(&contd__mpi_ended) && contd__mpi_start("contd_mpi_ring", &rc)));
}

int contd_mpi_ring(int rank, MPI_Comm comm)
{
	return may_ring() ? contd__ring_rank(rank, comm) : 0;
}

int contd_mpi_ring_all(MPI_Comm comm)
{
	return may_ring() ? contd__ring_all(comm) : 0;
}
