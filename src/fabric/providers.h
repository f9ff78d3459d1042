/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's providers on this machine, and which of them contd can use: for the command contd, which links neither.
 * A provider may hang or crash, so the command calls these in other processes. Ordinary threads only.
 */
#ifndef CONTD_FABRIC_PROVIDERS_H
#define CONTD_FABRIC_PROVIDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"

/* Calls tell() once for each provider that fi_getinfo(3) offers. 0, or the error, -FI_E*. */
CONTD_INTERNAL_API int contd__fabric_providers(void (*tell)(const char *name, void *data), void *data);

#define CONTD_FABRIC_TRIAL_TEXT 256

struct contd__fabric_trial {
	uint32_t version;                  /* of the provider: FI_VERSION() */
	bool rdm, msg, dgram;              /* the types of endpoints that it offers */
	bool works;                        /* domain and queue were opened, and closed */
	bool descriptor;                   /* the queue has one, on which agent "block" sleeps */
	char domain[64];                   /* the one that was opened */
	char why[CONTD_FABRIC_TRIAL_TEXT]; /* it does not work */
};

/* Opens a domain and a queue of the provider, with the first of its offers that allows it. contd runs. */
CONTD_INTERNAL_API void contd__fabric_try(const char *name, struct contd__fabric_trial *trial);

/* The version of libfabric that is loaded, FI_VERSION(). */
CONTD_INTERNAL_API uint32_t contd__fabric_version(void);

#endif
