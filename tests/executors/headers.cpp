// SPDX-License-Identifier: BSD-3-Clause
// The adapters for C, used from C++.
#ifdef WITH_GLIB
#include <contd/executor-glib.h>
#endif
#ifdef WITH_LIBUV
#include <contd/executor-libuv.h>
#endif
#ifdef WITH_OPENMP
#include <contd/executor-openmp.h>
#endif
#include <contd/executor.h>

#include <cerrno>

int main()
{
	int failed = 0;

#ifdef WITH_GLIB
	failed += contd_executor_glib_init(nullptr, 1, TRUE) != -EINVAL || contd_executor_glib_fini(nullptr) != -EINVAL;
#endif
#ifdef WITH_LIBUV
	failed += contd_executor_uv_init(nullptr, nullptr, 1, 0) != -EINVAL;
#endif
#ifdef WITH_OPENMP
	failed += contd_executor_omp_init(nullptr, 0) != -EINVAL || contd_executor_omp_fini(nullptr) != -EINVAL;
#endif
	return failed;
}
