/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/variables.h"
#include "base/verbose.h"
#include "base/warn.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/settings.h"
#include "life/beginning.h"

#if defined(__x86_64__)
#define CLOCK "the processor's time stamp counter"
#elif defined(__aarch64__)
#define CLOCK "the processor's virtual counter (cntvct_el0)"
#else
#define CLOCK "CLOCK_MONOTONIC"
#endif

static void say_start(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);
	uint64_t cost = ops ? ops->tick_cost_ns() : 0;
	struct contd__setting_now agent, budget;
	char text[1024], tick[64] = "not measured yet";

	contd__setting_now("CONTD_AGENT", &agent);
	contd__setting_now("CONTD_OVERHEAD_PERCENT", &budget);
	if (cost)
		snprintf(tick, sizeof(tick), "%.1f us", (double)cost / 1e3);
	snprintf(text, sizeof(text),
		 "version %d.%d.%d: agent %s, signal %d, overhead budget %s %%, clock: " CLOCK
		 ", %.2f GHz, cost of a tick: %s",
		 CONTD_VERSION_MAJOR, CONTD_VERSION_MINOR, CONTD_VERSION_PATCH, agent.value,
		 contd__config.signal_number, budget.value, contd__clock.ticks_per_ns, tick);
	/* What is measured differs between ranks. */
	contd__tell_here(CONTD_VERBOSE_START, agent.value, text);
}

static const char *value_of(const struct contd__variable *v)
{
	const char *value = getenv(v->name);

	return value && (*value || !v->empty) ? value : NULL;
}

static void say_settings(bool first)
{
	char text[2 * CONTD_SETTING_KEYS * (CONTD_SETTING_TEXT + 64)];
	const struct contd__variable *v;
	struct contd__setting_now now;
	size_t n = 0;

	n += (size_t)snprintf(text, sizeof(text), first ? "settings:" : "settings from now on:");
	for (size_t i = 0; contd__setting_now_at(i, &now) && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\n  %s=%s (%s)", now.variable, now.value,
				      now.origin);
	for (size_t i = 0; (v = contd__variable_at(i)) != NULL && n < sizeof(text); i++) {
		const char *value = value_of(v);

		n += (size_t)snprintf(text + n, sizeof(text) - n, "\n  %s=%.*s (%s)", v->name, CONTD_SETTING_TEXT,
				      value         ? value
				      : v->standard ? v->standard
						    : "",
				      value ? "environment" : "default");
	}
	contd__tell_here(CONTD_VERBOSE_SETTINGS, NULL, text);
}

/* The nearest variable that is read. NULL: this one is, or it is meant for the project's tests or tools. */
static const char *nearest_to(const char *name)
{
	size_t best = SIZE_MAX;
	const char *nearest = NULL, *other;

	if (contd__variable_other(name))
		return NULL;
	for (size_t i = 0, k = 0; (other = contd__setting_variable(i)) != NULL || contd__variable_at(k); i++) {
		size_t d;

		if (!other)
			other = contd__variable_at(k++)->name;
		d = contd__distance(name, other);
		if (d < best) {
			best = d;
			nearest = other;
		}
	}
	return best ? nearest : NULL;
}

/* Once in a process. */
static void warn_of_unknown(void)
{
	static bool warned;
	extern char **environ;

	if (warned || !contd__says(CONTD_VERBOSE_WARNINGS))
		return;
	warned = true;
	for (char **entry = environ; entry && *entry; entry++) {
		size_t n = strcspn(*entry, "=");
		char name[CONTD_NAME_MOST];
		const char *nearest;

		if (strncmp(*entry, "CONTD_", 6) != 0 || n >= sizeof(name))
			continue;
		memcpy(name, *entry, n);
		name[n] = '\0';
		nearest = nearest_to(name);
		if (nearest)
			contd__warn_here(
				"the variable %s is unknown and has no effect; the nearest one that is known is %s",
				name, nearest);
	}
}

void contd__beginning_locked(bool first)
{
	if (first)
		warn_of_unknown();
	if (first && contd__says(CONTD_VERBOSE_START))
		say_start();
	if (contd__says(CONTD_VERBOSE_SETTINGS))
		say_settings(first);
}
