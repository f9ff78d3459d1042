/* SPDX-License-Identifier: BSD-3-Clause */
/* contd dump. argv[0] is the subcommand's name. Returns an exit status (status.h). */
#ifndef CONTD_COMMAND_DUMP_H
#define CONTD_COMMAND_DUMP_H

int command_dump(int argc, char **argv);

#endif
