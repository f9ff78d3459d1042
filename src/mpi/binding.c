/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/binding.h"
#include "mpi/error.h"
#include "mpi/process_model.h"

bool contd__binding_mpi_is_open(void)
{
	return contd__model_is_open();
}

int contd__binding_refuse(const char *call, int class, const char *text)
{
	return contd__mpi_refuse(call, class, text);
}
