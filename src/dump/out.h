/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a dump goes: objects with keys and values, and lists of objects; as text (text.h), or as JSON (src/command). */
#ifndef CONTD_DUMP_OUT_H
#define CONTD_DUMP_OUT_H

#include <stdbool.h>
#include <stdint.h>

struct contd__dump_out {
	/* `kind`: what an element of the list is called. Lists hold objects only. */
	void (*list)(struct contd__dump_out *o, const char *key, const char *kind);
	void (*object)(struct contd__dump_out *o, const char *key); /* key: NULL in a list */
	void (*end)(struct contd__dump_out *o);                     /* of the innermost list or object */

	/* Before the lists and objects that the same object has. */
	void (*text)(struct contd__dump_out *o, const char *key, const char *value);
	void (*number)(struct contd__dump_out *o, const char *key, uint64_t value);
	void (*thousandths)(struct contd__dump_out *o, const char *key, uint64_t value);
	void (*address)(struct contd__dump_out *o, const char *key, uint64_t value);
	void (*flag)(struct contd__dump_out *o, const char *key, bool value);
	void (*duration)(struct contd__dump_out *o, const char *key, uint64_t ns); /* the key ends in _ns */
};

#endif
