! SPDX-License-Identifier: BSD-3-Clause
! The module mpi: templates of generalized requests.

module operation
  use mpi
  use check
  implicit none
  include 'contd_mpif.h'
  integer :: request, pushes, completes, cancels, ran, needs

contains

  subroutine start_it(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    call check_equal(int(extra_state), -7, 'extra_state in start_fn')
    call check_true(request /= MPI_REQUEST_NULL, 'the handle in start_fn')
    call check_equal(ierror, MPI_SUCCESS, 'ierror in start_fn')
  end subroutine start_it

  subroutine push_it(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    call check_equal(int(extra_state), -7, 'extra_state in push_fn')
    pushes = pushes + 1
    if (pushes == needs) call MPIX_Mark_request_complete(request, ierror)
    ierror = MPI_SUCCESS
  end subroutine push_it

  subroutine complete_it(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    call check_equal(int(extra_state), -7, 'extra_state in complete_fn')
    call check_equal(status(MPI_TAG), MPI_UNDEFINED, 'the tag before')
    completes = completes + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, pushes, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'set_elements')
    status(MPI_TAG) = 77
  end subroutine complete_it

  subroutine cancel_it(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    call check_equal(int(extra_state), -7, 'extra_state in cancel_fn')
    cancels = cancels + 1
    if (.not. complete) call MPIX_Mark_request_complete(request, ierror)
  end subroutine cancel_it

  subroutine on_completion(array_of_statuses, user_data, ierror)
    integer :: array_of_statuses(MPI_STATUS_SIZE, *), ierror
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    call check_equal(completes, 0, 'the callback comes before complete_fn')
    call check_equal(array_of_statuses(MPI_TAG, 1), MPI_UNDEFINED, 'with the status before that')
    call check_equal(int(user_data), 3, 'user_data')
    ran = ran + 1
    ierror = MPI_SUCCESS
  end subroutine on_completion
end module operation

program mpif_template
  use mpi
  use operation
  use check
  implicit none
  integer(kind=MPI_ADDRESS_KIND) :: gr, stale
  integer :: status(MPI_STATUS_SIZE), count, cr, copy, class, other, ierror

  call MPI_Init(ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
  gr = MPIX_GR_NULL
  call MPIX_Gr_init(start_it, push_it, complete_it, cancel_it, gr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'init')
  call check_true(gr /= MPIX_GR_NULL, 'a template')

  call check_name('waited for')
  call begin(3)
  call MPI_Wait(request, status, ierror)
  call check_equal(pushes, 3, 'calls of push_fn')
  call check_equal(completes, 1, 'calls of complete_fn')
  call MPI_Get_count(status, MPI_INTEGER, count, ierror)
  call check_equal(count, 3, 'the count that complete_fn has set')
  call check_equal(status(MPI_TAG), 77, 'the tag that complete_fn has set')

  call check_name('continuation')
  call MPI_Continue_init(MPI_INFO_NULL, cr, ierror)
  call begin(4)
  copy = request
  call MPI_Continue(copy, on_completion, 3_MPI_ADDRESS_KIND, status, cr, ierror)
  call check_equal(copy, MPI_REQUEST_NULL, 'the handle is taken')
  call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
  call check_equal(ran, 1, 'runs')
  call check_equal(completes, 1, 'calls of complete_fn')
  call MPI_Request_free(cr, ierror)

  call check_name('cancelled')
  call begin(-1)
  call MPIX_Cancel(request, ierror)
  call check_equal(cancels, 1, 'calls of cancel_fn')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call check_equal(completes, 1, 'calls of complete_fn')
  call PMPIX_Cancel(MPI_REQUEST_NULL, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'nothing happens')

  ! complete_fn still gets a status.
  call check_name('freed')
  call begin(-1)
  copy = request
  call MPI_Request_free(copy, ierror)
  call check_equal(completes, 0, 'it goes on')
  call PMPIX_Mark_request_complete(request, ierror)
  call check_equal(completes, 1, 'calls of complete_fn')

  call check_name('refused')
  request = MPI_REQUEST_NULL
  call MPIX_Gr_begin(MPIX_GR_NULL, 1_MPI_ADDRESS_KIND, request, ierror)
  call MPI_Error_class(ierror, class, other)
  call check_equal(class, MPI_ERR_ARG, 'begin of no template')
  call check_equal(request, MPI_REQUEST_NULL, 'the handle stays')
  call MPIX_Mark_request_complete(request, ierror)
  call MPI_Error_class(ierror, class, other)
  call check_equal(class, MPI_ERR_REQUEST, 'mark of the null handle')
  stale = gr
  call MPIX_Gr_free(gr, ierror)
  call check_true(gr == MPIX_GR_NULL, 'freed')
  call MPIX_Gr_free(stale, ierror)
  call MPI_Error_class(ierror, class, other)
  call check_equal(class, MPI_ERR_ARG, 'free of one that was freed')

  call check_name('bare')
  call PMPIX_Gr_init(start_it, MPIX_GR_PUSH_FN_NULL, complete_it, MPIX_GR_CANCEL_FN_NULL, gr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'init')
  pushes = 0
  completes = 0
  call PMPIX_Gr_begin(gr, -7_MPI_ADDRESS_KIND, request, ierror)
  call MPIX_Cancel(request, ierror)
  call MPIX_Mark_request_complete(request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call check_equal(completes, 1, 'calls of complete_fn')
  call check_equal(pushes, 0, 'calls of push_fn')
  call PMPIX_Gr_free(gr, ierror)
  call MPI_Finalize(ierror)

contains

  subroutine begin(needed)
    integer, intent(in) :: needed
    pushes = 0
    completes = 0
    cancels = 0
    ran = 0
    needs = needed
    call MPIX_Gr_begin(gr, -7_MPI_ADDRESS_KIND, request, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'begin')
  end subroutine begin
end program mpif_template
