/* SPDX-License-Identifier: BSD-3-Clause */
/* A unit that is not marked as reached by handlers; beside every example. */
#include "example.h"

int others_value(void)
{
	return others_data;
}

int others_data = 7;
