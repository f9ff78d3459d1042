! SPDX-License-Identifier: BSD-3-Clause
! As constants.f90, for mpi_f08.

subroutine contd__f_constants_f08() bind(C, name='contd__f_constants_f08')
  use mpi_f08, only: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_STATUS_SIZE
  implicit none
  external :: contd__f_ignored
  ! Divides by zero, which the compiler refuses, where type(MPI_Status) and the older array differ in size.
  integer, parameter :: bits = storage_size(MPI_STATUS_IGNORE), old_bits = MPI_STATUS_SIZE * storage_size(0)
  integer, parameter :: same_size = 1 / merge(1, 0, bits == old_bits)

  call contd__f_ignored(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, same_size * MPI_STATUS_SIZE)
end subroutine contd__f_constants_f08
