// SPDX-License-Identifier: BSD-3-Clause
/* The cost of an await, in nanoseconds, beside the same in C. Nothing is asserted of the times. An argument: how
 * many. */
#include <contd/mpi.hpp>

#include <chrono>
#include <cstring>

#include "check.hpp"

static int many = 1000;

template <class F> static void timed(const char *name, F &&f)
{
	double best = 1e30;

	for (int k = 0; k < 5; k++) {
		auto begin = std::chrono::steady_clock::now();
		f();
		double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
			    many;
		best = ns < best ? ns : best;
	}
	std::printf("%-58s %8.1f ns\n", name, best);
}

static long ran;

static void count_run(int, void *)
{
	ran++;
}
static int count_run_x(int, void *)
{
	ran++;
	return MPI_SUCCESS;
}

static contd::task<> complete_events()
{
	contd::event e;

	e.complete(1);
	for (int i = 0; i < many; i++)
		ran += co_await e;
}

static contd::task<> complete_groups(contd::group &g)
{
	for (int i = 0; i < many; i++) {
		co_await g;
		ran++;
	}
}

static contd::task<> late(contd::event &e)
{
	for (int i = 0; i < many; i++) {
		co_await e;
		e.reset();
		ran++;
	}
}

static contd::task<int> child()
{
	co_return 1;
}

static contd::task<> children()
{
	for (int i = 0; i < many; i++)
		ran += co_await child();
}

static contd::task<> self_messages(MPI_Request cr)
{
	for (int i = 0; i < many; i++) {
		int v = i, w;
		co_await contd::when_all(contd::mpi(MPI_Irecv, &w, 1, MPI_INT, 0, 0, MPI_COMM_SELF).in(cr),
					 contd::mpi(MPI_Isend, &v, 1, MPI_INT, 0, 0, MPI_COMM_SELF).in(cr));
		ran++;
	}
}

static contd::task<> complete_sends()
{
	int v = 1;

	for (int i = 0; i < many; i++) {
		MPI_Request r;
		int w;
		MPI_Irecv(&w, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r);
		co_await contd::mpi(MPI_Isend, &v, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		ran++;
	}
}

int main(int argc, char **argv)
{
	MPI_Request cr;
	contd_group *loose;

	MPI_Init(&argc, &argv);
	if (argc > 1)
		many = std::atoi(argv[1]);
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	{
		contd::dispatcher d;
		contd::group g;
		contd::event e;
		contd_event *event = e.get();
		const contd_group_attr attr = CONTD_GROUP_ATTR_INIT;

		contd_group_create(&attr, &loose);
		e.complete();
		timed("C: contd_event_continue, complete", [&] {
			for (int i = 0; i < many; i++)
				contd_event_continue(1, &event, count_run, nullptr, g.get(), nullptr);
		});
		timed("co_await of a complete event", [] { contd::sync_wait(complete_events()); });
		timed("C: contd_group_continue, complete", [&] {
			for (int i = 0; i < many; i++)
				contd_group_continue(loose, count_run, nullptr, g.get(), nullptr);
		});
		timed("co_await of a complete group (inline continuation)",
		      [&] { contd::sync_wait(complete_groups(g)); });
		timed("C: event continue, complete, poll", [&] {
			for (int i = 0; i < many; i++) {
				e.reset();
				contd_event_continue(1, &event, count_run, nullptr, g.get(), nullptr);
				e.complete();
				contd_poll(0);
			}
		});
		timed("co_await of an event that is completed later, poll", [&] {
			contd::scope s;
			e.reset();
			s.spawn(late(e));
			for (int i = 0; i < many; i++) {
				e.complete();
				contd_poll(0);
			}
			s.wait();
		});
		timed("co_await of a task (frame allocated)", [] { contd::sync_wait(children()); });
		timed("C: Irecv, Isend to oneself, 2 x MPIX_Continue, no CR", [&] {
			for (int i = 0; i < many; i++) {
				int v = i, w;
				MPI_Request r[2];
				MPI_Status s[2];
				long before = ran;
				MPI_Irecv(&w, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[0]);
				MPIX_Continue(&r[0], count_run_x, nullptr, MPIX_CONT_INVOKE_FAILED, &s[0],
					      MPI_REQUEST_NULL);
				MPI_Isend(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[1]);
				MPIX_Continue(&r[1], count_run_x, nullptr, MPIX_CONT_INVOKE_FAILED, &s[1],
					      MPI_REQUEST_NULL);
				while (ran < before + 2)
					contd_poll(0);
			}
		});
		timed("C: Irecv, Isend to oneself, Waitall", [&] {
			for (int i = 0; i < many; i++) {
				int v = i, w;
				MPI_Request r[2];
				MPI_Irecv(&w, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[0]);
				MPI_Isend(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[1]);
				MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
			}
		});
		timed("co_await when_all(Irecv, Isend), no CR",
		      [] { contd::sync_wait(self_messages(MPI_REQUEST_NULL)); });
		timed("co_await when_all(Irecv, Isend), with a CR", [&] { contd::sync_wait(self_messages(cr)); });
		timed("C: Irecv, Isend, Test, Wait", [&] {
			for (int i = 0; i < many; i++) {
				int v = 1, w, flag;
				MPI_Request r, s;
				MPI_Irecv(&w, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r);
				MPI_Isend(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &s);
				MPI_Test(&s, &flag, MPI_STATUS_IGNORE);
				MPI_Wait(&r, MPI_STATUS_IGNORE);
			}
		});
		timed("Irecv, co_await Isend (complete at once), Wait", [] { contd::sync_wait(complete_sends()); });
		contd_group_destroy(loose);
	}
	MPI_Request_free(&cr);
	MPI_Finalize();
	return ran > 0 ? 0 : 1;
}
