/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the functions of docs/short-examples.md that need neither MPI nor libfabric. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <contd/executor.h>

#include "check.h"

int when_copied(struct contd_event *read, struct contd_event *written, int *result, struct contd_group *group);
int time_out(struct contd_event *event);
int make_urgent_group(struct contd_group **groupp);
int finish(struct contd_group *group);
int work_until_complete(struct contd_group *group, void (*next_piece)(void));
int when_round_is_over(struct contd_group *round, struct contd_event *over, struct contd_group *group);
int when_written(const volatile uint64_t *newest, uint64_t record, contd_callback *cb, void *data,
		 struct contd_group *group, struct contd_handle *handlep);
void has_written(uint64_t *newest, uint64_t record);
int give_up(struct contd_handle handle, struct contd_group *group);
double sum_of(const double *x, size_t rows, size_t columns);
int expect(struct contd_event *event, struct contd_group *group);
unsigned take_arrived(void);
int start_contd(void);
int print_stats(void);
int dump_to_file(const char *path);
int library_is_older_than_header(void);
int start_background(struct contd_group **groupp);
int stop_background(struct contd_group *group);
int serve_clients(int clients, int (*serve)(int clients));
void be_reachable(const char *job, unsigned number);
int tell_peer(const char *job, unsigned number, struct contd_bell **bellp);
int compress_in_pool(struct contd_task *task, contd_callback *compress, void *block, struct contd_executor *pool);
int continue_in_pool(struct contd_event *event, struct contd_task *task, contd_callback *cb, void *data,
		     struct contd_executor *pool, struct contd_group *group);
int refill(struct contd_executor *executor, int room, void (*enqueue)(struct contd_work *work, int priority));
int log_pool(struct contd_executor *executor);

static struct contd_group *make_group(uint32_t flags)
{
	struct contd_group_attr attr = CONTD_GROUP_ATTR_INIT;
	struct contd_group *group;

	attr.flags = flags;
	EQ(contd_group_create(&attr, &group), 0);
	return group;
}

static void count(int status, void *runs)
{
	__atomic_fetch_add((int *)runs, 1, __ATOMIC_RELAXED);
}

static struct contd_event piece;

static void end_piece(void)
{
	if (!contd_event_is_complete(&piece))
		EQ(contd_event_complete(&piece, 0), 0);
}

static void events_and_groups(void)
{
	struct contd_event read, written, over, second, *events[] = {&over};
	struct contd_group *group, *round = make_group(0);
	int result = 1, runs = 0;

	EQ(make_urgent_group(&group), 0);
	EQ(when_copied(&read, &written, &result, group), 0);
	EQ(time_out(&read), 1);
	EQ(time_out(&read), 0);
	EQ(result, 1);
	EQ(contd_event_complete(&written, 0), 0);
	EQ(contd_group_wait(group, -1), 0);
	EQ(result, -ETIMEDOUT);

	events[0] = &piece;
	EQ(contd_event_continue(1, events, count, &runs, round, NULL), 0);
	EQ(when_round_is_over(round, &over, group), 0);
	EQ(when_round_is_over(round, &second, group), -EBUSY);
	events[0] = &over;
	EQ(contd_event_continue(1, events, count, &runs, group, NULL), 0);
	EQ(work_until_complete(group, end_piece), 0);
	EQ(runs, 2);
	EQ(contd_group_destroy(round), 0);
	EQ(finish(group), 0);
}

static void words_and_cancelling(void)
{
	static uint64_t newest;
	struct contd_group *group = make_group(0);
	struct contd_handle handle, second;
	int runs = 0;

	EQ(when_written(&newest, 2, count, &runs, group, &handle), 0);
	EQ(when_written(&newest, 9, count, &runs, group, &second), 0);
	has_written(&newest, 1);
	CHECK(contd_poll(0) >= 0);
	EQ(runs, 0);
	has_written(&newest, 3);
	while (!runs)
		CHECK(contd_poll(0) >= 0);
	EQ(give_up(second, group), 0);
	EQ(give_up(handle, group), 0); /* it has run */
	EQ(runs, 1);
	EQ(finish(group), 0);
}

static void threads(void)
{
	struct contd_group *group = make_group(CONTD_ASYNC_SIGNAL_SAFE);
	struct contd_event event;
	static double x[64 * 64];

	for (int i = 0; i < 64 * 64; i++)
		x[i] = 1;
	CHECK(sum_of(x, 64, 64) == 64 * 64);
	EQ(contd_thread_attach(NULL), 0);
	EQ(expect(&event, group), 0);
	EQ(take_arrived(), 0);
	EQ(contd_event_complete(&event, 0), 0);
	EQ(take_arrived(), 1);
	EQ(take_arrived(), 0);
	EQ(contd_thread_detach(), 0);
	EQ(finish(group), 0);
}

static int reads_one(int clients)
{
	char c;

	EQ(read(clients, &c, 1), 1);
	return c;
}

static void says_stop(int status, void *fd)
{
	EQ(write(*(int *)fd, "s", 1), 1);
}

static void background_and_loop(void)
{
	struct contd_event event = CONTD_EVENT_INIT, *events[] = {&event};
	struct contd_group *group;
	int fds[2];

	EQ(start_background(&group), 0);
	EQ(pipe(fds), 0);
	EQ(contd_event_continue(1, events, says_stop, &fds[1], group, NULL), 0);
	EQ(contd_event_complete(&event, 0), 0);
	EQ(reads_one(fds[0]), 's');
	EQ(stop_background(group), 0);

	group = make_group(0);
	contd_event_init(&event);
	EQ(contd_event_continue(1, events, says_stop, &fds[1], group, NULL), 0);
	EQ(contd_event_complete(&event, 0), 0);
	EQ(serve_clients(fds[0], reads_one), 's');
	EQ(finish(group), 0);
	EQ(close(fds[0]), 0);
	EQ(close(fds[1]), 0);
}

static void bells(void)
{
	struct contd_bell *bell = NULL;
	char job[32];

	snprintf(job, sizeof(job), "short-%d", (int)getpid());
	EQ(tell_peer(job, 1, &bell), 0);
	CHECK(!bell);
	be_reachable(job, 1);
	EQ(tell_peer(job, 1, &bell), 0); /* found, but it does not wait */
	CHECK(bell);
	contd_bell_close(bell);
}

static struct contd_work *queued[2];
static int priorities[2], queue_length;

static void enqueue(struct contd_work *work, int priority)
{
	priorities[queue_length] = priority;
	queued[queue_length++] = work;
}

static void executors(void)
{
	struct contd_event event = CONTD_EVENT_INIT;
	struct contd_task block, task;
	struct contd_executor *pool;
	struct contd_group *group = make_group(0);
	int runs = 0;

	EQ(contd_executor_create(NULL, &pool), 0);
	EQ(compress_in_pool(&block, count, &runs, pool), 0);
	EQ(continue_in_pool(&event, &task, count, &runs, pool, group), 0);
	EQ(contd_event_complete(&event, 0), 0);
	CHECK(contd_poll(0) >= 0);
	EQ(runs, 0);
	EQ(contd_group_outstanding(group), 1);
	EQ(log_pool(pool), 0);
	EQ(refill(pool, 1, enqueue), 1);
	EQ(refill(pool, 5, enqueue), 1);
	EQ(priorities[0] + priorities[1], CONTD_PRIORITY_NORMAL + CONTD_PRIORITY_LOW);
	contd_work_run(queued[0]);
	contd_work_run(queued[1]);
	EQ(runs, 2);
	EQ(finish(group), 0);
	EQ(contd_executor_drain(pool), 0);
	EQ(contd_executor_destroy(pool), 0);
}

int main(void)
{
	EQ(library_is_older_than_header(), 0);
	EQ(start_contd(), 0);
	EQ(start_contd(), 0); /* as a second user */
	events_and_groups();
	words_and_cancelling();
	threads();
	background_and_loop();
	bells();
	executors();
	EQ(print_stats(), 0);
	EQ(dump_to_file("/dev/null"), 0);
	EQ(contd_fini(), 0);
	EQ(contd_fini(), 0);
	return 0;
}
