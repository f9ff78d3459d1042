/* SPDX-License-Identifier: BSD-3-Clause */
/* A call into a unit that is not marked. */
/* rejected: calls others_value() of */
/* rejected: a unit that is not marked as reached by handlers */
/* rejected: "edge handler others_value # why" */
/* allow: root handler handler # the example's */
#include "example.h"

void handler(int signo)
{
	others_data = others_value() + signo;
}
