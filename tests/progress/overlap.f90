! SPDX-License-Identifier: BSD-3-Clause
! As overlap.c, in Fortran: rank 0 begins a send, and then computes for 3 s.
program overlap
  use mpi
  use iso_fortran_env, only: int64
  implicit none
  integer, parameter :: n = 262144
  integer :: error, rank, request, level, i
  integer, allocatable :: buffer(:)
  integer(int64) :: begin, now, rate
  double precision :: x

  call MPI_Init_thread(MPI_THREAD_FUNNELED, level, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  allocate (buffer(n))
  buffer = rank
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call system_clock(begin, rate)
  now = begin
  x = 1
  if (rank == 0) then
    call MPI_Isend(buffer, n, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, request, error)
    do while (now - begin < 3*rate)
      do i = 1, 1000000
        x = x*1.0000001d0 + 1d-9
      end do
      if (x > 1d100) x = 1
      call system_clock(now)
    end do
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    if (x == 0) print *, x ! so that it is computed
  else
    call MPI_Recv(buffer, n, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call system_clock(now)
    if (all(buffer == 0)) print '(a, i0, a)', 'waited ', 1000*(now - begin)/rate, '.0 ms'
  end if
  call MPI_Finalize(error)
end program overlap
