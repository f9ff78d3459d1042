/* SPDX-License-Identifier: BSD-3-Clause */
/* contd_configure(): each setting takes effect while everything runs, or all stays as it was. */
#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "source.h"
#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/limits.h"
#include "dispatch/react.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "signal/attached.h"
#include "signal/budget.h"

TestSuite(configure, .timeout = WATCHDOG);

#define CONFIG contd__config

static struct contd_config fresh(void)
{
	return (struct contd_config){.size = sizeof(struct contd_config)};
}

static int configure_agent(int agent)
{
	struct contd_config c = fresh();

	c.agent = agent;
	return contd_configure(&c);
}

/* --------------------------------------------------------------------------------------------------- the daemon --- */

static pid_t daemon_tid;

static void tid_cb(int status, void *data)
{
	(void)status;
	(void)data;
	if (contd__self.context == CONTEXT_DAEMON)
		contd__store_release(&daemon_tid, (pid_t)syscall(SYS_gettid));
}

/* The daemon's thread; it runs. */
static pid_t daemon_thread(void)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g = group_new(CONTD_THREAD_ANY, -1);

	contd__store(&daemon_tid, 0);
	must(contd_event_continue(1, es, tid_cb, NULL, g, NULL));
	must(contd_event_complete(&e, 0));
	await(contd__load_acquire(&daemon_tid));
	await(contd_group_outstanding(g) == 0);
	must(contd_group_destroy(g));
	return daemon_tid;
}

static const char *comm_of(pid_t tid)
{
	static char name[32];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)tid);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	cr_assert_not_null(fgets(name, sizeof(name), f));
	fclose(f);
	name[strcspn(name, "\n")] = 0;
	return name;
}

static bool any_task_is_called(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "cat /proc/%d/task/*/comm | grep -qx '%s'", (int)getpid(), name);
	return system(command) == 0;
}

static int first_cpu(void)
{
	cpu_set_t set;

	cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int i = CPU_SETSIZE - 1; i >= 0; i--)
		if (CPU_ISSET(i, &set))
			return i;
	return 0;
}

static void has_sched(pid_t tid, int policy, int priority, int level)
{
	struct sched_param param;

	cr_assert_eq(sched_getscheduler(tid), policy, "%d instead of %d", sched_getscheduler(tid), policy);
	cr_assert_eq(sched_getparam(tid, &param), 0);
	cr_assert_eq(param.sched_priority, priority);
	errno = 0;
	if (policy == SCHED_OTHER || policy == SCHED_BATCH)
		cr_assert_eq(getpriority(PRIO_PROCESS, (id_t)tid), level, "%d", getpriority(PRIO_PROCESS, (id_t)tid));
}

/* The tests may have been started with another nice value or policy, which threads inherit. */
static void own_sched(int level)
{
	struct sched_param none = {0};

	cr_assert_eq(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	cr_assert_eq(setpriority(PRIO_PROCESS, 0, level), 0);
}

static bool may_be_real_time(void)
{
	struct sched_param param = {.sched_priority = 5}, none = {0};
	bool may = sched_setscheduler(0, SCHED_FIFO, &param) == 0;

	sched_setscheduler(0, SCHED_OTHER, &none);
	return may && geteuid() == 0;
}

static int set_daemon(const char *name, const char *cpus, const char *sched)
{
	struct contd_config c = fresh();

	c.daemon_name = name;
	c.daemon_cpus = cpus;
	c.daemon_sched = sched;
	return contd_configure(&c);
}

Test(configure, daemon_name)
{
	char name[] = "fifteen_letters";
	pid_t tid;

	start(CONTD_AGENT_TICK);
	tid = daemon_thread();
	cr_assert_str_eq(comm_of(tid), "contd");
	must(set_daemon(name, NULL, NULL));
	memset(name, 'x', sizeof(name) - 1); /* it was copied */
	cr_assert_str_eq(comm_of(tid), "fifteen_letters");
	cr_assert(any_task_is_called("fifteen_letters"));
	cr_assert_str_eq(CONFIG.daemon_name, "fifteen_letters");
	must_fail(set_daemon("sixteen__letters", NULL, NULL), EINVAL);
	must_fail(set_daemon("", NULL, NULL), EINVAL);
	cr_assert_str_eq(comm_of(tid), "fifteen_letters");
	cr_assert_str_eq(CONFIG.daemon_name, "fifteen_letters");
	/* Another thread, by the same settings. */
	must(configure_agent(CONTD_AGENT_CALLER));
	must(configure_agent(CONTD_AGENT_SPIN));
	cr_assert_str_eq(comm_of(daemon_thread()), "fifteen_letters");
	for (unsigned i = 0; i < 50; i++) {
		char other[16];

		snprintf(other, sizeof(other), "name%u", i);
		must(set_daemon(other, NULL, NULL));
		cr_assert_str_eq(CONFIG.daemon_name, other);
		must_fail(set_daemon("another", "x", NULL), EINVAL);
		cr_assert_str_eq(CONFIG.daemon_name, other);
	}
	cr_assert_str_eq(comm_of(daemon_thread()), "name49");
	cr_assert_eq(contd_fini(), 0);
	/* The next life begins with the default. */
	start(CONTD_AGENT_TICK);
	cr_assert_str_eq(comm_of(daemon_thread()), "contd");
	cr_assert_eq(contd_fini(), 0);
}

/* In the C library's place. 0, or as many processors as the kernel then seems to have; it refuses the scheduling. */
static size_t kernel_cpus;

int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	static __typeof__(pthread_setschedparam) *real;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_setschedparam");
	return kernel_cpus ? EPERM : real(thread, policy, param);
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
	static __typeof__(pthread_getaffinity_np) *real;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_getaffinity_np");
	return size * 8 < kernel_cpus ? EINVAL : real(thread, size, set);
}

/* A kernel for so many processors refuses smaller sets; what is put back must have been read. */
Test(configure, daemon_cpus_of_a_large_machine)
{
	cpu_set_t set, whole;
	char text[64];
	pid_t tid;

	sched_getaffinity(0, sizeof(whole), &whole);
	start(CONTD_AGENT_TICK);
	tid = daemon_thread();
	kernel_cpus = 4096;
	snprintf(text, sizeof(text), "%d,4095", first_cpu());
	must_fail(set_daemon(NULL, text, "fifo:1"), EPERM);
	cr_assert_eq(sched_getaffinity(tid, sizeof(set), &set), 0);
	cr_assert(CPU_EQUAL(&set, &whole));
	must(set_daemon(NULL, text, NULL));
	cr_assert_eq(sched_getaffinity(tid, sizeof(set), &set), 0);
	cr_assert_eq(CPU_COUNT(&set), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, daemon_cpus)
{
	cpu_set_t set, whole;
	char text[64];
	pid_t tid;
	int cpu = first_cpu();

	sched_getaffinity(0, sizeof(whole), &whole);
	start(CONTD_AGENT_TICK);
	tid = daemon_thread();
	cr_assert_eq(sched_getaffinity(tid, sizeof(set), &set), 0);
	cr_assert(CPU_EQUAL(&set, &whole));
	snprintf(text, sizeof(text), "%d", cpu);
	must(set_daemon(NULL, text, NULL));
	cr_assert_eq(sched_getaffinity(tid, sizeof(set), &set), 0);
	cr_assert_eq(CPU_COUNT(&set), 1);
	cr_assert(CPU_ISSET((unsigned)cpu, &set));
	snprintf(text, sizeof(text), "0-%d,%d", cpu, cpu);
	must(set_daemon(NULL, text, NULL));
	cr_assert_eq(sched_getaffinity(tid, sizeof(set), &set), 0);
	cr_assert(CPU_EQUAL(&set, &whole) || CPU_COUNT(&set) <= cpu + 1);
	/* Of this process's own thread nothing has changed. */
	cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	cr_assert(CPU_EQUAL(&set, &whole));
	/* None of them is there. */
	must_fail(set_daemon(NULL, "1023", NULL), EINVAL);
	cr_assert_str_eq(CONFIG.daemon_cpus, text);
	cr_assert_eq(contd_fini(), 0);
}

static const char *const bad_cpus[] = {"",     ",",     "0,", ",0", "0-",  "-1",   "1-0",    "0--1",
				       "a",    "0x0",   " 0", "0 ", "0;1", "8192", "0-8192", "99999999999999999999",
				       "0,,1", "0-1-2", "+0"};
static const char *const bad_sched[] = {"",          "fifo:0",   "fifo:100", "fifo:",     "fifo:x",
					"fifo: 5",   "fifo:+5",  "fifo:5 ",  "rr:-1",     "other:20",
					"other:-21", "batch:x",  "FIFO",     "fif",       "fifo5",
					":5",        "deadline", "idle:1",   "other:5:5", "rr:99999999999999999999"};

/* Malformed ones are refused whether a daemon runs or not, and change nothing. */
Test(configure, daemon_settings_that_are_malformed)
{
	for (int agent = CONTD_AGENT_CALLER; agent <= CONTD_AGENT_TICK; agent++) {
		struct contd_config c = fresh();

		start((enum contd_agent)agent);
		for (size_t i = 0; i < sizeof(bad_cpus) / sizeof(bad_cpus[0]); i++) {
			contd__error_text = NULL;
			cr_assert_eq(set_daemon("other", bad_cpus[i], NULL), -EINVAL, "agent %d, daemon_cpus '%s'",
				     agent, bad_cpus[i]);
			cr_assert(strstr(contd_error_text(), "daemon_cpus"), "%s", contd_error_text());
		}
		for (size_t i = 0; i < sizeof(bad_sched) / sizeof(bad_sched[0]); i++) {
			contd__error_text = NULL;
			cr_assert_eq(set_daemon("other", NULL, bad_sched[i]), -EINVAL, "agent %d, daemon_sched '%s'",
				     agent, bad_sched[i]);
			cr_assert(strstr(contd_error_text(), "daemon_sched"), "%s", contd_error_text());
		}
		cr_assert_str_eq(CONFIG.daemon_name, "contd");
		cr_assert_null(CONFIG.daemon_cpus);
		cr_assert_null(CONFIG.daemon_sched);
		if (agent == CONTD_AGENT_TICK)
			cr_assert_str_eq(comm_of(daemon_thread()), "contd");
		cr_assert_eq(contd_fini(), 0);
		/* At the start, too. */
		c.agent = agent;
		c.daemon_cpus = "one";
		must_fail(contd_init(&c), EINVAL);
		c.daemon_cpus = NULL;
		c.daemon_sched = "best";
		must_fail(contd_init(&c), EINVAL);
		setenv("CONTD_DAEMON_SCHED", "worst", 1);
		c.daemon_sched = NULL;
		must_fail(contd_init(&c), EINVAL);
		unsetenv("CONTD_DAEMON_SCHED");
		must_fail(contd_fini(), EPERM);
	}
}

/* The program itself has this nice value. */
static void daemon_sched(int own)
{
	pid_t tid;

	if (!may_be_real_time())
		cr_skip_test("no privilege for SCHED_FIFO here");
	own_sched(own);
	start(CONTD_AGENT_BLOCK);
	tid = daemon_thread();
	has_sched(tid, SCHED_OTHER, 0, own);
	must(set_daemon(NULL, NULL, "fifo:5"));
	has_sched(tid, SCHED_FIFO, 5, 0);
	must(set_daemon(NULL, NULL, "rr"));
	has_sched(tid, SCHED_RR, 1, 0);
	must(set_daemon(NULL, NULL, "batch"));
	has_sched(tid, SCHED_BATCH, 0, 0);
	must(set_daemon(NULL, NULL, "other:5"));
	has_sched(tid, SCHED_OTHER, 0, 5);
	must(set_daemon(NULL, NULL, "batch:-3"));
	has_sched(tid, SCHED_BATCH, 0, -3);
	must(set_daemon(NULL, NULL, "idle"));
	has_sched(tid, SCHED_IDLE, 0, 0);
	must(set_daemon(NULL, NULL, "other"));
	has_sched(tid, SCHED_OTHER, 0, 0);
	/* The thread that configured is as it was; and what is in force holds for the next daemon. */
	has_sched(0, SCHED_OTHER, 0, own);
	must(set_daemon(NULL, NULL, "fifo:7"));
	must(configure_agent(CONTD_AGENT_REGION));
	must(configure_agent(CONTD_AGENT_TICK));
	has_sched(daemon_thread(), SCHED_FIFO, 7, 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, daemon_sched)
{
	daemon_sched(0);
}

Test(configure, daemon_sched_of_a_nice_program)
{
	daemon_sched(10);
}

/* A refused policy leaves the nice value as it was: without privilege it could not be put back. */
Test(configure, daemon_sched_refused_halfway)
{
	struct rlimit none = {0, 0};
	pid_t tid;

	if (geteuid() != 0)
		cr_skip_test("only root has privileges to drop");
	own_sched(0);
	setrlimit(RLIMIT_NICE, &none);
	start(CONTD_AGENT_TICK);
	tid = daemon_thread();
	cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	prctl(PR_SET_DUMPABLE, 1); /* sanitizers look into the process at its end */
	must(set_daemon(NULL, NULL, "idle"));
	must_fail(set_daemon(NULL, NULL, "other:5"), EPERM); /* sched(7): none leaves "idle" without RLIMIT_NICE */
	cr_assert_eq(sched_getscheduler(tid), SCHED_IDLE);
	cr_assert_eq(getpriority(PRIO_PROCESS, (id_t)tid), 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, daemon_sched_without_privilege)
{
	struct rlimit none = {0, 0};
	struct contd_config c = fresh();
	cpu_set_t before, after;
	char text[16];
	pid_t tid;

	if (geteuid() != 0)
		cr_skip_test("only root has privileges to drop");
	own_sched(0);
	setrlimit(RLIMIT_RTPRIO, &none);
	setrlimit(RLIMIT_NICE, &none);
	start(CONTD_AGENT_TICK);
	tid = daemon_thread();
	cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	prctl(PR_SET_DUMPABLE, 1); /* sanitizers look into the process at its end */
	snprintf(text, sizeof(text), "%d", first_cpu());
	sched_getaffinity(tid, sizeof(before), &before);
	for (unsigned i = 0; i < 3; i++) {
		static const char *const too_much[] = {"fifo:5", "rr", "other:-5"};
		int rc = set_daemon("refused", text, too_much[i]);

		cr_assert(rc == -EPERM || rc == -EACCES, "%s: %d", too_much[i], rc);
		cr_assert(strstr(contd_error_text(), "daemon_sched"));
		/* All is as it was: the settings, and the thread. */
		cr_assert_str_eq(CONFIG.daemon_name, "contd");
		cr_assert_null(CONFIG.daemon_cpus);
		cr_assert_null(CONFIG.daemon_sched);
		cr_assert_eq(daemon_thread(), tid);
		cr_assert_str_eq(comm_of(tid), "contd");
		sched_getaffinity(tid, sizeof(after), &after);
		cr_assert(CPU_EQUAL(&before, &after));
		has_sched(tid, SCHED_OTHER, 0, 0);
	}
	must(set_daemon("nice", NULL, "other:5"));
	has_sched(tid, SCHED_OTHER, 0, 5);
	cr_assert_neq(set_daemon(NULL, NULL, "batch:2"), 0, "a nice thread does not get less so without privilege");
	has_sched(tid, SCHED_OTHER, 0, 5);
	cr_assert_str_eq(CONFIG.daemon_sched, "other:5");
	/* An agent that can't be started so is refused, and the one before goes on. */
	must(configure_agent(CONTD_AGENT_REGION));
	c.agent = CONTD_AGENT_SPIN;
	c.daemon_sched = "fifo:5";
	cr_assert_eq(contd_configure(&c), -EPERM);
	cr_assert_eq(CONFIG.agent, CONTD_AGENT_REGION);
	cr_assert_eq(contd__wake.daemon_mode, 0);
	must_fail(contd_daemon_stop(), EPERM);
	must(configure_agent(CONTD_AGENT_SPIN));
	daemon_thread();
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(contd_init(&c), -EPERM);
	must_fail(contd_fini(), EPERM);
}

/* ------------------------------------------------------------------------------------------ switching the agent --- */

enum { BATCH = 200 };
static struct contd_event batch[BATCH];
static struct tally batch_tally[BATCH];
static struct contd_group *any;

static void job_complete_batch(void *data)
{
	(void)data;
	for (unsigned i = 0; i < BATCH; i++) {
		must(contd_event_complete(&batch[i], 0));
		if (i % 20 == 0)
			usleep(50);
	}
}

static bool batch_has_run(unsigned times)
{
	for (unsigned i = 0; i < BATCH; i++)
		if (runs(&batch_tally[i]) != times)
			return false;
	return true;
}

Test(configure, agents_in_all_pairs)
{
	static uint64_t word, never;
	struct contd_handle h;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ}, w_never = {&never, 0, 1, CONTD_WORD_EQ};
	struct tally t_word = {0}, t_never = {0};
	struct helper other;
	unsigned round = 0;

	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY | CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&w_never, tally_cb, &t_never, any, &h));
	for (int from = CONTD_AGENT_CALLER; from <= CONTD_AGENT_SPIN; from++)
		for (int to = CONTD_AGENT_CALLER; to <= CONTD_AGENT_SPIN; to++) {
			round++;
			must(configure_agent(from));
			for (unsigned i = 0; i < BATCH; i++) {
				struct contd_event *es[] = {&batch[i]};

				contd_event_init(&batch[i]);
				must(contd_event_continue(1, es, tally_cb, &batch_tally[i], any, NULL));
			}
			must(contd_word_continue(&w, tally_cb, &t_word, any, NULL));
			helper_start(&other, job_complete_batch, NULL);
			must(configure_agent(to));
			__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
			cr_assert_eq(CONFIG.agent, to);
			cr_assert_eq(contd__wake.daemon_mode, to >= CONTD_AGENT_TICK ? (uint32_t)to : 0);
			/* By the daemon, by notifications; the word by ticks, the daemon, or, without any, a call. */
			compute_until(batch_has_run(round));
			if (to == CONTD_AGENT_CALLER)
				contd_poll(0);
			compute_until(runs(&t_word) == round);
			helper_finish(&other);
			if (to == CONTD_AGENT_CALLER)
				compute_until(contd__load(&contd__me->armed) == 0);
			word = 0;
		}
	must(contd_cancel(h));
	cr_assert_eq(runs(&t_never), 0);
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The program's own daemon stays, and waits as the agent says. */
Test(configure, agents_and_the_programs_own_daemon)
{
	struct contd_daemon_attr attr = {sizeof(attr), 200000};
	pid_t tid;

	start(CONTD_AGENT_CALLER);
	must(contd_daemon_start(&attr));
	tid = daemon_thread();
	cr_assert_eq(contd__wake.daemon_mode, CONTD_AGENT_TICK);
	for (int agent = CONTD_AGENT_SPIN; agent >= CONTD_AGENT_CALLER; agent--) {
		must(configure_agent(agent));
		cr_assert_eq(contd__wake.daemon_mode, agent >= CONTD_AGENT_TICK ? (uint32_t)agent : CONTD_AGENT_TICK);
		cr_assert_eq(daemon_thread(), tid);
	}
	must(configure_agent(CONTD_AGENT_BLOCK));
	must(contd_daemon_stop());
	cr_assert_eq(daemon_thread(), tid, "the agent wants it now");
	must_fail(contd_daemon_stop(), EPERM);
	must(configure_agent(CONTD_AGENT_CALLER));
	cr_assert_eq(contd__wake.daemon_mode, 0);
	cr_assert_eq(contd_fini(), 0);
}

/* --------------------------------------------------------------------------------------------- the other fields --- */

static uint64_t helper_tick_ns;

static void job_tick_ns(void *data)
{
	(void)data;
	contd__store_release(&helper_tick_ns, stats_now().tick_ns);
}

/* Two threads tick; both do at the new interval, soon. */
Test(configure, interval_in_force)
{
	/* Each at least twice what a tick costs, also with sanitizers. */
	static const uint64_t intervals[] = {500000, 5000000, 400000, 900000000, 300000, 1000000};
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_handle h;
	struct helper other;
	struct tally t = {0};

	start(CONTD_AGENT_REGION);
	helper_create(&other, true);
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&w, tally_cb, &t, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), &h));
	for (unsigned i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
		struct contd_config c = fresh();

		c.tick_min_ns = c.tick_max_ns = intervals[i];
		must(contd_configure(&c));
		compute_until(stats_now().tick_ns == intervals[i]);
		do
			helper_do(&other, job_tick_ns, NULL);
		while (contd__load_acquire(&helper_tick_ns) != intervals[i]);
		cr_assert_eq(CONFIG.tick_min_ns, intervals[i]);
	}
	must(contd_cancel(h));
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The tick that sees the change comes soon, and it alone: a thread that handles it late is not flooded meanwhile. */
Test(configure, one_early_tick)
{
	static uint64_t word;
	struct contd_config c = fresh();
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct itimerspec timer;
	struct contd_handle h;
	struct tally t = {0};
	sigset_t ours;

	c.overhead_percent = 0.1;
	c.tick_max_ns = 10000000000;
	must(contd_init(&c));
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&w, tally_cb, &t, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), &h));
	sigemptyset(&ours);
	sigaddset(&ours, contd__signals.signal_number);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	must(contd_configure(&c));
	timer_gettime(contd__me->timer, &timer);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	cr_assert_geq((uint64_t)timer.it_interval.tv_sec * 1000000000u + (uint64_t)timer.it_interval.tv_nsec,
		      contd__budget_interval_sig(0));
	cr_assert_geq(stats_now().tick_ns, contd__budget_interval_sig(0));
	must(contd_cancel(h));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static void watchdog_one(const struct contd_late *late, void *data)
{
	(void)late;
	(void)data;
}

Test(configure, what_handlers_go_by)
{
	struct contd_config c = fresh();
	uint64_t before;
	struct contd_group *g;
	static struct tally t;

	c.agent = CONTD_AGENT_CALLER;
	c.tick_min_ns = 1000;
	c.tick_max_ns = 10000000000;
	must(contd_init(&c));
	must(contd_thread_attach(NULL));
	before = contd__budget_interval_sig(0);
	c = fresh();
	c.overhead_percent = 0.2;
	must(contd_configure(&c));
	cr_assert_geq(contd__budget_interval_sig(0), before * 99 / 10);
	cr_assert_leq(contd__budget_interval_sig(0), before * 101 / 10);
	cr_assert_leq(contd__limits.purse_most, contd__clock.second / 5000 + 1);
	c = fresh();
	c.scan_count = 3;
	c.scan_ns = 1000000000;
	must(contd_configure(&c));
	cr_assert_eq(CONFIG.overhead_percent, 0.2, "what is not given stays");
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_ENQUEUE_COMPLETE, -1);
	contd_guard_begin();
	for (unsigned i = 0; i < 10; i++)
		must(contd_event_continue(0, NULL, tally_cb, &t, g, NULL));
	cr_assert_eq(contd__react_sig(LOOK), 3);
	c = fresh();
	c.scan_count = 5;
	must(contd_configure(&c));
	cr_assert_eq(contd__react_sig(LOOK), 5);
	cr_assert_eq(CONFIG.scan_ns, 1000000000);
	contd_guard_end();
	must(contd_group_wait(g, -1));
	c = fresh();
	c.scan_ns = 2000;
	c.watchdog_ns = 1000000000;
	c.watchdog = watchdog_one;
	c.watchdog_data = &c;
	cr_assert_eq(contd__limits.late_ticks, 0);
	must(contd_configure(&c));
	cr_assert_eq(contd__limits.scan_ticks, (uint64_t)(2000 * contd__clock.ticks_per_ns));
	cr_assert_eq(contd__limits.late_ticks, (uint64_t)(1e9 * contd__clock.ticks_per_ns));
	cr_assert(CONFIG.watchdog == watchdog_one);
	cr_assert_eq(CONFIG.watchdog_data, &c);
	cr_assert(any_task_is_called("contd-watchdog"));
	c = fresh();
	must(contd_configure(&c)); /* nothing */
	cr_assert(CONFIG.watchdog == watchdog_one);
	cr_assert_eq(CONFIG.scan_ns, 2000);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------------------------------------------------ refused --- */

#define refused(field_, value_, code_) \
	do { \
		struct contd_config c_ = fresh(), was_ = CONFIG; \
		c_.scan_count = 777; /* one that is good beside it is not taken either */ \
		c_.daemon_name = "refused"; \
		c_.field_ = (value_); \
		must_fail(contd_configure(&c_), code_); \
		cr_assert(strstr(contd_error_text(), #field_), "%s", contd_error_text()); \
		cr_assert_eq(memcmp(&was_, &CONFIG, sizeof(was_)), 0, "something has changed: %s", #field_); \
		cr_assert_str_eq(CONFIG.daemon_name, "first"); \
		cr_assert_eq(contd__limits.scan_count, was_.scan_count); \
	} while (0)

Test(configure, refused_ones_change_nothing)
{
	struct contd_config c = fresh();
	pid_t tid;

	c.agent = CONTD_AGENT_TICK;
	c.daemon_name = "first";
	must(contd_init(&c));
	tid = daemon_thread();
	refused(agent, CONTD_AGENT_SPIN + 1, EINVAL);
	refused(agent, -1, EINVAL);
	refused(overhead_percent, 0.09, EINVAL);
	refused(overhead_percent, 50.1, EINVAL);
	refused(overhead_percent, -1.0, EINVAL);
	refused(tick_min_ns, 999u, EINVAL);
	refused(tick_min_ns, 1000000001u, EINVAL);
	refused(tick_max_ns, 9999u, EINVAL); /* shorter than the shortest in force */
	refused(tick_max_ns, 10000000001u, EINVAL);
	refused(scan_ns, 999u, EINVAL);
	refused(watchdog_ns, 999u, EINVAL);
	refused(watchdog_ns, 1000000000001u, EINVAL);
	refused(daemon_cpus, "0-", EINVAL);
	refused(daemon_sched, "fifo:100", EINVAL);
	refused(daemon_cpus, "1023", EINVAL); /* the kernel's word */
	refused(signal_number, SIGRTMIN, EBUSY);
	refused(signal_taken, CONTD_SIGNAL_CHAIN, EBUSY);
	refused(bell, CONTD_BELL_OFF, EBUSY);
	refused(bell, CONTD_BELL_OFF + 1, EINVAL);
	cr_assert_eq(daemon_thread(), tid);
	cr_assert_str_eq(comm_of(tid), "first");
	/* A setting that cannot be changed may be given with its present value. */
	c = fresh();
	c.signal_number = SIGRTMAX - 3;
	c.bell = CONTD_BELL_ON;
	must(contd_configure(&c));
	for (size_t size = 0; size < 2 * sizeof(c); size++) {
		c.size = size;
		if (size == 0 || size % 8)
			must_fail(contd_configure(&c), EINVAL);
	}
	must_fail(contd_configure(NULL), EINVAL);
	cr_assert_eq(contd_fini(), 0);
}

/* The watchdog that one has started goes with it. */
Test(configure, refused_with_a_watchdog)
{
	struct contd_config c = fresh();

	c.watchdog_ns = 1000000000;
	c.daemon_cpus = "1023";
	start(CONTD_AGENT_TICK);
	must_fail(contd_configure(&c), EINVAL);
	cr_assert_eq(CONFIG.watchdog_ns, 0);
	cr_assert_not(any_task_is_called("contd-watchdog"));
	/* One that was there stays. */
	c.daemon_cpus = NULL;
	must(contd_configure(&c));
	c.daemon_cpus = "1023";
	must_fail(contd_configure(&c), EINVAL);
	cr_assert(any_task_is_called("contd-watchdog"));
	cr_assert_eq(contd_fini(), 0);
	cr_assert_not(any_task_is_called("contd-watchdog"));
}

Test(configure, no_thread_to_be_had)
{
	struct rlimit none = {0, 0};
	struct contd_config c = fresh();

	if (geteuid() != 0)
		cr_skip_test("a user that has no threads at all is needed");
	start(CONTD_AGENT_CALLER);
	setrlimit(RLIMIT_NPROC, &none);
	cr_assert_eq(setresuid(65533, 65533, 65533), 0);
	prctl(PR_SET_DUMPABLE, 1); /* sanitizers look into the process at its end */
	must_fail(configure_agent(CONTD_AGENT_TICK), EAGAIN);
	cr_assert_eq(CONFIG.agent, CONTD_AGENT_CALLER);
	cr_assert_eq(contd__wake.daemon_mode, 0);
	c.watchdog_ns = 5000;
	must_fail(contd_configure(&c), EAGAIN);
	cr_assert_eq(CONFIG.watchdog_ns, 0);
	cr_assert_eq(contd__limits.late_ticks, 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, no_descriptor_to_be_had)
{
	struct rlimit few = {3, 3};

	start(CONTD_AGENT_TICK);
	setrlimit(RLIMIT_NOFILE, &few);
	must_fail(configure_agent(CONTD_AGENT_BLOCK), EMFILE);
	cr_assert_eq(CONFIG.agent, CONTD_AGENT_TICK);
	cr_assert_eq(contd__wake.daemon_mode, CONTD_AGENT_TICK);
	daemon_thread();
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, environment_has_the_last_word)
{
	struct contd_config c = fresh();

	setenv("CONTD_SCAN_COUNT", "11", 1);
	setenv("CONTD_DAEMON_NAME", "by-env", 1);
	start(CONTD_AGENT_TICK);
	cr_assert_str_eq(comm_of(daemon_thread()), "by-env");
	c.scan_count = 5;
	c.scan_ns = 5000;
	c.agent = CONTD_AGENT_SPIN;
	c.daemon_name = "by-program";
	must(contd_configure(&c));
	cr_assert_eq(CONFIG.scan_count, 11);
	cr_assert_eq(CONFIG.scan_ns, 5000);
	cr_assert_eq(CONFIG.agent, CONTD_AGENT_SPIN);
	cr_assert_str_eq(CONFIG.daemon_name, "by-env");
	cr_assert_str_eq(comm_of(daemon_thread()), "by-env");
	/* It is read again each time. */
	setenv("CONTD_SCAN_COUNT", "12", 1);
	setenv("CONTD_DAEMON_NAME", "by-env-again", 1);
	must(contd_configure(&c));
	cr_assert_eq(CONFIG.scan_count, 12);
	cr_assert_str_eq(comm_of(daemon_thread()), "by-env-again");
	setenv("CONTD_AGENT", "tock", 1);
	must_fail(contd_configure(&c), EINVAL);
	unsetenv("CONTD_AGENT");
	setenv("CONTD_BELL", "0", 1);
	must_fail(contd_configure(&c), EBUSY);
	cr_assert_str_eq(CONFIG.daemon_name, "by-env-again");
	cr_assert_eq(contd_fini(), 0);
}

/* --------------------------------------------------------------------------------------------------- from where --- */

static int callback_rc;

static void configure_cb(int status, void *data)
{
	callback_rc = configure_agent(*(int *)data);
	(void)status;
}

Test(configure, from_a_callback)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	int agent = CONTD_AGENT_SPIN;
	struct contd_group *safe, *plain;

	start(CONTD_AGENT_CALLER);
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	plain = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	must(contd_thread_attach(NULL));
	/* On a thread. */
	must(contd_event_continue(0, NULL, configure_cb, &agent, plain, NULL));
	cr_assert_eq(contd_poll(0), 1);
	must(callback_rc);
	cr_assert_eq(contd__wake.daemon_mode, CONTD_AGENT_SPIN);
	/* In a region. */
	agent = CONTD_AGENT_CALLER;
	must(contd_event_continue(0, NULL, configure_cb, &agent, plain, NULL));
	contd_compute_begin();
	raise_ours();
	compute_until(contd_group_outstanding(plain) == 0);
	contd_compute_end();
	must(callback_rc);
	cr_assert_eq(contd__wake.daemon_mode, 0);
	/* In the handler elsewhere. */
	agent = CONTD_AGENT_TICK;
	must(contd_event_continue(1, es, configure_cb, &agent, safe, NULL));
	complete_quietly(&e, 0);
	raise_ours();
	compute_until(contd_group_outstanding(safe) == 0);
	cr_assert_eq(callback_rc, -EPERM);
	cr_assert_eq(CONFIG.agent, CONTD_AGENT_CALLER);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, from_the_daemon)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	int agent = CONTD_AGENT_CALLER;
	struct contd_group *g;

	start(CONTD_AGENT_TICK);
	g = group_new(CONTD_THREAD_ANY, -1);
	must(contd_event_continue(1, es, configure_cb, &agent, g, NULL));
	must(contd_event_complete(&e, 0));
	await(contd_group_outstanding(g) == 0);
	cr_assert_eq(callback_rc, -EDEADLK);
	cr_assert_eq(CONFIG.agent, CONTD_AGENT_TICK);
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, while_contd_does_not_run)
{
	struct contd_config c = fresh();

	must_fail(contd_configure(&c), EPERM);
	must(contd_init(NULL));
	cr_assert_eq(contd_fini(), 0);
	must_fail(contd_configure(&c), EPERM);
}

static void *configurer(void *data)
{
	unsigned seed = (unsigned)(uintptr_t)data;

	for (unsigned i = 0; i < 60; i++) {
		struct contd_config c = fresh();

		c.agent = CONTD_AGENT_CALLER + (int)((i + seed) % 5);
		c.tick_max_ns = 1000000 * (1 + (i + seed) % 7);
		c.daemon_name = i % 2 ? "odd" : "even";
		c.watchdog_ns = 1000000000 + i;
		c.watchdog = watchdog_one;
		must(contd_configure(&c));
	}
	return NULL;
}

/* Several at once, and everything goes on. */
/* contd ends, and may start again, after a call has checked that it runs and before the call has the lock. */
static bool begins_anew;

static void end_meanwhile(const char *name)
{
	if (strcmp(name, "live_checked") != 0)
		return;
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_eq(contd_fini(), 0);
	if (begins_anew)
		start(CONTD_AGENT_CALLER);
}

static void ends_meanwhile_here(bool anew)
{
	begins_anew = anew;
	start(CONTD_AGENT_CALLER);
	__atomic_store_n(&contd__testpoint_hook, end_meanwhile, __ATOMIC_RELEASE);
}

Test(configure, contd_ends_meanwhile)
{
	struct contd_config c = fresh();

	c.watchdog_ns = 1000000000;
	c.scan_count = 7;
	ends_meanwhile_here(false);
	must_fail(contd_configure(&c), EPERM);
	cr_assert_neq(CONFIG.scan_count, 7);
	cr_assert_not(any_task_is_called("contd-watchdog"));
	ends_meanwhile_here(false);
	must_fail(contd_fini(), EPERM);
	ends_meanwhile_here(false);
	must_fail(contd_daemon_start(NULL), EPERM);
	ends_meanwhile_here(true);
	must(contd_configure(&c));
	cr_assert_eq(CONFIG.scan_count, 7);
	cr_assert_eq(contd_fini(), 0);
}

Test(configure, by_several_threads)
{
	static struct tally t;
	pthread_t thread[3];
	uint64_t n = 0;

	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY | CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, configurer, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < 3; i++) {
		do {
			struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};

			must(contd_event_continue(1, es, tally_cb, &t, any, NULL));
			must(contd_event_complete(&e, 0));
			n++;
			must(contd_group_wait(any, -1));
		} while (pthread_tryjoin_np(thread[i], NULL));
	}
	cr_assert_eq(runs(&t), n);
	cr_assert(strcmp(CONFIG.daemon_name, "odd") == 0 || strcmp(CONFIG.daemon_name, "even") == 0);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}
