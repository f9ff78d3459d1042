! SPDX-License-Identifier: BSD-3-Clause
! ranks: 1
! mpi_f08: as f08_handles, where another thread runs the callback while the call that attached is returning.

module reuse
  use mpi_f08
  implicit none
  type(MPI_Request) :: request, cr
  integer :: value = 0, posted = 0, wrong = 0

contains

  ! user_data is the number of the round.
  subroutine post_anew(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    if (array_of_statuses(1)%MPI_TAG /= 1 .or. request /= MPI_REQUEST_NULL) wrong = wrong + 1
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF, request)
    !$omp atomic write seq_cst
    posted = int(user_data)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine post_anew
end module reuse

program f08_threads
  use mpi_f08
  use contd_mpi_f08
  use reuse
  use check
  implicit none
  integer, parameter :: rounds = 20000
  integer :: provided
  interface
    function sched_yield() bind(C)
      use, intrinsic :: iso_c_binding, only: c_int
      integer(c_int) :: sched_yield
    end function sched_yield
  end interface

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  if (provided < MPI_THREAD_MULTIPLE) then
    print *, 'skipped: MPI does not grant MPI_THREAD_MULTIPLE'
    call MPI_Finalize()
    stop 77
  end if
  call check_name('threads')
  call MPI_Continue_init(MPI_INFO_NULL, cr)
  call race
  call check_equal(wrong, 0, 'callbacks that saw something wrong')
  call MPI_Request_free(cr)
  call MPI_Finalize()

contains

  ! One thread attaches while the other one sends and tests; for some seconds at most, where the two share a core.
  subroutine race
    type(MPI_Status) :: status
    integer :: turn, now, i, spins
    integer(kind=8) :: start, time, rate
    logical :: flag

    turn = 0
    call system_clock(start, rate)
    !$omp parallel num_threads(2) private(i, now, flag, time, spins)
    !$omp sections
    !$omp section
    do i = 1, rounds
      call MPI_Irecv(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request)
      !$omp atomic write seq_cst
      turn = i
      call MPI_Continue(request, post_anew, int(i, MPI_ADDRESS_KIND), status, cr)
      now = 0
      do while (now /= i)
        call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
        !$omp atomic read seq_cst
        now = posted
      end do
      call check_true(request /= MPI_REQUEST_NULL, 'posted in the callback, and still there')
      call MPI_Send(i, 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check_equal(value, i, 'value')
      call system_clock(time)
      if (time - start > 10 * rate) exit
    end do
    !$omp atomic write seq_cst
    turn = rounds + 1
    !$omp section
    i = 1
    spins = 0
    do
      !$omp atomic read seq_cst
      now = turn
      if (now > rounds) exit
      if (now < i) then
        ! Watch closely for a while, so as to come in time; where the core is shared the other one must get it.
        spins = mod(spins + 1, 10000)
        if (spins == 0) now = sched_yield()
        cycle
      end if
      call MPI_Send(-i, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
      now = 0
      do while (now < i)
        call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
        !$omp atomic read seq_cst
        now = posted
      end do
      i = i + 1
    end do
    !$omp end sections
    !$omp end parallel
  end subroutine race
end program f08_threads
