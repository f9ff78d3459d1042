/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads with an alternate signal stack. contd's handler does not switch to it. But where a handler of the program's
 * runs on it, that is what contd's signal interrupts, and its handler runs there, too: below the interrupted frame, as
 * everywhere. liburcu says that handlers on an alternate stack must not use its read side; the case "read_side" shows
 * that the flavour that contd uses does not care what stack it is on.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <urcu/urcu-memb.h>

#include "coexist.h"

#define ALTERNATE_BYTES (256 * 1024)

static char *alternate;
static atomic_int ran_on_alternate, ran_elsewhere, own_on_alternate, own_elsewhere, interrupted;

static bool on_alternate(const void *p)
{
	return (const char *)p >= alternate && (const char *)p < alternate + ALTERNATE_BYTES;
}

static void alternate_set(void)
{
	stack_t alt = {0};

	alternate = mmap(NULL, ALTERNATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(alternate != MAP_FAILED);
	alt.ss_sp = alternate;
	alt.ss_size = ALTERNATE_BYTES;
	CHECK_SYS(sigaltstack(&alt, NULL));
}

static void note_stack(void)
{
	char here;

	if (on_alternate(&here))
		atomic_fetch_add(&ran_on_alternate, 1);
	else
		atomic_fetch_add(&ran_elsewhere, 1);
}

static void install(int signo, void (*handler)(int), int flags, int blocked)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	if (blocked)
		sigaddset(&action.sa_mask, blocked);
	CHECK_SYS(sigaction(signo, &action, NULL));
}

static void own_quick(int signo)
{
	(void)signo;
	if (on_alternate(&signo))
		atomic_fetch_add(&own_on_alternate, 1);
	else
		atomic_fetch_add(&own_elsewhere, 1);
}

/* The program's handlers are on it, contd's is not, though both come all the time. */
static void not_used(void)
{
	alternate_set();
	install(SIGUSR1, own_quick, SA_ONSTACK, OURS);
	ticking_begin();
	feed_begin(note_stack);
	for (int i = 0; i < 2000; i++) {
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
		CHECK_EQ(atomic_load(&own_on_alternate), i + 1);
	}
	COMPUTE_UNTIL(atomic_load(&ran_elsewhere) > 2000);
	feed_end();
	ticking_end();
	CHECK_EQ(atomic_load(&own_elsewhere), 0);
	CHECK_EQ(atomic_load(&ran_on_alternate), 0);
}

/* Stays in the handler until contd has run a continuation in it. */
static void own_long(int signo)
{
	int ran = atomic_load(&ran_on_alternate);
	uint64_t limit = now_ns() + 5000000000ull;

	own_quick(signo);
	while (atomic_load(&ran_on_alternate) == ran && now_ns() < limit)
		;
	if (atomic_load(&ran_on_alternate) != ran)
		atomic_fetch_add(&interrupted, 1);
}

static void own_handler_interrupted(void)
{
	alternate_set();
	install(SIGUSR1, own_long, SA_ONSTACK, 0);
	ticking_begin();
	feed_begin(note_stack);
	for (int i = 0; i < 300; i++)
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(atomic_load(&interrupted), 300);
	CHECK_EQ(atomic_load(&own_on_alternate), 300);
	CHECK_EQ(atomic_load(&own_elsewhere), 0);
	COMPUTE_UNTIL(atomic_load(&ran_elsewhere) > 100);
	feed_end();
	ticking_end();
}

/*
 * The same while groups come and go, so that grace periods wait for the read-side sections of handlers on the alternate
 * stack: a group that was freed too early would be used afterwards.
 */
static atomic_int churn_stop;
static atomic_int churned;

static void nothing(int status, void *data)
{
	(void)status;
	(void)data;
}

static void *churn_main(void *data)
{
	sigset_t all;

	(void)data;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load(&churn_stop)) {
		struct contd_group *g[40];

		for (int i = 0; i < 40; i++) {
			g[i] = group_new(CONTD_ASYNC_SIGNAL_SAFE);
			MUST(contd_event_continue(0, NULL, nothing, NULL, g[i], NULL));
		}
		for (int i = 0; i < 40; i++)
			MUST(contd_group_destroy(g[i]));
		atomic_fetch_add(&churned, 40);
	}
	return NULL;
}

static void groups_come_and_go(void)
{
	pthread_t thread;

	alternate_set();
	install(SIGUSR1, own_long, SA_ONSTACK, 0);
	ticking_begin();
	feed_begin(note_stack);
	CHECK_EQ(pthread_create(&thread, NULL, churn_main, NULL), 0);
	for (int i = 0; i < 200 || atomic_load(&churned) < 2000; i++)
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	atomic_store(&churn_stop, 1);
	pthread_join(thread, NULL);
	feed_end();
	ticking_end();
}

/* --------------------------------------------------------------------------------------------- liburcu's read side */

struct published {
	uint64_t a, b;
};

static struct published *published;
static atomic_int reader_stop, torn;
static atomic_ullong reads;

/* On the alternate stack: a whole section, that a grace period must wait for. */
static void own_reads(int signo)
{
	struct published *p;

	own_quick(signo);
	urcu_memb_read_lock();
	p = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
	for (int i = 0; i < 50; i++)
		if (__atomic_load_n(&p->a, __ATOMIC_RELAXED) != 1 || __atomic_load_n(&p->b, __ATOMIC_RELAXED) != 2)
			atomic_fetch_add(&torn, 1);
	urcu_memb_read_unlock();
	atomic_fetch_add(&reads, 1);
}

static void *reader_main(void *data)
{
	(void)data;
	alternate_set();
	urcu_memb_register_thread();
	while (!atomic_load(&reader_stop)) {
		/* In a section of the thread's own, and outside. */
		urcu_memb_read_lock();
		pthread_kill(pthread_self(), SIGUSR1);
		urcu_memb_read_unlock();
		pthread_kill(pthread_self(), SIGUSR1);
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void read_side_on_alternate_stack(void)
{
	static struct published both[2] = {{1, 2}, {1, 2}};
	pthread_t thread;

	published = &both[0];
	install(SIGUSR1, own_reads, SA_ONSTACK, 0);
	CHECK_EQ(pthread_create(&thread, NULL, reader_main, NULL), 0);
	for (int i = 0; i < 3000 || atomic_load(&reads) < 3000; i++) {
		struct published *old = &both[i % 2], *new = &both[(i + 1) % 2];

		__atomic_store_n(&new->a, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&new->b, 2, __ATOMIC_RELAXED);
		__atomic_store_n(&published, new, __ATOMIC_RELEASE);
		urcu_memb_synchronize_rcu();
		/* As if it were freed: no section that began before may still see it. */
		__atomic_store_n(&old->a, 77, __ATOMIC_RELAXED);
		__atomic_store_n(&old->b, 78, __ATOMIC_RELAXED);
	}
	atomic_store(&reader_stop, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(atomic_load(&torn), 0);
	CHECK_EQ(atomic_load(&own_elsewhere), 0);
	CHECK_EQ(atomic_load(&own_on_alternate), atomic_load(&reads));
	printf("%llu sections on the alternate stack\n", (unsigned long long)atomic_load(&reads));
}

/* --------------------------------------------------------------------------------------------------- small stacks */

/* How deep it goes below an interrupted frame on the alternate stack: what docs/signals.md says must be there. */
static atomic_size_t deepest;
static char *volatile own_frame;

static void note_depth(void)
{
	char here;

	if (own_frame && on_alternate(&here) && (size_t)(own_frame - &here) > atomic_load(&deepest))
		atomic_store(&deepest, (size_t)(own_frame - &here));
	note_stack();
}

static void own_measures(int signo)
{
	char here;

	own_frame = &here;
	own_long(signo);
	own_frame = NULL;
}

static void depth(void)
{
	alternate_set();
	install(SIGUSR1, own_measures, SA_ONSTACK, 0);
	ticking_begin();
	feed_begin(note_depth);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	feed_end();
	ticking_end();
	CHECK_EQ(atomic_load(&interrupted), 100);
	printf("a callback begins %zu bytes below the handler that was interrupted, of which the kernel's frame: %ld\n",
	       atomic_load(&deepest), sysconf(_SC_MINSIGSTKSZ));
	/* contd expects the kernel's frame and 4 KiB more. */
	CHECK(atomic_load(&deepest) > 0);
	if (sysconf(_SC_MINSIGSTKSZ) > 0)
		CHECK(atomic_load(&deepest) <= (size_t)sysconf(_SC_MINSIGSTKSZ) + 4096);
}

static const struct coexist_case cases[] = {
	{"not_used", not_used},
	{"own_handler_interrupted", own_handler_interrupted},
	{"groups_come_and_go", groups_come_and_go},
	{"read_side", read_side_on_alternate_stack},
	{"depth", depth},
};

COEXIST_CASES(cases)
