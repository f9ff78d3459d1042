! SPDX-License-Identifier: BSD-3-Clause
! MPI completion continuations, in the draft interface (MPI Forum's draft chapter, sections 3.11.1 to 3.11.3) and the
! revised one (MPIX_), status queries, and templates of generalized requests: to be used beside mpi_f08. What the calls
! do is said in contd/mpi.h. Link with contd-mpi-fortran.
!
! Beyond the draft: MPI_Continue also takes a status that is no array, for MPI_STATUS_IGNORE is none in mpi_f08. And
! statuses are targets: without that gfortran concludes that only the call itself may write them.

module contd_mpi_f08
  use mpi_f08, only: MPI_Info, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
#ifdef CONTD_MPI_HAS_QUERIES
  ! Whoever uses both modules finds one procedure of each name.
  use mpi_f08, only: MPI_Request_get_status_all, MPI_Request_get_status_any, MPI_Request_get_status_some, &
    PMPI_Request_get_status_all, PMPI_Request_get_status_any, PMPI_Request_get_status_some
#endif
  implicit none
  private

  public :: MPI_Continue_cb_function, MPIX_Continue_cb_function
  public :: MPIX_Gr_start_function, MPIX_Gr_push_function, MPIX_Gr_complete_function, MPIX_Gr_cancel_function
  public :: MPIX_GR_PUSH_FN_NULL, MPIX_GR_CANCEL_FN_NULL, operator(==), operator(/=)

  public :: MPI_Continue_init, MPI_Continue, MPI_Continueall
  public :: PMPI_Continue_init, PMPI_Continue, PMPI_Continueall
  public :: MPIX_Continue_init, MPIX_Continue, MPIX_Continueall, MPIX_Continue_get_failed
  public :: PMPIX_Continue_init, PMPIX_Continue, PMPIX_Continueall, PMPIX_Continue_get_failed
  public :: MPI_Request_get_status_all, MPI_Request_get_status_any, MPI_Request_get_status_some
  public :: MPIX_Request_get_status_all, MPIX_Request_get_status_any, MPIX_Request_get_status_some
  public :: PMPI_Request_get_status_all, PMPI_Request_get_status_any, PMPI_Request_get_status_some
  public :: PMPIX_Request_get_status_all, PMPIX_Request_get_status_any, PMPIX_Request_get_status_some
  public :: MPIX_Gr_init, MPIX_Gr_begin, MPIX_Gr_free, MPIX_Mark_request_complete, MPIX_Cancel
  public :: PMPIX_Gr_init, PMPIX_Gr_begin, PMPIX_Gr_free, PMPIX_Mark_request_complete, PMPIX_Cancel

  ! Flags of the revised interface, of which calls take the sum.
  integer, parameter, public :: MPIX_CONT_REQBUF_VOLATILE = 1, MPIX_CONT_REQUESTS_FREE = 2, MPIX_CONT_POLL_ONLY = 4, &
    MPIX_CONT_DEFER_COMPLETE = 8, MPIX_CONT_INVOKE_FAILED = 16, MPIX_CONT_IMMEDIATE = 32

  ! A template. MPI_VAL is C's handle, which is wider than an integer.
  type, public :: MPIX_Gr
    sequence
    integer(kind=MPI_ADDRESS_KIND) :: MPI_VAL
  end type MPIX_Gr
  type(MPIX_Gr), parameter, public :: MPIX_GR_NULL = MPIX_Gr(0)

  interface operator(==)
    module procedure gr_equal
  end interface operator(==)

  interface operator(/=)
    module procedure gr_unequal
  end interface operator(/=)

  ! --------------------------------------------------------------------------------------------------- callbacks ---

  abstract interface
    ! array_of_statuses is what was given when the continuation was attached, MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE
    ! included; user_data is a copy of cb_data. ierror is present, and MPI_SUCCESS; nobody looks at it afterwards.
    subroutine MPI_Continue_cb_function(array_of_statuses, user_data, ierror)
      import :: MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Status) :: array_of_statuses(*)
      integer(kind=MPI_ADDRESS_KIND) :: user_data
      integer, optional :: ierror
    end subroutine MPI_Continue_cb_function

    ! user_data is a copy of cb_data. ierror is MPI_SUCCESS, and what it is afterwards is the result.
    subroutine MPIX_Continue_cb_function(rc, user_data, ierror)
      import :: MPI_ADDRESS_KIND
      integer, intent(in) :: rc
      integer(kind=MPI_ADDRESS_KIND) :: user_data
      integer :: ierror
    end subroutine MPIX_Continue_cb_function

    ! extra_state is a copy of what MPIX_Gr_begin was given; ierror as above.
    subroutine MPIX_Gr_start_function(extra_state, ierror)
      import :: MPI_ADDRESS_KIND
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      integer :: ierror
    end subroutine MPIX_Gr_start_function

    subroutine MPIX_Gr_push_function(extra_state, ierror)
      import :: MPI_ADDRESS_KIND
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      integer :: ierror
    end subroutine MPIX_Gr_push_function

    ! status is absent where the request was freed.
    subroutine MPIX_Gr_complete_function(extra_state, status, ierror)
      import :: MPI_Status, MPI_ADDRESS_KIND
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      type(MPI_Status), optional :: status
      integer :: ierror
    end subroutine MPIX_Gr_complete_function

    subroutine MPIX_Gr_cancel_function(extra_state, complete, ierror)
      import :: MPI_ADDRESS_KIND
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      logical :: complete
      integer :: ierror
    end subroutine MPIX_Gr_cancel_function
  end interface

  ! For MPIX_Gr_init: there is no such function.
  procedure(MPIX_Gr_push_function) :: MPIX_GR_PUSH_FN_NULL
  procedure(MPIX_Gr_cancel_function) :: MPIX_GR_CANCEL_FN_NULL

  ! ------------------------------------------------------------------------------------------------------- calls ---

  ! The arguments of the calls, for both of the names that each has.
  abstract interface
    subroutine Continue_init_call(info, cont_req, ierror)
      import :: MPI_Info, MPI_Request
      type(MPI_Info), intent(in) :: info
      type(MPI_Request), intent(out) :: cont_req
      integer, optional, intent(out) :: ierror
    end subroutine Continue_init_call

    subroutine Continue_call(op_request, cb, cb_data, status, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: status(1)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine Continue_call

    subroutine Continue_scalar_call(op_request, cb, cb_data, status, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: status
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine Continue_scalar_call

    subroutine Continueall_call(count, array_of_op_requests, cb, cb_data, array_of_statuses, cont_request, ierror)
      import :: MPI_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_op_requests(count)
      procedure(MPI_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      type(MPI_Status), intent(in), asynchronous, target :: array_of_statuses(*)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine Continueall_call

    subroutine X_Continue_init_call(flags, max_poll, info, cont_req, ierror)
      import :: MPI_Info, MPI_Request
      integer, intent(in) :: flags, max_poll
      type(MPI_Info), intent(in) :: info
      type(MPI_Request), intent(out) :: cont_req
      integer, optional, intent(out) :: ierror
    end subroutine X_Continue_init_call

    subroutine X_Continue_call(op_request, cb, cb_data, flags, status, cont_request, ierror)
      import :: MPIX_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPIX_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      integer, intent(in) :: flags
      type(MPI_Status), intent(in), asynchronous, target :: status(1)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine X_Continue_call

    subroutine X_Continue_scalar_call(op_request, cb, cb_data, flags, status, cont_request, ierror)
      import :: MPIX_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      type(MPI_Request), intent(inout) :: op_request
      procedure(MPIX_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      integer, intent(in) :: flags
      type(MPI_Status), intent(in), asynchronous, target :: status
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine X_Continue_scalar_call

    subroutine X_Continueall_call(count, array_of_op_requests, cb, cb_data, flags, array_of_statuses, cont_request, &
        ierror)
      import :: MPIX_Continue_cb_function, MPI_Request, MPI_Status, MPI_ADDRESS_KIND
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_op_requests(count)
      procedure(MPIX_Continue_cb_function) :: cb
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: cb_data
      integer, intent(in) :: flags
      type(MPI_Status), intent(in), asynchronous, target :: array_of_statuses(*)
      type(MPI_Request), intent(in) :: cont_request
      integer, optional, intent(out) :: ierror
    end subroutine X_Continueall_call

    subroutine X_Continue_get_failed_call(cont_request, count, cb_data, ierror)
      import :: MPI_Request, MPI_ADDRESS_KIND
      type(MPI_Request), intent(in) :: cont_request
      integer, intent(inout) :: count
      integer(kind=MPI_ADDRESS_KIND), intent(inout) :: cb_data(*)
      integer, optional, intent(out) :: ierror
    end subroutine X_Continue_get_failed_call

    subroutine Query_all_call(count, array_of_requests, flag, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      logical, intent(out) :: flag
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine Query_all_call

    subroutine Query_any_call(count, array_of_requests, index, flag, status, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      integer, intent(out) :: index
      logical, intent(out) :: flag
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine Query_any_call

    subroutine Query_some_call(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: incount
      type(MPI_Request), intent(in) :: array_of_requests(incount)
      integer, intent(out) :: outcount
      integer, intent(out) :: array_of_indices(*)
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine Query_some_call

    subroutine Gr_init_call(start_fn, push_fn, complete_fn, cancel_fn, gr, ierror)
      import :: MPIX_Gr, MPIX_Gr_start_function, MPIX_Gr_push_function
      import :: MPIX_Gr_complete_function, MPIX_Gr_cancel_function
      procedure(MPIX_Gr_start_function) :: start_fn
      procedure(MPIX_Gr_push_function) :: push_fn
      procedure(MPIX_Gr_complete_function) :: complete_fn
      procedure(MPIX_Gr_cancel_function) :: cancel_fn
      type(MPIX_Gr), intent(out) :: gr
      integer, optional, intent(out) :: ierror
    end subroutine Gr_init_call

    subroutine Gr_begin_call(gr, extra_state, req, ierror)
      import :: MPIX_Gr, MPI_Request, MPI_ADDRESS_KIND
      type(MPIX_Gr), intent(in) :: gr
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: extra_state
      type(MPI_Request), intent(inout), target :: req
      integer, optional, intent(out) :: ierror
    end subroutine Gr_begin_call

    subroutine Gr_free_call(gr, ierror)
      import :: MPIX_Gr
      type(MPIX_Gr), intent(inout) :: gr
      integer, optional, intent(out) :: ierror
    end subroutine Gr_free_call

    subroutine Mark_request_complete_call(req, ierror)
      import :: MPI_Request
      type(MPI_Request), intent(in) :: req
      integer, optional, intent(out) :: ierror
    end subroutine Mark_request_complete_call

    subroutine Cancel_call(request, ierror)
      import :: MPI_Request
      type(MPI_Request), intent(in) :: request
      integer, optional, intent(out) :: ierror
    end subroutine Cancel_call
  end interface

  ! Draft interface.
  procedure(Continue_init_call) :: MPI_Continue_init_f08, PMPI_Continue_init_f08
  procedure(Continue_call) :: MPI_Continue_f08, PMPI_Continue_f08
  procedure(Continue_scalar_call) :: MPI_Continue_scalar_f08, PMPI_Continue_scalar_f08
  procedure(Continueall_call) :: MPI_Continueall_f08, PMPI_Continueall_f08

  interface MPI_Continue_init
    procedure :: MPI_Continue_init_f08
  end interface MPI_Continue_init

  interface PMPI_Continue_init
    procedure :: PMPI_Continue_init_f08
  end interface PMPI_Continue_init

  interface MPI_Continue
    procedure :: MPI_Continue_f08, MPI_Continue_scalar_f08
  end interface MPI_Continue

  interface PMPI_Continue
    procedure :: PMPI_Continue_f08, PMPI_Continue_scalar_f08
  end interface PMPI_Continue

  interface MPI_Continueall
    procedure :: MPI_Continueall_f08
  end interface MPI_Continueall

  interface PMPI_Continueall
    procedure :: PMPI_Continueall_f08
  end interface PMPI_Continueall

  ! Revised interface. MPIX_Continue takes a single status too, as MPI_Continue.
  procedure(X_Continue_init_call) :: MPIX_Continue_init_f08, PMPIX_Continue_init_f08
  procedure(X_Continue_call) :: MPIX_Continue_f08, PMPIX_Continue_f08
  procedure(X_Continue_scalar_call) :: MPIX_Continue_scalar_f08, PMPIX_Continue_scalar_f08
  procedure(X_Continueall_call) :: MPIX_Continueall_f08, PMPIX_Continueall_f08
  procedure(X_Continue_get_failed_call) :: MPIX_Continue_get_failed_f08, PMPIX_Continue_get_failed_f08

  interface MPIX_Continue_init
    procedure :: MPIX_Continue_init_f08
  end interface MPIX_Continue_init

  interface PMPIX_Continue_init
    procedure :: PMPIX_Continue_init_f08
  end interface PMPIX_Continue_init

  interface MPIX_Continue
    procedure :: MPIX_Continue_f08, MPIX_Continue_scalar_f08
  end interface MPIX_Continue

  interface PMPIX_Continue
    procedure :: PMPIX_Continue_f08, PMPIX_Continue_scalar_f08
  end interface PMPIX_Continue

  interface MPIX_Continueall
    procedure :: MPIX_Continueall_f08
  end interface MPIX_Continueall

  interface PMPIX_Continueall
    procedure :: PMPIX_Continueall_f08
  end interface PMPIX_Continueall

  interface MPIX_Continue_get_failed
    procedure :: MPIX_Continue_get_failed_f08
  end interface MPIX_Continue_get_failed

  interface PMPIX_Continue_get_failed
    procedure :: PMPIX_Continue_get_failed_f08
  end interface PMPIX_Continue_get_failed

  ! Status queries of MPI 4.1, 3.7.6. Also by their MPIX names. An MPI that has them declares them by MPI's.
  procedure(Query_all_call) :: MPI_Request_get_status_all_f08, PMPI_Request_get_status_all_f08
  procedure(Query_any_call) :: MPI_Request_get_status_any_f08, PMPI_Request_get_status_any_f08
  procedure(Query_some_call) :: MPI_Request_get_status_some_f08, PMPI_Request_get_status_some_f08

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

#ifndef CONTD_MPI_HAS_QUERIES
  interface MPI_Request_get_status_all
    procedure :: MPI_Request_get_status_all_f08
  end interface MPI_Request_get_status_all

  interface MPI_Request_get_status_any
    procedure :: MPI_Request_get_status_any_f08
  end interface MPI_Request_get_status_any

  interface MPI_Request_get_status_some
    procedure :: MPI_Request_get_status_some_f08
  end interface MPI_Request_get_status_some

  interface PMPI_Request_get_status_all
    procedure :: PMPI_Request_get_status_all_f08
  end interface PMPI_Request_get_status_all

  interface PMPI_Request_get_status_any
    procedure :: PMPI_Request_get_status_any_f08
  end interface PMPI_Request_get_status_any

  interface PMPI_Request_get_status_some
    procedure :: PMPI_Request_get_status_some_f08
  end interface PMPI_Request_get_status_some
#endif

  ! Templates of generalized requests.
  procedure(Gr_init_call) :: MPIX_Gr_init_f08, PMPIX_Gr_init_f08
  procedure(Gr_begin_call) :: MPIX_Gr_begin_f08, PMPIX_Gr_begin_f08
  procedure(Gr_free_call) :: MPIX_Gr_free_f08, PMPIX_Gr_free_f08
  procedure(Mark_request_complete_call) :: MPIX_Mark_request_complete_f08, PMPIX_Mark_request_complete_f08
  procedure(Cancel_call) :: MPIX_Cancel_f08, PMPIX_Cancel_f08

  interface MPIX_Gr_init
    procedure :: MPIX_Gr_init_f08
  end interface MPIX_Gr_init

  interface PMPIX_Gr_init
    procedure :: PMPIX_Gr_init_f08
  end interface PMPIX_Gr_init

  interface MPIX_Gr_begin
    procedure :: MPIX_Gr_begin_f08
  end interface MPIX_Gr_begin

  interface PMPIX_Gr_begin
    procedure :: PMPIX_Gr_begin_f08
  end interface PMPIX_Gr_begin

  interface MPIX_Gr_free
    procedure :: MPIX_Gr_free_f08
  end interface MPIX_Gr_free

  interface PMPIX_Gr_free
    procedure :: PMPIX_Gr_free_f08
  end interface PMPIX_Gr_free

  interface MPIX_Mark_request_complete
    procedure :: MPIX_Mark_request_complete_f08
  end interface MPIX_Mark_request_complete

  interface PMPIX_Mark_request_complete
    procedure :: PMPIX_Mark_request_complete_f08
  end interface PMPIX_Mark_request_complete

  interface MPIX_Cancel
    procedure :: MPIX_Cancel_f08
  end interface MPIX_Cancel

  interface PMPIX_Cancel
    procedure :: PMPIX_Cancel_f08
  end interface PMPIX_Cancel

contains

  elemental logical function gr_equal(a, b)
    type(MPIX_Gr), intent(in) :: a, b
    gr_equal = a%MPI_VAL == b%MPI_VAL
  end function gr_equal

  elemental logical function gr_unequal(a, b)
    type(MPIX_Gr), intent(in) :: a, b
    gr_unequal = a%MPI_VAL /= b%MPI_VAL
  end function gr_unequal

end module contd_mpi_f08
