/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

struct contd__signals contd__signals;
__thread struct contd__attached *contd__me __attribute__((tls_model("initial-exec")));

bool contd__attached_computes_sig(const struct contd__attached *a)
{
	return contd__load_seq(&a->tls->region) &&
	       (!contd__load_seq(&a->self->frame) || contd__load_seq(&a->self->context) == CONTEXT_REGION);
}

static bool is_attached(int32_t tid, bool computing_only)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);
	bool is = false;

	for (uint32_t i = 0; i < n && !is; i++) {
		struct contd__attached *a = contd__signals.record[i];

		if (contd__load(&a->tid) != tid)
			continue;
		contd__add(&a->senders, 1); /* while this is not 0 the thread does not go */
		is = contd__load_seq(&a->tid) == tid && (!computing_only || contd__attached_computes_sig(a));
		contd__sub(&a->senders, 1);
	}
	return is;
}

bool contd__signals_computing_sig(int32_t tid)
{
	return is_attached(tid, true);
}

bool contd__signals_keeps_bell_sig(int32_t tid)
{
	return is_attached(tid, contd__load(&contd__signals.timers));
}
