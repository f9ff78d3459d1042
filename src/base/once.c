/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/once.h"
#include "base/own_fd.h"

/* The first of these that is set. NULL: none. */
static const char *first_of(const char *const names[])
{
	for (size_t i = 0; names[i]; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return NULL;
}

static int number_of(const char *const names[])
{
	const char *value = first_of(names);
	char *end;
	long n;

	if (!value)
		return -1;
	n = strtol(value, &end, 10);
	return *value >= '0' && *value <= '9' && !*end && n < INT_MAX ? (int)n : -1;
}

int contd__job_rank(void)
{
	/* Open MPI and PRRTE; MPICH and what derives from it; PMIx; Slurm. */
	return number_of((const char *const[]){"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL});
}

int contd__job_size(void)
{
	return number_of((const char *const[]){"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL});
}

/* FNV-1a. */
static uint64_t mixed(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash * 0x100000001b3u; /* the end: "ab", "c" is not "a", "bc" */
}

/* The job: its name, or the process that has started its ranks on this host, as MPICH's launcher does. */
static uint64_t with_job(uint64_t hash)
{
	static const char *const names[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "PALS_APID", "FLUX_JOB_ID", NULL};
	const char *name = first_of(names), *step = getenv("SLURM_STEP_ID");
	char parent[32];

	snprintf(parent, sizeof(parent), "%d", (int)getppid());
	hash = mixed(hash, name ? name : parent);
	return mixed(hash, step ? step : "");
}

bool contd__once_here(const char *what)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length;
	uint64_t hash;
	int fd, saved = errno;
	bool first = true;

	if (contd__job_rank() < 0)
		return true;
	hash = mixed(with_job(0xcbf29ce484222325u), what);
	/* Behind a zero: it has no file. */
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
					      "contd.once.%u.%016llx", (unsigned)getuid(), (unsigned long long)hash));
	fd = contd__own_fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (fd >= 0 && bind(fd, (const struct sockaddr *)(const void *)&address, length)) {
		first = errno != EADDRINUSE;
		close(fd);
	}
	/* Otherwise the descriptor stays, and the name with it, until the process ends. */
	errno = saved;
	return first;
}
