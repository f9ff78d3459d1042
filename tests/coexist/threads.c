/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that existed before contd and after it, attached and not; threads that come and go by the thousand while
 * ticked. */
#include "coexist.h"

#define OTHERS 3

static atomic_int phase, attached_before, seen_by_stranger, stranger_interrupted;
static __thread bool stranger;

/* pthread_self() and own thread-local data of the executable: both are read by one instruction. */
static void note_thread(void)
{
	if (stranger)
		atomic_fetch_add(&seen_by_stranger, 1);
}

/* Made before contd_init(); attaches when told, computes, and ends attached. */
static void *made_before(void *data)
{
	(void)data;
	COMPUTE_UNTIL(atomic_load(&phase) >= 1);
	MUST(contd_thread_attach(NULL));
	atomic_fetch_add(&attached_before, 1);
	COMPUTE_UNTIL(atomic_load(&phase) >= 2);
	return NULL;
}

/* Never attached: no signal comes, so that not even a call that is never restarted is interrupted. */
static void *never_attached(void *data)
{
	struct timespec nap = {0, 1000000};

	(void)data;
	stranger = true;
	while (atomic_load(&phase) < 2)
		if (nanosleep(&nap, NULL))
			atomic_fetch_add(&stranger_interrupted, 1);
	return NULL;
}

static void before_and_after(void)
{
	pthread_t before[OTHERS], strangers[2];

	for (int i = 0; i < OTHERS; i++)
		CHECK_EQ(pthread_create(&before[i], NULL, made_before, NULL), 0);
	CHECK_EQ(pthread_create(&strangers[0], NULL, never_attached, NULL), 0);
	ticking_begin();
	CHECK_EQ(pthread_create(&strangers[1], NULL, never_attached, NULL), 0);
	atomic_store(&phase, 1);
	AWAIT(atomic_load(&attached_before) == OTHERS);
	feed_begin(note_thread);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > 2000);
	feed_end();
	atomic_store(&phase, 2);
	for (int i = 0; i < OTHERS; i++)
		pthread_join(before[i], NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(strangers[i], NULL);
	ticking_end();
	CHECK_EQ(atomic_load(&seen_by_stranger), 0);
	CHECK_EQ(atomic_load(&stranger_interrupted), 0);
}

/* -------------------------------------------------------------------------------------------------------- churn --- */

#define AT_ONCE 4

static atomic_ullong churn_ran, churn_made;
static atomic_int ended;

static void churn_cb(int status, void *data)
{
	(void)status;
	(void)data;
	atomic_fetch_add(&churn_ran, 1);
}

enum how { DETACHES, ENDS_ATTACHED, ENDS_ATTACHED_TWICE };

static void *comes_and_goes(void *data)
{
	enum how how = (enum how)(uintptr_t)data;
	struct contd_event *es[1];
	struct contd_event *e;
	unsigned long x = 1;

	MUST(contd_thread_attach(NULL));
	if (how == ENDS_ATTACHED_TWICE)
		MUST(contd_thread_attach(NULL));
	/* Its own work and allocations, interrupted. */
	for (int i = 0; i < 20; i++) {
		char *p = malloc(100 + (x & 1023));

		for (int k = 0; k < 500; k++)
			x = x * 6364136223846793005u + 1442695040888963407u;
		p[x % 100] = 1;
		free(p);
	}
	/* A continuation that is left to other threads: this one may be gone when it is ready. */
	e = malloc(sizeof(*e));
	contd_event_init(e);
	es[0] = e;
	MUST(contd_event_continue(1, es, churn_cb, NULL, ticking_safe, NULL));
	atomic_fetch_add(&churn_made, 1);
	MUST(contd_event_complete(e, 0));
	free(e); /* complete: contd does not look at it any more */
	atomic_fetch_add(&ended, 1);
	if (how == DETACHES)
		MUST(contd_thread_detach());
	if (how == ENDS_ATTACHED_TWICE)
		pthread_exit(NULL);
	return NULL;
}

static void churn(enum how from, enum how to, int total)
{
	pthread_t thread[AT_ONCE];

	ticking_begin();
	for (int made = 0; made < total; made += AT_ONCE) {
		for (int i = 0; i < AT_ONCE; i++) {
			uintptr_t how = (uintptr_t)from + (unsigned)(made + i) % (to - from + 1);

			CHECK_EQ(pthread_create(&thread[i], NULL, comes_and_goes, (void *)how), 0);
		}
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(thread[i], NULL);
	}
	COMPUTE_UNTIL(atomic_load(&churn_ran) == atomic_load(&churn_made));
	CHECK_EQ(atomic_load(&ended), total);
	ticking_end();
	CHECK_EQ(atomic_load(&churn_ran), total);
}

static void thousands_that_detach(void)
{
	churn(DETACHES, DETACHES, 2000);
}

static void thousands_that_end_attached(void)
{
	churn(DETACHES, ENDS_ATTACHED_TWICE, 3000);
}

/* While another thread notifies them as they end. */
static void ends_while_notified(void)
{
	pthread_t thread[AT_ONCE];

	ticking_begin();
	feed_begin(NULL);
	for (int made = 0; made < 1000; made += AT_ONCE) {
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_create(&thread[i], NULL, comes_and_goes, (void *)(uintptr_t)ENDS_ATTACHED), 0);
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(thread[i], NULL);
	}
	feed_end();
	COMPUTE_UNTIL(atomic_load(&churn_ran) == 1000);
	ticking_end();
	CHECK_EQ(atomic_load(&churn_ran), 1000);
}

static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pause_cond = PTHREAD_COND_INITIALIZER;

static void unlock_pause(void *data)
{
	(void)data;
	pthread_mutex_unlock(&pause_lock);
}

static void *waits_to_be_cancelled(void *data)
{
	(void)data;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	MUST(contd_thread_attach(NULL));
	atomic_fetch_add(&ended, 1);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_mutex_lock(&pause_lock);
	pthread_cleanup_push(unlock_pause, NULL);
	for (;;)
		pthread_cond_wait(&pause_cond, &pause_lock);
	pthread_cleanup_pop(1);
	return NULL;
}

static void cancelled_while_attached(void)
{
	ticking_begin();
	feed_begin(NULL);
	for (int i = 0; i < 500; i++) {
		pthread_t thread;
		void *result = NULL;

		CHECK_EQ(pthread_create(&thread, NULL, waits_to_be_cancelled, NULL), 0);
		if (i % 2)
			AWAIT(atomic_load(&ended) > i);
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	CHECK_EQ(atomic_load(&ended), 500);
	feed_end();
	ticking_end();
}

static void *attached_helper(void *data)
{
	MUST(contd_thread_attach(NULL));
	atomic_fetch_add(&attached_before, 1);
	COMPUTE_UNTIL(atomic_load((atomic_int *)data));
	return NULL;
}

/* contd ends and starts while threads live that were attached to the former one. */
static void attached_over_starts_and_ends(void)
{
	for (int i = 0; i < 30; i++) {
		atomic_int stop = 0;
		pthread_t thread;

		ticking_begin();
		CHECK_EQ(pthread_create(&thread, NULL, attached_helper, &stop), 0);
		AWAIT(atomic_load(&attached_before) == i + 1);
		feed_begin(NULL);
		COMPUTE_UNTIL(atomic_load(&feed_ran) > 100);
		feed_end();
		if (i % 2) {
			atomic_store(&stop, 1);
			pthread_join(thread, NULL);
			ticking_end();
		} else {
			COMPUTE_UNTIL(ticks_now() > 100);
			ticking_end(); /* attached yet */
			atomic_store(&stop, 1);
			pthread_join(thread, NULL);
		}
	}
}

/* ------------------------------------------------------------------------- cancelled in the middle of a handler --- */

static atomic_int in_callback, cancel_sent, callback_over;
static struct contd_event made_ready;

static void is_cancelled_meanwhile(int status, void *data)
{
	uint64_t until;

	(void)status;
	(void)data;
	atomic_store(&in_callback, 1);
	while (!atomic_load(&cancel_sent))
		;
	MUST(contd_event_complete(&made_ready, 0)); /* raises the file descriptor of contd_fd() */
	for (until = now_ns() + 20000000; now_ns() < until;)
		;
	atomic_store(&callback_over, 1);
}

static void nothing(int status, void *data)
{
	(void)status;
	(void)data;
}

/* data: what pthread_setcanceltype(3) is told. Computes, without a cancellation point. */
static void *computes_to_be_cancelled(void *data)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	MUST(contd_thread_attach(NULL));
	pthread_setcanceltype(*(int *)data, NULL);
	atomic_fetch_add(&ended, 1);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	while (!atomic_load(&callback_over))
		;
	pthread_testcancel();
	return NULL;
}

static void *completes(void *data)
{
	MUST(contd_event_complete(data, 0));
	return NULL;
}

static void cancelled_in_handler(void)
{
	int types[] = {PTHREAD_CANCEL_ASYNCHRONOUS, PTHREAD_CANCEL_DEFERRED};

	MUST(contd_init(NULL));
	CHECK(contd_fd() >= 0);
	for (int i = 0; i < 2; i++) {
		struct contd_group *safe = group_new(CONTD_ASYNC_SIGNAL_SAFE), *plain = group_new(0);
		struct contd_event first, *es[] = {&first}, *made[] = {&made_ready};
		pthread_t thread, completer;
		void *result = NULL;

		contd_event_init(&first);
		contd_event_init(&made_ready);
		atomic_store(&in_callback, 0);
		atomic_store(&cancel_sent, 0);
		atomic_store(&callback_over, 0);
		atomic_store(&ended, 0);
		MUST(contd_event_continue(1, made, nothing, NULL, plain, NULL));
		MUST(contd_event_continue(1, es, is_cancelled_meanwhile, NULL, safe, NULL));
		CHECK_EQ(contd_poll(0), 0); /* from here on the descriptor tells */
		CHECK_EQ(pthread_create(&thread, NULL, computes_to_be_cancelled, &types[i]), 0);
		AWAIT(atomic_load(&ended));
		CHECK_EQ(pthread_create(&completer, NULL, completes, &first), 0);
		AWAIT(atomic_load(&in_callback));
		CHECK_EQ(pthread_cancel(thread), 0);
		atomic_store(&cancel_sent, 1);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK_EQ(pthread_join(completer, NULL), 0);
		CHECK(result == PTHREAD_CANCELED);
		CHECK_EQ(atomic_load(&callback_over), 1);
		CHECK_EQ(contd_group_outstanding(safe), 0);
		CHECK_EQ(contd_poll(0), 1);
		MUST(contd_group_destroy(safe));
		MUST(contd_group_destroy(plain));
	}
	CHECK_EQ(contd_fini(), 0);
}

/* ctest reads one case a line */
/* clang-format off */
static const struct coexist_case cases[] = {
	{"before_and_after", before_and_after},
	{"churn_detached", thousands_that_detach},
	{"churn_attached", thousands_that_end_attached},
	{"ends_while_notified", ends_while_notified},
	{"cancelled", cancelled_while_attached},
	{"cancelled_in_handler", cancelled_in_handler},
	{"over_starts_and_ends", attached_over_starts_and_ends},
};
/* clang-format on */

COEXIST_CASES(cases)
