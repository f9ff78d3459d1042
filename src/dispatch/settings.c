/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings and their ranges. Ordinary threads only. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "dispatch/daemon.h"
#include "dispatch/limits.h"
#include "dispatch/settings.h"
#include "dispatch/signal_name.h"

enum type { TYPE_INT, TYPE_U32, TYPE_U64, TYPE_REAL, TYPE_NAMED, TYPE_TEXT };

static const char *const agent_names[] = {CONTD_AGENT_NAMES, NULL};
static const char *const bell_names[] = {"1", "0", NULL};              /* enum contd_bell_use begins with 1 */
static const char *const verbose_names[] = {"0", "1", "2", "3", NULL}; /* so does enum contd_verbose */

_Static_assert(sizeof(agent_names) / sizeof(agent_names[0]) == CONTD_AGENT_SPIN + 1, "each agent has a name");

struct setting {
	const char *name; /* as a variable CONTD_NAME, as an info key contd_name: this is the key */
	const char *variable;
	enum type type;
	size_t offset;
	double min, max;
	const char *const *names; /* TYPE_NAMED: of 1, 2, … */
	bool fixed;               /* only contd_init() takes it */
	const char *field, *must;
	/* The text of a value that is wrong, by what the user has set: the variable, the info key, the field. */
	const char *wrong_variable, *wrong_key, *wrong_field;
};

#define SETTING(field, NAME, key, type, min, max, names, fixed, must) \
	{ \
		"contd_" key, "CONTD_" NAME, type, offsetof(struct contd_config, field), min, max, names, fixed, \
			#field, must, "the variable CONTD_" NAME " must be " must, \
			"info: the key contd_" key " must be " must, "cfg->" #field " must be " must \
	}

static const struct setting settings[] = {
	SETTING(signal_number, "SIGNAL", "signal", TYPE_INT, 1, 64, NULL, true, "a number from SIGRTMIN to SIGRTMAX"),
	SETTING(signal_taken, "SIGNAL_CHAIN", "signal_chain", TYPE_INT, 0, 1, NULL, true, "0 (refuse) or 1 (chain)"),
	SETTING(agent, "AGENT", "agent", TYPE_NAMED, CONTD_AGENT_CALLER, CONTD_AGENT_SPIN, agent_names, false,
		CONTD_AGENT_MUST " (enum contd_agent)"),
	SETTING(overhead_percent, "OVERHEAD_PERCENT", "overhead_percent", TYPE_REAL, 0.1, 50, NULL, false,
		"a number from 0.1 to 50"),
	SETTING(tick_min_ns, "TICK_MIN_NS", "tick_min_ns", TYPE_U64, 1000, 1e9, NULL, false,
		"from 1000 to 1000000000 nanoseconds"),
	SETTING(tick_max_ns, "TICK_MAX_NS", "tick_max_ns", TYPE_U64, 1000, 1e10, NULL, false,
		"from tick_min_ns to 10000000000 nanoseconds"),
	SETTING(scan_count, "SCAN_COUNT", "scan_count", TYPE_U32, 1, 1e6, NULL, false, "a number from 1 to 1000000"),
	SETTING(scan_ns, "SCAN_NS", "scan_ns", TYPE_U64, 1000, 1e9, NULL, false, "from 1000 to 1000000000 nanoseconds"),
	SETTING(bell, "BELL", "bell", TYPE_NAMED, CONTD_BELL_ON, CONTD_BELL_OFF, bell_names, true,
		"1 (doorbells) or 0 (none)"),
	SETTING(watchdog_ns, "WATCHDOG_NS", "watchdog_ns", TYPE_U64, 1000, 1e12, NULL, false,
		"from 1000 to 1000000000000 nanoseconds"),
	SETTING(daemon_name, "DAEMON_NAME", "daemon_name", TYPE_TEXT, 1, 15, NULL, false,
		"a thread's name of 1 to 15 characters: pthread_setname_np(3)"),
	SETTING(daemon_cpus, "DAEMON_CPUS", "daemon_cpus", TYPE_TEXT, 1, CONTD_SETTING_TEXT - 1, NULL, false,
		"a list of processors, as in 0,2-3"),
	SETTING(daemon_sched, "DAEMON_SCHED", "daemon_sched", TYPE_TEXT, 1, CONTD_SETTING_TEXT - 1, NULL, false,
		"other, batch, idle, fifo or rr, with :priority behind it where wanted (1 to 99 for fifo and rr, a "
		"nice "
		"value for other and batch)"),
	SETTING(dump_signal, "DUMP_SIGNAL", "dump_signal", TYPE_TEXT, 1, 15, NULL, true,
		"a signal for users, as USR2, or its number"),
	SETTING(dump_file, "DUMP_FILE", "dump_file", TYPE_TEXT, 1, CONTD_SETTING_TEXT - 1, NULL, true,
		"a path of 1 to 255 characters"),
	SETTING(verbose, "VERBOSE", "verbose", TYPE_NAMED, CONTD_VERBOSE_ERRORS, CONTD_VERBOSE_SETTINGS, verbose_names,
		false, "0 (errors), 1 (and warnings), 2 (and a line at the start) or 3 (and each setting)"),
	SETTING(stats, "STATS", "stats", TYPE_TEXT, 1, CONTD_SETTING_TEXT - 1, NULL, false,
		"exit or exit:FILE, where FILE may have %p (process), %r (rank) and %% (a %) in its name"),
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))
_Static_assert(SETTINGS <= CONTD_SETTING_KEYS, "readers of keys have room for so many");

static const struct contd_config defaults = {
	.size = sizeof(struct contd_config),
	.agent = CONTD_AGENT_REGION,
	.overhead_percent = 2,
	.tick_min_ns = 10000,
	.tick_max_ns = 10000000,
	.scan_count = 64,
	.scan_ns = 50000,
	.bell = CONTD_BELL_ON,
	.daemon_name = "contd",
	.verbose = CONTD_VERBOSE_WARNINGS,
};

static void *field_of(const struct setting *s, struct contd_config *c)
{
	return (char *)c + s->offset;
}

/* --------------------------------------------------------------------------------------------------------- text --- */

/* A whole number, nothing around it. */
static bool read_number(const char *text, uint64_t *valuep)
{
	char *end;

	errno = 0;
	*valuep = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* 2 or 0.25. Not strtod(3): that takes blanks, hexadecimals and infinities, and the locale's decimal point for a
 * point. */
static bool read_real(const char *text, double *valuep)
{
	double value = 0, scale = 1;
	bool digits = false;

	for (; *text >= '0' && *text <= '9'; text++, digits = true)
		value = 10 * value + (*text - '0');
	if (digits && *text == '.') {
		digits = false;
		for (text++; *text >= '0' && *text <= '9'; text++, digits = true) {
			value = 10 * value + (*text - '0');
			scale *= 10;
		}
	}
	*valuep = value / scale;
	return digits && !*text;
}

static bool stats_good(const char *text)
{
	if (strncmp(text, "exit", 4) != 0 || !text[4])
		return strcmp(text, "exit") == 0;
	if (text[4] != ':' || !text[5])
		return false;
	for (text += 5; (text = strchr(text, '%')) != NULL; text += 2)
		if (!text[1] || !strchr("pr%", text[1]))
			return false;
	return true;
}

/* Lists of processors, and the like, have their own rules. */
static bool has_wrong_words(const struct setting *s, const char *text)
{
	struct contd_config alone = {.size = sizeof(alone)};

	*(const char **)field_of(s, &alone) = text;
	return contd__daemon_check(&alone) != 0 || (alone.dump_signal && !contd__signal_by_name(alone.dump_signal)) ||
	       (alone.stats && !stats_good(text));
}

/* `wrong` is the text of the error. */
static int read_text(const struct setting *s, const char *text, struct contd_config *c, const char *wrong)
{
	uint64_t v = 0;
	double real = 0;
	int named = 0;

	switch (s->type) {
	case TYPE_REAL:
		if (!read_real(text, &real) || real < s->min || real > s->max)
			return contd__fail(-EINVAL, wrong);
		*(double *)field_of(s, c) = real;
		return 0;
	case TYPE_NAMED:
		for (int i = 0; s->names[i]; i++)
			if (strcmp(text, s->names[i]) == 0)
				named = i + 1;
		if (!named)
			return contd__fail(-EINVAL, wrong);
		*(int *)field_of(s, c) = named;
		return 0;
	case TYPE_TEXT:
		if (strlen(text) < (size_t)s->min || strlen(text) > (size_t)s->max || has_wrong_words(s, text))
			return contd__fail(-EINVAL, wrong);
		*(const char **)field_of(s, c) = text;
		return 0;
	case TYPE_INT:
	case TYPE_U32:
	case TYPE_U64:
		break;
	}
	if (!read_number(text, &v) || (double)v < s->min || (double)v > s->max)
		return contd__fail(-EINVAL, wrong);
	if (s->type == TYPE_INT)
		*(int *)field_of(s, c) = (int)v;
	else if (s->type == TYPE_U32)
		*(uint32_t *)field_of(s, c) = (uint32_t)v;
	else
		*(uint64_t *)field_of(s, c) = v;
	return 0;
}

const char *contd__setting_variable(size_t i)
{
	return i < SETTINGS ? settings[i].variable : NULL;
}

const char *contd__setting_key(size_t i)
{
	for (size_t n = 0; n < SETTINGS; n++)
		if (!settings[n].fixed && i-- == 0)
			return settings[n].name;
	return NULL;
}

int contd__setting_read(const char *key, const char *text, struct contd_config *config)
{
	for (size_t n = 0; n < SETTINGS; n++)
		if (!settings[n].fixed && strcmp(settings[n].name, key) == 0)
			return read_text(&settings[n], text, config, settings[n].wrong_key);
	return contd__fail(-EINVAL, "info: there is no such key");
}

/* ------------------------------------------------------------------------------------------------------- fields --- */

static bool is_given(const struct setting *s, struct contd_config *c)
{
	switch (s->type) {
	case TYPE_REAL:
		return *(double *)field_of(s, c) != 0;
	case TYPE_TEXT:
		return *(const char **)field_of(s, c) != NULL;
	case TYPE_U64:
		return *(uint64_t *)field_of(s, c) != 0;
	case TYPE_U32:
		return *(uint32_t *)field_of(s, c) != 0;
	case TYPE_INT:
	case TYPE_NAMED:
		break;
	}
	return *(int *)field_of(s, c) != 0;
}

static void take(const struct setting *s, struct contd_config *from, struct contd_config *to)
{
	size_t bytes = s->type == TYPE_U64 || s->type == TYPE_REAL || s->type == TYPE_TEXT ? 8 : 4;

	_Static_assert(sizeof(double) == 8 && sizeof(char *) <= 8 && sizeof(int) == 4, "sizes of settings");
	if (s->type == TYPE_TEXT)
		bytes = sizeof(char *);
	memcpy(field_of(s, to), field_of(s, from), bytes);
}

static bool in_range(const struct setting *s, struct contd_config *c)
{
	double v;

	switch (s->type) {
	case TYPE_REAL:
		v = *(double *)field_of(s, c);
		break;
	case TYPE_U64:
		v = (double)*(uint64_t *)field_of(s, c);
		break;
	case TYPE_U32:
		v = *(uint32_t *)field_of(s, c);
		break;
	case TYPE_TEXT:
		v = (double)strlen(*(const char **)field_of(s, c));
		break;
	case TYPE_INT:
	case TYPE_NAMED:
	default:
		v = *(int *)field_of(s, c);
		break;
	}
	return v >= s->min && v <= s->max;
}

/* ------------------------------------------------------------------------------------------------ for people --- */

static struct contd_config standard(void)
{
	struct contd_config c = defaults;

	c.signal_number = SIGRTMAX - 3;
	return c;
}

/* As read_text() would read it. */
static void write_text(const struct setting *s, struct contd_config *c, char to[CONTD_SETTING_TEXT])
{
	uint64_t v = 0;

	to[0] = '\0';
	if (!is_given(s, c) && s->names == NULL && s->type != TYPE_INT)
		return;
	switch (s->type) {
	case TYPE_REAL: {
		uint64_t millionths = (uint64_t)(*(double *)field_of(s, c) * 1e6 + 0.5);
		int n = snprintf(to, CONTD_SETTING_TEXT, "%llu.%06llu", (unsigned long long)(millionths / 1000000),
				 (unsigned long long)(millionths % 1000000));

		while (to[n - 1] == '0')
			to[--n] = '\0';
		if (to[n - 1] == '.')
			to[--n] = '\0';
		return;
	}
	case TYPE_NAMED:
		snprintf(to, CONTD_SETTING_TEXT, "%s", s->names[*(int *)field_of(s, c) - 1]);
		return;
	case TYPE_TEXT:
		snprintf(to, CONTD_SETTING_TEXT, "%s", *(const char **)field_of(s, c));
		return;
	case TYPE_INT:
		v = (uint64_t) * (int *)field_of(s, c);
		break;
	case TYPE_U32:
		v = *(uint32_t *)field_of(s, c);
		break;
	case TYPE_U64:
		v = *(uint64_t *)field_of(s, c);
		break;
	}
	snprintf(to, CONTD_SETTING_TEXT, "%llu", (unsigned long long)v);
}

static const char *origins[SETTINGS];

void contd__settings_origins(const struct contd_config *given, bool first)
{
	struct contd_config g = {.size = 0};
	const struct contd__sized_texts *texts = CONTD_SIZED_TEXTS("contd_init", "cfg", "struct contd_config");

	if (given)
		contd__sized_take(&g, sizeof(g), given, texts); /* it was right before */
	for (size_t i = 0; i < SETTINGS; i++) {
		if (first)
			origins[i] = "default";
		if (is_given(&settings[i], &g))
			origins[i] = "program";
		if (getenv(settings[i].variable))
			origins[i] = "environment";
	}
}

bool contd__setting_now_at(size_t i, struct contd__setting_now *now)
{
	if (i >= SETTINGS)
		return false;
	now->variable = settings[i].variable;
	now->origin = origins[i];
	write_text(&settings[i], &contd__config, now->value);
	return true;
}

void contd__setting_now(const char *variable, struct contd__setting_now *now)
{
	for (size_t i = 0; contd__setting_now_at(i, now) && strcmp(now->variable, variable) != 0; i++)
		;
}

bool contd__setting_describe(size_t i, struct contd__setting_info *info)
{
	const char *call = contd__error_call, *text = contd__error_text, *given;
	struct contd_config c = standard();
	const struct setting *s;

	if (i >= SETTINGS)
		return false;
	s = &settings[i];
	given = getenv(s->variable);
	*info = (struct contd__setting_info){.field = s->field,
					     .variable = s->variable,
					     .key = s->fixed ? NULL : s->name,
					     .must = s->must,
					     .given = given != NULL};
	write_text(s, &c, info->standard);
	if (given &&
	    (read_text(s, given, &c, s->wrong_variable) || c.signal_number < SIGRTMIN || c.signal_number > SIGRTMAX)) {
		info->wrong = s->wrong_variable;
		snprintf(info->value, sizeof(info->value), "%s", given);
	} else {
		write_text(s, &c, info->value);
	}
	contd__error_back_sig(text, call);
	return true;
}

int contd__settings_make(const struct contd_config *given, const struct contd_config *base, struct contd_config *config)
{
	struct contd_config c = base ? *base : standard(), g = {.size = 0};
	int rc;

	if (given) {
		rc = contd__sized_take(&g, sizeof(g), given,
				       CONTD_SIZED_TEXTS("contd_init", "cfg", "struct contd_config"));
		if (rc)
			return rc;
		if (g.reserved)
			return contd__fail(-EINVAL, "cfg->reserved must be 0: it is for later versions");
		for (size_t i = 0; i < SETTINGS; i++)
			if (is_given(&settings[i], &g))
				take(&settings[i], &g, &c);
		if (g.watchdog) {
			c.watchdog = g.watchdog;
			c.watchdog_data = g.watchdog_data;
		}
	}
	for (size_t i = 0; i < SETTINGS; i++) {
		const char *text = getenv(settings[i].variable);

		rc = text ? read_text(&settings[i], text, &c, settings[i].wrong_variable) : 0;
		if (rc)
			return rc;
	}
	for (size_t i = 0; i < SETTINGS; i++)
		if (is_given(&settings[i], &c) && !in_range(&settings[i], &c))
			return contd__fail(-EINVAL, settings[i].wrong_field);
	if (c.signal_number < SIGRTMIN || c.signal_number > SIGRTMAX)
		return contd__fail(-EINVAL,
				   "cfg->signal_number (CONTD_SIGNAL) must be a number from SIGRTMIN to SIGRTMAX");
	if (c.tick_max_ns < c.tick_min_ns)
		return contd__fail(-EINVAL, "tick_max_ns (CONTD_TICK_MAX_NS, contd_tick_max_ns) must be from "
					    "tick_min_ns (CONTD_TICK_MIN_NS, "
					    "contd_tick_min_ns) to 10000000000 nanoseconds");
	if (c.dump_signal &&
	    (!contd__signal_by_name(c.dump_signal) || contd__signal_by_name(c.dump_signal) == c.signal_number))
		return contd__fail(-EINVAL,
				   "cfg->dump_signal (CONTD_DUMP_SIGNAL) must be a signal for users, as USR2, or its "
				   "number, and another one than cfg->signal_number (CONTD_SIGNAL)");
	if (c.dump_file && !c.dump_signal)
		return contd__fail(-EINVAL,
				   "cfg->dump_file (CONTD_DUMP_FILE) must be given together with cfg->dump_signal "
				   "(CONTD_DUMP_SIGNAL), which asks for the dump");
	if (c.stats && !stats_good(c.stats))
		return contd__fail(-EINVAL, "cfg->stats must be exit or exit:FILE");
	/* Check it now, not when a daemon starts: it may never start. */
	if (contd__daemon_check(&c))
		return -EINVAL;
	*config = c;
	return 0;
}
