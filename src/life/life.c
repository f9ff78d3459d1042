/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the dispatcher, and its settings. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/note.h"
#include "base/testpoint.h"
#include "base/verbose.h"
#include "dispatch/carried.h"
#include "dispatch/daemon.h"
#include "dispatch/group_set.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/live.h"
#include "dispatch/live_lock.h"
#include "dispatch/never.h"
#include "dispatch/settings.h"
#include "dispatch/source.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/watchdog.h"
#include "dispatch/word.h"
#include "dump/asked.h"
#include "dump/root.h"
#include "life/beginning.h"
#include "life/ending.h"
#include "signal/attach.h"
#include "signal/attached.h"

/* The linker collects sections of such names as notes. */
__attribute__((section(".note.contd"), used, aligned(4))) static const struct contd__note note = {
	sizeof(CONTD_NOTE_NAME), 0, CONTD_NOTE_TYPE, CONTD_NOTE_NAME};

/* ------------------------------------------------------------------------------------------------------- errors --- */

const char *contd_error_text(void)
{
	return contd__error_said();
}

uint32_t contd_version(void)
{
	return CONTD_VERSION_MAJOR << 16 | CONTD_VERSION_MINOR << 8 | CONTD_VERSION_PATCH;
}

/* --------------------------------------------------------------------------------------------------------- life --- */

static void in_child(void)
{
	const struct contd__signal_ops *ops = contd__interrupt.ops;

	contd__threads_forked();
	/*
	 * In the child, the entries of the parent's other threads in lists, also in RCU's, belong to no thread. And if
	 * another thread was in contd_init(), or at the end of contd_fini(), this has half of that.
	 */
	if (!contd__live.users && contd__load(&contd__threads_count) == contd__self.registered &&
	    contd__live_lock_free())
		return;
	contd__live_forked();
	contd__carried_forked();
	contd__wake_forked();
	contd__daemon_forked();
	if (ops)
		ops->forked();
}

/* Once per process. */
static int watch_forks_locked(void)
{
	static bool watched;
	int err = watched ? 0 : pthread_atfork(NULL, NULL, in_child);

	watched = watched || !err;
	return err ? contd__fail(-err, "contd_init: out of memory (pthread_atfork)") : 0;
}

static void settle_locked(const struct contd_config *c)
{
	contd__verbose_set(c->verbose);
	contd__watchdog_settle(c);
	contd__limits_settle_locked(c);
}

static int start_locked(const struct contd_config *cfg)
{
	struct contd_config c;
	int rc = contd__settings_make(cfg, NULL, &c);

	if (rc)
		return rc;
	rc = watch_forks_locked();
	if (!rc)
		rc = contd__threads_start();
	if (rc)
		return rc;
	contd__clock_start();
	contd__dump_root_start();
	settle_locked(&c);
	contd__clock_ages(contd__says(CONTD_VERBOSE_START));
	CONTD_TESTPOINT("init_begun");
	contd__groups_start();
	contd__stats_reset();
	contd__live_start_locked();
	rc = contd__signal_start(&c);
	if (rc)
		return rc;
	contd__settings_origins(cfg, true);
	contd__live_run_locked();
	if ((rc = contd__watchdog_start()) != 0 || (rc = contd__daemon_configure(NULL)) != 0 ||
	    (rc = contd__asked_start(&contd__config)) != 0) {
		contd__daemon_end();
		contd__watchdog_stop();
		contd__live_fini_locked();
		contd__interrupt.ops->stop();
		contd__watchdog_forget();
		contd__interrupt.ops->give_back();
		contd__wake_fini();
	} else {
		contd__ending_prepare_locked();
		contd__beginning_locked(true);
	}
	return rc;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

int contd_configure(const struct contd_config *cfg)
{
	struct contd_config c, before;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!cfg)
		return contd__fail(-EINVAL, "contd_configure: cfg must not be NULL");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_configure: not in a signal handler");
	if (contd__on_daemon_sig())
		return contd__fail(-EDEADLK, "contd_configure: not on the daemon thread");
	contd__carried_release_sig(); /* the daemon may be in a callback that waits for those, and be ended */
	CONTD_TESTPOINT("live_checked");
	rc = contd__live_lock();
	if (rc)
		return contd__fail_in(__func__, rc);
	before = contd__config;
	rc = contd__check_live(); /* another thread's contd_fini() may have had the lock */
	if (!rc)
		rc = contd__settings_make(cfg, &before, &c);
	if (!rc && (c.signal_number != before.signal_number || c.signal_taken != before.signal_taken ||
		    c.bell != before.bell || !same_text(c.dump_signal, before.dump_signal) ||
		    !same_text(c.dump_file, before.dump_file)))
		rc = contd__fail(-EBUSY,
				 "contd_configure: cfg->signal_number, signal_taken, bell, dump_signal and dump_file "
				 "can't be changed while contd runs; give them to the first contd_init()");
	if (!rc) {
		bool watched = contd__watchdog_runs();

		settle_locked(&c);
		rc = contd__watchdog_start();
		if (!rc)
			rc = contd__daemon_configure(&before);
		if (rc && !watched)
			contd__watchdog_stop(); /* before its function is taken from it */
		if (rc) {
			settle_locked(&before);
		} else {
			contd__settings_origins(cfg, false);
			contd__ending_prepare_locked();
			contd__beginning_locked(false);
		}
		contd__interrupt.ops->configured();
		contd__pending_sig(); /* threads that sleep because the daemon looks for them may have to look now */
	}
	contd__fail_in(__func__, rc);
	contd__live_unlock();
	contd__daemon_hand_over();
	return rc;
}

int contd_init(const struct contd_config *cfg)
{
	int rc = 0;

	if (contd__load(&contd__live.forked))
		return contd__check_live();
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_init: not in a signal handler");
	rc = contd__live_lock();
	if (rc)
		return contd__fail_in(__func__, rc);
	if (contd__live.users && cfg)
		rc = contd__fail(
			-EALREADY,
			"contd_init: cfg must be NULL, because contd runs already; contd_configure() changes settings");
	else if (contd__live.users)
		contd__live_join_locked();
	else
		rc = start_locked(cfg);
	contd__live_unlock();
	return contd__fail_in(__func__, rc);
}

int contd_fini(void)
{
	struct contd__never_report never = {0};
	int rc = contd__check_live();
	uint32_t left;

	if (rc)
		return rc;
	if (contd__at_something_sig())
		return contd__fail(-EDEADLK, "contd_fini: not in a continuation, nor in the work of an executor");
	if (contd__on_watchdog())
		return contd__fail(-EDEADLK,
				   "contd_fini: not on the watchdog, because it waits for the watchdog to end");
	CONTD_TESTPOINT("live_checked");
	contd__live_lock_wait();
	rc = contd__check_live(); /* another thread's contd_fini() may have had the lock */
	if (rc || contd__live.users > 1) {
		if (!rc)
			contd__live_leave_locked();
		contd__live_unlock();
		return rc;
	}
	contd__daemon_end();
	contd__watchdog_stop();
	contd__asked_stop();
	CONTD_TESTPOINT("watchdog_ended");
	contd__thread_ensure();
	contd__ending_begins_locked();
	contd__interrupt.ops->stop();
	contd__watchdog_forget();
	contd__sources_fini();
	left = contd__groups_fini(&never);
	contd__ending_locked(left);
	contd__words_fini();
	contd__carried_fini();
	contd__wake_fini();
	contd__interrupt_fini();
	contd__live_fini_locked();
	contd__live_unlock();
	if (contd__says(CONTD_VERBOSE_WARNINGS))
		contd__never_say(&never, "contd_fini");
	return left > INT_MAX ? INT_MAX : (int)left;
}
