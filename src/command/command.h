/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command contd: what its subcommands share. It links no library of contd. contd info begins processes
 * that have them preloaded: probe.h.
 */
#ifndef CONTD_COMMAND_COMMAND_H
#define CONTD_COMMAND_COMMAND_H

/* Exit statuses, as of env(1); and of contd info, which could not find out all. */
enum { STATUS_INCOMPLETE = 1, STATUS_USAGE = 2, STATUS_FAILED = 125, STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

/* Of the folders in which contd's libraries may lie, in order; NULL at the end. Beside the command first, so that an
 * installation may be moved. */
const char *const *command_folders(void);

/* The subcommands. argv[0] is the subcommand's name. They return an exit status. */
int command_run(int argc, char **argv);
int command_info(int argc, char **argv);

#endif
