! SPDX-License-Identifier: BSD-3-Clause
! ranks: 1
! mpi_f08, and C: continuations of both on one request, whose failures either asks for; and a template of Fortran's that C
! starts.

module callbacks
  use mpi_f08
  use check
  implicit none
  integer :: starts = 0, completes = 0

contains

  subroutine fails(rc, user_data, ierror)
    integer, intent(in) :: rc
    integer(kind=MPI_ADDRESS_KIND) :: user_data
    integer :: ierror
    call check_equal(rc, MPI_SUCCESS, 'rc')
    call check_true(user_data > 0, 'user_data')
    ierror = MPI_ERR_BUFFER
  end subroutine fails

  subroutine start_it(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    call check_equal(int(extra_state), 77, 'extra_state in start_fn')
    starts = starts + 1
    ierror = MPI_SUCCESS
  end subroutine start_it

  subroutine complete_it(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status), optional :: status
    integer :: ierror
    call check_equal(int(extra_state), 77, 'extra_state in complete_fn')
    call check_true(present(status), 'a status')
    completes = completes + 1
    ierror = MPI_SUCCESS
  end subroutine complete_it
end module callbacks

program f08_mixed
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t
  use mpi_f08
  use contd_mpi_f08
  use callbacks
  use check
  implicit none

  interface
    integer(c_int) function mixed_attach(cr, data) bind(C)
      import :: c_int, c_intptr_t
      integer(c_int), value :: cr
      integer(c_intptr_t), value :: data
    end function mixed_attach

    integer(c_int) function mixed_get_failed(cr, count, data) bind(C)
      import :: c_int, c_intptr_t
      integer(c_int), value :: cr
      integer(c_int) :: count
      integer(c_intptr_t) :: data(*)
    end function mixed_get_failed

    integer(c_int) function mixed_begin(gr, extra_state, request) bind(C)
      import :: c_int, c_intptr_t
      integer(c_intptr_t), value :: gr, extra_state
      integer(c_int) :: request
    end function mixed_begin
  end interface

  integer, parameter :: n = 6
  integer(c_intptr_t) :: in_c(n)
  integer(kind=MPI_ADDRESS_KIND) :: failed(n)
  type(MPI_Request) :: cr, request
  type(MPIX_Gr) :: gr
  integer :: i, round, count, ierror

  call MPI_Init()
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call check_name('failures')
  call MPIX_Continue_init(0, 0, MPI_INFO_NULL, cr)
  do round = 1, 2
    call MPI_Start(cr)
    do i = 1, n, 2
      call check_equal(mixed_attach(cr%MPI_VAL, int(i, c_intptr_t)), MPI_SUCCESS, 'attach in C')
      request = MPI_REQUEST_NULL
      call MPIX_Continue(request, fails, int(i + 1, MPI_ADDRESS_KIND), 0, MPI_STATUS_IGNORE, cr)
    end do
    count = n
    if (round == 1) then
      call MPIX_Continue_get_failed(cr, count, failed)
    else
      call check_equal(mixed_get_failed(cr%MPI_VAL, count, in_c), MPI_SUCCESS, 'get_failed in C')
      failed = in_c
    end if
    call check_equal(count, n, 'failed ones')
    call check_true(all(failed == [(i, i = 1, n)]), 'what was attached with them')
    call MPI_Wait(cr, MPI_STATUS_IGNORE, ierror)
    call check_equal(ierror, MPI_SUCCESS, 'not marked as failed any more')
  end do
  call MPI_Request_free(cr)

  call check_name('template')
  call MPIX_Gr_init(start_it, MPIX_GR_PUSH_FN_NULL, complete_it, MPIX_GR_CANCEL_FN_NULL, gr)
  call check_equal(mixed_begin(int(gr%MPI_VAL, c_intptr_t), 77_c_intptr_t, request%MPI_VAL), MPI_SUCCESS, 'begin in C')
  call check_equal(starts, 1, 'calls of start_fn')
  call MPIX_Mark_request_complete(request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check_equal(completes, 1, 'calls of complete_fn')
  call MPIX_Gr_free(gr)
  call MPI_Finalize()
end program f08_mixed
