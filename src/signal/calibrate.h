/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_SIGNAL_CALIBRATE_H
#define CONTD_SIGNAL_CALIBRATE_H

#include "signal/attached.h"

/* Measure what a tick and a notification cost this thread; once a process. Ordinary code of an attached thread; about 5
 * ms. */
void contd__calibrate(struct contd__attached *me);

#endif
