/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five ways in which a task can learn that its communication is done, for one request or several: yield-while,
 * suspend and resume, new task, continuation, and the MPIX interface. With each the call that issues the communication,
 * and what is done at its completion, happen inline or are transferred to an executor. docs/runtimes.md says when each
 * makes sense.
 */
#ifndef CONTD_MODES_H
#define CONTD_MODES_H

#include <contd/executor.h>
#include <contd/mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

enum contd_mode {
	/*
	 * Test, yield, repeat. Inline requests: the caller tests MPI. Transferred requests: the caller looks at a word
	 * in memory, which a continuation sets. contd_mpi_op_run() returns when the communication is done.
	 */
	CONTD_MODE_YIELD_WHILE,
	/* The same, but after one early test the caller sleeps until it is woken, once. */
	CONTD_MODE_SUSPEND,
	/* done() becomes a task of the completions executor, which there must be. */
	CONTD_MODE_NEW_TASK,
	/* The thread that finds the completion calls done(); transferred: as a task of the completions executor. */
	CONTD_MODE_CONTINUATION,
	/* As CONTD_MODE_CONTINUATION, but by MPIX_Continueall(), with `cont_req` or without: its flags and failure
	 * rules hold. */
	CONTD_MODE_MPIX
};

/* How: may be shared by any number of operations, and must outlive them. Zeros are defaults. */
struct contd_mode_attr {
	size_t size;                        /* sizeof(struct contd_mode_attr) */
	int mode;                           /* enum contd_mode */
	int priority;                       /* enum contd_priority, of all tasks that are made */
	struct contd_executor *requests;    /* issue() is called by this one; NULL: inline, by the caller */
	struct contd_executor *completions; /* done() is called by this one; NULL: inline */
	/*
	 * CONTD_MODE_YIELD_WHILE: yield() lets other tasks run. NULL: a thread that is lent to an executor runs some of
	 * its work, another one calls sched_yield(2). If requests are transferred and no other thread makes progress,
	 * the thread makes progress itself.
	 * CONTD_MODE_SUSPEND: suspend() and resume() are for user-level tasks. The task calls suspend(), which returns
	 * when resume() has been called with the same task. resume() is called once, by the thread that finds the
	 * completion (contd's daemon may be that), and possibly before or during suspend(). NULL: the thread sleeps
	 * (futex(2)). If no other thread makes progress or it is lent to an executor, it makes progress itself and
	 * takes some of the executor's work.
	 * A mode calls only its own functions, so a runtime sets all three once and changes the mode.
	 */
	void (*yield)(void *task);
	void (*suspend)(void *task);
	void (*resume)(void *task);
	int flags; /* CONTD_MODE_MPIX: MPIX_CONT_*; else 0 */
	/*
	 * CONTD_MODE_MPIX, _CONTINUATION, _NEW_TASK: registered with this CR, from when it is issued, and outstanding
	 * for it until done() has run, also as a task. 0 or MPI_REQUEST_NULL: with none. Without a CR, in
	 * CONTD_MODE_MPIX without MPIX_CONT_INVOKE_FAILED, a failure is told to no function and done() is not called:
	 * set that flag, or name a CR. In the other modes it must be 0 or MPI_REQUEST_NULL.
	 */
	MPI_Request cont_req;
};

/*
 * Makes the MPI calls: puts `count` requests into op->requests. Returns MPI_SUCCESS or an error class or code, and
 * then no request is under way. Called by an executor it must not wait for work that it, or an issue() before it, has
 * submitted to other executors: that starts only after it has returned.
 */
struct contd_mpi_op;
typedef int contd_mpi_issue(struct contd_mpi_op *op);

/*
 * status: MPI_SUCCESS, or the error class of issue() or of an operation. The memory of op is free again. All operations
 * are over, also when one of them has failed; except in CONTD_MODE_MPIX, where the interface's own rule holds:
 * MPIX_Continueall().
 */
typedef void contd_mpi_done(struct contd_mpi_op *op, int status);

/*
 * contd's part of an operation, which need not be initialized. Later versions may change the members, but not the size
 * of the part: a program that was compiled with this header works with a later library.
 */
struct contd_mpi_op_private {
	/* The most used members come first. */
	const struct contd_mode_attr *how;
	struct contd_carried carried;
	MPI_Request hooked;
	uint32_t state;
	int status;
	struct contd_task work;
	MPI_Status own;
	struct contd_mode_attr taken; /* *how, if its size is another one */
};

/*
 * One communication of one or several requests. The memory is the caller's to keep until done() begins; or, of a failed
 * one in CONTD_MODE_MPIX without MPIX_CONT_INVOKE_FAILED, until MPIX_Continue_get_failed() has named it, as `data`, or
 * its CR is gone.
 */
struct contd_mpi_op {
	int count;              /* may be 0 */
	MPI_Request *requests;  /* count of them; handles that are not persistent are null when done() is called */
	MPI_Status *statuses;   /* count of them, or MPI_STATUSES_IGNORE */
	contd_mpi_issue *issue; /* NULL: the requests are active already; not allowed if `requests` is set */
	contd_mpi_done *done;   /* NULL: nothing to do; only in modes that return at completion */
	void *data;
	void *task; /* for yield(), suspend(), resume() */
	union {
		struct contd_mpi_op_private contd;
		uint64_t contd_room[40];
	};
};

/*
 * Issue the communication and see to its completion, as `how` says. CONTD_MODE_YIELD_WHILE and _SUSPEND: returns when
 * it is complete, and done() has been called, or been transferred; the return value is the status that done() gets, or
 * an error below, and then done() is not called. Others: returns MPI_SUCCESS when it is issued or transferred; done()
 * may have run, and gets the status also where issue() fails. If memory is short after issue(), the call waits for the
 * operations itself, and then done() is called. Failed operations: their error handlers are called as by
 * MPI_Continueall; with inline requests in CONTD_MODE_YIELD_WHILE and _SUSPEND as by MPI_Testall. Errors below go
 * through MPI_COMM_SELF's handler; what issue() returns does not. The requests must not have a continuation already:
 * this is not always noticed.
 * Context: threads that may call MPI at the granted level where requests are inline; any thread otherwise; in a
 * callback. Errors: nothing has been issued then, and done() is not called.
 *     MPI_ERR_ARG      NULL, size, mode, count; CONTD_MODE_NEW_TASK without completions; no issue() where requests are
 *                      transferred; no done() in a mode that does not return at completion; statuses NULL; a priority
 *                      that is none; one of suspend and resume without the other; flags or cont_req that the mode does
 *                      not use
 *     MPI_ERR_REQUEST  cont_req is no CR
 *     MPI_ERR_OTHER    before MPI_Init, after MPI_Finalize; the executor refuses
 *     MPI_ERR_NO_MEM   no memory to begin
 */
CONTD_API int contd_mpi_op_run(struct contd_mpi_op *op, const struct contd_mode_attr *how);

/*
 * contd_task_callback() as an MPI_Continue_cb_function and, with `_x`, an MPIX_Continue_cb_function: the data is a
 * struct contd_task, and its executor runs the task. The task's status is 0 (look at the statuses), or with `_x` rc,
 * which needs MPIX_CONT_INVOKE_FAILED: without it a failed operation starts no task. The CR is outstanding until the
 * task has run: a thread that waits for the CR must not be the only one that would run the work of a pull executor. If
 * the executor refuses, the task runs at once. `_x` returns MPI_SUCCESS. Context: as a continuation,
 * nowhere else.
 */
CONTD_API void contd_mpi_task_callback(MPI_Status *statuses, void *task);
CONTD_API int contd_mpi_task_callback_x(int rc, void *task);

#ifdef __cplusplus
}
#endif

#endif
