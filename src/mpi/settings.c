/* SPDX-License-Identifier: BSD-3-Clause */
/* Info keys, and CRs made by them. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/settings.h"
#include "mpi/backend.h"

/* ---------------------------------------------------------------------------------------------------- info keys --- */

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
	else if (strcmp(value, "false") == 0)
		*flags &= ~bit;
	else
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

/* contd's own keys: settings of the whole process, in force from here on. */
static int info_config(MPI_Info info, struct contd__settings *s)
{
	const char *key;
	int rc;

	s->config = (struct contd_config){.size = sizeof(s->config)};
	for (size_t i = 0; (key = contd__setting_key(i)) != NULL; i++) {
		char *value = s->text[s->texts];

		if ((rc = info_value(info, key, s->value)) < 0)
			return -rc;
		if (rc == 0)
			continue;
		/* Texts are kept where they are until the settings are made. */
		if (strlen(s->value) >= CONTD_SETTING_TEXT)
			return MPI_ERR_INFO_VALUE;
		strcpy(value, s->value);
		if (contd__setting_read(key, value, &s->config))
			return MPI_ERR_INFO_VALUE;
		s->configured = true;
		s->texts += s->texts < SETTING_TEXTS - 1;
	}
	return MPI_SUCCESS;
}

static int info_priority(MPI_Info info, struct contd_group_attr *attr)
{
	char value[MPI_MAX_INFO_VAL + 1];
	int rc = info_value(info, "contd_priority", value);

	if (rc <= 0)
		return -rc;
	if (strcmp(value, "low") == 0)
		attr->priority = CONTD_PRIORITY_LOW;
	else if (strcmp(value, "normal") == 0)
		attr->priority = CONTD_PRIORITY_NORMAL;
	else if (strcmp(value, "high") == 0)
		attr->priority = CONTD_PRIORITY_HIGH;
	else
		return MPI_ERR_INFO_VALUE;
	return MPI_SUCCESS;
}

int contd__settings_read(MPI_Info info, struct contd__settings *s)
{
	uint32_t *flags = &s->attr.flags;
	int rc;

	if (!info)
		return MPI_ERR_INFO; /* MPI_Info_get would tell MPI_COMM_WORLD's error handler */
	if (info == MPI_INFO_NULL)
		return MPI_SUCCESS;
	if ((rc = info_flag(info, "mpi_continue_poll_only", CONTD_POLL_ONLY, flags)) != 0 ||
	    (rc = info_flag(info, "mpi_continue_enqueue_complete", CONTD_ENQUEUE_COMPLETE, flags)) != 0 ||
	    (rc = info_flag(info, "mpi_continue_async_signal_safe", CONTD_ASYNC_SIGNAL_SAFE, flags)) != 0 ||
	    (rc = info_max_poll(info, &s->attr)) != 0 || (rc = info_thread(info, &s->attr)) != 0 ||
	    (rc = info_priority(info, &s->attr)) != 0 || (rc = info_config(info, s)) != 0)
		return rc;
	return MPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- CRs --- */

/*
 * Low latency: the calling thread may be interrupted, and, where MPI allows it, a daemon looks. Once is enough. `agent`:
 * what an info key says, 0: none does.
 */
static int low_latency(int agent)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool daemon_runs; /* until MPI_Finalize */
	int level, rc = 0;

	PMPI_Query_thread(&level);
	if (!(contd__tls.flags & CONTD__TLS_ATTACHED))
		rc = contd_thread_attach(NULL);
	if (rc || agent || level < MPI_THREAD_MULTIPLE || contd__dispatch.config.agent == CONTD_AGENT_CALLER)
		return contd__mpi_class(rc);
	pthread_mutex_lock(&lock);
	if (!daemon_runs)
		rc = contd_daemon_start(NULL);
	daemon_runs = daemon_runs || rc == 0;
	pthread_mutex_unlock(&lock);
	return contd__mpi_class(rc);
}

/* Settings that info keys name: for the whole process. */
static int configure(struct contd__settings *s)
{
	int level;

	if (!s->configured)
		return MPI_SUCCESS;
	PMPI_Query_thread(&level);
	/* A daemon that blocks can serve regions without calling MPI; the others must. */
	if ((s->config.agent == CONTD_AGENT_TICK || s->config.agent == CONTD_AGENT_SPIN) && level < MPI_THREAD_MULTIPLE)
		return MPI_ERR_OTHER;
	return contd__mpi_class(contd_configure(&s->config));
}

int contd__cr_make(struct contd__settings *s, bool revised, MPI_Request *handle)
{
	struct contd_group *group;
	struct contd__cr *cr;
	int rc;

	if (s->attr.flags & CONTD_POLL_ONLY && s->attr.max_poll == CONTD_MAX_POLL_NONE)
		return MPI_ERR_ARG; /* the draft, 3.11.3: such a continuation would never run */
	rc = contd_group_create(&s->attr, &group);
	if (rc)
		return contd__mpi_class(rc);
	rc = configure(s);
	if (!rc && s->attr.flags & CONTD_ASYNC_SIGNAL_SAFE)
		rc = low_latency(s->config.agent);
	if (!rc)
		rc = contd__mpi->cr_create(group, revised, &cr);
	if (rc) {
		contd_group_destroy(group);
		return rc;
	}
	*handle = cr->handle;
	return MPI_SUCCESS;
}
