/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources: what must be looked at to learn that operations are complete (MPI, libfabric).
 *
 *  operation                    thread  handler  progress
 *  contd__source_register         yes     no     blocking
 *  contd__source_is_registered    yes     yes    wait-free
 *  the others                     yes     yes    wait-free, but for what a source does
 */
#ifndef CONTD_DISPATCH_SOURCE_H
#define CONTD_DISPATCH_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"

/* Where a source may be looked at. In handlers outside regions none is, but for those of WHERE_INSPECTED: there the
 * handler has found that it interrupted nothing which the source needs (signal/inspect.h). */
enum contd__where { WHERE_THREAD = 1, WHERE_REGION = 2, WHERE_DAEMON = 4, WHERE_INSPECTED = 8 };

/*
 * A source that must be driven. It decides itself whether the calling thread may drive it (thread levels). Registered
 * once; it stays in place, and lives until contd_fini() has returned.
 */
struct contd__source {
	const char *name;
	uint32_t where; /* mask of enum contd__where; only there is progress called */
	/* last: the caller sleeps, or arms a bell, unless something is found. So look at everything, not at a part in
	 * turns. */
	void (*progress)(bool last);
	uint32_t (*pending)(void); /* how many of its operations wait: 0 means there is nothing to look at */
	/* May it be driven on the calling thread, as far as the thread is concerned? Any context. NULL: anywhere. */
	bool (*here)(void);
	/*
	 * The daemon wants to sleep. Look at everything once more; then put down file descriptors that become readable
	 * when there is something to look at, and in *ns after how long they do not say enough any more. Returns how
	 * many there are, 0 if there are none and the source must be looked at in turns, or -EAGAIN if something is
	 * there already. NULL: none. The daemon thread only.
	 */
	int (*sleep_on)(int *fds, int room, uint64_t *ns);
	/* it advances by looks: they come at the pace of the budget while it has something pending */
	bool steady;
	bool tells;        /* the descriptors report everything: threads that wait may leave looking to the daemon */
	uint32_t slept_on; /* the daemon got descriptors when it last asked */
};
#define SOURCES_MAX 8u

struct contd__sources {
	uint32_t count; /* goes up only while contd runs; source[] is written before it */
	struct contd__source *source[SOURCES_MAX];
};
CONTD_INTERNAL_API extern struct contd__sources contd__sources;

/* -EAGAIN when all are taken. */
CONTD_INTERNAL_API int contd__source_register(struct contd__source *source);

/* contd_fini(): they are forgotten. */
void contd__sources_fini(void);

CONTD_INTERNAL_API bool contd__source_is_registered(const struct contd__source *source);

/* Something that must be looked at became pending: start the ticks, wake the daemon and threads that wait. Any
 * context. */
CONTD_INTERNAL_API void contd__pending_sig(void);

/* Has a source that may be looked at in one of these places something pending? Any context. */
bool contd__sources_pending_sig(uint32_t where);

/* The same, for sources that may be driven on this thread. */
bool contd__sources_here_sig(uint32_t where);

/* Has one that may not be driven on this thread? Has one that may be driven on each? */
bool contd__sources_elsewhere_sig(uint32_t where);
bool contd__sources_of_all_sig(uint32_t where);

/* Has a source that advances by looks something pending? Then the pace of looks does not fall. Any context. */
bool contd__sources_steady_sig(uint32_t where);

/* Drive every source that has something pending and may be driven in this place, except `but` (or NULL). */
void contd__sources_drive_sig(enum contd__where where, const struct contd__source *but, bool last);

#endif
