/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>

#include "rcu/reader.h"

#ifdef CONTD_TSAN
char contd__tsan_grace;
#endif

/* The program uses liburcu-memb itself, and had registered the thread: it unregisters it, too. liburcu ends a process
 * that registers a thread twice. */
static __thread bool theirs __attribute__((tls_model("initial-exec")));

void contd__reader_register(void)
{
	sigset_t all, before;

	/* liburcu holds a mutex while it registers; a handler in between would find its registry half made. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	theirs = URCU_TLS(urcu_memb_reader).registered;
	if (!theirs)
		urcu_memb_register_thread();
	/* The library's own thread-local data exists from here on, even if it was loaded late. */
	urcu_memb_read_lock();
	urcu_memb_read_unlock();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void contd__reader_still(void)
{
	if (theirs && !URCU_TLS(urcu_memb_reader).registered)
		contd__reader_register();
}

void contd__reader_unregister(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!theirs)
		urcu_memb_unregister_thread();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void contd__grace_period(void)
{
	urcu_memb_synchronize_rcu();
	CONTD_TSAN_ACQUIRE();
}
