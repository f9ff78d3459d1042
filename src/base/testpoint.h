/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_BASE_TESTPOINT_H
#define CONTD_BASE_TESTPOINT_H

#include "base/atomic.h"

/*
 * Test points: after each side effect that a race could split, builds for tests call a hook there, from which a test
 * raises a signal or runs the other side of the race. Other builds contain nothing.
 */
#ifdef CONTD_TESTPOINTS
extern void (*contd__testpoint_hook)(const char *name);
#define CONTD_TESTPOINT(name) \
	do { \
		/* Once: a test that ends takes it away while other threads come by. */ \
		void (*testpoint_hook)(const char *) = contd__load(&contd__testpoint_hook); \
		if (testpoint_hook) \
			testpoint_hook(name); \
	} while (0)
#else
#define CONTD_TESTPOINT(name) ((void)0)
#endif

#endif
