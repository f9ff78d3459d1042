/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "dispatch/dispatcher.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"
#include "rcu/reader.h"

static pthread_key_t exit_key;
static uint32_t exit_key_made;

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

int contd__threads_start(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int err = 0;

	/* Acquire: pairs with the release below. */
	if (contd__load_acquire(&exit_key_made))
		return 0;
	pthread_mutex_lock(&lock);
	if (!exit_key_made) {
		err = pthread_key_create(&exit_key, thread_exit);
		if (!err)
			contd__store_release(&exit_key_made, 1);
	}
	pthread_mutex_unlock(&lock);
	return err ? contd__fail(-err, "contd_init: no key for thread-specific data to be had (pthread_key_create): the program "
				       "has taken all of them")
		   : 0;
}

void contd__thread_register(void)
{
	contd__reader_register();
	contd__stats_thread_enter();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__self.registered = 1; /* a handler may use RCU from here on */
	/* Without memory for the key's value the thread stays listed after its end: better to say so at once. It cannot
	 * happen for one of the first 32 keys (they live in the thread's descriptor). */
	if (contd__threads_start() == 0)
		pthread_setspecific(exit_key, &contd__self);
}
