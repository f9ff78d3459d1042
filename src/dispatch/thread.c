/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "dispatch/dispatcher.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"
#include "rcu/reader.h"

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static int exit_key_refused; /* errno's value */

static void thread_exit(void *self)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__dispatch.signal_ops);

	(void)self;
	if (contd__load(&contd__dispatch.forked))
		return;
	if (ops)
		ops->detach_self();
	contd__stats_thread_leave();
	contd__self.registered = 0;
	contd__reader_unregister();
}

static void make_key(void)
{
	exit_key_refused = pthread_key_create(&exit_key, thread_exit);
}

int contd__threads_start(void)
{
	pthread_once(&exit_once, make_key);
	return exit_key_refused ? contd__fail(-exit_key_refused, "contd_init: no key for thread-specific data to be had "
								 "(pthread_key_create): the program has taken all of them")
				: 0;
}

void contd__thread_register(void)
{
	contd__reader_register();
	contd__stats_thread_enter();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__self.registered = 1; /* a handler may use RCU from here on */
	pthread_once(&exit_once, make_key);
	/* Without memory for the key's value the thread stays listed after its end: better to say so at once. It cannot
	 * happen for one of the first 32 keys (they live in the thread's descriptor). */
	if (!exit_key_refused)
		pthread_setspecific(exit_key, &contd__self);
}
