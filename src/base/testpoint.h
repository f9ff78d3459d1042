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
		if (contd__load(&contd__testpoint_hook)) \
			contd__load (&contd__testpoint_hook)(name); \
	} while (0)
#else
#define CONTD_TESTPOINT(name) ((void)0)
#endif

#endif
