# SPDX-License-Identifier: BSD-3-Clause
# Userspace RCU by its pkg-config modules. Defines URCU::memb (the flavour memb) and URCU::cds (lock-free lists).
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_URCU QUIET liburcu-memb liburcu-cds)
endif()
find_path(URCU_INCLUDE_DIR urcu/urcu-memb.h HINTS ${PC_URCU_INCLUDE_DIRS})
foreach(part IN ITEMS memb cds common)
  string(TOUPPER "URCU_${part}_LIBRARY" variable)
  find_library(${variable} urcu-${part} HINTS ${PC_URCU_LIBRARY_DIRS})
  mark_as_advanced(${variable})
endforeach()
mark_as_advanced(URCU_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(URCU
  REQUIRED_VARS URCU_MEMB_LIBRARY URCU_CDS_LIBRARY URCU_COMMON_LIBRARY URCU_INCLUDE_DIR
  VERSION_VAR PC_URCU_liburcu-memb_VERSION)
if(URCU_FOUND AND NOT TARGET URCU::memb)
  foreach(part IN ITEMS memb cds)
    string(TOUPPER "URCU_${part}_LIBRARY" variable)
    add_library(URCU::${part} UNKNOWN IMPORTED)
    set_target_properties(URCU::${part} PROPERTIES
      IMPORTED_LOCATION "${${variable}}"
      INTERFACE_INCLUDE_DIRECTORIES "${URCU_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "${URCU_COMMON_LIBRARY}")
  endforeach()
endif()
