! SPDX-License-Identifier: BSD-3-Clause
! mpif.h, in fixed form: receives, sends and ignored statuses, and what
! the callback gets.

      subroutine see(array_of_statuses, user_data, ierror)
      use check
      implicit none
      include 'mpif.h'
      integer array_of_statuses(MPI_STATUS_SIZE, *), ierror
      integer(kind=MPI_ADDRESS_KIND) user_data
      integer runs, first(MPI_STATUS_SIZE)
      integer(kind=MPI_ADDRESS_KIND) data, address
      common /seen/ data, address, runs, first

      call check_equal(ierror, MPI_SUCCESS, 'ierror in the callback')
      runs = runs + 1
      data = user_data
      user_data = 0
      call MPI_GET_ADDRESS(array_of_statuses, address, ierror)
      first = array_of_statuses(:, 1)
      ierror = MPI_ERR_OTHER
      end subroutine see

      program mpif_requests
      use check
      implicit none
      include 'mpif.h'
      include 'contd_mpif.h'
      external see
      integer n
      parameter (n = 5)
      integer rank, ranks, next, previous, ierror, i
      integer cr, same, request
      integer values(n), out(n)
      integer(kind=MPI_ADDRESS_KIND) place, big
      logical flag
      integer runs, first(MPI_STATUS_SIZE)
      integer(kind=MPI_ADDRESS_KIND) data, address
      common /seen/ data, address, runs, first

      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierror)
      next = mod(rank + 1, ranks)
      previous = mod(rank + ranks - 1, ranks)
      do i = 1, n
        out(i) = 100 * rank + i
      end do

      call check_name('fresh')
      ierror = MPI_ERR_OTHER
      call MPI_CONTINUE_INIT(MPI_INFO_NULL, cr, ierror)
      call check_equal(ierror, MPI_SUCCESS, 'init')
      call check_true(cr /= MPI_REQUEST_NULL, 'a handle')
      same = cr
      flag = .false.
      call MPI_TEST(cr, flag, MPI_STATUS_IGNORE, ierror)
      call check_true(flag, 'complete')
      call check_true(cr == same, 'completion keeps it')

      call receive

      call statuses_change

      call check_name('receive, ignored')
      runs = 0
      big = 2
      values = 0
      call MPI_IRECV(values, n, MPI_INTEGER, previous, 3,
     &  MPI_COMM_WORLD, request, ierror)
      call MPI_CONTINUE(request, see, big, MPI_STATUS_IGNORE, cr,
     &  ierror)
      call check_equal(ierror, MPI_SUCCESS, 'attach')
      call MPI_SEND(out, n, MPI_INTEGER, next, 3, MPI_COMM_WORLD,
     &  ierror)
      call MPI_WAIT(cr, MPI_STATUS_IGNORE, ierror)
      call check_equal(runs, 1, 'runs')
      call check_true(data == 2, 'user data')
      call MPI_GET_ADDRESS(MPI_STATUS_IGNORE, place, ierror)
      call check_true(place == address, 'gets MPI_STATUS_IGNORE')
      call check_true(first(MPI_TAG) /= 3, 'nothing is written there')

      call check_name('null request')
      runs = 0
      request = MPI_REQUEST_NULL
      call PMPI_CONTINUE(request, see, big, MPI_STATUSES_IGNORE, cr,
     &  ierror)
      call MPI_WAIT(cr, MPI_STATUS_IGNORE, ierror)
      call check_equal(runs, 1, 'runs')
      call MPI_GET_ADDRESS(MPI_STATUSES_IGNORE, place, ierror)
      call check_true(place == address, 'gets MPI_STATUSES_IGNORE')

      call MPI_REQUEST_FREE(cr, ierror)
      call check_equal(cr, MPI_REQUEST_NULL, 'freed')
      call MPI_FINALIZE(ierror)

      contains

!     Local variables, no targets: see f08_requests.f90.
      subroutine statuses_change
      integer one(MPI_STATUS_SIZE), both(MPI_STATUS_SIZE, 2)
      integer requests(3), received(3)

      call check_name('statuses_change')
      runs = 0
      one(MPI_TAG) = -77
      both(MPI_TAG, 1) = -77
      both(MPI_TAG, 2) = -77
      do i = 1, 3
        call MPI_IRECV(received(i), 1, MPI_INTEGER, previous, i,
     &    MPI_COMM_WORLD, requests(i), ierror)
      end do
      call MPI_CONTINUE(requests(1), see, big, one, cr, ierror)
      call MPI_CONTINUEALL(2, requests(2), see, big, both, cr, ierror)
      call check_true(one(MPI_TAG) == -77, 'tag 1 before')
      call check_true(both(MPI_TAG, 1) == -77, 'tag 2 before')
      call check_true(both(MPI_TAG, 2) == -77, 'tag 3 before')
      call MPI_BARRIER(MPI_COMM_WORLD, ierror)
      do i = 1, 3
        call MPI_SEND(out, 1, MPI_INTEGER, next, i, MPI_COMM_WORLD,
     &    ierror)
      end do
      call MPI_WAIT(cr, MPI_STATUS_IGNORE, ierror)
      call check_equal(runs, 2, 'runs')
      call check_true(one(MPI_TAG) == 1, 'tag 1')
      call check_true(both(MPI_TAG, 1) == 2, 'tag 2')
      call check_true(both(MPI_TAG, 2) == 3, 'tag 3')
      end subroutine statuses_change

      subroutine receive
      integer status(MPI_STATUS_SIZE), count
      logical cancelled

      call check_name('receive')
      runs = 0
      values = 0
      status = -77
      big = -3 * 2_MPI_ADDRESS_KIND**40
      call MPI_IRECV(values, n, MPI_INTEGER, previous, 1,
     &  MPI_COMM_WORLD, request, ierror)
      call MPI_CONTINUE(request, see, big, status, cr, ierror)
      call check_equal(ierror, MPI_SUCCESS, 'attach')
      call check_equal(request, MPI_REQUEST_NULL, 'taken')
      call MPI_TEST(cr, flag, MPI_STATUS_IGNORE, ierror)
      call check_true(.not. flag, 'outstanding')
      call check_equal(runs, 0, 'runs before')
      call MPI_BARRIER(MPI_COMM_WORLD, ierror)
      call MPI_SEND(out, n, MPI_INTEGER, next, 1, MPI_COMM_WORLD,
     &  ierror)
      call MPI_WAIT(cr, MPI_STATUS_IGNORE, ierror)
      call check_equal(runs, 1, 'runs')
      call check_true(data == big, 'user data')
      call check_equal(status(MPI_SOURCE), previous, 'source')
      call check_equal(status(MPI_TAG), 1, 'tag')
      call check_equal(status(MPI_ERROR), MPI_SUCCESS, 'error')
      call check_true(all(first == status), 'status in the callback')
      call MPI_GET_COUNT(status, MPI_INTEGER, count, ierror)
      call check_equal(count, n, 'count')
      call MPI_TEST_CANCELLED(status, cancelled, ierror)
      call check_true(.not. cancelled, 'not cancelled')
      do i = 1, n
        call check_equal(values(i), 100 * previous + i, 'value')
      end do
      call MPI_GET_ADDRESS(status, place, ierror)
      call check_true(place == address, 'gets the same status')
      end subroutine receive
      end program mpif_requests
