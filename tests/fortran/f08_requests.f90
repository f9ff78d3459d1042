! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: one continuation an operation, on receives and sends; what the callback gets, what becomes of the handles,
! and the continuation request in MPI_Test, MPI_Wait, MPI_Waitall and MPI_Request_free.

module seen
  use mpi_f08
  use check
  implicit none
  integer :: runs = 0
  integer(kind=MPI_ADDRESS_KIND) :: data = 0, address = 0, chained = 0
  type(MPI_Status) :: first
  type(MPI_Request) :: cr

contains

  subroutine see(array_of_statuses, user_data, ierror)
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    call check_true(present(ierror), 'ierror is present')
    if (present(ierror)) call check_equal(ierror, MPI_SUCCESS, 'ierror in the callback')
    runs = runs + 1
    data = user_data
    user_data = 0
    call MPI_Get_address(array_of_statuses(1), address)
    first = array_of_statuses(1)
    if (present(ierror)) ierror = MPI_ERR_OTHER
  end subroutine see

  ! Counts down, one operation after the other.
  recursive subroutine chain(array_of_statuses, user_data, ierror)
    use contd_mpi_f08
    type(MPI_Status) :: array_of_statuses(*)
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer, optional :: ierror
    type(MPI_Request) :: next
    if (present(ierror)) ierror = MPI_SUCCESS
    ! The others are of barriers, which have no tag.
    if (chained == 0) call check_equal(array_of_statuses(1)%MPI_TAG, 9, 'tag in the chain')
    chained = chained + 1
    if (user_data == 0) return
    call MPI_Ibarrier(MPI_COMM_SELF, next)
    call MPI_Continue(next, chain, user_data - 1, array_of_statuses(1), cr)
    call check_true(next == MPI_REQUEST_NULL, 'handle in the chain')
  end subroutine chain
end module seen

program f08_requests
  use mpi_f08
  use contd_mpi_f08
  use seen
  use check
  implicit none
  integer, parameter :: n = 5
  integer :: rank, ranks, next, previous

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call fresh
  call receive_scalar
  call receive_array
  call statuses_change
  call ignored
  call null_request
  call receive_chain
  call beside_others
  call freed_early
  call MPI_Finalize()

contains

  subroutine fresh
    type(MPI_Request) :: same
    integer :: ierror
    logical :: flag

    call check_name('fresh')
    ierror = MPI_ERR_OTHER
    call MPI_Continue_init(info=MPI_INFO_NULL, cont_req=cr, ierror=ierror)
    call check_equal(ierror, MPI_SUCCESS, 'init')
    call check_true(cr /= MPI_REQUEST_NULL, 'a handle')
    same = cr
    flag = .false.
    call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
    call check_true(flag, 'complete')
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_true(cr == same, 'completion keeps it')
  end subroutine fresh

  subroutine poison(status)
    type(MPI_Status), intent(out) :: status
    status%MPI_SOURCE = -77
    status%MPI_TAG = -77
    status%MPI_ERROR = -77
  end subroutine poison

  ! The status of a message of n integers from the previous rank.
  subroutine check_message(status, tag, values)
    type(MPI_Status), intent(in) :: status
    integer, intent(in) :: tag, values(n)
    integer :: count, i
    logical :: cancelled

    call check_equal(status%MPI_SOURCE, previous, 'source')
    call check_equal(status%MPI_TAG, tag, 'tag')
    call check_equal(status%MPI_ERROR, MPI_SUCCESS, 'error')
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check_equal(count, n, 'count')
    call MPI_Test_cancelled(status, cancelled)
    call check_true(.not. cancelled, 'not cancelled')
    do i = 1, n
      call check_equal(values(i), 100 * previous + i, 'value')
    end do
  end subroutine check_message

  subroutine receive_scalar
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: values(n), out(n), i, ierror
    integer(kind=MPI_ADDRESS_KIND) :: place, big
    logical :: flag

    call check_name('receive_scalar')
    out = [(100 * rank + i, i = 1, n)]
    values = 0
    runs = 0
    big = -3_MPI_ADDRESS_KIND * 2_MPI_ADDRESS_KIND**40
    call poison(status)
    call MPI_Irecv(values, n, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, request)
    call MPI_Continue(op_request=request, cb=see, cb_data=big, status=status, cont_request=cr, ierror=ierror)
    call check_equal(ierror, MPI_SUCCESS, 'attach')
    call check_true(request == MPI_REQUEST_NULL, 'the handle is taken')
    flag = .true.
    call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
    call check_true(.not. flag, 'outstanding')
    call check_equal(runs, 0, 'runs before')
    call MPI_Barrier(MPI_COMM_WORLD) ! nobody has sent before
    call MPI_Send(out, n, MPI_INTEGER, next, 1, MPI_COMM_WORLD)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_true(data == big, 'user data')
    call MPI_Get_address(status, place)
    call check_true(place == address, 'the callback gets the same status')
    call check_message(status, 1, values)
    call check_message(first, 1, values)
    call check_true(request == MPI_REQUEST_NULL, 'the handle after the wait')
  end subroutine receive_scalar

  subroutine receive_array
    type(MPI_Request) :: request
    type(MPI_Status) :: status(1)
    integer :: values(n), out(n), i
    integer(kind=MPI_ADDRESS_KIND) :: place
    logical :: flag

    call check_name('receive_array')
    out = [(100 * rank + i, i = 1, n)]
    runs = 0
    call poison(status(1))
    call MPI_Irecv(values, n, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 1_MPI_ADDRESS_KIND, status, cr)
    call MPI_Send(out, n, MPI_INTEGER, next, 2, MPI_COMM_WORLD)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(cr, flag, MPI_STATUS_IGNORE)
    end do
    call check_equal(runs, 1, 'runs')
    call MPI_Get_address(status, place)
    call check_true(place == address, 'the callback gets the same array')
    call check_message(status(1), 2, values)
  end subroutine receive_array

  ! Local variables that no other call is given, and no targets: the compiler must know all the same that what was in
  ! them need not be in them after the wait.
  subroutine statuses_change
    type(MPI_Request) :: requests(3)
    ! Without the attribute gfortran 14 keeps in a register what it has stored before the call.
    type(MPI_Status), asynchronous :: scalar, array(1), both(2)
    integer, asynchronous :: values(3)
    integer :: i

    call check_name('statuses_change')
    runs = 0
    scalar%MPI_TAG = -77
    array(1)%MPI_TAG = -77
    both(1)%MPI_TAG = -77
    both(2)%MPI_TAG = -77
    do i = 1, 3
      call MPI_Irecv(values(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i))
    end do
    call MPI_Continue(requests(1), see, 0_MPI_ADDRESS_KIND, scalar, cr)
    call MPI_Continue(requests(2), see, 0_MPI_ADDRESS_KIND, array, cr)
    requests(1) = MPI_REQUEST_NULL
    call MPI_Continueall(2, requests(2:3), see, 0_MPI_ADDRESS_KIND, both, cr)
    do i = 1, 3
      call MPI_Send(rank, 1, MPI_INTEGER, next, i, MPI_COMM_WORLD)
    end do
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 3, 'runs')
    ! Compared here: a function that is given their address would look at the memory.
    call check_true(scalar%MPI_TAG == 1, 'tag 1')
    call check_true(array(1)%MPI_TAG == 2, 'tag 2')
    call check_true(both(1)%MPI_TAG == MPI_ANY_TAG, 'tag of a null request')
    call check_true(both(2)%MPI_TAG == 3, 'tag 3')
  end subroutine statuses_change

  subroutine ignored
    type(MPI_Request) :: request
    integer :: values(n), out(n), i
    integer(kind=MPI_ADDRESS_KIND) :: place

    call check_name('ignored')
    values = 0
    out = [(100 * rank + i, i = 1, n)]
    runs = 0
    call MPI_Irecv(values, n, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 2_MPI_ADDRESS_KIND, MPI_STATUS_IGNORE, cr)
    call MPI_Send(out, n, MPI_INTEGER, next, 3, MPI_COMM_WORLD)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call MPI_Get_address(MPI_STATUS_IGNORE, place)
    call check_true(place == address, 'the callback gets MPI_STATUS_IGNORE')
    call check_true(first%MPI_TAG /= 3, 'nothing is written there')
    call check_true(data == 2, 'user data')
    ! A send, and the other one, which the array form takes.
    call MPI_Isend(out, n, MPI_INTEGER, next, 4, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 3_MPI_ADDRESS_KIND, MPI_STATUSES_IGNORE, cr)
    call MPI_Recv(values, n, MPI_INTEGER, previous, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 2, 'runs')
    call MPI_Get_address(MPI_STATUSES_IGNORE, place)
    call check_true(place == address, 'the callback gets MPI_STATUSES_IGNORE')
  end subroutine ignored

  ! Complete at once, with the empty status; by the PMPI names.
  subroutine null_request
    type(MPI_Request) :: request, other
    type(MPI_Status) :: status
    integer :: count

    call check_name('null_request')
    runs = 0
    request = MPI_REQUEST_NULL
    call poison(status)
    call PMPI_Continue_init(MPI_INFO_NULL, other)
    call PMPI_Continue(request, see, 4_MPI_ADDRESS_KIND, status, other)
    call MPI_Wait(other, MPI_STATUS_IGNORE)
    call check_equal(runs, 1, 'runs')
    call check_equal(status%MPI_SOURCE, MPI_ANY_SOURCE, 'source')
    call check_equal(status%MPI_TAG, MPI_ANY_TAG, 'tag')
    call check_equal(status%MPI_ERROR, MPI_SUCCESS, 'error')
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check_equal(count, 0, 'count')
    call check_true(request == MPI_REQUEST_NULL, 'still null')
    call MPI_Request_free(other)
    call check_true(other == MPI_REQUEST_NULL, 'the continuation request is freed')
  end subroutine null_request

  subroutine receive_chain
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: value

    call check_name('receive_chain')
    call MPI_Irecv(value, 1, MPI_INTEGER, previous, 9, MPI_COMM_WORLD, request)
    call MPI_Continue(request, chain, 50_MPI_ADDRESS_KIND, status, cr)
    call MPI_Send(rank, 1, MPI_INTEGER, next, 9, MPI_COMM_WORLD)
    call MPI_Wait(cr, MPI_STATUS_IGNORE) ! each is registered before the one before it is over
    call check_true(chained == 51, 'the whole chain')
    call check_equal(value, previous, 'value')
  end subroutine receive_chain

  ! The continuation request among ordinary requests; and with a continuation that waits for it.
  subroutine beside_others
    type(MPI_Request) :: request, requests(2), awaited
    type(MPI_Status) :: status, statuses(2)
    integer :: a, b

    call check_name('beside_others')
    runs = 0
    call MPI_Irecv(a, 1, MPI_INTEGER, previous, 5, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 5_MPI_ADDRESS_KIND, status, cr)
    requests(1) = cr
    call MPI_Irecv(b, 1, MPI_INTEGER, previous, 6, MPI_COMM_WORLD, requests(2))
    call MPI_Send(rank, 1, MPI_INTEGER, next, 6, MPI_COMM_WORLD)
    call MPI_Send(rank, 1, MPI_INTEGER, next, 5, MPI_COMM_WORLD)
    call MPI_Waitall(2, requests, statuses)
    call check_equal(runs, 1, 'runs')
    call check_true(requests(1) == cr, 'the continuation request stays')
    call check_true(requests(2) == MPI_REQUEST_NULL, 'the other one does not')
    call check_equal(status%MPI_TAG, 5, 'tag')
    call check_equal(statuses(2)%MPI_TAG, 6, 'tag of the other one')
    call check_equal(a + b, 2 * previous, 'values')

    runs = 0
    call MPI_Continue_init(MPI_INFO_NULL, awaited)
    requests(1) = awaited
    call MPI_Irecv(a, 1, MPI_INTEGER, previous, 7, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 6_MPI_ADDRESS_KIND, status, awaited)
    call MPI_Continue(awaited, see, 7_MPI_ADDRESS_KIND, MPI_STATUS_IGNORE, cr)
    call check_true(awaited == requests(1), 'its handle stays')
    call MPI_Send(rank, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD)
    call MPI_Wait(cr, MPI_STATUS_IGNORE)
    call check_equal(runs, 2, 'runs')
    call check_true(data == 7, 'in their order')
    call MPI_Request_free(awaited)
  end subroutine beside_others

  ! Freed while a continuation is outstanding, which still runs.
  subroutine freed_early
    type(MPI_Request) :: request
    integer :: value

    call check_name('freed_early')
    runs = 0
    call MPI_Irecv(value, 1, MPI_INTEGER, previous, 8, MPI_COMM_WORLD, request)
    call MPI_Continue(request, see, 8_MPI_ADDRESS_KIND, MPI_STATUS_IGNORE, cr)
    call MPI_Request_free(cr)
    call check_true(cr == MPI_REQUEST_NULL, 'the handle is null')
    call check_equal(runs, 0, 'runs before')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Isend(rank, 1, MPI_INTEGER, next, 8, MPI_COMM_WORLD, request)
    do while (runs == 0)
      call nudge
    end do
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check_equal(value, previous, 'value')
  end subroutine freed_early

  ! Any call that makes progress runs what is ready.
  subroutine nudge
    logical :: flag
    call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE)
  end subroutine nudge
end program f08_requests
