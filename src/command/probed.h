/* SPDX-License-Identifier: BSD-3-Clause */
/* contd .probe: a process of contd info's (probe.h). argv[0] is ".probe". Ends the process, or returns a status
 * (status.h). */
#ifndef CONTD_COMMAND_PROBED_H
#define CONTD_COMMAND_PROBED_H

int command_probe(int argc, char **argv);

#endif
