/* SPDX-License-Identifier: BSD-3-Clause */
/* Start of src/signal. Threads attach (contd.h). */
#ifndef CONTD_SIGNAL_ATTACH_H
#define CONTD_SIGNAL_ATTACH_H

#include <contd/contd.h>

/* Reserve the signal, and give its functions to src/dispatch. 0, -EBUSY, -ENOMEM. Ordinary threads. */
int contd__signal_start(const struct contd_config *config);

#endif
