/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic.h"
#include "mpi/backend.h"
#include "mpi/grequest.h"
#include "mpi/op_set.h"
#include "mpi/sockets.h"
#include "mpi/source.h"
#include "mpi/state.h"

static void drive(bool last)
{
	if (!contd__mpi_thread_may_sig())
		return;
	if (contd__mpi_enter()) {
		contd__general_drain();
		contd__mpi->progress(last ? PROGRESS_ALL : PROGRESS);
		contd__put_off_drain();
		contd__mpi_leave();
	}
}

static uint32_t pending(void)
{
	/* After MPI_Finalize contd may go on for the program, and nothing of MPI's keeps its ticks coming. */
	return contd__load(&contd__mpi_open)
		       ? contd__mpi->pending() + contd__general_any() + contd__load_seq(&contd__sets_owing)
		       : 0;
}

struct contd__source contd__mpi_source = {.name = "MPI",
					  .progress = drive,
					  .pending = pending,
					  .here = contd__mpi_thread_may_sig,
					  .sleep_on = contd__mpi_sockets};
