/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The public structures that begin with their size, as the headers of 0.2 have them. Programs that were compiled
 * against these headers give contd such structures for as long as it keeps its soname: this file stays as it is. Fields
 * that a later version adds go to the end of the structures in include/, and into no padding.
 *
 * The includer defines LAYOUT(name), what a structure is called here, and LATER, the fields that a later header has
 * more.
 */
#include <stddef.h>
#include <stdint.h>

struct contd_executor;
struct contd_late;
struct contd_work;

struct LAYOUT(contd_config) {
	size_t size;
	int signal_number, signal_taken, agent;
	double overhead_percent;
	uint64_t tick_min_ns, tick_max_ns;
	uint32_t scan_count;
	uint64_t scan_ns;
	int bell;
	uint64_t watchdog_ns;
	void (*watchdog)(const struct contd_late *, void *);
	void *watchdog_data;
	const char *daemon_name, *daemon_cpus, *daemon_sched, *dump_signal, *dump_file;
	int verbose, reserved;
	const char *stats;
	LATER
};

struct LAYOUT(contd_group_attr) {
	size_t size;
	uint32_t flags;
	int32_t max_poll, priority;
	uint32_t reserved;
	LATER
};

struct LAYOUT(contd_thread_attr) {
	size_t size;
	uint32_t flags, stack_bytes;
	LATER
};

struct LAYOUT(contd_daemon_attr) {
	size_t size;
	uint64_t tick_ns;
	LATER
};

struct LAYOUT(contd_stats) {
	size_t size;
	uint64_t registered, run, run_handler, run_region, run_daemon, run_inline, cancelled, ticks, notifications,
		notify_failed, guarded, overruns, handler_ns, lost_ns, tick_cost_ns, tick_ns, scans, grown, rings,
		rings_sent, put_off, handler_max_ns, latency[40];
	LATER
};

struct LAYOUT(contd_executor_ops) {
	size_t size;
	int (*submit)(void *, struct contd_work *, int);
	void (*notify)(void *);
	void (*drain)(void *);
	int (*describe)(void *, char *, size_t);
	LATER
};

struct LAYOUT(contd_executor_attr) {
	size_t size;
	uint32_t flags;
	const struct LAYOUT(contd_executor_ops) * ops;
	void *pool;
	LATER
};

/* Enumerations of libfabric's have the size of an int. */
struct LAYOUT(contd_fabric_attr) {
	size_t size;
	int format, wait;
	void *fabric;
	int threading;
	void *mutex;
	uint32_t flags, operations;
	void (*foreign)(const void *, void *);
	void *data;
	LATER
};
