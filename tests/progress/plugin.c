/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded by closure.c, whose functions its constructor and its destructor call. */
extern void plugin_begins(void), plugin_ends(void);
void plugin_computes(unsigned n);

__attribute__((constructor)) static void begins(void)
{
	plugin_begins();
}

__attribute__((destructor)) static void ends(void)
{
	plugin_ends();
}

void plugin_computes(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}
