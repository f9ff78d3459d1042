/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses liburcu-memb, contd's flavor of RCU, for itself. */
#include "coexist.h"

#include <dlfcn.h>

#include <urcu/urcu-memb.h>

static atomic_int ran, registered, unregistered_threads;

/* In front of liburcu's, for contd's calls, too. */
void urcu_memb_register_thread(void)
{
	void (*next)(void) = (void (*)(void))dlsym(RTLD_NEXT, "urcu_memb_register_thread");

	atomic_fetch_add(&registered, 1);
	next();
}

void urcu_memb_unregister_thread(void)
{
	void (*next)(void) = (void (*)(void))dlsym(RTLD_NEXT, "urcu_memb_unregister_thread");

	atomic_fetch_add(&unregistered_threads, 1);
	next();
}

static void count(int status, void *data)
{
	(void)status;
	(void)data;
	atomic_fetch_add(&ran, 1);
}

/* An event and a group: what reads under RCU. */
static void use_contd(void)
{
	struct contd_event event = CONTD_EVENT_INIT, *events[] = {&event};
	struct contd_group *group;
	int complete = 0;

	MUST(contd_group_create(NULL, &group));
	MUST(contd_event_continue(1, events, count, NULL, group, NULL));
	MUST(contd_event_complete(&event, 0));
	while (!complete)
		contd_group_test(group, &complete);
	MUST(contd_group_destroy(group));
}

static void *detaches(void *data)
{
	(void)data;
	urcu_memb_register_thread();
	MUST(contd_thread_attach(NULL));
	use_contd();
	urcu_memb_read_lock();
	urcu_memb_read_unlock();
	MUST(contd_thread_detach());
	urcu_memb_synchronize_rcu();
	urcu_memb_unregister_thread();
	return NULL; /* contd has still to see to the thread's end */
}

static void *ends_attached(void *data)
{
	(void)data;
	urcu_memb_register_thread();
	MUST(contd_thread_attach(NULL));
	use_contd();
	urcu_memb_unregister_thread();
	return NULL;
}

static void *never_registers(void *data)
{
	(void)data;
	use_contd();
	urcu_memb_synchronize_rcu();
	return NULL;
}

/* `times`: so often is each of the threads registered. */
static void in_threads(void *(*body)(void *), int times)
{
	int before;

	MUST(contd_init(NULL));
	use_contd(); /* this thread is registered from here on */
	before = atomic_load(&registered);
	for (int i = 0; i < 200; i++) {
		pthread_t thread[2];

		for (int k = 0; k < 2; k++)
			CHECK_EQ(pthread_create(&thread[k], NULL, body, NULL), 0);
		for (int k = 0; k < 2; k++)
			CHECK_EQ(pthread_join(thread[k], NULL), 0);
		urcu_memb_synchronize_rcu(); /* looks at each thread that is still listed */
	}
	CHECK_EQ(atomic_load(&ran), 401);
	CHECK_EQ(atomic_load(&registered) - before, 400 * times);
	CHECK_EQ(atomic_load(&unregistered_threads), 400 * times);
	CHECK_EQ(contd_fini(), 0);
}

static void detached(void)
{
	in_threads(detaches, 2); /* once more for the thread's end */
}

static void attached(void)
{
	in_threads(ends_attached, 2);
}

static void unregistered(void)
{
	in_threads(never_registers, 1);
}

/* Registered before contd_init(), and until after contd_fini(). Sections of the program's, while contd ticks. */
static void main_thread(void)
{
	uint64_t ticks;

	urcu_memb_register_thread();
	ticking_begin();
	for (int i = 0; i < 100; i++) {
		ticks = ticks_now();
		urcu_memb_read_lock();
		COMPUTE_UNTIL(ticks_now() > ticks);
		urcu_memb_read_unlock();
		use_contd();
	}
	CHECK_EQ(atomic_load(&ran), 100);
	ticking_end();
	urcu_memb_read_lock();
	urcu_memb_read_unlock();
	urcu_memb_unregister_thread();
}

/* ctest reads one case a line */
/* clang-format off */
static const struct coexist_case cases[] = {
	{"detached", detached},
	{"attached", attached},
	{"unregistered", unregistered},
	{"main_thread", main_thread},
};
/* clang-format on */

COEXIST_CASES(cases)
