/* SPDX-License-Identifier: BSD-3-Clause */
/* A weak import is called if another library defines it. */
/* rejected: bad_weak_hook */

extern void bad_weak_hook(void) __attribute__((weak));

void bad_weak(void);

void bad_weak(void)
{
	if (bad_weak_hook)
		bad_weak_hook();
}
