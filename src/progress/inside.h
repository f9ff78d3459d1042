/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the interrupted thread is in the middle of, as far as the functions that this library stands in front of can
 * tell: a call of MPI, or a function of the C library that calls the program back.
 *
 * A function that is entered leaves a mark: where its frame is, and the address that it will return to. The mark is
 * live as long as the stack reaches below that frame and the return address is still there. So a function that is left
 * by longjmp(3), or by an exception, does not stay marked: the stack ends above its frame, or another call has used
 * the place since. A mark that is wrongly taken for live costs progress; one that is wrongly taken for dead cannot be,
 * because nothing overwrites the return address of a call that is under way.
 *
 * Only the outermost function has a mark: while it is live, those below it make no difference. Handlers of the program
 * have a mark of their own, which is looked at first: an alternate stack may lie inside the thread's own stack, above
 * frames that are live, and there those would be taken for dead.
 *
 *     operation               thread  handler  progress
 *     contd__enter, _leave      yes     yes    wait-free
 *     contd__mark_is_live       yes     yes    wait-free
 *     contd__turn_take_sig          yes     yes    wait-free in the number of callers; a system call
 *     contd__callers_inside_sig     yes     yes    wait-free in the number of callers
 *     contd__allows             no      yes    wait-free in the logarithm of the number of objects
 *     contd__wants_looks        yes     yes    wait-free
 */
#ifndef CONTD_PROGRESS_INSIDE_H
#define CONTD_PROGRESS_INSIDE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

struct contd__mark {
	uintptr_t frame; /* 0: none */
	uintptr_t back;  /* what stands at the place of the return address */
};

/* A thread that calls MPI, if several do. Never freed: another thread takes it when this one has ended. */
struct contd__caller {
	uint32_t inside; /* it is in MPI */
	uint32_t taken;
	struct contd__caller *next;
} __attribute__((aligned(64)));

/* Of a thread. All zero but for those that ticks come to, or whose calls are counted. */
struct contd__inside {
	uintptr_t low, high;             /* its stack */
	uintptr_t inner_low, inner_high; /* alternate stacks for handlers that lie in it, and what is between them */
	struct contd__mark mpi;
	struct contd__mark called;    /* of a function that calls the program back */
	struct contd__mark handler;   /* of a signal handler of the program */
	bool ticks;                   /* it makes progress for the program: in a tick, or as contd's own thread */
	bool in_call;                 /* it is counted as one in MPI: */
	struct contd__caller *caller; /* here, or if that is NULL in `turn` of struct contd__progress */
	uint32_t loose;               /* such functions, and calls of MPI, that were entered on another stack */
	uint32_t locks;               /* streams that the program has locked */
	uint64_t loads;               /* how often it has loaded or unloaded libraries */
	uint32_t floating;            /* x86-64: how the program computed when it last called MPI, MXCSR */
	uint16_t floating_x87;        /* and the control word of long double */
	sigset_t signals;             /* in a tick: which signals the thread had blocked */
};
/* The state of this folder, of a thread: the folder's units write it. */
extern __thread struct contd__inside contd__inside __attribute__((tls_model("initial-exec"), visibility("hidden")));

enum contd__entered {
	ENTERED_UNSEEN, /* the thread is not attached */
	ENTERED_INNER,  /* below another one */
	ENTERED_OUTER,
	ENTERED_LOOSE
};

/* Beside a frame pointer stands the return address, on each of the processors that this library is for. */
static inline uintptr_t contd__back_at(uintptr_t frame)
{
	return *(volatile uintptr_t *)(frame + sizeof(uintptr_t)); /* NOLINT: the frame of a function under way */
}

static inline bool contd__mark_is_live(const struct contd__mark *mark, uintptr_t stack)
{
	return mark->frame && stack <= mark->frame && contd__back_at(mark->frame) == mark->back;
}

static inline bool contd__on_own_stack(uintptr_t address)
{
	return address - contd__inside.low < contd__inside.high - contd__inside.low;
}

/* An alternate stack that lies in the thread's own. */
static inline void contd__inner_stack(const stack_t *stack)
{
	uintptr_t low = (uintptr_t)stack->ss_sp, high = low + stack->ss_size;

	if (stack->ss_flags & SS_DISABLE || !contd__on_own_stack(low))
		return;
	if (!contd__inside.inner_high || low < contd__inside.inner_low)
		contd__store(&contd__inside.inner_low, low);
	if (high > contd__inside.inner_high)
		contd__store(&contd__inside.inner_high, high);
}

/*
 * Linux begins each signal handler with the default way of computing (rounding, denormals, traps). In a tick MPI's
 * reductions have that of the program's last call of MPI.
 */
static inline void contd__floating_keep(void)
{
#if defined(__x86_64__)
	__asm__ volatile("stmxcsr %0" : "=m"(contd__inside.floating));
	__asm__ volatile("fnstcw %0" : "=m"(contd__inside.floating_x87));
#endif
}

/* In a handler: its end restores what the thread has. */
static inline void contd__floating_use(void)
{
#if defined(__x86_64__)
	uint32_t floating = contd__inside.floating & ~0x3fu; /* no exception is pending */

	__asm__ volatile("ldmxcsr %0" : : "m"(floating));
	__asm__ volatile("fldcw %0" : : "m"(contd__inside.floating_x87));
#endif
}

/* `frame` is the caller's. *before is for contd__leave(). */
static inline __attribute__((always_inline)) enum contd__entered contd__enter(struct contd__mark *mark, uintptr_t frame,
									      struct contd__mark *before)
{
	if (!contd__inside.high)
		return ENTERED_UNSEEN;
	if (__builtin_expect(!contd__on_own_stack(frame), 0)) {
		contd__store(&contd__inside.loose, contd__inside.loose + 1);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		return ENTERED_LOOSE;
	}
	if (contd__mark_is_live(mark, frame))
		return ENTERED_INNER;
	/* A tick in between would find the code of this library interrupted, and pass. */
	*before = *mark;
	mark->back = contd__back_at(frame);
	contd__store(&mark->frame, frame);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return ENTERED_OUTER;
}

static inline __attribute__((always_inline)) void contd__leave(struct contd__mark *mark, enum contd__entered how,
							       const struct contd__mark *before)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (how == ENTERED_OUTER)
		*mark = *before;
	else if (__builtin_expect(how == ENTERED_LOOSE, 0))
		contd__store(&contd__inside.loose, contd__inside.loose - 1);
}

/* The same for a function that is jumped to, so that it will have the place of its caller's frame. */
static inline void contd__mark_next(struct contd__mark *mark, uintptr_t frame, uintptr_t back)
{
	if (!contd__inside.high || !contd__on_own_stack(frame) || contd__back_at(frame) != back ||
	    contd__mark_is_live(mark, frame))
		return;
	mark->back = back;
	contd__store(&mark->frame, frame);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#define CONTD__FRAME ((uintptr_t)__builtin_frame_address(0))

/* The outcomes of ticks while something was outstanding. */
enum contd__passed {
	PASSED_NOT,     /* progress was made */
	PASSED_MPI,     /* inside a call of MPI, or another thread is; or another thread's tick makes progress */
	PASSED_TURN,    /* another thread has called MPI last */
	PASSED_CLOSURE, /* in code of MPI, of the C library, or of another library that MPI needs */
	PASSED_UNKNOWN, /* in code of no library that was seen */
	PASSED_CALLED,  /* below a function that calls the program back, or in a handler of the program's */
	PASSED_STACK,   /* on another stack, or too little of it is left */
	PASSED_LOADER,  /* libraries have been loaded or unloaded since the last call of MPI, or are being */
	PASSED_USER,    /* code of the program's might be called */
	PASSED_ENDING,  /* the program ends, or MPI has failed */
	PASSED_COUNT
};

/* The code of the process, as one sorted array. */
struct contd__code {
	uintptr_t begin, end;
	bool closure, program;
};
struct contd__places {
	uint64_t generation; /* as in struct contd__progress */
	uint32_t count;
	struct contd__code code[];
};

#define HOOKS 6u
#define READ_AGAIN UINT64_MAX

/* For the handler. Each word is written by the thread that is in MPI, if nothing else is said. With MPI_THREAD_MULTIPLE
 * several threads may write the counts, by atomic additions. */
struct contd__progress {
	struct contd__places *places;
	uint64_t generation;   /* `loads`, when `places` was read; READ_AGAIN: the next call of MPI reads again */
	uint64_t loads;        /* how often libraries were loaded or unloaded; any thread */
	uint32_t loading;      /* threads that are doing so, or walk through the libraries; any thread */
	uint32_t unfound;      /* libraries that a thread may still be loading; any thread that reads */
	uint32_t ending;       /* no progress any more; any thread */
	uint32_t initializing; /* MPI_Init is under way */
	uint32_t user_code;    /* code of the program's that progress might call */
	uint32_t reducing;     /* collective operations were begun since nothing was outstanding */
	uint32_t requests;     /* outstanding */
	uint32_t started;      /* persistent requests */
	uint32_t windows;
	bool main_runs;  /* main() has begun */
	int tick_signal; /* the signal of contd's ticks; 0: none yet; whichever thread takes it */
	bool allow_user_code;
	sigset_t but_faults; /* signals that wait while progress is made */
	bool shared;         /* several threads call MPI: MPI_THREAD_SERIALIZED and above */
	bool multiple;       /* at the same time: MPI_THREAD_MULTIPLE */
	bool by_thread;      /* contd's thread makes progress, and no tick */
	uint32_t turn;       /* if shared: threads in MPI without a struct contd__caller; and, always, TURN_TICK */
	struct contd__caller *callers;
	uintptr_t last;    /* by turns: the thread that has called last, as contd__this_thread() has it; 0: any */
	uint32_t floating; /* if by_thread: as in struct contd__inside, of the thread that has begun something last */
	uint16_t floating_x87;
	uint32_t locked;                    /* and streams that threads have locked; any thread */
	void *const volatile *hooks[HOOKS]; /* where glibc before 2.34 has functions of the program's; or NULL */
	uint64_t begun, moved;              /* operations, all that were counted; and ticks that found work */
	uint64_t passed[PASSED_COUNT];
};
/* The same of the process. */
extern struct contd__progress contd__progress __attribute__((visibility("hidden")));

/*
 * From MPI_THREAD_SERIALIZED on a call of MPI and a tick's progress on another thread exclude each other. A tick does
 * not wait: it passes. A call waits until the tick is done. So must a thread that takes a lock of the C library's or of
 * the loader's, for good, because the tick may need it, and the thread may call MPI before it gives it back. Both are
 * of the kind store, then load (Dekker): TURN_TICK and then `loading` and `locked` there; these and then TURN_TICK
 * here. So does, at each thread level, a thread that ends the program, because the handlers of atexit(3) may take MPI
 * down, and a thread that forks, because the child would have locks that no thread of its own releases. The first
 * stores `ending`, the second adds to `loading`; these two do not wait for more than a second.
 *
 * A call stores `inside` of its struct contd__caller and then loads TURN_TICK, without a fence. The tick makes that one
 * for all threads, by membarrier(2), after it has stored TURN_TICK and before it looks at each `inside`. So a call
 * costs a store and a load; where the kernel has no such call, an atomic addition to `turn`.
 *
 * With MPI_THREAD_MULTIPLE MPI itself would bear a call beside a tick. They exclude each other all the same: a thread
 * that is in MPI makes progress for all, and may hold MPI's locks while it waits for the interrupted thread (in a
 * function of the program's that MPI has called). But there no call waits for more than a second for progress that is
 * under way (TURN_LOOKS), so no two can wait for each other for good. Contd's thread takes its turn in the same way.
 */
#define TURN_TICK 0x80000000u  /* it is a tick's turn, or that of contd's thread */
#define TURN_LOOKS 0x40000000u /* and it makes progress, if several threads call MPI */

static inline uintptr_t contd__this_thread(void)
{
	return (uintptr_t)&contd__inside;
}

/* Take the turn (TURN_TICK and `more`), if no thread is in MPI. */
bool contd__turn_take_sig(uint32_t more);

/* How many threads are in MPI; the calling one counts. */
uint32_t contd__callers_inside_sig(void);

bool contd__allows(const void *context);

/* After progress. */
void contd__allowed(void);

/* How much is outstanding. */
uint32_t contd__wants_looks(void);

#endif
