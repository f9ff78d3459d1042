/* SPDX-License-Identifier: BSD-3-Clause */
/* How contd .probe tells facts, and what it needs of its process. */
#ifndef CONTD_COMMAND_TELL_H
#define CONTD_COMMAND_TELL_H

#define TOLD 20000 /* bytes of a value; MPICH has versions of some thousand */

/* Once, before the others: the facts go to fd, and the library at this path is preloaded. 0, or -1 if fd is none. */
int tell_begin(int fd, const char *path);

/* A fact: a line "key=value". If it can't be told, the process ends. */
void tell(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A function of the preloaded library; if there is none, the process ends, with a fact that says so. */
void *needed(const char *name, const char *version);

void forget_settings(void); /* measures and trials are with contd's defaults */

#endif
