/* SPDX-License-Identifier: BSD-3-Clause */
/* CRs and MPI's operations in dumps, as far as both backends have the same. */
#ifndef CONTD_MPI_DUMP_H
#define CONTD_MPI_DUMP_H

#include "dump/root.h"
#include "mpi/cr.h"
#include "mpi/op_set.h"

/* Of struct contd__cr, and of struct contd__op. */
extern const struct contd__dump_field contd__dump_cr[], contd__dump_op[];
#define DUMP_CR_FIELDS 5u
#define DUMP_OP_FIELDS 7u

/* The first members of a backend's struct contd__dump_part. */
#define DUMP_MPI(text, cr_freed) \
	.size = sizeof(struct contd__dump_part), .name = (text), .freed = (cr_freed), \
	.object = "continuation request", .owner = {contd__dump_cr, DUMP_CR_FIELDS, sizeof(struct contd__cr)}, \
	.invoke = {contd__invoke_draft, contd__invoke_revised}, .count_at = offsetof(struct contd__set, count), \
	.first_at = offsetof(struct contd__set, op), \
	.operation = {contd__dump_op, DUMP_OP_FIELDS, sizeof(struct contd__op)}

#endif
