/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of Open MPI's inside that the native backend knows: the beginning of a request, and a few functions.
 * Described here, so that neither Open MPI's development headers nor its development files are needed (most sites have
 * none); accepted after a probe (ompi.c). If the headers are installed, ompi_check.c compares them. Source:
 * ompi/request/request.h, ompi/request/request_dbg.h, opal/class/opal_object.h, opal_list.h, opal_free_list.h of
 * versions 4.1.4, 5.0.8 and of the main branch in 2026: one layout. (Debug builds have another one; the probe tells.)
 */
#ifndef CONTD_MPI_OMPI_H
#define CONTD_MPI_OMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "mpi/calls.h"

struct contd__ompi_request;
typedef int contd__ompi_callback(struct contd__ompi_request *request);
typedef int contd__ompi_free(MPI_Request *request);

/* What a communicator, window or file begins with, and a request. */
struct contd__ompi_object {
	void *class;
	int32_t references;
};

struct contd__ompi_request {
	void *class;
	int32_t references;
	void *next, *previous;
	int32_t item_free;
	void *registration, *pointer;
	int32_t type;
	MPI_Status status;
	void *complete; /* OMPI_PENDING, OMPI_COMPLETED, or whom to wake */
	int32_t state;
	bool persistent;
	int f_to_c_index; /* MPI_UNDEFINED: no Fortran handle */
	int (*start)(size_t count, MPI_Request *requests);
	contd__ompi_free *free;
	int (*cancel)(struct contd__ompi_request *request, int flag);
	contd__ompi_callback *complete_cb; /* returns 1: the request is not Open MPI's any more */
	void *complete_cb_data;
	void *object; /* communicator, file or window, by type */
};

enum {
	OMPI_TYPE_PML = 0,
	OMPI_TYPE_IO = 1,
	OMPI_TYPE_GEN = 2,
	OMPI_TYPE_WIN = 3,
	OMPI_TYPE_COLL = 4,
	OMPI_TYPE_NULL = 5,
	OMPI_TYPE_PART = 8 /* from 5.0 on; in 4.1 no request has it */
};
enum { OMPI_INVALID, OMPI_INACTIVE, OMPI_ACTIVE };
#define OMPI_PENDING ((void *)0)
#define OMPI_COMPLETED ((void *)1)

/* Open MPI's functions and variables, found at run time. */
struct contd__ompi {
	struct contd__request_functions *functions; /* the table behind MPI_Test and its kin */
	void (*progress)(void);
	int (*progress_register)(int (*callback)(void));
	int (*progress_unregister)(int (*callback)(void));
	bool *uses_threads;
	int (*grequest_query)(struct contd__ompi_request *request, MPI_Status *status);
	int (*errhandler_request_invoke)(int count, MPI_Request *requests, const char *message);
	void *f_to_c_table;
	int (*pointer_array_set)(void *table, int index, void *value);
	MPI_Comm quiet; /* a duplicate of MPI_COMM_SELF that returns its errors */
};

extern struct contd__ompi contd__ompi;

/* NULL, or why this MPI's requests can't be used. Needs MPI to be initialized; makes `quiet`. */
const char *contd__ompi_find(void);
void contd__ompi_forget(void);

/* Has MPI a separate thread that completes operations (the MCA parameter btl_tcp_progress_thread)? Also true if MPI
 * does not say. */
bool contd__ompi_progress_thread(void);

#endif
