! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: status queries of several requests, few and many, statuses ignored or not, by all their names.

program f08_status
  use mpi_f08
  use contd_mpi_f08
  use check
  implicit none
  integer :: rank, ranks, next, previous

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call nothing
  call queries(3)
  call queries(50)
  call MPI_Finalize()

contains

  subroutine nothing
    type(MPI_Request) :: requests(3)
    type(MPI_Status) :: status, statuses(3)
    integer :: index, outcount, indices(3), ierror
    logical :: flag

    requests = MPI_REQUEST_NULL
    flag = .false.
    call MPI_Request_get_status_all(3, requests, flag, statuses, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'all')
    call check_true(flag, 'all of nothing')
    call check_equal(statuses(2)%MPI_TAG, MPI_ANY_TAG, 'the empty status')
    flag = .false.
    call MPIX_Request_get_status_any(3, requests, index, flag, status)
    call check_true(flag, 'any of nothing')
    call check_equal(index, MPI_UNDEFINED, 'index')
    call PMPI_Request_get_status_some(3, requests, outcount, indices, MPI_STATUSES_IGNORE)
    call check_equal(outcount, MPI_UNDEFINED, 'outcount')
  end subroutine nothing

  subroutine queries(n)
    integer, intent(in) :: n
    type(MPI_Request) :: requests(n), kept(n)
    type(MPI_Status) :: status, statuses(n)
    integer, asynchronous :: values(n)
    integer :: i, index, outcount, indices(n)
    logical :: flag

    do i = 1, n
      call MPI_Irecv(values(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i))
    end do
    kept = requests
    call MPI_Request_get_status_all(n, requests, flag, MPI_STATUSES_IGNORE)
    call check_true(.not. flag, 'all before anything was sent')
    call MPI_Request_get_status_some(n, requests, outcount, indices, statuses)
    call check_equal(outcount, 0, 'some before anything was sent')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Send(rank, 1, MPI_INTEGER, next, 2, MPI_COMM_WORLD)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_any(n, requests, index, flag, status)
    end do
    call check_equal(index, 2, 'any')
    call check_equal(status%MPI_TAG, 2, 'its tag')
    call MPI_Request_get_status_any(n, requests, index, flag, MPI_STATUS_IGNORE)
    call check_equal(index, 2, 'any, again')
    call MPI_Request_get_status_some(n, requests, outcount, indices, statuses)
    call check_equal(outcount, 1, 'some')
    call check_equal(indices(1), 2, 'its index')
    call check_equal(statuses(1)%MPI_SOURCE, previous, 'its source')
    call MPI_Barrier(MPI_COMM_WORLD)
    do i = 1, n
      if (i /= 2) call MPI_Send(rank, 1, MPI_INTEGER, next, i, MPI_COMM_WORLD)
    end do
    flag = .false.
    do while (.not. flag)
      call MPIX_Request_get_status_all(n, requests, flag, statuses)
    end do
    do i = 1, n
      call check_equal(statuses(i)%MPI_TAG, i, 'tags of all')
      call check_true(requests(i) == kept(i), 'handles stay')
    end do
    call MPI_Waitall(n, requests, MPI_STATUSES_IGNORE)
    do i = 1, n
      call check_equal(values(i), previous, 'what came')
    end do
  end subroutine queries
end program f08_status
