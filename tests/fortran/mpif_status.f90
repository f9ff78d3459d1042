! SPDX-License-Identifier: BSD-3-Clause
! mpi, contd_mpif.h: status queries of several requests.
! ranks: 1

program mpif_status
  use mpi
  use check
  implicit none
  include 'contd_mpif.h'
  integer, parameter :: n = 20
  integer :: requests(n), statuses(MPI_STATUS_SIZE, n), status(MPI_STATUS_SIZE), indices(n)
  integer, asynchronous :: values(n)
  integer :: i, index, outcount, ierror
  logical :: flag

  call MPI_INIT(ierror)
  do i = 1, n
    call MPI_IRECV(values(i), 1, MPI_INTEGER, 0, i, MPI_COMM_SELF, requests(i), ierror)
  end do
  call MPI_REQUEST_GET_STATUS_ALL(n, requests, flag, statuses, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'all')
  call check_true(.not. flag, 'flag of all')
  call MPI_REQUEST_GET_STATUS_ANY(n, requests, index, flag, status, ierror)
  call check_true(.not. flag, 'flag of any')
  do i = 3, n, 4
    call MPI_SEND(i, 1, MPI_INTEGER, 0, i, MPI_COMM_SELF, ierror)
  end do
  outcount = 0
  do while (outcount < n / 4)
    call MPIX_REQUEST_GET_STATUS_SOME(n, requests, outcount, indices, statuses, ierror)
  end do
  do i = 1, n / 4
    call check_equal(indices(i), 4 * i - 1, 'index')
    call check_equal(statuses(MPI_TAG, i), 4 * i - 1, 'tag')
  end do
  call MPI_REQUEST_GET_STATUS_ANY(n, requests, index, flag, MPI_STATUS_IGNORE, ierror)
  call check_true(flag .and. mod(index, 4) == 3, 'any')
  do i = 1, n
    if (mod(i, 4) /= 3) call MPI_SEND(i, 1, MPI_INTEGER, 0, i, MPI_COMM_SELF, ierror)
  end do
  flag = .false.
  do while (.not. flag)
    call PMPI_REQUEST_GET_STATUS_ALL(n, requests, flag, MPI_STATUSES_IGNORE, ierror)
  end do
  call MPI_WAITALL(n, requests, MPI_STATUSES_IGNORE, ierror)
  do i = 1, n
    call check_equal(values(i), i, 'what came')
  end do
  call MPI_REQUEST_GET_STATUS_SOME(n, requests, outcount, indices, MPI_STATUSES_IGNORE, ierror)
  call check_equal(outcount, MPI_UNDEFINED, 'some of nothing')
  call MPI_FINALIZE(ierror)
end program mpif_status
