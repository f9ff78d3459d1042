/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "command/program.h"
#include "command/status.h"

/* ---------------------------------------------------------------------------------------------------- ELF files --- */

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* this command's; the linker defines it */

struct elf {
	const char *at;
	size_t size;
	const ElfW(Ehdr) * head;
	const ElfW(Phdr) * part;
};

static void elf_end(struct elf *e)
{
	munmap((void *)(uintptr_t)e->at, e->size);
}

/* `n` bytes at this offset of the file; NULL if it is shorter. */
static const void *elf_at(const struct elf *e, uint64_t offset, uint64_t n)
{
	return offset <= e->size && n <= e->size - offset ? e->at + offset : NULL;
}

/* 0; ENOEXEC: no ELF file, or damaged; EXDEV: for another kind of processor than this command. */
static int elf_begin(struct elf *e, int fd)
{
	struct stat status;
	const ElfW(Ehdr) *own = &__ehdr_start;
	int rc = ENOEXEC;

	if (fstat(fd, &status))
		return errno;
	if ((size_t)status.st_size < sizeof(*e->head))
		return ENOEXEC;
	e->size = (size_t)status.st_size;
	e->at = mmap(NULL, e->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (e->at == MAP_FAILED)
		return errno;
	e->head = (const ElfW(Ehdr) *)(const void *)e->at;
	if (memcmp(e->head->e_ident, ELFMAG, SELFMAG))
		goto bad;
	rc = EXDEV;
	if (e->head->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] ||
	    e->head->e_ident[EI_DATA] != own->e_ident[EI_DATA] || e->head->e_machine != own->e_machine)
		goto bad;
	rc = ENOEXEC;
	e->part = elf_at(e, e->head->e_phoff, (uint64_t)e->head->e_phnum * sizeof(*e->part));
	if (e->part && e->head->e_phentsize == sizeof(*e->part))
		return 0;
bad:
	elf_end(e);
	return rc;
}

static int elf_open(struct elf *e, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return errno;
	rc = elf_begin(e, fd);
	close(fd);
	return rc;
}

static const ElfW(Phdr) * elf_part(const struct elf *e, uint32_t type)
{
	for (unsigned i = 0; i < e->head->e_phnum; i++)
		if (e->part[i].p_type == type)
			return &e->part[i];
	return NULL;
}

/* A text of the file, ended by a 0 within it; NULL if there is none at this offset. */
static const char *elf_text(const struct elf *e, uint64_t offset)
{
	const char *text = elf_at(e, offset, 1);

	return text && memchr(text, 0, e->size - offset) ? text : NULL;
}

/* Where in the file lies what is loaded at this address? UINT64_MAX: nowhere. */
static uint64_t elf_offset(const struct elf *e, uint64_t address)
{
	for (unsigned i = 0; i < e->head->e_phnum; i++) {
		const ElfW(Phdr) *p = &e->part[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
			return p->p_offset + (address - p->p_vaddr);
	}
	return UINT64_MAX;
}

/* Open MPI and Intel MPI; MPICH; MPI 5's standard ABI. Libraries for Fortran need one of them. */
static bool is_mpi(const char *object)
{
	return !strncmp(object, "libmpi.so", 9) || !strncmp(object, "libmpich.so", 11) ||
	       !strncmp(object, "libmpi_abi.so", 13);
}

bool library_mpi(const char *path, char *name, size_t size)
{
	const ElfW(Phdr) * dynamic;
	const ElfW(Dyn) * entry;
	uint64_t texts = UINT64_MAX;
	struct elf e;
	bool found = false;
	size_t n;

	if (elf_open(&e, path))
		return false;
	dynamic = elf_part(&e, PT_DYNAMIC);
	entry = dynamic ? elf_at(&e, dynamic->p_offset, dynamic->p_filesz) : NULL;
	n = entry ? dynamic->p_filesz / sizeof(*entry) : 0;
	for (size_t i = 0; i < n; i++)
		if (entry[i].d_tag == DT_STRTAB)
			texts = elf_offset(&e, entry[i].d_un.d_ptr);
	for (size_t i = 0; i < n && texts != UINT64_MAX && !found; i++) {
		const char *object = entry[i].d_tag == DT_NEEDED ? elf_text(&e, texts + entry[i].d_un.d_val) : NULL;

		if (object && is_mpi(object) && strlen(object) < size) {
			strcpy(name, object);
			found = true;
		}
	}
	elf_end(&e);
	return found;
}

/* ------------------------------------------------------------------------------------------------ where it lies --- */

/* A file that may be executed: 0 or why not. */
static int may_execute(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return errno;
	if (S_ISDIR(status.st_mode))
		return EACCES;
	return access(path, X_OK) ? errno : 0;
}

static int find(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH"), *end;
	int rc = ENOENT, why;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? may_execute(path) : ENAMETOOLONG;
	for (const char *at = folders ? folders : "/bin:/usr/bin";; at = end + 1) {
		end = strchrnul(at, ':');
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "", name) < PATH_MAX) {
			why = may_execute(path);
			if (!why)
				return 0;
			if (why != ENOENT && why != ENOTDIR)
				rc = why;
		}
		if (!*end)
			return rc;
	}
}

/*
 * The interpreter of a script, from its first line. That of "#!/usr/bin/env python3" is python3. false: no script, or
 * one whose line says something else.
 */
static bool interpreter(const char *path, char name[PATH_MAX])
{
	FILE *file = fopen(path, "re");
	char line[PATH_MAX], *word, *rest;
	bool script = file && fgets(line, sizeof(line), file) && !strncmp(line, "#!", 2);

	if (file)
		fclose(file);
	if (!script)
		return false;
	word = strtok_r(line + 2, " \t\n", &rest);
	if (word && !strcmp(strrchr(word, '/') ? strrchr(word, '/') + 1 : word, "env"))
		do
			word = strtok_r(NULL, " \t\n", &rest);
		while (word && (*word == '-' || strchr(word, '=')));
	if (!word)
		return false;
	strcpy(name, word);
	return true;
}

/* ------------------------------------------------------------------------------------------------ what it loads --- */

/* The loader ignores LD_PRELOAD, but for libraries of the system, where the program gets rights that its user lacks. */
static bool gets_rights(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return false;
	return (status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
	       (status.st_mode & S_ISGID && status.st_gid != getegid()) ||
	       (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

/* All that the loader prints with --list; "" if it prints nothing. */
static char *list(const char *loader, const char *path)
{
	char *text = NULL, *line = NULL;
	size_t size = 0, room = 0;
	int ends[2], status;
	FILE *from, *to;
	pid_t child;

	to = open_memstream(&text, &size);
	if (!to)
		return NULL;
	if (pipe2(ends, O_CLOEXEC)) {
		fclose(to);
		free(text);
		return NULL;
	}
	child = fork();
	if (child == 0) {
		int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

		unsetenv("LD_PRELOAD"); /* what is preloaded already is not the program's own */
		if (dup2(ends[1], 1) == 1 && dup2(nothing, 2) == 2)
			execl(loader, loader, "--list", path, (char *)NULL);
		_exit(STATUS_CANNOT_RUN);
	}
	close(ends[1]);
	from = fdopen(ends[0], "r");
	/* "	libc.so.6 => /lib/libc.so.6 (0x...)", or a path without an arrow. */
	while (from && getline(&line, &room, from) > 0) {
		char *rest, *word = strtok_r(line, " \t\n", &rest);

		if (word)
			fprintf(to, "%s\n", strrchr(word, '/') ? strrchr(word, '/') + 1 : word);
	}
	free(line);
	if (from)
		fclose(from);
	else
		close(ends[0]);
	if (child > 0)
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	fclose(to);
	return text;
}

int program_look(const char *name, struct program *p)
{
	const ElfW(Phdr) * loader;
	char next[PATH_MAX];
	struct elf e;
	int rc = find(name, p->path);

	p->unpreloaded = NULL;
	p->objects = NULL;
	if (rc)
		return rc;
	/* A script's interpreter may be a script, too: the kernel follows four of them. */
	for (int i = 0; i < 4 && interpreter(p->path, next); i++) {
		if (gets_rights(p->path))
			break; /* the kernel takes these rights from the interpreter, not from the script */
		rc = find(next, p->path);
		if (rc)
			return rc;
	}
	rc = elf_open(&e, p->path);
	if (rc == EXDEV)
		p->unpreloaded = "it is built for another kind of processor than contd's libraries";
	if (rc)
		return 0; /* unreadable, or of a format that only the kernel knows: what it loads is not known */
	loader = elf_part(&e, PT_INTERP);
	if (!loader || !elf_text(&e, loader->p_offset))
		p->unpreloaded = "it is statically linked";
	else if (gets_rights(p->path))
		p->unpreloaded =
			"it is set-user-ID, set-group-ID or has capabilities, and the loader preloads nothing then";
	else
		p->objects = list(elf_text(&e, loader->p_offset), p->path);
	elf_end(&e);
	return 0;
}

void program_end(struct program *p)
{
	free(p->objects);
	p->objects = NULL;
}

static const char *next_object(const char *at, size_t *lengthp)
{
	*lengthp = strcspn(at, "\n");
	return *lengthp ? at : NULL;
}

bool program_loads(const struct program *p, const char *object)
{
	size_t length;

	for (const char *at = p->objects ? p->objects : ""; next_object(at, &length); at += length + 1)
		if (length == strlen(object) && !memcmp(at, object, length))
			return true;
	return false;
}

const char *program_mpi(const struct program *p, size_t *lengthp)
{
	for (const char *at = p->objects ? p->objects : ""; next_object(at, lengthp); at += *lengthp + 1)
		if (is_mpi(at))
			return at;
	return NULL;
}
