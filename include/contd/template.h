/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking operations that MPI does not have, by the proposal of 1996 for MPI-2's external interfaces. A template
 * says how such an operation begins, goes on and ends. It may be started any number of times, each time with another
 * extra_state. The result is a request like any other: for all Test and Wait calls, MPI_Request_get_status, MPI_Cancel,
 * MPI_Request_free and continuations.
 *
 * MPIX_Gr_begin calls start_fn, once. Then push_fn is called in the background, again and again, until the request is
 * marked. MPIX_Mark_request_complete marks it: the operation is over, but the request stays active. Test or Wait then
 * calls complete_fn, once, with the status, and sets the handle to MPI_REQUEST_NULL.
 *
 * "In the background" means in these places:
 *   - the program's MPI calls (with the portable backend not in collective calls that block), and a Wait for the
 *     request itself;
 *   - contd_poll and contd_group_wait;
 *   - compute regions of attached threads, and contd_checkpoint there;
 *   - the daemon thread, with MPI_THREAD_MULTIPLE.
 * Each of many requests gets its turn. In
 * regions and on the daemon thread pushes come as often as the overhead budget allows (CONTD_OVERHEAD_PERCENT), however
 * little they find. Of a push 2 microseconds count as overhead, which is enough to look whether there is something to
 * do; what it takes beyond that is the operation's work, as callbacks are.
 *
 * Context of all functions: threads that may call MPI at the thread level that was granted; in a callback, but not in
 * one that a signal handler runs outside a compute region. Errors go through MPI_COMM_SELF's error handler, as in
 * contd/mpi.h; what start_fn returns, too.
 *
 * The program's functions return MPI_SUCCESS or an MPI error class or code. They may call MPI, but:
 *   start_fn     The handle is in *req already. An error: MPIX_Gr_begin fails with it, and there is no request. A
 *                continuation that start_fn has attached to it before runs, and its status holds that error.
 *   push_fn      Any thread that may call MPI, also in a handler that has interrupted a compute region; of one request
 *                on one thread at a time, never before start_fn has returned, and not inside any push_fn: a Test or
 *                Wait inside push_fn calls no push_fn, and runs only the continuations of the CRs passed to it. So it
 *                must not wait for a request of a template. An error ends the operation: the request is marked, and
 *                fails with it. MPI_COMM_WORLD's error handler is called.
 *   complete_fn  Never at the same time as start_fn or push_fn of the request, and after them. In Test and Wait it runs
 *                inside MPI's own call, for MPI's generalized requests work that way. There it may call
 *                MPI_Status_set_elements, MPI_Status_set_cancelled, and calls that do not block. Its error is the
 *                request's, as one of a query_fn (of which MPICH 4.0 makes MPI_ERR_OTHER in calls for arrays); where no
 *                Test or Wait reports it, it goes to MPI_COMM_SELF's error handler. When status comes, source and tag
 *                are MPI_UNDEFINED, the count is 0, and it is not cancelled; MPI_ERROR is not complete_fn's to set.
 *                NULL: the request was freed. Also called where push_fn has failed. MPICH (4.0) calls it in an
 *                MPI_Testall too that finds only some of its requests complete: once, and the Test or Wait that
 *                completes has its status.
 *   cancel_fn    In MPI_Cancel; complete says whether the request was marked before. push_fn may be running on another
 *                thread. It may call MPIX_Mark_request_complete. The request still has to be marked, and then tested or
 *                waited for: whether the operation was cancelled is for complete_fn to say (MPI_Status_set_cancelled).
 *
 * MPI_Request_get_status does not complete: complete_fn is not called, and the status is as it was before that.
 *
 * Continuations: the callback first, complete_fn second, always. The status that the callback gets is the one before
 * complete_fn, with MPI_ERROR from push_fn; complete_fn gets a separate status, which contd then discards. It runs on
 * the thread that has run the callback. If that was in a signal handler, or on a thread that must not call MPI, it runs
 * later, on a thread that calls MPI. The CR is not complete before complete_fn has run. (If the continuation fails, it
 * may be.)
 *
 * If MPI_Request_free is called for an active one, the operation goes on until it is marked, by a copy of the handle
 * that the program has made before. Then complete_fn runs, with NULL, in the call that marks it. If push_fn is running,
 * complete_fn runs when that has returned. If the request was marked already, it runs in MPI_Request_free.
 *
 * MPI_Finalize with requests that were never marked: push_fn is not called any more, complete_fn is not called, and a
 * line on stderr says how many there are.
 */
#ifndef CONTD_TEMPLATE_H
#define CONTD_TEMPLATE_H

#include <mpi.h>

#include <contd/contd.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct contd_gr *MPIX_Gr;
#define MPIX_GR_NULL ((MPIX_Gr)0)

typedef int(MPIX_Gr_start_function)(void *extra_state);
typedef int(MPIX_Gr_push_function)(void *extra_state);
typedef int(MPIX_Gr_complete_function)(void *extra_state, MPI_Status *status);
typedef int(MPIX_Gr_cancel_function)(void *extra_state, int complete);

/*
 * Make a template. push_fn may be NULL: others do the work, a thread say, and mark the request. So may cancel_fn: then
 * cancelling has no effect. Errors: MPI_ERR_ARG (another NULL), MPI_ERR_NO_MEM (also if there are 1048575 templates),
 * MPI_ERR_OTHER (before MPI_Init, after MPI_Finalize).
 */
CONTD_API int MPIX_Gr_init(MPIX_Gr_start_function *start_fn, MPIX_Gr_push_function *push_fn,
			   MPIX_Gr_complete_function *complete_fn, MPIX_Gr_cancel_function *cancel_fn, MPIX_Gr *gr);
CONTD_API int PMPIX_Gr_init(MPIX_Gr_start_function *start_fn, MPIX_Gr_push_function *push_fn,
			    MPIX_Gr_complete_function *complete_fn, MPIX_Gr_cancel_function *cancel_fn, MPIX_Gr *gr);

/*
 * Start an operation: *req is an active request from before start_fn is called. Errors: MPI_ERR_ARG (req is NULL, gr is
 * no template), MPI_ERR_NO_MEM, MPI_ERR_OTHER as above, and what start_fn returns; then *req is as it was, and
 * complete_fn is not called.
 */
CONTD_API int MPIX_Gr_begin(MPIX_Gr gr, void *extra_state, MPI_Request *req);
CONTD_API int PMPIX_Gr_begin(MPIX_Gr gr, void *extra_state, MPI_Request *req);

/*
 * The operation is over: push_fn is not called any more, and threads that wait for the request are woken. Inside its
 * start_fn or push_fn, or while another thread is in there, the request is complete when that has returned. Any thread
 * that may call MPI. Errors: MPI_ERR_REQUEST (not a request of MPIX_Gr_begin's, or one that was marked before),
 * MPI_ERR_OTHER.
 */
CONTD_API int MPIX_Mark_request_complete(MPI_Request req);
CONTD_API int PMPIX_Mark_request_complete(MPI_Request req);

/*
 * *gr is MPIX_GR_NULL afterwards; requests that were started with the template go on. Errors: MPI_ERR_ARG (NULL,
 * MPIX_GR_NULL, no template), MPI_ERR_OTHER.
 */
CONTD_API int MPIX_Gr_free(MPIX_Gr *gr);
CONTD_API int PMPIX_Gr_free(MPIX_Gr *gr);

/*
 * MPI_Cancel, but MPI_REQUEST_NULL is accepted and nothing happens. So a thread that cancels need not know whether a
 * continuation has completed the request meanwhile. The proposal of the templates wants MPI_Cancel itself to do that.
 * contd leaves MPI_Cancel as MPI has it: MPI 4.1 (3.8.4) cancels an operation that is pending, so Open MPI and MPICH
 * answer MPI_ERR_REQUEST to MPI_REQUEST_NULL. A program that relied on contd's answer would fail without contd, and
 * where MPI calls do not come to contd (a plug-in, on the native backend). Errors: MPI_ERR_ARG (NULL), MPI_ERR_OTHER,
 * and MPI_Cancel's.
 */
CONTD_API int MPIX_Cancel(MPI_Request *request);
CONTD_API int PMPIX_Cancel(MPI_Request *request);

#ifdef __cplusplus
}
#endif

#endif
