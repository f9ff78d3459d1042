/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait are not cut short by ticks: the program has no signal handlers, so none of them may fail with EINTR.
 * With handlers of the program's own they still are.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

#define MS 30

static int failures, nothing[2], epoll;
static const struct timespec short_time = {0, MS * 1000000};
static sigset_t no_signal;

static int do_sleep(void)
{
	return sleep(1) != 0;
}

static int do_usleep(void)
{
	return usleep(MS * 1000);
}

static int do_nanosleep(void)
{
	return nanosleep(&short_time, NULL);
}

static int do_clock_nanosleep(void)
{
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL);
}

static int do_thrd_sleep(void)
{
	return thrd_sleep(&short_time, NULL);
}

static int do_poll(void)
{
	struct pollfd fd = {nothing[0], POLLIN, 0};

	return poll(&fd, 1, MS);
}

static int do_ppoll(void)
{
	struct pollfd fd = {nothing[0], POLLIN, 0};

	return ppoll(&fd, 1, &short_time, &no_signal) || ppoll(&fd, 1, &short_time, NULL);
}

static int do_select(void)
{
	struct timeval time = {0, MS * 1000};

	return select(0, NULL, NULL, NULL, &time);
}

static int do_pselect(void)
{
	return pselect(0, NULL, NULL, NULL, &short_time, &no_signal);
}

static int do_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, MS);
}

static int do_epoll_pwait(void)
{
	struct epoll_event event;

	return epoll_pwait(epoll, &event, 1, MS, &no_signal);
}

static int do_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, NULL, &short_time) != -1 || errno != EAGAIN;
}

static int do_sem_timedwait(void)
{
	struct timespec end;
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += MS * 1000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	return sem_timedwait(&semaphore, &end) != -1 || errno != ETIMEDOUT;
}

/* All signals are blocked, and each is waited for: contd's comes only to contd. */
static int with_all(int (*call)(const sigset_t *))
{
	sigset_t all, before;
	uint64_t end;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (end = (uint64_t)(now_s() * 1000) + 20; (uint64_t)(now_s() * 1000) < end;)
		spin(1000); /* a tick becomes pending */
	result = call(&all);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

static int take_any(const sigset_t *all)
{
	return sigtimedwait(all, NULL, &short_time) != -1 || errno != EAGAIN;
}

static int do_sigtimedwait_all(void)
{
	return with_all(take_any);
}

/* The last one: those with smaller numbers come first. */
static int take_last(const sigset_t *all)
{
	siginfo_t info;

	raise(SIGRTMAX);
	return sigwaitinfo(all, &info) != SIGRTMAX;
}

static int do_sigwaitinfo_all(void)
{
	return with_all(take_last);
}

static int await_last(const sigset_t *all)
{
	int signo = 0;

	raise(SIGRTMAX);
	return sigwait(all, &signo) || signo != SIGRTMAX;
}

static int do_sigwait_all(void)
{
	return with_all(await_last);
}

static int read_any(const sigset_t *all)
{
	struct signalfd_siginfo info;
	int fd = signalfd(-1, all, SFD_NONBLOCK);
	struct pollfd ready = {fd, POLLIN, 0};
	int result;

	if (fd < 0)
		return -1;
	result = poll(&ready, 1, MS) || read(fd, &info, sizeof(info)) > 0;
	close(fd);
	return result;
}

static int do_signalfd_all(void)
{
	return with_all(read_any);
}

/* As _FORTIFY_SOURCE has them. */
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *time, const sigset_t *mask, size_t size);

static int do_poll_chk(void)
{
	struct pollfd fd = {nothing[0], POLLIN, 0};

	return __poll_chk(&fd, 1, MS, sizeof(fd));
}

static int do_ppoll_chk(void)
{
	struct pollfd fd = {nothing[0], POLLIN, 0};

	return __ppoll_chk(&fd, 1, &short_time, &no_signal, sizeof(fd));
}

static int do_epoll_pwait2(void)
{
#if __GLIBC_PREREQ(2, 35)
	struct epoll_event event;

	return epoll_pwait2(epoll, &event, 1, &short_time, &no_signal);
#else
	return 0;
#endif
}

/* libaio's; the progress library has one, too. */
static int do_io_getevents(void)
{
	typedef int function(unsigned long, long, long, void *, const struct timespec *);
	function *call = (function *)dlsym(RTLD_DEFAULT, "io_getevents");
	static unsigned long context;
	char events[256];

	if (!context && syscall(SYS_io_setup, 4, &context))
		return 0; /* this kernel has none */
	return call ? call(context, 1, 1, events, &short_time) : -1;
}

static int do_aio_suspend(void)
{
	static char text[1];
	static struct aiocb block;
	const struct aiocb *const list[] = {&block};

	if (!block.aio_buf) { /* never complete */
		block.aio_fildes = nothing[0];
		block.aio_buf = text;
		block.aio_nbytes = 1;
		if (aio_read(&block))
			return -1;
	}
	return aio_suspend(list, 1, &short_time) != -1 || errno != EAGAIN;
}

/* aio_suspend() of a program that is built with _FILE_OFFSET_BITS=64. */
static int do_aio_suspend64(void)
{
	static char text[1];
	static struct aiocb64 block;
	const struct aiocb64 *const list[] = {&block};

	if (!block.aio_buf) {
		block.aio_fildes = nothing[0];
		block.aio_buf = text;
		block.aio_nbytes = 1;
		if (aio_read64(&block))
			return -1;
	}
	return aio_suspend64(list, 1, &short_time) != -1 || errno != EAGAIN;
}

static int do_sem_clockwait(void)
{
	struct timespec end;
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += MS * 1000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	return sem_clockwait(&semaphore, CLOCK_MONOTONIC, &end) != -1 || errno != ETIMEDOUT;
}

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {
	{"sleep", do_sleep},
	{"usleep", do_usleep},
	{"nanosleep", do_nanosleep},
	{"clock_nanosleep", do_clock_nanosleep},
	{"thrd_sleep", do_thrd_sleep},
	{"poll", do_poll},
	{"ppoll", do_ppoll},
	{"select", do_select},
	{"pselect", do_pselect},
	{"epoll_wait", do_epoll_wait},
	{"epoll_pwait", do_epoll_pwait},
	{"sigtimedwait", do_sigtimedwait},
	{"sem_timedwait", do_sem_timedwait},
	{"sem_clockwait", do_sem_clockwait},
	{"sigtimedwait, all signals", do_sigtimedwait_all},
	{"sigwaitinfo, all signals", do_sigwaitinfo_all},
	{"sigwait, all signals", do_sigwait_all},
	{"signalfd, all signals", do_signalfd_all},
	{"__poll_chk", do_poll_chk},
	{"__ppoll_chk", do_ppoll_chk},
	{"epoll_pwait2", do_epoll_pwait2},
	{"io_getevents", do_io_getevents},
	{"aio_suspend", do_aio_suspend},
	{"aio_suspend64", do_aio_suspend64},
};

static void on_alarm(int signo)
{
	(void)signo;
}

int main(int argc, char **argv)
{
	MPI_Request request;
	uint64_t before;
	sigset_t mask;
	char byte;

	MPI_Init(&argc, &argv);
	if (!contd_test_passed || pipe(nothing) || (epoll = epoll_create1(0)) < 0) {
		printf("the progress library does not run\n");
		return 1;
	}
	sigemptyset(&no_signal);
	MPI_Irecv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF, &request);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (int times = 0; times < 3; times++) {
			int result;

			/* The timer runs. */
			before = passed(PASSED_NOT);
			for (double give_up = now_s() + 30; passed(PASSED_NOT) < before + 2 && now_s() < give_up;)
				spin(10000);
			errno = 0;
			result = calls[i].call();
			if (passed(PASSED_NOT) < before + 2 || result) {
				printf("%s: %d, errno %d\n", calls[i].name, result, errno);
				failures++;
			}
		}
	/* The mask is as it was. */
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		failures += sigismember(&mask, signo) == 1;
	/* The program's own signal. */
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
	alarm(1);
	errno = 0;
	if (pause() != -1 || errno != EINTR) {
		printf("pause: not interrupted by the program's own signal\n");
		failures++;
	}
	alarm(1);
	if (sigsuspend(&no_signal) != -1 || errno != EINTR) {
		printf("sigsuspend: not interrupted by the program's own signal\n");
		failures++;
	}
	MPI_Cancel(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return failures != 0;
}
