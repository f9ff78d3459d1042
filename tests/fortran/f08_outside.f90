! SPDX-License-Identifier: BSD-3-Clause
! ranks: 1
! mpi_f08: before MPI_Init and after MPI_Finalize the calls fail, and change nothing.

module callback
  implicit none
  integer :: runs = 0
contains
  subroutine see(array_of_statuses, user_data, ierror)
    use mpi_f08
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    runs = runs + merge(1, 1000, array_of_statuses(1)%MPI_TAG == user_data)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine see
end module callback

program f08_outside
  use mpi_f08
  use contd_mpi_f08
  use callback
  use check
  implicit none

  call check_name('before MPI_Init')
  call refused
  call MPI_Init()
  call check_name('after MPI_Init')
  call accepted
  call MPI_Finalize()
  call check_name('after MPI_Finalize')
  call refused
  call check_equal(runs, 1, 'runs')

contains

  subroutine refused
    type(MPI_Request) :: cr, request
    type(MPI_Status) :: status
    integer :: ierror

    ierror = MPI_SUCCESS
    call MPI_Continue_init(MPI_INFO_NULL, cr, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'init')
    request%MPI_VAL = 12345
    cr%MPI_VAL = 12346
    status%MPI_TAG = -77
    ierror = MPI_SUCCESS
    call MPI_Continue(request, see, 0_MPI_ADDRESS_KIND, status, cr, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'attach')
    call check_equal(request%MPI_VAL, 12345, 'the handle')
    call check_equal(status%MPI_TAG, -77, 'the status')
    call queries(1)
    call queries(50)
  end subroutine refused

  subroutine queries(n)
    integer, intent(in) :: n
    type(MPI_Request) :: requests(n)
    type(MPI_Status) :: statuses(n)
    integer :: ierror, outcount, indices(n)
    logical :: flag

    requests%MPI_VAL = 12345
    statuses%MPI_TAG = -77
    ierror = MPI_SUCCESS
    call MPI_Request_get_status_all(n, requests, flag, statuses, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'all')
    ierror = MPI_SUCCESS
    call MPI_Request_get_status_any(n, requests, outcount, flag, statuses(1), ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'any')
    ierror = MPI_SUCCESS
    call MPI_Request_get_status_some(n, requests, outcount, indices, MPI_STATUSES_IGNORE, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'some')
    call check_equal(statuses(n)%MPI_TAG, -77, 'the statuses')
  end subroutine queries

  subroutine accepted
    type(MPI_Request) :: cr, request
    type(MPI_Status) :: status
    integer :: ierror

    call MPI_Continue_init(MPI_INFO_NULL, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'init')
    request = MPI_REQUEST_NULL
    call MPI_Continue(request, see, int(MPI_ANY_TAG, MPI_ADDRESS_KIND), status, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call MPI_Request_free(cr)
  end subroutine accepted
end program f08_outside
