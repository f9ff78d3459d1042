! SPDX-License-Identifier: BSD-3-Clause
! A message each way, with mpi_f08. 2 ranks.
program messages
  use mpi_f08
  implicit none
  integer :: rank, x, y
  type(MPI_Request) :: r(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  y = 5
  call MPI_Irecv(x, 1, MPI_INTEGER, 1 - rank, 3, MPI_COMM_WORLD, r(1))
  call MPI_Isend(y, 1, MPI_INTEGER, 1 - rank, 3, MPI_COMM_WORLD, r(2))
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  print *, 'rank', rank, x
  call MPI_Finalize()
end program
