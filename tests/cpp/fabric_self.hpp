// SPDX-License-Identifier: BSD-3-Clause
/* An endpoint of libfabric's that sends to itself. */
#ifndef TESTS_CPP_FABRIC_SELF_HPP
#define TESTS_CPP_FABRIC_SELF_HPP

#include <contd/fabric.hpp>

#include <cstring>

#include <rdma/fi_cm.h>
#include <rdma/fi_tagged.h>

#include "check.hpp"

class fabric_self
{
public:
	/* Ends the program with 77 where the provider is not there. */
	explicit fabric_self(const char *provider)
	{
		fi_info *hints = fi_allocinfo();

		hints->caps = FI_MSG | FI_TAGGED;
		hints->mode = FI_CONTEXT | FI_CONTEXT2;
		hints->ep_attr->type = FI_EP_RDM;
		hints->domain_attr->mr_mode = 0;
		hints->domain_attr->threading = FI_THREAD_SAFE;
		hints->fabric_attr->prov_name = strdup(provider);
		int rc = fi_getinfo(FI_VERSION(1, 11), nullptr, nullptr, 0, hints, &info_);
		fi_freeinfo(hints);
		if (rc) {
			std::printf("skipped: no provider %s: %s\n", provider, fi_strerror(-rc));
			std::exit(77);
		}
		CHECK(fi_fabric(info_->fabric_attr, &fabric_, nullptr) == 0);
		CHECK(fi_domain(fabric_, info_, &domain_, nullptr) == 0);
		fi_av_attr av = {};
		av.type = FI_AV_TABLE;
		CHECK(fi_av_open(domain_, &av, &av_, nullptr) == 0);
		fi_cq_attr cq = {};
		cq.format = FI_CQ_FORMAT_TAGGED;
		cq.wait_obj = FI_WAIT_UNSPEC;
		queue.emplace(fabric_, domain_, &cq);
		CHECK(fi_endpoint(domain_, info_, &ep, nullptr) == 0);
		CHECK(fi_ep_bind(ep, &av_->fid, 0) == 0);
		CHECK(fi_ep_bind(ep, &queue->cq()->fid, FI_SEND | FI_RECV) == 0);
		CHECK(fi_enable(ep) == 0);
		char name[256];
		std::size_t size = sizeof(name);
		CHECK(fi_getname(&ep->fid, name, &size) == 0);
		CHECK(fi_av_insert(av_, name, 1, &self, 0, nullptr) == 1);
	}
	fabric_self(const fabric_self &) = delete;
	~fabric_self()
	{
		queue->stop();
		fi_close(&ep->fid);
		queue.reset();
		fi_close(&av_->fid);
		fi_close(&domain_->fid);
		fi_close(&fabric_->fid);
		fi_freeinfo(info_);
	}

	std::optional<contd::fabric_queue> queue;
	fid_ep *ep = nullptr;
	fi_addr_t self = 0;

private:
	fi_info *info_ = nullptr;
	fid_fabric *fabric_ = nullptr;
	fid_domain *domain_ = nullptr;
	fid_av *av_ = nullptr;
};

#endif
