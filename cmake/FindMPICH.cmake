# SPDX-License-Identifier: BSD-3-Clause
# MPICH, or an MPI of its family, by its own compiler wrapper: where several MPI libraries are installed, mpicc and FindMPI
# may give another one. Defines
#   MPICH::mpi     mpi.h and the library
#   MPICH_MPIRUN   its mpirun
#   MPICH_VERSION
find_program(MPICH_MPICC NAMES mpicc.mpich mpicc)
set(MPICH_SHOWN "")
if(MPICH_MPICC)
  execute_process(COMMAND "${MPICH_MPICC}" -show OUTPUT_VARIABLE MPICH_SHOWN ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
string(REGEX MATCHALL "(^| )-I[^ ]+" MPICH_HINTS_INCLUDE "${MPICH_SHOWN}")
string(REGEX MATCHALL "(^| )-L[^ ]+" MPICH_HINTS_LIBRARY "${MPICH_SHOWN}")
list(TRANSFORM MPICH_HINTS_INCLUDE REPLACE "^ ?-I" "")
list(TRANSFORM MPICH_HINTS_LIBRARY REPLACE "^ ?-L" "")
find_path(MPICH_INCLUDE_DIR mpi.h HINTS ${MPICH_HINTS_INCLUDE} NO_DEFAULT_PATH)
find_library(MPICH_LIBRARY NAMES mpich mpi HINTS ${MPICH_HINTS_LIBRARY} NO_DEFAULT_PATH)
find_program(MPICH_MPIRUN NAMES mpirun.mpich mpiexec.hydra mpirun)
mark_as_advanced(MPICH_MPICC MPICH_INCLUDE_DIR MPICH_LIBRARY MPICH_MPIRUN)

# Is it MPICH? Its header says so.
set(MPICH_VERSION "")
if(MPICH_INCLUDE_DIR)
  file(STRINGS "${MPICH_INCLUDE_DIR}/mpi.h" MPICH_LINE REGEX "#define[ \t]+MPICH_VERSION[ \t]")
  if(MPICH_LINE MATCHES "\"([^\"]*)\"")
    set(MPICH_VERSION "${CMAKE_MATCH_1}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MPICH
  REQUIRED_VARS MPICH_LIBRARY MPICH_INCLUDE_DIR MPICH_VERSION
  VERSION_VAR MPICH_VERSION
  REASON_FAILURE_MESSAGE "Debian: libmpich-dev")
if(MPICH_FOUND AND NOT TARGET MPICH::mpi)
  add_library(MPICH::mpi UNKNOWN IMPORTED)
  set_target_properties(MPICH::mpi PROPERTIES IMPORTED_LOCATION "${MPICH_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MPICH_INCLUDE_DIR}")
endif()
