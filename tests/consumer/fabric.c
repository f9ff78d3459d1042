/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The installed header and library, compiled as C and (fabric.cpp) as C++. The queue is one of the program's own
 * making, with one completion in it: no provider is needed.
 */
#include <contd/fabric.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct contd_fabric_op operation;
static int told;

static ssize_t read_one(struct fid_cq *cq, void *buffer, size_t count)
{
	struct fi_cq_data_entry entry;

	(void)cq;
	if (count == 0 || told++)
		return -FI_EAGAIN;
	memset(&entry, 0, sizeof(entry));
	entry.op_context = &operation;
	entry.len = 42;
	memcpy(buffer, &entry, sizeof(entry));
	return 1;
}

static void count_it(int status, void *data)
{
	if (status == 0)
		++*(int *)data;
}

int main(void)
{
	struct contd_fabric_attr attr;
	struct contd_group *group = NULL;
	struct contd_fabric_queue *queue = NULL;
	struct fi_ops_cq ops;
	struct fid_cq cq;
	int ran = 0;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.format = FI_CQ_FORMAT_DATA;
	attr.threading = FI_THREAD_SAFE;
	memset(&ops, 0, sizeof(ops));
	ops.size = sizeof(ops);
	ops.read = read_one;
	memset(&cq, 0, sizeof(cq));
	cq.ops = &ops;
	if (contd_init(NULL) != 0 || contd_group_create(NULL, &group) != 0 ||
	    contd_fabric_queue_adopt(&cq, &attr, &queue) != 0 || contd_fabric_begin(queue, &operation) != 0 ||
	    contd_fabric_continue(&operation, count_it, &ran, group) != 0 ||
	    contd_group_wait(group, 10000000000) != 0) {
		fprintf(stderr, "%s\n", contd_error_text());
		return 1;
	}
	if (ran != 1 || operation.length != 42) {
		fprintf(stderr, "ran %d times, length %zu\n", ran, operation.length);
		return 1;
	}
	contd_group_destroy(group);
	return contd_fabric_queue_destroy(queue) == 0 && contd_fini() == 0 ? 0 : 1;
}
