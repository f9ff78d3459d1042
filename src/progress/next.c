/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <contd/contd.h>

#include "progress/next.h"

extern struct contd__next __start_contd_next[], __stop_contd_next[];

static struct contd__next error_of_loader CONTD__NEXT_SECTION = {"dlerror", NULL};

/* An error of the program's that the loader does not have any more; and the last one that the program was given. */
static __thread char *kept, *given __attribute__((tls_model("initial-exec")));

static char *next_error(void)
{
	char *(*next)(void) = (char *(*)(void))contd__load(&error_of_loader.found);

	return next ? next() : NULL;
}

char *contd__error_take(void)
{
	const char *text = next_error();

	return text ? strdup(text) : NULL;
}

void contd__error_give(char *text)
{
	next_error();
	if (text) {
		free(kept);
		kept = text;
	}
}

void contd__error_forget(void)
{
	free(kept);
	kept = NULL;
}

CONTD_API char *dlerror(void)
{
	char *text;

	if (!contd__load(&error_of_loader.found))
		contd__next_find(&error_of_loader);
	text = next_error();
	if (text || !kept) {
		contd__error_forget();
		return text;
	}
	free(given);
	given = kept;
	kept = NULL;
	return given;
}

void contd__next_find(struct contd__next *next)
{
	char *error = contd__error_take();

	contd__store(&next->found, dlsym(RTLD_NEXT, next->name));
	contd__error_give(error);
}

void contd__next_find_fortran(struct contd__next *next)
{
	static const char *const libraries[] = {"libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpichfort.so.12"};
	char *error;

	contd__next_find(next);
	error = contd__error_take();
	for (size_t i = 0; !contd__load(&next->found) && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		/* Not given back: what is found must stay. */
		void *library = NEXT_OF(dlopen)(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library)
			contd__store(&next->found, dlsym(library, next->name));
	}
	contd__error_give(error);
}

__attribute__((constructor)) static void find_all(void)
{
	contd__next_find(&error_of_loader);
	for (struct contd__next *next = __start_contd_next; next < __stop_contd_next; next++)
		contd__next_find(next);
}
