/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "dispatch/late.h"
#include "dispatch/limits.h"
#include "dispatch/thread.h"

struct contd__late_site contd__late_sites[LATE_SITES];

bool contd__late_note_sig(const void *site, enum contd__late_what what, uint64_t ticks)
{
	uint32_t i = (uint32_t)((uintptr_t)site >> 4) % LATE_SITES;

	if (ticks <= contd__load(&contd__limits.late_ticks) || contd__load(&contd__limits.late_ticks) == 0)
		return false;
	for (unsigned probes = 0; probes < LATE_SITES; probes++, i = (i + 1) % LATE_SITES) {
		struct contd__late_site *s = &contd__late_sites[i];
		const void *none = NULL;

		if (contd__load(&s->site) == site)
			return true;
		if (!contd__cas(&s->site, &none, site)) {
			if (none == site)
				return true;
			continue;
		}
		s->what = (uint8_t)what;
		s->where = contd__self.context;
		/* Release: pairs with the acquire in watchdog.c. */
		contd__store_release(&s->ticks, ticks);
		return true;
	}
	return true; /* more sites than places: each is reported once, and these are many reports already */
}
