/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/memory.h"
#include "dispatch/live.h"
#include "dispatch/thread.h"
#include "dump/dump.h"
#include "dump/here.h"
#include "dump/root.h"
#include "dump/text.h"
#include "dump/walk.h"

/* Too much for the stack of a thread that may have a small one. */
struct work {
	struct contd__dump_walk walk;
	struct contd__dump_text text;
	struct contd__dump_here here;
};

static int dump_with(struct work *work, int fd, bool beginnings, bool (*wait)(int fd))
{
	int rc = contd__dump_here_begin(&work->here);

	if (rc) {
		contd__dump_here_end(&work->here);
		return rc;
	}
	contd__dump_text_begin(&work->text, fd, beginnings, wait);
	work->walk.reader = &work->here.reader;
	work->walk.out = &work->text.out;
	work->walk.limit = DUMP_LIMIT;
	if (contd__dump_take(&work->walk, (uintptr_t)&contd__dump_root))
		rc = -EIO;
	else
		contd__dump_walk(&work->walk);
	contd__dump_here_end(&work->here);
	return rc ? rc : contd__dump_text_end(&work->text);
}

int contd__dump_to(int fd, bool beginnings, bool (*wait)(int fd))
{
	/* From the kernel: another thread may hang with malloc's lock. */
	struct work *work = contd__map(sizeof(*work));
	int before, rc;

	if (!work)
		return -ENOMEM;
	/* Continuations that the end of a read-side section would run run at the end of this. */
	contd_guard_begin();
	before = contd__cancel_off();
	rc = dump_with(work, fd, beginnings, wait);
	munmap(work, sizeof(*work));
	contd__cancel_as(before);
	contd_guard_end();
	return rc;
}

int contd_dump(int fd)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_dump: not in a signal handler");
	rc = contd__dump_to(fd, false, NULL);
	switch (rc) {
	case 0:
		return 0;
	case -ENOMEM:
		return contd__fail(rc, "contd_dump: out of memory");
	case -EBADF:
		return contd__fail(rc, "contd_dump: fd is no descriptor that can be written to");
	case -EIO:
		return contd__fail(rc, "contd_dump: write(2) to fd, or reading contd's own memory, has failed");
	default:
		return contd__fail(rc, "contd_dump: write(2) to fd has failed (the code is its errno), or the kernel "
				       "refuses process_vm_readv(2) and /proc/thread-self/mem");
	}
}
