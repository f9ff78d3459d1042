! SPDX-License-Identifier: BSD-3-Clause
! mpif.h: what is refused reports once and changes nothing; an operation that fails shows in its status.

module handler
  use check
  implicit none
  include 'mpif.h'
  integer :: errors = 0, runs = 0

contains

  subroutine on_error(comm, error_code)
    integer :: comm, error_code
    call check_equal(comm, MPI_COMM_SELF, 'the communicator of the error handler')
    call check_true(error_code /= MPI_SUCCESS, 'an error code')
    errors = errors + 1
  end subroutine on_error

  subroutine see(array_of_statuses, user_data, ierror)
    integer :: array_of_statuses(MPI_STATUS_SIZE, *), ierror
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    call check_equal(array_of_statuses(MPI_TAG, 1), int(user_data), 'tag in the callback')
    runs = runs + 1
    ierror = MPI_SUCCESS
  end subroutine see
end module handler

program mpif_errors
  use handler
  use check
  implicit none
  include 'contd_mpif.h'
  integer :: rank, ranks, next, previous, errhandler, cr, requests(2), before(2), statuses(MPI_STATUS_SIZE, 2)
  integer :: value(1), values(2), class, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call MPI_Comm_create_errhandler(on_error, errhandler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPI_Continue_init(MPI_INFO_NULL, cr, ierror)

  call check_name('refused')
  call MPI_Irecv(value, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Irecv(values, 2, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, requests(2), ierror)
  before = requests
  statuses = -77
  call MPI_Continueall(2, requests, see, 1_MPI_ADDRESS_KIND, statuses, MPI_REQUEST_NULL, ierror)
  call MPI_Error_class(ierror, class, ierror)
  call check_equal(class, MPI_ERR_REQUEST, 'null is no continuation request')
  call MPI_Continueall(2, requests, see, 1_MPI_ADDRESS_KIND, statuses, requests(2), ierror)
  call MPI_Error_class(ierror, class, ierror)
  call check_equal(class, MPI_ERR_REQUEST, 'nor is a receive')
  call MPI_Continueall(-1, requests, see, 1_MPI_ADDRESS_KIND, statuses, cr, ierror)
  call MPI_Error_class(ierror, class, ierror)
  call check_equal(class, MPI_ERR_COUNT, 'a negative count')
  call check_equal(errors, 3, 'calls of the error handler')
  call check_true(all(requests == before), 'the handles stay')
  call check_true(all(statuses == -77), 'the statuses stay')

  call check_name('truncated')
  call MPI_Continue(requests(1), see, 1_MPI_ADDRESS_KIND, statuses, cr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'attach')
  call MPI_Continue(requests(2), see, 2_MPI_ADDRESS_KIND, statuses(1, 2), cr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'attach')
  call MPI_Send([rank, rank], 2, MPI_INTEGER, next, 1, MPI_COMM_WORLD, ierror)
  call MPI_Send([rank, rank], 2, MPI_INTEGER, next, 2, MPI_COMM_WORLD, ierror)
  call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
  call check_equal(runs, 2, 'runs')
  call MPI_Error_class(statuses(MPI_ERROR, 1), class, ierror)
  ! Open MPI does not notice it in a message to oneself.
  if (ranks > 1) call check_equal(class, MPI_ERR_TRUNCATE, 'error class in the status')
  call check_equal(statuses(MPI_ERROR, 2), MPI_SUCCESS, 'none in the other one')
  call check_true(all(values == previous), 'values')
  call MPI_Request_free(cr, ierror)
  call MPI_Finalize(ierror)
end program mpif_errors
