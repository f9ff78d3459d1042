/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI together with what else contd waits for: operations as events, and the group behind a CR. */
#include <errno.h>

#include "base/atomic.h"
#include "base/error.h"
#include "dispatch/group.h"
#include "mpi/backend.h"
#include "mpi/continue.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/life.h"
#include "mpi/state.h"

/* Also in a handler. */
static int complete(int rc, void *event)
{
	contd_event_complete(event, rc);
	return MPI_SUCCESS;
}

int contd_mpi_event(MPI_Request *request, MPI_Status *status, struct contd_event *event)
{
	static const char call[] = "contd_mpi_event";
	const struct contd__mpi_attach a = {.call = call,
					    .names = NAMES_EVENT,
					    .count = 1,
					    .requests = request,
					    .cb = (void (*)(void))complete,
					    .data = event,
					    .statuses = status,
					    .ignore = status == MPI_STATUS_IGNORE || status == MPI_STATUSES_IGNORE,
					    .revised = true,
					    .flags = MPIX_CONT_INVOKE_FAILED};
	struct contd_group *group;
	int rc;

	if (!contd__load_acquire(&contd__mpi_open) && !contd__mpi_start(call, &rc))
		return rc;
	if (!event)
		return contd__mpi_refuse(call, MPI_ERR_ARG, "event must not be NULL");
	rc = contd__attach_check(&a);
	if (rc)
		return contd__mpi_refused(call, rc);
	group = contd__mpi_loose(LOOSE_EVENTS);
	if (!group)
		return contd__mpi_refused(call, MPI_ERR_NO_MEM);
	contd_event_init(event);
	rc = contd__attach(&a, NULL, group);
	return rc ? contd__mpi_refused(call, rc) : MPI_SUCCESS;
}

struct contd_group *contd_mpi_group(MPI_Request cont_req)
{
	struct contd__cr *cr = contd__load_acquire(&contd__mpi_open) ? contd__mpi->cr_of(cont_req) : NULL;

	if (!cr)
		contd__fail(-EINVAL,
			    contd__load_seq(&contd__mpi_open)
				    ? "contd_mpi_group: cont_req is no continuation request; make it with "
				      "MPI_Continue_init or MPIX_Continue_init"
			    : contd__load_seq(&contd__mpi_ended)
				    ? "contd_mpi_group: MPI_Finalize has been called; call it before"
				    : "contd_mpi_group: cont_req is no continuation request: there is none yet");
	if (!cr)
		return NULL;
	contd__cr_shares();
	/* Calls of contd's may ask from now on, on any thread. */
	contd__cr_uncounted_ends();
	contd__store(&cr->asked_about, true);
	return cr->group;
}
