/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that begin and end sessions, where the MPI has them: X(name, parameters, arguments), as in intercept.h. */
#ifndef CONTD_MPI_SESSIONS_H
#define CONTD_MPI_SESSIONS_H

#include <mpi.h>

/* clang-format off */
#define CONTD_SESSIONS(X) \
	X(Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session), (info, errhandler, session)) \
	X(Session_finalize, (MPI_Session * session), (session))
/* clang-format on */

#endif
