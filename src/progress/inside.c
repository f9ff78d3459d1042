/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reached from the signal handler: async-signal-safe code only. Is the place that a tick has interrupted as good as a
 * compute region? docs/progress.md has the rule, and why it suffices.
 */
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "progress/context.h"
#include "progress/inside.h"
#include "signal/inspect.h"

#define ROOM (64u * 1024 + 16384) /* below the interrupted frame: for MPI's progress, and for contd's handler */

__thread struct contd__inside contd__inside;
struct contd__progress contd__progress;

#define P contd__progress

/* NULL: in no object. */
static const struct contd__code *code_at(const struct contd__places *places, uintptr_t pc)
{
	uint32_t from = 0, to = places->count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		const struct contd__code *code = &places->code[middle];

		if (pc < code->begin)
			to = middle;
		else if (pc >= code->end)
			from = middle + 1;
		else
			return code;
	}
	return NULL;
}

/* Is it live? A dead one is taken away, so that it cannot come to life when the stack grows down again. */
static bool live(struct contd__mark *mark, uintptr_t sp)
{
	if (contd__mark_is_live(mark, sp))
		return true;
	contd__store(&mark->frame, 0);
	return false;
}

/* Would the C library's allocator call the program? */
static bool hooked(const struct contd__places *places)
{
	for (uint32_t i = 0; i < HOOKS && P.hooks[i]; i++) {
		uintptr_t hook = (uintptr_t)*P.hooks[i];
		const struct contd__code *code = hook ? code_at(places, hook) : NULL;

		if (hook && !(code && code->closure && !code->program))
			return true;
	}
	return false;
}

static enum contd__passed judge(const ucontext_t *context)
{
	uintptr_t sp = contd__sp_of(context);
	const struct contd__places *places = contd__load(&P.places);
	const struct contd__code *code;

	if (contd__load_seq(&P.ending) || !places)
		return PASSED_ENDING;
	if (!contd__on_own_stack(sp) || sp - contd__inside.low < ROOM)
		return PASSED_STACK;
	/* The frame with the alternate stack is gone if the stack ends above it. */
	if (contd__inside.inner_high && sp >= contd__inside.inner_high)
		contd__inside.inner_low = contd__inside.inner_high = 0;
	/* Marks of frames below it would be taken for dead. */
	if (sp - contd__inside.inner_low < contd__inside.inner_high - contd__inside.inner_low)
		return PASSED_STACK;
	if (live(&contd__inside.handler, sp))
		return PASSED_CALLED;
	if (live(&contd__inside.mpi, sp))
		return PASSED_MPI;
	if (live(&contd__inside.called, sp) || contd__inside.loose || contd__inside.locks)
		return PASSED_CALLED;
	if (contd__load_seq(&P.loads) != places->generation || contd__load_seq(&P.loading))
		return PASSED_LOADER;
	code = code_at(places, contd__pc_of(context));
	if (!code) {
		/* It may have been loaded since the table was read, by a thread that was about to. */
		if (contd__load(&P.unfound)) {
			contd__store(&P.unfound, 0);
			contd__store(&P.generation, READ_AGAIN);
		}
		return PASSED_UNKNOWN;
	}
	if (code->closure)
		return PASSED_CLOSURE;
	if (!P.allow_user_code && (contd__load_seq(&P.user_code) || contd__load(&P.reducing) || hooked(places)))
		return PASSED_USER;
	return PASSED_NOT;
}

void contd__allowed(void)
{
	if (!P.shared)
		return;
	contd__and(&P.turn, ~(TURN_TICK | TURN_LOOKS));
	pthread_sigmask(SIG_SETMASK, &contd__inside.signals, NULL);
}

/* It is for the thread that has called MPI last to make progress. */
static bool off_turn(void)
{
	uintptr_t last = contd__load_seq(&P.last);

	return last && last != contd__this_thread();
}

uint32_t contd__callers_inside_sig(void)
{
	uint32_t n = contd__load_seq(&P.turn) & ~(TURN_TICK | TURN_LOOKS);

	/* Acquire: the list with the exchange in turns.c; `inside` with the release at the end of a call, because
	 * without MPI_THREAD_MULTIPLE nothing else makes what MPI has done there visible here. */
	for (const struct contd__caller *c = contd__load_acquire(&P.callers); c; c = c->next)
		n += contd__load_acquire(&c->inside);
	return n;
}

bool contd__turn_take_sig(uint32_t more)
{
	uint32_t nobody = 0;

	if (contd__load(&P.turn) || contd__callers_inside_sig() || !contd__cas(&P.turn, &nobody, TURN_TICK | more))
		return false;
	/* The partner is in contd__turn_begin(). */
	if (!contd__load_seq(&P.callers) ||
	    (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) && !contd__callers_inside_sig()))
		return true;
	contd__and(&P.turn, ~(TURN_TICK | more));
	return false;
}

static enum contd__passed judge_shared(const ucontext_t *context)
{
	enum contd__passed passed;

	if (!P.multiple && off_turn()) {
		contd__inspect_rest_sig(true);
		if (off_turn())
			return PASSED_TURN;
		contd__inspect_rest_sig(false);
	}
	if (contd__load(&P.turn))
		return PASSED_MPI;
	/* A handler of the program's that leaves by siglongjmp(3) would leave the turn taken. */
	pthread_sigmask(SIG_BLOCK, &P.but_faults, &contd__inside.signals);
	if (!contd__turn_take_sig(0)) {
		pthread_sigmask(SIG_SETMASK, &contd__inside.signals, NULL);
		return PASSED_MPI;
	}
	passed = judge(context);
	if (passed == PASSED_NOT && contd__load_seq(&P.locked))
		passed = PASSED_CALLED;
	if (passed != PASSED_NOT)
		contd__allowed();
	else if (!P.multiple)
		contd__store_seq(&P.last, contd__this_thread());
	return passed;
}

bool contd__allows(const void *context)
{
	enum contd__passed passed = P.shared ? judge_shared(context) : judge(context);

	contd__add(&P.passed[passed], 1);
	return passed == PASSED_NOT;
}

uint32_t contd__wants_looks(void)
{
	if (contd__load_seq(&P.ending))
		return 0;
	return contd__load_seq(&P.requests) + contd__load_seq(&P.started) + contd__load_seq(&P.windows);
}
