/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/once.h"
#include "base/say.h"
#include "base/verbose.h"
#include "base/warn.h"

#define TEXT 2048 /* bytes of a warning: longer ones are cut */

void contd__warn(const char *format, ...)
{
	char text[TEXT];
	va_list arguments;

	if (!contd__says(CONTD_VERBOSE_WARNINGS))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	contd__say("%s", text);
}

void contd__tell_here(enum contd_verbose what, const char *about, const char *text)
{
	const char *between = strchr(text, '\n') ? "\n" : " ";
	int size = contd__job_size();

	if (!contd__says(what) || !contd__once_here(about ? about : text))
		return;
	if (size == 1 || contd__job_rank() < 0)
		contd__say("%s", text);
	else if (size < 0)
		contd__say("%s%s(said once for all ranks of the job on this host)", text, between);
	else
		contd__say("%s%s(said once for all ranks of the job on this host; the job has %d)", text, between,
			   size);
}

void contd__warn_here(const char *format, ...)
{
	char text[TEXT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	contd__tell_here(CONTD_VERBOSE_WARNINGS, NULL, text);
}
