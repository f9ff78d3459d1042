/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_SIGNAL_NAME_H
#define CONTD_DISPATCH_SIGNAL_NAME_H

/* The number of a signal that users send to programs. name: with or without SIG, or a number; 0: it is none. */
int contd__signal_by_name(const char *name);

#endif
