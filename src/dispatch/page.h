/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page by which this process may be rung: by its own threads, and, once it listens (signal/peers.c), by peers,
 * which map it. There is one from the beginning, if only a private one.
 *
 * Protocol, the same for each of the two words in `armed`:
 *
 *     The waiter stores a word that is not 0, does a full barrier, and looks again at what it waits for.
 *     The sender makes something visible, does a full barrier, and loads the word. If it is not 0, the sender exchanges
 *     it with 0.
 *     The sender that gets a word that is not 0 wakes the waiter, once.
 *
 * So one of the two sees the other (Dekker), and neither waits for the other. If a peer dies between its exchange and
 * its signal, that one wake-up is lost; ticks make up for it.
 *
 *     operation        thread  handler  peer process  progress
 *     arm, disarm        yes     yes        no        wait-free
 *     ring               yes     yes        yes       wait-free, a system call where armed
 */
#ifndef CONTD_DISPATCH_PAGE_H
#define CONTD_DISPATCH_PAGE_H

#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"

#define CONTD_PAGE_MAGIC 0x31306c6c65626463ull /* the layout's version included */

/* The thread reads the word itself, all the time (contd_checkpoint): clearing it is all that is needed. */
#define BELL_WATCHED 0x80000000u

/* Values of `daemon`. While nothing is pending the daemon sleeps elsewhere, and no peer needs to wake it. */
enum {
	DAEMON_AWAKE, /* it will look before it sleeps */
	DAEMON_NAPS,  /* until its next look; on the futex word */
	DAEMON_POLLS  /* in poll(2), with a descriptor for wake-ups from inside the process; peers send a signal */
};

struct contd__page {
	union {
		uint64_t any; /* what a sender loads: 0 means that no thread waits */
		struct {
			/* Id of the thread to signal, or 0. With BELL_WATCHED no signal is sent: the thread looks by
			 * itself. */
			uint32_t thread;
			uint32_t daemon;
		} by;
	} armed __attribute__((aligned(64)));
	/* How often peers have opened it. Each leaves a connection in the socket's queue until that is taken out
	 * (signal/bell.c). */
	uint32_t opened;

	/* Written before any peer can find the page, never again. */
	uint64_t magic __attribute__((aligned(64)));
	uint64_t mark;       /* si_value of rings, an address in this process */
	uint64_t start_time; /* of the process: field 22 of /proc/pid/stat, proc(5) */
	int32_t pid;
	int32_t signal_number;
};

_Static_assert(sizeof(struct contd__page) == 128, "the layout is shared between processes");

/* Where this process is rung; never NULL. The units that wait or ring write the words in `armed`, as the protocol above
 * says, and so do peers. signal/peers.c writes the rest of a page that it makes. */
CONTD_INTERNAL_API extern struct contd__page *contd__page;

/* For signal/peers.c: the process is rung by another page. No thread waits on the one before. Ordinary threads. */
static inline void contd__page_put(struct contd__page *page)
{
	contd__store_release(&contd__page, page);
}

/* The same if a stray ring may use the one before. Dekker: then the caller loads whether one does. Partner: stray()
 * (signal/handler.c), which counts itself and then loads this. */
static inline void contd__page_replace(struct contd__page *page)
{
	contd__store_seq(&contd__page, page);
}

#endif
