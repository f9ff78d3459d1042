/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for contd dump to look at: dumped WHAT [N]. It prints "there" when all is as it shall be, and stays so. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <contd/contd.h>

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%d: %s\n", rc, contd_error_text());
		exit(1);
	}
}

static void there(void)
{
	puts("there");
	fflush(stdout);
}

static void stay(void)
{
	there();
	for (;;)
		pause();
}

static void on_event(int status, void *data)
{
	(void)status, (void)data;
}

/* Never returns. */
static void hangs(int status, void *data)
{
	(void)status, (void)data;
	stay();
}

static struct contd_group *group_new(uint32_t flags)
{
	struct contd_group_attr attr = CONTD_GROUP_ATTR_INIT;
	struct contd_group *group;

	attr.flags = flags;
	must(contd_group_create(&attr, &group));
	return group;
}

static void many(struct contd_group *group, unsigned n)
{
	struct contd_event *events = calloc(n, sizeof(*events)), *one;

	for (unsigned i = 0; i < n; i++) {
		one = &events[i];
		must(contd_event_continue(1, &one, on_event, one, group, NULL));
	}
}

/* One that is pending, one that is ready, and a memory word. */
static void some(void)
{
	static struct contd_event event[2] = {CONTD_EVENT_INIT, CONTD_EVENT_INIT};
	static uint64_t memory = 4;
	struct contd_word word = {&memory, 0, 9, CONTD_WORD_EQ};
	struct contd_group *group = group_new(CONTD_POLL_ONLY);

	for (unsigned i = 0; i < 2; i++) {
		struct contd_event *one = &event[i];

		must(contd_event_continue(1, &one, on_event, NULL, group, NULL));
	}
	must(contd_event_complete(&event[1], 0));
	must(contd_word_continue(&word, on_event, NULL, group, NULL));
}

/* Groups and continuations come and go, in two threads. */
static void *changes(void *unused)
{
	for (;;) {
		struct contd_group *group = group_new(0);
		struct contd_event event[100] = {{0}}, *one;

		for (unsigned i = 0; i < 100; i++) {
			one = &event[i];
			must(contd_event_continue(1, &one, on_event, NULL, group, NULL));
		}
		for (unsigned i = 0; i < 100; i++)
			must(contd_event_complete(&event[i], 0));
		must(contd_group_wait(group, -1));
		must(contd_group_destroy(group));
	}
	return unused;
}

/* The thread that main() has made stays, and main's has ended. */
static void *stays(void *main_thread)
{
	char path[64];
	char text[64] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	pthread_join(*(pthread_t *)main_thread, NULL);
	while (!strstr(text, ") Z")) {
		FILE *file = fopen(path, "r");

		if (!file || !fgets(text, sizeof(text), file))
			exit(1);
		fclose(file);
	}
	stay();
	return NULL;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "ended"))
		stay();
	must(contd_init(NULL));
	must(contd_thread_attach(NULL));
	if (!strcmp(what, "some")) {
		some();
	} else if (!strcmp(what, "computes")) {
		some();
		contd_compute_begin();
		there();
		for (volatile unsigned long i = 0;; i++)
			;
	} else if (!strcmp(what, "hangs")) {
		struct contd_event event = CONTD_EVENT_INIT, *one = &event;
		struct contd_group *group = group_new(0);

		must(contd_event_continue(1, &one, hangs, NULL, group, NULL));
		must(contd_event_complete(&event, 0));
		must(contd_group_wait(group, -1));
	} else if (!strcmp(what, "many")) {
		many(group_new(0), (unsigned)atoi(argv[2]));
	} else if (!strcmp(what, "leaves")) {
		static pthread_t self, thread;

		self = pthread_self();
		some();
		must(contd_thread_detach());
		if (pthread_create(&thread, NULL, stays, &self))
			return 1;
		pthread_exit(NULL);
	} else if (!strcmp(what, "changes")) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, changes, NULL))
			return 1;
		there();
		changes(NULL);
	}
	stay();
}
