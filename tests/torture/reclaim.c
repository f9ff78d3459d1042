/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd's memory, watched.
 *
 * contd reclaims groups and their tables after a grace period: the group itself, a table's first chunk
 * (aligned_alloc), its other chunks (mmap), its branches (calloc). The linker hands all of this to the functions here
 * (--wrap), which keep what was freed for some more grace periods in a pipeline, as rcutorture does, and see to it that
 * a use shows:
 *
 *   three of four groups, first chunks and branches   are filled with a pattern that must be there at the end of the
 *                                                     pipeline: who wrote there is found; who followed a pointer in it
 *                                                     has crashed
 *   the fourth, and all larger chunks                 are made inaccessible: a read crashes, too, and the handler of
 *                                                     that says what lies there and for how long it has been free
 *
 * Ages, from the readers' side. A reader is in a section from which contd must not reclaim what the reader may have
 * found in it. It looks at the age of what it has when it is about to leave:
 *
 *   0    in use: still in its root (a completer: its handle was not given back)
 *   1    unlinked (given back) meanwhile, and waiting for this reader
 *   2    reclaimed while the reader held it. Must never be
 *   3..  the same, and so many more grace periods (minus 2) have passed
 *
 * Three sorts of readers: a thread that RCU knows and one that it does not know (these read the roots as a scan does,
 * and stay longer), and a thread that completes an event, seen at the test points inside (contd__enter_sig to
 * contd__leave_sig). Columns 0 and 1 are legal; that column 1 is not empty says that readers and reclaiming did meet.
 *
 * Ages, from the reclaimer's side: how many grace periods began after the handle was given back, up to the one that the
 * reclaimer has waited for before it frees. 0 would be a grace period that began too early, or none. Batches of dead
 * groups make larger ones. contd_fini() frees without a grace period, since no other thread may be in contd: it is not
 * counted.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "dispatch/group.h"
#include "rcu/table.h"
#include "torture.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define CELL_BYTES 8192u
#define CELLS 32768u
#define PIPELINE_CELLS 1024u /* kept at least */
#define PIPELINE_CHUNKS 64u
#define CHUNKS 4096u
#define PIPELINE_GRACES 8u
#define POISON 0x5a /* as a pointer it is no address, and as a count of references it is not 0 */

#define LARGE_CHUNK_BYTES (sizeof(struct contd__chunk) + CHUNK_SLOTS * sizeof(struct contd__slot))
#define FIRST_CHUNK_BYTES ((sizeof(struct contd__chunk) + CHUNK_FIRST * sizeof(struct contd__slot) + 63) & ~(size_t)63)

enum object { OBJECT_GROUP, OBJECT_FIRST, OBJECT_CHUNK, OBJECT_BRANCH, OBJECTS };
static const char *const object_name[OBJECTS] = {"group", "first chunk", "chunk", "branch"};

/* Groups, first chunks and branches live in separate cells; this is the state of one. */
enum cell_state { CELL_NONE, CELL_LIVE, CELL_GIVEN_BACK, CELL_RECLAIMED };
struct cell {
	uint32_t state; /* enum cell_state */
	uint32_t incarnation;
	uint32_t object, bytes;
	uint64_t given_back; /* grace periods that had begun then */
	uint64_t reclaimed;  /* grace periods that were over when it was freed */
};

/* A large chunk that was freed. */
struct kept {
	void *memory;
	size_t bytes;
	uint64_t reclaimed;
};

static char *arena;
static struct cell cell[CELLS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what follows */
static uint32_t fresh = 1;                               /* cells never used yet; 0 names none */
static uint32_t reusable[CELLS], reusable_count;
static uint32_t pipeline[CELLS], pipeline_in, pipeline_out;
static struct kept chunks[CHUNKS];
static uint32_t chunks_in, chunks_out;
static uint64_t kept_whole; /* objects that came out of the pipeline as they went in */

static uint64_t live[OBJECTS], made[OBJECTS];
static uint64_t graces_begun, graces_over;
static __thread uint64_t last_grace; /* the last that this thread waited for */
static uint32_t finishing;
static uint64_t age_of_readers[HOLDERS][AGES], age_at_reclaim[OBJECTS][AGES];

void *__real_aligned_alloc(size_t align, size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_mmap(void *p, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *p, size_t bytes);
void __real_free(void *p);
void __real_contd__grace_period(void);

void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_mmap(void *p, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *p, size_t bytes);
void __wrap_free(void *p);
void __wrap_contd__grace_period(void);

/* ----------------------------------------------------------------------------------------------------- pipeline --- */

static bool fenced(uint32_t c)
{
	return c % 4 == 0;
}

static char *cell_memory(uint32_t c)
{
	return arena + (size_t)c * CELL_BYTES;
}

/* 0: none. */
static uint32_t cell_of(const void *p)
{
	size_t at = (size_t)((const char *)p - arena);

	return at < (size_t)CELLS * CELL_BYTES ? (uint32_t)(at / CELL_BYTES) : 0;
}

static void check_poison(const unsigned char *p, size_t bytes, enum object object)
{
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != POISON) {
			wrong("a %s was written to after it was freed, at byte %zu", object_name[object], i);
			return;
		}
	kept_whole++;
}

static void cell_leaves_locked(uint32_t c)
{
	if (fenced(c)) {
		if (mprotect(cell_memory(c), CELL_BYTES, PROT_READ | PROT_WRITE))
			wrong("mprotect fails");
	} else {
		ASAN_UNPOISON_MEMORY_REGION(cell_memory(c), CELL_BYTES);
		check_poison((unsigned char *)cell_memory(c), cell[c].bytes, cell[c].object);
	}
}

static bool old_enough(uint64_t reclaimed)
{
	return contd__load(&graces_over) >= reclaimed + PIPELINE_GRACES;
}

static void *cell_take(enum object object, size_t bytes)
{
	uint32_t c = 0;

	if (bytes > CELL_BYTES)
		abort();
	pthread_mutex_lock(&lock);
	if (pipeline_in - pipeline_out > PIPELINE_CELLS && old_enough(cell[pipeline[pipeline_out % CELLS]].reclaimed)) {
		c = pipeline[pipeline_out++ % CELLS];
		cell_leaves_locked(c);
	} else if (reusable_count) {
		c = reusable[--reusable_count];
	} else if (fresh < CELLS) {
		c = fresh++;
	}
	pthread_mutex_unlock(&lock);
	if (!c) {
		wrong("more groups exist than there are cells for");
		abort();
	}
	cell[c].object = object;
	cell[c].bytes = (uint32_t)bytes;
	contd__store(&cell[c].incarnation, (cell[c].incarnation + 1) & 0xffff);
	contd__store_release(&cell[c].state, CELL_LIVE);
	contd__add(&live[object], 1);
	contd__add(&made[object], 1);
	memset(cell_memory(c), POISON, bytes); /* malloc gives no zeros either */
	return cell_memory(c);
}

static void count_reclaim(enum object object, const struct contd_group *owner)
{
	uint32_t c = owner ? cell_of(owner) : 0;
	uint64_t age;

	if (contd__load(&finishing) || !c)
		return;
	age = last_grace > cell[c].given_back ? last_grace - cell[c].given_back : 0;
	if (contd__load(&cell[c].state) == CELL_LIVE)
		wrong("a %s is freed whose group's handle was not given back", object_name[object]);
	if (age == 0)
		wrong("a %s is freed, and no grace period lies between that and giving the group back",
		      object_name[object]);
	contd__add(&age_at_reclaim[object][age < AGES ? age : AGES - 1], 1);
}

static void cell_reclaim(uint32_t c)
{
	enum object object = cell[c].object;

	if (contd__load(&cell[c].state) == CELL_RECLAIMED || contd__load(&cell[c].state) == CELL_NONE) {
		wrong("a %s is freed twice", object_name[object]);
		return;
	}
	if (object == OBJECT_BRANCH)
		; /* it does not tell its group */
	else if (object == OBJECT_GROUP)
		count_reclaim(object, (const struct contd_group *)(void *)cell_memory(c));
	else
		count_reclaim(object, ((const struct contd__chunk *)(void *)cell_memory(c))->slot[0].group);
	cell[c].reclaimed = contd__load(&graces_over);
	contd__store_seq(&cell[c].state, CELL_RECLAIMED);
	contd__sub(&live[object], 1);
	if (fenced(c)) {
		if (mprotect(cell_memory(c), CELL_BYTES, PROT_NONE))
			wrong("mprotect fails");
	} else {
		memset(cell_memory(c), POISON, cell[c].bytes);
		ASAN_POISON_MEMORY_REGION(cell_memory(c), CELL_BYTES);
	}
	pthread_mutex_lock(&lock);
	pipeline[pipeline_in++ % CELLS] = c;
	pthread_mutex_unlock(&lock);
}

static void chunk_reclaim(void *p, size_t bytes)
{
	struct kept leaves = {0};

	contd__sub(&live[OBJECT_CHUNK], 1);
	/* A fixed map over it: what was there is given back, and the address stays taken. */
	if (__real_mmap(p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != p)
		wrong("mmap fails");
	pthread_mutex_lock(&lock);
	chunks[chunks_in++ % CHUNKS] = (struct kept){p, bytes, contd__load(&graces_over)};
	if (chunks_in - chunks_out > PIPELINE_CHUNKS &&
	    (old_enough(chunks[chunks_out % CHUNKS].reclaimed) || chunks_in - chunks_out == CHUNKS))
		leaves = chunks[chunks_out++ % CHUNKS];
	pthread_mutex_unlock(&lock);
	if (leaves.memory)
		__real_munmap(leaves.memory, leaves.bytes);
}

/* ------------------------------------------------------------------------------------ in place of the library's --- */

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	if (bytes == sizeof(struct contd_group))
		return cell_take(OBJECT_GROUP, bytes);
	if (bytes == FIRST_CHUNK_BYTES)
		return cell_take(OBJECT_FIRST, bytes);
	return __real_aligned_alloc(align, bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	if (n == 1 && bytes == sizeof(struct contd__branch))
		return memset(cell_take(OBJECT_BRANCH, bytes), 0, bytes);
	return __real_calloc(n, bytes);
}

void __wrap_free(void *p)
{
	uint32_t c = p ? cell_of(p) : 0;

	if (c)
		cell_reclaim(c);
	else
		__real_free(p);
}

void *__wrap_mmap(void *p, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (bytes == LARGE_CHUNK_BYTES) { /* others map for other purposes */
		contd__add(&live[OBJECT_CHUNK], 1);
		contd__add(&made[OBJECT_CHUNK], 1);
	}
	return __real_mmap(p, bytes, protection, flags, fd, offset);
}

int __wrap_munmap(void *p, size_t bytes)
{
	if (bytes != LARGE_CHUNK_BYTES)
		return __real_munmap(p, bytes);
	count_reclaim(OBJECT_CHUNK, ((const struct contd__chunk *)p)->slot[0].group);
	chunk_reclaim(p, bytes);
	return 0;
}

void __wrap_contd__grace_period(void)
{
	uint64_t mine = contd__add(&graces_begun, 1) + 1;

	__real_contd__grace_period();
	last_grace = mine;
	contd__add(&graces_over, 1);
}

/* --------------------------------------------------------------------------------------------------------- ages --- */

void reclaim_init(void)
{
	arena = __real_mmap(NULL, (size_t)CELLS * CELL_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		abort();
}

uint32_t reclaim_name(const struct contd_group *group)
{
	uint32_t c = group ? cell_of(group) : 0;

	return c ? contd__load(&cell[c].incarnation) << 16 | c : 0;
}

void reclaim_given_back(const struct contd_group *group)
{
	uint32_t c = cell_of(group);

	cell[c].given_back = contd__load_seq(&graces_begun);
	contd__store_seq(&cell[c].state, CELL_GIVEN_BACK);
}

unsigned reclaim_age(uint32_t name)
{
	const struct cell *c = &cell[name & 0xffff];
	uint32_t state = contd__load_seq(&c->state);
	uint64_t since;

	if (contd__load(&c->incarnation) != name >> 16)
		return AGES - 1; /* reclaimed, and through the pipeline */
	if (state == CELL_LIVE || state == CELL_GIVEN_BACK)
		return state == CELL_GIVEN_BACK;
	since = contd__load(&graces_over) - contd__load(&c->reclaimed);
	return since < AGES - 3 ? 2 + (unsigned)since : AGES - 1;
}

void reclaim_note(enum holder holder, uint32_t name, bool in_root)
{
	unsigned age = reclaim_age(name);

	/* A group that was given back stays in its root while something of it is outstanding. */
	if (age < 2 && holder != HOLDER_COMPLETER)
		age = !in_root;
	contd__add(&age_of_readers[holder][age], 1);
	if (age > 1)
		wrong("a group was reclaimed in a reader's hands: age %u, %s", age,
		      holder == HOLDER_COMPLETER  ? "a completer"
		      : holder == HOLDER_STRANGER ? "a thread that RCU does not know"
						  : "a reader");
}

void reclaim_fini(bool begins)
{
	contd__store_seq(&finishing, begins);
}

void reclaim_check_empty(void)
{
	for (unsigned o = 0; o < OBJECTS; o++)
		if (contd__load(&live[o]))
			wrong("after contd_fini() %llu are left: %s", (unsigned long long)live[o], object_name[o]);
}

void reclaim_end(void)
{
	pthread_mutex_lock(&lock);
	while (pipeline_out != pipeline_in)
		cell_leaves_locked(pipeline[pipeline_out++ % CELLS]);
	while (chunks_out != chunks_in) {
		const struct kept *k = &chunks[chunks_out++ % CHUNKS];

		__real_munmap(k->memory, k->bytes);
	}
	pthread_mutex_unlock(&lock);
}

uint64_t reclaim_met(enum holder holder)
{
	return contd__load(&age_of_readers[holder][1]);
}

uint64_t reclaim_groups(void)
{
	return contd__load(&made[OBJECT_GROUP]);
}

bool reclaim_watches(void)
{
	bool all = true;

	for (unsigned o = 0; o < OBJECTS; o++)
		all = all && contd__load(&made[o]);
	return all;
}

static void row(const char *name, const uint64_t *count)
{
	printf("  %-26s", name);
	for (unsigned age = 0; age < AGES; age++)
		printf(age < 2 ? " %12llu" : " %6llu", (unsigned long long)count[age]);
	printf("\n");
}

void reclaim_report(void)
{
	printf("memory: groups %llu, first chunks %llu, larger chunks %llu, branches %llu; grace periods %llu\n",
	       (unsigned long long)made[OBJECT_GROUP], (unsigned long long)made[OBJECT_FIRST],
	       (unsigned long long)made[OBJECT_CHUNK], (unsigned long long)made[OBJECT_BRANCH],
	       (unsigned long long)graces_over);
	printf("objects that came whole out of the pipeline: %llu\n", (unsigned long long)kept_whole);
	printf("age of what readers held at the end of their sections (0 in use, 1 unlinked; 2 and more: reclaimed)\n");
	row("readers", age_of_readers[HOLDER_READER]);
	row("readers unknown to RCU", age_of_readers[HOLDER_STRANGER]);
	row("completers", age_of_readers[HOLDER_COMPLETER]);
	printf("grace periods begun between giving a group back and freeing (0: none; 10: or more)\n");
	row("groups", age_at_reclaim[OBJECT_GROUP]);
	row("first chunks", age_at_reclaim[OBJECT_FIRST]);
	row("larger chunks", age_at_reclaim[OBJECT_CHUNK]);
}

const char *reclaim_describe(const void *address, unsigned *agep)
{
	uint32_t c = cell_of(address);

	if (c && c < fresh) {
		*agep = reclaim_age(contd__load(&cell[c].incarnation) << 16 | c);
		return object_name[cell[c].object];
	}
	for (uint32_t i = chunks_out; i != chunks_in; i++) {
		const struct kept *k = &chunks[i % CHUNKS];
		uint64_t since = contd__load(&graces_over) - k->reclaimed;

		if ((const char *)address >= (char *)k->memory &&
		    (const char *)address < (char *)k->memory + k->bytes) {
			*agep = since < AGES - 3 ? 2 + (unsigned)since : AGES - 1;
			return object_name[OBJECT_CHUNK];
		}
	}
	return NULL;
}
