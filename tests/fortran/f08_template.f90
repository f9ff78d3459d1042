! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: templates of generalized requests. What is called when, and with what; continuations, cancelling and freeing;
! and calls that are refused.

module operation
  use mpi_f08
  use contd_mpi_f08
  use check
  implicit none
  integer, parameter :: most = 20

  ! extra_state is the place in this table.
  type :: instance
    type(MPI_Request) :: request = MPI_REQUEST_NULL
    integer :: needs = 0 ! so many pushes; negative: it is not marked by push_fn
    integer :: starts = 0, pushes = 0, completes = 0, cancels = 0
    integer :: start_error = MPI_SUCCESS, push_error = MPI_SUCCESS, complete_error = MPI_SUCCESS
    logical :: freed = .false., cancelled = .false., was_complete = .false.
    integer :: ran = 0 ! when its continuation did, and complete_fn, on the clock of all
    integer :: ended = 0
    integer :: tag_before = 0 ! in the status that the continuation was given
  end type instance
  type(instance), target :: instances(most)
  type(MPI_Status), asynchronous, target :: statuses(most)
  integer :: clock = 0

contains

  subroutine start_it(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    type(instance), pointer :: i
    call check_equal(ierror, MPI_SUCCESS, 'ierror in start_fn')
    i => instances(extra_state)
    i%starts = i%starts + 1
    call check_true(i%request /= MPI_REQUEST_NULL, 'the handle in start_fn')
    call check_equal(i%pushes, 0, 'pushes before the start')
    if (i%needs == 0) call MPIX_Mark_request_complete(i%request)
    extra_state = 0 ! a copy
    ierror = i%start_error
  end subroutine start_it

  subroutine push_it(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    type(instance), pointer :: i
    i => instances(extra_state)
    i%pushes = i%pushes + 1
    call check_equal(i%starts, 1, 'starts before a push')
    call check_equal(i%completes, 0, 'no push after complete_fn')
    if (i%pushes == i%needs) call MPIX_Mark_request_complete(i%request)
    ierror = i%push_error
  end subroutine push_it

  subroutine complete_it(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status), optional :: status
    integer :: ierror
    type(instance), pointer :: i
    i => instances(extra_state)
    i%completes = i%completes + 1
    clock = clock + 1
    i%ended = clock
    i%freed = .not. present(status)
    if (present(status)) then
      call check_equal(status%MPI_TAG, MPI_UNDEFINED, 'the tag before')
      call check_equal(status%MPI_SOURCE, MPI_UNDEFINED, 'the source before')
      call MPI_Status_set_elements(status, MPI_INTEGER, i%pushes)
      call MPI_Status_set_cancelled(status, i%cancelled)
      status%MPI_TAG = int(extra_state)
    end if
    ierror = i%complete_error
  end subroutine complete_it

  subroutine cancel_it(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    type(instance), pointer :: i
    i => instances(extra_state)
    i%cancels = i%cancels + 1
    i%was_complete = complete
    if (.not. complete) then
      i%cancelled = .true.
      call MPIX_Mark_request_complete(i%request)
    end if
    ierror = MPI_SUCCESS
  end subroutine cancel_it

  subroutine on_completion(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    type(instance), pointer :: i
    i => instances(user_data)
    clock = clock + 1
    i%ran = clock
    i%tag_before = array_of_statuses(1)%MPI_TAG
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine on_completion

  subroutine on_revised(rc, user_data, ierror)
    integer, intent(in) :: rc
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer :: ierror
    clock = clock + 1
    instances(user_data)%ran = clock
    ierror = rc
  end subroutine on_revised
end module operation

program f08_template
  use mpi_f08
  use contd_mpi_f08
  use operation
  use check
  implicit none
  type(MPIX_Gr) :: gr

  call MPI_Init()
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  gr = MPIX_GR_NULL
  call check_true(gr == MPIX_GR_NULL, 'null')
  call MPIX_Gr_init(start_it, push_it, complete_it, cancel_it, gr)
  call check_true(gr /= MPIX_GR_NULL, 'a template')
  call some_at_once
  call nothing_to_push
  call continuations
  call cancelled
  call freed
  call errors
  call refused
  call outlives
  call MPI_Finalize()

contains

  subroutine begin(n, needs)
    integer, intent(in) :: n, needs
    integer :: ierror
    instances(n) = instance(needs=needs)
    ierror = -1
    call MPIX_Gr_begin(gr, int(n, MPI_ADDRESS_KIND), instances(n)%request, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'begin')
    call check_equal(instances(n)%starts, 1, 'starts')
    call check_true(instances(n)%request /= MPI_REQUEST_NULL, 'the handle')
    call check_equal(instances(n)%completes, 0, 'not completed by that')
  end subroutine begin

  integer function class_of(code)
    integer, intent(in) :: code
    call MPI_Error_class(code, class_of)
  end function class_of

  subroutine some_at_once
    type(MPI_Request) :: requests(most)
    type(MPI_Status) :: all_statuses(most)
    integer :: n, count
    logical :: flag, was_cancelled

    call check_name('some_at_once')
    do n = 1, most
      call begin(n, n - 1)
    end do
    requests = instances%request
    call MPI_Request_get_status(requests(1), flag, all_statuses(1))
    call check_true(flag, 'marked in start_fn')
    call check_equal(instances(1)%completes, 0, 'a query does not complete')
    call MPI_Waitall(most, requests, all_statuses)
    do n = 1, most
      call check_true(requests(n) == MPI_REQUEST_NULL, 'the handle is null')
      call check_equal(instances(n)%completes, 1, 'calls of complete_fn')
      call check_true(.not. instances(n)%freed, 'with a status')
      call check_equal(instances(n)%pushes, n - 1, 'calls of push_fn')
      call MPI_Get_count(all_statuses(n), MPI_INTEGER, count)
      call check_equal(count, n - 1, 'the count that complete_fn has set')
      call check_equal(all_statuses(n)%MPI_TAG, n, 'the tag that complete_fn has set')
      call MPI_Test_cancelled(all_statuses(n), was_cancelled)
      call check_true(.not. was_cancelled, 'not cancelled')
    end do
  end subroutine some_at_once

  subroutine nothing_to_push
    type(MPIX_Gr) :: bare
    type(MPI_Status) :: status
    type(MPI_Request) :: copy
    logical :: flag

    call check_name('nothing_to_push')
    call PMPIX_Gr_init(start_it, MPIX_GR_PUSH_FN_NULL, complete_it, MPIX_GR_CANCEL_FN_NULL, bare)
    instances(1) = instance(needs=-1)
    call PMPIX_Gr_begin(bare, 1_MPI_ADDRESS_KIND, instances(1)%request)
    call MPI_Test(instances(1)%request, flag, status)
    call check_true(.not. flag, 'not marked')
    copy = instances(1)%request
    call PMPIX_Cancel(instances(1)%request) ! no effect
    call MPI_Test(instances(1)%request, flag, status)
    call check_true(.not. flag, 'not marked')
    call PMPIX_Mark_request_complete(copy)
    call MPI_Test(instances(1)%request, flag, status)
    call check_true(flag, 'marked')
    call check_equal(instances(1)%completes, 1, 'calls of complete_fn')
    call PMPIX_Gr_free(bare)
    call check_true(bare == MPIX_GR_NULL, 'null')
  end subroutine nothing_to_push

  ! The callback first, complete_fn second; and both before the continuation request is complete.
  subroutine continuations
    type(MPI_Request) :: draft, revised, requests(most)
    integer :: n, how, ierror

    call MPI_Continue_init(MPI_INFO_NULL, draft)
    call MPIX_Continue_init(0, 0, MPI_INFO_NULL, revised)
    call MPI_Start(revised)
    do how = 1, 3
      call check_name(merge('draft     ', 'revised   ', how < 3))
      do n = 1, most
        call begin(n, merge(n - 1, 0, how /= 1))
        requests(n) = instances(n)%request ! push_fn needs the handle to mark it
        statuses(n)%MPI_TAG = -77
        if (how < 3) then
          call MPI_Continue(requests(n), on_completion, int(n, MPI_ADDRESS_KIND), statuses(n), draft, ierror)
        else
          call MPIX_Continue(requests(n), on_revised, int(n, MPI_ADDRESS_KIND), 0, statuses(n), revised, ierror)
        end if
        call check_equal(ierror, MPI_SUCCESS, 'attach')
        call check_true(requests(n) == MPI_REQUEST_NULL, 'the handle is taken')
      end do
      if (how < 3) call MPI_Wait(draft, MPI_STATUS_IGNORE)
      if (how == 3) call MPI_Wait(revised, MPI_STATUS_IGNORE)
      do n = 1, most
        call check_equal(instances(n)%completes, 1, 'calls of complete_fn')
        call check_true(instances(n)%ran > 0, 'the callback has run')
        call check_true(instances(n)%ran < instances(n)%ended, 'before complete_fn')
        if (how < 3) call check_equal(instances(n)%tag_before, MPI_UNDEFINED, 'with the status before complete_fn')
        call check_equal(statuses(n)%MPI_TAG, MPI_UNDEFINED, 'and nobody writes it later')
        call check_equal(statuses(n)%MPI_ERROR, MPI_SUCCESS, 'error')
      end do
    end do
    call MPI_Request_free(draft)
    call MPI_Request_free(revised)
  end subroutine continuations

  subroutine cancelled
    type(MPI_Request) :: null
    type(MPI_Status) :: status
    logical :: was_cancelled

    call check_name('cancelled')
    call begin(1, -1)
    call MPIX_Cancel(instances(1)%request)
    call check_equal(instances(1)%cancels, 1, 'calls of cancel_fn')
    call check_true(.not. instances(1)%was_complete, 'not marked before')
    call check_equal(instances(1)%completes, 0, 'still to be waited for')
    call MPI_Wait(instances(1)%request, status)
    call MPI_Test_cancelled(status, was_cancelled)
    call check_true(was_cancelled, 'as complete_fn says')
    call begin(2, 0)
    call MPI_Cancel(instances(2)%request)
    call check_true(instances(2)%was_complete, 'marked before')
    call MPI_Wait(instances(2)%request, status)
    call MPI_Test_cancelled(status, was_cancelled)
    call check_true(.not. was_cancelled, 'as complete_fn says')
    null = MPI_REQUEST_NULL
    call MPIX_Cancel(null)
    call check_true(null == MPI_REQUEST_NULL, 'nothing happens')
  end subroutine cancelled

  subroutine freed
    type(MPI_Request) :: copy
    integer :: ierror

    call check_name('freed')
    call begin(1, -1)
    copy = instances(1)%request
    call MPI_Request_free(copy)
    call check_equal(instances(1)%completes, 0, 'it goes on')
    call MPIX_Mark_request_complete(instances(1)%request, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'mark')
    call check_equal(instances(1)%completes, 1, 'calls of complete_fn')
    call check_true(instances(1)%freed, 'without a status')
  end subroutine freed

  ! Each of the functions may fail.
  subroutine errors
    type(MPI_Request) :: before
    type(MPI_Status) :: status
    integer :: ierror

    call check_name('errors')
    call MPI_Irecv(ierror, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, before)
    instances(1) = instance(needs=-1, start_error=MPI_ERR_BUFFER, request=before)
    call MPIX_Gr_begin(gr, 1_MPI_ADDRESS_KIND, instances(1)%request, ierror)
    call check_equal(class_of(ierror), MPI_ERR_BUFFER, 'of start_fn')
    call check_true(instances(1)%request == before, 'the handle is as before')
    call check_equal(instances(1)%completes, 0, 'there was no operation')
    call MPI_Cancel(before)
    call MPI_Wait(before, MPI_STATUS_IGNORE)

    call begin(2, -1)
    instances(2)%push_error = MPI_ERR_COUNT
    call MPI_Wait(instances(2)%request, status, ierror)
    call check_equal(class_of(ierror), MPI_ERR_COUNT, 'of push_fn')
    call check_equal(instances(2)%pushes, 1, 'which ends the operation')
    call check_equal(instances(2)%completes, 1, 'calls of complete_fn')

    call begin(3, 1)
    instances(3)%complete_error = MPI_ERR_RANK
    call MPI_Wait(instances(3)%request, status, ierror)
    call check_equal(class_of(ierror), MPI_ERR_RANK, 'of complete_fn')
  end subroutine errors

  subroutine refused
    integer, parameter :: no_handles(4) = [-1, -huge(0), huge(0), 1000000]
    type(MPI_Request) :: request
    type(MPIX_Gr) :: bad, before
    integer :: ierror, n

    call check_name('refused')
    request = MPI_REQUEST_NULL
    call MPIX_Gr_begin(MPIX_GR_NULL, 1_MPI_ADDRESS_KIND, request, ierror)
    call check_equal(class_of(ierror), MPI_ERR_ARG, 'begin of no template')
    bad = MPIX_GR_NULL
    call MPIX_Gr_free(bad, ierror)
    call check_equal(class_of(ierror), MPI_ERR_ARG, 'free of no template')
    do n = 1, size(no_handles)
      bad%MPI_VAL = no_handles(n)
      call MPIX_Gr_begin(bad, 1_MPI_ADDRESS_KIND, request, ierror)
      call check_equal(class_of(ierror), MPI_ERR_ARG, 'begin of no template')
      call MPIX_Gr_free(bad, ierror)
      call check_equal(class_of(ierror), MPI_ERR_ARG, 'free of no template')
      call check_true(bad%MPI_VAL == no_handles(n), 'the handle stays')
      request%MPI_VAL = no_handles(n)
      call MPIX_Mark_request_complete(request, ierror)
      call check_equal(class_of(ierror), MPI_ERR_REQUEST, 'mark of no request')
    end do
    call MPIX_Mark_request_complete(MPI_REQUEST_NULL, ierror)
    call check_equal(class_of(ierror), MPI_ERR_REQUEST, 'mark of the null handle')
    call MPI_Irecv(n, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
    call MPIX_Mark_request_complete(request, ierror)
    call check_equal(class_of(ierror), MPI_ERR_REQUEST, 'mark of a receive')
    call MPIX_Cancel(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call begin(1, 0)
    call MPIX_Mark_request_complete(instances(1)%request, ierror)
    call check_equal(class_of(ierror), MPI_ERR_REQUEST, 'mark of one that is marked')
    call MPI_Wait(instances(1)%request, MPI_STATUS_IGNORE)
    ! A request that was freed, and another one has its place.
    call MPIX_Gr_init(start_it, push_it, complete_it, cancel_it, bad)
    before = bad
    call MPIX_Gr_free(bad)
    call MPIX_Gr_init(start_it, push_it, complete_it, cancel_it, bad)
    call check_true(bad /= before, 'another handle')
    call MPIX_Gr_begin(before, 1_MPI_ADDRESS_KIND, request, ierror)
    call check_equal(class_of(ierror), MPI_ERR_ARG, 'begin of one that was freed')
    call MPIX_Gr_free(bad)
  end subroutine refused

  ! The template is freed, and its requests go on.
  subroutine outlives
    call check_name('outlives')
    call begin(1, 5)
    call MPIX_Gr_free(gr)
    call check_true(gr == MPIX_GR_NULL, 'freed')
    call MPI_Wait(instances(1)%request, MPI_STATUS_IGNORE)
    call check_equal(instances(1)%pushes, 5, 'calls of push_fn')
    call check_equal(instances(1)%completes, 1, 'calls of complete_fn')
  end subroutine outlives
end program f08_template
