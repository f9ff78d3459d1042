// SPDX-License-Identifier: BSD-3-Clause
// contd/executor-tbb.hpp, in a new arena and in one of the program's; memory that runs out, and exceptions.
#include <contd/executor-tbb.hpp>

#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include <dlfcn.h>

#include <oneapi/tbb/global_control.h>

#include "executors.h"

namespace
{

std::unique_ptr<contd::tbb_executor> tbb_pool;
std::unique_ptr<tbb::task_arena> arena;

contd_executor *start(int threads)
{
	tbb_pool.reset(new contd::tbb_executor(threads));
	return tbb_pool->get();
}

contd_executor *start_in_arena(int threads)
{
	arena.reset(new tbb::task_arena(threads, 0));
	tbb_pool.reset(new contd::tbb_executor(*arena));
	return tbb_pool->get();
}

int stop()
{
	return tbb_pool->close();
}

/* Not by its name: threads that TBB makes when contd's daemon submits have inherited the daemon's. */
int is_mine()
{
	return tbb::this_task_arena::current_thread_index() != tbb::task_arena::not_initialized;
}

const struct pool own_pool = {"arena of its own", "oneTBB, task_arena of 3 threads,", start, stop, is_mine, 1, 0};
const struct pool program_pool = {
	"arena of the program's", "oneTBB, task_arena of 3 threads,", start_in_arena, stop, is_mine, 1, 0};

thread_local bool no_memory, no_task;

} // namespace

/* Counts the program's allocations with new, without TBB's own pools. */
__attribute__((noinline)) void *operator new(std::size_t bytes)
{
	void *memory = no_memory ? nullptr : std::malloc(bytes ? bytes : 1);

	if (!memory)
		throw std::bad_alloc();
	return memory;
}

__attribute__((noinline)) void operator delete(void *memory) noexcept
{
	std::free(memory);
}

__attribute__((noinline)) void operator delete(void *memory, std::size_t) noexcept
{
	std::free(memory);
}

namespace tbb
{
namespace detail
{
namespace r1
{

/* task_arena::enqueue() calls this at its end. Here it fails if the test says so. */
void enqueue(d1::task &task, d1::task_arena_base *to)
{
	typedef void next_enqueue(d1::task &, d1::task_arena_base *);
	static next_enqueue *const next = reinterpret_cast<next_enqueue *>(
		dlsym(RTLD_NEXT, "_ZN3tbb6detail2r17enqueueERNS0_2d14taskEPNS2_15task_arena_baseE"));

	if (no_task)
		throw std::bad_alloc();
	next(task, to);
}

} // namespace r1
} // namespace detail
} // namespace tbb

namespace
{

/* The pool's queue can't grow while its thread is held up: what is refused is told, and runs once after that or not at
 * all. */
void out_of_memory()
{
	contd_task first;
	int refused = 0, accepted = 0;

	begin(CONTD_AGENT_CALLER, 1);
	contd_task_init(&first, executor, CONTD_PRIORITY_NORMAL, block, nullptr);
	must(contd_task_submit(&first, 0));
	sem_wait(&blocked);
	for (int i = 0; i < 1000; i++) {
		contd_task_init(&pieces[i].task, executor, 0, run_piece, &pieces[i]);
		no_memory = i >= 100 && i < 500;
		no_task = i >= 600 && i < 800;
		int r = contd_task_submit(&pieces[i].task, i % 7);
		check(r == 0 || r == -ENOMEM, "%d", r);
		check(!no_task || r == -ENOMEM, "%d", r);
		no_memory = no_task = false;
		pieces[i].status = r;
		(r ? refused : accepted)++;
	}
	check(refused > 300, "%d refused", refused);
	for (int i = 0; i < 1000; i++) /* again */
		if (pieces[i].status)
			must(contd_task_submit(&pieces[i].task, i % 7));
	sem_post(&released);
	must(contd_executor_drain(executor));
	all_have_run(1000);
	check(strangers == 0, "%d ran elsewhere", strangers);

	/* A continuation that is refused runs where it is found. */
	total = 0;
	std::memset(pieces, 0, sizeof(pieces));
	contd_group *group = group_of(executor, 0);
	for (int i = 0; i < 1000; i++) {
		put(&pieces[i], run_piece, &pieces[i], group);
		complete(i);
		no_memory = i % 4 == 1;
		no_task = i % 4 == 3;
		contd_poll(0);
		no_memory = no_task = false;
	}
	wait_and_destroy(group);
	all_have_run(1000);
	check(strangers >= 250, "%d have run here", strangers);
	end();
}

std::atomic<int> others{0};

/* The arena has work of the program's, which does not mind. */
void beside_other_tasks()
{
	contd_group *group;

	executor = nullptr;
	must(contd_init(nullptr));
	total = strangers = 0;
	std::memset(pieces, 0, sizeof(pieces));
	executor = start_in_arena(3);
	group = group_of(executor, CONTD_PRIORITY_HIGH);
	for (int i = 0; i < 1000; i++) {
		put(&pieces[i], run_piece, &pieces[i], group);
		arena->enqueue([]() { others++; });
		complete(i);
	}
	wait_and_destroy(group);
	all_have_run(1000);
	while (others < 1000)
		usleep(100);
	end();
}

/* Constructors throw; and what a C++ callback throws it must catch itself. */
void exceptions()
{
	bool thrown = false;

	try {
		contd::tbb_executor too_early(1);
	} catch (const std::system_error &error) {
		thrown = error.code() == std::errc::operation_not_permitted;
	}
	check(thrown, "before contd_init()");
}

} // namespace

int main()
{
	/* As many threads as the arenas ask for, on machines with few cores as well. */
	tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 5);

	exceptions();
	executors_run(&own_pool);
	executors_run(&program_pool);
	pool = &own_pool;
	out_of_memory();
	beside_other_tasks();
	tbb_pool.reset();
	return 0;
}
