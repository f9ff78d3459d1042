/* SPDX-License-Identifier: BSD-3-Clause */
/* One caller never makes this call, another one may. */
/* rejected: locks() uses pthread_mutex_lock */
/* rejected: reached by handler -> other -> locks */
/* allow: root handler handler # the example's */
/* allow: never one locks # for the example's sake */
#include <pthread.h>

#include "example.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static NOINLINE void locks(void)
{
	pthread_mutex_lock(&lock);
	others_data = 1;
}

static NOINLINE void one(int n)
{
	if (n < 0)
		locks();
	others_data = 2;
}

static NOINLINE void other(int n)
{
	if (n > 0)
		locks();
	others_data = 3;
}

void handler(int signo)
{
	one(signo);
	other(signo);
	others_data = 4;
}
