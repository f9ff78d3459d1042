! SPDX-License-Identifier: BSD-3-Clause
! MPI completion continuations (MPI Forum's draft chapter, sections 3.11.1 to 3.11.3) and status queries, to be used beside mpi_f08. What
! the calls do is said in contd/mpi.h. Link with contd-mpi-fortran.
!
! Beyond the draft: MPI_Continue also takes a status that is no array, for MPI_STATUS_IGNORE is none in mpi_f08. And
! statuses are targets: without that gfortran concludes that only the call itself may write them.

module contd_mpi_f08
  use mpi_f08, only: MPI_Info, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
  implicit none
  private

  public :: MPI_Continue_cb_function
  public :: MPI_Continue_init, MPI_Continue, MPI_Continueall
  public :: PMPI_Continue_init, PMPI_Continue, PMPI_Continueall
  public :: MPI_Request_get_status_all, MPI_Request_get_status_any, MPI_Request_get_status_some
  public :: PMPI_Request_get_status_all, PMPI_Request_get_status_any, PMPI_Request_get_status_some
  public :: MPIX_Request_get_status_all, MPIX_Request_get_status_any, MPIX_Request_get_status_some
  public :: PMPIX_Request_get_status_all, PMPIX_Request_get_status_any, PMPIX_Request_get_status_some

  abstract interface
    ! array_of_statuses is what was given when the continuation was attached, MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE
    ! included; user_data is a copy of cb_data. ierror is present, and MPI_SUCCESS; nobody looks at it afterwards.
    subroutine MPI_Continue_cb_function(array_of_statuses, user_data, ierror)
      import :: MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Status) :: array_of_statuses(*)
      integer(kind=MPI_ADDRESS_KIND) :: user_data
      integer, optional :: ierror
    end subroutine MPI_Continue_cb_function
  end interface

  interface MPI_Continue_init
    subroutine MPI_Continue_init_f08(info, cont_req, ierror)
      import :: MPI_Info, MPI_Request
      type(MPI_Info), intent(in) :: info
      type(MPI_Request), intent(out) :: cont_req
      integer, optional, intent(out) :: ierror
    end subroutine MPI_Continue_init_f08
  end interface MPI_Continue_init

  interface MPI_Continue
    subroutine MPI_Continue_f08(op_request, cb, cb_data, status, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: status(1)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine MPI_Continue_f08

    subroutine MPI_Continue_scalar_f08(op_request, cb, cb_data, status, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: status
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine MPI_Continue_scalar_f08
  end interface MPI_Continue

  interface MPI_Continueall
    subroutine MPI_Continueall_f08(count, array_of_op_requests, cb, cb_data, array_of_statuses, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_op_requests(count)
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: array_of_statuses(*)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine MPI_Continueall_f08
  end interface MPI_Continueall

  interface PMPI_Continue_init
    subroutine PMPI_Continue_init_f08(info, cont_req, ierror)
      import :: MPI_Info, MPI_Request
      type(MPI_Info), intent(in) :: info
      type(MPI_Request), intent(out) :: cont_req
      integer, optional, intent(out) :: ierror
    end subroutine PMPI_Continue_init_f08
  end interface PMPI_Continue_init

  interface PMPI_Continue
    subroutine PMPI_Continue_f08(op_request, cb, cb_data, status, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: status(1)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine PMPI_Continue_f08

    subroutine PMPI_Continue_scalar_f08(op_request, cb, cb_data, status, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: status
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine PMPI_Continue_scalar_f08
  end interface PMPI_Continue

  interface PMPI_Continueall
    subroutine PMPI_Continueall_f08(count, array_of_op_requests, cb, cb_data, array_of_statuses, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_op_requests(count)
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: array_of_statuses(*)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine PMPI_Continueall_f08
  end interface PMPI_Continueall

  ! Status queries of MPI 4.1, 3.7.6: what they do is said in contd/mpi.h. Also by their MPIX names.
  interface MPI_Request_get_status_all
    subroutine MPI_Request_get_status_all_f08(count, array_of_requests, flag, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      logical, intent(out) :: flag
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine MPI_Request_get_status_all_f08
  end interface MPI_Request_get_status_all

  interface MPI_Request_get_status_any
    subroutine MPI_Request_get_status_any_f08(count, array_of_requests, index, flag, status, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      integer, intent(out) :: index
      logical, intent(out) :: flag
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine MPI_Request_get_status_any_f08
  end interface MPI_Request_get_status_any

  interface MPI_Request_get_status_some
    subroutine MPI_Request_get_status_some_f08(incount, array_of_requests, outcount, array_of_indices, &
        array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: incount
      type(MPI_Request), intent(in) :: array_of_requests(incount)
      integer, intent(out) :: outcount
      integer, intent(out) :: array_of_indices(*)
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine MPI_Request_get_status_some_f08
  end interface MPI_Request_get_status_some

  interface PMPI_Request_get_status_all
    subroutine PMPI_Request_get_status_all_f08(count, array_of_requests, flag, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      logical, intent(out) :: flag
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine PMPI_Request_get_status_all_f08
  end interface PMPI_Request_get_status_all

  interface PMPI_Request_get_status_any
    subroutine PMPI_Request_get_status_any_f08(count, array_of_requests, index, flag, status, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      integer, intent(out) :: index
      logical, intent(out) :: flag
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine PMPI_Request_get_status_any_f08
  end interface PMPI_Request_get_status_any

  interface PMPI_Request_get_status_some
    subroutine PMPI_Request_get_status_some_f08(incount, array_of_requests, outcount, array_of_indices, &
        array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: incount
      type(MPI_Request), intent(in) :: array_of_requests(incount)
      integer, intent(out) :: outcount
      integer, intent(out) :: array_of_indices(*)
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine PMPI_Request_get_status_some_f08
  end interface PMPI_Request_get_status_some

  interface MPIX_Request_get_status_all
    procedure :: MPI_Request_get_status_all_f08
  end interface MPIX_Request_get_status_all

  interface PMPIX_Request_get_status_all
    procedure :: PMPI_Request_get_status_all_f08
  end interface PMPIX_Request_get_status_all

  interface MPIX_Request_get_status_any
    procedure :: MPI_Request_get_status_any_f08
  end interface MPIX_Request_get_status_any

  interface PMPIX_Request_get_status_any
    procedure :: PMPI_Request_get_status_any_f08
  end interface PMPIX_Request_get_status_any

  interface MPIX_Request_get_status_some
    procedure :: MPI_Request_get_status_some_f08
  end interface MPIX_Request_get_status_some

  interface PMPIX_Request_get_status_some
    procedure :: PMPI_Request_get_status_some_f08
  end interface PMPIX_Request_get_status_some

end module contd_mpi_f08
