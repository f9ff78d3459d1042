/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/note.h"
#include "progress/closure.h"
#include "progress/inside.h"
#include "progress/next.h"
#include "progress/opened.h"

#define P contd__progress
#define RANGES 8 /* executable segments of an object; more are left out, and their code is unknown */

struct object {
	struct object *next;
	uintptr_t base;
	const void *dynamic;      /* its dynamic section */
	char *path, *file, *name; /* its path; the path's last part; DT_SONAME, or the file's */
	char **needed;
	struct object **opened; /* by dlopen(3) in its code */
	uint32_t needed_count, opened_count, ranges;
	struct contd__code range[RANGES];
	bool program, seen, known, closure;
	bool theirs;  /* the program has opened it, or opened what needs it, since the libraries were last read */
	bool core;    /* contd's core is in it */
	bool imports; /* who defines what it imports was looked up */
};

static struct object *objects;
static bool lacking; /* out of memory: nothing is known */

/* Functions that a program or a tool may define in the place of the C library's, and that the C library then calls
 * itself. Other ones are found by what the closure imports. */
static const char *const replaced[] = {
	"malloc",         "free",          "calloc", "realloc", "memalign",
	"posix_memalign", "aligned_alloc", "valloc", "pvalloc", "malloc_usable_size",
};

/* ----------------------------------------------------------------------------------------------- what is loaded --- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
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
	free(o->opened);
	free(o->path);
	free(o->name);
	free(o);
}

/* Is contd's among these notes? */
static bool has_note(const char *at, size_t size)
{
	while (size >= sizeof(struct contd__note)) {
		const struct contd__note *n = (const struct contd__note *)(const void *)at;
		size_t whole = sizeof(ElfW(Nhdr)) + ((n->name_size + 3) & ~3u) + ((n->size + 3) & ~3u);

		if (n->name_size == sizeof(CONTD_NOTE_NAME) && n->type == CONTD_NOTE_TYPE &&
		    !memcmp(n->name, CONTD_NOTE_NAME, sizeof(CONTD_NOTE_NAME)))
			return true;
		if (whole > size)
			break;
		at += whole;
		size -= whole;
	}
	return false;
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
			o->range[o->ranges++] = (struct contd__code){o->base + p->p_vaddr,
								     o->base + p->p_vaddr + p->p_memsz, false, false};
		if (p->p_type == PT_NOTE && p->p_align <= 4)
			o->core |= has_note((const char *)(o->base + p->p_vaddr), p->p_memsz);
		if (p->p_type == PT_DYNAMIC) {
			o->dynamic = (const void *)(o->base + p->p_vaddr);
			if (!read_dynamic(o, o->dynamic))
				goto fail;
		}
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

/* No edge leads to it any more. */
static void unlink_object(const struct object *gone)
{
	for (struct object *o = objects; o; o = o->next) {
		uint32_t kept = 0;

		for (uint32_t i = 0; i < o->opened_count; i++)
			if (o->opened[i] != gone)
				o->opened[kept++] = o->opened[i];
		o->opened_count = kept;
	}
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
			unlink_object(o);
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

static bool is_needed(const struct object *o, const char *name)
{
	return !strcmp(o->name, name) || !strcmp(o->file, last_part(name));
}

static void close_over(struct object *o)
{
	o->closure = true;
	for (uint32_t i = 0; i < o->needed_count; i++)
		for (struct object *x = objects; x; x = x->next)
			if (!x->closure && !x->program && is_needed(x, o->needed[i]))
				close_over(x);
	for (uint32_t i = 0; i < o->opened_count; i++)
		if (!o->opened[i]->closure && !o->opened[i]->program)
			close_over(o->opened[i]);
}

static void close_over_address(const void *address)
{
	struct object *o = address ? object_at((uintptr_t)address) : NULL;

	if (o && !o->closure)
		close_over(o);
}

/* A program may have an entry of its linkage table as the address of a function that it does not define. */
static bool defines(const struct object *o, const void *address)
{
	ElfW(Sym) *symbol = NULL;
	Dl_info info;

	return !o->program || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
	       symbol->st_shndx != SHN_UNDEF;
}

/* What code of the closure calls by that name belongs to it, whichever library defines it: a tool, for example, that
 * stands in front of the C library, or in front of this one. */
static void close_over_name(const char *name)
{
	const void *address = dlsym(RTLD_DEFAULT, name);
	const struct object *o = address ? object_at((uintptr_t)address) : NULL;

	if (o && defines(o, address))
		close_over_address(address);
	if (o && (o->program || o == object_at((uintptr_t)contd__closure_after)))
		close_over_address(dlsym(RTLD_NEXT, name));
}

/* The opener and what it has opened. false: that was loaded after the libraries were listed. */
static bool opened(uintptr_t caller, const void *dynamic)
{
	struct object *from = caller ? object_at(caller) : NULL, *o = objects, **larger;

	while (o && o->dynamic != dynamic)
		o = o->next;
	if (!o)
		return false;
	if (o->program || o == from)
		return true;
	if (!caller) {
		if (!o->closure)
			close_over(o);
		return true;
	}
	for (uint32_t i = 0; from && i < from->opened_count; i++)
		if (from->opened[i] == o)
			return true;
	if (!from)
		return true; /* code that was made at run time */
	larger = realloc(from->opened, (from->opened_count + 1) * sizeof(struct object *));
	if (!larger) {
		lacking = true;
		return true;
	}
	from->opened = larger;
	from->opened[from->opened_count++] = o;
	return true;
}

/* ------------------------------------------------------------------------------------------------ what it calls --- */

/* Names, each once, one after the other. */
static struct {
	char *text;
	size_t size, room;
	size_t *place; /* open addressing: where a name begins, and 1 more; 0: free */
	uint32_t count, places;
} names;

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 16777619u;
	return hash;
}

static bool more_places(void)
{
	uint32_t n = names.places ? 2 * names.places : 1024, i;
	size_t *place = calloc(n, sizeof(*place));

	if (!place)
		return false;
	for (uint32_t k = 0; k < names.places; k++) {
		if (!names.place[k])
			continue;
		i = hash_of(names.text + names.place[k] - 1) & (n - 1);
		while (place[i])
			i = (i + 1) & (n - 1);
		place[i] = names.place[k];
	}
	free(names.place);
	names.place = place;
	names.places = n;
	return true;
}

static bool add_name(const char *name)
{
	size_t size = strlen(name) + 1;
	uint32_t i;

	if (2 * (names.count + 1) > names.places && !more_places())
		return false;
	for (i = hash_of(name) & (names.places - 1); names.place[i]; i = (i + 1) & (names.places - 1))
		if (!strcmp(names.text + names.place[i] - 1, name))
			return true;
	if (names.size + size > names.room) {
		size_t room = 2 * (names.room + size + 4096);
		char *text = realloc(names.text, room);

		if (!text)
			return false;
		names.text = text;
		names.room = room;
	}
	memcpy(names.text + names.size, name, size);
	names.place[i] = names.size + 1;
	names.size += size;
	names.count++;
	return true;
}

/* Called by the loader or the compiler's start-up code only, and often defined by the program. */
static bool is_of_start(const char *name)
{
	static const char *const of_start[] = {"", "main", "_init", "_fini", "__gmon_start__", "__cxa_finalize"};

	for (size_t i = 0; i < sizeof(of_start) / sizeof(of_start[0]); i++)
		if (!strcmp(name, of_start[i]))
			return true;
	return begins(name, "_ITM_");
}

/* The functions that it imports, as its relocations say. */
static bool read_imports(const struct object *o)
{
	const ElfW(Dyn) *table = o->dynamic;
	const ElfW(Rela) * lists[2] = {NULL, NULL};
	size_t sizes[2] = {0, 0};
	const ElfW(Sym) *symbols = NULL;

	for (const ElfW(Dyn) *d = table; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
		if (d->d_tag == DT_RELA)
			lists[0] = (const ElfW(Rela) *)d->d_un.d_ptr;
		if (d->d_tag == DT_RELASZ)
			sizes[0] = d->d_un.d_val;
		if (d->d_tag == DT_JMPREL)
			lists[1] = (const ElfW(Rela) *)d->d_un.d_ptr;
		if (d->d_tag == DT_PLTRELSZ)
			sizes[1] = d->d_un.d_val;
	}
	for (int k = 0; symbols && k < 2; k++)
		for (size_t i = 0; lists[k] && i < sizes[k] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Sym) *s = &symbols[ELF64_R_SYM(lists[k][i].r_info)];
			const char *name = text_at(o, table, s->st_name);

			if (s->st_shndx == SHN_UNDEF && ELF64_ST_TYPE(s->st_info) != STT_OBJECT &&
			    ELF64_ST_TYPE(s->st_info) != STT_TLS && !is_of_start(name) && !add_name(name))
				return false;
		}
	return true;
}

/* For dl_iterate_phdr(3): what is read must stay loaded. */
static int meet_again(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size, (void)data;
	for (struct object *o = objects; o; o = o->next)
		if (o->closure && !o->imports && o->base == info->dlpi_addr &&
		    !strcmp(o->path, info->dlpi_name ? info->dlpi_name : "")) {
			o->imports = true;
			/* The kernel's library has no relocations, nor has a program's list of functions. */
			if (!begins(o->file, "linux-vdso") && !read_imports(o))
				lacking = true;
		}
	return 0;
}

/* Returns whether something has imports that were not looked up yet. */
static bool close_over_imports(void)
{
	bool any = false;

	for (struct object *o = objects; o; o = o->next)
		any |= o->closure && !o->imports;
	if (!any)
		return false;
	dl_iterate_phdr(meet_again, NULL);
	for (struct object *o = objects; o; o = o->next)
		o->imports |= o->closure; /* unloaded meanwhile */
	for (size_t at = 0; at < names.size; at += strlen(names.text + at) + 1)
		close_over_name(names.text + at);
	free(names.text);
	free(names.place);
	memset(&names, 0, sizeof(names));
	return true;
}

/* Until nothing is added any more. */
static void close_over_all(void)
{
	do
		for (struct object *o = objects; o; o = o->next)
			if (o->closure)
				close_over(o);
	while (close_over_imports());
}

/* Pure code: it takes no lock, keeps nothing, and calls nothing back. */
static bool is_pure(const struct object *o)
{
	return !strcmp(o->name, "libm.so.6") || !strcmp(o->name, "libmvec.so.1");
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
				now->code[now->count].program = o->program;
				now->code[now->count++].closure = o->closure && !is_pure(o);
			}
		qsort(now->code, now->count, sizeof(now->code[0]), by_begin);
	}
	/* Handlers read it, of this thread and in their turn: none is in the old one now. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&P.generation, generation);
	contd__store(&P.places, now);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	free(before);
}

/*
 * glibc loads these by itself, past dlopen(3): for names of users and hosts (nsswitch.conf(5), and libidn2), for
 * character sets (gconv, iconv(3)), and to leave a thread's stack (pthread_cancel(3), backtrace(3)). printf(3) may call
 * libquadmath: callers.c.
 */
static bool is_the_c_library_s(const struct object *o)
{
	return begins(o->file, "libnss_") || strstr(o->path, "/gconv/") || begins(o->file, "libidn2.so") ||
	       begins(o->file, "libgcc_s.so") || begins(o->file, "libquadmath.so");
}

static void mark_theirs(struct object *o)
{
	o->theirs = true;
	for (uint32_t i = 0; i < o->needed_count; i++)
		for (struct object *x = objects; x; x = x->next)
			if (!x->known && !x->theirs && is_needed(x, o->needed[i]))
				mark_theirs(x);
}

/* A thread may have opened it while another one was in MPI. A library that the closure opens belongs to the closure,
 * too: close_over_all(). */
static void find_theirs(void)
{
	for (struct object *o = objects; o; o = o->next)
		for (uint32_t i = 0; !o->closure && i < o->opened_count; i++)
			if (!o->opened[i]->known && !o->opened[i]->theirs)
				mark_theirs(o->opened[i]);
}

static void read_all(bool by_mpi)
{
	uint64_t generation = contd__load_seq(&P.loads);
	struct contd__opened result;

	do { /* what another thread loads after the look may be found loaded by its name; so look once more */
		look();
		result = contd__opened_each(opened);
	} while (result.unknown);
	lacking |= result.lost;
	contd__store(&P.unfound, result.unfound);
	find_theirs();
	for (struct object *o = objects; o; o = o->next) {
		if (o->known)
			continue;
		o->known = true;
		if (!o->closure && ((by_mpi && !o->theirs) || begins(o->file, "linux-vdso") || is_the_c_library_s(o)))
			close_over(o);
	}
	close_over_all();
	publish(generation);
}

/* One thread at a time, with MPI_THREAD_MULTIPLE. None waits: it may hold a lock of the loader's, in a constructor that
 * calls MPI, and the one that reads needs that. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static uint32_t unread_of_mpi; /* what one has left to the next reader, is MPI's */

void contd__closure_read(bool by_mpi)
{
	char *error;

	if (pthread_mutex_trylock(&reading)) {
		/* Ticks pass until the next call reads, because `loads` has another value. */
		if (by_mpi)
			contd__store_seq(&unread_of_mpi, 1);
		return;
	}
	by_mpi |= contd__xchg(&unread_of_mpi, 0) != 0;
	/* Another thread is in MPI, and MPI may have loaded it there. */
	by_mpi |= P.multiple && contd__callers_inside_sig() > 1;
	error = contd__error_take();
	read_all(by_mpi);
	contd__error_give(error);
	pthread_mutex_unlock(&reading);
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
		if (o->core && !begins(o->file, "libcontd.so"))
			return true; /* linked statically */
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

static void find_hooks(void)
{
	static const char *const of_malloc[HOOKS] = {"__malloc_hook",   "__free_hook", "__realloc_hook",
						     "__memalign_hook", "__morecore",  "__after_morecore_hook"};
	uint32_t n = 0;

	for (uint32_t i = 0; i < HOOKS; i++)
		if ((P.hooks[n] = (void *const volatile *)dlsym(RTLD_DEFAULT, of_malloc[i])) != NULL)
			n++;
}

static const char *read_after(uintptr_t address)
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
	close_over_address((const void *)address);
	close_over_folder(mpi);
	close_over_address((const void *)contd__closure_after);
	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
		close_over_name(replaced[i]);
	find_hooks();
	/* operator new and delete, if something in the closure is C++. */
	for (struct object *o = objects; o; o = o->next)
		if (o->closure && begins(o->name, "libstdc++.so")) {
			close_over_name("_Znwm");
			close_over_name("_ZdlPv");
		}
	for (struct object *o = objects; o; o = o->next)
		if (!o->closure &&
		    (begins(o->name, "ld-linux") || begins(o->name, "ld64.so") || begins(o->file, "linux-vdso") ||
		     begins(o->file, "libcontd") || is_the_c_library_s(o)))
			close_over(o);
	for (struct object *o = objects; o; o = o->next)
		o->known = true;
	read_all(true);
	return lacking ? cannot : NULL;
}

const char *contd__closure_after(uintptr_t address)
{
	char *error = contd__error_take();
	const char *why = read_after(address);

	contd__error_give(error);
	return why;
}

bool contd__is_of_mpi(uintptr_t address)
{
	const struct contd__places *places;
	bool is = false;

	if (pthread_mutex_trylock(&reading))
		return false; /* not known */
	places = P.places;
	for (uint32_t i = 0; places && i < places->count; i++)
		if (address >= places->code[i].begin && address < places->code[i].end)
			is = places->code[i].closure && !places->code[i].program;
	pthread_mutex_unlock(&reading);
	return is;
}
