/* SPDX-License-Identifier: BSD-3-Clause */
/* contd run. argv[0] is the subcommand's name. Returns an exit status (status.h). */
#ifndef CONTD_COMMAND_RUN_H
#define CONTD_COMMAND_RUN_H

int command_run(int argc, char **argv);

#endif
