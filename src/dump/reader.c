/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/reader.h"

int contd__dump_open(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return -1;
	}
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* One line: "start-end rwxp offset device inode   path". Changes it. */
static bool parse_line(char *line, struct contd__dump_map *map)
{
	char *at = line;

	map->start = (uintptr_t)strtoull(at, &at, 16);
	if (*at++ != '-')
		return false;
	map->end = (uintptr_t)strtoull(at, &at, 16);
	if (*at++ != ' ')
		return false;
	at += strcspn(at, " ");
	map->offset = strtoull(at, &at, 16);
	for (int words = 0; words < 2; words++) {
		at += strspn(at, " ");
		at += strcspn(at, " ");
	}
	at += strspn(at, " ");
	map->path = at;
	return *at == '/' && map->end > map->start;
}

bool contd__dump_read_at(int fd, void *to, size_t size, uint64_t at)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

void contd__dump_proc_maps(struct contd__dump_reader *r, int fd,
			   bool (*each)(void *with, const struct contd__dump_map *map), void *with)
{
	const size_t room = sizeof(r->lines) - 1;
	char *text = r->lines;
	size_t have = 0;
	bool more = true;

	while (more && fd >= 0) {
		ssize_t n = read(fd, text + have, room - have);
		char *line = text, *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		text[have] = 0;
		while (more && (end = memchr(line, '\n', (size_t)(text + have - line))) != NULL) {
			struct contd__dump_map map;

			*end = 0;
			if (parse_line(line, &map))
				more = each(with, &map);
			line = end + 1;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have == room)
			have = 0; /* a path that no system has: pass over it */
	}
	if (fd >= 0)
		close(fd);
}
