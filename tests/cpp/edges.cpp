// SPDX-License-Identifier: BSD-3-Clause
/* contd/contd.hpp where two things come together: forced orders, each of which a program may meet. No MPI. */
#include <contd/contd.hpp>

#include <optional>

#include "check.hpp"

// ------------------------------------------------------------------------------------------------- a pool that helps

/* Its submit() runs other work when it is full: here, in the first call, what comes next. */
struct helping_pool {
	contd_work *queued[2] = {};
	std::atomic<int> submitted{0};

	int submit(contd_work *work, int)
	{
		int n = submitted++;

		queued[n] = work;
		if (n == 0) {
			std::thread([work] { contd_work_run(work); }).join();
			CHECK(submitted == 2);
			contd_work_run(queued[1]);
		}
		return 0;
	}
};

/* While the first operation is submitted another thread runs it, and makes the next one where it stood. */
static void another_in_its_place()
{
	contd::dispatcher d;
	helping_pool pool;
	contd::executor e = contd::executor::over(pool);
	struct place {
		contd::executor &e;
		std::optional<contd::schedule_operation> operation;
		int first = 0, second = 0;

		static void after_first(void *data) noexcept
		{
			auto *self = static_cast<place *>(data);

			self->first++;
			self->operation.emplace(self->e.get(), 0);
			CHECK(self->operation->start(after_second, self));
		}
		static void after_second(void *data) noexcept
		{
			static_cast<place *>(data)->second++;
		}
	} here{e, {}};

	here.operation.emplace(e.get(), 0);
	CHECK(here.operation->start(place::after_first, &here));
	CHECK(here.first == 1 && here.second == 1);
}

int main()
{
	another_in_its_place();
	return 0;
}
