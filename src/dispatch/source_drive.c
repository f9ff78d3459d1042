/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/interrupt.h"
#include "dispatch/late.h"
#include "dispatch/source.h"
#include "dispatch/wake.h"

struct contd__sources contd__sources;

void contd__pending_sig(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	if (ops)
		ops->arm();
	contd__wake_daemon_sig(false);
	contd__wake_sleepers_sig(); /* threads that wait without a limit now have something to look at */
}

bool contd__sources_pending_sig(uint32_t where)
{
	/* Acquire: pairs with the release in contd__source_register. */
	uint32_t n = contd__load_acquire(&contd__sources.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__sources.source[i]->where & where && contd__sources.source[i]->pending())
			return true;
	return false;
}

bool contd__sources_steady_sig(uint32_t where)
{
	uint32_t n = contd__load_acquire(&contd__sources.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__sources.source[i]->steady && contd__sources.source[i]->where & where &&
		    contd__sources.source[i]->pending())
			return true;
	return false;
}

void contd__sources_drive_sig(enum contd__where where, const struct contd__source *but, bool last)
{
	uint32_t n = contd__load_acquire(&contd__sources.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__sources.source[i] != but && contd__sources.source[i]->where & (uint32_t)where &&
		    contd__sources.source[i]->pending()) {
			uint64_t begin = contd__late_watched_sig() ? contd__ticks() : 0;

			contd__sources.source[i]->progress(last);
			if (begin)
				contd__late_note_sig((const void *)(uintptr_t)contd__sources.source[i]->progress,
						     LATE_SOURCE, contd__ticks() - begin);
		}
}

bool contd__sources_here_sig(uint32_t where)
{
	uint32_t n = contd__load_acquire(&contd__sources.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__sources.source[i]->where & where && contd__sources.source[i]->pending() &&
		    (!contd__sources.source[i]->here || contd__sources.source[i]->here()))
			return true;
	return false;
}

bool contd__sources_elsewhere_sig(uint32_t where)
{
	uint32_t n = contd__load_acquire(&contd__sources.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__sources.source[i]->where & where && contd__sources.source[i]->pending() &&
		    contd__sources.source[i]->here && !contd__sources.source[i]->here())
			return true;
	return false;
}

bool contd__sources_of_all_sig(uint32_t where)
{
	uint32_t n = contd__load_acquire(&contd__sources.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__sources.source[i]->where & where && !contd__sources.source[i]->here &&
		    contd__sources.source[i]->pending())
			return true;
	return false;
}

bool contd__source_is_registered(const struct contd__source *source)
{
	uint32_t n = contd__load_acquire(&contd__sources.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__sources.source[i] == source)
			return true;
	return false;
}
