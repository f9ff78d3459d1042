/* SPDX-License-Identifier: BSD-3-Clause */
/* kvd's settings: lines "name = value" of a file, and --set name=value. README.md has the list. */
#ifndef KVD_CONFIG_H
#define KVD_CONFIG_H

#include <stdint.h>

struct kvd_config {
	/* From the start on. */
	uint64_t slots, arena_mb, segment_kb, receives, sessions;
	/* May change while kvd runs. */
	uint64_t key_max, value_max, compact_percent, idle_seconds, send_seconds, spin_us, drain_ms, drain_quiet_ms,
		verbosity;
};

void kvd_config_defaults(struct kvd_config *config);

/* Of "name=value" or "name = value"; 0, or -EINVAL and what is wrong in `error`. */
int kvd_config_set(struct kvd_config *config, const char *line, char *error, unsigned long size);

/* A whole file; on failure nothing of *config has changed. */
int kvd_config_read(struct kvd_config *config, const char *path, char *error, unsigned long size);

/* Take over what may change; returns the name of a setting that differs and may not, or NULL. */
const char *kvd_config_take(struct kvd_config *config, const struct kvd_config *fresh);

#endif
