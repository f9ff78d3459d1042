/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The closure rule (docs/progress.md), case by case: where progress is forbidden none is made, however often the
 * program is interrupted there, and after that some is made again.
 *
 *     closure            the cases of the table below
 *     closure NAME...    these; or one of those that end the process: exit, return, pthread_exit, err, ...
 *     closure inner_stack    a coroutine's stack on the thread's own
 *     closure tool tool_opens    with tool.c preloaded
 */
#define _GNU_SOURCE
#include <argp.h>
#include <dirent.h>
#include <err.h>
#include <error.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <mpi.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

#include "closure.h"

#define PATIENCE 60.0 /* seconds */
#define OFTEN 1000u   /* ticks */

static const char *at = "";
static int failures;

static void fail(const char *what)
{
	printf("%s: %s\n", at, what);
	failures++;
}

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition))

/* Call that until so many ticks have been passed over for this reason. */
static void until_passed(enum contd__passed why, uint64_t times, void (*call)(void))
{
	uint64_t end = passed(why) + times;
	double give_up = now_s() + PATIENCE;

	while (passed(why) < end) {
		call();
		if (now_s() > give_up) {
			fail("too few ticks have found the program there");
			return;
		}
	}
}

/* Outside there is progress. */
static void progress_again(void)
{
	uint64_t before = ran;
	double give_up = now_s() + PATIENCE;

	while (ran < before + 5) {
		spin(20000);
		if (now_s() > give_up) {
			fail("no progress any more");
			return;
		}
	}
}

/* ------------------------------------------------------------------------------------------- sorting, searching --- */

#define N 256
static int numbers[N];

static void scramble(void)
{
	for (int i = 0; i < N; i++)
		numbers[i] = (i * 7919) % 1009;
}

static int slowly(const void *a, const void *b)
{
	void *block = malloc(64); /* the program may, too */

	forbidden_spin(300);
	free(block);
	return *(const int *)a - *(const int *)b;
}

static int slowly_with(const void *a, const void *b, void *data)
{
	(void)data;
	return slowly(a, b);
}

static void a_qsort(void)
{
	scramble();
	qsort(numbers, N, sizeof(int), slowly);
	for (int i = 1; i < N; i++)
		if (numbers[i - 1] > numbers[i])
			fail("not sorted");
}

static void a_qsort_r(void)
{
	scramble();
	qsort_r(numbers, N, sizeof(int), slowly_with, NULL);
}

static void a_bsearch(void)
{
	/* The header has an inline version of it. */
	void *(*volatile call)(const void *, const void *, size_t, size_t, int (*)(const void *, const void *)) =
		bsearch;
	int key = numbers[17];

	call(&key, numbers, N, sizeof(int), slowly);
}

static void a_lfind(void)
{
	size_t n = N;
	int key = -1;

	lfind(&key, numbers, &n, sizeof(int), slowly);
}

static void node(const void *p, VISIT which, int depth)
{
	(void)p, (void)which, (void)depth;
	forbidden_spin(1000);
}

static void node_with(const void *p, VISIT which, void *data)
{
	(void)data;
	node(p, which, 0);
}

static void free_node(void *p)
{
	(void)p;
	forbidden_spin(1000);
}

static void a_tree(void)
{
	void *root = NULL;

	scramble();
	for (int i = 0; i < 32; i++)
		tsearch(&numbers[i], &root, slowly);
	for (int i = 0; i < 32; i++)
		tfind(&numbers[i], &root, slowly);
	twalk(root, node);
	twalk_r(root, node_with, NULL);
	for (int i = 0; i < 16; i++)
		tdelete(&numbers[i], &root, slowly);
	tdestroy(root, free_node);
}

/* -------------------------------------------------------------------------------------------------------- files --- */

static int each_file(const char *path, const struct stat *st, int type)
{
	(void)path, (void)st, (void)type;
	forbidden_spin(3000);
	return 0;
}

static int each_file_with(const char *path, const struct stat *st, int type, struct FTW *more)
{
	(void)more;
	return each_file(path, st, type);
}

static int choose(const struct dirent *d)
{
	(void)d;
	forbidden_spin(3000);
	return 1;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	forbidden_spin(1000);
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int by_name_fts(const FTSENT **a, const FTSENT **b)
{
	forbidden_spin(1000);
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void a_ftw(void)
{
	ftw("/etc", each_file, 8);
}

static void a_nftw(void)
{
	nftw("/etc", each_file_with, 8, FTW_PHYS);
}

static void a_scandir(void)
{
	struct dirent **list = NULL;
	int n = scandir("/etc", &list, choose, by_name);

	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static void an_fts(void)
{
	char *paths[] = {(char *)"/etc", NULL};
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name_fts);

	while (fts && fts_read(fts))
		;
	if (fts)
		fts_close(fts);
}

static int by_name_fts64(const FTSENT64 **a, const FTSENT64 **b)
{
	forbidden_spin(1000);
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* fts_open() and so on of a program that is built with _FILE_OFFSET_BITS=64. */
static void an_fts64(void)
{
	char *paths[] = {(char *)"/etc", NULL};
	FTS64 *fts = fts64_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name_fts64);

	if (fts)
		fts64_children(fts, 0);
	while (fts && fts64_read(fts))
		;
	if (fts)
		fts64_close(fts);
}

static char *filter(int key, const char *text, void *input)
{
	(void)key, (void)input;
	forbidden_spin(30000);
	return (char *)(uintptr_t)text;
}

static void an_argp_help(void)
{
	static const struct argp_option options[] = {{"option", 'o', NULL, 0, "what it is", 0}, {0}};
	static const struct argp argp = {options, NULL, "arguments", "what it does", NULL, filter, NULL};
	static char name[] = "closure";

	argp_help(&argp, printed, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, name);
}

static void *open_slowly(const char *path)
{
	forbidden_spin(30000);
	return opendir(path);
}

static struct dirent *read_slowly(void *dir)
{
	forbidden_spin(3000);
	return readdir(dir);
}

static void close_slowly(void *dir)
{
	closedir(dir);
}

static void a_glob(void)
{
	glob_t g = {.gl_opendir = open_slowly,
		    .gl_readdir = read_slowly,
		    .gl_closedir = close_slowly,
		    .gl_stat = stat,
		    .gl_lstat = lstat};

	if (glob("/etc/*", GLOB_ALTDIRFUNC, NULL, &g) == 0)
		globfree(&g);
}

/* ---------------------------------------------------------------------------------- once, loader, fork, streams --- */

static void slowly_once(void)
{
	forbidden_spin(200000);
}

static void a_pthread_once(void)
{
	pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, slowly_once);
}

static void a_call_once(void)
{
	once_flag once = ONCE_FLAG_INIT;

	call_once(&once, slowly_once);
}

static int each_object(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size, (void)data;
	forbidden_spin(10000);
	return 0;
}

static void a_dl_iterate_phdr(void)
{
	dl_iterate_phdr(each_object, NULL);
}

EXPORTED void plugin_begins(void), plugin_ends(void);

static bool calls_mpi; /* in the constructor of the plugin */

void plugin_begins(void)
{
	int flag;

	if (calls_mpi)
		MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	forbidden_spin(200000);
}

void plugin_ends(void)
{
	forbidden_spin(200000);
}

static void a_plugin(void)
{
	void *plugin = dlopen(PLUGIN, RTLD_NOW);

	if (plugin)
		dlclose(plugin);
	else
		fail(dlerror());
}

static void a_plugin_by_dlmopen(void)
{
	static const char *const paths[] = {PLUGIN, PLUGIN_NAME};
	int flag;

	for (int i = 0; i < 2; i++) {
		void *plugin = dlmopen(LM_ID_BASE, paths[i], RTLD_NOW);

		if (plugin)
			dlclose(plugin);
		else
			fail(dlerror());
	}
	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* By its name alone it is found on the program's own path, which the loader knows by who calls. */
static void a_named_plugin(void)
{
	void *plugin;
	int flag;

	calls_mpi = true;
	plugin = dlopen(PLUGIN_NAME, RTLD_NOW);
	calls_mpi = false;
	if (!plugin) {
		fail(dlerror());
		return;
	}
	/* What was loaded is known at the next call of MPI, and is the program's. */
	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	dlclose(plugin);
}

static void prepare_slowly(void)
{
	forbidden_spin(200000);
}

static int preparing;

static void maybe_prepare(void)
{
	if (preparing)
		prepare_slowly();
}

static void a_fork(void)
{
	int status = 0;
	pid_t child;

	preparing = 1;
	child = fork();
	if (child == 0)
		_exit(7);
	preparing = 0;
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void a_locked_stream(void)
{
	flockfile(stdout);
	forbidden_spin(100000);
	funlockfile(stdout);
}

/* ------------------------------------------------------------------------------------------------------ signals --- */

static volatile int handled;

static void on_usr1(int signo)
{
	handled = signo;
	forbidden_spin(100000);
}

static void on_usr2(int signo, siginfo_t *info, void *context)
{
	handled = info && context && info->si_signo == signo ? signo : -1;
	forbidden_spin(100000);
}

static void a_handler(void)
{
	struct sigaction action = {.sa_handler = on_usr1}, old;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR1, NULL, &old);
	CHECK(old.sa_handler == on_usr1 && !(old.sa_flags & SA_SIGINFO));
	handled = 0;
	raise(SIGUSR1);
	CHECK(handled == SIGUSR1);
	CHECK(signal(SIGUSR1, SIG_IGN) == on_usr1);
	sigaction(SIGUSR1, NULL, &old);
	CHECK(old.sa_handler == SIG_IGN);
	raise(SIGUSR1);
	CHECK(signal(SIGUSR1, on_usr1) == SIG_IGN);
	handled = 0;
	raise(SIGUSR1);
	CHECK(handled == SIGUSR1);
	CHECK(signal(SIGUSR1, SIG_DFL) == on_usr1);
}

static void an_information_handler(void)
{
	struct sigaction action = {.sa_sigaction = on_usr2, .sa_flags = SA_SIGINFO}, old;

	sigaction(SIGUSR2, &action, NULL);
	handled = 0;
	raise(SIGUSR2);
	CHECK(handled == SIGUSR2);
	sigaction(SIGUSR2, NULL, &old);
	CHECK(old.sa_sigaction == on_usr2 && old.sa_flags & SA_SIGINFO);
}

/* Progress must not run on an alternate stack, which may be small. */
static void on_alternate(void)
{
	static char stack[1 << 16];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

/* -------------------------------------------------------------------------------------------- leaving by a jump --- */

static jmp_buf out;
static sigjmp_buf sig_out;

static int jumps(const void *a, const void *b)
{
	static unsigned calls;

	if (++calls % 100 == 0)
		longjmp(out, 1);
	return *(const int *)a - *(const int *)b;
}

/* Deeper on the stack than the frame that was left, where it would count if it were not known to be gone. */
__attribute__((noinline)) static void progress_deeper(void)
{
	volatile char some[512];
	uint64_t before = ran;
	double give_up = now_s() + PATIENCE;

	some[0] = 1;
	while (ran < before + 5 && now_s() < give_up)
		spin(20000u * (unsigned)some[0]);
	CHECK(ran >= before + 5);
}

/* The frame of qsort() is gone; what computes afterwards stands at its place on the stack. */
static void jump_out_of_qsort(void)
{
	scramble();
	if (!setjmp(out))
		qsort(numbers, N, sizeof(int), jumps);
	progress_deeper();
}

static void jumps_from_signal(int signo)
{
	(void)signo;
	siglongjmp(sig_out, 1);
}

static void jump_out_of_handler(int flags)
{
	struct sigaction action = {.sa_handler = jumps_from_signal, .sa_flags = flags};

	sigaction(SIGUSR1, &action, NULL);
	if (!sigsetjmp(sig_out, 1))
		raise(SIGUSR1);
	progress_deeper();
}

static void outer_handler(int signo)
{
	(void)signo;
	if (!sigsetjmp(sig_out, 1))
		raise(SIGUSR2);
	forbidden_spin(100000);
}

/* Jumped out of, the inner handler is gone; the outer one goes on. */
static void jump_into_handler(void)
{
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = outer_handler}, NULL);
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = jumps_from_signal}, NULL);
	raise(SIGUSR1);
}

static void jumps_out(void)
{
	for (int i = 0; i < 50; i++) {
		jump_out_of_qsort();
		jump_out_of_handler(0);
		jump_out_of_handler(SA_ONSTACK); /* on_alternate has set one */
	}
}

/* ------------------------------------------------------------------------------------------------- other stacks --- */

static ucontext_t main_context, other_context;

static void on_other_stack(void)
{
	for (;;) {
		forbidden_spin(100000);
		swapcontext(&other_context, &main_context);
	}
}

static void a_coroutine(void)
{
	static char stack[1 << 18];

	if (!other_context.uc_stack.ss_sp) {
		getcontext(&other_context);
		other_context.uc_stack.ss_sp = stack;
		other_context.uc_stack.ss_size = sizeof(stack);
		makecontext(&other_context, on_other_stack, 0);
	}
	swapcontext(&main_context, &other_context);
}

/* A handler on an alternate stack that lies in the thread's own. The program goes on there when it has returned. */
static sigjmp_buf in_alternate, back_out;

static void stays(int signo)
{
	(void)signo;
	if (!sigsetjmp(in_alternate, 0))
		return;
	forbidden_spin(100000);
	siglongjmp(back_out, 1);
}

__attribute__((noinline)) static int deep_and_back(const void *a, const void *b)
{
	if (!sigsetjmp(back_out, 0))
		siglongjmp(in_alternate, 1);
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void with_inner_alternate(void)
{
	char stack[1 << 16];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)}, none = {.ss_flags = SS_DISABLE};
	struct sigaction action = {.sa_handler = stays, .sa_flags = SA_ONSTACK};

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigaltstack(&none, NULL);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	scramble();
	qsort(numbers, 3, sizeof(int), deep_and_back);
}

/* Deeper on the stack than what computes afterwards, so that its end is seen. */
static void on_inner_alternate(void)
{
	volatile char deeper[8192];

	deeper[0] = 1;
	with_inner_alternate();
	deeper[1] = deeper[0];
}

/* Near the end of the stack. */
__attribute__((noinline)) static void down(const char *end)
{
	volatile char here[4096];

	here[0] = 1;
	if ((const char *)here - end > 48 * 1024)
		down(end);
	else
		forbidden_spin(100000);
	here[1] = here[0];
}

static void little_stack(void)
{
	pthread_attr_t attr;
	void *base;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &base, &size);
	pthread_attr_destroy(&attr);
	if (size > 64u << 20) /* no limit, or a large one: then this would take all memory */
		base = (char *)base + size;
	down(base);
}

/* ------------------------------------------------------------------------------------------------- unknown code --- */

/* Sets the flag, counts down, clears the flag. */
static void (*made_code)(unsigned long n, volatile uint32_t *flag);

static void run_made_code(void)
{
#if defined(__x86_64__)
	static const unsigned char bytes[] = {
		0xc7, 0x06, 0x01, 0x00, 0x00, 0x00, /* movl $1, (%rsi) */
		0x48, 0xff, 0xcf,                   /* dec %rdi */
		0x75, 0xfb,                         /* jnz to it */
		0xc7, 0x06, 0x00, 0x00, 0x00, 0x00, /* movl $0, (%rsi) */
		0xc3,                               /* ret */
	};
#else
	static const unsigned bytes[] = {
		0x52800022, /* mov w2, #1 */
		0xb9000022, /* str w2, [x1] */
		0xf1000400, /* subs x0, x0, #1 */
		0x54ffffe1, /* b.ne to it */
		0xb900003f, /* str wzr, [x1] */
		0xd65f03c0, /* ret */
	};
#endif
	if (!made_code) {
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memcpy(page, bytes, sizeof(bytes));
		mprotect(page, 4096, PROT_READ | PROT_EXEC);
		__builtin___clear_cache(page, (char *)page + 4096);
		made_code = (void (*)(unsigned long, volatile uint32_t *))page;
	}
	made_code(3000000, &forbidden);
}

/* ------------------------------------------------------------------------------------- libraries that MPI opens --- */

typedef void driver_function(unsigned n, volatile uint32_t *flag);

static void *drivers[2];
static const char *opened_by_mpi;

static int opens_attribute(MPI_Comm comm, int key, void *extra, void *in, void *value, int *flag)
{
	(void)comm, (void)key, (void)extra, (void)in, (void)value;
	CHECK(dlopen(opened_by_mpi, RTLD_NOW) != NULL);
	*flag = 0;
	return MPI_SUCCESS;
}

static void mpi_opens(const char *path)
{
	int key = MPI_KEYVAL_INVALID;
	MPI_Comm comm, copy;

	opened_by_mpi = path;
	MPI_Comm_create_keyval(opens_attribute, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_attr(comm, key, &key);
	MPI_Comm_dup(comm, &copy);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&comm);
	MPI_Comm_free_keyval(&key);
}

static driver_function *of_driver(void *driver)
{
	return driver ? (driver_function *)dlsym(driver, "driver_computes") : NULL;
}

/* The program's own until MPI opens it, too. */
static void a_driver(int i, const char *path)
{
	static bool opened[2];
	driver_function *compute = of_driver(drivers[i]);
	uint64_t before = ran;
	double give_up = now_s() + PATIENCE;
	volatile uint32_t flag = 0;

	if (!compute) {
		fail("no driver");
		return;
	}
	while (!opened[i] && ran < before + 5 && now_s() < give_up)
		compute(20000, &flag);
	if (!opened[i]) {
		CHECK(ran >= before + 5);
		mpi_opens(path);
		opened[i] = true;
	}
	compute(100000, &forbidden);
}

static void a_driver_by_path(void)
{
	a_driver(0, DRIVER);
}

static void a_driver_by_name(void)
{
	a_driver(1, NAMED_DRIVER_NAME);
}

/* A tool that replaces a function which MPI calls. */
static void in_tool(void)
{
	driver_function *compute = (driver_function *)dlsym(RTLD_DEFAULT, "tool_computes");

	if (compute)
		compute(100000, &forbidden);
	else
		fail("no tool");
}

/* Libraries that the tool opens belong to MPI's closure, too. */
static void a_driver_of_tool(void)
{
	static void *(*opens)(const char *);
	int flag;

	if (!opens) {
		opens = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "tool_opens");
		CHECK(opens && opens(DRIVER) == drivers[0]);
		MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	}
	of_driver(drivers[0])(100000, &forbidden);
}

/* ------------------------------------------------------------------------------------------- called back by MPI --- */

static void operation(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
	forbidden_spin(200000);
}

static MPI_Op op = MPI_OP_NULL;

static void an_operation(void)
{
	int in = 3, inout = 4;

	if (op == MPI_OP_NULL)
		MPI_Op_create(operation, 1, &op);
	MPI_Reduce_local(&in, &inout, 1, MPI_INT, op);
	CHECK(inout == 7);
}

static int copies_attribute(MPI_Comm comm, int key, void *extra, void *in, void *value, int *flag)
{
	(void)comm, (void)key, (void)extra, (void)in, (void)value;
	forbidden_spin(200000);
	*flag = 0;
	return MPI_SUCCESS;
}

static int deletes_attribute(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm, (void)key, (void)value, (void)extra;
	forbidden_spin(200000);
	return MPI_SUCCESS;
}

static void an_attribute(void)
{
	static int key = MPI_KEYVAL_INVALID;
	MPI_Comm comm, copy;

	if (key == MPI_KEYVAL_INVALID)
		MPI_Comm_create_keyval(copies_attribute, deletes_attribute, &key, NULL);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_attr(comm, key, &key);
	MPI_Comm_dup(comm, &copy);
	MPI_Comm_free(&copy);
	MPI_Comm_delete_attr(comm, key);
	MPI_Comm_free(&comm);
}

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	forbidden_spin(200000);
	MPI_Status_set_elements(status, MPI_CHAR, 0);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int free_it(void *extra)
{
	(void)extra;
	forbidden_spin(200000);
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void a_generalized_request(void)
{
	MPI_Request request;

	MPI_Grequest_start(query, free_it, cancel, NULL, &request);
	MPI_Grequest_complete(request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ------------------------------------------------------------------------------------------------------- storms --- */

#define BLOCKS 64

/* Thousands of ticks into the allocator, and each that comes outside allocates itself. */
static void allocation_storm(void)
{
	static unsigned char *block[BLOCKS];
	static size_t size[BLOCKS];
	static unsigned seed = 1;
	uint64_t ticks = passed(PASSED_CLOSURE) + 5000, before = ran;
	double give_up = now_s() + PATIENCE;

	while ((passed(PASSED_CLOSURE) < ticks || ran < before + 100) && now_s() < give_up)
		for (int round = 0; round < 1000; round++) {
			unsigned i = (seed = seed * 1103515245u + 12345u) >> 16 & (BLOCKS - 1);
			size_t n = 1 + (seed >> 8) % 5000;

			for (size_t j = 0; j < size[i] && block[i]; j += 512)
				if (block[i][j] != (unsigned char)i) {
					fail("another block's bytes");
					return;
				}
			switch (seed >> 24 & 3) {
			case 0:
				free(block[i]);
				block[i] = malloc(n);
				break;
			case 1:
				free(block[i]);
				block[i] = calloc(1, n);
				break;
			default:
				block[i] = realloc(block[i], n);
			}
			size[i] = n;
			memset(block[i], (int)i, n);
		}
	CHECK(passed(PASSED_CLOSURE) >= ticks);
	CHECK(ran >= before + 100);
}

/* The stream is locked when the program is interrupted in the C library, and progress prints to it. */
static void printing_storm(void)
{
	uint64_t ticks = passed(PASSED_CLOSURE) + 2000;
	double give_up = now_s() + PATIENCE;

	while (passed(PASSED_CLOSURE) < ticks && now_s() < give_up)
		for (int i = 0; i < 1000; i++)
			fprintf(printed, "%d %s %f\n", i, "words", (double)i);
	CHECK(passed(PASSED_CLOSURE) >= ticks);
}

static void processes(void)
{
	for (int i = 0; i < 20; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(99);
		}
		spin(100000);
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
		CHECK(system("exit 3") == 3 << 8);
	}
}

/* MPI adds up in a tick as in the call before it: the same way of rounding, and with denormals or without. */
static void computes_as_before(void)
{
#ifdef __x86_64__
	const uint32_t before = __builtin_ia32_stmxcsr(), ways[] = {before | 0x8040, before | 0x6000, before};

	for (int i = 0; i < 3; i++) {
		int flag;

		__builtin_ia32_ldmxcsr(ways[i]);
		MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
		floating = 0;
		progress_again();
		CHECK((floating & ~0x3fu) == (ways[i] & ~0x3fu));
	}
#endif
}

/* Code of a library that the program has loaded is the program's. */
static void computes_in_plugin(void)
{
	void *plugin = dlopen(PLUGIN, RTLD_NOW);
	void (*computes)(unsigned) = plugin ? (void (*)(unsigned))dlsym(plugin, "plugin_computes") : NULL;
	uint64_t loader = passed(PASSED_LOADER), unknown = passed(PASSED_UNKNOWN), before = ran,
		 closure = passed(PASSED_CLOSURE);
	double give_up = now_s() + PATIENCE;

	if (!computes) {
		fail("no plug-in");
		return;
	}
	while (ran < before + 100 && now_s() < give_up)
		computes(2000000);
	CHECK(ran >= before + 100);
	CHECK(passed(PASSED_CLOSURE) < closure + 100);
	CHECK(passed(PASSED_LOADER) == loader);
	CHECK(passed(PASSED_UNKNOWN) == unknown);
	dlclose(plugin);
}

/* So is that of one from the folder where MPI and the C library are: Python loads NumPy's from there. */
static void computes_in_a_system_library(void)
{
	int (*compress)(char *, unsigned *, char *, unsigned, int, int, int) = NULL;
	uint64_t before = ran, closure = passed(PASSED_CLOSURE);
	double give_up = now_s() + PATIENCE;
	static char text[1 << 16], shorter[1 << 17];
	void *library = dlopen("libbz2.so.1.0", RTLD_NOW); /* dpkg needs it; MPI does not */
	int flag;

	if (library)
		compress = (int (*)(char *, unsigned *, char *, unsigned, int, int, int))dlsym(
			library, "BZ2_bzBuffToBuffCompress");
	if (!compress) {
		fail("no libbz2.so.1.0");
		return;
	}
	/* Opened by name: it is looked at in the next call of MPI. */
	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i >> 7);
	while (ran < before + 100 && now_s() < give_up) {
		unsigned length = sizeof(shorter);

		CHECK(compress(shorter, &length, text, sizeof(text), 9, 0, 30) == 0);
	}
	CHECK(ran >= before + 100);
	CHECK(passed(PASSED_CLOSURE) < closure + 100);
	dlclose(library);
}

/* ---------------------------------------------------------------------------------------------------- the table --- */

static const struct {
	const char *name;
	void (*call)(void);
	enum contd__passed why; /* PASSED_NOT: the case checks itself */
	unsigned times;
} cases[] = {
	{"qsort", a_qsort, PASSED_CALLED, 3 * OFTEN},
	{"qsort_r", a_qsort_r, PASSED_CALLED, OFTEN},
	{"bsearch", a_bsearch, PASSED_CALLED, OFTEN},
	{"lfind", a_lfind, PASSED_CALLED, OFTEN},
	{"tree", a_tree, PASSED_CALLED, OFTEN},
	{"ftw", a_ftw, PASSED_CALLED, OFTEN},
	{"nftw", a_nftw, PASSED_CALLED, OFTEN},
	{"scandir", a_scandir, PASSED_CALLED, OFTEN},
	{"fts", an_fts, PASSED_CALLED, OFTEN},
	{"fts64", an_fts64, PASSED_CALLED, OFTEN},
	{"glob", a_glob, PASSED_CALLED, OFTEN},
	{"argp_help", an_argp_help, PASSED_CALLED, OFTEN},
	{"pthread_once", a_pthread_once, PASSED_CALLED, OFTEN},
	{"call_once", a_call_once, PASSED_CALLED, OFTEN},
	{"dl_iterate_phdr", a_dl_iterate_phdr, PASSED_CALLED, OFTEN},
	{"dlopen", a_plugin, PASSED_CALLED, OFTEN},
	{"dlmopen", a_plugin_by_dlmopen, PASSED_CALLED, 100},
	{"dlopen_by_name", a_named_plugin, PASSED_CALLED, 100},
	{"fork", a_fork, PASSED_CALLED, 100},
	{"flockfile", a_locked_stream, PASSED_CALLED, OFTEN},
	{"sigaction", a_handler, PASSED_CALLED, 3 * OFTEN},
	{"siginfo", an_information_handler, PASSED_CALLED, OFTEN},
	{"sigaltstack", on_alternate, PASSED_STACK, OFTEN},
	{"longjmp", jumps_out, PASSED_NOT, 1},
	{"outer_handler", jump_into_handler, PASSED_CALLED, OFTEN},
	{"coroutine", a_coroutine, PASSED_STACK, OFTEN},
	{"stack", little_stack, PASSED_STACK, OFTEN},
	{"inner_alternate", on_inner_alternate, PASSED_STACK, OFTEN},
	{"made_code", run_made_code, PASSED_UNKNOWN, OFTEN},
	{"driver", a_driver_by_path, PASSED_CLOSURE, OFTEN},
	{"driver_by_name", a_driver_by_name, PASSED_CLOSURE, OFTEN},
	{"operation", an_operation, PASSED_MPI, OFTEN},
	{"attribute", an_attribute, PASSED_MPI, OFTEN},
	{"grequest", a_generalized_request, PASSED_MPI, OFTEN},
	{"allocation", allocation_storm, PASSED_NOT, 1},
	{"printing", printing_storm, PASSED_NOT, 1},
	{"processes", processes, PASSED_NOT, 1},
	{"plugin", computes_in_plugin, PASSED_NOT, 1},
	{"system_library", computes_in_a_system_library, PASSED_NOT, 1},
	{"floating", computes_as_before, PASSED_NOT, 1},
	{"tool", in_tool, PASSED_CLOSURE, OFTEN},
	{"tool_opens", a_driver_of_tool, PASSED_CLOSURE, OFTEN},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void run_case(size_t i)
{
	double begin = now_s();
	uint64_t before = ran, bad = wrong;

	at = cases[i].name;
	if (cases[i].why == PASSED_NOT)
		cases[i].call();
	else
		until_passed(cases[i].why, cases[i].times, cases[i].call);
	CHECK(wrong == bad);
	CHECK(forbidden == 0);
	progress_again();
	printf("%-16s %5.2f s, %lu times progress\n", cases[i].name, now_s() - begin, (unsigned long)(ran - before));
	fflush(stdout);
}

/* --------------------------------------------------------------------------------------------------------- ends --- */

static void at_end(void)
{
	uint64_t before = ran;
	double end = now_s() + 0.5;

	forbidden = 1;
	while (now_s() < end)
		spin(10000);
	printf("%s: %lu times progress at the end\n", at, (unsigned long)(ran - before));
	fflush(stdout);
	failures += ran != before;
	MPI_Finalize(); /* mpirun wants it */
	_exit(failures != 0);
}

static ucontext_t below_context, inner_context;

static void in_inner_stack(void)
{
	for (;;) {
		forbidden_spin(300000);
		swapcontext(&inner_context, &below_context);
	}
}

static int switches(const void *a, const void *b)
{
	swapcontext(&below_context, &inner_context);
	return *(const int *)a - *(const int *)b;
}

/* A coroutine whose stack is an array here: it is above the frame of qsort(), which calls it. No progress any more. */
static int an_inner_stack(void)
{
	char stack[1 << 18];
	uint64_t before;
	double end;

	getcontext(&inner_context);
	inner_context.uc_stack.ss_sp = stack;
	inner_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&inner_context, in_inner_stack, 0);
	scramble();
	end = now_s() + 0.5;
	while (now_s() < end)
		qsort(numbers, 3, sizeof(int), switches);
	before = ran;
	end = now_s() + 0.2;
	while (now_s() < end)
		spin(10000);
	printf("%lu times progress in it, %lu times later\n", (unsigned long)wrong, (unsigned long)(ran - before));
	return wrong || ran != before;
}

/* All but exit() itself call it inside the C library. */
static void vend(bool with_error, ...)
{
	va_list none;

	va_start(none, with_error);
	if (with_error)
		verr(1, "%s", none);
	else
		verrx(1, "%s", none);
}

static void end_by(const char *name)
{
	if (!strcmp(name, "exit"))
		exit(1);
	if (!strcmp(name, "err"))
		err(1, "%s", name);
	if (!strcmp(name, "errx"))
		errx(1, "%s", name);
	if (!strcmp(name, "verr"))
		vend(true, name);
	if (!strcmp(name, "verrx"))
		vend(false, name);
	if (!strcmp(name, "error"))
		error(1, 0, "%s %d", name, 1);
	if (!strcmp(name, "error_at_line"))
		error_at_line(1, 0, __FILE__, __LINE__, "%s %d", name, 1);
}

static bool ends(const char *name)
{
	static const char *const names[] = {"exit", "return", "pthread_exit", "err",          "errx",
					    "verr", "verrx",  "error",        "error_at_line"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	printed = fopen("/dev/null", "w");
	pthread_atfork(maybe_prepare, NULL, NULL);
	drivers[0] = dlopen(DRIVER, RTLD_NOW);
	drivers[1] = dlopen(NAMED_DRIVER, RTLD_NOW);
	init_mpi(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	if (argc > 1 && ends(argv[1])) {
		at = argv[1];
		atexit(at_end);
		progress_again();
		fflush(stdout);
		end_by(at);
		if (at[0] == 'p') {
			pthread_key_t key;

			pthread_key_create(&key, (void (*)(void *))at_end);
			pthread_setspecific(key, &key);
			pthread_exit(NULL);
		}
		return 1;
	}
	progress_again();
	if (argc > 1 && !strcmp(argv[1], "inner_stack")) {
		failures = an_inner_stack();
		MPI_Finalize();
		return failures;
	}
	for (size_t i = 0; i < CASES; i++) {
		bool chosen = argc <= 1 && strncmp(cases[i].name, "tool", 4) != 0;

		for (int a = 1; a < argc; a++)
			chosen |= !strcmp(argv[a], cases[i].name);
		if (chosen)
			run_case(i);
	}
	if (op != MPI_OP_NULL)
		MPI_Op_free(&op);
	MPI_Finalize();
	return failures != 0;
}
