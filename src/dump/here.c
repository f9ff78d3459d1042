/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/thread.h"
#include "dump/here.h"

static bool by_file(int fd, uintptr_t address, void *to, size_t size)
{
	ssize_t n;

	do
		n = pread(fd, to, size, (off_t)address);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

static bool read_here(struct contd__dump_reader *r, uintptr_t address, void *to, size_t size)
{
	struct contd__dump_here *h = (struct contd__dump_here *)r;
	struct iovec local = {to, size}, remote = {(void *)address, size};

	if (h->memory >= 0)
		return by_file(h->memory, address, to, size);
	return process_vm_readv(h->task, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void maps_here(struct contd__dump_reader *r, bool (*each)(void *with, const struct contd__dump_map *map),
		      void *with)
{
	contd__dump_proc_maps(r, open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC), each, with);
}

static int open_here(struct contd__dump_reader *r, const char *path)
{
	(void)r;
	return contd__dump_open(path);
}

/* The group that is behind g in the list, with a reference; g has one, or is NULL. */
static struct contd_group *take_next(const struct contd_group *g)
{
	const struct cds_list_head *at = g ? &g->node : &contd__groups.all;
	bool reader = contd__enter_sig();
	struct contd_group *next = NULL;

	while (!next) {
		/* Acquire: pairs with the releases in list_locked() and unlist_locked() (group_set.c). */
		at = contd__load_acquire(&at->next);
		if (at == &contd__groups.all)
			break;
		next = caa_container_of(at, struct contd_group, node);
		/* One without references is on its way out, and stays where it is until the section ends. */
		if (!contd__group_try_pin_sig(next))
			next = NULL;
	}
	contd__leave_sig(reader);
	return next;
}

static void next_here(struct contd__dump_reader *r, uintptr_t *groupp)
{
	struct contd__dump_here *h = (struct contd__dump_here *)r;

	*groupp = h->next < h->groups ? h->group[h->next++] : 0;
}

static bool remember(struct contd__dump_here *h, const struct contd_group *g)
{
	size_t room = h->room ? 2 * h->room : 512;
	uintptr_t *more;

	if (h->groups == h->room) {
		more = contd__map(room * sizeof(*more));
		if (!more)
			return false;
		if (h->group) {
			memcpy(more, h->group, h->room * sizeof(*more));
			munmap(h->group, h->room * sizeof(*more));
		}
		h->group = more;
		h->room = room;
	}
	h->group[h->groups++] = (uintptr_t)g;
	return true;
}

static int find_groups(struct contd__dump_here *h)
{
	struct contd_group *g = contd__is_live() ? take_next(NULL) : NULL, *next;
	int rc = 0;

	for (; g; g = next) {
		if (!remember(h, g))
			rc = -ENOMEM;
		next = rc ? NULL : take_next(g);
		contd__group_unpin_sig(g);
	}
	return rc;
}

int contd__dump_here_begin(struct contd__dump_here *h)
{
	uint64_t from = 0, to;

	h->reader = (struct contd__dump_reader){.read = read_here,
						.maps = maps_here,
						.open = open_here,
						.next_group = next_here,
						.self = (uintptr_t)&contd__self,
						.pid = getpid(),
						.now = contd__ticks()};
	h->task = (int)syscall(SYS_gettid);
	h->memory = -1;
	h->group = NULL;
	h->room = h->groups = h->next = 0;
	if (!read_here(&h->reader, (uintptr_t)&from, &to, sizeof(to))) {
		h->memory = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
		if (h->memory < 0)
			return -errno;
	}
	return find_groups(h);
}

void contd__dump_here_end(struct contd__dump_here *h)
{
	if (h->memory >= 0)
		close(h->memory);
	if (h->group)
		munmap(h->group, h->room * sizeof(*h->group));
}
