# SPDX-License-Identifier: BSD-3-Clause
# agents*.c: which agent looks, on which thread, and what goes wrong. Included by CMakeLists.txt here.

# agents_program(<name>): built from <name>.c
function(agents_program name)
  add_executable(fabric_${name} ${CMAKE_CURRENT_SOURCE_DIR}/${name}.c ${CMAKE_CURRENT_SOURCE_DIR}/quick_start.c)
  target_compile_definitions(fabric_${name} PRIVATE _GNU_SOURCE)
  target_link_libraries(fabric_${name} PRIVATE contd_flags contd-fabric_tp Threads::Threads)
endfunction()

# agents_test(<program> <case>... PROVIDERS <name>...): rxm is tcp;ofi_rxm, rxd is udp;ofi_rxd
function(agents_test program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PROVIDERS")
  foreach(provider IN LISTS arg_PROVIDERS)
    # With sanitizers the queue of the test's own alone: they have ticks and daemons of real providers come late.
    if(CONTD_INSTRUMENTED AND NOT provider STREQUAL "fake")
      continue()
    endif()
    foreach(case IN LISTS arg_UNPARSED_ARGUMENTS)
      contd_test(fabric.${program}.${provider}.${case} TIMEOUT 120 SHARE 1 LABELS fabric
        COMMAND ${launcher} $<TARGET_FILE:fabric_${program}> ${provider} ${case})
    endforeach()
  endforeach()
endfunction()

agents_program(agents)
agents_test(agents poll test wait region nothing block connect spin switching daemon idle PROVIDERS rxm shm sockets)
agents_test(agents pair PROVIDERS rxm shm sockets)
agents_test(agents poll nothing region block connect PROVIDERS rxd)
# Not block and pair, which count looks: fi_trywait(3) of net's (libfabric 1.17) always says that one may sleep, and takes
# nothing back that was signalled: from its first completion on a queue's descriptor is readable for ever. Completions come
# in time nevertheless, but the daemon never sleeps on the descriptor: it looks as often as the budget allows.
agents_test(agents poll nothing region connect PROVIDERS net)
agents_test(agents wakeups two_queues idle PROVIDERS fake)

agents_program(agents_faults)
agents_test(agents_faults interrupted errors overrun broken broken_error broken_always withdraw_late PROVIDERS fake)
agents_test(agents_faults open PROVIDERS rxm rxd shm sockets net)
agents_test(agents_faults storm PROVIDERS rxm shm sockets)
# Not on shm: a sender (fi_tsend of libfabric 1.17) holds a spin lock in the receiver's memory. Of a sender that is killed
# there, which here is one in some ten, the receiver's next fi_cq_read() waits for ever.
agents_test(agents_faults killed PROVIDERS rxm sockets)

agents_program(agents_races)
agents_test(agents_races owned mutex withdraw close begun_late region_stop many many_again many_withdraw many_slow many_again_slow
  many_withdraw_slow many_close many_end many_withdraw_told
  many_outlives skipped_look counter PROVIDERS fake)

agents_program(agents_load)
agents_test(agents_load 1 4 PROVIDERS fake rxm shm)
# check-long: ten million.
if(NOT CONTD_INSTRUMENTED)
  foreach(provider IN ITEMS fake rxm shm)
    contd_test(fabric.agents_load.full.${provider} TIMEOUT 7200 LABELS long-full SERIAL CONFIGURATIONS LongFull
      ENVIRONMENT CONTD_FABRIC_LOAD=10000000 COMMAND ${launcher} $<TARGET_FILE:fabric_agents_load> ${provider} 4)
  endforeach()
  add_dependencies(check-long fabric_agents_load)
endif()

# The examples with event loops, run to their end; with each way of the daemon's of making the descriptor readable.
if(CONTD_INSTRUMENTED)
  return()
endif()
set(loops fabric_epoll)
if(LIBUV_FOUND)
  list(APPEND loops fabric_libuv)
endif()
foreach(loop IN LISTS loops)
  add_executable(${loop} "${PROJECT_SOURCE_DIR}/examples/${loop}.c" "${PROJECT_SOURCE_DIR}/examples/fabric_echo.c")
  set_target_properties(${loop} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
  target_link_libraries(${loop} PRIVATE contd_flags contd::contd-fabric Threads::Threads)
  if(loop STREQUAL "fabric_libuv")
    target_link_libraries(${loop} PRIVATE PkgConfig::LIBUV)
  endif()
  foreach(agent IN ITEMS tick block spin)
    contd_test(fabric.${loop}.shm.${agent} TIMEOUT 60 SHARE 1 LABELS fabric
      ENVIRONMENT CONTD_AGENT=${agent} COMMAND ${launcher} $<TARGET_FILE:${loop}> shm)
    contd_test(fabric.${loop}.sockets.${agent} TIMEOUT 60 SHARE 1 LABELS fabric
      ENVIRONMENT CONTD_AGENT=${agent} COMMAND ${launcher} $<TARGET_FILE:${loop}> sockets)
    contd_test(fabric.${loop}.rxm.${agent} TIMEOUT 60 SHARE 1 LABELS fabric
      ENVIRONMENT CONTD_AGENT=${agent} COMMAND ${launcher} $<TARGET_FILE:${loop}>)
  endforeach()
endforeach()
