/* SPDX-License-Identifier: BSD-3-Clause */
/* Info keys, and CRs made by them. */
#ifndef CONTD_MPI_SETTINGS_H
#define CONTD_MPI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/settings.h"
#include "dispatch/thread.h"

/* What an info object says, on top of what s holds. */
struct contd__settings {
	struct contd_group_attr attr;
	struct contd_config config; /* of the process, from contd's own keys */
	bool configured;            /* there are any */
	bool low_latency;           /* mpi_continue_async_signal_safe */
	char value[MPI_MAX_INFO_VAL + 1];
	char text[CONTD_SETTING_KEYS][CONTD_SETTING_TEXT]; /* what `config` refers to, by key */
};
int contd__settings_read(MPI_Info info, struct contd__settings *s); /* MPI error class, and the text */

/*
 * A thread that uses a CR with mpi_continue_async_signal_safe may be interrupted from then on: the one that made it may
 * have ended. Ordinary threads; where it can't be attached a line says so, once.
 */
extern uint32_t contd__low_latency; /* there is, or was, such a CR */
void contd__low_latency_attach(void);

static inline void contd__low_latency_here(const struct contd_group *group)
{
	if (__builtin_expect(contd__load(&group->flags) & CONTD_ASYNC_SIGNAL_SAFE, 0) &&
	    !(contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED) && contd__load(&contd__low_latency))
		contd__low_latency_attach();
}

/* A CR with these settings, for either interface. */
int contd__cr_make(struct contd__settings *s, bool revised, MPI_Request *handle);

#endif
