/* SPDX-License-Identifier: BSD-3-Clause */
/* contd info. argv[0] is the subcommand's name. Returns an exit status (status.h). */
#ifndef CONTD_COMMAND_INFO_H
#define CONTD_COMMAND_INFO_H

int command_info(int argc, char **argv);

#endif
