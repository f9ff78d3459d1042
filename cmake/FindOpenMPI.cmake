# SPDX-License-Identifier: BSD-3-Clause
# Open MPI, by its own pkg-config module: where several MPI libraries are installed, mpicc and FindMPI may give another
# one. Defines
#   OpenMPI::mpi       mpi.h and libmpi, for programs; from 6.0 on also libopen_mpi, where the predefined objects are
#   OpenMPI::internal  where they are installed: Open MPI's internal headers ("ompi/request/request.h"), which contd-mpi's
#                      description of them is compared with
#   OpenMPI_MPIRUN     its mpirun
#   OpenMPI_INFO       its ompi_info
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_OMPI QUIET ompi-c)
endif()
# The module's flags are parsed here, since it may name directories only (-I.../include/openmpi) or none at all.
find_path(OpenMPI_INCLUDE_DIR mpi.h HINTS ${PC_OMPI_INCLUDE_DIRS} NO_DEFAULT_PATH)
find_path(OpenMPI_INTERNAL_INCLUDE_DIR ompi/request/request.h
  HINTS ${PC_OMPI_INCLUDE_DIRS} "${OpenMPI_INCLUDE_DIR}" PATH_SUFFIXES openmpi NO_DEFAULT_PATH)
find_library(OpenMPI_MPI_LIBRARY mpi HINTS ${PC_OMPI_LIBRARY_DIRS} NO_DEFAULT_PATH)
get_filename_component(OpenMPI_FOLDER "${OpenMPI_MPI_LIBRARY}" DIRECTORY)
find_library(OpenMPI_OBJECTS_LIBRARY open_mpi PATHS "${OpenMPI_FOLDER}" NO_DEFAULT_PATH)
# Beside the library, under any of the names, before elsewhere: another MPI's mpirun cannot start this one's programs.
find_program(OpenMPI_MPIRUN NAMES mpirun.openmpi orterun mpirun NAMES_PER_DIR PATHS ${PC_OMPI_PREFIX}/bin NO_DEFAULT_PATH)
find_program(OpenMPI_MPIRUN NAMES mpirun.openmpi orterun mpirun)
find_program(OpenMPI_INFO NAMES ompi_info HINTS ${PC_OMPI_PREFIX}/bin)
mark_as_advanced(OpenMPI_INCLUDE_DIR OpenMPI_INTERNAL_INCLUDE_DIR OpenMPI_MPI_LIBRARY OpenMPI_OBJECTS_LIBRARY
  OpenMPI_MPIRUN OpenMPI_INFO)

# The internal headers are complete only together: compile what is included.
if(OpenMPI_INTERNAL_INCLUDE_DIR AND NOT DEFINED OpenMPI_HEADERS_WORK)
  include(CheckCSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_INCLUDES "${OpenMPI_INCLUDE_DIR}" "${OpenMPI_INTERNAL_INCLUDE_DIR}")
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_c_source_compiles("
    #include \"ompi_config.h\"
    #include \"ompi/request/request.h\"
    int contd_probe(ompi_request_t *r); int contd_probe(ompi_request_t *r) { return r->req_persistent; }"
    OpenMPI_HEADERS_WORK)
  cmake_pop_check_state()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenMPI
  REQUIRED_VARS OpenMPI_MPI_LIBRARY OpenMPI_INCLUDE_DIR
  VERSION_VAR PC_OMPI_VERSION
  REASON_FAILURE_MESSAGE "Debian: libopenmpi-dev")
set(OpenMPI_VERSION "${PC_OMPI_VERSION}")
if(OpenMPI_FOUND AND NOT TARGET OpenMPI::mpi)
  add_library(OpenMPI::mpi UNKNOWN IMPORTED)
  set_target_properties(OpenMPI::mpi PROPERTIES IMPORTED_LOCATION "${OpenMPI_MPI_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OpenMPI_INCLUDE_DIR}")
  if(OpenMPI_OBJECTS_LIBRARY)
    set_property(TARGET OpenMPI::mpi PROPERTY INTERFACE_LINK_LIBRARIES "${OpenMPI_OBJECTS_LIBRARY}")
  endif()
  if(OpenMPI_HEADERS_WORK)
    add_library(OpenMPI::internal INTERFACE IMPORTED)
    set_target_properties(OpenMPI::internal PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${OpenMPI_INCLUDE_DIR};${OpenMPI_INTERNAL_INCLUDE_DIR}")
  endif()
endif()
