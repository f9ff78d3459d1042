/* SPDX-License-Identifier: BSD-3-Clause */
/* What the rest of contd asks of a backend, native or portable: a table of functions; and the backend in use. */
#ifndef CONTD_MPI_BACKEND_H
#define CONTD_MPI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <contd/mpi.h>

#include "dispatch/group.h"

struct contd__cr;
struct contd__op;
struct contd__set;

/* How the call that attaches names its requests and statuses: MPI_Continue, MPI_Continueall, contd_mpi_event(),
 * contd_mpi_op_run(). */
enum contd__names { NAMES_ONE, NAMES_ALL, NAMES_EVENT, NAMES_OP };
#define CONTD_ZERO_HANDLE "a handle is zero and names no request; give MPI_REQUEST_NULL, or a request that MPI has made"
#define CONTD_OWN_CR "cont_req itself would be waited for; register the continuation with another continuation request"
#define CONTD_TAKEN "an operation has a continuation already; it may have one at a time"
#define CONTD_TWICE "an operation is named twice; name each once"
#define CONTD_OF_REQUESTS(a, what) \
	(((const char *const[]){"*op_request: " what, "array_of_op_requests: " what, "*request: " what, \
				"op->requests: " what})[(a)->names])

/* One continuation to attach. */
struct contd__mpi_attach {
	const char *call; /* the program's, for texts of errors */
	enum contd__names names;
	int count;
	MPI_Request *requests;
	void (*cb)(void); /* of the interface that `revised` says */
	void *data;
	MPI_Status *statuses; /* what the callback gets */
	bool ignore;          /* statuses is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE */
	bool revised;
	int flags; /* MPIX_CONT_* */
	/* Called when the requests are as they stay, before cb or discard, inside the call that attaches; or NULL. */
	void (*taken)(void *data);
	/* Of the revised interface: */
	bool whole;                  /* one that has failed waits for all of its operations nevertheless */
	void *failed_data;           /* for MPIX_Continue_get_failed */
	void (*discard)(void *data); /* called in place of cb if that does not run, or NULL */
};

static inline MPI_Status *contd__status_at(const struct contd__mpi_attach *a, int i)
{
	return a->ignore ? NULL : &a->statuses[i];
}

/* The result of a look at the requests of an attach. */
struct contd__look {
	int pending; /* at most so many are not complete, CRs apart */
	int crs;     /* so many are CRs */
	int crs_pending;
};

enum contd__progress {
	PROGRESS,
	PROGRESS_WAITING, /* the thread waits, and may give way */
	PROGRESS_ALL      /* before a sleep: at all operations */
};

enum contd__seen {
	SEEN_NOTHING, /* no request, or an inactive one */
	SEEN_PENDING,
	SEEN_COMPLETE
};

/* The operation that quick_hook() got with this data is complete, with this status, which is good until the request is
 * released. */
typedef void contd__quick_done(const MPI_Status *status, void *data);

/* The error that a call about an array returns. */
struct contd__raised {
	MPI_Request cr; /* whose it is; MPI_REQUEST_NULL: no CR's, but that of the requests `beside` */
	int class;      /* MPI_SUCCESS: there is none */
	bool told;
	/* Where those requests are whose failure the call reports, too; NULL: all that are active. */
	const int *beside;
	size_t beside_count;
};

struct contd__dump_part;

/* Functions that may be NULL: nothing to be done there. */
struct contd__mpi_backend {
	const char *name;
	const struct contd__dump_part *dump; /* its CRs and operations, as dumps show them */
	bool asks; /* MPI does not tell it of completions: it asks, after the thread that has made progress */

	/* Can it work with this MPI? NULL, or why not. */
	const char *(*refuses)(void);
	/* MPI error class. */
	int (*start)(int thread_level);
	/*
	 * MPI may end and begin again, by sessions; nothing is pending. False: it cannot rest. wake() comes when MPI
	 * has begun: MPI error class. Both may be NULL.
	 */
	bool (*rest)(void);
	int (*wake)(void);
	/* MPI_Finalize begins; `driving` calls are over. Operations that complete from now on are not looked at. */
	void (*stop)(void);
	/* The kind of operation, with an article, as far as it is known. */
	const char *(*op_kind)(const struct contd__op *op);
	/* Make progress, from a thread that may call MPI; finds completed operations. Of many it may look at some at a
	 * time. */
	void (*progress)(enum contd__progress how);
	/* How many operations wait that progress can complete. */
	uint32_t (*pending)(void);

	/* A request for the group. MPI error class. */
	int (*cr_create)(struct contd_group *group, bool revised, struct contd__cr **crp);
	/* The CR of a handle; NULL where it is none. */
	struct contd__cr *(*cr_of)(MPI_Request handle);
	/* A revised one is about to become active, or inactive. May be NULL. */
	void (*cr_active)(struct contd__cr *cr, bool active);
	/* Something was registered with it. */
	void (*cr_changed)(struct contd__cr *cr);
	/* A completion call of this CR fails: returns the class, told to MPI_COMM_SELF's error handler unless it
	 * was. */
	int (*cr_raise)(struct contd__cr *cr, int class, bool told);
	/*
	 * In place of cr_raise where there is an array, and also if none of its CRs has failed; last in the call, if
	 * MPI itself looks for the error there afterwards. Otherwise NULL.
	 */
	void (*raising)(size_t count, MPI_Request *requests, const struct contd__raised *raised);
	/* contd has ended, and the program still has the CR: completion calls must not wait for it. */
	void (*cr_end)(struct contd__cr *cr);
	/* The CR was freed in a query. From now on MPI may give its handle to another one. NULL: nothing to do. */
	void (*cr_give_back)(struct contd__cr *cr);
	/* This thread is in a look at operations, and MPI has called a function of the program's there: it must not
	 * wait for operations. NULL: it may. */
	bool (*looks_here)(void);

	/*
	 * A status query's look at a request: nothing changes. *status (may be NULL) is set where it is complete,
	 * MPI_ERROR too. Of a CR contd__peek_cr() tells.
	 */
	enum contd__seen (*peek)(MPI_Request request, MPI_Status *status);
	/*
	 * The first complete one of these, from `from` on, as peek() says with *status; `count` where there is none; -1
	 * at a handle that is none. *active becomes true where one that is active was passed.
	 */
	int (*peek_next)(const MPI_Request *requests, int from, int count, bool *active, MPI_Status *status);

	/*
	 * As contd__original's of that name. But a persistent request that has failed is an error here: Open MPI's own
	 * do not say so. (Its Waitany does, and its Waitall if there are no statuses.)
	 */
	int (*test_any)(size_t count, MPI_Request *requests, int *index, int *completed, MPI_Status *status);
	int (*test_all)(size_t count, MPI_Request *requests, int *completed, MPI_Status *statuses);

	/* How many of them are CRs, or persistent requests whose continuation is outstanding. */
	size_t (*specials)(size_t count, const MPI_Request *requests);
	/* Is it a persistent request whose continuation waits for it? */
	bool (*hooked)(MPI_Request request);

	/* MPI error class: may a continuation of the group be attached to them? */
	int (*look)(const struct contd__mpi_attach *a, const struct contd_group *group, struct contd__look *look);
	/* Are all of them complete, and no CRs? Then finish() may come at once, without look(). May be NULL, and may
	 * say no. For the revised interface it says no if one has failed. */
	bool (*at_once)(const struct contd__mpi_attach *a);
	/*
	 * Is it one plain operation that waits, and cannot complete before this thread calls MPI again? Then the set
	 * may carry the continuation: hook_steady() comes without look(), if nothing of the program's or MPI's is
	 * called in between. Both may be NULL. carrying() returns the next set of that kind whose operation has not
	 * completed, after `set` (NULL: the first one), or NULL.
	 */
	bool (*steady)(const struct contd__mpi_attach *a);
	void (*hook_steady)(const struct contd__mpi_attach *a, struct contd__set *set);
	struct contd__set *(*carrying)(struct contd__set *set);
	/* After look() succeeded, nothing is attached after all. */
	void (*unlook)(const struct contd__look *look);
	/* After at_once(): finish them as Test would. */
	void (*finish)(const struct contd__mpi_attach *a);
	/* Finish those that are complete, hook the others, with room in the set. Returns how many were complete; CRs
	 * count where crs_count says so. */
	uint32_t (*hook)(const struct contd__mpi_attach *a, const struct contd__look *look, struct contd__set *set,
			 bool count_crs);
	/*
	 * The short way, for one plain request (src/modes); these may be NULL. quick_look returns
	 *
	 *     SEEN_NOTHING: not this one
	 *     SEEN_COMPLETE: quick_finish comes next, which finishes it as Test would, and returns its error code;
	 *                    status may be NULL
	 *     SEEN_PENDING: quick_hook comes next, which makes *request null
	 *
	 * After quick_hook, done() is called inside MPI when the operation is complete. Then some thread calls
	 * quick_release() with the request; if `code` is an error, it is told. done() is the same function in all
	 * calls. Any thread.
	 */
	enum contd__seen (*quick_look)(MPI_Request request);
	int (*quick_finish)(MPI_Request *request, MPI_Status *status);
	void (*quick_hook)(MPI_Request *request, contd__quick_done *done, void *data);
	void (*quick_release)(MPI_Request request, int code);

	/* Call the error handlers of operations that failed. Threads that may call MPI. */
	void (*ops_tell)(struct contd__set *set);
	/* All have finished: tell what was not told, and give back what is not the program's any more. */
	void (*ops_release)(struct contd__set *set);
};

/* The backend in use, from the first start on. */
extern const struct contd__mpi_backend *contd__mpi;

/* contd begins. Those that load it have seen contd__mpi_open, or the source, first. */
static inline void contd__backend_use(const struct contd__mpi_backend *backend)
{
	contd__store(&contd__mpi, backend);
}

/* While a backend is chosen: adds a line to what contd_mpi_backend() tells of that. As printf(3). */
void contd__backend_step(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* That begins, and forgets the lines of an earlier time; or it ends. */
void contd__backend_choosing(bool begins);

/* All lines. */
#define BACKEND_STEPS 1024u /* characters */
const char *contd__backend_steps(void);

#endif
