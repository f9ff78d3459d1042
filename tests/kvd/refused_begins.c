/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: every third operation that is begun after the first 130 is refused, as if there were no memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include <contd/fabric.h>

int contd_fabric_begin_continue(struct contd_fabric_queue *queue, struct contd_fabric_op *op, contd_callback *cb,
				void *data, struct contd_group *group)
{
	static int (*real)(struct contd_fabric_queue *, struct contd_fabric_op *, contd_callback *, void *,
			   struct contd_group *);
	static unsigned calls; /* the server has one thread */

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "contd_fabric_begin_continue");
	if (!real)
		abort();
	calls++;
	return calls > 130 && calls % 3 == 0 ? -ENOMEM : real(queue, op, cb, data, group);
}
