# SPDX-License-Identifier: BSD-3-Clause
# agents*.c: who looks, on which thread, with what going wrong. Included by CMakeLists.txt here.

# agents_program(<name>): built from <name>.c
function(agents_program name)
  add_executable(fabric_${name} ${CMAKE_CURRENT_SOURCE_DIR}/${name}.c)
  target_compile_definitions(fabric_${name} PRIVATE _GNU_SOURCE)
  target_link_libraries(fabric_${name} PRIVATE contd_flags contd-fabric_tp Threads::Threads)
endfunction()

# agents_test(<program> <case>... PROVIDERS <name>...): rxm is tcp;ofi_rxm, rxd is udp;ofi_rxd
function(agents_test program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PROVIDERS")
  foreach(provider IN LISTS arg_PROVIDERS)
    foreach(case IN LISTS arg_UNPARSED_ARGUMENTS)
      contd_test(fabric.${program}.${provider}.${case} TIMEOUT 180 LABELS fabric
        COMMAND ${launcher} $<TARGET_FILE:fabric_${program}> ${provider} ${case})
    endforeach()
  endforeach()
endfunction()

agents_program(agents)
agents_test(agents poll test wait region nothing block connect pair spin switching daemon idle PROVIDERS rxm shm sockets)
agents_test(agents poll nothing region block connect PROVIDERS rxd net)
agents_test(agents wakeups two_queues idle PROVIDERS fake)

agents_program(agents_faults)
agents_test(agents_faults interrupted errors overrun broken broken_error broken_always withdraw_late PROVIDERS fake)
agents_test(agents_faults storm killed PROVIDERS rxm shm sockets)

agents_program(agents_races)
agents_test(agents_races owned mutex withdraw close many many_again many_withdraw many_slow many_again_slow
  many_withdraw_slow many_close counter PROVIDERS fake)

agents_program(agents_load)
agents_test(agents_load 1 4 PROVIDERS fake rxm shm)
