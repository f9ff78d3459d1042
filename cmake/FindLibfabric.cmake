# SPDX-License-Identifier: BSD-3-Clause
# libfabric by its pkg-config module. Defines Libfabric::fabric.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_LIBFABRIC QUIET libfabric)
endif()
find_path(LIBFABRIC_INCLUDE_DIR rdma/fabric.h HINTS ${PC_LIBFABRIC_INCLUDE_DIRS})
find_library(LIBFABRIC_LIBRARY fabric HINTS ${PC_LIBFABRIC_LIBRARY_DIRS})
mark_as_advanced(LIBFABRIC_INCLUDE_DIR LIBFABRIC_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libfabric
  REQUIRED_VARS LIBFABRIC_LIBRARY LIBFABRIC_INCLUDE_DIR
  VERSION_VAR PC_LIBFABRIC_VERSION)
if(Libfabric_FOUND AND NOT TARGET Libfabric::fabric)
  add_library(Libfabric::fabric UNKNOWN IMPORTED)
  set_target_properties(Libfabric::fabric PROPERTIES
    IMPORTED_LOCATION "${LIBFABRIC_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LIBFABRIC_INCLUDE_DIR}")
endif()
