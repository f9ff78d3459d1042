/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls refuse what contd/fabric.h says. Usage: refusals PROVIDER CASE. */
#include <pthread.h>

#include "fabric.h"

/* A call that fails has a text that begins with its name. Before it another call fails. */
static void refuses_with_text(long rc, long want, const char *call, int line)
{
	fabric_check_rc(rc, want, call, __FILE__, line);
	if (want < 0 && strncmp(call, "contd_", 6) == 0)
		fabric_check(strncmp(contd_error_text(), call, strcspn(call, "(")) == 0, call, __FILE__, line);
}
#undef CHECK_RC
#define CHECK_RC(call, want) (contd_group_destroy(NULL), refuses_with_text((long)(call), (want), #call, __LINE__))

static struct fabric f;
static struct fid_cq *cq;
static struct contd_fabric_attr good;

static void open_all(const char *provider)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};

	fabric_open(&f, provider, FI_MSG);
	OK(fi_cq_open(f.domain, &cq_attr, &cq, NULL));
	good = (struct contd_fabric_attr){
		.size = sizeof(good), .format = FI_CQ_FORMAT_DATA, .threading = FI_THREAD_SAFE, .fabric = f.fabric};
}

static void close_all(void)
{
	OK(fi_close(&cq->fid));
	fabric_close(&f);
}

static void foreign(const struct contd_fabric_entry *entry, void *data)
{
	(void)entry, (void)data;
}

/* The text says something, and *queuep is untouched. */
static void refuses_adopt(struct fid_cq *queue, const struct contd_fabric_attr *attr,
			  struct contd_fabric_queue **queuep, int want, int line)
{
	struct contd_fabric_queue *before = queuep ? *queuep : NULL;

	fabric_check_rc(contd_fabric_queue_adopt(queue, attr, queuep), want, "contd_fabric_queue_adopt", __FILE__,
			line);
	CHECK(*contd_error_text());
	CHECK(!queuep || *queuep == before);
}
#define REFUSES(cq, attr, queuep) refuses_adopt(cq, attr, queuep, -EINVAL, __LINE__)

/* The attributes of an older header, which ends early, and of a newer one. */
static void other_sizes(void)
{
	struct contd_fabric_queue *queue;
	struct {
		struct contd_fabric_attr attr;
		uint64_t later;
	} newer = {.attr = good, .later = 1};
	struct contd_fabric_attr older;

	newer.attr.size = sizeof(newer);
	queue = NULL;
	refuses_adopt(cq, &newer.attr, &queue, -E2BIG, __LINE__);
	newer.later = 0;
	OK(contd_fabric_queue_adopt(cq, &newer.attr, &queue));
	OK(contd_fabric_queue_destroy(queue));
	/* What is behind its end must not be read: these flags and functions would be refused, or called. */
	memset(&older, 0xa5, sizeof(older));
	memcpy(&older, &good, offsetof(struct contd_fabric_attr, flags));
	older.size = offsetof(struct contd_fabric_attr, flags);
	OK(contd_fabric_queue_adopt(cq, &older, &queue));
	OK(contd_fabric_queue_destroy(queue));
}

static void refused_attributes(const char *provider)
{
	struct contd_fabric_queue *queue = (struct contd_fabric_queue *)(uintptr_t)8;
	struct contd_fabric_attr attr;

	open_all(provider);
	OK(contd_init(NULL));
	other_sizes();
	REFUSES(NULL, &good, &queue);
	REFUSES(cq, NULL, &queue);
	REFUSES(cq, &good, NULL);
#define WITH(...) (attr = good, __VA_ARGS__, &attr)
	REFUSES(cq, WITH(attr.size = 0), &queue);
	REFUSES(cq, WITH(attr.size = sizeof(attr) - 1), &queue);
	REFUSES(cq, WITH(attr.format = FI_CQ_FORMAT_UNSPEC), &queue);
	REFUSES(cq, WITH(attr.format = (enum fi_cq_format)99), &queue);
	REFUSES(cq, WITH(attr.operations = (1u << 20) + 1), &queue);
	REFUSES(cq, WITH(attr.operations = UINT32_MAX), &queue);
	REFUSES(cq, WITH(attr.flags = 4), &queue);
	REFUSES(cq, WITH(attr.flags = 1u << 31, attr.foreign = foreign), &queue);
	REFUSES(cq, WITH(attr.wait = FI_WAIT_FD, attr.fabric = NULL), &queue);
	/* It has no descriptor: what the provider says of that. */
	CHECK(contd_fabric_queue_adopt(cq, WITH(attr.wait = FI_WAIT_FD), &queue) < 0 ||
	      strcmp(provider, "sockets") == 0 || strcmp(provider, "udp") == 0 || strcmp(provider, "net") == 0);
	if (queue != (struct contd_fabric_queue *)(uintptr_t)8)
		OK(contd_fabric_queue_destroy(queue));
	/* The largest, and nothing of all that was refused has stayed. */
	OK(contd_fabric_queue_adopt(cq, WITH(attr.operations = 1u << 20), &queue));
	CHECK(contd_fabric_queue_pending(queue) == 0);
	OK(contd_fabric_queue_destroy(queue));
	OK(contd_fabric_queue_adopt(cq, WITH(attr.flags = CONTD_FABRIC_ALWAYS), &queue));
	CHECK(contd_fabric_queue_pending(queue) == 0);
	OK(contd_fabric_queue_destroy(queue));
	OK(contd_fini());
	close_all();
}

static void refused_open(const char *provider)
{
	struct contd_fabric_queue *queue = NULL;
	struct contd_fabric_attr attr;
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};

	open_all(provider);
	OK(contd_init(NULL));
	CHECK_RC(contd_fabric_queue_create(NULL, NULL, NULL, &queue), -EINVAL);
	CHECK_RC(contd_fabric_queue_create(f.domain, NULL, NULL, NULL), -EINVAL);
	CHECK_RC(contd_fabric_queue_create(f.domain, NULL, WITH(attr.size = 1), &queue), -EINVAL);
	CHECK_RC(contd_fabric_queue_create(f.domain, NULL, WITH(attr.flags = 8), &queue), -EINVAL);
	CHECK_RC(contd_fabric_queue_create(f.domain, NULL, WITH(attr.operations = UINT32_MAX), &queue), -EINVAL);
	cq_attr.format = (enum fi_cq_format)77;
	CHECK(contd_fabric_queue_create(f.domain, &cq_attr, NULL, &queue) < 0);
	cq_attr.format = FI_CQ_FORMAT_TAGGED;
	cq_attr.wait_obj = (enum fi_wait_obj)77;
	CHECK(contd_fabric_queue_create(f.domain, &cq_attr, NULL, &queue) < 0);
	CHECK(*contd_error_text());
	CHECK(!queue);
	/* Everything by default. */
	OK(contd_fabric_queue_create(f.domain, NULL, NULL, &queue));
	CHECK(contd_fabric_queue_cq(queue));
	OK(contd_fabric_queue_destroy(queue));
	/* The domain closes: no queue was left open. */
	OK(contd_fini());
	close_all();
}

static void nothing(int status, void *data)
{
	(void)status, (void)data;
}

static void refused_operations(const char *provider)
{
	static struct contd_fabric_many many;
	struct contd_fabric_entry room[2];
	struct contd_fabric_op op;
	struct contd_fabric_queue *queue;
	struct contd_group *group;

	open_all(provider);
	group = fabric_begin_contd();
	OK(contd_fabric_queue_adopt(cq, &good, &queue));
	CHECK_RC(contd_fabric_begin(NULL, &op), -EINVAL);
	CHECK_RC(contd_fabric_begin(queue, NULL), -EINVAL);
	CHECK_RC(contd_fabric_withdraw(NULL, 0), -EINVAL);
	memset(&op, 0, sizeof(op));
	CHECK_RC(contd_fabric_withdraw(&op, 0), -EINVAL); /* never begun */
	OK(contd_fabric_begin(queue, &op));
	CHECK_RC(contd_fabric_withdraw(&op, 1), -EINVAL);
	CHECK(contd_fabric_queue_pending(queue) == 1);
	CHECK_RC(contd_fabric_continue(&op, NULL, NULL, group), -EINVAL);
	CHECK_RC(contd_fabric_continue(&op, nothing, NULL, NULL), -EINVAL);
	OK(contd_fabric_continue(&op, nothing, NULL, group));
	CHECK_RC(contd_fabric_continue(&op, nothing, NULL, group), -EBUSY);
	OK(contd_fabric_withdraw(&op, -FI_ENODATA));
	CHECK_RC(contd_fabric_withdraw(&op, 0), -EALREADY);
	CHECK_RC(op.status, -FI_ENODATA);
	WAIT(group);

	CHECK_RC(contd_fabric_many_begin(NULL, &many, room, 2), -EINVAL);
	CHECK_RC(contd_fabric_many_begin(queue, NULL, room, 2), -EINVAL);
	CHECK_RC(contd_fabric_many_begin(queue, &many, NULL, 2), -EINVAL);
	CHECK_RC(contd_fabric_many_begin(queue, &many, room, 0), -EINVAL);
	CHECK_RC(contd_fabric_many_continue(NULL, nothing, NULL, group), -EINVAL);
	CHECK_RC(contd_fabric_many_take(NULL, room), -EINVAL);
	OK(contd_fabric_many_begin(queue, &many, room, 2));
	CHECK_RC(contd_fabric_many_take(&many, NULL), -EINVAL);
	CHECK_RC(contd_fabric_many_continue(&many, NULL, NULL, group), -EINVAL);
	CHECK_RC(contd_fabric_many_continue(&many, nothing, NULL, NULL), -EINVAL);
	CHECK_RC(contd_fabric_many_take(&many, room), 0);
	/* The first continuation stays: were it forgotten, its group would wait for ever. */
	OK(contd_fabric_many_continue(&many, nothing, NULL, group));
	CHECK_RC(contd_fabric_many_continue(&many, nothing, NULL, group), -EBUSY);
	OK(contd_event_complete(&many.op.event, 0));
	WAIT(group);
	OK(contd_fabric_withdraw(&many.op, 0));
	CHECK_RC(contd_fabric_withdraw(&many.op, 0), -EALREADY);
	/* Its end is there to be taken; after that nothing comes, and the group must not wait for it. */
	OK(contd_fabric_many_continue(&many, nothing, NULL, group));
	WAIT(group);
	CHECK_RC(contd_fabric_many_take(&many, room), 1);
	CHECK_RC(contd_fabric_many_continue(&many, nothing, NULL, group), -EALREADY);
	CHECK(contd_group_outstanding(group) == 0);
	OK(contd_fabric_many_begin(queue, &many, room, 2));
	OK(contd_fabric_many_continue(&many, nothing, NULL, group));
	OK(contd_fabric_withdraw(&many.op, 0));
	WAIT(group);

	CHECK(contd_fabric_queue_cq(NULL) == NULL && contd_fabric_queue_pending(NULL) == 0);
	CHECK_RC(contd_fabric_queue_destroy(NULL), -EINVAL);
	CHECK(contd_fabric_queue_pending(queue) == 0);
	OK(contd_fabric_queue_destroy(queue));
	fabric_end_contd(group);
	close_all();
}

static void refuse_all(int want, struct contd_fabric_queue *queue, struct contd_fabric_counter *counter,
		       struct fid_cntr *cntr)
{
	struct contd_fabric_queue *none = NULL;
	struct contd_fabric_counter *no_counter = NULL;
	struct contd_fabric_entry room[1];
	struct contd_fabric_many many;
	struct contd_fabric_op op;

	CHECK_RC(contd_fabric_queue_adopt(cq, &good, &none), want);
	CHECK(*contd_error_text());
	CHECK_RC(contd_fabric_queue_create(f.domain, NULL, NULL, &none), want);
	CHECK_RC(contd_fabric_counter_adopt(cntr, &good, &no_counter), want);
	CHECK_RC(contd_fabric_begin(queue, &op), want);
	CHECK_RC(contd_fabric_many_begin(queue, &many, room, 1), want);
	CHECK_RC(contd_fabric_counter_begin(counter, 1, &op), want);
	CHECK(!none && !no_counter);
}

/* Before contd_init(), in the child of a fork, after contd_fini(). */
static void refused_times(const char *provider)
{
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	struct contd_fabric_counter *counter = NULL;
	struct contd_fabric_queue *queue = NULL;
	struct contd_fabric_op under_way;
	struct fid_cntr *cntr;
	int status;
	pid_t pid;

	open_all(provider);
	OK(fi_cntr_open(f.domain, &cntr_attr, &cntr, NULL));
	refuse_all(-EPERM, NULL, NULL, cntr);
	OK(contd_init(NULL));
	OK(contd_fabric_queue_adopt(cq, &good, &queue));
	OK(contd_fabric_counter_adopt(cntr, &good, &counter));
	OK(contd_fabric_begin(queue, &under_way));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		refuse_all(-ECHILD, queue, counter, cntr);
		/* The parent's other threads do not exist here, so nothing that they had begun ends. */
		CHECK_RC(contd_fabric_withdraw(&under_way, 0), -ECHILD);
		CHECK_RC(contd_fabric_queue_stop(queue), -ECHILD);
		CHECK_RC(contd_fabric_queue_destroy(queue), -ECHILD);
		CHECK_RC(contd_fabric_counter_destroy(counter), -ECHILD);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	OK(contd_fabric_counter_destroy(counter));
	OK(contd_fabric_queue_destroy(queue));
	OK(contd_fini());
	refuse_all(-EPERM, NULL, NULL, cntr);
	/* And once more. */
	OK(contd_init(NULL));
	OK(contd_fabric_queue_adopt(cq, &good, &queue));
	OK(contd_fabric_queue_destroy(queue));
	OK(contd_fini());
	OK(fi_close(&cntr->fid));
	close_all();
}

/* contd may end before its queues are closed: that is an error, or works, but is no crash. */
static void closed_late(const char *provider)
{
	struct contd_fabric_queue *queue = NULL;
	struct contd_fabric_op op;
	int rc;

	open_all(provider);
	OK(contd_init(NULL));
	OK(contd_fabric_queue_adopt(cq, &good, &queue));
	OK(contd_fabric_begin(queue, &op));
	CHECK(contd_fini() >= 0);
	rc = contd_fabric_queue_destroy(queue);
	CHECK(rc == 0 || rc == -EPERM);
	if (rc == 0)
		CHECK_RC(op.status, -FI_ECANCELED);
	close_all();
}

static void runs_never(int status, void *data)
{
	(void)status, (void)data;
	CHECK(!"contd_fini() has ended the group of this continuation");
}

/*
 * The queue outlives contd_fini(), with operations of each kind whose continuations have gone with their group, and
 * contd is started again: no thread reads the queue or touches that group, even while it reads another queue.
 */
static void outlived(const char *provider)
{
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	static struct contd_fabric_many many;
	struct contd_fabric_op carries, waits, counts, later, refused;
	struct contd_fabric_queue *old, *queue;
	struct contd_fabric_counter *counter;
	struct contd_fabric_entry room[1];
	struct contd_group *group;
	struct fid_cntr *cntr;

	open_all(provider);
	OK(fi_cntr_open(f.domain, &cntr_attr, &cntr, NULL));
	OK(contd_init(NULL));
	OK(contd_group_create(NULL, &group));
	OK(contd_fabric_queue_create(f.domain, NULL, NULL, &old));
	OK(contd_fabric_counter_adopt(cntr, &good, &counter));
	OK(contd_fabric_begin_continue(old, &carries, runs_never, NULL, group));
	OK(contd_fabric_begin(old, &waits));
	OK(contd_fabric_continue(&waits, runs_never, NULL, group));
	OK(contd_fabric_many_begin(old, &many, room, 1));
	OK(contd_fabric_many_continue(&many, runs_never, NULL, group));
	OK(contd_fabric_counter_begin(counter, 1, &counts));
	OK(contd_fabric_continue(&counts, runs_never, NULL, group));
	CHECK_RC(contd_fini(), 4);
	OK(contd_init(NULL));
	OK(contd_fabric_queue_create(f.domain, NULL, NULL, &queue));
	OK(contd_fabric_begin(queue, &later));
	OK(fi_cntr_add(cntr, 1));
	fabric_poll(10);
	CHECK_RC(contd_fabric_begin(old, &refused), -EPERM);
	CHECK(strstr(contd_error_text(), "contd_fini()"));
	CHECK_RC(contd_fabric_counter_begin(counter, 1, &refused), -EPERM);
	OK(contd_fabric_counter_destroy(counter));
	OK(contd_fabric_queue_destroy(old));
	CHECK_RC(carries.status, -FI_ECANCELED);
	CHECK_RC(waits.status, -FI_ECANCELED);
	CHECK_RC(many.op.status, -FI_ECANCELED);
	CHECK_RC(counts.status, -FI_ECANCELED);
	CHECK(contd_event_is_complete(&carries.event) && contd_event_is_complete(&counts.event));
	OK(contd_fabric_withdraw(&later, 0));
	OK(contd_fabric_queue_destroy(queue));
	OK(contd_fini());
	OK(fi_close(&cntr->fid));
	close_all();
}

/* The 257th queue; when one has gone there is room again. Counters count too. */
static void too_many(const char *provider)
{
	static struct contd_fabric_queue *queue[257];
	struct contd_fabric_op op;

	open_all(provider);
	OK(contd_init(NULL));
	good.operations = 1;
	for (int i = 0; i < 256; i++)
		OK(contd_fabric_queue_adopt(cq, &good, &queue[i]));
	CHECK_RC(contd_fabric_queue_adopt(cq, &good, &queue[256]), -EAGAIN);
	CHECK(!queue[256] && strstr(contd_error_text(), "256"));
	OK(contd_fabric_queue_destroy(queue[100]));
	OK(contd_fabric_queue_adopt(cq, &good, &queue[100]));
	CHECK_RC(contd_fabric_queue_adopt(cq, &good, &queue[256]), -EAGAIN);
	OK(contd_fabric_begin(queue[255], &op));
	fabric_poll(100);
	OK(contd_fabric_withdraw(&op, 0));
	for (int i = 255; i >= 0; i--)
		OK(contd_fabric_queue_destroy(queue[i]));
	OK(contd_fini());
	close_all();
}

/* In a continuation that contd's handler runs. */
static struct contd_fabric_queue *there;
static struct contd_fabric_counter *counter_there;
static struct fid_cntr *cntr_there;
static int ran, adopt_rc, open_rc, counter_rc, close_rc, counter_close_rc, counter_begin_rc;
static struct contd_event event = CONTD_EVENT_INIT;

static void in_handler(int status, void *data)
{
	struct contd_fabric_queue *queue = NULL;
	struct contd_fabric_counter *counter = NULL;
	struct contd_fabric_op op;

	(void)status, (void)data;
	adopt_rc = contd_fabric_queue_adopt(cq, &good, &queue);
	open_rc = contd_fabric_queue_create(f.domain, NULL, NULL, &queue);
	counter_rc = contd_fabric_counter_adopt(cntr_there, &good, &counter);
	close_rc = contd_fabric_queue_destroy(there);
	counter_begin_rc = contd_fabric_counter_begin(counter_there, 1, &op);
	counter_close_rc = contd_fabric_counter_destroy(counter_there);
	__atomic_store_n(&ran, 1, __ATOMIC_RELEASE);
}

static void *complete_it(void *data)
{
	(void)data;
	OK(contd_event_complete(&event, 0));
	return NULL;
}

static void refused_in_handler(const char *provider)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	struct contd_event *events[] = {&event};
	struct contd_group *group;
	struct contd_stats stats = {.size = sizeof(stats)};
	pthread_t thread;
	double until = fabric_now() + FABRIC_SECONDS;

	open_all(provider);
	OK(fi_cntr_open(f.domain, &cntr_attr, &cntr_there, NULL));
	OK(contd_init(NULL));
	OK(contd_thread_attach(NULL));
	OK(contd_group_create(&attr, &group));
	OK(contd_fabric_queue_adopt(cq, &good, &there));
	OK(contd_fabric_counter_adopt(cntr_there, &good, &counter_there));
	OK(contd_event_continue(1, events, in_handler, NULL, group, NULL));
	OK(pthread_create(&thread, NULL, complete_it, NULL));
	while (!__atomic_load_n(&ran, __ATOMIC_ACQUIRE) && fabric_now() < until)
		;
	CHECK(ran);
	OK(pthread_join(thread, NULL));
	OK(contd_stats_get(&stats));
	CHECK(stats.run_handler == 1);
	CHECK_RC(adopt_rc, -EPERM);
	CHECK_RC(open_rc, -EPERM);
	CHECK_RC(counter_rc, -EPERM);
	CHECK_RC(close_rc, -EPERM);
	CHECK_RC(counter_begin_rc, -EPERM);
	CHECK_RC(counter_close_rc, -EPERM);
	OK(contd_fabric_counter_destroy(counter_there));
	OK(contd_fabric_queue_destroy(there));
	OK(contd_group_destroy(group));
	OK(contd_thread_detach());
	OK(contd_fini());
	OK(fi_close(&cntr_there->fid));
	close_all();
}

static const struct fabric_case cases[] = {
	{"refused_attributes", refused_attributes},
	{"refused_open", refused_open},
	{"refused_operations", refused_operations},
	{"refused_times", refused_times},
	{"refused_in_handler", refused_in_handler},
	{"closed_late", closed_late},
	{"outlived", outlived},
	{"too_many", too_many},
};

int main(int argc, char **argv)
{
	return fabric_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
