/* SPDX-License-Identifier: BSD-3-Clause */
/* contd's own descriptors. */
#ifndef CONTD_BASE_OWN_FD_H
#define CONTD_BASE_OWN_FD_H

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STANDARD_LAST 2

/*
 * The descriptor under a number that is not one of the three standard ones, or -1 and errno. If the program has closed
 * one of these, a new descriptor gets its number. Then a message to standard error would be written into the page of
 * doorbells, and a program that reads its input would wait for a socket. Ordinary threads.
 */
static inline int contd__own_fd(int fd)
{
	int own = fd, saved;

	if (fd < 0 || fd > STANDARD_LAST)
		return fd;
	own = fcntl(fd, F_DUPFD_CLOEXEC, STANDARD_LAST + 1);
	saved = errno;
	syscall(SYS_close, fd); /* close(2) would be a cancellation point, and the caller may have a lock */
	errno = saved;
	return own;
}

#endif
