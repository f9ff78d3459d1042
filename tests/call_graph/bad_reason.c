/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of the allow file without its reason, and one with an unknown word. */
/* rejected: no reason given */
/* rejected: not understood: allows handler everything */
/* rejected: the library has no such function */
/* allow: root handler handler */
/* allow: root gone # for the example's sake */
/* allow: allows handler everything # for the example's sake */
#include "example.h"

void handler(int signo)
{
	others_data = signo;
}
