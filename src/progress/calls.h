/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that the progress library stands in front of, besides those in src/mpi/signatures.h: those that begin an
 * operation, make or free a window, or may call the program back. Shapes and suffixes are as there.
 *
 *     CONTD_PROGRESS_BACK      may call the program back: attributes' functions, operations, generalized requests
 *     CONTD_PROGRESS_BEGINS    begins an operation with `request`
 *     CONTD_PROGRESS_WINDOW    makes `win`
 *     CONTD_PROGRESS_USER      makes something of the program's that MPI may call at any time later
 */
#ifndef CONTD_PROGRESS_CALLS_H
#define CONTD_PROGRESS_CALLS_H

#include "mpi/signatures.h"

#define CONTD_PROGRESS_BACK_PLAIN(X) \
	X(, Comm_dup, (MPI_Comm comm, MPI_Comm * newcomm), (comm, newcomm)) \
	X(, Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm * newcomm), (comm, info, newcomm)) \
	X(, Comm_free, (MPI_Comm * comm), (comm)) \
	X(, Comm_disconnect, (MPI_Comm * comm), (comm)) \
	X(, Comm_set_attr, (MPI_Comm comm, int key, void *value), (comm, key, value)) \
	X(, Comm_delete_attr, (MPI_Comm comm, int key), (comm, key)) \
	X(, Attr_put, (MPI_Comm comm, int key, void *value), (comm, key, value)) \
	X(, Attr_delete, (MPI_Comm comm, int key), (comm, key)) \
	X(, Type_dup, (MPI_Datatype type, MPI_Datatype * newtype), (type, newtype)) \
	X(, Type_free, (MPI_Datatype * type), (type)) \
	X(, Type_set_attr, (MPI_Datatype type, int key, void *value), (type, key, value)) \
	X(, Type_delete_attr, (MPI_Datatype type, int key), (type, key)) \
	X(, Win_set_attr, (MPI_Win win, int key, void *value), (win, key, value)) \
	X(, Win_delete_attr, (MPI_Win win, int key), (win, key)) \
	X(, Comm_call_errhandler, (MPI_Comm comm, int code), (comm, code)) \
	X(, Win_call_errhandler, (MPI_Win win, int code), (win, code)) \
	X(, File_call_errhandler, (MPI_File file, int code), (file, code)) \
	X(, Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status)) \
	X(, Cancel, (MPI_Request * request), (request)) \
	X(, Grequest_complete, (MPI_Request request), (request))

#define CONTD_PROGRESS_BACK_COUNTED(X, S, N) \
	X(S, Reduce_local, (const void *in, void *inout, N count, MPI_Datatype type, MPI_Op op), \
	  (in, inout, count, type, op))

#define CONTD_PROGRESS_BEGINS_COUNTED(X, S, N) \
	X(S, File_iread, (MPI_File file, void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, buf, count, type, request)) \
	X(S, File_iread_all, (MPI_File file, void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, buf, count, type, request)) \
	X(S, File_iread_at, \
	  (MPI_File file, MPI_Offset offset, void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, offset, buf, count, type, request)) \
	X(S, File_iread_at_all, \
	  (MPI_File file, MPI_Offset offset, void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, offset, buf, count, type, request)) \
	X(S, File_iread_shared, (MPI_File file, void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, buf, count, type, request)) \
	X(S, File_iwrite, (MPI_File file, const void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, buf, count, type, request)) \
	X(S, File_iwrite_all, (MPI_File file, const void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, buf, count, type, request)) \
	X(S, File_iwrite_at, \
	  (MPI_File file, MPI_Offset offset, const void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, offset, buf, count, type, request)) \
	X(S, File_iwrite_at_all, \
	  (MPI_File file, MPI_Offset offset, const void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, offset, buf, count, type, request)) \
	X(S, File_iwrite_shared, (MPI_File file, const void *buf, N count, MPI_Datatype type, MPI_Request *request), \
	  (file, buf, count, type, request))

#define CONTD_PROGRESS_WINDOW_COUNTED(X, S, D) \
	X(S, Win_create, (void *base, MPI_Aint size, D unit, MPI_Info info, MPI_Comm comm, MPI_Win *win), \
	  (base, size, unit, info, comm, win)) \
	X(S, Win_allocate, (MPI_Aint size, D unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win), \
	  (size, unit, info, comm, base, win)) \
	X(S, Win_allocate_shared, (MPI_Aint size, D unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win), \
	  (size, unit, info, comm, base, win))

#define CONTD_PROGRESS_WINDOW_PLAIN(X) \
	X(, Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win * win), (info, comm, win))

#define CONTD_PROGRESS_USER(X) \
	X(, Comm_create_errhandler, (MPI_Comm_errhandler_function * function, MPI_Errhandler * handler), \
	  (function, handler)) \
	X(, Win_create_errhandler, (MPI_Win_errhandler_function * function, MPI_Errhandler * handler), \
	  (function, handler)) \
	X(, File_create_errhandler, (MPI_File_errhandler_function * function, MPI_Errhandler * handler), \
	  (function, handler)) \
	X(, Register_datarep, \
	  (const char *name, MPI_Datarep_conversion_function *from, MPI_Datarep_conversion_function *to, \
	   MPI_Datarep_extent_function *function, void *state), \
	  (name, from, to, function, state)) \
	X(, Grequest_start, \
	  (MPI_Grequest_query_function * query, MPI_Grequest_free_function * free_it, \
	   MPI_Grequest_cancel_function * cancel, void *state, MPI_Request *request), \
	  (query, free_it, cancel, state, request))

#endif
