/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that may be declared, and a switch: its jump through a table is no call. */
/* allow: root handler handler # the example's */
/* allow: root from_callback callback # for the example's sake */
/* allow: pointer callback *program # for the example's sake */
/* allow: pointer ops->first known # for the example's sake */
/* allow: pointer ops->second *outside # for the example's sake */
/* allow: calls handler callback ops->first ops->second # for the example's sake */
/* allow: taken given_away # for the example's sake */
/* allow: edge handler others_value # for the example's sake */
/* allow: never guarded handler_step below handler # for the example's sake */
/* allow: again descend descend 3 # for the example's sake */
/* allow: import malloc on_threads # for the example's sake */
#include <stdlib.h>
#include <time.h>

#include "example.h"

struct ops {
	void (*first)(int n);
	void (*second)(int n);
};

extern void (*volatile callback)(int n);
void (*volatile callback)(int n);
extern void (*volatile given)(void);
void (*volatile given)(void);
extern const struct ops *volatile good_all_ops;
void from_callback(void);
void install(void);
void handler_step(int n);

static void known(int n)
{
	others_data = n;
}

static const struct ops table = {known, NULL};
const struct ops *volatile good_all_ops = &table;

static void given_away(void)
{
	others_data = 5;
}

void install(void)
{
	given = given_away;
}

static NOINLINE void on_threads(void)
{
	others_data = malloc(1) != NULL;
}

static NOINLINE void guarded(int n)
{
	if (n < 0)
		handler_step(n);
	others_data = 6;
}

NOINLINE void handler_step(int n)
{
	guarded(n);
	on_threads();
	others_data = 8;
}

static NOINLINE int descend(int n)
{
	return n > 1 ? descend(n / 2) * n + others_data : 0;
}

void from_callback(void)
{
	others_data = timer_getoverrun((timer_t)0);
}

static NOINLINE int many(int n)
{
	switch (n) {
	case 0:
		return others_data / 3;
	case 1:
		return others_data + 17;
	case 2:
		return others_data * 5;
	case 3:
		return others_data ^ 0x55;
	case 4:
		return others_data - 4;
	case 5:
		return others_data / 7;
	case 6:
		others_data = 9;
		return 33;
	case 7:
		return others_data << 3;
	default:
		return 0;
	}
}

void handler(int signo)
{
	const struct ops *ops = good_all_ops;

	others_data = many(signo) + others_value() + descend(signo);
	handler_step(signo);
	callback(signo);
	ops->first(signo);
	ops->second(signo);
}
