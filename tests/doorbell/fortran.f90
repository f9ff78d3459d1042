! SPDX-License-Identifier: BSD-3-Clause
! A sender in Fortran, for receiver.c's "explicit" mode; the doorbell library is preloaded. Sets up the same as kinds.h.
program fortran_sender
  use mpi_f08
  implicit none
  type(MPI_Comm) :: other_way, side, inter, graph
  type(MPI_Request) :: request
  type(MPI_Datatype) :: vector
  integer :: rank, count, n, i
  integer, allocatable :: everyone(:)
  integer, asynchronous :: value = 42

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, count)
  everyone = [(i, i = 0, count - 1)]
  call MPI_Comm_split(MPI_COMM_WORLD, 0, count - rank, other_way)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, side)
  call MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 0, 9, inter)
  call MPI_Comm_free(side)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, count, everyone, MPI_UNWEIGHTED, count, everyone, MPI_UNWEIGHTED, &
    MPI_INFO_NULL, .false., graph)
  call MPI_Type_vector(4, 1, 2, MPI_INTEGER, vector)
  do
    call MPI_Recv(n, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (n == 0) exit
    do i = 1, n
      if (mod(i, 2) == 1) then
        call MPI_Send(value, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD)
      else
        call MPI_Isend(value, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, request)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
      end if
    end do
  end do
  call MPI_Type_free(vector)
  call MPI_Comm_free(other_way)
  call MPI_Comm_free(inter)
  call MPI_Comm_free(graph)
  call MPI_Finalize()
end program
