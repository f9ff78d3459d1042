/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything here is on the allow list. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int good_syscall(int fd, void *to, const void *from, size_t size);

int good_syscall(int fd, void *to, const void *from, size_t size)
{
	int saved = errno;

	memcpy(to, from, size);
	if (syscall(SYS_write, fd, to, size) < 0)
		errno = saved;
	return errno;
}
