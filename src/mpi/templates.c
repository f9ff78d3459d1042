/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/templates.h"

const struct contd__instance_ops *contd__instance_ops;
uint32_t contd__instances_waiting, contd__instances_pushed, contd__instances;
__thread uint32_t contd__pushing __attribute__((tls_model("initial-exec")));
