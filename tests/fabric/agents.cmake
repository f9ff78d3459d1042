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
