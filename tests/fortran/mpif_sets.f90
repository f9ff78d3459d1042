! SPDX-License-Identifier: BSD-3-Clause
! The module mpi: MPI_CONTINUEALL with a status array and with ignored statuses, collectives, and a persistent receive
! that is restarted in its callback.

module seen
  use mpi
  use check
  implicit none
  include 'contd_mpif.h'
  integer, parameter :: rounds = 10
  integer :: cr, persistent, value, runs = 0, sum = 0
  integer(kind=MPI_ADDRESS_KIND) :: data = 0, address = 0

contains

  ! user_data says how many statuses there are; 0: they are ignored.
  subroutine see(array_of_statuses, user_data, ierror)
    integer :: array_of_statuses(MPI_STATUS_SIZE, *), ierror, i
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    runs = runs + 1
    data = user_data
    do i = 1, int(user_data)
      call check_equal(array_of_statuses(MPI_TAG, i), i, 'tag in the callback')
      call check_equal(array_of_statuses(MPI_ERROR, i), MPI_SUCCESS, 'error in the callback')
    end do
    call MPI_Get_address(array_of_statuses, address, ierror)
  end subroutine see

  recursive subroutine restart(array_of_statuses, user_data, ierror)
    integer :: array_of_statuses(MPI_STATUS_SIZE, *), ierror
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    call check_equal(array_of_statuses(MPI_TAG, 1), 1, 'tag in the callback')
    runs = runs + 1
    sum = sum + value
    if (runs == user_data) return
    call MPI_Start(persistent, ierror)
    call MPI_Continue(persistent, restart, user_data, array_of_statuses, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach in the callback')
  end subroutine restart
end module seen

program mpif_sets
  use mpi
  use seen
  use check
  implicit none
  integer :: rank, ranks, next, previous, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call MPI_Continue_init(MPI_INFO_NULL, cr, ierror)
  call receives(3)
  call receives(50)
  call ignored
  call restarted
  call MPI_Request_free(cr, ierror)
  call MPI_Finalize(ierror)

contains

  subroutine send_all(n)
    integer, intent(in) :: n
    integer :: i, out
    do i = n, 1, -1
      out = 1000 * rank + i
      call MPI_Send(out, 1, MPI_INTEGER, next, i, MPI_COMM_WORLD, ierror)
    end do
  end subroutine send_all

  subroutine receives(n)
    integer, intent(in) :: n
    integer :: requests(n), statuses(MPI_STATUS_SIZE, n), values(n), i
    integer(kind=MPI_ADDRESS_KIND) :: place
    logical :: flag

    call check_name('receives')
    runs = 0
    statuses = -77
    do i = 1, n
      call MPI_Irecv(values(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i), ierror)
    end do
    call MPI_Continueall(n, requests, see, int(n, MPI_ADDRESS_KIND), statuses, cr, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    call check_true(all(requests == MPI_REQUEST_NULL), 'the handles are taken')
    call MPI_Test(cr, flag, MPI_STATUS_IGNORE, ierror)
    call check_true(.not. flag, 'outstanding')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call send_all(n)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(runs, 1, 'runs')
    do i = 1, n
      call check_equal(statuses(MPI_SOURCE, i), previous, 'source')
      call check_equal(statuses(MPI_TAG, i), i, 'tag')
      call check_equal(statuses(MPI_ERROR, i), MPI_SUCCESS, 'error')
      call check_equal(values(i), 1000 * previous + i, 'value')
    end do
    call MPI_Get_address(statuses, place, ierror)
    call check_true(place == address, 'the callback gets the same array')
  end subroutine receives

  subroutine ignored
    integer :: requests(2), sum_of_ranks, one
    integer(kind=MPI_ADDRESS_KIND) :: place

    call check_name('ignored')
    runs = 0
    one = rank + 1
    call MPI_Iallreduce(one, sum_of_ranks, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(2), ierror)
    call PMPI_Continueall(2, requests, see, 0_MPI_ADDRESS_KIND, MPI_STATUSES_IGNORE, cr, ierror)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(runs, 1, 'runs')
    call check_equal(sum_of_ranks, ranks * (ranks + 1) / 2, 'sum')
    call MPI_Get_address(MPI_STATUSES_IGNORE, place, ierror)
    call check_true(place == address, 'the callback gets MPI_STATUSES_IGNORE')
    ! None at all.
    call MPI_Continueall(0, requests, see, 0_MPI_ADDRESS_KIND, MPI_STATUSES_IGNORE, cr, ierror)
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(runs, 2, 'runs')
  end subroutine ignored

  subroutine restarted
    integer :: status(MPI_STATUS_SIZE), same, i, out

    call check_name('restarted')
    runs = 0
    call MPI_Recv_init(value, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, persistent, ierror)
    same = persistent
    call MPI_Start(persistent, ierror)
    call MPI_Continue(persistent, restart, int(rounds, MPI_ADDRESS_KIND), status, cr, ierror)
    call check_equal(persistent, same, 'the handle stays')
    do i = 1, rounds
      out = rank + i
      call MPI_Send(out, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD, ierror)
    end do
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(runs, rounds, 'runs')
    call check_equal(sum, rounds * previous + rounds * (rounds + 1) / 2, 'sum')
    call check_equal(persistent, same, 'the handle in the end')
    call MPI_Request_free(persistent, ierror)
  end subroutine restarted
end program mpif_sets
