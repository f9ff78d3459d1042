/* SPDX-License-Identifier: BSD-3-Clause */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "progress/next.h"
#include "progress/opened.h"

/* A note that finds nothing loaded may have come before the loader was done, on another thread. */
#define TRIES 4u

struct note {
	struct note *next;
	uintptr_t caller;
	uint32_t tries; /* to find it, which are left */
	char path[];
};

static struct note *notes; /* grows at its head */
static uint32_t lost;

void contd__opened_note(const char *path, uintptr_t caller)
{
	/* Acquire: with the compare-and-swap below, on another thread. */
	struct note *first = contd__load_acquire(&notes), *n;
	size_t size = strlen(path) + 1;

	for (n = first; n; n = n->next)
		if (n->caller == caller && !strcmp(n->path, path)) {
			contd__store(&n->tries, TRIES);
			return;
		}
	n = malloc(sizeof(*n) + size);
	if (!n) {
		contd__store(&lost, 1);
		return;
	}
	n->caller = caller;
	n->tries = TRIES;
	memcpy(n->path, path, size);
	do
		n->next = first;
	while (!contd__cas(&notes, &first, n));
}

struct contd__opened contd__opened_each(bool (*each)(uintptr_t caller, const void *dynamic))
{
	struct contd__opened result = {contd__load(&lost) != 0, false, 0};

	for (struct note *n = contd__load_acquire(&notes); n; n = n->next) {
		uint32_t tries = contd__load(&n->tries);
		struct link_map *map;
		void *library;

		/* If it is noted again meanwhile, this fails, and it is looked at the next time. */
		if (!tries || !contd__cas(&n->tries, &tries, tries - 1))
			continue;
		/* The loader knows a library by each name that it was asked for. */
		library = NEXT_OF(dlopen)(n->path, RTLD_LAZY | RTLD_NOLOAD);
		if (!library) {
			result.unfound += tries > 1;
			continue;
		}
		if (dlinfo(library, RTLD_DI_LINKMAP, &map) || each(n->caller, map->l_ld))
			contd__cas(&n->tries, &(uint32_t){tries - 1}, 0);
		else
			result.unknown = true;
		NEXT_OF(dlclose)(library);
	}
	return result;
}
