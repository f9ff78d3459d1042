/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "base/atomic.h"
#include "base/error.h"
#include "dispatch/live.h"
#include "dispatch/thread.h"
#include "rcu/reader.h"
#include "rcu/table.h"

void (*contd__thread_end)(void);

static pthread_key_t exit_key;
static uint32_t exit_key_made;

static void thread_exit(void *self)
{
	void (*end)(void) = contd__load_acquire(&contd__thread_end);

	(void)self;
	if (contd__load(&contd__live.forked))
		return;
	contd__reader_still();
	if (end)
		end();
	contd__threads_leave();
	contd__self.registered = 0;
	contd__reader_unregister();
}

int contd__threads_start(void)
{
	static const struct contd__ordinary ordinary = {contd__thread_register, contd__table_grow};
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int err = 0;

	/* Acquire: pairs with the release below. */
	if (contd__load_acquire(&exit_key_made))
		return 0;
	pthread_mutex_lock(&lock);
	if (!exit_key_made) {
		contd__ordinary = &ordinary;
		err = pthread_key_create(&exit_key, thread_exit);
		if (!err)
			contd__store_release(&exit_key_made, 1);
	}
	pthread_mutex_unlock(&lock);
	return err ? contd__fail(
			     -err,
			     "contd_init: cannot make a key for thread-specific data (pthread_key_create): the program "
			     "has taken all of them; delete some")
		   : 0;
}

void contd__thread_register(void)
{
	contd__reader_register();
	contd__threads_enter();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__self.registered = 1; /* a handler may use RCU from here on */
	/* Without memory for the key's value the thread would stay listed after its end. That cannot happen for one of
	 * the first 32 keys: they live in the thread's descriptor. */
	if (contd__threads_start() == 0)
		pthread_setspecific(exit_key, &contd__self);
}
