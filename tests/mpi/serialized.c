/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_SERIALIZED: two threads take turns under a mutex. Both attach to the same CRs, both test and wait for
 * them, and callbacks run on whichever is in MPI or contd; never on both at once, which would mean that one of them
 * called MPI without its turn.
 */
#include <pthread.h>

#include "check.h"

#define ROUNDS 400
#define PAIRS 4

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both; /* on a busy machine one could be through before the other begins */
static atomic_bool has_turn[2];
static MPI_Request cr[3]; /* the second one is poll-only; with the third one are messages to oneself */
static atomic_int attached[3], ran[3], ran_on_other, inside;
static _Thread_local int self;

struct message {
	int in, out, value, attached_by, to;
	MPI_Status status;
};

static void turn_take(void)
{
	pthread_mutex_lock(&turn);
	atomic_store(&has_turn[self], true);
}

static void turn_give(void)
{
	atomic_store(&has_turn[self], false);
	pthread_mutex_unlock(&turn);
	sched_yield();
}

static void arrived(MPI_Status *status, void *data)
{
	struct message *m = data;

	CHECK(atomic_load(&has_turn[self]));
	CHECK_EQ(atomic_fetch_add(&inside, 1), 0);
	CHECK_EQ(m->in, m->value);
	CHECK_EQ(status->MPI_SOURCE, m->to == 2 ? 0 : check_previous());
	CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
	if (m->attached_by != self)
		atomic_fetch_add(&ran_on_other, 1);
	atomic_fetch_add(&ran[m->to], 1);
	atomic_fetch_sub(&inside, 1);
	m->value = -1; /* done */
}

/* With the turn. Each thread's messages have separate tags, because the order of turns differs from rank to rank. */
static void post(struct message *m, int to, int tag, int value)
{
	MPI_Comm comm = to == 2 ? MPI_COMM_SELF : MPI_COMM_WORLD;
	MPI_Request pair[2];

	*m = (struct message){.in = -2, .out = value, .value = value, .attached_by = self, .to = to};
	MPI_Irecv(&m->in, 1, MPI_INT, to == 2 ? 0 : check_previous(), tag, comm, &pair[0]);
	CHECK_OK(MPI_Continue(&pair[0], arrived, m, &m->status, cr[to]));
	CHECK(pair[0] == MPI_REQUEST_NULL);
	MPI_Isend(&m->out, 1, MPI_INT, to == 2 ? 0 : check_next(), tag, comm, &pair[1]);
	MPI_Wait(&pair[1], MPI_STATUS_IGNORE);
	atomic_fetch_add(&attached[to], 1);
}

static bool all_done(const struct message *m)
{
	for (int k = 0; k < PAIRS; k++)
		if (m[k].value != -1)
			return false;
	return true;
}

static void *work(void *arg)
{
	static struct message messages[2][PAIRS], to_self[2];
	struct message *mine;
	int flag, index;

	self = *(int *)arg;
	mine = messages[self];
	to_self[self].value = -1;
	pthread_barrier_wait(&both);
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < PAIRS; k++) {
			turn_take();
			post(&mine[k], k % 2, self * PAIRS + k, i * PAIRS + k);
			turn_give();
		}
		/* The thread that comes first waits for it. */
		turn_take();
		if (to_self[self].value == -1)
			post(&to_self[self], 2, self, i);
		turn_give();
		/* Tests, since a wait would keep the other thread from attaching what it waits for. */
		for (bool done = false; !done;) {
			turn_take();
			CHECK_OK(MPI_Test(&cr[0], &flag, MPI_STATUS_IGNORE));
			CHECK_OK(MPI_Testany(2, cr, &index, &flag, MPI_STATUS_IGNORE));
			CHECK_OK(MPI_Test(&cr[1], &flag, MPI_STATUS_IGNORE));
			CHECK(contd_poll(0) >= 0);
			done = all_done(mine);
			turn_give();
		}
		/* It does not need the other ranks: their threads may hold their turns in such a wait, too. */
		if (i % 2 == 0) {
			turn_take();
			CHECK_OK(MPI_Wait(&cr[2], MPI_STATUS_IGNORE));
			CHECK_EQ(atomic_load(&attached[2]), atomic_load(&ran[2]));
			turn_give();
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int numbers[2] = {0, 1};
	pthread_t thread;

	check_init(&argc, &argv, MPI_THREAD_SERIALIZED);
	check_unbind();
	check_begin("two threads take turns");
	cr[0] = check_plain_cr();
	cr[1] = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	cr[2] = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	if (pthread_barrier_init(&both, NULL, 2) || pthread_create(&thread, NULL, work, &numbers[1]))
		return 1;
	work(&numbers[0]);
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(MPI_Wait(&cr[i], MPI_STATUS_IGNORE));
		CHECK_EQ(attached[i], ran[i]);
		CHECK(i == 2 ? ran[i] > 0 : ran[i] == ROUNDS * PAIRS);
		CHECK_OK(MPI_Request_free(&cr[i]));
	}
	CHECK(ran_on_other > 0); /* it is about these */
	return check_fini();
}
