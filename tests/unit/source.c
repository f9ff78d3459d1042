/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/eventfd.h>

#include "source.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"

struct test_source source_a, source_b;

static enum contd__where where_here(void)
{
	return contd__self.context == CONTEXT_DAEMON   ? WHERE_DAEMON
	       : contd__self.context == CONTEXT_REGION ? WHERE_REGION
						       : WHERE_THREAD;
}

static void progress(struct test_source *s)
{
	uint64_t count, begin = contd__ticks();
	uint32_t n;

	if (contd__add(&s->looks[where_here()], 1) + 1 == s->finish_after)
		contd__add(&s->arrived, 1);
	while (contd__ticks() - begin < s->cost_ticks)
		;
	if (s->works)
		contd__self.work += contd__ticks() - begin;
	if (contd__load(&s->deaf))
		return;
	if (s->fd >= 0)
		(void)!read(s->fd, &count, sizeof(count));
	for (n = contd__xchg(&s->arrived, 0); n; n--) {
		contd__sub(&s->operations, 1);
		contd__add(&s->found, 1);
		if (s->event)
			contd_event_complete(s->event, 0);
	}
}

static int sleep_on(struct test_source *s, int *fds, int room)
{
	contd__add(&s->asked, 1);
	if (contd__load(&s->busy)) {
		contd__sub(&s->busy, 1);
		return -EAGAIN;
	}
	if (s->asking)
		s->asking();
	if (room < 1)
		return 0;
	fds[0] = s->fd;
	return 1;
}

#define FUNCTIONS(a) \
	static void progress_##a(bool last) \
	{ \
		(void)last; \
		progress(&source_##a); \
	} \
	static uint32_t pending_##a(void) \
	{ \
		return contd__load_seq(&source_##a.operations); \
	} \
	static bool here_##a(void) \
	{ \
		return !contd__load(&source_##a.elsewhere); \
	} \
	static int sleep_on_##a(int *fds, int room, uint64_t *ns) \
	{ \
		(void)ns; \
		return sleep_on(&source_##a, fds, room); \
	}
FUNCTIONS(a)
FUNCTIONS(b)

void source_register(struct test_source *s, uint32_t where, bool descriptor)
{
	bool a = s == &source_a;

	*s = (struct test_source){.fd = -1};
	s->source = (struct contd__source){
		.name = a ? "a" : "b",
		.where = where,
		.progress = a ? progress_a : progress_b,
		.pending = a ? pending_a : pending_b,
		.here = a ? here_a : here_b,
		.sleep_on = !descriptor ? NULL
			    : a         ? sleep_on_a
					: sleep_on_b,
	};
	if (descriptor)
		cr_assert_geq(s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), 0);
	must(contd__source_register(&s->source));
}

void source_begin(struct test_source *s)
{
	contd__add(&s->operations, 1);
	contd__pending_sig();
}

void source_finish(struct test_source *s)
{
	uint64_t one = 1;
	int saved = errno;

	contd__add(&s->arrived, 1);
	if (s->fd >= 0)
		(void)!write(s->fd, &one, sizeof(one));
	errno = saved;
}

void source_continue(struct test_source *s, struct contd_event *event, contd_callback *cb, void *data,
		     struct contd_group *group)
{
	contd_event_init(event);
	s->event = event;
	must(contd_event_continue(1, &event, cb, data, group, NULL));
	source_begin(s);
}
