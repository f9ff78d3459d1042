/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI completion continuations for an MPI that has none. There are two interfaces to one engine. The draft interface
 * (MPI_) is that of the MPI Forum's draft chapter "Completion Continuations", sections 3.11.1 to 3.11.3. The revised
 * interface (MPIX_) is that of Open MPI's pull request 9502. Link with contd-mpi, or with contd-mpi-mpich for MPICH.
 *
 * A continuation request (CR) is made by MPI_Continue_init or MPIX_Continue_init and used in MPI_Test*, MPI_Wait*,
 * MPI_Request_get_status and MPI_Request_free like any other request. Completion never frees it. The attaching calls of
 * either interface take CRs of both. Where the draft is silent the rule is given here. The two differ so:
 *
 *                          draft (MPI_)                       revised (MPIX_)
 *     the CR               can be used at once                is inactive until MPI_Start, and again after a completion
 *                                                             that Test or Wait reports
 *     max_poll             key, -1: no limit, 0: none         argument, 0 and MPI_UNDEFINED: no limit; or the key
 *     callback             gets the statuses                  gets an error class, and returns one
 *     without a CR         MPI_ERR_REQUEST                    allowed: the continuation belongs to no CR
 *     an operation fails   the callback runs, and the         the callback runs if it has MPIX_CONT_INVOKE_FAILED; else
 *                          statuses tell                      the CR is marked: MPIX_Continue_get_failed
 *
 * A draft CR is inactive while nothing has been registered with it, or nothing since a call reported it complete:
 * MPI_Waitany over such ones gives MPI_UNDEFINED. Inside a CR's own callback MPI_Wait on it is MPI_ERR_REQUEST, and
 * MPI_Test gives flag 0; so it is in the error handler of an operation that one of its continuations waits for. (On the
 * portable backend that holds there for every CR that is not complete.) MPI_Cancel of a CR is MPI_ERR_REQUEST. After
 * MPI_Request_free outstanding continuations still run, except those of a revised CR that is inactive then: contd does
 * not touch their statuses any more. MPI_Finalize first runs what is outstanding, for as long as something completes,
 * and reports on stderr what never ran; CRs need not be freed before.
 *
 * Context of all functions: threads that may call MPI at the thread level that was granted; in continuations, also in
 * those that contd's handler runs in a compute region. Not in continuations that the handler runs outside regions, nor
 * in signal handlers of the program's.
 * Errors are returned as MPI error classes, and go through the error handler of MPI_COMM_SELF first. (MPI's own are
 * codes: MPI_ERROR in a status, and what MPI_Grequest_complete returns.) That is MPI_ERRORS_ARE_FATAL by default: set
 * MPI_ERRORS_RETURN to get the errors. After an error nothing has been attached and no handle has changed. Before
 * MPI_Init and after MPI_Finalize the result is MPI_ERR_OTHER with a line on stderr, and no error handler is called.
 * contd_error_text() names the call, what is wrong and what to do, in the error handler too. If the handler is one of
 * MPI's that end the program, a line on stderr has the text before.
 *
 * MPI sessions (MPI 4): continuations work between MPI_Init and MPI_Finalize, and without MPI_Init from the program's
 * first session to its last. With sessions alone errors go to the error handler of the program's oldest session, and
 * the last MPI_Session_finalize runs what is outstanding, as MPI_Finalize does. Continuations that never ran are
 * reported when the process exits. A program that has sessions beside MPI_Init goes on after MPI_Finalize if it had one
 * before its first call of contd's; otherwise MPI_Finalize ends contd. docs/requests.md has more.
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
 * MPI_STATUSES_IGNORE included; every status is complete, MPI_ERROR too, before the call. A callback must return, as
 * contd_callback (contd/contd.h): it must not leave by longjmp(3), pthread_exit(3), an exception, or cancellation.
 */
typedef void(MPI_Continue_cb_function)(MPI_Status *array_of_statuses, void *user_data);

/*
 * Make a continuation request. info may be MPI_INFO_NULL, and freed after the call. Info keys (values are "true" and
 * "false" unless said otherwise, and "false" by default):
 *   mpi_continue_poll_only          run only in Test or Wait on this CR. MPI_Request_get_status* runs none of them: a
 *                                   loop of it would not end
 *   mpi_continue_enqueue_complete   never run inside the call that attaches. If also async_signal_safe, a tick runs it
 *                                   soon after the call
 *   mpi_continue_max_poll           an integer >= -1, the most that one of these runs: a Test, an
 *                                   MPI_Request_get_status* of the CR, an interruption, a look of another call. As
 *                                   max_poll of struct contd_group_attr (contd.h); -1, the default: no limit. 0: tests
 *                                   and status queries of the CR and interruptions run none. MPI_Wait, other calls
 *                                   (with 0) and the daemon have no limit
 *   mpi_continue_thread             "application", the default, or "any" (also "all"): may contd's daemon run them
 *   mpi_continue_async_signal_safe  callbacks are async-signal-safe. Also attaches the calling thread
 *                                   (contd_thread_attach), and later each thread that attaches to the CR, tests or
 *                                   waits for it; with MPI_THREAD_MULTIPLE it starts the ticking daemon, unless
 *                                   contd_agent is given too, or CONTD_AGENT is "caller". Below that level only compute
 *                                   regions of MPI's main thread make progress while the program calls nothing: a line
 *                                   on stderr says so, once. If a thread cannot be attached, the call fails; of a later
 *                                   thread a line on stderr says so
 *   contd_priority                  "low", "normal" (the default) or "high": enum contd_priority
 *   contd_agent                     "caller", "region", "tick", "block" or "spin": for the process, from here on
 *   contd_overhead_percent, contd_tick_min_ns, contd_tick_max_ns, contd_scan_count, contd_scan_ns, contd_watchdog_ns,
 *   contd_daemon_name, contd_daemon_cpus, contd_daemon_sched, contd_verbose, contd_stats
 *                                   settings of the process, as in struct contd_config, changed by contd_configure()
 * MPI ignores keys that it does not know. One that begins with contd_ or mpi_continue_ and is not in this list is
 * ignored too, but one rank on each host reports it on stderr, once for each key, with the nearest key of the list.
 * Errors: MPI_ERR_ARG (NULL; poll_only with max_poll 0), MPI_ERR_INFO (info is zero), MPI_ERR_INFO_VALUE (malformed),
 * MPI_ERR_NO_MEM, MPI_ERR_OTHER. The last means: before MPI_Init, after MPI_Finalize; in the child of a fork that came
 * after contd's first call; contd cannot start, and a line on stderr says why; or contd_agent is "tick" or "spin"
 * without MPI_THREAD_MULTIPLE.
 */
CONTD_API int MPI_Continue_init(MPI_Info info, MPI_Request *cont_req);
CONTD_API int PMPI_Continue_init(MPI_Info info, MPI_Request *cont_req);

/*
 * Run cb(status, cb_data) when *op_request has completed. If it is complete already, cb may run before this call
 * returns; if not, cb runs in a call that makes progress, in a compute region, or on the daemon. The argument status
 * may be MPI_STATUS_IGNORE; any other status must stay accessible until the callback has run.
 *
 * The handle of an operation that is not persistent is MPI_REQUEST_NULL on return: copy it before if you need it for
 * MPI_Grequest_complete or MPI_Cancel. A persistent one stays, and is inactive when the callback runs. MPI_Wait on it
 * returns when the operation is complete, with the empty status, and MPI_Test gives flag 0 until then. If
 * MPI_Request_free is called for it before the callback has run, the operation goes on, the callback runs with its
 * status, and the request is freed after that. MPI_REQUEST_NULL and an inactive persistent request count as complete,
 * with the empty status, by the rule of MPI_Test.
 *
 * A CR as *op_request stays too; the callback runs when everything registered with it has run (with an inactive one of
 * MPIX_Continue_init after MPI_Start). The status is empty then, also if the CR is marked as failed;
 * MPIX_Continue_get_failed tells. A CR of MPIX_Continue_init is inactive when the callback runs, unless more was
 * registered with it in the meantime, or it was reported complete and started again. If the callback runs in a handler
 * outside compute regions, the CR becomes inactive in a later MPI call.
 *
 * If an operation fails, the error handler that MPI itself would call for it is called first (of its communicator,
 * window or file; MPICH 4.0 calls MPI_COMM_WORLD's for most). If it returns, the callback runs, and the statuses say
 * what failed. The handler is called for each failed operation; on the portable backend once for several that MPI
 * reports together. If the callback runs in a handler outside compute regions, the error handler is called after it, by
 * the next MPI call. A failed operation is no error of the attaching call.
 * Errors:
 *     MPI_ERR_ARG      op_request or cb is NULL, or status is, unless that is MPI_STATUS_IGNORE
 *     MPI_ERR_REQUEST  cont_req is no CR; op_request is cont_req, or a CR that waits for it; the request has a
 *                      continuation already (the portable backend notices this of persistent requests only); a thread
 *                      is in MPI_Wait for it (noticed by the native backend)
 *     MPI_ERR_OTHER    before MPI_Init, after MPI_Finalize, in the child of a fork
 *     MPI_ERR_NO_MEM   no memory
 */
CONTD_API int MPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
			   MPI_Request cont_req);
CONTD_API int PMPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
			    MPI_Request cont_req);

/*
 * The same for a set: cb runs once, when all have completed. The array of handles is not touched after the return. With
 * count 0 both arrays may be NULL, and all are complete.
 * Errors: as MPI_Continue; MPI_ERR_COUNT (negative count), MPI_ERR_REQUEST also for an active request named twice.
 */
CONTD_API int MPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb,
			      void *cb_data, MPI_Status *array_of_statuses, MPI_Request cont_req);
CONTD_API int PMPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb,
			       void *cb_data, MPI_Status *array_of_statuses, MPI_Request cont_req);

/* ----------------------------------------------------------------------------------------------- status queries --- */

/*
 * MPI 4.1's queries (3.7.6) of several requests at a time, which an older MPI does not have: by MPI's names and as
 * MPIX_. Nothing is completed or freed, no handle changes, and asked again they say the same. Each attempts progress,
 * also beside entries that are complete, and may run continuations. If these change the array, the call answers for
 * what is in it afterwards; a CR that they have freed counts as MPI_REQUEST_NULL. All kinds of requests, also CRs;
 * MPI_REQUEST_NULL, inactive requests and inactive CRs count as complete, with the empty status, for `_all`, and are
 * passed over by `_any` and `_some`. If an operation has failed the call returns MPI_SUCCESS; MPI_ERROR in each status
 * says MPI_SUCCESS or how its operation failed. No error handler is called here: the call that completes the request
 * calls it. (Behind the portable backend MPI's own query answers. MPICH's calls its handler each time. Open MPI's does
 * not tell that an operation has failed, so MPI_ERROR is MPI_SUCCESS.) A persistent operation whose continuation is
 * outstanding is not complete. MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE are allowed. Errors: MPI_ERR_COUNT (negative),
 * MPI_ERR_ARG (NULL), MPI_ERR_REQUEST (a handle that is none), MPI_ERR_OTHER (before MPI_Init, after MPI_Finalize, in
 * the child of a fork), MPI_ERR_NO_MEM.
 *
 * *flag says whether all are complete; if so, all statuses are set. If not, some of them may have been written; the
 * call stops at the first that is pending.
 */
CONTD_API int MPIX_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
CONTD_API int PMPIX_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);

/*
 * *flag says whether one is complete; if so, *index is its place and *status its status. Asked again it may be another
 * one. If all that are active are pending, *flag is 0, *index MPI_UNDEFINED, and the status is not touched. If none is
 * active, *flag is 1, *index MPI_UNDEFINED and the status empty.
 */
CONTD_API int MPIX_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
					  MPI_Status *status);
CONTD_API int PMPIX_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
					   MPI_Status *status);

/* *outcount says how many active ones are complete, 0 or more, or is MPI_UNDEFINED if none is active; indices and
 * statuses get their places, in order, and their statuses. */
CONTD_API int MPIX_Request_get_status_some(int incount, const MPI_Request requests[], int *outcount, int indices[],
					   MPI_Status statuses[]);
CONTD_API int PMPIX_Request_get_status_some(int incount, const MPI_Request requests[], int *outcount, int indices[],
					    MPI_Status statuses[]);

/* The same by MPI's own names. The mpi.h of an MPI 4.1 declares them; MPICH 4.2 does so without `const`. */
#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
CONTD_API int MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
CONTD_API int MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
					 MPI_Status *status);
CONTD_API int MPI_Request_get_status_some(int incount, const MPI_Request requests[], int *outcount, int indices[],
					  MPI_Status statuses[]);
CONTD_API int PMPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
CONTD_API int PMPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
					  MPI_Status *status);
CONTD_API int PMPI_Request_get_status_some(int incount, const MPI_Request requests[], int *outcount, int indices[],
					   MPI_Status statuses[]);
#endif

/* ----------------------------------------------------------------------------- together with what else there is --- */

/*
 * The operation completes *event, with status 0 or its MPI error class: so that one continuation,
 * contd_event_continue(), waits for MPI operations and others (events of the program's, fabric operations). *event is
 * initialized here, so call contd_event_continue() after this; *request is treated as by MPI_Continue, and *status
 * (MPI_STATUS_IGNORE is allowed) is set before the event completes. A generalized request's free_fn is called after
 * that, in no fixed order with the event's continuation: that continuation must not use memory that free_fn frees. The
 * first call attaches the calling thread, and with MPI_THREAD_MULTIPLE starts the daemon, as
 * mpi_continue_async_signal_safe does.
 * Context: as MPI_Continue. Errors: as MPI_Continue. After an error nothing completes *event: call contd_event_init()
 * before it is used again.
 */
CONTD_API int contd_mpi_event(MPI_Request *request, MPI_Status *status, struct contd_event *event);

/*
 * The group behind a continuation request: what is registered with it (events, memory words, fabric operations) is
 * outstanding for the request too, which completes when all is done. A CR of MPIX_Continue_init does not hold these
 * back: they run before MPI_Start as well, and while the CR is inactive Test does not wait for them. The group lasts as
 * long as the request and must not be destroyed. NULL: cont_req is no CR, or contd has no CR yet, or MPI_Finalize has
 * been called; contd_error_text() says which, and no error handler is called.
 * Context: any thread, in a callback. With MPI_THREAD_SINGLE only the program's one thread.
 */
CONTD_API struct contd_group *contd_mpi_group(MPI_Request cont_req);

/* ----------------------------------------------------------------------------------------- generalized requests --- */

/*
 * As MPI_Grequest_complete, and also where MPI must not be called: in an async-signal-safe continuation that contd's
 * handler runs, or on a thread that the thread level keeps out of MPI. There the request is put on a list, without
 * memory or lock. The next thread that may call MPI completes it: in a call that makes progress, in contd_poll(), in a
 * compute region's handler, or, with MPI_THREAD_MULTIPLE, on the daemon. query_fn may be called there. Everywhere else
 * MPI_Grequest_complete is called at once. The request must have been started from C, by a call of MPI_Grequest_start
 * that came to contd. A CR, a request of a template and MPI_REQUEST_NULL are MPI_ERR_REQUEST. For all others, and
 * before contd's first call, the call is MPI_Grequest_complete, with MPI's own errors, codes and error handlers; where
 * MPI must not be called it is MPI_ERR_REQUEST. Call it once, while the request exists: after it has been waited for,
 * or its continuation has run, the handle is invalid and MPI may crash. Attaching a continuation sets the program's
 * handle to MPI_REQUEST_NULL: copy it before.
 * Context: any thread, in any continuation; between MPI_Init and MPI_Finalize (outside them it is
 * MPI_Grequest_complete, and MPI aborts). Not in signal handlers of the program's: contd cannot see that it is in one.
 * Call contd_event_complete() there, and this function in that event's continuation. Errors: MPI_ERR_REQUEST (no
 * generalized request, or not known; or complete already), MPI_ERR_OTHER (in the child of a fork). Where MPI must not
 * be called they are returned, and no error handler is called.
 */
CONTD_API int contd_mpi_grequest_complete(MPI_Request request);

/* ------------------------------------------------------------------------------------------------------- levels --- */

/*
 * The level of thread support that contd works with: that of MPI_Query_thread(), or with sessions alone the lowest
 * level of the program's sessions (as it was when contd began). Returns MPI_THREAD_SINGLE, ..., MPI_THREAD_MULTIPLE; or
 * -1 before MPI_Init and after MPI_Finalize if there is no session, and in the child of a fork. Context: any thread, in
 * any continuation that does not run in a signal handler.
 */
CONTD_API int contd_mpi_thread_level(void);

/* ----------------------------------------------------------------------------------------------------- backend --- */

/*
 * The backend that contd uses with the MPI library that the program has loaded: "native" or "portable". A program's
 * first call of contd's chooses it, and this may be that call. *stepsp (may be NULL) becomes what contd found on the
 * way to its choice: a text of one or more lines, for people to read, with a newline between two of them. Both texts
 * are contd's, and stay valid and the same. NULL: contd cannot begin with this MPI, or with its settings.
 * contd_error_text() says why, *stepsp is not touched, and no error handler is called.
 * Context: as MPI_Continue_init; returns NULL before MPI_Init, after MPI_Finalize (if there is no session), and in the
 * child of a fork.
 */
CONTD_API const char *contd_mpi_backend(const char **stepsp);

/* ---------------------------------------------------------------------------------------------------- doorbells --- */

/*
 * Interrupt the process with that rank in the communicator (in the remote group of an intercommunicator), if it waits
 * in a compute region, or its daemon naps, so that it looks for messages. Call it after something was sent to that
 * process. Programs that are linked with the doorbell library need not: the library does this after every call that
 * sends. It only makes the peer react sooner. It costs nanoseconds if the peer does not wait; the first call for a peer
 * looks for it. Returns 1 if it was rung, else 0. These are not rung, and that is no error: processes of another host,
 * without contd, or of another user; the own rank, MPI_PROC_NULL and ranks out of range; and any with MPI_COMM_NULL,
 * before MPI_Init or after MPI_Finalize.
 * Context: threads that may call MPI at the thread level that was granted, in a callback (not in a handler outside
 * regions).
 */
CONTD_API int contd_mpi_ring(int rank, MPI_Comm comm);

/*
 * The same for every member of the communicator; returns how many were rung. If there are more than 64 members, each
 * call looks for 64 of them, and rings all peers that it has found so far, also in other communicators; then the number
 * counts those too.
 */
CONTD_API int contd_mpi_ring_all(MPI_Comm comm);

/* -------------------------------------------------------------------------------------------- revised interface --- */

/* flags. Unknown ones, and those without a meaning at a call, are ignored there. */
#define MPIX_CONT_REQBUF_VOLATILE (1) /* attach: as INVOKE_FAILED; handles are never kept after the call anyway */
#define MPIX_CONT_REQUESTS_FREE (2)   /* attach: the array of handles may be freed after the call; always so */
#define MPIX_CONT_POLL_ONLY (4)       /* init: run only in Test or Wait on this CR */
#define MPIX_CONT_DEFER_COMPLETE (8)  /* attach: do not run inside the call if all is complete; init: for all calls */
#define MPIX_CONT_INVOKE_FAILED (16)  /* attach: run the callback although an operation failed, with the error in rc */
#define MPIX_CONT_IMMEDIATE (32)      /* attach: a hint, the callback is short (MPICH pull request 7164); ignored */
#define CONTD_CONT_THREAD_ANY (65536) /* attach, with MPI_REQUEST_NULL for the CR: contd's daemon may run it too */

/*
 * rc: MPI_SUCCESS, or with MPIX_CONT_INVOKE_FAILED the error class of the first operation that failed. Another return
 * value than MPI_SUCCESS marks the CR as failed and queues user_data for MPIX_Continue_get_failed. A callback must
 * return, as MPI_Continue_cb_function.
 */
typedef int(MPIX_Continue_cb_function)(int rc, void *user_data);

/*
 * Make a CR that is used like a persistent request: it is inactive until MPI_Start. Continuations may be registered
 * meanwhile and run from MPI_Start on. Test and Wait on an inactive CR report completion with the empty status; when
 * they report that an active one is complete it is inactive again. Starting an active one is MPI_ERR_REQUEST.
 *   flags     0, or MPIX_CONT_POLL_ONLY and MPIX_CONT_DEFER_COMPLETE.
 *   max_poll  The same limit as the key mpi_continue_max_poll; but 0 and MPI_UNDEFINED mean no limit.
 *   info      The keys of MPI_Continue_init, or MPI_INFO_NULL. A key in it overrides flags and max_poll.
 * Errors: as MPI_Continue_init; MPI_ERR_ARG also for any other negative max_poll, -1 too, which only the key knows.
 */
CONTD_API int MPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req);
CONTD_API int PMPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req);

/*
 * Run cb when *op_request has completed, or all of them have. Handles, statuses and errors: as with MPI_Continue.
 * cont_req may be MPI_REQUEST_NULL. Then the continuation belongs to no CR: it runs in any call that makes progress,
 * and no call can wait for it. If an operation fails, its error handler (of its communicator, window or file) is called
 * first. If that returns, a continuation with MPIX_CONT_INVOKE_FAILED runs as soon as contd has found the failure and
 * its CR is started; it does not wait for its other operations, except CRs among them. A continuation without that flag
 * does not run: its CR, as soon as it is started, is marked as failed and its user_data queued. Either way the statuses
 * of operations that have not finished hold MPI_ERR_PENDING. These operations still use their buffers; they finish
 * later without touching the statuses, and contd does not tell when. Without a CR and without the flag no function is
 * told of a failure; without a CR the return value of the callback is ignored.
 */
CONTD_API int MPIX_Continue(MPI_Request *op_request, MPIX_Continue_cb_function *cb, void *cb_data, int flags,
			    MPI_Status *status, MPI_Request cont_req);
CONTD_API int PMPIX_Continue(MPI_Request *op_request, MPIX_Continue_cb_function *cb, void *cb_data, int flags,
			     MPI_Status *status, MPI_Request cont_req);
CONTD_API int MPIX_Continueall(int count, MPI_Request array_of_op_requests[], MPIX_Continue_cb_function *cb,
			       void *cb_data, int flags, MPI_Status *array_of_statuses, MPI_Request cont_req);
CONTD_API int PMPIX_Continueall(int count, MPI_Request array_of_op_requests[], MPIX_Continue_cb_function *cb,
				void *cb_data, int flags, MPI_Status *array_of_statuses, MPI_Request cont_req);

/*
 * Take the user_data of failed continuations from the CR's queue, oldest first. *count is, before the call, how
 * many places cb_data has, and after it how many were stored; when the two are equal there may be more. When the
 * queue is empty after the call the CR is no longer marked as failed. If that is so before Test or Wait reports
 * the CR complete, that call returns MPI_SUCCESS. The function works on CRs of both interfaces, inactive ones too,
 * and while continuations are outstanding: so a failure is learnt sooner than by Test and Wait. It makes no
 * progress. A marked CR is complete when nothing is outstanding, as any other. The call that reports it complete
 * returns the first error, and has it in the status; calls for arrays return MPI_ERR_IN_STATUS, as MPI's do. Later
 * calls return MPI_SUCCESS until something is registered with it (draft) or it is started (revised). If the first
 * failure was a callback's, the call that reports it calls MPI_COMM_SELF's error handler. If it was an
 * operation's, no handler is called, because the operation's own has been. A marked CR may be started; the mark
 * stays until the queue is empty.
 * Errors: MPI_ERR_ARG (count is NULL; *count is negative; cb_data is NULL and *count is not 0), MPI_ERR_REQUEST
 * (cont_req is no CR), MPI_ERR_OTHER (before MPI_Init, after MPI_Finalize, in the child of a fork).
 */
CONTD_API int MPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data);
CONTD_API int PMPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data);

#ifdef __cplusplus
}
#endif

/* Generalized requests from templates (MPIX_Gr_*), where contd was built with them. */
#if !defined(__has_include)
#include <contd/template.h>
#elif __has_include(<contd/template.h>)
#include <contd/template.h>
#endif

#endif
