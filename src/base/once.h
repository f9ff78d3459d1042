/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * If all ranks of a job would say the same, one of them says it: the first that comes to say it on its host. Which
 * rank that is does not matter, and no rank need be asked: MPI may not run yet, or not know of contd in rank 0. The
 * ranks of a host agree by a name that only one process can have at a time: that of a Unix socket without a file, which
 * the kernel takes back when the process ends. A rank that cannot find out says it, too.
 *
 *     operation           thread  handler  progress
 *     contd__once_here      yes     no     system calls that do not block
 *     contd__job_size       yes     no     wait-free (getenv)
 *     contd__job_rank       yes     no     wait-free (getenv)
 */
#ifndef CONTD_BASE_ONCE_H
#define CONTD_BASE_ONCE_H

#include <stdbool.h>

#include "base/api.h"

/*
 * Is this process the first of its job and user on this host that asks for `what`? The job is known by what its
 * launcher has put into the environment. A process that no launcher has started is its own job: always true.
 */
CONTD_INTERNAL_API bool contd__once_here(const char *what);

/* The number of processes of the job, and this one's rank, from the launcher's variables; or -1. MPI need not have
 * begun. */
CONTD_INTERNAL_API int contd__job_size(void);
CONTD_INTERNAL_API int contd__job_rank(void);

#endif
