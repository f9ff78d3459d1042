! SPDX-License-Identifier: BSD-3-Clause
! Not to be compiled: the compiler would pass a copy of these statuses, which is gone when they are written.

subroutine with_stride(requests, statuses, cb, cr)
  use mpi_f08
  use contd_mpi_f08
  implicit none
  type(MPI_Request) :: requests(5), cr
  type(MPI_Status), asynchronous :: statuses(10)
  procedure(MPIX_Continue_cb_function) :: cb
  call MPIX_Continueall(5, requests, cb, 0_MPI_ADDRESS_KIND, 0, statuses(::2), cr)
end subroutine with_stride
