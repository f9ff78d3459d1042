! SPDX-License-Identifier: BSD-3-Clause
! mpif.h: the revised interface, by both names of each call.

module seen
  use check
  implicit none
  include 'mpif.h'
  include 'contd_mpif.h'
  integer :: runs = 0, last_rc = -1, result = MPI_SUCCESS, sum = 0

contains

  subroutine see(rc, user_data, ierror)
    integer :: rc, ierror
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    call check_equal(ierror, MPI_SUCCESS, 'ierror in the callback')
    runs = runs + 1
    last_rc = rc
    sum = sum + int(user_data)
    ierror = result
  end subroutine see
end module seen

program mpif_revised
  use seen
  use check
  implicit none
  integer :: rank, ranks, next, previous, cr, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPIX_Continue_init(0, 0, MPI_INFO_NULL, cr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'init')
  call MPI_Start(cr, ierror)
  call receives
  call failures
  call refused
  call MPI_Request_free(cr, ierror)
  call other_names
  call MPI_Finalize(ierror)

contains

  subroutine receives
    integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), values(3), i

    call check_name('receives')
    do i = 1, 2
      call MPI_Irecv(values(i:i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i), ierror)
    end do
    call MPIX_Continueall(2, requests, see, 40_MPI_ADDRESS_KIND, MPIX_CONT_INVOKE_FAILED, statuses, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    call check_true(all(requests == MPI_REQUEST_NULL), 'the handles are taken')
    call MPI_Irecv(values(3:3), 1, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, requests(1), ierror)
    call MPIX_Continue(requests(1), see, 2_MPI_ADDRESS_KIND, 0, MPI_STATUS_IGNORE, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    call MPI_Send([rank], 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD, ierror)
    call MPI_Send([rank], 1, MPI_INTEGER, next, 2, MPI_COMM_WORLD, ierror)
    call MPI_Send([rank], 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, ierror)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(runs, 2, 'runs')
    call check_equal(sum, 42, 'sum of user_data')
    call check_equal(last_rc, MPI_SUCCESS, 'rc')
    call check_true(all(statuses(MPI_SOURCE, :) == previous), 'sources')
    call check_true(all(statuses(MPI_TAG, :) == [1, 2]), 'tags')
    call check_true(all(statuses(MPI_ERROR, :) == MPI_SUCCESS), 'errors')
    call check_true(all(values == previous), 'values')
  end subroutine receives

  ! A callback that fails; and a message that is too long, so that its callback does not run.
  subroutine failures
    integer(kind=MPI_ADDRESS_KIND) :: failed(3)
    integer :: request, status(MPI_STATUS_SIZE), value(1), count, class

    call check_name('failures')
    runs = 0
    result = MPI_ERR_BUFFER
    call MPI_Start(cr, ierror)
    request = MPI_REQUEST_NULL
    call MPIX_Continue(request, see, -7_MPI_ADDRESS_KIND, 0, status, cr, ierror)
    call check_equal(runs, 1, 'runs')
    result = MPI_SUCCESS
    count = 3
    call MPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'get_failed')
    call check_equal(count, 1, 'one')
    call check_equal(int(failed(1)), -7, 'user_data')
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'not marked as failed any more')
    if (ranks == 1) return ! Open MPI does not notice it in a message to oneself
    call MPI_Start(cr, ierror)
    call MPI_Irecv(value, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, request, ierror)
    call MPIX_Continue(request, see, 8_MPI_ADDRESS_KIND, 0, status, cr, ierror)
    call MPI_Send([rank, rank], 2, MPI_INTEGER, next, 1, MPI_COMM_WORLD, ierror)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    class = class_of(ierror)
    call check_equal(class, MPI_ERR_TRUNCATE, 'what the wait returns')
    call check_equal(runs, 1, 'does not run')
    call MPI_Error_class(status(MPI_ERROR), class, ierror)
    call check_equal(class, MPI_ERR_TRUNCATE, 'error class in the status')
    count = 3
    call MPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(count, 1, 'one')
    call check_equal(int(failed(1)), 8, 'user_data')
  end subroutine failures

  subroutine refused
    integer(kind=MPI_ADDRESS_KIND) :: failed(1)
    integer :: request, before, status(MPI_STATUS_SIZE), value(1), count

    call check_name('refused')
    runs = 0
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request, ierror)
    before = request
    status = -77
    call MPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, 0, status, request, ierror)
    call check_equal(class_of(ierror), MPI_ERR_REQUEST, 'a receive is no continuation request')
    call MPIX_Continueall(-1, [request], see, 1_MPI_ADDRESS_KIND, 0, status, cr, ierror)
    call check_equal(class_of(ierror), MPI_ERR_COUNT, 'a negative count')
    count = 1
    call MPIX_Continue_get_failed(request, count, failed, ierror)
    call check_equal(class_of(ierror), MPI_ERR_REQUEST, 'a receive is no continuation request')
    count = -1
    call MPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(class_of(ierror), MPI_ERR_ARG, 'a negative count')
    call MPIX_Continue_init(0, -5, MPI_INFO_NULL, count, ierror)
    call check_equal(class_of(ierror), MPI_ERR_ARG, 'max_poll')
    call check_equal(count, -1, 'the handle stays')
    call check_equal(request, before, 'the handle stays')
    call check_true(all(status == -77), 'the status stays')
    call MPI_Cancel(request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_equal(runs, 0, 'nothing has run')
  end subroutine refused

  integer function class_of(code)
    integer, intent(in) :: code
    integer :: rc
    call MPI_Error_class(code, class_of, rc)
  end function class_of

  subroutine other_names
    integer(kind=MPI_ADDRESS_KIND) :: failed(1)
    integer :: request, status(MPI_STATUS_SIZE), count

    call check_name('other_names')
    runs = 0
    result = MPI_ERR_OTHER
    call PMPIX_Continue_init(MPIX_CONT_POLL_ONLY, MPI_UNDEFINED, MPI_INFO_NULL, cr, ierror)
    call MPI_Start(cr, ierror)
    request = MPI_REQUEST_NULL
    call PMPIX_Continue(request, see, 1_MPI_ADDRESS_KIND, 0, status, cr, ierror)
    call PMPIX_Continueall(0, [request], see, 2_MPI_ADDRESS_KIND, 0, MPI_STATUSES_IGNORE, cr, ierror)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(class_of(ierror), MPI_ERR_OTHER, 'what the callbacks have returned')
    call check_equal(runs, 2, 'runs')
    count = 1
    call PMPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(count, 1, 'there may be more')
    call PMPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(count, 1, 'there is')
    call PMPIX_Continue_get_failed(cr, count, failed, ierror)
    call check_equal(count, 0, 'no more')
    call MPI_Request_free(cr, ierror)
  end subroutine other_names
end program mpif_revised
