/* SPDX-License-Identifier: BSD-3-Clause */
/* A source that tests operate by hand: a device with one operation at a time, and an eventfd(2) as its descriptor. */
#ifndef CONTD_TESTS_SOURCE_H
#define CONTD_TESTS_SOURCE_H

#include "unit.h"
#include "dispatch/source.h"

struct test_source {
	struct contd__source source;
	int fd;                    /* -1: it has no descriptor */
	uint32_t operations;       /* pending */
	uint32_t arrived;          /* the device has finished so many, and no poll has found it */
	uint32_t busy;             /* sleep_on says -EAGAIN so often */
	uint32_t asked;            /* calls of sleep_on */
	uint32_t looks[16];        /* calls of progress, by enum contd__where */
	uint32_t found;            /* operations that progress has found finished */
	void (*asking)(void);      /* called by sleep_on, or NULL */
	bool deaf;                 /* progress leaves the descriptor readable, and finds nothing */
	bool elsewhere;            /* it may not be driven on the calling thread */
	uint64_t cost_ticks;       /* what one call of progress takes, in clock ticks */
	uint32_t finish_after;     /* so many calls of progress, without the device; 0: no such number */
	bool works;                /* which is work of the program's, and not the cost of looking */
	struct contd_event *event; /* completed when an operation is found finished, or NULL */
};

/* Two of them. */
extern struct test_source source_a, source_b;

/* Make it known to contd; with a descriptor or without. */
void source_register(struct test_source *s, uint32_t where, bool descriptor);

/* Another operation is under way. Any context. */
void source_begin(struct test_source *s);

/* The device has finished one; only the descriptor tells. Any thread, any context. */
void source_finish(struct test_source *s);

/* Begin, with a continuation of group to run at its end. */
void source_continue(struct test_source *s, struct contd_event *event, contd_callback *cb, void *data,
		     struct contd_group *group);

static inline uint32_t looks_at(const struct test_source *s, enum contd__where where)
{
	return __atomic_load_n(&s->looks[where], __ATOMIC_ACQUIRE);
}

#endif
