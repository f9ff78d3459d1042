! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: the draft's example 3.21, a persistent receive that is restarted and attached again in its callback.

module restart
  use mpi_f08
  use contd_mpi_f08
  use check
  implicit none
  integer, parameter :: rounds = 20
  type(MPI_Request) :: recv_request, cont_request, same
  integer :: value = -1, received = 0, sum = 0

contains

  recursive subroutine completion(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    integer :: rc
    logical :: flag
    type(MPI_Status) :: empty

    call check_true(recv_request == same, 'the handle in the callback')
    call MPI_Request_get_status(recv_request, flag, empty) ! with MPI_STATUS_IGNORE Open MPI 4.1 always says no
    call check_true(flag, 'inactive in the callback')
    call check_equal(array_of_statuses(1)%MPI_TAG, 1, 'tag')
    received = received + 1
    sum = sum + value
    if (received < user_data) then
      call MPI_Start(recv_request, rc)
      call check_equal(rc, MPI_SUCCESS, 'start')
      call MPI_Continue(recv_request, completion, user_data, array_of_statuses(1:1), cont_request, rc)
      call check_equal(rc, MPI_SUCCESS, 'attach in the callback')
      call check_true(recv_request == same, 'the handle after that')
    end if
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine completion
end module restart

program f08_persistent
  use mpi_f08
  use contd_mpi_f08
  use restart
  use check
  implicit none
  integer :: rank, ranks, i, expected
  type(MPI_Status) :: status

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  expected = rounds * ranks
  if (rank == 0) then
    call MPI_Continue_init(MPI_INFO_NULL, cont_request)
    call MPI_Recv_init(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, recv_request)
    same = recv_request
    call MPI_Start(recv_request)
    call MPI_Continue(recv_request, completion, int(expected, MPI_ADDRESS_KIND), status, cont_request)
    call check_true(recv_request == same, 'the handle stays')
  end if
  do i = 1, rounds
    call MPI_Send(rank + 1, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD)
  end do
  if (rank == 0) then
    call MPI_Wait(cont_request, MPI_STATUS_IGNORE)
    call check_equal(received, expected, 'messages')
    call check_equal(sum, rounds * ranks * (ranks + 1) / 2, 'sum')
    call MPI_Request_free(recv_request)
    call MPI_Request_free(cont_request)
  end if
  call MPI_Finalize()
end program f08_persistent
