/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with a contd__dump_root that no version of contd has: dumped_other WHAT. It prints "there", and stays. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump/root.h"

__attribute__((visibility("default"))) struct contd__dump_root contd__dump_root = {
	.magic = DUMP_MAGIC, .size = sizeof(struct contd__dump_root), .layout = DUMP_LAYOUT, .places = DUMP_PLACES};

/* All as contd has it, but for the place of a pointer in the part's operations, which is far outside of them; and
 * a name that a terminal would act on. */
static void invoke(struct contd__slot *slot)
{
	(void)slot;
}

static void far_away(void)
{
	static const uint64_t places[] = {DUMP_READS(DUMP_PLACE)};
	static struct contd__live live = {.users = 1};
	static struct contd_config config = {.daemon_name = "one\ntwo\033[2J\177\xc2\x9b\xc3\xa4"};
	static struct cds_list_head groups, threads = {&threads, &threads};
	static struct contd_group group;
	static struct contd__branch branch;
	static struct contd__chunk *chunk;
	static struct {
		uint64_t value[2];
		uint32_t count;
	} source = {.count = 1};
	static const struct contd__dump_field field = {.key = "value", .size = 8, .how = DUMP_NUMBER};
	static struct contd__dump_part part = {.size = sizeof(part),
					       .name = "far",
					       .invoke = {invoke},
					       .count_at = 16,
					       .operation = {&field, 1, 8},
					       .more_at = UINT32_MAX - 64,
					       .more = {&field, 1, 8}};
	struct contd__dump_root *r = &contd__dump_root;

	chunk = aligned_alloc(64, sizeof(*chunk) + sizeof(chunk->slot[0]));
	memset(chunk, 0, sizeof(*chunk) + sizeof(chunk->slot[0]));
	chunk->slot[0] = (struct contd__slot){.state = SLOT_WORD(0, 1, SLOT_PENDING),
					      .group = &group,
					      .invoke = invoke,
					      .source = (uintptr_t)&source | KIND_SOURCE};
	branch.chunk[0] = chunk;
	group.life = LIFE_REFERENCE + 1;
	group.table = (struct contd__table){.used = 1, .limit = 1, .group = &group, .branch = {&branch}};
	group.node = (struct cds_list_head){&groups, &groups};
	groups = (struct cds_list_head){&group.node, &group.node};
	memcpy(r->place, places, sizeof(places));
	r->part_size = sizeof(part);
	r->part[0] = &part;
	r->live = &live;
	r->config = &config;
	r->groups = &groups;
	r->threads = &threads;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "layout"))
		contd__dump_root.layout = DUMP_LAYOUT + 1;
	if (!strcmp(what, "magic"))
		contd__dump_root.magic++;
	if (!strcmp(what, "places")) /* another size of some structure: all of them are 0 here */
		contd__dump_root.part_size = sizeof(struct contd__dump_part);
	if (!strcmp(what, "far"))
		far_away();
	puts("there");
	fflush(stdout);
	for (;;)
		pause();
}
