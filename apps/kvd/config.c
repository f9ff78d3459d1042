/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "proto.h"

static const struct setting {
	const char *name;
	size_t offset;
	uint64_t least, most, value;
	bool fixed; /* after the start */
} settings[] = {
#define S(name, least, most, value, fixed) \
	{ \
#name, offsetof(struct kvd_config, name), least, most, value, fixed \
	}
	S(slots, 1, 1u << 26, 65536, true),
	S(arena_mb, 1, 16384, 64, true),
	S(segment_kb, 64, 65536, 1024, true),
	S(receives, 4, 4096, 128, true),
	S(sessions, 1, 4096, 256, true),
	S(key_max, 1, KVD_KEY_MAX, KVD_KEY_MAX, false),
	S(value_max, 0, KVD_VALUE_MAX, 16384, false),
	S(compact_percent, 10, 100, 50, false),
	S(idle_seconds, 1, 1000000, 600, false),
	S(send_seconds, 1, 3600, 3, false),
	S(spin_us, 0, 1000000, 50, false),
	S(drain_ms, 0, 600000, 5000, false),
	S(drain_quiet_ms, 0, 600000, 300, false),
	S(verbosity, 0, 2, 1, false),
#undef S
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static uint64_t *field(struct kvd_config *config, const struct setting *s)
{
	return (uint64_t *)(void *)((char *)config + s->offset);
}

void kvd_config_defaults(struct kvd_config *config)
{
	for (size_t i = 0; i < SETTINGS; i++)
		*field(config, &settings[i]) = settings[i].value;
}

int kvd_config_set(struct kvd_config *config, const char *line, char *error, unsigned long size)
{
	char name[64], *end;
	unsigned long value;
	int after = -1;

	if (sscanf(line, " %63[a-z_] = %n", name, &after) != 1 || after < 0 || !isdigit((unsigned char)line[after])) {
		snprintf(error, size, "not of the form name = number: %.60s", line);
		return -EINVAL;
	}
	errno = 0;
	value = strtoul(line + after, &end, 10);
	while (isspace((unsigned char)*end))
		end++;
	for (size_t i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];

		if (strcmp(s->name, name) != 0)
			continue;
		if (errno || *end || value < s->least || value > s->most) {
			snprintf(error, size, "%s must be %lu to %lu", name, s->least, s->most);
			return -EINVAL;
		}
		*field(config, s) = value;
		return 0;
	}
	snprintf(error, size, "there is no setting %s", name);
	return -EINVAL;
}

int kvd_config_read(struct kvd_config *config, const char *path, char *error, unsigned long size)
{
	struct kvd_config fresh = *config;
	char line[256], wrong[160];
	FILE *file = fopen(path, "re");
	int rc = 0, number = 0;

	if (!file) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		return -errno;
	}
	while (!rc && fgets(line, sizeof(line), file)) {
		size_t first = strspn(line, " \t\r\n");

		number++;
		if (!line[first] || line[first] == '#')
			continue;
		line[strcspn(line, "\n")] = 0;
		rc = kvd_config_set(&fresh, line, wrong, sizeof(wrong));
		if (rc)
			snprintf(error, size, "%s:%d: %s", path, number, wrong);
	}
	if (!rc && ferror(file)) { /* a folder, say */
		rc = -EIO;
		snprintf(error, size, "%s: it can't be read", path);
	}
	fclose(file);
	if (!rc)
		*config = fresh;
	return rc;
}

const char *kvd_config_take(struct kvd_config *config, const struct kvd_config *fresh)
{
	struct kvd_config wanted = *fresh;
	const char *refused = NULL;

	for (size_t i = 0; i < SETTINGS; i++) {
		uint64_t *now = field(config, &settings[i]), *then = field(&wanted, &settings[i]);

		if (*now == *then)
			continue;
		if (settings[i].fixed)
			refused = settings[i].name;
		else
			*now = *then;
	}
	return refused;
}
