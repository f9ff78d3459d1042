/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/say.h"

#define NO_RANK (-1)

static int rank = NO_RANK;

void contd__say_rank(int n)
{
	contd__store(&rank, n);
}

int contd__say_rank_known(void)
{
	return contd__load(&rank);
}

static char *put_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *put_number(char *to, unsigned long n)
{
	char digits[20];
	unsigned count = 0;

	do
		digits[count++] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	while (count)
		*to++ = digits[--count];
	return to;
}

size_t contd__say_beginning_sig(char to[SAY_BEGINNING])
{
	struct utsname host;
	int n = contd__load(&rank);
	char *at = put_text(to, "contd: [");

	/* Of this process, and now: a child has its own number, and the host may get another name. */
	host.nodename[0] = '\0';
	syscall(SYS_uname, &host);
	at = put_text(at, host.nodename[0] ? host.nodename : "?");
	*at++ = ':';
	at = put_number(at, (unsigned long)syscall(SYS_getpid));
	if (n >= 0)
		at = put_number(put_text(at, " rank "), (unsigned long)n);
	return (size_t)(put_text(at, "] ") - to);
}

void contd__say_sig(const char *line, size_t length)
{
	char beginning[SAY_BEGINNING];
	struct iovec parts[] = {{beginning, 0}, {(void *)(uintptr_t)line, length}, {(void *)(uintptr_t) "\n", 1}};
	struct iovec *part = parts, *end = parts + 3;
	int saved = errno;

	beginning[0] = '\0';
	parts[0].iov_len = contd__say_beginning_sig(beginning);
	/* Mostly once: the kernel writes less only if a signal comes, or something is full. */
	while (part < end) {
		long n = syscall(SYS_writev, STDERR_FILENO, part, end - part);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		for (; part < end && (size_t)n >= part->iov_len; part++)
			n -= (long)part->iov_len;
		if (part < end) {
			part->iov_base = (char *)part->iov_base + n;
			part->iov_len -= (size_t)n;
		}
	}
	errno = saved;
}
