/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/limits.h"
#include "dump/root.h"

struct contd__dump_root contd__dump_root = {
	.magic = DUMP_MAGIC,
	.size = sizeof(struct contd__dump_root),
	.layout = DUMP_LAYOUT,
	.version = CONTD_VERSION_MAJOR << 16 | CONTD_VERSION_MINOR << 8 | CONTD_VERSION_PATCH,
	.places = DUMP_PLACES,
	.part_size = sizeof(struct contd__dump_part),
	.live = &contd__live,
	.clock = &contd__clock,
	.config = &contd__config,
	.groups = &contd__groups.all,
	.threads = &contd__threads,
	.signals = &contd__signals,
	.wake = &contd__wake,
	.words = &contd__words,
	.sources = &contd__sources,
	.page = &contd__page,
	.put_off = &contd__put_off_carried,
	.place = {DUMP_READS(DUMP_PLACE)},
};

void contd__dump_root_start(void)
{
	contd__store(&contd__dump_root.begun, contd__ticks());
}

void contd__dump_part_add(const struct contd__dump_part *part)
{
	for (unsigned i = 0; i < DUMP_PARTS; i++) {
		const struct contd__dump_part *none = NULL;

		if (contd__cas(&contd__dump_root.part[i], &none, part) || none == part)
			return;
	}
}
