/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>

#include "base/cancel.h"
#include "base/error.h"
#include "dispatch/live_lock.h"
#include "dispatch/thread.h"
#include "dispatch/watchdog.h"

static pthread_mutex_t live_lock =
	PTHREAD_MUTEX_INITIALIZER; /* init, fini and settings; other locks are taken inside */
static int cancel_before;          /* of its holder, which waits for threads, and closes files */

static void locked(void)
{
	cancel_before = contd__cancel_off();
}

/*
 * Its holder may wait for the daemon's or the watchdog's thread to end, or for handlers of other threads. So a callback
 * that runs there does not wait for it.
 */
int contd__live_lock(void)
{
	if (contd__on_thread_sig() && !contd__on_watchdog())
		pthread_mutex_lock(&live_lock);
	else if (pthread_mutex_trylock(&live_lock))
		return contd__fail(
			-EBUSY, "another thread is in contd_init, contd_configure or contd_fini; call it later, or not "
				"in a continuation that a handler or the daemon runs, or on the watchdog");
	locked();
	return 0;
}

void contd__live_unlock(void)
{
	int before = cancel_before;

	pthread_mutex_unlock(&live_lock);
	contd__cancel_as(before);
}

void contd__live_lock_wait(void)
{
	pthread_mutex_lock(&live_lock);
	locked();
}

bool contd__live_lock_free(void)
{
	if (pthread_mutex_trylock(&live_lock))
		return false;
	pthread_mutex_unlock(&live_lock);
	return true;
}
