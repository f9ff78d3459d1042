/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>

#include <urcu/urcu-memb.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "dispatch/thread.h"
#include "mpi/cr.h"
#include "mpi/handles.h"
#include "rcu/reader.h"

#define BUCKETS 4096u     /* fixed: to grow, the table would need a separate thread */
#define RETIRED_BATCH 64u /* removed entries that are worth a grace period */

uint32_t contd__handles, contd__handles_told;
__thread MPI_Request contd__started[STARTED_RECENTLY] __attribute__((tls_model("initial-exec")));
__thread uint32_t contd__started_at __attribute__((tls_model("initial-exec")));

static struct cds_lfht *table;
/* How many entries have this hash: most requests are neither CRs nor persistent, and need no look into the table. */
static uint32_t present[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* making the table; retired entries */
static CDS_LIST_HEAD(retired);
static unsigned retired_count;

static unsigned long hash(MPI_Request request)
{
	uint64_t x = (uint64_t)(uintptr_t)request;

	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull; /* neighbours in memory, or counted up: spread them */
	return (unsigned long)(x ^ x >> 29);
}

static int match(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct contd__handle, node)->request == *(const MPI_Request *)key;
}

struct contd__handle *contd__handle_find(MPI_Request request)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	unsigned long h = hash(request);

	/* A thread that has the handle has it from a call that came after the one that added it. */
	if (contd__load(&present[h % BUCKETS]) == 0)
		return NULL;
	contd__thread_ensure();
	contd__read_lock_sig();
	cds_lfht_lookup(table, h, match, &request, &iter);
	node = cds_lfht_iter_get_node(&iter);
	contd__read_unlock_sig();
	return node ? caa_container_of(node, struct contd__handle, node) : NULL;
}

static bool table_make(void)
{
	pthread_mutex_lock(&lock);
	if (!table)
		contd__store_release(&table,
				     _cds_lfht_new(BUCKETS, BUCKETS, BUCKETS, 0, NULL, &urcu_memb_flavor, NULL));
	pthread_mutex_unlock(&lock);
	return table != NULL;
}

struct contd__handle *contd__handle_add(MPI_Request request, struct contd__cr *cr)
{
	struct contd__handle *h;

	if (!contd__load_acquire(&table) && !table_make())
		return NULL;
	h = contd__zalloc(sizeof(*h));
	if (!h)
		return NULL;
	contd__thread_ensure();
	h->request = request;
	h->cr = cr;
	h->comm = MPI_COMM_NULL;
	cds_lfht_node_init(&h->node);
	contd__add(&present[hash(request) % BUCKETS], 1);
	contd__read_lock_sig();
	cds_lfht_add(table, hash(request), &h->node);
	contd__read_unlock_sig();
	contd__add(&contd__handles, 1);
	return h;
}

void contd__told_keep(struct contd__handle *h, const MPI_Status *status)
{
	h->status = *status;
	contd__add(&contd__handles_told, 1);
	contd__store_release(&h->told, 1); /* pairs with the exchange in contd__told_take */
}

bool contd__told_take(struct contd__handle *h, MPI_Status *status)
{
	int error;

	if (!h || !contd__load(&h->told) || !contd__xchg(&h->told, 0))
		return false;
	contd__sub(&contd__handles_told, 1);
	if (status == MPI_STATUS_IGNORE)
		return true;
	error = status->MPI_ERROR; /* single completion leaves it as it was: MPI 4.1, 3.2.5 */
	*status = h->status;
	if (status->MPI_ERROR == MPI_SUCCESS)
		status->MPI_ERROR = error;
	return true;
}

static void reap(void)
{
	struct contd__handle *h, *next;
	CDS_LIST_HEAD(dead);

	pthread_mutex_lock(&lock);
	cds_list_splice(&retired, &dead);
	CDS_INIT_LIST_HEAD(&retired);
	retired_count = 0;
	pthread_mutex_unlock(&lock);
	contd__grace_period();
	cds_list_for_each_entry_safe (h, next, &dead, retired)
		free(h);
}

void contd__handle_remove(struct contd__handle *h)
{
	bool many;

	contd__told_take(h, MPI_STATUS_IGNORE);
	contd__thread_ensure();
	contd__read_lock_sig();
	cds_lfht_del(table, &h->node);
	contd__read_unlock_sig();
	contd__sub(&present[hash(h->request) % BUCKETS], 1);
	contd__sub(&contd__handles, 1);
	pthread_mutex_lock(&lock);
	cds_list_add(&h->retired, &retired);
	many = ++retired_count >= RETIRED_BATCH;
	pthread_mutex_unlock(&lock);
	/* Not in a region's handler: what was interrupted may be in a read-side section. */
	if (many && contd__on_thread_sig())
		reap();
}

void contd__handles_clear(void)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	if (!table)
		return;
	contd__thread_ensure();
	for (;;) {
		contd__read_lock_sig();
		cds_lfht_first(table, &iter);
		node = cds_lfht_iter_get_node(&iter);
		contd__read_unlock_sig();
		if (!node)
			break;
		contd__handle_remove(caa_container_of(node, struct contd__handle, node));
	}
	reap();
}

bool contd__recently_started(MPI_Request request)
{
	for (uint32_t i = 1; i <= STARTED_RECENTLY; i++)
		if (contd__started[(contd__started_at - i) % STARTED_RECENTLY] == request)
			return true;
	return false;
}
