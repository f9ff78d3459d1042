/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/*
 * At each of the library's test points: the handler's scan there (interrupted), or the other side of the race (the
 * other tests). Each continuation has run exactly once at the end, or was cancelled and never ran.
 */
#include <dirent.h>

#include <contd/executor.h>

#include "source.h"
#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/event.h"
#include "rcu/table.h"
#include "signal/attached.h"
#include "task/executor.h"

#include "dispatch/carried.h"
#include "dispatch/limits.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/word.h"
#include "rcu/reader.h"

#include <criterion/parameterized.h>

TestSuite(races, .timeout = WATCHDOG);

/* ----------------------------------------------------------------------- the hook --- */

static const char *hook_name;
static void (*hook_act)(void);
static uint32_t hook_hits, hook_limit;
static __thread unsigned hook_depth;

static void hook(const char *name)
{
	/* Acquire: pairs with the release in hook_at; the daemon passes points as well. */
	const char *wanted = contd__load_acquire(&hook_name);

	if (hook_depth || !wanted || strcmp(name, wanted) || contd__load(&hook_hits) >= contd__load(&hook_limit))
		return;
	hook_depth++;
	contd__add(&hook_hits, 1);
	contd__load (&hook_act)();
	hook_depth--;
}

/* At the first `limit` times that the point is passed. */
static void hook_at(const char *name, void (*act)(void), uint32_t limit)
{
	contd__store(&hook_act, act);
	contd__store(&hook_hits, 0);
	contd__store(&hook_limit, limit);
	contd__store_release(&hook_name, name);
	__atomic_store_n(&contd__testpoint_hook, hook, __ATOMIC_RELEASE);
}

static void hook_off(void)
{
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
}

/* -------------------------------------------- a handler's scan at every test point --- */

struct point {
	char name[32];
};

static struct point points[] = {
	{"alloc_before_pop"},
	{"free_before_push"},
	{"mark_summary"},
	{"mark_top"},
	{"mark_root"},
	{"mark_leaf"},
	{"settle_empty"},
	{"settle_cleared"},
	{"root_cleared"},
	{"root_empty"},
	{"grow_before_chunk"},
	{"grow_before_limit"},
	{"publish_pending"},
	{"count_before_exchange"},
	{"complete_ready"},
	{"complete_marked"},
	{"complete_counted"},
	{"complete_leaf_marked"},
	{"carried_over"},
	{"carried_runs"},
	{"fd_disarmed"},
	{"descriptor_loaded"},
	{"finish_freed"},
	{"claim_cleared"},
	{"claim_running"},
	{"scan_pinned"},
	{"scan_group"},
	{"event_attached"},
	{"event_attached_alone"},
	{"event_before_release"},
	{"event_before_exchange"},
	{"event_exchanged"},
	{"cancel_withdrawn"},
	{"cancel_unmarked"},
	{"chain_waiting"},
	{"word_before_live"},
	{"word_holds"},
	{"word_unwatch"},
	{"attach_published"},
	{"detach_begun"},
	{"detach_cleared"},
	{"handler_entered"},
	{"notify_before_send"},
	{"arm_claimed"},
	{"timer_stopped"},
	{"root_marked"},
	{"class_cleared"},
	{"calibrating"},
	{"calibrated"},
	{"regions_taken_back"},
	{"region_told"},
	{"bell_armed"},
	{"bell_taken"},
	{"bell_unasked"},
	{"bell_watched"},
	{"daemon_naps"},
	{"daemon_sleeps"},
	{"daemon_polls"},
	{"daemon_rests"},
	{"task_pushed"},
	{"task_inside"},
	{"task_found"},
	{"executor_sharing"},
	{"executor_sleeps"},
};
#define POINTS (sizeof(points) / sizeof(points[0]))

/* Points that the workload here does not pass, and the files whose tests act there. */
static const struct {
	const char *name, *file;
} elsewhere[] = {
	{"by_handle", "test_executor_edges.c"},
	{"outlet_loaded", "test_executor_edges.c"},
	{"executor_rests", "test_races_move.c"},
	{"executor_read", "test_races_move.c"},
	{"tell_held", "test_executor.c"},
	{"tells_now", "test_executor.c"},
	{"tell_holds", "test_executor.c"},
	{"executor_leaves", "test_executor.c"},
	{"executor_stopped", "test_executor.c"},
	{"look_begun", "test_checkpoint.c"},
	{"calibration_tick", "test_who_runs.c"},
	{"daemon_ends", "test_daemon_life.c"},
	{"watchdog_ends", "test_watchdog.c"},
	{"live_checked", "test_configure.c"},
	{"bell_stray", "test_bell.c"},
	{"bell_disarms", "test_bell.c"},
	{"region_bell_taken", "test_agents.c"},
	{"regions_asked", "test_bell.c"},
	{"inspected", "test_inspect.c"},
	{"unmarked_alone", "test_races_unmarked.c"},
	{"unmarked_pushed", "test_races_unmarked.c"},
	{"unmarked_taken", "test_races_unmarked.c"},
};
#define ELSEWHERE (sizeof(elsewhere) / sizeof(elsewhere[0]))

ParameterizedTestParameters(races, interrupted)
{
	return cr_make_param_array(struct point, points, POINTS);
}

/* Ready continuations for the handler, in groups of the classes that it may serve; one is the workload's group. */
enum { SIDE_GROUPS = 3, SIDES = 3000 };
static struct contd_group *side_group[SIDE_GROUPS];
static struct contd_event side_event[SIDES];
static struct tally side_tally[SIDES];
static uint32_t sides;

static void interrupt(void)
{
	for (unsigned i = 0; i < SIDE_GROUPS; i++) {
		uint32_t next = contd__add(&sides, 1);

		if (next < SIDES)
			complete_quietly(&side_event[next], 0);
	}
	raise_ours();
}

static struct contd_group *signal_group, *plain_group, *poll_group;
enum { MAINS = 400 };
static struct contd_event main_event[MAINS];
static struct tally main_tally[MAINS];
static uint8_t main_cancelled[MAINS];

/* A callback that registers and completes, from wherever it runs. */
static struct tally nested_tally;
static uint32_t nested;
static void nesting_cb(int status, void *data)
{
	tally_cb(status, data);
	if (contd_event_continue(0, NULL, tally_cb, &nested_tally, signal_group, NULL) == 0)
		contd__add(&nested, 1);
}

static uint64_t watched[8] __attribute__((aligned(8)));
static struct tally word_tally[8], chain_tally[4];

static void events_part(void)
{
	struct contd_group *group[] = {signal_group, plain_group, poll_group};
	struct contd_handle handle[MAINS];

	for (unsigned i = 0; i < MAINS; i += 2) {
		struct contd_event *es[] = {&main_event[i], &main_event[i + 1]};

		if (i % 3 == 0)
			must(contd_event_complete(&main_event[i], 0));
		if (i % 12 == 0)
			must(contd_event_complete(&main_event[i + 1], 0));
		must(contd_event_continue(2, es, i % 5 ? tally_cb : nesting_cb, &main_tally[i], group[i / 2 % 3],
					  &handle[i]));
	}
	for (unsigned i = 0; i < MAINS; i += 2) {
		if (i % 7 == 3)
			main_cancelled[i] = contd_cancel(handle[i]) == 0;
		/* The events of cancelled ones have no continuation. */
		if (i % 3)
			must(contd_event_complete(&main_event[i], 0));
		if (i % 12)
			must(contd_event_complete(&main_event[i + 1], 0));
		if (i % 14 == 4)
			main_cancelled[i] = contd_cancel(handle[i]) == 0;
		if (i % 50 == 0)
			contd_poll(0);
	}
}

static void words_part(void)
{
	struct contd_handle handle[8];

	for (unsigned i = 0; i < 8; i++) {
		struct contd_word w = {&watched[i], 0, 1, CONTD_WORD_EQ};

		must(contd_word_continue(&w, tally_cb, &word_tally[i], i % 2 ? signal_group : plain_group, &handle[i]));
	}
	must(contd_cancel(handle[6]));
	for (unsigned i = 0; i < 8; i++)
		__atomic_store_n(&watched[i], 1, __ATOMIC_RELEASE);
	contd_poll(0);
}

static void chain_part(void)
{
	struct contd_group *a = group_new(0, -1), *b = group_new(0, -1);
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_handle h;
	struct tally t = {0};

	must(contd_event_continue(1, es, tally_cb, &t, a, NULL));
	must(contd_group_continue(a, tally_cb, &chain_tally[0], signal_group, NULL));
	must(contd_group_continue(b, tally_cb, &chain_tally[1], signal_group, NULL));
	must(contd_event_complete(&e, 0));
	must(contd_group_wait(a, PATIENCE_SECONDS * 1000000000ll));
	contd_event_init(&e);
	must(contd_event_continue(1, es, tally_cb, &t, a, NULL));
	must(contd_group_continue(a, tally_cb, &chain_tally[2], plain_group, &h));
	must(contd_cancel(h));
	must(contd_event_complete(&e, 0));
	must(contd_group_wait(a, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&t), 2);
	must(contd_group_destroy(a));
	must(contd_group_destroy(b));
}

/* Events that a source completes together, of several groups. */
static struct tally together_tally[EVENTS_TOGETHER];
enum { TOGETHERS = 10 };

static void together_part(void)
{
	struct contd_group *group[] = {signal_group, plain_group, poll_group};
	struct contd_event e[EVENTS_TOGETHER], *es[EVENTS_TOGETHER];

	for (unsigned round = 0; round < TOGETHERS; round++) {
		for (unsigned i = 0; i < EVENTS_TOGETHER; i++) {
			es[i] = &e[i];
			contd_event_init(es[i]);
			must(contd_event_continue(1, &es[i], tally_cb, &together_tally[i], group[i % (round % 3 + 1)],
						  NULL));
		}
		contd__events_complete_sig(es, EVENTS_TOGETHER);
		contd_poll(0);
	}
	must(contd_group_wait(poll_group, PATIENCE_SECONDS * 1000000000ll));
}

/* Operations that carry their continuations: with slots, or taken by the completing thread. */
static void carried_part(void)
{
	struct contd_group *group[] = {signal_group, plain_group, poll_group};
	struct contd_carried c[EVENTS_TOGETHER] = {0}, *cs[EVENTS_TOGETHER];
	struct tally t[EVENTS_TOGETHER] = {0};
	struct contd__taking taking;

	for (unsigned round = 1; round <= TOGETHERS; round++) {
		for (unsigned i = 0; i < EVENTS_TOGETHER; i++) {
			cs[i] = &c[i];
			must(contd__carried_begin(cs[i], tally_cb, &t[i], group[i % (round % 3 + 1)]));
		}
		contd__taking_init(&taking, UINT32_MAX);
		if (round % 2)
			contd__self.carried.take = &taking;
		contd__carried_done_sig(cs, EVENTS_TOGETHER);
		contd__self.carried.take = NULL;
		contd__taken_run(&taking, UINT32_MAX);
		contd_poll(0);
		for (unsigned i = 0; i < EVENTS_TOGETHER; i++) {
			cr_assert(contd_event_is_complete(&c[i].event));
			if (i % (round % 3 + 1) == 2)
				continue;
			compute_until(runs(&t[i]) >= round);
		}
		must(contd_group_wait(poll_group, PATIENCE_SECONDS * 1000000000ll));
		for (unsigned i = 0; i < EVENTS_TOGETHER; i++)
			cr_assert_eq(runs(&t[i]), round);
	}
}

static void complete_it(void *event)
{
	contd_event_complete(event, 0);
}

/* Regions in which the bell is armed, and rung, by this process itself: each operation of the source's is found
 * once. */
static void bells_part(const char *point)
{
	struct contd_event e = CONTD_EVENT_INIT;
	struct contd_bell *bell;
	struct tally t = {0};
	char job[32];

	snprintf(job, sizeof(job), "races-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
	must(contd_bell_open(job, 0, &bell));
	for (unsigned i = 1; i <= 50; i++) {
		source_continue(&source_a, &e, tally_cb, &t, plain_group);
		contd_compute_begin();
		if (strcmp(point, "bell_watched") == 0)
			for (unsigned k = 0; k < 100; k++)
				contd__checkpoint();
		source_finish(&source_a);
		cr_assert_geq(contd_bell_ring(bell), 0);
		while (runs(&t) < i)
			contd_checkpoint();
		contd_compute_end();
		cr_assert_eq(contd__load(&source_a.found), i, "at %s", point);
	}
	contd_bell_close(bell);
}

/* Something becomes ready between two regions: the next one runs it, unless a thread was notified before. */
static void regions_part(void)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct tally t = {0};

	for (unsigned i = 1; i <= 50; i++) {
		contd_compute_begin();
		contd_compute_end();
		contd_event_init(&e);
		must(contd_event_continue(1, es, tally_cb, &t, plain_group, NULL));
		must(contd_event_complete(&e, 0));
		contd_compute_begin();
		compute_until(runs(&t) == i);
		contd_compute_end();
	}
}

/* The daemon looks at a word that never holds, or sleeps on a descriptor, while the rest goes on. */
static void daemon_part(const char *point)
{
	struct contd_event e = CONTD_EVENT_INIT;
	struct tally t = {0};

	for (unsigned i = 1; i <= 20; i++) {
		source_continue(&source_a, &e, tally_cb, &t, side_group[1]);
		usleep(500);
		source_finish(&source_a);
		compute_until(runs(&t) == i);
		cr_assert_eq(contd__load(&source_a.found), i, "at %s", point);
	}
}

static void run_all_of(void *executor)
{
	cr_assert_geq(contd_executor_run(executor, 0, 0), 0);
}

/*
 * Tasks and a continuation of an executor to which this thread is lent; and it sleeps there for a moment. Its later
 * submissions are queued without atomic operations, until another thread comes.
 */
static void executor_part(struct helper *helper)
{
	static struct contd_task task, more[3];
	static struct tally tally[2], more_tally[3];
	struct contd_executor *executor;
	struct contd_group *group = group_new(0, -1);

	must(contd_executor_create(NULL, &executor));
	must(contd_group_set_executor(group, executor));
	contd_task_init(&task, executor, 0, tally_cb, &tally[0]);
	must(contd_task_submit(&task, 0));
	must(contd_event_continue(0, NULL, tally_cb, &tally[1], group, NULL));
	cr_assert_eq(contd_executor_run(executor, 0, 1000000), 2);
	cr_assert_eq(runs(&tally[0]), 1);
	cr_assert_eq(runs(&tally[1]), 1);
	cr_assert_eq(contd_executor_run(executor, 0, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		contd_task_init(&more[i], executor, 0, tally_cb, &more_tally[i]);
		must(contd_task_submit(&more[i], 0));
	}
	cr_assert_eq(contd_executor_run(executor, 1, 0), 1);
	helper_do(helper, run_all_of, executor);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(runs(&more_tally[i]), 1);
	must(contd_group_destroy(group));
	must(contd_executor_destroy(executor));
}

ParameterizedTest(struct point *point, races, interrupted)
{
	struct contd_event far = CONTD_EVENT_INIT, *fars[] = {&far};
	struct tally far_tally = {0};
	struct helper helper;
	unsigned ready = 0;

	bool bells = strncmp(point->name, "bell_", 5) == 0, on_daemon = strncmp(point->name, "daemon_", 7) == 0;
	/* Scans that do not end after microseconds: a build with sanitizers is slow. */
	struct contd_config config = {.size = sizeof(config), .scan_ns = 1000000000, .scan_count = 100000};

	if (on_daemon)
		config.agent = strcmp(point->name, "daemon_polls") == 0 ? CONTD_AGENT_BLOCK : CONTD_AGENT_TICK;
	if (strcmp(point->name, "daemon_rests") == 0)
		config.overhead_percent = 0.1;
	must(contd_init(&config));
	if (strcmp(point->name, "daemon_rests") == 0) { /* as it does between ticks that are shorter than it can pay */
		must(contd_configure(&(struct contd_config){.size = sizeof(config), .agent = CONTD_AGENT_REGION}));
		must(contd_daemon_start(&(struct contd_daemon_attr){sizeof(struct contd_daemon_attr), 100000}));
	}
	if (bells || on_daemon)
		source_register(&source_a, bells ? WHERE_REGION : WHERE_DAEMON,
				strcmp(point->name, "daemon_polls") == 0);
	signal_group = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	plain_group = group_new(0, -1);
	poll_group = group_new(CONTD_POLL_ONLY, -1);
	side_group[0] = signal_group;
	side_group[1] = group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY, -1);
	side_group[2] = group_new(CONTD_ASYNC_SIGNAL_SAFE, 3);
	for (unsigned i = 0; i < SIDES; i++) {
		struct contd_event *es[] = {&side_event[i]};

		must(contd_event_continue(1, es, tally_cb, &side_tally[i], side_group[i % SIDE_GROUPS], NULL));
	}
	helper_create(&helper, false);
	hook_at(point->name, interrupt, 400);

	must(contd_thread_attach(NULL));
	cr_assert_geq(contd_fd(), 0);
	events_part();
	if (strcmp(point->name, "daemon_sleeps") == 0) /* words_part leaves a word that never holds: it naps then */
		daemon_part(point->name);
	words_part();
	chain_part();
	together_part();
	carried_part();
	executor_part(&helper);
	if (bells)
		bells_part(point->name);
	if (strncmp(point->name, "region", 6) == 0)
		regions_part();
	if (on_daemon && strcmp(point->name, "daemon_sleeps") != 0)
		daemon_part(point->name);
	must(contd_event_continue(1, fars, tally_cb, &far_tally, signal_group, NULL));
	helper_do(&helper, complete_it, &far);
	compute_until(runs(&far_tally));
	/* Growing: beyond what is there, with all of it in use. */
	for (unsigned i = 0; i < 200; i++)
		must(contd_event_continue(0, NULL, tally_cb, &chain_tally[3], poll_group, NULL));
	must(contd_group_wait(plain_group, PATIENCE_SECONDS * 1000000000ll));
	must(contd_group_wait(poll_group, PATIENCE_SECONDS * 1000000000ll));
	compute_until(contd__load(&contd__me->armed) == 0);
	must(contd_thread_detach());
	hook_off();
	if (strcmp(point->name, "daemon_rests") == 0)
		must(contd_daemon_stop()); /* it may be in the hook */
	else if (on_daemon)
		must(contd_configure(&(struct contd_config){.size = sizeof(config), .agent = CONTD_AGENT_REGION}));
	cr_assert_gt(contd__load(&hook_hits), 0, "%s was never passed", point->name);
	contd_poll(0);

	cr_assert_eq(runs(&far_tally), 1);
	for (unsigned i = 0; i < MAINS; i += 2)
		cr_assert_eq(runs(&main_tally[i]), main_cancelled[i] ? 0 : 1, "%u: %u", i, runs(&main_tally[i]));
	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(runs(&word_tally[i]), i == 6 ? 0 : 1);
	cr_assert_eq(runs(&chain_tally[0]), 1);
	cr_assert_eq(runs(&chain_tally[1]), 1);
	cr_assert_eq(runs(&chain_tally[2]), 0);
	cr_assert_eq(runs(&chain_tally[3]), 200);
	cr_assert_eq(runs(&nested_tally), nested);
	for (unsigned i = 0; i < EVENTS_TOGETHER; i++)
		cr_assert_eq(runs(&together_tally[i]), TOGETHERS);
	for (unsigned i = 0; i < SIDES; i++) {
		cr_assert_eq(runs(&side_tally[i]), i < sides ? 1 : 0, "side %u of %u", i, sides);
		ready += runs(&side_tally[i]);
	}
	cr_assert_gt(ready, 0);
	helper_join(&helper);
	cr_assert_eq(contd_fini(), (int)(SIDES - ready));
}

/* Does the file beside this one name the point? */
static bool names(const char *file, const char *point)
{
	char path[4096], line[512], quoted[64];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%.*s%s", (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__, file);
	snprintf(quoted, sizeof(quoted), "\"%s\"", point);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, quoted) != NULL;
	fclose(f);
	return found;
}

static bool is_elsewhere(const char *point)
{
	for (unsigned i = 0; i < ELSEWHERE; i++)
		if (strcmp(elsewhere[i].name, point) == 0)
			return names(elsewhere[i].file, point);
	return false;
}

/* The lists above are whole: looks into the sources where they are. */
Test(races, every_test_point_is_in_the_list)
{
	static const char *const rooms[] = {"rcu", "dispatch", "signal", "task"};
	unsigned found = 0;

	for (unsigned r = 0; r < sizeof(rooms) / sizeof(rooms[0]); r++) {
		char dir[4096], path[8192], line[512];
		struct dirent *entry;
		DIR *d;

		snprintf(dir, sizeof(dir), "%.*s../../src/%s", (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__,
			 rooms[r]);
		d = opendir(dir);
		if (!d)
			cr_skip_test("the sources are not here");
		while ((entry = readdir(d)) != NULL) {
			FILE *f;

			snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
			if (!strstr(entry->d_name, ".c") || !(f = fopen(path, "r")))
				continue;
			while (fgets(line, sizeof(line), f)) {
				char *name = strstr(line, "CONTD_TESTPOINT(\"");
				unsigned p;

				if (!name)
					continue;
				name += strlen("CONTD_TESTPOINT(\"");
				*strchr(name, '"') = 0;
				for (p = 0; p < POINTS && strcmp(points[p].name, name); p++)
					;
				cr_assert(p < POINTS || is_elsewhere(name), "%s is not tested", name);
				found++;
			}
			fclose(f);
		}
		closedir(d);
	}
	cr_assert_eq(found, POINTS + ELSEWHERE);
}

/* ---------------------------------------------------- the other side, on this thread --- */

static struct contd_event e1, e2, e3;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2}, *es3[] = {&e3};
static struct contd_group *g, *g2, *g3;
static struct contd_handle h1, h2;
static struct tally t1, t2, t3;
static int act_rc;

static void begin(void)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	g2 = group_new(0, -1);
	g3 = group_new(0, -1);
}

/* The same, for a test point that stands in the whole tree only. */
static void begin_for(const char *name)
{
	begin();
	if (strncmp(name, "settle_", 7) && strcmp(name, "mark_summary") && strcmp(name, "mark_top"))
		return;
	beyond_first_chunk(g);
	beyond_first_chunk(g2);
	beyond_first_chunk(g3);
}

/* All is quiet, and each has run as often as told. */
static void end(unsigned n1, unsigned n2, unsigned n3)
{
	cr_assert_eq(hook_hits, hook_limit, "%s: %u", hook_name, hook_hits);
	hook_off();
	while (contd_poll(0))
		;
	cr_assert_eq(contd__load(&contd__ready), 0, "a class is marked, and has nothing ready");
	cr_assert_eq(runs(&t1), n1, "first: %u", runs(&t1));
	cr_assert_eq(runs(&t2), n2, "second: %u", runs(&t2));
	cr_assert_eq(runs(&t3), n3, "third: %u", runs(&t3));
	cr_assert_eq(contd_fini(), 0, "continuations are outstanding");
}

static void complete_e1(void)
{
	act_rc = contd_event_complete(&e1, 2);
}

Test(races, completed_twice_before_the_exchange)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	hook_at("event_before_exchange", complete_e1, 1);
	cr_assert_eq(contd_event_complete(&e1, 1), -EALREADY);
	cr_assert_eq(act_rc, 0);
	contd_poll(0);
	cr_assert_eq(t1.status, 2);
	end(1, 0, 0);
}

Test(races, completed_twice_after_the_exchange)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	hook_at("event_exchanged", complete_e1, 1);
	must(contd_event_complete(&e1, 1));
	cr_assert_eq(act_rc, -EALREADY);
	contd_poll(0);
	cr_assert_eq(t1.status, 1);
	end(1, 0, 0);
}

static void cancel_h1(void)
{
	act_rc = contd_cancel(h1);
}

Test(races, cancelled_before_the_exchange)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	hook_at("event_before_exchange", cancel_h1, 1);
	must(contd_event_complete(&e1, 0));
	cr_assert_eq(act_rc, 0);
	end(0, 0, 0);
}

Test(races, cancelled_after_the_exchange)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	hook_at("event_exchanged", cancel_h1, 1);
	must(contd_event_complete(&e1, 0));
	cr_assert_eq(act_rc, 0);
	end(0, 0, 0);
}

Test(races, cancelled_when_ready_before_the_mark)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	hook_at("complete_ready", cancel_h1, 1);
	must(contd_event_complete(&e1, 0));
	cr_assert_eq(act_rc, 0);
	end(0, 0, 0);
}

Test(races, cancelled_when_marked)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	hook_at("mark_leaf", cancel_h1, 1);
	must(contd_event_complete(&e1, 0));
	cr_assert_eq(act_rc, 0);
	end(0, 0, 0);
}

/* No thread scans. A ready continuation that is cancelled is not outstanding, wherever its completer stands. */
static void cancelled_unscanned(const char *point)
{
	struct contd_event *both[] = {&e1, &e2};

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_POLL_ONLY, -1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	hook_at(point, cancel_h1, 1);
	if (strcmp(point, "complete_ready") == 0)
		must(contd_event_complete(&e1, 0));
	else
		contd__events_complete_sig(both, 2);
	if (!contd_event_is_complete(&e2))
		must(contd_event_complete(&e2, 0));
	cr_assert_eq(act_rc, 0);
	cr_assert_eq(contd_group_outstanding(g), 1, "%s: %u", point, contd_group_outstanding(g));
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	end(0, 1, 0);
}

Test(races, cancelled_unscanned_when_ready)
{
	cancelled_unscanned("complete_ready");
}

Test(races, cancelled_unscanned_when_counted)
{
	cancelled_unscanned("complete_counted");
}

Test(races, cancelled_unscanned_when_marked_together)
{
	cancelled_unscanned("complete_leaf_marked");
}

/* The canceller meets the slot's next continuation, and that one is cancelled while its bit is here. */
static void scan_and_cancel_the_next(const char *name)
{
	if (strcmp(name, "cancel_withdrawn") == 0 && hook_hits++ == 0) {
		cr_assert_eq(contd_poll(0), 0, "cancelled");
		must(contd_event_continue(1, es2, tally_cb, &t2, g, &h2));
		cr_assert_eq(h2.slot, h1.slot);
		must(contd_event_complete(&e2, 0));
	} else if (strcmp(name, "cancel_unmarked") == 0 && hook_hits == 1) {
		must(contd_cancel(h2));
	}
}

Test(races, next_one_cancelled_while_its_bit_is_away)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	must(contd_event_complete(&e1, 0));
	hook_limit = 2;
	contd__store_release(&contd__testpoint_hook, scan_and_cancel_the_next);
	must(contd_cancel(h1));
	cr_assert_eq(contd_group_outstanding(g), 0);
	end(0, 0, 0);
}

Test(races, cancelled_when_running)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	must(contd_event_complete(&e1, 0));
	hook_at("claim_running", cancel_h1, 1);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(act_rc, -EALREADY);
	end(1, 0, 0);
}

/* Its bit is cleared and it is READY still: the canceller gets it, and the scan frees it. */
Test(races, cancelled_at_claim_cleared)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	must(contd_event_complete(&e1, 0));
	hook_at("claim_cleared", cancel_h1, 1);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(act_rc, 0);
	end(0, 0, 0);
}

Test(races, cancelled_while_it_is_registered)
{
	begin();
	must(contd_event_complete(&e1, 0));
	hook_at("event_before_release", cancel_h1, 1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	cr_assert_eq(act_rc, 0);
	end(0, 0, 0);
}

Test(races, completed_while_it_is_registered)
{
	begin();
	hook_at("event_attached", complete_e1, 1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	cr_assert_eq(runs(&t1), 1, "inside the call");
	end(1, 0, 0);
}

/* One event and no handle: the call has nothing more to do with it once it is attached. */
Test(races, completed_while_it_is_registered_alone)
{
	begin();
	hook_at("event_attached_alone", complete_e1, 1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	cr_assert_eq(runs(&t1), 0, "it is ready, and not the call's to run");
	cr_assert_eq(contd_poll(0), 1);
	end(1, 0, 0);
}

Test(races, completed_while_it_is_cancelled)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	hook_at("cancel_withdrawn", complete_e1, 1);
	must(contd_cancel(h1));
	cr_assert_eq(act_rc, 0);
	end(0, 0, 0);
}

/* The completer finishes while the canceller stands between withdrawing and taking back, and the slot is used again. */
static void complete_e1_and_register(void)
{
	complete_e1();
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
}

Test(races, slot_used_anew_while_it_is_cancelled)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	hook_at("cancel_withdrawn", complete_e1_and_register, 1);
	must(contd_cancel(h1));
	must(contd_event_complete(&e2, 0));
	end(0, 1, 0);
}

/* A scan frees what was ready, and the slot, with its bit, is another continuation's by the time the canceller comes to
 * it. */
static void scan_and_make_ready(void)
{
	cr_assert_eq(contd_poll(0), 0, "cancelled");
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	must(contd_event_complete(&e2, 0));
}

Test(races, slot_ready_anew_while_it_is_cancelled)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	must(contd_event_complete(&e1, 0));
	hook_at("cancel_withdrawn", scan_and_make_ready, 1);
	must(contd_cancel(h1));
	cr_assert_eq(contd_poll(0), 1);
	end(0, 1, 0);
}

/* No thread can scan it while the canceller has the bit; afterwards one does. */
static void scan_in_vain(void)
{
	cr_assert_eq(contd_poll(0), 0);
}

Test(races, scanned_while_it_is_cancelled)
{
	begin();
	must(contd_event_continue(1, es1, tally_cb, &t1, g, &h1));
	must(contd_event_complete(&e1, 0));
	hook_at("cancel_unmarked", scan_in_vain, 1);
	must(contd_cancel(h1));
	cr_assert_eq(contd_group_outstanding(g), 0);
	end(0, 0, 0);
}

static uint64_t word1, word2;

static void register_word(uint64_t *word, struct tally *t, struct contd_handle *h)
{
	struct contd_word w = {word, 0, 1, CONTD_WORD_EQ};

	must(contd_word_continue(&w, tally_cb, t, g, h));
}

static void find_word_and_register(void)
{
	word1 = 1;
	cr_assert_eq(contd_poll(0), 0, "cancelled");
	register_word(&word2, &t2, NULL);
}

Test(races, word_slot_used_anew_while_it_is_cancelled)
{
	begin();
	register_word(&word1, &t1, &h1);
	hook_at("cancel_withdrawn", find_word_and_register, 1);
	must(contd_cancel(h1));
	word2 = 1;
	end(0, 1, 0);
}

static void complete_awaited_and_chain(void)
{
	must(contd_event_complete(&e2, 0));
	cr_assert_eq(contd_poll(0), 1, "the awaited group's, and not what waits for it");
	must(contd_group_continue(g3, tally_cb, &t1, g, NULL));
}

Test(races, chain_slot_used_anew_while_it_is_cancelled)
{
	struct tally cancelled = {0};

	begin();
	must(contd_event_continue(1, es2, tally_cb, &t2, g2, NULL));
	must(contd_event_continue(1, es3, tally_cb, &t3, g3, NULL));
	must(contd_group_continue(g2, tally_cb, &cancelled, g, &h1));
	hook_at("cancel_withdrawn", complete_awaited_and_chain, 1);
	must(contd_cancel(h1));
	must(contd_event_complete(&e3, 0));
	end(1, 1, 1);
	cr_assert_eq(runs(&cancelled), 0);
}

static void complete_awaited(void)
{
	must(contd_event_complete(&e2, 0));
	cr_assert_eq(contd_poll(0), 1);
}

Test(races, awaited_group_completes_while_the_chain_is_made)
{
	begin();
	must(contd_event_continue(1, es2, tally_cb, &t2, g2, NULL));
	hook_at("chain_waiting", complete_awaited, 1);
	must(contd_group_continue(g2, tally_cb, &t1, g, NULL));
	end(1, 1, 0);
}

/* A scan stands at each of the mark's steps, and there is nothing to be found, or half. */
static void poll_now(void)
{
	act_rc = contd_poll(0);
}

static void scanned_at(const char *name)
{
	begin_for(name);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	must(contd_event_continue(1, es3, tally_cb, &t3, g, NULL));
	must(contd_event_complete(&e2, 0));
	hook_at(name, poll_now, 2);
	must(contd_event_complete(&e1, 0));
	must(contd_event_complete(&e3, 0));
	end(1, 1, 1);
}

Test(races, scanned_at_complete_ready)
{
	scanned_at("complete_ready");
}
Test(races, scanned_at_mark_leaf)
{
	scanned_at("mark_leaf");
}
Test(races, scanned_at_mark_summary)
{
	scanned_at("mark_summary");
}
Test(races, scanned_at_mark_top)
{
	scanned_at("mark_top");
}
Test(races, scanned_at_mark_root)
{
	scanned_at("mark_root");
}
Test(races, scanned_at_root_marked)
{
	scanned_at("root_marked");
}
Test(races, scanned_at_complete_marked)
{
	scanned_at("complete_marked");
}
Test(races, scanned_at_event_exchanged)
{
	scanned_at("event_exchanged");
}

/* Another slot is marked where a scan has just cleared a hint: it is found by the next scan. */
static void marked_at(const char *name)
{
	begin_for(name);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	must(contd_event_complete(&e2, 0));
	hook_at(name, complete_e1, 1);
	contd_poll(0);
	cr_assert_eq(act_rc, 0);
	end(1, 1, 0);
}

Test(races, marked_at_settle_cleared)
{
	marked_at("settle_cleared");
}
Test(races, marked_at_root_cleared)
{
	marked_at("root_cleared");
}
Test(races, marked_at_class_cleared)
{
	marked_at("class_cleared");
}
Test(races, marked_at_scan_pinned)
{
	marked_at("scan_pinned");
}
Test(races, marked_at_claim_running)
{
	marked_at("claim_running");
}
Test(races, marked_at_finish_freed)
{
	marked_at("finish_freed");
}
Test(races, marked_at_free_before_push)
{
	marked_at("free_before_push");
}

/* All three levels: the hook acts at each clearing of a hint, and each time something else becomes ready. */
static void complete_next(void)
{
	if (sides < SIDES)
		must(contd_event_complete(&side_event[sides++], 0));
}

static void marked_each_time(const char *name)
{
	begin_for(name);
	for (unsigned i = 0; i < SIDES; i++) {
		struct contd_event *es[] = {&side_event[i]};

		must(contd_event_continue(1, es, tally_cb, &side_tally[i], g, NULL));
	}
	complete_next();
	hook_at(name, complete_next, 1000);
	for (unsigned i = 0; i < 3000 && hook_hits < hook_limit; i++)
		contd_poll(1 + i % 3);
	while (sides < SIDES)
		complete_next();
	end(0, 0, 0);
	for (unsigned i = 0; i < SIDES; i++)
		cr_assert_eq(runs(&side_tally[i]), 1, "%u: %u", i, runs(&side_tally[i]));
}

Test(races, marked_each_time_at_settle_cleared)
{
	marked_each_time("settle_cleared");
}
Test(races, marked_each_time_at_root_cleared)
{
	marked_each_time("root_cleared");
}

Test(races, marked_each_time_at_class_cleared)
{
	marked_each_time("class_cleared");
}

static void destroy_g(void)
{
	must(contd_group_destroy(g));
}

/* The handle goes at the worst moment; what is outstanding still runs. */
static void destroyed_at(const char *name)
{
	begin_for(name);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	must(contd_event_complete(&e1, 0));
	hook_at(name, destroy_g, 1);
	contd_poll(0);
	must(contd_event_complete(&e2, 0));
	/* Enough of them that memory is given back while this one is in use, if anything lets it. */
	for (unsigned i = 0; i < 100; i++)
		must(contd_group_destroy(group_new(0, -1)));
	end(1, 1, 0);
}

Test(races, destroyed_at_scan_pinned)
{
	destroyed_at("scan_pinned");
}
Test(races, destroyed_at_claim_running)
{
	destroyed_at("claim_running");
}
Test(races, destroyed_at_finish_freed)
{
	destroyed_at("finish_freed");
}
Test(races, destroyed_at_free_before_push)
{
	destroyed_at("free_before_push");
}
Test(races, destroyed_at_settle_cleared)
{
	destroyed_at("settle_cleared");
}
Test(races, destroyed_at_root_cleared)
{
	destroyed_at("root_cleared");
}

Test(races, destroyed_at_class_cleared)
{
	destroyed_at("class_cleared");
}

/* ... and with the last continuation at once: the completer is the last who knows of the group. */
static void run_and_destroy_g(void)
{
	contd_poll(0);
	must(contd_group_destroy(g));
}

static void gone_at(const char *name)
{
	begin_for(name);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	hook_at(name, run_and_destroy_g, 1);
	must(contd_event_complete(&e1, 0));
	for (unsigned i = 0; i < 100; i++)
		must(contd_group_destroy(group_new(0, -1)));
	end(1, 0, 0);
}

Test(races, gone_at_mark_leaf)
{
	gone_at("mark_leaf");
}
Test(races, gone_at_mark_top)
{
	gone_at("mark_top");
}
Test(races, gone_at_complete_marked)
{
	gone_at("complete_marked");
}

/* The free list: the head is the same again, and what follows it is not. */
static void take_two_give_one(void)
{
	struct contd_handle h;

	/* The slot at the head is taken, another one stays taken, the first is given back. */
	must(contd_event_continue(1, es2, tally_cb, &t2, g, &h));
	must(contd_event_continue(1, es3, tally_cb, &t3, g, NULL));
	must(contd_cancel(h));
}

Test(races, free_list_changes_under_an_allocation)
{
	struct contd_event a[4] = {CONTD_EVENT_INIT};
	struct contd_event *as[] = {&a[0], &a[1], &a[2], &a[3]};
	struct contd_handle h[4];
	struct tally t[4] = {{0}};

	begin();
	for (unsigned i = 0; i < 4; i++)
		must(contd_event_continue(1, &as[i], tally_cb, &t[i], g, &h[i]));
	for (unsigned i = 0; i < 4; i++)
		must(contd_cancel(h[i]));
	hook_at("alloc_before_pop", take_two_give_one, 1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	/* Three more: none of them may be given a slot that is in use. */
	for (unsigned i = 0; i < 4; i++)
		must(contd_event_continue(1, &as[i], tally_cb, &t[i], g, &h[i]));
	must(contd_event_complete(&e1, 0));
	must(contd_event_complete(&e3, 0));
	for (unsigned i = 0; i < 4; i++)
		must(contd_event_complete(&a[i], 0));
	end(1, 0, 1);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(runs(&t[i]), 1);
}

/* In a region a handler may run anything, also a callback that gives groups back; it may have interrupted a
 * completer. */
static void destroy_many_cb(int status, void *data)
{
	tally_cb(status, data);
	for (unsigned i = 0; i < 100; i++) {
		struct contd_group *made;

		if (contd_group_create(NULL, &made) == 0)
			contd_group_destroy(made);
	}
}

/* A signal that finds something to run. */
static void raise_for_e2(void)
{
	complete_quietly(&e2, 0);
	raise_ours();
}

static void region_at(const char *name)
{
#ifdef __SANITIZE_THREAD__
	cr_skip_test("the sanitizer takes a region for unknown code, where malloc is not allowed");
#endif
	begin();
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, destroy_many_cb, &t2, g2, NULL));
	hook_at(name, raise_for_e2, 1);
	contd_compute_begin();
	must(contd_event_complete(&e1, 0));
	contd_compute_end();
	cr_assert_eq(runs(&t2), 1);
	must(contd_thread_detach());
	end(1, 1, 0);
}

Test(races, groups_given_back_in_a_region_at_event_exchanged)
{
	region_at("event_exchanged");
}
Test(races, groups_given_back_in_a_region_at_mark_leaf)
{
	region_at("mark_leaf");
}

/* The same with a group that gets another executor: no thread may be about to notify the old one when it is
 * destroyed. */
static struct contd_executor *given, *taken_back;

static void switch_cb(int status, void *data)
{
	struct contd_group *made;

	tally_cb(status, data);
	cr_assert_eq(contd__self.context, CONTEXT_REGION);
	must(contd_group_create(NULL, &made));
	must(contd_group_set_executor(made, given));
	must(contd_group_set_executor(made, taken_back));
	must(contd_group_set_executor(made, NULL));
	must(contd_group_destroy(made));
	must(contd_executor_destroy(given)); /* which takes a grace period */
}

Test(races, an_executor_taken_away_in_a_region)
{
#ifdef __SANITIZE_THREAD__
	cr_skip_test("the sanitizer takes a region for unknown code, where malloc is not allowed");
#endif
	begin();
	must(contd_executor_create(NULL, &given));
	must(contd_executor_create(NULL, &taken_back));
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, switch_cb, &t2, g2, NULL));
	hook_at("event_exchanged", raise_for_e2, 1);
	contd_compute_begin();
	must(contd_event_complete(&e1, 0));
	contd_compute_end();
	cr_assert_eq(runs(&t2), 1);
	must(contd_executor_destroy(taken_back));
	must(contd_thread_detach());
	end(1, 1, 0);
}

/*
 * A signal that interrupts a read-side section leaves a note. Else its callback may wait for a thread that waits for
 * the end of that section.
 */
static struct helper reaper;
static struct contd_event reaped_event;
static struct contd_group *reaped_group;
static int reaped_rc = 1;

static void after_a_grace_period(void *event)
{
	contd__thread_ensure();
	contd__grace_period();
	must(contd_event_complete(event, 0));
}

static void wait_for_reaper_cb(int status, void *data)
{
	helper_start(&reaper, after_a_grace_period, &reaped_event);
	reaped_rc = contd_group_wait(reaped_group, 3000000000ll);
	tally_cb(status, data);
}

static void section_at(const char *name, bool in_region)
{
	struct contd_event *es[] = {&reaped_event};
	struct tally t = {0};
	uint64_t guarded;

#ifdef __SANITIZE_THREAD__
	cr_skip_test("the sanitizer takes a region for unknown code, where locks are not allowed");
#endif
	begin();
	helper_create(&reaper, false);
	reaped_group = group_new(0, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es, tally_cb, &t, reaped_group, NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, in_region ? wait_for_reaper_cb : tally_cb, &t2,
				  in_region ? g2 : group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
	guarded = stats_now().guarded;
	hook_at(name, raise_for_e2, 1);
	if (in_region)
		contd_compute_begin();
	must(contd_event_complete(&e1, 0));
	cr_assert_eq(runs(&t2), 1, "the end of the section has not looked");
	if (in_region)
		contd_compute_end();
	hook_off();
	cr_assert_gt(stats_now().guarded, guarded);
	cr_assert_eq(t2.context, in_region ? CONTEXT_REGION : CONTEXT_HANDLER);
	if (in_region)
		cr_assert_eq(reaped_rc, 0, "the thread that was waited for waits for the interrupted section");
	else
		must(contd_event_complete(&reaped_event, 0));
	must(contd_group_wait(reaped_group, -1));
	helper_join(&reaper);
	must(contd_thread_detach());
	end(1, 1, 0);
}

Test(races, a_section_interrupted_in_a_region)
{
	section_at("event_exchanged", true);
}
Test(races, a_section_interrupted_in_a_region_at_mark_leaf)
{
	section_at("mark_leaf", true);
}
Test(races, a_section_interrupted_outside_regions)
{
	section_at("event_exchanged", false);
}

/* --------------------------------------------------- the other side, on another thread --- */

static struct helper other;
static uint32_t step;

static void job_cancel(void *data)
{
	(void)data;
	act_rc = contd_cancel(h1);
}

/* The canceller waits for the look to end; the look does not wait. */
static void let_cancel(void)
{
	helper_start(&other, job_cancel, NULL);
	while (contd__load_seq(&contd__words.pending))
		sched_yield();
}

Test(races, word_is_cancelled_while_it_is_looked_at)
{
	begin();
	helper_create(&other, false);
	register_word(&word1, &t1, &h1);
	word1 = 1;
	hook_at("word_holds", let_cancel, 1);
	cr_assert_eq(contd_poll(0), 0);
	helper_finish(&other);
	cr_assert_eq(act_rc, 0);
	helper_join(&other);
	end(0, 0, 0);
}

/* The word is found to hold while it is being withdrawn, and its place is another one's at once. */
static void job_hold_and_register(void *data)
{
	(void)data;
	word1 = 1;
	cr_assert_eq(contd_poll(0), 0);
	register_word(&word2, &t2, NULL);
	contd__store_release(&step, 1);
}

static void let_register(void)
{
	uint64_t until = now_ns() + 50000000; /* it may be made to wait for what this has interrupted */

	helper_start(&other, job_hold_and_register, NULL);
	while (!contd__load_acquire(&step) && now_ns() < until)
		sched_yield();
}

Test(races, word_holds_while_it_is_withdrawn)
{
	begin();
	helper_create(&other, false);
	register_word(&word1, &t1, &h1);
	hook_at("word_unwatch", let_register, 1);
	must(contd_cancel(h1));
	helper_finish(&other);
	hook_off();
	cr_assert_eq(contd__words.pending, 1);
	word2 = 1;
	cr_assert_eq(contd_poll(0), 1, "the other one's word is not watched");
	helper_join(&other);
	end(0, 1, 0);
}

static void set_word_and_poll(void)
{
	word1 = 1;
	act_rc = contd_poll(0);
}

Test(races, word_holds_before_it_is_watched)
{
	begin();
	hook_at("word_before_live", set_word_and_poll, 1);
	register_word(&word1, &t1, NULL);
	cr_assert_eq(act_rc, 0);
	end(1, 0, 0);
}

/* The thread that is about to be notified detaches. */
static void job_complete_e1(void *data)
{
	(void)data;
	must(contd_event_complete(&e1, 0));
}

static void let_it_detach(void)
{
	contd__store_release(&step, 1);
	while (contd__load_seq(&contd__signals.record[0]->tid))
		sched_yield();
}

Test(races, notified_thread_detaches)
{
	begin();
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	hook_at("notify_before_send", let_it_detach, 1);
	helper_start(&other, job_complete_e1, NULL);
	await(contd__load_acquire(&step));
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 0, 0);
}

static void let_other_complete(void)
{
	helper_do(&other, job_complete_e1, NULL);
}

/* One more becomes ready while the notified thread is in its handler already. */
Test(races, another_completes_while_the_handler_runs)
{
	begin();
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	hook_at("handler_entered", let_other_complete, 1);
	raise_ours();
	compute_until(runs(&t1));
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 0, 0);
}

/* ... and after the handler's scan has passed it: the notification makes it look again. */
Test(races, another_completes_at_the_end_of_the_handlers_scan)
{
	begin();
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	complete_quietly(&e2, 0);
	hook_at("root_cleared", let_other_complete, 1);
	raise_ours();
	compute_until(runs(&t1));
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 1, 0);
}

Test(races, completed_while_the_only_thread_detaches)
{
	begin();
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	hook_at("detach_cleared", let_other_complete, 1);
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 0, 0);
}

static void job_register_word(void *data)
{
	(void)data;
	register_word(&word1, &t1, NULL);
}

static void let_other_register(void)
{
	helper_do(&other, job_register_word, NULL);
}

/* Something is watched at the moment in which the timer is found to be of no use. */
Test(races, word_is_watched_while_the_timer_stops)
{
	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	register_word(&word2, &t2, NULL);
	hook_at("timer_stopped", let_other_register, 1);
	__atomic_store_n(&word2, 1, __ATOMIC_RELEASE);
	compute_until(contd__load(&hook_hits));
	compute_until(runs(&t2));
	__atomic_store_n(&word1, 1, __ATOMIC_RELEASE);
	compute_until(runs(&t1));
	cr_assert_eq(t1.context, CONTEXT_HANDLER);
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 1, 0);
}

/* The thread whose timer is about to be started detaches. */
static void let_it_detach_too(void)
{
	contd__store_release(&step, 1);
	while (contd__load_seq(&contd__signals.record[0]->tid))
		sched_yield();
}

Test(races, armed_thread_detaches)
{
	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	hook_at("arm_claimed", let_it_detach_too, 1);
	helper_start(&other, job_register_word, NULL);
	await(contd__load_acquire(&step));
	must(contd_thread_detach());
	helper_finish(&other);
	/* A thread that attaches now is served. */
	must(contd_thread_attach(NULL));
	__atomic_store_n(&word1, 1, __ATOMIC_RELEASE);
	compute_until(runs(&t1));
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 0, 0);
}

static void job_register_e2(void *data)
{
	(void)data;
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
}

/* Another thread wants to grow the same table at the same time, and a third allocation comes from a handler. */
static void grow_too(void)
{
	helper_start(&other, job_register_e2, NULL);
	raise_ours();
}

static void register_in_handler(int status, void *data)
{
	tally_cb(status, data);
	if (contd_event_continue(1, es3, tally_cb, &t3, g, NULL))
		__builtin_trap();
}

static void grown_at(const char *name)
{
	static struct contd_event filling[40];
	struct contd_group *signal_safe;

	begin();
	must(contd_thread_attach(NULL));
	signal_safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	for (unsigned i = 0; i < 32; i++) {
		struct contd_event *es[] = {&filling[i]};

		must(contd_event_continue(1, es, tally_cb, &side_tally[i], g, NULL));
	}
	must(contd_event_continue(1, es1, register_in_handler, &t1, signal_safe, NULL));
	complete_quietly(&e1, 0);
	hook_at(name, grow_too, 1);
	for (unsigned i = 32; i < 40; i++) {
		struct contd_event *es[] = {&filling[i]};

		must(contd_event_continue(1, es, tally_cb, &side_tally[i], g, NULL));
	}
	helper_finish(&other);
	for (unsigned i = 0; i < 40; i++)
		must(contd_event_complete(&filling[i], 0));
	must(contd_event_complete(&e2, 0));
	must(contd_event_complete(&e3, 0));
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 1, 1);
	for (unsigned i = 0; i < 40; i++)
		cr_assert_eq(runs(&side_tally[i]), 1);
}

Test(races, grown_by_two_at_grow_before_chunk)
{
	grown_at("grow_before_chunk");
}
Test(races, grown_by_two_at_grow_before_limit)
{
	grown_at("grow_before_limit");
}

/* -------------------------------------------------------------------------------- bells, and the daemon's sleep --- */

/* Longer than any of these tests, and shorter than the patience: what ends in time has been woken. */
#define LONG_TICK_NS 10000000000ull
#define SOON_NS 8000000000ull

static struct contd_bell *own_bell;
static uint64_t begun_ns;

static void begin_long(enum contd_agent agent)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = agent, .tick_max_ns = LONG_TICK_NS, .scan_ns = 1000000000};

	config.overhead_percent = 50; /* bells are not spent */
	must(contd_init(&config));
	contd__store(&contd__limits.tick_min, LONG_TICK_NS); /* more than a setting may say */
	g = group_new(0, -1);
	g2 = group_new(CONTD_THREAD_ANY, -1);
	begun_ns = now_ns();
}

static void soon(void)
{
	cr_assert_lt(now_ns() - begun_ns, SOON_NS, "a tick has found it, not a ring");
}

static void listen_to_oneself(void)
{
	char job[32];

	snprintf(job, sizeof(job), "races-%d", (int)getpid());
	must(contd_bell_listen(job, 1));
	must(contd_bell_open(job, 1, &own_bell));
}

static void finish_a(void)
{
	source_finish(&source_a);
}

static void finish_a_and_ring(void)
{
	finish_a();
	act_rc = contd_bell_ring(own_bell);
}

/* Something arrives when the bell is armed and the last look has not begun: that look finds it, rung or not. */
static void arrives_when_armed(void (*act)(void), int rang)
{
	begin_long(CONTD_AGENT_REGION);
	source_register(&source_a, WHERE_REGION, false);
	must(contd_thread_attach(NULL));
	listen_to_oneself();
	source_continue(&source_a, &e1, tally_cb, &t1, g);
	hook_at("bell_armed", act, 1);
	contd_compute_begin();
	cr_assert_eq(runs(&t1), 1, "the look that goes with arming has not found it");
	contd_compute_end();
	cr_assert_eq(act_rc, rang);
	cr_assert_eq(t1.context, CONTEXT_REGION);
	must(contd_thread_detach());
	contd_bell_close(own_bell);
	end(1, 0, 0);
}

Test(races, something_arrives_while_the_bell_is_armed)
{
	arrives_when_armed(finish_a, 0);
}
Test(races, rung_while_the_bell_is_armed)
{
	arrives_when_armed(finish_a_and_ring, 1);
}

/* The ring is on its way, and the thread is in no region any more, and not attached: the next region finds it. */
static void let_it_leave(void)
{
	contd__store_release(&step, 1);
	while (contd__load_seq(&contd__signals.record[0]->tid))
		sched_yield();
}

static void job_finish_and_ring(void *data)
{
	(void)data;
	finish_a_and_ring();
}

Test(races, rung_thread_detaches)
{
	begin_long(CONTD_AGENT_REGION);
	source_register(&source_a, WHERE_REGION, false);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	listen_to_oneself();
	source_continue(&source_a, &e1, tally_cb, &t1, g);
	contd_compute_begin();
	cr_assert_neq(contd__load(&contd__page->armed.by.thread), 0);
	hook_at("bell_taken", let_it_leave, 1);
	helper_start(&other, job_finish_and_ring, NULL);
	await(contd__load_acquire(&step));
	contd_compute_end();
	must(contd_thread_detach());
	helper_join(&other);
	cr_assert_eq(act_rc, 1);
	must(contd_thread_attach(NULL));
	contd_compute_begin();
	cr_assert_eq(runs(&t1), 1);
	contd_compute_end();
	must(contd_thread_detach());
	contd_bell_close(own_bell);
	end(1, 0, 0);
}

/* Two ring at once: one signal. */
static void ring_too(void)
{
	int first = contd_bell_ring(own_bell);

	cr_assert_eq(first, 0, "another thread has taken it");
}

Test(races, rung_twice)
{
	begin_long(CONTD_AGENT_REGION);
	source_register(&source_a, WHERE_REGION, false);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	listen_to_oneself();
	source_continue(&source_a, &e1, tally_cb, &t1, g);
	contd_compute_begin();
	hook_at("bell_taken", ring_too, 1);
	helper_start(&other, job_finish_and_ring, NULL);
	compute_until(runs(&t1));
	contd_compute_end();
	soon();
	helper_join(&other);
	cr_assert_eq(act_rc, 1);
	must(contd_thread_detach());
	contd_bell_close(own_bell);
	end(1, 0, 0);
}

/* Where the daemon has said that it sleeps, and has not looked for the last time. */
static void let_other_complete_e2(void)
{
	must(contd_event_complete(&e2, 0));
}

static void daemon_at(const char *name, enum contd_agent agent, void (*act)(void))
{
	begin_long(agent);
	source_register(&source_a, WHERE_THREAD | WHERE_DAEMON, agent == CONTD_AGENT_BLOCK);
	must(contd_event_continue(1, es2, tally_cb, &t2, g2, NULL));
	hook_at(name, act, 1);
	source_continue(&source_a, &e1, tally_cb, &t1, g2);
	if (act == finish_a) {
		await(runs(&t1));
		soon();
		must(contd_event_complete(&e2, 0));
	}
	await(runs(&t2));
	soon();
	cr_assert_eq(t2.context, CONTEXT_DAEMON);
	if (act != finish_a) {
		finish_a();
		must(contd_group_wait(g2, -1));
	}
	end(1, 1, 0);
}

Test(races, something_arrives_before_the_daemon_naps)
{
	daemon_at("daemon_naps", CONTD_AGENT_TICK, finish_a);
}
Test(races, completed_before_the_daemon_naps)
{
	daemon_at("daemon_naps", CONTD_AGENT_TICK, let_other_complete_e2);
}
/* It has said that it sleeps, for nothing is pending. The poll that has seen to that is over, and takes nothing
 * away. */
static uint32_t polled;

static void complete_e2_after_the_poll(void)
{
	while (!contd__load_acquire(&polled))
		sched_yield();
	let_other_complete_e2();
}

Test(races, completed_before_the_daemon_sleeps)
{
	begin_long(CONTD_AGENT_TICK);
	source_register(&source_a, WHERE_THREAD | WHERE_DAEMON, false);
	must(contd_event_continue(1, es2, tally_cb, &t2, g2, NULL));
	hook_at("daemon_sleeps", complete_e2_after_the_poll, 1);
	source_continue(&source_a, &e1, tally_cb, &t1, g2); /* it wakes, and goes to sleep again */
	finish_a();
	contd_poll(0);
	contd__store_release(&polled, 1);
	await(runs(&t2));
	soon();
	cr_assert_eq(t2.context, CONTEXT_DAEMON);
	end(1, 1, 0);
}

/* The same where checkpoints watch the bell: a ring is no signal then, and the look after arming finds what has
 * arrived. */
Test(races, something_arrives_while_a_checkpoint_arms_the_bell)
{
	begin_long(CONTD_AGENT_CALLER);
	source_register(&source_a, WHERE_REGION, false);
	listen_to_oneself();
	source_continue(&source_a, &e1, tally_cb, &t1, g);
	hook_at("bell_watched", finish_a_and_ring, 1);
	contd_compute_begin();
	contd__checkpoint();
	contd_compute_end();
	cr_assert_eq(runs(&t1), 1, "the look that goes with arming has not found it");
	cr_assert_eq(act_rc, 1);
	contd_bell_close(own_bell);
	end(1, 0, 0);
}

Test(races, something_arrives_before_the_daemon_polls)
{
	daemon_at("daemon_polls", CONTD_AGENT_BLOCK, finish_a);
}
Test(races, completed_before_the_daemon_polls)
{
	daemon_at("daemon_polls", CONTD_AGENT_BLOCK, let_other_complete_e2);
}

/* ... and there another agent is to take over: at once, not after the nap. */
static void job_spin(void *data)
{
	(void)data;
	must(contd_configure(&(struct contd_config){.size = sizeof(struct contd_config), .agent = CONTD_AGENT_SPIN}));
}

static void let_other_configure(void)
{
	helper_do(&other, job_spin, NULL);
}

static void configured_at(const char *name, enum contd_agent agent)
{
	struct contd_daemon_attr attr = {sizeof(attr), LONG_TICK_NS};

	begin_long(agent);
	helper_create(&other, false);
	source_register(&source_a, WHERE_THREAD | WHERE_DAEMON, agent == CONTD_AGENT_BLOCK);
	if (agent < CONTD_AGENT_TICK) {
		/* It has nothing to be woken for. */
		contd__store(&contd__limits.purse_most, 0);
		contd__store(&contd__limits.purse_rate, 1);
		must(contd_daemon_start(&attr));
	}
	hook_at(name, let_other_configure, 1);
	source_begin(&source_a);
	await(looks_at(&source_a, WHERE_DAEMON) > 100);
	soon();
	hook_off();
	helper_join(&other);
	finish_a();
	end(0, 0, 0);
}

Test(races, agent_is_switched_before_the_daemon_naps)
{
	configured_at("daemon_naps", CONTD_AGENT_TICK);
}
Test(races, agent_is_switched_before_the_daemon_polls)
{
	configured_at("daemon_polls", CONTD_AGENT_BLOCK);
}
Test(races, agent_is_switched_before_a_nap_that_nothing_ends)
{
	configured_at("daemon_rests", CONTD_AGENT_CALLER);
}

/* ---------------------------------------------------------------------------------------------------- executors --- */

static struct contd_executor *pull;
static struct contd_task task;

static void *lent(void *data)
{
	(void)data;
	cr_assert_geq(contd_executor_run(pull, 0, -1), 0);
	return NULL;
}

static void let_other_complete_e1(void)
{
	helper_do(&other, complete_it, &e1);
}

static void submit_it(void *data)
{
	must(contd_task_submit(data, 0));
}

static void let_other_submit(void)
{
	helper_do(&other, submit_it, &task);
}

/* The thread has said that it sleeps, and has not looked for the last time; and it is woken, not found by a timeout. */
static void before_the_executor_sleeps(void (*act)(void))
{
	pthread_t thread;

	begin();
	must(contd_executor_create(NULL, &pull));
	must(contd_group_set_executor(g, pull));
	helper_create(&other, false);
	contd_task_init(&task, pull, 0, tally_cb, &t1);
	if (act == let_other_complete_e1)
		must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	hook_at("executor_sleeps", act, 1);
	cr_assert_eq(pthread_create(&thread, NULL, lent, NULL), 0);
	await(runs(&t1));
	must(contd_executor_stop(pull, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	helper_join(&other);
	must(contd_group_destroy(g));
	must(contd_executor_destroy(pull));
	end(1, 0, 0);
}

Test(races, completed_before_the_executor_sleeps)
{
	before_the_executor_sleeps(let_other_complete_e1);
}
Test(races, submitted_before_the_executor_sleeps)
{
	before_the_executor_sleeps(let_other_submit);
}

static void run_it_all(void *data)
{
	(void)data;
	act_rc = contd_executor_run(pull, 0, 0);
}

static void let_other_run(void)
{
	helper_do(&other, run_it_all, NULL);
}

/* Another thread has run it before the one that submits has told of it: the executor stays until that has returned. */
Test(races, run_before_it_is_told_of)
{
	begin();
	must(contd_executor_create(NULL, &pull));
	helper_create(&other, false);
	contd_task_init(&task, pull, 0, tally_cb, &t1);
	hook_at("task_pushed", let_other_run, 1);
	must(contd_task_submit(&task, 0));
	cr_assert_eq(act_rc, 1);
	helper_join(&other);
	must(contd_executor_destroy(pull));
	end(1, 0, 0);
}

static void let_other_begin(void)
{
	helper_start(&other, run_it_all, NULL);
	usleep(20000);
	cr_assert_eq(contd__load(&pull->shared), SHARING, "it waits until this thread is outside");
}

static void other_comes_at(const char *name)
{
	static struct contd_task tasks[3];

	begin();
	must(contd_executor_create(NULL, &pull));
	helper_create(&other, false);
	cr_assert_eq(contd_executor_run(pull, 0, 0), 0); /* from here on it is the owner */
	for (unsigned i = 0; i < 3; i++)
		contd_task_init(&tasks[i], pull, 0, tally_cb, &t1);
	must(contd_task_submit(&tasks[0], 0));
	act_rc = 0;
	hook_at(name, let_other_begin, 1);
	must(contd_task_submit(&tasks[1], 0));
	if (strcmp(name, "task_found") == 0) {
		cr_assert_geq(contd_executor_run(pull, 1, 0), 0);
		cr_assert_leq(runs(&t1), 2);
	}
	must(contd_task_submit(&tasks[2], 0));
	helper_finish(&other);
	hook_off();
	cr_assert_eq(contd__load(&pull->shared), SHARED);
	cr_assert_geq(contd_executor_run(pull, 0, 0), 0);
	helper_join(&other);
	must(contd_executor_destroy(pull));
	end(3, 0, 0);
}

/* Another thread comes to take tasks while the only one that did is at it. */
Test(races, another_thread_comes_while_the_owner_queues)
{
	other_comes_at("task_inside");
}
Test(races, another_thread_comes_while_the_owner_takes)
{
	other_comes_at("task_found");
}

/* ------------------------------------------------------------------------------- notifications that are put off --- */

static void job_complete_e2(void *data)
{
	(void)data;
	must(contd_event_complete(&e2, 0));
}

/* For longer than this thread, or the other, is kept off a busy processor. */
static void empty_the_purse(void)
{
	contd__store(&contd__me->purse.enough_at, contd__ticks() + contd__clock.second / 2);
}

static void let_other_complete_another(void)
{
	empty_the_purse();
	helper_do(&other, job_complete_e2, NULL);
}

/* One is put off to a tick while a tick's handler is at work, which stops the timer: it must not be forgotten. */
Test(races, put_off_while_the_timer_stops)
{
	begin();
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	must(contd_event_continue(1, es3, tally_cb, &t3, g, NULL));
	empty_the_purse();
	hook_at("handler_entered", let_other_complete_another, 1);
	helper_do(&other, job_complete_e1, NULL);
	compute_until(runs(&t1) && runs(&t2));
	cr_assert_geq(stats_now().put_off, 2);
	/* The next one comes too. */
	helper_do(&other, complete_it, &e3);
	compute_until(runs(&t3));
	compute_until(contd__load(&contd__me->signalled) == 0);
	must(contd_thread_detach());
	helper_join(&other);
	end(1, 1, 1);
}
