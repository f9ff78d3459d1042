/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding Open MPI's inside at run time, and making sure that it is as ompi.h describes it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "mpi/backend.h"
#include "mpi/intercept.h"
#include "mpi/ompi.h"
#include "mpi/process_model.h"

struct contd__ompi contd__ompi = {.quiet = MPI_COMM_NULL};

/* ompi.h was compared with the source of 4.1 to 6.1. Later versions are used if the probe finds nothing wrong. */
#define OLDEST_MAJOR 4
#define OLDEST_MINOR 1

static const char *version_refuses(void)
{
	static char why[200];
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int length, major = -1, minor = -1;
	const char *at;

	PMPI_Get_library_version(text, &length);
	at = strstr(text, "Open MPI v");
	if (!at)
		return "the MPI library at run time is not Open MPI";
	if (sscanf(at, "Open MPI v%d.%d", &major, &minor) != 2)
		return "the MPI library does not say which version of Open MPI it is";
	if (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR)) {
		contd__backend_step("the MPI library is Open MPI %d.%d; the native backend knows %d.%d and later",
				    major, minor, OLDEST_MAJOR, OLDEST_MINOR);
		return NULL;
	}
	snprintf(why, sizeof(why), "Open MPI %d.%d is older than %d.%d, and its requests are not known", major, minor,
		 OLDEST_MAJOR, OLDEST_MINOR);
	return why;
}

static const char *missing;

static void *symbol(const char *name)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	if (!address && !missing)
		missing = name;
	return address;
}

/* libopen-pal stands behind libmpi, and may have been loaded where a global search does not see it. */
static const char *symbols_find(void)
{
	static char why[120];
	struct contd__ompi *o = &contd__ompi;

	missing = NULL;
	o->functions = symbol("ompi_request_functions");
	o->progress = (void (*)(void))symbol("opal_progress");
	o->progress_register = (int (*)(int (*)(void)))symbol("opal_progress_register");
	o->progress_unregister = (int (*)(int (*)(void)))symbol("opal_progress_unregister");
	o->uses_threads = symbol("opal_uses_threads");
	o->grequest_query = (int (*)(struct contd__ompi_request *, MPI_Status *))symbol("ompi_grequest_invoke_query");
	o->errhandler_request_invoke =
		(int (*)(int, MPI_Request *, const char *))symbol("ompi_errhandler_request_invoke");
	o->f_to_c_table = symbol("ompi_request_f_to_c_table");
	o->pointer_array_set = (int (*)(void *, int, void *))symbol("opal_pointer_array_set_item");
	if (!missing) {
		contd__backend_step("it has the symbols of its inside that the native backend uses");
		return NULL;
	}
	snprintf(why, sizeof(why), "Open MPI's library has no symbol %s", missing);
	return why;
}

static struct {
	uint32_t called;
	int answer; /* 1: "this request is not Open MPI's any more" */
} probed;

static int probe_callback(struct contd__ompi_request *request)
{
	probed.called += request->complete_cb_data == &probed && request->complete_cb == NULL;
	return probed.answer;
}

/* Starts the receive, sends to it, and makes progress until the callback has answered, and what follows is over. */
static bool probe_round(struct contd__ompi_request *r, MPI_Request *handle, int answer)
{
	if (contd__next_pmpi.Start(handle) || r->state != OMPI_ACTIVE || r->complete != OMPI_PENDING)
		return false;
	probed.called = 0;
	probed.answer = answer;
	r->complete_cb_data = &probed;
	contd__store_seq(&r->complete_cb, probe_callback);
	if (contd__next_pmpi.Send(NULL, 0, MPI_BYTE, 0, 3, contd__ompi.quiet))
		return false;
	for (int i = 0; i < 1000 && !probed.called; i++)
		contd__ompi.progress();
	return probed.called == 1 && r->state == OMPI_ACTIVE && r->status.MPI_SOURCE == 0 && r->status.MPI_TAG == 3 &&
	       r->status.MPI_ERROR == MPI_SUCCESS &&
	       contd__load_seq(&r->complete) == (answer ? OMPI_PENDING : OMPI_COMPLETED);
}

/* A persistent receive from oneself: its fields must hold, step by step, what they are thought to hold. */
static bool probe_steps(struct contd__ompi_request *r, MPI_Request *handle)
{
	MPI_Status status;
	int flag = 0;

	if (r->type != OMPI_TYPE_PML || r->state != OMPI_INACTIVE || !r->persistent || r->complete != OMPI_COMPLETED ||
	    r->f_to_c_index != MPI_UNDEFINED || r->object != (void *)contd__ompi.quiet || !r->start || !r->free ||
	    r->complete_cb)
		return false;
	for (int answer = 0; answer <= 1; answer++) {
		if (!probe_round(r, handle, answer))
			return false;
		contd__store_seq(&r->complete, OMPI_COMPLETED);
		if (contd__next_pmpi.Test(handle, &flag, &status) || !flag || status.MPI_TAG != 3 ||
		    r->state != OMPI_INACTIVE)
			return false;
	}
	return true;
}

static const char *probe(void)
{
	MPI_Request handle = MPI_REQUEST_NULL;
	const char *why = NULL;

	if (PMPI_Comm_dup(contd__model.self, &contd__ompi.quiet))
		return "MPI_COMM_SELF cannot be duplicated";
	PMPI_Comm_set_errhandler(contd__ompi.quiet, MPI_ERRORS_RETURN);
	if (PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, 3, contd__ompi.quiet, &handle) ||
	    !probe_steps((struct contd__ompi_request *)handle, &handle))
		why = "its requests do not look as in the versions that are known";
	if (handle != MPI_REQUEST_NULL)
		contd__next_pmpi.Request_free(&handle);
	if (!why)
		contd__backend_step("a request of its own has looked as expected at each step of a probe");
	return why;
}

const char *contd__ompi_find(void)
{
	const char *why = contd__next_pmpi.Start ? version_refuses() : "the MPI library does not stand behind contd";

	why = why ? why : symbols_find();
	why = why ? why : probe();
	if (why)
		contd__ompi_forget();
	return why;
}

void contd__ompi_forget(void)
{
	if (contd__ompi.quiet != MPI_COMM_NULL)
		PMPI_Comm_free(&contd__ompi.quiet);
}

/*
 * By the functions below MPI's tool interface: opening and closing that in the midst of a program changes what windows
 * do in Open MPI 4.1.4, and leaks.
 */
bool contd__ompi_progress_thread(void)
{
	int (*find)(const char *, const char *, const char *, const char *);
	int (*get)(int, const void *, int *, const char **);
	const int *value = NULL;
	int at;

	find = (int (*)(const char *, const char *, const char *, const char *))dlsym(RTLD_DEFAULT,
										      "mca_base_var_find");
	get = (int (*)(int, const void *, int *, const char **))dlsym(RTLD_DEFAULT, "mca_base_var_get_value");
	if (!find || !get)
		return true;
	at = find("opal", "btl", "tcp", "progress_thread");
	if (at < 0)
		return false; /* there is no such transport */
	return get(at, &value, NULL, NULL) || !value || *value;
}
