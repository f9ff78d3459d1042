/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
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

static void say_settings(bool first)
{
	char text[CONTD_SETTING_KEYS * (CONTD_SETTING_TEXT + 64)];
	struct contd__setting_now now;
	size_t n = 0;

	n += (size_t)snprintf(text, sizeof(text), first ? "settings:" : "settings from now on:");
	for (size_t i = 0; contd__setting_now_at(i, &now) && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\n  %s=%s (%s)", now.variable, now.value,
				      now.origin);
	contd__tell_here(CONTD_VERBOSE_SETTINGS, NULL, text);
}

void contd__beginning_locked(bool first)
{
	if (first && contd__says(CONTD_VERBOSE_START))
		say_start();
	if (contd__says(CONTD_VERBOSE_SETTINGS))
		say_settings(first);
}
