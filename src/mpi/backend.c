/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mpi/backend.h"

const struct contd__mpi_backend *contd__mpi;

/* How the backend was chosen, a line for each step. Written under start_lock of life.c, before contd__mpi_open is
 * stored. */
static char steps[BACKEND_STEPS];
static bool choosing;

void contd__backend_choosing(bool begins)
{
	if (begins)
		steps[0] = '\0';
	choosing = begins;
}

const char *contd__backend_steps(void)
{
	return steps;
}

void contd__backend_step(const char *format, ...)
{
	size_t length = strlen(steps);
	va_list arguments;

	if (!choosing)
		return;
	if (length)
		length += (size_t)snprintf(steps + length, sizeof(steps) - length, "\n");
	if (length >= sizeof(steps))
		return;
	va_start(arguments, format);
	vsnprintf(steps + length, sizeof(steps) - length, format, arguments);
	va_end(arguments);
}
