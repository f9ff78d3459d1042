/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue of the test's own, behind libfabric's interface: it says what the test wants, when the test wants
 * it, and notes who reads it, with which mutex held, and whether anybody does so after its end.
 */
#ifndef AGENTS_FAKE_H
#define AGENTS_FAKE_H

#include <sys/eventfd.h>

#include "agents_setup.h"

#define FAKE_ROOM 8192u

struct fake {
	struct fid_cq cq;
	struct fi_ops fid_ops;
	struct fi_ops_cq ops;
	struct fid_fabric fabric;
	struct fi_ops_fabric fabric_ops;
	int fd;
	pthread_mutex_t lock; /* what follows */
	struct fi_cq_err_entry entry[FAKE_ROOM];
	uint64_t put, got;
	struct contd_fabric_queue *queue;

	/* Set by the test, with STORE() once it is read. */
	uint32_t interrupted;  /* every so many-th call of read says -FI_EINTR */
	int broken;            /* read says this, for good: -FI_E* */
	int broken_error;      /* readerr says this, for good */
	pthread_mutex_t *held; /* must be held by each thread that enters */
	pid_t only;            /* must be the one who enters */

	/* Noted. */
	uint32_t attempts, reads, strangers, after_end, inside, twice, ended;
};

static inline void fake_enter(struct fake *f)
{
	pid_t self = (pid_t)syscall(SYS_gettid);

	ADD(f->reads, 1);
	if (f->held && __atomic_load_n(&f->held->__data.__owner, __ATOMIC_RELAXED) != self)
		ADD(f->strangers, 1);
	if (f->only && f->only != self)
		ADD(f->strangers, 1);
	if (LOAD(f->ended))
		ADD(f->after_end, 1);
	if (ADD(f->inside, 1) && (f->held || f->only))
		ADD(f->twice, 1);
}

static inline void fake_leave(struct fake *f)
{
	__atomic_fetch_sub(&f->inside, 1, __ATOMIC_SEQ_CST);
}

static inline ssize_t fake_take(struct fake *f, struct fi_cq_tagged_entry *to, size_t count)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (; n < count && f->got < f->put && f->entry[f->got % FAKE_ROOM].err == 0; n++) {
		struct fi_cq_err_entry *e = &f->entry[f->got++ % FAKE_ROOM];

		to[n] = (struct fi_cq_tagged_entry){e->op_context, e->flags, e->len, e->buf, e->data, e->tag};
	}
	if (!n)
		n = f->got < f->put ? (size_t)-FI_EAVAIL : (size_t)-FI_EAGAIN;
	pthread_mutex_unlock(&f->lock);
	return (ssize_t)n;
}

/* How many were read. */
static inline size_t fake_got(struct fake *f)
{
	size_t got;

	pthread_mutex_lock(&f->lock);
	got = f->got;
	pthread_mutex_unlock(&f->lock);
	return got;
}

static inline ssize_t fake_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct fake *f = (struct fake *)cq;
	ssize_t rc;

	fake_enter(f);
	if (LOAD(f->broken))
		rc = LOAD(f->broken);
	else if (LOAD(f->interrupted) && ADD(f->attempts, 1) % LOAD(f->interrupted) == 0)
		rc = -FI_EINTR;
	else
		rc = fake_take(f, buf, count);
	fake_leave(f);
	return rc;
}

static inline ssize_t fake_readerr(struct fid_cq *cq, struct fi_cq_err_entry *to, uint64_t flags)
{
	struct fake *f = (struct fake *)cq;
	ssize_t rc = -FI_EAGAIN;

	fake_enter(f);
	if (LOAD(f->broken_error)) {
		rc = LOAD(f->broken_error);
	} else {
		pthread_mutex_lock(&f->lock);
		if (f->got < f->put && f->entry[f->got % FAKE_ROOM].err) {
			*to = f->entry[f->got++ % FAKE_ROOM];
			rc = 1;
		}
		pthread_mutex_unlock(&f->lock);
	}
	fake_leave(f);
	return rc;
}

static inline const char *fake_strerror(struct fid_cq *cq, int error, const void *data, char *to, size_t room)
{
	fake_enter((struct fake *)cq);
	fake_leave((struct fake *)cq);
	snprintf(to, room, "fake error %d", error);
	return to;
}

static inline int fake_control(struct fid *fid, int command, void *arg)
{
	struct fake *f = (struct fake *)fid;

	if (command != FI_GETWAIT || f->fd < 0)
		return -FI_ENOSYS;
	*(int *)arg = f->fd;
	return 0;
}

/* As real ones do: what was signalled is taken back, then it looks whether there is something. */
static inline int fake_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	struct fake *f = (struct fake *)fids[0];
	uint64_t number;
	int rc;

	fake_enter(f);
	pthread_mutex_lock(&f->lock);
	(void)!read(f->fd, &number, sizeof(number));
	rc = f->got < f->put ? -FI_EAGAIN : 0;
	pthread_mutex_unlock(&f->lock);
	fake_leave(f);
	return rc;
}

static inline void fake_make(struct fake *f, bool fd)
{
	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	f->fd = fd ? eventfd(0, EFD_NONBLOCK) : -1;
	f->fid_ops.size = sizeof(f->fid_ops);
	f->fid_ops.control = fake_control;
	f->ops.size = sizeof(f->ops);
	f->ops.read = fake_read;
	f->ops.readerr = fake_readerr;
	f->ops.strerror = fake_strerror;
	f->fabric_ops.size = sizeof(f->fabric_ops);
	f->fabric_ops.trywait = fake_trywait;
	f->cq.fid.fclass = FI_CLASS_CQ;
	f->cq.fid.ops = &f->fid_ops;
	f->cq.ops = &f->ops;
	f->fabric.fid.fclass = FI_CLASS_FABRIC;
	f->fabric.ops = &f->fabric_ops;
}

/* Fields of *attr that are 0 are filled in; NULL: none is set. */
static inline void fake_open(struct fake *f, bool fd, const struct contd_fabric_attr *attr)
{
	struct contd_fabric_attr a = attr ? *attr : (struct contd_fabric_attr){.threading = FI_THREAD_SAFE};

	fake_make(f, fd);
	a.size = sizeof(a);
	a.format = FI_CQ_FORMAT_TAGGED;
	a.wait = fd ? FI_WAIT_FD : FI_WAIT_NONE;
	a.fabric = &f->fabric;
	if (a.threading != FI_THREAD_SAFE) {
		f->held = a.mutex;
		f->only = a.mutex ? 0 : (pid_t)syscall(SYS_gettid);
	}
	CHECK_OK(contd_fabric_queue_adopt(&f->cq, &a, &f->queue));
}

/* The test's end of it: what must not have happened has not. */
static inline void fake_check(struct fake *f)
{
	CHECK_IS(LOAD(f->strangers), 0);
	CHECK_IS(LOAD(f->twice), 0);
	CHECK_IS(LOAD(f->after_end), 0);
}

static inline void fake_close(struct fake *f)
{
	CHECK_OK(contd_fabric_queue_destroy(f->queue));
	STORE(f->ended, 1);
	fake_check(f);
	if (f->fd >= 0)
		close(f->fd);
	pthread_mutex_destroy(&f->lock);
}

static inline void fake_signal(struct fake *f)
{
	uint64_t one = 1;

	if (f->fd >= 0)
		CHECK_IS(write(f->fd, &one, sizeof(one)), sizeof(one));
}

static inline void fake_put_entry(struct fake *f, const struct fi_cq_err_entry *e)
{
	pthread_mutex_lock(&f->lock);
	CHECK(f->put - f->got < FAKE_ROOM);
	f->entry[f->put++ % FAKE_ROOM] = *e;
	fake_signal(f);
	pthread_mutex_unlock(&f->lock);
}

static inline void fake_put(struct fake *f, void *context, uint64_t flags, size_t length)
{
	fake_put_entry(f, &(struct fi_cq_err_entry){.op_context = context, .flags = flags, .len = length});
}

static inline void fake_put_error(struct fake *f, void *context, int err)
{
	fake_put_entry(f, &(struct fi_cq_err_entry){.op_context = context, .err = err, .prov_errno = err});
}

static inline uint64_t fake_waiting(struct fake *f)
{
	uint64_t n;

	pthread_mutex_lock(&f->lock);
	n = f->put - f->got;
	pthread_mutex_unlock(&f->lock);
	return n;
}

#endif
