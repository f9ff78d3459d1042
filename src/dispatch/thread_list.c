/* SPDX-License-Identifier: BSD-3-Clause */
/* All threads that have called contd. */
#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "dispatch/thread.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
CDS_LIST_HEAD(contd__threads);
static struct contd__counters departed; /* of threads that have ended; under list_lock */

#define COUNTERS (sizeof(struct contd__counters) / sizeof(uint64_t))

static void add(struct contd__counters *sum, const struct contd__self *self)
{
	const uint64_t *from = (const uint64_t *)&self->counters;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < COUNTERS; i++)
		to[i] += contd__load(&from[i]);
}

void contd__threads_enter(void)
{
	pthread_mutex_lock(&list_lock);
	contd__self.tls = &contd__tls;
	contd__thread_number_sig();
	cds_list_add(&contd__self.node, &contd__threads);
	contd__add(&contd__threads_count, 1);
	pthread_mutex_unlock(&list_lock);
}

void contd__threads_leave(void)
{
	pthread_mutex_lock(&list_lock);
	cds_list_del(&contd__self.node);
	contd__sub(&contd__threads_count, 1);
	add(&departed, &contd__self);
	pthread_mutex_unlock(&list_lock);
}

void contd__threads_unwatch(void)
{
	struct contd__self *self;

	pthread_mutex_lock(&list_lock);
	cds_list_for_each_entry (self, &contd__threads, node)
		contd__store(&self->tls->watch, &contd__never_rung);
	pthread_mutex_unlock(&list_lock);
}

unsigned contd__threads_running(struct contd__running *running, unsigned room)
{
	struct contd__self *self;
	unsigned n = 0;

	pthread_mutex_lock(&list_lock);
	cds_list_for_each_entry (self, &contd__threads, node) {
		const void *site = contd__load_acquire(&self->watched.site);
		/* Acquire: before the load below, which checks that the site is still the same. */
		uint64_t since = contd__load_acquire(&self->watched.since);

		if (n < room && site && contd__load(&self->watched.site) == site)
			running[n++] = (struct contd__running){site, since, contd__load(&self->context)};
	}
	pthread_mutex_unlock(&list_lock);
	return n;
}

bool contd__threads_other_in_callback(void)
{
	struct contd__self *self;
	bool some = false;

	pthread_mutex_lock(&list_lock);
	cds_list_for_each_entry (self, &contd__threads, node)
		some = some || (self != &contd__self && contd__load(&self->frame));
	pthread_mutex_unlock(&list_lock);
	return some;
}

void contd__threads_sum(struct contd__counters *sum)
{
	struct contd__self *self;

	pthread_mutex_lock(&list_lock);
	*sum = departed;
	cds_list_for_each_entry (self, &contd__threads, node)
		add(sum, self);
	pthread_mutex_unlock(&list_lock);
}

void contd__threads_zero(void)
{
	struct contd__self *self;

	pthread_mutex_lock(&list_lock);
	memset(&departed, 0, sizeof(departed));
	cds_list_for_each_entry (self, &contd__threads, node) {
		for (size_t i = 0; i < COUNTERS; i++)
			contd__store((uint64_t *)&self->counters + i, 0);
	}
	pthread_mutex_unlock(&list_lock);
}
