/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that block, on an attached thread that is interrupted all the time: the table in docs/signals.md. Each row's
 * call is made, and another thread counts ticks meanwhile. Where a call is to be restarted, that thread lets it end
 * after ten ticks, and it must return what it would have returned undisturbed. Where it is interrupted, no other thread
 * lets it end.
 */
#include <aio.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>

#include "coexist.h"

enum verdict { RESTARTED, INTERRUPTED, SHORT };
static const char *const verdict_name[] = {"restarted", "EINTR", "early, or short"};

struct row {
	const char *name;
	enum verdict expected;
	void (*prepare)(void);
	long (*call)(void); /* the result, or -errno */
	void (*release)(void);
	void (*clean)(void);
	long good; /* what it returns when it is left in peace */
};

static int fd[2] = {-1, -1}, other = -1, id = -1;
static char buffer[1 << 20], path[64];
static pid_t child;
static const struct timespec long_time = {1000, 0};

static long result(long rc)
{
	return rc == -1 ? -(long)errno : rc;
}

static struct timespec at(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	ts.tv_sec += 1000;
	return ts;
}

/* ------------------------------------------------------------------------------------------- prepare, release,
 * clean */

static void nothing(void)
{
}

static void pipe_make(void)
{
	CHECK_SYS(pipe(fd));
}

static void fd_close(void)
{
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (other >= 0)
		close(other);
	fd[0] = fd[1] = other = -1;
}

static void fill(void)
{
	int flags = fcntl(fd[1], F_GETFL);

	CHECK_SYS(fcntl(fd[1], F_SETFL, flags | O_NONBLOCK));
	while (write(fd[1], buffer, 4096) > 0)
		;
	CHECK_SYS(fcntl(fd[1], F_SETFL, flags));
}

static void pipe_to_nowhere(void)
{
	pipe_make();
	other = open("/dev/null", O_WRONLY);
	CHECK_SYS(other);
}

static void pipe_full(void)
{
	pipe_make();
	fill();
}

static void pair_make(void)
{
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
}

static void pair_full(void)
{
	pair_make();
	fill();
}

static void pair_timed(void)
{
	struct timeval tv = {1000, 0};

	pair_make();
	CHECK_SYS(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	CHECK_SYS(setsockopt(fd[1], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
}

static void pair_timed_full(void)
{
	pair_timed();
	fill();
}

static void pair_some(void)
{
	pair_make();
	CHECK_EQ(write(fd[1], buffer, 10), 10);
}

static void put_one(void)
{
	CHECK_EQ(write(fd[1], buffer, 1), 1);
}

static void put_hundred(void)
{
	CHECK_EQ(write(fd[1], buffer, 60), 60);
	usleep(1000);
	CHECK_EQ(write(fd[1], buffer, 40), 40);
}

static void put_line(void)
{
	CHECK_EQ(write(fd[1], "a li", 4), 4);
	usleep(1000);
	CHECK_EQ(write(fd[1], "ne\n", 3), 3);
}

static void take_some(void)
{
	CHECK(read(fd[0], buffer, 65536) > 0);
	CHECK_SYS(fcntl(fd[0], F_SETFL, O_NONBLOCK));
	while (read(fd[0], buffer, 65536) > 0)
		;
}

static atomic_long taken;

static void take_all(void)
{
	static char sink[65536];
	ssize_t n;

	atomic_store(&taken, 0);
	while (atomic_load(&taken) < (long)sizeof(buffer) && (n = read(fd[0], sink, sizeof(sink))) > 0)
		atomic_fetch_add(&taken, n);
}

static struct sockaddr_un address(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	/* In the kernel's own name space: no file. */
	snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "contd-coexist-%d", (int)getpid());
	return a;
}

static void listen_make(void)
{
	struct sockaddr_un a = address();

	fd[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_SYS(fd[0]);
	CHECK_SYS(bind(fd[0], (struct sockaddr *)&a, sizeof(a)));
	CHECK_SYS(listen(fd[0], 0));
}

static void listen_timed(void)
{
	struct timeval tv = {1000, 0};

	listen_make();
	CHECK_SYS(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
}

static void connect_one(void)
{
	struct sockaddr_un a = address();

	fd[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_SYS(fd[1]);
	CHECK_SYS(connect(fd[1], (struct sockaddr *)&a, sizeof(a)));
}

/* One more than the backlog takes. */
static void listen_full(void)
{
	listen_make();
	connect_one();
	other = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_SYS(other);
}

static void listen_full_timed(void)
{
	struct timeval tv = {1000, 0};

	listen_full();
	CHECK_SYS(setsockopt(other, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
}

static void accept_one(void)
{
	int s = accept(fd[0], NULL, NULL);

	CHECK_SYS(s);
	close(s);
}

static void child_make(void)
{
	pipe_make();
	child = fork();
	CHECK_SYS(child);
	if (child == 0) {
		close(fd[1]);
		_exit(read(fd[0], buffer, 1) == 1 ? 5 : 6);
	}
}

static void file_locked(void)
{
	snprintf(path, sizeof(path), "/tmp/contd-coexist-%d", (int)getpid());
	fd[0] = open(path, O_RDWR | O_CREAT, 0600);
	fd[1] = open(path, O_RDWR);
	CHECK_SYS(fd[0]);
	CHECK_SYS(fd[1]);
	CHECK_SYS(flock(fd[0], LOCK_EX));
}

static void file_unlock(void)
{
	CHECK_SYS(flock(fd[0], LOCK_UN));
}

static struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

static void record_locked(void)
{
	struct flock lock = record;

	file_locked();
	file_unlock();
	CHECK_SYS(fcntl(fd[0], F_OFD_SETLK, &lock));
}

static void record_unlock(void)
{
	struct flock lock = record;

	lock.l_type = F_UNLCK;
	CHECK_SYS(fcntl(fd[0], F_OFD_SETLK, &lock));
}

static void path_clean(void)
{
	unlink(path);
	fd_close();
}

static void fifo_make(void)
{
	snprintf(path, sizeof(path), "/tmp/contd-coexist-%d", (int)getpid());
	unlink(path);
	CHECK_SYS(mkfifo(path, 0600));
}

static void fifo_open_to_write(void)
{
	other = open(path, O_WRONLY);
	CHECK_SYS(other);
}

static void fifo_open_to_read(void)
{
	other = open(path, O_RDONLY);
	CHECK_SYS(other);
}

static uint32_t futex_word;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, handed_over = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static bool cond_true;
static atomic_int helper_wants, helper_has;

static void futex_wake(void)
{
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_make(void)
{
	futex_word = 0;
}

static void semaphore_make(void)
{
	CHECK_SYS(sem_init(&semaphore, 0, 0));
}

static void semaphore_post(void)
{
	CHECK_SYS(sem_post(&semaphore));
}

/* The helper takes the locks, because the helper gives them back. */
static void lock_by_helper(void)
{
	atomic_store(&helper_has, 0);
	atomic_store(&helper_wants, 1);
	AWAIT(atomic_load(&helper_has));
}

static void unlock_by_helper(void)
{
	pthread_mutex_unlock(&handed_over);
	pthread_rwlock_unlock(&rwlock);
}

static void mutex_unlock(void)
{
	pthread_mutex_unlock(&handed_over);
}

static void rwlock_unlock(void)
{
	pthread_rwlock_unlock(&rwlock);
}

static void cond_make(void)
{
	cond_true = false;
}

static void cond_signal(void)
{
	pthread_mutex_lock(&mutex);
	cond_true = true;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
}

static pthread_barrier_t barrier;

static void barrier_make(void)
{
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
}

static void barrier_join(void)
{
	pthread_barrier_wait(&barrier);
}

static pthread_t joined;

static void *waits_for_semaphore(void *data)
{
	(void)data;
	while (sem_wait(&semaphore))
		;
	return NULL;
}

static void thread_make(void)
{
	semaphore_make();
	CHECK_EQ(pthread_create(&joined, NULL, waits_for_semaphore, NULL), 0);
}

static void set_of(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGUSR2);
}

static void usr2_block(void)
{
	sigset_t set;

	set_of(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void signalfd_make(void)
{
	sigset_t set;

	usr2_block();
	set_of(&set);
	fd[0] = signalfd(-1, &set, 0);
	CHECK_SYS(fd[0]);
}

static void usr2_send(void)
{
	kill(getpid(), SIGUSR2);
}

static void eventfd_make(void)
{
	fd[0] = eventfd(0, 0);
	CHECK_SYS(fd[0]);
}

static void eventfd_put(void)
{
	CHECK_SYS(eventfd_write(fd[0], 3));
}

static void timerfd_make(void)
{
	fd[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK_SYS(fd[0]);
}

static void timerfd_fire(void)
{
	struct itimerspec once = {{0, 0}, {0, 1000}};

	CHECK_SYS(timerfd_settime(fd[0], 0, &once, NULL));
}

static void inotify_make(void)
{
	fifo_make();
	fd[0] = inotify_init();
	CHECK_SYS(fd[0]);
	CHECK_SYS(inotify_add_watch(fd[0], path, IN_ATTRIB));
}

static void inotify_touch(void)
{
	CHECK_SYS(chmod(path, 0640));
}

static void epoll_make(void)
{
	pipe_make();
	other = epoll_create1(0);
	CHECK_SYS(other);
}

static void msg_make(void)
{
	id = msgget(IPC_PRIVATE, 0600);
	CHECK_SYS(id);
}

static void msg_clean(void)
{
	msgctl(id, IPC_RMID, NULL);
}

static struct {
	long type;
	char text[4096];
} message = {1, ""};

static void msg_full(void)
{
	msg_make();
	while (msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT) == 0)
		;
}

static void sem_make(void)
{
	id = semget(IPC_PRIVATE, 1, 0600);
	CHECK_SYS(id);
}

static void sem_clean(void)
{
	semctl(id, 0, IPC_RMID);
}

static mqd_t queue;

static void mq_make(void)
{
	struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = 16};
	char name[64];

	snprintf(name, sizeof(name), "/contd-coexist-%d", (int)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
	if (queue == (mqd_t)-1) {
		CHECK(errno == ENOSYS || errno == EACCES || errno == EPERM || errno == ENOENT);
		return; /* not in every container */
	}
	mq_unlink(name);
}

static void mq_full(void)
{
	mq_make();
	if (queue != (mqd_t)-1)
		for (int i = 0; i < 2; i++)
			CHECK_SYS(mq_send(queue, "x", 1, 0));
}

static void mq_put(void)
{
	if (queue != (mqd_t)-1)
		CHECK_SYS(mq_send(queue, "x", 1, 0));
}

static void mq_take(void)
{
	if (queue != (mqd_t)-1)
		CHECK_SYS(mq_receive(queue, buffer, 16, NULL));
}

static void mq_clean(void)
{
	if (queue != (mqd_t)-1)
		mq_close(queue);
}

static aio_context_t aio;

static void aio_make(void)
{
	aio = 0;
	CHECK_SYS(syscall(SYS_io_setup, 1, &aio));
}

static void aio_clean(void)
{
	syscall(SYS_io_destroy, aio);
}

static struct contd_event event;
static struct contd_group *plain;

static void event_cb(int status, void *data)
{
	(void)status;
	(void)data;
}

static void group_make(void)
{
	struct contd_event *es[] = {&event};

	plain = group_new(0);
	contd_event_init(&event);
	MUST(contd_event_continue(1, es, event_cb, NULL, plain, NULL));
}

static void event_complete(void)
{
	MUST(contd_event_complete(&event, 0));
}

static void group_clean(void)
{
	MUST(contd_group_destroy(plain));
}

static FILE *stream;

static void stream_to_read(void)
{
	pipe_make();
	stream = fdopen(fd[0], "r");
	CHECK(stream);
}

static void stream_to_write(void)
{
	pipe_make();
	stream = fdopen(fd[1], "w");
	CHECK(stream);
}

static void stream_clean(void)
{
	if (fd[0] == fileno(stream))
		fd[0] = -1;
	else
		fd[1] = -1;
	fclose(stream);
	fd_close();
}

/* -------------------------------------------------------------------------------------------------------- calls --- */

#define CALL(name, expression) \
	static long name(void) \
	{ \
		return (expression); \
	}

CALL(do_read, result(read(fd[0], buffer, 100)))
CALL(do_write, result(write(fd[1], buffer, 100)))
CALL(do_write_large, result(write(fd[1], buffer, sizeof(buffer))))
CALL(do_splice, result(splice(fd[0], NULL, other, NULL, 100, 0)))
CALL(do_recv, result(recv(fd[0], buffer, 100, 0)))
CALL(do_recv_all, result(recv(fd[0], buffer, 100, MSG_WAITALL)))
CALL(do_send, result(send(fd[1], buffer, 100, 0)))
CALL(do_send_large, result(send(fd[1], buffer, sizeof(buffer), 0)))
CALL(do_flock, result(flock(fd[1], LOCK_EX)))
CALL(do_futex_timed, result(syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &long_time, NULL, 0)))
CALL(do_sem_wait, result(sem_wait(&semaphore)))
CALL(do_mutex_lock, pthread_mutex_lock(&handed_over))
CALL(do_rwlock, pthread_rwlock_rdlock(&rwlock))
CALL(do_join, pthread_join(joined, NULL))
CALL(do_poll, result(poll(&(struct pollfd){fd[0], POLLIN, 0}, 1, 1000000)))
CALL(do_poll_endless, result(poll(&(struct pollfd){fd[0], POLLIN, 0}, 1, -1)))
CALL(do_ppoll, result(ppoll(&(struct pollfd){fd[0], POLLIN, 0}, 1, &long_time, NULL)))
CALL(do_epoll, result(epoll_wait(other, &(struct epoll_event){0}, 1, -1)))
CALL(do_epoll_p, result(epoll_pwait(other, &(struct epoll_event){0}, 1, 1000000, NULL)))
CALL(do_nanosleep, result(nanosleep(&long_time, NULL)))
CALL(do_clock_nanosleep, -(long)clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL))
CALL(do_sleep, (long)sleep(1000))
CALL(do_usleep, result(usleep(900000)))
CALL(do_thrd_sleep, (long)thrd_sleep(&long_time, NULL))
CALL(do_pause, result(pause()))
CALL(do_msgrcv, result(msgrcv(id, &message, sizeof(message.text), 0, 0)))
CALL(do_msgsnd, result(msgsnd(id, &message, sizeof(message.text), 0)))
CALL(do_semop, result(semop(id, &(struct sembuf){0, -1, 0}, 1)))
CALL(do_semtimedop, result(semtimedop(id, &(struct sembuf){0, -1, 0}, 1, &long_time)))
CALL(do_mq_receive, result(mq_receive(queue, buffer, 16, NULL)))
CALL(do_mq_send, result(mq_send(queue, "y", 1, 0)))
CALL(do_getevents, result(syscall(SYS_io_getevents, aio, 1L, 1L, buffer, NULL)))
CALL(do_group_wait, contd_group_wait(plain, -1))
CALL(do_fread, (long)fread(buffer, 1, 100, stream))
CALL(do_fgets, fgets(buffer, 100, stream) ? (long)strlen(buffer) : -(long)errno)
CALL(do_fwrite, (long)fwrite(buffer, 1, sizeof(buffer), stream))

/* Begun again after a tick it finds the word changed, as any FUTEX_WAIT may. */
static long do_futex(void)
{
	long rc = result(syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));

	return rc == -EAGAIN && __atomic_load_n(&futex_word, __ATOMIC_SEQ_CST) == 1 ? 0 : rc;
}

static long do_readv(void)
{
	struct iovec v[2] = {{buffer, 50}, {buffer + 50, 50}};

	return result(readv(fd[0], v, 2));
}

static long do_recvmsg(void)
{
	struct iovec v = {buffer, 100};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	return result(recvmsg(fd[0], &m, 0));
}

static long do_accept(void)
{
	int s = accept(fd[0], NULL, NULL);

	if (s < 0)
		return -errno;
	close(s);
	return 0;
}

static long do_connect(void)
{
	struct sockaddr_un a = address();

	return result(connect(other, (struct sockaddr *)&a, sizeof(a)));
}

static long do_waitpid(void)
{
	int status;

	return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -errno;
}

static long do_waitid(void)
{
	siginfo_t info;

	return waitid(P_PID, (id_t)child, &info, WEXITED) == 0 ? info.si_status : -errno;
}

static long do_lock_record(void)
{
	struct flock lock = record;

	return result(fcntl(fd[1], F_OFD_SETLKW, &lock));
}

static long do_lock_posix(void)
{
	struct flock lock = record;

	return result(fcntl(fd[1], F_SETLKW, &lock));
}

static long do_open(int flags)
{
	int s = open(path, flags);

	if (s < 0)
		return -errno;
	close(s);
	return 0;
}

CALL(do_open_to_read, do_open(O_RDONLY))
CALL(do_open_to_write, do_open(O_WRONLY))

static long do_sem_timedwait(void)
{
	struct timespec until = at(CLOCK_REALTIME);

	return result(sem_timedwait(&semaphore, &until));
}

static long do_futex_until(void)
{
	struct timespec until = at(CLOCK_MONOTONIC);

	return result(
		syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, FUTEX_BITSET_MATCH_ANY));
}

static long do_mutex_timedlock(void)
{
	struct timespec until = at(CLOCK_REALTIME);

	return pthread_mutex_timedlock(&handed_over, &until);
}

static long do_barrier(void)
{
	int rc = pthread_barrier_wait(&barrier);

	return rc == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : rc;
}

/* Woken up once, and only when it is true: no more than POSIX would, though it allows more. */
static long do_cond_wait(void)
{
	int rc = 0, woken = 0;

	pthread_mutex_lock(&mutex);
	while (!cond_true && !rc) {
		rc = pthread_cond_wait(&cond, &mutex);
		woken++;
	}
	pthread_mutex_unlock(&mutex);
	return rc ? rc : woken <= 1 ? 0 : -EINTR;
}

static long do_cond_timedwait(void)
{
	struct timespec until = at(CLOCK_REALTIME);
	int rc = 0, woken = 0;

	pthread_mutex_lock(&mutex);
	while (!cond_true && !rc) {
		rc = pthread_cond_timedwait(&cond, &mutex, &until);
		woken++;
	}
	pthread_mutex_unlock(&mutex);
	return rc ? rc : woken <= 1 ? 0 : -EINTR;
}

static long do_select(void)
{
	struct timeval tv = {1000, 0};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	return result(select(fd[0] + 1, &set, NULL, NULL, &tv));
}

static long do_pselect(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	return result(pselect(fd[0] + 1, &set, NULL, NULL, NULL, NULL));
}

static long do_clock_nanosleep_until(void)
{
	struct timespec until = at(CLOCK_MONOTONIC);

	return -(long)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static long do_sigwait(void)
{
	sigset_t set;
	int signo, rc;

	set_of(&set);
	rc = sigwait(&set, &signo);
	return rc ? -rc : signo;
}

static long do_sigwaitinfo(void)
{
	sigset_t set;

	set_of(&set);
	return result(sigwaitinfo(&set, NULL));
}

static long do_sigtimedwait(void)
{
	sigset_t set;

	set_of(&set);
	return result(sigtimedwait(&set, NULL, &long_time));
}

static long do_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return result(sigsuspend(&none));
}

static long do_mq_timedreceive(void)
{
	struct timespec until = at(CLOCK_REALTIME);

	return result(mq_timedreceive(queue, buffer, 16, NULL, &until));
}

static long do_signalfd(void)
{
	struct signalfd_siginfo info;
	long n = result(read(fd[0], &info, sizeof(info)));

	return n == sizeof(info) ? (long)info.ssi_signo : n;
}

static long do_eventfd(void)
{
	uint64_t count = 0;
	long n = result(read(fd[0], &count, sizeof(count)));

	return n == sizeof(count) ? (long)count : n;
}

static long do_inotify(void)
{
	long n = result(read(fd[0], buffer, sizeof(buffer)));

	return n >= (long)sizeof(struct inotify_event) ? 0 : n;
}

static long do_getline(void)
{
	char *line = NULL;
	size_t bytes = 0;
	long n = result(getline(&line, &bytes, stream));

	free(line);
	return n;
}

/* ---------------------------------------------------------------------------------------------------- the table --- */

/* clang-format off */
static const struct row rows[] = {
	{"read, pipe", RESTARTED, pipe_make, do_read, put_one, fd_close, 1},
	{"readv", RESTARTED, pipe_make, do_readv, put_one, fd_close, 1},
	{"write, pipe", RESTARTED, pipe_full, do_write, take_some, fd_close, 100},
	{"write, pipe, more than fits", SHORT, pipe_make, do_write_large, nothing, fd_close, sizeof(buffer)},
	{"splice", RESTARTED, pipe_to_nowhere, do_splice, put_one, fd_close, 1},
	{"read, socket", RESTARTED, pair_make, do_read, put_one, fd_close, 1},
	{"recv", RESTARTED, pair_make, do_recv, put_one, fd_close, 1},
	{"recvmsg", RESTARTED, pair_make, do_recvmsg, put_one, fd_close, 1},
	{"send", RESTARTED, pair_full, do_send, take_some, fd_close, 100},
	{"send, more than fits", SHORT, pair_make, do_send_large, nothing, fd_close, sizeof(buffer)},
	{"recv, MSG_WAITALL, some there", SHORT, pair_some, do_recv_all, nothing, fd_close, 100},
	{"accept", RESTARTED, listen_make, do_accept, connect_one, fd_close, 0},
	{"connect, full backlog", RESTARTED, listen_full, do_connect, accept_one, fd_close, 0},
	{"recv, SO_RCVTIMEO", INTERRUPTED, pair_timed, do_recv, put_one, fd_close, 1},
	{"read, SO_RCVTIMEO", INTERRUPTED, pair_timed, do_read, put_one, fd_close, 1},
	{"send, SO_SNDTIMEO", INTERRUPTED, pair_timed_full, do_send, take_some, fd_close, 100},
	{"accept, SO_RCVTIMEO", INTERRUPTED, listen_timed, do_accept, connect_one, fd_close, 0},
	{"connect, SO_SNDTIMEO", INTERRUPTED, listen_full_timed, do_connect, accept_one, fd_close, 0},
	{"waitpid", RESTARTED, child_make, do_waitpid, put_one, fd_close, 5},
	{"waitid", RESTARTED, child_make, do_waitid, put_one, fd_close, 5},
	{"flock", RESTARTED, file_locked, do_flock, file_unlock, path_clean, 0},
	{"fcntl, F_OFD_SETLKW", RESTARTED, record_locked, do_lock_record, record_unlock, path_clean, 0},
	{"fcntl, F_SETLKW", RESTARTED, record_locked, do_lock_posix, record_unlock, path_clean, 0},
	{"open, FIFO to read", RESTARTED, fifo_make, do_open_to_read, fifo_open_to_write, path_clean, 0},
	{"open, FIFO to write", RESTARTED, fifo_make, do_open_to_write, fifo_open_to_read, path_clean, 0},
	{"read, eventfd", RESTARTED, eventfd_make, do_eventfd, eventfd_put, fd_close, 3},
	{"read, timerfd", RESTARTED, timerfd_make, do_eventfd, timerfd_fire, fd_close, 1},
	{"read, signalfd", RESTARTED, signalfd_make, do_signalfd, usr2_send, fd_close, SIGUSR2},
	{"read, inotify", RESTARTED, inotify_make, do_inotify, inotify_touch, path_clean, 0},
	{"mq_receive", RESTARTED, mq_make, do_mq_receive, mq_put, mq_clean, 1},
	{"mq_send", RESTARTED, mq_full, do_mq_send, mq_take, mq_clean, 0},
	{"mq_timedreceive", RESTARTED, mq_make, do_mq_timedreceive, mq_put, mq_clean, 1},
	{"futex, FUTEX_WAIT", RESTARTED, futex_make, do_futex, futex_wake, nothing, 0},
	{"futex, FUTEX_WAIT, timeout", INTERRUPTED, futex_make, do_futex_timed, futex_wake, nothing, 0},
	{"futex, FUTEX_WAIT_BITSET, timeout", INTERRUPTED, futex_make, do_futex_until, futex_wake, nothing, 0},
	{"sem_wait", RESTARTED, semaphore_make, do_sem_wait, semaphore_post, nothing, 0},
	{"sem_timedwait", INTERRUPTED, semaphore_make, do_sem_timedwait, semaphore_post, nothing, 0},
	{"pthread_mutex_lock", RESTARTED, lock_by_helper, do_mutex_lock, unlock_by_helper, mutex_unlock, 0},
	{"pthread_mutex_timedlock", RESTARTED, lock_by_helper, do_mutex_timedlock, unlock_by_helper, mutex_unlock, 0},
	{"pthread_rwlock_rdlock", RESTARTED, lock_by_helper, do_rwlock, unlock_by_helper, rwlock_unlock, 0},
	{"pthread_cond_wait", RESTARTED, cond_make, do_cond_wait, cond_signal, nothing, 0},
	{"pthread_cond_timedwait", RESTARTED, cond_make, do_cond_timedwait, cond_signal, nothing, 0},
	{"pthread_barrier_wait", RESTARTED, barrier_make, do_barrier, barrier_join, nothing, 0},
	{"pthread_join", RESTARTED, thread_make, do_join, semaphore_post, nothing, 0},
	{"contd_group_wait", RESTARTED, group_make, do_group_wait, event_complete, group_clean, 0},
	{"fread", RESTARTED, stream_to_read, do_fread, put_hundred, stream_clean, 100},
	{"fgets", RESTARTED, stream_to_read, do_fgets, put_line, stream_clean, 7},
	{"getline", RESTARTED, stream_to_read, do_getline, put_line, stream_clean, 7},
	{"fwrite", RESTARTED, stream_to_write, do_fwrite, take_all, stream_clean, sizeof(buffer)},
	{"sigwait", RESTARTED, usr2_block, do_sigwait, usr2_send, nothing, SIGUSR2},
	{"poll", INTERRUPTED, pipe_make, do_poll, put_one, fd_close, 1},
	{"poll, no timeout", INTERRUPTED, pipe_make, do_poll_endless, put_one, fd_close, 1},
	{"ppoll", INTERRUPTED, pipe_make, do_ppoll, put_one, fd_close, 1},
	{"select", INTERRUPTED, pipe_make, do_select, put_one, fd_close, 1},
	{"pselect", INTERRUPTED, pipe_make, do_pselect, put_one, fd_close, 1},
	{"epoll_wait", INTERRUPTED, epoll_make, do_epoll, nothing, fd_close, 1},
	{"epoll_pwait", INTERRUPTED, epoll_make, do_epoll_p, nothing, fd_close, 1},
	{"nanosleep", INTERRUPTED, nothing, do_nanosleep, nothing, nothing, 0},
	{"clock_nanosleep", INTERRUPTED, nothing, do_clock_nanosleep, nothing, nothing, 0},
	{"clock_nanosleep, TIMER_ABSTIME", INTERRUPTED, nothing, do_clock_nanosleep_until, nothing, nothing, 0},
	{"usleep", INTERRUPTED, nothing, do_usleep, nothing, nothing, 0},
	{"sleep", SHORT, nothing, do_sleep, nothing, nothing, 0},
	{"thrd_sleep", SHORT, nothing, do_thrd_sleep, nothing, nothing, 0},
	{"pause", INTERRUPTED, nothing, do_pause, nothing, nothing, 0},
	{"sigsuspend", INTERRUPTED, nothing, do_sigsuspend, nothing, nothing, 0},
	{"sigwaitinfo", INTERRUPTED, usr2_block, do_sigwaitinfo, nothing, nothing, SIGUSR2},
	{"sigtimedwait", INTERRUPTED, usr2_block, do_sigtimedwait, nothing, nothing, SIGUSR2},
	{"msgrcv", INTERRUPTED, msg_make, do_msgrcv, nothing, msg_clean, 0},
	{"msgsnd", INTERRUPTED, msg_full, do_msgsnd, nothing, msg_clean, 0},
	{"semop", INTERRUPTED, sem_make, do_semop, nothing, sem_clean, 0},
	{"semtimedop", INTERRUPTED, sem_make, do_semtimedop, nothing, sem_clean, 0},
	{"io_getevents", INTERRUPTED, aio_make, do_getevents, nothing, aio_clean, 0},
};
/* clang-format on */

/* --------------------------------------------------------------------------------------------------- the helper --- */

static const struct row *volatile current;
static atomic_int begun, ended, released, helper_done, helper_end;

/* Is the first thread asleep? Between "begun" and the call's end it can be so in the call only. */
static bool asleep(void)
{
	char file[64], text[512], *end;
	ssize_t n;
	int f;

	snprintf(file, sizeof(file), "/proc/self/task/%d/stat", (int)getpid());
	f = open(file, O_RDONLY);
	CHECK_SYS(f);
	n = read(f, text, sizeof(text) - 1);
	close(f);
	CHECK(n > 0);
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[1] && end[2] == 'S';
}

static void *helper_main(void *data)
{
	sigset_t all;

	(void)data;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load(&helper_end)) {
		uint64_t ticks, limit;

		if (atomic_exchange(&helper_wants, 0)) {
			pthread_mutex_lock(&handed_over);
			pthread_rwlock_wrlock(&rwlock);
			atomic_store(&helper_has, 1);
		}
		if (!atomic_exchange(&begun, 0)) {
			usleep(20);
			continue;
		}
		limit = now_ns() + 10000000000ull;
		if (current->expected == RESTARTED) {
			while (!asleep() && now_ns() < limit)
				sched_yield();
			ticks = ticks_now();
			while (ticks_now() < ticks + 10 && now_ns() < limit)
				usleep(20);
		} else {
			while (!atomic_load(&ended) && now_ns() < limit)
				usleep(20);
		}
		if (!atomic_load(&ended) || current->expected == RESTARTED) {
			atomic_store(&released, 1);
			current->release();
		}
		atomic_store(&helper_done, 1);
	}
	return NULL;
}

static enum verdict verdict_of(const struct row *r, long got)
{
	if (got == -EINTR)
		return INTERRUPTED;
	if (got == r->good)
		return RESTARTED;
	/* Some of the bytes, or the seconds that were left. */
	if (got < (r->call == do_thrd_sleep ? -1 : 1))
		DIE("%s: %ld (%s)", r->name, got, got < 0 ? strerror((int)-got) : "");
	return SHORT;
}

static void check_row(const struct row *r)
{
	enum verdict verdict;
	long got;

	current = r;
	r->prepare();
	atomic_store(&ended, 0);
	atomic_store(&released, 0);
	atomic_store(&helper_done, 0);
	atomic_store(&begun, 1);
	got = r->call();
	atomic_store(&ended, 1);
	AWAIT(atomic_load(&helper_done));
	if (r->call == do_mq_receive || r->call == do_mq_send || r->call == do_mq_timedreceive) {
		if (queue == (mqd_t)-1) {
			printf("no message queues here\n");
			return;
		}
	}
	verdict = verdict_of(r, got);
	if (verdict != r->expected)
		DIE("%s: %ld, which is %s; expected: %s", r->name, got, verdict_name[verdict],
		    verdict_name[r->expected]);
	/* It was the helper, or it was a tick, that ended it. */
	CHECK_EQ(atomic_load(&released), r->expected == RESTARTED);
	r->clean();
}

static void table(void)
{
	pthread_t thread;

	ticking_begin();
	CHECK_EQ(pthread_create(&thread, NULL, helper_main, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int k = 0; k < 5; k++)
			check_row(&rows[i]);
		printf("%-34s %s\n", rows[i].name, verdict_name[rows[i].expected]);
	}
	atomic_store(&helper_end, 1);
	pthread_join(thread, NULL);
	ticking_end();
}

/* docs/signals.md has a line "| verdict | name; name |" for each verdict, in which every row is named. */
static void documented(void)
{
	static char line[8192];
	const char *file = getenv("COEXIST_SIGNALS_MD");
	size_t named = 0, begin;
	FILE *f;

	CHECK(file);
	f = fopen(file, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		for (size_t v = 0; v < sizeof(verdict_name) / sizeof(verdict_name[0]); v++) {
			begin = strlen(verdict_name[v]);
			if (strncmp(line, "| ", 2) || strncmp(line + 2, verdict_name[v], begin) ||
			    strncmp(line + 2 + begin, " | ", 3))
				continue;
			for (char *name = strtok(line + 2 + begin + 3, ";|\n"); name; name = strtok(NULL, ";|\n")) {
				size_t i = 0;

				name += strspn(name, " ");
				while (*name && name[strlen(name) - 1] == ' ')
					name[strlen(name) - 1] = 0;
				if (!*name)
					continue;
				while (i < sizeof(rows) / sizeof(rows[0]) && strcmp(rows[i].name, name))
					i++;
				if (i == sizeof(rows) / sizeof(rows[0]))
					DIE("%s says \"%s\", which is not tested", file, name);
				CHECK_EQ(rows[i].expected, v);
				named++;
			}
			break;
		}
	}
	fclose(f);
	CHECK_EQ(named, sizeof(rows) / sizeof(rows[0]));
}

static const struct coexist_case cases[] = {
	{"table", table},
	{"documented", documented},
};

COEXIST_CASES(cases)
