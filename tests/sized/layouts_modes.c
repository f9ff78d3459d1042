/* SPDX-License-Identifier: BSD-3-Clause */
/* As layouts.c, of contd/modes.h. */
#include <contd/modes.h>

#include "is_of.h"
#include "layouts_modes_0_2.h"

IS_OF(contd_mode_attr, size);
IS_OF(contd_mode_attr, mode);
IS_OF(contd_mode_attr, priority);
IS_OF(contd_mode_attr, requests);
IS_OF(contd_mode_attr, completions);
IS_OF(contd_mode_attr, yield);
IS_OF(contd_mode_attr, suspend);
IS_OF(contd_mode_attr, resume);
IS_OF(contd_mode_attr, flags);
ENDS_WITH(contd_mode_attr, cont_req);

IS_OF(contd_mpi_op, count);
IS_OF(contd_mpi_op, requests);
IS_OF(contd_mpi_op, statuses);
IS_OF(contd_mpi_op, issue);
IS_OF(contd_mpi_op, done);
IS_OF(contd_mpi_op, data);
IS_OF(contd_mpi_op, task);
_Static_assert(offsetof(struct contd_mpi_op, contd) == offsetof(struct contd_mpi_op_0_2, room),
	       "what is contd's begins elsewhere than in 0.2");
_Static_assert(sizeof(struct contd_mpi_op) == sizeof(struct contd_mpi_op_0_2),
	       "struct contd_mpi_op is of another size than in 0.2");
