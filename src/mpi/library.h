/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a library stands in memory: calls from MPI's own are no program's, and may be made with its locks held. */
#ifndef CONTD_MPI_LIBRARY_H
#define CONTD_MPI_LIBRARY_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct contd__library {
	uintptr_t address;    /* of something in it */
	uintptr_t begin, end; /* both 0: not found */
};

/* For dl_iterate_phdr(3). */
static inline int contd__library_is(struct dl_phdr_info *info, size_t size, void *data)
{
	struct contd__library *library = data;
	uintptr_t begin = UINTPTR_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + p->p_vaddr < begin)
			begin = info->dlpi_addr + p->p_vaddr;
		if (info->dlpi_addr + p->p_vaddr + p->p_memsz > end)
			end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	if (library->address < begin || library->address >= end)
		return 0;
	library->begin = begin;
	library->end = end;
	return 1;
}

/* The library that has this address; at start-up, for dl_iterate_phdr(3) takes a lock. */
static inline void contd__library_find(struct contd__library *library, uintptr_t address)
{
	library->address = address;
	if (address)
		dl_iterate_phdr(contd__library_is, library);
}

static inline bool contd__library_has(const struct contd__library *library, const void *address)
{
	return (uintptr_t)address - library->begin < library->end - library->begin;
}

#endif
