/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The linker sends calls of each function in calls.def here (--wrap), from contd's objects and the test's; calls inside
 * the C library and liburcu stay as they are. Also in handlers: plain atomics only.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "refused/refuse.h"

enum {
#define CALL(type, name, parameters, arguments, result, error, how) N_##name,
#define CODE(name, parameters, arguments, error, how) N_##name,
#include "refused/calls.def"
#undef CALL
#undef CODE
	N_open,
	N_prctl,
	N_notify,
	N_other_syscall,
	FUNCTIONS
};

static const struct {
	const char *name;
	enum refuse_how how;
} table[FUNCTIONS] = {
#define CALL(type, name, parameters, arguments, result, error, how) {#name, how},
#define CODE(name, parameters, arguments, error, how) {#name, how},
#include "refused/calls.def"
#undef CALL
#undef CODE
	{"open", MUST},
	{"prctl", MAY},                      /* the daemon's timer slack: it ticks less exactly */
	{"syscall(rt_tgsigqueueinfo)", MAY}, /* a notification: what is ready waits for a poll, test or wait */
	{"syscall(others)", MUST},
};

static unsigned function = FUNCTIONS, from, called, refused;
static bool onward;

unsigned refuse_functions(void)
{
	return FUNCTIONS;
}

const char *refuse_name(unsigned f)
{
	return table[f].name;
}

enum refuse_how refuse_how(unsigned f)
{
	return table[f].how;
}

void refuse_start(unsigned f, unsigned n, bool all)
{
	__atomic_store_n(&called, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&refused, 0, __ATOMIC_RELAXED);
	from = n;
	onward = all;
	__atomic_store_n(&function, f, __ATOMIC_SEQ_CST);
}

void refuse_end(void)
{
	__atomic_store_n(&function, (unsigned)FUNCTIONS, __ATOMIC_SEQ_CST);
}

unsigned refuse_called(void)
{
	return __atomic_load_n(&called, __ATOMIC_SEQ_CST);
}

unsigned refuse_refused(void)
{
	return __atomic_load_n(&refused, __ATOMIC_SEQ_CST);
}

static bool is_refused(unsigned f)
{
	unsigned n;

	if (__atomic_load_n(&function, __ATOMIC_SEQ_CST) != f)
		return false;
	n = __atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
	if (onward ? n < from : n != from)
		return false;
	__atomic_add_fetch(&refused, 1, __ATOMIC_SEQ_CST);
	return true;
}

/* Resources that are taken and not given back. */
static int blocks, mappings;

int refuse_blocks(void)
{
	return __atomic_load_n(&blocks, __ATOMIC_SEQ_CST);
}

int refuse_mappings(void)
{
	return __atomic_load_n(&mappings, __ATOMIC_SEQ_CST);
}

static void count(unsigned f)
{
	switch (f) {
	case N_malloc:
	case N_calloc:
	case N_aligned_alloc:
	case N_strdup:
		__atomic_add_fetch(&blocks, 1, __ATOMIC_SEQ_CST);
		break;
	case N_mmap:
		__atomic_add_fetch(&mappings, 1, __ATOMIC_SEQ_CST);
		break;
	default:
		break;
	}
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
	if (p)
		__atomic_sub_fetch(&blocks, 1, __ATOMIC_SEQ_CST);
	__real_free(p);
}

int __real_munmap(void *p, size_t bytes);
int __wrap_munmap(void *p, size_t bytes);
int __wrap_munmap(void *p, size_t bytes)
{
	__atomic_sub_fetch(&mappings, 1, __ATOMIC_SEQ_CST);
	return __real_munmap(p, bytes);
}

#define CALL(type, name, parameters, arguments, result, error, how) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		if (!is_refused(N_##name)) { \
			count(N_##name); \
			return __real_##name arguments; \
		} \
		errno = error; \
		return result; \
	}
#define CODE(name, parameters, arguments, error, how) \
	int __real_##name parameters; \
	int __wrap_##name parameters; \
	int __wrap_##name parameters \
	{ \
		if (is_refused(N_##name)) { \
			errno = error; \
			return error; \
		} \
		return __real_##name arguments; \
	}
#include "refused/calls.def"

/* Those with a variable number of arguments. */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (!is_refused(N_open))
		return __real_open(path, flags, mode);
	errno = EMFILE;
	return -1;
}

int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);
int __wrap_prctl(int option, ...)
{
	unsigned long a[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (!is_refused(N_prctl))
		return __real_prctl(option, a[0], a[1], a[2], a[3]);
	errno = EPERM;
	return -1;
}

/* Which of the ladder's functions a system call is; FUNCTIONS: it is never refused. */
static unsigned which(long number)
{
	switch (number) {
	case SYS_futex:
	case SYS_gettid:
	case SYS_membarrier:
	case SYS_write: /* to an eventfd: others.list */
		return FUNCTIONS;
	case SYS_rt_tgsigqueueinfo:
		return N_notify;
	default:
		return N_other_syscall;
	}
}

long __real_syscall(long number, ...);
/* Reads as many arguments as a call can have, whether they were given or not, as syscall(2) itself does. */
__attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	unsigned f = which(number);
	va_list list;
	long a[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (f == FUNCTIONS || !is_refused(f))
		return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	errno = EAGAIN;
	return -1;
}
