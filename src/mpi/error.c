/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <mpi.h>

#include "base/error.h"
#include "mpi/error.h"
#include "mpi/process_model.h"

int contd__mpi_error(int class)
{
	return contd__model_error(class);
}

void contd__mpi_refusing(const char *call, int class, const char *text)
{
	contd__fail(class, text);
	contd__fail_in(call, class);
	if (contd__model_is_fatal())
		contd__mpi_say("%s", contd__error_said());
}

/* The error handler may call contd: the text is set again. */
int contd__mpi_tell(const char *call, int class)
{
	const char *text = contd__error_text;

	contd__fail_in(call, class);
	contd__mpi_error(class);
	contd__fail(class, text);
	return contd__fail_in(call, class);
}

int contd__mpi_refused(const char *call, int class)
{
	contd__mpi_refusing(call, class, contd__error_text);
	return contd__mpi_tell(call, class);
}

int contd__mpi_refuse(const char *call, int class, const char *text)
{
	contd__fail(class, text);
	return contd__mpi_refused(call, class);
}

int contd__mpi_class(int err)
{
	switch (err) {
	case 0:
		return MPI_SUCCESS;
	case -ENOMEM:
	case -ENOSPC:
		return MPI_ERR_NO_MEM;
	case -EINVAL:
		return MPI_ERR_ARG;
	case -EBUSY:
	case -ELOOP:
		return MPI_ERR_REQUEST;
	default:
		return MPI_ERR_OTHER;
	}
}

int contd__mpi_error_class(int code)
{
	int class = code;

	return PMPI_Error_class(code, &class) == MPI_SUCCESS ? class : code;
}
