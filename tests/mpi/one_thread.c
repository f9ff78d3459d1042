/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Below MPI_THREAD_SERIALIZED all calls of MPI come from one thread. A continuation that runs inside the call that
 * attaches it is not counted then, unless a call in its callback would find out. One that waits for a plain operation
 * is carried by its set, and mostly runs without a slot. Other threads may still call contd.
 */
#include "race.h"

#include "dispatch/carried.h"
#include "dispatch/thread.h"

static MPI_Request cr, cr2;
static int tag;

static void begin(const char *section)
{
	check_begin(section);
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr2));
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Start(&cr2));
	tag++;
}

static void end(void)
{
	if (cr != MPI_REQUEST_NULL)
		CHECK_OK(MPI_Request_free(&cr));
	CHECK_OK(MPI_Request_free(&cr2));
}

static int counts(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	(*(int *)data)++;
	return MPI_SUCCESS;
}

static int in[100];

static MPI_Request receive(int i)
{
	MPI_Request r;

	in[i] = -1;
	CHECK_OK(MPI_Irecv(&in[i], 1, MPI_INT, 0, 100 * tag + i, MPI_COMM_SELF, &r));
	return r;
}

static void send(int i)
{
	CHECK_OK(MPI_Send(&i, 1, MPI_INT, 0, 100 * tag + i, MPI_COMM_SELF));
}

/* A receive that is complete. */
static MPI_Request received(void)
{
	MPI_Request r = receive(0);

	send(0);
	return r;
}

/* ------------------------------------------------------------------------------------------ inside the callback --- */

static struct contd_group *group;
static unsigned asked;
static int inner, order;

static void ask(void)
{
	asked = contd_group_outstanding(group);
}

static int takes_the_group(int rc, void *data)
{
	CHECK(contd__cr_uncounted != NULL);
	group = contd_mpi_group(cr);
	side_do(ask);
	CHECK_EQ(asked, 1);
	CHECK(contd__cr_uncounted == NULL);
	return counts(rc, data);
}

static int is_counted(int rc, void *data)
{
	side_do(ask);
	CHECK_EQ(asked, 1);
	return counts(rc, data);
}

static void the_group_is_taken(void)
{
	MPI_Request r;
	int runs = 0;

	begin("the callback takes the CR's group, and another thread asks");
	for (int i = 0; i < 2; i++) { /* the second one is counted from the start */
		r = received();
		CHECK_OK(MPIX_Continue(&r, i ? is_counted : takes_the_group, &runs, 0, MPI_STATUS_IGNORE, cr));
		CHECK_EQ(runs, i + 1);
		side_do(ask);
		CHECK_EQ(asked, 0);
	}
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	end();
}

static int attaches(int rc, void *data)
{
	MPI_Request waits = receive(1), complete = received();
	int flag = 1;

	CHECK_OK(MPIX_Continue(&waits, counts, &inner, 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPIX_Continue(&complete, counts, &inner, 0, MPI_STATUS_IGNORE, cr));
	send(1);
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
	return counts(rc, data);
}

static void others_are_attached(void)
{
	MPI_Request r;
	int runs = 0;

	begin("the callback attaches others, and tests the CR");
	r = received();
	inner = 0;
	CHECK_OK(MPIX_Continue(&r, attaches, &runs, 0, MPI_STATUS_IGNORE, cr));
	CHECK_EQ(runs, 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(inner, 2);
	end();
}

static int comes_last(int rc, void *data)
{
	CHECK_EQ(order, 1);
	order = 2;
	return counts(rc, data);
}

static int is_awaited(int rc, void *data)
{
	int flag = 0;

	CHECK_OK(MPIX_Continue(&cr, comes_last, &inner, 0, MPI_STATUS_IGNORE, cr2));
	CHECK_OK(MPI_Test(&cr2, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
	CHECK_EQ(inner, 0);
	order = 1;
	return counts(rc, data);
}

static void it_is_awaited(void)
{
	MPI_Request r;
	int runs = 0;

	begin("the callback has another continuation wait for the CR");
	r = received();
	inner = order = 0;
	CHECK_OK(MPIX_Continue(&r, is_awaited, &runs, 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr2, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	CHECK_EQ(inner, 1);
	CHECK_EQ(order, 2);
	end();
}

static int frees(int rc, void *data)
{
	CHECK_OK(MPI_Request_free(&cr));
	counts(rc, data);
	return MPI_ERR_OTHER; /* nobody asks */
}

static void it_is_freed(void)
{
	MPI_Request r;
	int runs = 0;

	for (int i = 0; i < 100; i++) {
		begin("the callback frees the CR, and fails");
		r = received();
		CHECK_OK(MPIX_Continue(&r, frees, &runs, 0, MPI_STATUS_IGNORE, cr));
		CHECK(cr == MPI_REQUEST_NULL);
		CHECK_EQ(runs, i + 1);
		end();
	}
}

static int fails(int rc, void *data)
{
	counts(rc, data);
	return MPI_ERR_OTHER;
}

/* In the call that attaches it, or afterwards. */
static void it_fails(bool waits)
{
	void *data[2];
	int runs = 0, n = 2, class = 0;
	MPI_Request r;

	begin(waits ? "the callback fails in the wait" : "the callback fails");
	r = waits ? receive(1) : received();
	CHECK_OK(MPIX_Continue(&r, fails, &runs, 0, MPI_STATUS_IGNORE, cr));
	if (waits)
		send(1);
	MPI_Error_class(MPI_Wait(&cr, MPI_STATUS_IGNORE), &class);
	CHECK_EQ(class, MPI_ERR_OTHER);
	CHECK_OK(MPIX_Continue_get_failed(cr, &n, data));
	CHECK_EQ(n, 1);
	CHECK(data[0] == &runs);
	CHECK_EQ(runs, 1);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	end();
}

/* ---------------------------------------------------------------------------------------------- carried by sets --- */

enum { BY_WAIT, BY_TEST, BY_ARRAY, BY_OTHER_CALL, BY_POLL, BY_GROUP, BY_SIDE, BYS };
static int polled;

static void poll_it(void)
{
	polled = contd_poll(0);
}

static void find(int by, int *runs)
{
	MPI_Request both[2] = {cr, MPI_REQUEST_NULL};
	int flag = 0;

	switch (by) {
	case BY_WAIT:
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		return;
	case BY_TEST:
		while (!flag)
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		return;
	case BY_ARRAY:
		while (!flag)
			CHECK_OK(MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE));
		return;
	case BY_OTHER_CALL:
		while (!*runs)
			CHECK_OK(MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
		break;
	case BY_POLL:
		CHECK_EQ(contd_poll(0), 1);
		break;
	case BY_GROUP:
		CHECK_EQ(contd_group_wait(contd_mpi_group(cr), -1), 0);
		break;
	default:
		side_do(poll_it);
		CHECK_EQ(polled, 1);
	}
	CHECK_EQ(*runs, 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
}

static void found(int by, int flags)
{
	static char name[64];
	MPI_Status status;
	MPI_Request r;
	int runs = 0;

	snprintf(name, sizeof(name), "carried, and found: %d, flags %d", by, flags);
	begin(name);
	r = receive(1);
	status_poison(&status);
	CHECK_OK(MPIX_Continue(&r, counts, &runs, flags, &status, cr));
	CHECK(r == MPI_REQUEST_NULL);
	CHECK_EQ(runs, 0);
	send(1);
	if (check_native() && contd__load(&contd__threads_count) == 1)
		CHECK(contd__load(&contd__put_off_carried) != NULL);
	find(by, &runs);
	CHECK_EQ(runs, 1);
	CHECK_EQ(in[1], 1);
	status_is_of(&status, 0, 100 * tag + 1, sizeof(int));
	end();
}

static void draft(MPI_Status *statuses, void *data)
{
	CHECK_EQ(statuses[0].MPI_TAG, 100 * tag + 1);
	(*(int *)data)++;
}

static void found_in_the_draft_interface(void)
{
	MPI_Request r, old;
	MPI_Status status;
	int runs = 0;

	begin("carried, draft interface");
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &old));
	for (int i = 0; i < 2; i++) {
		r = receive(1);
		CHECK_OK(MPI_Continue(&r, draft, &runs, &status, old));
		send(1);
		CHECK_OK(MPI_Wait(&old, MPI_STATUS_IGNORE));
		CHECK_EQ(runs, i + 1);
	}
	CHECK_OK(MPI_Request_free(&old));
	end();
}

static void many_at_once(void)
{
	int runs = 0;

	begin("many are complete at once");
	for (int i = 0; i < 100; i++) {
		MPI_Request r = receive(i);

		CHECK_OK(MPIX_Continue(&r, counts, &runs, 0, MPI_STATUS_IGNORE, cr));
	}
	for (int i = 0; i < 100; i++)
		send(i);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 100);
	end();
}

static void freed_while_it_waits(void)
{
	MPI_Request r;
	int runs = 0;

	begin("the CR is freed while it waits");
	r = receive(1);
	CHECK_OK(MPIX_Continue(&r, counts, &runs, 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Request_free(&cr));
	send(1);
	contd_poll(0);
	CHECK_EQ(runs, 1);
	end();
}

static void inactive(void)
{
	MPI_Request r;
	int runs = 0;

	begin("the CR is inactive");
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int complete = 0; complete < 2; complete++) {
		r = complete ? received() : receive(1);
		CHECK_OK(MPIX_Continue(&r, counts, &runs, 0, MPI_STATUS_IGNORE, cr));
		if (!complete)
			send(1);
		contd_poll(0);
		CHECK_EQ(runs, complete);
		CHECK_OK(MPI_Start(&cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(runs, complete + 1);
	}
	end();
}

static int takes_rc(int rc, void *data)
{
	MPI_Error_class(rc, (int *)data);
	return MPI_SUCCESS;
}

/* Open MPI does not report a truncated message that a rank sends to itself. */
static void operation_fails(bool told)
{
	int out[2] = {1, 2}, partner = 1 - check_rank, class = -1, result, n = 1;
	MPI_Request r;
	void *data[1];

	begin(told ? "the operation fails, told" : "the operation fails");
	CHECK_OK(MPI_Irecv(&in[0], 1, MPI_INT, partner, 9, MPI_COMM_WORLD, &r));
	CHECK_OK(MPIX_Continue(&r, takes_rc, &class, told ? MPIX_CONT_INVOKE_FAILED : 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
	CHECK_OK(MPI_Send(out, 2, MPI_INT, partner, 9, MPI_COMM_WORLD));
	MPI_Error_class(MPI_Wait(&cr, MPI_STATUS_IGNORE), &result);
	CHECK_EQ(result, told ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
	CHECK_OK(MPIX_Continue_get_failed(cr, &n, data));
	CHECK_EQ(n, !told);
	CHECK_EQ(class, told ? MPI_ERR_TRUNCATE : -1);
	end();
}

static void native(void)
{
	others_are_attached();
	it_is_awaited();
	it_is_freed();
	it_fails(false);
	/* The side thread is not there, and then it is one that contd knows. */
	for (int by = 0; by < BY_SIDE; by++) {
		found(by, 0);
		found(by, MPIX_CONT_DEFER_COMPLETE);
	}
	freed_while_it_waits();
	inactive();
	side_create();
	the_group_is_taken();
	for (int by = 0; by < BYS; by++)
		found(by, 0);
	found_in_the_draft_interface();
	many_at_once();
	freed_while_it_waits();
	side_join();
}

int main(int argc, char **argv)
{
	/* Threads that only ask contd's groups: at MPI_THREAD_SINGLE contd counts least. */
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_unbind();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	found(BY_WAIT, 0);
	found(BY_TEST, 0);
	found(BY_ARRAY, MPIX_CONT_DEFER_COMPLETE);
	found_in_the_draft_interface();
	many_at_once();
	it_fails(true);
	operation_fails(false);
	operation_fails(true);
	if (check_native()) /* the portable backend does not look at what has just been started */
		native();
	return check_fini();
}
