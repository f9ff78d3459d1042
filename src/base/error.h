/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text that goes with the last error of a thread: contd_error_text() returns it. It has two parts: what is wrong,
 * and which call of the program's has failed. So no code that runs in a handler puts texts together.
 *
 *     operation               thread  handler  progress
 *     contd__fail, _fail_in     yes     yes    wait-free
 *     contd__error_said         yes     no     lock-free; memory
 */
#ifndef CONTD_BASE_ERROR_H
#define CONTD_BASE_ERROR_H

#include "base/api.h"

/* The text of what is wrong. It may begin with a call's name, a colon and a blank. NULL: nothing has failed. */
CONTD_INTERNAL_API extern __thread const char *contd__error_text __attribute__((tls_model("initial-exec")));

/* The call that the program made, if the text has no name, or the name of a call that contd made for it. Or NULL. */
CONTD_INTERNAL_API extern __thread const char *contd__error_call __attribute__((tls_model("initial-exec")));

/* Sets the text, which must stay, and returns err. No call is named but the one that the text names. */
CONTD_INTERNAL_API int contd__fail(int err, const char *text);

/* Names the call of the error that has been set; the name stays. Returns err. 0 is no error, and changes nothing. */
static inline int contd__fail_in(const char *call, int err)
{
	if (__builtin_expect(err != 0, 0))
		contd__error_call = call;
	return err;
}

/* Around code that may set another error, as a handler does: what the two were before it, they are again. */
static inline void contd__error_back_sig(const char *text, const char *call)
{
	contd__error_text = text;
	contd__error_call = call;
}

/* The text of an argument that is NULL: literals. */
#define CONTD_NULL(call, argument) call ": " argument " must not be NULL"

/* The whole text: "CALL: what is wrong". It stays. */
CONTD_INTERNAL_API const char *contd__error_said(void);

#endif
