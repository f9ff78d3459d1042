# SPDX-License-Identifier: BSD-3-Clause
# with_mpi.c, on each MPI: included where contd-fabric and an MPI are built.
foreach(flavour IN LISTS CONTD_FLAVOURS)
  set(suffix "")
  if(flavour STREQUAL "mpich")
    set(suffix -mpich)
  endif()
  if(NOT TARGET fabric_with_mpi${suffix})
    add_executable(fabric_with_mpi${suffix} "${CMAKE_CURRENT_LIST_DIR}/with_mpi.c")
    target_link_libraries(fabric_with_mpi${suffix} PRIVATE contd_flags contd-mpi${suffix}_tp contd-fabric_tp)
  endif()
  contd_mpi_test(fabric.with_mpi ${flavour} 2 $<TARGET_FILE:fabric_with_mpi${suffix}>)
endforeach()
