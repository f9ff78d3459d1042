/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "sessions.h"

int kvd_sessions_open(struct kvd_sessions *all, uint32_t room, uint64_t random)
{
	*all = (struct kvd_sessions){.session = calloc(room, sizeof(*all->session)), .room = room, .random = random};
	return all->session ? 0 : -ENOMEM;
}

void kvd_sessions_close(struct kvd_sessions *all)
{
	free(all->session);
}

struct kvd_session *kvd_sessions_find(const struct kvd_sessions *all, uint64_t token)
{
	uint32_t i = (uint32_t)(token & 0xffff);

	return token && i < all->room && all->session[i].token == token ? &all->session[i] : NULL;
}

struct kvd_session *kvd_sessions_at(const struct kvd_sessions *all, const void *address, uint32_t length)
{
	for (uint32_t i = 0; i < all->room; i++) {
		struct kvd_session *s = &all->session[i];

		if (s->token && s->open && s->address_length == length && memcmp(s->address, address, length) == 0)
			return s;
	}
	return NULL;
}

struct kvd_session *kvd_sessions_new(struct kvd_sessions *all, const void *address, uint32_t length)
{
	for (uint32_t i = 0; i < all->room; i++) {
		struct kvd_session *s = &all->session[i];

		if (s->token)
			continue;
		/* Not to be guessed by mistake: a client of a former server, or of a former session. */
		all->random = kvd_hash(all->random, &i, sizeof(i));
		*s = (struct kvd_session){.token = all->random << 16 | i, .address_length = length};
		if (s->token >> 16 == 0)
			s->token |= 1ull << 16;
		memcpy(s->address, address, length);
		all->count++;
		return s;
	}
	return NULL;
}

void kvd_sessions_free(struct kvd_sessions *all, struct kvd_session *session)
{
	session->token = 0;
	all->count--;
}
