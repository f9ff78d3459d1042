/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 11, bad input: an error class, and nothing changed. */
#include "conformance.h"

#define TAG 111

static void *const no_memory = NULL; /* so that compilers do not know of it */

CONFORMANCE_BOTH(s11_init_arguments, 1, single, "Init: no place for the handle, an info handle that is none")
{
	MPI_Request cr;

	CHECK_CLASS(init_cr(MPI_INFO_NULL, no_memory), MPI_ERR_ARG);
	poison(&cr, sizeof(cr));
	CHECK(init_cr((MPI_Info)0, &cr) != MPI_SUCCESS); /* no MPI of ours has an info object there */
	CHECK(is_poison(&cr, sizeof(cr)));
}

CONFORMANCE_BOTH(s11_attach_arguments, 1, single,
		 "Attach to one: null pointers, handles that are none, a CR that is none")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG), other = pending(TAG + 1), persistent, same = op, nothing;
	MPI_Status status;
	struct seen seen = {0};
	char in;

	memset(&nothing, 0, sizeof(nothing));
	CHECK_OK(MPI_Recv_init(&in, 1, MPI_BYTE, 0, TAG + 2, self, &persistent));
	poison(&status, sizeof(status));
	CHECK_CLASS(attach(no_memory, never, NULL, &status, cr), MPI_ERR_ARG);
	CHECK_CLASS(attach(&op, NULL, NULL, &status, cr), MPI_ERR_ARG);
	CHECK_CLASS(attach(&op, never, NULL, &status, other), MPI_ERR_REQUEST);
	CHECK_CLASS(attach(&op, never, NULL, &status, op), MPI_ERR_REQUEST);
	CHECK_CLASS(attach(&op, never, NULL, &status, persistent), MPI_ERR_REQUEST);
	CHECK_CLASS(attach(&op, never, NULL, &status, nothing), MPI_ERR_REQUEST);
	CHECK_CLASS(attach(&nothing, never, NULL, &status, cr), MPI_ERR_REQUEST);
	if (MPI_STATUS_IGNORE != (MPI_Status *)no_memory)
		CHECK_CLASS(attach(&op, never, NULL, no_memory, cr), MPI_ERR_ARG);
	CHECK(op == same);
	CHECK(is_poison(&status, sizeof(status)));
	CHECK(test_cr(&cr));
	/* Everything is as it was. */
	CHECK_OK(attach(&op, see, &seen, &status, cr));
	complete_pending(TAG);
	complete_pending(TAG + 1);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(status.MPI_TAG, TAG);
	CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Start(&persistent));
	complete_pending(TAG + 2);
	CHECK_OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&persistent));
	free_cr(&cr);
}

CONFORMANCE_BOTH(s11_attach_all_arguments, 1, single,
		 "Attach to a set: negative counts, null pointers, handles that are none")
{
	MPI_Request cr = new_cr(NULL), other = pending(TAG + 1), r[3], same[3];
	MPI_Status status[3];
	struct seen seen = {0};

	r[0] = pending(TAG);
	r[1] = MPI_REQUEST_NULL;
	r[2] = MPI_REQUEST_NULL;
	memcpy(same, r, sizeof(r));
	poison(status, sizeof(status));
	CHECK_CLASS(attach_all(-1, r, never, NULL, status, cr), MPI_ERR_COUNT);
	CHECK_CLASS(attach_all(-2147483647 - 1, r, never, NULL, status, cr), MPI_ERR_COUNT);
	CHECK_CLASS(attach_all(3, no_memory, never, NULL, status, cr), MPI_ERR_ARG);
	CHECK_CLASS(attach_all(3, r, NULL, NULL, status, cr), MPI_ERR_ARG);
	CHECK_CLASS(attach_all(0, no_memory, NULL, NULL, status, cr), MPI_ERR_ARG);
	CHECK_CLASS(attach_all(3, r, never, NULL, status, other), MPI_ERR_REQUEST);
	CHECK_CLASS(attach_all(0, no_memory, never, NULL, status, other), MPI_ERR_REQUEST);
	if (MPI_STATUSES_IGNORE != (MPI_Status *)no_memory)
		CHECK_CLASS(attach_all(3, r, never, NULL, no_memory, cr), MPI_ERR_ARG);
	memset(&r[2], 0, sizeof(r[2]));
	CHECK_CLASS(attach_all(3, r, never, NULL, status, cr), MPI_ERR_REQUEST);
	r[2] = same[2];
	CHECK(memcmp(r, same, sizeof(r)) == 0);
	CHECK(is_poison(status, sizeof(status)));
	CHECK(test_cr(&cr));
	CHECK_OK(attach_all(3, r, see, &seen, status, cr));
	complete_pending(TAG);
	complete_pending(TAG + 1);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(status[0].MPI_TAG, TAG);
	CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
	free_cr(&cr);
}

static void call_everything(void)
{
	MPI_Request cr, op = MPI_REQUEST_NULL, nothing;

	poison(&cr, sizeof(cr));
	memset(&nothing, 0, sizeof(nothing));
	CHECK_CLASS(init_cr(MPI_INFO_NULL, &cr), MPI_ERR_OTHER);
	CHECK_CLASS(init_cr(MPI_INFO_NULL, no_memory), MPI_ERR_OTHER);
	CHECK(is_poison(&cr, sizeof(cr)));
	CHECK_CLASS(attach(&op, never, NULL, MPI_STATUS_IGNORE, nothing), MPI_ERR_OTHER);
	CHECK_CLASS(attach(no_memory, NULL, NULL, MPI_STATUS_IGNORE, MPI_REQUEST_NULL), MPI_ERR_OTHER);
	CHECK_CLASS(attach_all(1, &op, never, NULL, MPI_STATUSES_IGNORE, nothing), MPI_ERR_OTHER);
	CHECK_CLASS(attach_all(-1, no_memory, NULL, NULL, MPI_STATUSES_IGNORE, MPI_REQUEST_NULL), MPI_ERR_OTHER);
	CHECK(op == MPI_REQUEST_NULL);
#if CONFORMANCE_REVISED
	if (face == face_revised) {
		void *data[1] = {NULL};
		int count = 1;

		CHECK_CLASS(MPIX_Continue_get_failed(nothing, &count, data), MPI_ERR_OTHER);
		CHECK_EQ(count, 1);
	}
#endif
}

CONFORMANCE_BOTH(s11_before_init, 1, none, "Before MPI_Init every call returns MPI_ERR_OTHER, and no more")
{
	call_everything();
}

static void call_everything_late(void)
{
	for (int f = face_draft; f <= face_revised; f++) {
		if ((f == face_draft && !CONFORMANCE_DRAFT) || (f == face_revised && !CONFORMANCE_REVISED))
			continue;
		face = (enum face)f;
		call_everything();
	}
}

CONFORMANCE_BOTH(s11_after_finalize, 1, single, "After MPI_Finalize every call returns MPI_ERR_OTHER, and no more")
{
	MPI_Request cr = new_cr(NULL), op = MPI_REQUEST_NULL;
	struct seen seen = {0};

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	wait_cr(&cr);
	free_cr(&cr);
	after_finalize = call_everything_late;
}

CONFORMANCE_BOTH(s11_many_crs, 1, single, "Very many CRs: all work, or an error says that there are no more")
{
	enum { N = 6000 };
	static MPI_Request cr[N];
	struct seen seen = {0};
	int made = 0, runs = 0;

	for (; made < N; made++) {
		int rc;

		poison(&cr[made], sizeof(cr[made]));
		rc = init_cr(MPI_INFO_NULL, &cr[made]);
		if (rc != MPI_SUCCESS) {
			CHECK(is_poison(&cr[made], sizeof(cr[made])));
			break;
		}
		again(&cr[made]);
	}
	CHECK(made >= 100);
	for (int i = 0; i < made; i += 7) {
		MPI_Request op = pending(TAG);

		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr[i]));
		complete_pending(TAG);
		wait_cr(&cr[i]);
		CHECK_EQ(seen.runs, ++runs);
	}
	for (int i = 0; i < made; i++)
		free_cr(&cr[i]);
	/* The used up resource is there again. */
	cr[0] = new_cr(NULL);
	free_cr(&cr[0]);
}

/* ---------------------------------------------------------------------------------------------------- at random --- */

#define CRS 6
#define CELLS 4000
#define MESSAGES 24

static struct {
	uint32_t seed;
	MPI_Request cr[CRS];
	bool exists[CRS], poll_only[CRS];
	bool sent_to[MESSAGES]; /* a receive with this tag is pending */
	struct seen cell[CELLS];
	int cells, errors;
} fuzz;

static uint32_t below(uint32_t n)
{
	fuzz.seed = fuzz.seed * 1664525u + 1013904223u;
	return (fuzz.seed >> 8) % n;
}

static void fuzz_init(int at)
{
	static const char *const keys[] = {POLL_ONLY, ENQUEUE_COMPLETE, MAX_POLL, THREAD, "mpi_continue_nothing"};
	static const char *const values[] = {"true", "false", "1", "3", "-1", "any", "application", "nonsense"};
	const char *key = keys[below(5)], *value = values[below(8)];
	MPI_Info info = new_info(key, value, NULL);
	MPI_Request cr;
	int rc;

	poison(&cr, sizeof(cr));
	rc = init_cr(info, &cr);
	MPI_Info_free(&info);
	if (rc != MPI_SUCCESS) {
		fuzz.errors++;
		CHECK_CLASS(rc, MPI_ERR_INFO_VALUE);
		CHECK(is_poison(&cr, sizeof(cr)));
		return;
	}
	again(&cr);
	fuzz.cr[at] = cr;
	fuzz.exists[at] = true;
	fuzz.poll_only[at] = strcmp(key, POLL_ONLY) == 0 && strcmp(value, "true") == 0;
}

static void fuzz_attach(int at)
{
	MPI_Request op[5], same[5], cr = fuzz.cr[at];
	int count = (int)below(6), tags[5], rc;
	bool wrong_callback = below(16) == 0, wrong_cr = below(16) == 0, wrong_count = below(16) == 0, own = false;
	struct seen *cell = &fuzz.cell[fuzz.cells];

	for (int i = 0; i < count; i++) {
		int tag = (int)below(MESSAGES);

		tags[i] = -1;
		op[i] = MPI_REQUEST_NULL;
		if (below(24) == 0) {
			op[i] = cr;
			own = true;
		} else if (below(3) && !fuzz.sent_to[tag]) {
			op[i] = pending(tag);
			tags[i] = tag;
			fuzz.sent_to[tag] = true;
			if (below(3) == 0) {
				complete_pending(tag);
				fuzz.sent_to[tag] = false;
				tags[i] = -2; /* complete, perhaps to be waited for */
			}
		}
	}
	memcpy(same, op, sizeof(op[0]) * (size_t)count);
	if (wrong_cr) /* a receive of ours, or the null request where that is no CR either */
		cr = count && op[0] != cr && op[0] != MPI_REQUEST_NULL ? op[0] : fuzz.cr[at];
	wrong_cr = cr != fuzz.cr[at];
	if (count == 1 && below(2) && !wrong_count)
		rc = attach(op, wrong_callback ? NULL : see, cell, MPI_STATUS_IGNORE, cr);
	else
		rc = attach_all(wrong_count ? -1 - count : count, op, wrong_callback ? NULL : see, cell,
				MPI_STATUSES_IGNORE, cr);
	if (rc == MPI_SUCCESS) {
		CHECK(!wrong_callback && !wrong_cr && !wrong_count && !own);
		for (int i = 0; i < count; i++)
			CHECK(op[i] == MPI_REQUEST_NULL);
		fuzz.cells++;
		return;
	}
	fuzz.errors++;
	CHECK(wrong_callback || wrong_cr || wrong_count || own);
	CHECK(memcmp(op, same, sizeof(op[0]) * (size_t)count) == 0);
	for (int i = 0; i < count; i++) {
		if (tags[i] >= 0) {
			complete_pending(tags[i]);
			fuzz.sent_to[tags[i]] = false;
		}
		if (op[i] != fuzz.cr[at])
			CHECK_OK(MPI_Wait(&op[i], MPI_STATUS_IGNORE));
	}
}

CONFORMANCE_BOTH(s11_random_calls, 1, single,
		 "Random calls, good and bad: each continuation that was attached runs once")
{
	for (uint32_t seed = 1; seed <= 8; seed++) {
		memset(&fuzz, 0, sizeof(fuzz));
		fuzz.seed = seed;
		while (fuzz.cells < CELLS) {
			int at = (int)below(CRS), tag = (int)below(MESSAGES);

			if (!fuzz.exists[at])
				fuzz_init(at);
			else if (below(40) == 0 && !fuzz.poll_only[at]) {
				free_cr(&fuzz.cr[at]);
				fuzz.exists[at] = false;
			} else if (below(3))
				fuzz_attach(at);
			else if (report_by((enum how)below(4), &fuzz.cr[at]))
				again(&fuzz.cr[at]);
			if (fuzz.sent_to[tag] && below(2)) {
				complete_pending(tag);
				fuzz.sent_to[tag] = false;
			}
		}
		for (int tag = 0; tag < MESSAGES; tag++)
			if (fuzz.sent_to[tag])
				complete_pending(tag);
		for (int at = 0; at < CRS; at++)
			if (fuzz.exists[at]) {
				wait_cr(&fuzz.cr[at]);
				free_cr(&fuzz.cr[at]);
			}
		for (int i = 0; i < CELLS; i++)
			CHECK(drive_until(&fuzz.cell[i].runs, 1));
		for (int i = 0; i < CELLS; i++)
			CHECK_EQ(fuzz.cell[i].runs, 1);
		CHECK(fuzz.errors > 100);
	}
}
