/* SPDX-License-Identifier: BSD-3-Clause */
/* The signal room comes and goes; threads attach (contd.h). */
#ifndef CONTD_SIGNAL_ATTACH_H
#define CONTD_SIGNAL_ATTACH_H

#include <contd/contd.h>

/* Reserve the signal and be there for dispatch (contd__interrupt.ops). 0, -EBUSY, -ENOMEM. Ordinary threads. */
int contd__signal_start(const struct contd_config *config);

#endif
