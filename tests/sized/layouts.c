/* SPDX-License-Identifier: BSD-3-Clause */
/* The structures of include/ begin as those of layouts_0_2.h, which end without padding: it compiles, or it does
 * not. */
#include <contd/contd.h>
#include <contd/executor.h>

#include "is_of.h"
#include "layouts_0_2.h"

IS_OF(contd_config, size);
IS_OF(contd_config, signal_number);
IS_OF(contd_config, signal_taken);
IS_OF(contd_config, agent);
IS_OF(contd_config, overhead_percent);
IS_OF(contd_config, tick_min_ns);
IS_OF(contd_config, tick_max_ns);
IS_OF(contd_config, scan_count);
IS_OF(contd_config, scan_ns);
IS_OF(contd_config, bell);
IS_OF(contd_config, watchdog_ns);
IS_OF(contd_config, watchdog);
IS_OF(contd_config, watchdog_data);
IS_OF(contd_config, daemon_name);
IS_OF(contd_config, daemon_cpus);
IS_OF(contd_config, daemon_sched);
IS_OF(contd_config, dump_signal);
IS_OF(contd_config, dump_file);
IS_OF(contd_config, verbose);
IS_OF(contd_config, reserved);
ENDS_WITH(contd_config, stats);

IS_OF(contd_group_attr, size);
IS_OF(contd_group_attr, flags);
IS_OF(contd_group_attr, max_poll);
IS_OF(contd_group_attr, priority);
ENDS_WITH(contd_group_attr, reserved);

IS_OF(contd_thread_attr, size);
IS_OF(contd_thread_attr, flags);
ENDS_WITH(contd_thread_attr, stack_bytes);

IS_OF(contd_daemon_attr, size);
ENDS_WITH(contd_daemon_attr, tick_ns);

IS_OF(contd_stats, size);
IS_OF(contd_stats, registered);
IS_OF(contd_stats, run);
IS_OF(contd_stats, run_handler);
IS_OF(contd_stats, run_region);
IS_OF(contd_stats, run_daemon);
IS_OF(contd_stats, run_inline);
IS_OF(contd_stats, cancelled);
IS_OF(contd_stats, ticks);
IS_OF(contd_stats, notifications);
IS_OF(contd_stats, notify_failed);
IS_OF(contd_stats, guarded);
IS_OF(contd_stats, overruns);
IS_OF(contd_stats, handler_ns);
IS_OF(contd_stats, lost_ns);
IS_OF(contd_stats, tick_cost_ns);
IS_OF(contd_stats, tick_ns);
IS_OF(contd_stats, scans);
IS_OF(contd_stats, grown);
IS_OF(contd_stats, rings);
IS_OF(contd_stats, rings_sent);
IS_OF(contd_stats, put_off);
IS_OF(contd_stats, handler_max_ns);
ENDS_WITH(contd_stats, latency);

IS_OF(contd_executor_ops, size);
IS_OF(contd_executor_ops, submit);
IS_OF(contd_executor_ops, notify);
IS_OF(contd_executor_ops, drain);
ENDS_WITH(contd_executor_ops, describe);

IS_OF(contd_executor_attr, size);
IS_OF(contd_executor_attr, flags);
IS_OF(contd_executor_attr, ops);
ENDS_WITH(contd_executor_attr, pool);
