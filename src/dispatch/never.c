/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/say.h"
#include "dispatch/never.h"

#define WHOLE_NAME 512 /* of a callback: longer ones are cut, and end with dots */

void contd__never_add(struct contd__never_report *r, const struct contd__never *never)
{
	r->total += never->count;
	for (unsigned i = 0; i < r->used; i++) {
		struct contd__never *n = &r->of[i];

		if (n->cb != never->cb || n->what != never->what || n->why != never->why)
			continue;
		n->count += never->count;
		if (never->age < n->age)
			n->age = never->age;
		if (never->oldest > n->oldest)
			n->oldest = never->oldest;
		return;
	}
	if (r->used == NEVER_LINES)
		r->beyond += never->count;
	else
		r->of[r->used++] = *never;
}

double contd__never_since(uint32_t coarse)
{
	uint64_t ticks = (uint64_t)(contd__ticks_coarse() - coarse) << TICKS_COARSE;

	if (!coarse)
		return -1;
	return (double)ticks / contd__clock.ticks_per_ns / 1e9;
}

double contd__never_age(const struct contd__slot *s, uint64_t w)
{
	uint32_t link = contd__load(&s->link);

	if (SLOT_STATE(w) == SLOT_PENDING)
		return contd__never_since(link);
	/* The time since which it is ready goes round: it is known if contd is not older than one round. */
	if (SLOT_STATE(w) == SLOT_READY && contd__ticks() - contd__clock.begun < 1ull << 37)
		return (double)((uint64_t)(contd__ticks_short() - link) << 5) / contd__clock.ticks_per_ns / 1e9;
	return -1;
}

const char *contd__never_awaited(const struct contd__slot *s, const char *of_source)
{
	switch ((enum contd__slot_kind)(s->source & 3)) {
	case KIND_EVENT:
		return "an event";
	case KIND_WORD:
		return "a memory word";
	case KIND_GROUP:
		return "a group";
	case KIND_SOURCE:
	default:
		return of_source;
	}
}

void contd__never_add_group(struct contd__never_report *r, struct contd_group *g)
{
	uint32_t used = contd__load_acquire(&g->table.used), slots = 0, left = contd__group_outstanding_sig(g);

	for (uint32_t i = 0; i < used && slots < left; i++) {
		const struct contd__slot *s = contd__table_slot(&g->table, contd__table_index(i));
		uint64_t w = contd__load_seq(&s->state);
		struct contd__never never = {.cb = s->cb.any, .count = 1};

		if (SLOT_STATE(w) == SLOT_FREE)
			continue;
		slots++;
		if (SLOT_STATE(w) == SLOT_CANCELLED)
			continue;
		if (SLOT_STATE(w) == SLOT_PENDING) {
			never.what = contd__never_awaited(s, "an operation");
			never.why = "did not complete";
		} else if (SLOT_STATE(w) == SLOT_RUNNING) {
			never.why = "it was handed to an executor, or still runs";
		} else if (g->flags & CONTD_POLL_ONLY) {
			never.why = "it is ready, but its group is poll-only and was not tested";
		} else {
			never.why = "it is ready, and no thread that may run it has looked";
		}
		never.age = never.oldest = contd__never_age(s, w);
		contd__never_add(r, &never);
	}
	/* Operations carry the others, and are known to their source alone. */
	if (left > slots)
		contd__never_add(r, &(struct contd__never){.no_callback = "that an operation of libfabric's carries",
							   .why = "the operation did not complete",
							   .age = -1,
							   .oldest = -1,
							   .count = left - slots});
}

/* object+offset, as addr2line(1) takes it, and behind it the symbol if there is one. */
static void name(char *text, size_t size, const struct contd__never *never)
{
	uintptr_t address = (uintptr_t)never->cb;
	const char *file;
	Dl_info info;
	int n;

	if (!never->cb) {
		snprintf(text, size, "%s", never->no_callback ? never->no_callback : "that is not known");
		return;
	}
	if (!dladdr((void *)address, &info) || !info.dli_fname) {
		snprintf(text, size, "%p", (void *)address);
		return;
	}
	file = strrchr(info.dli_fname, '/');
	n = snprintf(text, size, "%s+0x%lx", file ? file + 1 : info.dli_fname,
		     (unsigned long)(address - (uintptr_t)info.dli_fbase));
	if (n < (int)size && info.dli_sname && (uintptr_t)info.dli_saddr == address)
		n += snprintf(text + n, size - (size_t)n, " (%s)", info.dli_sname);
	else if (n < (int)size && info.dli_sname)
		n += snprintf(text + n, size - (size_t)n, " (%s+0x%lx)", info.dli_sname,
			      (unsigned long)(address - (uintptr_t)info.dli_saddr));
	if (n >= (int)size)
		memcpy(text + size - 4, "...", 4);
}

static void ages(char *text, size_t size, const struct contd__never *never)
{
	text[0] = '\0';
	if (never->age >= 0 && never->count == 1)
		snprintf(text, size, ", for %.3f s", never->age);
	else if (never->age >= 0)
		snprintf(text, size, ", for %.3f to %.3f s", never->age, never->oldest);
}

/* In one piece: other processes write to the same place. */
void contd__never_say(const struct contd__never_report *r, const char *end)
{
	char text[(NEVER_LINES + 1) * (WHOLE_NAME + 240)], callback[WHOLE_NAME], age[64];
	size_t n = 0;

	if (!r->total)
		return;
	text[0] = '\0';
	for (unsigned i = 0; i < r->used; i++) {
		const struct contd__never *never = &r->of[i];

		name(callback, sizeof(callback), never);
		ages(age, sizeof(age), never);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\n  %u with the callback %s: %s%s%s%s", never->count,
				      callback, never->what ? never->what : "", never->what ? " " : "", never->why,
				      age);
	}
	if (r->beyond)
		snprintf(text + n, sizeof(text) - n, "\n  and %u more, of other kinds: %u kinds are named at most",
			 r->beyond, NEVER_LINES);
	contd__say("%s: %u continuation%s never ran:%s", end, r->total, r->total == 1 ? "" : "s", text);
}
