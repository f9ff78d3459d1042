/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dump/text.h"

static void write_bytes(struct contd__dump_text *t, size_t size)
{
	size_t done = 0;

	while (done < size && !t->error) {
		ssize_t n = write(t->fd, t->bytes + done, size - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			t->error = EIO;
		else if (errno != EINTR && (errno != EAGAIN || !t->wait || !t->wait(t->fd)))
			t->error = errno;
	}
	t->used -= size;
	memmove(t->bytes, t->bytes + size, t->used);
}

/* Whole lines, as far as there are any: other processes write to the same place. */
static void write_lines(struct contd__dump_text *t)
{
	const char *end = memrchr(t->bytes, '\n', t->used);

	write_bytes(t, end ? (size_t)(end + 1 - t->bytes) : t->used);
}

static void put(struct contd__dump_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct contd__dump_text *t, const char *format, ...)
{
	char piece[512];
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(piece, sizeof(piece), format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(piece))
		n = sizeof(piece) - 1;
	while (t->used + (size_t)n > sizeof(t->bytes))
		write_lines(t);
	memcpy(t->bytes + t->used, piece, (size_t)n);
	t->used += (size_t)n;
}

/* Does a character begin here that a terminal acts on? They come from the names of files and functions, and from memory
 * that is damaged. */
static bool is_control(const unsigned char *at)
{
	return *at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0);
}

static void put_visible(struct contd__dump_text *t, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at) {
		size_t n = 0;

		while (at[n] && !is_control(at + n))
			n++;
		put(t, "%.*s", (int)n, (const char *)at);
		at += n;
		/* Two bytes begin with 0xc2. */
		for (n = *at == 0xc2 ? 2 : *at != 0; n; n--)
			put(t, "\\x%02x", *at++);
	}
}

static void list(struct contd__dump_out *o, const char *key, const char *kind)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;

	(void)key;
	if (t->depth < DUMP_DEPTH)
		t->kind[t->depth] = kind;
	t->depth++;
}

static void line_begins(struct contd__dump_text *t, const char *kind)
{
	put(t, "\n%s%*s%s", t->beginning, (int)(2 * t->objects), "", kind);
	t->fields = 0;
}

static void object(struct contd__dump_out *o, const char *key)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;
	const char *kind = t->depth && t->depth <= DUMP_DEPTH ? t->kind[t->depth - 1] : NULL;

	line_begins(t, key ? key : kind ? kind : "");
	if (t->depth < DUMP_DEPTH)
		t->kind[t->depth] = NULL;
	t->depth++;
	t->objects++;
}

static void end(struct contd__dump_out *o)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;

	t->depth--;
	if (t->depth >= DUMP_DEPTH || !t->kind[t->depth])
		t->objects--;
}

/* "events_left" reads "events left"; "ready_ns" has a unit that the value says. */
static void key_begins(struct contd__dump_text *t, const char *key, size_t length)
{
	char words[64];

	if (length >= sizeof(words))
		length = sizeof(words) - 1;
	for (size_t i = 0; i < length; i++)
		words[i] = key[i] == '_' || is_control((const unsigned char *)key + i) ? ' ' : key[i];
	words[length] = 0;
	put(t, "%s %s", t->fields++ ? "," : ":", words);
}

static void text(struct contd__dump_out *o, const char *key, const char *value)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;

	/* The sentence of a problem, and the name of a part, need no key. */
	if (t->fields || (strcmp(key, "text") != 0 && strcmp(key, "name") != 0))
		key_begins(t, key, strlen(key));
	else if (t->fields++ == 0)
		put(t, ":");
	put(t, " ");
	put_visible(t, value);
}

static void number(struct contd__dump_out *o, const char *key, uint64_t value)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;

	key_begins(t, key, strlen(key));
	put(t, " %llu", (unsigned long long)value);
}

static void thousandths(struct contd__dump_out *o, const char *key, uint64_t value)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;

	key_begins(t, key, strlen(key));
	put(t, " %llu.%03u", (unsigned long long)(value / 1000), (unsigned)(value % 1000));
}

static void address(struct contd__dump_out *o, const char *key, uint64_t value)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;

	key_begins(t, key, strlen(key));
	put(t, " 0x%llx", (unsigned long long)value);
}

static void flag(struct contd__dump_out *o, const char *key, bool value)
{
	if (value)
		key_begins((struct contd__dump_text *)o, key, strlen(key));
}

static void duration(struct contd__dump_out *o, const char *key, uint64_t ns)
{
	struct contd__dump_text *t = (struct contd__dump_text *)o;
	size_t length = strlen(key);

	key_begins(t, key, length > 3 ? length - 3 : length);
	if (ns >= 1000000000)
		put(t, " %llu.%03u s", (unsigned long long)(ns / 1000000000), (unsigned)(ns / 1000000 % 1000));
	else if (ns >= 1000000)
		put(t, " %u.%03u ms", (unsigned)(ns / 1000000), (unsigned)(ns / 1000 % 1000));
	else
		put(t, " %u.%03u us", (unsigned)(ns / 1000), (unsigned)(ns % 1000));
}

void contd__dump_text_begin(struct contd__dump_text *t, int fd, bool beginnings, bool (*wait)(int fd))
{
	t->out = (struct contd__dump_out){list, object, end, text, number, thousandths, address, flag, duration};
	t->fd = fd;
	t->wait = wait;
	t->error = 0;
	t->depth = t->objects = t->fields = 0;
	t->used = 0;
	memset(t->beginning, 0, sizeof(t->beginning));
	if (beginnings)
		contd__say_beginning_sig(t->beginning);
	put(t, "%sdump", t->beginning);
}

int contd__dump_text_end(struct contd__dump_text *t)
{
	put(t, "\n");
	write_bytes(t, t->used);
	return -t->error;
}
