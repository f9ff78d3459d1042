/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation that has ended, of a queue or of a counter. */
#ifndef CONTD_FABRIC_OPERATION_H
#define CONTD_FABRIC_OPERATION_H

#include <contd/fabric.h>

#include "base/atomic.h"
#include "dispatch/event_word.h"

static inline void contd__fabric_fill(struct contd_fabric_op *op, const struct contd_fabric_entry *e, const char *text)
{
	op->flags = e->flags;
	op->length = e->length;
	op->buffer = e->buffer;
	op->data = e->data;
	op->tag = e->tag;
	op->source = e->source;
	op->truncated = e->truncated;
	op->status = e->status;
	op->provider_error = e->provider_error;
	op->text = text;
}

/* Complete an operation whose continuation, if it has one, has gone with contd_fini(). */
static inline void contd__fabric_complete_alone(struct contd_fabric_op *op)
{
	/* Release: a thread that finds the operation complete sees its fields. */
	contd__store_release(&op->event.word, contd__event_done_word(op->status));
}

#endif
