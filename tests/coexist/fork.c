/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * New processes of every kind while the parent is ticked as fast as can be, hundreds of times each. A child is never
 * ticked, and what is pending in the parent is not its business.
 */
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "coexist.h"

extern char **environ;

static atomic_int ran_in; /* the process that a callback ran in, if not the parent; each process looks at its copy */
static pid_t parent;

static void note_process(void)
{
	pid_t me = getpid();

	if (me != parent)
		atomic_store(&ran_in, me);
}

static void begin(void)
{
	parent = getpid();
	ticking_begin();
	feed_begin(note_process);
}

static void end(void)
{
	feed_end();
	ticking_end();
	CHECK_EQ(atomic_load(&ran_in), 0);
}

static void child_ends_with(pid_t pid, int expected)
{
	int status = -1;
	pid_t got;

	if (pid <= 0)
		DIE("no child: %s", strerror(errno));
	got = waitpid(pid, &status, 0); /* restarted */
	CHECK_EQ(got, pid);
	if (WIFSIGNALED(status))
		DIE("the child was killed by signal %d", WTERMSIG(status));
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), expected);
}

static void work(unsigned n)
{
	for (volatile unsigned k = 0; k < n; k++)
		;
}

static void many_forks(void)
{
	begin();
	for (int i = 0; i < 1500; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			unsigned long long ran = atomic_load(&feed_ran);

			work(20000);
			if (contd_poll(0) != -ECHILD || atomic_load(&ran_in) || atomic_load(&feed_ran) != ran)
				_exit(2);
			_exit(i % 100);
		}
		child_ends_with(pid, i % 100);
	}
	end();
}

/* A large process: copying its page tables takes longer than a tick, and fork must get through nevertheless. */
static void large_forks(void)
{
	size_t bytes = 64u << 20;
	char *p = malloc(bytes);

	CHECK(p);
	memset(p, 1, bytes);
	begin();
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(p[(size_t)i << 20] != 1);
		child_ends_with(pid, 0);
	}
	end();
	free(p);
}

static void forks_inside(bool guard)
{
	begin();
	for (int i = 0; i < 500; i++) {
		pid_t pid;

		if (guard)
			contd_guard_begin();
		else
			contd_compute_begin();
		work(10000);
		pid = fork();
		work(10000);
		if (guard)
			contd_guard_end();
		else
			contd_compute_end();
		if (pid == 0)
			_exit(contd_poll(0) != -ECHILD || atomic_load(&ran_in));
		child_ends_with(pid, 0);
	}
	end();
}

static void forks_in_regions(void)
{
	forks_inside(false);
}

static void forks_in_guards(void)
{
	forks_inside(true);
}

/* As a child of fork() may use contd after exec, and so may one of vfork() and posix_spawn(). */
static char child_case[] = "child_of_exec";

static void child_of_exec(void)
{
	struct sigaction now;

	CHECK_SYS(sigaction(OURS, NULL, &now));
	CHECK(now.sa_handler == SIG_DFL);
	work(200000); /* nothing comes from before the exec: it would kill this process */
	ticking_begin();
	feed_begin(NULL);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > 20);
	feed_end();
	ticking_end();
}

static void exec_in_child(void)
{
	/* The parent's own program, by a path that its children understand, too. */
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *argv[] = {path, child_case, NULL};

	CHECK(n > 0);
	begin();
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execv(path, argv);
			_exit(3);
		}
		child_ends_with(pid, 0);
		pid = -1;
		CHECK_EQ(posix_spawn(&pid, path, NULL, NULL, argv, environ), 0);
		child_ends_with(pid, 0);
	}
	end();
}

/* ---------------------------------------------------------------------------- exec by a thread that is attached --- */

/* A signal that is pending for a thread survives exec, but the handler does not: a signal of contd's would kill the
 * program. */
static char after_case[] = "after_exec";

static void after_exec(void)
{
	struct sigaction now;
	sigset_t pending, ours;

	CHECK_SYS(sigaction(OURS, NULL, &now));
	CHECK(now.sa_handler == SIG_DFL);
	CHECK_SYS(sigpending(&pending));
	CHECK_EQ(sigismember(&pending, OURS), 0);
	sigemptyset(&ours);
	sigaddset(&ours, OURS);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	work(200000);
}

static void become(char *which)
{
	static char path[4096];
	char *argv[] = {path, which, NULL};

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) > 0)
		execv(path, argv);
	DIE("execv: %s", strerror(errno));
}

static void ignore_status(int status, void *data)
{
	(void)status;
	(void)data;
}

static void *complete(void *event)
{
	MUST(contd_event_complete(event, 0));
	return NULL;
}

/* A notification is kept back until the exec. */
static void exec_notified(void)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	struct contd_event event = CONTD_EVENT_INIT, *events[] = {&event};
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_CALLER};
	struct contd_group *group;
	sigset_t ours, pending;
	pthread_t thread;

	MUST(contd_init(&c));
	MUST(contd_thread_attach(NULL));
	MUST(contd_group_create(&attr, &group));
	MUST(contd_event_continue(1, events, ignore_status, NULL, group, NULL));
	sigemptyset(&ours);
	sigaddset(&ours, OURS);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	CHECK_EQ(pthread_create(&thread, NULL, complete, &event), 0);
	pthread_join(thread, NULL);
	CHECK_SYS(sigpending(&pending));
	CHECK_EQ(sigismember(&pending, OURS), 1);
	become(after_case);
}

static void exec_while_notified(void)
{
	ticking_begin();
	feed_begin(NULL);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > 20);
	become(after_case);
}

static void exec_often(void (*how)(void), int times)
{
	for (int i = 0; i < times; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			how();
			_exit(3);
		}
		child_ends_with(pid, 0);
	}
}

static void exec_of_attached(void)
{
	exec_often(exec_notified, 3);
}

static void exec_beside_completer(void)
{
	exec_often(exec_while_notified, 100);
}

/* --------------------------------------------------------------------------------------------- vfork and others --- */

/* The child of vfork() runs in the parent's memory, on the thread's stack; the thread itself is stopped. */
static void many_vforks(void)
{
	begin();
	for (int i = 0; i < 1500; i++) {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(7);
		child_ends_with(pid, 7);
	}
	end();
}

static void many_clones(void)
{
	begin();
	for (int i = 0; i < 1000; i++) {
		/* Past glibc, which then can't tell contd: such a child must not call contd. */
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

		if (pid == 0) {
			work(10000);
			_exit(8);
		}
		child_ends_with(pid, 8);
	}
	end();
}

static int cloned(void *data)
{
	work(*(unsigned *)data);
	return 9;
}

/* In the parent's memory, beside it. */
static void many_clones_of_memory(void)
{
	enum { STACK = 64 << 10 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	unsigned steps = 10000;

	CHECK(stack != MAP_FAILED);
	begin();
	for (int i = 0; i < 500; i++) {
		pid_t pid = clone(cloned, stack + STACK, CLONE_VM | CLONE_FILES | SIGCHLD, &steps);

		child_ends_with(pid, 9);
	}
	end();
	munmap(stack, STACK);
}

static void many_spawns(void)
{
	char program[] = "true", *argv[] = {program, NULL};

	begin();
	for (int i = 0; i < 200; i++) {
		pid_t pid = -1;

		CHECK_EQ(posix_spawnp(&pid, program, NULL, NULL, argv, environ), 0);
		child_ends_with(pid, 0);
	}
	end();
}

static void many_systems(void)
{
	begin();
	for (int i = 0; i < 150; i++) {
		int status = system("exit 5");

		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 5);
	}
	end();
}

static void many_popens(void)
{
	begin();
	for (int i = 0; i < 100; i++) {
		FILE *f = popen("echo one; echo two; exit 4", "r");
		char a[16] = "", b[16] = "";

		CHECK(f);
		CHECK(fgets(a, sizeof(a), f) && strcmp(a, "one\n") == 0);
		CHECK(fgets(b, sizeof(b), f) && strcmp(b, "two\n") == 0);
		CHECK(!fgets(a, sizeof(a), f) && feof(f));
		CHECK_EQ(WEXITSTATUS(pclose(f)), 4);
	}
	end();
}

/* By several attached threads at once. */
static void *forking(void *data)
{
	(void)data;
	MUST(contd_thread_attach(NULL));
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(contd_poll(0) != -ECHILD);
		child_ends_with(pid, 0);
	}
	MUST(contd_thread_detach());
	return NULL;
}

static void forks_of_threads(void)
{
	pthread_t thread[3];

	begin();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, forking, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	end();
}

static const struct coexist_case cases[] = {
	{"fork", many_forks},
	{"large", large_forks},
	{"in_regions", forks_in_regions},
	{"in_guards", forks_in_guards},
	{"exec", exec_in_child},
	{"exec_of_attached", exec_of_attached},
	{"exec_beside_completer", exec_beside_completer},
	{"vfork", many_vforks},
	{"clone", many_clones},
	{"clone_memory", many_clones_of_memory},
	{"posix_spawn", many_spawns},
	{"system", many_systems},
	{"popen", many_popens},
	{"threads", forks_of_threads},
	/* no test, but what those become that call exec */
	{.name = "child_of_exec", child_of_exec},
	{.name = "after_exec", after_exec},
};

COEXIST_CASES(cases)
