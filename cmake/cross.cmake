# SPDX-License-Identifier: BSD-3-Clause
# Toolchain file for another processor, with Debian's cross compiler and libraries (dpkg --add-architecture):
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/cross.cmake -DCONTD_PROCESSOR=aarch64 ...
# Programs run where the kernel starts them: on such a machine, or with qemu-user and binfmt_misc.
set(CMAKE_SYSTEM_NAME Linux)
set(CONTD_PROCESSOR aarch64 CACHE STRING "For which processor: aarch64, riscv64, ... as in the name of Debian's compiler")
set(CMAKE_SYSTEM_PROCESSOR "${CONTD_PROCESSOR}")
set(triplet "${CONTD_PROCESSOR}-linux-gnu")
set(CMAKE_LIBRARY_ARCHITECTURE "${triplet}")
set(CMAKE_C_COMPILER "${triplet}-gcc")
set(CMAKE_CXX_COMPILER "${triplet}-g++")
set(CMAKE_NM "/usr/bin/${triplet}-nm")
set(CMAKE_OBJDUMP "/usr/bin/${triplet}-objdump")
set(CMAKE_ADDR2LINE "/usr/bin/${triplet}-addr2line")
set(CMAKE_READELF "/usr/bin/${triplet}-readelf")
set(ENV{PKG_CONFIG_LIBDIR} "/usr/lib/${triplet}/pkgconfig:/usr/share/pkgconfig")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CONTD_PROCESSOR)
