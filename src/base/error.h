/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that goes with the last error of a thread: contd_error_text() returns it. Any context. */
#ifndef CONTD_BASE_ERROR_H
#define CONTD_BASE_ERROR_H

#include "base/api.h"

CONTD_INTERNAL_API extern __thread const char *contd__error_text __attribute__((tls_model("initial-exec")));

/* Sets the text, which must stay; returns err. */
CONTD_INTERNAL_API int contd__fail(int err, const char *text);

#endif
