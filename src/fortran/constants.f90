! SPDX-License-Identifier: BSD-3-Clause
! C can't find these out by itself, or not with every MPI: the addresses of the objects that stand for ignored statuses,
! and the size of a status. The address of a variable in MPI's common blocks is the same in the program and here, since the
! dynamic linker makes one of them.

subroutine contd__f_constants_mpif() bind(C, name='contd__f_constants_mpif')
  implicit none
  include 'mpif.h'
  external :: contd__f_ignored

  call contd__f_ignored(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_STATUS_SIZE)
end subroutine contd__f_constants_mpif
