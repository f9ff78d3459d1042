/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command contd: its subcommands. It links no library of contd. contd info begins processes that have them
 * preloaded: probe.h.
 */
#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "command/dump.h"
#include "command/info.h"
#include "command/probed.h"
#include "command/run.h"
#include "command/status.h"

static const struct subcommand {
	const char *name, *says;
	int (*run)(int argc, char **argv);
} subcommands[] = {
	{"run", "run a program with contd's libraries preloaded, and with settings", command_run},
	{"info", "what is installed, what works here, what it costs, and the settings", command_info},
	{"dump", "what contd has in another process: what is pending, and what its threads do", command_dump},
	{".probe", NULL, command_probe}, /* a process of contd info's */
};
#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static int usage(void)
{
	fputs("usage: contd SUBCOMMAND [OPTION]... [ARGUMENT]...\n\n", stdout);
	for (size_t i = 0; i < SUBCOMMANDS && subcommands[i].says; i++)
		printf("  %-10s %s\n", subcommands[i].name, subcommands[i].says);
	fputs("\n  --help     this text; contd SUBCOMMAND --help tells of one of them\n"
	      "  --version  the version of contd\n",
	      stdout);
	return output_end();
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		return usage();
	if (!strcmp(name, "--version")) {
		puts("contd " CONTD_VERSION_TEXT);
		return output_end();
	}
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		if (!strcmp(name, subcommands[i].name))
			return subcommands[i].run(argc - 1, argv + 1);
	contd__say("%s%s; see contd --help", name,
		   *name ? ": there is no such subcommand" : "a subcommand must be named");
	return STATUS_USAGE;
}
