/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "dispatch/run.h"
#include "dispatch/settings.h"
#include "dispatch/slot.h"
#include "dump/walk.h"

#define LIST_MOST 1000000u /* elements of a list: more is a circle */
#define OPERATIONS_SHOWN 16u
#define FRAMES_MOST 8u

static bool get(struct contd__dump_walk *w, const void *address, void *to, size_t size)
{
	return address && w->reader->read(w->reader, (uintptr_t)address, to, size);
}
#define GET(w, address, to) get(w, address, to, sizeof(*(to)))

/* Addresses in that process, of a member of the structure there and of an element of the array there. They may be
 * anything, so they are added as numbers. */
#define MEMBER(type, address, member) ((const void *)((uintptr_t)(address) + offsetof(type, member)))
#define ELEMENT(array, i) ((const void *)((uintptr_t)(array) + (i) * sizeof(*(array))))

static void problem(struct contd__dump_walk *w, const char *text)
{
	for (unsigned i = 0; i < w->problems; i++)
		if (w->problem[i] == text)
			return;
	if (w->problems < DUMP_PROBLEMS)
		w->problem[w->problems++] = text;
}

static void text(struct contd__dump_walk *w, const char *key, const char *value)
{
	w->out->text(w->out, key, value);
}
static void number(struct contd__dump_walk *w, const char *key, uint64_t value)
{
	w->out->number(w->out, key, value);
}
static void address(struct contd__dump_walk *w, const char *key, const void *value)
{
	w->out->address(w->out, key, (uintptr_t)value);
}
static void flag(struct contd__dump_walk *w, const char *key, bool value)
{
	w->out->flag(w->out, key, value);
}
static void list(struct contd__dump_walk *w, const char *key, const char *kind)
{
	w->out->list(w->out, key, kind);
}
static void object(struct contd__dump_walk *w, const char *key)
{
	w->out->object(w->out, key);
}
static void end(struct contd__dump_walk *w)
{
	w->out->end(w->out);
}

/* A text of that process, as far as it has one; never longer than `to`. */
static bool get_text(struct contd__dump_walk *w, const char *from, char *to, size_t room)
{
	/* All at once, or one by one if memory ends behind it. */
	bool all = from && get(w, from, to, room - 1);

	if (!all)
		*to = 0;
	for (size_t n = 0; from && !all && n < room - 1 && get(w, ELEMENT(from, n), to + n, 1) && to[n]; n++)
		to[n + 1] = 0;
	to[from ? room - 1 : 0] = 0;
	return *to != 0;
}

static double clock_ticks_per_ns(struct contd__dump_walk *w)
{
	struct contd__clock clock;

	return GET(w, w->root.clock, &clock) && clock.ticks_per_ns > 1e-6 && clock.ticks_per_ns < 1e3
		       ? clock.ticks_per_ns
		       : 0;
}

/* How long ago that was. Clocks of two processors may differ a little: then it was just now. */
static void ago(struct contd__dump_walk *w, const char *key, uint64_t since)
{
	double rate = clock_ticks_per_ns(w), ns;
	int64_t ticks = (int64_t)(w->reader->now - since);

	if (!w->reader->now || !since || rate <= 0)
		return;
	ns = (double)(ticks > 0 ? ticks : 0) / rate;
	w->out->duration(w->out, key, ns < 1e19 ? (uint64_t)ns : UINT64_MAX);
}

/* ------------------------------------------------------------------------------------------------------- parts --- */

static bool record_fits(const struct contd__dump_record *r)
{
	return r->fields <= DUMP_FIELDS_MOST && r->size <= DUMP_RECORD_MOST;
}

static bool part_fits(const struct contd__dump_part *p)
{
	return p->size == sizeof(*p) && record_fits(&p->owner) && record_fits(&p->operation) && record_fits(&p->more) &&
	       (!p->more.fields ||
		(p->operation.size >= sizeof(void *) && p->more_at <= p->operation.size - sizeof(void *)));
}

static void take_parts(struct contd__dump_walk *w)
{
	for (unsigned i = 0; i < DUMP_PARTS && w->root.part[i]; i++) {
		struct contd__dump_part *p = &w->part[w->parts];

		if (GET(w, w->root.part[i], p) && part_fits(p))
			w->parts++;
		else
			problem(w, "a part's description cannot be read");
	}
}

static void named(struct contd__dump_walk *w, const char *key, const struct contd__dump_field *f, uint64_t value)
{
	struct contd__dump_name name;
	char said[DUMP_TEXTS];

	for (unsigned i = 0; i < f->names && i < DUMP_TEXTS; i++)
		if (GET(w, ELEMENT(f->name, i), &name) && name.value == value &&
		    get_text(w, name.text, said, sizeof(said))) {
			text(w, key, said);
			return;
		}
	number(w, key, value);
}

static void field(struct contd__dump_walk *w, const struct contd__dump_field *f, const struct contd__dump_record *r)
{
	uint64_t value = 0;
	char key[DUMP_TEXTS];

	if (f->size > sizeof(value) || f->offset > r->size || r->size - f->offset < f->size ||
	    !get_text(w, f->key, key, sizeof(key)))
		return;
	if (f->only_at && (f->only_at >= r->size || !w->record.bytes[f->only_at]))
		return;
	/* The low bytes come first, or the value is at the end. */
	memcpy((char *)&value + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(value) - f->size : 0),
	       w->record.bytes + f->offset, f->size);
	if (f->mask)
		value &= f->mask;
	if (f->how == DUMP_BOOL)
		flag(w, key, value != 0);
	else if (f->how == DUMP_NAMED)
		named(w, key, f, value);
	else if (f->how == DUMP_HEX && value)
		w->out->address(w->out, key, value);
	else if (f->how == DUMP_NUMBER && value)
		number(w, key, value);
	else if (f->how == DUMP_SIGNED && value) {
		char said[24];
		unsigned unused = 64u - 8u * f->size;

		snprintf(said, sizeof(said), "%lld", (long long)((int64_t)(value << unused) >> unused));
		text(w, key, said);
	}
}

/* The record is in w->record. */
static void fields(struct contd__dump_walk *w, const struct contd__dump_record *r)
{
	struct contd__dump_field f;

	for (unsigned i = 0; i < r->fields; i++)
		if (GET(w, ELEMENT(r->field, i), &f))
			field(w, &f, r);
}

/* ----------------------------------------------------------------------------------------------- continuations --- */

struct place {
	const struct contd__slot *at; /* in that process; NULL: it has no slot */
	const struct contd_group *group;
};

/* Is it still the same continuation in the same state? Then all that was read meanwhile was its. */
static bool same(struct contd__dump_walk *w, const struct place *place, const struct contd__slot *s)
{
	uint64_t state;

	return !place->at ||
	       (GET(w, MEMBER(struct contd__slot, place->at, state), &state) &&
		((state ^ s->state) & ~((uint64_t)SLOT_REMAINING_MAX << 8 | (uint64_t)SLOT_LOOKED_AT << 8)) == 0);
}

static void word_show(struct contd__dump_walk *w, const struct place *place, const struct contd__slot *s)
{
	static const char *const ops[] = {"==", "!=", ">="};
	const struct contd__word_block *block = (const void *)(s->source & ~(uintptr_t)3);
	struct contd__word_entry entry;
	uint64_t now;

	for (unsigned i = 0; i < 64; i++) {
		if (!GET(w, MEMBER(struct contd__word_block, block, entry[i]), &entry))
			break;
		if (entry.slot != place->at || entry.generation != SLOT_GENERATION(s->state))
			continue;
		address(w, "word", (const void *)(uintptr_t)entry.word.address);
		if (~entry.word.mask)
			w->out->address(w->out, "mask", entry.word.mask);
		if (entry.word.op >= CONTD_WORD_EQ && entry.word.op <= CONTD_WORD_GE)
			text(w, "condition", ops[entry.word.op - CONTD_WORD_EQ]);
		number(w, "value", entry.word.value);
		/* The program's own memory: it may be gone as soon as the word holds. */
		if (GET(w, (const uint64_t *)(uintptr_t)entry.word.address, &now) && same(w, place, s))
			number(w, "value_now", now);
		return;
	}
	address(w, "word", NULL);
}

static const struct contd__dump_part *part_of(const struct contd__dump_walk *w, const struct contd__slot *s)
{
	for (unsigned i = 0; i < w->parts; i++)
		for (unsigned k = 0; k < 2; k++)
			if (w->part[i].invoke[k] && w->part[i].invoke[k] == s->invoke)
				return &w->part[i];
	return NULL;
}

static void operations_show(struct contd__dump_walk *w, const struct contd__dump_part *p, const struct place *place,
			    const struct contd__slot *s)
{
	uintptr_t source = s->source & ~(uintptr_t)3, at = source + p->first_at;
	uint32_t count;

	if (!source || !get(w, (const void *)(source + p->count_at), &count, sizeof(count)) || !same(w, place, s))
		return;
	number(w, "operations", count);
	list(w, "operation", "operation");
	for (uint32_t i = 0; i < count && i < OPERATIONS_SHOWN; i++, at += p->operation.size) {
		const void *more = NULL;

		if (!get(w, (const void *)at, w->record.bytes, p->operation.size) || !same(w, place, s)) {
			problem(w, "a continuation began to run while its operations were read");
			break;
		}
		object(w, NULL);
		if (p->more.fields)
			memcpy(&more, w->record.bytes + p->more_at, sizeof(more));
		fields(w, &p->operation);
		if (more && get(w, more, w->record.bytes, p->more.size) && same(w, place, s))
			fields(w, &p->more);
		end(w);
	}
	end(w);
}

/* Slots count in units of 32 ticks, modulo 2^32. If contd has run for longer than that, the age is one of several. */
static void ready_since(struct contd__dump_walk *w, const struct contd__slot *s)
{
	double rate = clock_ticks_per_ns(w);
	uint32_t waited = (uint32_t)(w->reader->now >> 5) - s->link;
	uint64_t turn = 1ull << 37;

	if (!w->reader->now || rate <= 0)
		return;
	if (waited > 0u - BEHIND)
		waited = 0;
	w->out->duration(w->out, "ready_ns", (uint64_t)((double)waited * 32 / rate));
	if (w->reader->now - w->root.begun > turn)
		w->out->duration(w->out, "or_longer_by_a_multiple_of_ns", (uint64_t)((double)turn / rate));
}

static void waits_for(struct contd__dump_walk *w, const struct place *place, const struct contd__slot *s)
{
	const struct contd__dump_part *p;
	char said[DUMP_TEXTS];

	switch ((enum contd__slot_kind)(s->source & 3)) {
	case KIND_EVENT:
		text(w, "waits_for", "event");
		/* Bit 2: it is the only one. */
		address(w, "event", (const void *)(s->source & ~(uintptr_t)7));
		break;
	case KIND_WORD:
		text(w, "waits_for", "memory word");
		word_show(w, place, s);
		break;
	case KIND_GROUP:
		text(w, "waits_for", "group");
		address(w, "awaited", (const void *)(s->source & ~(uintptr_t)3));
		break;
	case KIND_SOURCE:
		p = part_of(w, s);
		if (p && get_text(w, p->name, said, sizeof(said)))
			text(w, "waits_for", said);
		else
			text(w, "waits_for", "a source");
		break;
	}
}

static void continuation_show(struct contd__dump_walk *w, const struct place *place, const struct contd__slot *s,
			      const char *state)
{
	const struct contd__dump_part *p = part_of(w, s);

	object(w, NULL);
	text(w, "state", state);
	text(w, "callback", contd__dump_name(&w->names, (uintptr_t)s->cb.any));
	address(w, "data", s->data);
	if (place->at)
		address(w, "slot", place->at);
	if (SLOT_STATE(s->state) == SLOT_PENDING) {
		number(w, "events_left", SLOT_REMAINING(s->state) & ~SLOT_LOOKED_AT);
		waits_for(w, place, s);
		if ((s->source & 3) == KIND_SOURCE && p)
			operations_show(w, p, place, s);
	} else if (SLOT_STATE(s->state) == SLOT_READY) {
		ready_since(w, s);
	}
	end(w);
}

/* --------------------------------------------------------------------------------------------------- a group's --- */

struct counts {
	uint64_t state[SLOT_CANCELLED + 1], carried, put_off, shown;
};

static const char *state_of(const struct contd__slot *s)
{
	static const char *const states[] = {"free", "pending", "ready", "running", "cancelled"};

	return states[SLOT_STATE(s->state)];
}

/* Slot `index` of the group, as it was at one moment. */
static bool settled(struct contd__dump_walk *w, const struct place *place, struct contd__slot *s)
{
	for (unsigned tries = 0; tries < 4; tries++) {
		if (same(w, place, s))
			return true;
		if (!GET(w, place->at, s))
			return false;
	}
	return false;
}

static bool shows_more(const struct contd__dump_walk *w, const struct counts *c)
{
	return w->limit == 0 || c->shown < w->limit;
}

/* Something of the group cannot be read. In this process that is no problem if the group has been freed meanwhile, as
 * one that had been freed before is none. */
static void group_problem(struct contd__dump_walk *w, const struct contd_group *at, const char *text)
{
	const struct contd_group *now;

	if (GET(w, MEMBER(struct contd_group, at, table.group), &now) && now == at)
		problem(w, text);
	else if (!w->reader->next_group)
		problem(w, "a group was freed while it was read");
}

/* Each slot of the table that is in use: counted, or shown. */
static void slots(struct contd__dump_walk *w, const struct contd_group *at, const struct contd_group *g,
		  struct counts *c, bool show)
{
	uint32_t limit = g->table.limit > TABLE_SLOTS_MAX ? TABLE_SLOTS_MAX : g->table.limit;
	uint32_t used = g->table.used > limit ? limit : g->table.used, n;

	for (uint32_t first = 0; first < used && (!show || shows_more(w, c)); first += n) {
		uint32_t index = contd__table_index(first);
		const struct contd__chunk *chunk;
		const struct contd__slot *slot;

		n = used - first < DUMP_SLOTS ? used - first : DUMP_SLOTS;
		if (!g->table.branch[index >> 18] ||
		    !GET(w, MEMBER(struct contd__branch, g->table.branch[index >> 18], chunk[index >> 12 & 63]),
			 &chunk) ||
		    !chunk) {
			group_problem(w, at, "a table changed while it was read");
			return;
		}
		slot = MEMBER(struct contd__chunk, chunk, slot[index & (CHUNK_SLOTS - 1)]);
		if (!get(w, slot, w->slot, n * sizeof(*slot))) {
			group_problem(w, at, "a part of a table cannot be read");
			continue;
		}
		for (uint32_t i = 0; i < n; i++) {
			struct contd__slot s = w->slot[i];
			struct place place = {ELEMENT(slot, i), at};

			if (SLOT_STATE(s.state) == SLOT_FREE || (s.state & 0xff) > SLOT_CANCELLED || s.group != at ||
			    s.index != index + i)
				continue;
			if (!show) {
				c->state[SLOT_STATE(s.state)]++;
				continue;
			}
			if (!shows_more(w, c))
				return;
			if (settled(w, &place, &s) && s.group == at && SLOT_STATE(s.state) != SLOT_FREE &&
			    (s.state & 0xff) <= SLOT_CANCELLED) {
				continuation_show(w, &place, &s, state_of(&s));
				c->shown++;
			}
		}
	}
}

/* Those whose operation carries them, of parts that have a list of these. Its owner may change it meanwhile. */
static void carried(struct contd__dump_walk *w, const struct contd_group *at, struct counts *c, bool show)
{
	for (unsigned i = 0; i < w->parts; i++) {
		const struct contd__dump_part *p = &w->part[i];
		struct cds_list_head node;
		const struct cds_list_head *before = p->carrying;
		struct place place = {NULL, at};

		if (!before || !GET(w, before, &node))
			continue;
		for (unsigned n = 0; n < LIST_MOST && node.next != p->carrying; n++) {
			uintptr_t owner = (uintptr_t)node.next - p->node_at;
			const struct cds_list_head *here = node.next;
			struct contd__slot s;

			if (!GET(w, here, &node) || node.prev != before ||
			    !get(w, (const void *)(owner + p->as_at), &s, sizeof(s))) {
				problem(w, "the list of operations that carry continuations changed while it was read");
				break;
			}
			before = here;
			if (s.group != at)
				continue;
			if (!show) {
				c->carried++;
				continue;
			}
			if (!shows_more(w, c))
				return;
			s.state = SLOT_WORD(0, 1, SLOT_PENDING);
			continuation_show(w, &place, &s, "pending");
			c->shown++;
		}
	}
}

/* Those that are ready without a bit, or found no memory for a slot. */
static void put_off(struct contd__dump_walk *w, const struct contd_group *at, struct counts *c, bool show)
{
	struct contd_event event, *e = NULL;
	struct place place = {NULL, at};

	if (!GET(w, w->root.put_off, &e))
		return;
	for (unsigned n = 0; e && n < LIST_MOST; n++, e = event.next) {
		struct contd__unmarked u;
		struct contd_carried op;
		struct contd__slot s = {.state = 0};

		if (!GET(w, e, &event)) {
			problem(w, "the list of continuations that are put off changed while it was read");
			return;
		}
		if (event.word == EVENT_UNMARKED) {
			if (!GET(w, (const struct contd__unmarked *)(const void *)e, &u) || u.slot)
				continue;
			s = u.as;
			s.state = SLOT_WORD(0, 0, SLOT_READY);
		} else {
			if (!GET(w, (const struct contd_carried *)(const void *)e, &op))
				continue;
			s.group = op.group;
			s.cb.user = op.cb;
			s.data = op.data;
			s.state = SLOT_WORD(0, 0, SLOT_RUNNING); /* when it became ready is not known */
		}
		if (s.group != at)
			continue;
		if (!show) {
			c->put_off++;
			continue;
		}
		if (!shows_more(w, c))
			return;
		continuation_show(w, &place, &s, "ready");
		c->shown++;
	}
}

static void put_flag(char *to, size_t room, bool set, const char *name)
{
	size_t n = strlen(to);

	if (set)
		snprintf(to + n, room - n, "%s%s", n ? "|" : "", name);
}

static void owner_show(struct contd__dump_walk *w, const struct contd_group *g)
{
	char said[DUMP_TEXTS];

	for (unsigned i = 0; i < w->parts; i++) {
		const struct contd__dump_part *p = &w->part[i];

		if (!g->freed || p->freed != g->freed)
			continue;
		if (get_text(w, p->object, said, sizeof(said)))
			text(w, "object", said);
		if (get(w, g->owner, w->record.bytes, p->owner.size))
			fields(w, &p->owner);
	}
}

static void group_show(struct contd__dump_walk *w, const struct contd_group *at, const struct contd_group *g)
{
	uint32_t outstanding = LIFE_OUTSTANDING(g->life);
	struct counts c = {.shown = 0};
	char flags[DUMP_TEXTS * 2] = "";
	uint64_t known;

	put_flag(flags, sizeof(flags), g->flags & CONTD_POLL_ONLY, "poll_only");
	put_flag(flags, sizeof(flags), g->flags & CONTD_ENQUEUE_COMPLETE, "enqueue_complete");
	put_flag(flags, sizeof(flags), (g->flags & CONTD_THREAD_ANY) && !(g->flags & GROUP_ONLY_PROGRAM), "thread_any");
	put_flag(flags, sizeof(flags), g->flags & CONTD_ASYNC_SIGNAL_SAFE, "async_signal_safe");
	slots(w, at, g, &c, false);
	carried(w, at, &c, false);
	put_off(w, at, &c, false);
	object(w, NULL);
	address(w, "address", at);
	owner_show(w, g);
	number(w, "outstanding", outstanding);
	number(w, "pending", c.state[SLOT_PENDING] + c.carried);
	number(w, "ready", c.state[SLOT_READY] + c.put_off);
	number(w, "running", c.state[SLOT_RUNNING]);
	if (c.state[SLOT_CANCELLED])
		number(w, "cancelled", c.state[SLOT_CANCELLED]);
	/* A cancelled one counts until its slot is free. */
	known = c.state[SLOT_PENDING] + c.state[SLOT_READY] + c.state[SLOT_RUNNING] + c.state[SLOT_CANCELLED] +
		c.carried + c.put_off;
	if (outstanding > known)
		number(w, "carried_by_operations", outstanding - known);
	if (*flags)
		text(w, "flags", flags);
	if (g->priority)
		text(w, "priority", g->priority > 0 ? "high" : "low");
	if (contd__limited(g))
		number(w, "max_poll", (uint64_t)g->max_poll);
	if (g->flags & GROUP_EXECUTOR) {
		text(w, "executor", g->flags & GROUP_PUSH ? "push" : "pull");
		address(w, "executor_address", g->outlet);
	}
	if (g->waiter)
		address(w, "awaited_by_slot", contd__word_slot(g->waiter));
	flag(w, "given_back", g->given_back != 0);
	if (w->limit && known > w->limit) {
		number(w, "not_shown", known - w->limit);
		number(w, "limit", w->limit);
	}
	list(w, "continuations", "continuation");
	slots(w, at, g, &c, true);
	carried(w, at, &c, true);
	put_off(w, at, &c, true);
	end(w);
	end(w);
}

/* The next group of the list, where the reader leaves that to the walk; 0: the end. */
static uintptr_t list_next(struct contd__dump_walk *w, uintptr_t at)
{
	const struct cds_list_head *here = at ? MEMBER(struct contd_group, at, node) : w->root.groups;
	struct cds_list_head node, next;

	if (!GET(w, here, &node)) {
		problem(w, "the list of groups changed while it was read: some are missing");
		return 0;
	}
	if (node.next == w->root.groups || !node.next)
		return 0; /* NULL: contd has never run */
	if (!GET(w, node.next, &next) || next.prev != here) {
		problem(w, "the list of groups changed while it was read: some are missing");
		return 0;
	}
	return (uintptr_t)node.next - offsetof(struct contd_group, node);
}

static void groups(struct contd__dump_walk *w)
{
	uintptr_t at = 0;

	list(w, "groups", "group");
	for (unsigned n = 0; n < LIST_MOST; n++) {
		struct contd_group g;

		if (w->reader->next_group)
			w->reader->next_group(w->reader, &at);
		else
			at = list_next(w, at);
		if (!at)
			break;
		if (GET(w, (const struct contd_group *)at, &g) && (uintptr_t)g.table.group == at)
			group_show(w, (const struct contd_group *)at, &g);
		else
			group_problem(w, (const struct contd_group *)at, "a group cannot be read");
	}
	end(w);
}

/* ------------------------------------------------------------------------------------------------------ threads --- */

static void frames(struct contd__dump_walk *w, const struct contd__self *self)
{
	const struct contd__frame *at = self->frame;
	struct contd__frame f;

	list(w, "runs", "runs");
	for (unsigned n = 0; n < FRAMES_MOST && at && GET(w, at, &f); n++, at = f.outer) {
		struct contd__slot s;

		object(w, NULL);
		if (n == 0 && self->watched.site) {
			text(w, "callback", contd__dump_name(&w->names, (uintptr_t)self->watched.site));
			ago(w, "since_ns", self->watched.since);
		} else if (f.slot && GET(w, f.slot, &s) && SLOT_STATE(s.state) == SLOT_RUNNING && s.group == f.group) {
			text(w, "callback", contd__dump_name(&w->names, (uintptr_t)s.cb.any));
		}
		if (f.slot)
			address(w, "slot", f.slot);
		address(w, "group", f.group ? f.group : f.given_back);
		end(w);
	}
	end(w);
}

static uint32_t frames_count(struct contd__dump_walk *w, const struct contd__self *self)
{
	const struct contd__frame *at = self->frame;
	struct contd__frame f;
	uint32_t n = 0;

	for (; n < FRAMES_MOST && at && GET(w, at, &f); n++)
		at = f.outer;
	return n;
}

/* The executor to which the thread is lent: that of the innermost loan. They are on that thread's stack, which changes
 * under this: the byte `loan` may be anything, and is no bool to be read. */
static void lent(struct contd__dump_walk *w, const struct contd__self *self)
{
	const struct contd__at_work *at = self->at_work;
	struct contd__at_work work;
	unsigned char loan;

	for (uint32_t n = 0; n < FRAMES_MOST && at && GET(w, at, &work); n++) {
		memcpy(&loan, &work.loan, sizeof(loan));
		if (loan == true) {
			address(w, "lent_to_executor", work.outlet);
			return;
		}
		at = work.outer;
	}
}

static bool attached_of(struct contd__dump_walk *w, const struct contd__self *self, struct contd__attached *a)
{
	const struct contd__attached *record;
	uint32_t count;

	if (!GET(w, MEMBER(struct contd__signals, w->root.signals, count), &count))
		return false;
	for (uint32_t i = 0; i < count && i < ATTACHED_MAX; i++)
		if (GET(w, MEMBER(struct contd__signals, w->root.signals, record[i]), &record) && GET(w, record, a) &&
		    a->tid && a->tls == self->tls)
			return true;
	return false;
}

static const char *doing(const struct contd__self *self, const struct contd_tls *tls, bool inside)
{
	if (self->frame)
		return "runs a continuation";
	if (self->carried.take)
		return "polls sources";
	if (self->context == CONTEXT_DAEMON)
		return "daemon";
	if (inside)
		return "in contd's handler";
	if (self->testing)
		return "in a test or wait";
	return tls->region ? "computes in a region" : "outside contd, or in a call of contd's that does not say";
}

static void thread_show(struct contd__dump_walk *w, uintptr_t at, const struct contd__self *self)
{
	bool writes = at == w->reader->self;
	uint32_t contds; /* of its guards, how many are contd's own: around each continuation, and in contd_dump() */
	struct contd_tls tls = {.region = 0};
	struct contd__attached a = {.tid = 0};
	struct contd__testing testing;
	bool attached = attached_of(w, self, &a);
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{"registered", self->counters.registered}, {"ran", self->counters.run},
		{"scans", self->counters.scans},           {"ticks", self->counters.ticks},
		{"rings", self->counters.rings},           {"notifications_sent", self->counters.notifications},
		{"guarded", self->counters.guarded},       {"put_off", self->counters.put_off},
	};

	object(w, NULL);
	if (self->tid)
		number(w, "tid", self->tid);
	else if (attached)
		number(w, "tid", (uint64_t)a.tid);
	if (!GET(w, self->tls, &tls))
		problem(w, "a thread's state cannot be read");
	text(w, "does", doing(self, &tls, attached && a.inside));
	flag(w, "daemon", self->context == CONTEXT_DAEMON);
	flag(w, "attached", (tls.flags & CONTD__TLS_ATTACHED) != 0);
	if (tls.region)
		number(w, "regions", tls.region);
	flag(w, "writes_this_dump", writes);
	contds = writes + frames_count(w, self);
	if (tls.guard > contds)
		number(w, "guards", tls.guard - contds);
	flag(w, "missed_an_interruption", (tls.flags & CONTD__TLS_MISSED) != 0);
	if (self->testing && GET(w, self->testing, &testing))
		address(w, testing.left == CONTD__WAITED ? "waits_for_group" : "tests_group", testing.group);
	lent(w, self);
	if (attached) {
		flag(w, "timer_runs", a.armed != 0);
		if (a.armed)
			w->out->duration(w->out, "tick_ns", a.interval_ns);
		flag(w, "notification_on_its_way", a.signalled != 0);
		ago(w, "last_interruption_ended_ns", a.left_at);
	}
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		number(w, counts[i].key, counts[i].value);
	frames(w, self);
	end(w);
}

static void threads(struct contd__dump_walk *w)
{
	const struct cds_list_head *here = w->root.threads, *before;
	struct cds_list_head node;
	struct contd__self self;

	list(w, "threads", "thread");
	if (GET(w, here, &node))
		for (unsigned n = 0; n < LIST_MOST && node.next && node.next != w->root.threads; n++) {
			uintptr_t at = (uintptr_t)node.next - offsetof(struct contd__self, node);

			before = here;
			here = node.next;
			if (!GET(w, (const struct contd__self *)at, &self) || self.node.prev != before) {
				problem(w, "the list of threads changed while it was read: some are missing");
				break;
			}
			node = self.node;
			thread_show(w, at, &self);
		}
	end(w);
}

/* ------------------------------------------------------------------------------------------------ whole process --- */

static const char *agent(uint32_t number)
{
	static const char *const names[] = {"default", CONTD_AGENT_NAMES};

	return number < sizeof(names) / sizeof(names[0]) ? names[number] : "unknown";
}

static void settings(struct contd__dump_walk *w)
{
	struct contd_config c;
	char said[DUMP_TEXTS * 4];

	if (!GET(w, w->root.config, &c))
		return;
	object(w, "settings");
	number(w, "signal_number", (uint64_t)c.signal_number);
	number(w, "signal_taken", (uint64_t)c.signal_taken);
	text(w, "agent", agent((uint32_t)c.agent));
	if (c.overhead_percent >= 0 && c.overhead_percent <= 100)
		w->out->thousandths(w->out, "overhead_percent", (uint64_t)(c.overhead_percent * 1000 + 0.5));
	w->out->duration(w->out, "tick_min_ns", c.tick_min_ns);
	w->out->duration(w->out, "tick_max_ns", c.tick_max_ns);
	number(w, "scan_count", c.scan_count);
	w->out->duration(w->out, "scan_ns", c.scan_ns);
	text(w, "bell", c.bell == CONTD_BELL_OFF ? "0" : "1");
	if (c.watchdog_ns)
		w->out->duration(w->out, "watchdog_ns", c.watchdog_ns);
	if (get_text(w, c.daemon_name, said, sizeof(said)))
		text(w, "daemon_name", said);
	if (get_text(w, c.daemon_cpus, said, sizeof(said)))
		text(w, "daemon_cpus", said);
	if (get_text(w, c.daemon_sched, said, sizeof(said)))
		text(w, "daemon_sched", said);
	if (get_text(w, c.dump_signal, said, sizeof(said)))
		text(w, "dump_signal", said);
	if (get_text(w, c.dump_file, said, sizeof(said)))
		text(w, "dump_file", said);
	end(w);
}

static void daemon_show(struct contd__dump_walk *w)
{
	const struct contd__page *page = NULL;
	struct contd__wake wake;
	uint32_t armed = 0;

	if (!GET(w, w->root.wake, &wake))
		return;
	object(w, "daemon");
	text(w, "mode", wake.daemon_mode < CONTD_AGENT_TICK ? "none" : agent(wake.daemon_mode));
	if (wake.daemon_mode) {
		text(w, "does",
		     wake.daemon_asleep ? "sleeps: nothing is pending for it"
		     : GET(w, w->root.page, &page) &&
				     GET(w, MEMBER(struct contd__page, page, armed.by.daemon), &armed) &&
				     armed == DAEMON_NAPS
			     ? "naps until its next look"
		     : armed == DAEMON_POLLS ? "sleeps in poll(2)"
					     : "looks");
	}
	number(w, "threads_asleep_in_waits", wake.sleepers);
	end(w);
}

static void sources(struct contd__dump_walk *w)
{
	struct contd__sources all;
	struct contd__source s;
	uint32_t words = 0;

	list(w, "sources", "source");
	if (GET(w, MEMBER(struct contd__words, w->root.words, pending), &words) && words) {
		object(w, NULL);
		text(w, "name", "memory words");
		number(w, "pending", words);
		end(w);
	}
	if (GET(w, w->root.sources, &all))
		for (uint32_t i = 0; i < all.count && i < SOURCES_MAX; i++) {
			char name[DUMP_TEXTS], where[DUMP_TEXTS] = "";

			if (!GET(w, all.source[i], &s) || !get_text(w, s.name, name, sizeof(name)))
				continue;
			put_flag(where, sizeof(where), s.where & WHERE_THREAD, "thread");
			put_flag(where, sizeof(where), s.where & WHERE_REGION, "region");
			put_flag(where, sizeof(where), s.where & WHERE_DAEMON, "daemon");
			put_flag(where, sizeof(where), s.where & WHERE_INSPECTED, "inspected");
			object(w, NULL);
			text(w, "name", name);
			text(w, "polled_by", where);
			end(w);
		}
	end(w);
}

static void parts(struct contd__dump_walk *w)
{
	list(w, "parts", "part");
	for (unsigned i = 0; i < w->parts; i++) {
		char said[DUMP_TEXTS];

		object(w, NULL);
		if (get_text(w, w->part[i].name, said, sizeof(said)))
			text(w, "name", said);
		for (unsigned k = 0; k < 4 && w->part[i].counted[k].key; k++) {
			uint32_t count;

			if (get_text(w, w->part[i].counted[k].key, said, sizeof(said)) &&
			    GET(w, w->part[i].counted[k].count, &count))
				number(w, said, count);
		}
		end(w);
	}
	end(w);
}

static void process(struct contd__dump_walk *w, const struct contd__live *live)
{
	char version[DUMP_TEXTS];

	snprintf(version, sizeof(version), "%u.%u.%u", w->root.version >> 16, w->root.version >> 8 & 0xff,
		 w->root.version & 0xff);
	object(w, "process");
	number(w, "pid", (uint64_t)w->reader->pid);
	if (w->reader->state)
		text(w, "state", w->reader->state);
	text(w, "contd", version);
	number(w, "users", live->users);
	flag(w, "forked", live->forked != 0);
	if (live->users)
		ago(w, "running_ns", w->root.begun);
	end(w);
}

const char *contd__dump_take(struct contd__dump_walk *w, uintptr_t root)
{
	static const uint64_t places[] = {DUMP_READS(DUMP_PLACE)};
	const struct contd__dump_root *at = (const void *)root;
	uint64_t magic = 0;
	uint32_t size = 0, layout = 0;

	w->names.reader = w->reader;
	if (!GET(w, MEMBER(struct contd__dump_root, at, magic), &magic) ||
	    !GET(w, MEMBER(struct contd__dump_root, at, size), &size) ||
	    !GET(w, MEMBER(struct contd__dump_root, at, layout), &layout))
		return "contd__dump_root cannot be read";
	if (magic != DUMP_MAGIC)
		return "contd__dump_root does not begin as contd's";
	if (layout != DUMP_LAYOUT || size != sizeof(w->root))
		return "the process has another version of contd than this one; use the command of that version";
	if (!GET(w, at, &w->root))
		return "contd__dump_root cannot be read";
	if (w->root.places != DUMP_PLACES || memcmp(w->root.place, places, sizeof(places)) != 0 ||
	    w->root.part_size != sizeof(struct contd__dump_part))
		return "the process has a contd that was built from other sources than this one; use the command of "
		       "that "
		       "build";
	return NULL;
}

void contd__dump_walk(struct contd__dump_walk *w)
{
	struct contd__live live = {.users = 0};

	if (!GET(w, w->root.live, &live))
		problem(w, "contd's state cannot be read");
	process(w, &live);
	if (live.forked)
		problem(w, "the process is the child of a fork: contd does not run in it, and what it shows is the "
			   "parent's");
	if (!live.users) {
		problem(w, "contd does not run in the process: it has not begun, or has ended");
	} else {
		take_parts(w);
		daemon_show(w);
		settings(w);
		sources(w);
		parts(w);
		groups(w);
		threads(w);
	}
	list(w, "problems", "problem");
	for (unsigned i = 0; i < w->problems; i++) {
		object(w, NULL);
		text(w, "text", w->problem[i]);
		end(w);
	}
	end(w);
}
