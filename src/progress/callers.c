/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This library stands in front of the functions of the C library that call the program back: code of the program's that
 * runs below them has the C library in the middle of something. They are marked while they are under way (inside.h).
 * So are the program's signal handlers, which may have interrupted anything: each runs below a function of this file.
 *
 * Some functions hand the C library a callback that it calls at any time later, with a lock held: then there is no
 * progress any more.
 */
#include <argp.h>
#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <error.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <link.h>
#include <mpi.h>
#include <printf.h>
#include <pthread.h>
#include <pty.h>
#include <search.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "mpi/library.h"
#include "progress/begin.h"
#include "progress/call.h"
#include "progress/closure.h"
#include "progress/context.h"
#include "progress/inside.h"
#include "progress/next.h"
#include "progress/opened.h"
#include "progress/turns.h"

#define P contd__progress

#define ENTER(mark) contd__enter(&contd__inside.called, CONTD__FRAME, mark)
#define LEAVE(how, mark) contd__leave(&contd__inside.called, how, mark)

#define CALLS_BACK(type, name, parameters, arguments) \
	CONTD_API type name parameters; \
	type name parameters \
	{ \
		struct contd__mark before; \
		enum contd__entered how = ENTER(&before); \
		type result = NEXT_OF(name) arguments; \
\
		LEAVE(how, &before); \
		return result; \
	}
#define CALLS_BACK_VOID(name, parameters, arguments) \
	CONTD_API void name parameters; \
	void name parameters \
	{ \
		struct contd__mark before; \
		enum contd__entered how = ENTER(&before); \
\
		NEXT_OF(name) arguments; \
		LEAVE(how, &before); \
	}

typedef int compare(const void *, const void *);
typedef int compare_directories(const struct dirent **, const struct dirent **);
typedef int compare_directories64(const struct dirent64 **, const struct dirent64 **);

CALLS_BACK_VOID(qsort, (void *base, size_t n, size_t size, compare *by), (base, n, size, by))
CALLS_BACK_VOID(qsort_r, (void *base, size_t n, size_t size, int (*by)(const void *, const void *, void *), void *data),
		(base, n, size, by, data))
CALLS_BACK(void *, bsearch, (const void *key, const void *base, size_t n, size_t size, compare *by),
	   (key, base, n, size, by))
CALLS_BACK(void *, lfind, (const void *key, const void *base, size_t *n, size_t size, compare *by),
	   (key, base, n, size, by))
CALLS_BACK(void *, lsearch, (const void *key, void *base, size_t *n, size_t size, compare *by),
	   (key, base, n, size, by))
CALLS_BACK(void *, tsearch, (const void *key, void **root, compare *by), (key, root, by))
CALLS_BACK(void *, tfind, (const void *key, void *const *root, compare *by), (key, root, by))
CALLS_BACK(void *, tdelete, (const void *restrict key, void **restrict root, compare *by), (key, root, by))
CALLS_BACK_VOID(twalk, (const void *root, __action_fn_t action), (root, action))
#if __GLIBC_PREREQ(2, 30)
CALLS_BACK_VOID(twalk_r, (const void *root, void (*action)(const void *, VISIT, void *), void *data),
		(root, action, data))
#endif
CALLS_BACK_VOID(tdestroy, (void *root, __free_fn_t free_node), (root, free_node))
CALLS_BACK(int, ftw, (const char *path, __ftw_func_t each, int descriptors), (path, each, descriptors))
CALLS_BACK(int, ftw64, (const char *path, __ftw64_func_t each, int descriptors), (path, each, descriptors))
CALLS_BACK(int, nftw, (const char *path, __nftw_func_t each, int descriptors, int flags),
	   (path, each, descriptors, flags))
CALLS_BACK(int, nftw64, (const char *path, __nftw64_func_t each, int descriptors, int flags),
	   (path, each, descriptors, flags))
CALLS_BACK(int, scandir,
	   (const char *restrict path, struct dirent ***restrict list, int (*choose)(const struct dirent *),
	    compare_directories *by),
	   (path, list, choose, by))
CALLS_BACK(int, scandir64,
	   (const char *restrict path, struct dirent64 ***restrict list, int (*choose)(const struct dirent64 *),
	    compare_directories64 *by),
	   (path, list, choose, by))
CALLS_BACK(int, scandirat,
	   (int folder, const char *restrict path, struct dirent ***restrict list, int (*choose)(const struct dirent *),
	    compare_directories *by),
	   (folder, path, list, choose, by))
CALLS_BACK(int, scandirat64,
	   (int folder, const char *restrict path, struct dirent64 ***restrict list,
	    int (*choose)(const struct dirent64 *), compare_directories64 *by),
	   (folder, path, list, choose, by))
CALLS_BACK(int, glob,
	   (const char *restrict pattern, int flags, int (*failed)(const char *, int), glob_t *restrict paths),
	   (pattern, flags, failed, paths))
CALLS_BACK(int, glob64,
	   (const char *restrict pattern, int flags, int (*failed)(const char *, int), glob64_t *restrict paths),
	   (pattern, flags, failed, paths))
CALLS_BACK(FTS *, fts_open, (char *const *paths, int options, int (*by)(const FTSENT **, const FTSENT **)),
	   (paths, options, by))
CALLS_BACK(FTSENT *, fts_read, (FTS * fts), (fts))
CALLS_BACK(FTSENT *, fts_children, (FTS * fts, int options), (fts, options))
/* Those of programs that are built with _FILE_OFFSET_BITS=64. */
CALLS_BACK(FTS64 *, fts64_open, (char *const *paths, int options, int (*by)(const FTSENT64 **, const FTSENT64 **)),
	   (paths, options, by))
CALLS_BACK(FTSENT64 *, fts64_read, (FTS64 * fts), (fts))
CALLS_BACK(FTSENT64 *, fts64_children, (FTS64 * fts, int options), (fts, options))
CALLS_BACK_VOID(argp_help, (const struct argp *restrict argp, FILE *restrict stream, unsigned flags, char *name),
		(argp, stream, flags, name))
CALLS_BACK(error_t, argp_parse,
	   (const struct argp *restrict argp, int argc, char **restrict argv, unsigned flags, int *restrict end,
	    void *restrict input),
	   (argp, argc, argv, flags, end, input))
CALLS_BACK(int, pthread_once, (pthread_once_t * once, void (*routine)(void)), (once, routine))
CALLS_BACK_VOID(call_once, (once_flag * flag, void (*routine)(void)), (flag, routine))
/*
 * They call the handlers of pthread_atfork(3). In the child no thread would release what progress on another thread
 * holds now, so it must be done; in the child nothing is under way any more (begin.c).
 */
#define FORKS(type, name, parameters, arguments) \
	CONTD_API type name parameters; \
	type name parameters \
	{ \
		struct contd__mark before; \
		enum contd__entered how = ENTER(&before); \
		type result; \
\
		contd__add(&P.loading, 1); \
		contd__turn_over(); \
		result = NEXT_OF(name) arguments; \
		if (result != 0) \
			contd__sub(&P.loading, 1); \
		LEAVE(how, &before); \
		return result; \
	}
FORKS(pid_t, fork, (void), ())
FORKS(int, daemon, (int nochdir, int noclose), (nochdir, noclose))
FORKS(int, forkpty, (int *master, char *name, const struct termios *settings, const struct winsize *size),
      (master, name, settings, size))

/* Streams that the program has locked. A thread that was attached meanwhile gives more back than it has taken. */
static void locks(int n)
{
	if (contd__inside.high && (n > 0 || contd__inside.locks))
		contd__store(&contd__inside.locks, contd__inside.locks + (uint32_t)n);
	contd__add(&P.locked, (uint32_t)n);
	if (n > 0)
		contd__turn_wait();
}

CONTD_API void flockfile(FILE *stream)
{
	locks(1);
	NEXT_OF(flockfile)(stream);
}

CONTD_API int ftrylockfile(FILE *stream)
{
	int rc;

	locks(1);
	rc = NEXT_OF(ftrylockfile)(stream);
	if (rc)
		locks(-1);
	return rc;
}

CONTD_API void funlockfile(FILE *stream)
{
	NEXT_OF(funlockfile)(stream);
	locks(-1);
}

/* --------------------------------------------------------------------------------------------------- the loader --- */

CONTD_API int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
	struct contd__mark before;
	enum contd__entered how = ENTER(&before);
	int rc;

	contd__add(&P.loading, 1); /* for the handler of another thread; this one finds the mark */
	contd__turn_wait();
	rc = NEXT_OF(dl_iterate_phdr)(each, data);
	contd__sub(&P.loading, 1);
	LEAVE(how, &before);
	return rc;
}

/* The set of libraries changes, or has changed. */
static void loads(void)
{
	contd__inside.loads++;
	contd__add(&P.loads, 1);
}

/* Code of the closure, or of the program? That is asked when the libraries are read again. */
static void opens(const char *path, const void *caller)
{
	bool by_mpi = contd__load(&P.initializing) || contd__mark_is_live(&contd__inside.mpi, CONTD__FRAME);

	contd__opened_note(path, by_mpi ? 0 : (uintptr_t)caller);
}

/* When the thread is in nothing else that changes the set of libraries, and is one whose ticks are inspected; with
 * several threads that call MPI, any. `loading` keeps ticks away still. */
static void read_again(enum contd__entered how)
{
	if (!contd__load(&P.places) || how == ENTERED_LOOSE || (how == ENTERED_UNSEEN && !P.shared))
		return;
	if (P.shared)
		contd__turn_read();
	else
		contd__closure_read(false);
}

/* The last call of such a function is a jump, also where the rest is not optimized. */
#if defined(__GNUC__) && !defined(__clang__)
#define JUMPS __attribute__((optimize("O2"), optimize("omit-frame-pointer"), optimize("no-stack-protector")))
#else
#define JUMPS
#endif

/* By its name alone. A tick that is under way may read the libraries; the next ones pass, because of `loads`. Contd's
 * thread does not read them, and does not pass. */
static void loads_named(void)
{
	loads();
	if (!P.by_thread)
		contd__turn_wait();
}

static __attribute__((noinline)) void *open_path(const char *path, int mode, const void *caller)
{
	struct contd__mark before;
	enum contd__entered how = ENTER(&before);
	void *handle;

	contd__error_forget();
	contd__add(&P.loading, 1);
	contd__turn_wait();
	handle = NEXT_OF(dlopen)(path, mode);
	if (handle)
		opens(path, caller);
	loads();
	read_again(how);
	contd__sub(&P.loading, 1);
	LEAVE(how, &before);
	return handle;
}

/*
 * The loader looks at who calls: where it looks for a library that is given without a path depends on that. So such
 * calls are passed on by a jump, as if the caller had called the loader's own function. The libraries that they load
 * are unknown until the next call of MPI. The mark is of the loader's frame, which begins where that of this function
 * did; nothing takes it away, but once the loader has returned it is dead.
 */
CONTD_API JUMPS void *dlopen(const char *path, int mode)
{
	__typeof__(&dlopen) next = NEXT_OF(dlopen);
	uintptr_t frame = (uintptr_t)__builtin_dwarf_cfa() - 2 * sizeof(uintptr_t);

	if (!path)
		return next(path, mode);
	if (strchr(path, '/') && !strchr(path, '$'))
		return open_path(path, mode, __builtin_return_address(0));
	contd__error_forget();
	opens(path, __builtin_return_address(0));
	loads_named();
	contd__mark_next(&contd__inside.called, frame, (uintptr_t)__builtin_return_address(0));
	return next(path, mode);
}

/* What it loads beside the program's libraries is seen in the list of the main ones only, so its code is unknown. */
static __attribute__((noinline)) void *open_beside(Lmid_t where, const char *path, int mode)
{
	struct contd__mark before;
	enum contd__entered how = ENTER(&before);
	void *handle;

	contd__error_forget();
	contd__add(&P.loading, 1);
	contd__turn_wait();
	handle = NEXT_OF(dlmopen)(where, path, mode);
	loads();
	read_again(how);
	contd__sub(&P.loading, 1);
	LEAVE(how, &before);
	return handle;
}

CONTD_API JUMPS void *dlmopen(Lmid_t where, const char *path, int mode)
{
	__typeof__(&dlmopen) next = NEXT_OF(dlmopen);
	uintptr_t frame = (uintptr_t)__builtin_dwarf_cfa() - 2 * sizeof(uintptr_t);

	if (!path)
		return next(where, path, mode);
	if (where != LM_ID_BASE)
		return open_beside(where, path, mode);
	if (strchr(path, '/') && !strchr(path, '$'))
		return open_path(path, mode, __builtin_return_address(0));
	contd__error_forget();
	opens(path, __builtin_return_address(0));
	loads_named();
	contd__mark_next(&contd__inside.called, frame, (uintptr_t)__builtin_return_address(0));
	return next(where, path, mode);
}

CONTD_API int dlclose(void *handle)
{
	struct contd__mark before;
	enum contd__entered how = ENTER(&before);
	int rc;

	contd__error_forget();
	/* First this: who sees `loads` sees it, too (contd__call_read). */
	contd__add(&P.loading, 1);
	loads();
	contd__turn_wait();
	rc = NEXT_OF(dlclose)(handle);
	loads();
	read_again(how);
	contd__sub(&P.loading, 1);
	LEAVE(how, &before);
	return rc;
}

/* ------------------------------------------------------------------------------------------- callbacks for good --- */

/* Progress that is under way might call it still. Dekker: TURN_TICK is stored, and then this is loaded. */
static void calls_back_for_good(void)
{
	contd__store_seq(&P.user_code, 1);
	contd__turn_over();
}

#define FOR_GOOD(type, name, parameters, arguments) \
	CONTD_API type name parameters; \
	type name parameters \
	{ \
		calls_back_for_good(); \
		return NEXT_OF(name) arguments; \
	}

FOR_GOOD(FILE *, fopencookie, (void *restrict cookie, const char *restrict mode, cookie_io_functions_t functions),
	 (cookie, mode, functions))
/* Each Fortran library of gcc's needs libquadmath, which makes conversions when it is loaded. Its code counts as the
 * closure's (closure.c), and needs no more. */
static bool of_quadmath(const void *function)
{
	Dl_info info;

	return dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, "libquadmath.so");
}

#define CONVERSION(name, parameters, arguments, function) \
	CONTD_API int name parameters; \
	int name parameters \
	{ \
		if (contd__load(&P.main_runs) && !of_quadmath((const void *)(uintptr_t)(function))) \
			calls_back_for_good(); \
		return NEXT_OF(name) arguments; \
	}
CONVERSION(register_printf_specifier, (int letter, printf_function print, printf_arginfo_size_function sizes),
	   (letter, print, sizes), print)
CONVERSION(register_printf_type, (printf_va_arg_function take), (take), take)

/* Open MPI's Fortran makes error handlers without MPI's calls in C, which wrappers.c sees. All that they take are
 * addresses. */
typedef void create_errhandler(void *function, void *handler, MPI_Fint *error);

static void for_good_fortran(struct contd__next *found, void *function, void *handler, MPI_Fint *error)
{
	struct contd__mark mark;
	enum contd__entered how;
	create_errhandler *next;

	if (!contd__load(&found->found))
		contd__next_find_fortran(found);
	next = (create_errhandler *)contd__load(&found->found);
	if (!next) { /* this MPI does not have it */
		*error = MPI_ERR_OTHER;
		return;
	}
	how = contd__call_begin(CONTD__FRAME, &mark);
	contd__store(&P.user_code, 1);
	next(function, handler, error);
	contd__call_end(how, &mark);
}

#define FOR_GOOD_FORTRAN(name) \
	CONTD_API void name(void *function, void *handler, MPI_Fint *error); \
	void name(void *function, void *handler, MPI_Fint *error) \
	{ \
		static struct contd__next found = {#name, NULL}; \
\
		for_good_fortran(&found, function, handler, error); \
	}
#define FORTRAN_NAMES(of) \
	FOR_GOOD_FORTRAN(mpi_##of##_create_errhandler) \
	FOR_GOOD_FORTRAN(mpi_##of##_create_errhandler_) \
	FOR_GOOD_FORTRAN(mpi_##of##_create_errhandler__) \
	FOR_GOOD_FORTRAN(mpi_##of##_create_errhandler_f08_) \
	FOR_GOOD_FORTRAN(pmpi_##of##_create_errhandler) \
	FOR_GOOD_FORTRAN(pmpi_##of##_create_errhandler_) \
	FOR_GOOD_FORTRAN(pmpi_##of##_create_errhandler__) \
	FOR_GOOD_FORTRAN(pmpi_##of##_create_errhandler_f08_)
FORTRAN_NAMES(comm)
FORTRAN_NAMES(win)
FORTRAN_NAMES(file)

/* ---------------------------------------------------------------------------------------------- signal handlers --- */

/* The program's handlers. Kept when the signal gets no handler: the kernel may have one to run still. */
static sighandler_t handlers[_NSIG];
static bool contds[_NSIG]; /* contd's signal; also of the program, if it takes it later */
static struct contd__library contd_library;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	struct contd__mark before = contd__inside.handler;
	uintptr_t frame = CONTD__FRAME;
	/* On an alternate stack outside its own no mark is needed, because ticks pass there; and one that is left by
	 * siglongjmp(3) would stay. Below another handler that one's mark stays: this one may jump into it. */
	bool marks = contd__inside.high && contd__on_own_stack(frame) && !contd__mark_is_live(&before, frame);

	if (marks)
		contd__inside.handler = (struct contd__mark){frame, contd__back_at(frame)};
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* Whether it takes one argument or three, it is called in the same way. */
	((void (*)(int, siginfo_t *, void *))(void *)contd__load_acquire(&handlers[signo]))(signo, info, context);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (marks)
		contd__inside.handler = before;
}

#define STANDS_IN ((sighandler_t)(uintptr_t)on_signal)

static bool is_handler(sighandler_t handler)
{
	return handler != SIG_DFL && handler != SIG_IGN && handler != SIG_ERR && handler != SIG_HOLD;
}

static bool passes(int signo, const void *caller, bool sets)
{
	if (signo <= 0 || signo >= _NSIG)
		return true;
	if (contd__library_has(&contd_library, caller)) {
		if (sets) {
			contds[signo] = true;
			contd__store(&P.tick_signal, signo);
		}
		return true;
	}
	return contds[signo];
}

CONTD_API int sigaction(int signo, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction mine;
	sighandler_t before;
	int rc;

	if (passes(signo, __builtin_return_address(0), new != NULL))
		return NEXT_OF(sigaction)(signo, new, old);
	before = contd__load(&handlers[signo]);
	if (new &&is_handler(new->sa_handler) && new->sa_handler != STANDS_IN) {
		mine = *new;
		mine.sa_handler = STANDS_IN;
		/* Release: with the load in on_signal(), on any thread. */
		contd__store_release(&handlers[signo], new->sa_handler);
		new = &mine;
	}
	rc = NEXT_OF(sigaction)(signo, new, old);
	if (rc)
		contd__store_release(&handlers[signo], before);
	else if (old && old->sa_handler == STANDS_IN)
		old->sa_handler = before;
	return rc;
}

#define SETS_HANDLER(name) \
	CONTD_API sighandler_t name(int signo, sighandler_t handler); \
	sighandler_t name(int signo, sighandler_t handler) \
	{ \
		sighandler_t before, result; \
\
		if (!is_handler(handler) || passes(signo, __builtin_return_address(0), true)) { \
			result = NEXT_OF(name)(signo, handler); \
			return result == STANDS_IN ? contd__load(&handlers[signo]) : result; \
		} \
		before = contd__load(&handlers[signo]); \
		contd__store_release(&handlers[signo], handler); \
		result = NEXT_OF(name)(signo, STANDS_IN); \
		if (result == SIG_ERR) \
			contd__store_release(&handlers[signo], before); \
		return result == STANDS_IN ? before : result; \
	}
sighandler_t bsd_signal(int signo, sighandler_t handler);
sighandler_t __sysv_signal(int signo, sighandler_t handler);
SETS_HANDLER(signal)
SETS_HANDLER(bsd_signal)
SETS_HANDLER(ssignal)
SETS_HANDLER(sysv_signal)
SETS_HANDLER(__sysv_signal)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
SETS_HANDLER(sigset)
#pragma GCC diagnostic pop

/* ------------------------------------------------------------------------------------------------- other stacks --- */

/*
 * Stacks that are arrays on the thread's own stack. A coroutine there may be above frames that are under way, whose
 * marks would be taken for dead, and may have less room than it seems. Alternate stacks for handlers are remembered:
 * a program may go on there after a handler has returned, by longjmp(3).
 */
static bool goes_inside(const ucontext_t *to)
{
	uintptr_t low = (uintptr_t)to->uc_stack.ss_sp;

	return contd__inside.high && contd__on_own_stack(low) && contd__sp_of(to) - low < to->uc_stack.ss_size &&
	       to->uc_stack.ss_size < contd__inside.high - contd__inside.low;
}

static void goes(const ucontext_t *to)
{
	if (goes_inside(to))
		contd__progress_stop("a coroutine's stack is an array on the thread's own stack");
}

CONTD_API int swapcontext(ucontext_t *restrict from, const ucontext_t *restrict to)
{
	goes(to);
	return NEXT_OF(swapcontext)(from, to);
}

CONTD_API int setcontext(const ucontext_t *to)
{
	goes(to);
	return NEXT_OF(setcontext)(to);
}

CONTD_API int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
	if (new &&contd__inside.high)
		contd__inner_stack(new);
	return NEXT_OF(sigaltstack)(new, old);
}

/* -------------------------------------------------------------------------------------------- the program's end --- */

typedef int main_function(int argc, char **argv, char **environment);
typedef int start_function(main_function *program, int argc, char **argv, void (*init)(void), void (*fini)(void),
			   void (*loader_fini)(void), void *stack_end);
CONTD_API start_function __libc_start_main;

static main_function *program_main;

/* When main() returns, the C library runs the handlers of atexit(3), without a call of exit(3) that could be seen. */
static int around_main(int argc, char **argv, char **environment)
{
	int status;

	contd__store(&P.main_runs, true);
	status = program_main(argc, argv, environment);
	contd__program_ends();
	return status;
}

int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void), void (*fini)(void),
		      void (*loader_fini)(void), void *stack_end)
{
	start_function *next = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");

	program_main = program;
	return next(around_main, argc, argv, init, fini, loader_fini, stack_end);
}

#define ENDS(name, type) \
	CONTD_API void name(type status); \
	void name(type status) \
	{ \
		contd__program_ends(); \
		NEXT_OF(name)(status); \
		__builtin_unreachable(); \
	}
ENDS(exit, int)
ENDS(quick_exit, int)

/* These call exit(3), inside the C library. */
#define ENDS_WITH_TEXT(name, with) \
	CONTD_API void name(int status, const char *format, ...); \
	CONTD_API void with(int status, const char *format, va_list list); \
	void name(int status, const char *format, ...) \
	{ \
		va_list list; \
\
		va_start(list, format); \
		with(status, format, list); \
	} \
	void with(int status, const char *format, va_list list) \
	{ \
		int saved = errno; \
		__typeof__(&with) next = NEXT_OF(with); \
\
		contd__program_ends(); \
		errno = saved; \
		next(status, format, list); \
		__builtin_unreachable(); \
	}
ENDS_WITH_TEXT(err, verr)
ENDS_WITH_TEXT(errx, verrx)

/* So do these, if `status` is not 0. They have no form with a va_list. */
#define TEXT_OF(text) \
	({ \
		va_list list; \
		int length; \
\
		va_start(list, format); \
		length = vasprintf(&(text), format, list); \
		va_end(list); \
		length >= 0; \
	})

CONTD_API void error(int status, int number, const char *format, ...)
{
	char *text;
	bool made = TEXT_OF(text);

	if (status)
		contd__program_ends();
	NEXT_OF(error)(status, number, "%s", made ? text : format);
	if (made)
		free(text);
}

CONTD_API void error_at_line(int status, int number, const char *file, unsigned line, const char *format, ...)
{
	char *text;
	bool made = TEXT_OF(text);

	if (status)
		contd__program_ends();
	NEXT_OF(error_at_line)(status, number, file, line, "%s", made ? text : format);
	if (made)
		free(text);
}

/* Of the attached thread, or one of them. */
static void thread_ends(void)
{
	if (P.shared)
		contd__turn_leave();
	else if (contd__inside.high)
		contd__program_ends();
}

CONTD_API void pthread_exit(void *result)
{
	thread_ends();
	NEXT_OF(pthread_exit)(result);
	__builtin_unreachable();
}

CONTD_API void thrd_exit(int result)
{
	thread_ends();
	NEXT_OF(thrd_exit)(result);
	__builtin_unreachable();
}

__attribute__((constructor)) static void find_contd(void)
{
	contd__library_find(&contd_library, (uintptr_t)dlsym(RTLD_NEXT, "contd_init"));
}
