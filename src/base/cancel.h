/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pthread_cancel(3) must not end a thread inside a call of contd's: a lock would stay held, or an event would be read
 * and not acted on. So calls disable cancellation around their cancellation points. Ordinary threads; nests.
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
