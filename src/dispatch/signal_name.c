/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "dispatch/signal_name.h"

/* Not those that cannot be caught, and those that an instruction raises. */
static const struct {
	const char *name;
	int number;
} named[] = {{"HUP", SIGHUP},   {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
	     {"TERM", SIGTERM}, {"URG", SIGURG}, {"IO", SIGIO},     {"PWR", SIGPWR},   {"WINCH", SIGWINCH}};

int contd__signal_by_name(const char *name)
{
	int number = 0;

	if (*name >= '1' && *name <= '9')
		while (*name >= '0' && *name <= '9' && number < 1000)
			number = 10 * number + (*name++ - '0');
	if (number && !*name && number >= SIGRTMIN && number <= SIGRTMAX)
		return number;
	if (!strncmp(name, "SIG", 3))
		name += 3;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (number ? !*name && number == named[i].number : !strcmp(name, named[i].name))
			return named[i].number;
	return 0;
}
