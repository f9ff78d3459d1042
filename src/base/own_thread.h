/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of contd's own. */
#ifndef CONTD_BASE_OWN_THREAD_H
#define CONTD_BASE_OWN_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * pthread_create(3). No signal of the program's is to be handled on a thread that it does not know of; but those that
 * an instruction raises, in a callback say: blocked, they would end the program, and its handler would not run.
 */
static inline int contd__own_thread_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t blocked, before;
	int rc;

	sigfillset(&blocked);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

#endif
