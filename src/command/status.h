/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit statuses of the command contd, and the one that says that its output cannot be written. */
#ifndef CONTD_COMMAND_STATUS_H
#define CONTD_COMMAND_STATUS_H

/* As of env(1); and of contd info, which could not find out all. */
enum { STATUS_INCOMPLETE = 1, STATUS_USAGE = 2, STATUS_FAILED = 125, STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

/* The end of what the command writes to standard output. All is written: 0. Otherwise output_end() says why not, and
 * returns STATUS_FAILED, as output_failed() does. */
int output_end(void);
int output_failed(int error);

#endif
