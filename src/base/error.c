/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <stddef.h>

#include "base/error.h"

__thread const char *contd__error_text __attribute__((tls_model("initial-exec")));
__thread const char *contd__error_call __attribute__((tls_model("initial-exec")));

int contd__fail(int err, const char *text)
{
	contd__error_text = text;
	contd__error_call = NULL;
	return err;
}
