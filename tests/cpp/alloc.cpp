// SPDX-License-Identifier: BSD-3-Clause
/* Nothing is allocated for an await: 10000 of each kind, counted, in one coroutine whose frame is there. */
#include <contd/contd.hpp>

#include "check.hpp"
#include "counted.hpp"

using contd::task;

static constexpr int warm = 2000, many = 10000;

static task<> awaits(contd::executor &pull, contd::event &mine, contd::event &yours, bool first)
{
	std::stop_source source;
	contd::event complete;
	contd::group g;
	alignas(8) uint64_t word = 1;
	long news = 0, mallocs = 0;

	complete.complete(1);
	for (int i = 0; i < warm + many; i++) {
		if (i == warm) {
			news = counted_news;
			mallocs = counted_mallocs;
		}
		co_await complete;
		co_await contd::event_done(complete).stop(source.get_token());
		co_await g;
		co_await contd::word_holds({&word, 0, 1, CONTD_WORD_EQ});
		co_await pull.schedule();
		co_await contd::event_done(complete).on(pull);
		/* By turns with the other one: these must wait. */
		if (first || i)
			yours.complete();
		co_await contd::event_done(mine).stop(source.get_token());
		mine.reset();
		auto [a, b] = co_await contd::when_all(contd::event_done(complete), contd::event_done(complete));
		CHECK(a + b == 2);
	}
	news = counted_news - news;
	mallocs = counted_mallocs - mallocs;
	CHECK(news == 0);
	CHECK(mallocs == 0);
	yours.complete();
}

int main()
{
	contd::dispatcher d;
	contd::executor pull;
	contd::event a, b;
	contd::scope s;

	s.spawn(awaits(pull, a, b, false));
	s.spawn(awaits(pull, b, a, true));
	while (contd_poll(0) > 0 || pull.run(0, 0) > 0)
		;
	s.wait();
	return 0;
}
