! SPDX-License-Identifier: BSD-3-Clause
!
! MPI completion continuations, in the draft interface (MPI Forum's
! draft chapter, sections 3.11.1 to 3.11.3) and the revised one
! (MPIX_), status queries, and templates of generalized requests, for
! programs that use mpi or include mpif.h: to be included behind that.
! What the calls do is said in contd/mpi.h. Link with
! contd-mpi-fortran.
!
! The callback of MPI_CONTINUE and MPI_CONTINUEALL is
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
! The callback of MPIX_CONTINUE and MPIX_CONTINUEALL is
!
!     SUBROUTINE CB(RC, USER_DATA, IERROR)
!     INTEGER RC, IERROR
!     INTEGER(KIND=MPI_ADDRESS_KIND) USER_DATA
!
! where IERROR is MPI_SUCCESS before, and the result afterwards.
!
! The functions of a template are, with IERROR as in the revised
! interface and EXTRA_STATE a copy of what MPIX_GR_BEGIN was given,
!
!     SUBROUTINE START_FN(EXTRA_STATE, IERROR)
!     SUBROUTINE PUSH_FN(EXTRA_STATE, IERROR)
!     SUBROUTINE COMPLETE_FN(EXTRA_STATE, STATUS, IERROR)
!     SUBROUTINE CANCEL_FN(EXTRA_STATE, COMPLETE, IERROR)
!     INTEGER(KIND=MPI_ADDRESS_KIND) EXTRA_STATE
!     INTEGER STATUS(MPI_STATUS_SIZE), IERROR
!     LOGICAL COMPLETE
!
! If the request was freed nobody reads STATUS. MPIX_GR_PUSH_FN_NULL and
! MPIX_GR_CANCEL_FN_NULL say that there is no such function.
!
! The status queries can be called by MPI's names too. These are not
! declared here, for the module mpi of an MPI 4.1 declares them.
!
! Valid in fixed and in free form. Statuses are targets since otherwise
! gfortran concludes that only the call itself may write them.
!
      integer MPIX_CONT_REQBUF_VOLATILE, MPIX_CONT_REQUESTS_FREE
      integer MPIX_CONT_POLL_ONLY, MPIX_CONT_DEFER_COMPLETE
      integer MPIX_CONT_INVOKE_FAILED, MPIX_CONT_IMMEDIATE
      parameter (MPIX_CONT_REQBUF_VOLATILE=1)
      parameter (MPIX_CONT_REQUESTS_FREE=2)
      parameter (MPIX_CONT_POLL_ONLY=4)
      parameter (MPIX_CONT_DEFER_COMPLETE=8)
      parameter (MPIX_CONT_INVOKE_FAILED=16)
      parameter (MPIX_CONT_IMMEDIATE=32)

      integer(kind=MPI_ADDRESS_KIND) MPIX_GR_NULL
      parameter (MPIX_GR_NULL=0)

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

        subroutine MPIX_CONTINUE_INIT(FLAGS, MAX_POLL, INFO, CONT_REQ,  &
     &      IERROR)
          integer FLAGS, MAX_POLL, INFO, CONT_REQ, IERROR
        end subroutine MPIX_CONTINUE_INIT

        subroutine MPIX_CONTINUE(OP_REQUEST, CB, CB_DATA, FLAGS,        &
     &      STATUS, CONT_REQUEST, IERROR)
          import MPI_ADDRESS_KIND, MPI_STATUS_SIZE
          integer OP_REQUEST, FLAGS, CONT_REQUEST, IERROR
          integer, target :: STATUS(MPI_STATUS_SIZE, 1)
          integer(kind=MPI_ADDRESS_KIND) CB_DATA
          external CB
        end subroutine MPIX_CONTINUE

        subroutine MPIX_CONTINUEALL(COUNT, ARRAY_OF_OP_REQUESTS, CB,    &
     &      CB_DATA, FLAGS, ARRAY_OF_STATUSES, CONT_REQUEST, IERROR)
          import MPI_ADDRESS_KIND, MPI_STATUS_SIZE
          integer COUNT, ARRAY_OF_OP_REQUESTS(*), FLAGS
          integer CONT_REQUEST, IERROR
          integer, target :: ARRAY_OF_STATUSES(MPI_STATUS_SIZE, *)
          integer(kind=MPI_ADDRESS_KIND) CB_DATA
          external CB
        end subroutine MPIX_CONTINUEALL

        subroutine MPIX_CONTINUE_GET_FAILED(CONT_REQUEST, COUNT,        &
     &      CB_DATA, IERROR)
          import MPI_ADDRESS_KIND
          integer CONT_REQUEST, COUNT, IERROR
          integer(kind=MPI_ADDRESS_KIND) CB_DATA(*)
        end subroutine MPIX_CONTINUE_GET_FAILED

        subroutine MPIX_GR_INIT(START_FN, PUSH_FN, COMPLETE_FN,         &
     &      CANCEL_FN, GR, IERROR)
          import MPI_ADDRESS_KIND
          external START_FN, PUSH_FN, COMPLETE_FN, CANCEL_FN
          integer(kind=MPI_ADDRESS_KIND) GR
          integer IERROR
        end subroutine MPIX_GR_INIT

        subroutine MPIX_GR_BEGIN(GR, EXTRA_STATE, REQ, IERROR)
          import MPI_ADDRESS_KIND
          integer(kind=MPI_ADDRESS_KIND) GR, EXTRA_STATE
          integer, target :: REQ
          integer IERROR
        end subroutine MPIX_GR_BEGIN

        subroutine MPIX_GR_FREE(GR, IERROR)
          import MPI_ADDRESS_KIND
          integer(kind=MPI_ADDRESS_KIND) GR
          integer IERROR
        end subroutine MPIX_GR_FREE

        subroutine MPIX_MARK_REQUEST_COMPLETE(REQ, IERROR)
          integer REQ, IERROR
        end subroutine MPIX_MARK_REQUEST_COMPLETE

        subroutine MPIX_CANCEL(REQUEST, IERROR)
          integer REQUEST, IERROR
        end subroutine MPIX_CANCEL

        subroutine MPIX_GR_PUSH_FN_NULL(EXTRA_STATE, IERROR)
          import MPI_ADDRESS_KIND
          integer(kind=MPI_ADDRESS_KIND) EXTRA_STATE
          integer IERROR
        end subroutine MPIX_GR_PUSH_FN_NULL

        subroutine MPIX_GR_CANCEL_FN_NULL(EXTRA_STATE, COMPLETE, IERROR)
          import MPI_ADDRESS_KIND
          integer(kind=MPI_ADDRESS_KIND) EXTRA_STATE
          logical COMPLETE
          integer IERROR
        end subroutine MPIX_GR_CANCEL_FN_NULL
      end interface

! The other names of these calls.
      procedure(MPI_CONTINUE_INIT) :: PMPI_CONTINUE_INIT
      procedure(MPI_CONTINUE) :: PMPI_CONTINUE
      procedure(MPI_CONTINUEALL) :: PMPI_CONTINUEALL
      procedure(MPIX_CONTINUE_INIT) :: PMPIX_CONTINUE_INIT
      procedure(MPIX_CONTINUE) :: PMPIX_CONTINUE
      procedure(MPIX_CONTINUEALL) :: PMPIX_CONTINUEALL
      procedure(MPIX_CONTINUE_GET_FAILED) :: PMPIX_CONTINUE_GET_FAILED
      procedure(MPIX_GR_INIT) :: PMPIX_GR_INIT
      procedure(MPIX_GR_BEGIN) :: PMPIX_GR_BEGIN
      procedure(MPIX_GR_FREE) :: PMPIX_GR_FREE
      procedure(MPIX_MARK_REQUEST_COMPLETE) ::                          &
     &  PMPIX_MARK_REQUEST_COMPLETE
      procedure(MPIX_CANCEL) :: PMPIX_CANCEL
      procedure(MPIX_REQUEST_GET_STATUS_ALL) ::                         &
     &  PMPIX_REQUEST_GET_STATUS_ALL
      procedure(MPIX_REQUEST_GET_STATUS_ANY) ::                         &
     &  PMPIX_REQUEST_GET_STATUS_ANY
      procedure(MPIX_REQUEST_GET_STATUS_SOME) ::                        &
     &  PMPIX_REQUEST_GET_STATUS_SOME
