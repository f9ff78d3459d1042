/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "progress/closure.h"
#include "progress/inside.h"

#define P contd__progress
#define RANGES 8 /* executable segments of an object; more are left out, and their code is unknown */

struct object {
	struct object *next;
	uintptr_t base;
	char *path, *file, *name; /* its path; the path's last part; DT_SONAME, or the file's */
	char **needed;
	uint32_t needed_count, ranges;
	struct contd__code range[RANGES];
	bool program, seen, known, closure;
};

static struct object *objects;
static bool lacking;      /* out of memory: nothing is known */
static char *libc_folder; /* with the slash at its end */

/* Functions that a program or a tool may define in the place of the C library's. MPI calls them. */
static const char *const replaced[] = {
	"malloc",
	"free",
	"calloc",
	"realloc",
	"memalign",
	"posix_memalign",
	"aligned_alloc",
	"mmap",
	"munmap",
	"brk",
	"sbrk",
	"open",
	"close",
	"read",
	"write",
	"writev",
	"readv",
	"poll",
	"epoll_wait",
	"select",
	"send",
	"recv",
	"sendmsg",
	"recvmsg",
	"memcpy",
	"memmove",
	"memset",
	"strdup",
	"getenv",
	"clock_gettime",
	"gettimeofday",
	"sched_yield",
	"usleep",
	"nanosleep",
	"printf",
	"fprintf",
	"vfprintf",
	"vsnprintf",
	"pthread_create",
	"pthread_mutex_lock",
	"abort",
	"syslog",
	"pthread_mutex_unlock",
	"dlsym",
	"ioctl",
	"syscall",
};

/* ----------------------------------------------------------------------------------------------- what is loaded --- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The loader relocates the addresses of the dynamic section in place, but not those of the vDSO. */
static const char *text_at(const struct object *o, const ElfW(Dyn) * table, ElfW(Xword) offset)
{
	ElfW(Addr) strings = 0;

	for (const ElfW(Dyn) *d = table; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			strings = d->d_un.d_ptr;
	if (!strings)
		return "";
	return (const char *)(strings < o->base ? strings + o->base : strings) + offset;
}

static bool read_dynamic(struct object *o, const ElfW(Dyn) * table)
{
	uint32_t n = 0;

	for (const ElfW(Dyn) *d = table; d->d_tag != DT_NULL; d++)
		n += d->d_tag == DT_NEEDED;
	o->needed = calloc(n + 1, sizeof(*o->needed));
	if (!o->needed)
		return false;
	for (const ElfW(Dyn) *d = table; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SONAME && !o->name && !(o->name = strdup(text_at(o, table, d->d_un.d_val))))
			return false;
		if (d->d_tag == DT_NEEDED && !(o->needed[o->needed_count++] = strdup(text_at(o, table, d->d_un.d_val))))
			return false;
	}
	return true;
}

static void forget(struct object *o)
{
	for (uint32_t i = 0; o->needed && i < o->needed_count; i++)
		free(o->needed[i]);
	free(o->needed);
	free(o->path);
	free(o->name);
	free(o);
}

static struct object *object_of(const struct dl_phdr_info *info, bool first)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->base = info->dlpi_addr;
	o->program = first;
	o->path = strdup(info->dlpi_name ? info->dlpi_name : "");
	if (!o->path)
		goto fail;
	o->file = (char *)last_part(o->path);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X && o->ranges < RANGES)
			o->range[o->ranges++] =
				(struct contd__code){o->base + p->p_vaddr, o->base + p->p_vaddr + p->p_memsz, false};
		if (p->p_type == PT_DYNAMIC && !read_dynamic(o, (const ElfW(Dyn) *)(o->base + p->p_vaddr)))
			goto fail;
	}
	if (!o->name && !(o->name = strdup(o->file)))
		goto fail;
	return o;
fail:
	forget(o);
	return NULL;
}

struct walk {
	struct object **last;
	bool first;
};

/* For dl_iterate_phdr(3), which holds a lock of the loader's meanwhile: so everything is copied. */
static int meet(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *walk = data;
	bool first = walk->first;
	struct object *o;

	(void)size;
	walk->first = false;
	for (o = objects; o; o = o->next)
		if (o->base == info->dlpi_addr && !strcmp(o->path, info->dlpi_name ? info->dlpi_name : "")) {
			o->seen = true;
			return 0;
		}
	o = object_of(info, first);
	if (!o) {
		lacking = true;
		return 1;
	}
	o->seen = true;
	while (*walk->last)
		walk->last = &(*walk->last)->next;
	*walk->last = o;
	return 0;
}

static void look(void)
{
	struct walk walk = {&objects, true};
	struct object **at = &objects;

	for (struct object *o = objects; o; o = o->next)
		o->seen = false;
	dl_iterate_phdr(meet, &walk);
	while (*at) {
		struct object *o = *at;

		if (o->seen) {
			at = &o->next;
		} else {
			*at = o->next;
			forget(o);
		}
	}
}

static struct object *object_at(uintptr_t address)
{
	for (struct object *o = objects; o; o = o->next)
		for (uint32_t i = 0; i < o->ranges; i++)
			if (address >= o->range[i].begin && address < o->range[i].end)
				return o;
	return NULL;
}

/* -------------------------------------------------------------------------------------------------- the closure --- */

static void close_over(struct object *o)
{
	o->closure = true;
	for (uint32_t i = 0; i < o->needed_count; i++)
		for (struct object *x = objects; x; x = x->next)
			if (!x->closure && !x->program &&
			    (!strcmp(x->name, o->needed[i]) || !strcmp(x->file, last_part(o->needed[i]))))
				close_over(x);
}

static void close_over_address(const void *address)
{
	struct object *o = address ? object_at((uintptr_t)address) : NULL;

	if (o && !o->closure)
		close_over(o);
}

/* Pure code: it takes no lock, keeps nothing, and calls nothing back. */
static bool is_pure(const struct object *o)
{
	return !strcmp(o->name, "libm.so.6") || !strcmp(o->name, "libmvec.so.1");
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static int by_begin(const void *a, const void *b)
{
	const struct contd__code *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void publish(uint64_t generation)
{
	struct contd__places *before = P.places, *now = NULL;
	uint32_t n = 0;

	for (struct object *o = objects; o; o = o->next)
		n += o->ranges;
	if (!lacking)
		now = malloc(sizeof(*now) + n * sizeof(now->code[0]));
	if (now) {
		now->generation = generation;
		now->count = 0;
		for (struct object *o = objects; o; o = o->next)
			for (uint32_t i = 0; i < o->ranges; i++) {
				now->code[now->count] = o->range[i];
				now->code[now->count++].closure = o->closure && !is_pure(o);
			}
		qsort(now->code, now->count, sizeof(now->code[0]), by_begin);
	}
	/* Only handlers of this thread read it: none is in the old one now. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&P.places, now);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	free(before);
}

void contd__closure_read(bool by_mpi)
{
	uint64_t generation = contd__load_seq(&P.loads);
	bool again;

	look();
	for (struct object *o = objects; o; o = o->next) {
		if (o->known)
			continue;
		o->known = true;
		if (!o->closure &&
		    (by_mpi || begins(o->file, "linux-vdso") || (libc_folder && begins(o->path, libc_folder))))
			close_over(o);
	}
	/* What an object of the closure needs may have been loaded after it. */
	do {
		again = false;
		for (struct object *o = objects; o; o = o->next)
			for (uint32_t i = 0; o->closure && i < o->needed_count; i++)
				for (struct object *x = objects; x; x = x->next)
					if (!x->closure && !x->program && !strcmp(x->name, o->needed[i])) {
						close_over(x);
						again = true;
					}
	} while (again);
	publish(generation);
}

void contd__closure_before(void)
{
	look();
	for (struct object *o = objects; o; o = o->next)
		o->known = true;
}

/* contd's own libraries apart, does something in the process use contd? */
static bool uses_contd(void)
{
	for (struct object *o = objects; o; o = o->next) {
		if (begins(o->file, "libcontd-doorbell") || o == object_at((uintptr_t)contd__closure_after))
			continue;
		for (uint32_t i = 0; i < o->needed_count; i++)
			if (begins(o->needed[i], "libcontd"))
				return true;
	}
	return false;
}

static void close_over_folder(const struct object *mpi)
{
	size_t folder = (size_t)(mpi->file - mpi->path);

	for (struct object *o = objects; o; o = o->next)
		if (!o->closure && (size_t)(o->file - o->path) == folder && !strncmp(o->path, mpi->path, folder) &&
		    begins(o->file, "libmpi"))
			close_over(o);
}

const char *contd__closure_after(uintptr_t address)
{
	const struct object *mpi, *c;
	const char *cannot = "the libraries of the process cannot be listed (out of memory)";

	look();
	if (lacking)
		return cannot;
	for (struct object *o = objects; o; o = o->next)
		if (!o->known && !o->closure)
			close_over(o); /* loaded in MPI_Init */
	mpi = object_at(address);
	c = object_at((uintptr_t)dlsym(RTLD_NEXT, "gnu_get_libc_version"));
	if (!mpi || mpi->program)
		return "MPI is linked into the program, and not loaded as a shared library";
	if (!c || c->program)
		return "the C library is not found";
	if (uses_contd())
		return "the program uses contd itself, and can say where it computes (contd_compute_begin)";
	libc_folder = strndup(c->path, (size_t)(c->file - c->path));
	close_over_address((const void *)address);
	close_over_folder(mpi);
	close_over_address((const void *)contd__closure_after);
	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++) {
		close_over_address(dlsym(RTLD_DEFAULT, replaced[i]));
		close_over_address(dlsym(RTLD_NEXT, replaced[i]));
	}
	/* operator new and delete, if something in the closure is C++. */
	for (struct object *o = objects; o; o = o->next)
		if (o->closure && begins(o->name, "libstdc++.so")) {
			close_over_address(dlsym(RTLD_DEFAULT, "_Znwm"));
			close_over_address(dlsym(RTLD_DEFAULT, "_ZdlPv"));
		}
	for (struct object *o = objects; o; o = o->next)
		if (!o->closure && (begins(o->name, "ld-linux") || begins(o->name, "ld64.so") ||
				    begins(o->file, "linux-vdso") || begins(o->file, "libcontd") ||
				    begins(o->name, "libquadmath.so"))) /* printf() may call it: callers.c */
			close_over(o);
	/* What it has loaded from the C library's folder until now was judged by its name alone. */
	for (struct object *o = objects; o; o = o->next)
		o->known = true;
	contd__closure_read(true);
	return lacking ? cannot : NULL;
}

bool contd__in_closure(uintptr_t address)
{
	const struct contd__places *places = P.places;

	for (uint32_t i = 0; places && i < places->count; i++)
		if (address >= places->code[i].begin && address < places->code[i].end)
			return places->code[i].closure;
	return false;
}
