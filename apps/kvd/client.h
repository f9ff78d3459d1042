/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of kvd's: requests that are under way at the same time, each with a callback. One thread. */
#ifndef KVD_CLIENT_H
#define KVD_CLIENT_H

#include "queue.h"

#define KV_READ KVD_OPERATIONS /* one-sided */
#define KV_DEPTH_MAX 1024u

struct kv;
struct kv_request;
typedef void kv_done(struct kv_request *request);

struct kv_request {
	/* The request. */
	unsigned operation; /* KVD_GET, KVD_PUT, KVD_DELETE, KVD_STAT, or KV_READ */
	unsigned char key[KVD_KEY_MAX];
	uint32_t key_length, value_length;
	const unsigned char *value; /* of a put: copied when it starts */
	kv_done *done;              /* runs when it is over; may start the request again */
	void *data;
	/* The result; valid in done(). */
	unsigned status;          /* enum kvd_status */
	const unsigned char *got; /* the value */
	uint32_t got_length;
	uint32_t torn; /* one-sided reads that were made again */
	uint64_t started_ns;
	/* The client's. */
	struct kv *kv;
	struct contd_fabric_op op;
	struct kv_request *next;
	uint64_t number, hash;
	bool under_way, posted, answered;
	enum { AT_WINDOW, AT_RECORD } step;
	uint32_t window_at;
	size_t bytes;          /* of the message, or of what is read */
	unsigned char *buffer; /* the message, or the record that is read */
	struct kvd_slot window[KVD_WINDOW];
};

struct kv_answer {
	struct contd_fabric_op op;
	struct kv *kv;
	struct kv_answer *next;
	unsigned char *buffer;
};

struct kv {
	struct kvd_net net;
	struct kvd_layout layout;
	fi_addr_t server;
	uint64_t session, counter, timeout_ns, progress_ns;
	struct contd_group *group;
	struct kv_request *request; /* depth of them, and one of the client's own */
	struct kv_answer *answer;
	unsigned char *memory;
	uint32_t depth, answers, under_way;
	struct kv_request *first, **last; /* those that libfabric would not take yet */
	struct kv_answer *unposted;
	bool draining, closing; /* the server is about to end; so is this */
	int failed;             /* a negative error number: of no use any more */
	uint64_t idle_since;
	uint64_t strange; /* messages that were no answers */
	char error[320];
};

/* 0, or a negative error number with its text in kv->error; contd must have been initialized. */
int kv_open(struct kv *kv, const char *provider, const char *at, uint32_t depth, unsigned timeout_ms);
void kv_close(struct kv *kv);

/* Start a request, one of kv->request[0] to [depth - 1], that is not under way. */
void kv_start(struct kv_request *request);

/* Run what is ready, and sleep a little where nothing is. 0, or why the client is of no use any more. */
int kv_drive(struct kv *kv);

/* Until none is under way. */
int kv_wait(struct kv *kv);

#endif
