/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/own_fd.h"
#include "base/own_thread.h"
#include "base/say.h"
#include "dispatch/settings.h"
#include "dispatch/signal_name.h"
#include "dump/asked.h"
#include "dump/dump.h"
#include "dump/root.h"

#define FULL_MS 100   /* between looks whether the thread is to end, while its file takes nothing */
#define LOOKS_MOST 10 /* of these once it is to end; then the rest of the dump is given up */

static struct {
	pthread_t thread;
	bool runs;
	char file[6 * CONTD_SETTING_TEXT]; /* each %p becomes 10 digits at most. "": standard error */
} asked;

/* %p is the number of the process, so that each of a job has another file. */
static void take_path(const char *from)
{
	size_t n = 0;

	for (; from && *from && n < sizeof(asked.file) - 16; from++) {
		if (from[0] == '%' && from[1] == 'p') {
			n += (size_t)snprintf(asked.file + n, 12, "%d", (int)getpid());
			from++;
		} else {
			asked.file[n++] = *from;
		}
	}
	asked.file[n] = '\0';
}

static bool ends(void)
{
	return (contd__load_acquire(&contd__asked) & ASKED_END) != 0;
}

/* The descriptor takes nothing now. Its reader may never go on, and contd_fini() waits for this thread. */
static bool wait_for(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	unsigned looks = 0;
	int rc;

	while (!ends() || looks++ < LOOKS_MOST) {
		rc = poll(&p, 1, FULL_MS);
		if (rc > 0)
			return true;
		if (rc < 0 && errno != EINTR)
			return false;
	}
	errno = EAGAIN;
	return false;
}

static void write_dump(void)
{
	int fd, rc;

	if (!*asked.file) {
		rc = contd__dump_to(SAY_DESCRIPTOR, true, wait_for);
		if (rc)
			contd__say("the dump that a signal asked for has failed: %s", strerror(-rc));
		return;
	}
	/* Not blocking: a FIFO without a reader is an error, and wait_for() waits for a slow reader. */
	fd = contd__own_fd(open(asked.file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
	rc = fd < 0 ? -errno : contd__dump_to(fd, false, wait_for);
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno; /* some file systems tell only now that nothing is left of the quota */
	if (rc)
		contd__say("the dump that a signal asked for cannot be written to %s: %s", asked.file, strerror(-rc));
}

/* A signal that came before contd_fini() gets its dump. */
static void *asked_main(void *unused)
{
	uint32_t seen = 0;

	for (;;) {
		uint32_t now = contd__load_acquire(&contd__asked);

		if ((now ^ seen) & ~ASKED_END)
			write_dump();
		else if (now & ASKED_END)
			return unused;
		else
			syscall(SYS_futex, &contd__asked, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
		seen = now;
	}
}

int contd__asked_start(const struct contd_config *config)
{
	int number = config->dump_signal ? contd__signal_by_name(config->dump_signal) : 0, rc;
	struct sigaction ours = {.sa_handler = contd__asked_sig, .sa_flags = SA_RESTART | SA_ONSTACK}, before;

	if (!number)
		return 0;
	sigfillset(&ours.sa_mask);
	if (sigaction(number, NULL, &before) || (before.sa_handler != SIG_DFL && before.sa_handler != contd__asked_sig))
		return contd__fail(-EBUSY,
				   "contd_init: the signal that cfg->dump_signal (CONTD_DUMP_SIGNAL) names has a "
				   "handler, or is ignored; choose another");
	contd__store(&contd__asked, 0);
	take_path(config->dump_file);
	rc = contd__own_thread_create(&asked.thread, asked_main, NULL);
	if (rc)
		return contd__fail(-rc,
				   "contd_init: cannot create the thread that writes dumps (cfg->dump_signal); raise "
				   "RLIMIT_NPROC");
	pthread_setname_np(asked.thread, "contd-dump");
	asked.runs = true;
	if (sigaction(number, &ours, NULL)) {
		contd__asked_stop();
		return contd__fail(-EBUSY,
				   "contd_init: the signal that cfg->dump_signal (CONTD_DUMP_SIGNAL) names cannot "
				   "be caught; choose another");
	}
	return 0;
}

void contd__asked_stop(void)
{
	if (!asked.runs)
		return;
	/* The word changes, so the thread does not go to sleep on what it was. */
	contd__or(&contd__asked, ASKED_END);
	syscall(SYS_futex, &contd__asked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	pthread_join(asked.thread, NULL);
	asked.runs = false;
}
