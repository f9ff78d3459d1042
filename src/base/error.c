/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/error.h"

__thread const char *contd__error_text __attribute__((tls_model("initial-exec")));

int contd__fail(int err, const char *text)
{
	contd__error_text = text;
	return err;
}
