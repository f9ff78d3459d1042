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

  subroutine see_rc(rc, user_data, ierror)
    use mpi_f08
    integer, intent(in) :: rc
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer :: ierror
    runs = runs + 1000 + 0 * rc
    ierror = int(user_data)
  end subroutine see_rc

  subroutine complete_it(extra_state, status, ierror)
    use mpi_f08
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status), optional :: status
    integer :: ierror
    runs = runs + merge(1000, 2000, present(status))
    ierror = int(extra_state)
  end subroutine complete_it
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
    call revised
    call templates
  end subroutine refused

  subroutine revised
    type(MPI_Request) :: cr, request
    type(MPI_Status) :: status
    integer(kind=MPI_ADDRESS_KIND) :: failed(1)
    integer :: ierror, count

    ierror = MPI_SUCCESS
    call MPIX_Continue_init(0, 0, MPI_INFO_NULL, cr, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'init')
    request%MPI_VAL = 12345
    cr%MPI_VAL = 12346
    ierror = MPI_SUCCESS
    call MPIX_Continue(request, see_rc, 0_MPI_ADDRESS_KIND, 0, status, cr, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'attach')
    call check_equal(request%MPI_VAL, 12345, 'the handle')
    ierror = MPI_SUCCESS
    count = 1
    call MPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'get_failed')
    call check_equal(count, 1, 'the count')
  end subroutine revised

  subroutine templates
    type(MPIX_Gr) :: gr
    type(MPI_Request) :: request
    integer :: ierror

    ierror = MPI_SUCCESS
    call MPIX_Gr_init(MPIX_GR_PUSH_FN_NULL, MPIX_GR_PUSH_FN_NULL, complete_it, MPIX_GR_CANCEL_FN_NULL, gr, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'Gr_init')
    ! After the call whose result it is: to Fortran its value before that is gone.
    gr%MPI_VAL = 12345
    request%MPI_VAL = 12345
    ierror = MPI_SUCCESS
    call MPIX_Gr_begin(gr, 0_MPI_ADDRESS_KIND, request, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'Gr_begin')
    call check_equal(request%MPI_VAL, 12345, 'the handle')
    ierror = MPI_SUCCESS
    call MPIX_Mark_request_complete(request, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'Mark_request_complete')
    ierror = MPI_SUCCESS
    call MPIX_Cancel(request, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'Cancel')
    ierror = MPI_SUCCESS
    call MPIX_Gr_free(gr, ierror)
    call check_equal(ierror, MPI_ERR_OTHER, 'Gr_free')
    call check_true(gr%MPI_VAL == 12345, 'the template')
  end subroutine templates

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
