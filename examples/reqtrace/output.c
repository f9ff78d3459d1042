/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops.h"

#define PIECE (1 << 20) /* bytes of a message */

static MPI_Comm comm; /* of its own: the program's receives match anything */
static int rank, ranks;
static uint64_t zero;
static char host[64];
static char prefix[PATH_MAX];

/* libreqtrace.so is told where to write by REQTRACE, libother.so, a copy of it, by OTHER. */
static void name_files(void)
{
	char name[64] = "reqtrace", variable[64] = "";
	const char *base, *value;
	Dl_info info;

	if (dladdr((void *)name_files, &info) && info.dli_fname) {
		base = strrchr(info.dli_fname, '/');
		base = base ? base + 1 : info.dli_fname;
		base += strncmp(base, "lib", 3) ? 0 : 3;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, ".-"), base);
	}
	for (size_t i = 0; name[i]; i++)
		variable[i] = (char)toupper((unsigned char)name[i]);
	value = getenv(variable);
	snprintf(prefix, sizeof(prefix), "%s", value && *value ? value : name);
}

void output_begin(void)
{
	struct {
		char host[sizeof(host)];
		uint64_t zero;
	} first;

	PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
	PMPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &ranks);
	gethostname(host, sizeof(host) - 1);
	name_files();
	/* One clock on a host; between hosts as near as a broadcast is. */
	memset(&first, 0, sizeof(first));
	memcpy(first.host, host, sizeof(host));
	first.zero = now_ns();
	PMPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, comm);
	zero = memcmp(first.host, host, sizeof(host)) ? now_ns() : first.zero;
}

/* From every rank in turn, in pieces, to the file. What cannot be written is told once. */
static void gather(char *text, size_t size, const char *suffix, const char *ending)
{
	char path[PATH_MAX + 8];
	char *piece = text;
	FILE *out = NULL;
	int error = 0;

	if (rank) {
		unsigned long long n = size;

		PMPI_Send(&n, 1, MPI_UNSIGNED_LONG_LONG, 0, 0, comm);
		for (size_t i = 0; i < size; i += PIECE)
			PMPI_Send(text + i, size - i < PIECE ? (int)(size - i) : PIECE, MPI_BYTE, 0, 0, comm);
		return;
	}
	snprintf(path, sizeof(path), "%s.%s", prefix, suffix);
	out = fopen(path, "w");
	if (!out)
		error = errno;
	if (out)
		fwrite(text, 1, size, out);
	piece = malloc(PIECE);
	if (!piece)
		PMPI_Abort(comm, 1);
	for (int r = 1; r < ranks; r++) {
		unsigned long long n = 0;

		PMPI_Recv(&n, 1, MPI_UNSIGNED_LONG_LONG, r, 0, comm, MPI_STATUS_IGNORE);
		while (n) {
			int bytes = n < PIECE ? (int)n : PIECE;

			PMPI_Recv(piece, bytes, MPI_BYTE, r, 0, comm, MPI_STATUS_IGNORE);
			if (out)
				fwrite(piece, 1, (size_t)bytes, out);
			n -= (unsigned long long)bytes;
		}
	}
	free(piece);
	if (out) {
		fputs(ending, out);
		if (ferror(out))
			error = EIO;
		if (fclose(out))
			error = errno;
	}
	if (error)
		fprintf(stderr, "reqtrace: %s: %s\n", path, strerror(error));
}

static void write_one(bool timeline)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);

	if (memory) {
		if (timeline)
			ops_timeline(memory, rank, zero, host);
		else
			ops_summary(memory, rank);
		fclose(memory);
	}
	gather(text, size, timeline ? "json" : "txt", timeline ? "\n]\n" : "");
	free(text);
}

void output_end(void)
{
	write_one(false);
	write_one(true);
	PMPI_Comm_free(&comm);
}
