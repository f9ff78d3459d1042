/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_CLASSES_H
#define CONTD_DISPATCH_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "rcu/table.h"

/*
 * The classes of groups that are not poll-only. Bit 0: the daemon, too, may run the group. Bit 1: a handler, too, may
 * run it, anywhere. There are four such classes for each priority: low, normal, high.
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

/* Is anything marked in a class of the mask? A hint: "no" is never wrong about what was marked before. */
static inline bool contd__marked_sig(uint32_t classes)
{
	return (contd__load_seq(&contd__ready) & classes) != 0;
}

#endif
