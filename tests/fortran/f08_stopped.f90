! SPDX-License-Identifier: BSD-3-Clause
! ranks: 1
! mpi_f08: a thread that attaches is stopped where it writes the program's handles, as a thread of low priority may be for
! any time. A callback must not wait for it on another thread, which may be in a signal handler.
! The handles are in memory that must not be written, and f08_stopped.c has the rest.

module reaction
  use mpi_f08
  use check
  implicit none
  integer, parameter :: most = 20
  type(MPI_Request), pointer :: requests(:)
  integer :: values(most) = 0, runs = 0

contains

  ! user_data says how many requests it is about.
  subroutine arrived(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    integer :: i
    do i = 1, int(user_data)
      call check_equal(array_of_statuses(i)%MPI_TAG, i, 'tag')
      call check_true(requests(i) == MPI_REQUEST_NULL, 'null in the callback')
    end do
    runs = runs + 1
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine arrived

  subroutine arrived_revised(rc, user_data, ierror)
    integer, intent(in) :: rc
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer :: ierror
    integer :: i
    do i = 1, int(user_data)
      call check_true(requests(i) == MPI_REQUEST_NULL, 'null in the callback')
    end do
    runs = runs + 1
    ierror = rc
  end subroutine arrived_revised
end module reaction

program f08_stopped
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr, c_f_pointer
  use mpi_f08
  use contd_mpi_f08
  use reaction
  use check
  implicit none

  interface
    ! Memory for the handles.
    type(c_ptr) function stopped_begin() bind(C)
      import :: c_ptr
    end function stopped_begin

    ! From now on who writes there is stopped, until another thread has sent so many messages and tested the CR.
    subroutine stopped_arm(cr, count) bind(C)
      import :: c_int
      integer(c_int), value :: cr, count
    end subroutine stopped_arm

    ! 1: it was stopped, and the other thread did not wait for it.
    integer(c_int) function stopped_good() bind(C)
      import :: c_int
    end function stopped_good

    subroutine stopped_end() bind(C)
    end subroutine stopped_end
  end interface

  integer, parameter :: counts(3) = [1, 3, most]
  integer :: provided, i, k, n
  type(MPI_Request) :: cr
  type(MPI_Status) :: statuses(most)

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  if (provided < MPI_THREAD_MULTIPLE) then
    print *, 'skipped: MPI does not grant MPI_THREAD_MULTIPLE'
    call MPI_Finalize()
    stop 77
  end if
  call c_f_pointer(stopped_begin(), requests, [most])
  do k = 1, 2
    if (k == 1) then
      call check_name('draft')
      call MPI_Continue_init(MPI_INFO_NULL, cr)
    else
      call check_name('revised')
      call MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, cr)
    end if
    do n = 1, size(counts)
      call one(counts(n))
    end do
    call MPI_Request_free(cr)
  end do
  call stopped_end()
  call MPI_Finalize()

contains

  subroutine one(count)
    integer, intent(in) :: count
    runs = 0
    do i = 1, count
      call MPI_Irecv(values(i), 1, MPI_INTEGER, 0, i, MPI_COMM_SELF, requests(i))
    end do
    if (k == 2) call MPI_Start(cr)
    call stopped_arm(cr%MPI_VAL, count)
    if (k == 1) then
      call MPI_Continueall(count, requests, arrived, int(count, MPI_ADDRESS_KIND), statuses, cr)
    else
      call MPIX_Continueall(count, requests, arrived_revised, int(count, MPI_ADDRESS_KIND), 0, statuses, cr)
    end if
    call check_equal(int(stopped_good()), 1, 'the other thread did not wait')
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    do i = 1, count
      call check_equal(values(i), i, 'value')
    end do
  end subroutine one
end program f08_stopped
