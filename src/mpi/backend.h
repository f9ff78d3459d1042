/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI, from below to above:
 *
 *     cr.[ch] set.[ch]     continuation requests and the operations of a continuation, the same for both backends
 *     native.[ch] ompi.*   the native backend, on Open MPI's own requests (ompi_check.c: if its headers are installed)
 *     portable.[ch] handles.* mpich_forgets.*   the portable backend, on any MPI-3.1
 *     intercept.c library.h   the program's calls of MPI, and which library a call comes from
 *     calls.[ch]           the completion calls with CRs among their requests, for both
 *     mixed.c              MPI operations as events, and the group behind a CR
 *     continue.c           attaching, for both
 *     grequest.[ch]        the program's generalized requests: free_fn last, completion from handlers
 *     instance.[ch]        what all that does for generalized requests from templates
 *     binding.h            continuations for bindings of other languages
 *     status.c             status queries, for both
 *     life.c               which backend; from the first call to MPI_Finalize
 *     finalize.[ch]        what is outstanding then
 *     job.[ch]             whether contd is part of every process
 *     sockets.[ch] ring.[ch]  what the daemon sleeps on; bells after MPI calls
 *     settings.c draft.c revised.c   info keys, and the two interfaces
 *
 * On top of that stand two parts that can be left out: src/modes, the five modes (contd/modes.h), and src/template,
 * generalized requests from templates (MPIX_Gr_*).
 */
#ifndef CONTD_MPI_BACKEND_H
#define CONTD_MPI_BACKEND_H

#include <stdbool.h>

#include <contd/modes.h>
#include <contd/mpi.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/say.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/settings.h"
#include "dispatch/source.h"
#include "mpi/cr.h"
#include "mpi/model.h"
#include "mpi/set.h"

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

/* Tells the modes that an operation of theirs is complete; op->contd.status and the program's status say how. */
typedef void contd__quick_done(struct contd_mpi_op *op);

/* The error that a call about an array returns. */
struct contd__raised {
	MPI_Request cr; /* whose it is; MPI_REQUEST_NULL: no CR's, but that of the requests `beside` */
	int class;      /* MPI_SUCCESS: there is none */
	bool told;
	/* Where those requests are whose failure the call reports, too; NULL: all that are active. */
	const int *beside;
	size_t beside_count;
};

/* Functions that may be NULL: nothing to be done there. */
struct contd__dump_part;
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
	 * The short way, for an operation of one plain request (src/modes); these may be NULL. quick_look returns
	 *
	 *     SEEN_NOTHING: not this one
	 *     SEEN_COMPLETE: quick_finish comes next, which finishes it as Test would, with its error code in
	 *                    op->contd.status
	 *     SEEN_PENDING: quick_hook comes next
	 *
	 * After quick_hook, done() is called inside MPI when the operation is complete. Then some thread calls
	 * quick_release() with the value that op->contd.hooked had then; if `code` is an error, it is told. done() is
	 * the same function in all calls. Any thread.
	 */
	enum contd__seen (*quick_look)(struct contd_mpi_op *op);
	void (*quick_finish)(struct contd_mpi_op *op);
	void (*quick_hook)(struct contd_mpi_op *op, contd__quick_done *done);
	void (*quick_release)(MPI_Request request, int code);

	/* Call the error handlers of operations that failed. Threads that may call MPI. */
	void (*ops_tell)(struct contd__set *set);
	/* All have finished: tell what was not told, and give back what is not the program's any more. */
	void (*ops_release)(struct contd__set *set);
};

extern const struct contd__mpi_backend contd__mpi_native;
extern const struct contd__mpi_backend contd__mpi_portable;

/* The backend in use, from the first start on; and whether it is started: not before, and not after MPI_Finalize. */
extern const struct contd__mpi_backend *contd__mpi;
extern struct contd__source contd__mpi_source;
extern uint32_t contd__mpi_open;
extern uint32_t contd__mpi_ended; /* it does not begin again */

/*
 * contd__cr_report(), if calls come by turns. Nothing is attached meanwhile: so the count may be read first, and one
 * exchange makes a revised CR inactive. False: it is not complete, or not active, or contd__cr_awaited() has been
 * faster. If no continuation has waited for it that cannot be, and a store is enough. Until the next MPI_Start no other
 * thread tells the backend of the state.
 */
static inline bool contd__cr_report_in_turn(struct contd__cr *cr, bool *toldp)
{
	uint32_t active = CR_ACTIVE;

	if (!contd__cr_by_turns || contd__group_outstanding_sig(cr->group) != 0)
		return false;
	if (!cr->revised) {
		*toldp = contd__load(&cr->unreported);
		contd__store(&cr->unreported, 0);
		return true;
	}
	if (contd__load(&cr->state) != CR_ACTIVE)
		return false;
	/* Release: pairs with the acquire in contd__cr_awaited, as the store in contd__cr_start_empty. */
	if (contd__cr_one_thread && !cr->asked_about)
		contd__store_release(&cr->state, 0);
	else if (!contd__cas(&cr->state, &active, 0))
		return false;
	if (contd__mpi->cr_active)
		contd__mpi->cr_active(cr, false);
	*toldp = true;
	return true;
}

/*
 * A continuation of the CR has run, in a call about it. If calls come by turns, and the program has not freed the CR,
 * its handle keeps the group until this call has returned: only a call of MPI's frees it.
 */
static inline void contd__cr_count_off(const struct contd__cr *cr, struct contd_group *group)
{
	if (contd__cr_by_turns && !contd__load(&cr->closed) && contd__load(&contd__mpi_open))
		contd__group_count_down_sig(group, 1);
	else
		contd__group_count_down_own_sig(group, 1);
}

/*
 * contd has ended, or this is a forked child: what an executor was given before, say, does nothing any more. While
 * contd rests between sessions it does. Sequentially consistent, after the slot has become RUNNING: pairs with
 * contd__mpi_end, which sets contd__mpi_ended and then looks at the slots.
 */
static inline bool contd__mpi_over(void)
{
	return __builtin_expect(contd__load_seq(&contd__mpi_ended), 0);
}

extern MPI_Status contd__status_empty; /* MPI 4.1, 3.7.3; MPI_ERROR is MPI_SUCCESS */

/* status.c: of a CR, as peek(). */
enum contd__seen contd__peek_cr(struct contd__cr *cr, MPI_Status *status);

extern uint32_t contd__cr_live;    /* CRs that the program has not freed */
extern uint32_t contd__cr_limited; /* one with a finite max_poll has been made */
extern uint32_t contd__cr_shared;  /* the program has asked for the group of one */

/* life.c: the backend, started; NULL and *errp where it can't be. */
const struct contd__mpi_backend *contd__mpi_start(const char *call, int *errp);

/*
 * The same for callers that only ask about requests. If contd cannot work because calls of MPI do not come to it, the
 * portable backend answers, and contd stays closed: only peek and peek_next may be called then.
 */
const struct contd__mpi_backend *contd__mpi_start_asking(const char *call, int *errp);

/* While a backend is chosen: adds a line to what contd_mpi_backend() tells of that. As printf(3). */
void contd__backend_step(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* MPI_Finalize begins, or, if contd has a session, the process ends; once is enough. */
void contd__mpi_end(void);

/*
 * With sessions alone: the program's last session has ended. If nothing is outstanding, contd's own session ends, and
 * all else of contd stays. It begins again when the program has another session, in contd__mpi_wake(), or in the next
 * call.
 */
void contd__mpi_rest(void);
void contd__mpi_wake(void);

/* Can contd__mpi_end() come to its end: contd is open, and no thread makes progress? Waits up to a second for that. */
bool contd__mpi_may_end(void);

/*
 * The groups of continuations without a CR: of the program's; of those that only complete an event or wake a thread,
 * which is async-signal-safe; and of those that any thread may run. NULL without memory.
 */
enum contd__loose { LOOSE, LOOSE_EVENTS, LOOSE_ANY };
#define LOOSE_GROUPS 3
struct contd_group *contd__mpi_loose(enum contd__loose which);

/* As contd__model_error (MPI 4.1, 9.3: errors without an object). */
int contd__mpi_error(int class);

/*
 * A call of the program's fails, and what is wrong has been set (contd__fail()): adds the name of the call, and tells
 * the error. If that ends the program, a line on stderr says the text first. Returns the class.
 */
int contd__mpi_refused(const char *call, int class);

/* The same, up to the error handler: the caller has MPI call it. */
void contd__mpi_refusing(const char *call, int class, const char *text);

/* The same with the text of what is wrong. */
int contd__mpi_refuse(const char *call, int class, const char *text);
#define CONTD_NO_MEMORY "out of memory"
#define CONTD_CANCELS_CR "*request is a continuation request, and no operation; cancel the operations"

/* MPI error class for a core error; of an error code. */
int contd__mpi_class(int err);
int contd__mpi_error_class(int code);

/* A source of MPI's is driven: false, and nothing to be left, where MPI_Finalize has begun. */
bool contd__mpi_enter(void);
void contd__mpi_leave(void);

/* May the calling thread enter MPI although the program has not called MPI? */
bool contd__mpi_thread_may(void);

/* continue.c: what is wrong with the arguments: an MPI error class, and its text; or MPI_SUCCESS. */
int contd__attach_wrong(const struct contd__mpi_attach *a);

/* The same: usable ones are found to be so at once. */
static inline int contd__attach_check(const struct contd__mpi_attach *a)
{
	bool usable = a->count >= 0 && (uint32_t)a->count <= SLOT_REMAINING_MAX - 8 && a->cb &&
		      (a->count == 0 || (a->requests && (a->statuses || a->ignore)));

	return __builtin_expect(usable, 1) ? MPI_SUCCESS : contd__attach_wrong(a);
}

/* MPI error class, and the text; on failure nothing has changed. cr may be NULL: then the group is the loose one. */
int contd__attach(const struct contd__mpi_attach *a, struct contd__cr *cr, struct contd_group *group);

/* settings.c: what an info object says, on top of what s holds. */
struct contd__settings {
	struct contd_group_attr attr;
	struct contd_config config; /* of the process, from contd's own keys */
	bool configured;            /* there are any */
	bool low_latency;           /* mpi_continue_async_signal_safe */
	char value[MPI_MAX_INFO_VAL + 1];
	char text[CONTD_SETTING_KEYS][CONTD_SETTING_TEXT]; /* what `config` refers to, by key */
};
int contd__settings_read(MPI_Info info, struct contd__settings *s); /* MPI error class, and the text */

/*
 * A thread that uses a CR with mpi_continue_async_signal_safe may be interrupted from then on: the one that made it may
 * have ended. Ordinary threads; where it can't be attached a line says so, once.
 */
extern uint32_t contd__low_latency; /* there is, or was, such a CR */
void contd__low_latency_attach(void);

static inline void contd__low_latency_here(const struct contd_group *group)
{
	if (__builtin_expect(contd__load(&group->flags) & CONTD_ASYNC_SIGNAL_SAFE, 0) &&
	    !(contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED) && contd__load(&contd__low_latency))
		contd__low_latency_attach();
}

/* A CR with these settings, for either interface. */
int contd__cr_make(struct contd__settings *s, bool revised, MPI_Request *handle);

#define CONTD_WEAK_FOR(name) __attribute__((weak, alias(#name), visibility("default")))

#endif
