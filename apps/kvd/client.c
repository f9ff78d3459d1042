/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client.h"

#define SPIN_NS 50000u
#define TORN_MAX 100000u

static void fail(struct kv *kv, int rc, const char *what, const char *why)
{
	if (kv->failed || kv->closing)
		return;
	kv->failed = rc;
	snprintf(kv->error, sizeof(kv->error), "%s: %s", what, why && *why ? why : fi_strerror(-rc));
}

/* ----------------------------------------------------------------------------------------- requests' operations --- */

static void on_posted(int status, void *data);

static void finish(struct kv_request *r)
{
	r->under_way = false;
	r->kv->under_way--;
	r->kv->progress_ns = kvd_now_ns();
	if (r->done)
		r->done(r);
}

static ssize_t call(struct kv_request *r)
{
	struct kv *kv = r->kv;
	const struct kvd_layout *l = &kv->layout;
	uint64_t at = l->mr_base;

	if (r->operation != KV_READ)
		return fi_send(kv->net.endpoint, r->buffer, r->bytes, NULL, kv->server, &r->op);
	if (r->step == AT_WINDOW)
		at += l->slots_offset + (r->hash & (l->slots - 1)) * sizeof(struct kvd_slot);
	else
		at += l->arena_offset + (r->window[r->window_at].place >> 32) * KVD_UNIT;
	return fi_read(kv->net.endpoint, r->step == AT_WINDOW ? (void *)r->window : r->buffer, r->bytes, NULL,
		       kv->server, at, l->mr_key, &r->op);
}

static void post(struct kv_request *r, bool begin)
{
	struct kv *kv = r->kv;
	ssize_t rc;

	if (begin) {
		if (contd_fabric_begin_continue(kv->net.queue, &r->op, on_posted, r, kv->group)) {
			fail(kv, -EIO, "contd", contd_error_text());
			return;
		}
		r->posted = true;
	}
	rc = call(r);
	if (rc == -FI_EAGAIN) {
		r->next = NULL;
		*kv->last = r;
		kv->last = &r->next;
	} else if (rc) {
		contd_fabric_withdraw(&r->op, (int)rc);
	}
}

/* -------------------------------------------------------------------------------------------- one-sided reading --- */

static void read_window(struct kv_request *r)
{
	r->step = AT_WINDOW;
	r->window_at = 0;
	r->bytes = sizeof(r->window);
	post(r, true);
}

static void read_again(struct kv_request *r)
{
	if (++r->torn > TORN_MAX)
		fail(r->kv, -EIO, "one-sided read", "the table does not come to rest");
	else
		read_window(r);
}

static void read_record(struct kv_request *r)
{
	const struct kvd_layout *l = &r->kv->layout;
	enum kvd_seen seen = kvd_window_find(r->window, KVD_WINDOW, r->hash, &r->window_at);
	uint64_t place;

	if (seen == KVD_TORN) {
		read_again(r);
		return;
	}
	if (seen == KVD_ABSENT) {
		r->status = KVD_NOT_FOUND;
		finish(r);
		return;
	}
	/* The slot may be a mixture of two: nothing of it is believed before the record says the same. */
	place = r->window[r->window_at].place;
	r->bytes = (uint32_t)place;
	if (r->bytes > kvd_record_bytes(KVD_KEY_MAX, KVD_VALUE_MAX) ||
	    (place >> 32) * KVD_UNIT + r->bytes > l->arena_bytes) {
		read_again(r);
		return;
	}
	r->step = AT_RECORD;
	post(r, true);
}

static void look_at_record(struct kv_request *r)
{
	struct kvd_message m;

	switch (kvd_record_read(r->buffer, r->bytes, &r->window[r->window_at], r->key, r->key_length, &m)) {
	case KVD_SEEN:
		r->status = KVD_OK;
		r->got = m.value;
		r->got_length = m.value_length;
		finish(r);
		break;
	case KVD_ABSENT: /* another key with this hash */
		r->window_at++;
		read_record(r);
		break;
	default:
		read_again(r);
	}
}

static void on_posted(int status, void *data)
{
	struct kv_request *r = data;

	r->posted = false;
	if (status)
		fail(r->kv, status, r->operation == KV_READ ? "one-sided read" : "sending to the server", r->op.text);
	if (status || r->kv->closing)
		return;
	if (r->operation != KV_READ) {
		if (r->answered)
			finish(r);
	} else if (r->step == AT_WINDOW) {
		read_record(r);
	} else {
		look_at_record(r);
	}
}

/* ----------------------------------------------------------------------------------------------------- messages --- */

static void on_answer(int status, void *data);

static void listen_for(struct kv_answer *a, bool begin)
{
	struct kv *kv = a->kv;
	ssize_t rc;

	if (begin && contd_fabric_begin_continue(kv->net.queue, &a->op, on_answer, a, kv->group)) {
		fail(kv, -EIO, "contd", contd_error_text());
		return;
	}
	rc = fi_recv(kv->net.endpoint, a->buffer, KVD_MESSAGE_MAX, NULL, FI_ADDR_UNSPEC, &a->op);
	if (rc == -FI_EAGAIN) {
		a->next = kv->unposted;
		kv->unposted = a;
	} else if (rc) {
		contd_fabric_withdraw(&a->op, (int)rc);
	}
}

/* Its value is in the buffer until this returns. */
static void take_answer(struct kv *kv, const struct kvd_message *m)
{
	uint32_t i = (uint32_t)(m->number & 0xffff);
	struct kv_request *r = &kv->request[i];

	if (i > kv->depth || !r->under_way || r->number != m->number || r->answered || r->operation != m->operation) {
		kv->strange++;
		return;
	}
	if (m->flags & KVD_DRAINING)
		kv->draining = true;
	if (m->operation == KVD_HELLO && m->status == KVD_OK) {
		if (!kvd_layout_parse(m->value, m->value_length, &kv->layout)) {
			fail(kv, -EPROTO, "hello", "the server's table is of no kind that this client knows");
			return;
		}
		kv->session = m->session;
	}
	r->answered = true;
	r->status = m->status;
	r->got = r->buffer;
	r->got_length = m->value_length;
	if (!r->posted) {
		r->got = m->value;
		finish(r);
		return;
	}
	/* The answer has overtaken the news that the request was sent. The request's buffer may still be read. */
	r->got = r->buffer + KVD_MESSAGE_MAX;
	memcpy(r->buffer + KVD_MESSAGE_MAX, m->value, m->value_length);
}

static void on_answer(int status, void *data)
{
	struct kv_answer *a = data;
	struct kv *kv = a->kv;
	struct kvd_message m;

	if (kv->closing || kv->failed)
		return;
	if (status && status != -FI_ETRUNC) {
		fail(kv, status, "receiving", a->op.text);
		return;
	}
	/* It may be larger than any answer: any program that knows this address can send it. */
	if (!status && kvd_parse(a->buffer, a->op.length, true, &m) == KVD_PARSED)
		take_answer(kv, &m);
	else
		kv->strange++;
	listen_for(a, true);
}

void kv_start(struct kv_request *r)
{
	struct kv *kv = r->kv;
	struct kvd_message m = {.operation = (uint8_t)r->operation,
				.session = kv->session,
				.key_length = r->key_length,
				.value_length =
					r->operation == KVD_PUT || r->operation == KVD_HELLO ? r->value_length : 0,
				.key = r->key,
				.value = r->value};

	r->under_way = true;
	r->answered = false;
	r->torn = 0;
	r->got = NULL;
	r->got_length = 0;
	r->started_ns = kvd_now_ns();
	if (!kv->under_way++)
		kv->progress_ns = r->started_ns;
	if (r->operation == KV_READ) {
		r->hash = kvd_hash(kv->layout.hash_seed, r->key, r->key_length);
		read_window(r);
		return;
	}
	r->number = m.number = ++kv->counter << 16 | (uint64_t)(r - kv->request);
	r->bytes = kvd_format(r->buffer, &m);
	post(r, true);
}

/* ------------------------------------------------------------------------------------------------------ driving --- */

static void try_again(struct kv *kv)
{
	struct kv_request *r = kv->first, *next;
	struct kv_answer *a = kv->unposted, *after;

	kv->first = NULL;
	kv->last = &kv->first;
	kv->unposted = NULL;
	for (; r; r = next) {
		next = r->next;
		post(r, false);
	}
	for (; a; a = after) {
		after = a->next;
		listen_for(a, false);
	}
}

static void nap(struct kv *kv)
{
	struct fid *fid = &kv->net.cq->fid;
	struct pollfd fd = {.events = POLLIN};
	struct timespec little = {0, 50000};

	if (!kv->net.sleeps || kv->first || fi_control(fid, FI_GETWAIT, &fd.fd) != 0)
		nanosleep(&little, NULL);
	else if (fi_trywait(kv->net.fabric, &fid, 1) == 0)
		poll(&fd, 1, 10);
}

int kv_drive(struct kv *kv)
{
	uint64_t now;
	int ran = contd_poll(0);

	try_again(kv);
	now = kvd_now_ns();
	if (!kv->failed && kv->under_way && now - kv->progress_ns > kv->timeout_ns)
		fail(kv, -ETIMEDOUT, "the server", "does not answer");
	if (kv->failed)
		return kv->failed;
	if (ran > 0 || !kv->idle_since)
		kv->idle_since = now;
	else if (now - kv->idle_since > SPIN_NS)
		nap(kv);
	else
		sched_yield();
	return 0;
}

int kv_wait(struct kv *kv)
{
	int rc = 0;

	while (kv->under_way && !rc)
		rc = kv_drive(kv);
	return rc;
}

/* --------------------------------------------------------------------------------------------- opening, closing --- */

/* The last request is the client's own. */
static int ask(struct kv *kv, unsigned operation, const void *value, size_t bytes)
{
	struct kv_request *r = &kv->request[kv->depth];

	r->operation = operation;
	r->key_length = 0;
	r->value = value;
	r->value_length = (uint32_t)bytes;
	kv_start(r);
	return kv_wait(kv);
}

int kv_open(struct kv *kv, const char *provider, const char *at, uint32_t depth, unsigned timeout_ms)
{
	size_t each = 2 * KVD_MESSAGE_MAX + KVD_UNIT, own;
	int rc;

	memset(kv, 0, sizeof(*kv));
	each -= each % KVD_UNIT; /* records are looked at where they are read to */
	kv->depth = depth;
	kv->answers = depth + 4;
	kv->timeout_ns = timeout_ms * 1000000ull;
	kv->last = &kv->first;
	own = (depth + 1) * each;
	kv->request = calloc(depth + 1, sizeof(*kv->request));
	kv->answer = calloc(kv->answers, sizeof(*kv->answer));
	kv->memory = malloc(own + (size_t)kv->answers * KVD_MESSAGE_MAX);
	if (!kv->request || !kv->answer || !kv->memory || contd_group_create(NULL, &kv->group)) {
		fail(kv, -ENOMEM, "the client", NULL);
		return -ENOMEM;
	}
	rc = kvd_queue_open(&kv->net, provider, at, false, 2 * kv->answers + 64, &kv->server);
	if (rc) {
		fail(kv, rc, at, kv->net.error);
		return rc;
	}
	for (uint32_t i = 0; i <= depth; i++) {
		kv->request[i].kv = kv;
		kv->request[i].buffer = kv->memory + i * each;
	}
	for (uint32_t i = 0; i < kv->answers; i++) {
		kv->answer[i].kv = kv;
		kv->answer[i].buffer = kv->memory + own + (size_t)i * KVD_MESSAGE_MAX;
		listen_for(&kv->answer[i], true);
	}
	rc = ask(kv, KVD_HELLO, kv->net.address, kv->net.address_length);
	if (!rc && kv->request[depth].status != KVD_OK) {
		rc = -ECONNREFUSED;
		fail(kv, rc, "hello", kvd_status_text(kv->request[depth].status));
	}
	return rc;
}

void kv_close(struct kv *kv)
{
	if (kv->net.endpoint && kv->session && !kv->failed) {
		kv->timeout_ns =
			kv->timeout_ns < 1000000000u ? kv->timeout_ns : 1000000000u; /* it may have ended by now */
		ask(kv, KVD_BYE, NULL, 0);
	}
	kv->closing = true;
	kvd_queue_close(&kv->net, NULL);
	if (kv->group) {
		contd_group_wait(kv->group, 1000000000);
		contd_group_destroy(kv->group);
	}
	free(kv->request);
	free(kv->answer);
	free(kv->memory);
}
