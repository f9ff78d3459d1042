/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ways a group leaves to its continuations, from "complete" to the callback. All can go by their bit, and a scan.
 * The other ways save steps of that one, and each has its own rule:
 *
 *     at once        in the call that registers it                                   contd__may_run_inline()
 *     taken          the thread that drives the source runs it afterwards            contd__may_be_taken_sig()
 *     by its test    the same, if it drives the source in a test or wait of the group
 *                                                                                    contd__may_be_taken_by_test_sig()
 *     without a bit  the only thread that uses contd finds it when it looks next     contd__may_be_unmarked_sig()
 *
 *     the group has             at once  taken  by its test  without a bit  because
 *     CONTD_POLL_ONLY             no      no       yes           yes        only a test or wait of the group may run it
 *     CONTD_ENQUEUE_COMPLETE      no      yes      yes           yes        the call that registers it must not run it
 *     CONTD_ASYNC_SIGNAL_SAFE     yes     yes      yes           no         handlers run it anywhere: they look at bits
 *     an executor                 no      no       no            no         the executor takes slots
 *     a max_poll                  yes*    no       no            no         scans count what tests may run
 *
 *     * Not if it is 0: then tests and interruptions run none of it, and waits and polls all that they find.
 *
 * The continuation is outstanding, or about to be: the group's executor stays the same (contd_group_set_executor).
 */
#ifndef CONTD_DISPATCH_WAYS_H
#define CONTD_DISPATCH_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/outlet.h"
#include "dispatch/thread.h"

#define WAYS_NOT_INLINE (CONTD_POLL_ONLY | CONTD_ENQUEUE_COMPLETE | GROUP_EXECUTOR)
#define WAYS_NOT_TAKEN (CONTD_POLL_ONLY | GROUP_EXECUTOR)
#define WAYS_NOT_BY_TEST GROUP_EXECUTOR
#define WAYS_NOT_UNMARKED (CONTD_ASYNC_SIGNAL_SAFE | GROUP_EXECUTOR)

static inline bool contd__may_run_inline(const struct contd_group *g)
{
	return !(contd__load(&g->flags) & WAYS_NOT_INLINE) && g->max_poll != 0 && !contd__in_continuation_sig() &&
	       contd__on_thread_sig();
}

static inline bool contd__may_be_taken_sig(const struct contd_group *g)
{
	return !(contd__load(&g->flags) & WAYS_NOT_TAKEN) && !contd__limited(g);
}

static inline bool contd__may_be_taken_by_test_sig(const struct contd_group *g)
{
	return !(contd__load(&g->flags) & WAYS_NOT_BY_TEST) && !contd__limited(g);
}

static inline bool contd__may_be_unmarked_sig(const struct contd_group *g)
{
	return !(contd__load(&g->flags) & WAYS_NOT_UNMARKED) && !contd__limited(g);
}

/*
 * May this thread scan g, given its handle? What it finds is ready: the group may get another executor meanwhile, so a
 * scan asks again about what it has claimed. Only a pull executor's own threads scan its groups, and the daemon only
 * what any thread may run.
 */
static inline bool contd__may_scan_sig(const struct contd_group *g)
{
	uint32_t flags = contd__load(&g->flags);

	if (__builtin_expect((flags & GROUP_PULL) != 0, 0))
		return contd__lent_to_sig(contd__load(&g->outlet));
	return !contd__on_daemon_sig() || flags & CONTD_THREAD_ANY;
}

#endif
