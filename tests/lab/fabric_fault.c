/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_fault FOLDER NUMBER ADDRESS: two processes, 0 and 1, that send to each other over tcp;ofi_rxm, each send and
 * receive with a continuation that starts the next one, until FOLDER/end is there. Addresses are told by files in
 * FOLDER. Then, or when nothing comes any more, a process has contd let go of the queue, upon which each continuation
 * that has not run must do so with an error. 0 if the other one was there to the end, 3 if not, 1 if a continuation is
 * missing.
 */
#include "fault.h"

#include <errno.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <contd/fabric.h>

enum { WINDOW = 8, BYTES = 40000 };

#define OK(call) \
	do { \
		long rc_ = (long)(call); \
		if (rc_) { \
			fprintf(stderr, "%s:%d: %s: %ld, %s (%s)\n", __FILE__, __LINE__, #call, rc_, \
				fi_strerror((int)-rc_), contd_error_text()); \
			exit(1); \
		} \
	} while (0)

struct transfer {
	struct contd_fabric_op op;
	bool receive, posted, over;
	char bytes[BYTES];
};

static struct transfer transfer[2 * WINDOW];
static struct fid_ep *ep;
static struct contd_fabric_queue *queue;
static struct contd_group *group;
static fi_addr_t peer;
static bool ending;
static int first_error;

/* To libfabric; where it has no room, or connects, the main loop tries again. A refusal fails here and now. */
static void post(struct transfer *t)
{
	ssize_t rc;

	if (t->receive)
		rc = fi_recv(ep, t->bytes, BYTES, NULL, FI_ADDR_UNSPEC, &t->op);
	else
		rc = fi_send(ep, t->bytes, BYTES, NULL, peer, &t->op);
	t->posted = rc != -FI_EAGAIN;
	if (rc && rc != -FI_EAGAIN)
		contd_fabric_withdraw(&t->op, (int)rc);
}

static void done(int status, void *data);

static void start(struct transfer *t)
{
	t->over = false;
	t->posted = false;
	OK(contd_fabric_begin_continue(queue, &t->op, done, t, group));
	fault_started++;
}

static void done(int status, void *data)
{
	struct transfer *t = data;

	fault_count(status == 0);
	if (status && !first_error) {
		first_error = status;
		printf("%s: the first error is %d, %s\n", fault_who, status, t->op.text);
		fflush(stdout);
	}
	t->over = true;
	if (status || ending)
		return;
	start(t);
}

static void path_of(char *path, size_t size, int number)
{
	snprintf(path, size, "%s/address%d", fault_folder, number);
}

/* libfabric's own name of this endpoint, whole or not at all: by rename(2). */
static void tell(int number)
{
	char path[4096], temporary[4200], name[256];
	size_t size = sizeof(name);
	FILE *file;

	OK(fi_getname(&ep->fid, name, &size));
	path_of(path, sizeof(path), number);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "w");
	OK(!file || fwrite(name, size, 1, file) != 1 || fclose(file) || rename(temporary, path));
}

static void learn(struct fid_av *av, int number)
{
	char path[4096], name[256];
	FILE *file;

	path_of(path, sizeof(path), number);
	while (!(file = fopen(path, "r")))
		usleep(10000);
	OK(!fread(name, 1, sizeof(name), file));
	fclose(file);
	OK(fi_av_insert(av, name, 1, &peer, 0, NULL) != 1);
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG};
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct fi_av_attr table = {.type = FI_AV_MAP};
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	int number, never;
	bool lost;
	static char who[32];

	if (argc != 4)
		return 2;
	number = atoi(argv[2]);
	snprintf(who, sizeof(who), "process %d", number);
	fault_who = who;
	fault_init(argv[1]);
	hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	if (fi_getinfo(FI_VERSION(1, 17), argv[3], NULL, FI_SOURCE, hints, &info)) {
		printf("skipped: this machine does not have the provider tcp;ofi_rxm\n");
		return 77;
	}
	OK(contd_init(NULL));
	OK(contd_group_create(NULL, &group));
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &table, &av, NULL));
	attr.fabric = fabric;
	OK(contd_fabric_queue_create(domain, &cq, &attr, &queue));
	OK(fi_endpoint(domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &contd_fabric_queue_cq(queue)->fid, FI_SEND | FI_RECV));
	OK(fi_enable(ep));
	tell(number);
	learn(av, !number);
	fault_last = fault_now();

	for (int i = 0; i < 2 * WINDOW; i++) {
		transfer[i].receive = i < WINDOW;
		start(&transfer[i]);
	}
	while (!fault_late() && !fault_over()) {
		bool any = false;

		for (int i = 0; i < 2 * WINDOW; i++) {
			if (!transfer[i].over && !transfer[i].posted)
				post(&transfer[i]);
			any |= !transfer[i].over;
		}
		if (!any)
			break;
		contd_poll(0);
	}
	lost = !fault_over();
	ending = true;
	printf("%s: %s, %u under way\n", fault_who, lost ? "nothing comes any more" : "the end",
	       contd_fabric_queue_pending(queue));
	fflush(stdout);
	OK(contd_fabric_queue_stop(queue));
	/*
	 * Nothing is closed. libfabric 1.17 crashes now and then in fi_close of an endpoint with operations under way
	 * whose link was cut, if only for a second: a program without contd does so in 1 of 50. And of such a domain
	 * ofi_rxm says that it is busy.
	 */
	OK(contd_group_wait(group, 60000000000));
	OK(contd_group_outstanding(group));
	OK(contd_group_destroy(group));
	never = contd_fini();
	fi_freeinfo(info);
	fi_freeinfo(hints);
	if (fault_report(never) || never)
		return 1;
	return lost ? 3 : 0;
}
