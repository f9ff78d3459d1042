/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Promises of contd's beyond the interface: this file alone (with contd_*.c) calls its functions, sets its info keys
 * and environment variables. It is not compiled for another implementation.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "conformance.h"

#define TAG 91
#define AGENT "contd_agent"

/* ---------------------------------------------------------------------------------------------------- section 1 --- */

CONFORMANCE_TEST(s1_3_pmpi_names, 1, single, "The draft's functions have PMPI names, which do the same")
{
	MPI_Request cr = MPI_REQUEST_NULL, op = pending(TAG);
	struct seen seen = {0};

	CHECK_OK(PMPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_OK(PMPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK(op == MPI_REQUEST_NULL);
	CHECK_OK(PMPI_Continueall(1, &op, see, &seen, MPI_STATUSES_IGNORE, cr));
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 2);
	free_cr(&cr);
}

/* ---------------------------------------------------------------------------------------------------- section 2 --- */

CONFORMANCE_BOTH(s2_4_free_poll_only, 1, single,
		 "When a poll_only CR is freed, its continuations run as if it were not poll_only")
{
	MPI_Request cr = new_cr(POLL_ONLY, "true", NULL), op = pending(TAG), none = MPI_REQUEST_NULL;
	struct seen seen = {0};

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(attach(&none, see, &seen, MPI_STATUS_IGNORE, cr));
	free_cr(&cr);
	CHECK(drive_until(&seen.runs, 1));
	complete_pending(TAG);
	CHECK(drive_until(&seen.runs, 2));
}

/* ---------------------------------------------------------------------------------------------------- section 4 --- */

/* Computes, without any call, until it has run; false after ten seconds. */
static bool compute_until(struct seen *seen, int runs)
{
	for (int ms = 0; ms < 10000 && atomic_load(&seen->runs) < runs; ms++)
		compute_ms(1);
	return atomic_load(&seen->runs) >= runs;
}

CONFORMANCE_BOTH(s4_2_any_on_the_daemon, 1, multiple, "thread = any and a daemon: it runs while no thread calls MPI")
{
	MPI_Request cr = new_cr(THREAD, "any", AGENT, "tick", ENQUEUE_COMPLETE, "true", NULL), op;
	struct seen seen = {0};

	for (int i = 0; i < 10; i++) {
		op = MPI_REQUEST_NULL;
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK(compute_until(&seen, i + 1));
		CHECK(!pthread_equal(seen.thread, pthread_self()));
		wait_cr(&cr);
		CHECK_EQ(seen.runs, i + 1);
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s4_2_application_not_on_the_daemon, 1, multiple,
		 "thread = application and a daemon: it waits for a call")
{
	MPI_Request cr = new_cr(AGENT, "tick", ENQUEUE_COMPLETE, "true", NULL), op = MPI_REQUEST_NULL;
	struct seen seen = {0};

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	compute_ms(200);
	CHECK_EQ(seen.runs, 0);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK(pthread_equal(seen.thread, pthread_self()));
	free_cr(&cr);
}

/* ---------------------------------------------------------------------------------------------------- section 5 --- */

static int init_with(const char *key, const char *value, const char *key2, const char *value2)
{
	MPI_Info info = new_info(key, value, key2, value2, NULL);
	MPI_Request cr;
	int rc;

	poison(&cr, sizeof(cr));
	rc = init_cr(info, &cr);
	MPI_Info_free(&info);
	if (rc == MPI_SUCCESS)
		free_cr(&cr);
	else
		CHECK(is_poison(&cr, sizeof(cr)));
	return class_of(rc);
}

CONFORMANCE_BOTH(s5_1_contd_agent, 1, single,
		 "contd_agent takes caller, region and tick; tick needs MPI_THREAD_MULTIPLE")
{
	CHECK_EQ(init_with(AGENT, "caller", NULL, NULL), MPI_SUCCESS);
	CHECK_EQ(init_with(AGENT, "region", NULL, NULL), MPI_SUCCESS);
	CHECK_EQ(init_with(AGENT, "nobody", NULL, NULL), MPI_ERR_INFO_VALUE);
	CHECK_EQ(init_with(AGENT, "tick", NULL, NULL), MPI_ERR_OTHER);
	CHECK_EQ(init_with(AGENT, "tick", SIGNAL_SAFE, "true"), MPI_ERR_OTHER);
	CHECK_EQ(init_with(AGENT, "caller", SIGNAL_SAFE, "true"), MPI_SUCCESS);
}

/* Rank 1 computes until a message of rank 0 has come, which is sent when it most likely computes. */
static void message_while_computing(MPI_Request cr, bool region)
{
	struct seen seen = {0};

	for (int i = 0; i < 5; i++) {
		if (my_rank == 0) {
			CHECK_OK(MPI_Recv(&(char){0}, 1, MPI_BYTE, 1, TAG + 1, world, MPI_STATUS_IGNORE));
			usleep(2000);
			send_byte(1, TAG, world);
			continue;
		} else {
			MPI_Request op = receive_byte(0, TAG, world);

			CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
			send_byte(0, TAG + 1, world);
			if (region)
				contd_compute_begin();
			CHECK(compute_until(&seen, i + 1));
			if (region)
				contd_compute_end();
			CHECK(pthread_equal(seen.thread, pthread_self()));
			wait_cr(&cr);
			CHECK_EQ(seen.runs, i + 1);
		}
	}
}

CONFORMANCE_BOTH(s5_3_low_latency_by_one_key, 2, multiple,
		 "async_signal_safe alone: a thread that computes is interrupted to run it")
{
	MPI_Request cr = new_cr(SIGNAL_SAFE, "true", NULL);

	message_while_computing(cr, false);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s5_3_compute_region, 2, single,
		 "Without MPI_THREAD_MULTIPLE compute regions make progress, for any continuation")
{
	MPI_Request cr = new_cr(SIGNAL_SAFE, "true", NULL), plain = new_cr(NULL);

	message_while_computing(cr, true);
	message_while_computing(plain, true);
	free_cr(&cr);
	free_cr(&plain);
}

/* ---------------------------------------------------------------------------------------------------- section 6 --- */

#define LEFT 5

static int left_out;
static FILE *captured;
static int saved_stderr;

static void look_at_the_report(void)
{
	char line[1024], expected[64];
	int lines = 0, right = 0;

	fflush(stderr);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(captured);
	snprintf(expected, sizeof(expected), " %d continuations never ran", left_out);
	while (fgets(line, sizeof(line), captured)) {
		lines += strncmp(line, "contd: [", 8) == 0 && strstr(line, "] MPI_Finalize: ");
		right += strstr(line, expected) != NULL;
		if (!strstr(line, expected))
			fputs(line, stderr);
	}
	fclose(captured);
	CHECK_EQ(lines, 1);
	CHECK_EQ(right, 1);
	CHECK(contd_poll(0) < 0); /* stopped with MPI */
}

CONFORMANCE_BOTH(s6_finalize_report, 1, single, "MPI_Finalize says once how many continuations never ran")
{
	MPI_Request cr = new_cr(NULL), other = new_cr(POLL_ONLY, "true", NULL), op;

	for (int i = 0; i < LEFT; i++) {
		op = pending(TAG + i);
		CHECK_OK(attach(&op, never, NULL, MPI_STATUS_IGNORE, i ? cr : other));
	}
	left_out += LEFT;
	if (!captured) {
		captured = tmpfile();
		fflush(stderr);
		saved_stderr = dup(STDERR_FILENO);
		dup2(fileno(captured), STDERR_FILENO);
		after_finalize = look_at_the_report;
	}
}

CONFORMANCE_BOTH(s6_calls_after_fork, 1, multiple, "In the child of a fork contd's calls fail cleanly")
{
	MPI_Request cr = new_cr(SIGNAL_SAFE, "true", NULL), made = MPI_REQUEST_NULL, op = MPI_REQUEST_NULL;
	struct contd_group *group = NULL;
	struct seen seen = {0};
	int status = -1;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		alarm(20);
		CHECK(init_cr(MPI_INFO_NULL, &made) != MPI_SUCCESS);
		CHECK(made == MPI_REQUEST_NULL);
		CHECK(attach(&op, never, NULL, MPI_STATUS_IGNORE, cr) != MPI_SUCCESS);
		CHECK_EQ(contd_init(NULL), -ECHILD);
		CHECK_EQ(contd_group_create(NULL, &group), -ECHILD);
		CHECK_EQ(contd_thread_attach(NULL), -ECHILD);
		CHECK(*contd_error_text());
		contd_compute_begin();
		compute_ms(20);
		contd_compute_end();
		fflush(NULL);
		_exit(failures() != 0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

/* Programs that do not link contd: another one does this, and gets the library's name from here. */
CONFORMANCE_TEST(s6_dlclose, 1, none, "A program may load contd, leave continuations outstanding and unload it")
{
	char self_name[1000] = "", other[1100];
	Dl_info info;
	void *address = dlsym(RTLD_DEFAULT, "MPI_Continue_init");
	ssize_t length = readlink("/proc/self/exe", self_name, sizeof(self_name) - 1);

	if (!CHECK(length > 0 && address && dladdr(address, &info)))
		return;
	if (!strstr(info.dli_fname, ".so")) {
		skip("contd is linked statically");
		return;
	}
	snprintf(other, sizeof(other), "%s_dlclose", self_name);
	execl(other, other, info.dli_fname, (char *)NULL);
	CHECK(!"the other program could not be started");
}

/* --------------------------------------------------------------------------------------------------- section 11 --- */

/* Every call that can fail by its arguments alone. */
CONFORMANCE_TEST(s11_error_texts, 1, single, "A call that fails gives -errno, and a text that says what to do")
{
	struct contd_group_attr bad = {.size = sizeof(bad), .flags = 1u << 31, .max_poll = -1};
	struct contd_daemon_attr no_daemon = {.size = 1};
	struct contd_thread_attr no_thread = {.size = 1};
	struct contd_stats no_stats = {.size = 1};
	struct contd_handle handle = {NULL, 0};
	struct contd_group *group = NULL;
	MPI_Request cr = new_cr(NULL);
	int complete;

#define FAILS(call) \
	do { \
		CHECK((call) < 0); \
		CHECK(strlen(contd_error_text()) > 10); \
	} while (0)
	FAILS(contd_group_create(NULL, NULL));
	FAILS(contd_group_create(&bad, &group));
	FAILS(contd_group_destroy(NULL));
	FAILS(contd_group_test(NULL, &complete));
	FAILS(contd_group_wait(NULL, 0));
	FAILS(contd_cancel(handle));
	FAILS(contd_event_continue(1, NULL, NULL, NULL, NULL, NULL));
	FAILS(contd_event_complete(NULL, 0));
	FAILS(contd_word_continue(NULL, NULL, NULL, NULL, NULL));
	FAILS(contd_group_continue(NULL, NULL, NULL, NULL, NULL));
	FAILS(contd_thread_attach(&no_thread));
	FAILS(contd_daemon_start(&no_daemon));
	FAILS(contd_stats_get(&no_stats));
#undef FAILS
	CHECK(group == NULL);
	free_cr(&cr);
}

CONFORMANCE_TEST(s11_settings_out_of_range, 1, single, "A setting out of range is refused, and can be put right")
{
	static const char *const names[] = {"CONTD_TICK_MIN_NS", "CONTD_OVERHEAD_PERCENT", "CONTD_SCAN_COUNT",
					    "CONTD_SIGNAL", "CONTD_AGENT"};
	static const char *const values[] = {"1", "99", "0", "9", "somebody"};
	MPI_Request cr;

	/* They are read when contd is started: by the first CR of the program. */
	for (int i = 0; i < 5; i++) {
		step(names[i]);
		setenv(names[i], values[i], 1);
		poison(&cr, sizeof(cr));
		CHECK(init_cr(MPI_INFO_NULL, &cr) != MPI_SUCCESS);
		CHECK(is_poison(&cr, sizeof(cr)));
		CHECK(strlen(contd_error_text()) > 10);
		unsetenv(names[i]);
	}
	cr = new_cr(NULL);
	free_cr(&cr);
}

static atomic_int foreign_signals;

static void foreign_handler(int signo)
{
	(void)signo;
	atomic_fetch_add(&foreign_signals, 1);
}

CONFORMANCE_TEST(s11_signal_taken, 1, single,
		 "A signal that the program uses is refused, and chained where that is asked for")
{
	int signo = SIGRTMAX - 3;
	struct sigaction mine = {.sa_handler = foreign_handler}, now;
	struct seen seen = {0};
	MPI_Request cr, op;

	CHECK_EQ(sigaction(signo, &mine, NULL), 0);
	poison(&cr, sizeof(cr));
	CHECK(init_cr(MPI_INFO_NULL, &cr) != MPI_SUCCESS);
	CHECK(is_poison(&cr, sizeof(cr)));
	CHECK(strlen(contd_error_text()) > 10);
	CHECK_EQ(sigaction(signo, NULL, &now), 0);
	CHECK(now.sa_handler == foreign_handler);
	raise(signo);
	CHECK_EQ(foreign_signals, 1);
	setenv("CONTD_SIGNAL_CHAIN", "1", 1);
	cr = new_cr(SIGNAL_SAFE, "true", NULL);
	op = pending(TAG);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	raise(signo);
	CHECK_EQ(foreign_signals, 2);
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_TEST(s11_no_timer, 1, single, "No timer can be made: an error, and what needs none goes on working")
{
	struct rlimit before, none;
	MPI_Info info = new_info(SIGNAL_SAFE, "true", NULL);
	MPI_Request cr, op = MPI_REQUEST_NULL;
	struct seen seen = {0};
	int rc;

	CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	none = before;
	none.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	poison(&cr, sizeof(cr));
	rc = init_cr(info, &cr);
	CHECK(rc != MPI_SUCCESS);
	CHECK(is_poison(&cr, sizeof(cr)));
	CHECK(strlen(contd_error_text()) > 10);
	cr = new_cr(NULL);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
	cr = new_cr(SIGNAL_SAFE, "true", NULL);
	free_cr(&cr);
	MPI_Info_free(&info);
}
