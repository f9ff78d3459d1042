/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next function of that name, behind this library's own. It is looked up before main(), but constructors of other
 * libraries may call before that. Looking up twice gives the same.
 */
#ifndef CONTD_PROGRESS_NEXT_H
#define CONTD_PROGRESS_NEXT_H

#include <dlfcn.h>

#include "base/atomic.h"

#define NEXT_OF(name) \
	({ \
		static __typeof__(&name) found; \
		if (__builtin_expect(!contd__load(&found), 0)) \
			contd__store(&found, (__typeof__(found))dlsym(RTLD_NEXT, #name)); \
		contd__load(&found); \
	})

#endif
