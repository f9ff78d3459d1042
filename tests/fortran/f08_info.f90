! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: info keys reach the library, and with them the three other places where a callback may run: in a test of its
! own continuation request only, not in the call that attaches, and in a signal handler.

module seen
  use mpi_f08
  implicit none
  integer, volatile :: runs = 0

contains

  ! Async-signal-safe.
  subroutine see(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    runs = runs + merge(1, 1000, array_of_statuses(1)%MPI_TAG == user_data)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine see
end module seen

program f08_info
  use mpi_f08
  use contd_mpi_f08
  use seen
  use check
  implicit none
  integer :: rank, ranks, next, previous, provided

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call poll_only
  call enqueued
  call signalled
  call MPI_Finalize()

contains

  subroutine continuation_request(key, cr)
    character(len=*), intent(in) :: key
    type(MPI_Request), intent(out) :: cr
    type(MPI_Info) :: info
    integer :: ierror

    call check_name(key)
    runs = 0
    call MPI_Info_create(info)
    call MPI_Info_set(info, key, 'true')
    call MPI_Continue_init(info, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'init')
    call MPI_Info_free(info)
  end subroutine continuation_request

  subroutine poll_only
    type(MPI_Request) :: cr, request, other
    type(MPI_Status) :: status
    integer :: value, i
    logical :: flag

    call continuation_request('mpi_continue_poll_only', cr)
    call MPI_Continue_init(MPI_INFO_NULL, other)
    call MPI_Irecv(value, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 1_MPI_ADDRESS_KIND, status, cr)
    call MPI_Send(rank, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD)
    do i = 1, 100
      call MPI_Barrier(MPI_COMM_WORLD)
      call MPI_Test(other, flag, MPI_STATUS_IGNORE)
    end do
    call check_equal(runs, 0, 'runs in other calls')
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_equal(value, previous, 'value')
    call MPI_Request_free(other)
    call MPI_Request_free(cr)
  end subroutine poll_only

  subroutine enqueued
    type(MPI_Request) :: cr, request
    type(MPI_Status) :: status

    call continuation_request('mpi_continue_enqueue_complete', cr)
    request = MPI_REQUEST_NULL
    call MPI_Continue(request, see, int(MPI_ANY_TAG, MPI_ADDRESS_KIND), status, cr)
    call check_equal(runs, 0, 'runs in the call that attaches')
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call MPI_Request_free(cr)
  end subroutine enqueued

  ! The thread computes and calls nothing: the continuation runs in a handler, where MPI lets contd's own thread find
  ! the message (one from another process: one to itself is received in MPI_Send). What callbacks in a handler could not
  ! give back is given back by the calls that come later.
  subroutine signalled
    type(MPI_Request) :: cr, request
    type(MPI_Status) :: status
    integer, parameter :: rounds = 20
    integer :: value, i
    integer(kind=8) :: start, now, rate

    call continuation_request('mpi_continue_async_signal_safe', cr)
    do i = 1, rounds
      call MPI_Irecv(value, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, request)
      status%MPI_TAG = -77
      call MPI_Continue(request, see, 1_MPI_ADDRESS_KIND, status, cr)
      call MPI_Send(rank, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD)
      if (provided == MPI_THREAD_MULTIPLE .and. ranks > 1) then
        call system_clock(start, rate)
        now = start
        do while (runs < i .and. now - start < 20 * rate)
          call system_clock(now)
        end do
        call check_equal(runs, i, 'runs while the thread computes')
      end if
      call MPI_Wait(cr, MPI_STATUS_IGNORE)
      call check_equal(runs, i, 'runs')
      call check_equal(value, previous, 'value')
      call check_equal(status%MPI_TAG, 1, 'tag')
    end do
    call MPI_Request_free(cr)
  end subroutine signalled
end program f08_info
