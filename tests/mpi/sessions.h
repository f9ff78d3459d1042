/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of MPI sessions: one session of the program's, and a communicator of all processes. */
#ifndef CONTD_TESTS_MPI_SESSIONS_H
#define CONTD_TESTS_MPI_SESSIONS_H

#include "check.h"

/* MPICH 4.0 cannot begin again after its last session, or beside one. */
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
#define AGAIN false
#else
#define AGAIN true
#endif

/* Open MPI 5.0 itself hangs if a thread begins a session while another one ends the last. */
#ifdef OPEN_MPI
#define AT_ONCE false
#else
#define AT_ONCE AGAIN
#endif

static atomic_int sessions_errors; /* how often the session's error handler was called */

CHECK_HELPER void sessions_on_error(MPI_Session *session, int *code, ...)
{
	(void)session, (void)code;
	atomic_fetch_add(&sessions_errors, 1);
}

/* MPICH 4.0 makes error handlers of sessions only once there is one. */
CHECK_HELPER MPI_Session sessions_begin(const char *level)
{
	MPI_Session session = MPI_SESSION_NULL;
	MPI_Errhandler handler;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "thread_level", level);
	CHECK_OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
	MPI_Info_free(&info);
	CHECK_OK(MPI_Session_create_errhandler(sessions_on_error, &handler));
	CHECK_OK(MPI_Session_set_errhandler(session, handler));
	MPI_Errhandler_free(&handler);
	return session;
}

/* The level that MPI says it has granted, which may be a higher one: MPI 4.1, 11.3.1. */
CHECK_HELPER int sessions_level(MPI_Session session)
{
	char granted[32] = "";
	MPI_Info info;
	int flag = 0;

	CHECK_OK(MPI_Session_get_info(session, &info));
	MPI_Info_get(info, "thread_level", sizeof(granted) - 1, granted, &flag);
	MPI_Info_free(&info);
	CHECK(flag);
	return strcmp(granted, "MPI_THREAD_MULTIPLE") == 0     ? MPI_THREAD_MULTIPLE
	       : strcmp(granted, "MPI_THREAD_SERIALIZED") == 0 ? MPI_THREAD_SERIALIZED
	       : strcmp(granted, "MPI_THREAD_FUNNELED") == 0   ? MPI_THREAD_FUNNELED
							       : MPI_THREAD_SINGLE;
}

CHECK_HELPER MPI_Comm sessions_comm(MPI_Session session)
{
	MPI_Comm comm = MPI_COMM_NULL;
	MPI_Group group;

	CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
	CHECK_OK(MPI_Comm_create_from_group(group, "contd.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
	MPI_Group_free(&group);
	MPI_Comm_rank(comm, &check_rank);
	MPI_Comm_size(comm, &check_size);
	return comm;
}

/* As check_sum() where there is no MPI_COMM_WORLD. */
CHECK_HELPER int sessions_sum(MPI_Comm comm)
{
	int mine[2] = {atomic_load(&check_failures), atomic_load(&check_count)}, all[2];

	check_begin("sum");
	MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, comm);
	if (check_rank == 0)
		printf("%d ranks: %d checks, %d failed\n", check_size, all[1], all[0]);
	fflush(stdout);
	return all[0] != 0;
}

#endif
