/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread-local data that is made when it is first touched. */
/* rejected: uses __tls_get_addr */
/* allow: root handler handler # the example's */
#include "example.h"

extern __thread int bad_lazy_tls_elsewhere __attribute__((tls_model("global-dynamic")));
__thread int bad_lazy_tls_elsewhere;

void handler(int signo)
{
	bad_lazy_tls_elsewhere += signo;
}
