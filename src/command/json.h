/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes one JSON text to standard output: RFC 8259, two blanks of indentation for each level. */
#ifndef CONTD_COMMAND_JSON_H
#define CONTD_COMMAND_JSON_H

#include <stdbool.h>

/* `key` is NULL in arrays, and for the outermost object. */
void json_object(const char *key);
void json_array(const char *key);
void json_end(void); /* of the innermost object or array */

/* A string, in which what is no UTF-8 becomes U+FFFD; NULL: null. */
void json_text(const char *key, const char *value);
void json_bool(const char *key, bool value);

/* The text of a number, which is checked: null if it is none, or NULL. */
void json_number(const char *key, const char *value);

#endif
