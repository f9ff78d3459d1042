! SPDX-License-Identifier: BSD-3-Clause
! A message each way, with the mpi module. 2 ranks.
program messages
  use mpi
  implicit none
  integer :: rank, r(2), ierr, x, y
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  y = 5
  call MPI_Irecv(x, 1, MPI_INTEGER, 1 - rank, 3, MPI_COMM_WORLD, r(1), ierr)
  call MPI_Isend(y, 1, MPI_INTEGER, 1 - rank, 3, MPI_COMM_WORLD, r(2), ierr)
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, ierr)
  print *, 'rank', rank, x
  call MPI_Finalize(ierr)
end program
