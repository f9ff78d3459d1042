/* SPDX-License-Identifier: BSD-3-Clause */
/* What contd .probe measures, and tells. libcontd is preloaded, and not linked. */
#ifndef CONTD_COMMAND_MEASURED_H
#define CONTD_COMMAND_MEASURED_H

void probed_core(void);
void probed_tick(void);
void probed_ring(void);

#endif
