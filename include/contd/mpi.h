/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI completion continuations for an MPI that has none: the draft interface (MPI Forum's draft chapter "Completion
 * Continuations", sections 3.11.1 to 3.11.3). Link with contd-mpi.
 *
 * A continuation request (CR) is made by MPI_Continue_init and used in MPI_Test*, MPI_Wait*, MPI_Request_get_status and
 * MPI_Request_free like any other request. Completion never frees it. Where the draft is silent the rule is given here.
 *
 * Context of all functions: threads that may call MPI at the thread level that was granted; inside a continuation that
 * is not running in a signal handler outside a compute region; never in a signal handler otherwise.
 * Errors go through the error handler of MPI_COMM_SELF and are returned as MPI error classes; then nothing has been
 * attached and no handle has changed.
 */
#ifndef CONTD_MPI_H
#define CONTD_MPI_H

#include <mpi.h>

#include <contd/contd.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * array_of_statuses is the pointer that was given when the continuation was attached, MPI_STATUS_IGNORE and
 * MPI_STATUSES_IGNORE included; every status is complete, MPI_ERROR too, before the call.
 */
typedef void(MPI_Continue_cb_function)(MPI_Status *array_of_statuses, void *user_data);

/*
 * Make a continuation request. Info keys (values are "true" and "false" unless said otherwise):
 *   mpi_continue_poll_only          run only in Test or Wait on this CR
 *   mpi_continue_enqueue_complete   never run inside the call that attaches
 *   mpi_continue_max_poll           an integer >= -1: how many one Test runs at most; -1: no limit
 *   mpi_continue_thread             "application" or "any" (also "all"): may contd's daemon thread run them
 *   mpi_continue_async_signal_safe  callbacks are async-signal-safe. Also attaches the calling thread
 *                                   (contd_thread_attach) and, with MPI_THREAD_MULTIPLE, starts the ticking daemon
 *   contd_agent                     "caller", "region" or "tick": overrides that choice
 * Errors: MPI_ERR_ARG (NULL; poll_only with max_poll 0), MPI_ERR_INFO_VALUE (malformed), MPI_ERR_OTHER (before MPI_Init,
 * after MPI_Finalize, contd_agent "tick" without MPI_THREAD_MULTIPLE), MPI_ERR_NO_MEM.
 */
CONTD_API int MPI_Continue_init(MPI_Info info, MPI_Request *cont_req);
CONTD_API int PMPI_Continue_init(MPI_Info info, MPI_Request *cont_req);

/*
 * Run cb(status, cb_data) when *op_request has completed. A handle that is not persistent is MPI_REQUEST_NULL on return;
 * a persistent one stays, is inactive when the callback runs, and must not be freed before (Open MPI then forgets its
 * completion). A CR as *op_request stays too; the callback runs when everything registered with it has run. status may be
 * MPI_STATUS_IGNORE, else it must stay accessible until the callback has run.
 * Errors: MPI_ERR_ARG (NULL), MPI_ERR_REQUEST (cont_req is no CR; the request has a continuation already; op_request is
 * cont_req, or a CR that waits for it), MPI_ERR_NO_MEM.
 */
CONTD_API int MPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
			   MPI_Request cont_req);
CONTD_API int PMPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
			    MPI_Request cont_req);

/*
 * The same for a set: cb runs once, when all have completed. The array of handles is not touched after the return.
 * Errors: as MPI_Continue; MPI_ERR_COUNT (negative count), MPI_ERR_REQUEST also for an active request named twice.
 */
CONTD_API int MPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb, void *cb_data,
			      MPI_Status array_of_statuses[], MPI_Request cont_req);
CONTD_API int PMPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb,
			       void *cb_data, MPI_Status array_of_statuses[], MPI_Request cont_req);

#ifdef __cplusplus
}
#endif

#endif
