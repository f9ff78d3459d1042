/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that was compiled against the headers of 0.2 (layouts_0_2.h), or with SIZED_LATER against later ones, with
 * fields that this contd does not know. It does not see include/. It also gives structures that end early, as a still
 * older header's do, with rubbish behind that contd must not read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYOUT(name) name
#ifdef SIZED_LATER
#define LATER uint64_t later[3];
#else
#define LATER
#endif
#include "layouts_0_2.h"

struct contd_group;
int contd_init(const struct contd_config *cfg);
int contd_configure(const struct contd_config *cfg);
int contd_fini(void);
int contd_group_create(const struct contd_group_attr *attr, struct contd_group **groupp);
int contd_group_destroy(struct contd_group *group);
int contd_group_test(struct contd_group *group, int *complete);
int contd_thread_attach(const struct contd_thread_attr *attr);
int contd_thread_detach(void);
int contd_daemon_start(const struct contd_daemon_attr *attr);
int contd_daemon_stop(void);
int contd_stats_get(struct contd_stats *stats);
int contd_executor_create(const struct contd_executor_attr *attr, struct contd_executor **executorp);
int contd_executor_destroy(struct contd_executor *executor);
const char *contd_error_text(void);

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, contd_error_text()); \
			exit(1); \
		} \
	} while (0)

/* Everything that it has is 0xff, but for its size and the fields that the caller sets then. */
#define SHORT(s, first_missing) \
	(memset(&(s), 0xff, sizeof(s)), memset(&(s), 0, offsetof(__typeof__(s), first_missing)), \
	 (s).size = offsetof(__typeof__(s), first_missing))

static void config(void)
{
	struct contd_config c = {.size = sizeof(c), .agent = 1};

	CHECK(contd_init(&c) == 0);
	c.scan_count = 7;
	c.daemon_name = "sized";
	CHECK(contd_configure(&c) == 0);
#ifdef SIZED_LATER
	c.later[2] = 1;
	CHECK(contd_configure(&c) == -E2BIG);
	CHECK(strstr(contd_error_text(), "does not know"));
#endif
	SHORT(c, scan_ns); /* scan_count, and four bytes before the next field */
	c.scan_count = 9;
	CHECK(contd_configure(&c) == 0);
	SHORT(c, signal_number); /* nothing but its size */
	CHECK(contd_configure(&c) == 0);
	c.size = 0;
	CHECK(contd_configure(&c) == -EINVAL);
	c.size = sizeof(c) - 1;
	CHECK(contd_configure(&c) == -EINVAL);
	CHECK(strstr(contd_error_text(), "sizeof(struct contd_config)"));
}

static void group(void)
{
	struct contd_group_attr a = {.size = sizeof(a), .flags = 1, .max_poll = 3};
	struct contd_group *g = NULL;
	int complete;

	CHECK(contd_group_create(&a, &g) == 0 && contd_group_destroy(g) == 0);
	a.reserved = 1;
	CHECK(contd_group_create(&a, &g) == -EINVAL);
	a.reserved = 0;
#ifdef SIZED_LATER
	a.later[2] = 1;
	CHECK(contd_group_create(&a, &g) == -E2BIG);
#endif
	SHORT(a, priority); /* its max_poll is there, and 0: refused with poll-only */
	a.flags = 1;
	CHECK(contd_group_create(&a, &g) == -EINVAL);
	a.max_poll = 2;
	CHECK(contd_group_create(&a, &g) == 0 && contd_group_destroy(g) == 0);
	SHORT(a, flags); /* all by default, max_poll too */
	CHECK(contd_group_create(&a, &g) == 0);
	CHECK(contd_group_test(g, &complete) == 0 && complete == 1);
	CHECK(contd_group_destroy(g) == 0);
}

static void others(void)
{
	struct contd_thread_attr t = {.size = sizeof(t), .stack_bytes = 32768};
	struct contd_daemon_attr d = {.size = sizeof(d), .tick_ns = 1000000};
	struct contd_executor_ops ops = {.size = sizeof(ops)};
	struct contd_executor_attr x = {.size = sizeof(x), .ops = &ops};
	struct contd_executor *ex = NULL;

	CHECK(contd_thread_attach(&t) == 0 && contd_thread_detach() == 0);
	CHECK(contd_daemon_start(&d) == 0 && contd_daemon_stop() == 0);
	CHECK(contd_executor_create(&x, &ex) == 0 && contd_executor_destroy(ex) == 0);
#ifdef SIZED_LATER
	t.later[2] = 1;
	CHECK(contd_thread_attach(&t) == -E2BIG);
	d.later[2] = 1;
	CHECK(contd_daemon_start(&d) == -E2BIG);
	ops.later[2] = 1;
	CHECK(contd_executor_create(&x, &ex) == -E2BIG);
	ops.later[2] = 0;
	x.later[2] = 1;
	CHECK(contd_executor_create(&x, &ex) == -E2BIG);
#endif
	SHORT(t, flags);
	CHECK(contd_thread_attach(&t) == 0 && contd_thread_detach() == 0);
	SHORT(d, tick_ns);
	CHECK(contd_daemon_start(&d) == 0 && contd_daemon_stop() == 0);
	SHORT(ops, submit);
	SHORT(x, pool);
	x.ops = &ops;
	CHECK(contd_executor_create(&x, &ex) == 0 && contd_executor_destroy(ex) == 0);
	SHORT(x, flags);
	CHECK(contd_executor_create(&x, &ex) == 0 && contd_executor_destroy(ex) == 0);
}

static void stats(void)
{
	struct contd_stats s;

	memset(&s, 0xff, sizeof(s));
	s.size = sizeof(s);
	CHECK(contd_stats_get(&s) == 0);
	CHECK(s.size == sizeof(s) && s.cancelled == 0 && s.latency[39] == 0);
#ifdef SIZED_LATER
	CHECK(s.later[0] == 0 && s.later[2] == 0);
#endif
	memset(&s, 0xff, sizeof(s));
	s.size = offsetof(struct contd_stats, run_handler);
	CHECK(contd_stats_get(&s) == 0);
	CHECK(s.size == offsetof(struct contd_stats, run_handler) && s.registered == 0 && s.run == 0);
	CHECK(s.run_handler == UINT64_MAX && s.latency[39] == UINT64_MAX); /* not the caller's */
	s.size = 3;
	CHECK(contd_stats_get(&s) == -EINVAL);
}

int main(void)
{
	config();
	group();
	others();
	stats();
	CHECK(contd_fini() == 0);
	return 0;
}
