/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: objects of the two sources (source.h). */
#ifndef CONTD_FABRIC_COUNTER_H
#define CONTD_FABRIC_COUNTER_H

#include <stdint.h>

#include <contd/fabric.h>

/* contd_fabric_withdraw() of an operation that waits for a counter. */
int contd__fabric_counter_withdraw(struct contd_fabric_op *op, int status);

#endif
