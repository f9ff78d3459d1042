/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/process.h"

#define NOTES_MOST (64ul << 20) /* bytes of notes: more is no core file */

struct core {
	int fd;
	ElfW(Phdr) * part;
	uint32_t parts;
	char *notes;
	struct contd__dump_map *map;
	unsigned maps;
	int file; /* the mapped file that was read last */
	unsigned file_of;
};

/* How many bytes from there on the core file itself has; *atp: where. */
static size_t in_core(const struct core *c, uintptr_t address, uint64_t *atp)
{
	for (unsigned i = 0; i < c->parts; i++) {
		const ElfW(Phdr) *p = &c->part[i];

		if (p->p_type != PT_LOAD || address < p->p_vaddr || address - p->p_vaddr >= p->p_filesz)
			continue;
		*atp = p->p_offset + (address - p->p_vaddr);
		return p->p_filesz - (address - p->p_vaddr);
	}
	return 0;
}

/* The same of a mapped file; *fdp: its descriptor. */
static size_t in_file(struct core *c, uintptr_t address, uint64_t *atp, int *fdp)
{
	for (unsigned i = 0; i < c->maps; i++) {
		const struct contd__dump_map *m = &c->map[i];

		if (address < m->start || address >= m->end)
			continue;
		if (c->file < 0 || c->file_of != i) {
			if (c->file >= 0)
				close(c->file);
			c->file = contd__dump_open(m->path);
			c->file_of = i;
		}
		*fdp = c->file;
		*atp = m->offset + (address - m->start);
		return c->file < 0 ? 0 : m->end - address;
	}
	return 0;
}

static bool read_core(struct contd__dump_reader *r, uintptr_t address, void *to, size_t size)
{
	struct process *p = (struct process *)r;
	struct core *c = p->core;

	p->error = EFAULT;
	for (size_t done = 0; done < size;) {
		int fd = c->fd;
		uint64_t at;
		size_t n = in_core(c, address + done, &at);

		if (!n)
			n = in_file(c, address + done, &at, &fd);
		if (n > size - done)
			n = size - done;
		if (!n || !contd__dump_read_at(fd, (char *)to + done, n, at))
			return false;
		done += n;
	}
	return true;
}

static void maps_core(struct contd__dump_reader *r, bool (*each)(void *with, const struct contd__dump_map *map),
		      void *with)
{
	const struct core *c = ((struct process *)r)->core;

	for (unsigned i = 0; i < c->maps && each(with, &c->map[i]); i++)
		;
}

static int open_core(struct contd__dump_reader *r, const char *path)
{
	(void)r;
	return contd__dump_open(path);
}

/* A number of a note, which begins at any multiple of 4. */
static uint64_t word_of(const char *note, uint64_t i)
{
	uint64_t word;

	memcpy(&word, note + i * sizeof(word), sizeof(word));
	return word;
}

/* NT_FILE: how many, the unit of offsets, then start, end and offset of each, then the names. */
static void take_files(struct core *c, const char *note, size_t size)
{
	uint64_t count = size < 16 ? 0 : word_of(note, 0);
	const char *name, *over = note + size;

	if (c->map || size < 16 || count > (size - 16) / 24)
		return;
	name = note + 16 + count * 24;
	c->map = calloc(count ? count : 1, sizeof(*c->map));
	for (uint64_t i = 0; c->map && i < count; i++) {
		size_t length = strnlen(name, (size_t)(over - name));

		if (name + length >= over)
			break;
		c->map[c->maps++] = (struct contd__dump_map){word_of(note, 2 + 3 * i), word_of(note, 3 + 3 * i),
							     word_of(note, 4 + 3 * i) * word_of(note, 1), name};
		name += length + 1;
	}
}

static void take_notes(struct process *p, const char *notes, size_t size)
{
	for (size_t at = 0; size - at >= sizeof(ElfW(Nhdr));) {
		const ElfW(Nhdr) *n = (const void *)(notes + at);
		size_t name = (n->n_namesz + 3ul) & ~3ul, bytes = (n->n_descsz + 3ul) & ~3ul;
		const char *note = (const char *)(n + 1) + name;

		if (size - at - sizeof(*n) < name || size - at - sizeof(*n) - name < bytes)
			return;
		if (n->n_type == NT_FILE)
			take_files(p->core, note, n->n_descsz);
		else if (n->n_type == NT_PRPSINFO && n->n_descsz >= sizeof(struct elf_prpsinfo))
			memcpy(&p->reader.pid, note + offsetof(struct elf_prpsinfo, pr_pid), sizeof(p->reader.pid));
		at += sizeof(*n) + name + bytes;
	}
}

static const char *take(struct process *p)
{
	struct core *c = p->core;
	ElfW(Ehdr) head;
	struct stat st;

	if (!contd__dump_read_at(c->fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_type != ET_CORE || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(*c->part))
		return "it is no core file of a 64-bit process";
	c->parts = head.e_phnum;
	/* More than 16 bits: then the first section has it. */
	if (c->parts == PN_XNUM &&
	    !contd__dump_read_at(c->fd, &c->parts, sizeof(c->parts), head.e_shoff + offsetof(ElfW(Shdr), sh_info)))
		return "it ends too early";
	if (fstat(c->fd, &st) || c->parts > (size_t)st.st_size / sizeof(*c->part))
		return "it ends too early";
	c->part = calloc(c->parts ? c->parts : 1, sizeof(*c->part));
	if (!c->part)
		return "no memory";
	if (!contd__dump_read_at(c->fd, c->part, c->parts * sizeof(*c->part), head.e_phoff))
		return "it ends too early";
	for (unsigned i = 0; i < c->parts && !c->notes; i++) {
		if (c->part[i].p_type != PT_NOTE || c->part[i].p_filesz > NOTES_MOST)
			continue;
		c->notes = malloc(c->part[i].p_filesz + 8);
		if (!c->notes || !contd__dump_read_at(c->fd, c->notes, c->part[i].p_filesz, c->part[i].p_offset))
			return "its notes cannot be read";
		take_notes(p, c->notes, c->part[i].p_filesz);
	}
	return c->maps ? NULL : "it has no list of mapped files (the note NT_FILE)";
}

int core_open(struct process *p, const char *path, char why[WHY])
{
	struct core *c = calloc(1, sizeof(*c));
	const char *wrong = "no memory";

	*p = (struct process){.reader = {.read = read_core, .maps = maps_core, .open = open_core, .state = "core file"},
			      .core = c};
	if (c) {
		c->file = -1;
		c->fd = contd__dump_open(path);
		wrong = c->fd >= 0 ? take(p) : errno == EINVAL ? "it is no core file" : strerror(errno);
	}
	if (!wrong)
		return 0;
	snprintf(why, WHY, "%s cannot be read: %s", path, wrong);
	return -1;
}

void core_close(struct core *core)
{
	if (core->fd >= 0)
		close(core->fd);
	if (core->file >= 0)
		close(core->file);
	free(core->part);
	free(core->notes);
	free(core->map);
	free(core);
}
