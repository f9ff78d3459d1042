/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with a contd__dump_root that no version of contd has: dumped_other WHAT. It prints "there", and stays. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dump/root.h"

__attribute__((visibility("default"))) struct contd__dump_root contd__dump_root = {
	.magic = DUMP_MAGIC, .size = sizeof(struct contd__dump_root), .layout = DUMP_LAYOUT, .places = DUMP_PLACES};

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "layout"))
		contd__dump_root.layout = DUMP_LAYOUT + 1;
	if (!strcmp(what, "magic"))
		contd__dump_root.magic++;
	if (!strcmp(what, "places")) /* another size of some structure: all of them are 0 here */
		contd__dump_root.part_size = sizeof(struct contd__dump_part);
	puts("there");
	fflush(stdout);
	for (;;)
		pause();
}
