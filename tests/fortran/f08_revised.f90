! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: the revised interface. Continuation requests that are started, flags, what a callback returns, operations
! that fail, and calls that are refused.

module seen
  use mpi_f08
  use check
  implicit none
  integer, parameter :: most = 40
  integer :: runs = 0, last_rc = -1, result = MPI_SUCCESS, errors = 0, last_error = MPI_SUCCESS
  integer(kind=MPI_ADDRESS_KIND) :: data = 0
  integer :: order(most) = 0
  type(MPI_Request) :: posted
  integer :: value = 0

contains

  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    call check_true(comm == MPI_COMM_SELF .or. comm == MPI_COMM_WORLD, 'the communicator of the error handler')
    errors = errors + 1
    call MPI_Error_class(error_code, last_error)
  end subroutine on_error

  subroutine see(rc, user_data, ierror)
    integer, intent(in) :: rc
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer :: ierror
    call check_equal(ierror, MPI_SUCCESS, 'ierror in the callback')
    runs = runs + 1
    last_rc = rc
    data = user_data
    if (runs <= most) order(runs) = int(user_data)
    user_data = 0
    ierror = result
  end subroutine see

  ! The variable belongs to the program again.
  subroutine post_anew(rc, user_data, ierror)
    integer, intent(in) :: rc
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer :: ierror
    call check_equal(rc, MPI_SUCCESS, 'rc')
    call check_equal(int(user_data), 3, 'user_data')
    call check_true(posted == MPI_REQUEST_NULL, 'null in the callback')
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF, posted)
    runs = runs + 1
    ierror = MPI_SUCCESS
  end subroutine post_anew
end module seen

program f08_revised
  use mpi_f08
  use contd_mpi_f08
  use seen
  use check
  implicit none
  integer :: rank, ranks, next, previous
  type(MPI_Errhandler) :: errhandler
  type(MPI_Request) :: cr

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call MPI_Comm_create_errhandler(on_error, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler)
  call started
  call sets(3)
  call sets(most)
  call scalar_and_array
  call flags
  call reused
  call without_request
  call callbacks_fail
  call operations_fail
  call persistent
  call freed_early
  call beside_draft
  call refused
  call check_equal(errors, 0, 'errors that nobody expected')
  call MPI_Finalize()

contains

  subroutine new_cr(start)
    logical, intent(in) :: start
    integer :: ierror
    ierror = -1
    call MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'init')
    if (start) call MPI_Start(cr)
    runs = 0
    result = MPI_SUCCESS
  end subroutine new_cr

  ! Nothing runs before the start, and a request that has reported completion is inactive again.
  subroutine started
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: ierror
    logical :: flag

    call check_name('started')
    call new_cr(.false.)
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
    status%MPI_TAG = -77
    call MPIX_Continue(request, see, 7_MPI_ADDRESS_KIND, 0, status, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    call check_true(request == MPI_REQUEST_NULL, 'the handle is taken')
    call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
    call check_true(flag, 'inactive is complete')
    call check_equal(runs, 0, 'runs before the start')
    call MPI_Start(cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_equal(last_rc, MPI_SUCCESS, 'rc')
    call check_equal(int(data), 7, 'user_data')
    call check_equal(status%MPI_TAG, 1, 'tag')
    call check_equal(status%MPI_ERROR, MPI_SUCCESS, 'error')
    call check_equal(value, rank, 'value')
    call MPI_Start(cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'inactive again')
    call MPI_Start(cr, ierror)
    call check_error(MPI_ERR_REQUEST, ierror)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call MPI_Request_free(cr)
  end subroutine started

  subroutine sets(n)
    integer, intent(in) :: n
    type(MPI_Request) :: requests(n)
    type(MPI_Status) :: statuses(n)
    integer :: values(n), i, ierror

    call check_name('sets')
    call new_cr(.true.)
    do i = 1, n
      call MPI_Irecv(values(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i))
    end do
    call MPIX_Continueall(n, requests, see, int(n, MPI_ADDRESS_KIND), MPIX_CONT_REQUESTS_FREE, statuses, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    do i = 1, n
      call check_true(requests(i) == MPI_REQUEST_NULL, 'the handle is taken')
    end do
    do i = n, 1, -1
      call MPI_Send(1000 * rank + i, 1, MPI_INTEGER, next, i, MPI_COMM_WORLD)
    end do
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_equal(last_rc, MPI_SUCCESS, 'rc')
    call check_equal(int(data), n, 'user_data')
    do i = 1, n
      call check_equal(statuses(i)%MPI_SOURCE, previous, 'source')
      call check_equal(statuses(i)%MPI_TAG, i, 'tag')
      call check_equal(statuses(i)%MPI_ERROR, MPI_SUCCESS, 'error')
      call check_equal(values(i), 1000 * previous + i, 'value')
    end do
    call MPI_Start(cr)
    call PMPIX_Continueall(0, requests, see, 0_MPI_ADDRESS_KIND, 0, MPI_STATUSES_IGNORE, cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 2, 'of no operation at all')
    call MPI_Request_free(cr)
  end subroutine sets

  subroutine scalar_and_array
    type(MPI_Request) :: request
    type(MPI_Status) :: array(1)

    call check_name('scalar_and_array')
    call new_cr(.true.)
    call MPI_Ibarrier(MPI_COMM_SELF, request)
    call MPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, 0, MPI_STATUS_IGNORE, cr)
    call MPI_Ibarrier(MPI_COMM_SELF, request)
    call MPIX_Continue(request, see, 2_MPI_ADDRESS_KIND, 0, array, cr)
    call MPI_Ibarrier(MPI_COMM_SELF, request)
    call MPIX_Continue(request, see, 3_MPI_ADDRESS_KIND, 0, MPI_STATUSES_IGNORE, cr)
    call MPI_Ibarrier(MPI_COMM_SELF, request)
    call PMPIX_Continue(request, see, 4_MPI_ADDRESS_KIND, 0, array(1), cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 4, 'runs')
    call check_equal(array(1)%MPI_ERROR, MPI_SUCCESS, 'error')
    call MPI_Request_free(cr)
  end subroutine scalar_and_array

  subroutine flags
    type(MPI_Request) :: request, poll_only
    integer :: ierror
    logical :: flag

    call check_name('flags')
    call new_cr(.true.)
    request = MPI_REQUEST_NULL
    call MPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, MPIX_CONT_DEFER_COMPLETE + MPIX_CONT_IMMEDIATE, &
      MPI_STATUS_IGNORE, cr)
    call check_equal(runs, 0, 'not inside the call that attaches')
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'but then')
    call PMPIX_Continue_init(MPIX_CONT_POLL_ONLY + MPIX_CONT_DEFER_COMPLETE, 1, MPI_INFO_NULL, poll_only)
    call MPI_Start(poll_only)
    call MPIX_Continue(request, see, 2_MPI_ADDRESS_KIND, 0, MPI_STATUS_IGNORE, poll_only)
    call MPIX_Continue(request, see, 3_MPI_ADDRESS_KIND, 0, MPI_STATUS_IGNORE, poll_only)
    call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, flag, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'only in its own test')
    call MPI_Test(poll_only, flag, MPI_STATUS_IGNORE)
    call check_true(runs == 2 .and. .not. flag, 'one a test')
    call MPI_Wait(poll_only, MPI_STATUS_IGNORE)
    call check_equal(runs, 3, 'all in the wait')
    call MPIX_Continue_init(0, -5, MPI_INFO_NULL, poll_only, ierror)
    call check_error(MPI_ERR_ARG, ierror)
    call check_true(poll_only /= MPI_REQUEST_NULL, 'the handle stays')
    call MPI_Request_free(poll_only)
    call MPI_Request_free(cr)
  end subroutine flags

  subroutine reused
    call check_name('reused')
    call new_cr(.true.)
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, posted)
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
    call MPIX_Continue(posted, post_anew, 3_MPI_ADDRESS_KIND, 0, MPI_STATUS_IGNORE, cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_true(posted /= MPI_REQUEST_NULL, 'posted in the callback, and still there')
    call MPI_Send(rank + 5, 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF)
    call MPI_Wait(posted, MPI_STATUS_IGNORE)
    call check_equal(value, rank + 5, 'value')
    call MPI_Request_free(cr)
  end subroutine reused

  ! MPI_REQUEST_NULL in the place of a continuation request.
  subroutine without_request
    type(MPI_Request) :: request
    integer :: ierror
    logical :: flag

    call check_name('without_request')
    runs = 0
    result = MPI_ERR_OTHER ! nobody asks
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
    call MPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, 0, MPI_STATUS_IGNORE, MPI_REQUEST_NULL, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
    do while (runs == 0)
      call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, flag, MPI_STATUS_IGNORE)
    end do
    call check_equal(runs, 1, 'runs')
  end subroutine without_request

  ! In the order in which they have failed, some at a time.
  subroutine callbacks_fail
    integer, parameter :: n = 5
    type(MPI_Request) :: request
    integer(kind=MPI_ADDRESS_KIND) :: failed(n + 1)
    integer :: i, count, ierror
    type(MPI_Status) :: status

    call check_name('callbacks_fail')
    call new_cr(.true.)
    result = MPI_ERR_BUFFER
    do i = 1, n
      request = MPI_REQUEST_NULL
      call MPIX_Continue(request, see, -int(i, MPI_ADDRESS_KIND), 0, status, cr)
    end do
    call MPI_Wait(cr, status, ierror)
    call check_error(MPI_ERR_BUFFER, ierror)
    call check_equal(runs, n, 'all have run')
    failed = 77
    count = 2
    call MPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'get_failed')
    call check_equal(count, 2, 'two of them')
    call check_true(all(failed(1:2) == order(1:2)) .and. failed(3) == 77, 'the first two')
    count = n + 1
    call PMPIX_Continue_get_failed(cr, count, failed(3:), ierror)
    call check_equal(count, n - 2, 'the others')
    call check_true(all(failed(3:n) == order(3:n)) .and. failed(n + 1) == 77, 'in order')
    call MPI_Start(cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'not marked as failed any more')
    count = 0
    call MPIX_Continue_get_failed(cr, count, failed)
    call check_equal(count, 0, 'none')
    ! The memory of failures that no call asks for goes with the request.
    call MPI_Start(cr)
    request = MPI_REQUEST_NULL
    call MPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, MPIX_CONT_DEFER_COMPLETE, status, cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_error(MPI_ERR_BUFFER, ierror)
    call MPI_Request_free(cr)
  end subroutine callbacks_fail

  ! A message that is too long. The callback runs where that was asked for; else get_failed tells of it.
  subroutine operations_fail
    integer :: invoke
    do invoke = 0, 1
      call one_fails(0, invoke == 1)
      call one_fails(3, invoke == 1)
      call one_fails(most, invoke == 1)
    end do
  end subroutine operations_fail

  ! A receive fails, and so many others have not finished then.
  subroutine one_fails(others, invoke)
    integer, intent(in) :: others
    logical, intent(in) :: invoke
    type(MPI_Request) :: requests(others + 1)
    type(MPI_Status), asynchronous :: statuses(others + 1)
    integer(kind=MPI_ADDRESS_KIND) :: failed(2)
    integer, asynchronous :: values(others + 1)
    integer :: ierror, i, count

    if (ranks == 1) return ! Open MPI does not notice it in a message to oneself
    call check_name('one_fails')
    call new_cr(.true.)
    do i = 1, others + 1
      call MPI_Irecv(values(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i))
    end do
    statuses%MPI_SOURCE = -77
    statuses%MPI_TAG = -77
    statuses%MPI_ERROR = -77
    call MPIX_Continueall(others + 1, requests, see, int(others, MPI_ADDRESS_KIND), &
      merge(MPIX_CONT_INVOKE_FAILED, 0, invoke), statuses, cr)
    call MPI_Send([1, 2], 2, MPI_INTEGER, next, 1, MPI_COMM_WORLD)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(errors, 1, 'calls of the error handler')
    ! MPICH tells its handler of arrays in its own way.
    call check_true(last_error == MPI_ERR_TRUNCATE .or. last_error == MPI_ERR_IN_STATUS, 'class in the error handler')
    errors = 0
    call check_equal(ierror, merge(MPI_SUCCESS, MPI_ERR_TRUNCATE, invoke), 'what the wait returns')
    call check_equal(runs, merge(1, 0, invoke), 'runs')
    if (invoke) call check_equal(last_rc, MPI_ERR_TRUNCATE, 'rc')
    call MPI_Error_class(statuses(1)%MPI_ERROR, i)
    call check_equal(i, MPI_ERR_TRUNCATE, 'error class in the status')
    do i = 2, others + 1
      call check_equal(statuses(i)%MPI_ERROR, MPI_ERR_PENDING, 'the others are pending')
      call check_equal(statuses(i)%MPI_TAG, -77, 'and nothing else of them is said')
      call check_equal(statuses(i)%MPI_SOURCE, -77, 'and nothing else of them is said')
    end do
    failed = 77
    count = 2
    call MPIX_Continue_get_failed(cr, count, failed)
    call check_equal(count, merge(0, 1, invoke), 'failed ones')
    if (.not. invoke) call check_equal(int(failed(1)), others, 'user_data')
    ! The others finish by themselves, without touching the statuses.
    statuses%MPI_TAG = -78
    call MPI_Barrier(MPI_COMM_WORLD) ! all have seen that
    do i = 2, others + 1
      call MPI_Send(1000 * rank + i, 1, MPI_INTEGER, next, i, MPI_COMM_WORLD)
    end do
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Start(cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    do i = 2, others + 1
      do while (values(i) /= 1000 * previous + i)
        call progress
      end do
    end do
    call check_true(all(statuses%MPI_TAG == -78), 'the statuses stay')
    call check_equal(runs, merge(1, 0, invoke), 'runs in the end')
    call MPI_Request_free(cr)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine one_fails

  subroutine progress
    logical :: flag
    call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE)
  end subroutine progress

  subroutine persistent
    type(MPI_Request) :: request, same
    integer :: i
    logical :: flag

    call check_name('persistent')
    call new_cr(.true.)
    call MPI_Recv_init(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
    same = request
    do i = 1, 3
      call MPI_Start(request)
      call MPIX_Continue(request, see, int(i, MPI_ADDRESS_KIND), 0, MPI_STATUS_IGNORE, cr)
      call check_true(request == same, 'the handle stays')
      call MPI_Send(i, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
      flag = .false.
      do while (runs < i)
        call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
      end do
      call check_equal(value, i, 'value')
      if (flag) call MPI_Start(cr)
    end do
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call MPI_Request_free(cr)
  end subroutine persistent

  ! The request is freed while its continuations are outstanding: they still run, and statuses are written.
  subroutine freed_early
    integer, parameter :: n = 3
    type(MPI_Request) :: requests(n)
    type(MPI_Status), asynchronous :: statuses(n)
    integer, asynchronous :: values(n)
    integer :: i

    call check_name('freed_early')
    call new_cr(.true.)
    result = MPI_ERR_OTHER ! nobody can ask
    do i = 1, n
      call MPI_Irecv(values(i), 1, MPI_INTEGER, 0, i, MPI_COMM_SELF, requests(i))
      call MPIX_Continue(requests(i), see, int(i, MPI_ADDRESS_KIND), 0, statuses(i), cr)
    end do
    call MPI_Request_free(cr)
    call check_true(cr == MPI_REQUEST_NULL, 'freed')
    call check_equal(runs, 0, 'nothing has run')
    do i = 1, n
      call MPI_Send(i, 1, MPI_INTEGER, 0, i, MPI_COMM_SELF)
    end do
    do while (runs < n)
      call progress
    end do
    call check_true(all(statuses%MPI_TAG == [(i, i = 1, n)]), 'tags')
  end subroutine freed_early

  ! Either interface takes continuation requests of the other.
  subroutine beside_draft
    type(MPI_Request) :: request, draft

    call check_name('beside_draft')
    runs = 0
    result = MPI_SUCCESS
    call MPI_Continue_init(MPI_INFO_NULL, draft)
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
    call MPIX_Continue(request, see, 9_MPI_ADDRESS_KIND, 0, MPI_STATUS_IGNORE, draft)
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(draft, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call MPI_Request_free(draft)
  end subroutine beside_draft

  ! After a call that must be refused.
  subroutine check_error(class, ierror)
    integer, intent(in) :: class, ierror
    integer :: returned
    call MPI_Error_class(ierror, returned)
    call check_equal(returned, class, 'error class in ierror')
    call check_equal(errors, 1, 'calls of the error handler')
    call check_equal(last_error, class, 'error class in the error handler')
    errors = 0
  end subroutine check_error

  subroutine refused
    type(MPI_Request) :: request, plain, bad, before(2), both(2)
    type(MPI_Status) :: status, statuses(2)
    integer(kind=MPI_ADDRESS_KIND) :: failed(1)
    integer :: a, b, ierror, count, i
    integer, parameter :: no_handles(4) = [-1, -huge(0), huge(0), 1000000]

    call check_name('refused')
    call new_cr(.true.)
    call MPI_Irecv(a, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
    call MPI_Irecv(b, 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF, plain)
    both = [request, plain]
    before = both
    statuses%MPI_TAG = -77
    call MPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, 0, status, plain, ierror)
    call check_error(MPI_ERR_REQUEST, ierror)
    call MPIX_Continueall(-1, both, see, 1_MPI_ADDRESS_KIND, 0, statuses, cr, ierror)
    call check_error(MPI_ERR_COUNT, ierror)
    call MPIX_Continueall(2, both, see, 1_MPI_ADDRESS_KIND, 0, statuses, plain) ! no ierror
    call check_error(MPI_ERR_REQUEST, MPI_ERR_REQUEST)
    call check_true(both(1) == before(1) .and. both(2) == before(2), 'the handles stay')
    call check_true(all(statuses%MPI_TAG == -77), 'the statuses stay')
    count = -1
    call MPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_error(MPI_ERR_ARG, ierror)
    call check_equal(count, -1, 'the count stays')
    count = 1
    call MPIX_Continue_get_failed(plain, count, failed, ierror)
    call check_error(MPI_ERR_REQUEST, ierror)
    call check_equal(count, 1, 'the count stays')
    call MPIX_Continue_get_failed(MPI_REQUEST_NULL, count, failed, ierror)
    call check_error(MPI_ERR_REQUEST, ierror)
    do i = 1, size(no_handles)
      bad%MPI_VAL = no_handles(i)
      call MPIX_Continue_get_failed(bad, count, failed, ierror)
      call check_error(MPI_ERR_REQUEST, ierror)
      call MPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, 0, status, bad, ierror)
      call check_error(MPI_ERR_REQUEST, ierror)
    end do
    call check_equal(runs, 0, 'nothing has run')
    call MPIX_Continueall(2, both, see, 1_MPI_ADDRESS_KIND, 0, statuses, cr)
    call MPI_Send(1, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
    call MPI_Send(2, 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'what was refused before')
    call check_equal(a + b, 3, 'values')
    call MPI_Request_free(cr)
  end subroutine refused
end program f08_revised
