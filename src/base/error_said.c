/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"

/*
 * Texts that were put together. Their parts are constants of the libraries and of the public headers, so there are only
 * so many, and what was returned once stays. No lock: the child of a fork asks too, and another thread of its parent's
 * may have had it.
 */
struct said {
	const struct said *next;
	char whole[];
};

static const struct said *all;

/* Behind the name of a call at the beginning of a text, such as "contd_group_create: ". */
static const char *without_name(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	bool is_call = strncmp(text, "contd_", 6) == 0 || strncmp(text, "MPI", 3) == 0;

	return is_call && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static bool is(const struct said *s, const char *call, const char *what)
{
	size_t n = strlen(call);

	return strncmp(s->whole, call, n) == 0 && strncmp(s->whole + n, ": ", 2) == 0 &&
	       strcmp(s->whole + n + 2, what) == 0;
}

/* Errors come where there is no memory, too: room for the first hundred texts is there. */
static struct said *room(size_t bytes)
{
	static _Alignas(struct said) char few[16384];
	static size_t used;
	size_t size = (sizeof(struct said) + bytes + 15) / 16 * 16, at = contd__load(&used);

	while (at + size <= sizeof(few))
		if (contd__cas(&used, &at, at + size))
			return (struct said *)(void *)(few + at);
	return contd__zalloc(size);
}

static const struct said *put_together(const char *call, const char *what)
{
	size_t name = strlen(call), rest = strlen(what) + 1;
	struct said *s = room(name + 2 + rest);

	if (!s)
		return NULL;
	memcpy(s->whole, call, name);
	memcpy(s->whole + name, ": ", 2);
	memcpy(s->whole + name + 2, what, rest);
	s->next = contd__load(&all);
	/* Its own fields are before it in the list; pairs with the acquire in contd__error_said. Two threads may both
	 * add one text. */
	while (!contd__cas(&all, &s->next, s))
		;
	return s;
}

int contd__fails(const char *call, int err, const char *text)
{
	if (err && text)
		contd__fail(err, text);
	return contd__fail_in(call, err);
}

const char *contd__error_said(void)
{
	const char *call = contd__error_call, *text = contd__error_text, *what;
	const struct said *s;

	if (!text || !call)
		return text ? text : "";
	what = without_name(text);
	/* Acquire: pairs with the exchange in put_together. */
	for (s = contd__load_acquire(&all); s; s = s->next)
		if (is(s, call, what))
			return s->whole;
	s = put_together(call, what);
	return s ? s->whole : text;
}
