/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that has an allocator of its own, which MPI uses too. The program's code belongs to the closure then: no
 * progress is made in it. The allocator notices when it is entered while it is busy.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <mpi.h>
#include <stddef.h>

#include "closure.h"

#define HEADER 32u
#define ROOM (256u << 20)

static char room[ROOM] __attribute__((aligned(64)));
static size_t used;
static uint32_t lock; /* other threads of MPI's allocate, too */
static __thread volatile uint32_t busy;
static uint32_t entered_twice;

void *malloc(size_t size)
{
	size_t *block;

	if (busy)
		__atomic_add_fetch(&entered_twice, 1, __ATOMIC_RELAXED);
	busy = busy + 1;
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) && busy == 1)
		;
	spin(50);
	size = (size + HEADER + 63) & ~(size_t)63;
	block = used + size <= ROOM ? (size_t *)(void *)(room + used) : NULL;
	if (block) {
		used += size;
		*block = size - HEADER;
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	busy = busy - 1;
	return block ? (char *)block + HEADER : NULL;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size); /* nothing is used twice */
}

void *realloc(void *p, size_t size)
{
	size_t had = p ? *(size_t *)(void *)((char *)p - HEADER) : 0;
	void *now = p && had >= size ? p : malloc(size);

	if (p && now && now != p)
		memcpy(now, p, had);
	return now;
}

void *memalign(size_t alignment, size_t size)
{
	char *p = malloc(size + alignment + HEADER), *at;

	if (!p)
		return NULL;
	at = (char *)(((uintptr_t)p + HEADER + alignment - 1) & ~(uintptr_t)(alignment - 1));
	*(size_t *)(void *)(at - HEADER) = size;
	return at;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
	*p = memalign(alignment, size);
	return *p ? 0 : ENOMEM;
}

int main(int argc, char **argv)
{
	double give_up;

	MPI_Init(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	give_up = now_s() + 60;
	while (passed(PASSED_CLOSURE) < 1000 && now_s() < give_up && used < ROOM / 2)
		for (int i = 0; i < 100; i++) {
			void *volatile p = malloc(1);

			free(p);
			spin(1000);
		}
	printf("%lu ticks, %lu times progress, the allocator entered twice %u times\n",
	       (unsigned long)passed(PASSED_CLOSURE), (unsigned long)ran, entered_twice);
	if (passed(PASSED_CLOSURE) < 1000 || ran || entered_twice)
		return 1;
	MPI_Finalize();
	return 0;
}
