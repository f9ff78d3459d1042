/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock that is taken by a jump instead of a call. */
/* rejected: last() uses pthread_mutex_lock */
/* allow: root handler handler # the example's */
#include <pthread.h>

#include "example.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int last(int n);
NOINLINE int last(int n)
{
	others_data = n;
	return pthread_mutex_lock(&lock);
}

void handler(int signo)
{
	last(signo);
}
