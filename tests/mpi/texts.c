/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task templates */
/* ranks: 1 2 */
/*
 * Every failure has a text. It begins with the name of the call that the program made, names the argument that is
 * wrong as the header does, or the info key, and says what is allowed. Each line on stderr begins with the host, the
 * process and, once MPI knows it, the rank; in the child of a fork too. With the argument "fatal": if the error handler
 * ends the program, the text is said before.
 */
#include <errno.h>
#include <sys/wait.h>

#include <contd/modes.h>

#include "check.h"

static char heard[8192];
static int ends[2], saved;

static void listen_begin(void)
{
	CHECK_EQ(pipe(ends), 0);
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
}

static void listen_end(void)
{
	ssize_t n, sum = 0;

	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	while ((n = read(ends[0], heard + sum, sizeof(heard) - 1 - (size_t)sum)) > 0)
		sum += n;
	heard[sum] = '\0';
	close(ends[0]);
}

/* One line was heard, from this process or rank (-1: none is known). */
static void heard_line(pid_t pid, int rank, const char *text, int line)
{
	char host[128] = "", begin[256];
	size_t n;

	gethostname(host, sizeof(host) - 1);
	if (rank < 0)
		snprintf(begin, sizeof(begin), "contd: [%s:%d] ", host, (int)pid);
	else
		snprintf(begin, sizeof(begin), "contd: [%s:%d rank %d] ", host, (int)pid, rank);
	n = strlen(begin);
	if (!check_that(strncmp(heard, begin, n) == 0 && strstr(heard, text) &&
				strchr(heard, '\n') == heard + strlen(heard) - 1,
			text, __FILE__, line))
		fprintf(stderr, "heard \"%s\", and not \"%s...%s\"\n", heard, begin, text);
}
#define HEARD(pid, rank, text) heard_line(pid, rank, text, __LINE__)

/* The text of a failure that is not the one to be seen next. */
static void other_failure(void)
{
	contd_group_create(NULL, NULL);
}

static void named(const char *call, const char *what, int line)
{
	const char *text = contd_error_text();
	size_t n = strlen(call);

	if (!check_that(strncmp(text, call, n) == 0 && strncmp(text + n, ": ", 2) == 0 && strstr(text, what), what,
			__FILE__, line))
		fprintf(stderr, "the text is \"%s\", and not \"%s: ...%s...\"\n", text, call, what);
}

static void failed(int rc, int class, const char *call, const char *what, int line)
{
	int its = rc;

	if (rc != class) /* a code: before MPI_Init there are none */
		MPI_Error_class(rc, &its);
	check_equal(its, class, call, __FILE__, line);
	named(call, what, line);
}
#define FAILS(call, class, name, what) (other_failure(), failed((call), class, name, what, __LINE__))

static void cb(MPI_Status *statuses, void *data)
{
	(void)statuses, (void)data;
}

static int cbx(int rc, void *data)
{
	(void)rc, (void)data;
	return MPI_SUCCESS;
}

static int fails(int rc, void *data)
{
	(void)rc, (void)data;
	return MPI_ERR_OTHER;
}

static void draft(void)
{
	MPI_Request cr = check_cr(NULL, NULL, NULL, NULL), none = MPI_REQUEST_NULL, zero = (MPI_Request)0, r, again,
		    self;
	MPI_Request two[2] = {MPI_REQUEST_NULL, (MPI_Request)0};
	MPI_Status status;
	int value, flag;

	check_begin("draft");
	FAILS(MPI_Continue_init(MPI_INFO_NULL, NULL), MPI_ERR_ARG, "MPI_Continue_init", "cont_req must not be NULL");
	FAILS(MPI_Continue_init((MPI_Info)0, &none), MPI_ERR_INFO, "MPI_Continue_init", "info");
	FAILS(MPI_Continue(NULL, cb, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_ARG, "MPI_Continue",
	      "op_request must not be NULL");
	FAILS(MPI_Continue(&none, NULL, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_ARG, "MPI_Continue",
	      "cb must not be NULL");
	FAILS(MPI_Continue(&none, cb, NULL, MPI_STATUS_IGNORE, MPI_REQUEST_NULL), MPI_ERR_REQUEST, "MPI_Continue",
	      "cont_req");
	FAILS(MPI_Continue(&zero, cb, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_REQUEST, "MPI_Continue", "*op_request: ");
	FAILS(MPI_Continueall(-1, two, cb, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_COUNT, "MPI_Continueall",
	      "count must be");
	FAILS(MPI_Continueall(2, NULL, cb, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_ARG, "MPI_Continueall",
	      "array_of_op_requests must not be NULL");
	FAILS(MPI_Continueall(2, two, NULL, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_ARG, "MPI_Continueall", "cb ");
	FAILS(MPI_Continueall(2, two, cb, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_REQUEST, "MPI_Continueall",
	      "array_of_op_requests: ");
	FAILS(MPI_Continueall(2, two, cb, NULL, MPI_STATUSES_IGNORE, MPI_REQUEST_NULL), MPI_ERR_REQUEST,
	      "MPI_Continueall", "cont_req");
	if (MPI_STATUSES_IGNORE != NULL)
		FAILS(MPI_Continueall(2, two, cb, NULL, NULL, cr), MPI_ERR_ARG, "MPI_Continueall", "array_of_statuses");
	if (MPI_STATUS_IGNORE != NULL)
		FAILS(MPI_Continue(&none, cb, NULL, NULL, cr), MPI_ERR_ARG, "MPI_Continue", "status must not be NULL");
	/* One operation with two continuations, and one that is named twice; the CR itself. */
	MPI_Recv_init(&value, 1, MPI_INT, check_rank, 5, MPI_COMM_WORLD, &r);
	MPI_Start(&r);
	two[0] = two[1] = r;
	FAILS(MPI_Continueall(2, two, cb, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_REQUEST, "MPI_Continueall",
	      "named twice");
	CHECK_OK(MPI_Continue(&r, cb, NULL, &status, cr));
	again = r;
	FAILS(MPI_Continue(&again, cb, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_REQUEST, "MPI_Continue",
	      "continuation already");
	if (!check_native())
		FAILS(MPI_Start(&again), MPI_ERR_REQUEST, "MPI_Start", "active");
	self = cr;
	FAILS(MPI_Continue(&self, cb, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_REQUEST, "MPI_Continue", "cont_req itself");
	MPI_Send(&check_rank, 1, MPI_INT, check_rank, 5, MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	MPI_Request_free(&r);
	FAILS(MPI_Cancel(&cr), MPI_ERR_REQUEST, "MPI_Cancel", "continuation request");
	CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

static void revised(void)
{
	MPI_Request cr, none = MPI_REQUEST_NULL, zero = (MPI_Request)0, op, two[2] = {MPI_REQUEST_NULL, (MPI_Request)0};
	void *data[1];
	int n;

	check_begin("revised");
	FAILS(MPIX_Continue_init(0, 0, MPI_INFO_NULL, NULL), MPI_ERR_ARG, "MPIX_Continue_init", "cont_req");
	FAILS(MPIX_Continue_init(0, -2, MPI_INFO_NULL, &cr), MPI_ERR_ARG, "MPIX_Continue_init", "max_poll");
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	FAILS(MPIX_Continue(NULL, cbx, NULL, 0, MPI_STATUS_IGNORE, cr), MPI_ERR_ARG, "MPIX_Continue", "op_request");
	FAILS(MPIX_Continue(&none, NULL, NULL, 0, MPI_STATUS_IGNORE, cr), MPI_ERR_ARG, "MPIX_Continue", "cb ");
	FAILS(MPIX_Continue(&zero, cbx, NULL, 0, MPI_STATUS_IGNORE, cr), MPI_ERR_REQUEST, "MPIX_Continue",
	      "*op_request: ");
	FAILS(MPIX_Continueall(-1, two, cbx, NULL, 0, MPI_STATUSES_IGNORE, cr), MPI_ERR_COUNT, "MPIX_Continueall",
	      "count");
	FAILS(MPIX_Continueall(2, two, cbx, NULL, 0, MPI_STATUSES_IGNORE, cr), MPI_ERR_REQUEST, "MPIX_Continueall",
	      "array_of_op_requests: ");
	MPI_Irecv(&n, 1, MPI_INT, check_rank, 5, MPI_COMM_WORLD, &op);
	FAILS(MPIX_Continue(&none, cbx, NULL, 0, MPI_STATUS_IGNORE, op), MPI_ERR_REQUEST, "MPIX_Continue", "cont_req");
	MPI_Cancel(&op);
	MPI_Wait(&op, MPI_STATUS_IGNORE);
	FAILS(MPIX_Continue_get_failed(cr, NULL, data), MPI_ERR_ARG, "MPIX_Continue_get_failed",
	      "count must not be NULL");
	n = -1;
	FAILS(MPIX_Continue_get_failed(cr, &n, data), MPI_ERR_ARG, "MPIX_Continue_get_failed", "*count");
	n = 1;
	FAILS(MPIX_Continue_get_failed(cr, &n, NULL), MPI_ERR_ARG, "MPIX_Continue_get_failed", "cb_data");
	FAILS(MPIX_Continue_get_failed(MPI_REQUEST_NULL, &n, data), MPI_ERR_REQUEST, "MPIX_Continue_get_failed",
	      "cont_req");
	CHECK_OK(MPI_Start(&cr));
	FAILS(MPI_Start(&cr), MPI_ERR_REQUEST, "MPI_Start", "active");
	/* Its callback fails: the call that reports it says so. */
	CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
	FAILS(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_ERR_OTHER, "MPI_Wait", "MPIX_Continue_get_failed()");
	CHECK_OK(MPI_Start(&cr));
	two[0] = MPI_REQUEST_NULL;
	two[1] = cr;
	FAILS(MPI_Waitall(2, two, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS, "MPI_Waitall", "MPIX_Continue_get_failed()");
	n = 1;
	CHECK_OK(MPIX_Continue_get_failed(cr, &n, data));
	CHECK_OK(MPI_Request_free(&cr));
}

static void waits(int *rcs, MPI_Request *cr)
{
	MPI_Request copy = *cr;
	int index;

	other_failure();
	rcs[0] = MPI_Wait(&copy, MPI_STATUS_IGNORE);
	named("MPI_Wait", "itself", __LINE__);
	other_failure();
	rcs[1] = MPI_Waitany(1, &copy, &index, MPI_STATUS_IGNORE);
	named("MPI_Waitany", "itself", __LINE__);
}

static MPI_Request inside;
static int inside_rc[2];

static void wait_inside(MPI_Status *statuses, void *data)
{
	(void)statuses, (void)data;
	waits(inside_rc, &inside);
}

static void waiting(void)
{
	MPI_Request none = MPI_REQUEST_NULL;

	check_begin("a wait for itself");
	inside = check_cr(NULL, NULL, NULL, NULL);
	CHECK_OK(MPI_Continue(&none, wait_inside, NULL, MPI_STATUS_IGNORE, inside));
	CHECK_OK(MPI_Wait(&inside, MPI_STATUS_IGNORE));
	CHECK(inside_rc[0] && inside_rc[1]);
	CHECK_OK(MPI_Request_free(&inside));
}

static void queries(void)
{
	MPI_Request r[2] = {MPI_REQUEST_NULL, (MPI_Request)0};
	int n, flag, indices[2];
	MPI_Status s[2];

	check_begin("queries");
#define Q(which, ...) FAILS(MPIX_Request_get_status_##which(__VA_ARGS__)
	Q(all, -1, r, &flag, s), MPI_ERR_COUNT, "MPI_Request_get_status_all", "count must not be negative");
	Q(all, 2, NULL, &flag, s), MPI_ERR_ARG, "MPI_Request_get_status_all", "requests must not be NULL");
	Q(all, 2, r, NULL, s), MPI_ERR_ARG, "MPI_Request_get_status_all", "flag must not be NULL");
	Q(all, 2, r, &flag, s), MPI_ERR_REQUEST, "MPI_Request_get_status_all", "requests: ");
	Q(any, 2, r, NULL, &flag, s), MPI_ERR_ARG, "MPI_Request_get_status_any", "index must not be NULL");
	Q(any, 2, r, &n, NULL, s), MPI_ERR_ARG, "MPI_Request_get_status_any", "flag must not be NULL");
	Q(any, 2, r, &n, &flag, s), MPI_ERR_REQUEST, "MPI_Request_get_status_any", "requests: ");
	Q(some, -1, r, &n, indices, s), MPI_ERR_COUNT, "MPI_Request_get_status_some", "incount must not be negative");
	Q(some, 2, r, NULL, indices, s), MPI_ERR_ARG, "MPI_Request_get_status_some", "outcount must not be NULL");
	Q(some, 2, r, &n, NULL, s), MPI_ERR_ARG, "MPI_Request_get_status_some", "indices must not be NULL");
	Q(some, 2, r, &n, indices, s), MPI_ERR_REQUEST, "MPI_Request_get_status_some", "requests: ");
}

static void others(void)
{
	MPI_Request none = MPI_REQUEST_NULL, zero = (MPI_Request)0, cr = check_cr(NULL, NULL, NULL, NULL);
	struct contd_event event;

	check_begin("others");
	FAILS(contd_mpi_event(NULL, MPI_STATUS_IGNORE, &event), MPI_ERR_ARG, "contd_mpi_event",
	      "request must not be NULL");
	FAILS(contd_mpi_event(&none, MPI_STATUS_IGNORE, NULL), MPI_ERR_ARG, "contd_mpi_event",
	      "event must not be NULL");
	FAILS(contd_mpi_event(&zero, MPI_STATUS_IGNORE, &event), MPI_ERR_REQUEST, "contd_mpi_event", "*request: ");
	FAILS(contd_mpi_group(MPI_REQUEST_NULL) ? 0 : MPI_ERR_REQUEST, MPI_ERR_REQUEST, "contd_mpi_group", "cont_req");
	CHECK(contd_mpi_backend(NULL) && strcmp(contd_mpi_backend(NULL), check_native() ? "native" : "portable") == 0);
	FAILS(contd_mpi_grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST, "contd_mpi_grequest_complete", "request");
	FAILS(contd_mpi_grequest_complete(cr), MPI_ERR_REQUEST, "contd_mpi_grequest_complete", "MPI_Grequest_start");
	FAILS(MPI_Grequest_complete(cr), MPI_ERR_REQUEST, "MPI_Grequest_complete", "MPI_Grequest_start");
	CHECK_OK(MPI_Request_free(&cr));
}

#ifdef CONTD_MODES_H
static int issue(struct contd_mpi_op *op)
{
	(void)op;
	return MPI_SUCCESS;
}

static int issue_fails(struct contd_mpi_op *op)
{
	(void)op;
	return MPI_ERR_IO;
}

/* From the other rank, which sends more than there is room for. */
static int issue_receive(struct contd_mpi_op *op)
{
	static int room;

	return MPI_Irecv(&room, 1, MPI_INT, 1 - check_rank, 6, MPI_COMM_WORLD, op->requests);
}

static void modes(void)
{
	MPI_Request zero = (MPI_Request)0;
	struct contd_mode_attr good = {.size = sizeof(good)}, how;
	struct contd_mpi_op whole = {.count = 1, .requests = &zero, .statuses = MPI_STATUSES_IGNORE, .issue = issue},
			    op;

	check_begin("modes");
	good.mode = CONTD_MODE_SUSPEND;
#define RUN(member, value, what) \
	(op = whole, how = good, member = value, \
	 FAILS(contd_mpi_op_run(&op, &how), MPI_ERR_ARG, "contd_mpi_op_run", what))
	FAILS(contd_mpi_op_run(NULL, &good), MPI_ERR_ARG, "contd_mpi_op_run", "op must not be NULL");
	FAILS(contd_mpi_op_run(&whole, NULL), MPI_ERR_ARG, "contd_mpi_op_run", "how must not be NULL");
	RUN(how.size, 3, "how->size");
	RUN(how.mode, (enum contd_mode)99, "how->mode");
	RUN(how.priority, 99, "how->priority");
	RUN(how.mode, CONTD_MODE_NEW_TASK, "how->completions");
	RUN(how.flags, 1, "how->flags");
	RUN(op.count, -1, "op->count");
	RUN(op.requests, NULL, "op->requests");
	RUN(how.mode, CONTD_MODE_MPIX, "op->done");
	op = whole;
	FAILS(contd_mpi_op_run(&op, &good), MPI_ERR_REQUEST, "contd_mpi_op_run", "op->requests: ");
	op.issue = issue_fails;
	FAILS(contd_mpi_op_run(&op, &good), MPI_ERR_IO, "contd_mpi_op_run", "op->issue()");
	for (int mode = 0; mode < 2 && check_size == 2; mode++) {
		int two[2] = {1, 2};
		MPI_Request r, send;

		good.mode = mode ? CONTD_MODE_SUSPEND : CONTD_MODE_YIELD_WHILE;
		op = whole;
		op.issue = issue_receive;
		op.requests = &r;
		MPI_Isend(two, 2, MPI_INT, 1 - check_rank, 6, MPI_COMM_WORLD, &send);
		FAILS(contd_mpi_op_run(&op, &good), MPI_ERR_TRUNCATE, "contd_mpi_op_run",
		      "an operation of op has failed");
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
}
#endif

#ifdef CONTD_TEMPLATE_H
static int gr(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int gr_fails(void *state)
{
	(void)state;
	return MPI_ERR_IO;
}

static int gr_complete(void *state, MPI_Status *status)
{
	(void)state, (void)status;
	return MPI_SUCCESS;
}

static void templates(void)
{
	MPIX_Gr t, bad = (MPIX_Gr)12345678;
	MPI_Request r;

	check_begin("templates");
	FAILS(MPIX_Gr_init(NULL, NULL, gr_complete, NULL, &t), MPI_ERR_ARG, "MPIX_Gr_init", "start_fn");
	FAILS(MPIX_Gr_init(gr, NULL, NULL, NULL, &t), MPI_ERR_ARG, "MPIX_Gr_init", "complete_fn");
	FAILS(MPIX_Gr_init(gr, NULL, gr_complete, NULL, NULL), MPI_ERR_ARG, "MPIX_Gr_init", "gr must not be NULL");
	CHECK_OK(MPIX_Gr_init(gr_fails, NULL, gr_complete, NULL, &t));
	FAILS(MPIX_Gr_begin(t, NULL, NULL), MPI_ERR_ARG, "MPIX_Gr_begin", "req must not be NULL");
	FAILS(MPIX_Gr_begin(bad, NULL, &r), MPI_ERR_ARG, "MPIX_Gr_begin", "gr is no template");
	FAILS(MPIX_Gr_begin(t, NULL, &r), MPI_ERR_IO, "MPIX_Gr_begin", "start_fn");
	FAILS(MPIX_Mark_request_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST, "MPIX_Mark_request_complete", "req");
	FAILS(MPIX_Gr_free(NULL), MPI_ERR_ARG, "MPIX_Gr_free", "gr must not be NULL");
	FAILS(MPIX_Gr_free(&bad), MPI_ERR_ARG, "MPIX_Gr_free", "*gr");
	FAILS(MPIX_Cancel(NULL), MPI_ERR_ARG, "MPIX_Cancel", "request");
	CHECK_OK(MPIX_Gr_free(&t));
}
#endif

/* Each key with a value that it does not have: the text has the key and what it must be. */
static void keys(void)
{
	static const struct {
		const char *key, *value, *must;
	} all[] = {
		{"mpi_continue_poll_only", "yes", "true or false"},
		{"mpi_continue_enqueue_complete", "", "true or false"},
		{"mpi_continue_async_signal_safe", "1", "true or false"},
		{"mpi_continue_max_poll", "-2", "from -1"},
		{"mpi_continue_thread", "main", "application, any or all"},
		{"contd_priority", "highest", "low, normal or high"},
		{"contd_agent", "thread", "caller, region, tick, block or spin"},
		{"contd_overhead_percent", "51", "from 0.1 to 50"},
		{"contd_tick_min_ns", "1", "from 1000 to"},
		{"contd_tick_max_ns", "1e9", "from tick_min_ns to"},
		{"contd_scan_count", "0", "from 1 to 1000000"},
		{"contd_scan_ns", "x", "from 1000 to"},
		{"contd_watchdog_ns", "-5", "from 1000 to"},
		{"contd_daemon_name", "a name that is too long", "1 to 15 characters"},
		{"contd_daemon_cpus", "0,2-", "a list of processors"},
		{"contd_daemon_sched", "soon", "other, batch, idle, fifo or rr"},
		{"contd_verbose", "4", "0 (errors)"},
		{"contd_stats", "always", "exit or exit:FILE"},
	};
	char what[80];

	check_begin("keys");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (int interface = 0; interface < 2; interface++) {
			const char *call = interface ? "MPIX_Continue_init" : "MPI_Continue_init";
			MPI_Request cr;
			MPI_Info info;

			if (!*all[i].value)
				continue; /* MPI libraries refuse it */
			MPI_Info_create(&info);
			MPI_Info_set(info, all[i].key, all[i].value);
			snprintf(what, sizeof(what), "the key %s must be ", all[i].key);
			FAILS(interface ? MPIX_Continue_init(0, 0, info, &cr) : MPI_Continue_init(info, &cr),
			      MPI_ERR_INFO_VALUE, call, what);
			named(call, all[i].must, __LINE__);
			MPI_Info_free(&info);
		}
	}
}

static int on_self_count;
static char in_handler[256];

static void on_self(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	on_self_count++;
	snprintf(in_handler, sizeof(in_handler), "%s", contd_error_text());
	other_failure();
}

/* A handler of the program's can ask for the text, and may call contd: the text is still that of the call. */
static void handlers(void)
{
	MPI_Errhandler handler;

	check_begin("handlers");
	MPI_Comm_create_errhandler(on_self, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	listen_begin();
	FAILS(MPI_Continue_init(MPI_INFO_NULL, NULL), MPI_ERR_ARG, "MPI_Continue_init", "cont_req must not be NULL");
	listen_end();
	CHECK_EQ(strlen(heard), 0);
	CHECK_EQ(on_self_count, 1);
	CHECK(strcmp(in_handler, "MPI_Continue_init: cont_req must not be NULL") == 0);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&handler);
}

static void unknown_key(void)
{
	char key[32], text[64];
	MPI_Request cr;

	check_begin("what is said");
	listen_begin();
	/* What all ranks would say alike only one of them says. */
	snprintf(key, sizeof(key), "contd_prioritie%d", check_rank);
	snprintf(text, sizeof(text), "] the info key %s is unknown", key);
	cr = check_cr(key, "low", NULL, NULL);
	listen_end();
	HEARD(getpid(), check_rank, text);
	CHECK_OK(MPI_Request_free(&cr));
}

static void in_child(void)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	pid_t child;
	int ended = 0;

	check_begin("child");
	listen_begin();
	child = fork();
	if (child == 0) {
		other_failure();
		/* The error handler is MPI_ERRORS_RETURN: nothing is said but what this says. */
		contd_compute_end();
		if (contd_mpi_grequest_complete(cr) != MPI_ERR_OTHER || !strstr(contd_error_text(), "child of a fork"))
			_exit(1);
		other_failure();
		_exit(contd_mpi_backend(NULL) ||
		      !strstr(contd_error_text(), "contd_mpi_backend: this is the child of a fork"));
	}
	waitpid(child, &ended, 0);
	listen_end();
	CHECK_EQ(ended, 0);
	HEARD(child, check_rank, "] contd_compute_end() without");
}

/* No backend is in use: the reason is a text alone, and nothing is said. */
static void asks_backend(const char *why, int line)
{
	const char *steps = "untouched", *name;

	listen_begin();
	other_failure();
	name = contd_mpi_backend(&steps);
	listen_end();
	CHECK(!name && strcmp(steps, "untouched") == 0 && !*heard);
	named("contd_mpi_backend", why, line);
}

int main(int argc, char **argv)
{
	MPI_Request cr, none = MPI_REQUEST_NULL;

	if (argc > 1 && strcmp(argv[1], "fatal") == 0) {
		check_init(&argc, &argv, MPI_THREAD_SINGLE);
		return MPI_Continue_init(MPI_INFO_NULL, NULL); /* which ends the program */
	}

	check_begin("before MPI_Init");
	listen_begin();
	failed(MPI_Continue_init(MPI_INFO_NULL, &cr), MPI_ERR_OTHER, "MPI_Continue_init", "before MPI_Init", __LINE__);
	listen_end();
	HEARD(getpid(), -1, "] MPI_Continue_init: called before MPI_Init");
	asks_backend("before MPI_Init", __LINE__);
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	unknown_key();
	handlers();
	draft();
	revised();
	waiting();
	queries();
	others();
#ifdef CONTD_MODES_H
	modes();
#endif
#ifdef CONTD_TEMPLATE_H
	templates();
#endif
	keys();
	in_child();
	if (check_sum())
		return 1;
	check_begin("MPI_Finalize");
	MPI_Finalize();
	listen_begin();
	other_failure();
	CHECK_EQ(MPI_Continue(&none, cb, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_OTHER);
	named("MPI_Continue", "after MPI_Finalize", __LINE__);
	listen_end();
	HEARD(getpid(), check_rank, "] MPI_Continue: called after MPI_Finalize");
	asks_backend("after MPI_Finalize", __LINE__);
	return atomic_load(&check_failures) != 0;
}
