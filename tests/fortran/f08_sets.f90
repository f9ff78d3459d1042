! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: MPI_Continueall with status arrays and ignored statuses, few and many requests, null ones, none, and
! collectives.

module seen
  use mpi_f08
  use check
  implicit none
  integer :: runs = 0
  integer(kind=MPI_ADDRESS_KIND) :: data = 0, address = 0

contains

  subroutine see(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    if (present(ierror)) ierror = MPI_SUCCESS
    runs = runs + 1
    data = user_data
    call MPI_Get_address(array_of_statuses(1), address)
  end subroutine see

  ! user_data says how many: all of them must be there before the callback.
  subroutine see_tags(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    integer :: i
    if (present(ierror)) ierror = MPI_SUCCESS
    do i = 1, int(user_data)
      call check_equal(array_of_statuses(i)%MPI_TAG, i, 'tag in the callback')
      call check_equal(array_of_statuses(i)%MPI_ERROR, MPI_SUCCESS, 'error in the callback')
    end do
    runs = runs + 1
  end subroutine see_tags
end module seen

program f08_sets
  use mpi_f08
  use contd_mpi_f08
  use seen
  use check
  implicit none
  integer :: rank, ranks, next, previous
  type(MPI_Request) :: cr

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call MPI_Continue_init(MPI_INFO_NULL, cr)
  call receives(3)
  call receives(60)
  call ignored(4)
  call ignored(60)
  call mixed
  call none
  call collectives
  call MPI_Request_free(cr)
  call MPI_Finalize()

contains

  subroutine send_all(n)
    integer, intent(in) :: n
    integer :: i
    do i = n, 1, -1
      call MPI_Send(1000 * rank + i, 1, MPI_INTEGER, next, i, MPI_COMM_WORLD)
    end do
  end subroutine send_all

  subroutine receives(n)
    integer, intent(in) :: n
    type(MPI_Request) :: requests(n)
    type(MPI_Status) :: statuses(n)
    integer :: values(n), i, ierror
    logical :: flag

    call check_name('receives')
    runs = 0
    do i = 1, n
      call MPI_Irecv(values(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i))
      statuses(i)%MPI_TAG = -77
      statuses(i)%MPI_ERROR = -77
    end do
    call MPI_Continueall(count=n, array_of_op_requests=requests, cb=see_tags, cb_data=int(n, MPI_ADDRESS_KIND), &
      array_of_statuses=statuses, cont_request=cr, ierror=ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    do i = 1, n
      call check_true(requests(i) == MPI_REQUEST_NULL, 'the handle is taken')
    end do
    call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
    call check_true(.not. flag, 'outstanding')
    call MPI_Barrier(MPI_COMM_WORLD)
    call send_all(n)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    do i = 1, n
      call check_equal(statuses(i)%MPI_SOURCE, previous, 'source')
      call check_equal(statuses(i)%MPI_TAG, i, 'tag')
      call check_equal(statuses(i)%MPI_ERROR, MPI_SUCCESS, 'error')
      call check_equal(values(i), 1000 * previous + i, 'value')
    end do
  end subroutine receives

  subroutine ignored(n)
    integer, intent(in) :: n
    type(MPI_Request) :: requests(n)
    integer :: values(n), i
    integer(kind=MPI_ADDRESS_KIND) :: place

    call check_name('ignored')
    runs = 0
    do i = 1, n
      call MPI_Irecv(values(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i))
    end do
    call MPI_Continueall(n, requests, see, 11_MPI_ADDRESS_KIND, MPI_STATUSES_IGNORE, cr)
    call send_all(n)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call MPI_Get_address(MPI_STATUSES_IGNORE, place)
    call check_true(place == address, 'the callback gets MPI_STATUSES_IGNORE')
    do i = 1, n
      call check_equal(values(i), 1000 * previous + i, 'value')
    end do
  end subroutine ignored

  ! A receive, a null request, a persistent one that is inactive and one that is active: those two keep their handles.
  subroutine mixed
    type(MPI_Request) :: requests(4), before(4)
    type(MPI_Status) :: statuses(4)
    integer :: a, b, c, i

    call check_name('mixed')
    runs = 0
    call MPI_Irecv(a, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, requests(1))
    requests(2) = MPI_REQUEST_NULL
    call MPI_Recv_init(b, 1, MPI_INTEGER, previous, 7, MPI_COMM_WORLD, requests(3))
    call MPI_Recv_init(c, 1, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, requests(4))
    call MPI_Start(requests(4))
    before = requests
    call PMPI_Continueall(4, requests, see, 12_MPI_ADDRESS_KIND, statuses, cr)
    call check_true(requests(1) == MPI_REQUEST_NULL, 'handle 1')
    call check_true(requests(2) == MPI_REQUEST_NULL, 'handle 2')
    call check_true(requests(3) == before(3), 'handle 3')
    call check_true(requests(4) == before(4), 'handle 4')
    call send_all(2)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_equal(statuses(1)%MPI_TAG, 1, 'tag 1')
    call check_equal(statuses(2)%MPI_TAG, MPI_ANY_TAG, 'tag 2')
    call check_equal(statuses(3)%MPI_TAG, MPI_ANY_TAG, 'tag 3')
    call check_equal(statuses(4)%MPI_TAG, 2, 'tag 4')
    do i = 1, 4
      call check_equal(statuses(i)%MPI_ERROR, MPI_SUCCESS, 'error')
    end do
    call check_equal(a + c, 2000 * previous + 3, 'values')
    call MPI_Request_free(requests(3))
    call MPI_Request_free(requests(4))
  end subroutine mixed

  subroutine none
    type(MPI_Request) :: requests(1)
    type(MPI_Status) :: statuses(1)

    call check_name('none')
    runs = 0
    requests(1) = cr
    statuses(1)%MPI_TAG = -77
    call MPI_Continueall(0, requests, see, 13_MPI_ADDRESS_KIND, statuses, cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_true(data == 13, 'user data')
    call check_true(requests(1) == cr, 'no handle is touched')
    call check_equal(statuses(1)%MPI_TAG, -77, 'no status is touched')
    call MPI_Continueall(0, requests, see, 14_MPI_ADDRESS_KIND, MPI_STATUSES_IGNORE, cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 2, 'runs')
  end subroutine none

  subroutine collectives
    type(MPI_Request) :: requests(2), request
    type(MPI_Status) :: statuses(2)
    integer :: one, sum, i

    call check_name('collectives')
    runs = 0
    sum = 0
    one = rank + 1
    call MPI_Iallreduce(one, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(2))
    statuses(:)%MPI_ERROR = -77
    call MPI_Continueall(2, requests, see, 15_MPI_ADDRESS_KIND, statuses, cr)
    call check_true(all([(requests(i) == MPI_REQUEST_NULL, i = 1, 2)]), 'the handles are taken')
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_equal(sum, ranks * (ranks + 1) / 2, 'sum')
    do i = 1, 2
      call check_equal(statuses(i)%MPI_ERROR, MPI_SUCCESS, 'error')
    end do
    call MPI_Ibcast(sum, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 16_MPI_ADDRESS_KIND, MPI_STATUS_IGNORE, cr)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 2, 'runs')
  end subroutine collectives
end program f08_sets
