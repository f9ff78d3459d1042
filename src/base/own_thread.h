/* SPDX-License-Identifier: BSD-3-Clause */
/* contd's own threads. */
#ifndef CONTD_BASE_OWN_THREAD_H
#define CONTD_BASE_OWN_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * pthread_create(3). The program's signals are blocked on contd's threads. Signals that an instruction raises are
 * not: if they were blocked, the kernel would end the program without its handler.
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
