/* SPDX-License-Identifier: BSD-3-Clause */
/* Refuse the n-th call of one function of the C library, or all from then on: calls.def, wrap.c. */
#ifndef CONTD_TESTS_REFUSE_H
#define CONTD_TESTS_REFUSE_H

#include <pthread.h>
#include <stdbool.h>

enum refuse_how { MUST, MAY, KNOWN };

/* The functions, by number. */
unsigned refuse_functions(void);
const char *refuse_name(unsigned function);
enum refuse_how refuse_how(unsigned function);

/* From here on: the n-th call (from 1) of the function is refused, and all after it where `onward`. */
void refuse_start(unsigned function, unsigned n, bool onward);
/* Nothing is refused any more. */
void refuse_end(void);

/* How often it was called, and refused, since refuse_start. */
unsigned refuse_called(void);
unsigned refuse_refused(void);

/* Of memory: blocks and mappings that were taken and not given back. */
int refuse_blocks(void);
int refuse_mappings(void);

/* For the tests' own threads. */
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *p);

#endif
