/* SPDX-License-Identifier: BSD-3-Clause */
/* contd .probe FD LIBRARY WHAT: the process that has a library of contd's preloaded, and tells what it finds. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/measured.h"
#include "command/probed.h"
#include "command/status.h"
#include "command/tell.h"
#include "fabric/providers.h"

/* ---------------------------------------------------------------------------------------------------------- MPI --- */

/* MPI_THREAD_SINGLE and its kin. */
static const struct levels {
	const char *mpi;
	int level[4];
} levels[] = {{"openmpi", {0, 1, 2, 3}}, {"mpich", {0, 1, 2, 3}}, {"abi", {0, 1024, 2048, 4096}}};

static void tell_level(const struct levels *l, int level)
{
	static const char *const names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
					    "MPI_THREAD_MULTIPLE"};

	for (int i = 0; i < 4; i++)
		if (l->level[i] == level)
			tell("level", "%s", names[i]);
}

static void probed_mpi(const char *name, bool init)
{
	typedef int get_version(char *, int *);
	typedef int init_thread(int *, char ***, int, int *);
	typedef int finalize(void);
	typedef const char *ask_backend(const char **);
	typedef const char *ask_text(void);
	static char version[TOLD];
	const struct levels *l = levels;
	const char *backend, *steps = "";
	ask_backend *backend_of = (ask_backend *)needed("contd_mpi_backend", NULL);
	ask_text *text = (ask_text *)needed("contd_error_text", NULL);
	void *address = needed("PMPI_Get_library_version", NULL);
	int length = 0, level = -1, rc;
	Dl_info where;

	while (strcmp(l->mpi, name) != 0)
		l++;
	if (dladdr(address, &where))
		tell("object", "%s", where.dli_fname);
	tell("doing", "MPI_Get_library_version");
	rc = ((get_version *)needed("MPI_Get_library_version", NULL))(version, &length);
	if (!rc) {
		while (length > 0 && strchr(" \n", version[length - 1]))
			version[--length] = '\0';
		tell("version", "%s", version);
	}
	if (!init)
		return;
	tell("doing", "MPI_Init_thread");
	rc = ((init_thread *)needed("MPI_Init_thread", NULL))(NULL, NULL, l->level[3], &level);
	if (rc) {
		tell("error", "MPI_Init_thread failed with error %d", rc);
		return;
	}
	tell_level(l, level);
	tell("doing", "contd_mpi_backend");
	backend = backend_of(&steps);
	if (backend) {
		tell("backend", "%s", backend);
		tell("steps", "%s", steps);
	} else {
		tell("error", "%s", text());
	}
	tell("doing", "MPI_Finalize");
	rc = ((finalize *)needed("MPI_Finalize", NULL))();
	if (rc)
		tell("error", "MPI_Finalize failed with error %d", rc);
}

/* ---------------------------------------------------------------------------------------------------- libfabric --- */

#define FABRIC "CONTD_PRIVATE_FABRIC_0.1"

static void tell_provider(const char *name, void *data)
{
	(void)data;
	tell("provider", "%s", name);
}

static void probed_fabric(const char *provider)
{
	typedef int list(void (*)(const char *, void *), void *);
	typedef void try(const char *, struct contd__fabric_trial *);
	typedef uint32_t version(void);
	list *providers = (list *)needed("contd__fabric_providers", FABRIC);
	try *opens = (try *)needed("contd__fabric_try", FABRIC);
	version *version_of = (version *)needed("contd__fabric_version", FABRIC);
	struct contd__fabric_trial trial;

	forget_settings();
	if (!provider) {
		uint32_t v = version_of();
		int rc;

		tell("version", "%u.%u", v >> 16, v & 0xffff);
		tell("doing", "fi_getinfo");
		rc = providers(tell_provider, NULL);
		if (rc)
			tell("error", "fi_getinfo: error %d", rc);
		return;
	}
	tell("doing", "contd_init");
	if (((int (*)(const void *))needed("contd_init", NULL))(NULL)) {
		tell("error", "%s", ((const char *(*)(void))needed("contd_error_text", NULL))());
		return;
	}
	tell("doing", "opening a domain and a queue");
	opens(provider, &trial);
	tell("version", "%u.%u", trial.version >> 16, trial.version & 0xffff);
	if (trial.rdm)
		tell("endpoint", "rdm");
	if (trial.msg)
		tell("endpoint", "msg");
	if (trial.dgram)
		tell("endpoint", "dgram");
	if (trial.works) {
		tell("domain", "%s", trial.domain);
		tell("descriptor", "%d", trial.descriptor);
		tell("works", "1");
	} else {
		tell("why", "%s", trial.why);
	}
}

/* ---------------------------------------------------------------------------------------------------------- all --- */

int command_probe(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[3] : "", *more = argc > 4 ? argv[4] : NULL;

	if (argc < 4)
		return STATUS_USAGE;
	if (tell_begin(atoi(argv[1]), argv[2]))
		return STATUS_USAGE;
	if (!strcmp(what, "core")) {
		probed_core();
	} else if (!strcmp(what, "tick")) {
		forget_settings();
		probed_tick();
	} else if (!strcmp(what, "ring")) {
		forget_settings();
		probed_ring();
	} else if (!strcmp(what, "mpi") && more) {
		probed_mpi(more, argc > 5);
	} else if (!strcmp(what, "fabric")) {
		probed_fabric(more);
	} else {
		return STATUS_USAGE;
	}
	tell("end", "1");
	/* The libraries have nothing to do at the end. */
	_exit(0);
}
