/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "command/json.h"

#define LEVELS 16

static char closing[LEVELS];
static unsigned depth;
static bool first = true;

/* How many bytes of a character of UTF-8 begin here; 0: none does. */
static size_t character(const unsigned char *at)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
	uint32_t code = n ? *at & (0xff >> (n + 1)) : 0;

	if (n < 2)
		return n;
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

static void put(const char *text)
{
	putchar('"');
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		size_t n = character(at);

		if (n == 0)
			fputs("\\ufffd", stdout);
		else if (*at == '"' || *at == '\\')
			printf("\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f)
			printf("\\u%04x", *at);
		else
			fwrite(at, 1, n, stdout);
		at += n ? n : 1;
	}
	putchar('"');
}

static void begin(const char *key)
{
	if (depth)
		printf("%s\n%*s", first ? "" : ",", (int)(2 * depth), "");
	first = false;
	if (key) {
		put(key);
		fputs(": ", stdout);
	}
}

static void open(const char *key, char opening, char end)
{
	begin(key);
	putchar(opening);
	closing[depth++] = end;
	first = true;
}

void json_object(const char *key)
{
	open(key, '{', '}');
}

void json_array(const char *key)
{
	open(key, '[', ']');
}

void json_end(void)
{
	depth--;
	if (!first)
		printf("\n%*s", (int)(2 * depth), "");
	putchar(closing[depth]);
	first = false;
	if (!depth)
		putchar('\n');
}

void json_text(const char *key, const char *value)
{
	begin(key);
	if (value)
		put(value);
	else
		fputs("null", stdout);
}

void json_bool(const char *key, bool value)
{
	begin(key);
	fputs(value ? "true" : "false", stdout);
}

void json_number(const char *key, const char *value)
{
	const char *at = value ? value : "";
	size_t digits = strspn(at, "0123456789"), behind;
	bool good = digits && (digits == 1 || *at != '0');

	at += digits;
	if (good && *at == '.') {
		behind = strspn(++at, "0123456789");
		good = behind > 0;
		at += behind;
	}
	begin(key);
	fputs(good && !*at ? value : "null", stdout);
}
