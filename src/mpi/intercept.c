/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi/intercept.h"
#include "mpi/library.h"

struct contd__next contd__next_pmpi, contd__next_mpi, contd__next_tool;
struct contd__library contd__library_mpi, contd__library_fortran;
uint32_t contd__intercept_mode = MODE_RECORD;

/*
 * The tools: what comes next by an MPI_ name, and is not what MPI's own library has, and what it needs. (MPI_ names may
 * be in a library in front of that of the PMPI_ names; then nothing is found, and taken for a tool.)
 */
static void find_tool(void *mpi)
{
	Dl_info info;
	void *library;

	if (!dladdr(mpi, &info) || !(library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
		return;
#define FIND(name, parameters, arguments) \
	{ \
		void *own = dlsym(library, "MPI_" #name); \
\
		contd__next_tool.name = own && own != (void *)contd__next_mpi.name ? contd__next_mpi.name : NULL; \
	}
	CONTD_INTERCEPTED(FIND)
	CONTD_ASKED(FIND)
	CONTD_GENERAL(FIND)
#undef FIND
	dlclose(library);
}

/*
 * contd stands behind MPI if only a tool is preloaded that is linked with it, or if a plug-in brings it. Then its own
 * calls of MPI go to the library that the name PMPI_Test leads to. NULL: there is none.
 */
static void *library_before(void)
{
	void *found = dlsym(RTLD_DEFAULT, "PMPI_Test");
	Dl_info own, other;

	if (!found || !dladdr(found, &other) || !dladdr((void *)library_before, &own) ||
	    other.dli_fbase == own.dli_fbase)
		return NULL;
	return dlopen(other.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* Before main and before any MPI call of the program's. */
__attribute__((constructor)) static void resolve(void)
{
	void *library = dlsym(RTLD_NEXT, "PMPI_Test") ? NULL : library_before(), *from = library ? library : RTLD_NEXT;
	uintptr_t address;

#define RESOLVE(name, parameters, arguments) \
	contd__next_mpi.name = (int(*) parameters)dlsym(from, "MPI_" #name); \
	contd__next_pmpi.name = (int(*) parameters)dlsym(from, "PMPI_" #name);
	CONTD_INTERCEPTED(RESOLVE)
	CONTD_ASKED(RESOLVE)
	CONTD_GENERAL(RESOLVE)
#undef RESOLVE
	if (library)
		dlclose(library); /* the program has it */
	address = (uintptr_t)contd__next_pmpi.Test;
	if (!address)
		return;
	contd__library_find(&contd__library_mpi, address);
	contd__library_find(&contd__library_fortran, (uintptr_t)dlsym(RTLD_DEFAULT, "mpi_grequest_start_"));
	find_tool((void *)address);
}

/* What to do about it. The caller holds a lock. */
static const char *not_before(const char *library)
{
	static char text[8192];
	const char *preloaded = getenv("LD_PRELOAD");

	if (!preloaded)
		preloaded = "";
	snprintf(
		text, sizeof(text),
		"calls of MPI do not come to contd: link the program itself with contd-mpi, before the MPI library, or "
		"preload it: LD_PRELOAD=%s%s%s",
		preloaded, *preloaded ? ":" : "", library);
	return text;
}

/*
 * Does a call by a PMPI_ name come here? Asked is which library the name leads to: our own use of the name, too, may
 * lead to MPI's function. Where contd is part of the program itself it cannot be otherwise.
 */
const char *contd__intercept_refuses(void)
{
	void *found = dlsym(RTLD_DEFAULT, "PMPI_Test");
	Dl_info own, other;

	if (!contd__intercept_knows_mpi())
		return "the MPI library does not stand behind contd: name contd-mpi before it when linking, and let it "
		       "be a shared "
		       "library";
	if (!dladdr((void *)contd__intercept_refuses, &own))
		return NULL;
	if (dladdr(found, &other) && other.dli_fbase == own.dli_fbase)
		return NULL;
	if (dladdr(dlsym(RTLD_DEFAULT, "main"), &other) && other.dli_fbase == own.dli_fbase)
		return NULL;
	if (found != (void *)contd__next_pmpi.Test)
		return NULL; /* a tool before us, which goes on to us */
	return not_before(own.dli_fname);
}

bool contd__intercept_knows_mpi(void)
{
	return contd__next_pmpi.Test && contd__next_mpi.Test;
}
