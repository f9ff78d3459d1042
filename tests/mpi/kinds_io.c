/* SPDX-License-Identifier: BSD-3-Clause */
/* also: romio OMPI_MCA_io=romio */
/* Continuations on nonblocking file operations: explicit offsets, individual and shared pointers, collective and
 * not. */
#include "kinds.h"

#define SMALL 100
#define LARGE (64 << 10)
#define MOST 16 /* ranks */
#define KINDS 24

enum what {
	WRITE_AT,
	WRITE,
	WRITE_SHARED,
	WRITE_AT_ALL,
	WRITE_ALL,
	READ_AT,
	READ,
	READ_SHARED,
	READ_AT_ALL,
	READ_ALL,
	READ_AT_END
};

struct access {
	enum what what;
	int bytes;
};

static MPI_Comm comm;
static int rank, size;
static MPI_File file, write_shared, read_shared; /* a shared pointer for each of two */
static unsigned char *buffer[KINDS];
static const struct kind *base;
static int found; /* the block that a read by the shared pointer gave */

/* Each kind has a region of the file, with a block for each rank. */
static MPI_Offset offset_of(const struct kind *k)
{
	return ((MPI_Offset)(k - base) * MOST + rank) * LARGE;
}

static unsigned seed_of(const struct kind *k, int of_rank, int round)
{
	return (unsigned)((k - base) * 1000 + of_rank * 100 + round);
}

static bool writes(const struct access *a)
{
	return a->what <= WRITE_ALL;
}

/* The file that the readers read: round 0. */
static unsigned char *reserve(const struct kind *k)
{
	const struct access *a = k->how;
	MPI_Offset at = offset_of(k);

	if (buffer[k - base])
		return buffer[k - base];
	buffer[k - base] = malloc(LARGE);
	pattern_fill(buffer[k - base], LARGE, seed_of(k, rank, 0));
	if (a->what == READ_SHARED)
		CHECK_OK(MPI_File_write_at(read_shared, (MPI_Offset)rank * a->bytes, buffer[k - base], a->bytes,
					   MPI_BYTE, MPI_STATUS_IGNORE));
	else if (!writes(a) && a->what != READ_AT_END)
		CHECK_OK(MPI_File_write_at(file, at, buffer[k - base], LARGE, MPI_BYTE, MPI_STATUS_IGNORE));
	return buffer[k - base];
}

static void begin(const struct kind *k, int round, MPI_Request r[])
{
	const struct access *a = k->how;
	unsigned char *b = reserve(k);
	MPI_Offset at = offset_of(k), length;

	if (writes(a))
		pattern_fill(b, (size_t)a->bytes, seed_of(k, rank, round));
	else
		memset(b, 0xee, LARGE);
	switch (a->what) {
	case WRITE_AT:
		CHECK_OK(MPI_File_iwrite_at(file, at, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case WRITE:
		CHECK_OK(MPI_File_seek(file, at, MPI_SEEK_SET));
		CHECK_OK(MPI_File_iwrite(file, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case WRITE_SHARED:
		CHECK_OK(MPI_File_seek_shared(write_shared, 0, MPI_SEEK_SET));
		CHECK_OK(MPI_File_iwrite_shared(write_shared, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case WRITE_AT_ALL:
		CHECK_OK(MPI_File_iwrite_at_all(file, at, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case WRITE_ALL:
		CHECK_OK(MPI_File_seek(file, at, MPI_SEEK_SET));
		CHECK_OK(MPI_File_iwrite_all(file, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case READ_AT:
		CHECK_OK(MPI_File_iread_at(file, at, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case READ:
		CHECK_OK(MPI_File_seek(file, at, MPI_SEEK_SET));
		CHECK_OK(MPI_File_iread(file, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case READ_SHARED:
		CHECK_OK(MPI_File_seek_shared(read_shared, 0, MPI_SEEK_SET));
		CHECK_OK(MPI_File_iread_shared(read_shared, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case READ_AT_ALL:
		CHECK_OK(MPI_File_iread_at_all(file, at, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case READ_ALL:
		CHECK_OK(MPI_File_seek(file, at, MPI_SEEK_SET));
		CHECK_OK(MPI_File_iread_all(file, b, a->bytes, MPI_BYTE, &r[0]));
		break;
	case READ_AT_END:
		CHECK_OK(MPI_File_get_size(file, &length));
		CHECK_OK(MPI_File_iread_at(file, length + LARGE, b, a->bytes, MPI_BYTE, &r[0]));
	}
}

static void check(const struct kind *k, int round, int i, MPI_Status *s)
{
	const struct access *a = k->how;
	const unsigned char *b = buffer[k - base];
	int count = -1, got = a->what == READ_AT_END ? 0 : a->bytes;

	(void)i;
	if (s) { /* not whether it was cancelled: Open MPI 4.1 leaves that out */
		MPI_Get_count(s, MPI_BYTE, &count);
		CHECK_EQ(count, got);
	}
	if (writes(a)) {
		CHECK(pattern_holds(b, (size_t)a->bytes, seed_of(k, rank, round)));
		return;
	}
	if (a->what == READ_SHARED) {
		for (found = 0; found < size; found++)
			if (pattern_holds(b, (size_t)a->bytes, seed_of(k, found, 0)))
				break;
		CHECK(found < size);
	} else {
		CHECK(pattern_holds(b, (size_t)got, seed_of(k, rank, 0)));
	}
	if (got < LARGE)
		CHECK_EQ(b[got], 0xee);
}

/* The blocks that were written, or read, by the shared pointer: each rank's once. */
static void each_once(const struct kind *k, int round)
{
	const struct access *a = k->how;
	unsigned char *all = malloc((size_t)a->bytes);
	int blocks[MOST], times[MOST] = {0};

	MPI_Allgather(&found, 1, MPI_INT, blocks, 1, MPI_INT, comm);
	for (int i = 0; i < size; i++) {
		int b = blocks[i];

		if (a->what == WRITE_SHARED) {
			CHECK_OK(MPI_File_read_at(write_shared, (MPI_Offset)i * a->bytes, all, a->bytes, MPI_BYTE,
						  MPI_STATUS_IGNORE));
			for (b = 0; b < size; b++)
				if (pattern_holds(all, (size_t)a->bytes, seed_of(k, b, round)))
					break;
		}
		CHECK(b >= 0 && b < size);
		if (b >= 0 && b < size)
			times[b]++;
	}
	for (int i = 0; i < size; i++)
		CHECK_EQ(times[i], 1);
	free(all);
	MPI_Barrier(comm);
}

static void after(const struct kind *k, int round)
{
	const struct access *a = k->how;
	unsigned char *back;

	if (a->what == WRITE_SHARED || a->what == READ_SHARED) {
		each_once(k, round);
		return;
	}
	if (!writes(a))
		return;
	back = malloc(LARGE);
	CHECK_OK(MPI_File_read_at(file, offset_of(k), back, a->bytes, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK(pattern_holds(back, (size_t)a->bytes, seed_of(k, rank, round)));
	free(back);
}

#define ACCESS(...) (&(const struct access){__VA_ARGS__})
#define KIND(kind_name, ...) \
	{ \
		.name = (kind_name), .count = 1, .unseen = true, .begin = begin, .check = check, .after = after, \
		.how = ACCESS(__VA_ARGS__) \
	}

static const struct kind all_kinds[] = {
	KIND("File_iwrite_at", .what = WRITE_AT, .bytes = SMALL),
	KIND("File_iwrite_at, zero bytes", .what = WRITE_AT, .bytes = 0),
	KIND("File_iwrite_at, large", .what = WRITE_AT, .bytes = LARGE),
	KIND("File_iread_at", .what = READ_AT, .bytes = SMALL),
	KIND("File_iread_at, zero bytes", .what = READ_AT, .bytes = 0),
	KIND("File_iread_at, large", .what = READ_AT, .bytes = LARGE),
	KIND("File_iread_at, past the end", .what = READ_AT_END, .bytes = SMALL),
	KIND("File_iwrite", .what = WRITE, .bytes = SMALL),
	KIND("File_iwrite, large", .what = WRITE, .bytes = LARGE),
	KIND("File_iread", .what = READ, .bytes = SMALL),
	KIND("File_iread, large", .what = READ, .bytes = LARGE),
	KIND("File_iwrite_at_all", .what = WRITE_AT_ALL, .bytes = SMALL),
	KIND("File_iwrite_at_all, zero bytes", .what = WRITE_AT_ALL, .bytes = 0),
	KIND("File_iwrite_at_all, large", .what = WRITE_AT_ALL, .bytes = LARGE),
	KIND("File_iread_at_all", .what = READ_AT_ALL, .bytes = SMALL),
	KIND("File_iread_at_all, zero bytes", .what = READ_AT_ALL, .bytes = 0),
	KIND("File_iread_at_all, large", .what = READ_AT_ALL, .bytes = LARGE),
	KIND("File_iwrite_all", .what = WRITE_ALL, .bytes = SMALL),
	KIND("File_iwrite_all, large", .what = WRITE_ALL, .bytes = LARGE),
	KIND("File_iread_all", .what = READ_ALL, .bytes = SMALL),
	KIND("File_iread_all, large", .what = READ_ALL, .bytes = LARGE),
	KIND("File_iwrite_shared", .what = WRITE_SHARED, .bytes = SMALL),
	KIND("File_iread_shared", .what = READ_SHARED, .bytes = SMALL),
};

static struct kind kinds[KINDS];
_Static_assert(sizeof(all_kinds) / sizeof(all_kinds[0]) <= KINDS, "each kind has its buffer");

/* Those that work with MPI_Wait. */
static int possible_kinds(void)
{
	int n = 0;

	for (size_t k = 0; k < sizeof(all_kinds) / sizeof(all_kinds[0]); k++) {
		const struct access *a = all_kinds[k].how;
#ifdef OPEN_MPI
		const char *io = getenv("OMPI_MCA_io");
		bool all = a->what == WRITE_AT_ALL || a->what == WRITE_ALL || a->what == READ_AT_ALL ||
			   a->what == READ_ALL;

		/* Reading past the end never completes; ROMIO inside Open MPI crashes in collective operations. */
		if (a->what == READ_AT_END || (all && io && strncmp(io, "romio", 5) == 0))
			continue;
#endif
		kinds[n] = all_kinds[k];
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40200000 && MPICH_NUMVERSION < 40300000
		kinds[n].unaskable = true;
#endif
		kinds[n++].waits = a->what == WRITE_SHARED || a->what == READ_SHARED; /* to set the pointer back */
	}
	return n;
}

static void make_names(char name[3][512])
{
	static const char *const what[] = {"file", "write", "read"};
	const char *dir = getenv("TMPDIR");
	int fd;

	for (int i = 0; i < 3; i++) {
		if (rank == 0) {
			snprintf(name[i], sizeof(name[i]), "%s/contd-kinds-%s-XXXXXX", dir ? dir : "/tmp", what[i]);
			fd = mkstemp(name[i]);
			CHECK(fd >= 0);
			close(fd);
		}
		MPI_Bcast(name[i], sizeof(name[i]), MPI_CHAR, 0, comm);
	}
}

static void run(MPI_Comm among, const char *suffix)
{
	static char name[3][512];
	MPI_File *const files[3] = {&file, &write_shared, &read_shared};

	const int n = possible_kinds();

	comm = among;
	base = kinds;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	make_names(name);
	for (int i = 0; i < 3; i++)
		CHECK_OK(MPI_File_open(comm, name[i], MPI_MODE_RDWR, MPI_INFO_NULL, files[i]));
	for (int k = 0; k < n; k++)
		reserve(&kinds[k]);
	MPI_Barrier(comm);
	kinds_run(kinds, n, suffix, true);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(MPI_File_close(files[i]));
		if (rank == 0)
			unlink(name[i]);
	}
	for (int k = 0; k < n; k++) {
		free(buffer[k]);
		buffer[k] = NULL;
	}
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	if (check_size > MOST) {
		fprintf(stderr, "skipped: more than %d ranks\n", MOST);
		MPI_Finalize();
		return CHECK_SKIPPED;
	}
	run(MPI_COMM_WORLD, "");
	run(MPI_COMM_SELF, ", on MPI_COMM_SELF");
	return check_fini();
}
