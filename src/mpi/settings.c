/* SPDX-License-Identifier: BSD-3-Clause */
/* Info keys, and CRs made by them. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/variables.h"
#include "dispatch/group.h"
#include "dispatch/limits.h"
#include "dispatch/settings.h"
#include "dispatch/thread.h"
#include "mpi/backend.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/process_model.h"
#include "mpi/settings.h"

/* ---------------------------------------------------------------------------------------------------- info keys --- */

#define MUST(key, what) "info: the key " key " must be " what

/* The value of a key: 1, 0 where there is none, or the negated error class. */
static int info_value(MPI_Info info, const char *key, char value[MPI_MAX_INFO_VAL + 1])
{
	int flag = 0;
	int rc = PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);

	return rc ? -contd__fail(rc, "info: MPI refuses it; make it with MPI_Info_create") : flag;
}

static int info_flag(MPI_Info info, const char *key, const char *wrong, uint32_t bit, uint32_t *flags)
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
		return contd__fail(MPI_ERR_INFO_VALUE, wrong);
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
	/* strtol(3) takes blanks and a plus sign too. */
	if (value[strspn(value, "-0123456789")] || end == value || *end || errno || n < -1 || n > INT_MAX)
		return contd__fail(MPI_ERR_INFO_VALUE, MUST("mpi_continue_max_poll", "a number from -1 to 2147483647"));
	attr->max_poll = (int32_t)n;
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
		return contd__fail(MPI_ERR_INFO_VALUE, MUST("mpi_continue_thread", "application, any or all"));
	return MPI_SUCCESS;
}

/* contd's own keys: settings of the whole process, in force from here on. */
static int info_config(MPI_Info info, struct contd__settings *s)
{
	const char *key;
	int rc;

	s->config = (struct contd_config){.size = sizeof(s->config)};
	for (size_t i = 0; (key = contd__setting_key(i)) != NULL; i++) {
		char *value = s->text[i]; /* a setting that is a text stays there until the settings are made */

		if ((rc = info_value(info, key, s->value)) < 0)
			return -rc;
		if (rc == 0)
			continue;
		/* A text that is too long is refused by its length, where it is. */
		if (strlen(s->value) < CONTD_SETTING_TEXT)
			strcpy(value, s->value);
		else
			value = s->value;
		if (contd__setting_read(key, value, &s->config))
			return MPI_ERR_INFO_VALUE; /* its text is set */
		s->configured = true;
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
		return contd__fail(MPI_ERR_INFO_VALUE, MUST("contd_priority", "low, normal or high"));
	return MPI_SUCCESS;
}

/* ------------------------------------------------------------------------------------- keys that nobody reads --- */

static const char *const group_keys[] = {"mpi_continue_poll_only",         "mpi_continue_enqueue_complete",
					 "mpi_continue_max_poll",          "mpi_continue_thread",
					 "mpi_continue_async_signal_safe", "contd_priority"};
#define GROUP_KEYS (sizeof(group_keys) / sizeof(group_keys[0]))
#define REPORTED_MOST 32

/* The i-th key that an info object may have; NULL behind the last. */
static const char *known_key(size_t i)
{
	return i < GROUP_KEYS ? group_keys[i] : contd__setting_key(i - GROUP_KEYS);
}

/* The first time for this key? With so many different ones that there is no room to remember another, no. */
static bool first_time(const char *key)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char names[REPORTED_MOST][MPI_MAX_INFO_KEY + 1];
	static size_t count;
	size_t i = 0;
	bool first;

	pthread_mutex_lock(&lock);
	while (i < count && strcmp(names[i], key) != 0)
		i++;
	first = i == count && count < REPORTED_MOST;
	if (first)
		snprintf(names[count++], sizeof(names[0]), "%s", key);
	pthread_mutex_unlock(&lock);
	return first;
}

static void report(const char *key)
{
	const char *nearest = known_key(0), *name;

	for (size_t i = 0; (name = known_key(i)) != NULL; i++) {
		if (strcmp(name, key) == 0)
			return;
		if (contd__distance(key, name) < contd__distance(key, nearest))
			nearest = name;
	}
	if (first_time(key))
		contd__mpi_warn_here(
			"the info key %s is unknown and has no effect; the nearest one that is known is %s", key,
			nearest);
}

/* MPI ignores keys that it does not know. One that begins as ours do was meant for us: it is reported, once. */
static int info_unknown(MPI_Info info)
{
	char key[MPI_MAX_INFO_KEY + 1];
	int count, rc = PMPI_Info_get_nkeys(info, &count);

	for (int i = 0; !rc && i < count; i++) {
		rc = PMPI_Info_get_nthkey(info, i, key);
		if (!rc && (strncmp(key, "contd_", 6) == 0 || strncmp(key, "mpi_continue_", 13) == 0))
			report(key);
	}
	return rc ? contd__fail(rc, "info: MPI refuses it; make it with MPI_Info_create") : MPI_SUCCESS;
}

#define FLAG(key, bit, flags) info_flag(info, key, MUST(key, "true or false"), bit, flags)

int contd__settings_read(MPI_Info info, struct contd__settings *s)
{
	uint32_t *flags = &s->attr.flags;
	int rc;

	if (!info) /* MPI_Info_get would tell MPI_COMM_WORLD's error handler */
		return contd__fail(MPI_ERR_INFO, "info is zero and no handle; give MPI_INFO_NULL for none");
	if (info == MPI_INFO_NULL)
		return MPI_SUCCESS;
	if ((rc = FLAG("mpi_continue_poll_only", CONTD_POLL_ONLY, flags)) != 0 ||
	    (rc = FLAG("mpi_continue_enqueue_complete", CONTD_ENQUEUE_COMPLETE, flags)) != 0 ||
	    (rc = FLAG("mpi_continue_async_signal_safe", CONTD_ASYNC_SIGNAL_SAFE, flags)) != 0 ||
	    (rc = info_max_poll(info, &s->attr)) != 0 || (rc = info_thread(info, &s->attr)) != 0 ||
	    (rc = info_priority(info, &s->attr)) != 0 || (rc = info_config(info, s)) != 0 ||
	    (rc = info_unknown(info)) != 0)
		return rc;
	s->low_latency = (*flags & CONTD_ASYNC_SIGNAL_SAFE) != 0;
	return MPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- CRs --- */

uint32_t contd__low_latency;
static __thread bool was_attached __attribute__((tls_model("initial-exec"))); /* once: the program may detach it */

/* Only threads of the program may enter MPI: no thread looks at operations under way while they call nothing. */
static void say_what_helps(int level)
{
	static uint32_t said;
	const char *name = level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
			   : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
							  : "MPI_THREAD_SINGLE";

	if (contd__xchg(&said, 1))
		return;
	contd__mpi_warn_here(
		"mpi_continue_async_signal_safe with %s: continuations that are ready run at the next "
		"interruption, but MPI makes progress only in the program's MPI calls and in compute regions of "
		"MPI's main thread (contd_compute_begin()); with MPI_THREAD_MULTIPLE contd's own thread makes it",
		name);
}

void contd__low_latency_attach(void)
{
	static uint32_t said;

	if (was_attached || !contd__on_thread_sig() || contd__in_continuation_sig())
		return;
	was_attached = true;
	if (contd_thread_attach(NULL) && !contd__xchg(&said, 1))
		contd__mpi_warn("mpi_continue_async_signal_safe: a thread that calls MPI cannot be interrupted: %s",
				contd_error_text());
}

/*
 * Low latency: the calling thread may be interrupted, and, where MPI allows it, a daemon looks. Once is enough.
 * `agent`: what an info key says, 0: none does.
 */
static int low_latency(int agent)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool daemon_runs; /* until contd ends */
	int rc = 0;

	/* In a continuation on the daemon thread: the daemon runs, and cannot be interrupted. */
	if (contd__on_daemon_sig())
		return MPI_SUCCESS;
	if (!(contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED))
		rc = contd_thread_attach(NULL);
	was_attached = was_attached || rc == 0;
	if (rc || agent || contd__model.level < MPI_THREAD_MULTIPLE || contd__config.agent == CONTD_AGENT_CALLER)
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
	if (!s->configured)
		return MPI_SUCCESS;
	/* A daemon that blocks can serve regions without calling MPI; the others must. */
	if ((s->config.agent == CONTD_AGENT_TICK || s->config.agent == CONTD_AGENT_SPIN) &&
	    contd__model.level < MPI_THREAD_MULTIPLE)
		return contd__fail(MPI_ERR_OTHER,
				   "info: the key contd_agent may be tick or spin only with MPI_THREAD_MULTIPLE; "
				   "initialize MPI with that, or set caller, region or block");
	return contd__mpi_class(contd_configure(&s->config));
}

int contd__cr_make(struct contd__settings *s, bool revised, MPI_Request *handle)
{
	struct contd_group *group;
	struct contd__cr *cr;
	int rc;

	if (s->attr.flags & CONTD_POLL_ONLY && s->attr.max_poll == 0)
		/* The draft, 3.11.3: such a continuation would never run. */
		return contd__fail(MPI_ERR_ARG,
				   "mpi_continue_max_poll must not be 0 if mpi_continue_poll_only is true: nothing "
				   "would ever run");
	rc = contd_group_create(&s->attr, &group);
	if (rc)
		return contd__mpi_class(rc);
	if (contd__limited(group))
		contd__cr_limits();
	rc = configure(s);
	if (!rc && s->attr.flags & CONTD_ASYNC_SIGNAL_SAFE)
		rc = low_latency(s->config.agent);
	if (!rc && s->low_latency) {
		contd__store(&contd__low_latency, 1);
		if (contd__model.level < MPI_THREAD_MULTIPLE)
			say_what_helps(contd__model.level);
	}
	if (!rc)
		rc = contd__mpi->cr_create(group, revised, &cr);
	if (rc) {
		contd_group_destroy(group);
		return rc;
	}
	contd__cr_begins();
	*handle = cr->handle;
	return MPI_SUCCESS;
}
