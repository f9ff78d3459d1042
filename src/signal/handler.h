/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_SIGNAL_HANDLER_H
#define CONTD_SIGNAL_HANDLER_H

#include <signal.h>

void contd__handler(int signo, siginfo_t *info, void *context);

#endif
