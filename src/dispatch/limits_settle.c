/* SPDX-License-Identifier: BSD-3-Clause */
/* Putting settings in force: what is derived from them, and copies of their texts. */
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/limits.h"

void contd__limits_settle_locked(const struct contd_config *c)
{
	static char kept[2][6][CONTD_SETTING_TEXT]; /* two: what is put in force may be what was in force before */
	static unsigned turn;
	const char **texts[] = {&contd__config.daemon_name, &contd__config.daemon_cpus, &contd__config.daemon_sched,
				&contd__config.dump_signal, &contd__config.dump_file,   &contd__config.stats};

	contd__config = *c;
	turn ^= 1;
	for (unsigned i = 0; i < 6; i++) {
		if (!*texts[i])
			continue;
		memmove(kept[turn][i], *texts[i], strlen(*texts[i]) + 1); /* its length was checked: settings.c */
		*texts[i] = kept[turn][i];
	}
	contd__store(&contd__limits.scan_ticks, (uint64_t)((double)c->scan_ns * contd__clock.ticks_per_ns));
	contd__store(&contd__limits.tick_rate, (uint64_t)(c->overhead_percent / 100 * 0.8 * (1 << 20)));
	contd__store(&contd__limits.tick_min, c->tick_min_ns);
	contd__store(&contd__limits.tick_max, c->tick_max_ns);
	contd__store(&contd__limits.scan_count, c->scan_count);
	contd__store(&contd__limits.purse_rate, (uint64_t)(c->overhead_percent / 100 * 0.9 * (1 << 20)));
	contd__store(&contd__limits.purse_most,
		     (uint64_t)(c->overhead_percent / 100 * 0.1 * (double)contd__clock.second));
	contd__store(&contd__limits.late_ticks, (uint64_t)((double)c->watchdog_ns * contd__clock.ticks_per_ns));
}
