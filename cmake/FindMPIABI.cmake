# SPDX-License-Identifier: BSD-3-Clause
# MPI's standard ABI (MPI 5.0, chapter 20), by the compiler wrapper mpicc_abi. Programs that are compiled with it run on
# each MPI that has the ABI. Defines
#   MPIABI::mpi     mpi.h of the ABI, and the library (libmpi_abi)
#   MPIABI_MPIRUN   the mpirun beside the wrapper
#   MPIABI_VERSION  of the ABI, as its header has it
find_program(MPIABI_MPICC NAMES mpicc_abi)
set(MPIABI_SHOWN "")
if(MPIABI_MPICC)
  execute_process(COMMAND "${MPIABI_MPICC}" -show OUTPUT_VARIABLE MPIABI_SHOWN ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_filename_component(MPIABI_BIN "${MPIABI_MPICC}" DIRECTORY)
endif()
string(REGEX MATCHALL "(^| )-I[^ ]+" MPIABI_HINTS_INCLUDE "${MPIABI_SHOWN}")
string(REGEX MATCHALL "(^| )-L[^ ]+" MPIABI_HINTS_LIBRARY "${MPIABI_SHOWN}")
string(REGEX MATCHALL "(^| )-D[^ ]+" MPIABI_DEFINITIONS "${MPIABI_SHOWN}")
list(TRANSFORM MPIABI_HINTS_INCLUDE REPLACE "^ ?-I" "")
list(TRANSFORM MPIABI_HINTS_LIBRARY REPLACE "^ ?-L" "")
list(TRANSFORM MPIABI_DEFINITIONS REPLACE "^ ?-D" "")
find_path(MPIABI_INCLUDE_DIR mpi.h HINTS ${MPIABI_HINTS_INCLUDE} NO_DEFAULT_PATH)
find_library(MPIABI_LIBRARY mpi_abi HINTS ${MPIABI_HINTS_LIBRARY} NO_DEFAULT_PATH)
find_program(MPIABI_MPIRUN NAMES mpirun mpiexec.hydra mpiexec PATHS "${MPIABI_BIN}" NO_DEFAULT_PATH)
mark_as_advanced(MPIABI_MPICC MPIABI_INCLUDE_DIR MPIABI_LIBRARY MPIABI_MPIRUN)

# MPICH's mpi.h becomes the ABI's by a definition; Open MPI has a folder with another mpi.h.
set(MPIABI_VERSION "")
if(MPIABI_INCLUDE_DIR)
  foreach(header IN ITEMS mpi_abi.h mpi.h)
    if(NOT MPIABI_VERSION AND EXISTS "${MPIABI_INCLUDE_DIR}/${header}")
      file(STRINGS "${MPIABI_INCLUDE_DIR}/${header}" MPIABI_LINES REGEX "#define[ \t]+MPI_ABI_(SUB)?VERSION[ \t]+[0-9]")
      if("${MPIABI_LINES}" MATCHES "MPI_ABI_VERSION[ \t]+([0-9]+).*MPI_ABI_SUBVERSION[ \t]+([0-9]+)")
        set(MPIABI_VERSION "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
      endif()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MPIABI
  REQUIRED_VARS MPIABI_LIBRARY MPIABI_INCLUDE_DIR MPIABI_VERSION
  VERSION_VAR MPIABI_VERSION
  REASON_FAILURE_MESSAGE "an MPI with the standard ABI, and its mpicc_abi in PATH or as MPIABI_MPICC")
if(MPIABI_FOUND AND NOT TARGET MPIABI::mpi)
  add_library(MPIABI::mpi UNKNOWN IMPORTED)
  set_target_properties(MPIABI::mpi PROPERTIES IMPORTED_LOCATION "${MPIABI_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MPIABI_INCLUDE_DIR}" INTERFACE_COMPILE_DEFINITIONS "${MPIABI_DEFINITIONS}")
endif()
