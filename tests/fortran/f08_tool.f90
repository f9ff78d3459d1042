! SPDX-License-Identifier: BSD-3-Clause
! ranks: 1
! mpi_f08: a tool's functions take the place of the library's and go on to the PMPI names.

module tool
  implicit none
  integer :: inits = 0, attached = 0, runs = 0
end module tool

subroutine MPI_Continue_init_f08(info, cont_req, ierror)
  use mpi_f08
  use contd_mpi_f08, only: PMPI_Continue_init
  use tool
  implicit none
  type(MPI_Info), intent(in) :: info
  type(MPI_Request), intent(out) :: cont_req
  integer, optional, intent(out) :: ierror
  inits = inits + 1
  call PMPI_Continue_init(info, cont_req, ierror)
end subroutine MPI_Continue_init_f08

subroutine MPI_Continue_scalar_f08(op_request, cb, cb_data, status, cont_request, ierror)
  use mpi_f08
  use contd_mpi_f08, only: PMPI_Continue, MPI_Continue_cb_function
  use tool
  implicit none
  type(MPI_Request), intent(inout) :: op_request
  procedure(MPI_Continue_cb_function) :: cb
  integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
  type(MPI_Status), intent(in), asynchronous, target :: status
  type(MPI_Request), intent(in) :: cont_request
  integer, optional, intent(out) :: ierror
  attached = attached + 1
  call PMPI_Continue(op_request, cb, cb_data, status, cont_request, ierror)
end subroutine MPI_Continue_scalar_f08

subroutine MPIX_Continue_f08(op_request, cb, cb_data, flags, status, cont_request, ierror)
  use mpi_f08
  use contd_mpi_f08, only: PMPIX_Continue, MPIX_Continue_cb_function
  use tool
  implicit none
  type(MPI_Request), intent(inout) :: op_request
  procedure(MPIX_Continue_cb_function) :: cb
  integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
  integer, intent(in) :: flags
  type(MPI_Status), intent(in), asynchronous, target :: status(1)
  type(MPI_Request), intent(in) :: cont_request
  integer, optional, intent(out) :: ierror
  attached = attached + 1
  call PMPIX_Continue(op_request, cb, cb_data, flags, status, cont_request, ierror)
end subroutine MPIX_Continue_f08

module callback
  implicit none
contains
  subroutine see_rc(rc, user_data, ierror)
    use mpi_f08
    use tool
    integer, intent(in) :: rc
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer :: ierror
    runs = runs + merge(1, 1000, rc == MPI_SUCCESS .and. user_data == 5)
    ierror = MPI_SUCCESS
  end subroutine see_rc

  subroutine see(array_of_statuses, user_data, ierror)
    use mpi_f08
    use tool
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    runs = runs + merge(1, 1000, array_of_statuses(1)%MPI_TAG == user_data)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine see
end module callback

program f08_tool
  use mpi_f08
  use contd_mpi_f08
  use callback
  use tool
  use check
  implicit none
  type(MPI_Request) :: cr, request
  type(MPI_Status) :: status, array(1)
  integer :: ierror

  call MPI_Init()
  call check_name('tool')
  call MPI_Continue_init(MPI_INFO_NULL, cr)
  call check_equal(inits, 1, 'calls of MPI_Continue_init that the tool saw')
  request = MPI_REQUEST_NULL
  call MPI_Continue(request, see, int(MPI_ANY_TAG, MPI_ADDRESS_KIND), status, cr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'attach')
  call check_equal(attached, 1, 'calls of MPI_Continue that the tool saw')
  call MPI_Continue(request, see, int(MPI_ANY_TAG, MPI_ADDRESS_KIND), array, cr) ! not wrapped
  call PMPI_Continue(request, see, int(MPI_ANY_TAG, MPI_ADDRESS_KIND), status, cr)
  call MPI_Wait(cr, MPI_STATUS_IGNORE)
  call check_equal(attached, 1, 'calls of others that the tool saw')
  call check_equal(runs, 3, 'runs')
  call MPIX_Continue(request, see_rc, 5_MPI_ADDRESS_KIND, 0, array, cr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'attach')
  call MPIX_Continue(request, see_rc, 5_MPI_ADDRESS_KIND, 0, status, cr) ! not wrapped
  call MPI_Wait(cr, MPI_STATUS_IGNORE)
  call check_equal(attached, 2, 'calls of MPIX_Continue that the tool saw')
  call check_equal(runs, 5, 'runs')
  call MPI_Request_free(cr)
  call MPI_Finalize()
end program f08_tool
