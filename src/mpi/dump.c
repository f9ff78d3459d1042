/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/cr.h"
#include "mpi/dump.h"
#include "mpi/op_set.h"

static const struct contd__dump_name interfaces[] = {{0, "MPI_Continue"}, {1, "MPIX_Continue"}};
static const struct contd__dump_name activities[] = {{0, "inactive: its continuations wait for MPI_Start"},
						     {CR_ACTIVE, "active"},
						     {CR_TAKEN, "active, and about to be reported"}};
/* OP_TAKEN: the portable backend asks about it; in the native one it lasts for a moment. */
static const struct contd__dump_name states[] = {{OP_WAITS, "pending"}, {OP_TAKEN, "pending"}, {OP_DONE, "complete"}};

const struct contd__dump_field contd__dump_cr[] = {
	{.key = "interface",
	 .offset = offsetof(struct contd__cr, revised),
	 .size = sizeof(bool),
	 .how = DUMP_NAMED,
	 .names = 2,
	 .name = interfaces},
	DUMP_FIELD(struct contd__cr, handle, "request", DUMP_HEX),
	{.key = "activity",
	 .offset = offsetof(struct contd__cr, state),
	 .size = sizeof(uint32_t),
	 .how = DUMP_NAMED,
	 .names = 3,
	 .name = activities,
	 .mask = CR_ACTIVE | CR_TAKEN,
	 .only_at = offsetof(struct contd__cr, revised)},
	DUMP_FIELD(struct contd__cr, closed, "freed_by_the_program", DUMP_BOOL),
	DUMP_FIELD(struct contd__cr, error, "first_error", DUMP_NUMBER),
};
_Static_assert(sizeof(contd__dump_cr) / sizeof(contd__dump_cr[0]) == DUMP_CR_FIELDS, "dump.h says how many");

const struct contd__dump_field contd__dump_op[] = {
	DUMP_FIELD(struct contd__op, request, "request", DUMP_HEX),
	{.key = "state",
	 .offset = offsetof(struct contd__op, state),
	 .size = sizeof(uint32_t),
	 .how = DUMP_NAMED,
	 .names = 3,
	 .name = states},
	DUMP_FIELD(struct contd__op, persistent, "persistent", DUMP_BOOL),
	DUMP_FIELD(struct contd__op, freed, "freed_by_the_program", DUMP_BOOL),
	DUMP_FIELD(struct contd__op, instance, "template", DUMP_HEX),
	DUMP_FIELD(struct contd__op, error, "error", DUMP_NUMBER),
	DUMP_FIELD(struct contd__op, status, "status_at", DUMP_HEX),
};
_Static_assert(sizeof(contd__dump_op) / sizeof(contd__dump_op[0]) == DUMP_OP_FIELDS, "dump.h says how many");
