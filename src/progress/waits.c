/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait, and that the kernel does not begin again after a signal's handler: sleep(3) would return early, and
 * poll(2) fail with EINTR, although the program has no signal handlers (docs/signals.md, "System calls"). A tick that
 * finds the thread there passes anyway. So ticks are kept out of these calls, by the thread's signal mask; those that
 * take a mask get a larger one. While nothing is outstanding there are no ticks, and the mask is left alone.
 */
#include <aio.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "progress/inside.h"
#include "progress/next.h"

#define P contd__progress

#pragma GCC diagnostic ignored "-Wnonnull-compare" /* sigsuspend()'s mask, which is never NULL */

/* Declared in headers under conditions, or not at all. */
int __sigpause(int what, int is_signal);
int __xpg_sigpause(int signo);
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *time, const sigset_t *mask, size_t size);
int io_getevents(void *context, long least, long most, void *events, struct timespec *time);

/* This does not concern the waiting inside MPI. */
static bool ticks_may_come(void)
{
	return contd__inside.high && P.tick_signal && !P.by_thread && contd__wants_looks() &&
	       !contd__mark_is_live(&contd__inside.mpi, CONTD__FRAME);
}

static bool keep_out(sigset_t *before)
{
	sigset_t ticks;

	if (!ticks_may_come())
		return false;
	sigemptyset(&ticks);
	sigaddset(&ticks, P.tick_signal);
	return !pthread_sigmask(SIG_BLOCK, &ticks, before);
}

static void let_in(const sigset_t *before)
{
	int saved = errno;

	pthread_sigmask(SIG_SETMASK, before, NULL);
	errno = saved;
}

#define WAITS(type, name, parameters, arguments) \
	CONTD_API type name parameters; \
	type name parameters \
	{ \
		sigset_t before; \
		bool out = keep_out(&before); \
		type result = NEXT_OF(name) arguments; \
\
		if (out) \
			let_in(&before); \
		return result; \
	}
WAITS(unsigned, sleep, (unsigned seconds), (seconds))
WAITS(int, usleep, (useconds_t us), (us))
WAITS(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
WAITS(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
      (clock, flags, time, left))
WAITS(int, thrd_sleep, (const struct timespec *time, struct timespec *left), (time, left))
WAITS(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
WAITS(int, select,
      (int n, fd_set *restrict in, fd_set *restrict out_set, fd_set *restrict except, struct timeval *restrict time),
      (n, in, out_set, except, time))
WAITS(int, epoll_wait, (int fd, struct epoll_event *events, int most, int ms), (fd, events, most, ms))
WAITS(int, pause, (void), ())
WAITS(int, __sigpause, (int what, int is_signal), (what, is_signal))
WAITS(int, __xpg_sigpause, (int signo), (signo))
WAITS(int, aio_suspend, (const struct aiocb *const list[], int n, const struct timespec *restrict time),
      (list, n, time))
WAITS(int, lio_listio, (int mode, struct aiocb *const list[restrict], int n, struct sigevent *restrict event),
      (mode, list, n, event))
WAITS(int, aio_suspend64, (const struct aiocb64 *const list[], int n, const struct timespec *restrict time),
      (list, n, time))
WAITS(int, lio_listio64, (int mode, struct aiocb64 *const list[restrict], int n, struct sigevent *restrict event),
      (mode, list, n, event))
WAITS(int, sem_timedwait, (sem_t *restrict semaphore, const struct timespec *restrict time), (semaphore, time))
#if __GLIBC_PREREQ(2, 30)
WAITS(int, sem_clockwait, (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict time),
      (semaphore, clock, time))
#endif
WAITS(ssize_t, msgrcv, (int id, void *message, size_t size, long type, int flags), (id, message, size, type, flags))
WAITS(int, msgsnd, (int id, const void *message, size_t size, int flags), (id, message, size, flags))
WAITS(int, semop, (int id, struct sembuf *operations, size_t n), (id, operations, n))
WAITS(int, semtimedop, (int id, struct sembuf *operations, size_t n, const struct timespec *time),
      (id, operations, n, time))

/* Programs that are built with _FORTIFY_SOURCE call these. */
WAITS(int, __poll_chk, (struct pollfd * fds, nfds_t n, int ms, size_t size), (fds, n, ms, size))

/* libaio's, which may be absent from where dlsym(3) looks: it is the system call. Its errors are no errno. */
CONTD_API int io_getevents(void *context, long least, long most, void *events, struct timespec *time)
{
	__typeof__(&io_getevents) next = NEXT_OF(io_getevents);
	int saved = errno, result;
	sigset_t before;
	bool out = keep_out(&before);

	if (next) {
		result = next(context, least, most, events, time);
	} else {
		result = (int)syscall(SYS_io_getevents, context, least, most, events, time);
		result = result < 0 ? -errno : result;
	}
	errno = saved;
	if (out)
		let_in(&before);
	return result;
}

/* Those that set a signal mask while they wait. NULL: the thread's. */
#define WAITS_WITH_MASK(type, name, parameters, arguments) \
	CONTD_API type name parameters; \
	type name parameters \
	{ \
		sigset_t before, larger; \
		bool out = keep_out(&before); \
		type result; \
\
		if (out && mask) { \
			larger = *mask; \
			sigaddset(&larger, P.tick_signal); \
			mask = &larger; \
		} \
		result = NEXT_OF(name) arguments; \
		if (out) \
			let_in(&before); \
		return result; \
	}
WAITS_WITH_MASK(int, ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *time, const sigset_t *mask),
		(fds, n, time, mask))
WAITS_WITH_MASK(int, pselect,
		(int n, fd_set *restrict in, fd_set *restrict out_set, fd_set *restrict except,
		 const struct timespec *restrict time, const sigset_t *restrict mask),
		(n, in, out_set, except, time, mask))
WAITS_WITH_MASK(int, epoll_pwait, (int fd, struct epoll_event *events, int most, int ms, const sigset_t *mask),
		(fd, events, most, ms, mask))
#if __GLIBC_PREREQ(2, 35)
WAITS_WITH_MASK(int, epoll_pwait2,
		(int fd, struct epoll_event *events, int most, const struct timespec *time, const sigset_t *mask),
		(fd, events, most, time, mask))
#endif
WAITS_WITH_MASK(int, __ppoll_chk,
		(struct pollfd * fds, nfds_t n, const struct timespec *time, const sigset_t *mask, size_t size),
		(fds, n, time, mask, size))
WAITS_WITH_MASK(int, sigsuspend, (const sigset_t *mask), (mask))

/* Those that take signals: all but contd's. */
static const sigset_t *but_ticks(const sigset_t *set, sigset_t *smaller)
{
	if (!set || !P.tick_signal || sigismember(set, P.tick_signal) != 1)
		return set;
	*smaller = *set;
	sigdelset(smaller, P.tick_signal);
	return smaller;
}

#define TAKES(name, parameters, arguments) \
	CONTD_API int name parameters; \
	int name parameters \
	{ \
		sigset_t before, smaller; \
		bool out = keep_out(&before); \
		int result; \
\
		set = but_ticks(set, &smaller); \
		result = NEXT_OF(name) arguments; \
		if (out) \
			let_in(&before); \
		return result; \
	}
TAKES(sigwait, (const sigset_t *restrict set, int *restrict signo), (set, signo))
TAKES(sigwaitinfo, (const sigset_t *restrict set, siginfo_t *restrict info), (set, info))
TAKES(sigtimedwait, (const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict time),
      (set, info, time))
TAKES(signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))
