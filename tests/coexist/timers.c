/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own signals, timers and descriptors for them beside contd: none is lost, none is added, each keeps its
 * value. */
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "coexist.h"

static atomic_int got, wrong, overruns;

static void install(int signo, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};

	CHECK_SYS(sigaction(signo, &action, NULL));
}

/* ----------------------------------------------------------------------------------------------- queued signals --- */

/* In the order in which they were sent: real-time signals of one number are a queue. */
static void on_numbered(int signo, siginfo_t *info, void *context)
{
	int n = atomic_fetch_add(&got, 1);

	(void)context;
	if (info->si_value.sival_int != n || info->si_code != SI_QUEUE || signo != info->si_signo)
		atomic_fetch_add(&wrong, 1);
}

#define QUEUED 5000

static void *send_numbered(void *data)
{
	int signo = *(int *)data;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < QUEUED; i++) {
		union sigval value = {.sival_int = i};

		while (sigqueue(getpid(), signo, value)) {
			CHECK_EQ(errno, EAGAIN); /* the queue is full */
			usleep(100);
		}
		if (i % 64 == 0)
			usleep(200);
	}
	return NULL;
}

static void queued_signals(void)
{
	int signo = SIGRTMIN + 1;
	pthread_t thread;

	install(signo, on_numbered);
	ticking_begin();
	feed_begin(NULL);
	CHECK_EQ(pthread_create(&thread, NULL, send_numbered, &signo), 0);
	COMPUTE_UNTIL(atomic_load(&got) >= QUEUED);
	pthread_join(thread, NULL);
	feed_end();
	CHECK_EQ(atomic_load(&got), QUEUED);
	CHECK_EQ(atomic_load(&wrong), 0);
	ticking_end();
}

static void *send_around_the_end(void *data)
{
	sigset_t all;

	(void)data;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < 200; i++) {
		union sigval value = {.sival_int = i};

		CHECK_SYS(sigqueue(getpid(), SIGRTMIN + 1, value));
		usleep(300);
	}
	return NULL;
}

/* contd comes and goes meanwhile. */
static void signals_over_starts_and_ends(void)
{
	pthread_t thread;
	int starts = 0;

	install(SIGRTMIN + 1, on_numbered);
	CHECK_EQ(pthread_create(&thread, NULL, send_around_the_end, NULL), 0);
	while (atomic_load(&got) < 200 || starts < 10) {
		ticking_begin();
		ticking_end();
		starts++;
	}
	pthread_join(thread, NULL);
	CHECK_EQ(atomic_load(&got), 200);
	CHECK_EQ(atomic_load(&wrong), 0);
}

/* ------------------------------------------------------------------------------------------------- POSIX timers --- */

#define ONE_SHOTS 400

static atomic_int shot[ONE_SHOTS];

static void on_shot(int signo, siginfo_t *info, void *context)
{
	int i = info->si_value.sival_int;

	(void)signo;
	(void)context;
	if (info->si_code != SI_TIMER || info->si_overrun || i < 0 || i >= ONE_SHOTS)
		atomic_fetch_add(&wrong, 1);
	else
		atomic_fetch_add(&shot[i], 1);
	atomic_fetch_add(&got, 1);
}

static void one_shot_timers(void)
{
	timer_t timer[ONE_SHOTS];

	install(SIGRTMIN + 2, on_shot);
	ticking_begin();
	feed_begin(NULL);
	for (int i = 0; i < ONE_SHOTS; i++) {
		struct sigevent ev = {
			.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2, .sigev_value.sival_int = i};
		struct itimerspec once = {{0, 0}, {0, 100000 + i * 75011}};

		CHECK_SYS(timer_create(CLOCK_MONOTONIC, &ev, &timer[i]));
		CHECK_SYS(timer_settime(timer[i], 0, &once, NULL));
	}
	COMPUTE_UNTIL(atomic_load(&got) >= ONE_SHOTS);
	for (int i = 0; i < ONE_SHOTS; i++) {
		CHECK_SYS(timer_delete(timer[i]));
		CHECK_EQ(atomic_load(&shot[i]), 1);
	}
	feed_end();
	CHECK_EQ(atomic_load(&got), ONE_SHOTS);
	CHECK_EQ(atomic_load(&wrong), 0);
	ticking_end();
}

static int periodic_mark;

static void on_period(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &periodic_mark)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&got, 1);
	atomic_fetch_add(&overruns, info->si_overrun);
}

#define PERIOD_NS 500000

/* Signals and what the kernel merged into them make up the time that has passed. */
static void periodic_timer(void)
{
	struct sigevent ev = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3, .sigev_value.sival_ptr = &periodic_mark};
	struct itimerspec on = {{0, PERIOD_NS}, {0, PERIOD_NS}}, off = {{0, 0}, {0, 0}};
	uint64_t before, after, stopping, stopped;
	timer_t timer;
	long total;

	install(SIGRTMIN + 3, on_period);
	ticking_begin();
	feed_begin(NULL);
	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &ev, &timer));
	before = now_ns();
	CHECK_SYS(timer_settime(timer, 0, &on, NULL));
	after = now_ns();
	COMPUTE_UNTIL(now_ns() > after + 300000000u);
	stopping = now_ns();
	CHECK_SYS(timer_settime(timer, 0, &off, NULL));
	stopped = now_ns();
	CHECK_SYS(timer_delete(timer));
	total = atomic_load(&got) + atomic_load(&overruns);
	printf("%d signals, %d merged\n", atomic_load(&got), atomic_load(&overruns));
	/* The last one may have been taken back with the timer. */
	CHECK(total >= (long)((stopping - after) / PERIOD_NS) - 2);
	CHECK(total <= (long)((stopped - before) / PERIOD_NS) + 1);
	CHECK_EQ(atomic_load(&wrong), 0);
	feed_end();
	ticking_end();
}

static void on_alarm(int signo)
{
	(void)signo;
	atomic_fetch_add(&got, 1);
}

static void alarms_by_setitimer(void)
{
	struct itimerval once = {{0, 0}, {0, 300}};

	CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
	ticking_begin();
	feed_begin(NULL);
	for (int i = 0; i < 500; i++) {
		CHECK_SYS(setitimer(ITIMER_REAL, &once, NULL));
		COMPUTE_UNTIL(atomic_load(&got) > i);
		CHECK_EQ(atomic_load(&got), i + 1);
	}
	feed_end();
	ticking_end();
	CHECK_EQ(atomic_load(&got), 500);
}

/* ----------------------------------------------------------------------------------------------- descriptors --- */

/* Blocking reads are restarted; what they add up to is the time that has passed. */
static void timer_descriptors(void)
{
	struct itimerspec on = {{0, PERIOD_NS}, {0, PERIOD_NS}}, once = {{0, 0}, {0, 100000}};
	uint64_t before, after, reading, count, total = 0;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	CHECK_SYS(fd);
	ticking_begin();
	feed_begin(NULL);
	before = now_ns();
	CHECK_SYS(timerfd_settime(fd, 0, &on, NULL));
	after = now_ns();
	do {
		reading = now_ns();
		CHECK_EQ(read(fd, &count, sizeof(count)), sizeof(count));
		CHECK(count > 0);
		total += count;
	} while (now_ns() < after + 300000000u);
	CHECK(total >= (reading - after) / PERIOD_NS);
	CHECK(total <= (now_ns() - before) / PERIOD_NS);
	for (int i = 0; i < 300; i++) {
		CHECK_SYS(timerfd_settime(fd, 0, &once, NULL));
		CHECK_EQ(read(fd, &count, sizeof(count)), sizeof(count));
		CHECK_EQ(count, 1);
	}
	close(fd);
	feed_end();
	ticking_end();
}

static void signal_descriptors(void)
{
	int signo = SIGRTMIN + 4, fd;
	pthread_t thread;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	fd = signalfd(-1, &set, 0);
	CHECK_SYS(fd);
	ticking_begin();
	feed_begin(NULL);
	CHECK_EQ(pthread_create(&thread, NULL, send_numbered, &signo), 0);
	for (int i = 0; i < QUEUED; i++) {
		struct signalfd_siginfo info;

		CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
		CHECK_EQ(info.ssi_signo, signo);
		CHECK_EQ(info.ssi_int, i);
	}
	pthread_join(thread, NULL);
	close(fd);
	feed_end();
	ticking_end();
}

/* Threads that wait for signals by sigtimedwait. */
static void waited_signals(void)
{
	int signo = SIGRTMIN + 5, i = 0;
	pthread_t thread;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	ticking_begin();
	CHECK_EQ(pthread_create(&thread, NULL, send_numbered, &signo), 0);
	while (i < QUEUED) {
		siginfo_t info;

		if (sigwaitinfo(&set, &info) < 0) {
			CHECK_EQ(errno, EINTR); /* contd's signal */
			continue;
		}
		CHECK_EQ(info.si_value.sival_int, i);
		i++;
	}
	pthread_join(thread, NULL);
	ticking_end();
}

/* ------------------------------------------------------------------------------------------ the signal is taken --- */

static void refused(void)
{
	struct contd_config c = ticking_config();
	union sigval value = {.sival_int = 0};

	install(OURS, on_numbered);
	CHECK_EQ(contd_init(&c), -EBUSY);
	CHECK(strstr(contd_error_text(), "CONTD_SIGNAL"));
	CHECK_EQ(contd_init(NULL), -EBUSY);
	CHECK_SYS(sigqueue(getpid(), OURS, value));
	COMPUTE_UNTIL(atomic_load(&got) == 1);
	/* Another number: both live side by side, at neighbouring numbers. */
	c.signal_number = OURS - 1;
	MUST(contd_init(&c));
	MUST(contd_thread_attach(NULL));
	ticking_watch();
	for (value.sival_int = 1; value.sival_int < 1000; value.sival_int++)
		CHECK_SYS(sigqueue(getpid(), OURS, value));
	COMPUTE_UNTIL(atomic_load(&got) == 1000);
	CHECK_EQ(atomic_load(&wrong), 0);
	ticking_end();
}

/* Two masters of one signal: the program's timer, with its value, and queued signals, beside contd's ticks. */
static void chained(void)
{
	struct sigevent ev = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = OURS, .sigev_value.sival_ptr = &periodic_mark};
	struct itimerspec once = {{0, 0}, {0, 200000}};
	struct contd_config c = ticking_config();
	timer_t timer;

	install(OURS, on_period);
	c.signal_taken = CONTD_SIGNAL_CHAIN;
	MUST(contd_init(&c));
	MUST(contd_thread_attach(NULL));
	ticking_watch();
	feed_begin(NULL);
	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &ev, &timer));
	for (int i = 0; i < 500; i++) {
		CHECK_SYS(timer_settime(timer, 0, &once, NULL));
		COMPUTE_UNTIL(atomic_load(&got) > i);
		CHECK_EQ(atomic_load(&got), i + 1);
	}
	CHECK_SYS(timer_delete(timer));
	feed_end();
	ticking_end();
	/* None of contd's went to the program, and none of the program's to contd. */
	CHECK_EQ(atomic_load(&got), 500);
	CHECK_EQ(atomic_load(&wrong), 0);
}

static struct sigaction contds;

static void on_theirs(int signo, siginfo_t *info, void *context)
{
	atomic_fetch_add(&got, 1);
	contds.sa_sigaction(signo, info, context);
}

/* Other code takes the signal after contd_init(), and hands on what is not its own: contd goes on behind it. */
static void taken_by_who_hands_on(void)
{
	struct sigaction action = {.sa_sigaction = on_theirs, .sa_flags = SA_SIGINFO | SA_RESTART};

	ticking_begin();
	CHECK_SYS(sigaction(OURS, NULL, &contds)); /* before a tick can come to on_theirs() */
	CHECK_SYS(sigaction(OURS, &action, NULL));
	feed_begin(NULL);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > 500);
	feed_end();
	ticking_end();
	CHECK(atomic_load(&got) > 0);
}

static void on_thief(int signo)
{
	(void)signo;
	atomic_fetch_add(&got, 1);
}

static atomic_int stolen_ran;

static void stolen_cb(int status, void *data)
{
	(void)status;
	(void)data;
	atomic_fetch_add(&stolen_ran, 1);
}

/* ... and hands on nothing: continuations no longer come by themselves, and wait for a poll; none is lost. */
static void taken_by_a_thief(void)
{
	enum { N = 200 };
	static struct contd_event event[N];

	ticking_begin();
	CHECK(signal(OURS, on_thief) != SIG_ERR);
	COMPUTE_UNTIL(atomic_load(&got) > 10); /* the ticks are his now */
	for (int i = 0; i < N; i++) {
		struct contd_event *es[] = {&event[i]};

		MUST(contd_event_continue(1, es, stolen_cb, NULL, ticking_safe, NULL));
	}
	/* The completing thread is attached, so they run there and then. The word needs a look at it. */
	for (int i = 0; i < N / 2; i++)
		MUST(contd_event_complete(&event[i], 0));
	CHECK_EQ(atomic_load(&stolen_ran), N / 2);
	contd_guard_begin();
	for (int i = N / 2; i < N; i++)
		MUST(contd_event_complete(&event[i], 0));
	contd_guard_end();
	__atomic_store_n(&ticking_word, 1, __ATOMIC_RELEASE);
	while (contd_group_outstanding(ticking_safe))
		CHECK(contd_poll(0) >= 0);
	CHECK_EQ(atomic_load(&stolen_ran), N);
	CHECK_EQ(atomic_load(&ticking_word_held), 1);
	MUST(contd_group_destroy(ticking_safe));
	MUST(contd_thread_detach());
	CHECK_EQ(contd_fini(), 0);
}

static const struct coexist_case cases[] = {
	{"queued", queued_signals},
	{"over_starts_and_ends", signals_over_starts_and_ends},
	{"one_shot", one_shot_timers},
	{"periodic", periodic_timer},
	{"setitimer", alarms_by_setitimer},
	{"timerfd", timer_descriptors},
	{"signalfd", signal_descriptors},
	{"sigwaitinfo", waited_signals},
	{"refused", refused},
	{"chained", chained},
	{"taken_handed_on", taken_by_who_hands_on},
	{"taken", taken_by_a_thief},
};

COEXIST_CASES(cases)
