/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's clients, and the addresses for their answers. Nothing here knows of libfabric. */
#ifndef KVD_SESSIONS_H
#define KVD_SESSIONS_H

#include "proto.h"

struct kvd_session {
	uint64_t token;   /* the client's requests carry it; 0: none */
	uint64_t peer;    /* in the address vector */
	uint64_t used_ns; /* the last request */
	uint32_t answers; /* under way */
	bool open;        /* its requests are answered; else it ends with the last answer that is under way */
	bool lost;        /* answers do not reach it */
	uint32_t address_length;
	unsigned char address[KVD_ADDRESS_MAX];
};

struct kvd_sessions {
	struct kvd_session *session;
	uint32_t room, count, open;
	uint64_t random;
};

int kvd_sessions_open(struct kvd_sessions *all, uint32_t room, uint64_t random);
void kvd_sessions_close(struct kvd_sessions *all);

/* NULL if no client has the token. */
struct kvd_session *kvd_sessions_find(const struct kvd_sessions *all, uint64_t token);
/* Its open session with this address, or NULL. */
struct kvd_session *kvd_sessions_at(const struct kvd_sessions *all, const void *address, uint32_t length);
/* A new one, not open, or NULL. */
struct kvd_session *kvd_sessions_new(struct kvd_sessions *all, const void *address, uint32_t length);
/* It may be used for another client. */
void kvd_sessions_free(struct kvd_sessions *all, struct kvd_session *session);

#endif
