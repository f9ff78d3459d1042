/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "notify.h"

int kvd_notify(const char *text)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t length = name ? strlen(name) : 0;
	socklen_t bytes;
	int fd, rc;

	if (!length)
		return 0;
	if ((*name != '/' && *name != '@') || length < 2 || length >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, name, length);
	/* An abstract name begins with a 0 and has none at its end. */
	bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*name == '/'));
	if (*name == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to, bytes) < 0 ? -errno : 1;
	close(fd);
	return rc;
}
