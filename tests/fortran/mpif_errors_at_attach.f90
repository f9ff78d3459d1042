! SPDX-License-Identifier: BSD-3-Clause
! ranks: 1
! mpif.h: an operation has failed before a continuation is attached to it. Its error handler is called by the call that
! attaches, and begins another receive with the same variable.

module handler
  use check
  implicit none
  include 'mpif.h'
  integer :: errors = 0, runs = 0, comm, requests(2), value(1)

contains

  subroutine on_error(which, error_code)
    integer :: which, error_code, ierror
    call check_true(which == comm .or. which == MPI_COMM_WORLD, 'the communicator of the error handler')
    call check_true(error_code /= MPI_SUCCESS, 'an error code')
    errors = errors + 1
    call MPI_Irecv(value, 1, MPI_INTEGER, 0, 2, comm, requests(1), ierror)
  end subroutine on_error

  subroutine see(array_of_statuses, user_data, ierror)
    integer :: array_of_statuses(MPI_STATUS_SIZE, *), ierror
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    call check_equal(array_of_statuses(MPI_TAG, 1), int(user_data), 'tag in the callback')
    runs = runs + 1
    ierror = MPI_SUCCESS
  end subroutine see
end module handler

program mpif_errors_at_attach
  use handler
  use check
  implicit none
  include 'contd_mpif.h'
  integer :: errhandler, cr, send, statuses(MPI_STATUS_SIZE, 2), short(1), long(4), i, ierror
  logical :: flag

  call MPI_Init(ierror)
  call check_name('the variable of what has failed')
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
  call MPI_Comm_create_errhandler(on_error, errhandler, ierror)
  call MPI_Comm_set_errhandler(comm, errhandler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler, ierror) ! MPICH calls this one
  call MPI_Continue_init(MPI_INFO_NULL, cr, ierror)
  long = 42
  call MPI_Isend(long, 4, MPI_INTEGER, 0, 1, comm, send, ierror)
  call MPI_Irecv(short, 1, MPI_INTEGER, 0, 1, comm, requests(1), ierror)
  requests(2) = MPI_REQUEST_NULL
  do i = 1, 50
    call MPI_Iprobe(0, 3, comm, flag, MPI_STATUS_IGNORE, ierror)
  end do
  call MPI_Continueall(2, requests, see, 1_MPI_ADDRESS_KIND, statuses, cr, ierror)
  call check_equal(ierror, MPI_SUCCESS, 'attaching')
  call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
  call check_equal(errors, 1, 'calls of the error handler')
  call check_equal(runs, 1, 'calls of the callback')
  call check_true(requests(1) /= MPI_REQUEST_NULL, 'the receive that the error handler began')
  call MPI_Send(long, 1, MPI_INTEGER, 0, 2, comm, ierror)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierror)
  call check_equal(value(1), 42, 'what it received')
  call MPI_Wait(send, MPI_STATUS_IGNORE, ierror)
  call MPI_Request_free(cr, ierror)
  call MPI_Comm_free(comm, ierror)
  call MPI_Finalize(ierror)
end program mpif_errors_at_attach
