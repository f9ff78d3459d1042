/* SPDX-License-Identifier: BSD-3-Clause */
/* contd_fini() names the continuations that never ran: callback, kind, reason, age. */
#include <dlfcn.h>

#include "unit.h"
#include "dispatch/never.h"

TestSuite(never, .timeout = WATCHDOG);

static char got[1 << 15];

static int fini(void)
{
	FILE *said = tmpfile();
	int saved = dup(STDERR_FILENO), rc;

	dup2(fileno(said), STDERR_FILENO);
	rc = contd_fini();
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(said);
	got[fread(got, 1, sizeof(got) - 1, said)] = '\0';
	fclose(said);
	return rc;
}

static unsigned says(const char *text)
{
	unsigned n = 0;

	for (const char *at = got; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

static void first(int status, void *data)
{
	(void)status, (void)data;
}

static void second(int status, void *data)
{
	*(volatile int *)data += status;
}

static struct contd_event never[64];

static void wait_for(struct contd_event *e, contd_callback *cb, struct contd_group *group)
{
	contd_event_init(e);
	must(contd_event_continue(1, &e, cb, NULL, group, NULL) < 0);
}

Test(never, nothing_to_say)
{
	struct contd_group *group;

	start(CONTD_AGENT_CALLER);
	group = group_new(0, -1);
	wait_for(&never[0], first, group);
	contd_event_complete(&never[0], 0);
	contd_poll(0);
	wait_for(&never[1], first, group);
	cr_assert_eq(fini(), 1);
	cr_assert_eq(says("] contd_fini: 1 continuation never ran:"), 1, "%s", got);
	start(CONTD_AGENT_CALLER);
	cr_assert_eq(fini(), 0);
	cr_assert_str_eq(got, "");
	setenv("CONTD_VERBOSE", "0", 1);
	start(CONTD_AGENT_CALLER);
	wait_for(&never[0], first, group_new(0, -1));
	cr_assert_eq(fini(), 1);
	cr_assert_str_eq(got, "");
}

Test(never, kinds)
{
	static uint64_t word;
	struct contd_word watched = {.address = &word, .value = 1, .op = CONTD_WORD_EQ};
	struct contd_group *group, *awaited, *poll_only;
	struct contd_handle handle;
	struct contd_event *e = &never[4];

	start(CONTD_AGENT_CALLER);
	group = group_new(0, -1);
	awaited = group_new(0, -1);
	poll_only = group_new(CONTD_POLL_ONLY, -1);
	wait_for(&never[0], first, group);
	wait_for(&never[1], second, awaited);
	must(contd_word_continue(&watched, first, NULL, group, NULL));
	must(contd_group_continue(awaited, first, NULL, group, NULL));
	wait_for(&never[2], first, poll_only);
	contd_event_complete(&never[2], 0);
	wait_for(&never[3], second, group);
	contd_event_complete(&never[3], 0);
	/* One that was cancelled did not want to run. */
	contd_event_init(e);
	must(contd_event_continue(1, &e, first, NULL, group, &handle) < 0);
	must(contd_cancel(handle));
	usleep(50000);
	cr_assert_eq(fini(), 6);
	cr_assert_eq(says("] contd_fini: 6 continuations never ran:"), 1, "%s", got);
	cr_assert_eq(says("  1 with the callback "), 6, "%s", got);
	cr_assert_eq(says(": an event did not complete\n"), 2, "%s", got);
	cr_assert_eq(says(": a memory word did not complete\n"), 1, "%s", got);
	cr_assert_eq(says(": a group did not complete\n"), 1, "%s", got);
	cr_assert_eq(says(": it is ready, but its group is poll-only and was not tested, for 0."), 1, "%s", got);
	cr_assert_eq(says(": it is ready, and no thread that may run it has looked, for 0."), 1, "%s", got);
	cr_assert_eq(says("+0x"), 6, "%s", got);
}

Test(never, object_offset_and_symbol)
{
	contd_callback *cb = (contd_callback *)(uintptr_t)dlsym(RTLD_DEFAULT, "abort");
	Dl_info info;
	char text[128];

	cr_assert(cb && dladdr((void *)(uintptr_t)cb, &info));
	start(CONTD_AGENT_CALLER);
	wait_for(&never[0], cb, group_new(0, -1));
	cr_assert_eq(fini(), 1);
	snprintf(text, sizeof(text), "+0x%lx (abort): an event",
		 (unsigned long)((uintptr_t)cb - (uintptr_t)info.dli_fbase));
	cr_assert_eq(says(text), 1, "no %s in %s", text, got);
}

/* How long: from the registration, of those on one line the shortest and the longest. */
Test(never, ages)
{
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_CALLER, .verbose = CONTD_VERBOSE_START};
	struct contd_group *group;
	double least = -1, most = -1;
	const char *at;
	uint64_t begun, between;

	must(contd_init(&c));
	group = group_new(0, -1);
	begun = now_ns();
	wait_for(&never[0], first, group);
	usleep(300000);
	between = now_ns();
	wait_for(&never[1], first, group);
	usleep(100000);
	cr_assert_eq(fini(), 2);
	at = strstr(got, "did not complete, for ");
	cr_assert_not_null(at, "%s", got);
	cr_assert_eq(sscanf(at, "did not complete, for %lf to %lf s", &least, &most), 2, "%s", got);
	cr_assert_geq(least, 0.095);
	cr_assert_geq(most, 0.395);
	cr_assert_leq(least, (double)(now_ns() - between) / 1e9 + 0.01);
	cr_assert_leq(most, (double)(now_ns() - begun) / 1e9 + 0.01);
}

/* Without being asked for, they would cost each registration something. */
Test(never, no_ages)
{
	start(CONTD_AGENT_CALLER);
	wait_for(&never[0], first, group_new(0, -1));
	cr_assert_eq(fini(), 1);
	cr_assert_eq(says("an event did not complete\n"), 1, "%s", got);
}

/* Only so many lines: the message says how many are missing. */
Test(never, the_limit)
{
	struct contd_group *group;

	start(CONTD_AGENT_CALLER);
	group = group_new(0, -1);
	for (uintptr_t i = 0; i < NEVER_LINES + 3; i++)
		wait_for(&never[i], (contd_callback *)((uintptr_t)first + i), group);
	cr_assert_eq(fini(), NEVER_LINES + 3);
	cr_assert_eq(says("  1 with the callback "), NEVER_LINES, "%s", got);
	cr_assert_eq(says("  and 3 more, of other kinds: 12 kinds are named at most"), 1, "%s", got);
}
