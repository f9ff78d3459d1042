/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An interruption changes nothing: results are compared bit for bit with those of an undisturbed run, while
 * continuations run in the handler that use floating point in other ways themselves, and spoil errno.
 */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <sys/syscall.h>

#include "coexist.h"

static atomic_int spoiled;

/* Every register of the floating-point units, their modes and their flags; and errno. */
static void spoil(void)
{
	volatile long double x = 1;
	volatile double v[16];
	int before = fegetround();

	fesetround(FE_UPWARD);
	for (int i = 0; i < 16; i++)
		v[i] = (double)i / 3;
	for (int i = 0; i < 40; i++) {
		x = x / 3 + 1;
		v[i % 16] = v[i % 16] * 1.7 + v[(i + 1) % 16];
	}
	feraiseexcept(FE_INEXACT);
	fesetround(before == FE_DOWNWARD ? FE_TOWARDZERO : FE_DOWNWARD); /* left so: the kernel puts back what was */
#if defined(__x86_64__)
	__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm7, %%xmm7\n\tpcmpeqd %%xmm15, %%xmm15" ::
				 : "xmm0", "xmm7", "xmm15");
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroall" ::
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
					   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	__asm__ volatile("fninit\n\tfld1\n\tfldpi\n\tfldl2e\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)" ::
				 : "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
#endif
	errno = EDOM;
	atomic_fetch_add(&spoiled, 1);
}

static uint64_t bits(double x)
{
	uint64_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

/* -------------------------------------------------------------------------------------------------- checksums --- */

typedef uint64_t computation(void);

/* Undisturbed, then interrupted again and again, outside regions and inside. */
static void same_result(computation *compute, int times)
{
	uint64_t expected = compute(), ticks;
	fenv_t modes;

	fegetenv(&modes);
	ticking_begin();
	feed_begin(spoil);
	ticks = ticks_now();
	for (int i = 0; i < times || ticks_now() < ticks + 500 || atomic_load(&spoiled) < 1000; i++) {
		uint64_t got;

		if (i % 2)
			contd_compute_begin();
		/* The ready one has run in that call, as in contd_poll(): there a callback's modes stay, and are its
		 * own affair. */
		fesetenv(&modes);
		got = compute();
		if (i % 2)
			contd_compute_end();
		if (got != expected)
			DIE("run %d: %llx instead of %llx", i, (unsigned long long)got, (unsigned long long)expected);
	}
	feed_end();
	ticking_end();
	printf("%d callbacks used the units\n", atomic_load(&spoiled));
}

static uint64_t integers(void)
{
	uint64_t x = 88172645463325252u, sum = 0;

	for (int i = 0; i < 300000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		sum = sum * 31 + x % 1000003;
	}
	return sum;
}

static uint64_t doubles(void)
{
	double x = 0.3, y = 1;

	for (int i = 0; i < 200000; i++) {
		x = 3.99 * x * (1 - x); /* chaotic: one wrong bit anywhere changes everything after it */
		y = y * 0.5 + sqrt(x + i);
	}
	return bits(x) ^ bits(y) * 3;
}

static uint64_t long_doubles(void)
{
	long double x = 0.3L, y = 1;
	uint64_t m[2] = {0, 0};

	for (int i = 0; i < 100000; i++) {
		x = 3.99L * x * (1 - x);
		y = y * 0.5L + x;
	}
	x += y;
	memcpy(m, &x, 10);
	return m[0] ^ m[1] << 1;
}

static uint64_t vectors(void)
{
	typedef double v4 __attribute__((vector_size(32)));
	union {
		v4 v;
		double d[4];
	} x = {.d = {0.31, 0.32, 0.33, 0.34}};
	uint64_t sum = 0;

	for (int i = 0; i < 200000; i++)
		x.v = 3.99 * x.v * (1 - x.v);
	for (int i = 0; i < 4; i++)
		sum = sum * 3 + bits(x.d[i]);
	return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx,fma"))) static uint64_t vectors_avx(void)
{
	typedef double v4 __attribute__((vector_size(32)));
	union {
		v4 v;
		double d[4];
	} x = {.d = {0.31, 0.32, 0.33, 0.34}};
	uint64_t sum = 0;

	for (int i = 0; i < 400000; i++)
		x.v = 3.99 * x.v * (1 - x.v);
	for (int i = 0; i < 4; i++)
		sum = sum * 3 + bits(x.d[i]);
	return sum;
}

__attribute__((target("avx512f"))) static uint64_t vectors_avx512(void)
{
	typedef double v8 __attribute__((vector_size(64)));
	union {
		v8 v;
		double d[8];
	} x = {.d = {0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.37, 0.38}};
	uint64_t sum = 0;

	for (int i = 0; i < 400000; i++)
		x.v = 3.99 * x.v * (1 - x.v);
	for (int i = 0; i < 8; i++)
		sum = sum * 3 + bits(x.d[i]);
	return sum;
}
#endif

static void checksum(void)
{
	same_result(integers, 100);
}

static void float_sse(void)
{
	same_result(doubles, 60);
}

static void float_x87(void)
{
	same_result(long_doubles, 60);
}

static void float_vectors(void)
{
	same_result(vectors, 60);
}

static void float_avx(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx") && __builtin_cpu_supports("fma")) {
		same_result(vectors_avx, 60);
		return;
	}
#endif
	printf("skipped: no AVX here\n");
	exit(SKIPPED);
}

static void float_avx512(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f")) {
		same_result(vectors_avx512, 60);
		return;
	}
#endif
	printf("skipped: no AVX-512 here\n");
	exit(SKIPPED);
}

/* ------------------------------------------------------------------------------------------------------ modes --- */

/* Rounding and exception flags of the interrupted code. */
static void float_modes(void)
{
	static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
	int runs;

	ticking_begin();
	feed_begin(spoil);
	for (int i = 0; i < 4000; i++) {
		CHECK_EQ(fesetround(modes[i % 4]), 0);
		feclearexcept(FE_ALL_EXCEPT);
		if (i % 3 == 0)
			feraiseexcept(FE_DIVBYZERO);
		runs = atomic_load(&spoiled);
		for (int k = 0; k < 300 && atomic_load(&spoiled) == runs; k++)
			for (volatile int spin = 0; spin < 100; spin++)
				;
		CHECK_EQ(fegetround(), modes[i % 4]);
		CHECK_EQ(fetestexcept(FE_ALL_EXCEPT), i % 3 == 0 ? FE_DIVBYZERO : 0);
	}
	CHECK_EQ(fesetround(FE_TONEAREST), 0);
	CHECK(atomic_load(&spoiled) > 100);
	feed_end();
	ticking_end();
}

/* ------------------------------------------------------------------------------------- loops of other kinds --- */

static void memory_bound(void)
{
	enum { WORDS = 4 << 20 };
	uint64_t *a = malloc(WORDS * sizeof(*a)), *b = malloc(WORDS * sizeof(*b)), sum = 0, expected = 0;

	CHECK(a && b);
	ticking_begin();
	feed_begin(NULL);
	for (uint64_t i = 0; i < WORDS; i++) {
		a[i] = i * 2654435761u;
		expected += a[i] + 6 * i;
	}
	for (unsigned pass = 0; pass < 6; pass++) {
		memcpy(b, a,
		       WORDS * sizeof(*a)); /* one instruction may move all of it: it is interrupted, and goes on */
		for (uint64_t i = 0; i < WORDS; i++)
			a[i] = b[i] + i;
	}
	for (uint64_t i = 0; i < WORDS; i++)
		sum += a[i];
	CHECK_EQ(sum, expected);
	feed_end();
	ticking_end();
	free(a);
	free(b);
}

static void system_call_bound(void)
{
	pid_t parent = getppid();

	ticking_begin();
	feed_begin(spoil);
	for (int i = 0; i < 1000000; i++)
		CHECK_EQ(syscall(SYS_getppid), parent);
	/* Their numbers and results are in registers when a signal comes at the boundary. */
	for (int i = 0; i < 100000; i++) {
		CHECK_EQ(close(-1), -1);
		CHECK_EQ(errno, EBADF);
	}
	feed_end();
	ticking_end();
}

static void errno_is_kept(void)
{
	int runs = 0;

	ticking_begin();
	feed_begin(spoil);
	for (int i = 1; i < 200000 || runs < 500; i++) {
		int before = atomic_load(&spoiled), want = 1000 + i % 1000;

		errno = want;
		for (volatile int k = 0; k < 50; k++)
			;
		CHECK_EQ(errno, want);
		runs += atomic_load(&spoiled) != before;
	}
	feed_end();
	ticking_end();
}

/* ------------------------------------------------------------------------------------------- setjmp, longjmp --- */

static jmp_buf base;

static void climb(int depth, volatile uint64_t *sum)
{
	volatile char frame[64];

	frame[depth % 64] = (char)depth;
	*sum += (uint64_t)frame[depth % 64] * 3;
	if (depth == 0 && frame[0] == 0)
		longjmp(base, 1);
	if (depth > 0)
		climb(depth - 1, sum);
	*sum += 1; /* never */
}

static void jumps(void)
{
	volatile uint64_t sum = 0;
	volatile int i, jumped = 0;

	ticking_begin();
	feed_begin(spoil);
	for (i = 0; i < 400000; i++) {
		if (setjmp(base) == 0)
			climb(20, &sum);
		else
			jumped++;
	}
	CHECK_EQ(jumped, 400000);
	CHECK_EQ(sum, 400000ull * 3 * 210);
	feed_end();
	ticking_end();
}

/* Out of a handler of the program's own, which may have interrupted anything but contd's handler, where it is
 * blocked. */
static sigjmp_buf out;
static volatile sig_atomic_t may_jump;

static void on_usr1(int signo)
{
	(void)signo;
	if (may_jump) {
		may_jump = 0;
		siglongjmp(out, 1);
	}
}

static void jumps_out_of_a_handler(void)
{
	volatile int i;

	CHECK(signal(SIGUSR1, on_usr1) != SIG_ERR);
	ticking_begin();
	feed_begin(NULL);
	for (i = 0; i < 20000; i++) {
		if (sigsetjmp(out, 1) == 0) {
			may_jump = 1;
			pthread_kill(pthread_self(), SIGUSR1);
			DIE("no jump");
		}
		CHECK_EQ(may_jump, 0);
	}
	feed_end();
	ticking_end();
}

static const struct coexist_case cases[] = {
	{"checksum", checksum},
	{"sse", float_sse},
	{"x87", float_x87},
	{"vectors", float_vectors},
	{"avx", float_avx},
	{"avx512", float_avx512},
	{"float_modes", float_modes},
	{"memory_bound", memory_bound},
	{"system_call_bound", system_call_bound},
	{"errno", errno_is_kept},
	{"longjmp", jumps},
	{"siglongjmp", jumps_out_of_a_handler},
};

COEXIST_CASES(cases)
