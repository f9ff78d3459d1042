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

static MPI_Comm comm; /* not shared: the program's receives match anything */
static int rank, ranks;
static uint64_t zero;
static char host[64];
static char prefix[PATH_MAX];

/* The rank's own file, its next version, and when that is due. A flush takes a fiftieth of the time at most. */
static char part[PATH_MAX + 32], part_next[PATH_MAX + 33];
static uint64_t interval, due;
#define SHARE 50

/* libreqtrace.so is told where to write by REQTRACE, libother.so, a copy of it, by OTHER. */
static void name_files(void)
{
	char name[64] = "reqtrace", variable[64] = "", folder[PATH_MAX];
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
	value = value && *value ? value : name;
	/* The program may go elsewhere. */
	if (*value == '/' || !getcwd(folder, sizeof(folder)))
		folder[0] = '\0';
	if (snprintf(prefix, sizeof(prefix), "%s%s%s", folder, *folder ? "/" : "", value) >= (int)sizeof(prefix))
		snprintf(prefix, sizeof(prefix), "%s", name);
}

static void name_parts(void)
{
	const char *value = getenv("REQTRACE_FLUSH");
	double seconds = value ? strtod(value, NULL) : 2;

	snprintf(part, sizeof(part), "%s.%d.part.json", prefix, rank);
	snprintf(part_next, sizeof(part_next), "%s~", part);
	interval = seconds > 0 && seconds < 1e6 ? (uint64_t)(seconds * 1e9) : 0;
	due = now_ns() + interval;
	unlink(part); /* of an earlier run */
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
	name_parts();
	/* One clock on a host; between hosts as near as a broadcast is. */
	memset(&first, 0, sizeof(first));
	memcpy(first.host, host, sizeof(host));
	first.zero = now_ns();
	PMPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, comm);
	zero = memcmp(first.host, host, sizeof(host)) ? now_ns() : first.zero;
}

/* The file is replaced, not written to: whenever the process dies it is whole. */
static void write_part(void)
{
	FILE *out = fopen(part_next, "w");
	bool good;

	if (!out)
		return;
	fputs("[\n", out);
	ops_timeline(out, rank, zero, host);
	fputs("\n]\n", out);
	good = !ferror(out);
	if (fclose(out) || !good || rename(part_next, part))
		unlink(part_next);
}

void output_flush(uint64_t now)
{
	uint64_t then = __atomic_load_n(&due, __ATOMIC_RELAXED), took;

	/* One thread at a time: the others find it far from due. */
	if (!interval || now < then ||
	    !__atomic_compare_exchange_n(&due, &then, UINT64_MAX, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	now = now_ns();
	write_part();
	took = now_ns() - now;
	__atomic_store_n(&due, now + (took * SHARE > interval ? took * SHARE : interval), __ATOMIC_RELAXED);
}

void output_last(void)
{
	uint64_t then = __atomic_exchange_n(&due, UINT64_MAX, __ATOMIC_RELAXED);

	if (interval && then != UINT64_MAX)
		write_part();
}

/* From every rank in turn, in pieces, to the file. A failing write is reported once; 0, or an error, on rank 0. */
static int gather(char *text, size_t size, const char *suffix, const char *const around[3])
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
		return 0;
	}
	snprintf(path, sizeof(path), "%s.%s", prefix, suffix);
	out = fopen(path, "w");
	if (!out)
		error = errno;
	if (out) {
		fputs(around[0], out);
		fwrite(text, 1, size, out);
	}
	piece = malloc(PIECE);
	if (!piece)
		PMPI_Abort(comm, 1);
	for (int r = 1; r < ranks; r++) {
		unsigned long long n = 0;

		PMPI_Recv(&n, 1, MPI_UNSIGNED_LONG_LONG, r, 0, comm, MPI_STATUS_IGNORE);
		if (out && n)
			fputs(around[1], out);
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
		fputs(around[2], out);
		if (ferror(out))
			error = EIO;
		if (fclose(out))
			error = errno;
	}
	if (error)
		fprintf(stderr, "reqtrace: %s: %s\n", path, strerror(error));
	return error;
}

static int write_one(bool timeline)
{
	static const char *const around[2][3] = {{"", "", ""}, {"[\n", ",\n", "\n]\n"}};
	FILE *memory;
	char *text = NULL;
	size_t size = 0;
	int error;

	memory = open_memstream(&text, &size);
	if (memory) {
		if (timeline)
			ops_timeline(memory, rank, zero, host);
		else
			ops_summary(memory, rank);
		fclose(memory);
	}
	error = gather(text, size, timeline ? "json" : "txt", around[timeline]);
	free(text);
	return error;
}

void output_end(void)
{
	int error = write_one(false);

	error |= write_one(true);
	/* The ranks' own are worth something only where the common one could not be written. */
	PMPI_Bcast(&error, 1, MPI_INT, 0, comm);
	if (error)
		output_last();
	else
		unlink(part);
	PMPI_Comm_free(&comm);
}
