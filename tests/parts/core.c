/* SPDX-License-Identifier: BSD-3-Clause */
/* The core without executors: a continuation of an event, of a group, and of a word of memory. */
#include <contd/contd.h>

#include <stdio.h>

#if defined(__has_include)
#if __has_include(<contd/executor.h>)
#error "contd/executor.h is installed although executors are left out"
#endif
#endif

static void count(int status, void *data)
{
	*(int *)data += status == 0;
}

int main(void)
{
	struct contd_event event = CONTD_EVENT_INIT, *events[] = {&event};
	struct contd_group *group = NULL;
	int ran = 0, complete = 0;

	if (contd_init(NULL) || contd_group_create(NULL, &group) || contd_thread_attach(NULL) ||
	    contd_event_continue(1, events, count, &ran, group, NULL) < 0 || contd_event_complete(&event, 0) ||
	    contd_group_test(group, &complete) < 0 || contd_thread_detach()) {
		fprintf(stderr, "%s\n", contd_error_text());
		return 1;
	}
	contd_group_destroy(group);
	return ran == 1 && complete && contd_fini() == 0 ? 0 : 1;
}
