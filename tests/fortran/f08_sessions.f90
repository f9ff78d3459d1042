! SPDX-License-Identifier: BSD-3-Clause
! ranks: 2
! needs: sessions
! mpi_f08: continuations in a program that has sessions alone, and never calls MPI_Init.

module counting
  use mpi_f08
  use check
  implicit none
  integer :: runs = 0

contains

  subroutine completion(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror

    call check_equal(array_of_statuses(1)%MPI_TAG, int(user_data), 'tag')
    runs = runs + 1
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine completion
end module counting

program f08_sessions
  use mpi_f08
  use contd_mpi_f08
  use counting
  use check
  implicit none
  integer :: rank, ranks, next, previous, i, in, rc
  type(MPI_Session) :: session
  type(MPI_Group) :: group
  type(MPI_Comm) :: comm
  type(MPI_Request) :: cont_request, request
  type(MPI_Status) :: status(1)

  call check_name('before the session')
  call MPI_Continue_init(MPI_INFO_NULL, cont_request, rc)
  call check_true(rc /= MPI_SUCCESS, 'refused')

  call check_name('in the session')
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
  call MPI_Group_from_session_pset(session, 'mpi://WORLD', group)
  call MPI_Comm_create_from_group(group, 'contd.fortran', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm)
  call MPI_Group_free(group)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call MPI_Continue_init(MPI_INFO_NULL, cont_request, rc)
  call check_equal(rc, MPI_SUCCESS, 'a continuation request')
  do i = 1, 5
    call MPI_Irecv(in, 1, MPI_INTEGER, previous, i, comm, request)
    call MPI_Continue(request, completion, int(i, MPI_ADDRESS_KIND), status(1), cont_request, rc)
    call check_equal(rc, MPI_SUCCESS, 'attach')
    call MPI_Send(100 * rank + i, 1, MPI_INTEGER, next, i, comm)
    call MPI_Wait(cont_request, MPI_STATUS_IGNORE)
    call check_equal(runs, i, 'runs')
    call check_equal(in, 100 * previous + i, 'message')
  end do
  call MPI_Request_free(cont_request)
  call MPI_Barrier(comm)
  call MPI_Comm_free(comm)
  call MPI_Session_finalize(session)
end program f08_sessions
