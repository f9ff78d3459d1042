/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Criterion (2.4) under gcc's thread sanitizer: Criterion maps its arena at 0x200000000000 + rand_r() * 2^24 and gives
 * up when the sanitizer refuses the address, as it does for all but a few ranges. This rand_r, linked into each
 * instrumented test, steers the arena into one of these, behind where executables lie (0x55...).
 * x86-64 only; Snaipe/Criterion issue 274.
 */
int rand_r(unsigned int *seed);

int rand_r(unsigned int *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return (int)(0x360000u + ((*seed >> 16) & 0x3fffu));
}
