/* SPDX-License-Identifier: BSD-3-Clause */
/* The installed header and library, compiled as C and (core.cpp) as C++. */
#include <contd/contd.h>
#include <contd/executor.h>

#include <stdio.h>

static void count(int status, void *data)
{
	(void)status;
	++*(int *)data;
}

int main(void)
{
	struct contd_event event = CONTD_EVENT_INIT;
	struct contd_event *events[] = {&event};
	struct contd_group *group = NULL;
	struct contd_executor *executor = NULL;
	struct contd_task task;
	int ran = 0;
	int complete = 0;

	if (contd_init(NULL) != 0 || contd_group_create(NULL, &group) != 0) {
		fprintf(stderr, "%s\n", contd_error_text());
		return 1;
	}
	/* Nothing is attached here; this is for the thread-local state behind the inline functions to be linked. */
	contd_compute_begin();
	contd_compute_end();
	contd_guard_begin();
	contd_guard_end();
	if (contd_event_continue(1, events, count, &ran, group, NULL) < 0 || contd_event_complete(&event, 0) != 0 ||
	    contd_group_test(group, &complete) < 0) {
		fprintf(stderr, "%s\n", contd_error_text());
		return 1;
	}
	if (ran != 1 || !complete) {
		fprintf(stderr, "ran %d times, complete %d\n", ran, complete);
		return 1;
	}
	/* The same as a task of a thread that is lent, and a continuation of its group. */
	contd_event_init(&event);
	if (contd_executor_create(NULL, &executor) != 0 || contd_group_set_executor(group, executor) != 0) {
		fprintf(stderr, "%s\n", contd_error_text());
		return 1;
	}
	contd_task_init(&task, executor, CONTD_PRIORITY_HIGH, count, &ran);
	contd_task_submit(&task, 0);
	contd_event_continue(1, events, count, &ran, group, NULL);
	contd_event_complete(&event, 0);
	if (contd_executor_run(executor, 0, 0) != 2 || ran != 3) {
		fprintf(stderr, "ran %d times\n", ran);
		return 1;
	}
	contd_group_destroy(group);
	if (contd_executor_destroy(executor) != 0) {
		fprintf(stderr, "%s\n", contd_error_text());
		return 1;
	}
	return contd_fini() == 0 ? 0 : 1;
}
