/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>

#include "base/atomic.h"
#include "base/error.h"
#include "dispatch/source.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for registering */

int contd__source_register(struct contd__source *source)
{
	uint32_t n;
	int rc = 0;

	pthread_mutex_lock(&lock);
	n = contd__sources.count;
	if (n == SOURCES_MAX) {
		rc = contd__fail(-EAGAIN, "contd has too many sources: the kinds of things that it drives are limited "
					  "to those of its libraries");
	} else {
		contd__sources.source[n] = source;
		/* Release: pairs with the acquires of the threads that walk the sources (source_drive.c). */
		contd__store_release(&contd__sources.count, n + 1);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void contd__sources_fini(void)
{
	contd__store_release(&contd__sources.count, 0);
}
