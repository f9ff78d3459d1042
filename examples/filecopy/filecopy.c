/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filecopy: a nonblocking operation that MPI does not have, from one template (MPIX_Gr_init). Rank 0 sends a message in
 * pieces. At rank 1 "receive into a file" is one request. start_fn posts the first receives. push_fn tests the oldest,
 * writes its piece, posts the next receive in its place, and after the last piece marks the request complete.
 * complete_fn says how many bytes are in the file. During this rank 1 computes in a region, or waits. It holds at most
 * `depth` pieces of the message in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <contd/mpi.h>

#define TAG 7
#define DEPTH_MOST 1024

struct options {
	long long size;
	int piece, depth;
	bool compute;
	const char *path;
};

/* ---------------------------------------------------------------------------------------- receiving into a file --- */

/* One operation; extra_state of the template's functions. */
struct copy {
	MPI_Request request; /* the operation itself, for push_fn to mark */
	int fd, from, piece, depth;
	long long size;    /* bytes that are to come */
	long long posted;  /* of them, so many are asked for, */
	long long written; /* and so many in the file */
	char *buffer;      /* depth pieces, used in turns */
	MPI_Request *receive;
	int over; /* for the computing thread: the last piece is in the file, or it has failed */
};

static long long at_most(long long left, int piece)
{
	return left < piece ? left : piece;
}

static int post(struct copy *c)
{
	long long slot = c->posted / c->piece % c->depth, bytes = at_most(c->size - c->posted, c->piece);
	int rc = MPI_Irecv(c->buffer + slot * c->piece, (int)bytes, MPI_BYTE, c->from, TAG, MPI_COMM_WORLD,
			   &c->receive[slot]);

	c->posted += rc == MPI_SUCCESS ? bytes : 0;
	return rc;
}

/* It has failed: no message may come into memory that is given back. */
static void withdraw(struct copy *c)
{
	for (int i = 0; i < c->depth; i++)
		MPIX_Cancel(&c->receive[i]); /* null ones too */
	MPI_Waitall(c->depth, c->receive, MPI_STATUSES_IGNORE);
}

static int copy_start(void *extra_state)
{
	struct copy *c = extra_state;
	int rc = MPI_SUCCESS;

	c->buffer = malloc((size_t)c->piece * (size_t)c->depth);
	c->receive = malloc((size_t)c->depth * sizeof(*c->receive));
	if (!c->buffer || !c->receive)
		rc = MPI_ERR_NO_MEM;
	for (int i = 0; i < c->depth && !rc; i++)
		c->receive[i] = MPI_REQUEST_NULL;
	for (int i = 0; i < c->depth && c->posted < c->size && !rc; i++) {
		rc = post(c);
		if (rc)
			withdraw(c);
	}
	if (rc) { /* MPIX_Gr_begin fails with it; complete_fn is not called */
		free(c->buffer);
		free(c->receive);
	}
	return rc;
}

static int write_piece(struct copy *c, const char *from, long long bytes)
{
	while (bytes > 0) {
		ssize_t n = pwrite(c->fd, from, (size_t)bytes, (off_t)c->written);

		if (n < 0 && errno != EINTR)
			return errno == ENOSPC ? MPI_ERR_NO_SPACE : MPI_ERR_IO;
		if (n <= 0)
			continue;
		c->written += n;
		from += n;
		bytes -= n;
	}
	return MPI_SUCCESS;
}

/* The next piece, if it has come: *came says. */
static int one_piece(struct copy *c, int *came)
{
	long long slot = c->written / c->piece % c->depth;
	int rc;

	rc = MPI_Test(&c->receive[slot], came, MPI_STATUS_IGNORE);
	if (rc || !*came)
		return rc;
	rc = write_piece(c, c->buffer + slot * c->piece, at_most(c->size - c->written, c->piece));
	return !rc && c->posted < c->size ? post(c) : rc; /* into the place that has become free */
}

/*
 * Handle arrived pieces, but no more than depth: others have their turn in between. Called until the request is marked;
 * an error ends the operation.
 */
static int copy_push(void *extra_state)
{
	struct copy *c = extra_state;
	int rc = MPI_SUCCESS, came = 1;

	for (int i = 0; i < c->depth && !rc && came && c->written < c->size; i++)
		rc = one_piece(c, &came);
	if (!rc && c->written < c->size)
		return MPI_SUCCESS;
	if (rc)
		withdraw(c);
	else
		rc = MPIX_Mark_request_complete(c->request);
	__atomic_store_n(&c->over, 1, __ATOMIC_RELEASE);
	return rc;
}

static int copy_complete(void *extra_state, MPI_Status *status)
{
	struct copy *c = extra_state;

	free(c->buffer);
	free(c->receive);
	if (!status)
		return MPI_SUCCESS; /* the program has freed the request: no call reads the status */
	return MPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)c->written);
}

/* The sender has no way back here: what is under way goes on to its end, and the status says that it was not
 * cancelled. */
static int copy_cancel(void *extra_state, int complete)
{
	(void)extra_state, (void)complete;
	return MPI_SUCCESS;
}

/* --------------------------------------------------------------------------------------------------- both ranks --- */

static char byte_at(long long i)
{
	return (char)(i * 7 + (i >> 8) * 13 + (i >> 20));
}

static bool send_all(const struct options *o)
{
	char *piece = malloc((size_t)o->piece);

	if (!piece)
		return false;
	for (long long at = 0; at < o->size; at += o->piece) {
		long long bytes = at_most(o->size - at, o->piece);

		for (long long i = 0; i < bytes; i++)
			piece[i] = byte_at(at + i);
		MPI_Send(piece, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	}
	free(piece);
	return true;
}

/* The program's other work: in a compute region ticks push the copy. Counts the steps. */
static double compute_beside(const struct copy *c, long long *steps)
{
	double x = 1;

	contd_compute_begin();
	while (!__atomic_load_n(&c->over, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 1000; i++)
			x = x * 1.000001 + 1e-9;
		++*steps;
	}
	contd_compute_end();
	return x;
}

static bool verify(int fd, long long size)
{
	char bytes[65536];
	long long at = 0;

	for (;;) {
		ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)at);

		if (n < 0)
			return false;
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (bytes[i] == byte_at(at + i))
				continue;
			fprintf(stderr, "filecopy: byte %lld is wrong\n", at + i);
			return false;
		}
		at += n;
	}
	if (at != size)
		fprintf(stderr, "filecopy: the file has %lld bytes, not %lld\n", at, size);
	return at == size;
}

static bool receive_all(const struct options *o, int fd)
{
	struct copy c = {.fd = fd, .from = 0, .piece = o->piece, .depth = o->depth, .size = o->size};
	long long steps = 0;
	MPI_Count bytes = -1;
	MPI_Status status;
	MPIX_Gr into_file;
	double begin = MPI_Wtime();

	MPIX_Gr_init(copy_start, copy_push, copy_complete, copy_cancel, &into_file);
	if (o->compute && contd_thread_attach(NULL)) {
		fprintf(stderr, "filecopy: %s\n", contd_error_text());
		return false;
	}
	MPIX_Gr_begin(into_file, &c, &c.request);
	MPIX_Gr_free(&into_file); /* what was begun goes on */
	if (o->compute)
		compute_beside(&c, &steps);
	MPI_Wait(&c.request, &status);
	MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
	printf("filecopy: %lld bytes in pieces of %d, %d at a time: %.1f ms", (long long)bytes, o->piece, o->depth,
	       (MPI_Wtime() - begin) * 1e3);
	if (o->compute)
		printf(", %lld steps computed meanwhile", steps);
	printf("\n");
	return bytes == (MPI_Count)o->size && verify(fd, o->size);
}

/* ------------------------------------------------------------------------------------------------------ options --- */

static void usage(FILE *to)
{
	fputs("usage: mpirun -n 2 filecopy [--size BYTES] [--piece BYTES] [--depth N] [--compute] [--output FILE]\n"
	      "\n"
	      "Rank 0 sends a message in pieces, which rank 1 writes into a file while they arrive.\n"
	      "  --size BYTES    of the message (default 16777216)\n"
	      "  --piece BYTES   of a piece (default 65536)\n"
	      "  --depth N       pieces that are asked for at a time, 1 to 1024 (default 4)\n"
	      "  --compute       rank 1 computes meanwhile; otherwise it waits\n"
	      "  --output FILE   default: a temporary file that is removed\n",
	      to);
}

static bool number(const char *text, long long most, long long *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return !errno && *text && !*end && *value >= 0 && *value <= most;
}

/* 0; 1: help was asked for; 2: they are wrong. */
static int read_options(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{"size", 1, NULL, 's'},   {"piece", 1, NULL, 'p'}, {"depth", 1, NULL, 'd'}, {"compute", 0, NULL, 'c'},
		{"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0}};
	long long value;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		if (c == 'h')
			return 1;
		if (c == 's' && number(optarg, 1LL << 40, &value))
			o->size = value;
		else if (c == 'p' && number(optarg, 1 << 30, &value) && value > 0)
			o->piece = (int)value;
		else if (c == 'd' && number(optarg, DEPTH_MOST, &value) && value > 0)
			o->depth = (int)value;
		else if (c == 'c')
			o->compute = true;
		else if (c == 'o')
			o->path = optarg;
		else
			return 2;
	}
	return optind == argc ? 0 : 2;
}

static int open_output(const struct options *o)
{
	char path[] = "/tmp/filecopy.XXXXXX";
	int fd;

	if (o->path)
		return open(o->path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	fd = mkstemp(path);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int main(int argc, char **argv)
{
	struct options o = {.size = 16 << 20, .piece = 65536, .depth = 4};
	int rank, ranks, level, wrong, fd = -1;
	bool good;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	wrong = read_options(argc, argv, &o);
	if (!wrong && ranks != 2)
		wrong = 2;
	if (wrong) {
		if (rank == 0)
			usage(wrong == 1 ? stdout : stderr);
		MPI_Finalize();
		return wrong == 1 ? 0 : 2;
	}
	if (rank == 1 && (fd = open_output(&o)) < 0) {
		perror("filecopy: the output file");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	good = rank == 0 ? send_all(&o) : receive_all(&o, fd);
	if (!good)
		MPI_Abort(MPI_COMM_WORLD, 1); /* the other one may be waiting */
	if (fd >= 0)
		close(fd);
	MPI_Finalize();
	return 0;
}
