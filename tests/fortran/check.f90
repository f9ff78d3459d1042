! SPDX-License-Identifier: BSD-3-Clause
! Shared by the Fortran test programs of both bindings. The first check that fails ends the program, and mpirun
! the other ranks.

module check
  implicit none
  private
  public :: check_true, check_equal, check_name
  integer :: checked = 0
  character(len=40) :: name = 'start'

contains

  ! Names what follows.
  subroutine check_name(text)
    character(len=*), intent(in) :: text
    name = text
  end subroutine check_name

  subroutine check_true(good, text)
    logical, intent(in) :: good
    character(len=*), intent(in) :: text
    checked = checked + 1
    if (good) return
    print '(5a, i0, a)', 'FAILED: ', trim(name), ': ', text, ' (check ', checked, ')'
    stop 1
  end subroutine check_true

  subroutine check_equal(a, b, text)
    integer, intent(in) :: a, b
    character(len=*), intent(in) :: text
    checked = checked + 1
    if (a == b) return
    print '(5a, i0, a, i0, a, i0)', 'FAILED: ', trim(name), ': ', text, ' (check ', checked, '): ', a, ' and ', b
    stop 1
  end subroutine check_equal
end module check
