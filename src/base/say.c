/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <contd/contd.h>

#include "base/memory.h"
#include "base/say.h"

#define FEW 1024 /* bytes that need no memory */

/* One by one: without memory the lines of other ranks may come between these. */
static void say_each(const char *text)
{
	size_t length = strcspn(text, "\n");

	contd__say_sig(text, length);
	if (text[length])
		say_each(text + length + 1);
}

/* Several lines in one piece: contd__say_sig() adds the beginning of the first, and the newline of the last. */
static void say_all(const char *text, size_t length, size_t lines)
{
	char beginning[SAY_BEGINNING], *all, *to;
	size_t each = contd__say_beginning_sig(beginning);

	all = to = contd__zalloc(length + 1 + (lines - 1) * each);
	if (!all) {
		say_each(text);
		return;
	}
	for (; *text; text++) {
		*to++ = *text;
		if (*text == '\n') {
			memcpy(to, beginning, each);
			to += each;
		}
	}
	contd__say_sig(all, (size_t)(to - all));
	free(all);
}

static void say(const char *text, size_t length)
{
	size_t lines = 1;

	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	if (lines == 1)
		contd__say_sig(text, length);
	else
		say_all(text, length, lines);
}

/* For the headers in C++. */
void contd__say_text(const char *text)
{
	contd__say("%s", text);
}

void contd__say(const char *format, ...)
{
	char few[FEW], *text = few;
	int length, saved = errno;
	va_list arguments;

	va_start(arguments, format);
	length = vsnprintf(few, sizeof(few), format, arguments);
	va_end(arguments);
	if (length >= FEW && (text = contd__zalloc((size_t)length + 1)) != NULL) {
		va_start(arguments, format);
		vsnprintf(text, (size_t)length + 1, format, arguments);
		va_end(arguments);
	}
	if (length >= 0 && text)
		say(text, (size_t)length);
	else if (length >= 0)
		contd__say("%.*s\n(the end of this message is missing: out of memory)", FEW / 2, few);
	if (text != few)
		free(text);
	errno = saved;
}
