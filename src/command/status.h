/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit statuses of the command contd. */
#ifndef CONTD_COMMAND_STATUS_H
#define CONTD_COMMAND_STATUS_H

/* As of env(1); and of contd info, which could not find out all. */
enum { STATUS_INCOMPLETE = 1, STATUS_USAGE = 2, STATUS_FAILED = 125, STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

#endif
