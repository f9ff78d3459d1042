/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVD_BENCH_H
#define KVD_BENCH_H

#include <stdio.h>

#include "client.h"

struct bench {
	double seconds;
	uint32_t size, keys;
	unsigned share[3];  /* of gets, puts, one-sided reads */
	const char *prefix; /* of the keys; NULL: one that no other program has */
	bool keep, json;
};

/* 0; 1: a value was wrong, or a request failed; 3: the server is not to be reached. */
int bench_run(struct kv *kv, const struct bench *bench, const char *provider, FILE *out);

#endif
