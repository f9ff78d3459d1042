# SPDX-License-Identifier: BSD-3-Clause
# contd_mpi_fortran(<target> <mpi target> REGEX <regex> WRAPPERS <name>... [HINTS <directory>...])
# Defines <target>: what a Fortran program needs to use the mpi_f08, mpi and mpif.h of the MPI that <mpi target> is. It
# is what the MPI's compiler wrapper says, for on Debian pkg-config's modules know nothing of the directory of the .mod
# files. Of the wrappers with one of these names the first is taken whose answer matches the regex, since mpifort may be
# another MPI's. Without such a wrapper the target is not defined.
function(contd_mpi_fortran target mpi)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "REGEX" "WRAPPERS;HINTS")
  if(TARGET ${target})
    return()
  endif()
  foreach(name IN LISTS arg_WRAPPERS)
    unset(wrapper)
    find_program(wrapper NAMES ${name} HINTS ${arg_HINTS} NO_CACHE)
    if(NOT wrapper)
      continue()
    endif()
    execute_process(COMMAND "${wrapper}" -show OUTPUT_VARIABLE line RESULT_VARIABLE result ERROR_QUIET
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result EQUAL 0 OR NOT line MATCHES "${arg_REGEX}")
      continue()
    endif()
    separate_arguments(words UNIX_COMMAND "${line}")
    set(includes "")
    set(directories "")
    set(libraries "")
    foreach(word IN LISTS words)
      if(word MATCHES "^-I(.+)")
        get_filename_component(directory "${CMAKE_MATCH_1}" REALPATH)
        list(APPEND includes "${directory}")
      elseif(word MATCHES "^-L(.+)")
        get_filename_component(directory "${CMAKE_MATCH_1}" REALPATH)
        list(APPEND directories "${directory}")
      elseif(word MATCHES "^-l(.*mpi.+)")
        # libmpi itself is <mpi target>'s; the others are libraries that the MPI's own need, and programs do not call.
        unset(library)
        find_library(library NAMES ${CMAKE_MATCH_1} HINTS ${directories} NO_CACHE)
        if(library)
          list(APPEND libraries "${library}")
        endif()
      endif()
    endforeach()
    list(REMOVE_DUPLICATES includes)
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${includes}" INTERFACE_LINK_LIBRARIES "${libraries};${mpi}")
    return()
  endforeach()
endfunction()

# contd_openmpi_fortran(): OpenMPI::fortran, where Open MPI has been found and has one.
function(contd_openmpi_fortran)
  contd_mpi_fortran(OpenMPI::fortran OpenMPI::mpi REGEX "-lmpi_usempif08" WRAPPERS mpifort.openmpi mpifort
    HINTS ${PC_OMPI_PREFIX}/bin)
endfunction()

# contd_mpich_fortran(): MPICH::fortran, where MPICH has been found and has one.
function(contd_mpich_fortran)
  contd_mpi_fortran(MPICH::fortran MPICH::mpi REGEX "-lmpichf" WRAPPERS mpifort.mpich mpifort)
endfunction()
