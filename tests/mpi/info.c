/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Every info key is honoured, malformed values are refused, unknown keys are ignored. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

#define TAG 51

static char in[8], out[8];

/* A continuation that is ready once `from` has sent, which it has when this returns. */
static void make_ready(MPI_Request cr, struct seen *seen)
{
	MPI_Request r;

	MPI_Irecv(in, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, see, seen, MPI_STATUS_IGNORE, cr));
	MPI_Send(out, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD);
}

/* Calls that make progress, none of which is a test of a CR. */
static void other_calls(void)
{
	MPI_Request r[2];
	int flag, index, count, indices[2];

	for (int i = 0; i < 20; i++) {
		MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		MPI_Irecv(in + 1, 1, MPI_BYTE, check_rank, TAG + 1, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(out, 1, MPI_BYTE, check_rank, TAG + 1, MPI_COMM_WORLD, &r[1]);
		MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
		MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE);
		MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		contd_poll(0);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* ---------------------------------------------------------------------------------------------------- poll_only --- */

static void wait_for_other(MPI_Status *status, void *data)
{
	MPI_Request *other = data;

	(void)status;
	CHECK_OK(MPI_Wait(other, MPI_STATUS_IGNORE));
}

static void check_poll_only(void)
{
	enum { TEST, TESTALL, TESTANY, TESTSOME, WAIT, WAITALL, WAITANY, WAITSOME, NESTED, CALLS };
	MPI_Request cr = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	MPI_Request other = check_cr("mpi_continue_poll_only", "true", NULL, NULL), plain = check_plain_cr();
	struct seen seen = {0}, seen_other = {0}, seen_plain = {0};
	int flag, index, count;

	for (int how = 0; how < CALLS; how++) {
		MPI_Request r[2] = {MPI_REQUEST_NULL, cr};
		int indices[2];

		check_begin("poll_only");
		atomic_store(&seen.runs, 0);
		make_ready(cr, &seen);
		CHECK_OK(MPI_Continue(&r[0], see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Continueall(0, NULL, see, &seen, MPI_STATUSES_IGNORE, cr));
		CHECK_EQ(seen.runs, 0);
		other_calls();
		make_ready(other, &seen_other);
		make_ready(plain, &seen_plain);
		CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Test(&other, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK_EQ(seen.runs, 0);
		CHECK_EQ(seen_other.runs, how + 1);
		CHECK_EQ(seen_plain.runs, how + 1);
		flag = 0;
		count = 0;
		if (how == TEST)
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		else if (how == TESTALL)
			CHECK_OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
		else if (how == TESTANY)
			CHECK_OK(MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE));
		else if (how == TESTSOME)
			CHECK_OK(MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		else if (how == WAIT)
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		else if (how == WAITALL)
			CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		else if (how == WAITANY)
			CHECK_OK(MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE));
		else if (how == WAITSOME)
			CHECK_OK(MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		else
			CHECK_OK(MPI_Continue(&r[0], wait_for_other, &cr, MPI_STATUS_IGNORE, plain));
		CHECK_EQ(seen.runs, 3); /* one call is enough */
		if (how < TESTSOME)
			CHECK(flag);
	}
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_OK(MPI_Request_free(&other));
	CHECK_OK(MPI_Request_free(&plain));
}

/* --------------------------------------------------------------------------------------------- enqueue_complete --- */

static void check_enqueue(void)
{
	MPI_Request cr = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL), r[2];
	MPI_Request plain = check_cr("mpi_continue_enqueue_complete", "false", NULL, NULL);
	struct seen seen = {0};
	int flag;

	check_begin("enqueue_complete");
	for (int i = 0; i < 100; i++) {
		atomic_store(&seen.runs, 0);
		r[0] = r[1] = MPI_REQUEST_NULL;
		CHECK_OK(MPI_Continue(&r[0], see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_EQ(seen.runs, 0);
		CHECK_OK(MPI_Continueall(2, r, see, &seen, MPI_STATUSES_IGNORE, cr));
		CHECK_EQ(seen.runs, 0);
		CHECK_OK(MPI_Continueall(0, NULL, see, &seen, MPI_STATUSES_IGNORE, cr));
		CHECK_EQ(seen.runs, 0);
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK_EQ(seen.runs, 3);
		/* The message is there before the continuation. */
		MPI_Irecv(in, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD, &r[0]);
		MPI_Send(out, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD);
		for (flag = 0; !flag;)
			MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE);
		CHECK_OK(MPI_Continue(&r[0], see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_EQ(seen.runs, 3);
		if (i % 2)
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		else
			MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		CHECK_EQ(seen.runs, 4); /* any call that makes progress may run it */
		/* Without the key it may run at once, and does. */
		r[0] = MPI_REQUEST_NULL;
		CHECK_OK(MPI_Continue(&r[0], see, &seen, MPI_STATUS_IGNORE, plain));
		CHECK_EQ(seen.runs, 5);
	}
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_OK(MPI_Request_free(&plain));
}

/* ----------------------------------------------------------------------------------------------------- max_poll --- */

static void add_ready(MPI_Request cr, struct seen *seen, int n)
{
	for (int i = 0; i < n; i++) {
		MPI_Request r = MPI_REQUEST_NULL;

		CHECK_OK(MPI_Continue(&r, see, seen, MPI_STATUS_IGNORE, cr));
	}
}

static int test_by(int how, MPI_Request cr)
{
	MPI_Request r[2] = {MPI_REQUEST_NULL, cr};
	int flag = 0, index, count, indices[2];

	if (how == 0) {
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	} else if (how == 1) {
		CHECK_OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
	} else if (how == 2) {
		CHECK_OK(MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE));
	} else {
		CHECK_OK(MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		flag = count != 0;
	}
	return flag;
}

static void check_max_poll(void)
{
	static const char *const other_key[2] = {"mpi_continue_poll_only", "mpi_continue_enqueue_complete"};
	static const int limits[] = {1, 2, 7, 100, 1000};
	MPI_Request plain = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	struct seen seen_plain = {0};

	for (int kind = 0; kind < 2; kind++) {
		for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
			char value[16];
			MPI_Request cr;

			check_begin("max_poll");
			snprintf(value, sizeof(value), "%d", limits[l]);
			cr = check_cr("mpi_continue_max_poll", value, other_key[kind], "true");
			for (int how = 0; how < 4; how++) {
				struct seen seen = {0};
				int total = 3 * limits[l] + limits[l] / 2, flag;

				add_ready(cr, &seen, total);
				/* Ready continuations of others do not count for it. */
				add_ready(plain, &seen_plain, 10);
				for (int ran = 0; ran < total;) {
					int expected = total - ran < limits[l] ? total - ran : limits[l];

					flag = test_by(how, cr);
					CHECK_EQ(seen.runs, ran + expected);
					ran += expected;
					CHECK_EQ(flag, ran == total);
				}
			}
			/* Wait is not limited. */
			{
				struct seen seen = {0};

				add_ready(cr, &seen, 3 * limits[l]);
				CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
				CHECK_EQ(seen.runs, 3 * limits[l]);
			}
			CHECK_OK(MPI_Request_free(&cr));
		}
	}

	check_begin("max_poll 0");
	{
		MPI_Request cr = check_cr("mpi_continue_max_poll", "0", NULL, NULL);
		struct seen seen = {0};
		int flag;

		add_ready(cr, &seen, 10);
		CHECK_EQ(seen.runs, 0);
		make_ready(cr, &seen);
		atomic_store(&seen.runs, 0); /* MPI_Send may have run them */
		add_ready(cr, &seen, 10);
		for (int i = 0; i < 40; i++) {
			flag = test_by(i % 4, cr);
			CHECK(!flag);
		}
		CHECK_EQ(seen.runs, 0);
		MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		CHECK(seen.runs >= 10);
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		atomic_store(&seen.runs, 0);
		add_ready(cr, &seen, 10);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 10);
		CHECK_OK(MPI_Request_free(&cr));
	}
	check_begin("max_poll -1");
	{
		MPI_Request cr = check_cr("mpi_continue_max_poll", "-1", "mpi_continue_poll_only", "true");
		struct seen seen = {0};

		add_ready(cr, &seen, 5000);
		CHECK(test_by(0, cr));
		CHECK_EQ(seen.runs, 5000);
		CHECK_OK(MPI_Request_free(&cr));
	}
	check_begin("max_poll of several CRs in one call");
	{
		MPI_Request r[3];
		struct seen seen[3] = {{0}};
		int flag;

		r[0] = check_cr("mpi_continue_max_poll", "3", "mpi_continue_poll_only", "true");
		r[1] = check_cr("mpi_continue_max_poll", "0", "mpi_continue_enqueue_complete", "true");
		r[2] = check_cr("mpi_continue_max_poll", "5", "mpi_continue_enqueue_complete", "true");
		for (int i = 0; i < 3; i++)
			add_ready(r[i], &seen[i], 20);
		for (int round = 1; round < 4; round++) {
			CHECK_OK(MPI_Testall(3, r, &flag, MPI_STATUSES_IGNORE));
			CHECK(!flag);
			CHECK_EQ(seen[0].runs, 3 * round);
			CHECK_EQ(seen[1].runs, 0);
			CHECK_EQ(seen[2].runs, 5 * round);
		}
		CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(seen[i].runs, 20);
			CHECK_OK(MPI_Request_free(&r[i]));
		}
	}
	MPI_Wait(&plain, MPI_STATUS_IGNORE);
	CHECK_EQ(seen_plain.runs, 10 * 4 * 2 * (int)(sizeof(limits) / sizeof(limits[0])));
	CHECK_OK(MPI_Request_free(&plain));
}

/* ------------------------------------------------------------------------------------------------------- thread --- */

struct where {
	pthread_t thread;
	atomic_int runs;
};

static void record_thread(MPI_Status *status, void *data)
{
	struct where *w = data;

	(void)status;
	w->thread = pthread_self();
	atomic_fetch_add(&w->runs, 1);
}

/*
 * The daemon finds both messages; what it may run it does. The `application` one comes first, so it has been ready
 * since before the other one ran.
 */
static void check_thread(const char *any)
{
	MPI_Request application = check_cr("mpi_continue_thread", "application", "contd_agent", "tick");
	MPI_Request anyone = check_cr("mpi_continue_thread", any, NULL, NULL);
	struct contd_stats stats = {.size = sizeof(stats)};

	check_begin("thread");
	for (int round = 0; round < 20; round++) {
		struct where mine = {0}, theirs = {0};
		MPI_Request r[2];

		MPI_Irecv(in, 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r[0]);
		CHECK_OK(MPI_Continue(&r[0], record_thread, &mine, MPI_STATUS_IGNORE, application));
		MPI_Irecv(in + 1, 1, MPI_BYTE, check_previous(), TAG + 1, MPI_COMM_WORLD, &r[1]);
		CHECK_OK(MPI_Continue(&r[1], record_thread, &theirs, MPI_STATUS_IGNORE, anyone));
		MPI_Send(out, 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
		MPI_Send(out, 1, MPI_BYTE, check_next(), TAG + 1, MPI_COMM_WORLD);
		while (atomic_load(&theirs.runs) == 0)
			sched_yield();
		CHECK_OK(MPI_Wait(&application, MPI_STATUS_IGNORE));
		CHECK_EQ(mine.runs, 1);
		CHECK_EQ(theirs.runs, 1);
		CHECK(pthread_equal(mine.thread, pthread_self()));
		MPI_Barrier(MPI_COMM_WORLD);
	}
	CHECK_EQ(contd_stats_get(&stats), 0);
	CHECK_OK(MPI_Wait(&anyone, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&application));
	CHECK_OK(MPI_Request_free(&anyone));

	/* Complete already, and queued: the daemon has nothing else to look at while the thread computes. */
	check_begin("thread any, nobody calls MPI");
	anyone = check_cr("mpi_continue_thread", any, "mpi_continue_enqueue_complete", "true");
	for (int round = 0; round < 20; round++) {
		struct where theirs = {0};
		MPI_Request r = MPI_REQUEST_NULL;

		CHECK_OK(MPI_Continue(&r, record_thread, &theirs, MPI_STATUS_IGNORE, anyone));
		while (atomic_load(&theirs.runs) == 0)
			sched_yield();
		CHECK(!pthread_equal(theirs.thread, pthread_self()));
	}
	CHECK_OK(MPI_Request_free(&anyone));
	CHECK_EQ(contd_stats_get(&stats), 0);
	CHECK(stats.run_daemon >= 20);
}

/* ------------------------------------------------------------------------------------------------------- values --- */

static int init_with(const char *key1, const char *value1, const char *key2, const char *value2)
{
	MPI_Request cr, poison;
	MPI_Info info;
	int rc;

	memset(&cr, POISON, sizeof(cr));
	poison = cr;
	MPI_Info_create(&info);
	MPI_Info_set(info, key1, value1);
	if (key2)
		MPI_Info_set(info, key2, value2);
	rc = MPI_Continue_init(info, &cr);
	MPI_Info_free(&info);
	if (rc)
		CHECK(cr == poison);
	else
		CHECK_OK(MPI_Request_free(&cr));
	return rc;
}

/* How often `text` stands in what init_with() writes to the standard error. */
static int written(const char *key1, const char *key2, const char *text)
{
	char said[4096];
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO), n = 0;
	size_t size;

	CHECK(file && before >= 0);
	fflush(stderr);
	CHECK(dup2(fileno(file), STDERR_FILENO) >= 0);
	CHECK_OK(init_with(key1, "maybe", key2, "maybe"));
	fflush(stderr);
	CHECK(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(file);
	size = fread(said, 1, sizeof(said) - 1, file);
	said[size] = 0;
	fclose(file);
	for (const char *at = said; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

/* The same of all ranks of this host: one of them says it. */
static int written_here(const char *key1, const char *key2, const char *text)
{
	int mine = written(key1, key2, text), all = -1;
	MPI_Comm host;

	CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
	CHECK_OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, host));
	CHECK_OK(MPI_Comm_free(&host));
	return all;
}

/* They have no effect. One that was meant for contd is reported, once, with the key that was probably meant. */
static void check_unknown(void)
{
	check_begin("unknown keys");
	CHECK_EQ(written_here("another", "MPI_CONTINUE_POLL_ONLY", "contd"), 0);
	CHECK_EQ(written_here("mpi_continue_poll_onl", "another", "mpi_continue_poll_onl is unknown"), 1);
	CHECK_EQ(written_here("mpi_continue_poll_onl", "another", "contd"), 0);
	CHECK_EQ(written_here("contd_scans_ns", NULL, "known is contd_scan_ns"), 1);
	CHECK_EQ(written_here("mpi_continue_signal_safe", NULL, "known is mpi_continue_async_signal_safe"), 1);
	if (check_size > 1)
		CHECK_EQ(written_here("contd_agnet", NULL, "(said once for all ranks of the job on this host"), 1);
	/* A setting that only contd_init() and the environment can change. */
	CHECK_EQ(written_here("contd_signal", NULL, "contd_signal is unknown"), 1);
}

/* Each setting that a key may change, in one info object: none takes another one's place. */
static void check_all_settings(void)
{
	static const char *const settings[][2] = {
		{"contd_agent", "caller"},           {"contd_overhead_percent", "3"}, {"contd_tick_min_ns", "20000"},
		{"contd_tick_max_ns", "5000000"},    {"contd_scan_count", "32"},      {"contd_scan_ns", "40000"},
		{"contd_watchdog_ns", "1000000000"}, {"contd_daemon_name", "info"},   {"contd_daemon_cpus", "0"},
		{"contd_daemon_sched", "other:1"},   {"contd_verbose", "2"},          {"contd_stats", "exit:/dev/null"},
		{"contd_priority", "high"}};
	char cpus[16];
	MPI_Request cr;
	MPI_Info info;
	cpu_set_t set;
	int first = 0;

	check_begin("all settings at once");
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(first, &set))
		first++;
	snprintf(cpus, sizeof(cpus), "%d", first);
	MPI_Info_create(&info);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		MPI_Info_set(info, settings[i][0],
			     strcmp(settings[i][0], "contd_daemon_cpus") == 0 ? cpus : settings[i][1]);
	CHECK_OK(MPI_Continue_init(info, &cr));
	MPI_Info_free(&info);
	CHECK_OK(MPI_Request_free(&cr));
}

static void check_values(void)
{
	static const char *const flags[] = {"mpi_continue_poll_only", "mpi_continue_enqueue_complete",
					    "mpi_continue_async_signal_safe"};
	static const char *const bad_flags[] = {"TRUE", "yes", "1", "0", "tru", "truee", "true,false", "maybe"};
	static const char *const bad_numbers[] = {"abc", "-2", "5x", "1.5", "0x10", "99999999999", "-99999999999",
						  "--1", "-",  "+5", " 5",  "5 ",   "\t-1"};
	static const char *const good_numbers[] = {"-1", "0", "1", "2147483647"};
	static const char *const bad_threads[] = {"Any", "none", "applications", "any,application"};
	char longest[MPI_MAX_INFO_VAL];

	check_begin("malformed values");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		CHECK_OK(init_with(flags[i], "false", NULL, NULL));
		CHECK_OK(init_with(flags[i], "true", NULL, NULL));
		for (size_t k = 0; k < sizeof(bad_flags) / sizeof(bad_flags[0]); k++)
			CHECK_EQ(init_with(flags[i], bad_flags[k], NULL, NULL), MPI_ERR_INFO_VALUE);
	}
	for (size_t k = 0; k < sizeof(bad_numbers) / sizeof(bad_numbers[0]); k++)
		CHECK_EQ(init_with("mpi_continue_max_poll", bad_numbers[k], NULL, NULL), MPI_ERR_INFO_VALUE);
	for (size_t k = 0; k < sizeof(good_numbers) / sizeof(good_numbers[0]); k++)
		CHECK_OK(init_with("mpi_continue_max_poll", good_numbers[k], NULL, NULL));
	for (size_t k = 0; k < sizeof(bad_threads) / sizeof(bad_threads[0]); k++)
		CHECK_EQ(init_with("mpi_continue_thread", bad_threads[k], NULL, NULL), MPI_ERR_INFO_VALUE);
	CHECK_OK(init_with("mpi_continue_thread", "any", NULL, NULL));
	CHECK_OK(init_with("mpi_continue_thread", "all", NULL, NULL));
	CHECK_OK(init_with("mpi_continue_thread", "application", NULL, NULL));
	CHECK_EQ(init_with("contd_agent", "nobody", NULL, NULL), MPI_ERR_INFO_VALUE);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	CHECK_EQ(init_with("mpi_continue_thread", longest, NULL, NULL), MPI_ERR_INFO_VALUE);

	check_begin("erroneous pair");
	CHECK_EQ(init_with("mpi_continue_poll_only", "true", "mpi_continue_max_poll", "0"), MPI_ERR_ARG);
	CHECK_OK(init_with("mpi_continue_poll_only", "false", "mpi_continue_max_poll", "0"));
	CHECK_OK(init_with("mpi_continue_poll_only", "true", "mpi_continue_max_poll", "1"));

	check_unknown();
	check_all_settings();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	/* Before a daemon runs: counts of what single calls run are exact. */
	check_poll_only();
	check_enqueue();
	check_max_poll();
	check_thread("any");
	check_thread("all");
	check_values();
	return check_fini();
}
