/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_CLASSES_H
#define CONTD_DISPATCH_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "rcu/table.h"

/*
 * Groups that are not poll-only, by who may run them (bit 0: also the daemon, bit 1: also a handler anywhere) and by
 * priority: four classes of low, normal, high.
 */
#define CLASS_ANY 1u
#define CLASS_SIGNAL 2u
#define CLASS_KINDS 4u
#define PRIORITIES 3u
#define CLASSES (PRIORITIES * CLASS_KINDS)
#define CLASSES_ALL 0xfffu    /* masks of classes */
#define CLASSES_DAEMON 0xaaau /* those with bit 0 */
#define CLASSES_SIGNAL 0xcccu /* those with bit 1 */
#define CLASSES_PLAIN 0x111u  /* neither: threads of the application, in regions too */
#define CLASSES_THREAD 0x444u /* bit 1 alone: a handler anywhere, but no daemon */

/* Has a class of the mask anything marked? A hint that is never wrong about "no" for what was marked before. */
static inline bool contd__marked_sig(uint32_t classes)
{
	return (contd__load_seq(&contd__ready) & classes) != 0;
}

#endif
