/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How processes of one job on one host find each other's pages. Ordinary threads only.
 *
 * A page is a memfd_create(2) file: it has no name that could be left behind, is open to its user only (mode 0600), and
 * cannot be shortened (a peer that maps it never meets SIGBUS). A process that listens binds a socket to an abstract
 * name (unix(7)) made of the user, the job and its number. No data ever passes through it. A peer connects, and the
 * kernel says which process listens there (SO_PEERCRED). The peer opens a pidfd_open(2) descriptor of it, so that its
 * number cannot become another process's unnoticed. Then it opens the page through /proc/pid/fd. A process that has
 * ended takes its name with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own_fd.h"
#include "base/rest.h"
#include "dispatch/limits.h"
#include "dispatch/live.h"
#include "dispatch/page.h"
#include "dispatch/thread.h"
#include "signal/attached.h"
#include "signal/bell.h"
#include "signal/peers.h"
#include "signal/timer.h"

#define PAGE_NAME CONTD_PAGE_NAME
#define PAGE_BYTES 4096u
#define JOB_MAX 64u

static struct {
	pthread_mutex_t lock;
	struct contd__page *page; /* ours, or NULL */
	int page_fd;
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* "" while no peer can find this process */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .page_fd = -1};

static struct contd__page unshared; /* which no peer can ring: in the child of a fork, and after the end */

/* ----------------------------------------------------------------------------------------------------- our page --- */

uint64_t contd__process_field(pid_t pid, int number)
{
	char path[32], text[1024], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')'); /* the name before it may hold anything */
	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static int make_page(void)
{
	struct contd__page *page;
	int fd = contd__own_fd((int)syscall(SYS_memfd_create, PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING));

	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0600) || ftruncate(fd, PAGE_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int err = -errno;

		close(fd);
		return err;
	}
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	page->mark = (uintptr_t)&contd__signals.bell_mark;
	page->pid = getpid();
	page->start_time = contd__process_field(page->pid, PROCESS_START);
	if (!page->start_time) { /* peers could not tell this process from a later one of its number */
		munmap(page, PAGE_BYTES);
		close(fd);
		return -ENOENT;
	}
	page->signal_number = contd__config.signal_number;
	/* Release: pairs with the acquire in map_page(). A peer that finds this value sees the rest. */
	contd__store_release(&page->magic, CONTD_PAGE_MAGIC);
	own.page_fd = fd;
	own.page = page;
	return 0;
}

int contd__page_make(void)
{
	int rc = 0;

	if (contd__config.bell == CONTD_BELL_OFF)
		return 0;
	pthread_mutex_lock(&own.lock);
	rc = make_page();
	if (!rc)
		contd__page_put(own.page); /* before the daemon and any attached thread waits on the other one */
	pthread_mutex_unlock(&own.lock);
	return rc ? contd__fail(rc, "contd_init: cannot make the page of doorbells (memfd_create, mmap, /proc); raise "
				    "RLIMIT_NOFILE, or do without them (CONTD_BELL=0)")
		  : 0;
}

void contd__peers_forked(void)
{
	contd__page_put(&unshared);
	contd__store(&contd__signals.listens, 0);
	/* The name belongs to the holder of the socket: the parent alone. */
	if (contd__bell_socket >= 0)
		close(contd__bell_socket);
	if (own.page_fd >= 0)
		close(own.page_fd);
	contd__bell_socket = own.page_fd = -1;
	own.page = NULL;
	own.name[0] = 0;
}

void contd__peers_end(void)
{
	pthread_mutex_lock(&own.lock);
	contd__store(&contd__signals.listens, 0);
	if (contd__bell_socket >= 0)
		close(contd__bell_socket);
	if (own.page) {
		contd__page_replace(&unshared);
		contd__threads_unwatch();
		while (contd__load_seq(&contd__signals.strays)) /* partner: stray(), which uses the page */
			contd__rest();
		munmap(own.page, PAGE_BYTES); /* peers have their own mapping of it */
		close(own.page_fd);
	}
	own.page = NULL;
	contd__bell_socket = own.page_fd = -1;
	own.name[0] = 0;
	pthread_mutex_unlock(&own.lock);
}

/* -------------------------------------------------------------------------------------------------- being found --- */

static bool job_is_valid(const char *job)
{
	return job && *job && strnlen(job, JOB_MAX + 1) <= JOB_MAX;
}

/* The abstract name: its first byte is 0. Returns the address's length. */
static socklen_t address_of(struct sockaddr_un *un, const char *job, uint32_t number)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "contd/%u/%s/%u", (unsigned)geteuid(), job,
		 (unsigned)number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un->sun_path + 1));
}

static int listen_locked(const char *job, uint32_t number)
{
	struct sockaddr_un un;
	socklen_t bytes = address_of(&un, job, number);
	int fd;

	if (own.name[0])
		return strcmp(own.name, un.sun_path + 1) == 0
			       ? 0
			       : contd__fail(-EALREADY, "contd_bell_listen: this process listens by another job or "
							"number already; it may have one name");
	if (!own.page)
		return contd__fail(-EOPNOTSUPP,
				   "contd_bell_listen: doorbells are off; switch them on (cfg->bell, CONTD_BELL=1)");
	fd = contd__own_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return contd__fail(-errno, "contd_bell_listen: cannot make a socket; raise RLIMIT_NOFILE");
	/* Peers stay in the queue, unaccepted, even when they have gone: contd__bell_drain_sig(). */
	if (bind(fd, (struct sockaddr *)&un, bytes) || listen(fd, 4096)) {
		int err = -errno;

		close(fd);
		return contd__fail(err, err == -EADDRINUSE ? "contd_bell_listen: another process listens as job and "
							     "number already; take another number"
							   : "contd_bell_listen: the socket's name cannot be bound "
							     "(bind(2), unix(7)); do without bells (CONTD_BELL=0)");
	}
	contd__bell_socket = fd;
	snprintf(own.name, sizeof(own.name), "%s", un.sun_path + 1);
	contd__store_seq(&contd__signals.listens, 1);
	contd__arm_sig();
	contd__bell_taken_sig(); /* a thread may compute already */
	return 0;
}

int contd_bell_listen(const char *job, uint32_t number)
{
	int rc = contd__check_live(), cancel;

	if (rc)
		return rc;
	if (!job_is_valid(job))
		return contd__fail(-EINVAL, "contd_bell_listen: job must be a text of 1 to 64 characters");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_bell_listen: not in a signal handler");
	cancel = contd__cancel_off();
	pthread_mutex_lock(&own.lock);
	rc = listen_locked(job, number);
	pthread_mutex_unlock(&own.lock);
	contd__cancel_as(cancel);
	return rc;
}

/* ----------------------------------------------------------------------------------------------- finding a peer --- */

/* Which process listens there? Its number, or -errno. */
static pid_t who_listens(const char *job, uint32_t number)
{
	struct sockaddr_un un;
	socklen_t bytes = address_of(&un, job, number), length;
	struct ucred who = {.pid = 0};
	int fd = contd__own_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), rc = 0;

	if (fd < 0)
		return contd__fail(-errno, "contd_bell_open: cannot make a socket; raise RLIMIT_NOFILE");
	length = sizeof(who);
	if (connect(fd, (struct sockaddr *)&un, bytes)) {
		/* EAGAIN: its queue is full; to be found later. */
		rc = contd__fail(
			errno == ECONNREFUSED || errno == EAGAIN ? -ENOENT : -errno,
			"contd_bell_open: no process listens as job and number; call it when that one has called "
			"contd_bell_listen()");
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length)) {
		rc = contd__fail(
			-errno,
			"contd_bell_open: the kernel does not say who listens (SO_PEERCRED); do without this bell");
	} else if (who.uid != geteuid()) {
		rc = contd__fail(-EACCES,
				 "contd_bell_open: another user's process listens as job and number; take another job");
	} else if (who.pid <= 0) {
		rc = contd__fail(
			-ENOENT,
			"contd_bell_open: the process that listens is in another PID namespace; run both in one, or "
			"do without this bell");
	}
	close(fd);
	return rc ? rc : who.pid;
}

/*
 * Can the file be mapped, and will it stay so? Pages are sealed. A file of that name that is shorter, or that can be
 * made shorter, is no page. Reading it might raise SIGBUS.
 */
static bool is_page(int fd, struct contd__peer *peer)
{
	struct stat now;

	if (fstat(fd, &now) || now.st_size < (off_t)PAGE_BYTES || !(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
		return false;
	peer->inode = now.st_ino;
	peer->device[0] = major(now.st_dev);
	peer->device[1] = minor(now.st_dev);
	return true;
}

/* Map the page that the process has open, if it is one of this version. */
static struct contd__page *map_page(pid_t pid, struct contd__peer *peer)
{
	char path[64], target[64];
	struct contd__page *page = NULL;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return NULL;
	while (!page && (entry = readdir(dir)) != NULL) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		int fd;

		if (n < 0)
			continue;
		target[n] = 0;
		if (strncmp(target, "/memfd:" PAGE_NAME, strlen("/memfd:" PAGE_NAME)) != 0)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		page = !is_page(fd, peer) ? MAP_FAILED
					  : mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		/* A descriptor may have come by fork from another process: its page says whose it is. */
		if (page != MAP_FAILED &&
		    (contd__load_acquire(&page->magic) != CONTD_PAGE_MAGIC || contd__load(&page->pid) != pid)) {
			munmap(page, PAGE_BYTES);
			page = MAP_FAILED;
		}
		if (page == MAP_FAILED)
			page = NULL;
		else
			snprintf(peer->proof, sizeof(peer->proof), "/proc/%d/fd/%d", (int)pid, atoi(entry->d_name));
	}
	closedir(dir);
	return page;
}

static int open_bell(const char *job, uint32_t number, struct contd_bell **bellp)
{
	struct contd__peer *peer;
	pid_t pid = who_listens(job, number);

	if (pid < 0)
		return pid;
	peer = contd__zalloc(sizeof(*peer));
	if (!peer)
		return contd__fail(-ENOMEM, "contd_bell_open: out of memory");
	peer->pidfd = contd__own_fd((int)syscall(SYS_pidfd_open, pid, 0));
	if (peer->pidfd < 0) {
		int err = errno == ESRCH ? -ENOENT : -errno;

		free(peer);
		return contd__fail(
			err, "contd_bell_open: cannot open the peer's process (pidfd_open(2)); raise RLIMIT_NOFILE, or "
			     "try again if it has just ended");
	}
	peer->page = map_page(pid, peer);
	/* The descriptor and the page are of the same process if that began when the page says, and has not ended. */
	if (!peer->page || contd__load(&peer->page->start_time) != contd__process_field(pid, PROCESS_START) ||
	    syscall(SYS_pidfd_send_signal, peer->pidfd, 0, NULL, 0)) {
		contd_bell_close(&peer->bell);
		return contd__fail(-EPROTO,
				   "contd_bell_open: the peer has no page that this version of contd can read; use one "
				   "version in both");
	}
	contd__add(&peer->page->opened, 1);
	peer->bell.armed = &peer->page->armed.any;
	*bellp = &peer->bell;
	return 0;
}

int contd_bell_open(const char *job, uint32_t number, struct contd_bell **bellp)
{
	int cancel, rc;

	if (!job_is_valid(job) || !bellp)
		return contd__fail(-EINVAL, !bellp ? CONTD_NULL("contd_bell_open", "bellp")
						   : "contd_bell_open: job must be a text of 1 to 64 characters");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_bell_open: not in a signal handler");
	cancel = contd__cancel_off();
	rc = open_bell(job, number, bellp);
	contd__cancel_as(cancel);
	return rc;
}

void contd_bell_close(struct contd_bell *bell)
{
	struct contd__peer *peer = (struct contd__peer *)bell;
	int cancel;

	if (!peer)
		return;
	if (peer->page)
		munmap(peer->page, PAGE_BYTES);
	cancel = contd__cancel_off();
	close(peer->pidfd);
	contd__cancel_as(cancel);
	free(peer);
}
