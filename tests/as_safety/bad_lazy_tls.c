/* SPDX-License-Identifier: BSD-3-Clause */
/* Without -ftls-model=initial-exec the first access to a library's thread-local variable may call malloc. */
/* rejected: __tls_get_addr */

extern __thread int bad_lazy_tls_variable __attribute__((tls_model("global-dynamic")));
__thread int bad_lazy_tls_variable;

int bad_lazy_tls(void);

int bad_lazy_tls(void)
{
	return bad_lazy_tls_variable++;
}
