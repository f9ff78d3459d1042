/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "command/status.h"

int output_failed(int error)
{
	contd__say("standard output cannot be written: %s", strerror(error));
	return STATUS_FAILED;
}

int output_end(void)
{
	if (fflush(stdout))
		return output_failed(errno);
	/* An earlier write(2) has failed, and its errno is lost. */
	return ferror(stdout) ? output_failed(EIO) : 0;
}
