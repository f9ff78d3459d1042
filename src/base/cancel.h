/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that is being cancelled (pthread_cancel(3)) does not end in the midst of a call of contd's, with a lock held
 * or a note read and not acted on: around what has cancellation points. Ordinary threads; nests.
 */
#ifndef CONTD_BASE_CANCEL_H
#define CONTD_BASE_CANCEL_H

#include <pthread.h>

static inline int contd__cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void contd__cancel_as(int before)
{
	pthread_setcancelstate(before, &before);
}

#endif
