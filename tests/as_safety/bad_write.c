/* SPDX-License-Identifier: BSD-3-Clause */
/* Async-signal-safe, but a cancellation point: a thread that is to be cancelled would end in the middle of a
 * handler. */
/* rejected: write */
#include <unistd.h>

int bad_write(int fd);

int bad_write(int fd)
{
	return (int)write(fd, "", 1);
}
