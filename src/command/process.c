/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "command/process.h"

/* ------------------------------------------------------------------------------------------------------- memory --- */

static bool read_process(struct contd__dump_reader *r, uintptr_t address, void *to, size_t size)
{
	struct process *p = (struct process *)r;
	struct iovec local = {to, size}, remote = {(void *)address, size};
	ssize_t n = process_vm_readv(p->task, &local, 1, &remote, 1, 0);

	if (n == (ssize_t)size)
		return true;
	p->error = n < 0 ? errno : EFAULT;
	return false;
}

static int open_of(int pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void maps_process(struct contd__dump_reader *r, bool (*each)(void *with, const struct contd__dump_map *map),
			 void *with)
{
	contd__dump_proc_maps(r, open_of(((struct process *)r)->task, "maps"), each, with);
}

/* The file as the process sees it: it may have another root. */
static int open_process(struct contd__dump_reader *r, const char *path)
{
	const struct process *p = (const struct process *)r;
	char theirs[PATH_MAX + 64];
	int fd;

	snprintf(theirs, sizeof(theirs), "%s%s", p->root, path);
	fd = contd__dump_open(theirs);
	return fd >= 0 ? fd : contd__dump_open(path);
}

/* --------------------------------------------------------------------------------------------------- permission --- */

/* "State" of /proc/PID/stat, behind the name, which may have anything in it. */
static char state_of(int pid)
{
	char text[1024], *behind;
	int fd = open_of(pid, "stat");
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	behind = strrchr(text, ')');
	return behind && behind[1] == ' ' ? behind[2] : 0;
}

static int ptrace_scope(void)
{
	char text[16] = "";
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		*text = 0;
	close(fd);
	return atoi(text);
}

static void say_refused(int pid, int error, char why[WHY])
{
	char path[64];
	struct stat st;
	int scope = ptrace_scope();

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st)) {
		snprintf(why, WHY, "there is no process %d", pid);
		return;
	}
	if (error != EPERM && error != EACCES)
		snprintf(why, WHY, "the memory of process %d cannot be read: %s", pid, strerror(error));
	else if (st.st_uid != geteuid() && geteuid() != 0)
		snprintf(why, WHY,
			 "process %d is of another user (number %u), or it is not dumpable: call contd dump as that "
			 "user "
			 "or as root",
			 pid, (unsigned)st.st_uid);
	else if (scope > 0 && geteuid() != 0)
		snprintf(
			why, WHY,
			"the kernel refuses to let one process read the memory of another (kernel.yama.ptrace_scope is "
			"%d): call contd dump as root, or allow it with: sysctl kernel.yama.ptrace_scope=0",
			scope);
	else
		snprintf(why, WHY,
			 "the kernel refuses to let this process read the memory of process %d: in a container, the "
			 "right "
			 "CAP_SYS_PTRACE may be missing (--cap-add SYS_PTRACE), or a filter of system calls may forbid "
			 "process_vm_readv(2); otherwise call contd dump as root",
			 pid);
}

/* ------------------------------------------------------------------------------------------------------ opening --- */

static bool first_map(void *with, const struct contd__dump_map *map)
{
	*(uintptr_t *)with = map->start;
	return false;
}

/* The kernel has no memory of a thread that has ended, also if it was the first and others go on. */
static void take_task(struct process *p)
{
	struct dirent *entry;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", p->reader.pid);
	folder = opendir(path);
	while (folder && state_of(p->task) == 'Z' && (entry = readdir(folder)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			p->task = atoi(entry->d_name);
	if (folder)
		closedir(folder);
	snprintf(p->root, sizeof(p->root), "/proc/%d/root", p->task);
}

int process_open(struct process *p, int pid, char why[WHY])
{
	uintptr_t first = 0;
	int fd;
	char byte, state;

	*p = (struct process){.reader = {.read = read_process,
					 .maps = maps_process,
					 .open = open_process,
					 .pid = pid,
					 .now = contd__ticks()},
			      .task = pid};
	take_task(p);
	fd = open_of(p->task, "maps");
	if (fd < 0) {
		say_refused(pid, errno, why);
		return -1;
	}
	contd__dump_proc_maps(&p->reader, fd, first_map, &first);
	state = state_of(p->task);
	if (!first && state != 0) {
		snprintf(why, WHY, "process %d has no memory: it %s", pid,
			 state == 'Z' ? "has ended, and its parent has not taken notice" : "is a thread of the kernel");
		return -1;
	}
	if (!read_process(&p->reader, first, &byte, 1)) {
		say_refused(pid, p->error, why);
		return -1;
	}
	p->reader.state = state == 'T'   ? "stopped"
			  : state == 't' ? "stopped by a debugger"
			  : state == 'R' ? "runs"
			  : state == 'D' ? "waits in the kernel, and cannot be interrupted"
					 : "sleeps";
	return 0;
}

void process_close(struct process *p)
{
	if (p->core)
		core_close(p->core);
}

/* ------------------------------------------------------------------------------------------------------ symbols --- */

struct object {
	struct process *p;
	uintptr_t bias, symbols, strings, gnu_hash, hash;
};

static bool get(struct process *p, uintptr_t address, void *to, size_t size)
{
	return p->reader.read(&p->reader, address, to, size);
}

/* The loader may have made an address of an offset. */
static uintptr_t address_of(const struct object *o, uintptr_t value)
{
	return value < o->bias ? value + o->bias : value;
}

static bool dynamic_read(struct object *o, uintptr_t at)
{
	ElfW(Dyn) d;

	for (unsigned i = 0; i < 512 && get(o->p, at + i * sizeof(d), &d, sizeof(d)) && d.d_tag != DT_NULL; i++) {
		uintptr_t value = address_of(o, d.d_un.d_ptr);

		if (d.d_tag == DT_SYMTAB)
			o->symbols = value;
		else if (d.d_tag == DT_STRTAB)
			o->strings = value;
		else if (d.d_tag == DT_GNU_HASH)
			o->gnu_hash = value;
		else if (d.d_tag == DT_HASH)
			o->hash = value;
	}
	return o->symbols && o->strings && (o->gnu_hash || o->hash);
}

/* An object's file begins at this address. */
static bool object_read(struct object *o, struct process *p, uintptr_t start)
{
	uintptr_t dynamic = 0;
	bool loaded = false;
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	*o = (struct object){.p = p};
	if (!get(p, start, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    head.e_phentsize != sizeof(part))
		return false;
	for (unsigned i = 0; i < head.e_phnum && i < 128; i++) {
		if (!get(p, start + head.e_phoff + i * sizeof(part), &part, sizeof(part)))
			return false;
		if (part.p_type == PT_LOAD && !loaded) {
			o->bias = start - (part.p_vaddr - part.p_offset);
			loaded = true;
		}
		if (part.p_type == PT_DYNAMIC)
			dynamic = part.p_vaddr;
	}
	return loaded && dynamic && dynamic_read(o, dynamic + o->bias);
}

static uintptr_t symbol_at(const struct object *o, uint32_t index, const char *name)
{
	size_t length = strlen(name) + 1;
	char theirs[128];
	ElfW(Sym) s;

	if (length > sizeof(theirs) || !get(o->p, o->symbols + index * sizeof(s), &s, sizeof(s)) || !s.st_value ||
	    s.st_shndx == SHN_UNDEF || (s.st_info & 0xf) != STT_OBJECT ||
	    !get(o->p, o->strings + s.st_name, theirs, length) || memcmp(theirs, name, length) != 0)
		return 0;
	return s.st_value + o->bias;
}

static uintptr_t by_gnu_hash(const struct object *o, const char *name)
{
	struct {
		uint32_t buckets, first, words, shift;
	} head;
	uint32_t hash = 5381, index, theirs = 0;
	uintptr_t buckets, found = 0;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	if (!get(o->p, o->gnu_hash, &head, sizeof(head)) || !head.buckets)
		return 0;
	buckets = o->gnu_hash + sizeof(head) + head.words * sizeof(ElfW(Addr));
	if (!get(o->p, buckets + hash % head.buckets * 4ul, &index, 4) || index < head.first)
		return 0;
	for (unsigned n = 0; n < 100000 && !found && !(theirs & 1); n++, index++) {
		if (!get(o->p, buckets + head.buckets * 4ul + (index - head.first) * 4ul, &theirs, 4))
			return 0;
		if ((theirs | 1) == (hash | 1))
			found = symbol_at(o, index, name);
	}
	return found;
}

static uintptr_t by_hash(const struct object *o, const char *name)
{
	uintptr_t found = 0;
	uint32_t head[2]; /* buckets, symbols */

	if (!get(o->p, o->hash, head, sizeof(head)))
		return 0;
	for (uint32_t i = 0; i < head[1] && i < 1000000 && !found; i++)
		found = symbol_at(o, i, name);
	return found;
}

struct search {
	struct process *p;
	const char *name;
	uintptr_t found;
	unsigned objects;
};

static bool search_map(void *with, const struct contd__dump_map *map)
{
	struct search *s = with;
	struct object o;

	if (map->offset || !object_read(&o, s->p, map->start))
		return true;
	s->objects++;
	s->found = o.gnu_hash ? by_gnu_hash(&o, s->name) : by_hash(&o, s->name);
	return !s->found;
}

uintptr_t process_symbol(struct process *p, const char *name, unsigned *objectsp)
{
	struct search s = {p, name, 0, 0};

	p->reader.maps(&p->reader, search_map, &s);
	*objectsp = s.objects;
	return s.found;
}
