/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ticks every few hundred instructions. Runs a program under ptrace(2). From some of its ticks on it goes on
 * instruction by instruction, and the same tick comes again and again, so that in time one comes at each instruction.
 * Handlers are not stepped through: a breakpoint stops the program where it was interrupted.
 *
 *     stepped LEAST PROGRAM [ARGUMENT...]
 *
 * LEAST: so many ticks must have been added. Exit status: the program's, or 1; 77 where ptrace(2) is not allowed, or
 * on another processor than x86-64.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_STEPS 8000u  /* in a row */
#define MOST_BETWEEN 400u /* instructions between two added ticks */

static uint64_t seed;

static unsigned chance(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Would the signal wait? Then one more would only lengthen the queue. */
static bool blocked(pid_t child, int signo)
{
	uint64_t mask = 0;

	if (ptrace(PTRACE_GETSIGMASK, child, (void *)sizeof(mask), &mask))
		die("PTRACE_GETSIGMASK");
	return mask >> (signo - 1) & 1;
}

#ifdef __x86_64__
static bool poke(pid_t child, size_t at, uintptr_t value)
{
	return ptrace(PTRACE_POKEUSER, child, (void *)at, (void *)value) == 0;
}

/* Stop when the program comes to where it is now; or no more. */
static bool stop_here(pid_t child, bool on)
{
	size_t where = offsetof(struct user, u_debugreg[0]), how = offsetof(struct user, u_debugreg[7]);
	struct user_regs_struct registers;

	if (!on)
		return poke(child, how, 0);
	if (ptrace(PTRACE_GETREGS, child, NULL, &registers))
		return false;
	/* The flag RF, which the last such stop may have left, would have the processor pass over this one. */
	registers.eflags &= ~0x10000ull;
	return ptrace(PTRACE_SETREGS, child, NULL, &registers) == 0 && poke(child, how, 0) &&
	       poke(child, where, registers.rip) && poke(child, how, 1);
}
#else
static bool stop_here(pid_t child, bool on)
{
	(void)child;
	(void)on;
	exit(77);
}
#endif

int main(int argc, char **argv)
{
	unsigned long added = 0, steps = 0, ticks = 0, least = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned left = 0, next = 0;
	int ours = SIGRTMAX - 3, status;
	bool handling = false;
	siginfo_t tick;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "usage: stepped LEAST PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	seed = (uint64_t)getpid();
	child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (child < 0)
		die("fork");
	for (;;) {
		int signo, deliver = 0;

		if (waitpid(child, &status, 0) < 0) {
			if (errno == EINTR)
				continue;
			die("waitpid");
		}
		if (!WIFSTOPPED(status))
			break;
		signo = WSTOPSIG(status);
		if (signo == SIGTRAP) { /* one instruction, or the end of a handler; and exec(2), once */
			if (handling && !stop_here(child, false))
				die("PTRACE_POKEUSER");
			handling = false;
			steps += left != 0;
			left -= left != 0;
			if (left && --next == 0) {
				next = 1 + chance(MOST_BETWEEN);
				if (!blocked(child, ours)) {
					if (ptrace(PTRACE_SETSIGINFO, child, NULL, &tick))
						die("PTRACE_SETSIGINFO");
					if (!stop_here(child, true))
						die("PTRACE_POKEUSER");
					deliver = ours;
					handling = true;
					added++;
				}
			}
		} else {
			deliver = signo;
			if (signo == ours && left && !handling) {
				if (!stop_here(child, true))
					die("PTRACE_POKEUSER");
				handling = true;
			}
			if (signo == ours && !left) {
				if (ptrace(PTRACE_GETSIGINFO, child, NULL, &tick))
					die("PTRACE_GETSIGINFO");
				if (tick.si_code == SI_TIMER) {
					ticks++;
					if (chance(20) == 0) {
						left = 1 + chance(MOST_STEPS);
						next = 1 + chance(MOST_BETWEEN);
					}
				}
			}
		}
		if (ptrace(left && !handling ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, (void *)(intptr_t)deliver))
			die("ptrace");
	}
	printf("stepped: %lu ticks, %lu added in %lu steps\n", ticks, added, steps);
	if (WIFSIGNALED(status)) {
		printf("stepped: the program was ended by signal %d\n", WTERMSIG(status));
		return 1;
	}
	if (WEXITSTATUS(status) == 0 && added < least) {
		printf("stepped: %lu ticks were to be added\n", least);
		return 1;
	}
	return WEXITSTATUS(status);
}
