! SPDX-License-Identifier: BSD-3-Clause
!
! MPI completion continuations (MPI Forum's draft chapter, sections
! 3.11.1 to 3.11.3) for programs that use mpi or include mpif.h: to be
! included behind that. What the calls do is said in contd/mpi.h. Link
! with contd-mpi-fortran. The callback is
!
!     SUBROUTINE CB(ARRAY_OF_STATUSES, USER_DATA, IERROR)
!     INTEGER ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *), IERROR
!     INTEGER(KIND=MPI_ADDRESS_KIND) USER_DATA
!
! where ARRAY_OF_STATUSES is what was given when the continuation was
! attached, MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE included,
! USER_DATA is a copy of CB_DATA, and IERROR is MPI_SUCCESS; what IERROR
! is afterwards is not looked at.
!
! Valid in fixed and in free form. Statuses are targets since otherwise
! gfortran concludes that only the call itself may write them.
!
      interface
        subroutine MPI_CONTINUE_INIT(INFO, CONT_REQ, IERROR)
          integer INFO, CONT_REQ, IERROR
        end subroutine MPI_CONTINUE_INIT

        subroutine MPI_CONTINUE(OP_REQUEST, CB, CB_DATA, STATUS,        &
     &      CONT_REQUEST, IERROR)
          import MPI_ADDRESS_KIND, MPI_STATUS_SIZE
          integer OP_REQUEST, CONT_REQUEST, IERROR
          integer, target :: STATUS(MPI_STATUS_SIZE, 1)
          integer(kind=MPI_ADDRESS_KIND) CB_DATA
          external CB
        end subroutine MPI_CONTINUE

        subroutine MPI_CONTINUEALL(COUNT, ARRAY_OF_OP_REQUESTS, CB,     &
     &      CB_DATA, ARRAY_OF_STATUSES, CONT_REQUEST, IERROR)
          import MPI_ADDRESS_KIND, MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_OP_REQUESTS(*)
          integer CONT_REQUEST, IERROR
          integer, target :: ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
          integer(kind=MPI_ADDRESS_KIND) CB_DATA
          external CB
        end subroutine MPI_CONTINUEALL

        subroutine PMPI_CONTINUE_INIT(INFO, CONT_REQ, IERROR)
          integer INFO, CONT_REQ, IERROR
        end subroutine PMPI_CONTINUE_INIT

        subroutine PMPI_CONTINUE(OP_REQUEST, CB, CB_DATA, STATUS,       &
     &      CONT_REQUEST, IERROR)
          import MPI_ADDRESS_KIND, MPI_STATUS_SIZE
          integer OP_REQUEST, CONT_REQUEST, IERROR
          integer, target :: STATUS(MPI_STATUS_SIZE, 1)
          integer(kind=MPI_ADDRESS_KIND) CB_DATA
          external CB
        end subroutine PMPI_CONTINUE

        subroutine PMPI_CONTINUEALL(COUNT, ARRAY_OF_OP_REQUESTS, CB,    &
     &      CB_DATA, ARRAY_OF_STATUSES, CONT_REQUEST, IERROR)
          import MPI_ADDRESS_KIND, MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_OP_REQUESTS(*)
          integer CONT_REQUEST, IERROR
          integer, target :: ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
          integer(kind=MPI_ADDRESS_KIND) CB_DATA
          external CB
        end subroutine PMPI_CONTINUEALL

        subroutine MPI_REQUEST_GET_STATUS_ALL(COUNT,                    &
     &      ARRAY_OF_REQUESTS, FLAG, ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), IERROR
          logical FLAG
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine MPI_REQUEST_GET_STATUS_ALL

        subroutine MPI_REQUEST_GET_STATUS_ANY(COUNT,                    &
     &      ARRAY_OF_REQUESTS, INDEX, FLAG, STATUS, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), INDEX, IERROR
          logical FLAG
          integer STATUS(MPI_STATUS_SIZE)
        end subroutine MPI_REQUEST_GET_STATUS_ANY

        subroutine MPI_REQUEST_GET_STATUS_SOME(INCOUNT,                 &
     &      ARRAY_OF_REQUESTS, OUTCOUNT, ARRAY_OF_INDICES,              &
     &      ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer INCOUNT, ARRAY_OF_REQUESTS(*), OUTCOUNT, IERROR
          integer ARRAY_OF_INDICES(*)
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine MPI_REQUEST_GET_STATUS_SOME

        subroutine PMPI_REQUEST_GET_STATUS_ALL(COUNT,                   &
     &      ARRAY_OF_REQUESTS, FLAG, ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), IERROR
          logical FLAG
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine PMPI_REQUEST_GET_STATUS_ALL

        subroutine PMPI_REQUEST_GET_STATUS_ANY(COUNT,                   &
     &      ARRAY_OF_REQUESTS, INDEX, FLAG, STATUS, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), INDEX, IERROR
          logical FLAG
          integer STATUS(MPI_STATUS_SIZE)
        end subroutine PMPI_REQUEST_GET_STATUS_ANY

        subroutine PMPI_REQUEST_GET_STATUS_SOME(INCOUNT,                &
     &      ARRAY_OF_REQUESTS, OUTCOUNT, ARRAY_OF_INDICES,              &
     &      ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer INCOUNT, ARRAY_OF_REQUESTS(*), OUTCOUNT, IERROR
          integer ARRAY_OF_INDICES(*)
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine PMPI_REQUEST_GET_STATUS_SOME

        subroutine MPIX_REQUEST_GET_STATUS_ALL(COUNT,                   &
     &      ARRAY_OF_REQUESTS, FLAG, ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), IERROR
          logical FLAG
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine MPIX_REQUEST_GET_STATUS_ALL

        subroutine MPIX_REQUEST_GET_STATUS_ANY(COUNT,                   &
     &      ARRAY_OF_REQUESTS, INDEX, FLAG, STATUS, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), INDEX, IERROR
          logical FLAG
          integer STATUS(MPI_STATUS_SIZE)
        end subroutine MPIX_REQUEST_GET_STATUS_ANY

        subroutine MPIX_REQUEST_GET_STATUS_SOME(INCOUNT,                &
     &      ARRAY_OF_REQUESTS, OUTCOUNT, ARRAY_OF_INDICES,              &
     &      ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer INCOUNT, ARRAY_OF_REQUESTS(*), OUTCOUNT, IERROR
          integer ARRAY_OF_INDICES(*)
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine MPIX_REQUEST_GET_STATUS_SOME

        subroutine PMPIX_REQUEST_GET_STATUS_ALL(COUNT,                  &
     &      ARRAY_OF_REQUESTS, FLAG, ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), IERROR
          logical FLAG
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine PMPIX_REQUEST_GET_STATUS_ALL

        subroutine PMPIX_REQUEST_GET_STATUS_ANY(COUNT,                  &
     &      ARRAY_OF_REQUESTS, INDEX, FLAG, STATUS, IERROR)
          import MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_REQUESTS(*), INDEX, IERROR
          logical FLAG
          integer STATUS(MPI_STATUS_SIZE)
        end subroutine PMPIX_REQUEST_GET_STATUS_ANY

        subroutine PMPIX_REQUEST_GET_STATUS_SOME(INCOUNT,               &
     &      ARRAY_OF_REQUESTS, OUTCOUNT, ARRAY_OF_INDICES,              &
     &      ARRAY_OF_STATUSES, IERROR)
          import MPI_STATUS_SIZE
          integer INCOUNT, ARRAY_OF_REQUESTS(*), OUTCOUNT, IERROR
          integer ARRAY_OF_INDICES(*)
          integer ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
        end subroutine PMPIX_REQUEST_GET_STATUS_SOME
      end interface
