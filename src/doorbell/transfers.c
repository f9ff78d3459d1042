/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/own_thread.h"
#include "doorbell/transfers.h"

#define OWED_LEAST 8       /* rings for a long transfer of whatever length */
#define OWED_BYTES 16384   /* and one more for so many bytes */
#define OWED_MOST 1024     /* that one peer is owed at a time */
#define GAP_FIRST_NS 50000 /* between two rings of one wait; grows with each ring */
#define GAP_MOST_NS 10000000
#define LOOK_NS 10000000 /* between two looks whether those who are owed rings have ended */

int32_t contd__owed;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* --------------------------------------------------------------------------------------------------------- owed --- */

void contd__owe(struct contd__place *p, int64_t bytes)
{
	int64_t more = OWED_LEAST + bytes / OWED_BYTES, now = contd__load(&p->owed);

	if (contd__ring_gone(p))
		return;
	/* Two threads at a time may both see room: a little more than the most does no harm. */
	if (now + more > OWED_MOST)
		more = now < OWED_MOST ? OWED_MOST - now : 0;
	contd__add(&p->owed, (int32_t)more);
	contd__add(&contd__owed, (int32_t)more);
}

static int ring_owed(void)
{
	uint32_t n = contd__load_acquire(&contd__ring.known_count);
	int rung = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* store, then load, as in contd_bell_ring() */
	for (uint32_t i = 0; i < n; i++) {
		struct contd__place *p = contd__ring.known[i];

		if (contd__load(&p->owed) <= 0 || !contd__load(contd__load_acquire(&p->bell)->armed))
			continue;
		if (contd__ring_armed(p)) {
			contd__sub(&p->owed, 1);
			contd__sub(&contd__owed, 1);
			rung++;
		}
	}
	return rung;
}

void contd__owed_ring_all(void)
{
	ring_owed();
}

/*
 * A peer that has ended does not arm its bell, and so no ring tells of its end. What it is owed would keep waits asking
 * for ever. At any time contd__owed is the sum of what each is owed, or about to be.
 */
static void forget_ended(int64_t now)
{
	static int64_t next;
	int64_t at = contd__load(&next);
	uint32_t n = contd__load_acquire(&contd__ring.known_count);

	if (now < at || !contd__cas(&next, &at, now + LOOK_NS))
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct contd__place *p = contd__ring.known[i];

		if (contd__load(&p->owed) > 0 && contd__ring_ended(p))
			contd__sub(&contd__owed, contd__xchg(&p->owed, 0));
	}
}

static int ring_it(struct contd__place *p)
{
	return contd__ring_place(p);
}

static int ring_owed_to(struct contd__place *p)
{
	(void)p;
	return ring_owed();
}

static int ring_known(struct contd__place *p)
{
	(void)p;
	return contd__ring_known();
}

static void turn(struct contd__stall *s, int (*ring)(struct contd__place *), struct contd__place *p)
{
	int64_t now = now_ns();

	if (now < s->next)
		return;
	if (contd__load(&contd__owed) > 0)
		forget_ended(now);
	if (s->gap == 0)
		s->gap = GAP_FIRST_NS;
	/* It grows with rings alone: a peer that has not armed its bell again yet costs nothing. */
	if (ring(p))
		s->gap += s->gap / 16;
	if (s->gap > GAP_MOST_NS)
		s->gap = GAP_MOST_NS;
	s->next = now + s->gap;
}

void contd__stall_turn(struct contd__stall *s, struct contd__place *p)
{
	turn(s, p ? ring_it : ring_owed_to, p);
}

/* -------------------------------------------------------------------------------------------- the helper thread --- */

#define ASIDE_SLOTS 16
#define NAP_NS 1000000 /* how long a call lasts, on average, before it is noticed */
#define IDLE_NAPS 16   /* without such calls, after which it sleeps */

static struct {
	pthread_mutex_t lock;
	pthread_t thread;
	uint32_t state;  /* 0: none; 1: runs; 2: it cannot be made */
	uint32_t asleep; /* futex */
	uint32_t stop;
	struct {
		/* 0: free. Otherwise a number that only goes up, another one for each call, and below it the rank +
		 * 2. */
		uint64_t call;
	} slot[ASIDE_SLOTS];
	uint64_t calls;
} aside = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void nap(int64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&ts, NULL);
}

static void ring_for(uint64_t call, struct contd__stall *s)
{
	int world = (int)(uint32_t)call - 2;

	turn(s, world < 0 ? ring_known : ring_it, world < 0 ? NULL : &contd__ring.place[world]);
}

static void *aside_main(void *arg)
{
	uint64_t before[ASIDE_SLOTS] = {0};
	struct contd__stall stall[ASIDE_SLOTS] = {{0, 0}};
	int idle = 0;

	(void)arg;
	prctl(PR_SET_NAME, "contd-doorbell");
	prctl(PR_SET_TIMERSLACK, 1ul);
	while (!contd__load_seq(&aside.stop)) {
		int lasting = 0, any = 0;

		for (int i = 0; i < ASIDE_SLOTS; i++) {
			uint64_t call = contd__load_seq(&aside.slot[i].call);

			if (call && call == before[i]) {
				ring_for(call, &stall[i]);
				lasting = 1;
			} else if (call) {
				stall[i] = (struct contd__stall){0, 0};
				any = 1;
			}
			before[i] = call;
		}
		idle = lasting || any ? 0 : idle + 1;
		if (idle < IDLE_NAPS) {
			nap(lasting ? GAP_FIRST_NS : NAP_NS);
			continue;
		}
		/* Say so, look again, sleep. Partner: contd__aside_enter, which enters and then looks. */
		contd__store_seq(&aside.asleep, 1);
		for (int i = 0; i < ASIDE_SLOTS; i++)
			any |= contd__load_seq(&aside.slot[i].call) != 0;
		if (!any && !contd__load_seq(&aside.stop))
			syscall(SYS_futex, &aside.asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
		contd__store_seq(&aside.asleep, 0);
		idle = 0;
	}
	return NULL;
}

static void aside_begin(void)
{
	int made;

	if (pthread_mutex_trylock(&aside.lock))
		return;
	if (!aside.state) {
		made = contd__own_thread_create(&aside.thread, aside_main, NULL) == 0;
		contd__store_release(&aside.state, made ? 1u : 2u);
	}
	pthread_mutex_unlock(&aside.lock);
}

int contd__aside_enter(int world)
{
	uint64_t call;

	if (contd__load(&contd__ring.known_count) == 0)
		return -1;
	if (!contd__load_acquire(&aside.state))
		aside_begin();
	if (contd__load_acquire(&aside.state) != 1)
		return -1;
	call = (contd__add(&aside.calls, 1) + 1) << 32 | (uint32_t)(world + 2);
	for (int i = 0; i < ASIDE_SLOTS; i++) {
		uint64_t empty = 0;

		if (contd__load(&aside.slot[i].call) || !contd__cas(&aside.slot[i].call, &empty, call))
			continue;
		if (contd__load_seq(&aside.asleep) && contd__xchg(&aside.asleep, 0))
			syscall(SYS_futex, &aside.asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		return i;
	}
	return -1; /* more threads than slots: ticks */
}

void contd__aside_leave(int slot)
{
	if (slot >= 0)
		contd__store_release(&aside.slot[slot].call, 0);
}

void contd__aside_forked(void)
{
	contd__store(&aside.state, 2);
}

void contd__aside_end(void)
{
	pthread_mutex_lock(&aside.lock);
	if (aside.state == 1) {
		contd__store_seq(&aside.stop, 1);
		contd__store_seq(&aside.asleep, 0);
		syscall(SYS_futex, &aside.asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		pthread_join(aside.thread, NULL);
	}
	contd__store(&aside.state, 2);
	pthread_mutex_unlock(&aside.lock);
}
