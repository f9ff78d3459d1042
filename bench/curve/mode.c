/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The modes: every point of the plots that is measured. A mode of contd's that needs something which this version does
 * not have is left out; CMakeLists.txt looks for it in the public headers.
 *
 * "own core": the rank has one core, as mpirun binds ranks; all that runs beside its computation takes time from it.
 * "spare core": threads beside the computing one run on a core without computation, and the time that they take there
 * counts as lost as well: a rank could compute there.
 */
#include "curve.h"

#ifndef CURVE_HAVE_BELL
#define CURVE_HAVE_BELL 0
#endif
#ifndef CURVE_HAVE_BLOCK
#define CURVE_HAVE_BLOCK 0
#endif
#ifndef CURVE_HAVE_CHECKPOINT
#define CURVE_HAVE_CHECKPOINT 0
#endif

/* clang-format off */
#define TICKS(percent) \
	{.series = "contd: ticks", .setting = percent " %", .name = "ticks-" percent, .how = CURVE_REGION, \
	 .environment = "CONTD_AGENT=region CONTD_BELL=0 CONTD_OVERHEAD_PERCENT=" percent}
#define BELL(percent) \
	{.series = "contd: doorbell", .setting = percent " %", .name = "bell-" percent, .how = CURVE_REGION, \
	 .environment = "CONTD_AGENT=region CONTD_BELL=1 CONTD_OVERHEAD_PERCENT=" percent, \
	 .ring = true, .missing = !CURVE_HAVE_BELL}
#define DAEMON(percent) \
	{.series = "contd: ticking thread", .setting = percent " %", .name = "daemon-" percent, .how = CURVE_PLAIN, \
	 .environment = "CONTD_AGENT=tick CONTD_BELL=0 CONTD_OVERHEAD_PERCENT=" percent}
#define DAEMON_SPARE(percent) \
	{.series = "contd: ticking thread, spare core", .setting = percent " %", .name = "daemon-spare-" percent, \
	 .how = CURVE_PLAIN, .spare = true, \
	 .environment = "CONTD_AGENT=tick CONTD_BELL=0 CONTD_OVERHEAD_PERCENT=" percent}
#define CHECKPOINT(n, percent) \
	{.series = "contd: checkpoint every " #n, .setting = percent " %", .name = "checkpoint-" #n "-" percent, \
	 .how = CURVE_CHECKPOINT, .every = n, .missing = !CURVE_HAVE_CHECKPOINT, \
	 .environment = "CONTD_AGENT=caller CONTD_BELL=0 CONTD_OVERHEAD_PERCENT=" percent}
#define CHECKPOINT_BELL(n, percent) \
	{.series = "contd: checkpoint and doorbell", .setting = "every " #n, \
	 .name = "checkpoint-bell-" #n "-" percent, .how = CURVE_CHECKPOINT, .every = n, .ring = true, \
	 .missing = !CURVE_HAVE_CHECKPOINT || !CURVE_HAVE_BELL, \
	 .environment = "CONTD_AGENT=region CONTD_BELL=1 CONTD_OVERHEAD_PERCENT=" percent}
#define LOOP(n) \
	{.series = "Testsome every n", .setting = #n, .name = "loop-" #n, .how = CURVE_LOOP, .every = n}
#define LOOP_TWICE(n) \
	{.series = "Testsome twice every n", .setting = #n, .name = "loop-twice-" #n, .how = CURVE_LOOP, \
	 .twice = true, .every = n}
#define THREAD(text, id, ns) \
	{.series = "progress thread", .setting = text, .name = "thread-" id, .how = CURVE_THREAD, .sleep_ns = ns}
#define THREAD_SPARE(text, id, ns) \
	{.series = "progress thread, spare core", .setting = text, .name = "thread-spare-" id, .how = CURVE_THREAD, \
	 .spare = true, .sleep_ns = ns}

const struct curve_mode curve_modes[] = {
	TICKS("0.5"), TICKS("1"), TICKS("2"), TICKS("5"), TICKS("10"), TICKS("20"), TICKS("50"),
	BELL("0.5"), BELL("2"), BELL("10"),
	{.series = "contd: doorbell, no region", .setting = "2 %", .name = "bell-plain", .how = CURVE_PLAIN,
	 .ring = true, .environment = "CONTD_AGENT=tick CONTD_BELL=1", .missing = !CURVE_HAVE_BELL},
	DAEMON("0.5"), DAEMON("2"), DAEMON("10"), DAEMON("50"),
	DAEMON_SPARE("2"), DAEMON_SPARE("10"), DAEMON_SPARE("50"),
	{.series = "contd: ticking thread runs callbacks", .setting = "10 %", .name = "daemon-any",
	 .how = CURVE_PLAIN, .spare = true, .any = true,
	 .environment = "CONTD_AGENT=tick CONTD_BELL=0 CONTD_OVERHEAD_PERCENT=10"},
	{.series = "contd: blocking thread", .setting = "block", .name = "block", .how = CURVE_PLAIN,
	 .environment = "CONTD_AGENT=block", .missing = !CURVE_HAVE_BLOCK},
	{.series = "contd: blocking thread, spare core", .setting = "block", .name = "block-spare", .how = CURVE_PLAIN,
	 .spare = true, .environment = "CONTD_AGENT=block", .missing = !CURVE_HAVE_BLOCK},
	{.series = "contd: spinning thread", .setting = "spin", .name = "spin", .how = CURVE_PLAIN,
	 .environment = "CONTD_AGENT=spin", .missing = !CURVE_HAVE_BLOCK},
	{.series = "contd: spinning thread, spare core", .setting = "spin", .name = "spin-spare", .how = CURVE_PLAIN,
	 .spare = true, .environment = "CONTD_AGENT=spin", .missing = !CURVE_HAVE_BLOCK},
	CHECKPOINT(1, "0.5"), CHECKPOINT(1, "2"), CHECKPOINT(1, "10"), CHECKPOINT(1, "50"),
	CHECKPOINT(10, "2"), CHECKPOINT(10, "10"), CHECKPOINT(10, "50"),
	CHECKPOINT_BELL(1, "2"), CHECKPOINT_BELL(10, "2"), CHECKPOINT_BELL(100, "2"),
	LOOP(1), LOOP(10), LOOP(100), LOOP(1000),
	LOOP_TWICE(10), LOOP_TWICE(100), LOOP_TWICE(1000), LOOP_TWICE(10000),
	THREAD("spin", "spin", 0), THREAD("100 µs", "100us", 100000), THREAD("2 ms", "2ms", 2000000),
	THREAD_SPARE("spin", "spin", 0), THREAD_SPARE("100 µs", "100us", 100000), THREAD_SPARE("2 ms", "2ms", 2000000),
};
/* clang-format on */
const size_t curve_mode_count = sizeof(curve_modes) / sizeof(curve_modes[0]);
