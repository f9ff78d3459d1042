# SPDX-License-Identifier: BSD-3-Clause
# chaos.mpi.<level>.<seed>   the seed, for CONTD_CHAOS_SHORT_SECONDS, at that thread level
# chaos.mpi.<level>.full     an hour, or CONTD_CHAOS_SECONDS of the environment; in check-long
function(chaos_mpi_test name flavour ranks labels)
  contd_mpi_test(${name} ${flavour} ${ranks} ${ARGN})
  string(REPLACE ".native" "" test "${name}.${flavour}.${ranks}")
  set_tests_properties(${test} PROPERTIES LABELS "${labels}")
  if(labels STREQUAL "long-full")
    set_tests_properties(${test} PROPERTIES TIMEOUT 172800)
  endif()
endfunction()

foreach(flavour IN LISTS CONTD_FLAVOURS_OF_MPI)
  contd_mpi_program(target chaos_mpi ${flavour} "${CMAKE_CURRENT_SOURCE_DIR}/chaos/chaos_mpi.c")
  if(NOT flavour STREQUAL "portable") # which has the same program as native
    target_sources(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/chaos/harness.c")
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/chaos")
    target_link_options(${target} PRIVATE "LINKER:--wrap=contd__handler")
    add_dependencies(check-long ${target})
  endif()
  # Open MPI 4.1's Testsome forgets sends beside an operation that has failed if their memory is not zero:
  # docs/requests.md.
  set(without "")
  if(flavour STREQUAL "portable")
    set(without --without fail)
  endif()
  # Below multiple one thread calls MPI, and one rank has little to do.
  foreach(run IN ITEMS multiple.1.1 multiple.2.1 multiple.1.2 multiple.2.2 serialized.3.2 funneled.4.2)
    string(REPLACE "." ";" run ${run})
    list(POP_FRONT run level seed ranks)
    set(share "")
    if(ranks EQUAL 2 AND flavour MATCHES "^(mpich|abi)$")
      set(share SHARE 3) # for half of the time its ranks do not call MPI
    endif()
    chaos_mpi_test(chaos.mpi.${level}.${seed} ${flavour} ${ranks} "long;mpi;${flavour}" ${share}
      $<TARGET_FILE:${target}> --level ${level} --seed ${seed} --seconds ${CONTD_CHAOS_SHORT_SECONDS} ${without})
  endforeach()
  foreach(run IN ITEMS multiple.1 multiple.2 serialized.2 funneled.2)
    string(REPLACE "." ";" run ${run})
    list(POP_FRONT run level ranks)
    chaos_mpi_test(chaos.mpi.${level}.full ${flavour} ${ranks} long-full FULL
      $<TARGET_FILE:${target}> --level ${level} ${without})
  endforeach()
endforeach()
