/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic.h"
#include "dispatch/outlet.h"
#include "dispatch/thread.h"
#include "mpi/process_model.h"
#include "mpi/state.h"

uint32_t contd__mpi_open;
uint32_t contd__mpi_ended;
MPI_Status contd__status_empty;
__thread struct contd__call *contd__call __attribute__((tls_model("initial-exec")));
__thread bool contd__inside_progress __attribute__((tls_model("initial-exec")));

static uint32_t driving;                                                    /* sources that are being driven */
static __thread uint32_t drives __attribute__((tls_model("initial-exec"))); /* this thread is inside so many of them */
enum { NOT_ASKED, MAIN, NOT_MAIN };
static __thread int is_main __attribute__((tls_model("initial-exec")));       /* is it MPI's main thread? */
static __thread uint32_t asked_in __attribute__((tls_model("initial-exec"))); /* in which epoch of sessions */

/*
 * In a compute region, or when a thread polls contd, MPI may be entered if the level that was granted lets this thread
 * do so: any thread with MPI_THREAD_MULTIPLE, otherwise the main thread. (With MPI_THREAD_SERIALIZED contd cannot see
 * whether another thread is inside MPI. So only the main thread's regions drive it: MPI 4.1, 11.6; or the thread that a
 * program has lent to an executor for that, and then no other.)
 */
void contd__mpi_ask_main(void)
{
	asked_in = contd__load(&contd__model_epoch);
	is_main = contd__model_main_thread() ? MAIN : NOT_MAIN;
}

void contd__mpi_state_start(void)
{
	int flag;

	PMPI_Request_get_status(MPI_REQUEST_NULL, &flag, &contd__status_empty);
	contd__status_empty.MPI_ERROR = MPI_SUCCESS;
}

bool contd__mpi_thread_may_sig(void)
{
	uint32_t epoch;

	if (contd__model.level == MPI_THREAD_MULTIPLE)
		return true;
	if (contd__exclusive_any()) /* executors with CONTD_EXECUTOR_MPI */
		return contd__exclusive_mine();
	/* Not after MPI_Finalize, where MPI must not be asked. */
	epoch = contd__load(&contd__model_epoch);
	if (__builtin_expect(is_main == NOT_ASKED || asked_in != epoch, 0) && contd__on_thread_sig() &&
	    contd__load(&contd__mpi_open))
		contd__mpi_ask_main();
	return is_main == MAIN && asked_in == epoch;
}

bool contd__mpi_enter(void)
{
	contd__add(&driving, 1);
	if (contd__load_seq(&contd__mpi_open)) {
		drives++;
		return true;
	}
	contd__sub(&driving, 1);
	return false;
}

void contd__mpi_leave(void)
{
	drives--;
	contd__sub(&driving, 1);
}

bool contd__mpi_inside(void)
{
	return drives != 0;
}

bool contd__mpi_driven(void)
{
	return contd__load_seq(&driving) != 0;
}
