/* SPDX-License-Identifier: BSD-3-Clause */
/* contd_fd() in libuv's event loop: continuations run on the loop's thread, as soon as they are ready. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <uv.h>

#include <contd/contd.h>

#define EVENTS 1000

static struct contd_event events[EVENTS];
static uv_thread_t loop_thread;
static int ran, elsewhere;

static void count(int status, void *data)
{
	uv_thread_t self = uv_thread_self();

	(void)status, (void)data;
	ran++;
	elsewhere += !uv_thread_equal(&self, &loop_thread);
}

static void on_readable(uv_poll_t *poll, int status, int what)
{
	cr_assert_eq(status, 0);
	cr_assert(what & UV_READABLE);
	cr_assert_geq(contd_poll(0), 0);
	if (ran == EVENTS)
		uv_poll_stop(poll);
}

static void *complete_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < EVENTS; i++)
		cr_assert_eq(contd_event_complete(&events[i], 0), 0);
	return NULL;
}

Test(libuv, loop_ends_when_all_have_run, .timeout = 30)
{
	struct contd_group *group;
	pthread_t thread;
	uv_poll_t poll;
	uv_loop_t loop;

	cr_assert_eq(contd_init(NULL), 0);
	cr_assert_eq(contd_group_create(NULL, &group), 0);
	for (int i = 0; i < EVENTS; i++) {
		struct contd_event *e = &events[i];

		contd_event_init(e);
		cr_assert_eq(contd_event_continue(1, &e, count, NULL, group, NULL), 0);
	}
	loop_thread = uv_thread_self();
	cr_assert_eq(uv_loop_init(&loop), 0);
	cr_assert_eq(uv_poll_init(&loop, &poll, contd_fd()), 0);
	cr_assert_eq(uv_poll_start(&poll, UV_READABLE, on_readable), 0);
	cr_assert_eq(pthread_create(&thread, NULL, complete_all, NULL), 0);
	/* sleeps in epoll_wait, and returns when the poll handle stops */
	cr_assert_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	pthread_join(thread, NULL);
	uv_close((uv_handle_t *)&poll, NULL);
	cr_assert_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	cr_assert_eq(uv_loop_close(&loop), 0);
	cr_assert_eq(ran, EVENTS);
	cr_assert_eq(elsewhere, 0);
	contd_group_destroy(group);
	cr_assert_eq(contd_fini(), 0);
}
