! SPDX-License-Identifier: BSD-3-Clause
! ranks: 1
! native only: callbacks run inside the call that attaches, where the others may leave them for later
! mpi_f08: once the callback can run, the program's handles belong to the program again. It may post the next operation
! into the same variable there, and that handle must still be in it when the call that attached returns.

module reuse
  use mpi_f08
  use check
  implicit none
  type(MPI_Request) :: requests(20), before(20)
  integer :: values(20) = 0, runs = 0

contains

  ! user_data says how many requests it is about.
  subroutine post_anew(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    integer :: i
    do i = 1, int(user_data)
      call check_equal(array_of_statuses(i)%MPI_TAG, i, 'tag')
      call check_true(requests(i) == MPI_REQUEST_NULL, 'null in the callback')
      call MPI_Irecv(values(i), 1, MPI_INTEGER, 0, 100 + i, MPI_COMM_SELF, requests(i))
      before(i) = requests(i)
    end do
    runs = runs + 1
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine post_anew

  ! The persistent request goes, and another one takes its place.
  subroutine replace(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    call check_equal(array_of_statuses(1)%MPI_TAG, int(user_data), 'tag')
    call MPI_Request_free(requests(1))
    call MPI_Irecv(values(1), 1, MPI_INTEGER, 0, 101, MPI_COMM_SELF, requests(1))
    before(1) = requests(1)
    runs = runs + 1
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine replace
end module reuse

program f08_handles
  use mpi_f08
  use contd_mpi_f08
  use reuse
  use check
  implicit none
  type(MPI_Request) :: cr
  type(MPI_Status) :: statuses(20)

  call MPI_Init()
  call MPI_Continue_init(MPI_INFO_NULL, cr)
  call again(1)
  call again(3)
  call again(20)
  call persistent
  call MPI_Request_free(cr)
  call MPI_Finalize()

contains

  subroutine send_all(n, tag)
    integer, intent(in) :: n, tag
    integer :: i
    do i = 1, n
      call MPI_Send(i, 1, MPI_INTEGER, 0, tag + i, MPI_COMM_SELF)
    end do
  end subroutine send_all

  ! The operation that the callback has posted works.
  subroutine check_posted(n)
    integer, intent(in) :: n
    integer :: i
    call check_equal(runs, 1, 'run inside the call that attaches')
    do i = 1, n
      call check_true(requests(i) /= MPI_REQUEST_NULL, 'posted in the callback, and still there')
      call check_true(requests(i) == before(i), 'as it was posted')
    end do
    values = 0
    call send_all(n, 100)
    call MPI_Waitall(n, requests, MPI_STATUSES_IGNORE)
    do i = 1, n
      call check_equal(values(i), i, 'value')
    end do
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
  end subroutine check_posted

  subroutine again(n)
    integer, intent(in) :: n
    integer :: i

    call check_name('again')
    runs = 0
    do i = 1, n
      call MPI_Irecv(values(i), 1, MPI_INTEGER, 0, i, MPI_COMM_SELF, requests(i))
    end do
    call send_all(n, 0) ! complete now
    if (n == 1) then
      call MPI_Continue(requests(1), post_anew, 1_MPI_ADDRESS_KIND, statuses(1), cr)
    else
      call MPI_Continueall(n, requests, post_anew, int(n, MPI_ADDRESS_KIND), statuses, cr)
    end if
    call check_posted(n)
  end subroutine again

  subroutine persistent
    call check_name('persistent')
    runs = 0
    call MPI_Recv_init(values(1), 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, requests(1))
    call MPI_Start(requests(1))
    call send_all(1, 0)
    call MPI_Continue(requests(1), replace, 1_MPI_ADDRESS_KIND, statuses(1), cr)
    call check_posted(1)
  end subroutine persistent
end program f08_handles
