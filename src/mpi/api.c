/* SPDX-License-Identifier: BSD-3-Clause */
/* The draft interface: arguments and info keys. Each function has its PMPI name; the MPI name is weak, for tools. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/backend.h"

#define WEAK_FOR(name) __attribute__((weak, alias(#name), visibility("default")))

/* ------------------------------------------------------------------------------------------------------- info keys --- */

struct settings {
	struct contd_group_attr attr;
	int agent; /* enum contd_agent, 0: not said */
};

/* The value of a key: 1, 0 where there is none, or the negated error class. */
static int info_value(MPI_Info info, const char *key, char value[MPI_MAX_INFO_VAL + 1])
{
	int flag = 0;
	int rc = PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);

	return rc ? -rc : flag;
}

static int info_flag(MPI_Info info, const char *key, uint32_t bit, uint32_t *flags)
{
	char value[MPI_MAX_INFO_VAL + 1];
	int rc = info_value(info, key, value);

	if (rc <= 0)
		return -rc;
	if (strcmp(value, "true") == 0)
		*flags |= bit;
	else if (strcmp(value, "false") != 0)
		return MPI_ERR_INFO_VALUE;
	return MPI_SUCCESS;
}

static int info_max_poll(MPI_Info info, struct contd_group_attr *attr)
{
	char value[MPI_MAX_INFO_VAL + 1], *end;
	int rc = info_value(info, "mpi_continue_max_poll", value);
	long n;

	if (rc <= 0)
		return -rc;
	errno = 0;
	n = strtol(value, &end, 10);
	if (end == value || *end || errno || n < -1 || n > INT_MAX)
		return MPI_ERR_INFO_VALUE;
	attr->max_poll = n == -1 ? 0 : n == 0 ? CONTD_MAX_POLL_NONE : (int32_t)n;
	return MPI_SUCCESS;
}

static int info_thread(MPI_Info info, struct contd_group_attr *attr)
{
	char value[MPI_MAX_INFO_VAL + 1];
	int rc = info_value(info, "mpi_continue_thread", value);

	if (rc <= 0)
		return -rc;
	if (strcmp(value, "any") == 0 || strcmp(value, "all") == 0) /* "all": the spelling of Open MPI's branch */
		attr->flags |= CONTD_THREAD_ANY;
	else if (strcmp(value, "application") != 0)
		return MPI_ERR_INFO_VALUE;
	return MPI_SUCCESS;
}

static int info_agent(MPI_Info info, int *agent)
{
	static const struct {
		const char *value;
		int agent;
	} known[] = {{"caller", CONTD_AGENT_CALLER}, {"region", CONTD_AGENT_REGION}, {"tick", CONTD_AGENT_TICK}};
	char value[MPI_MAX_INFO_VAL + 1];
	int rc = info_value(info, "contd_agent", value);

	if (rc <= 0)
		return -rc;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(value, known[i].value) == 0)
			*agent = known[i].agent;
	return *agent ? MPI_SUCCESS : MPI_ERR_INFO_VALUE;
}

static int settings_read(MPI_Info info, struct settings *s)
{
	uint32_t *flags = &s->attr.flags;
	int rc;

	*s = (struct settings){.attr = {.size = sizeof(s->attr)}};
	if (!info)
		return MPI_ERR_INFO; /* MPI_Info_get would tell MPI_COMM_WORLD's error handler */
	if (info == MPI_INFO_NULL)
		return MPI_SUCCESS;
	if ((rc = info_flag(info, "mpi_continue_poll_only", CONTD_POLL_ONLY, flags)) != 0 ||
	    (rc = info_flag(info, "mpi_continue_enqueue_complete", CONTD_ENQUEUE_COMPLETE, flags)) != 0 ||
	    (rc = info_flag(info, "mpi_continue_async_signal_safe", CONTD_ASYNC_SIGNAL_SAFE, flags)) != 0 ||
	    (rc = info_max_poll(info, &s->attr)) != 0 || (rc = info_thread(info, &s->attr)) != 0 ||
	    (rc = info_agent(info, &s->agent)) != 0)
		return rc;
	if (*flags & CONTD_POLL_ONLY && s->attr.max_poll == CONTD_MAX_POLL_NONE)
		return MPI_ERR_ARG; /* the draft, 3.11.3: such a continuation would never run */
	return MPI_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------- functions --- */

/* Low latency: the calling thread may be interrupted, and, where MPI allows it, a daemon ticks. Once is enough. */
static int low_latency(bool attach, int agent)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool daemon_runs; /* until MPI_Finalize */
	int level, rc = 0;

	PMPI_Query_thread(&level);
	if (agent == CONTD_AGENT_TICK && level < MPI_THREAD_MULTIPLE)
		return MPI_ERR_OTHER;
	if (agent == CONTD_AGENT_DEFAULT)
		agent = attach && level == MPI_THREAD_MULTIPLE && contd__dispatch.config.agent != CONTD_AGENT_CALLER
				? CONTD_AGENT_TICK
				: CONTD_AGENT_REGION;
	if (attach && !(contd__tls.flags & CONTD__TLS_ATTACHED))
		rc = contd_thread_attach(NULL);
	if (rc || agent != CONTD_AGENT_TICK)
		return contd__mpi_class(rc);
	pthread_mutex_lock(&lock);
	if (!daemon_runs)
		rc = contd_daemon_start(NULL);
	daemon_runs = daemon_runs || rc == 0;
	pthread_mutex_unlock(&lock);
	return contd__mpi_class(rc);
}

CONTD_API int PMPI_Continue_init(MPI_Info info, MPI_Request *cont_req)
{
	const struct contd__mpi_backend *backend;
	struct contd_group *group;
	struct settings s;
	int rc;

	backend = contd__mpi_start(&rc);
	if (!backend)
		return rc;
	if (!cont_req)
		return contd__mpi_error(MPI_ERR_ARG);
	rc = settings_read(info, &s);
	if (rc)
		return contd__mpi_error(rc);
	rc = contd_group_create(&s.attr, &group);
	if (rc)
		return contd__mpi_error(contd__mpi_class(rc));
	if (s.attr.flags & CONTD_ASYNC_SIGNAL_SAFE || s.agent == CONTD_AGENT_TICK)
		rc = low_latency(s.attr.flags & CONTD_ASYNC_SIGNAL_SAFE, s.agent);
	if (!rc)
		rc = backend->cr_create(group, cont_req);
	if (rc) {
		contd_group_destroy(group);
		return contd__mpi_error(rc);
	}
	return MPI_SUCCESS;
}

int MPI_Continue_init(MPI_Info info, MPI_Request *cont_req) WEAK_FOR(PMPI_Continue_init);

static int continue_common(const struct contd__mpi_attach *a, MPI_Request cont_req)
{
	const struct contd__mpi_backend *backend = contd__mpi;
	struct contd_group *group;
	int rc;

	if (__builtin_expect(!backend, 0)) {
		backend = contd__mpi_start(&rc);
		if (!backend)
			return rc;
	}
	if (a->count < 0)
		return contd__mpi_error(MPI_ERR_COUNT);
	if (!a->cb || (a->count && !a->requests) || (a->count && !a->statuses && !a->ignore))
		return contd__mpi_error(MPI_ERR_ARG);
	group = backend->cr_group(cont_req);
	if (!group)
		return contd__mpi_error(MPI_ERR_REQUEST);
	rc = backend->attach(a, cont_req, group);
	return __builtin_expect(rc, 0) ? contd__mpi_error(rc) : MPI_SUCCESS;
}

CONTD_API int PMPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
			    MPI_Request cont_req)
{
	const struct contd__mpi_attach a = {1, op_request, cb, cb_data, status, status == MPI_STATUS_IGNORE};

	return continue_common(&a, cont_req);
}

int MPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
		 MPI_Request cont_req) WEAK_FOR(PMPI_Continue);

CONTD_API int PMPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb, void *cb_data,
			       MPI_Status array_of_statuses[], MPI_Request cont_req)
{
	const struct contd__mpi_attach a = {count, array_of_op_requests, cb, cb_data, array_of_statuses,
					    array_of_statuses == MPI_STATUSES_IGNORE};

	return continue_common(&a, cont_req);
}

int MPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb, void *cb_data,
		    MPI_Status array_of_statuses[], MPI_Request cont_req) WEAK_FOR(PMPI_Continueall);
