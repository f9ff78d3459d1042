/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: fields of struct contd_config, CONTD_* variables, info keys of CRs; one table for all three
 * (settings.c). */
#ifndef CONTD_DISPATCH_SETTINGS_H
#define CONTD_DISPATCH_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <contd/contd.h>

#include "base/api.h"
#include "dispatch/limits.h"

/* The names of enum contd_agent from CONTD_AGENT_CALLER on, and all of them in words. */
#define CONTD_AGENT_NAMES "caller", "region", "tick", "block", "spin"
#define CONTD_AGENT_MUST "caller, region, tick, block or spin"

/*
 * *config: the fields of `given` (may be NULL) that are not zero; for the others those of `base` (NULL: the defaults).
 * A variable of the environment overrides both. 0 or -EINVAL with its text.
 */
int contd__settings_make(const struct contd_config *given, const struct contd_config *base,
			 struct contd_config *config);

/* Where each setting comes from, for contd__setting_now(). After contd__settings_make() with the same `given`. first:
 * what was before counts no more. Under the lock of live_lock.h. */
void contd__settings_origins(const struct contd_config *given, bool first);

/* A setting in force. Under the same lock. */
struct contd__setting_now {
	const char *variable;
	const char *origin;             /* "environment", "program" or "default" */
	char value[CONTD_SETTING_TEXT]; /* "": none */
};

/* The i-th one; false: there are not so many. By its variable, which exists. */
bool contd__setting_now_at(size_t i, struct contd__setting_now *now);
void contd__setting_now(const char *variable, struct contd__setting_now *now);

/* The variable of the i-th setting, or NULL behind the last. */
const char *contd__setting_variable(size_t i);

/* The keys of settings that may be changed while contd runs, CONTD_SETTING_KEYS at most; NULL behind the last. */
#define CONTD_SETTING_KEYS 20
CONTD_API const char *contd__setting_key(size_t i);

/* A setting as a program has it that does not set it: for the command contd. The pointers are to constants. */
struct contd__setting_info {
	const char *field, *variable, *key; /* key: NULL if it cannot be changed while contd runs */
	const char *must;                   /* what a value must be, in words */
	const char *wrong;                  /* the variable's value is none: the text of that error; or NULL */
	bool given;                         /* the variable is set */
	char value[CONTD_SETTING_TEXT];     /* in force; what the variable has, if that is wrong; "": none */
	char standard[CONTD_SETTING_TEXT];  /* the default; "": none */
};

/* The i-th setting; false: there are not so many. */
CONTD_INTERNAL_API bool contd__setting_describe(size_t i, struct contd__setting_info *info);

/* Put the text's value for that key into *config. 0 or -EINVAL. */
CONTD_API int contd__setting_read(const char *key, const char *text, struct contd_config *config);

#endif
