/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump/names.h"

#define PARTS_MOST 128u /* program headers, and sections that are looked at */
#define SECTIONS_MOST 4096u

struct found {
	uintptr_t address;
	uint64_t offset; /* in the file */
	char path[DUMP_NAME_TEXT * 4];
};

static bool meet(void *with, const struct contd__dump_map *map)
{
	struct found *f = with;

	if (f->address < map->start || f->address >= map->end)
		return map->start <= f->address;
	f->offset = f->address - map->start + map->offset;
	snprintf(f->path, sizeof(f->path), "%s", map->path);
	return false;
}

/* From a place in the file to an address as the file has it. */
static bool link_address(int fd, const ElfW(Ehdr) * head, uint64_t offset, uint64_t *addressp)
{
	for (unsigned i = 0; i < head->e_phnum && i < PARTS_MOST; i++) {
		ElfW(Phdr) p;

		if (!contd__dump_read_at(fd, &p, sizeof(p), head->e_phoff + i * sizeof(p)))
			return false;
		if (p.p_type != PT_LOAD || offset < p.p_offset || offset - p.p_offset >= p.p_filesz)
			continue;
		*addressp = offset - p.p_offset + p.p_vaddr;
		return true;
	}
	return false;
}

/* The symbol that the address is in, of a table of symbols. */
static bool symbol_in(struct contd__dump_names *names, int fd, const ElfW(Shdr) * table, const ElfW(Shdr) * strings,
		      uint64_t address, char *to, size_t room, uint64_t *beyondp)
{
	uint64_t count = table->sh_size / sizeof(ElfW(Sym)), best = 0;
	const uint64_t at_once = sizeof(names->part) / sizeof(ElfW(Sym));
	const ElfW(Sym) *symbol = (const void *)names->part.bytes;
	uint32_t name = 0;

	for (uint64_t i = 0; i < count; i += at_once) {
		uint64_t n = count - i < at_once ? count - i : at_once;

		if (!contd__dump_read_at(fd, names->part.bytes, n * sizeof(*symbol),
					 table->sh_offset + i * sizeof(*symbol)))
			return false;
		for (uint64_t k = 0; k < n; k++) {
			const ElfW(Sym) *s = &symbol[k];
			unsigned type = s->st_info & 0xf;
			bool inside = s->st_size ? address - s->st_value < s->st_size : address == s->st_value;

			if ((type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && s->st_shndx &&
			    s->st_name && s->st_value && s->st_value >= best && s->st_value <= address && inside) {
				best = s->st_value;
				name = s->st_name;
			}
		}
	}
	if (!name || name >= strings->sh_size)
		return false;
	if (room > strings->sh_size - name)
		room = strings->sh_size - name;
	memset(to, 0, room);
	if (!contd__dump_read_at(fd, to, room - 1, strings->sh_offset + name))
		return false;
	*beyondp = address - best;
	return *to != 0;
}

/* The table of all symbols if the file has one, otherwise that of the dynamic ones. */
static bool symbol_of(struct contd__dump_names *names, int fd, const ElfW(Ehdr) * head, uint64_t address, char *to,
		      size_t room, uint64_t *beyondp)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};

	if (head->e_shentsize != sizeof(ElfW(Shdr)))
		return false;
	for (unsigned t = 0; t < 2; t++)
		for (unsigned i = 0; i < head->e_shnum && i < SECTIONS_MOST; i++) {
			ElfW(Shdr) table, strings;

			if (!contd__dump_read_at(fd, &table, sizeof(table), head->e_shoff + i * sizeof(table)))
				return false;
			if (table.sh_type != types[t] || table.sh_link >= head->e_shnum ||
			    !contd__dump_read_at(fd, &strings, sizeof(strings),
						 head->e_shoff + table.sh_link * sizeof(strings)))
				continue;
			if (symbol_in(names, fd, &table, &strings, address, to, room, beyondp))
				return true;
		}
	return false;
}

static void resolve(struct contd__dump_names *names, uintptr_t address, char to[DUMP_NAME_TEXT])
{
	struct found f = {.address = address};
	char symbol[DUMP_NAME_TEXT / 2];
	const char *base;
	uint64_t at, beyond;
	ElfW(Ehdr) head;
	int fd;

	snprintf(to, DUMP_NAME_TEXT, "0x%lx", (unsigned long)address);
	names->reader->maps(names->reader, meet, &f);
	if (!*f.path)
		return;
	base = strrchr(f.path, '/') ? strrchr(f.path, '/') + 1 : f.path;
	at = f.offset;
	fd = names->reader->open(names->reader, f.path);
	if (fd < 0 || !contd__dump_read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    head.e_phentsize != sizeof(ElfW(Phdr)) || !link_address(fd, &head, f.offset, &at))
		snprintf(to, DUMP_NAME_TEXT, "%.100s, at 0x%llx in the file", base, (unsigned long long)f.offset);
	else if (!symbol_of(names, fd, &head, at, symbol, sizeof(symbol), &beyond))
		snprintf(to, DUMP_NAME_TEXT, "%.100s+0x%llx", base, (unsigned long long)at);
	else if (beyond)
		snprintf(to, DUMP_NAME_TEXT, "%.100s+0x%llx (%s+0x%llx)", base, (unsigned long long)at, symbol,
			 (unsigned long long)beyond);
	else
		snprintf(to, DUMP_NAME_TEXT, "%.100s+0x%llx (%s)", base, (unsigned long long)at, symbol);
	if (fd >= 0)
		close(fd);
}

const char *contd__dump_name(struct contd__dump_names *names, uintptr_t address)
{
	unsigned i;

	for (i = 0; i < DUMP_NAMES_KNOWN; i++)
		if (names->known[i].address == address)
			return address ? names->known[i].text : "NULL";
	i = names->next++ % DUMP_NAMES_KNOWN;
	resolve(names, address, names->known[i].text);
	names->known[i].address = address;
	return names->known[i].text;
}
