/* SPDX-License-Identifier: BSD-3-Clause */
/* The interrupted thread may hold the mutex. */
/* rejected: pthread_mutex_lock */
#include <pthread.h>

void bad_mutex(pthread_mutex_t *mutex);

void bad_mutex(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
}
